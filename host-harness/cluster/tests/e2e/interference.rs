//! What did not opt in is as without this project, whatever fails.

use std::collections::BTreeMap;

use cluster::engine::Health;
use cluster::objects::{Carrier, Set, gang};
use cluster::{Cluster, Options};
use cluster_apiserver::{Profile, Request, Resource, Verb, View};
use kube::api::PropagationPolicy;
use serde_json::{Value, json};

use crate::bench::*;

/// Kinds that a StatefulSet without an intent leads to.
const KINDS: [Resource; 4] =
    [Resource::StatefulSets, Resource::Pods, Resource::ControllerRevisions, Resource::PersistentVolumeClaims];

/// What is never the same twice: who an object is, and when.
const OF_THE_MOMENT: [&str; 12] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "lastTransitionTime",
    "startTime",
    "startedAt",
    "finishedAt",
    "podIP",
    "podIPs",
    "containerID",
    "managedFields",
];

fn timeless(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !OF_THE_MOMENT.contains(&name.as_str()));
            members.values_mut().for_each(timeless);
        }
        Value::Array(items) => items.iter_mut().for_each(timeless),
        _ => {}
    }
}

/// The objects of the StatefulSets without an intent.
fn plain(view: &View<'_>) -> BTreeMap<String, Value> {
    let mut objects = BTreeMap::new();
    for resource in KINDS {
        for mut object in view.list(resource) {
            let name = object["metadata"]["name"].as_str().expect("it has a name").to_owned();
            if !name.contains("gang") {
                timeless(&mut object);
                objects.insert(format!("{} {name}", resource.plural()), object);
            }
        }
    }
    objects
}

/// A life of StatefulSets without an intent, beside one that has one. What is there in the end, and how
/// often each verb was used on each kind by the StatefulSet controller.
async fn life(cluster: &Cluster, profile: Profile) -> BTreeMap<String, Value> {
    let admin = cluster.admin();
    // Whether it is admitted depends on what fails; it must not matter to the others.
    let _ = admin.create(Set::new("gang", 2).with_intent(Carrier::of(profile), &gang()).object()).await;
    let claim = json!([{ "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }]);
    let parallel = Set::new("parallel", 3).with("/spec/volumeClaimTemplates", claim);
    let ordered = Set::new("ordered", 2).with("/spec/podManagementPolicy", json!("OrderedReady"));
    for set in [parallel, ordered] {
        admin.create(set.object()).await.expect("a StatefulSet without an intent is always admitted");
    }
    let ready = |name: &'static str, replicas| cluster.api.wait_for(move |view| is_ready(view, name, replicas), SOON);
    ready("parallel", 3).await;
    ready("ordered", 2).await;
    let bare = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "bare" },
        "spec": { "containers": [{ "name": "main", "image": "example.com/app:1" }], "nodeName": "node-1" } });
    admin.create(bare).await.expect("a pod without the label is always admitted");
    admin.scale(NAMESPACE, "parallel", 5).await.expect("it may be scaled");
    ready("parallel", 5).await;
    admin.scale(NAMESPACE, "parallel", 1).await.expect("it may be scaled");
    ready("parallel", 1).await;
    let patch = json!({ "spec": { "template": { "metadata": { "annotations": { "version": "2" } } } } });
    admin.merge(Resource::StatefulSets, NAMESPACE, "ordered", patch).await.expect("the template may change");
    ready("ordered", 2).await;
    let old = uids(&cluster.api.look(|view| pods(view, "ordered")));
    admin.evict(NAMESPACE, "ordered-1").await.expect("it may be evicted");
    let replaced = |view: &View<'_>| uids(&pods(view, "ordered")) != old && is_ready(view, "ordered", 2);
    cluster.api.wait_for(replaced, SOON).await;
    admin.delete(Resource::Pods, NAMESPACE, "bare", PropagationPolicy::Background).await.expect("it may be deleted");
    let running = |view: &View<'_>| {
        view.get(Resource::Pods, NAMESPACE, "bare").is_none()
            && pods(view, "parallel").len() == 1
            && pods(view, "ordered").iter().all(|pod| pod["metadata"]["annotations"]["version"] == "2")
    };
    cluster.api.wait_for(running, SOON).await;
    let objects = cluster.api.look(plain);
    assert_eq!(objects.len(), 2 + 3 + 3 + 5, "{:?}", objects.keys());
    let of_gang = |name: &Option<String>| name.as_deref().is_some_and(|name| name.contains("gang"));
    let requests = cluster.api.requests();
    for verb in [Verb::Create, Verb::Delete] {
        // That something is there already, or gone, a cache that is behind finds out in any cluster.
        let of_any_cluster = |code: Option<u16>| matches!(code, Some(404 | 409));
        let refused = refused(&requests, STATEFULSET_CONTROLLER, verb, Resource::Pods);
        let refused = refused.filter(|request| !of_gang(&request.name) && !of_any_cluster(request.answer));
        assert_eq!(refused.collect::<Vec<_>>(), [] as [&Request; 0]);
    }
    objects
}

/// What may fail.
#[derive(Clone, Copy, Debug)]
struct Failing {
    engine: Health,
    controller: bool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_and_pods_without_an_intent_are_the_same_object_by_object_whatever_fails() {
    for profile in PROFILES {
        let options = || Options { profile, nodes: nodes(1, "16"), ..Options::default() };
        let without = cluster(Options { policies: false, controller: None, ..options() }).await;
        let expected = life(&without, profile).await;
        for failing in [
            Failing { engine: Health::Up, controller: false },
            Failing { engine: Health::Failing, controller: false },
            Failing { engine: Health::Down, controller: false },
            Failing { engine: Health::Up, controller: true },
            Failing { engine: Health::Failing, controller: true },
            Failing { engine: Health::Down, controller: true },
        ] {
            let mut cluster = cluster(options()).await;
            if failing.controller {
                cluster.kill_controller().await;
            }
            cluster.engine.set_health(failing.engine);
            let objects = life(&cluster, profile).await;
            for (name, object) in &expected {
                assert_eq!(objects.get(name), Some(object), "{profile:?} {failing:?}: {name}");
            }
            assert_eq!(objects.len(), expected.len());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_did_not_opt_in_never_reaches_the_module() {
    let cluster = cluster(Options::default()).await;
    let admin = cluster.admin();
    admin.create(Set::new("plain", 2).object()).await.expect("it is valid");
    cluster.api.wait_for(|view| is_ready(view, "plain", 2), SOON).await;
    admin.scale(NAMESPACE, "plain", 1).await.expect("it may be scaled");
    cluster.api.wait_for(|view| is_ready(view, "plain", 1), SOON).await;
    assert_eq!(cluster.engine.evaluations(), 0);
    let binding = json!({ "metadata": { "annotations": { "statefulset-scheduling.dev/pod-group": "{}" } } });
    let forged = admin.merge(Resource::StatefulSets, NAMESPACE, "plain", binding).await.expect("it is admitted");
    assert!(forged["metadata"]["annotations"].is_null(), "but the binding is not kept: {forged}");
    assert_eq!(cluster.engine.evaluations(), 1, "in its final form it has nothing to look at");
}
