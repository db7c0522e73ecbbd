//! What is known of the cluster, in the words of the decisions.
//!
//! Stands for the scheduler's cache. Left out: affinity, topology spread, host ports, volumes,
//! pod-level resources, images, and every other thing that does not matter to a group's placement.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::resource::v1 as resource;
use k8s_openapi::api::scheduling::v1 as priority;
use k8s_openapi::api::scheduling::v1beta1 as scheduling;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::quantity::{PODS, Resources};

/// A namespace and a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for what has no namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// A key.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of an object.
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
    }

    /// Another name in the same namespace.
    #[must_use]
    pub fn beside(&self, name: &str) -> Self {
        Self::new(&self.namespace, name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Everything that a decision looks at.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// By name.
    pub nodes: BTreeMap<String, Arc<Node>>,
    /// All pods, those that are done included.
    pub pods: BTreeMap<Key, Arc<Pod>>,
    /// PodGroups.
    pub groups: BTreeMap<Key, Arc<Group>>,
    /// ResourceClaims.
    pub claims: BTreeMap<Key, Arc<Claim>>,
    /// Priority classes by name.
    pub classes: BTreeMap<String, Arc<PriorityClass>>,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What pods may ask of it.
    pub allocatable: Resources,
    /// What keeps pods away.
    pub taints: Vec<Taint>,
    /// Whether it takes no new pods.
    pub cordoned: bool,
    /// Whether its kubelet says so, or says nothing.
    pub ready: bool,
}

/// What keeps pods away from a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value, possibly empty.
    pub value: String,
    /// `NoSchedule`, `NoExecute`, or something that keeps no pod away.
    pub effect: String,
}

/// What lets a pod onto a tainted node. Empty means any, but for the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toleration {
    /// The taint's key.
    pub key: String,
    /// The taint's value; none for any.
    pub value: Option<String>,
    /// The taint's effect.
    pub effect: String,
}

/// Where a pod or a group takes a claim from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A ResourceClaim of this name.
    Claim(String),
    /// A ResourceClaim made from the template of this name.
    Template(String),
}

/// A claim as a pod or a group names it. A pod's claim is the group's if the whole of it is equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The name inside the pod or the group.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
}

/// A condition as far as it is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

/// A pod.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "as the API has it")]
pub struct Pod {
    /// Namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: String,
    /// When it was created, in seconds.
    pub created: i64,
    /// Where it is bound.
    pub node: Option<String>,
    /// Where room is being made for it.
    pub nominated: Option<String>,
    /// Whether it has a deletionTimestamp.
    pub deleting: bool,
    /// Whether it succeeded or failed.
    pub terminal: bool,
    /// Whether scheduling gates hold it.
    pub gated: bool,
    /// The scheduler it waits for.
    pub scheduler: String,
    /// Its priority, where admission resolved it.
    pub priority: Option<i32>,
    /// The name of its priority class.
    pub class: Option<String>,
    /// Whether it may push others away.
    pub preempts: bool,
    /// The PodGroup that it names.
    pub group: Option<String>,
    /// What it asks of a node.
    pub requests: Resources,
    /// The labels that its node has to have.
    pub node_selector: BTreeMap<String, String>,
    /// The taints that it stands.
    pub tolerations: Vec<Toleration>,
    /// The claims that it uses.
    pub claims: Vec<Reference>,
    /// The claims that were made for it, by name inside the pod; none where no claim was needed.
    pub made: BTreeMap<String, Option<String>>,
    /// `PodScheduled`.
    pub scheduled: Option<Condition>,
}

impl Pod {
    /// Whether it takes room on its node.
    pub fn is_bound(&self) -> bool {
        self.node.is_some() && !self.terminal
    }

    /// Whether it waits for a node.
    pub fn is_pending(&self) -> bool {
        self.node.is_none() && !self.terminal && !self.deleting
    }
}

