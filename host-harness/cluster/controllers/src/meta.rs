//! What the controllers ask of an object's metadata.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use serde_json::{Value, json};

/// The name; empty if there is none.
pub(crate) fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

/// The namespace; empty if there is none.
pub(crate) fn namespace(metadata: &ObjectMeta) -> &str {
    metadata.namespace.as_deref().unwrap_or_default()
}

/// The UID; empty if there is none.
pub(crate) fn uid(metadata: &ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or_default()
}

/// The owners.
pub(crate) fn owners(metadata: &ObjectMeta) -> &[OwnerReference] {
    metadata.owner_references.as_deref().unwrap_or_default()
}

/// The one owner that controls the object.
pub(crate) fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    owners(metadata).iter().find(|owner| owner.controller == Some(true))
}

/// Whether its controller has this UID.
pub(crate) fn is_controlled_by(metadata: &ObjectMeta, owner: &str) -> bool {
    controller(metadata).is_some_and(|found| found.uid == owner)
}

/// Whether the object is being deleted.
pub(crate) fn is_being_deleted(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

/// Whether the object has this finalizer.
pub(crate) fn has_finalizer(metadata: &ObjectMeta, finalizer: &str) -> bool {
    metadata.finalizers.iter().flatten().any(|found| found == finalizer)
}

/// A reference to the controlling owner, which waits for its dependents.
pub(crate) fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: name(owner.meta()).to_owned(),
        uid: uid(owner.meta()).to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// A merge patch that sets the owners of exactly the version of the object that was looked at.
pub(crate) fn owners_patch(metadata: &ObjectMeta, owners: &[OwnerReference]) -> Value {
    let owners = if owners.is_empty() { Value::Null } else { json!(owners) };
    json!({ "metadata": {
        "uid": metadata.uid, "resourceVersion": metadata.resource_version, "ownerReferences": owners,
    }})
}

/// A merge patch that takes one finalizer off exactly the version of the object that was looked at.
pub(crate) fn finalizer_patch(metadata: &ObjectMeta, finalizer: &str) -> Value {
    let rest: Vec<_> = metadata.finalizers.iter().flatten().filter(|found| *found != finalizer).collect();
    let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
    json!({ "metadata": {
        "uid": metadata.uid, "resourceVersion": metadata.resource_version, "finalizers": rest,
    }})
}
