//! The kinds that have few rules: namespaces, nodes, services, claims, classes, events, revisions, leases.
//!
//! Stands for the one or two rules of each that a part of the bench could run into. Left out: the rest;
//! an object of these kinds is mostly stored as it comes. Services get no address.

use serde_json::{Value, json};
use statefulset_scheduling_core::field::{BadValue, Error, ErrorList, Path};

use super::{copy, immutable, non_negative, object_at, one_of, set_default};
use crate::resource::Resource;

/// The highest priority that is not the system's.
const HIGHEST_USER_PRIORITY: i64 = 1_000_000_000;
/// The classes of the system: name and value.
pub(crate) const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// The defaults.
pub(super) fn default(resource: Resource, object: &mut Value) {
    match resource {
        Resource::Namespaces => {
            let name = object["metadata"]["name"].clone();
            if name.is_string() {
                object_at(&mut object["metadata"], "labels").insert("kubernetes.io/metadata.name".into(), name);
            }
            object_at(object, "spec");
        }
        Resource::PriorityClasses => {
            let members = object.as_object_mut().expect("an object was decoded");
            set_default(members, "preemptionPolicy", "PreemptLowerPriority");
            set_default(members, "value", 0);
        }
        Resource::PersistentVolumeClaims => set_default(object_at(object, "spec"), "volumeMode", "Filesystem"),
        Resource::Services => {
            let spec = object_at(object, "spec");
            set_default(spec, "type", "ClusterIP");
            set_default(spec, "sessionAffinity", "None");
            for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                let number = port["port"].clone();
                if let Some(port) = port.as_object_mut() {
                    set_default(port, "protocol", "TCP");
                    set_default(port, "targetPort", number);
                }
            }
        }
        Resource::Nodes => {
            let capacity = object["status"]["capacity"].clone();
            if capacity.is_object() {
                set_default(object_at(object, "status"), "allocatable", capacity);
            }
        }
        _ => {}
    }
}

/// What each new object has.
pub(super) fn prepare_create(resource: Resource, object: &mut Value) {
    if resource == Resource::Namespaces {
        object["spec"] = json!({ "finalizers": ["kubernetes"] });
    }
}

/// What is wrong with a new object.
pub(super) fn validate_create(resource: Resource, object: &Value, errors: &mut ErrorList) {
    match resource {
        Resource::PriorityClasses => validate_class(object, errors),
        Resource::Events => {
            let involved = object["involvedObject"]["namespace"].as_str().filter(|it| !it.is_empty());
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            if involved.unwrap_or("default") != namespace {
                let path = Path::new("involvedObject").child("namespace");
                let value = BadValue::String(involved.unwrap_or_default().to_owned());
                errors.push(Error::invalid(&path, value, "does not match event.namespace"));
            }
        }
        Resource::ControllerRevisions => non_negative(object, "revision", &Path::new("metadata"), errors),
        _ => {}
    }
}

fn validate_class(object: &Value, errors: &mut ErrorList) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let value = object["value"].as_i64().unwrap_or_default();
    if name.starts_with("system-") {
        if !SYSTEM_CLASSES.contains(&(name, value)) {
            errors.push(Error::forbidden(
                &Path::new("metadata").child("name"),
                format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not \
                     a known system priority class"
                ),
            ));
        }
    } else if value > HIGHEST_USER_PRIORITY {
        errors.push(Error::forbidden(
            &Path::new("value"),
            format!("maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"),
        ));
    }
    one_of(&object["preemptionPolicy"], &["PreemptLowerPriority", "Never"], &Path::new("preemptionPolicy"), errors);
}

