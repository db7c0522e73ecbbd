//! The server does to an unmodified client what an API server does.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster_apiserver::{
    ADMIN, Admission, Answer, ApiServer, Config, FailurePolicy, Fault, Gates, ManualClock, Occasion, PROTECTION, Phase,
    Profile, Resource, Rule, Verb, View, Webhook, WebhookError, namespaces, podgroup_protection,
};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use k8s_openapi::jiff::Timestamp;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, EvictParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy, WatchEvent, WatchParams,
};
use kube::core::{GroupVersionKind, Status};
use kube::discovery::Discovery;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(10);

async fn start(config: Config) -> ApiServer {
    ApiServer::start(Config { namespaces: vec!["prod".into()], ..config }).await.expect("there is a port")
}

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is such an object")
}

fn set(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": name },
        "spec": {
            "replicas": 3,
            "serviceName": name,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "registry.example/app:1" }] },
            },
        },
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "registry.example/app:1" }] },
    })
}

fn workload(name: &str, count: i64) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": { "name": name },
        "spec": { "podGroupTemplates": [{ "name": "web", "schedulingPolicy": { "gang": { "minCount": count } } }] },
    })
}

fn pod_group(name: &str) -> PodGroup {
    object(json!({
        "metadata": { "name": name },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 3 } } },
    }))
}

fn status<T: Debug>(result: Result<T, kube::Error>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("a Status was expected: {other:?}"),
    }
}

fn names<T: kube::Resource>(items: &[T]) -> Vec<String> {
    items.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test]
async fn discovery_tells_what_is_served() {
    let server = start(Config::default()).await;
    let client = server.client_as(ADMIN);
    assert_eq!(client.apiserver_version().await.expect("a version").minor, "37");
    let discovery = Discovery::new(client).run().await.expect("it can be discovered");
    for (group, version, kind) in [
        ("", "v1", "Pod"),
        ("apps", "v1", "StatefulSet"),
        ("scheduling.k8s.io", "v1beta1", "PodGroup"),
        ("scheduling.k8s.io", "v1alpha3", "CompositePodGroup"),
        ("events.k8s.io", "v1", "Event"),
        ("resource.k8s.io", "v1", "ResourceClaim"),
    ] {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        assert!(discovery.resolve_gvk(&gvk).is_some(), "{gvk:?}");
    }
    let closed = start(Config { gates: Gates::upstream(), ..Config::default() }).await;
    let groups: Api<PodGroup> = Api::namespaced(closed.client_as(ADMIN), "prod");
    assert_eq!(status(groups.list(&ListParams::default()).await).code, 404);
    let pods: Api<Pod> = Api::namespaced(closed.client_as(ADMIN), "prod");
    let mut grouped = pod("p");
    grouped["spec"]["schedulingGroup"] = json!({ "podGroupName": "g" });
    let created = pods.create(&PostParams::default(), &object(grouped)).await.expect("it is created");
    assert!(created.spec.expect("a spec").scheduling_group.is_none(), "it is dropped silently");
}

