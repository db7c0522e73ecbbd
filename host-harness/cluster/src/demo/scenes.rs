//! What is played, and what is checked. Each scene leaves what the next one begins with, and no checked
//! statement comes from anywhere but the objects and the requests of the cluster.

use std::collections::{BTreeMap, BTreeSet};

use cluster_apiserver::{Request, Resource, Verb, View};
use cluster_controllers::identity::STATEFULSET_CONTROLLER;
use cluster_nodes::identity::SCHEDULER;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use statefulset_scheduling_core::admission::DEFAULT_CONTROLLER;

use super::deed::Who;
use super::shape::{FABRIC, RACK, ROOM, racks};
use super::stage::{Checks, LEFTOVERS, NAMESPACE, Stage, how_many, is_bound, is_ready, is_whole, pods};
use crate::cluster::condition;
use crate::invariants::{controlling_set, is_ours, min_counts};
use crate::objects::{Set, gang};

/// A scene to play.
pub struct Scene {
    /// Its name.
    pub title: &'static str,
    /// What is going to happen, and why somebody would want to see it.
    pub intro: &'static str,
    /// Plays it.
    pub play: Play,
}

type Play = for<'a> fn(&'a mut Stage, &'a mut Checks) -> BoxFuture<'a, anyhow::Result<()>>;

/// All of them, in their order.
pub const SCENES: [Scene; 8] = [
    Scene {
        title: "Pod by pod: a deadlock",
        intro: "Two StatefulSets of eight pods arrive together. Either would fit on the eight processors of this \
                cluster, and neither is of any use until all of its pods run. Nothing says so, and the scheduler \
                places one pod after the other.",
        play: |stage, checks| Box::pin(pod_by_pod(stage, checks)),
    },
    Scene {
        title: "All or nothing: no deadlock",
        intro: "The same two StatefulSets on the same nodes, each with an intent: gang. One of them runs whole, and \
                the other takes nothing until it can run whole, too.",
        play: |stage, checks| Box::pin(all_or_nothing(stage, checks)),
    },
    Scene {
        title: "All in one rack",
        intro: "A gang of three whose pods talk to each other all the time wants a single rack, whichever. A second \
                one finds three free processors, but in two racks: it waits for a rack rather than span two.",
        play: |stage, checks| Box::pin(one_rack(stage, checks)),
    },
    Scene {
        title: "Preempted as a whole",
        intro: "Six pods compute together. More urgent work needs one processor more than is free. To preempt one pod \
                would leave five that occupy nodes for nothing; this group asked for disruptionMode all.",
        play: |stage, checks| Box::pin(preempted(stage, checks)),
    },
    Scene {
        title: "One claim for all",
        intro: "The pods of a gang share a fabric, and the cluster has exactly one. With a claim for each pod the \
                first would take it and the others would wait for ever; the group claims it once.",
        play: |stage, checks| Box::pin(shared_claim(stage, checks)),
    },
    Scene {
        title: "Smaller and larger",
        intro: "A gang of four is scaled to two and then to three. The group must shrink before pods go, or it would \
                be short of members, and grow before pods come, or they would be scheduled by themselves.",
        play: |stage, checks| Box::pin(scaled(stage, checks)),
    },
    Scene {
        title: "A rolling update",
        intro: "A new version replaces the pods one by one. The group stays the same, and each new pod joins it.",
        play: |stage, checks| Box::pin(updated(stage, checks)),
    },
    Scene {
        title: "A delete that leaves nothing",
        intro: "The StatefulSet is deleted, and nothing else is: everything that was made for it goes with it.",
        play: |stage, checks| Box::pin(deleted(stage, checks)),
    },
];

/// The two that get into each other's way.
const PAIR: [&str; 2] = ["alpha", "beta"];

/// Creates both while the scheduler does not look, so that all of their pods are there in one moment.
async fn create_pair(stage: &mut Stage, intent: Option<Value>) -> anyhow::Result<()> {
    stage.tell(Who::Demo, "keeps the scheduler back until all 16 pods are there, so that they come in one moment");
    stage.cluster.stop_scheduler().await;
    let how = if intent.is_some() { "each with the intent: gang" } else { "without an intent" };
    stage.tell(Who::User, format!("creates StatefulSets alpha and beta of 8 pods, {how}"));
    // Both are seen at once.
    stage.cluster.api.hold_watches(Resource::StatefulSets);
    for name in PAIR {
        let set = Set::new(name, 8);
        match &intent {
            None => stage.create(set.object()).await?,
            Some(intent) => stage.create_with(set, intent).await?,
        };
    }
    stage.cluster.api.release_watches(Resource::StatefulSets);
    stage.until("16 pods are there", |view| view.len(Resource::Pods) == 2 * ROOM).await?;
    stage.tell(Who::Demo, "lets the scheduler go");
    stage.cluster.start_scheduler();
    Ok(())
}

