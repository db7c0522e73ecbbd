//! The WebAssembly policy: adapters between the ABI of an admission engine and the core.
//!
//! There is no rule in this crate. An adapter turns bytes into a question for
//! [`statefulset_scheduling_core`], and its answer into bytes.

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

pub mod kubewarden;
