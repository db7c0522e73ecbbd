//! The resources that are served, and how their paths and kinds are spelt.
//!
//! Stands for the API groups of a kube-apiserver that this project's parts and `kubectl` touch. Left
//! out: every other group, CRDs, aggregation, and versions that nobody here asks for.

use std::fmt;

use k8s_openapi::api::{admissionregistration, apps, coordination, core, resource, scheduling};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::Gates;

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the resources of Kubernetes need no explanation")]
pub enum Resource {
    Namespaces,
    Nodes,
    Pods,
    Events,
    Services,
    ConfigMaps,
    PersistentVolumeClaims,
    ServiceAccounts,
    StatefulSets,
    ControllerRevisions,
    PriorityClasses,
    Workloads,
    PodGroups,
    CompositePodGroups,
    DeviceClasses,
    ResourceSlices,
    ResourceClaims,
    ResourceClaimTemplates,
    Leases,
    Secrets,
    MutatingWebhookConfigurations,
    ValidatingWebhookConfigurations,
}

/// A part of an object, or an action on it, with a path of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the subresources of Kubernetes need no explanation")]
pub enum Subresource {
    Status,
    Scale,
    Binding,
    Eviction,
    Finalize,
}

impl Subresource {
    /// The last part of its path.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Binding => "binding",
            Self::Eviction => "eviction",
            Self::Finalize => "finalize",
        }
    }
}

/// What is fixed about a resource.
pub(crate) struct Definition {
    resource: Resource,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
    namespaced: bool,
    subresources: &'static [Subresource],
    /// Reads an object into its type and writes it again: what the type does not know is gone.
    through: fn(Value) -> serde_json::Result<Value>,
}

fn through<T: Serialize + DeserializeOwned>(value: Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(value)?)
}

const NO_SUBRESOURCES: &[Subresource] = &[];
const STATUS: &[Subresource] = &[Subresource::Status];

const fn namespaced(
    resource: Resource,
    (group, version, kind): (&'static str, &'static str, &'static str),
    (plural, singular): (&'static str, &'static str),
    short: &'static [&'static str],
    subresources: &'static [Subresource],
    through: fn(Value) -> serde_json::Result<Value>,
) -> Definition {
    Definition { resource, group, version, kind, plural, singular, short, namespaced: true, subresources, through }
}

const fn cluster(
    resource: Resource,
    types: (&'static str, &'static str, &'static str),
    names: (&'static str, &'static str),
    short: &'static [&'static str],
    subresources: &'static [Subresource],
    through: fn(Value) -> serde_json::Result<Value>,
) -> Definition {
    Definition { namespaced: false, ..namespaced(resource, types, names, short, subresources, through) }
}

const SCHEDULING: &str = "scheduling.k8s.io";
const DEVICES: &str = "resource.k8s.io";
const REGISTRATION: &str = "admissionregistration.k8s.io";

