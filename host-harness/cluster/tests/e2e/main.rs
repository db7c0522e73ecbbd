//! The KEP's integration and end-to-end tests, and what operators fear, on the simulated cluster: the
//! controller's binary, the real module, everything over HTTP.

mod bench;
mod claims;
mod composition;
mod deletion;
mod drills;
mod gates;
mod interference;
mod lifecycle;
mod placement;
mod scaling;
mod stamping;
