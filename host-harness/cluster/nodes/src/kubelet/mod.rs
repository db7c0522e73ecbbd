//! The kubelets of all nodes, in one task.
//!
//! Stands for the part of a kubelet that the API sees: the status of its pods and their final DELETE,
//! each as the node's own user. Left out: containers, static pods, node status and Leases, and all
//! that [`lifecycle`] names. A pod that is not bound is none of its business: the API server removes
//! it by itself.

pub mod lifecycle;
mod run;
pub mod status;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::clock::Clock;

pub use lifecycle::Timings;
pub use run::{Handle, start};

/// Kubelets to start.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long things take.
    pub timings: Timings,
    /// The nodes whose kubelets these are; none for all. Pods of other nodes stay as they are.
    pub nodes: Option<BTreeSet<String>>,
    /// How long until something that failed is tried again.
    pub retry: Duration,
    /// How many requests may be on their way at once; with one, they go in the order of the pods' names.
    pub parallel: usize,
    /// What time it is; the time of day where it is not said.
    pub clock: Option<Clock>,
}

impl Default for Config {
    fn default() -> Self {
        Self { timings: Timings::default(), nodes: None, retry: Duration::from_millis(50), parallel: 32, clock: None }
    }
}
