//! The fake API server does to the real client what an API server does.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::{ObjectMeta, PartialObjectMeta, Status};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

mod fake_api;

use fake_api::{FakeApi, Fault, Foreseen, PROTECTION, Resource, SchedulingApi, Verb};

const SOON: Duration = Duration::from_secs(10);

async fn start() -> FakeApi {
    FakeApi::start(Foreseen::everything()).await
}

fn set(namespace: &str, name: &str) -> Value {
    json!({
        "metadata": { "namespace": namespace, "name": name },
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

fn workload(name: &str, count: i32) -> Workload {
    let gang = json!({ "name": "web", "schedulingPolicy": { "gang": { "minCount": count } } });
    let spec = json!({ "podGroupTemplates": [gang] });
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).expect("it is a Workload")
}

fn pod_group(name: &str) -> PodGroup {
    let spec = json!({ "schedulingPolicy": { "gang": { "minCount": 3 } } });
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).expect("it is a PodGroup")
}

/// The `Status` in an error.
fn status<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("a Status was expected: {other:?}"),
    }
}

fn code_and_reason<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    let status = status(result);
    (status.code, status.reason)
}

#[tokio::test]
async fn lists_all_namespaces_and_one_and_pages_stay_as_the_first_saw_them() {
    let fake = start().await;
    for (namespace, name) in [("b", "x"), ("a", "z"), ("a", "y")] {
        fake.put(Resource::StatefulSets, set(namespace, name));
    }
    let all: Api<StatefulSet> = Api::all(fake.client());
    let names = |sets: &[StatefulSet]| sets.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
    let list = all.list(&ListParams::default()).await.expect("a list");
    assert_eq!(names(&list.items), ["y", "z", "x"]);
    assert_eq!(list.items[0].spec.replicas, Some(3));
    let one: Api<StatefulSet> = Api::namespaced(fake.client(), "a");
    assert_eq!(names(&one.list(&ListParams::default()).await.expect("a list").items), ["y", "z"]);

    let first = all.list(&ListParams::default().limit(2)).await.expect("the first page");
    assert_eq!(first.metadata.remaining_item_count, Some(1));
    fake.remove(Resource::StatefulSets, "b", "x");
    fake.put(Resource::StatefulSets, set("c", "new"));
    let token = first.metadata.continue_.expect("there is more");
    let second = all.list(&ListParams::default().limit(2).continue_token(&token)).await.expect("the second page");
    assert_eq!(names(&second.items), ["x"]);
    assert_eq!((second.metadata.continue_, second.metadata.resource_version), (None, first.metadata.resource_version));

    fake.expire_history();
    let old = all.list(&ListParams::default().limit(2).continue_token(&token)).await;
    assert_eq!(code_and_reason(old), (410, "Expired".into()));
}

#[tokio::test]
async fn metadata_lists_have_only_metadata() {
    let fake = start().await;
    fake.put(Resource::StatefulSets, set("a", "web"));
    fake.put(Resource::StatefulSets, set("a", "web2"));
    let sets: Api<StatefulSet> = Api::all(fake.client());
    let list = sets.list_metadata(&ListParams::default().limit(1)).await.expect("a list");
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.items[0].name_any(), "web");
    assert!(list.items[0].uid().is_some());
    assert!(list.metadata.continue_.is_some());
    let sets: Api<StatefulSet> = Api::namespaced(fake.client(), "a");
    assert_eq!(sets.get_metadata("web2").await.expect("it is there").name_any(), "web2");
}