/// A PodGroup.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: String,
    /// How often its spec changed.
    pub generation: Option<i64>,
    /// Whether it has a deletionTimestamp.
    pub deleting: bool,
    /// The `minCount` of a gang; none for Basic.
    pub min_count: Option<usize>,
    /// The label that all members' nodes have to have the same value of.
    pub topology: Option<String>,
    /// Whether it is disrupted as a whole.
    pub whole: bool,
    /// Its priority, where admission resolved it.
    pub priority: Option<i32>,
    /// The name of its priority class.
    pub class: Option<String>,
    /// Whether it may push others away.
    pub preempts: bool,
    /// The claims that its members share.
    pub claims: Vec<Reference>,
    /// The claims that were made for it, by name inside the group; none where no claim was needed.
    pub made: BTreeMap<String, Option<String>>,
    /// `PodGroupInitiallyScheduled`.
    pub scheduled: Option<Condition>,
}

/// A ResourceClaim.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    /// Namespace and name.
    pub key: Key,
    /// The resourceVersion it was seen at.
    pub version: String,
    /// Whether it has a deletionTimestamp.
    pub deleting: bool,
    /// What it asks for.
    pub requests: Vec<DeviceRequest>,
    /// What it got.
    pub allocation: Option<Allocation>,
    /// Who may use it.
    pub reserved: Vec<Consumer>,
}

/// A request for devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRequest {
    /// The request's name.
    pub name: String,
    /// The device class.
    pub class: String,
    /// How many.
    pub count: u32,
}

/// The devices of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The devices.
    pub devices: Vec<AllocatedDevice>,
    /// The nodes where they can be used; none for everywhere.
    pub nodes: Option<BTreeSet<String>>,
}

/// A device that is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatedDevice {
    /// The request that took it.
    pub request: String,
    /// The device.
    pub device: Device,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device {
    /// Its driver.
    pub driver: String,
    /// Its pool.
    pub pool: String,
    /// Its name in the pool.
    pub name: String,
}

/// Who may use a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// A pod, by name and UID.
    Pod(String, String),
    /// A PodGroup, by name and UID.
    Group(String, String),
    /// Something else.
    Other {
        /// Its API group.
        group: Option<String>,
        /// Its resource, in the plural.
        resource: String,
        /// Its name.
        name: String,
        /// Its identity.
        uid: String,
    },
}

/// A priority class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorityClass {
    /// The priority.
    pub value: i32,
    /// Whether it is for those that name no class.
    pub default: bool,
}

impl Cluster {
    /// The members of a group that are not done.
    pub fn members<'a>(&'a self, group: &'a Key) -> impl Iterator<Item = &'a Arc<Pod>> {
        let in_group = |pod: &&Arc<Pod>| {
            pod.key.namespace == group.namespace && pod.group.as_deref() == Some(group.name.as_str()) && !pod.terminal
        };
        self.pods.values().filter(in_group)
    }

    /// The number that a priority, or the name of a class, stands for.
    pub fn priority(&self, resolved: Option<i32>, class: Option<&str>) -> i32 {
        let named = || self.classes.get(class?).map(|class| class.value);
        let default = || self.classes.values().find(|class| class.default).map(|class| class.value);
        resolved.or_else(named).or_else(|| class.is_none().then(default).flatten()).unwrap_or(0)
    }
}

fn seconds(time: Option<&Time>) -> i64 {
    time.map_or(0, |time| time.0.as_second())
}

impl From<&core::Node> for Node {
    fn from(node: &core::Node) -> Self {
        let (spec, status) = (node.spec.as_ref(), node.status.as_ref());
        let taint = |taint: &core::Taint| Taint {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect: taint.effect.clone(),
        };
        let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let amounts = status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()));
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            allocatable: Resources::read(amounts),
            taints: spec.and_then(|spec| spec.taints.as_ref()).into_iter().flatten().map(taint).collect(),
            cordoned: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
            ready: conditions.into_iter().all(|it| it.type_ != "Ready" || it.status == "True"),
        }
    }
}

/// What a pod asks of a node: the sum of the containers, or the largest init container if that is more.
fn requests(spec: &core::PodSpec) -> Resources {
    let of = |container: &core::Container| {
        let resources = container.resources.as_ref();
        let mut requests = Resources::read(resources.and_then(|it| it.limits.as_ref()));
        requests.replace(Resources::read(resources.and_then(|it| it.requests.as_ref())));
        requests
    };
    let mut sum = Resources::default().with(PODS, 1);
    for container in &spec.containers {
        sum.add(&of(container));
    }
    let (sidecars, once): (Vec<_>, Vec<_>) =
        spec.init_containers.iter().flatten().partition(|it| it.restart_policy.as_deref() == Some("Always"));
    for container in sidecars {
        sum.add(&of(container));
    }
    for container in once {
        sum.raise_to(&of(container));
    }
    sum.add(&Resources::read(spec.overhead.as_ref()));
    sum
}

