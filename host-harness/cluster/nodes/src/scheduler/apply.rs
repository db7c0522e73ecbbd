//! Doing what was decided.
//!
//! Stands for the binding cycle, the preemption executor and the status patches. Left out: Permit,
//! the plugins of binding, and the claim's finalizer. A write of which nobody knows whether it was done is
//! looked up before anything else is decided.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult, ResourceClaim,
    ResourceClaimConsumerReference,
};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::claims::ClaimUse;
use super::round::{Decision, GroupReport, Placement, PodRef, PodReport, Preemption};
use crate::clock::Clock;
use crate::cluster::{Allocation, Claim, Cluster, Condition, Consumer, Group, Key, Pod};
use crate::watch::Store;

/// How often, and how far apart, a write is looked up of which nothing is known.
const LOOKUPS: usize = 40;
const LOOKUP_PAUSE: Duration = Duration::from_millis(50);

/// The name under which fields are managed, and which conditions name.
const SCHEDULER: &str = "kube-scheduler";

/// What was done and has not been seen yet.
#[derive(Debug, Default)]
pub(super) struct Assumed {
    /// Pods that were bound, by UID.
    bound: BTreeMap<String, String>,
    /// Pods that were deleted, by UID.
    deleted: BTreeSet<String>,
}

impl Assumed {
    /// Puts it into what was seen, and forgets what was seen by now.
    pub(super) fn overlay(&mut self, pods: &mut BTreeMap<Key, Arc<Pod>>) {
        let (mut bound, mut deleted) = (BTreeMap::new(), BTreeSet::new());
        for pod in pods.values_mut() {
            if let Some(node) = self.bound.remove(&pod.uid).filter(|_| pod.node.is_none()) {
                Arc::make_mut(pod).node = Some(node.clone());
                bound.insert(pod.uid.clone(), node);
            }
            if self.deleted.remove(&pod.uid) && !pod.deleting {
                Arc::make_mut(pod).deleting = true;
                deleted.insert(pod.uid.clone());
            }
        }
        *self = Self { bound, deleted };
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Yes,
    No,
}

/// Who does it.
pub(super) struct Actor {
    pub(super) client: kube::Client,
    pub(super) clock: Clock,
    pub(super) parallel: usize,
    pub(super) pods: Arc<Store<Pod>>,
    pub(super) groups: Arc<Store<Group>>,
    pub(super) claims: Arc<Store<Claim>>,
    pub(super) assumed: Assumed,
}

impl Actor {
    /// Does everything, in order. Tells whether all of it worked.
    pub(super) async fn apply(&mut self, cluster: &Cluster, decisions: Vec<Decision>) -> bool {
        let mut versions = BTreeMap::new();
        let mut all = Done::Yes;
        for decision in decisions {
            let done = match decision {
                Decision::Place(placement) => self.place(cluster, &mut versions, placement).await,
                Decision::Preempt(preemption) => self.preempt(preemption).await,
                Decision::Pod(report) => self.report(cluster, &report).await,
                Decision::Group(report) => self.report_group(cluster, &report).await,
                Decision::Hold { pod, why } => {
                    tracing::trace!(%pod, why, "held");
                    Done::Yes
                }
            };
            if done == Done::No {
                all = Done::No;
            }
        }
        all == Done::Yes
    }

    async fn place(&mut self, cluster: &Cluster, versions: &mut BTreeMap<Key, String>, placement: Placement) -> Done {
        for claim in &placement.claims {
            if self.claim(cluster, versions, claim).await == Done::No {
                return Done::No;
            }
        }
        let bindings: Vec<_> = {
            let this = &*self;
            let bind = |(pod, node): (PodRef, String)| async move {
                let done = this.bind(&pod, &node).await;
                (pod, node, done)
            };
            futures::stream::iter(placement.binds).map(bind).buffered(this.parallel).collect().await
        };
        let mut all = Done::Yes;
        for (pod, node, done) in bindings {
            if done == Done::Yes {
                tracing::debug!(pod = %pod.key, node, "bound");
                self.assumed.bound.insert(pod.uid, node);
            } else {
                all = Done::No;
            }
        }
        match placement.group {
            Some(report) if all == Done::Yes => self.report_group(cluster, &report).await,
            _ => all,
        }
    }

