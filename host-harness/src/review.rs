//! What the module says about a manifest.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::manifest::Object;
use crate::module::{Error, Policy};

/// The verdict of the module, as its `query` operation gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the object is allowed.
    pub allowed: bool,
    /// Why it is not.
    pub message: String,
    /// The HTTP status of a denial.
    pub code: u16,
    /// The errors, each with its path.
    pub errors: Vec<FieldError>,
    /// The warnings.
    pub warnings: Vec<String>,
    /// What changes about the object, as JSON Patch.
    pub patch: Vec<Value>,
}

/// An error about one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// The kind of error, as in a Status.
    #[serde(rename = "type")]
    pub error_type: String,
    /// Where it is.
    pub field: String,
    /// What is wrong.
    pub body: String,
}

/// The objects that a StatefulSet compiles to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compiled {
    /// The Workload.
    pub workload: Value,
    /// The PodGroup.
    pub pod_group: Value,
}

/// What the module says about one StatefulSet.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// The file it stands in.
    pub file: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether it carries an intent.
    pub opted_in: bool,
    /// The verdict on its creation.
    pub verdict: Verdict,
    /// What it compiles to, where it is allowed and opted in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compiled: Option<Compiled>,
}

/// Asks the module about the creation of a StatefulSet.
///
/// # Errors
/// The module gives no answer.
pub fn review(policy: &Policy, file: &Path, object: &Object, settings: &Value) -> Result<Review, Error> {
    let verdict = verdict(policy, &object.request(None), settings)?;
    let mut defaulted = object.value.clone();
    if defaulted["metadata"].is_object() {
        defaulted["metadata"]["namespace"] = object.namespace().into();
    }
    let query = json!({"compile": {"statefulSet": defaulted, "settings": settings}});
    let compiled: Value = policy.query(&query)?;
    // Null says that the StatefulSet did not opt in; an object with errors that it did, and cannot.
    let opted_in = !compiled.is_null();
    Ok(Review {
        file: file.display().to_string(),
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        opted_in,
        compiled: serde_json::from_value(compiled).ok().filter(|_| verdict.allowed),
        verdict,
    })
}

/// Asks the module about an admission request.
///
/// # Errors
/// The module gives no answer.
pub fn verdict(policy: &Policy, request: &Value, settings: &Value) -> Result<Verdict, Error> {
    policy.query(&json!({"review": {"request": request, "settings": settings}}))
}
