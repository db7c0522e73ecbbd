//! Devices that the pods of a StatefulSet share.

use cluster::invariants::controlling_set;
use cluster::objects::Set;
use cluster::{Cluster, Options};
use cluster_apiserver::{Profile, Resource, View};
use kube::api::PropagationPolicy;
use serde_json::{Value, json};

use crate::bench::*;

fn devices(class: &str) -> Value {
    json!({ "devices": { "requests": [{ "name": "device", "exactly": { "deviceClassName": class } }] } })
}

async fn template(cluster: &Cluster, name: &str) {
    let template = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": { "name": name },
        "spec": { "spec": devices("gpu") },
    });
    cluster.admin().create(template).await.expect("it is valid");
}

/// A gang whose pods share what this template makes.
fn sharing(name: &str, replicas: i32, template: &str) -> (Set, Value) {
    let claim = json!([{ "name": "fabric", "resourceClaimTemplateName": template }]);
    let set = Set::new(name, replicas)
        .with("/spec/template/spec/resourceClaims", claim.clone())
        .with("/spec/template/spec/containers/0/resources/claims", json!([{ "name": "fabric" }]));
    (set, json!({ "schedulingPolicy": { "gang": {} }, "resourceClaims": claim }))
}

async fn shared(profile: Profile, replicas: i32) -> Cluster {
    let cluster = cluster(Options { profile, ..Options::default() }).await;
    template(&cluster, "fabric").await;
    let (set, intent) = sharing("model", replicas, "fabric");
    create(&cluster, set, &intent).await;
    settled(&cluster, "model", replicas.into()).await;
    cluster
}

fn claims(view: &View<'_>) -> Vec<Value> {
    view.list(Resource::ResourceClaims)
}

/// The one claim, which is the group's.
fn only_claim(cluster: &Cluster) -> Value {
    let mut claims = cluster.api.look(claims);
    assert_eq!(claims.len(), 1, "{claims:?}");
    claims.remove(0)
}

