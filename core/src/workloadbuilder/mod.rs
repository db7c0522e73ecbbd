//! KEP-6089's workloadbuilder for a workload of one leaf: an intent in, one Workload and one
//! PodGroup out.
//!
//! A [`WorkloadItem`] says what is asked for, [`resolve`] what that comes to, [`validate`] whether
//! it may be, and a [`Builder`] makes the objects.

mod build;
mod item;
mod resolve;
mod validate;

pub use build::{
    BuildError, Builder, MANAGED_BY, MANAGED_BY_ANNOTATION, Owner, controller_reference, workload_reference,
};
pub use item::{BuildOptions, Callback, DisruptionModeType, PolicyType, SchedulingConfig, WorkloadItem};
pub use resolve::resolve;
pub use validate::validate;
