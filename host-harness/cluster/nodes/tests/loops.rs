//! The loops against a server over HTTP.

mod api;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::FakeApi;
use cluster_nodes::node::NodeShape;
use cluster_nodes::{kubelet, scheduler};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/prod/pods";
const GROUPS: &str = "/apis/scheduling.k8s.io/v1beta1/namespaces/prod/podgroups";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/prod/resourceclaims";

async fn with_nodes(nodes: usize, cpu: &str) -> FakeApi {
    let api = FakeApi::start().await;
    for index in 0..nodes {
        let shape = NodeShape::new(&format!("n{index}"), cpu, "8Gi");
        shape.register(&api.client()).await.expect("the node can be registered");
    }
    api
}

fn gang(api: &FakeApi, name: &str, min_count: usize, priority: i32, more: &Value) {
    let mut group = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "metadata": { "name": name },
        "spec": { "schedulingPolicy": { "gang": { "minCount": min_count } }, "priority": priority },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        group["spec"][field] = value.clone();
    }
    api.create(GROUPS, group);
}

fn member(api: &FakeApi, group: &str, ordinal: usize, priority: i32, more: &Value) {
    let mut pod = json!({
        "apiVersion": "v1",
        "metadata": { "name": format!("{group}-{ordinal}") },
        "spec": {
            "containers": [{ "name": "c", "image": "i", "resources": { "requests": { "cpu": "1" } } }],
            "schedulerName": "default-scheduler",
            "priority": priority,
            "schedulingGroup": { "podGroupName": group },
        },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    api.create(PODS, pod);
}

fn pod(api: &FakeApi, name: &str) -> Value {
    api.get(&format!("{PODS}/{name}")).unwrap_or_default()
}

fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|it| it["type"] == kind);
    found.and_then(|it| it["status"].as_str()).unwrap_or_default().to_owned()
}

fn is_ready(api: &FakeApi, name: &str) -> bool {
    condition(&pod(api, name), "Ready") == "True"
}

fn kubelets() -> kubelet::Config {
    kubelet::Config {
        timings: kubelet::Timings {
            start: Duration::from_millis(5),
            ready: Duration::from_millis(5),
            shutdown: Duration::from_millis(20),
            grace_second: Duration::from_millis(5),
        },
        ..kubelet::Config::default()
    }
}

#[tokio::test]
async fn a_gang_is_bound_together_and_becomes_ready() {
    let api = with_nodes(3, "1").await;
    let scheduler = scheduler::start(&api.client(), scheduler::Config::default());
    let kubelet = kubelet::start(&api.client(), kubelets());
    gang(&api, "db", 3, 0, &json!({}));
    member(&api, "db", 0, 0, &json!({}));
    member(&api, "db", 1, 0, &json!({}));
    let bound = |api: &FakeApi| api.log().iter().any(|asked| asked.path.ends_with("/binding"));
    api.never("two of three are not enough", Duration::from_millis(200), bound).await;

    member(&api, "db", 2, 0, &json!({}));
    api.wait_until("all are ready", |api| (0..3).all(|it| is_ready(api, &format!("db-{it}")))).await;
    api.wait_until("the group says so", |api| {
        let group = api.get(&format!("{GROUPS}/db")).unwrap_or_default();
        condition(&group, "PodGroupInitiallyScheduled") == "True"
    })
    .await;
    scheduler.stop().await;
    kubelet.stop().await;

    let db = pod(&api, "db-0");
    assert_eq!(db["status"]["phase"], "Running");
    assert!(db["status"]["podIP"].is_string());
    assert_eq!(db["status"]["containerStatuses"][0]["ready"], true);
    assert_eq!(condition(&db, "PodScheduled"), "True");
    let addresses: BTreeSet<_> =
        (0..3).map(|it| pod(&api, &format!("db-{it}"))["status"]["podIP"].to_string()).collect();
    assert_eq!(addresses.len(), 3);
    for asked in api.log().iter().filter(|asked| asked.path.starts_with(PODS)) {
        let expected = if asked.path.ends_with("/binding") {
            "system:kube-scheduler".to_owned()
        } else {
            let name = asked.path.split('/').nth(6).unwrap_or_default();
            format!("system:node:{}", pod(&api, name)["spec"]["nodeName"].as_str().unwrap_or_default())
        };
        assert_eq!(asked.user, expected, "{asked:?}");
    }
}

