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

/// What a binding means for the creation of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The pod joins this PodGroup.
    Open(PodGroupBinding),
    /// The pod has to wait, for this.
    Held(String),
    /// The pod is created without a group, for this reason.
    Fallback(String),
}

/// What the binding `text` of a StatefulSet means for the pod at `index`: its ordinal, counted from the
/// first one's; none where the pod has none.
pub fn gate(text: Option<&str>, index: Option<i64>) -> Gate {
    let Some(text) = text else {
        return Gate::Held("the controller to create the PodGroup and to publish it".to_owned());
    };
    match Binding::parse(text) {
        Err(error) => Gate::Held(format!("the controller to mend the annotation {BINDING_ANNOTATION}, which {error}")),
        Ok(Binding::Fallback(fallback)) => Gate::Fallback(fallback.fallback),
        Ok(Binding::PodGroup(group)) => match (group.replicas, index) {
            // Below the size in step it is a replacement, and never held.
            (Some(replicas), Some(index)) if index >= i64::from(replicas) => Gate::Held(format!(
                "the controller to raise the minCount of the PodGroup {}, which is in step with {replicas} replicas",
                group.name
            )),
            _ => Gate::Open(group),
        },
    }
}

/// Whether the deletion of the pod at `index` has to wait until the group is smaller: it is surplus to
/// `replicas`, and the binding `text` still tells of more. Says what it waits for.
pub fn holds_deletion(text: Option<&str>, index: i64, replicas: i32) -> Option<String> {
    let Ok(Binding::PodGroup(PodGroupBinding { name, replicas: Some(in_step), .. })) = Binding::parse(text?) else {
        return None;
    };
    (index >= i64::from(replicas) && in_step > replicas).then(|| {
        format!(
            "the controller to lower the minCount of the PodGroup {name}, which is in step with {in_step} replicas and \
             not with {replicas}"
        )
    })
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
    fn a_pod_is_held_only_while_there_is_no_group_or_beyond_the_size_in_step() {
        let sized = group(Some(3)).print();
        let unsized_group = group(None).print();
        for (text, index, open) in [
            (Some(sized.as_str()), Some(0), true),
            (Some(sized.as_str()), Some(2), true),
            (Some(sized.as_str()), Some(3), false),
            (Some(sized.as_str()), None, true),
            (Some(unsized_group.as_str()), Some(1_000), true),
            (Some("{}"), Some(0), false),
            (Some(""), Some(0), false),
            (None, Some(0), false),
        ] {
            let gate = gate(text, index);
            assert_eq!(matches!(gate, Gate::Open(_)), open, "{text:?} {index:?}: {gate:?}");
            assert_eq!(matches!(gate, Gate::Held(_)), !open, "{text:?} {index:?}: {gate:?}");
        }
        assert_eq!(gate(Some(r#"{"fallback":"x"}"#), Some(0)), Gate::Fallback("x".into()));
    }

    #[test]
    fn a_deletion_is_held_only_for_a_surplus_pod_of_a_group_that_is_too_large() {
        let sized = group(Some(5)).print();
        let in_step = group(Some(3)).print();
        let unsized_group = group(None).print();
        for (text, index, replicas, held) in [
            (Some(sized.as_str()), 4, 3, true),
            (Some(sized.as_str()), 3, 3, true),
            (Some(sized.as_str()), 2, 3, false),
            (Some(sized.as_str()), 0, 0, true),
            (Some(in_step.as_str()), 4, 3, false),
            (Some(unsized_group.as_str()), 4, 3, false),
            (Some(r#"{"fallback":"x"}"#), 4, 3, false),
            (Some("{"), 4, 3, false),
            (None, 4, 3, false),
        ] {
            assert_eq!(holds_deletion(text, index, replicas).is_some(), held, "{text:?} {index} {replicas}");
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