async fn pod_by_pod(stage: &mut Stage, checks: &mut Checks) -> anyhow::Result<()> {
    create_pair(stage, None).await?;
    let stuck = |view: &View<'_>| {
        let pods = view.list(Resource::Pods);
        let (placed, others): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| is_bound(pod));
        placed.len() == ROOM && placed.iter().all(|pod| is_ready(pod)) && others.iter().all(|pod| is_refused(pod))
    };
    stage.until("8 pods run, and there is no room for the others", stuck).await?;
    let [alpha, beta] = stage.cluster.api.look(|view| PAIR.map(|name| how_many(view, name, is_bound)));
    checks.that(alpha + beta == ROOM, format!("all {ROOM} processors are taken"));
    checks.that(
        (1..8).contains(&alpha) && (1..8).contains(&beta),
        format!("alpha runs {alpha} of its 8 pods and beta {beta} of its 8: neither is whole"),
    );
    let refused = stage.cluster.api.look(|view| PAIR.map(|name| how_many(view, name, is_refused)));
    checks.that(
        refused.iter().sum::<usize>() == 8,
        "the other 8 pods are unschedulable: each set waits for processors that the other one will never give back",
    );
    for name in PAIR {
        stage.delete(name).await?;
    }
    stage.until_empty().await
}

/// Whether the scheduler said that there is no place for a pod.
fn is_refused(pod: &Value) -> bool {
    !is_bound(pod) && condition(pod, "PodScheduled").is_some_and(|it| it.0 == "False")
}

async fn all_or_nothing(stage: &mut Stage, checks: &mut Checks) -> anyhow::Result<()> {
    create_pair(stage, Some(gang())).await?;
    let mut first = None;
    let whole = |view: &View<'_>| {
        first = PAIR.into_iter().find(|name| is_whole(view, name, 8));
        let other = PAIR.into_iter().find(|name| Some(*name) != first);
        first.is_some() && other.is_some_and(|other| waits(view, other))
    };
    stage.until("one of them is whole, and the other one waits", whole).await?;
    let first = first.unwrap_or(PAIR[0]);
    let second = if first == PAIR[0] { PAIR[1] } else { PAIR[0] };
    let [ready, taken] =
        stage.cluster.api.look(|view| [how_many(view, first, is_ready), how_many(view, second, is_bound)]);
    checks.that(ready == 8, format!("{first} runs {ready} of its 8 pods"));
    checks.that(taken == 0, format!("{second} waits as a whole, says its PodGroup, and holds {taken} processors"));
    stage.delete(first).await?;
    stage.until_settled(second, 8).await?;
    let ready = stage.cluster.api.look(|view| how_many(view, second, is_ready));
    checks.that(ready == 8, format!("once {first} is gone, {second} runs {ready} of its 8 pods, by itself"));
    stage.delete(second).await?;
    stage.until_empty().await
}

/// Whether the scheduler said that a group cannot be placed.
fn waits(view: &View<'_>, name: &str) -> bool {
    let group = made(view, Resource::PodGroups, name);
    condition(&group, "PodGroupInitiallyScheduled").is_some_and(|it| it.0 == "False")
}

/// The one object that the controller made for a StatefulSet; null if there is none, or several.
fn made(view: &View<'_>, resource: Resource, name: &str) -> Value {
    let set = view.get(Resource::StatefulSets, NAMESPACE, name).unwrap_or_default();
    let uid = set["metadata"]["uid"].as_str();
    let mut objects = view.list(resource);
    objects.retain(|object| is_ours(object) && controlling_set(object) == uid);
    if objects.len() == 1 { objects.remove(0) } else { Value::Null }
}