    async fn bind(&self, pod: &PodRef, node: &str) -> Done {
        let pods = self.api::<core::Pod>(&pod.key);
        let binding = core::Binding {
            metadata: ObjectMeta {
                name: Some(pod.key.name.clone()),
                namespace: Some(pod.key.namespace.clone()),
                uid: Some(pod.uid.clone()),
                ..ObjectMeta::default()
            },
            target: core::ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(node.to_owned()),
                ..core::ObjectReference::default()
            },
        };
        let parameters = PostParams::default();
        match pods.create_subresource::<_, Value>("binding", &pod.key.name, &parameters, &binding).await {
            Ok(_) => Done::Yes,
            Err(error) if is_refused(&error) => failed("bind", &pod.key, &error),
            Err(error) => {
                let found = settle(&pods, &self.pods, &pod.key).await;
                let bound = found.and_then(|found| found.spec?.node_name);
                if bound.as_deref() == Some(node) { Done::Yes } else { failed("bind", &pod.key, &error) }
            }
        }
    }

    async fn claim(&self, cluster: &Cluster, versions: &mut BTreeMap<Key, String>, claim: &ClaimUse) -> Done {
        let known = cluster.claims.get(&claim.claim).map(|claim| &claim.version);
        let Some(version) = versions.get(&claim.claim).or(known) else { return Done::No };
        let mut status = json!({ "reservedFor": claim.reserved.iter().map(consumer).collect::<Vec<_>>() });
        if let Some(allocate) = &claim.allocate {
            status["allocation"] = serde_json::to_value(allocation(allocate)).expect("an allocation can be written");
        }
        let patch = Patch::Merge(json!({ "metadata": { "resourceVersion": version }, "status": status }));
        let claims = self.api::<ResourceClaim>(&claim.claim);
        match claims.patch_status(&claim.claim.name, &PatchParams::default(), &patch).await {
            Ok(written) => {
                self.claims.refresh(&written);
                versions.insert(claim.claim.clone(), written.metadata.resource_version.unwrap_or_default());
                Done::Yes
            }
            Err(error) => {
                settle(&claims, &self.claims, &claim.claim).await;
                failed("allocate", &claim.claim, &error)
            }
        }
    }

    async fn preempt(&mut self, preemption: Preemption) -> Done {
        let message = format!("preempting to accommodate {} of higher priority", preemption.preemptor);
        for group in &preemption.groups {
            let condition = self.disruption(&message);
            let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
            let groups = self.api::<PodGroup>(group);
            match groups.patch_status(&group.name, &PatchParams::default(), &patch).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return failed("mark", group, &error),
            }
        }
        let mut all = Done::Yes;
        for victim in preemption.victims {
            if self.evict(&victim, &message).await == Done::Yes {
                tracing::debug!(pod = %victim.key, preemptor = %preemption.preemptor, "preempted");
                self.assumed.deleted.insert(victim.uid);
            } else {
                all = Done::No;
            }
        }
        all
    }

    async fn evict(&self, victim: &PodRef, message: &str) -> Done {
        let pods = self.api::<core::Pod>(&victim.key);
        let patch = Patch::Strategic(json!({ "status": { "conditions": [self.disruption(message)] } }));
        match pods.patch_status(&victim.key.name, &PatchParams::default(), &patch).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => return Done::Yes,
            Err(error) => return failed("mark", &victim.key, &error),
        }
        let identity = Preconditions { uid: Some(victim.uid.clone()), ..Preconditions::default() };
        let delete = DeleteParams { preconditions: Some(identity), ..DeleteParams::default() };
        match pods.delete(&victim.key.name, &delete).await {
            Ok(answer) => {
                if let Some(deleted) = answer.left() {
                    self.pods.refresh(&deleted);
                }
                Done::Yes
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Done::Yes,
            Err(error) => {
                settle(&pods, &self.pods, &victim.key).await;
                failed("delete", &victim.key, &error)
            }
        }
    }

    async fn report(&self, cluster: &Cluster, report: &PodReport) -> Done {
        let key = &report.pod.key;
        let mut status = json!({});
        if let Some(condition) = &report.condition {
            let before = cluster.pods.get(key).and_then(|pod| pod.scheduled.as_ref());
            status["conditions"] = json!([self.condition("PodScheduled", condition, before)]);
        }
        if let Some(nominated) = &report.nominated {
            status["nominatedNodeName"] = json!(nominated);
        }
        let patch = Patch::Strategic(json!({ "status": status }));
        match self.api::<core::Pod>(key).patch_status(&key.name, &PatchParams::default(), &patch).await {
            Ok(written) => {
                self.pods.refresh(&written);
                Done::Yes
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Done::Yes,
            Err(error) => failed("report", key, &error),
        }
    }

    async fn report_group(&self, cluster: &Cluster, report: &GroupReport) -> Done {
        let key = &report.group;
        let known = cluster.groups.get(key);
        let before = known.and_then(|group| group.scheduled.as_ref());
        let mut condition = self.condition("PodGroupInitiallyScheduled", &report.condition, before);
        if let Some(generation) = known.and_then(|group| group.generation) {
            condition["observedGeneration"] = json!(generation);
        }
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
        match self.api::<PodGroup>(key).patch_status(&key.name, &PatchParams::default(), &patch).await {
            Ok(written) => {
                self.groups.refresh(&written);
                Done::Yes
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Done::Yes,
            Err(error) => failed("report", key, &error),
        }
    }

    /// A condition to be merged by its type. Its time stays where the status stays.
    fn condition(&self, kind: &str, condition: &Condition, before: Option<&Condition>) -> Value {
        let Condition { status, reason, message } = condition;
        let mut value = json!({ "type": kind, "status": status, "reason": reason, "message": message });
        if before.is_none_or(|before| before.status != *status) {
            value["lastTransitionTime"] = json!(self.clock.now());
        }
        value
    }

    fn disruption(&self, message: &str) -> Value {
        let (status, reason) = ("True".to_owned(), "PreemptionByScheduler".to_owned());
        let message = format!("{SCHEDULER}: {message}");
        self.condition("DisruptionTarget", &Condition { status, reason, message }, None)
    }

    fn api<K>(&self, key: &Key) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

/// Whether the answer says that nothing was done.
fn is_refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code))
}