/// What is wrong with a change of anything but the status.
pub(super) fn validate_update(resource: Resource, old: &Value, new: &Value, errors: &mut ErrorList) {
    match resource {
        Resource::PriorityClasses => {
            if old["value"] != new["value"] {
                errors.push(Error::forbidden(&Path::new("value"), "may not be changed in an update."));
            }
            if old["preemptionPolicy"] != new["preemptionPolicy"] {
                errors.push(immutable(&Path::new("preemptionPolicy"), &new["preemptionPolicy"]));
            }
        }
        Resource::ResourceClaims | Resource::ResourceClaimTemplates if old["spec"] != new["spec"] => {
            errors.push(immutable(&Path::new("spec"), &new["spec"]));
        }
        Resource::PersistentVolumeClaims => {
            let mut left = new["spec"].clone();
            for member in ["resources", "volumeAttributesClassName"] {
                copy(&old["spec"], &mut left, member);
            }
            if old["spec"]["volumeName"].is_null() {
                copy(&old["spec"], &mut left, "volumeName");
            }
            if left != old["spec"] {
                errors.push(Error::forbidden(
                    &Path::new("spec"),
                    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
                     claims",
                ));
            }
        }
        Resource::ControllerRevisions => {
            if old["data"] != new["data"] {
                errors.push(immutable(&Path::new("data"), &new["data"]));
            }
            validate_create(resource, new, errors);
        }
        _ => {}
    }
}

/// What is wrong with a status.
pub(super) fn validate_status(resource: Resource, new: &Value, errors: &mut ErrorList) {
    const MAX_CONSUMERS: usize = 256;
    if resource == Resource::ResourceClaims {
        let path = Path::new("status").child("reservedFor");
        let consumers = new["status"]["reservedFor"].as_array().map(Vec::as_slice).unwrap_or_default();
        if consumers.len() > MAX_CONSUMERS {
            errors.push(Error::too_many(&path, consumers.len(), MAX_CONSUMERS));
        }
        if !consumers.is_empty() && !new["status"]["allocation"].is_object() {
            errors.push(Error::forbidden(&path, "may not be specified when `allocated` is not set"));
        }
        for (index, consumer) in consumers.iter().enumerate() {
            if consumers.iter().take(index).any(|earlier| earlier["uid"] == consumer["uid"]) {
                errors.push(Error::duplicate(&path.index(index), consumer.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(check: impl FnOnce(&mut ErrorList)) -> String {
        let mut errors = ErrorList::new();
        check(&mut errors);
        errors.to_string()
    }

    #[test]
    fn a_class_keeps_its_value_and_leaves_the_systems_names_alone() {
        let class = |name: &str, value: i64| json!({ "metadata": { "name": name }, "value": value });
        let create = |object: &Value| errors(|errors| validate_create(Resource::PriorityClasses, object, errors));
        assert_eq!(create(&class("high", 10)), "[]");
        assert!(create(&class("high", 1_000_000_001)).starts_with("value: Forbidden: maximum allowed"));
        assert!(create(&class("system-x", 1)).starts_with("metadata.name: Forbidden"));
        assert_eq!(create(&class("system-node-critical", 2_000_001_000)), "[]");
        let (old, new) = (class("high", 1), class("high", 2));
        let update = errors(|errors| validate_update(Resource::PriorityClasses, &old, &new, errors));
        assert_eq!(update, "value: Forbidden: may not be changed in an update.");
    }

    #[test]
    fn a_claim_is_reserved_only_when_it_is_allocated() {
        let status = |status: Value| {
            let claim = json!({ "status": status });
            errors(|errors| validate_status(Resource::ResourceClaims, &claim, errors))
        };
        assert_eq!(status(json!({ "allocation": {}, "reservedFor": [{ "uid": "a" }] })), "[]");
        assert!(status(json!({ "reservedFor": [{ "uid": "a" }] })).contains("Forbidden"));
        assert!(
            status(json!({ "allocation": {}, "reservedFor": [{ "uid": "a" }, { "uid": "a" }] })).contains("Duplicate")
        );
    }

    #[test]
    fn a_namespace_is_labelled_with_its_name() {
        let mut namespace = json!({ "metadata": { "name": "prod" } });
        default(Resource::Namespaces, &mut namespace);
        assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], "prod");
    }
}
