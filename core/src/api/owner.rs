//! The controller among the owners of an object.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::field::Path;
use crate::json::{self, UnknownFields};

/// The controller of an object, by ownerReference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerOwner {
    /// The API group, without a version; empty for the core group.
    pub api_group: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The UID.
    pub uid: String,
}

impl ControllerOwner {
    /// The controller among `ownerReferences`; none where there is none, or where they cannot be read.
    pub fn find(owner_references: Option<&RawValue>) -> Option<Self> {
        let owners: Vec<Value> = serde_json::from_str(owner_references?.get()).ok()?;
        let controller = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
        json::decode(controller, &Path::new("owner"), UnknownFields::Prune, |owner| {
            let api_version = owner.string("apiVersion").unwrap_or_default();
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            Self {
                api_group: group.to_owned(),
                kind: owner.string("kind").unwrap_or_default(),
                name: owner.string("name").unwrap_or_default(),
                uid: owner.string("uid").unwrap_or_default(),
            }
        })
        .ok()
    }
}
