//! Deletion in every way, with and without the ownerReference of DESIGN decision 11.

use cluster::invariants::{binding, controlling_set};
use cluster::objects::{Carrier, Set, gang};
use cluster::{Cluster, Options};
use cluster_apiserver::{Profile, Resource, View};
use kube::api::PropagationPolicy;
use serde_json::{Value, json};

use crate::bench::*;

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

/// Pods that nobody controls and nobody deletes, in a group that waits for them.
fn is_stranded(view: &View<'_>) -> bool {
    let pods = pods(view, "web");
    let is_left =
        |pod: &Value| pod["metadata"]["ownerReferences"].is_null() && pod["metadata"]["deletionTimestamp"].is_null();
    let groups = view.list(Resource::PodGroups);
    !pods.is_empty()
        && pods.iter().all(is_left)
        && groups.iter().all(|group| group["metadata"]["deletionTimestamp"].is_string())
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
/// has judged the pods. A group without it looks solid again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_owner_reference_deletes_end_or_leave_pods_that_the_garbage_collector_judged_too_late() {
    for propagation in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        let mut ended = 0;
        for _ in 0..3 {
            let cluster = running(true).await;
            delete(&cluster, "web", propagation.clone()).await;
            cluster.api.wait_for(|view| is_empty(view) || is_stranded(view), SOON).await;
            ended += usize::from(cluster.api.look(is_empty));
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

/// How many pods of the old set the new one has, once it is ready.
async fn adopted(owner_reference: bool) -> usize {
    let cluster = running(owner_reference).await;
    let old_group = group(&cluster, "web");
    let before = uids(&cluster.api.look(|view| pods(view, "web")));
    delete(&cluster, "web", PropagationPolicy::Background).await;
    again(&cluster, Profile::V1_37).await;
    let new = |view: &View<'_>| set(view, "web")["metadata"]["uid"].as_str().map(str::to_owned);
    let own = move |view: &View<'_>| {
        let uid = new(view);
        let own = pods(view, "web").into_iter().filter(|pod| controlling_set(pod) == uid.as_deref());
        own.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect::<Vec<_>>()
    };
    cluster.api.wait_for(move |view| is_ready(view, "web", 3) && own(view).len() == 3, SOON).await;
    let adopted: Vec<_> = cluster
        .api
        .look(own)
        .into_iter()
        .filter(|pod| before.contains(&uids(std::slice::from_ref(pod)).pop_first().expect("one")))
        .collect();
    if adopted.is_empty() {
        settled(&cluster, "web", 3).await;
    } else {
        // It is in the old group, which is not released while it runs.
        let name = &old_group["metadata"]["name"];
        assert!(adopted.iter().all(|pod| pod["spec"]["schedulingGroup"]["podGroupName"] == *name));
        let old = cluster.api.get(Resource::PodGroups, NAMESPACE, name.as_str().expect("it has a name"));
        assert!(old.is_some_and(|group| group["metadata"]["deletionTimestamp"].is_string()));
    }
    adopted.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_is_created_again_at_once_adopts_no_pod_unless_with_the_owner_reference() {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        without.push(adopted(false).await);
        with.push(adopted(true).await);
    }
    println!("old pods that were adopted, of 3: {with:?} with the owner reference, {without:?} without");
    assert_eq!(without, [0; 4]);
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
    // The garbage collector has to know of the references.
    cluster.api.wait_for(|view| pods(view, "web").len() == 3, SOON).await;
    tokio::time::sleep(A_WHILE).await;
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
