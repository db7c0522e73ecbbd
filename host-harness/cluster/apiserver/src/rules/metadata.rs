//! The metadata that all objects have.
//!
//! Stands for `ValidateObjectMeta` and its update. Left out: the size of annotations and the validation
//! of managed fields.

use serde_json::{Map, Value};
use statefulset_scheduling_core::field::{BadValue, Error, ErrorList, Path};

use super::formats::{dns_label, dns_subdomain, label_value, qualified_name};
use crate::resource::Resource;

/// What only the server sets.
pub(crate) const PROTECTED: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

/// Restores what only the server sets.
pub(crate) fn keep(before: &Value, after: &mut Map<String, Value>) {
    for member in PROTECTED {
        match before.get(member) {
            Some(value) => after.insert(member.into(), value.clone()),
            None => after.remove(member),
        };
    }
}

/// What is wrong with new metadata.
pub(super) fn validate(resource: Resource, metadata: &Value, errors: &mut ErrorList) {
    let path = Path::new("metadata");
    let name = metadata["name"].as_str().unwrap_or_default();
    match resource {
        Resource::Namespaces | Resource::StatefulSets => dns_label(name, &path.child("name"), errors),
        _ => dns_subdomain(name, &path.child("name"), errors),
    }
    validate_labels(&metadata["labels"], &path.child("labels"), errors);
    for (key, _) in metadata["annotations"].as_object().into_iter().flatten() {
        qualified_name(&key.to_lowercase(), &path.child("annotations"), errors);
    }
    for (index, finalizer) in metadata["finalizers"].as_array().into_iter().flatten().enumerate() {
        let path = path.child("finalizers").index(index);
        qualified_name(finalizer.as_str().unwrap_or_default(), &path, errors);
    }
    validate_owners(metadata, &path, errors);
}

/// What is wrong with labels, wherever they are.
pub(super) fn validate_labels(labels: &Value, path: &Path, errors: &mut ErrorList) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        qualified_name(key, path, errors);
        label_value(value.as_str().unwrap_or_default(), path, errors);
    }
}

fn validate_owners(metadata: &Value, path: &Path, errors: &mut ErrorList) {
    let path = path.child("ownerReferences");
    let mut controllers = Vec::new();
    for (index, owner) in metadata["ownerReferences"].as_array().into_iter().flatten().enumerate() {
        for member in ["apiVersion", "kind", "name", "uid"] {
            if owner[member].as_str().is_none_or(str::is_empty) {
                let value = BadValue::String(String::new());
                let detail = if member == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                errors.push(Error::invalid(&path.index(index).child(member), value, detail));
            }
        }
        if owner["controller"] == true {
            controllers.push(format!(
                "{}/{}",
                owner["kind"].as_str().unwrap_or_default(),
                owner["name"].as_str().unwrap_or_default()
            ));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        errors.push(Error::invalid(&path, BadValue::Json(metadata["ownerReferences"].clone()), detail));
    }
}

/// What is wrong with a change of metadata.
pub(super) fn validate_update(old: &Value, new: &Value, errors: &mut ErrorList) {
    let path = Path::new("metadata");
    if old["deletionTimestamp"].is_string() {
        let none = Vec::new();
        let before = old["finalizers"].as_array().unwrap_or(&none);
        let after = new["finalizers"].as_array().unwrap_or(&none);
        let added: Vec<_> = after.iter().filter(|finalizer| !before.contains(finalizer)).collect();
        if !added.is_empty() {
            let names = added.iter().filter_map(|name| name.as_str()).collect::<Vec<_>>().join(",");
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers [{names}]"
            );
            errors.push(Error::forbidden(&path.child("finalizers"), detail));
        }
    }
    if old["labels"] != new["labels"] {
        validate_labels(&new["labels"], &path.child("labels"), errors);
    }
    if old["ownerReferences"] != new["ownerReferences"] {
        validate_owners(new, &path, errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(check: impl FnOnce(&mut ErrorList)) -> String {
        let mut errors = ErrorList::new();
        check(&mut errors);
        errors.to_string()
    }

    #[test]
    fn a_statefulset_is_a_label_and_a_pod_a_subdomain() {
        let metadata = json!({ "name": "a.b" });
        let create = |resource| message(|errors| validate(resource, &metadata, errors));
        assert!(
            create(Resource::StatefulSets).starts_with("metadata.name: Invalid value: \"a.b\": a lowercase RFC 1123")
        );
        assert_eq!(create(Resource::Pods), "[]");
    }

    #[test]
    fn one_owner_controls() {
        let owner =
            |name: &str| json!({ "apiVersion": "v1", "kind": "X", "name": name, "uid": "u", "controller": true });
        let metadata = json!({ "name": "a", "ownerReferences": [owner("a"), owner("b")] });
        let message = message(|errors| validate(Resource::Pods, &metadata, errors));
        assert!(message.ends_with("Found \"true\" in references for X/a and X/b"), "{message}");
    }

    #[test]
    fn what_is_being_deleted_gets_no_finalizer() {
        let old = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a"] });
        let update = |new: &Value| message(|errors| validate_update(&old, new, errors));
        assert_eq!(update(&json!({ "finalizers": [] })), "[]");
        assert!(update(&json!({ "finalizers": ["a", "b"] })).ends_with("found new finalizers [b]"));
    }
}
