//! Refusals, as the `Status` objects that an API server answers.

use serde_json::{Value, json};
use statefulset_scheduling_core::field::ErrorList;

use crate::resource::{Resource, Subresource};

/// An answer that is not a success.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) code: u16,
    reason: String,
    pub(crate) message: String,
    details: Value,
    pub(crate) retry_after: Option<u32>,
}

impl Problem {
    fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), details: json!({}), retry_after: None }
    }

    fn about(mut self, resource: Resource, name: &str) -> Self {
        self.details = json!({ "name": name, "group": resource.group(), "kind": resource.plural() });
        self
    }

    pub(crate) fn not_found(resource: Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(404, "NotFound", message).about(resource, name)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn already_exists(resource: Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    pub(crate) fn conflict(resource: Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// A conflict about an action on an object.
    pub(crate) fn conflict_on(resource: Resource, subresource: Subresource, name: &str, why: &str) -> Self {
        let qualified = format!("{}/{}", resource.plural(), subresource.as_str());
        let message = format!("Operation cannot be fulfilled on {qualified} \"{name}\": {why}");
        Self::new(409, "Conflict", message).about(resource, name)
    }

    pub(crate) fn stale(resource: Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    pub(crate) fn forbidden(resource: Resource, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", resource.qualified());
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// A create in a namespace that is being deleted.
    pub(crate) fn terminating(resource: Resource, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut problem = Self::forbidden(resource, name, &why);
        problem.details["causes"] = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        }]);
        problem
    }

    pub(crate) fn invalid(resource: Resource, name: &str, errors: &ErrorList) -> Self {
        let message = format!("{} \"{name}\" is invalid: {errors}", resource.qualified_kind());
        let mut problem = Self::new(422, "Invalid", message).about(resource, name);
        let causes = errors.iter().map(|error| {
            json!({ "reason": error.error_type.as_str(), "message": error.body(), "field": error.field.as_str() })
        });
        problem.details["kind"] = resource.kind().into();
        problem.details["causes"] = causes.collect();
        problem
    }

    /// What a JSON patch that does not fit its object gets.
    pub(crate) fn patch_rejected(why: &str) -> Self {
        let mut problem = Self::new(422, "Invalid", "the server rejected our request due to an error in our request");
        problem.details = json!({ "causes": [{ "reason": "UnexpectedServerResponse", "message": why }] });
        problem
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unsupported(content_type: &str) -> Self {
        let message = format!("the body of the request was in an unknown format: {content_type}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn expired(what: impl Into<String>) -> Self {
        Self::new(410, "Expired", what)
    }

    /// A version that is yet to come.
    pub(crate) fn too_new(asked: u64, current: u64) -> Self {
        let mut problem = Self::new(504, "Timeout", format!("Too large resource version: {asked}, current: {current}"));
        problem.details = json!({
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
            "retryAfterSeconds": 1,
        });
        problem.retry_after = Some(1);
        problem
    }

    pub(crate) fn internal(why: &str) -> Self {
        let mut problem = Self::new(500, "InternalError", format!("Internal error occurred: {why}"));
        problem.details = json!({ "causes": [{ "message": why }] });
        problem
    }

    /// The answer of an admission webhook. Its reason is what the webhook says, which is mostly nothing.
    pub(crate) fn denied(code: u16, message: impl Into<String>) -> Self {
        Self::new(code, "", message)
    }

    /// A fault of the embedder's choice.
    pub(crate) fn fault(code: u16, retry_after: Option<u32>) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            422 => "Invalid",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "",
        };
        let mut problem = Self::new(code, reason, format!("a fault that was asked for: {code}"));
        problem.retry_after = retry_after;
        if let Some(seconds) = retry_after {
            problem.details = json!({ "retryAfterSeconds": seconds });
        }
        problem
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.as_str().into();
        }
        if self.details.as_object().is_some_and(|details| !details.is_empty()) {
            status["details"] = self.details.clone();
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statefulset_scheduling_core::field::{Error, Path};

    #[test]
    fn invalid_objects_get_one_cause_for_each_error() {
        let errors: ErrorList =
            [Error::required(&Path::new("spec").child("a"), ""), Error::forbidden(&Path::new("b"), "no")]
                .into_iter()
                .collect();
        let status = Problem::invalid(Resource::StatefulSets, "web", &errors).to_value();
        assert_eq!(
            status["message"],
            "StatefulSet.apps \"web\" is invalid: [spec.a: Required value, b: Forbidden: no]"
        );
        assert_eq!(status["details"]["kind"], "StatefulSet");
        assert_eq!(status["details"]["causes"][1]["reason"], "FieldValueForbidden");
    }

    #[test]
    fn a_status_leaves_out_what_it_does_not_know() {
        let status = Problem::denied(403, "no").to_value();
        assert!(status.get("reason").is_none() && status.get("details").is_none());
    }
}