#[tokio::test]
async fn a_group_is_preempted_whole_and_leaves_gracefully() {
    let api = with_nodes(2, "1").await;
    let _scheduler = scheduler::start(&api.client(), scheduler::Config::default());
    let _kubelet = kubelet::start(&api.client(), kubelets());
    gang(&api, "low", 2, 0, &json!({ "disruptionMode": { "all": {} } }));
    (0..2).for_each(|it| member(&api, "low", it, 0, &json!({})));
    api.wait_until("the low group runs", |api| (0..2).all(|it| is_ready(api, &format!("low-{it}")))).await;

    gang(&api, "high", 1, 10, &json!({}));
    member(&api, "high", 0, 10, &json!({}));
    api.wait_until("the high pod runs", |api| is_ready(api, "high-0")).await;
    api.wait_until("both low pods are gone", |api| (0..2).all(|it| pod(api, &format!("low-{it}")).is_null())).await;

    assert_eq!(condition(&api.get(&format!("{GROUPS}/low")).unwrap_or_default(), "DisruptionTarget"), "True");
    let log = api.log();
    let deletes: Vec<_> = log.iter().filter(|asked| asked.method == "DELETE").collect();
    let by = |user: &str| deletes.iter().filter(|asked| asked.user.starts_with(user)).count();
    assert_eq!((by("system:kube-scheduler"), by("system:node:n")), (2, 2), "{deletes:?}");
    for asked in &deletes {
        let is_final = asked.user.starts_with("system:node:");
        assert_eq!(asked.body["gracePeriodSeconds"].as_u64(), is_final.then_some(0), "{asked:?}");
        assert!(asked.body["preconditions"]["uid"].is_string(), "{asked:?}");
    }
    let marked = log.iter().filter(|asked| asked.body.to_string().contains("PreemptionByScheduler")).count();
    assert_eq!(marked, 3, "two pods and their group");
}

#[tokio::test]
async fn a_group_claim_is_written_once_for_all_members() {
    let api = with_nodes(2, "4").await;
    let _scheduler = scheduler::start(&api.client(), scheduler::Config::default());
    let shared = json!({ "resourceClaims": [{ "name": "shared", "resourceClaimName": "pool" }] });
    gang(&api, "db", 3, 0, &shared);
    let requests = json!({ "requests": [{ "name": "device", "exactly": { "deviceClassName": "gpu", "count": 2 } }] });
    let claim =
        json!({ "apiVersion": "resource.k8s.io/v1", "metadata": { "name": "pool" }, "spec": { "devices": requests } });
    api.create(CLAIMS, claim);
    (0..3).for_each(|it| member(&api, "db", it, 0, &shared));
    api.wait_until("all are bound", |api| {
        (0..3).all(|it| pod(api, &format!("db-{it}"))["spec"]["nodeName"].is_string())
    })
    .await;
    let pool = api.get(&format!("{CLAIMS}/pool")).unwrap_or_default();
    let group = api.get(&format!("{GROUPS}/db")).unwrap_or_default();
    let reference = json!({
        "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "db", "uid": group["metadata"]["uid"],
    });
    assert_eq!(pool["status"]["reservedFor"], json!([reference]));
    assert_eq!(pool["status"]["allocation"]["devices"]["results"].as_array().map(Vec::len), Some(2));
    assert_eq!(api.log().iter().filter(|asked| asked.path.starts_with(CLAIMS)).count(), 1);
}

