//! An admission request and its answer.
//!
//! [`review`] is pure: the request, the settings and what a look-up answers are all that the verdict
//! depends on. Reviewing the object that comes out of a verdict again changes nothing.

mod lookup;
mod patch;
mod request;
mod settings;
mod statefulset;
mod verdict;

pub use lookup::{Lookup, LookupError};
pub use patch::{Operation, Patch, PatchError};
pub use request::{Call, CallError, Request};
pub use settings::{DEFAULT_CONTROLLER, Settings, SettingsError};
pub use verdict::{MAX_MESSAGE_LENGTH, Verdict};

use crate::api;

/// Answers an admission request.
///
/// Only the creation and the update of StatefulSets is looked at; everything else is allowed as it
/// is. Pods of opted-in StatefulSets have their place here.
pub fn review(request: &Request<'_>, settings: &Settings, _lookup: &dyn Lookup) -> Verdict {
    if is_statefulset(request) { statefulset::review(request, settings) } else { Verdict::allow() }
}

/// Answers what an engine hands to a policy. Settings that cannot be read deny the creation and the
/// update of what opted in, since no rule can be kept, and touch nothing else.
pub fn answer(call: &Call<'_>, lookup: &dyn Lookup) -> Verdict {
    match call.settings() {
        Ok(settings) => review(&call.request, &settings, lookup),
        Err(error) if is_statefulset(&call.request) && statefulset::writes_opted_in(&call.request) => {
            Verdict::deny(500, format!("the policy cannot be applied: {error}"))
        }
        Err(_) => Verdict::allow(),
    }
}

fn is_statefulset(request: &Request<'_>) -> bool {
    request.group == api::GROUP && request.kind == api::KIND && request.sub_resource.is_empty()
}

#[cfg(test)]
mod tests;
