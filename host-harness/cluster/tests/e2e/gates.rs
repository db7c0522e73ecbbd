//! Feature gates, and switching them while sets are there.

use cluster::controller::As;
use cluster::invariants::{is_opted_in, min_counts};
use cluster::objects::{Set, gang};
use cluster::{Cluster, Options};
use cluster_apiserver::{Gates, Resource, View};
use serde_json::json;

use crate::bench::*;

const OFF: &str = "WorkloadWithStatefulSet=false";
const ON: &str = "WorkloadWithStatefulSet=true";

async fn switch(cluster: &mut Cluster, gates: &str) {
    cluster.stop_controller().await.expect("it ends well");
    cluster.set_feature_gates(gates).expect("the policies are there");
    cluster.start_controller(As::Binary).await.expect("it starts again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_gate_closed_there_are_no_objects_and_everything_is_as_without_the_project() {
    for profile in PROFILES {
        let cluster = cluster(Options { profile, feature_gates: OFF.to_owned(), ..Options::default() }).await;
        create(&cluster, Set::new("web", 3), &gang()).await;
        cluster.api.wait_for(|view| is_ready(view, "web", 3), SOON).await;
        let stored = cluster.api.look(|view| set(view, "web"));
        assert!(!is_opted_in(&stored), "{profile:?}: {stored}");
        assert_eq!((cluster.api.len(Resource::Workloads), cluster.api.len(Resource::PodGroups)), (0, 0));
        for pod in cluster.api.look(|view| pods(view, "web")) {
            assert!(pod["spec"]["schedulingGroup"].is_null());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_gate_open_both_gangs_and_ordered_basic_sets_have_their_objects() {
    for profile in PROFILES {
        let cluster = of_profile(profile).await;
        create(&cluster, Set::new("gang", 2), &gang()).await;
        let ordered = Set::new("ordered", 2).with("/spec/podManagementPolicy", json!("OrderedReady"));
        create(&cluster, ordered, &json!({})).await;
        settled(&cluster, "gang", 2).await;
        settled(&cluster, "ordered", 2).await;
        assert_eq!(group(&cluster, "ordered")["spec"]["schedulingPolicy"], json!({ "basic": {} }));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_and_opened_again_the_gate_leaves_what_is_there_and_then_uses_it() {
    for profile in PROFILES {
        let mut cluster = cluster(Options { profile, nodes: nodes(1, "8"), ..Options::default() }).await;
        create(&cluster, Set::new("web", 3), &gang()).await;
        settled(&cluster, "web", 3).await;
        let objects = [workload(&cluster, "web"), group(&cluster, "web")];
        let running = uids(&cluster.api.look(|view| pods(view, "web")));

        switch(&mut cluster, OFF).await;
        cluster.admin().scale(NAMESPACE, "web", 5).await.expect("it may be scaled");
        cluster.api.wait_for(|view| is_ready(view, "web", 5), SOON).await;
        // Sizes are no longer kept, the group is still there, and running pods are left alone.
        assert_eq!([workload(&cluster, "web"), group(&cluster, "web")].map(|it| min_counts(&it)), [[3], [3]]);
        assert!(is_opted_in(&cluster.api.look(|view| set(view, "web"))), "what is stored is kept");
        let now = cluster.api.look(|view| pods(view, "web"));
        assert!(uids(&now).is_superset(&running));
        let outside = now.iter().filter(|pod| pod["spec"]["schedulingGroup"].is_null()).count();
        assert_eq!(outside, 2, "the new pods are scheduled alone");

        switch(&mut cluster, ON).await;
        let in_step = |view: &View<'_>| {
            let all = view.list(Resource::Workloads).into_iter().chain(view.list(Resource::PodGroups));
            all.map(|object| min_counts(&object)).eq([[5], [5]])
        };
        cluster.api.wait_for(in_step, SOON).await;
        assert_eq!(uids(&[workload(&cluster, "web"), group(&cluster, "web")]), uids(&objects), "{profile:?}");
        assert!(uids(&cluster.api.look(|view| pods(view, "web"))).is_superset(&running));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_generic_workload_the_controller_says_so_and_stays_unready_and_plain_sets_run() {
    let gates = Gates { generic_workload: false, ..Gates::default() };
    let cluster = cluster(Options { gates, ..Options::default() }).await;
    cluster.admin().create(Set::new("plain", 2).object()).await.expect("it is valid");
    create(&cluster, Set::new("gang", 2), &gang()).await;
    cluster.api.wait_for(|view| is_ready(view, "plain", 2), SOON).await;
    // The guarantee cannot be given, so the gang is held.
    let held = |view: &View<'_>| {
        refused(view.requests(), STATEFULSET_CONTROLLER, cluster_apiserver::Verb::Create, Resource::Pods).count() > 1
    };
    cluster.api.wait_for(held, SOON).await;
    assert_eq!(cluster.api.look(|view| pods(view, "gang").len()), 0);
}
