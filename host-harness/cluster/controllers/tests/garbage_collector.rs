//! The garbage collector over HTTP: a StatefulSet, its PodGroup and its pods.

mod api;

use std::time::Duration;

use api::Api;
use cluster_controllers::garbage_collector::{Config, start};
use cluster_controllers::identity;
use serde_json::{Value, json};

const PROTECTION: &str = "scheduling.k8s.io/podgroup-protection";

fn owner(kind: &str, name: &str, controller: bool) -> Value {
    let version = if kind == "PodGroup" { "scheduling.k8s.io/v1beta1" } else { "apps/v1" };
    let mut owner = json!({ "apiVersion": version, "kind": kind, "name": name, "uid": format!("{name}-uid") });
    if controller {
        owner["controller"] = true.into();
        owner["blockOwnerDeletion"] = true.into();
    }
    owner
}

fn object(name: &str, owners: &[Value], finalizers: &[&str]) -> Value {
    json!({ "metadata": {
        "namespace": "prod", "name": name, "uid": format!("{name}-uid"),
        "ownerReferences": owners, "finalizers": finalizers,
    }})
}

/// A set `web` with a pod `web-0` in its group `group`. Whether the pod belongs to the group, too, and
/// which finalizers the group has beside the protection.
fn put_set(api: &Api, pod_of_group: bool, finalizers: &[&str]) {
    api.put("statefulsets", object("web", &[], &[]));
    let finalizers: Vec<_> = [PROTECTION].iter().chain(finalizers).copied().collect();
    api.put("podgroups", object("group", &[owner("StatefulSet", "web", true)], &finalizers));
    let mut owners = vec![owner("StatefulSet", "web", true)];
    if pod_of_group {
        owners.push(owner("PodGroup", "group", false));
    }
    api.put("pods", object("web-0", &owners, &[]));
}

/// Takes the protection off a group that is being deleted once there are no pods.
async fn protection(api: &Api) {
    api.attend(|api| {
        let ends = api.get("podgroups", "group").is_some_and(|group| {
            let finalizers = group["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            group["metadata"]["deletionTimestamp"].is_string() && finalizers.contains(&PROTECTION.into())
        });
        if ends && api.list("pods").is_empty() {
            api.modify("podgroups", "group", |group| {
                let finalizers = group["metadata"]["finalizers"].as_array_mut().expect("it has some");
                finalizers.retain(|finalizer| finalizer != PROTECTION);
            });
        }
    })
    .await;
}

async fn with_protection(api: &Api, work: impl Future<Output = ()>) {
    tokio::select! {
        () = protection(api) => {}
        () = work => {}
    }
}

fn is_empty(api: &Api) -> bool {
    ["statefulsets", "podgroups", "pods"].iter().all(|plural| api.list(plural).is_empty())
}

#[tokio::test]
async fn a_background_delete_ends_when_pods_do_not_belong_to_their_group() {
    let api = Api::start().await;
    put_set(&api, false, &[]);
    let collector = start(&api.client(), Config::default());
    collector.synced().await;
    with_protection(&api, async {
        api.delete("statefulsets", "web", "Background");
        api.until("nothing left", is_empty).await;
    })
    .await;
    let delete = &api.asked("delete", "pods")[0];
    assert_eq!(delete.user, identity::GARBAGE_COLLECTOR);
    assert_eq!(delete.body, json!({ "propagationPolicy": "Background", "preconditions": { "uid": "web-0-uid" } }));
}

#[tokio::test]
async fn a_background_delete_never_ends_when_pods_belong_to_their_group() {
    let api = Api::start().await;
    put_set(&api, true, &[]);
    let collector = start(&api.client(), Config::default());
    collector.synced().await;
    with_protection(&api, async {
        api.delete("statefulsets", "web", "Background");
        let stripped = |api: &Api| {
            let pod = api.get("pods", "web-0").expect("the pod keeps running");
            let group = api.get("podgroups", "group").expect("the group waits for the pod");
            pod["metadata"]["ownerReferences"] == json!([owner("PodGroup", "group", false)])
                && group["metadata"]["deletionTimestamp"].is_string()
        };
        api.until("the livelock", stripped).await;
        let ends = |api: &Api| {
            !stripped(api)
                || api.get("pods", "web-0").is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
        };
        api.never("the end", Duration::from_millis(300), ends).await;
    })
    .await;
}

#[tokio::test]
async fn a_background_delete_ends_when_the_group_is_made_with_the_foreground_finalizer() {
    let api = Api::start().await;
    put_set(&api, true, &["foregroundDeletion"]);
    let collector = start(&api.client(), Config::default());
    collector.synced().await;
    with_protection(&api, async {
        api.delete("statefulsets", "web", "Background");
        api.until("nothing left", is_empty).await;
    })
    .await;
}

#[tokio::test]
async fn a_foreground_delete_takes_the_dependents_first() {
    for pod_of_group in [false, true] {
        let api = Api::start().await;
        put_set(&api, pod_of_group, &[]);
        let collector = start(&api.client(), Config::default());
        collector.synced().await;
        with_protection(&api, async {
            api.delete("statefulsets", "web", "Foreground");
            api.until("no set", |api| api.get("statefulsets", "web").is_none()).await;
            assert!(api.list("pods").is_empty(), "the pod went before the set");
            api.until("nothing left", is_empty).await;
        })
        .await;
    }
}

#[tokio::test]
async fn an_orphan_delete_leaves_the_dependents_without_their_owner() {
    let api = Api::start().await;
    put_set(&api, true, &[]);
    let collector = start(&api.client(), Config::default());
    collector.synced().await;
    api.delete("statefulsets", "web", "Orphan");
    api.until("no set", |api| api.get("statefulsets", "web").is_none()).await;
    let owners =
        |plural: &str, name: &str| api.get(plural, name).expect("it is left")["metadata"]["ownerReferences"].clone();
    assert_eq!(owners("pods", "web-0"), json!([owner("PodGroup", "group", false)]));
    assert_eq!(owners("podgroups", "group"), Value::Null);
}

#[tokio::test]
async fn what_refers_to_an_owner_that_never_was_or_was_made_again_is_deleted() {
    let api = Api::start().await;
    api.put("pods", object("lost-0", &[owner("StatefulSet", "lost", true)], &[]));
    api.put("pods", object("web-0", &[owner("StatefulSet", "web", true)], &[]));
    let mut again = object("web", &[], &[]);
    again["metadata"]["uid"] = "another-uid".into();
    api.put("statefulsets", again);
    let _collector = start(&api.client(), Config::default());
    api.until("no pods", |api| api.list("pods").is_empty()).await;
    assert!(api.get("statefulsets", "web").is_some());
}