/// In the order of the discriminants.
static DEFINITIONS: [Definition; Resource::COUNT] = [
    cluster(
        Resource::Namespaces,
        ("", "v1", "Namespace"),
        ("namespaces", "namespace"),
        &["ns"],
        &[Subresource::Status, Subresource::Finalize],
        through::<core::v1::Namespace>,
    ),
    cluster(Resource::Nodes, ("", "v1", "Node"), ("nodes", "node"), &["no"], STATUS, through::<core::v1::Node>),
    namespaced(
        Resource::Pods,
        ("", "v1", "Pod"),
        ("pods", "pod"),
        &["po"],
        &[Subresource::Status, Subresource::Binding, Subresource::Eviction],
        through::<core::v1::Pod>,
    ),
    namespaced(
        Resource::Events,
        ("", "v1", "Event"),
        ("events", "event"),
        &["ev"],
        NO_SUBRESOURCES,
        through::<core::v1::Event>,
    ),
    namespaced(
        Resource::Services,
        ("", "v1", "Service"),
        ("services", "service"),
        &["svc"],
        STATUS,
        through::<core::v1::Service>,
    ),
    namespaced(
        Resource::ConfigMaps,
        ("", "v1", "ConfigMap"),
        ("configmaps", "configmap"),
        &["cm"],
        NO_SUBRESOURCES,
        through::<core::v1::ConfigMap>,
    ),
    namespaced(
        Resource::PersistentVolumeClaims,
        ("", "v1", "PersistentVolumeClaim"),
        ("persistentvolumeclaims", "persistentvolumeclaim"),
        &["pvc"],
        STATUS,
        through::<core::v1::PersistentVolumeClaim>,
    ),
    namespaced(
        Resource::ServiceAccounts,
        ("", "v1", "ServiceAccount"),
        ("serviceaccounts", "serviceaccount"),
        &["sa"],
        NO_SUBRESOURCES,
        through::<core::v1::ServiceAccount>,
    ),
    namespaced(
        Resource::StatefulSets,
        ("apps", "v1", "StatefulSet"),
        ("statefulsets", "statefulset"),
        &["sts"],
        &[Subresource::Status, Subresource::Scale],
        through::<apps::v1::StatefulSet>,
    ),
    namespaced(
        Resource::ControllerRevisions,
        ("apps", "v1", "ControllerRevision"),
        ("controllerrevisions", "controllerrevision"),
        &[],
        NO_SUBRESOURCES,
        through::<apps::v1::ControllerRevision>,
    ),
    cluster(
        Resource::PriorityClasses,
        (SCHEDULING, "v1", "PriorityClass"),
        ("priorityclasses", "priorityclass"),
        &["pc"],
        NO_SUBRESOURCES,
        through::<scheduling::v1::PriorityClass>,
    ),
    namespaced(
        Resource::Workloads,
        (SCHEDULING, "v1beta1", "Workload"),
        ("workloads", "workload"),
        &[],
        NO_SUBRESOURCES,
        through::<scheduling::v1beta1::Workload>,
    ),
    namespaced(
        Resource::PodGroups,
        (SCHEDULING, "v1beta1", "PodGroup"),
        ("podgroups", "podgroup"),
        &[],
        STATUS,
        through::<scheduling::v1beta1::PodGroup>,
    ),
    namespaced(
        Resource::CompositePodGroups,
        (SCHEDULING, "v1alpha3", "CompositePodGroup"),
        ("compositepodgroups", "compositepodgroup"),
        &[],
        STATUS,
        through::<scheduling::v1alpha3::CompositePodGroup>,
    ),
    cluster(
        Resource::DeviceClasses,
        (DEVICES, "v1", "DeviceClass"),
        ("deviceclasses", "deviceclass"),
        &[],
        NO_SUBRESOURCES,
        through::<resource::v1::DeviceClass>,
    ),
    cluster(
        Resource::ResourceSlices,
        (DEVICES, "v1", "ResourceSlice"),
        ("resourceslices", "resourceslice"),
        &[],
        NO_SUBRESOURCES,
        through::<resource::v1::ResourceSlice>,
    ),
    namespaced(
        Resource::ResourceClaims,
        (DEVICES, "v1", "ResourceClaim"),
        ("resourceclaims", "resourceclaim"),
        &[],
        STATUS,
        through::<resource::v1::ResourceClaim>,
    ),
    namespaced(
        Resource::ResourceClaimTemplates,
        (DEVICES, "v1", "ResourceClaimTemplate"),
        ("resourceclaimtemplates", "resourceclaimtemplate"),
        &[],
        NO_SUBRESOURCES,
        through::<resource::v1::ResourceClaimTemplate>,
    ),
    namespaced(
        Resource::Leases,
        ("coordination.k8s.io", "v1", "Lease"),
        ("leases", "lease"),
        &[],
        NO_SUBRESOURCES,
        through::<coordination::v1::Lease>,
    ),
    namespaced(
        Resource::Secrets,
        ("", "v1", "Secret"),
        ("secrets", "secret"),
        &[],
        NO_SUBRESOURCES,
        through::<core::v1::Secret>,
    ),
    // They are kept, and no more: which webhooks are asked, the embedder says.
    cluster(
        Resource::MutatingWebhookConfigurations,
        (REGISTRATION, "v1", "MutatingWebhookConfiguration"),
        ("mutatingwebhookconfigurations", "mutatingwebhookconfiguration"),
        &[],
        NO_SUBRESOURCES,
        through::<admissionregistration::v1::MutatingWebhookConfiguration>,
    ),
    cluster(
        Resource::ValidatingWebhookConfigurations,
        (REGISTRATION, "v1", "ValidatingWebhookConfiguration"),
        ("validatingwebhookconfigurations", "validatingwebhookconfiguration"),
        &[],
        NO_SUBRESOURCES,
        through::<admissionregistration::v1::ValidatingWebhookConfiguration>,
    ),
];

