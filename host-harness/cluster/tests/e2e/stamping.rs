//! Many pods at once, and how often a pod is refused before its group is there.

use std::collections::BTreeMap;
use std::time::Instant;

use cluster::Options;
use cluster::objects::{Set, gang};
use cluster_apiserver::{Resource, Verb, View};
use cluster_nodes::node::NodeShape;

use crate::bench::*;

/// Room for more pods than a node has by default.
fn large_nodes(count: usize) -> Vec<NodeShape> {
    (1..=count).map(|n| NodeShape::new(&format!("node-{n}"), "1000", "1Ti").resource("pods", "1000")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_500_pods_in_one_burst_all_are_stamped_and_none_comes_before_its_group() {
    let cluster = cluster(Options { nodes: large_nodes(2), ..Options::default() }).await;
    create(&cluster, Set::new("big", 500), &gang()).await;
    cluster.api.wait_for(|view| view.len(Resource::Pods) == 500 && is_ready(view, "big", 500), SOON).await;
    assert_eq!(cluster.violations(), [] as [String; 0]);
    let group = group(&cluster, "big");
    let stamped = cluster.api.look(|view| {
        pods(view, "big")
            .iter()
            .filter(|pod| pod["spec"]["schedulingGroup"]["podGroupName"] == group["metadata"]["name"])
            .count()
    });
    assert_eq!(stamped, 500);
    let requests = cluster.api.requests();
    let made = done(&requests, CONTROLLER, Verb::Create, Resource::PodGroups).filter_map(|it| it.answered).min();
    let first_pod =
        done(&requests, STATEFULSET_CONTROLLER, Verb::Create, Resource::Pods).filter_map(|it| it.answered).min();
    assert!(made.is_some() && made < first_pod, "{made:?} {first_pod:?}");
    // One read of the StatefulSet for each pod that was asked about, whatever its size.
    let asked = done(&requests, STATEFULSET_CONTROLLER, Verb::Create, Resource::Pods).count()
        + refused(&requests, STATEFULSET_CONTROLLER, Verb::Create, Resource::Pods).count();
    let reads = done(&requests, cluster.engine.user(), Verb::Get, Resource::StatefulSets).count();
    assert_eq!(reads, asked);
}

/// The value below which so many hundredths of them lie.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_is_refused_two_pods_in_the_median_and_four_at_most_before_it_has_its_group() {
    const SETS: usize = 200;
    let cluster = cluster(Options { nodes: large_nodes(2), ..Options::default() }).await;
    let mut times = Vec::new();
    for number in 0..SETS {
        let begun = Instant::now();
        create(&cluster, Set::new(&format!("set-{number:03}"), 3), &gang()).await;
        cluster.api.wait_for(|view| view.len(Resource::Pods) == 3 * (number + 1), SOON).await;
        times.push(begun.elapsed());
    }
    let requests = cluster.api.requests();
    let mut refusals: BTreeMap<String, usize> = (0..SETS).map(|number| (format!("set-{number:03}"), 0)).collect();
    for request in refused(&requests, STATEFULSET_CONTROLLER, Verb::Create, Resource::Pods) {
        let pod = request.name.as_deref().expect("a pod of a StatefulSet has a name");
        let (set, _) = pod.rsplit_once('-').expect("it ends with its ordinal");
        *refusals.get_mut(set).expect("it is of one of the sets") += 1;
    }
    let mut counts: Vec<_> = refusals.into_values().collect();
    counts.sort_unstable();
    times.sort_unstable();
    let (median, p95) = (percentile(&counts, 50), percentile(&counts, 95));
    println!(
        "refused creates of {SETS} StatefulSets, one after the other: median {median}, p95 {p95}, most {}; \
         until the last pod: median {:?}, most {:?}",
        counts[SETS - 1],
        times[SETS / 2],
        times[SETS - 1],
    );
    assert!(median <= 2 && p95 <= 4, "median {median}, p95 {p95}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_sets_at_once_all_form_and_the_refusals_stay_few() {
    const SETS: usize = 50;
    let cluster = cluster(Options { nodes: large_nodes(2), ..Options::default() }).await;
    let creates = (0..SETS).map(|number| {
        let (cluster, name) = (&cluster, format!("set-{number:03}"));
        async move { create(cluster, Set::new(&name, 3), &gang()).await }
    });
    futures::future::join_all(creates).await;
    let all = |view: &View<'_>| view.len(Resource::Pods) == 3 * SETS && view.len(Resource::PodGroups) == SETS;
    cluster.api.wait_for(all, SOON).await;
    let requests = cluster.api.requests();
    let refused = refused(&requests, STATEFULSET_CONTROLLER, Verb::Create, Resource::Pods).count();
    println!("refused creates of {SETS} StatefulSets at once: {refused}");
    assert!(refused <= 6 * SETS, "{refused}");
}
