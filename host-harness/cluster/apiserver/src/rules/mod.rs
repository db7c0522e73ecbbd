//! What the server fills in, clears, refuses and keeps, kind by kind.
//!
//! Stands for the defaulting functions, strategies and validation of each API group, as far as
//! API behaviour matters to the parts of the bench. Each module says what it leaves out.

mod formats;
mod groups;
mod metadata;
mod others;
mod pod;
mod statefulset;

use serde_json::{Map, Value, json};
use statefulset_scheduling_core::field::{BadValue, Error, ErrorList, Path};

use crate::config::{Gates, Profile};
use crate::resource::Resource;

pub(crate) use metadata::{PROTECTED, keep as keep_metadata};
pub(crate) use others::SYSTEM_CLASSES;

/// By what rules the server goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) profile: Profile,
    pub(crate) gates: Gates,
}

/// Which part of an object an update is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status.
    Object,
    Status,
    /// The finalizers in the spec of a namespace.
    Finalize,
}

/// Fills in what is not written.
pub(crate) fn default(resource: Resource, object: &mut Value) {
    match resource {
        Resource::Pods => pod::default(object),
        Resource::StatefulSets => statefulset::default(object),
        Resource::PodGroups => groups::default_pod_group(object),
        _ => others::default(resource, object),
    }
}

impl Rules {
    /// Clears what a new object may not have, and sets what each has.
    pub(crate) fn prepare_create(self, resource: Resource, object: &mut Value) {
        if resource.has_status() && !resource.keeps_status_on_create() {
            object["status"] = match resource {
                Resource::Pods => pod::new_status(object),
                Resource::StatefulSets => json!({ "replicas": 0, "availableReplicas": 0 }),
                Resource::PersistentVolumeClaims => json!({ "phase": "Pending" }),
                Resource::Namespaces => json!({ "phase": "Active" }),
                Resource::Services => json!({ "loadBalancer": {} }),
                _ => json!({}),
            };
        }
        self.drop_closed(resource, None, object);
        others::prepare_create(resource, object);
    }

    /// Restores what an update of this part may not change.
    pub(crate) fn prepare_update(self, resource: Resource, part: Part, old: &Value, new: &mut Value) {
        match part {
            Part::Object => {
                if resource.has_status() {
                    copy(old, new, "status");
                }
                if resource == Resource::Namespaces {
                    keep_spec_finalizers(old, new);
                }
            }
            Part::Status | Part::Finalize => {
                let changed = new.take();
                *new = old.clone();
                copy(&changed, new, "metadata");
                if part == Part::Status {
                    copy(&changed, new, "status");
                } else {
                    keep_spec_finalizers(&changed, new);
                }
                if resource == Resource::Pods {
                    copy(&old["metadata"], &mut new["metadata"], "ownerReferences");
                }
                if resource.status_leaves_metadata() {
                    for member in ["labels", "annotations", "finalizers", "ownerReferences"] {
                        copy(&old["metadata"], &mut new["metadata"], member);
                    }
                }
            }
        }
        self.drop_closed(resource, Some(old), new);
    }

    /// Clears what closed gates forbid, unless the old object has it.
    fn drop_closed(self, resource: Resource, old: Option<&Value>, object: &mut Value) {
        match resource {
            Resource::Pods => pod::drop_closed(self.gates, old, object),
            Resource::StatefulSets => statefulset::drop_closed(self, old, object),
            Resource::Workloads | Resource::PodGroups | Resource::CompositePodGroups => {
                groups::drop_closed(self.gates, old, object);
            }
            _ => {}
        }
    }

    /// What is wrong with a new object.
    pub(crate) fn validate_create(self, resource: Resource, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        metadata::validate(resource, &object["metadata"], &mut errors);
        match resource {
            Resource::Pods => pod::validate(&object["spec"], &Path::new("spec"), &mut errors),
            Resource::StatefulSets => statefulset::validate_create(self, object, &mut errors),
            Resource::Workloads => groups::validate_workload(object, &mut errors),
            Resource::PodGroups => groups::validate_pod_group(object, &mut errors),
            Resource::CompositePodGroups => groups::validate_composite(object, &mut errors),
            _ => others::validate_create(resource, object, &mut errors),
        }
        errors
    }

    /// What is wrong with a change.
    pub(crate) fn validate_update(self, resource: Resource, part: Part, old: &Value, new: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        metadata::validate_update(&old["metadata"], &new["metadata"], &mut errors);
        if part != Part::Object {
            others::validate_status(resource, new, &mut errors);
            return errors;
        }
        match resource {
            Resource::Pods => pod::validate_update(old, new, &mut errors),
            Resource::StatefulSets => statefulset::validate_update(self, old, new, &mut errors),
            Resource::Workloads | Resource::PodGroups | Resource::CompositePodGroups => {
                groups::validate_update(&old["spec"], &new["spec"], &mut errors);
            }
            _ => others::validate_update(resource, old, new, &mut errors),
        }
        errors
    }
}

fn keep_spec_finalizers(from: &Value, to: &mut Value) {
    let finalizers = from["spec"]["finalizers"].clone();
    match finalizers {
        Value::Null => drop(to["spec"].as_object_mut().and_then(|spec| spec.remove("finalizers"))),
        finalizers => to["spec"]["finalizers"] = finalizers,
    }
}

/// Makes one member of `to` what it is in `from`.
pub(crate) fn copy(from: &Value, to: &mut Value, member: &str) {
    match from.get(member) {
        Some(value) => to[member] = value.clone(),
        None => drop(to.as_object_mut().and_then(|members| members.remove(member))),
    }
}

/// The members of an object that has to be one; it is made if it is absent.
fn object_at<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    let member = &mut value[key];
    if !member.is_object() {
        *member = json!({});
    }
    member.as_object_mut().expect("it was made an object just now")
}

/// Sets a member that is absent.
fn set_default(members: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    members.entry(key.to_owned()).or_insert_with(|| value.into());
}

/// The error of a field that may not change.
fn immutable(path: &Path, value: &Value) -> Error {
    Error::invalid(path, BadValue::Json(value.clone()), "field is immutable").with_origin("immutable")
}

/// An error for each member of `new` that differs from `old`.
fn immutable_members(old: &Value, new: &Value, path: &Path, errors: &mut ErrorList) {
    let keys = |value: &Value| value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    let mut names = keys(old);
    names.extend(keys(new));
    names.sort();
    names.dedup();
    for name in names {
        if old.get(&name) != new.get(&name) {
            errors.push(immutable(&path.child(&name), &new[&name]));
        }
    }
}

/// An error for a number that is there and below zero.
fn non_negative(holder: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    if let Some(number) = holder[key].as_i64().filter(|number| *number < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(Error::invalid(&path.child(key), BadValue::Int(number), detail).with_origin("minimum"));
    }
}

/// An error for a text that is there and none of the supported ones.
fn one_of(value: &Value, supported: &[&str], path: &Path, errors: &mut ErrorList) {
    if let Some(text) = value.as_str().filter(|text| !supported.contains(text)) {
        errors.push(Error::not_supported(path, text, supported));
    }
}