impl Resource {
    pub(crate) const COUNT: usize = 22;

    /// Every resource.
    pub fn all() -> impl Iterator<Item = Self> {
        DEFINITIONS.iter().map(|definition| definition.resource)
    }

    pub(crate) fn definition(self) -> &'static Definition {
        &DEFINITIONS[self as usize]
    }

    /// The API group; empty for the core group.
    pub fn group(self) -> &'static str {
        self.definition().group
    }

    /// The version in which it is stored.
    pub fn version(self) -> &'static str {
        self.definition().version
    }

    /// `apiVersion` of the stored objects.
    pub fn api_version(self) -> String {
        self.served().api_version()
    }

    /// `kind` of the objects.
    pub fn kind(self) -> &'static str {
        self.definition().kind
    }

    /// The last part of a collection's path.
    pub fn plural(self) -> &'static str {
        self.definition().plural
    }

    /// Whether its objects are in namespaces.
    pub fn is_namespaced(self) -> bool {
        self.definition().namespaced
    }

    /// `workloads.scheduling.k8s.io`, as messages name it.
    pub fn qualified(self) -> String {
        match self.group() {
            "" => self.plural().to_owned(),
            group => format!("{}.{group}", self.plural()),
        }
    }

    /// `Workload.scheduling.k8s.io`, as messages of validation name it.
    pub(crate) fn qualified_kind(self) -> String {
        match self.group() {
            "" => self.kind().to_owned(),
            group => format!("{}.{group}", self.kind()),
        }
    }

    pub(crate) fn singular(self) -> &'static str {
        self.definition().singular
    }

    pub(crate) fn short_names(self) -> &'static [&'static str] {
        self.definition().short
    }

    pub(crate) fn subresources(self) -> &'static [Subresource] {
        self.definition().subresources
    }

    pub(crate) fn through(self, value: Value) -> serde_json::Result<Value> {
        (self.definition().through)(value)
    }

    /// Whether `status` is a subresource, so that writes of the object leave it alone.
    pub(crate) fn has_status(self) -> bool {
        self.subresources().contains(&Subresource::Status)
    }

    /// Whether the server counts changes of the spec in `metadata.generation`.
    pub(crate) fn has_generation(self) -> bool {
        matches!(self, Self::StatefulSets | Self::Pods)
    }

    /// Whether a create may come with a status: a kubelet registers its node so.
    pub(crate) fn keeps_status_on_create(self) -> bool {
        matches!(self, Self::Nodes)
    }

    /// Whether a write of the status leaves labels and annotations alone, as in the newer groups.
    pub(crate) fn status_leaves_metadata(self) -> bool {
        matches!(self, Self::PodGroups | Self::CompositePodGroups | Self::ResourceClaims)
    }

    /// Whether an update must name the version that it is based on.
    pub(crate) fn needs_version(self) -> bool {
        matches!(self, Self::Leases | Self::PriorityClasses | Self::ResourceClaims | Self::ResourceClaimTemplates)
    }

    /// Whether an update of an object that is not there creates it.
    pub(crate) fn creates_on_update(self) -> bool {
        matches!(self, Self::Leases | Self::Events)
    }

    /// Whether a delete that left nothing answers with the object rather than with a Status.
    pub(crate) fn returns_deleted(self) -> bool {
        matches!(self, Self::Pods | Self::Services | Self::PersistentVolumeClaims | Self::ServiceAccounts)
            || self.group() == DEVICES
    }

    /// Whether a delete changes the finalizers of garbage collection.
    pub(crate) fn is_garbage_collected(self) -> bool {
        self != Self::Events
    }

    /// The resource as its own version serves it.
    pub(crate) fn served(self) -> Served {
        let Definition { group, version, .. } = *self.definition();
        Served { resource: self, group, version, renames: &[] }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.qualified())
    }
}

