//! A model of a cluster around the real reconciler and the real index.

mod cluster;
mod machine;
mod object;
mod rules;
mod world;

pub(crate) use cluster::{Act, Bounds, Brought, Foreign, Propagation, Set, Shape};
pub(crate) use machine::{Action, Machine, Mishap, Request};
pub(crate) use object::{RESOURCES, Resource};
pub(crate) use world::World;
