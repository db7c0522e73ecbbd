//! Where pods land, and who gives way.

use cluster::Options;
use cluster::objects::{Set, gang};
use cluster_apiserver::{Resource, Verb};
use serde_json::{Value, json};

use crate::bench::*;

const SCHEDULER: &str = cluster_nodes::identity::SCHEDULER;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_pod_of_a_gang_is_bound_until_all_fit_and_then_all_are() {
    for profile in PROFILES {
        let cluster = cluster(Options { profile, nodes: nodes(2, "2"), ..Options::default() }).await;
        create(&cluster, Set::new("gang", 6), &gang()).await;
        cluster.api.wait_for(|view| pods(view, "gang").len() == 6, SOON).await;
        never(&cluster, "a pod was bound", |view| pods(view, "gang").iter().any(is_bound)).await;
        let group = group(&cluster, "gang");
        let scheduled = cluster::cluster::condition(&group, "PodGroupInitiallyScheduled");
        assert_eq!(scheduled.map(|it| it.0), Some("False"), "{group}");
        for node in &nodes(3, "2")[2..] {
            node.register(cluster.admin().kube()).await.expect("a node may join");
        }
        settled(&cluster, "gang", 6).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_intent_the_same_set_is_scheduled_in_part() {
    let cluster = cluster(Options { nodes: nodes(2, "2"), ..Options::default() }).await;
    cluster.admin().create(Set::new("plain", 6).object()).await.expect("it is valid");
    cluster.api.wait_for(|view| pods(view, "plain").iter().filter(|pod| is_bound(pod)).count() == 4, SOON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_that_never_fits_holds_no_node() {
    let cluster = cluster(Options { nodes: nodes(2, "2"), ..Options::default() }).await;
    create(&cluster, Set::new("big", 5), &gang()).await;
    cluster.api.wait_for(|view| pods(view, "big").len() == 5, SOON).await;
    create(&cluster, Set::new("small", 4), &gang()).await;
    let ready = |view: &cluster_apiserver::View<'_>| is_ready(view, "small", 4);
    cluster.api.wait_for(ready, SOON).await;
    assert!(!cluster.api.look(|view| pods(view, "big")).iter().any(is_bound));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gangs_that_would_deadlock_pod_by_pod_do_not() {
    let cluster = cluster(Options { nodes: nodes(3, "2"), ..Options::default() }).await;
    for name in ["a", "b"] {
        create(&cluster, Set::new(name, 4), &gang()).await;
    }
    let whole = |view: &cluster_apiserver::View<'_>| is_ready(view, "a", 4) || is_ready(view, "b", 4);
    cluster.api.wait_for(whole, SOON).await;
    let bound = |name: &str| cluster.api.look(|view| pods(view, name)).iter().filter(|pod| is_bound(pod)).count();
    assert_eq!((bound("a") + bound("b"), bound("a").max(bound("b"))), (4, 4));
}

async fn priority(cluster: &cluster::Cluster, name: &str, value: i32) {
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name }, "value": value,
    });
    cluster.admin().create(class).await.expect("it is valid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_disruption_mode_all_a_higher_priority_pod_preempts_the_whole_set() {
    for profile in PROFILES {
        let cluster = cluster(Options { profile, nodes: nodes(3, "1"), ..Options::default() }).await;
        priority(&cluster, "high", 1000).await;
        let intent = json!({ "schedulingPolicy": { "gang": {} }, "disruptionMode": { "all": {} } });
        create(&cluster, Set::new("low", 3), &intent).await;
        settled(&cluster, "low", 3).await;
        let before = uids(&cluster.api.look(|view| pods(view, "low")));
        let urgent = Set::new("urgent", 1).with("/spec/template/spec/priorityClassName", json!("high"));
        cluster.admin().create(urgent.object()).await.expect("it is valid");
        let preempted = |view: &cluster_apiserver::View<'_>| {
            is_ready(view, "urgent", 1) && uids(&pods(view, "low")).is_disjoint(&before)
        };
        cluster.api.wait_for(preempted, SOON).await;
        let deletes = cluster.api.count(Some(SCHEDULER), Verb::Delete, Resource::Pods);
        assert_eq!(deletes, 3, "{profile:?}: all three, and the scheduler did it");
        // What replaces them waits as a whole: two would fit.
        cluster.api.wait_for(|view| pods(view, "low").len() == 3, SOON).await;
        never(&cluster, "a part of the gang was bound", |view| pods(view, "low").iter().any(is_bound)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_disruption_mode_single_one_pod_is_preempted() {
    let cluster = cluster(Options { nodes: nodes(3, "1"), ..Options::default() }).await;
    priority(&cluster, "high", 1000).await;
    create(&cluster, Set::new("low", 3), &gang()).await;
    settled(&cluster, "low", 3).await;
    let urgent = Set::new("urgent", 1).with("/spec/template/spec/priorityClassName", json!("high"));
    cluster.admin().create(urgent.object()).await.expect("it is valid");
    cluster.api.wait_for(|view| is_ready(view, "urgent", 1), SOON).await;
    assert_eq!(cluster.api.count(Some(SCHEDULER), Verb::Delete, Resource::Pods), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_topology_constraint_all_pods_land_in_one_domain() {
    for profile in PROFILES {
        let rack = |n: usize| if n.is_multiple_of(2) { "a" } else { "b" };
        let nodes = nodes(6, "1").into_iter().enumerate();
        let nodes = nodes.map(|(n, node)| node.label("topology.example.com/rack", rack(n))).collect();
        let cluster = cluster(Options { profile, nodes, ..Options::default() }).await;
        let intent = json!({
            "schedulingPolicy": { "gang": {} },
            "schedulingConstraints": { "topology": [{ "key": "topology.example.com/rack" }] },
        });
        create(&cluster, Set::new("model", 3), &intent).await;
        settled(&cluster, "model", 3).await;
        let racks: std::collections::BTreeSet<String> = cluster.api.look(|view| {
            let of = |pod: &Value| {
                let node = view.get(Resource::Nodes, "", pod["spec"]["nodeName"].as_str()?)?;
                node["metadata"]["labels"]["topology.example.com/rack"].as_str().map(str::to_owned)
            };
            pods(view, "model").iter().filter_map(of).collect()
        });
        assert_eq!(racks.len(), 1, "{profile:?}: {racks:?}");
        // Four would fit in the cluster, but not in a rack.
        create(&cluster, Set::new("wide", 4), &intent).await;
        cluster.api.wait_for(|view| pods(view, "wide").len() == 4, SOON).await;
        never(&cluster, "it spans two racks", |view| pods(view, "wide").iter().any(is_bound)).await;
    }
}