fn source(claim: Option<&String>, template: Option<&String>) -> Option<Source> {
    claim.map(|name| Source::Claim(name.clone())).or_else(|| template.map(|name| Source::Template(name.clone())))
}

impl From<&core::Pod> for Pod {
    fn from(pod: &core::Pod) -> Self {
        let empty = (core::PodSpec::default(), core::PodStatus::default());
        let (spec, status) = (pod.spec.as_ref().unwrap_or(&empty.0), pod.status.as_ref().unwrap_or(&empty.1));
        let claim = |claim: &core::PodResourceClaim| {
            let source = source(claim.resource_claim_name.as_ref(), claim.resource_claim_template_name.as_ref())?;
            Some(Reference { name: claim.name.clone(), source })
        };
        let toleration = |it: &core::Toleration| Toleration {
            key: it.key.clone().unwrap_or_default(),
            value: (it.operator.as_deref() != Some("Exists")).then(|| it.value.clone().unwrap_or_default()),
            effect: it.effect.clone().unwrap_or_default(),
        };
        let scheduled = status.conditions.iter().flatten().find(|it| it.type_ == "PodScheduled");
        let not_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Self {
            key: Key::of(&pod.metadata),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            created: seconds(pod.metadata.creation_timestamp.as_ref()),
            node: not_empty(&spec.node_name),
            nominated: not_empty(&status.nominated_node_name),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            terminal: matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")),
            gated: spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()),
            scheduler: not_empty(&spec.scheduler_name).unwrap_or_else(|| "default-scheduler".to_owned()),
            priority: spec.priority,
            class: not_empty(&spec.priority_class_name),
            preempts: spec.preemption_policy.as_deref() != Some("Never"),
            group: spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.clone()),
            requests: requests(spec),
            node_selector: spec.node_selector.clone().unwrap_or_default(),
            tolerations: spec.tolerations.iter().flatten().map(toleration).collect(),
            claims: spec.resource_claims.iter().flatten().filter_map(claim).collect(),
            made: (status.resource_claim_statuses.iter().flatten())
                .map(|it| (it.name.clone(), it.resource_claim_name.clone()))
                .collect(),
            scheduled: scheduled.map(|it| Condition {
                status: it.status.clone(),
                reason: it.reason.clone().unwrap_or_default(),
                message: it.message.clone().unwrap_or_default(),
            }),
        }
    }
}

impl From<&scheduling::PodGroup> for Group {
    fn from(group: &scheduling::PodGroup) -> Self {
        let spec = &group.spec;
        let claim = |claim: &scheduling::PodGroupResourceClaim| {
            let source = source(claim.resource_claim_name.as_ref(), claim.resource_claim_template_name.as_ref())?;
            Some(Reference { name: claim.name.clone(), source })
        };
        let conditions = group.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let made = group.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
        let topology = spec.scheduling_constraints.as_ref().and_then(|it| it.topology.as_ref()?.first());
        Self {
            key: Key::of(&group.metadata),
            uid: group.metadata.uid.clone().unwrap_or_default(),
            generation: group.metadata.generation,
            deleting: group.metadata.deletion_timestamp.is_some(),
            min_count: spec.scheduling_policy.gang.as_ref().map(|gang| usize::try_from(gang.min_count).unwrap_or(0)),
            topology: topology.map(|it| it.key.clone()),
            whole: spec.disruption_mode.as_ref().is_some_and(|mode| mode.all.is_some()),
            priority: spec.priority,
            class: spec.priority_class_name.clone().filter(|name| !name.is_empty()),
            preempts: spec.preemption_policy.as_deref() != Some("Never"),
            claims: spec.resource_claims.iter().flatten().filter_map(claim).collect(),
            made: made.map(|it| (it.name.clone(), it.resource_claim_name.clone())).collect(),
            scheduled: conditions.into_iter().find(|it| it.type_ == "PodGroupInitiallyScheduled").map(|it| Condition {
                status: it.status.clone(),
                reason: it.reason.clone(),
                message: it.message.clone(),
            }),
        }
    }
}

