//! Kubewarden: waPC operations `validate`, `validate_settings` and `protocol_version`, and one of
//! this project's own, `query`, which answers what [`statefulset_scheduling_core::query`] does.

use kubewarden_policy_sdk::response::ValidationResponse;
use kubewarden_policy_sdk::settings::SettingsValidationResponse;
use serde_json::value::RawValue;
use statefulset_scheduling_core::admission::{self, Call, Lookup, LookupError, Settings, Verdict};
use statefulset_scheduling_core::query;
use wapc_guest::CallResult;

mod host;

/// The cluster behind the engine.
struct Cluster;

impl Lookup for Cluster {
    fn statefulset(&self, namespace: &str, name: &str) -> Result<String, LookupError> {
        host::get_statefulset(namespace, name)
    }
}

/// Registers the operations: the engine calls this once for each instance.
#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code)] // The engine finds the function by its name.
#[unsafe(no_mangle)]
pub extern "C" fn wapc_init() {
    wapc_guest::register_function("validate", validate);
    wapc_guest::register_function("validate_settings", validate_settings);
    wapc_guest::register_function("protocol_version", kubewarden_policy_sdk::protocol_version_guest);
    wapc_guest::register_function("query", query);
}

/// Answers an admission request. Whatever the payload is, there is an answer, and what cannot be
/// read is denied.
///
/// # Errors
/// The answer cannot be written, which does not happen.
pub fn validate(payload: &[u8]) -> CallResult {
    validate_with(payload, &Cluster)
}

/// As [`validate`], with another cluster to look objects up in.
///
/// # Errors
/// The answer cannot be written, which does not happen.
pub fn validate_with(payload: &[u8], lookup: &dyn Lookup) -> CallResult {
    Ok(serde_json::to_vec(&respond(payload, lookup))?)
}

fn respond(payload: &[u8], lookup: &dyn Lookup) -> ValidationResponse {
    let payload = match text(payload) {
        Ok(payload) => payload,
        Err(error) => return response(None, Verdict::deny(400, error)),
    };
    match Call::parse(payload) {
        Ok(call) => response(call.request.object, admission::answer(&call, lookup)),
        Err(error) => response(None, Verdict::deny(400, error.to_string())),
    }
}

/// A verdict in the engine's words. It wants the changed object, and computes the patch itself.
fn response(object: Option<&RawValue>, verdict: Verdict) -> ValidationResponse {
    let mutated_object = match (verdict.patch.is_empty(), object) {
        (false, Some(object)) => match verdict.patch.apply(object.get()) {
            Ok(object) => Some(object),
            Err(error) => return response(None, Verdict::deny(400, error.to_string())),
        },
        _ => None,
    };
    ValidationResponse {
        accepted: verdict.allowed,
        message: Some(verdict.message).filter(|message| !message.is_empty()),
        code: Some(verdict.code).filter(|&code| code != 0),
        mutated_object,
        audit_annotations: None,
        warnings: Some(verdict.warnings).filter(|warnings| !warnings.is_empty()),
    }
}

/// Says whether the settings can be read, and if not, why.
///
/// # Errors
/// The answer cannot be written, which does not happen.
pub fn validate_settings(payload: &[u8]) -> CallResult {
    let message = match text(payload).map(Settings::parse) {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(error) => Some(error),
    };
    Ok(serde_json::to_vec(&SettingsValidationResponse { valid: message.is_none(), message })?)
}

/// Answers a query of the core.
///
/// # Errors
/// The query cannot be read, with the reason.
pub fn query(payload: &[u8]) -> CallResult {
    Ok(query::answer(text(payload)?, &Cluster)?)
}

fn text(payload: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(payload).map_err(|error| format!("the request is not UTF-8: {error}"))
}
