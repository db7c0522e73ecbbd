//! Deletion in every way, with and without the ownerReference of DESIGN decision 11.

use std::time::Duration;

use cluster::invariants::{binding, controlling_set, violations};
use cluster::objects::{Carrier, Set, gang};
use cluster::{Cluster, Options};
use cluster_apiserver::{Profile, Resource, View};
use kube::api::PropagationPolicy;
use serde_json::{Value, json};

use crate::bench::*;

/// A delete that ends does so within a fraction of this, on any machine.
const LONG_ENOUGH: Duration = Duration::from_secs(15);

async fn running(owner_reference: bool) -> Cluster {
    let cluster = cluster(Options { owner_reference, ..Options::default() }).await;
    create(&cluster, Set::new("web", 3), &gang()).await;
    settled(&cluster, "web", 3).await;
    let owners = |pod: &Value| pod["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len);
    let expected = if owner_reference { 2 } else { 1 };
    assert!(cluster.api.look(|view| pods(view, "web")).iter().all(|pod| owners(pod) == expected));
    let group = group(&cluster, "web");
    let finalizers = group["metadata"]["finalizers"].as_array().expect("it is protected");
    assert_eq!(finalizers.contains(&json!("foregroundDeletion")), owner_reference, "{finalizers:?}");
    cluster
}

fn is_empty(view: &View<'_>) -> bool {
    [Resource::StatefulSets, Resource::Workloads, Resource::PodGroups, Resource::Pods]
        .iter()
        .all(|resource| view.len(*resource) == 0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn background_and_foreground_deletes_leave_nothing() {
    for propagation in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        let cluster = running(false).await;
        delete(&cluster, "web", propagation.clone()).await;
        let gone = cluster.api.reaches(is_empty, SOON).await;
        assert!(gone, "{propagation:?}: {:?}", cluster.violations());
    }
}

/// ADR 3: pods do not block their group, so the garbage collector may take the group's finalizer off before it
/// has judged the pods. A group without it looks solid again, and the pods stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_owner_reference_a_delete_ends_unless_the_garbage_collector_judges_the_pods_too_late() {
    for propagation in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        let mut ended = 0;
        for _ in 0..3 {
            let cluster = running(true).await;
            delete(&cluster, "web", propagation.clone()).await;
            if cluster.api.reaches(is_empty, LONG_ENOUGH).await {
                ended += 1;
            } else {
                let groups = cluster.api.list(Resource::PodGroups);
                let is_held = |group: &Value| group["metadata"]["finalizers"] == json!([cluster_apiserver::PROTECTION]);
                assert!(!groups.is_empty() && groups.iter().all(is_held), "{groups:?}");
                assert!(cluster.api.len(Resource::Pods) > 0, "only pods hold a group");
            }
        }
        println!("{propagation:?} deletes that ended, with the owner reference: {ended} of 3");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orphan_delete_leaves_pods_running_in_their_group() {
    for owner_reference in [false, true] {
        let cluster = running(owner_reference).await;
        let before = uids(&cluster.api.look(|view| pods(view, "web")));
        delete(&cluster, "web", PropagationPolicy::Orphan).await;
        let orphaned = |view: &View<'_>| {
            view.len(Resource::StatefulSets) == 0
                && [Resource::Workloads, Resource::PodGroups, Resource::Pods]
                    .iter()
                    .all(|resource| view.list(*resource).iter().all(|object| controlling_set(object).is_none()))
        };
        cluster.api.wait_for(orphaned, SOON).await;
        never(&cluster, "what was orphaned is deleted", |view| {
            view.len(Resource::Workloads) == 0 || view.len(Resource::PodGroups) == 0 || view.len(Resource::Pods) < 3
        })
        .await;
        let after = cluster.api.look(|view| pods(view, "web"));
        assert_eq!(uids(&after), before, "{owner_reference}");
        assert!(after.iter().all(|pod| pod["metadata"]["deletionTimestamp"].is_null()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_is_created_again_after_an_orphan_delete_adopts_its_pods_and_uses_the_group_that_was_left() {
    let cluster = running(false).await;
    let before = uids(&cluster.api.look(|view| pods(view, "web")));
    delete(&cluster, "web", PropagationPolicy::Orphan).await;
    cluster.api.wait_for(|view| view.len(Resource::StatefulSets) == 0, SOON).await;
    let new = create(&cluster, Set::new("web", 3), &gang()).await;
    let adopted = |view: &View<'_>| {
        pods(view, "web").iter().filter(|pod| controlling_set(pod) == new["metadata"]["uid"].as_str()).count() == 3
    };
    cluster.api.wait_for(adopted, SOON).await;
    assert_eq!(uids(&cluster.api.look(|view| pods(view, "web"))), before);
    // What was released is somebody else's now: one Workload and one PodGroup, used and not owned.
    let bound = |view: &View<'_>| {
        let group = view.list(Resource::PodGroups);
        let bound = binding(&set(view, "web"));
        group.len() == 1 && bound["uid"] == group[0]["metadata"]["uid"]
    };
    cluster.api.wait_for(bound, SOON).await;
    assert_eq!((cluster.api.len(Resource::Workloads), cluster.api.len(Resource::PodGroups)), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_is_created_again_at_once_has_objects_of_its_own_and_nothing_of_the_old_one_is_left() {
    for profile in PROFILES {
        for propagation in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
            let cluster = of_profile(profile).await;
            create(&cluster, Set::new("web", 3), &gang()).await;
            settled(&cluster, "web", 3).await;
            let before = [workload(&cluster, "web"), group(&cluster, "web")];
            let pods_before = uids(&cluster.api.look(|view| pods(view, "web")));
            delete(&cluster, "web", propagation).await;
            again(&cluster, profile).await;
            settled(&cluster, "web", 3).await;
            let after = [workload(&cluster, "web"), group(&cluster, "web")];
            assert!(uids(&before).is_disjoint(&uids(&after)));
            assert!(pods_before.is_disjoint(&uids(&cluster.api.look(|view| pods(view, "web")))), "{profile:?}");
            assert_eq!((cluster.api.len(Resource::Workloads), cluster.api.len(Resource::PodGroups)), (1, 1));
        }
    }
}

/// Creates the StatefulSet as soon as its name is free.
async fn again(cluster: &Cluster, profile: Profile) {
    let set = Set::new("web", 3).with_intent(Carrier::of(profile), &gang()).object();
    loop {
        match cluster.admin().create(set.clone()).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                cluster.api.wait_for(|view| view.len(Resource::StatefulSets) == 0, SOON).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// How many pods of the old set the new one has, once nothing is left to do; none if that does not come.
async fn adopted(owner_reference: bool) -> Option<usize> {
    let cluster = running(owner_reference).await;
    let before = uids(&cluster.api.look(|view| pods(view, "web")));
    delete(&cluster, "web", PropagationPolicy::Background).await;
    again(&cluster, Profile::V1_37).await;
    let at_rest = |view: &View<'_>| is_ready(view, "web", 3) && violations(view).is_empty();
    let rests = cluster.api.reaches(at_rest, LONG_ENOUGH).await;
    let now = uids(&cluster.api.look(|view| pods(view, "web")));
    rests.then(|| now.intersection(&before).count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_is_created_again_at_once_adopts_no_pod_and_comes_to_rest() {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        without.push(adopted(false).await);
        with.push(adopted(true).await);
    }
    println!(
        "old pods of 3 that were adopted: {without:?}; with the owner reference: {with:?}, where None stays in between"
    );
    assert_eq!(without, [Some(0); 4]);
}

/// Decision 11: what the KEP's letter does without the finalizer, on a garbage collector as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_to_the_group_without_its_finalizer_makes_a_background_delete_hang() {
    let cluster = running(false).await;
    let group = group(&cluster, "web");
    let reference = json!({ "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "name": group["metadata"]["name"], "uid": group["metadata"]["uid"] });
    for pod in cluster.api.look(|view| pods(view, "web")) {
        let mut owners = pod["metadata"]["ownerReferences"].as_array().expect("it has an owner").clone();
        owners.push(reference.clone());
        let name = pod["metadata"]["name"].as_str().expect("it has a name");
        let patch = json!({ "metadata": { "ownerReferences": owners } });
        cluster.admin().merge(Resource::Pods, NAMESPACE, name, patch).await.expect("references may change");
    }
    delete(&cluster, "web", PropagationPolicy::Background).await;
    let stripped = |view: &View<'_>| {
        view.len(Resource::StatefulSets) == 0 && pods(view, "web").iter().all(|pod| controlling_set(pod).is_none())
    };
    cluster.api.wait_for(stripped, SOON).await;
    never(&cluster, "it ended after all", is_empty).await;
    let left = cluster.api.list(Resource::PodGroups);
    assert!(left[0]["metadata"]["deletionTimestamp"].is_string(), "the group waits for pods that nobody deletes");
    assert_eq!(cluster.api.len(Resource::Pods), 3);
}