#[tokio::test]
async fn an_object_lives_its_life() {
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse::<Timestamp>().expect("it is a time"));
    let server = start(Config { clock: Arc::new(clock.clone()), ..Config::default() }).await;
    let sets: Api<StatefulSet> = Api::namespaced(server.client_as(ADMIN), "prod");
    let created = sets.create(&PostParams::default(), &object(set("web"))).await.expect("it is created");
    assert_eq!(created.creation_timestamp().expect("a time").0.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!((created.metadata.generation, created.uid().map(|uid| uid.len())), (Some(1), Some(36)));
    assert_eq!(created.spec.pod_management_policy.as_deref(), Some("OrderedReady"));
    assert!(
        status(sets.create(&PostParams::default(), &created).await)
            .message
            .contains("resourceVersion should not be set")
    );
    assert_eq!(status(sets.create(&PostParams::default(), &object(set("web"))).await).reason, "AlreadyExists");

    let mut changed = created.clone();
    changed.spec.replicas = Some(5);
    changed.status.get_or_insert_default().replicas = 7;
    let updated = sets.replace("web", &PostParams::default(), &changed).await.expect("it is updated");
    assert_eq!((updated.metadata.generation, updated.status.as_ref().map(|it| it.replicas)), (Some(2), Some(0)));
    assert_eq!(status(sets.replace("web", &PostParams::default(), &changed).await).reason, "Conflict");

    let mut with_status = updated.clone();
    with_status.status.get_or_insert_default().replicas = 7;
    with_status.spec.replicas = Some(9);
    let stored = sets.replace_status("web", &PostParams::default(), &with_status).await.expect("it is updated");
    assert_eq!((stored.status.map(|it| it.replicas), stored.spec.replicas), (Some(7), Some(5)));
    assert_eq!(stored.metadata.generation, Some(2));

    let patch = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": "app:2" }] } } } });
    let patched = sets.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await.expect("it is patched");
    let containers = patched.spec.template.spec.expect("a spec").containers;
    assert_eq!(
        (containers[0].image.as_deref(), containers[0].resources.is_some()),
        (Some("app:2"), Some(()).is_some())
    );

    let forbidden = json!({ "spec": { "serviceName": "other" } });
    let refused = status(sets.patch("web", &PatchParams::default(), &Patch::Merge(forbidden)).await);
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));

    let version = sets.get("web").await.expect("it is there").resource_version();
    let same = json!({ "metadata": { "labels": null } });
    let same = sets.patch("web", &PatchParams::default(), &Patch::Merge(same)).await.expect("it is patched");
    assert_eq!(same.resource_version(), version, "nothing changed");
    assert!(sets.delete("web", &DeleteParams::default()).await.expect("it is deleted").is_right());
    assert_eq!(status(sets.get("web").await).code, 404);
}

