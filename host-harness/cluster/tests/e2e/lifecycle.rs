//! From create to delete.

use cluster::objects::{Set, gang};
use cluster::{Options, invariants};
use cluster_apiserver::{Fault, Occasion, Request, Resource, Subresource, Verb, View};
use kube::api::PropagationPolicy;
use serde_json::json;
use tokio::time::Instant;

use crate::bench::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workload_and_pod_group_come_before_pods_and_pods_refer_to_the_group() {
    for profile in PROFILES {
        let cluster = of_profile(profile).await;
        create(&cluster, Set::new("web", 3), &gang()).await;
        settled(&cluster, "web", 3).await;
        let (workload, group) = (workload(&cluster, "web"), group(&cluster, "web"));
        assert_eq!(group["spec"]["workloadRef"]["workloadName"], workload["metadata"]["name"]);
        let requests = cluster.api.requests();
        let first = |user, resource| done(&requests, user, Verb::Create, resource).filter_map(|it| it.answered).min();
        let order = [
            first(CONTROLLER, Resource::Workloads),
            first(CONTROLLER, Resource::PodGroups),
            first(STATEFULSET_CONTROLLER, Resource::Pods),
        ];
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{profile:?}: {order:?}");
        for pod in cluster.api.look(|view| pods(view, "web")) {
            assert_eq!(pod["spec"]["schedulingGroup"]["podGroupName"], group["metadata"]["name"]);
            let owners = pod["metadata"]["ownerReferences"].as_array().expect("it has an owner");
            assert_eq!(owners.len(), 1, "the PodGroup is no owner by default: {owners:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_intent_that_is_not_valid_is_refused_where_it_was_written() {
    for profile in PROFILES {
        let cluster = of_profile(profile).await;
        let carrier = cluster::objects::Carrier::of(profile);
        let set = Set::new("web", 3).with("/spec/podManagementPolicy", json!("OrderedReady"));
        let refused = cluster.admin().create(set.with_intent(carrier, &gang()).object()).await;
        let message = refused.expect_err("an OrderedReady gang cannot be").to_string();
        assert!(message.contains("OrderedReady"), "{message}");
        assert!(message.contains(&carrier.path()), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordered_ready_basic_set_is_scheduled_one_after_the_other() {
    for profile in PROFILES {
        let cluster = of_profile(profile).await;
        let set = Set::new("db", 4).with("/spec/podManagementPolicy", json!("OrderedReady"));
        create(&cluster, set, &json!({ "schedulingPolicy": { "basic": {} } })).await;
        let mut out_of_order = false;
        let done = |view: &cluster_apiserver::View<'_>| {
            let pods = pods(view, "db");
            let ready =
                |pod: &serde_json::Value| cluster::cluster::condition(pod, "Ready").map(|it| it.0) == Some("True");
            // Of the pods that are there, all but the last are ready.
            out_of_order |= pods.iter().rev().skip(1).any(|pod| !ready(pod));
            is_ready(view, "db", 4) && invariants::violations(view).is_empty()
        };
        cluster.api.wait_for(done, SOON).await;
        assert!(!out_of_order, "{profile:?}");
        let group = group(&cluster, "db");
        assert_eq!(group["spec"]["schedulingPolicy"], json!({ "basic": {} }));
        let pods = cluster.api.look(|view| pods(view, "db"));
        assert!(pods.iter().all(|pod| pod["spec"]["schedulingGroup"]["podGroupName"] == group["metadata"]["name"]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_update_keeps_the_pod_group_and_new_pods_carry_its_name() {
    let cluster = cluster(Options::default()).await;
    create(&cluster, Set::new("web", 3), &gang()).await;
    settled(&cluster, "web", 3).await;
    let (before, old) = (group(&cluster, "web"), uids(&cluster.api.look(|view| pods(view, "web"))));
    let patch = json!({ "spec": { "template": { "metadata": { "annotations": { "version": "2" } } } } });
    cluster.admin().merge(Resource::StatefulSets, NAMESPACE, "web", patch).await.expect("it may change");
    let replaced = |view: &cluster_apiserver::View<'_>| {
        uids(&pods(view, "web")).is_disjoint(&old)
            && is_ready(view, "web", 3)
            && invariants::violations(view).is_empty()
    };
    cluster.api.wait_for(replaced, SOON).await;
    let after = group(&cluster, "web");
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(before["spec"], after["spec"]);
    for pod in cluster.api.look(|view| pods(view, "web")) {
        assert_eq!(pod["spec"]["schedulingGroup"]["podGroupName"], after["metadata"]["name"]);
        assert_eq!(pod["metadata"]["annotations"]["version"], "2");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_the_set_deletes_workload_pod_group_and_all_pods() {
    for profile in PROFILES {
        let cluster = of_profile(profile).await;
        create(&cluster, Set::new("web", 3), &gang()).await;
        settled(&cluster, "web", 3).await;
        delete(&cluster, "web", PropagationPolicy::Background).await;
        let kinds = [Resource::StatefulSets, Resource::Workloads, Resource::PodGroups, Resource::Pods];
        cluster.api.wait_for(|view| kinds.iter().all(|resource| view.len(*resource) == 0), SOON).await;
        // The controller deletes nothing: owners do.
        for resource in kinds {
            assert_eq!(cluster.api.count(Some(CONTROLLER), Verb::Delete, resource), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_between_the_two_creates_makes_only_the_pod_group() {
    let mut cluster = cluster(Options::default()).await;
    cluster.api.set_faults(|occasion: &Occasion<'_>| {
        let is_create = (occasion.verb, occasion.resource) == (Verb::Create, Resource::PodGroups);
        is_create.then_some(Fault::DropBefore)
    });
    create(&cluster, Set::new("web", 3), &gang()).await;
    cluster.api.wait_for(|view| view.count(Some(CONTROLLER), Verb::Create, Resource::PodGroups) > 0, SOON).await;
    cluster.kill_controller().await;
    let workload_before = workload(&cluster, "web");
    assert_eq!(cluster.api.list(Resource::PodGroups), [] as [serde_json::Value; 0]);
    assert_eq!(cluster.api.look(|view| pods(view, "web").len()), 0, "no pod is made without its group");
    cluster.api.clear_faults();
    cluster.start_controller(cluster::controller::As::Binary).await.expect("it starts again");
    settled(&cluster, "web", 3).await;
    assert_eq!(workload(&cluster, "web"), workload_before);
    assert_eq!(done(&cluster.api.requests(), CONTROLLER, Verb::Create, Resource::Workloads).count(), 1);
    assert_eq!(done(&cluster.api.requests(), CONTROLLER, Verb::Create, Resource::PodGroups).count(), 1);
}

/// All writes, but for the Lease that is renewed.
fn writes<'a>(view: &'a View<'_>) -> impl Iterator<Item = &'a Request> {
    view.requests().iter().filter(|request| request.verb.is_write() && request.resource != Resource::Leases)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_rest_the_controller_and_the_statefulset_controller_write_nothing() {
    let cluster = cluster(Options::default()).await;
    create(&cluster, Set::new("web", 3), &gang()).await;
    settled(&cluster, "web", 3).await;
    // The two events of the creation may still be on their way.
    let told = |view: &cluster_apiserver::View<'_>| view.count(Some(CONTROLLER), Verb::Create, Resource::Events) == 2;
    cluster.api.wait_for(told, SOON).await;
    cluster.api.reset_log();
    // The StatefulSet controller may write a status once more before it sees its own last write; then it rests.
    let patience = Instant::now() + SOON;
    while cluster.api.reaches(|view| writes(view).next().is_some(), A_WHILE).await {
        cluster.api.look(|view| assert_eq!(writes(view).find(|request| &*request.user == CONTROLLER), None));
        cluster.api.reset_log();
        assert!(Instant::now() < patience, "it does not come to rest");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_statefulset_and_its_status_are_otherwise_untouched_by_the_controller() {
    let cluster = cluster(Options::default()).await;
    create(&cluster, Set::new("web", 2), &gang()).await;
    settled(&cluster, "web", 2).await;
    let requests = cluster.api.requests();
    let about_sets = requests.iter().filter(|request| {
        &*request.user == CONTROLLER && request.verb.is_write() && request.resource == Resource::StatefulSets
    });
    let subresources: Vec<Option<Subresource>> = about_sets.map(|request| request.subresource).collect();
    assert_eq!(subresources, [None], "one patch, of the binding");
}
