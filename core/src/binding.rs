//! What the controller tells the policy about a StatefulSet's group, as an annotation on the
//! StatefulSet.
//!
//! The controller alone has the indexes to find the group; it publishes what it found, and the
//! policy needs one read of one object for each pod.

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::field::{ErrorList, Path};
use crate::json::{self, UnknownFields};

/// The annotation that holds the binding. Only the controller may change it.
pub const BINDING_ANNOTATION: &str = "statefulset-scheduling.dev/pod-group";

/// The longest binding that is read, in bytes.
pub const MAX_BINDING_LENGTH: usize = 1024;

/// What is known about a StatefulSet's group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Binding {
    /// Its pods belong to this PodGroup.
    PodGroup(PodGroupBinding),
    /// Its pods are admitted without a group.
    Fallback(Fallback),
}

/// The PodGroup of a StatefulSet. It is named by UID too, so that one that was made anew under the
/// same name never passes for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PodGroupBinding {
    /// The PodGroup's name.
    pub name: String,
    /// The PodGroup's UID.
    pub uid: String,
    /// The number of replicas up to which `minCount` is in step; none where the controller keeps no
    /// size: a Basic group, or somebody else's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// Why a StatefulSet's pods have no group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// The reason, as in the event that tells it.
    pub fallback: String,
}

/// Why a binding cannot be read.
#[derive(Debug, Error)]
pub enum ParseError {
    /// It is longer than [`MAX_BINDING_LENGTH`].
    #[error("may not be more than {MAX_BINDING_LENGTH} bytes")]
    TooLong,
    /// It is neither `{"name","uid","replicas"}` nor `{"fallback"}`.
    #[error("is no binding: {0}")]
    Json(#[from] serde_json::Error),
    /// A member of it is of the wrong type or unknown.
    #[error("is no binding: {0}")]
    Members(#[from] ErrorList),
    /// Its name, UID or reason is absent or empty, or it has both a PodGroup and a reason.
    #[error("names neither a PodGroup nor a reason why there is none")]
    Empty,
}

impl Binding {
    /// Reads the text of the annotation.
    ///
    /// # Errors
    /// The text is too long, is no binding, or names nothing.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.len() > MAX_BINDING_LENGTH {
            return Err(ParseError::TooLong);
        }
        let value: Value = serde_json::from_str(text)?;
        let path = Path::new(BINDING_ANNOTATION);
        let (name, uid, replicas, fallback) = json::decode(&value, &path, UnknownFields::Refuse, |binding| {
            (binding.string("name"), binding.string("uid"), binding.int32("replicas"), binding.string("fallback"))
        })?;
        let set = |text: Option<String>| text.filter(|text| !text.is_empty());
        match (set(name), set(uid), set(fallback)) {
            (Some(name), Some(uid), None) => Ok(Self::PodGroup(PodGroupBinding { name, uid, replicas })),
            (None, None, Some(fallback)) => Ok(Self::Fallback(Fallback { fallback })),
            _ => Err(ParseError::Empty),
        }
    }

    /// The text of the annotation: compact JSON, the same for the same binding.
    pub fn print(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Whether `username` is one of `controllers`, who alone may set, change or remove a binding.
pub fn may_change(username: &str, controllers: &[String]) -> bool {
    controllers.iter().any(|controller| controller == username)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(replicas: Option<i32>) -> Binding {
        Binding::PodGroup(PodGroupBinding { name: "web-1".into(), uid: "u-1".into(), replicas })
    }

    #[test]
    fn a_binding_prints_as_it_is_read() {
        for (binding, text) in [
            (group(Some(3)), r#"{"name":"web-1","uid":"u-1","replicas":3}"#),
            (group(None), r#"{"name":"web-1","uid":"u-1"}"#),
            (
                Binding::Fallback(Fallback { fallback: "AmbiguousWorkload".into() }),
                r#"{"fallback":"AmbiguousWorkload"}"#,
            ),
        ] {
            assert_eq!(binding.print(), text);
            assert_eq!(Binding::parse(text).unwrap(), binding);
        }
    }

    #[test]
    fn what_is_no_binding_is_refused() {
        for text in [
            "",
            "null",
            "{}",
            "[]",
            "web-1",
            r#"{"name":"web-1"}"#,
            r#"{"name":"","uid":"u"}"#,
            r#"{"fallback":""}"#,
            r#"{"name":"web-1","uid":"u","replicas":"3"}"#,
            r#"{"name":"web-1","uid":"u","fallback":"x"}"#,
            &format!(r#"{{"fallback":"{}"}}"#, "x".repeat(MAX_BINDING_LENGTH)),
        ] {
            assert!(Binding::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_a_controller_may_change_a_binding() {
        let controllers = ["system:serviceaccount:a:b".to_owned()];
        assert!(may_change("system:serviceaccount:a:b", &controllers));
        for user in ["", "system:serviceaccount:a:b2", "kubernetes-admin"] {
            assert!(!may_change(user, &controllers));
        }
    }
}