#[tokio::test]
async fn a_binding_of_which_nothing_is_known_is_looked_up() {
    let api = with_nodes(1, "3").await;
    api.be_unsure_about_bindings(2);
    gang(&api, "db", 3, 0, &json!({}));
    (0..3).for_each(|it| member(&api, "db", it, 0, &json!({})));
    let _scheduler = scheduler::start(&api.client(), scheduler::Config::default());
    api.wait_until("the group is scheduled", |api| {
        let group = api.get(&format!("{GROUPS}/db")).unwrap_or_default();
        condition(&group, "PodGroupInitiallyScheduled") == "True"
    })
    .await;
    let bindings = api.log().iter().filter(|asked| asked.path.ends_with("/binding")).count();
    assert_eq!(bindings, 3, "none is done twice");
}

#[tokio::test]
async fn a_scheduler_that_crashed_is_taken_over_from() {
    let api = with_nodes(2, "2").await;
    let crashed = scheduler::start(&api.client(), scheduler::Config::default());
    gang(&api, "db", 2, 0, &json!({}));
    (0..2).for_each(|it| member(&api, "db", it, 0, &json!({})));
    api.wait_until("the first pod is bound", |api| pod(api, "db-0")["spec"]["nodeName"].is_string()).await;
    drop(crashed);
    let _scheduler = scheduler::start(&api.client(), scheduler::Config::default());
    gang(&api, "kv", 2, 0, &json!({}));
    (0..2).for_each(|it| member(&api, "kv", it, 0, &json!({})));
    api.wait_until("all are bound", |api| {
        ["db-0", "db-1", "kv-0", "kv-1"].iter().all(|name| pod(api, name)["spec"]["nodeName"].is_string())
    })
    .await;
    let mut nodes: BTreeMap<String, usize> = BTreeMap::new();
    for name in ["db-0", "db-1", "kv-0", "kv-1"] {
        *nodes.entry(pod(&api, name)["spec"]["nodeName"].to_string()).or_default() += 1;
    }
    assert_eq!(nodes.into_values().collect::<Vec<_>>(), [2, 2], "no node has more than it can bear");
}

#[tokio::test]
async fn a_replacement_is_bound_after_the_pod_that_it_replaces_is_gone() {
    let api = with_nodes(1, "2").await;
    let _scheduler = scheduler::start(&api.client(), scheduler::Config::default());
    let _kubelet = kubelet::start(&api.client(), kubelets());
    gang(&api, "db", 2, 0, &json!({}));
    (0..2).for_each(|it| member(&api, "db", it, 0, &json!({})));
    api.wait_until("both are ready", |api| (0..2).all(|it| is_ready(api, &format!("db-{it}")))).await;
    let first = pod(&api, "db-1")["metadata"]["uid"].clone();
    api.delete_pod(&format!("{PODS}/db-1"));
    api.wait_until("it is gone", |api| pod(api, "db-1").is_null()).await;
    let stopped = api.log().iter().any(|asked| asked.body["status"]["phase"] == "Succeeded");
    assert!(stopped, "it had a terminal phase before it went");
    member(&api, "db", 1, 0, &json!({}));
    api.wait_until("the replacement is ready", |api| is_ready(api, "db-1")).await;
    assert_ne!(pod(&api, "db-1")["metadata"]["uid"], first);
}

#[tokio::test]
async fn kubelets_of_other_nodes_leave_a_pod_alone() {
    let api = with_nodes(1, "2").await;
    let _scheduler = scheduler::start(&api.client(), scheduler::Config::default());
    let nodes = Some(BTreeSet::from(["n7".to_owned()]));
    let _kubelet = kubelet::start(&api.client(), kubelet::Config { nodes, ..kubelets() });
    gang(&api, "db", 1, 0, &json!({}));
    member(&api, "db", 0, 0, &json!({}));
    api.wait_until("it is bound", |api| pod(api, "db-0")["spec"]["nodeName"].is_string()).await;
    let runs = |api: &FakeApi| !pod(api, "db-0")["status"]["phase"].is_null();
    api.never("no kubelet of its node runs", Duration::from_millis(100), runs).await;
}
