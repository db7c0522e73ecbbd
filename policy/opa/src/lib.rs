//! The core as a module of [OPA's WebAssembly ABI](https://www.openpolicyagent.org/docs/wasm), 1.2.
//!
//! A host loads it as it loads a compiled Rego policy. There is no rule in this crate: it turns a
//! host's input and data into a question for [`statefulset_scheduling_core`], and its answer into an
//! OPA result.
//!
//! | entrypoint | id | input | result |
//! |---|---|---|---|
//! | `statefulset_scheduling/review` | 0 | `{"request": …}`, an `AdmissionReview` | an `AdmissionReview` with its `response` |
//! | `statefulset_scheduling/validate` | 1 | what the core's query `validate` takes | what it answers |
//! | `statefulset_scheduling/compile` | 2 | what the core's query `compile` takes | what it answers |
//! | `statefulset_scheduling/query` | 3 | any query of the core | what it answers |
//!
//! The data are the settings, and beside them `kubernetes.statefulsets.<namespace>.<name>` as kube-mgmt
//! and Kubewarden replicate it: there a review of a pod finds the pod's StatefulSet. Without a member
//! `kubernetes` the look-up fails, and the core holds the pods that it would have to let in blindly.
//!
//! The response is what an API server expects of a webhook, so that a host can send it on as it is:
//! `uid`, `allowed`, `status` {`message`, `code`} of a denial, `warnings`, and where something changes
//! `patchType: JSONPatch` and `patch`, the JSON Patch in base64. Kubewarden in its mode `opa` and OPA
//! behind a webhook take this form. Gatekeeper asks other questions and is not served.
//!
//! What cannot be read is an answer, too, `{"error": …}`: a module that stops in the middle of an
//! evaluation leaves its stack behind, and a host may go on to use it.

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

#[cfg(target_arch = "wasm32")]
mod abi;
mod data;
mod entrypoint;
mod value;

pub use entrypoint::{ENTRYPOINTS, Entrypoint, evaluate};
pub use value::{PathError, add_path, is_json, remove_path};