#[tokio::test]
async fn pods_are_selected_by_label_in_lists_and_watches() {
    let fake = start().await;
    let pod =
        |name: &str, app: &str| json!({ "metadata": { "namespace": "a", "name": name, "labels": { "app": app } } });
    fake.put(Resource::Pods, pod("web-0", "web"));
    fake.put(Resource::Pods, pod("db-0", "db"));
    let pods: Api<Pod> = Api::namespaced(fake.client(), "a");
    let list = pods.list(&ListParams::default().labels("app=web")).await.expect("a list");
    assert_eq!(list.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["web-0"]);

    let version = list.metadata.resource_version.expect("a list has a version");
    let watch = pods.watch(&WatchParams::default().labels("app=web"), &version).await.expect("a watch");
    let mut watch = pin!(watch);
    fake.modify(Resource::Pods, "a", "web-0", |pod| pod["metadata"]["labels"]["app"] = "db".into());
    fake.modify(Resource::Pods, "a", "db-0", |pod| pod["metadata"]["labels"]["app"] = "web".into());
    let first = watch.try_next().await.expect("no error").expect("an event");
    assert!(matches!(first, WatchEvent::Deleted(pod) if pod.name_any() == "web-0"));
    let second = watch.try_next().await.expect("no error").expect("an event");
    assert!(matches!(second, WatchEvent::Added(pod) if pod.name_any() == "db-0"));
}

#[tokio::test]
async fn the_watcher_sees_the_state_and_every_change() {
    let fake = start().await;
    fake.put(Resource::StatefulSets, set("a", "web"));
    let sets: Api<StatefulSet> = Api::all(fake.client());
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let mut events = pin!(watcher(sets.clone(), config));
        let mut seen = Vec::new();
        while seen.last().is_none_or(|last| last != "deleted new") {
            let event = events.try_next().await.expect("no error").expect("watchers do not end");
            seen.push(match event {
                watcher::Event::Init => "init".into(),
                watcher::Event::InitApply(set) => format!("initial {}", set.name_any()),
                watcher::Event::InitDone => {
                    fake.put(Resource::StatefulSets, set("a", "new"));
                    fake.remove(Resource::StatefulSets, "a", "new");
                    "done".into()
                }
                watcher::Event::Apply(set) => format!("applied {}", set.name_any()),
                watcher::Event::Delete(set) => format!("deleted {}", set.name_any()),
            });
        }
        assert_eq!(seen, ["init", "initial web", "done", "applied new", "deleted new"]);
    }
}

#[tokio::test]
async fn a_metadata_watcher_works_too() {
    let fake = start().await;
    fake.put(Resource::Pods, json!({ "metadata": { "namespace": "a", "name": "web-0" }, "spec": {} }));
    let pods: Api<PartialObjectMeta<Pod>> = Api::all(fake.client());
    let mut pods = pin!(watcher(pods, watcher::Config::default()).applied_objects());
    let pod = pods.try_next().await.expect("no error").expect("a pod");
    assert_eq!(pod.name_any(), "web-0");
    fake.modify(Resource::Pods, "a", "web-0", |pod| pod["metadata"]["labels"] = json!({ "a": "b" }));
    let pod = pods.try_next().await.expect("no error").expect("a pod");
    assert_eq!(pod.labels().get("a").map(String::as_str), Some("b"));
}

#[tokio::test]
async fn bookmarks_are_sent_on_demand_and_watches_time_out() {
    let fake = start().await;
    let sets: Api<StatefulSet> = Api::all(fake.client());
    let begun = Instant::now();
    let watch = sets.watch(&WatchParams::default().timeout(1), "1000").await.expect("a watch");
    let mut watch = pin!(watch);
    fake.put(Resource::Pods, json!({ "metadata": { "name": "other" } }));
    fake.send_bookmarks(Resource::StatefulSets);
    let event = watch.try_next().await.expect("no error").expect("an event");
    assert!(matches!(event, WatchEvent::Bookmark(mark) if mark.metadata.resource_version == "1001"));
    assert!(watch.try_next().await.expect("no error").is_none());
    assert!(begun.elapsed() >= Duration::from_secs(1));
    fake.wait_for(|view| view.watches(Resource::StatefulSets) == 0, SOON).await;
}