#[tokio::test]
async fn the_profile_decides_about_spec_scheduling() {
    let mut gang = set("web");
    gang["spec"]["podManagementPolicy"] = "Parallel".into();
    gang["spec"]["scheduling"] = json!({ "schedulingPolicy": { "gang": {} } });
    let resource = ApiResource::erase::<StatefulSet>(&());
    for (profile, kept) in [(Profile::V1_37, false), (Profile::Kep, true)] {
        let server = start(Config { profile, ..Config::default() }).await;
        let sets: Api<DynamicObject> = Api::namespaced_with(server.client_as(ADMIN), "prod", &resource);
        let created = sets.create(&PostParams::default(), &object(gang.clone())).await.expect("it is created");
        assert_eq!(created.data["spec"].get("scheduling").is_some(), kept);
        let refused = json!({ "spec": { "scheduling": null } });
        let patched = sets.patch("web", &PatchParams::default(), &Patch::Merge(refused)).await;
        assert_eq!(patched.is_err(), kept);
        if kept {
            let status = status(patched);
            assert!(status.message.contains("spec.scheduling: Invalid value: null: field is immutable"), "{status:?}");
            let mut ordered = gang.clone();
            ordered["metadata"]["name"] = "ordered".into();
            ordered["spec"]["podManagementPolicy"] = "OrderedReady".into();
            let refused = self::status(sets.create(&PostParams::default(), &object(ordered)).await);
            assert!(refused.message.contains("gang scheduling requires podManagementPolicy: Parallel"), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn lists_are_selected_and_paged() {
    let server = start(Config::default()).await;
    let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
    for name in ["a", "b", "c", "d"] {
        pods.create(&PostParams::default(), &object(pod(name))).await.expect("it is created");
    }
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "a" }, "target": { "kind": "Node", "name": "n1" },
    });
    let _: Status =
        object(pods.create_subresource("binding", "a", &PostParams::default(), &binding).await.expect("it is bound"));
    let again: Result<Value, _> = pods.create_subresource("binding", "a", &PostParams::default(), &binding).await;
    assert!(status(again).message.ends_with("pod a is already assigned to node \"n1\""));
    let on_node = pods.list(&ListParams::default().fields("spec.nodeName=n1,status.phase!=Failed")).await;
    assert_eq!(names(&on_node.expect("a list").items), ["a"]);
    let by_label = pods.list(&ListParams::default().labels("app in (web),tier notin (x)")).await;
    assert_eq!(by_label.expect("a list").items.len(), 4);

    let first = pods.list(&ListParams::default().limit(3)).await.expect("a page");
    assert_eq!(first.metadata.remaining_item_count, Some(1));
    pods.delete("d", &DeleteParams::default()).await.expect("it is deleted");
    let token = first.metadata.continue_.expect("there is more");
    let second = pods.list(&ListParams::default().limit(3).continue_token(&token)).await.expect("a page");
    assert_eq!(names(&second.items), ["d"], "as it was");
    server.expire_history();
    let old = pods.list(&ListParams::default().limit(3).continue_token(&token)).await;
    assert_eq!(status(old).reason, "Expired");
    assert_eq!(pods.list_metadata(&ListParams::default()).await.expect("a list").items.len(), 3);
}

#[tokio::test]
async fn watches_resume_follow_selectors_and_end_with_410() {
    let server = start(Config { history: 3, ..Config::default() }).await;
    let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
    let version =
        pods.list(&ListParams::default()).await.expect("a list").metadata.resource_version.expect("a version");
    pods.create(&PostParams::default(), &object(pod("a"))).await.expect("it is created");
    let parameters = WatchParams::default().labels("app=web");
    let mut events = pin!(pods.watch(&parameters, &version).await.expect("a watch"));
    let event = events.try_next().await.expect("no error").expect("an event");
    assert!(matches!(event, WatchEvent::Added(pod) if pod.name_any() == "a"));
    let label = json!({ "metadata": { "labels": { "app": "db" } } });
    pods.patch("a", &PatchParams::default(), &Patch::Merge(label)).await.expect("it is patched");
    let event = events.try_next().await.expect("no error").expect("an event");
    assert!(matches!(event, WatchEvent::Deleted(pod) if pod.name_any() == "a"), "it left the view");
    server.send_bookmarks(Resource::Pods);
    let event = events.try_next().await.expect("no error").expect("an event");
    assert!(matches!(event, WatchEvent::Bookmark(_)));
    for name in ["b", "c", "d", "e"] {
        pods.create(&PostParams::default(), &object(pod(name))).await.expect("it is created");
    }
    let mut late = pin!(pods.watch(&WatchParams::default(), &version).await.expect("a watch"));
    let event = late.try_next().await.expect("no error").expect("an event");
    assert!(matches!(event, WatchEvent::Error(status) if status.code == 410));
}

#[tokio::test]
async fn the_watcher_of_kube_survives_cuts_and_restarts() {
    let mut server = start(Config::default()).await;
    let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
    pods.create(&PostParams::default(), &object(pod("a"))).await.expect("it is created");
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let watched = watcher(pods.clone(), config).default_backoff().touched_objects();
        let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let watching = tokio::spawn(watched.for_each(move |pod| {
            if let Ok(pod) = pod {
                // Nobody listens any more when the test is over.
                let _ = sender.send(pod);
            }
            std::future::ready(())
        }));
        assert_eq!(seen.recv().await.expect("an object").name_any(), "a");
        server.wait_for(|view| view.watches(Resource::Pods) > 0, SOON).await;
        server.cut_watches(Resource::Pods);
        server.stop().await;
        server.restart().await.expect("the port is free");
        let wanted = server.look(|view| view.version().to_string());
        let label = json!({ "metadata": { "labels": { "touched": wanted } } });
        pods.patch("a", &PatchParams::default(), &Patch::Merge(label)).await.expect("it is patched");
        let found = tokio::time::timeout(SOON, async {
            while seen.recv().await.expect("watchers do not end").labels().get("touched") != Some(&wanted) {}
        });
        found.await.expect("it is seen");
        watching.abort();
        server.wait_for(|view| view.watches(Resource::Pods) == 0, SOON).await;
    }
}

