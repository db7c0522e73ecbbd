//! The scheduler.
//!
//! Stands for kube-scheduler with `GenericWorkload`, `TopologyAwareWorkloadScheduling` and
//! `DRAWorkloadResourceClaims` on. A loop feeds [`cluster`](crate::cluster) from watches, asks
//! [`round()`] what to do, and does it. Left out: profiles, plugins, leader election, events, and
//! everything that the modules below name.
//!
//! | module | what it decides |
//! |---|---|
//! | [`units`] | what is scheduled as one, in which order, and what waits |
//! | [`board`] | whether a pod can be on a node |
//! | [`place`] | where pods go together, and in which topology domain |
//! | [`preempt`] | who is pushed away for them |
//! | [`claims`] | which devices they get |
//! | [`mod@round`] | all of it |

mod apply;
pub mod board;
pub mod claims;
mod order;
pub mod place;
pub mod preempt;
pub mod round;
mod run;
pub mod units;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::clock::Clock;

pub use claims::{Devices, Supply};
pub use round::{Decision, GroupReport, Placement, PodReport, Preemption, round};
pub use run::{Handle, start};

/// What the decisions depend on beside the cluster.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The `schedulerName` of the pods that are its own.
    pub scheduler_name: String,
    /// Decides among equals.
    pub seed: u64,
    /// Whether PodGroups are looked at.
    pub generic_workload: bool,
    /// The devices that claims are made of.
    pub devices: Devices,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scheduler_name: "default-scheduler".to_owned(),
            seed: 0,
            generic_workload: true,
            devices: Devices::default(),
        }
    }
}

/// A scheduler to start.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the decisions depend on.
    pub settings: Settings,
    /// How long changes are collected before they are looked at.
    pub gather: Duration,
    /// How long until something that failed is tried again.
    pub retry: Duration,
    /// How many requests may be on their way at once; with one, their order depends on the seed only.
    pub parallel: usize,
    /// What time it is; the time of day where it is not said.
    pub clock: Option<Clock>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            gather: Duration::from_millis(2),
            retry: Duration::from_millis(100),
            parallel: 16,
            clock: None,
        }
    }
}
