//! Refusals, as the `Status` objects that an API server answers.

use serde_json::{Value, json};

use super::resource::Resource;

/// An answer that is not a success.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Value,
    pub(crate) retry_after: Option<u32>,
}

impl Problem {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self { code, reason, message, details: json!({}), retry_after: None }
    }

    fn about(mut self, resource: Resource, name: &str) -> Self {
        self.details = json!({ "name": name, "group": resource.group(), "kind": resource.plural() });
        self
    }

    pub(crate) fn not_found(resource: Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(404, "NotFound", message).about(resource, name)
    }

    /// No such API, as opposed to no such object.
    pub(crate) fn not_served() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource".into())
    }

    pub(crate) fn already_exists(resource: Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    pub(crate) fn conflict(resource: Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    pub(crate) fn stale(resource: Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    pub(crate) fn invalid(resource: Resource, name: &str, field: &str, why: &str) -> Self {
        let kind = resource.types().1;
        let qualified = if resource.group().is_empty() { kind.into() } else { format!("{kind}.{}", resource.group()) };
        let message = format!("{qualified} \"{name}\" is invalid: {field}: {why}");
        let mut problem = Self::new(422, "Invalid", message).about(resource, name);
        problem.details["kind"] = kind.into();
        problem.details["causes"] = json!([{ "reason": "FieldValueInvalid", "message": why, "field": field }]);
        problem
    }

    /// What a JSON patch that does not fit its object gets.
    pub(crate) fn patch_rejected(why: &str) -> Self {
        let message = "the server rejected our request due to an error in our request";
        let mut problem = Self::new(422, "Invalid", message.into());
        problem.details = json!({ "causes": [{ "reason": "UnexpectedServerResponse", "message": why }] });
        problem
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into())
    }

    pub(crate) fn unsupported(content_type: &str) -> Self {
        let message = format!("the body of the request was in an unknown format: {content_type}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn expired(what: &str) -> Self {
        Self::new(410, "Expired", what.into())
    }

    pub(crate) fn unforeseen(request: &str) -> Self {
        Self::new(500, "InternalError", format!("the test did not foresee {request}"))
    }

    /// A fault of the test's choice.
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
        let mut problem = Self::new(code, reason, format!("a fault that the test asked for: {code}"));
        problem.retry_after = retry_after;
        if let Some(seconds) = retry_after {
            problem.details = json!({ "retryAfterSeconds": seconds });
        }
        problem
    }

    pub(crate) fn to_value(&self) -> Value {
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        })
    }
}
