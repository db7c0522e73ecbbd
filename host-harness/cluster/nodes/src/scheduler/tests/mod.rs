//! What is decided, told as stories of small clusters.

mod claims;
mod gangs;
mod pods;
mod preemption;
mod topology;
mod world;