async fn one_rack(stage: &mut Stage, checks: &mut Checks) -> anyhow::Result<()> {
    stage.tell(Who::User, "creates StatefulSet cache: a pod on each node of rack a, without an intent");
    let cache = Set::new("cache", 2).with("/spec/template/spec/nodeSelector", json!({ RACK: "a" }));
    stage.create(cache.object()).await?;
    stage.until("cache is ready", |view| is_whole(view, "cache", 2)).await?;
    let intent = json!({
        "schedulingPolicy": { "gang": {} },
        "schedulingConstraints": { "topology": [{ "key": RACK }] },
    });
    stage.tell(Who::User, "creates StatefulSet model of 3 pods: gang, in one rack");
    stage.create_with(Set::new("model", 3), &intent).await?;
    stage.until_settled("model", 3).await?;
    checks.that(
        stage.cluster.api.look(|view| used(view, "model")) == ["b"],
        format!("all 3 pods of model are in {}", stage.cluster.api.look(|view| said(&used(view, "model")))),
    );
    stage.tell(Who::User, "creates StatefulSet index of 3 pods: gang, in one rack");
    stage.create_with(Set::new("index", 3), &intent).await?;
    let refused = |view: &View<'_>| pods(view, "index").len() == 3 && waits(view, "index");
    stage.until("index waits for a rack", refused).await?;
    let (free, taken) = stage.cluster.api.look(|view| (free(view), how_many(view, "index", is_bound)));
    checks.that(
        taken == 0 && free.values().sum::<usize>() == 3,
        format!("index waits although 3 processors are free, {} in rack a and {} in rack b", free["a"], free["b"]),
    );
    stage.delete("model").await?;
    stage.until_settled("index", 3).await?;
    let racks = stage.cluster.api.look(|view| used(view, "index"));
    checks.that(racks.len() == 1, format!("once model is gone, all 3 pods of index are in {}", said(&racks)));
    for name in ["index", "cache"] {
        stage.delete(name).await?;
    }
    stage.until_empty().await
}

/// The racks that the pods of a StatefulSet are in.
fn used(view: &View<'_>, name: &str) -> Vec<String> {
    let racks = racks(view);
    let pods = pods(view, name);
    let used: BTreeSet<_> = pods.iter().filter_map(|pod| racks.get(pod["spec"]["nodeName"].as_str()?)).collect();
    used.into_iter().cloned().collect()
}

fn said(racks: &[String]) -> String {
    format!("rack {}", racks.join(" and rack "))
}

/// The free processors of each rack: two for each node, less one for each pod.
fn free(view: &View<'_>) -> BTreeMap<String, usize> {
    let racks = racks(view);
    let mut free: BTreeMap<String, usize> = BTreeMap::new();
    for rack in racks.values() {
        *free.entry(rack.clone()).or_default() += 2;
    }
    for pod in view.list(Resource::Pods) {
        let rack = pod["spec"]["nodeName"].as_str().and_then(|node| free.get_mut(&racks[node]));
        if let Some(free) = rack {
            *free -= 1;
        }
    }
    free
}

async fn preempted(stage: &mut Stage, checks: &mut Checks) -> anyhow::Result<()> {
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "high" }, "value": 1000,
    });
    stage.create(class).await?;
    stage.tell(Who::User, "creates StatefulSet batch of 6 pods: gang, disruptionMode all");
    let intent = json!({ "schedulingPolicy": { "gang": {} }, "disruptionMode": { "all": {} } });
    stage.create_with(Set::new("batch", 6), &intent).await?;
    stage.until_settled("batch", 6).await?;
    let before = stage.cluster.api.look(|view| uids(view, "batch"));
    let deletes = stage.cluster.api.count(Some(SCHEDULER), Verb::Delete, Resource::Pods);
    stage.tell(Who::User, "creates StatefulSet urgent of 3 pods: gang, of high priority");
    let urgent = Set::new("urgent", 3).with("/spec/template/spec/priorityClassName", json!("high"));
    stage.create_with(urgent, &gang()).await?;
    let gave_way = |view: &View<'_>| {
        let now = uids(view, "batch");
        let new = now.len() == 6 && now.is_disjoint(&before);
        is_whole(view, "urgent", 3) && new && how_many(view, "batch", is_refused) == 6
    };
    stage.until("urgent runs, and batch waits anew", gave_way).await?;
    let deletes = stage.cluster.api.count(Some(SCHEDULER), Verb::Delete, Resource::Pods) - deletes;
    checks.that(deletes == 6, format!("the scheduler preempted {deletes} of 6 pods of batch, and urgent runs whole"));
    let (taken, free) =
        stage.cluster.api.look(|view| (how_many(view, "batch", is_bound), free(view).values().sum::<usize>()));
    checks.that(
        taken == 0 && free == 5,
        format!("the 6 pods that replace them wait as a whole: {free} processors are free, they hold {taken}"),
    );
    stage.delete("urgent").await?;
    stage.until_settled("batch", 6).await?;
    let ready = stage.cluster.api.look(|view| how_many(view, "batch", is_ready));
    checks.that(ready == 6, format!("once urgent is gone, batch runs {ready} of its 6 pods again"));
    stage.delete("batch").await?;
    stage.until_empty().await
}

