//! The StatefulSet controller over HTTP.

mod api;

use std::time::Duration;

use api::Api;
use cluster_controllers::statefulset::{Config, start};
use cluster_controllers::{Backoff, identity};
use serde_json::{Value, json};

fn set(replicas: u32, policy: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "namespace": "prod", "name": "web", "uid": "set-uid", "generation": 1 },
        "spec": {
            "replicas": replicas,
            "podManagementPolicy": policy,
            "serviceName": "web",
            "selector": { "matchLabels": { "app": "web" } },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "one" }], "terminationGracePeriodSeconds": 7 },
            },
        },
    })
}

/// Has every pod run and be ready as soon as it is there, until it is dropped.
async fn kubelet(api: &Api) {
    let make_ready = |api: &Api, pod: &Value| {
        if !pod["status"]["phase"].is_string() {
            let name = pod["metadata"]["name"].as_str().expect("it has a name");
            api.modify("pods", name, |pod| {
                pod["status"] = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
            });
        }
    };
    api.attend(|api| api.list("pods").iter().for_each(|pod| make_ready(api, pod))).await;
}

async fn with_kubelet(api: &Api, work: impl Future<Output = ()>) {
    tokio::select! {
        () = kubelet(api) => {}
        () = work => {}
    }
}

fn names(api: &Api, verb: &str) -> Vec<String> {
    api.asked(verb, "pods").into_iter().filter(|asked| asked.code < 300).map(|asked| asked.name).collect()
}