/// A resource as one version of a group serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) resource: Resource,
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    /// Members that are called otherwise than in the store: stored, served.
    pub(crate) renames: &'static [(&'static str, &'static str)],
}

/// Events are stored as the core group has them, and served by their own group, too.
const EVENTS: Served = Served {
    resource: Resource::Events,
    group: "events.k8s.io",
    version: "v1",
    renames: &[
        ("count", "deprecatedCount"),
        ("firstTimestamp", "deprecatedFirstTimestamp"),
        ("lastTimestamp", "deprecatedLastTimestamp"),
        ("source", "deprecatedSource"),
        ("message", "note"),
        ("involvedObject", "regarding"),
        ("reportingComponent", "reportingController"),
    ],
};

impl Served {
    /// Everything that is served with these gates.
    pub(crate) fn all(gates: Gates) -> impl Iterator<Item = Self> {
        let open = move |served: &Self| match (served.group, served.version) {
            (SCHEDULING, "v1beta1") => gates.generic_workload,
            (SCHEDULING, "v1alpha3") => gates.generic_workload && gates.composite_pod_group,
            _ => true,
        };
        Resource::all().map(Resource::served).chain([EVENTS]).filter(open)
    }

    /// `apiVersion` of the objects.
    pub(crate) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// A stored object as this version serves it, with its type.
    pub(crate) fn encode(&self, mut value: Value) -> Value {
        self.rename(&mut value, |(stored, served)| (stored, served));
        value["apiVersion"] = self.api_version().into();
        value["kind"] = self.resource.kind().into();
        value
    }

    /// An object of this version as it is stored, with the stored type.
    pub(crate) fn store(&self, mut value: Value) -> Value {
        self.rename(&mut value, |(stored, served)| (served, stored));
        value["apiVersion"] = self.resource.api_version().into();
        value["kind"] = self.resource.kind().into();
        value
    }

    fn rename(&self, value: &mut Value, direction: fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
        let Some(members) = value.as_object_mut() else { return };
        for (from, to) in self.renames.iter().copied().map(direction) {
            if let Some(member) = members.remove(from) {
                members.insert(to.to_owned(), member);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_definitions_are_in_the_order_of_the_resources() {
        for (index, resource) in Resource::all().enumerate() {
            assert_eq!(resource as usize, index);
        }
    }

    #[test]
    fn events_have_two_views_of_one_object() {
        let stored = json!({ "involvedObject": { "name": "a" }, "message": "m", "reason": "r" });
        let served = EVENTS.encode(stored.clone());
        assert_eq!((&served["regarding"]["name"], &served["note"]), (&json!("a"), &json!("m")));
        assert_eq!(served["apiVersion"], "events.k8s.io/v1");
        let back = EVENTS.store(served);
        assert_eq!((&back["involvedObject"], &back["apiVersion"]), (&stored["involvedObject"], &json!("v1")));
    }

    #[test]
    fn closed_gates_take_versions_away() {
        let served = |gates| Served::all(gates).map(|served| served.resource).collect::<Vec<_>>();
        assert!(served(Gates::default()).contains(&Resource::CompositePodGroups));
        let closed = served(Gates::upstream());
        assert!(!closed.contains(&Resource::Workloads) && closed.contains(&Resource::PriorityClasses));
    }
}