#[tokio::test]
async fn patches_of_every_kind_and_the_scale() {
    let server = start(Config::default()).await;
    let client = server.client_as(ADMIN);
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "prod");
    let apply = PatchParams::apply("tester");
    let first = sets.patch("web", &apply, &Patch::Apply(set("web"))).await.expect("it is created by the apply");
    let again = sets.patch("web", &apply, &Patch::Apply(set("web"))).await.expect("it is applied");
    assert_eq!(first.resource_version(), again.resource_version(), "the same again changes nothing");
    assert_eq!(again.managed_fields()[0].manager.as_deref(), Some("tester"));

    let scale = sets.get_scale("web").await.expect("a scale");
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(3));
    let patch = json!({ "spec": { "replicas": 4 } });
    let scaled = sets.patch_scale("web", &PatchParams::default(), &Patch::Merge(patch)).await.expect("it is scaled");
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas), Some(4));
    assert_eq!(sets.get("web").await.expect("it is there").metadata.generation, Some(2));
    let negative = json!({ "spec": { "replicas": -1 } });
    let refused = status(sets.patch_scale("web", &PatchParams::default(), &Patch::Merge(negative)).await);
    assert!(refused.message.starts_with("Scale.autoscaling \"web\" is invalid: spec.replicas"), "{refused:?}");

    let workloads: Api<Workload> = Api::namespaced(client, "prod");
    workloads.create(&PostParams::default(), &object(workload("w", 3))).await.expect("it is created");
    let count_path = "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount";
    let step = |test: i64, replace: i64| {
        let operations = json!([
            { "op": "test", "path": count_path, "value": test },
            { "op": "replace", "path": count_path, "value": replace },
        ]);
        Patch::Json::<()>(object(operations))
    };
    workloads.patch("w", &PatchParams::default(), &step(3, 5)).await.expect("it fits");
    assert_eq!(status(workloads.patch("w", &PatchParams::default(), &step(3, 6)).await).code, 422);
    let more = json!({ "spec": { "podGroupTemplates": [] } });
    assert_eq!(status(workloads.patch("w", &PatchParams::default(), &Patch::Merge(more)).await).code, 422);
}

#[tokio::test]
async fn an_apply_of_a_lease_does_not_take_what_somebody_else_set() {
    let server = start(Config::default()).await;
    let leases: Api<Lease> = Api::namespaced(server.client_as(ADMIN), "prod");
    let lease = |holder: &str| {
        Patch::Apply(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "l" },
            "spec": { "holderIdentity": holder },
        }))
    };
    leases.patch("l", &PatchParams::apply("a"), &lease("a")).await.expect("it is created");
    let refused = status(leases.patch("l", &PatchParams::apply("b"), &lease("b")).await);
    assert_eq!(refused.reason, "Conflict");
    leases.patch("l", &PatchParams::apply("b").force(), &lease("b")).await.expect("it is forced");
    assert_eq!(status(leases.patch("l", &PatchParams::apply("a"), &lease("a")).await).code, 409);
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let server = start(Config::default()).await;
    let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    pods.create(&dry, &object(pod("a"))).await.expect("it would be created");
    assert!(server.list(Resource::Pods).is_empty());
    pods.create(&PostParams::default(), &object(pod("a"))).await.expect("it is created");
    let before = server.list(Resource::Pods);
    let label = json!({ "metadata": { "labels": { "x": "y" } } });
    let patched = pods.patch("a", &PatchParams { dry_run: true, ..PatchParams::default() }, &Patch::Merge(label)).await;
    assert_eq!(patched.expect("it would be patched").labels().get("x").map(String::as_str), Some("y"));
    pods.delete("a", &DeleteParams { dry_run: true, ..DeleteParams::default() }).await.expect("it would be deleted");
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    pods.delete_collection(&dry, &ListParams::default()).await.expect("it would be deleted");
    assert_eq!(server.list(Resource::Pods), before);
}

#[tokio::test]
async fn a_bound_pod_waits_for_its_kubelet_and_evictions_mark_it() {
    let server = start(Config::default()).await;
    let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
    for name in ["a", "b"] {
        let mut bound = pod(name);
        bound["spec"]["nodeName"] = "n1".into();
        pods.create(&PostParams::default(), &object(bound)).await.expect("it is created");
    }
    let waiting = pods.delete("a", &DeleteParams::default()).await.expect("it is marked").left().expect("the pod");
    assert_eq!(waiting.metadata.deletion_grace_period_seconds, Some(30));
    assert_eq!(waiting.metadata.generation, Some(2));
    let kubelet: Api<Pod> = Api::namespaced(server.client_as("system:node:n1"), "prod");
    let uid = Preconditions { uid: waiting.uid(), resource_version: None };
    let last = DeleteParams { grace_period_seconds: Some(0), preconditions: Some(uid), ..DeleteParams::default() };
    kubelet.delete("a", &last).await.expect("it is gone");
    assert_eq!(server.count(Some("system:node:n1"), Verb::Delete, Resource::Pods), 1);
    pods.evict("b", &EvictParams::default()).await.expect("it is evicted");
    let evicted = pods.get("b").await.expect("it waits");
    assert!(evicted.metadata.deletion_timestamp.is_some());
    let conditions = evicted.status.expect("a status").conditions.expect("conditions");
    assert!(conditions.iter().any(|condition| condition.type_ == "DisruptionTarget"));
    let wrong = Preconditions { uid: Some("other".into()), resource_version: None };
    let wrong = DeleteParams { preconditions: Some(wrong), ..DeleteParams::default() };
    assert_eq!(status(pods.delete("b", &wrong).await).code, 409);
}

