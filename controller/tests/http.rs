//! The controller against an API server over HTTP: what it does, what it costs, and how it fails.

#[path = "fake_api/mod.rs"]
mod fake_api;
#[path = "used_verbs/mod.rs"]
mod used_verbs;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser as _;
use fake_api::{FakeApi, Fault, Foreseen, Gates, Resource, Verb, View};
use serde_json::{Value, json};
use statefulset_scheduling_controller::args::Arguments;
use statefulset_scheduling_controller::kube_api::REQUEST_TIMEOUT;
use statefulset_scheduling_controller::run::run;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(20);
const NAMESPACE: &str = "default";

/// What the controller's role lets it do.
fn role() -> Foreseen {
    Foreseen::Only(used_verbs::USED.iter().copied().collect())
}

/// A controller that runs.
struct Controller {
    shutdown: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Controller {
    fn start(fake: &FakeApi, arguments: &[&str]) -> Self {
        let defaults = ["controller", "--listen=127.0.0.1:0", "--client-qps=0", "--concurrency=4"];
        let arguments = Arguments::try_parse_from(defaults.iter().chain(arguments)).expect("the arguments are valid");
        let (shutdown, ended) = oneshot::channel();
        let client = fake.client_without_retries();
        let ended = Box::pin(async move {
            let _ = ended.await;
        });
        Self { shutdown, task: tokio::spawn(run(arguments, client, ended)) }
    }

    /// Ends it; writes in hand are finished.
    async fn stop(self) {
        let _ = self.shutdown.send(());
        self.task.await.expect("it does not panic").expect("it ends well");
    }

    /// Ends it as a crash does.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

fn statefulset(name: &str, replicas: i32, intent: Option<&str>) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}, "annotations": {"note": "x"}},
        "spec": {
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, "statefulset-scheduling.dev/managed": "true"}},
                "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
            },
        },
    });
    if let Some(intent) = intent {
        set["metadata"]["annotations"]["statefulset-scheduling.dev/scheduling"] = intent.into();
    }
    set
}

const GANG: &str = "schedulingPolicy: {gang: {}}";
const BASIC: &str = "{}";

fn scale(fake: &FakeApi, name: &str, replicas: i32) {
    fake.modify(Resource::StatefulSets, NAMESPACE, name, |set| set["spec"]["replicas"] = replicas.into());
}

fn binding(view: &View<'_>, name: &str) -> Option<Value> {
    let set = view.get(Resource::StatefulSets, NAMESPACE, name)?;
    let text = set["metadata"]["annotations"]["statefulset-scheduling.dev/pod-group"].as_str()?.to_owned();
    serde_json::from_str(&text).ok()
}

/// Whether a gang of this size is in step: Workload, PodGroup and binding.
fn in_step(view: &View<'_>, name: &str, replicas: i32) -> bool {
    let size = replicas.max(1);
    let ours = |object: &Value| object["metadata"]["ownerReferences"][0]["name"] == name;
    let workloads: Vec<_> = view.list(Resource::Workloads).into_iter().filter(ours).collect();
    let pod_groups: Vec<_> = view.list(Resource::PodGroups).into_iter().filter(ours).collect();
    let ([workload], [pod_group]) = (workloads.as_slice(), pod_groups.as_slice()) else { return false };
    let expected = json!({
        "name": pod_group["metadata"]["name"],
        "uid": pod_group["metadata"]["uid"],
        "replicas": replicas,
    });
    workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"] == size
        && pod_group["spec"]["schedulingPolicy"]["gang"]["minCount"] == size
        && binding(view, name) == Some(expected)
}

async fn until_in_step(fake: &FakeApi, name: &str, replicas: i32) {
    fake.wait_for(|view| in_step(view, name, replicas), SOON).await;
}

fn reasons(fake: &FakeApi) -> BTreeSet<String> {
    let events = fake.list(Resource::Events);
    events.iter().filter_map(|event| event["reason"].as_str().map(str::to_owned)).collect()
}

