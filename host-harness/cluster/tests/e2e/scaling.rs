//! Sizes: up, down, to zero and back, and with a write that fails.

use cluster::Cluster;
use cluster::invariants::{binding, min_counts};
use cluster::objects::{Set, gang};
use cluster_apiserver::{Fault, Occasion, Request, Resource, Verb, View};

use crate::bench::*;

/// Lets each request of the controller of this kind fail, `times` times.
fn fail(cluster: &Cluster, resource: Resource, times: u64, fault: Fault) {
    cluster.api.reset_log();
    cluster.api.set_faults(move |occasion: &Occasion<'_>| {
        let is_meant = occasion.user == CONTROLLER && (occasion.verb, occasion.resource) == (Verb::Patch, resource);
        (is_meant && occasion.n < times).then_some(fault)
    });
}

fn last(requests: &[Request], verb: Verb, resource: Resource) -> u64 {
    done(requests, CONTROLLER, verb, resource).filter_map(|it| it.answered).max().expect("it was written")
}

async fn settled_set(profile: cluster_apiserver::Profile, replicas: i32) -> Cluster {
    let cluster = of_profile(profile).await;
    create(&cluster, Set::new("web", replicas), &gang()).await;
    settled(&cluster, "web", replicas.into()).await;
    cluster
}

async fn scale(cluster: &Cluster, replicas: i32) {
    cluster.admin().scale(NAMESPACE, "web", replicas).await.expect("it may be scaled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scaling_up_changes_both_sizes_in_place_and_new_pods_join_the_group() {
    for profile in PROFILES {
        let cluster = settled_set(profile, 3).await;
        let before = (workload(&cluster, "web"), group(&cluster, "web"));
        cluster.api.reset_log();
        scale(&cluster, 5).await;
        settled(&cluster, "web", 5).await;
        let after = (workload(&cluster, "web"), group(&cluster, "web"));
        assert_eq!(before.0["metadata"]["uid"], after.0["metadata"]["uid"]);
        assert_eq!(before.1["metadata"]["uid"], after.1["metadata"]["uid"]);
        assert_eq!((min_counts(&after.0), min_counts(&after.1)), (vec![5], vec![5]));
        let requests = cluster.api.requests();
        let created = done(&requests, STATEFULSET_CONTROLLER, Verb::Create, Resource::Pods);
        let order = [
            last(&requests, Verb::Patch, Resource::Workloads),
            last(&requests, Verb::Patch, Resource::PodGroups),
            created.filter_map(|it| it.answered).min().expect("pods were made"),
        ];
        assert!(order.is_sorted(), "{profile:?}: {order:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scaling_down_changes_both_sizes_before_the_pods_are_deleted() {
    for profile in PROFILES {
        let cluster = settled_set(profile, 5).await;
        cluster.api.reset_log();
        scale(&cluster, 2).await;
        settled(&cluster, "web", 2).await;
        let names: Vec<_> =
            cluster.api.look(|view| pods(view, "web")).iter().map(|pod| pod["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["web-0", "web-1"]);
        let requests = cluster.api.requests();
        let deleted = done(&requests, STATEFULSET_CONTROLLER, Verb::Delete, Resource::Pods);
        let order = [
            last(&requests, Verb::Patch, Resource::Workloads),
            last(&requests, Verb::Patch, Resource::PodGroups),
            deleted.filter_map(|it| it.answered).min().expect("pods were deleted"),
        ];
        assert!(order.is_sorted(), "{profile:?}: {order:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_either_update_fails_the_deletion_of_pods_waits_for_a_retry_that_succeeds() {
    for resource in [Resource::Workloads, Resource::PodGroups] {
        let cluster = settled_set(cluster_apiserver::Profile::V1_37, 4).await;
        fail(&cluster, resource, u64::MAX, Fault::Status(500, None));
        scale(&cluster, 2).await;
        let held = |view: &View<'_>| {
            refused(view.requests(), STATEFULSET_CONTROLLER, Verb::Delete, Resource::Pods).count() > 0
        };
        cluster.api.wait_for(held, SOON).await;
        let going =
            |view: &View<'_>| pods(view, "web").iter().any(|pod| pod["metadata"]["deletionTimestamp"].is_string());
        never(&cluster, "a pod is deleted", going).await;
        assert_eq!(cluster.api.look(|view| pods(view, "web").len()), 4);
        cluster.api.clear_faults();
        settled(&cluster, "web", 2).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_was_interrupted_converges_on_retry() {
    for fault in [Fault::DropBefore, Fault::DropAfter, Fault::Status(409, None), Fault::Status(429, Some(1))] {
        for resource in [Resource::Workloads, Resource::PodGroups, Resource::StatefulSets] {
            let cluster = settled_set(cluster_apiserver::Profile::V1_37, 2).await;
            let before = uids(&[workload(&cluster, "web"), group(&cluster, "web")]);
            fail(&cluster, resource, 1, fault);
            scale(&cluster, 4).await;
            settled(&cluster, "web", 4).await;
            assert_eq!(uids(&[workload(&cluster, "web"), group(&cluster, "web")]), before, "{resource:?} {fault:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_zero_the_group_survives_with_one_and_back_the_gang_forms_again() {
    for profile in PROFILES {
        let cluster = settled_set(profile, 3).await;
        let before = uids(&[workload(&cluster, "web"), group(&cluster, "web")]);
        scale(&cluster, 0).await;
        settled(&cluster, "web", 0).await;
        assert_eq!(cluster.api.len(Resource::Pods), 0);
        assert_eq!(min_counts(&workload(&cluster, "web")), [1]);
        assert_eq!(min_counts(&group(&cluster, "web")), [1]);
        assert_eq!(cluster.api.look(|view| binding(&set(view, "web"))["replicas"].clone()), 0);
        scale(&cluster, 3).await;
        settled(&cluster, "web", 3).await;
        assert_eq!(uids(&[workload(&cluster, "web"), group(&cluster, "web")]), before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_opted_in_set_that_begins_with_nothing_can_grow() {
    let cluster = settled_set(cluster_apiserver::Profile::V1_37, 0).await;
    assert_eq!(min_counts(&group(&cluster, "web")), [1]);
    scale(&cluster, 2).await;
    settled(&cluster, "web", 2).await;
}