#[tokio::test]
async fn propagation_leaves_its_finalizers() {
    let server = start(Config::default()).await;
    let sets: Api<StatefulSet> = Api::namespaced(server.client_as(ADMIN), "prod");
    for (policy, finalizer) in
        [(PropagationPolicy::Foreground, "foregroundDeletion"), (PropagationPolicy::Orphan, "orphan")]
    {
        sets.create(&PostParams::default(), &object(set("web"))).await.expect("it is created");
        let parameters = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        let waiting = sets.delete("web", &parameters).await.expect("it is marked").left().expect("the set");
        assert_eq!(waiting.finalizers(), [finalizer]);
        let release = json!({ "metadata": { "finalizers": null } });
        sets.patch("web", &PatchParams::default(), &Patch::Merge(release)).await.expect("it is released");
        assert_eq!(status(sets.get("web").await).code, 404);
    }
}

#[tokio::test]
async fn a_namespace_is_emptied_and_then_gone() {
    let server = start(Config::default()).await;
    let interval = Duration::from_millis(10);
    let controller = tokio::spawn(namespaces::run(server.client_as(namespaces::USER), interval));
    let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
    let mut bound = pod("bound");
    bound["spec"]["nodeName"] = "n1".into();
    pods.create(&PostParams::default(), &object(bound)).await.expect("it is created");
    let sets: Api<StatefulSet> = Api::namespaced(server.client_as(ADMIN), "prod");
    sets.create(&PostParams::default(), &object(set("web"))).await.expect("it is created");
    let all: Api<Namespace> = Api::all(server.client_as(ADMIN));
    all.delete("prod", &DeleteParams::default()).await.expect("it is marked");
    let late = status(sets.create(&PostParams::default(), &object(set("late"))).await);
    assert_eq!(
        (late.code, late.details.map(|details| details.causes[0].reason.clone())),
        (403, Some("NamespaceTerminating".into()))
    );
    server.wait_for(|view| view.len(Resource::StatefulSets) == 0, SOON).await;
    server
        .wait_for(
            |view| {
                let waiting = view.get(Resource::Pods, "prod", "bound");
                waiting.is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
            },
            SOON,
        )
        .await;
    assert!(server.get(Resource::Namespaces, "", "prod").is_some(), "it waits for the pod");
    pods.delete("bound", &DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() })
        .await
        .expect("gone");
    server.wait_for(|view| view.get(Resource::Namespaces, "", "prod").is_none(), SOON).await;
    assert_eq!(status(all.delete("default", &DeleteParams::default()).await).code, 403);
    controller.abort();
}

#[tokio::test]
async fn a_pod_group_is_released_when_its_pods_are_gone() {
    let server = start(Config::default()).await;
    let user = podgroup_protection::USER;
    let controller = tokio::spawn(podgroup_protection::run(server.client_as(user), Duration::from_millis(10)));
    let groups: Api<PodGroup> = Api::namespaced(server.client_as(ADMIN), "prod");
    let created = groups.create(&PostParams::default(), &pod_group("g")).await.expect("it is created");
    assert_eq!(created.finalizers(), [PROTECTION]);
    assert!(created.spec.disruption_mode.is_some_and(|mode| mode.single.is_some()));
    assert_eq!(created.spec.priority, Some(0));
    let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
    let mut member = pod("member");
    member["spec"]["schedulingGroup"] = json!({ "podGroupName": "g" });
    pods.create(&PostParams::default(), &object(member.clone())).await.expect("it is created");
    groups.delete("g", &DeleteParams::default()).await.expect("it is marked");
    member["metadata"]["name"] = "late".into();
    let late = status(pods.create(&PostParams::default(), &object(member)).await);
    assert!(late.message.contains("cannot create Pod referencing PodGroup \"g\" because it is being deleted"));
    let gone = |view: &View<'_>| view.get(Resource::PodGroups, "prod", "g").is_none();
    assert!(!server.reaches(gone, Duration::from_millis(50)).await, "a pod uses it");
    pods.delete("member", &DeleteParams::default()).await.expect("it is deleted");
    server.wait_for(|view| view.get(Resource::PodGroups, "prod", "g").is_none(), SOON).await;
    controller.abort();
}