fn uids(view: &View<'_>, name: &str) -> BTreeSet<String> {
    pods(view, name).iter().filter_map(|pod| pod["metadata"]["uid"].as_str().map(str::to_owned)).collect()
}

async fn shared_claim(stage: &mut Stage, checks: &mut Checks) -> anyhow::Result<()> {
    let device = json!({ "name": "device", "exactly": { "deviceClassName": FABRIC } });
    let template = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": { "name": "fabric" },
        "spec": { "spec": { "devices": { "requests": [device] } } },
    });
    stage.create(template).await?;
    let claims = json!([{ "name": "fabric", "resourceClaimTemplateName": "fabric" }]);
    let set = Set::new("train", 3)
        .with("/spec/template/spec/resourceClaims", claims.clone())
        .with("/spec/template/spec/containers/0/resources/claims", json!([{ "name": "fabric" }]));
    stage.tell(Who::User, "creates StatefulSet train of 3 pods: gang, sharing a claim for the fabric");
    stage.create_with(set, &json!({ "schedulingPolicy": { "gang": {} }, "resourceClaims": claims })).await?;
    stage.until_settled("train", 3).await?;
    check_claim(stage, checks, 3);
    stage.scale("train", 4).await?;
    stage.until_settled("train", 4).await?;
    check_claim(stage, checks, 4);
    stage.delete("train").await?;
    stage.until_empty().await?;
    let left = stage.cluster.api.len(Resource::ResourceClaims);
    checks.that(left == 0, format!("the claim went with the group: {left} ResourceClaims are left"));
    Ok(())
}

/// That there is one claim, the group's, and so many pods use it.
fn check_claim(stage: &Stage, checks: &mut Checks, replicas: usize) {
    let (claims, group, pods) = stage.cluster.api.look(|view| {
        (view.list(Resource::ResourceClaims), made(view, Resource::PodGroups, "train"), pods(view, "train"))
    });
    let null = Value::Null;
    let claim = claims.first().unwrap_or(&null);
    let reserved = &claim["status"]["reservedFor"];
    let is_the_groups = reserved.as_array().is_some_and(|reserved| reserved.len() == 1)
        && reserved[0]["resource"] == "podgroups"
        && reserved[0]["uid"] == group["metadata"]["uid"];
    let allocated = claim["status"]["allocation"].is_object();
    let using =
        |pod: &&Value| pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"] == claim["metadata"]["name"];
    let using = pods.iter().filter(using).count();
    checks.that(
        claims.len() == 1 && allocated && is_the_groups && using == replicas,
        format!(
            "{using} of {replicas} pods use the same claim, of {} in the cluster, allocated once and reserved for the \
             PodGroup",
            claims.len()
        ),
    );
}

async fn scaled(stage: &mut Stage, checks: &mut Checks) -> anyhow::Result<()> {
    stage.tell(Who::User, "creates StatefulSet web of 4 pods: gang");
    stage.create_with(Set::new("web", 4), &gang()).await?;
    stage.until_settled("web", 4).await?;
    let before = stage.cluster.api.look(identities);
    for (size, verb, what) in [(2, Verb::Delete, "deleted"), (3, Verb::Create, "created")] {
        let mark = stage.cluster.api.look(|view| view.requests().len());
        stage.scale("web", size).await?;
        let size = usize::try_from(size)?;
        stage.until_settled("web", size).await?;
        let sizes = stage.cluster.api.look(|view| {
            [Resource::Workloads, Resource::PodGroups].map(|resource| min_counts(&made(view, resource, "web")))
        });
        checks.that(
            sizes.iter().all(|sizes| sizes[..] == [i64::try_from(size).unwrap_or(-1)]),
            format!(
                "at {size} pods, the Workload asks for {} and the PodGroup for {}",
                numbers(&sizes[0]),
                numbers(&sizes[1])
            ),
        );
        let in_order = stage.cluster.api.look(|view| resized_first(&view.requests()[mark..], verb));
        checks.that(in_order, format!("Workload, then PodGroup were changed before the first pod was {what}"));
    }
    let same = stage.cluster.api.look(identities) == before;
    checks.that(same, "Workload and PodGroup are the same objects as before: they were changed, not replaced");
    Ok(())
}