#[tokio::test]
async fn create_fills_in_and_refuses_a_second_one() {
    let fake = start().await;
    let groups: Api<PodGroup> = Api::namespaced(fake.client(), "a");
    let made = groups.create(&PostParams::default(), &pod_group("web")).await.expect("created");
    assert_eq!(made.finalizers(), [PROTECTION]);
    assert!(made.spec.disruption_mode.as_ref().is_some_and(|mode| mode.single.is_some()));
    assert_eq!(made.metadata.uid.as_ref().map(String::len), Some(36));
    assert!(made.metadata.creation_timestamp.is_some() && made.metadata.resource_version.is_some());
    let again = groups.create(&PostParams::default(), &pod_group("web")).await;
    assert_eq!(code_and_reason(again), (409, "AlreadyExists".into()));
    assert_eq!(code_and_reason(groups.get("other").await), (404, "NotFound".into()));
    let answers: Vec<_> = fake.writes().into_iter().map(|request| request.answer).collect();
    assert_eq!(answers, [Some(201), Some(409)]);
    assert_eq!(fake.requests()[0].body["metadata"]["name"], "web");
    assert_eq!(fake.requests()[0].name.as_deref(), Some("web"));
}

#[tokio::test]
async fn a_json_patch_with_a_failing_test_changes_nothing() {
    let fake = start().await;
    let workloads: Api<Workload> = Api::namespaced(fake.client(), "a");
    workloads.create(&PostParams::default(), &workload("web", 3)).await.expect("created");
    let count = "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount";
    let patch = |old: i32, path: &str| {
        let operations = json!([
            { "op": "test", "path": "/spec/podGroupTemplates/0/name", "value": "web" },
            { "op": "test", "path": path, "value": old },
            { "op": "replace", "path": path, "value": 5 },
        ]);
        Patch::<Workload>::Json(serde_json::from_value(operations).expect("it is a JSON patch"))
    };
    let before = fake.get(Resource::Workloads, "a", "web");
    let wrong = workloads.patch("web", &PatchParams::default(), &patch(4, count)).await;
    assert_eq!(code_and_reason(wrong), (422, "Invalid".into()));
    let missing = workloads.patch("web", &PatchParams::default(), &patch(3, "/spec/nothing/0")).await;
    assert_eq!(code_and_reason(missing), (422, "Invalid".into()));
    assert_eq!(fake.get(Resource::Workloads, "a", "web"), before);

    workloads.patch("web", &PatchParams::default(), &patch(3, count)).await.expect("patched");
    let after = fake.get(Resource::Workloads, "a", "web").expect("it is there");
    assert_eq!(after.pointer(count), Some(&json!(5)));
    let last = fake.requests().pop().expect("there were requests");
    assert_eq!(last.content_type.as_deref(), Some("application/json-patch+json"));

    let immutable = json!({ "spec": { "podGroupTemplates": [] } });
    let refused = workloads.patch("web", &PatchParams::default(), &Patch::Merge(immutable)).await;
    assert_eq!(code_and_reason(refused), (422, "Invalid".into()));
}

#[tokio::test]
async fn merge_and_apply_patches_merge_and_a_patch_without_effect_is_no_change() {
    let fake = start().await;
    fake.put(Resource::StatefulSets, set("a", "web"));
    let sets: Api<StatefulSet> = Api::namespaced(fake.client(), "a");
    let annotation = |value: Value| json!({ "metadata": { "annotations": { "example.com/a": value } } });
    let merge = async |value: Value| {
        let patch = Patch::Merge(annotation(value));
        sets.patch("web", &PatchParams::default(), &patch).await.expect("patched")
    };
    let first = merge("x".into()).await;
    assert_eq!(first.annotations().get("example.com/a").map(String::as_str), Some("x"));
    let second = merge("x".into()).await;
    assert_eq!(second.resource_version(), first.resource_version());
    let third = merge(Value::Null).await;
    assert_ne!(third.resource_version(), first.resource_version());
    assert!(third.metadata.annotations.is_none());

    let stale = json!({ "metadata": { "resourceVersion": "1", "labels": { "a": "b" } } });
    let stale = sets.patch("web", &PatchParams::default(), &Patch::Merge(stale)).await;
    assert_eq!(code_and_reason(stale), (409, "Conflict".into()));

    let leases: Api<Lease> = Api::namespaced(fake.client(), "a");
    let apply = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": { "holderIdentity": "me" } });
    for _ in 0..2 {
        let params = PatchParams::apply("test");
        let lease = leases.patch("leader", &params, &Patch::Apply(&apply)).await.expect("applied");
        assert_eq!(lease.spec.and_then(|spec| spec.holder_identity).as_deref(), Some("me"));
    }
}

