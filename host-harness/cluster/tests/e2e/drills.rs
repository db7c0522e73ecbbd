//! Outages: what is held, what goes on, and that all is well afterwards.

use cluster::controller::As;
use cluster::engine::Health;
use cluster::objects::{Carrier, Set, gang};
use cluster::{Cluster, Options};
use cluster_apiserver::{Resource, Verb, View};
use kube::api::PropagationPolicy;

use crate::bench::*;

async fn running(replicas: i32) -> Cluster {
    let cluster = cluster(Options::default()).await;
    create(&cluster, Set::new("web", replicas), &gang()).await;
    settled(&cluster, "web", replicas.into()).await;
    cluster
}

fn is_refused(verb: Verb) -> impl Fn(&View<'_>) -> bool {
    move |view| refused(view.requests(), STATEFULSET_CONTROLLER, verb, Resource::Pods).count() > 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_controller_new_pods_of_a_larger_size_wait_and_those_that_run_are_left_alone() {
    let mut cluster = running(3).await;
    let before = uids(&cluster.api.look(|view| pods(view, "web")));
    cluster.kill_controller().await;
    cluster.api.reset_log();
    cluster.admin().scale(NAMESPACE, "web", 5).await.expect("it may be scaled");
    cluster.api.wait_for(is_refused(Verb::Create), SOON).await;
    never(&cluster, "a pod came before its size", |view| pods(view, "web").len() > 3).await;
    assert_eq!(uids(&cluster.api.look(|view| pods(view, "web"))), before);
    cluster.start_controller(As::Binary).await.expect("it starts again");
    settled(&cluster, "web", 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_controller_surplus_pods_stay_until_it_is_back() {
    let mut cluster = running(4).await;
    cluster.kill_controller().await;
    cluster.api.reset_log();
    cluster.admin().scale(NAMESPACE, "web", 2).await.expect("it may be scaled");
    cluster.api.wait_for(is_refused(Verb::Delete), SOON).await;
    let going = |view: &View<'_>| pods(view, "web").iter().any(|pod| pod["metadata"]["deletionTimestamp"].is_string());
    never(&cluster, "a pod is deleted before the size is in step", going).await;
    cluster.start_controller(As::Binary).await.expect("it starts again");
    settled(&cluster, "web", 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_controller_people_can_delete_any_pod() {
    let mut cluster = running(4).await;
    cluster.kill_controller().await;
    cluster.admin().scale(NAMESPACE, "web", 2).await.expect("it may be scaled");
    let admin = cluster.admin();
    let delete = admin.delete(Resource::Pods, NAMESPACE, "web-3", PropagationPolicy::Background);
    delete.await.expect("nobody but the StatefulSet controller is held");
    cluster.api.wait_for(|view| view.get(Resource::Pods, NAMESPACE, "web-3").is_none(), SOON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_controller_an_evicted_pod_is_replaced_and_joins_its_group() {
    let mut cluster = running(3).await;
    cluster.kill_controller().await;
    let before = uids(&cluster.api.look(|view| pods(view, "web")));
    cluster.admin().evict(NAMESPACE, "web-1").await.expect("it may be evicted");
    let replaced = |view: &View<'_>| uids(&pods(view, "web")) != before && is_ready(view, "web", 3);
    cluster.api.wait_for(replaced, SOON).await;
    let group = group(&cluster, "web");
    for pod in cluster.api.look(|view| pods(view, "web")) {
        assert_eq!(pod["spec"]["schedulingGroup"]["podGroupName"], group["metadata"]["name"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_restarts_loses_nothing() {
    let mut cluster = cluster(Options::default()).await;
    create(&cluster, Set::new("web", 3), &gang()).await;
    // In the middle: the Workload is there, and the pods are not.
    cluster.api.wait_for(|view| view.len(Resource::Workloads) == 1, SOON).await;
    cluster.api.stop().await;
    cluster.api.restart().await.expect("the port is free");
    settled(&cluster, "web", 3).await;
    cluster.api.stop().await;
    cluster.api.restart().await.expect("the port is free");
    cluster.admin().scale(NAMESPACE, "web", 1).await.expect("it may be scaled");
    settled(&cluster, "web", 1).await;
    assert_eq!((cluster.api.len(Resource::Workloads), cluster.api.len(Resource::PodGroups)), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_webhook_opted_in_pods_are_not_created_but_deletes_pass() {
    for health in [Health::Down, Health::Hanging] {
        let cluster = running(3).await;
        cluster.api.reset_log();
        cluster.engine.set_health(health);
        let admin = cluster.admin();
        let set = Set::new("new", 1).with_intent(Carrier::Annotation, &gang());
        let refused = admin.create(set.object()).await.expect_err("nobody has validated it").to_string();
        assert!(refused.contains("failed calling webhook"), "{refused}");
        // A delete is asked about, and passes for want of an answer.
        let delete = admin.delete(Resource::Pods, NAMESPACE, "web-2", PropagationPolicy::Background);
        delete.await.expect("it fails open");
        let gone = |view: &View<'_>| {
            pods(view, "web").iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).count() == 2
        };
        cluster.api.wait_for(gone, SOON).await;
        cluster.api.wait_for(is_refused(Verb::Create), SOON).await;
        assert_eq!(cluster.api.look(|view| pods(view, "web").len()), 2, "{health:?}");
        cluster.engine.set_health(Health::Up);
        settled(&cluster, "web", 3).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_can_be_deleted_while_the_controller_is_down() {
    let mut cluster = cluster(Options { namespaces: vec!["team".into()], ..Options::default() }).await;
    let set = Set::new("web", 3).in_namespace("team").with_intent(Carrier::Annotation, &gang());
    cluster.admin().create(set.object()).await.expect("it is valid");
    cluster.api.wait_for(|view| view.len(Resource::Pods) == 3, SOON).await;
    cluster.kill_controller().await;
    let admin = cluster.admin();
    let delete = admin.delete(Resource::Namespaces, "", "team", PropagationPolicy::Background);
    delete.await.expect("it may be deleted");
    let gone = |view: &View<'_>| {
        let kinds = [Resource::Pods, Resource::PodGroups, Resource::Workloads, Resource::StatefulSets];
        view.get(Resource::Namespaces, "", "team").is_none() && kinds.iter().all(|resource| view.len(*resource) == 0)
    };
    cluster.api.wait_for(gone, SOON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switched_off_as_the_page_says_nothing_is_held_any_more() {
    let mut cluster = running(3).await;
    cluster.kill_controller().await;
    cluster.deploy_policies(false).expect("they are taken away");
    cluster.admin().scale(NAMESPACE, "web", 5).await.expect("it may be scaled");
    cluster.api.wait_for(|view| is_ready(view, "web", 5), SOON).await;
    cluster.admin().scale(NAMESPACE, "web", 1).await.expect("it may be scaled");
    cluster.api.wait_for(|view| is_ready(view, "web", 1), SOON).await;
}
