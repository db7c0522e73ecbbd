//! StatefulSets as they are watched: what the core reads of them, and nothing else.

use std::borrow::Cow;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use statefulset_scheduling_core::api::{Carriers, View};
use statefulset_scheduling_core::plan::Subject;

/// A StatefulSet from the API server: the text of it, and of its metadata what a watch needs.
#[derive(Clone, Debug)]
pub struct StatefulSet {
    metadata: ObjectMeta,
    text: Box<RawValue>,
}

/// The metadata that is kept of an object on its way into the index.
#[derive(Deserialize)]
struct Metadata {
    metadata: Kept,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

impl<'de> Deserialize<'de> for StatefulSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Metadata { metadata } = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            resource_version: metadata.resource_version,
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, text })
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
    /// What the plan needs of it; none where it did not opt in.
    pub fn subject(&self, carriers: Carriers) -> Option<Subject> {
        let view = View::new(Some(&self.text)).ok()?;
        Subject::new(&view, carriers)
    }
}
