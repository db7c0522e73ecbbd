//! What the tests begin with and look at.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cluster::cluster::policy;
use cluster::controller::As;
use cluster::invariants;
use cluster::manifests::{EngineKind, Source};
use cluster::objects::{Carrier, Set};
use cluster::{Cluster, Options};
use cluster_apiserver::{Profile, Request, Resource, Verb, View};
use cluster_nodes::node::NodeShape;
use host_harness::module::Policy;
use kube::api::PropagationPolicy;
use serde_json::Value;
use statefulset_scheduling_core::admission::DEFAULT_CONTROLLER;

/// Long enough for any machine; nothing waits for its end.
pub(crate) const SOON: Duration = Duration::from_mins(1);
/// How long it is watched that something does not happen. Everything that happens does so within a
/// fraction of it.
pub(crate) const A_WHILE: Duration = Duration::from_millis(700);
/// The namespace of all but a few tests.
pub(crate) const NAMESPACE: &str = "default";
/// Both kinds of API server.
pub(crate) const PROFILES: [Profile; 2] = [Profile::V1_37, Profile::Kep];
/// The cluster's own StatefulSet controller.
pub(crate) const STATEFULSET_CONTROLLER: &str = cluster_controllers::identity::STATEFULSET_CONTROLLER;
/// The project's controller.
pub(crate) const CONTROLLER: &str = DEFAULT_CONTROLLER;

pub(crate) static POLICY: LazyLock<Arc<Policy>> =
    LazyLock::new(|| policy().expect("the module is built before the tests"));

/// What is deployed: the project's manifests, with the module or with `E2E_DEPLOY=webhook` the project's own
/// webhook, or whatever a file `E2E_DEPLOY=….yaml` has, as the chart was rendered to.
static SOURCE: LazyLock<Source> = LazyLock::new(|| match std::env::var("E2E_DEPLOY").as_deref() {
    Err(_) | Ok("" | "kubewarden") => Source::Kustomize(EngineKind::Kubewarden),
    Ok("webhook") => Source::Kustomize(EngineKind::Webhook),
    Ok(file) => Source::Rendered(cluster::cluster::root().join(file)),
});

/// A cluster with the controller's binary.
pub(crate) async fn cluster(options: Options) -> Cluster {
    let options = Options { controller: options.controller.map(|_| As::Binary), source: SOURCE.clone(), ..options };
    Cluster::start(Arc::clone(&POLICY), options).await.expect("the cluster starts")
}

/// A cluster of this profile.
pub(crate) async fn of_profile(profile: Profile) -> Cluster {
    cluster(Options { profile, ..Options::default() }).await
}

/// Nodes with so many processors each.
pub(crate) fn nodes(count: usize, cpu: &str) -> Vec<NodeShape> {
    (1..=count).map(|n| NodeShape::new(&format!("node-{n}"), cpu, "32Gi")).collect()
}

/// Creates a StatefulSet with an intent, in the carrier that the server stores.
pub(crate) async fn create(cluster: &Cluster, set: Set, intent: &Value) -> Value {
    let set = set.with_intent(Carrier::of(cluster.options().profile), intent);
    cluster.admin().create(set.object()).await.expect("the StatefulSet is valid")
}

/// Deletes a StatefulSet.
pub(crate) async fn delete(cluster: &Cluster, name: &str, propagation: PropagationPolicy) {
    let admin = cluster.admin();
    admin.delete(Resource::StatefulSets, NAMESPACE, name, propagation).await.expect("it may be deleted");
}

pub(crate) fn set(view: &View<'_>, name: &str) -> Value {
    view.get(Resource::StatefulSets, NAMESPACE, name).unwrap_or_default()
}

/// The pods of a StatefulSet by its name, in the order of their names.
pub(crate) fn pods(view: &View<'_>, name: &str) -> Vec<Value> {
    let pods = view.list(Resource::Pods).into_iter();
    pods.filter(|pod| pod["metadata"]["labels"]["app"] == name).collect()
}

pub(crate) fn is_bound(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_string()
}

pub(crate) fn uids(objects: &[Value]) -> BTreeSet<String> {
    objects.iter().map(|object| object["metadata"]["uid"].as_str().expect("it has a UID").to_owned()).collect()
}

/// What the controller made for a StatefulSet.
pub(crate) fn made(view: &View<'_>, resource: Resource, set: &Value) -> Vec<Value> {
    let uid = set["metadata"]["uid"].as_str();
    let objects = view.list(resource).into_iter();
    objects.filter(|object| invariants::is_ours(object) && invariants::controlling_set(object) == uid).collect()
}

/// The one PodGroup of a StatefulSet.
pub(crate) fn group(cluster: &Cluster, name: &str) -> Value {
    one(cluster, Resource::PodGroups, name)
}

/// The one Workload of a StatefulSet.
pub(crate) fn workload(cluster: &Cluster, name: &str) -> Value {
    one(cluster, Resource::Workloads, name)
}

fn one(cluster: &Cluster, resource: Resource, name: &str) -> Value {
    let mut objects = cluster.api.look(|view| made(view, resource, &set(view, name)));
    assert_eq!(objects.len(), 1, "{name} has one {}", resource.kind());
    objects.remove(0)
}

/// Whether all pods of a StatefulSet are there and ready, and it has no others.
pub(crate) fn is_ready(view: &View<'_>, name: &str, replicas: i64) -> bool {
    let set = set(view, name);
    let status = &set["status"];
    set["metadata"]["generation"] == status["observedGeneration"]
        && status["replicas"] == replicas
        && status["readyReplicas"].as_i64().unwrap_or(0) == replicas
        && status["availableReplicas"].as_i64().unwrap_or(0) == replicas
        && status["updatedReplicas"].as_i64().unwrap_or(0) == replicas
        && status["currentReplicas"].as_i64().unwrap_or(0) == replicas
        && status["currentRevision"] == status["updateRevision"]
}

/// Waits until a StatefulSet has so many ready pods, and nothing is left to do.
#[track_caller]
pub(crate) fn settled(cluster: &Cluster, name: &str, replicas: i64) -> impl Future<Output = ()> {
    cluster.api.wait_for(move |view| is_ready(view, name, replicas) && invariants::violations(view).is_empty(), SOON)
}

/// The requests that were done, of one user.
pub(crate) fn done<'a>(
    requests: &'a [Request],
    user: &'a str,
    verb: Verb,
    resource: Resource,
) -> impl Iterator<Item = &'a Request> {
    let all = of(requests, user, verb, resource);
    all.filter(|request| request.answer.is_some_and(|code| (200..300).contains(&code)))
}

/// The requests of one user that were refused.
pub(crate) fn refused<'a>(
    requests: &'a [Request],
    user: &'a str,
    verb: Verb,
    resource: Resource,
) -> impl Iterator<Item = &'a Request> {
    of(requests, user, verb, resource).filter(|request| request.answer.is_some_and(|code| code >= 400))
}

fn of<'a>(requests: &'a [Request], user: &'a str, verb: Verb, resource: Resource) -> impl Iterator<Item = &'a Request> {
    requests.iter().filter(move |request| {
        &*request.user == user && request.verb == verb && request.resource == resource && request.subresource.is_none()
    })
}

/// Asserts that a condition does not come to hold for a while.
pub(crate) async fn never(cluster: &Cluster, what: &str, condition: impl FnMut(&View<'_>) -> bool) {
    assert!(!cluster.api.reaches(condition, A_WHILE).await, "{what}");
}
