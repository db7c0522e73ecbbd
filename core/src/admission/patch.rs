//! The changes that a verdict makes to the object: JSON Patch, as far as it is needed.
//!
//! Changes are made to the JSON of the request and never through a type, so that members which this
//! project does not know survive.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};
use thiserror::Error;

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Sets a member, whether or not it is there. All but the last of the path must be there.
    Add {
        /// The names of the members that lead to it.
        path: Vec<String>,
        /// What it becomes.
        value: Value,
    },
    /// Removes a member that is there.
    Remove {
        /// The names of the members that lead to it.
        path: Vec<String>,
    },
}

/// Changes in the order in which they are made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch(Vec<Operation>);

/// Why a patch cannot be applied.
#[derive(Debug, Error)]
pub enum PatchError {
    /// The object cannot be parsed.
    #[error("the object cannot be changed: {0}")]
    Json(#[from] serde_json::Error),
    /// A member on the way is not there.
    #[error("the object has no {0}")]
    NoParent(String),
}

impl Patch {
    /// Appends one change.
    pub fn push(&mut self, operation: Operation) {
        self.0.push(operation);
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The changes, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Operation> {
        self.0.iter()
    }

    /// The JSON text `object`, changed.
    ///
    /// # Errors
    /// The text cannot be parsed (it is no JSON, or is nested deeper than 128 levels), or a member
    /// on the way to a change is not there.
    pub fn apply(&self, object: &str) -> Result<Value, PatchError> {
        let mut value: Value = serde_json::from_str(object)?;
        for operation in &self.0 {
            operation.apply(&mut value)?;
        }
        Ok(value)
    }
}

impl<'a> IntoIterator for &'a Patch {
    type Item = &'a Operation;
    type IntoIter = std::slice::Iter<'a, Operation>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Operation {
    fn path(&self) -> &[String] {
        match self {
            Self::Add { path, .. } | Self::Remove { path } => path,
        }
    }

    fn apply(&self, object: &mut Value) -> Result<(), PatchError> {
        let missing = || PatchError::NoParent(pointer(self.path()));
        let (name, parents) = self.path().split_last().ok_or_else(missing)?;
        let mut parent = object;
        for name in parents {
            parent = parent.get_mut(name).ok_or_else(missing)?;
        }
        let members: &mut Map<String, Value> = parent.as_object_mut().ok_or_else(missing)?;
        match self {
            Self::Add { value, .. } => {
                members.insert(name.clone(), value.clone());
            }
            Self::Remove { .. } => {
                members.remove(name);
            }
        }
        Ok(())
    }
}

/// A path as a JSON Pointer.
fn pointer(path: &[String]) -> String {
    path.iter().fold(String::new(), |pointer, name| format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")))
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let op = match self {
            Self::Add { .. } => "add",
            Self::Remove { .. } => "remove",
        };
        map.serialize_entry("op", op)?;
        map.serialize_entry("path", &pointer(self.path()))?;
        if let Self::Add { value, .. } = self {
            map.serialize_entry("value", value)?;
        }
        map.end()
    }
}

impl Serialize for Patch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_patch_is_applied_and_printed_as_json_patch() {
        let mut patch = Patch::default();
        assert!(patch.is_empty());
        patch.push(Operation::Add { path: path(&["a", "x/y~z"]), value: json!("v") });
        patch.push(Operation::Remove { path: path(&["a", "b"]) });
        let changed = patch.apply(r#"{"a": {"b": 1, "c": 2.50}, "d": null}"#).unwrap();
        assert_eq!(changed, json!({"a": {"x/y~z": "v", "c": 2.50}, "d": null}));
        assert_eq!(
            serde_json::to_value(&patch).unwrap(),
            json!([{"op": "add", "path": "/a/x~1y~0z", "value": "v"}, {"op": "remove", "path": "/a/b"}])
        );
    }

    #[test]
    fn a_patch_without_its_place_fails_and_never_panics() {
        for (object, names) in
            [("{}", &["a", "b"][..]), ("[]", &["a"]), ("3", &["a"]), (r#"{"a": []}"#, &["a", "b"]), ("{}", &[])]
        {
            let patch = Patch(vec![Operation::Add { path: path(names), value: json!(1) }]);
            assert!(matches!(patch.apply(object), Err(PatchError::NoParent(_))), "{object} {names:?}");
        }
        assert!(matches!(Patch::default().apply("{"), Err(PatchError::Json(_))));
        assert!(matches!(Patch::default().apply(&"[".repeat(200)), Err(PatchError::Json(_))));
    }
}