/// Requests by verb and resource, watches and the lists that begin them aside.
fn requests(fake: &FakeApi) -> Vec<(&'static str, &'static str)> {
    let mut requests: Vec<_> = fake
        .requests()
        .iter()
        .filter(|request| request.verb != Verb::Watch && request.resource != Resource::Events)
        .map(|request| (request.verb.as_str(), request.resource.plural()))
        .collect();
    requests.sort_unstable();
    requests
}

/// What is written to, in order, events aside: they come when they come.
fn writes(fake: &FakeApi) -> Vec<Resource> {
    let resources = fake.writes().into_iter().map(|write| write.resource);
    resources.filter(|resource| *resource != Resource::Events).collect()
}

/// Brings one more StatefulSet through: whatever was queued before it is done by then.
async fn settle(fake: &FakeApi, marker: &str) {
    fake.put(Resource::StatefulSets, statefulset(marker, 1, Some(GANG)));
    until_in_step(fake, marker, 1).await;
}

async fn watching(fake: &FakeApi) {
    let all = [Resource::StatefulSets, Resource::Workloads, Resource::PodGroups];
    fake.wait_for(|view| all.iter().all(|resource| view.watches(*resource) > 0), SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_gets_its_workload_then_its_pod_group_then_its_binding_for_one_list_two_creates_and_one_patch() {
    let fake = FakeApi::start(role()).await;
    let controller = Controller::start(&fake, &[]);
    watching(&fake).await;
    fake.reset_log();
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    until_in_step(&fake, "web", 3).await;
    assert_eq!(writes(&fake), [Resource::Workloads, Resource::PodGroups, Resource::StatefulSets]);
    assert_eq!(
        requests(&fake),
        [("create", "podgroups"), ("create", "workloads"), ("list", "pods"), ("patch", "statefulsets")]
    );
    fake.wait_for(|view| view.len(Resource::Events) == 2, SOON).await;
    assert_eq!(reasons(&fake), BTreeSet::from(["PodGroupCreated".to_owned(), "WorkloadCreated".to_owned()]));
    let workload = &fake.list(Resource::Workloads)[0];
    let pod_group = &fake.list(Resource::PodGroups)[0];
    for object in [workload, pod_group] {
        let metadata = &object["metadata"];
        assert_eq!(metadata["annotations"]["scheduling.k8s.io/managed-by"], "statefulset-controller");
        assert_eq!(metadata["ownerReferences"][0]["controller"], true);
        assert_eq!(metadata["ownerReferences"][0]["blockOwnerDeletion"], true);
    }
    assert_eq!(pod_group["metadata"]["ownerReferences"][1]["uid"], workload["metadata"]["uid"]);
    assert_eq!(pod_group["metadata"]["ownerReferences"][1]["controller"], Value::Null);
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_size_costs_two_patches_and_one_of_the_binding_and_the_objects_stay_the_same() {
    let fake = FakeApi::start(role()).await;
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    let controller = Controller::start(&fake, &[]);
    until_in_step(&fake, "web", 3).await;
    let uid = fake.list(Resource::PodGroups)[0]["metadata"]["uid"].clone();
    for replicas in [5, 2, 0, 4] {
        fake.reset_log();
        let before =
            fake.list(Resource::Workloads)[0]["spec"]["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"]
                .clone();
        scale(&fake, "web", replicas);
        until_in_step(&fake, "web", replicas).await;
        assert_ne!(before, replicas.max(1), "each step changes the size");
        assert_eq!(writes(&fake), [Resource::Workloads, Resource::PodGroups, Resource::StatefulSets], "to {replicas}");
        assert_eq!(requests(&fake).len(), 3, "to {replicas}");
        assert_eq!(fake.list(Resource::PodGroups)[0]["metadata"]["uid"], uid);
    }
    // From 1 to 0 the gang keeps its size, and only the binding follows.
    scale(&fake, "web", 1);
    until_in_step(&fake, "web", 1).await;
    fake.reset_log();
    scale(&fake, "web", 0);
    until_in_step(&fake, "web", 0).await;
    assert_eq!(requests(&fake), [("patch", "statefulsets")]);
    let set = fake.get(Resource::StatefulSets, NAMESPACE, "web").expect("it is there");
    assert_eq!(set["metadata"]["annotations"]["statefulset-scheduling.dev/scheduling"], GANG);
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_basic_group_that_is_scaled_and_a_set_without_an_intent_cost_nothing_and_nor_does_rest() {
    let fake = FakeApi::start(role()).await;
    fake.put(Resource::StatefulSets, statefulset("basic", 3, Some(BASIC)));
    fake.put(Resource::StatefulSets, statefulset("plain", 3, None));
    fake.put(Resource::StatefulSets, statefulset("gang", 3, Some(GANG)));
    let controller = Controller::start(&fake, &[]);
    until_in_step(&fake, "gang", 3).await;
    fake.wait_for(|view| binding(view, "basic").is_some(), SOON).await;
    let bound = fake.look(|view| binding(view, "basic")).expect("it is bound");
    assert_eq!(bound.get("replicas"), None, "a Basic group keeps no size");
    settle(&fake, "settled").await;
    fake.wait_for(|view| view.len(Resource::Events) == 6, SOON).await;
    fake.reset_log();
    scale(&fake, "basic", 9);
    scale(&fake, "plain", 9);
    fake.modify(Resource::StatefulSets, NAMESPACE, "gang", |set| set["metadata"]["labels"]["x"] = "y".into());
    fake.modify(Resource::StatefulSets, NAMESPACE, "gang", |set| set["status"] = json!({"replicas": 0}));
    for resource in [Resource::Workloads, Resource::PodGroups] {
        fake.send_bookmarks(resource);
    }
    settle(&fake, "later").await;
    // Everything there is was for the StatefulSet that came last.
    assert_eq!(
        requests(&fake),
        [("create", "podgroups"), ("create", "workloads"), ("list", "pods"), ("patch", "statefulsets")]
    );
    assert_eq!(fake.len(Resource::Workloads), 4, "basic, gang, and the two markers");
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_the_two_creates_leaves_one_of_each() {
    let fake = FakeApi::start(role()).await;
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    // The PodGroup's create hangs, so the crash comes after the Workload's.
    fake.fault(Verb::Create, Resource::PodGroups, Fault::DropBefore);
    fake.faults(Verb::Create, Resource::PodGroups, Fault::Status(503, None), 100);
    let controller = Controller::start(&fake, &[]);
    fake.wait_for(|view| view.count(None, Verb::Create, Resource::PodGroups) > 0, SOON).await;
    controller.kill().await;
    assert_eq!((fake.len(Resource::Workloads), fake.len(Resource::PodGroups)), (1, 0));
    fake.clear_faults();
    let controller = Controller::start(&fake, &[]);
    until_in_step(&fake, "web", 3).await;
    assert_eq!((fake.len(Resource::Workloads), fake.len(Resource::PodGroups)), (1, 1));
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_go_are_made_again_unless_the_statefulset_went_first() {
    let fake = FakeApi::start(role()).await;
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    let controller = Controller::start(&fake, &[]);
    until_in_step(&fake, "web", 3).await;
    let remove = |resource| {
        for object in fake.list(resource) {
            assert!(fake.remove(resource, NAMESPACE, object["metadata"]["name"].as_str().expect("it has a name")));
        }
    };
    // Somebody deletes them: one more look, and both are there again.
    fake.reset_log();
    remove(Resource::PodGroups);
    remove(Resource::Workloads);
    until_in_step(&fake, "web", 3).await;
    assert!(fake.count(Verb::Get, Resource::StatefulSets) > 0);
    assert_eq!((fake.len(Resource::Workloads), fake.len(Resource::PodGroups)), (1, 1));
    // The StatefulSet goes, and its objects after it; the watch of StatefulSets is behind.
    fake.hold_watches(Resource::StatefulSets);
    assert!(fake.remove(Resource::StatefulSets, NAMESPACE, "web"));
    fake.reset_log();
    remove(Resource::PodGroups);
    remove(Resource::Workloads);
    fake.wait_for(|view| view.count(None, Verb::Get, Resource::StatefulSets) > 0, SOON).await;
    fake.release_watches(Resource::StatefulSets);
    // A StatefulSet that comes after it is told of after it.
    fake.put(Resource::StatefulSets, statefulset("next", 1, Some(GANG)));
    until_in_step(&fake, "next", 1).await;
    let made: Vec<_> = fake.writes().into_iter().filter(|write| write.verb == Verb::Create).collect();
    let of_web = made.iter().filter(|write| write.name.as_deref().is_some_and(|name| name.starts_with("web-")));
    assert_eq!(of_web.count(), 0, "{made:?}");
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_that_fails_for_a_while_is_made_again_and_nothing_is_made_twice() {
    let calls = [
        (Verb::List, Resource::Pods),
        (Verb::Create, Resource::Workloads),
        (Verb::Create, Resource::PodGroups),
        (Verb::Patch, Resource::Workloads),
        (Verb::Patch, Resource::PodGroups),
        (Verb::Patch, Resource::StatefulSets),
    ];
    let faults = [
        Fault::Status(409, None),
        Fault::Status(429, Some(1)),
        Fault::Status(500, None),
        Fault::Status(503, None),
        Fault::DropBefore,
        Fault::DropAfter,
        Fault::Delay(Duration::from_millis(50)),
    ];
    for (verb, resource) in calls {
        let fake = FakeApi::start(role()).await;
        for fault in faults {
            fake.fault(verb, resource, fault);
        }
        let controller = Controller::start(&fake, &[]);
        let mut replicas = 3;
        fake.put(Resource::StatefulSets, statefulset("web", replicas, Some(GANG)));
        until_in_step(&fake, "web", replicas).await;
        // The patches that are left fail on further changes of size.
        while fake.pending_faults() > 0 && verb == Verb::Patch {
            replicas += 1;
            scale(&fake, "web", replicas);
            until_in_step(&fake, "web", replicas).await;
        }
        let counts = (fake.len(Resource::Workloads), fake.len(Resource::PodGroups));
        assert_eq!(counts, (1, 1), "{verb:?} {resource:?}");
        controller.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_an_answer_is_given_up_and_made_again() {
    let fake = FakeApi::start(role()).await;
    // Answered only when nobody waits any more.
    fake.fault(Verb::Create, Resource::Workloads, Fault::Delay(REQUEST_TIMEOUT + Duration::from_secs(5)));
    let controller = Controller::start(&fake, &[]);
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    fake.wait_for(|view| in_step(view, "web", 3), SOON + REQUEST_TIMEOUT).await;
    assert_eq!(fake.count(Verb::Create, Resource::Workloads), 2);
    assert_eq!((fake.len(Resource::Workloads), fake.len(Resource::PodGroups)), (1, 1));
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_refused_is_told_in_an_event_and_tried_again_only_after_a_change() {
    for (code, resource) in
        [(422, Resource::Workloads), (403, Resource::Workloads), (422, Resource::PodGroups), (403, Resource::PodGroups)]
    {
        let fake = FakeApi::start(role()).await;
        fake.fault(Verb::Create, resource, Fault::Status(code, None));
        let controller = Controller::start(&fake, &[]);
        watching(&fake).await;
        fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
        fake.wait_for(
            |view| view.list(Resource::Events).iter().any(|event| event["reason"] == "WorkloadCreationFailed"),
            SOON,
        )
        .await;
        settle(&fake, "another").await;
        let count = |fake: &FakeApi| fake.count(Verb::Create, resource);
        let creates = count(&fake);
        // One was refused, one was the other StatefulSet's. The watch may tell of the Workload before the
        // answer to its create is read: that is a change, and tried once more.
        assert!((2..=3).contains(&creates), "{code} {resource:?}: {creates} creates");
        settle(&fake, "one-more").await;
        assert_eq!(count(&fake), creates + 1, "{code} {resource:?}");
        fake.modify(Resource::StatefulSets, NAMESPACE, "web", |set| set["metadata"]["labels"]["x"] = "y".into());
        until_in_step(&fake, "web", 3).await;
        controller.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_statefulset_that_fails_holds_back_no_other() {
    let fake = FakeApi::start(role()).await;
    // One that cannot get a Workload of its name: somebody else has it.
    let controller = Controller::start(&fake, &["--concurrency=1"]);
    watching(&fake).await;
    fake.faults(Verb::Create, Resource::Workloads, Fault::Status(500, None), 3);
    fake.put(Resource::StatefulSets, statefulset("first", 3, Some(GANG)));
    fake.wait_for(|view| view.count(None, Verb::Create, Resource::Workloads) >= 1, SOON).await;
    for index in 0..5 {
        fake.put(Resource::StatefulSets, statefulset(&format!("other-{index}"), 2, Some(GANG)));
    }
    for index in 0..5 {
        until_in_step(&fake, &format!("other-{index}"), 2).await;
    }
    until_in_step(&fake, "first", 3).await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_a_watch_is_cut_or_its_version_is_gone_is_not_missed() {
    let fake = FakeApi::start(role()).await;
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    let controller = Controller::start(&fake, &[]);
    until_in_step(&fake, "web", 3).await;
    let all = [Resource::StatefulSets, Resource::Workloads, Resource::PodGroups];
    for resource in all {
        fake.cut_watches(resource);
    }
    scale(&fake, "web", 5);
    until_in_step(&fake, "web", 5).await;
    watching(&fake).await;
    fake.hold_watches(Resource::StatefulSets);
    scale(&fake, "web", 7);
    fake.put(Resource::StatefulSets, statefulset("new", 2, Some(GANG)));
    fake.expire_history();
    fake.release_watches(Resource::StatefulSets);
    until_in_step(&fake, "web", 7).await;
    until_in_step(&fake, "new", 2).await;
    assert_eq!(fake.len(Resource::Workloads), 2);
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_lags_behind_never_makes_a_second_object() {
    let fake = FakeApi::start(role()).await;
    let controller = Controller::start(&fake, &[]);
    watching(&fake).await;
    fake.hold_watches(Resource::Workloads);
    fake.hold_watches(Resource::PodGroups);
    // The answers to both creates are lost, and no watch tells of what was made.
    fake.fault(Verb::Create, Resource::Workloads, Fault::DropAfter);
    fake.fault(Verb::Create, Resource::PodGroups, Fault::DropAfter);
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    until_in_step(&fake, "web", 3).await;
    scale(&fake, "web", 4);
    until_in_step(&fake, "web", 4).await;
    fake.release_watches(Resource::Workloads);
    fake.release_watches(Resource::PodGroups);
    settle(&fake, "settled").await;
    assert!(fake.look(|view| in_step(view, "web", 4)));
    assert_eq!((fake.len(Resource::Workloads), fake.len(Resource::PodGroups)), (2, 2));
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statefulset_with_pods_gets_nothing_made_and_says_so() {
    let fake = FakeApi::start(role()).await;
    fake.put(Resource::StatefulSets, statefulset("web", 1, Some(GANG)));
    let uid = fake.get(Resource::StatefulSets, NAMESPACE, "web").expect("it is there")["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": uid, "controller": true});
    fake.put(
        Resource::Pods,
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": NAMESPACE,
            "labels": {"app": "web"}, "ownerReferences": [owner]}, "spec": {"containers": []}}),
    );
    let controller = Controller::start(&fake, &[]);
    fake.wait_for(|view| binding(view, "web") == Some(json!({"fallback": "PodsPredateOptIn"})), SOON).await;
    fake.wait_for(|view| view.list(Resource::Events).iter().any(|event| event["reason"] == "PodsPredateOptIn"), SOON)
        .await;
    assert_eq!((fake.len(Resource::Workloads), fake.len(Resource::PodGroups)), (0, 0));
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_lost_their_group_are_noticed_once() {
    let fake = FakeApi::start(role()).await;
    let controller = Controller::start(&fake, &[]);
    watching(&fake).await;
    fake.put(Resource::StatefulSets, statefulset("web", 1, Some(GANG)));
    until_in_step(&fake, "web", 1).await;
    let uid = fake.get(Resource::StatefulSets, NAMESPACE, "web").expect("it is there")["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": uid, "controller": true});
    fake.put(
        Resource::Pods,
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": NAMESPACE,
            "labels": {"app": "web", "statefulset-scheduling.dev/managed": "true"}, "ownerReferences": [owner]},
            "spec": {"containers": []}}),
    );
    fake.modify(Resource::StatefulSets, NAMESPACE, "web", |set| set["status"] = json!({"replicas": 1}));
    fake.wait_for(
        |view| view.list(Resource::Events).iter().any(|event| event["reason"] == "MembersWithoutGroup"),
        SOON,
    )
    .await;
    let lists = fake.count(Verb::List, Resource::Pods);
    fake.modify(Resource::StatefulSets, NAMESPACE, "web", |set| {
        set["status"] = json!({"replicas": 1, "readyReplicas": 1});
    });
    settle(&fake, "settled").await;
    assert_eq!(fake.count(Verb::List, Resource::Pods), lists + 1, "the one more is the other StatefulSet's");
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_without_the_scheduling_api_is_waited_for() {
    let fake = FakeApi::start_at(role(), Gates::upstream(), SocketAddr::from(([127, 0, 0, 1], 0))).await;
    let controller = Controller::start(&fake, &[]);
    fake.wait_for(|view| view.discoveries() >= 2, SOON).await;
    assert_eq!(fake.requests(), []);
    // Nothing answers for a while; then one with the gate open does.
    let address = fake.stop().await;
    let fake = FakeApi::start_at(role(), Gates::default(), address).await;
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    until_in_step(&fake, "web", 3).await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_and_a_closed_gate_write_nothing() {
    for argument in ["--dry-run", "--feature-gates=WorkloadWithStatefulSet=false"] {
        let fake = FakeApi::start(role()).await;
        fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
        let controller = Controller::start(&fake, &[argument]);
        watching(&fake).await;
        scale(&fake, "web", 5);
        if argument == "--dry-run" {
            fake.wait_for(|view| view.count(None, Verb::List, Resource::Pods) > 0, SOON).await;
        }
        controller.stop().await;
        assert_eq!(fake.writes().len(), 0, "{argument}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_replicas_one_writes_and_the_other_takes_over() {
    let fake = FakeApi::start(role()).await;
    let first = Controller::start(&fake, &["--leader-elect", "--identity=first"]);
    fake.wait_for(|view| view.len(Resource::Leases) == 1, SOON).await;
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    until_in_step(&fake, "web", 3).await;
    let second = Controller::start(&fake, &["--leader-elect", "--identity=second"]);
    fake.wait_for(|view| view.watches(Resource::StatefulSets) == 2, SOON).await;
    let holder = |view: &View<'_>| view.list(Resource::Leases)[0]["spec"]["holderIdentity"].clone();
    assert_eq!(fake.look(holder), "first");
    first.stop().await;
    scale(&fake, "web", 6);
    fake.wait_for(|view| in_step(view, "web", 6), Duration::from_secs(40)).await;
    assert_eq!(fake.look(holder), "second");
    second.stop().await;
}

/// Whether the controller's metrics say that it leads; one that has ended does not.
async fn leads(address: SocketAddr) -> bool {
    let scraped = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(SOON, scraped).await.expect("it answers or refuses");
    answer.is_ok_and(|answer| answer.lines().any(|line| line == "statefulset_scheduling_leading 1"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_whose_lease_is_taken_writes_no_more_and_ends() {
    let fake = FakeApi::start(role()).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port is free");
    let listen = format!("--listen={free}");
    let controller = Controller::start(&fake, &["--leader-elect", "--identity=first", &listen]);
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    until_in_step(&fake, "web", 3).await;
    fake.wait_for(|view| view.watches(Resource::Leases) == 1, SOON).await;
    assert!(leads(free).await, "it says that it leads");
    fake.modify(Resource::Leases, "statefulset-scheduling-system", "statefulset-scheduling-controller", |lease| {
        lease["spec"]["holderIdentity"] = "somebody-else".into();
    });
    // The watch of the Lease and that of the StatefulSet would race: what it knows of the Lease comes first.
    let deposed = async { while leads(free).await {} };
    tokio::time::timeout(SOON, deposed).await.expect("it learns of it");
    fake.reset_log();
    scale(&fake, "web", 5);
    let ended = tokio::time::timeout(Duration::from_secs(40), controller.task).await.expect("it ends");
    assert!(ended.expect("it does not panic").expect_err("it tells").to_string().contains("lease was lost"));
    let but_events = [Resource::Workloads, Resource::PodGroups, Resource::StatefulSets];
    assert!(fake.writes().iter().all(|write| !but_events.contains(&write.resource)), "{:?}", fake.writes());
    assert!(!fake.look(|view| in_step(view, "web", 5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verbs_that_are_used_are_those_of_the_role() {
    let fake = FakeApi::start(role()).await;
    // Two failures of one kind make a series of an event; lost answers and a conflict make reads.
    for fault in [Fault::Status(500, None), Fault::Status(503, None), Fault::DropAfter] {
        fake.fault(Verb::Create, Resource::Workloads, fault);
    }
    fake.fault(Verb::Create, Resource::PodGroups, Fault::DropAfter);
    fake.fault(Verb::Patch, Resource::Workloads, Fault::Status(409, None));
    fake.hold_watches(Resource::Workloads);
    fake.hold_watches(Resource::PodGroups);
    let controller = Controller::start(&fake, &["--leader-elect", "--identity=first"]);
    let mut child = statefulset("child", 1, Some(GANG));
    child["metadata"]["annotations"]["scheduling.k8s.io/group-template-name"] = "workers".into();
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": "example.com/v1", "kind": "Set", "name": "parent",
        "uid": "1", "controller": true}]);
    fake.put(Resource::StatefulSets, child);
    fake.put(Resource::StatefulSets, statefulset("web", 3, Some(GANG)));
    until_in_step(&fake, "web", 3).await;
    scale(&fake, "web", 4);
    until_in_step(&fake, "web", 4).await;
    fake.wait_for(|view| binding(view, "child") == Some(json!({"fallback": "UnresolvedParent"})), SOON).await;
    fake.wait_for(|view| view.count(None, Verb::Patch, Resource::Events) > 0, SOON).await;
    fake.wait_for(|view| view.count(None, Verb::Watch, Resource::Leases) > 0, SOON).await;
    // An object that goes is made again, once it is known for whom.
    fake.release_watches(Resource::PodGroups);
    let is_webs = |group: &Value| group["metadata"]["ownerReferences"][0]["name"] == "web";
    let group = fake.list(Resource::PodGroups).into_iter().find(is_webs).expect("it has a group");
    assert!(fake.remove(Resource::PodGroups, NAMESPACE, group["metadata"]["name"].as_str().expect("it has a name")));
    fake.wait_for(|view| view.count(None, Verb::Get, Resource::StatefulSets) > 0, SOON).await;
    until_in_step(&fake, "web", 4).await;
    controller.stop().await;
    let used: BTreeSet<_> =
        fake.requests().iter().map(|request| (request.verb.as_str(), request.resource.plural())).collect();
    assert_eq!(used, used_verbs::USED.iter().copied().collect());
}
