//! StatefulSets that are part of something larger.

use cluster::objects::{Set, gang};
use cluster::{Cluster, Options};
use cluster_apiserver::{Profile, Resource};
use serde_json::{Value, json};

use crate::bench::*;

/// The parent: any object that is a controller of a StatefulSet will do.
async fn parent(cluster: &Cluster) -> Value {
    let parent = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "parent" } });
    cluster.admin().create(parent).await.expect("it is valid")
}

fn owned_by(set: Set, parent: &Value) -> Set {
    set.with(
        "/metadata/ownerReferences",
        json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": parent["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true }]),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_of_a_parent_with_a_workload_gets_a_group_in_the_parents_and_no_workload() {
    for profile in PROFILES {
        let cluster = of_profile(profile).await;
        let parent = parent(&cluster).await;
        let template = json!({ "name": "workers", "schedulingPolicy": { "gang": { "minCount": 2 } } });
        let workload = json!({
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": { "name": "parent" },
            "spec": {
                "controllerRef": { "kind": "ConfigMap", "name": "parent" },
                "compositePodGroupTemplates": [{
                    "name": "all",
                    "schedulingPolicy": { "basic": {} },
                    "podGroupTemplates": [template],
                }],
            },
        });
        cluster.admin().create(workload).await.expect("the parent's Workload is valid");
        let set = owned_by(Set::new("workers", 2), &parent)
            .with("/metadata/annotations/scheduling.k8s.io~1group-template-name", json!("workers"))
            .with("/metadata/annotations/scheduling.k8s.io~1parent-compositepodgroup", json!("parent-group"));
        create(&cluster, set, &gang()).await;
        cluster.api.wait_for(|view| is_ready(view, "workers", 2), SOON).await;
        let group = group(&cluster, "workers");
        assert_eq!(group["spec"]["parentCompositePodGroupName"], "parent-group", "{profile:?}: {group}");
        assert_eq!(group["spec"]["workloadRef"], json!({ "workloadName": "parent", "templateName": "workers" }));
        assert_eq!(group["spec"]["schedulingPolicy"]["gang"]["minCount"], 2);
        let owners = group["metadata"]["ownerReferences"].as_array().expect("it has an owner");
        assert_eq!((owners.len(), &owners[0]["kind"]), (1, &json!("StatefulSet")), "{owners:?}");
        assert_eq!(cluster.api.len(Resource::Workloads), 1, "{profile:?}: the parent's is the only one");
        for pod in cluster.api.look(|view| pods(view, "workers")) {
            assert_eq!(pod["spec"]["schedulingGroup"]["podGroupName"], group["metadata"]["name"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_whose_owner_sets_no_annotation_gets_a_workload_and_a_group_of_its_own() {
    for profile in PROFILES {
        let cluster = of_profile(profile).await;
        let parent = parent(&cluster).await;
        create(&cluster, owned_by(Set::new("web", 2), &parent), &gang()).await;
        settled(&cluster, "web", 2).await;
        let group = group(&cluster, "web");
        assert_eq!(group["spec"]["workloadRef"]["workloadName"], workload(&cluster, "web")["metadata"]["name"]);
        assert!(group["spec"]["parentCompositePodGroupName"].is_null());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_whose_parent_has_no_workload_falls_back_with_an_event() {
    let cluster = cluster(Options { profile: Profile::V1_37, ..Options::default() }).await;
    let parent = parent(&cluster).await;
    let set = owned_by(Set::new("web", 2), &parent)
        .with("/metadata/annotations/scheduling.k8s.io~1group-template-name", json!("workers"));
    create(&cluster, set, &gang()).await;
    let fallen_back = |view: &cluster_apiserver::View<'_>| {
        let of_web = |event: &Value| event["reason"] == "UnresolvedParent" && event["involvedObject"]["name"] == "web";
        is_ready(view, "web", 2) && view.list(Resource::Events).iter().any(of_web)
    };
    cluster.api.wait_for(fallen_back, SOON).await;
    assert_eq!((cluster.api.len(Resource::Workloads), cluster.api.len(Resource::PodGroups)), (0, 0));
    assert!(cluster.api.look(|view| pods(view, "web")).iter().all(|pod| pod["spec"]["schedulingGroup"].is_null()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workload_and_group_of_the_user_are_used_and_never_changed() {
    let mut cluster = cluster(Options::default()).await;
    // The user's objects are there first.
    cluster.stop_controller().await.expect("it ends well");
    let workload = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": { "name": "mine" },
        "spec": {
            "controllerRef": { "apiGroup": "apps", "kind": "StatefulSet", "name": "web" },
            "podGroupTemplates": [{ "name": "members", "schedulingPolicy": { "gang": { "minCount": 2 } } }],
        },
    });
    let group = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": { "name": "mine" },
        "spec": {
            "workloadRef": { "workloadName": "mine", "templateName": "members" },
            "schedulingPolicy": { "gang": { "minCount": 2 } },
        },
    });
    let before = [
        cluster.admin().create(workload).await.expect("it is valid"),
        cluster.admin().create(group).await.expect("it is valid"),
    ];
    create(&cluster, Set::new("web", 3), &gang()).await;
    cluster.start_controller(cluster::controller::As::Binary).await.expect("it starts");
    cluster.api.wait_for(|view| is_ready(view, "web", 3), SOON).await;
    for pod in cluster.api.look(|view| pods(view, "web")) {
        assert_eq!(pod["spec"]["schedulingGroup"]["podGroupName"], "mine");
    }
    let spec = |resource| cluster.api.get(resource, NAMESPACE, "mine").expect("it is there")["spec"].clone();
    assert_eq!(
        (spec(Resource::Workloads), spec(Resource::PodGroups)),
        (before[0]["spec"].clone(), before[1]["spec"].clone())
    );
    assert_eq!((cluster.api.len(Resource::Workloads), cluster.api.len(Resource::PodGroups)), (1, 1));
    let requests = cluster.api.requests();
    for resource in [Resource::Workloads, Resource::PodGroups] {
        let writes =
            requests.iter().filter(|it| &*it.user == CONTROLLER && it.resource == resource && it.verb.is_write());
        assert_eq!(writes.count(), 0, "{resource:?}");
    }
}
