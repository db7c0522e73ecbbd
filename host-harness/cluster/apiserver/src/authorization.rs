//! Who may do what. Without an authorizer everybody may do everything.

use crate::faults::Occasion;
use crate::status::Problem;

/// Decides whether a request may be made. A closure does.
pub trait Authorizer: Send + Sync {
    /// Whether the request's user may make it.
    fn allows(&self, occasion: &Occasion<'_>) -> bool;
}

impl<F: Fn(&Occasion<'_>) -> bool + Send + Sync> Authorizer for F {
    fn allows(&self, occasion: &Occasion<'_>) -> bool {
        self(occasion)
    }
}

/// What a request is answered that may not be made.
pub(crate) fn refusal(occasion: &Occasion<'_>) -> Problem {
    let Occasion { user, verb, resource, group, .. } = *occasion;
    let place = match occasion.namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let what = match occasion.subresource {
        Some(subresource) => format!("{}/{}", resource.plural(), subresource.as_str()),
        None => resource.plural().to_owned(),
    };
    let why = format!("User {user:?} cannot {verb} resource {what:?} in API group {group:?} {place}");
    Problem::forbidden(resource, occasion.name.unwrap_or_default(), &why)
}