/// The node names that a selector of an allocation lists; none where it lists none.
fn listed_nodes(selector: &core::NodeSelector) -> Option<BTreeSet<String>> {
    let terms = selector.node_selector_terms.iter();
    let fields = terms.flat_map(|term| term.match_fields.iter().flatten());
    let names = fields.filter(|it| it.key == "metadata.name" && it.operator == "In");
    let names: Vec<_> = names.collect();
    (!names.is_empty()).then(|| names.into_iter().flat_map(|it| it.values.iter().flatten().cloned()).collect())
}

impl From<&resource::ResourceClaim> for Claim {
    fn from(claim: &resource::ResourceClaim) -> Self {
        let request = |request: &resource::DeviceRequest| {
            let first = || request.first_available.as_ref()?.first();
            let exactly = request.exactly.as_ref().map(|it| (it.device_class_name.clone(), it.count));
            let (class, count) = exactly.or_else(|| first().map(|it| (it.device_class_name.clone(), it.count)))?;
            let count = count.map_or(1, |count| u32::try_from(count).unwrap_or(u32::MAX));
            Some(DeviceRequest { name: request.name.clone(), class, count })
        };
        let consumer = |it: &resource::ResourceClaimConsumerReference| {
            let (name, uid) = (it.name.clone(), it.uid.clone());
            match (it.api_group.as_deref().unwrap_or_default(), it.resource.as_str()) {
                ("", "pods") => Consumer::Pod(name, uid),
                ("scheduling.k8s.io", "podgroups") => Consumer::Group(name, uid),
                (_, resource) => {
                    Consumer::Other { group: it.api_group.clone(), resource: resource.to_owned(), name, uid }
                }
            }
        };
        let device = |it: &resource::DeviceRequestAllocationResult| AllocatedDevice {
            request: it.request.clone(),
            device: Device { driver: it.driver.clone(), pool: it.pool.clone(), name: it.device.clone() },
        };
        let allocation = |it: &resource::AllocationResult| Allocation {
            devices: it.devices.iter().flat_map(|it| it.results.iter().flatten()).map(device).collect(),
            nodes: it.node_selector.as_ref().and_then(listed_nodes),
        };
        let status = claim.status.as_ref();
        let requests = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref()?.requests.as_ref());
        Self {
            key: Key::of(&claim.metadata),
            version: claim.metadata.resource_version.clone().unwrap_or_default(),
            deleting: claim.metadata.deletion_timestamp.is_some(),
            requests: requests.into_iter().flatten().filter_map(request).collect(),
            allocation: status.and_then(|status| status.allocation.as_ref()).map(allocation),
            reserved: status.iter().flat_map(|status| status.reserved_for.iter().flatten()).map(consumer).collect(),
        }
    }
}

