//! An admission request and its answer.
//!
//! [`review`] is pure: the request, the settings and what a look-up answers are all that the verdict
//! depends on. Reviewing the object that comes out of a verdict again changes nothing.

mod lookup;
mod patch;
mod pod;
mod request;
#[cfg(feature = "admission-review")]
mod review;
mod settings;
mod statefulset;
mod verdict;

pub use lookup::{Lookup, LookupError, STATEFULSET_FIELDS};
pub use patch::{Operation, Patch, PatchError};
pub use request::{Call, CallError, Request};
#[cfg(feature = "admission-review")]
pub use review::AdmissionReview;
pub use settings::{DEFAULT_CONTROLLER, DEFAULT_STATEFULSET_CONTROLLERS, Settings, SettingsError};
pub use verdict::{MAX_MESSAGE_LENGTH, Verdict};

use crate::api;

/// Answers an admission request.
///
/// Looked at are the creation and the update of StatefulSets, and the creation and the deletion of
/// the pods of those that opted in; everything else is allowed as it is.
pub fn review(request: &Request<'_>, settings: &Settings, lookup: &dyn Lookup) -> Verdict {
    if is_statefulset(request) {
        statefulset::review(request, settings)
    } else if is_pod(request) {
        pod::review(request, settings, lookup)
    } else {
        Verdict::allow()
    }
}

/// Answers what an engine hands to a policy. Settings that cannot be read deny the creation and the
/// update of what opted in, since no rule can be kept, and touch nothing else.
pub fn answer(call: &Call<'_>, lookup: &dyn Lookup) -> Verdict {
    let request = &call.request;
    match call.settings() {
        Ok(settings) => review(request, &settings, lookup),
        Err(error) => {
            let opted_in = (is_statefulset(request) && statefulset::writes_opted_in(request))
                || (is_pod(request) && pod::creates_member(request));
            if opted_in {
                Verdict::deny(500, format!("the policy cannot be applied: {error}"))
            } else {
                Verdict::allow()
            }
        }
    }
}

fn is_pod(request: &Request<'_>) -> bool {
    request.group.is_empty() && request.kind == "Pod" && request.sub_resource.is_empty()
}

fn is_statefulset(request: &Request<'_>) -> bool {
    request.group == api::GROUP && request.kind == api::KIND && request.sub_resource.is_empty()
}

#[cfg(test)]
mod tests;