#[tokio::test]
async fn only_one_of_two_who_apply_gets_a_lease() {
    let fake = start().await;
    let leases: Api<Lease> = Api::namespaced(fake.client(), "a");
    let new: Lease = serde_json::from_value(json!({ "metadata": { "name": "leader" } })).expect("it is a Lease");
    leases.create(&PostParams::default(), &new).await.expect("created");
    let lease = |holder: Value| json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": { "holderIdentity": holder } });
    let apply = async |holder: &str| {
        leases.patch("leader", &PatchParams::apply(holder), &Patch::Apply(lease(holder.into()))).await
    };
    apply("one").await.expect("it is free");
    assert_eq!(code_and_reason(apply("two").await), (409, "Conflict".into()));
    apply("one").await.expect("it is its own");
    let manager = PatchParams { field_manager: Some("one".into()), ..PatchParams::default() };
    leases.patch("leader", &manager, &Patch::Strategic(lease(Value::Null))).await.expect("released");
    apply("two").await.expect("it is free again");
}

#[tokio::test]
async fn a_put_of_an_old_version_is_a_conflict() {
    let fake = start().await;
    let leases: Api<Lease> = Api::namespaced(fake.client(), "a");
    let new =
        Lease { metadata: ObjectMeta { name: Some("leader".into()), ..ObjectMeta::default() }, ..Lease::default() };
    let mut lease = leases.create(&PostParams::default(), &new).await.expect("created");
    lease.metadata.labels = Some(BTreeMap::from([("a".into(), "b".into())]));
    leases.replace("leader", &PostParams::default(), &lease).await.expect("replaced");
    lease.metadata.labels = None;
    let stale = leases.replace("leader", &PostParams::default(), &lease).await;
    assert_eq!(code_and_reason(stale), (409, "Conflict".into()));
}

