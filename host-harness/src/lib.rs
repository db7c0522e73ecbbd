//! Runs the policy module in wasmtime as its engines do.
//!
//! [`module`] loads and calls it, [`manifest`] reads what people write, [`review`] asks the module
//! about it, and [`report`] prints the answer. [`golden`] compares the golden vectors.

pub mod golden;
pub mod manifest;
pub mod module;
pub mod report;
pub mod review;