fn ordinal(name: &str) -> usize {
    name.rsplit('-').next().and_then(|ordinal| ordinal.parse().ok()).expect("it is a pod's name")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_pods_are_created_in_batches_that_stop_at_a_failure_and_go_on_by_backoff() {
    let api = Api::start().await;
    // The fourth pod is in the third batch, of four.
    api.deny("create", "pods", "web-3", 2);
    api.put("statefulsets", set(500, "Parallel"));
    let controller = start(&api.client(), Config::default());
    api.until("all pods", |api| api.list("pods").len() == 500).await;
    controller.stop().await;

    let mut creates = api.asked("create", "pods");
    assert!(creates.iter().all(|asked| asked.user == identity::STATEFULSET_CONTROLLER));
    // It may not have seen its own pods yet.
    creates.retain(|asked| asked.code != 409);
    assert_eq!(creates.len(), 502, "each pod once, and two refusals");
    let third = creates.iter().rposition(|asked| asked.name == "web-3").expect("it was created");
    let before: Vec<_> = creates[..third].iter().map(|asked| ordinal(&asked.name)).collect();
    assert!(before.iter().all(|ordinal| *ordinal < 7), "no batch after the failed one: {before:?}");
    // A batch begins after the one before it has ended.
    let order: Vec<_> = creates[third + 1..].iter().map(|asked| ordinal(&asked.name)).collect();
    let place = |ordinals: std::ops::Range<usize>| {
        order.iter().enumerate().filter(move |(_, ordinal)| ordinals.contains(ordinal)).map(|(place, _)| place)
    };
    assert!(place(7..15).max() < place(15..31).min());
    assert!(place(127..255).max() < place(255..500).min());
}

#[tokio::test]
async fn a_set_whose_pods_are_refused_is_tried_again_after_waits_that_double() {
    let api = Api::start().await;
    api.deny("create", "pods", "web-0", 8);
    api.put("statefulsets", set(20, "Parallel"));
    let _controller = start(&api.client(), Config::default());
    api.until("all pods", |api| api.list("pods").len() == 20).await;
    let creates = api.asked("create", "pods");
    assert!(creates[..9].iter().all(|asked| asked.name == "web-0"), "the first batch is one pod");
    let waits: Vec<_> = creates[..9].windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    // The first failure changes the status, and that re-queues the set at once.
    for pair in waits[3..].windows(2) {
        assert!(pair[1] > pair[0].mul_f64(1.2), "{waits:?}");
    }
    assert!(waits[7] >= Duration::from_millis(320), "{waits:?}");
}

#[tokio::test]
async fn an_update_of_the_set_re_queues_it_at_once_while_it_waits_for_its_backoff() {
    let api = Api::start().await;
    api.deny("create", "pods", "web-0", 2);
    api.put("statefulsets", set(1, "OrderedReady"));
    let mut config = Config::default();
    config.common.backoff = Backoff { base: Duration::from_mins(10), cap: Duration::from_mins(10) };
    let _controller = start(&api.client(), config);
    // The status that it reports after the first failure is an update, too.
    api.until("two refusals", |api| api.asked("create", "pods").len() == 2).await;
    api.never("a pod", Duration::from_millis(200), |api| !api.list("pods").is_empty()).await;
    let before = std::time::Instant::now();
    api.modify("statefulsets", "web", |set| set["metadata"]["annotations"] = json!({ "wake": "up" }));
    api.until("the pod", |api| api.list("pods").len() == 1).await;
    assert!(before.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn an_ordered_set_grows_shrinks_and_rolls_pod_by_pod() {
    let api = Api::start().await;
    api.put("statefulsets", set(3, "OrderedReady"));
    let _controller = start(&api.client(), Config::default());
    let settled = |api: &Api, ready: u32, generation: u32| {
        let set = api.get("statefulsets", "web").expect("it is there");
        let status = &set["status"];
        status["readyReplicas"] == ready
            && status["updatedReplicas"] == ready
            && status["replicas"] == ready
            && status["observedGeneration"] == generation
            && status["currentRevision"] == status["updateRevision"]
    };
    with_kubelet(&api, async {
        api.until("three pods", |api| settled(api, 3, 1)).await;
        assert_eq!(names(&api, "create"), ["web-0", "web-1", "web-2"]);

        api.modify("statefulsets", "web", |set| {
            set["spec"]["template"]["spec"]["containers"][0]["image"] = "two".into();
            set["metadata"]["generation"] = 2.into();
        });
        api.until("the update", |api| settled(api, 3, 2)).await;
        assert_eq!(names(&api, "delete"), ["web-2", "web-1", "web-0"]);
        let revisions = api.list("controllerrevisions");
        assert_eq!(revisions.len(), 2);
        for pod in api.list("pods") {
            assert_eq!(pod["spec"]["containers"][0]["image"], "two");
        }

        api.modify("statefulsets", "web", |set| {
            set["spec"]["replicas"] = 1.into();
            set["metadata"]["generation"] = 3.into();
        });
        api.until("one pod", |api| settled(api, 1, 3)).await;
        assert_eq!(names(&api, "delete")[3..], ["web-2", "web-1"]);
    })
    .await;
    let options: Vec<_> = api.asked("delete", "pods").into_iter().map(|asked| asked.body).collect();
    assert!(options.iter().all(|options| *options == json!({ "gracePeriodSeconds": 7 })), "{options:?}");
}

#[tokio::test]
async fn a_refused_delete_of_the_highest_pod_is_retried_and_nothing_else_is_tried() {
    let api = Api::start().await;
    api.put("statefulsets", set(4, "Parallel"));
    let _controller = start(&api.client(), Config::default());
    with_kubelet(&api, async {
        api.until("four pods", |api| {
            api.get("statefulsets", "web").is_some_and(|set| set["status"]["readyReplicas"] == 4)
        })
        .await;
        api.deny("delete", "pods", "web-3", 4);
        api.modify("statefulsets", "web", |set| set["spec"]["replicas"] = 1.into());
        api.until("one pod", |api| api.list("pods").len() == 1).await;
    })
    .await;
    let tried: Vec<_> = api.asked("delete", "pods").into_iter().map(|asked| asked.name).collect();
    assert_eq!(tried[..5], ["web-3"; 5]);
    let mut rest = tried[5..].to_vec();
    rest.sort();
    assert_eq!(rest, ["web-1", "web-2"]);
}

#[tokio::test]
async fn orphans_are_adopted_strays_are_released_and_revisions_are_used_again() {
    let api = Api::start().await;
    api.put("statefulsets", set(1, "OrderedReady"));
    let first = start(&api.client(), Config::default());
    api.until("a pod", |api| api.list("pods").len() == 1).await;
    first.stop().await;
    // The set is deleted without its dependents, and made again.
    api.delete("statefulsets", "web", "Background");
    for (plural, name) in [("pods", "web-0"), ("controllerrevisions", "")] {
        let names: Vec<_> = api.list(plural).iter().map(|object| object["metadata"]["name"].clone()).collect();
        for found in names {
            let found = found.as_str().expect("it has a name").to_owned();
            assert!(name.is_empty() || name == found);
            api.modify(plural, &found, |object| object["metadata"]["ownerReferences"] = Value::Null);
        }
    }
    let mut again = set(1, "OrderedReady");
    again["metadata"]["uid"] = "another-uid".into();
    api.put("statefulsets", again);
    let _second = start(&api.client(), Config::default());
    let owner = |api: &Api, plural: &str| {
        api.list(plural)
            .iter()
            .map(|object| object["metadata"]["ownerReferences"][0]["uid"].clone())
            .collect::<Vec<_>>()
    };
    api.until("adoption", |api| owner(api, "pods") == ["another-uid"]).await;
    api.until("adoption of the revision", |api| owner(api, "controllerrevisions") == ["another-uid"]).await;
    assert_eq!(names(&api, "create"), ["web-0"]);

    api.modify("pods", "web-0", |pod| pod["metadata"]["labels"]["app"] = "other".into());
    api.until("release", |api| {
        api.get("pods", "web-0").is_some_and(|pod| pod["metadata"]["ownerReferences"].is_null())
    })
    .await;
}

#[tokio::test]
async fn a_pod_has_its_claims_before_it_is_there_and_keeps_them() {
    let api = Api::start().await;
    let mut web = set(1, "OrderedReady");
    web["spec"]["volumeClaimTemplates"] = json!([{ "metadata": { "name": "data" }, "spec": {} }]);
    api.put("statefulsets", web);
    let _controller = start(&api.client(), Config::default());
    with_kubelet(&api, async {
        api.until("a pod", |api| api.list("pods").len() == 1).await;
        assert!(api.get("persistentvolumeclaims", "data-web-0").is_some());
        api.delete("pods", "web-0", "Background");
        api.until("the pod again", |api| names(api, "create").len() == 2).await;
        assert_eq!(api.list("persistentvolumeclaims").len(), 1);
    })
    .await;
}