#[tokio::test]
async fn finalizers_hold_a_deleted_object_until_the_last_is_removed() {
    let fake = start().await;
    let groups: Api<PodGroup> = Api::namespaced(fake.client(), "a");
    groups.create(&PostParams::default(), &pod_group("web")).await.expect("created");
    let waiting = groups.delete("web", &DeleteParams::default()).await.expect("accepted");
    assert!(waiting.left().is_some_and(|group| group.metadata.deletion_timestamp.is_some()));
    assert_eq!(fake.len(Resource::PodGroups), 1);
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    groups.patch("web", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(fake.len(Resource::PodGroups), 0);

    fake.put(Resource::StatefulSets, set("a", "web"));
    let sets: Api<StatefulSet> = Api::namespaced(fake.client(), "a");
    let other = DeleteParams {
        preconditions: Some(kube::api::Preconditions { uid: Some("other".into()), ..Default::default() }),
        ..Default::default()
    };
    assert_eq!(code_and_reason(sets.delete("web", &other).await.map(|_| ())).0, 409);
    assert!(sets.delete("web", &DeleteParams::default()).await.expect("deleted").right().is_some());
}

#[tokio::test]
async fn faults_happen_once_each_and_in_order() {
    let fake = start().await;
    fake.put(Resource::StatefulSets, set("a", "web"));
    let sets: Api<StatefulSet> = Api::namespaced(fake.client_without_retries(), "a");
    let delay = Duration::from_millis(50);
    fake.fault(Verb::Get, Resource::StatefulSets, Fault::Status(429, Some(7)));
    fake.faults(Verb::Get, Resource::StatefulSets, Fault::Status(500, None), 2);
    fake.fault(Verb::Get, Resource::StatefulSets, Fault::DropBefore);
    fake.fault(Verb::Get, Resource::StatefulSets, Fault::Delay(delay));
    let limited = status(sets.get("web").await);
    assert_eq!((limited.code, limited.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(limited.details.map(|details| details.retry_after_seconds), Some(7));
    for _ in 0..2 {
        assert_eq!(code_and_reason(sets.get("web").await), (500, "InternalError".into()));
    }
    assert!(matches!(sets.get("web").await, Err(kube::Error::HyperError(_) | kube::Error::Service(_))));
    let begun = Instant::now();
    sets.get("web").await.expect("it is there");
    assert!(begun.elapsed() >= delay);
    let answers: Vec<_> = fake.requests().into_iter().map(|request| request.answer).collect();
    assert_eq!(answers, [Some(429), Some(500), Some(500), None, Some(200)]);

    let workloads: Api<Workload> = Api::namespaced(fake.client(), "a");
    fake.fault(Verb::Create, Resource::Workloads, Fault::DropBefore);
    fake.fault(Verb::Create, Resource::Workloads, Fault::DropAfter);
    for there in [false, true] {
        assert!(workloads.create(&PostParams::default(), &workload("web", 3)).await.is_err());
        assert_eq!(fake.get(Resource::Workloads, "a", "web").is_some(), there);
    }
    assert_eq!(fake.pending_faults(), 0);
}

#[tokio::test]
async fn the_default_client_retries_by_itself() {
    let fake = start().await;
    fake.faults(Verb::List, Resource::Pods, Fault::Status(503, None), 2);
    let pods: Api<Pod> = Api::all(fake.client());
    pods.list(&ListParams::default()).await.expect("the third try succeeds");
    assert_eq!(fake.count(Verb::List, Resource::Pods), 3);
}

#[tokio::test]
async fn a_cut_watch_resumes_and_misses_nothing() {
    let fake = start().await;
    fake.put(Resource::StatefulSets, set("a", "web"));
    let sets: Api<StatefulSet> = Api::all(fake.client());
    let mut events = pin!(watcher(sets, watcher::Config::default()).default_backoff());
    while !matches!(events.next().await, Some(Ok(watcher::Event::InitDone))) {}
    let follow = async {
        loop {
            if let Some(Ok(event)) = events.next().await {
                return event;
            }
        }
    };
    let cut = async {
        fake.wait_for(|view| view.watches(Resource::StatefulSets) == 1, SOON).await;
        fake.cut_watches(Resource::StatefulSets);
        fake.wait_for(|view| view.watches(Resource::StatefulSets) == 0, SOON).await;
        fake.put(Resource::StatefulSets, set("a", "new"));
    };
    let (event, ()) = futures::join!(follow, cut);
    assert!(matches!(event, watcher::Event::Apply(set) if set.name_any() == "new"));
    assert_eq!(fake.count(Verb::List, Resource::StatefulSets), 1);
    assert_eq!(fake.count(Verb::Watch, Resource::StatefulSets), 2);
}

#[tokio::test]
async fn an_expired_history_makes_watchers_list_again() {
    let fake = start().await;
    let sets: Api<StatefulSet> = Api::all(fake.client());
    let mut events = pin!(watcher(sets, watcher::Config::default()).default_backoff());
    while !matches!(events.next().await, Some(Ok(watcher::Event::InitDone))) {}
    let mut gone = 0;
    let follow = async {
        loop {
            match events.next().await {
                Some(Ok(watcher::Event::InitDone)) => return,
                Some(Err(watcher::Error::WatchError(status))) if status.code == 410 => gone += 1,
                _ => {}
            }
        }
    };
    let expire = async {
        fake.wait_for(|view| view.watches(Resource::StatefulSets) == 1, SOON).await;
        fake.expire_history();
    };
    futures::join!(follow, expire);
    assert_eq!(gone, 1);
    assert_eq!(fake.count(Verb::List, Resource::StatefulSets), 2);
}

#[tokio::test]
async fn held_watches_lag_behind_lists() {
    let fake = start().await;
    let sets: Api<StatefulSet> = Api::all(fake.client());
    let watch = sets.watch(&WatchParams::default(), "1000").await.expect("a watch");
    let mut watch = pin!(watch);
    fake.hold_watches(Resource::StatefulSets);
    fake.put(Resource::StatefulSets, set("a", "web"));
    assert_eq!(sets.list(&ListParams::default()).await.expect("a list").items.len(), 1);
    let early = tokio::time::timeout(Duration::from_millis(50), watch.try_next()).await;
    assert!(early.is_err(), "an event came in spite of the hold: {early:?}");
    fake.release_watches(Resource::StatefulSets);
    let event = watch.try_next().await.expect("no error").expect("an event");
    assert!(matches!(event, WatchEvent::Added(set) if set.name_any() == "web"));
}

#[tokio::test]
async fn unforeseen_requests_are_refused_and_reported() {
    let fake = FakeApi::start(Foreseen::nothing().and(Resource::Pods, [Verb::List])).await;
    let pods: Api<Pod> = Api::namespaced(fake.client(), "a");
    pods.list(&ListParams::default()).await.expect("this was foreseen");
    assert_eq!(code_and_reason(pods.get("web-0").await), (500, "InternalError".into()));
    assert_eq!(code_and_reason(pods.get_status("web-0").await).0, 500);
    let reported = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fake.assert_foreseen()));
    let message = reported.expect_err("it panics").downcast::<String>().expect("it panics with a text");
    assert!(message.contains("GET /api/v1/namespaces/a/pods/web-0\n"), "{message}");
    assert!(message.contains("GET /api/v1/namespaces/a/pods/web-0/status"), "{message}");
    fake.assert_foreseen();
}

#[tokio::test]
async fn the_scheduling_api_can_be_switched_off() {
    let fake = start().await;
    let client = fake.client();
    let version = client.apiserver_version().await.expect("the version");
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "37"));
    let workloads: Api<Workload> = Api::all(client.clone());
    let group = "scheduling.k8s.io/v1beta1";
    let served = client.list_api_group_resources(group).await.expect("it is served");
    assert!(served.resources.iter().any(|resource| resource.name == "podgroups"));
    for off in [SchedulingApi::Off, SchedulingApi::OffText] {
        fake.set_scheduling_api(off);
        assert_eq!(status(client.list_api_group_resources(group).await).code, 404);
        assert_eq!(status(workloads.list(&ListParams::default()).await).code, 404);
    }
    fake.set_scheduling_api(SchedulingApi::On);
    workloads.list(&ListParams::default()).await.expect("it is served again");
}

