//! Objects as the API server stores them.

use std::hash::{DefaultHasher, Hash, Hasher};

use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use serde_json::Value;
use statefulset_scheduling_controller::index::{Key, Kind, Version};
use statefulset_scheduling_controller::object::StatefulSet;
use statefulset_scheduling_core::api::Carriers;
use statefulset_scheduling_core::plan::Subject;
use statefulset_scheduling_core::workloadbuilder::{MANAGED_BY, MANAGED_BY_ANNOTATION};

/// The one namespace.
pub(crate) const NAMESPACE: &str = "shop";
/// The finalizer of a deletion that waits for the dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of a deletion that leaves the dependents.
pub(crate) const ORPHAN: &str = "orphan";
/// The finalizer that the API server gives to every PodGroup.
pub(crate) const PROTECTION: &str = "scheduling.k8s.io/podgroup-protection";

/// A kind that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Resource {
    Sets,
    Workloads,
    PodGroups,
}

/// All of them.
pub(crate) const RESOURCES: [Resource; 3] = [Resource::Sets, Resource::Workloads, Resource::PodGroups];

impl Resource {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Sets => Kind::StatefulSet,
            Self::Workloads => Kind::Workload,
            Self::PodGroups => Kind::PodGroup,
        }
    }
}

/// What the controller reads of an object.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is always behind an Arc")]
pub(crate) enum Parsed {
    Set(StatefulSet, Box<Option<Subject>>),
    Workload(Workload),
    PodGroup(PodGroup),
}

/// An object in one version.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) resource: Resource,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: Version,
    pub(crate) value: Value,
    pub(crate) parsed: Parsed,
    /// Of everything but the version.
    pub(crate) digest: u64,
}

impl Object {
    /// The object that this JSON is, in this version.
    pub(crate) fn new(resource: Resource, mut value: Value, version: Version) -> Self {
        let text = |value: &Value, member: &str| value["metadata"][member].as_str().unwrap_or_default().to_owned();
        value["metadata"].as_object_mut().expect("it has metadata").remove("resourceVersion");
        let mut hasher = DefaultHasher::new();
        value.to_string().hash(&mut hasher);
        value["metadata"]["resourceVersion"] = version.to_string().into();
        let parsed = match resource {
            Resource::Sets => {
                let set: StatefulSet = serde_json::from_str(&value.to_string()).expect("it is a StatefulSet");
                let subject = set.clone().subject(Carriers::default());
                Parsed::Set(set, Box::new(subject))
            }
            Resource::Workloads => Parsed::Workload(serde_json::from_value(value.clone()).expect("it is a Workload")),
            Resource::PodGroups => Parsed::PodGroup(serde_json::from_value(value.clone()).expect("it is a PodGroup")),
        };
        Self {
            resource,
            name: text(&value, "name"),
            uid: text(&value, "uid"),
            version,
            value,
            parsed,
            digest: hasher.finish(),
        }
    }

    pub(crate) fn key(&self) -> Key {
        Key::new(NAMESPACE, &self.name)
    }

    pub(crate) fn is_deleting(&self) -> bool {
        !self.value["metadata"]["deletionTimestamp"].is_null()
    }

    pub(crate) fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.value["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    pub(crate) fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers().any(|one| one == finalizer)
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = &Value> {
        self.value["metadata"]["ownerReferences"].as_array().into_iter().flatten()
    }

    pub(crate) fn controller(&self) -> Option<&Value> {
        self.owners().find(|owner| owner["controller"] == true)
    }

    /// The UID of the StatefulSet for which this project made the object.
    pub(crate) fn made_for(&self) -> Option<&str> {
        let managed = self.value["metadata"]["annotations"][MANAGED_BY_ANNOTATION] == MANAGED_BY;
        self.controller().filter(|_| managed)?["uid"].as_str()
    }

    /// The UID of the StatefulSet that controls the object, whoever made it.
    pub(crate) fn controlling_set(&self) -> Option<&str> {
        self.controller().filter(|owner| owner["kind"] == "StatefulSet")?["uid"].as_str()
    }

    /// The Workload that a PodGroup was made from.
    pub(crate) fn workload_name(&self) -> Option<&str> {
        self.value["spec"]["workloadRef"]["workloadName"].as_str()
    }

    /// The templates of a Workload.
    pub(crate) fn templates(&self) -> &[Value] {
        self.value["spec"]["podGroupTemplates"].as_array().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn replicas(&self) -> i64 {
        self.value["spec"]["replicas"].as_i64().unwrap_or(1)
    }

    /// Every size of a gang in the object.
    pub(crate) fn sizes(&self) -> Vec<i64> {
        let policies = self.templates().iter().chain([&self.value["spec"]]);
        policies.filter_map(|at| at["schedulingPolicy"]["gang"]["minCount"].as_i64()).collect()
    }
}
