//! From a body to an object as it is stored.
//!
//! Stands for decoding into the typed API: unknown members are pruned and reported as
//! `fieldValidation` asks, members of the wrong type are refused, empty lists are the same as absent
//! ones. `spec.scheduling` of a StatefulSet, which the types of 1.37 do not have, is kept in profile
//! `kep`. Left out: YAML and CBOR bodies, and duplicate keys.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use statefulset_scheduling_core::api::{Carrier, UnknownFields, decode_configuration};

use crate::config::Profile;
use crate::resource::{Resource, Served};
use crate::status::Problem;

/// What is done about members that the type does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Problem> {
        match text {
            None | Some("Warn") => Ok(Self::Warn),
            Some("Ignore") => Ok(Self::Ignore),
            Some("Strict") => Ok(Self::Strict),
            Some(other) => Err(Problem::bad_request(format!(
                "fieldValidation: Unsupported value: \"{other}\": supported values: \"Ignore\", \"Strict\", \"Warn\""
            ))),
        }
    }
}

/// Reads a body. What is stored comes back, with the stored type; unknown members go to `warnings`.
pub(crate) fn decode(
    served: Served,
    profile: Profile,
    body: Value,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Problem> {
    check_type(served, &body)?;
    let mut raw = served.store(body);
    let scheduling = take_scheduling(served.resource, profile, &mut raw);
    let mut value = served.resource.through(raw.clone()).map_err(|error| misfit(served, &error.to_string()))?;
    let mut unknown = Vec::new();
    if validation != FieldValidation::Ignore {
        find_unknown(&raw, &value, &mut String::new(), &mut unknown);
    }
    if let Some(raw) = scheduling {
        value["spec"]["scheduling"] = read_scheduling(served, &raw)?;
        find_unknown(&raw, &value["spec"]["scheduling"], &mut "spec.scheduling".to_owned(), &mut unknown);
    }
    let unknown: Vec<_> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    match validation {
        FieldValidation::Strict if !unknown.is_empty() => {
            let kind = served.resource.kind();
            let message = format!(
                "{kind} in version \"{}\" cannot be handled as a {kind}: strict decoding error: {}",
                served.version,
                unknown.join(", ")
            );
            return Err(Problem::bad_request(message));
        }
        FieldValidation::Strict | FieldValidation::Ignore => {}
        FieldValidation::Warn => warnings.extend(unknown),
    }
    tidy(served.resource, &mut value);
    Ok(value)
}

fn check_type(served: Served, body: &Value) -> Result<(), Problem> {
    if !body.is_object() {
        return Err(Problem::bad_request("an object was expected"));
    }
    let (version, kind) = (served.api_version(), served.resource.kind());
    match (body["apiVersion"].as_str(), body["kind"].as_str()) {
        (Some(sent), _) if sent != version => Err(Problem::bad_request(format!(
            "the API version in the data ({sent}) does not match the expected API version ({version})"
        ))),
        (_, Some(sent)) if sent != kind => Err(Problem::bad_request(format!(
            "the kind in the data ({sent}) does not match the expected kind ({kind})"
        ))),
        _ => Ok(()),
    }
}

fn misfit(served: Served, why: &str) -> Problem {
    let kind = served.resource.kind();
    Problem::bad_request(format!("{kind} in version \"{}\" cannot be handled as a {kind}: {why}", served.version))
}

/// Takes out what only profile `kep` knows.
fn take_scheduling(resource: Resource, profile: Profile, raw: &mut Value) -> Option<Value> {
    if resource != Resource::StatefulSets || profile != Profile::Kep {
        return None;
    }
    raw.get_mut("spec")?.as_object_mut()?.remove("scheduling").filter(|scheduling| !scheduling.is_null())
}

fn read_scheduling(served: Served, raw: &Value) -> Result<Value, Problem> {
    let configuration = decode_configuration(raw, &Carrier::Field.path(), UnknownFields::Prune)
        .map_err(|errors| misfit(served, &errors.to_string()))?;
    serde_json::to_value(configuration).map_err(|error| misfit(served, &error.to_string()))
}

/// The paths of members that were sent and are not in what was understood.
fn find_unknown(sent: &Value, known: &Value, path: &mut String, unknown: &mut Vec<String>) {
    let length = path.len();
    match (sent, known) {
        (Value::Object(sent), Value::Object(known)) => {
            for (key, value) in sent.iter().filter(|(_, value)| !value.is_null()) {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                match known.get(key) {
                    Some(known) => find_unknown(value, known, path, unknown),
                    None => unknown.push(path.clone()),
                }
                path.truncate(length);
            }
        }
        (Value::Array(sent), Value::Array(known)) => {
            for (index, (sent, known)) in sent.iter().zip(known).enumerate() {
                // Writing to a text cannot fail.
                let _ = write!(path, "[{index}]");
                find_unknown(sent, known, path, unknown);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Removes what the server's types leave out when they are empty.
pub(crate) fn tidy(resource: Resource, value: &mut Value) {
    let data = match resource {
        // Opaque: kept as it was sent.
        Resource::ControllerRevisions => value.as_object_mut().and_then(|members| members.remove("data")),
        _ => None,
    };
    drop_absent(value);
    if let Some(data) = data {
        value["data"] = data;
    }
    if let Some(metadata) = value.get_mut("metadata") {
        tidy_metadata(metadata);
    }
    if let Some(metadata) = value.pointer_mut("/spec/template/metadata") {
        tidy_metadata(metadata);
    }
}

fn tidy_metadata(metadata: &mut Value) {
    if let Some(members) = metadata.as_object_mut() {
        members.retain(|_, member| !member.as_object().is_some_and(Map::is_empty));
        for text in ["name", "generateName", "namespace", "uid", "resourceVersion"] {
            if members.get(text).is_some_and(|text| text == "") {
                members.remove(text);
            }
        }
    }
}

fn drop_absent(value: &mut Value) {
    match value {
        Value::Object(members) => {
            // The list of a pod's containers is written even if it is empty.
            let is_empty = |member: &Value| member.as_array().is_some_and(Vec::is_empty);
            members.retain(|key, member| !member.is_null() && (key == "containers" || !is_empty(member)));
            members.values_mut().for_each(drop_absent);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_absent),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(profile: Profile, body: Value, validation: FieldValidation) -> (Result<Value, String>, Vec<String>) {
        let mut warnings = Vec::new();
        let decoded = decode(Resource::StatefulSets.served(), profile, body, validation, &mut warnings);
        (decoded.map_err(|problem| problem.message), warnings)
    }

    fn set() -> Value {
        json!({
            "metadata": { "name": "web", "labels": {}, "creationTimestamp": null },
            "spec": { "replicas": 2, "scheduling": { "schedulingPolicy": { "gang": {}, "fair": {} } }, "colour": "red" },
        })
    }

    #[test]
    fn unknown_members_are_pruned_and_reported_as_asked() {
        let (value, warnings) = read(Profile::V1_37, set(), FieldValidation::Warn);
        let value = value.expect("it is read");
        assert!(value["spec"].get("scheduling").is_none() && value["metadata"].get("labels").is_none());
        assert_eq!(warnings, ["unknown field \"spec.colour\"", "unknown field \"spec.scheduling\""]);
        let (value, _) = read(Profile::V1_37, set(), FieldValidation::Strict);
        assert!(
            value
                .expect_err("it is strict")
                .ends_with("strict decoding error: unknown field \"spec.colour\", unknown field \"spec.scheduling\"")
        );
        let (value, warnings) = read(Profile::V1_37, set(), FieldValidation::Ignore);
        assert!(value.is_ok() && warnings.is_empty());
    }

    #[test]
    fn the_profile_of_the_kep_stores_the_scheduling() {
        let (value, warnings) = read(Profile::Kep, set(), FieldValidation::Warn);
        assert_eq!(value.expect("it is read")["spec"]["scheduling"], json!({ "schedulingPolicy": { "gang": {} } }));
        assert_eq!(
            warnings,
            ["unknown field \"spec.colour\"", "unknown field \"spec.scheduling.schedulingPolicy.fair\""]
        );
        let (value, _) = read(Profile::Kep, json!({ "spec": { "scheduling": 3 } }), FieldValidation::Warn);
        assert!(value.expect_err("it is refused").contains("spec.scheduling: Invalid value: 3: must be an object"));
    }

    #[test]
    fn what_is_of_the_wrong_type_is_refused() {
        for (body, message) in [
            (json!([]), "an object was expected"),
            (json!({ "kind": "Pod" }), "the kind in the data (Pod) does not match the expected kind (StatefulSet)"),
            (json!({ "apiVersion": "v1" }), "the API version in the data (v1) does not match"),
            (json!({ "spec": { "replicas": "2" } }), "StatefulSet in version \"v1\" cannot be handled as a"),
        ] {
            let (value, _) = read(Profile::V1_37, body, FieldValidation::Ignore);
            let error = value.expect_err("it is refused");
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn every_resource_reads_an_empty_object() {
        for resource in Resource::all() {
            let read = resource.through(json!({ "apiVersion": resource.api_version(), "kind": resource.kind() }));
            assert!(read.is_ok(), "{resource}: {read:?}");
        }
    }
}