#[tokio::test]
async fn the_server_stops_and_comes_back_as_it_was() {
    let mut fake = start().await;
    fake.put(Resource::StatefulSets, set("a", "web"));
    let sets: Api<StatefulSet> = Api::namespaced(fake.client(), "a");
    let watch = sets.watch(&WatchParams::default(), "0").await.expect("a watch");
    let mut watch = pin!(watch);
    watch.try_next().await.expect("no error").expect("the initial state");
    fake.stop().await;
    assert!(!matches!(watch.next().await, Some(Ok(_))), "the watch ends");
    assert!(sets.get("web").await.is_err());
    fake.restart().await;
    sets.get("web").await.expect("it is there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_objects_are_no_burden() {
    const COUNT: usize = 2000;
    let fake = start().await;
    fake.quiet();
    let client = fake.client();
    let sets: Api<StatefulSet> = Api::all(client.clone());
    let mut watch = pin!(watcher(sets, watcher::Config::default()).applied_objects());
    let follow = async {
        for _ in 0..COUNT {
            watch.next().await.expect("watchers do not end").expect("no error");
        }
    };
    let create = stream::iter(0..COUNT).for_each_concurrent(32, |index| {
        let workloads: Api<Workload> = Api::namespaced(client.clone(), "a");
        let fake = &fake;
        async move {
            fake.put(Resource::StatefulSets, set("a", &format!("web-{index:05}")));
            workloads.create(&PostParams::default(), &workload(&format!("w-{index:05}"), 3)).await.expect("created");
        }
    });
    futures::join!(follow, create);
    assert_eq!(fake.count(Verb::Create, Resource::Workloads), COUNT);
    assert!(fake.requests().iter().all(|request| request.body.is_null()));
}