#[tokio::test]
async fn priorities_come_from_classes() {
    let server = start(Config::default()).await;
    let classes: Api<PriorityClass> = Api::all(server.client_as(ADMIN));
    let class = json!({ "metadata": { "name": "high" }, "value": 1000 });
    classes.create(&PostParams::default(), &object(class)).await.expect("it is created");
    let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
    let mut important = pod("a");
    important["spec"]["priorityClassName"] = "high".into();
    let created = pods.create(&PostParams::default(), &object(important)).await.expect("it is created");
    assert_eq!(created.spec.and_then(|spec| spec.priority), Some(1000));
}

/// Stamps pods that are created, denies the deletion of one, and remembers what it was asked.
#[derive(Default)]
struct Policy {
    asked: Mutex<Vec<Value>>,
    calls: AtomicUsize,
}

impl Admission for Policy {
    fn review(&self, request: Value, phase: Phase) -> BoxFuture<'_, Result<Answer, WebhookError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::Relaxed);
            self.asked.lock().expect("no test panics in here").push(request.clone());
            if phase == Phase::Validating
                && request["operation"] == "DELETE"
                && request["oldObject"]["metadata"]["name"] == "kept"
            {
                return Ok(Answer::deny(403, "it is kept"));
            }
            if phase == Phase::Mutating && request["operation"] == "CREATE" {
                let mut object = request["object"].clone();
                object["spec"]["schedulingGroup"] = json!({ "podGroupName": "stamped" });
                let warnings = vec!["it is \"stamped\"".to_owned()];
                return Ok(Answer { warnings, ..Answer::patch(object) });
            }
            Ok(Answer::allow())
        })
    }
}

#[tokio::test]
async fn webhooks_stamp_warn_and_deny() {
    let server = start(Config::default()).await;
    let policy = Arc::new(Policy::default());
    let rule = |operations: &[&str]| vec![Rule::new("", "v1", "pods", operations)];
    let mut stamping = Webhook::new("stamp.example.dev", Phase::Mutating, rule(&["CREATE"]), policy.clone());
    stamping.object_selector = json!({ "matchLabels": { "app": "web" } });
    let keeping = Webhook::new("keep.example.dev", Phase::Validating, rule(&["DELETE"]), policy.clone());
    server.set_webhooks(vec![stamping, keeping]);
    let pods: Api<Pod> =
        Api::namespaced(server.client_as("system:serviceaccount:kube-system:statefulset-controller"), "prod");
    let mut other = pod("other");
    other["metadata"]["labels"] = json!({});
    pods.create(&PostParams::default(), &object(other)).await.expect("it is created");
    assert_eq!(policy.calls.load(Ordering::Relaxed), 0, "the selector is not met");
    for name in ["kept", "gone"] {
        let mut generated = pod(name);
        generated["metadata"]["generateName"] = "never-".into();
        let created = pods.create(&PostParams::default(), &object(generated)).await.expect("it is created");
        let group = created.spec.and_then(|spec| spec.scheduling_group).and_then(|group| group.pod_group_name);
        assert_eq!(group.as_deref(), Some("stamped"));
    }
    let refused = status(pods.delete("kept", &DeleteParams::default()).await);
    assert_eq!((refused.code, refused.reason.as_str()), (403, ""));
    assert_eq!(refused.message, "admission webhook \"keep.example.dev\" denied the request: it is kept");
    let refused =
        status(pods.delete_collection(&DeleteParams::default(), &ListParams::default().labels("app=web")).await);
    assert_eq!(refused.code, 403);
    assert!(server.get(Resource::Pods, "prod", "gone").is_none(), "it came first");
    pods.evict("kept", &EvictParams::default()).await.expect("an eviction is no deletion for webhooks");
    let asked = policy.asked.lock().expect("no test panics in here").clone();
    let created = &asked[0];
    assert_eq!(created["userInfo"]["username"], "system:serviceaccount:kube-system:statefulset-controller");
    assert_eq!(
        (&created["name"], &created["namespace"], &created["dryRun"]),
        (&json!("kept"), &json!("prod"), &json!(false))
    );
    assert!(created["object"]["metadata"].get("uid").is_none(), "it has none yet");
    let one = asked.iter().find(|it| it["operation"] == "DELETE").expect("a deletion");
    assert!(one.get("object").is_none() && one["oldObject"]["metadata"]["uid"].is_string());
    let collected = asked.iter().rfind(|it| it["operation"] == "DELETE").expect("a deletion");
    assert!(collected.get("name").is_none(), "the deletion of a collection names nothing");
}