fn failed(verb: &str, key: &Key, error: &kube::Error) -> Done {
    tracing::debug!(%key, %error, "could not {verb}");
    Done::No
}

/// Finds out how an object is, and puts it into the store; none if it is gone or nobody answers.
async fn settle<K, T>(api: &Api<K>, store: &Store<T>, key: &Key) -> Option<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    T: for<'a> From<&'a K>,
{
    for _ in 0..LOOKUPS {
        match api.get_opt(&key.name).await {
            Ok(found) => {
                if let Some(found) = &found {
                    store.refresh(found);
                }
                return found;
            }
            Err(_) => tokio::time::sleep(LOOKUP_PAUSE).await,
        }
    }
    None
}

fn consumer(consumer: &Consumer) -> ResourceClaimConsumerReference {
    let (group, resource, name, uid) = match consumer {
        Consumer::Pod(name, uid) => (None, "pods", name, uid),
        Consumer::Group(name, uid) => (Some("scheduling.k8s.io"), "podgroups", name, uid),
        Consumer::Other { group, resource, name, uid } => (group.as_deref(), resource.as_str(), name, uid),
    };
    ResourceClaimConsumerReference {
        api_group: group.map(ToOwned::to_owned),
        resource: resource.to_owned(),
        name: name.clone(),
        uid: uid.clone(),
    }
}

fn allocation(allocation: &Allocation) -> AllocationResult {
    let result = |it: &crate::cluster::AllocatedDevice| DeviceRequestAllocationResult {
        request: it.request.clone(),
        driver: it.device.driver.clone(),
        pool: it.device.pool.clone(),
        device: it.device.name.clone(),
        ..DeviceRequestAllocationResult::default()
    };
    let results = allocation.devices.iter().map(result).collect();
    let selector = allocation.nodes.as_ref().map(|nodes| core::NodeSelector {
        node_selector_terms: vec![core::NodeSelectorTerm {
            match_fields: Some(vec![core::NodeSelectorRequirement {
                key: "metadata.name".to_owned(),
                operator: "In".to_owned(),
                values: Some(nodes.iter().cloned().collect()),
            }]),
            ..core::NodeSelectorTerm::default()
        }],
    });
    AllocationResult {
        devices: Some(DeviceAllocationResult { results: Some(results), ..DeviceAllocationResult::default() }),
        node_selector: selector,
        ..AllocationResult::default()
    }
}