fn numbers(sizes: &[i64]) -> String {
    sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Which objects belong to web.
fn identities(view: &View<'_>) -> [Value; 2] {
    [Resource::Workloads, Resource::PodGroups].map(|resource| made(view, resource, "web")["metadata"]["uid"].clone())
}

/// Whether among these requests the Workload was changed before the PodGroup, and both before the first pod
/// was created or deleted. What counts is when a request was answered: it may come early and be done late.
fn resized_first(requests: &[Request], verb: Verb) -> bool {
    let of = |user: &'static str, verb, resource| {
        let done = move |request: &&Request| {
            let is_meant = (&*request.user, request.verb, request.resource) == (user, verb, resource);
            is_meant && request.subresource.is_none() && request.answer.is_some_and(|code| code < 300)
        };
        requests.iter().filter(done).filter_map(|request| request.answered)
    };
    let order = [
        of(DEFAULT_CONTROLLER, Verb::Patch, Resource::Workloads).max(),
        of(DEFAULT_CONTROLLER, Verb::Patch, Resource::PodGroups).max(),
        of(STATEFULSET_CONTROLLER, verb, Resource::Pods).min(),
    ];
    order.iter().all(Option::is_some) && order.is_sorted()
}

async fn updated(stage: &mut Stage, checks: &mut Checks) -> anyhow::Result<()> {
    let (before, old) = stage.cluster.api.look(|view| (identities(view), uids(view, "web")));
    stage.tell(Who::User, "changes the image of web to version 2");
    let image =
        json!([{ "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "example.com/app:2" }]);
    let patch = kube::api::Patch::Json::<()>(serde_json::from_value(image)?);
    let sets: kube::Api<k8s_openapi::api::apps::v1::StatefulSet> =
        kube::Api::namespaced(stage.user().kube().clone(), NAMESPACE);
    sets.patch("web", &kube::api::PatchParams::default(), &patch).await?;
    stage.until("all pods of web are replaced", |view| uids(view, "web").is_disjoint(&old)).await?;
    stage.until_settled("web", 3).await?;
    let (after, group, pods) =
        stage.cluster.api.look(|view| (identities(view), made(view, Resource::PodGroups, "web"), pods(view, "web")));
    let image = |pod: &&Value| pod["spec"]["containers"][0]["image"] == "example.com/app:2";
    let new = pods.iter().filter(image).count();
    checks.that(
        new == 3 && pods.len() == 3,
        format!("{new} of {} pods run version 2, and none of the old is left", pods.len()),
    );
    let joined = |pod: &&Value| pod["spec"]["schedulingGroup"]["podGroupName"] == group["metadata"]["name"];
    let joined = pods.iter().filter(joined).count();
    checks.that(
        before == after && joined == 3,
        format!("the PodGroup is the same as before, and {joined} of 3 new pods are in it"),
    );
    Ok(())
}

async fn deleted(stage: &mut Stage, checks: &mut Checks) -> anyhow::Result<()> {
    let there = stage.cluster.api.look(|view| LEFTOVERS.map(|resource| view.len(resource)).iter().sum::<usize>());
    stage.delete("web").await?;
    stage.until_empty().await?;
    let left: Vec<_> = stage.cluster.api.look(|view| LEFTOVERS.map(|resource| (resource, view.len(resource)))).into();
    let names: Vec<_> = left.iter().map(|(resource, _)| resource.plural()).collect();
    let count: usize = left.iter().map(|(_, count)| count).sum();
    checks.that(there > 0 && count == 0, format!("of {there} objects {count} are left: no {}", names.join(", no ")));
    let deletes: u64 = stage.cluster.api.look(|view| {
        let own =
            view.counts().iter().filter(|((user, verb, _), _)| &**user == DEFAULT_CONTROLLER && *verb == Verb::Delete);
        own.map(|(_, count)| *count).sum()
    });
    checks.that(
        deletes == 0,
        format!(
            "the controller deleted {deletes} objects in the whole demo: owners are enough, even if it is not there"
        ),
    );
    Ok(())
}