#[tokio::test]
async fn warnings_reach_the_client() {
    let server = start(Config::default()).await;
    let policy = Arc::new(Policy::default());
    let rules = vec![Rule::new("", "v1", "pods", &["CREATE"])];
    server.set_webhooks(vec![Webhook::new("stamp.example.dev", Phase::Mutating, rules, policy)]);
    let mut unknown = pod("a");
    unknown["spec"]["colour"] = "red".into();
    let request = axum::http::Request::post("/api/v1/namespaces/prod/pods")
        .header("content-type", "application/json")
        .body(kube::client::Body::from(serde_json::to_vec(&unknown).expect("it is JSON")))
        .expect("it is a request");
    let response = server.client_as(ADMIN).send(request).await.expect("an answer");
    assert_eq!(response.status().as_u16(), 201);
    let warnings: Vec<_> = response.headers().get_all("warning").iter().map(|it| it.to_str().expect("text")).collect();
    assert_eq!(warnings, [r#"299 - "unknown field \"spec.colour\"""#, r#"299 - "it is \"stamped\"""#]);
}

/// Never answers.
struct Down;

impl Admission for Down {
    fn review(&self, _: Value, _: Phase) -> BoxFuture<'_, Result<Answer, WebhookError>> {
        Box::pin(async { Err(WebhookError::Failed("connection refused".into())) })
    }
}

#[tokio::test]
async fn a_webhook_that_is_down_fails_closed_or_open() {
    let server = start(Config::default()).await;
    let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
    let rules = vec![Rule::new("", "v1", "pods", &["*"])];
    let mut webhook = Webhook::new("down.example.dev", Phase::Validating, rules, Arc::new(Down));
    server.set_webhooks(vec![webhook.clone()]);
    let failed = status(pods.create(&PostParams::default(), &object(pod("a"))).await);
    assert_eq!(failed.code, 500);
    assert!(failed.message.contains("failed calling webhook \"down.example.dev\""), "{failed:?}");
    webhook.failure_policy = FailurePolicy::Ignore;
    server.set_webhooks(vec![webhook]);
    pods.create(&PostParams::default(), &object(pod("a"))).await.expect("it goes on");
}

#[tokio::test]
async fn faults_happen_to_those_they_are_meant_for() {
    let server = start(Config::default()).await;
    server.set_faults(|occasion: &Occasion<'_>| match (occasion.user, occasion.verb, occasion.n) {
        ("unlucky", Verb::Create, 0) => Some(Fault::DropBefore),
        ("unlucky", Verb::Create, 1) => Some(Fault::DropAfter),
        ("unlucky", Verb::Get, 0) => Some(Fault::Status(429, Some(1))),
        ("unlucky", Verb::Watch, 0) => Some(Fault::CutAfter(1)),
        _ => None,
    });
    let unlucky: Api<Pod> = Api::namespaced(server.client_as("unlucky"), "prod");
    assert!(unlucky.create(&PostParams::default(), &object(pod("a"))).await.is_err());
    assert!(server.list(Resource::Pods).is_empty(), "it was not done");
    assert!(unlucky.create(&PostParams::default(), &object(pod("a"))).await.is_err());
    assert_eq!(server.list(Resource::Pods).len(), 1, "it was done");
    assert_eq!(status(unlucky.get("a").await).code, 429);
    unlucky.get("a").await.expect("once only");
    let mut events = pin!(unlucky.watch(&WatchParams::default(), "0").await.expect("a watch"));
    assert!(events.try_next().await.expect("no error").is_some());
    assert!(!matches!(events.try_next().await, Ok(Some(_))), "it is cut");
    let lucky: Api<Pod> = Api::namespaced(server.client_as("lucky"), "prod");
    lucky.get("a").await.expect("nothing happens to others");
    let counts: BTreeMap<_, _> = server.look(|view| view.counts().clone());
    assert_eq!(counts.iter().filter(|((user, ..), _)| &**user == "unlucky").map(|(_, count)| count).sum::<u64>(), 5);
    let answers: Vec<_> = server.requests().iter().map(|request| request.answer).collect();
    assert_eq!(answers[..3], [None, None, Some(429)]);
}

