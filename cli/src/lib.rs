//! `kubectl sts-scheduling`: workload-aware scheduling for StatefulSets, from the command line.
//!
//! Every rule is the core's; here files and clusters are read, and answers are written.
//!
//! | module | what it is about |
//! |---|---|
//! | [`args`], [`command`], [`exit`] | what the program is told, does, and ends with |
//! | [`documents`], [`tape`], [`scalar`] | a stream, its documents, and where everything in them stands |
//! | [`locate`] | from the path of a field to its line and column |
//! | [`lint`], [`glance`], [`finding`], [`mod@format`] | what the policy would say, and the forms in which that is written |
//! | [`parallel`] | the same, on all processors |
//! | [`opt_in`] | an intent, written into a manifest |
//! | [`snapshot`], [`status`], [`doctor`] | a cluster as it is, what became of an intent, what is wrong |
//! | [`progress`], [`style`] | what a terminal shows |

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::string_slice
    )
)]

pub mod args;
pub mod command;
pub mod doctor;
pub mod documents;
pub mod exit;
pub mod finding;
pub mod format;
pub mod glance;
pub mod lint;
pub mod locate;
pub mod opt_in;
pub mod parallel;
pub mod progress;
pub mod scalar;
pub mod snapshot;
pub mod status;
pub mod style;
pub mod tape;
