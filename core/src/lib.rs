//! The rules of workload-aware scheduling for StatefulSets (KEP-6277), as pure functions.
//!
//! The admission policy and the controller are both made of this crate and hold no rule of their
//! own, so they cannot disagree. Nothing in here does I/O, reads a clock, draws a random number,
//! or keeps state between calls; every function is total, and every error is a value.
//!
//! | module | what it decides |
//! |---|---|
//! | [`api`] | what a user writes, where it is carried, and how it is read |
//! | [`field`] | paths and errors in the form in which Kubernetes reports them |
//! | [`validation`] | what is refused on create and on update, and what is warned about |
//! | [`workloadbuilder`] | the Workload and the PodGroup that an intent compiles to |
//! | [`names`] | the deterministic names of both |
//! | [`gates`] | feature gates, and what a closed one does |
//! | [`binding`] | what the controller tells the policy about a StatefulSet's group |
//! | [`discovery`] | which Workload and PodGroup are a StatefulSet's |
//! | [`plan`] | what the controller does next |
//! | [`admission`] | an admission request and its answer |
//! | [`query`] | all of the above as one JSON question and its JSON answer |

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::arithmetic_side_effects
    )
)]

pub mod admission;
pub mod api;
pub mod binding;
pub mod discovery;
pub mod field;
pub mod gates;
mod json;
pub mod names;
pub mod plan;
pub mod query;
pub mod validation;
pub mod workloadbuilder;