impl From<&priority::PriorityClass> for PriorityClass {
    fn from(class: &priority::PriorityClass) -> Self {
        Self { value: class.value.unwrap_or_default(), default: class.global_default.unwrap_or(false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
        serde_json::from_value(value).expect("it is an object of this kind")
    }

    #[test]
    fn a_pod_is_read_with_all_that_matters() {
        let pod: core::Pod = read(json!({
            "metadata": {
                "namespace": "prod", "name": "db-0", "uid": "u", "creationTimestamp": "2026-10-01T00:00:07Z",
            },
            "spec": {
                "schedulerName": "default-scheduler",
                "priority": 7,
                "preemptionPolicy": "Never",
                "schedulingGroup": { "podGroupName": "db" },
                "nodeSelector": { "disk": "ssd" },
                "tolerations": [{ "key": "gpu", "operator": "Exists" }, { "key": "a", "value": "b" }],
                "resourceClaims": [{ "name": "shared", "resourceClaimTemplateName": "gpu" }],
                "initContainers": [
                    { "name": "large", "resources": { "requests": { "cpu": "3" } } },
                    { "name": "sidecar", "restartPolicy": "Always", "resources": { "requests": { "memory": "1Gi" } } },
                ],
                "containers": [
                    {
                        "name": "one",
                        "resources": { "requests": { "cpu": "500m" }, "limits": { "cpu": "1", "memory": "1Gi" } },
                    },
                    { "name": "two", "resources": { "requests": { "cpu": "1" } } },
                ],
            },
            "status": {
                "phase": "Pending",
                "nominatedNodeName": "n1",
                "conditions": [
                    { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no" },
                ],
                "resourceClaimStatuses": [{ "name": "shared", "resourceClaimName": "db-gpu" }],
            },
        }));
        let pod = Pod::from(&pod);
        assert_eq!(pod.key.to_string(), "prod/db-0");
        assert_eq!(pod.requests, Resources::default().with(PODS, 1).with("cpu", 3).with("memory", 2 << 30));
        assert_eq!(pod.created % 60, 7);
        assert_eq!((pod.priority, pod.preempts, pod.group.as_deref()), (Some(7), false, Some("db")));
        assert_eq!(pod.tolerations[0].value, None);
        assert_eq!(pod.tolerations[1].value.as_deref(), Some("b"));
        let shared = Reference { name: "shared".to_owned(), source: Source::Template("gpu".to_owned()) };
        assert_eq!(pod.claims, [shared]);
        assert_eq!(pod.made["shared"].as_deref(), Some("db-gpu"));
        assert_eq!(pod.nominated.as_deref(), Some("n1"));
        assert_eq!(pod.scheduled.as_ref().map(|it| &*it.reason), Some("Unschedulable"));
        assert!(pod.is_pending());
    }

    #[test]
    fn a_group_is_read_with_all_that_matters() {
        let group: scheduling::PodGroup = read(json!({
            "metadata": { "namespace": "prod", "name": "db", "uid": "u" },
            "spec": {
                "schedulingPolicy": { "gang": { "minCount": 3 } },
                "schedulingConstraints": { "topology": [{ "key": "rack" }] },
                "disruptionMode": { "all": {} },
                "priorityClassName": "high",
                "resourceClaims": [{ "name": "shared", "resourceClaimName": "pool" }],
            },
        }));
        let group = Group::from(&group);
        assert_eq!((group.min_count, group.topology.as_deref(), group.whole), (Some(3), Some("rack"), true));
        assert_eq!((group.priority, group.class.as_deref(), group.preempts), (None, Some("high"), true));
        assert_eq!(group.claims, [Reference { name: "shared".to_owned(), source: Source::Claim("pool".to_owned()) }]);
    }

    #[test]
    fn a_claim_is_read_with_where_it_can_be_used_and_by_whom() {
        let claim: resource::ResourceClaim = read(json!({
            "metadata": { "namespace": "prod", "name": "c", "resourceVersion": "8" },
            "spec": { "devices": { "requests": [{ "name": "r", "exactly": { "deviceClassName": "gpu" } }] } },
            "status": {
                "allocation": {
                    "devices": { "results": [{ "request": "r", "driver": "gpu", "pool": "n1", "device": "d" }] },
                    "nodeSelector": { "nodeSelectorTerms": [
                        { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n1"] }] },
                    ] },
                },
                "reservedFor": [
                    { "resource": "pods", "name": "p", "uid": "1" },
                    { "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "2" },
                ],
            },
        }));
        let claim = Claim::from(&claim);
        assert_eq!(claim.requests[0].count, 1);
        assert_eq!(claim.allocation.and_then(|it| it.nodes), Some(["n1".to_owned()].into()));
        let [pod, group] = [("p", "1"), ("g", "2")].map(|(name, uid)| (name.to_owned(), uid.to_owned()));
        assert_eq!(claim.reserved, [Consumer::Pod(pod.0, pod.1), Consumer::Group(group.0, group.1)]);
    }

    #[test]
    fn a_priority_is_resolved_by_number_then_class_then_default() {
        let mut cluster = Cluster::default();
        for (name, value, default) in [("high", 100, false), ("usual", 5, true)] {
            cluster.classes.insert(name.to_owned(), Arc::new(PriorityClass { value, default }));
        }
        let table =
            [(Some(3), Some("high"), 3), (None, Some("high"), 100), (None, Some("unknown"), 0), (None, None, 5)];
        for (number, class, expected) in table {
            assert_eq!(cluster.priority(number, class), expected, "{number:?} {class:?}");
        }
    }
}