fn assert_is_the_groups(cluster: &Cluster, claim: &Value) {
    let group = group(cluster, "model");
    let reserved = claim["status"]["reservedFor"].as_array().expect("it is reserved");
    assert_eq!(reserved.len(), 1, "{reserved:?}");
    assert_eq!(
        (&reserved[0]["apiGroup"], &reserved[0]["resource"], &reserved[0]["name"], &reserved[0]["uid"]),
        (&json!("scheduling.k8s.io"), &json!("podgroups"), &group["metadata"]["name"], &group["metadata"]["uid"])
    );
    assert!(claim["status"]["allocation"].is_object(), "it is allocated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_reach_the_pod_group_and_are_shared_by_all_pods() {
    for profile in PROFILES {
        let cluster = shared(profile, 3).await;
        let claim = only_claim(&cluster);
        let expected = json!([{ "name": "fabric", "resourceClaimTemplateName": "fabric" }]);
        assert_eq!(group(&cluster, "model")["spec"]["resourceClaims"], expected);
        assert_eq!(workload(&cluster, "model")["spec"]["podGroupTemplates"][0]["resourceClaims"], expected);
        for pod in cluster.api.look(|view| pods(view, "model")) {
            let status = &pod["status"]["resourceClaimStatuses"][0];
            assert_eq!((&status["name"], &status["resourceClaimName"]), (&json!("fabric"), &claim["metadata"]["name"]));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_makes_one_claim_for_the_group_and_it_is_reserved_for_the_group() {
    for profile in PROFILES {
        let cluster = shared(profile, 3).await;
        let claim = only_claim(&cluster);
        let owner = &claim["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["kind"], &owner["uid"]), (&json!("PodGroup"), &group(&cluster, "model")["metadata"]["uid"]));
        assert_eq!(controlling_set(&claim), None);
        assert_is_the_groups(&cluster, &claim);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_by_name_is_shared_and_reserved_once() {
    let cluster = cluster(Options::default()).await;
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": { "name": "rack-switch" },
        "spec": devices("switch"),
    });
    cluster.admin().create(claim).await.expect("it is valid");
    let claims = json!([{ "name": "switch", "resourceClaimName": "rack-switch" }]);
    let set = Set::new("model", 3)
        .with("/spec/template/spec/resourceClaims", claims.clone())
        .with("/spec/template/spec/containers/0/resources/claims", json!([{ "name": "switch" }]));
    create(&cluster, set, &json!({ "schedulingPolicy": { "gang": {} }, "resourceClaims": claims })).await;
    settled(&cluster, "model", 3).await;
    assert_is_the_groups(&cluster, &only_claim(&cluster));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_the_group_deletes_the_claim_that_was_made_for_it() {
    let cluster = shared(Profile::V1_37, 2).await;
    delete(&cluster, "model", PropagationPolicy::Background).await;
    let kinds = [Resource::Pods, Resource::PodGroups, Resource::Workloads, Resource::ResourceClaims];
    cluster.api.wait_for(|view| kinds.iter().all(|resource| view.len(*resource) == 0), SOON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scaling_up_adds_pods_to_the_claim_that_is_there() {
    for profile in PROFILES {
        let cluster = shared(profile, 2).await;
        let before = only_claim(&cluster);
        cluster.admin().scale(NAMESPACE, "model", 4).await.expect("it may be scaled");
        settled(&cluster, "model", 4).await;
        let after = only_claim(&cluster);
        assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
        assert_is_the_groups(&cluster, &after);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_zero_the_claim_stays_allocated_and_reserved_for_the_group() {
    for profile in PROFILES {
        let cluster = shared(profile, 3).await;
        let before = only_claim(&cluster);
        cluster.admin().scale(NAMESPACE, "model", 0).await.expect("it may be scaled");
        settled(&cluster, "model", 0).await;
        // The controller of claims must have seen that no pod is left before it is judged.
        never(&cluster, "the claim was given back", |view| {
            claims(view).first().is_none_or(|claim| claim["status"]["allocation"].is_null())
        })
        .await;
        let after = only_claim(&cluster);
        assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
        assert_is_the_groups(&cluster, &after);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_update_claims_that_do_not_match_are_the_pods_and_the_unused_one_stays_the_groups() {
    let cluster = shared(Profile::V1_37, 2).await;
    template(&cluster, "other").await;
    let group_claim = only_claim(&cluster);
    // The name is the same, the source is not.
    let patch = json!({ "spec": { "template": { "spec": {
        "resourceClaims": [{ "name": "fabric", "resourceClaimTemplateName": "other" }],
    } } } });
    cluster.admin().merge(Resource::StatefulSets, NAMESPACE, "model", patch).await.expect("the template may change");
    settled(&cluster, "model", 2).await;
    let all = cluster.api.look(claims);
    let (of_group, of_pods): (Vec<_>, Vec<_>) =
        all.iter().partition(|claim| claim["metadata"]["uid"] == group_claim["metadata"]["uid"]);
    assert_eq!((of_group.len(), of_pods.len()), (1, 2), "{all:?}");
    for claim in of_pods {
        assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "Pod");
        assert_eq!(claim["status"]["reservedFor"][0]["resource"], "pods");
    }
    assert_is_the_groups(&cluster, of_group[0]);
    // Back to what matches: the pods use the group's again.
    let patch = json!({ "spec": { "template": { "spec": {
        "resourceClaims": [{ "name": "fabric", "resourceClaimTemplateName": "fabric" }],
    } } } });
    cluster.admin().merge(Resource::StatefulSets, NAMESPACE, "model", patch).await.expect("the template may change");
    let back = |view: &View<'_>| {
        let name = &group_claim["metadata"]["name"];
        is_ready(view, "model", 2)
            && claims(view).len() == 1
            && pods(view, "model")
                .iter()
                .all(|pod| pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"] == *name)
    };
    cluster.api.wait_for(back, SOON).await;
    assert_is_the_groups(&cluster, &only_claim(&cluster));
}
