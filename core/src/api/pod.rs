//! A view of a pod that borrows the fields the rules need and skips the rest.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{ControllerOwner, GROUP, KIND, MANAGED_LABEL, MANAGED_LABEL_VALUE, ViewError};
use crate::json::{self, Node, leads, level, read};

const NAME: usize = 0;
const MANAGED: usize = 1;
const OWNER_REFERENCES: usize = 2;
const DELETION_TIMESTAMP: usize = 3;
const POD_GROUP_NAME: usize = 4;
const MEMBERS: usize = 5;

const SPEC: usize = 0;

static POD: &[Node] = &[
    leads(
        "metadata",
        &[
            read("name", NAME),
            leads("labels", &[read(MANAGED_LABEL, MANAGED)]),
            read("ownerReferences", OWNER_REFERENCES),
            read("deletionTimestamp", DELETION_TIMESTAMP),
        ],
    ),
    level("spec", SPEC, &[leads("schedulingGroup", &[read("podGroupName", POD_GROUP_NAME)])]),
];

/// A view of a pod.
#[derive(Clone, Debug, Default)]
pub struct PodView<'a> {
    members: [Option<&'a RawValue>; MEMBERS],
    has_spec: bool,
}

impl<'a> PodView<'a> {
    /// Views `object`, the JSON text of a pod.
    ///
    /// # Errors
    /// The text is absent or null, is no JSON, or is no object where it must be one.
    pub fn new(object: Option<&'a RawValue>) -> Result<Self, ViewError> {
        let object = object.filter(|object| object.get() != "null").ok_or(ViewError::Null)?;
        let mut view = Self::default();
        let mut levels = [false];
        json::project(object.get(), POD, &mut view.members, &mut levels)?;
        view.has_spec = levels == [true];
        Ok(view)
    }

    fn get(&self, member: usize) -> Option<&'a RawValue> {
        self.members.get(member).copied().flatten()
    }

    fn text(&self, member: usize) -> Option<Cow<'a, str>> {
        self.get(member).and_then(json::text)
    }

    /// `metadata.name`
    pub fn name(&self) -> Option<Cow<'a, str>> {
        self.text(NAME)
    }

    /// Whether it carries the label of the pods of an opted-in StatefulSet.
    pub fn is_managed(&self) -> bool {
        self.text(MANAGED).is_some_and(|value| value == MANAGED_LABEL_VALUE)
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.get(DELETION_TIMESTAMP).is_some()
    }

    /// The JSON text of `metadata.ownerReferences`.
    pub fn owner_references(&self) -> Option<&'a RawValue> {
        self.get(OWNER_REFERENCES)
    }

    /// The StatefulSet that controls it.
    pub fn statefulset(&self) -> Option<ControllerOwner> {
        ControllerOwner::find(self.owner_references()).filter(|owner| owner.api_group == GROUP && owner.kind == KIND)
    }

    /// `spec.schedulingGroup.podGroupName`; none where it is absent or empty.
    pub fn pod_group_name(&self) -> Option<Cow<'a, str>> {
        self.text(POD_GROUP_NAME).filter(|name| !name.is_empty())
    }

    /// Whether it has a spec to put a group into.
    pub fn has_spec(&self) -> bool {
        self.has_spec
    }

    /// Its ordinal among the pods of `statefulset`; none where its name is not of that form.
    pub fn ordinal(&self, statefulset: &str) -> Option<i64> {
        ordinal(&self.name()?, statefulset)
    }
}

/// The ordinal of the pod `name` among the pods of `statefulset`; none where its name is not of that form.
pub fn ordinal(name: &str, statefulset: &str) -> Option<i64> {
    let digits = name.strip_prefix(statefulset)?.strip_prefix('-')?;
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|_| canonical)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_ordinal_is_read_from_the_name() {
        for (name, ordinal) in [
            ("web-0", Some(0)),
            ("web-12", Some(12)),
            ("web-012", None),
            ("web-", None),
            ("web", None),
            ("web-a", None),
            ("web-+1", None),
            ("web-1-2", None),
            ("other-1", None),
            ("web-99999999999999999999", None),
        ] {
            let raw = serde_json::value::to_raw_value(&json!({"metadata": {"name": name}})).unwrap();
            assert_eq!(PodView::new(Some(&raw)).unwrap().ordinal("web"), ordinal, "{name}");
        }
    }

    #[test]
    fn only_a_controller_that_is_a_statefulset_counts() {
        let owner = |api_version: &str, kind: &str, controller: bool| json!({"apiVersion": api_version, "kind": kind, "name": "web", "uid": "u", "controller": controller});
        for (owners, is_ours) in [
            (json!([owner("apps/v1", "StatefulSet", true)]), true),
            (json!([owner("v1", "Node", false), owner("apps/v1", "StatefulSet", true)]), true),
            (json!([owner("apps/v1", "StatefulSet", false)]), false),
            (json!([owner("apps/v1", "ReplicaSet", true)]), false),
            (json!([owner("example.com/v1", "StatefulSet", true)]), false),
            (json!([owner("v1", "Node", true)]), false),
            (json!([]), false),
            (json!(null), false),
            (json!("x"), false),
        ] {
            let raw = serde_json::value::to_raw_value(&json!({"metadata": {"ownerReferences": owners}})).unwrap();
            assert_eq!(PodView::new(Some(&raw)).unwrap().statefulset().is_some(), is_ours, "{owners}");
        }
    }
}
