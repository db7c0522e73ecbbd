//! The engine's host calls.

use serde_json::{Value, json};
use statefulset_scheduling_core::admission::{LookupError, STATEFULSET_FIELDS};
use statefulset_scheduling_core::api::{API_VERSION, KIND};

/// Reads a StatefulSet from the API server, past the engine's cache, and of it only what the core reads:
/// a manifest of 100 KB is not copied in for each pod.
pub(super) fn get_statefulset(namespace: &str, name: &str) -> Result<String, LookupError> {
    let request = json!({
        "api_version": API_VERSION,
        "kind": KIND,
        "namespace": namespace,
        "name": name,
        "disable_cache": true,
        "field_masks": STATEFULSET_FIELDS,
    });
    let answer = wapc_guest::host_call("kubewarden", "kubernetes", "get_resource", request.to_string().as_bytes())
        .map_err(|error| classify(&error.to_string()))?;
    let text = String::from_utf8(answer).map_err(|error| LookupError::Failed(error.to_string()))?;
    match serde_json::from_str(&text) {
        Ok(Value::Null) => Err(LookupError::NotFound),
        _ => Ok(text),
    }
}

/// What an error means. The engine gives only its text.
fn classify(error: &str) -> LookupError {
    let has = |part: &str| error.contains(part);
    if has("Cannot find ") {
        LookupError::NotFound
    } else if has("has not been granted") || has("forbidden") || has("Forbidden") {
        LookupError::Forbidden(error.to_owned())
    } else if has("timed out") || has("timeout") || has("Timeout") || has("deadline") {
        LookupError::TimedOut(error.to_owned())
    } else {
        LookupError::Failed(error.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine's texts, as they were measured.
    #[test]
    fn the_engines_errors_are_told_apart() {
        let text = |error: &str| format!("Host error: Callback evaluation failure: {error}");
        for (error, kind) in [
            (r#"Cannot find apps/v1/StatefulSet named 'x' inside of namespace 'Some("ns")'"#, "not found"),
            ("Policy has not been granted access to Kubernetes apps/v1/StatefulSet resources", "forbidden"),
            (r#"ApiError: statefulsets.apps "x" is forbidden: User "y" cannot get resource"#, "forbidden"),
            ("the request timed out", "timed out"),
            ("operation was not completed before the deadline", "timed out"),
            ("error finding resource apps/v1/StatefulSet: ApiError: not there", "Host error"),
        ] {
            let classified = classify(&text(error)).to_string();
            assert!(classified.starts_with(kind), "{error}: {classified}");
        }
    }
}
