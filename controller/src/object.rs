//! StatefulSets as they are watched: what the core reads of them, and nothing else.

use std::borrow::Cow;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::{Deserialize, Deserializer};
use statefulset_scheduling_core::api::{Carriers, Member, View};
use statefulset_scheduling_core::plan::Subject;

/// A StatefulSet from the API server: of its metadata what a watch needs, and what the plan needs of
/// the rest. Its text is read once, while it arrives.
#[derive(Clone, Debug)]
pub struct StatefulSet {
    metadata: ObjectMeta,
    read: Read,
}

/// What was read of a StatefulSet, wherever its intent is carried.
#[derive(Clone, Debug)]
enum Read {
    /// It has no intent.
    Plain,
    /// It has one.
    Subject(Box<Subject>),
    /// It has one that cannot be read, which may depend on where it is looked for: what it is in the
    /// field and the annotation, in the field alone, and in the annotation alone.
    Doubtful(Box<[(Carriers, Option<Subject>); 3]>),
}

const BOTH: Carriers = Carriers { field: true, annotation: true };
const FIELD: Carriers = Carriers { field: true, annotation: false };
const ANNOTATION: Carriers = Carriers { field: false, annotation: true };

impl<'de> Deserialize<'de> for StatefulSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let view = View::read(deserializer)?;
        let text = |member| view.text(member).map(Cow::into_owned);
        let metadata = ObjectMeta {
            name: text(Member::Name),
            namespace: text(Member::Namespace),
            resource_version: text(Member::ResourceVersion),
            ..ObjectMeta::default()
        };
        let read = match Subject::new(&view, BOTH) {
            None => Read::Plain,
            Some(subject) if subject.intent.is_ok() => Read::Subject(Box::new(subject)),
            Some(_) => {
                let read = |carriers| (carriers, Subject::new(&view, carriers));
                Read::Doubtful(Box::new([BOTH, FIELD, ANNOTATION].map(read)))
            }
        };
        Ok(Self { metadata, read })
    }
}

impl Resource for StatefulSet {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "StatefulSet".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "apps".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "statefulsets".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl StatefulSet {
    /// What the plan needs of it; none where it did not opt in by one of `carriers`.
    pub fn subject(self, carriers: Carriers) -> Option<Subject> {
        match self.read {
            Read::Plain => None,
            Read::Subject(subject) => {
                let carrier = subject.intent.as_ref().ok()?.carrier;
                carriers.reads(carrier).then_some(*subject)
            }
            Read::Doubtful(subjects) => {
                subjects.into_iter().find_map(|(read, subject)| (read == carriers).then_some(subject)).flatten()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(object: &Value) -> StatefulSet {
        serde_json::from_str(&object.to_string()).expect("it is a StatefulSet")
    }

    #[test]
    fn an_intent_counts_only_in_a_carrier_that_is_read() {
        let metadata = json!({"name": "web", "namespace": "ns", "resourceVersion": "7"});
        let annotated = |text: &str| {
            let mut metadata = metadata.clone();
            metadata["annotations"] = json!({"statefulset-scheduling.dev/scheduling": text});
            metadata
        };
        for (object, both, field, annotation) in [
            (json!({"metadata": metadata}), false, false, false),
            (json!({"metadata": metadata, "spec": {"scheduling": {}}}), true, true, false),
            (json!({"metadata": annotated("{}")}), true, false, true),
            (json!({"metadata": annotated("[")}), true, false, true),
            (json!({"metadata": annotated("{}"), "spec": {"scheduling": {}}}), true, true, true),
        ] {
            let set = read(&object);
            assert_eq!(set.meta().resource_version.as_deref(), Some("7"));
            for (carriers, opted_in) in [(BOTH, both), (FIELD, field), (ANNOTATION, annotation)] {
                assert_eq!(set.clone().subject(carriers).is_some(), opted_in, "{object} {carriers:?}");
            }
        }
        // What is ambiguous with both carriers is not with one.
        let set = read(&json!({"metadata": annotated("{}"), "spec": {"scheduling": {}}}));
        assert!(set.clone().subject(BOTH).expect("it opted in").intent.is_err());
        assert!(set.subject(FIELD).expect("it opted in").intent.is_ok());
    }
}