#[tokio::test]
async fn uids_and_names_repeat_with_the_seed() {
    let run = async |seed| {
        let server = start(Config { seed, ..Config::default() }).await;
        let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
        let mut generated = pod("x");
        generated["metadata"] = json!({ "generateName": "web-" });
        let created = pods.create(&PostParams::default(), &object(generated)).await.expect("it is created");
        (created.name_any(), created.uid())
    };
    let first = run(1).await;
    assert_eq!(first.0.len(), "web-".len() + 5);
    assert_eq!(run(1).await, first);
    assert_ne!(run(2).await, first);
}

#[tokio::test]
async fn events_are_one_store_with_two_views() {
    let server = start(Config::default()).await;
    let client = server.client_as(ADMIN);
    let new: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(client.clone(), "prod");
    let event = json!({
        "metadata": { "name": "e" }, "regarding": { "kind": "Pod", "name": "a", "namespace": "prod" },
        "note": "hello", "reason": "Greeted", "type": "Normal", "reportingController": "tester",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    });
    new.create(&PostParams::default(), &object(event)).await.expect("it is created");
    let core: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(client, "prod");
    let found = core.list(&ListParams::default().fields("involvedObject.name=a")).await.expect("a list").items;
    assert_eq!((found[0].message.as_deref(), found[0].reporting_component.as_deref()), (Some("hello"), Some("tester")));
    let found = new.list(&ListParams::default().fields("regarding.name=a")).await.expect("a list").items;
    assert_eq!(found[0].note.as_deref(), Some("hello"));
}

#[tokio::test]
async fn what_an_older_server_stored_can_be_put() {
    let server = start(Config::default()).await;
    let mut dotted = set("web.example");
    dotted["metadata"]["namespace"] = "prod".into();
    server.put(Resource::StatefulSets, dotted);
    let sets: Api<StatefulSet> = Api::namespaced(server.client_as(ADMIN), "prod");
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    sets.patch("web.example", &PatchParams::default(), &Patch::Merge(label))
        .await
        .expect("its name is not judged again");
    let nodes: Api<Node> = Api::all(server.client_as("system:node:n1"));
    let node = json!({ "metadata": { "name": "n1" }, "status": { "capacity": { "cpu": "4" } } });
    let node = nodes.create(&PostParams::default(), &object(node)).await.expect("a node registers with its status");
    assert!(node.status.and_then(|status| status.allocatable).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_race_all_arrive_and_a_burst_is_quick() {
    let server = start(Config::default()).await;
    server.set_quiet(true);
    let pods: Api<Pod> = Api::namespaced(server.client_as(ADMIN), "prod");
    let begun = std::time::Instant::now();
    let parameters = PostParams::default();
    let burst = futures::stream::iter(0..500).map(|index| {
        let (pods, parameters) = (&pods, &parameters);
        async move { pods.create(parameters, &object(pod(&format!("p-{index}")))).await }
    });
    burst.buffer_unordered(50).try_for_each(|_| std::future::ready(Ok(()))).await.expect("all are created");
    assert_eq!(server.list(Resource::Pods).len(), 500);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let labels = futures::stream::iter(0..20).map(|index| {
        let (pods, key) = (pods.clone(), format!("k{index}"));
        async move {
            let patch = json!({ "metadata": { "labels": { key: "x" } } });
            pods.patch("p-0", &PatchParams::default(), &Patch::Merge(patch)).await
        }
    });
    labels.buffer_unordered(4).try_for_each(|_| std::future::ready(Ok(()))).await.expect("none is lost");
    assert_eq!(pods.get("p-0").await.expect("it is there").labels().len(), 21);
}
