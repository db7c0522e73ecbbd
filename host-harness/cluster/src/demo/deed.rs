//! One thing that somebody did, and how it is said to somebody who does not know the code.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster_apiserver::{ADMIN, Request, Resource, Subresource, Verb};
use cluster_controllers::identity;
use cluster_nodes::identity::SCHEDULER;
use serde_json::Value;
use statefulset_scheduling_core::admission::DEFAULT_CONTROLLER;
use statefulset_scheduling_core::api::MANAGED_LABEL;

use crate::cluster::condition;
use crate::invariants::{binding, min_counts};

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The demo itself, from behind the scenes.
    Demo,
    /// The user of the cluster.
    User,
    /// The project's policy.
    Policy,
    /// The project's controller.
    Controller,
    /// The cluster's own StatefulSet controller.
    StatefulSets,
    /// The cluster's scheduler.
    Scheduler,
    /// The nodes.
    Kubelets,
    /// The cluster's controller of claims.
    Claims,
    /// The cluster's garbage collector.
    Garbage,
}

impl Who {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Demo => "(demo)",
            Self::User => "user",
            Self::Policy => "policy",
            Self::Controller => "controller",
            Self::StatefulSets => "StatefulSet controller",
            Self::Scheduler => "scheduler",
            Self::Kubelets => "kubelets",
            Self::Claims => "claim controller",
            Self::Garbage => "garbage collector",
        }
    }

    /// Whether it is a part of the project.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Policy | Self::Controller)
    }

    /// Who makes requests under this name, if it is one whose requests are told.
    pub fn of(user: &str) -> Option<Self> {
        match user {
            ADMIN => Some(Self::User),
            DEFAULT_CONTROLLER => Some(Self::Controller),
            SCHEDULER => Some(Self::Scheduler),
            identity::STATEFULSET_CONTROLLER => Some(Self::StatefulSets),
            identity::RESOURCE_CLAIM_CONTROLLER => Some(Self::Claims),
            identity::GARBAGE_COLLECTOR => Some(Self::Garbage),
            _ => None,
        }
    }
}

/// What was done. What is equal, and done to the same StatefulSet at about the same time, is said in one
/// line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// What a scene says that it does.
    Says(String),
    /// An intent was found valid.
    Accepts,
    /// The creation of pods was held.
    HoldsCreates,
    /// The deletion of pods was held.
    HoldsDeletes,
    /// Pods were put into their group.
    Stamps,
    /// A Workload was made that asks for this.
    MakesWorkload(String),
    /// A PodGroup was made from it.
    MakesPodGroup,
    /// Claims were made.
    MakesClaims,
    /// The size of an object of this kind was changed.
    Resizes(&'static str, i64),
    /// The group was published on the StatefulSet, up to this size.
    Publishes(Option<i64>),
    /// Pods were created.
    Creates,
    /// Pods were deleted.
    Deletes,
    /// Pods were bound; the items are the nodes.
    Binds,
    /// Pods fit nowhere.
    NoRoom,
    /// A group fits nowhere as a whole.
    NoRoomForAll,
    /// Pods were pushed away.
    Preempts,
    /// A device was allocated for a group.
    Allocates,
    /// Pods are ready.
    Ready,
    /// Pods are gone.
    Gone,
    /// Objects of this kind were removed because their owner is gone.
    Removes(&'static str),
}

/// A deed, and what it was done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// When it was noticed, since the start.
    pub at: Duration,
    /// Who did it.
    pub who: Who,
    /// What was done.
    pub deed: Deed,
    /// The StatefulSet that it is about.
    pub set: String,
    /// The pod, the node or the object.
    pub item: String,
}

/// The StatefulSet that a pod of this name is of.
pub fn set_of(pod: &str) -> &str {
    pod.rsplit_once('-').map_or(pod, |(set, _)| set)
}

/// What an answered request did, judged by the object that it names as it is now.
pub fn of(at: Duration, request: &Request, object: Option<&Value>) -> Vec<Fact> {
    let (Some(who), Some(code)) = (Who::of(&request.user), request.answer) else { return Vec::new() };
    let done = (200..300).contains(&code);
    let item = request.name.clone().unwrap_or_default();
    let fact = |who, set: &str, deed| Fact { at, who, deed, set: set.to_owned(), item: item.clone() };
    if request.resource == Resource::Pods {
        let node = object.and_then(|pod| pod["spec"]["nodeName"].as_str());
        let about = |deed: &Deed| if *deed == Deed::Binds { node.unwrap_or_default() } else { &item }.to_owned();
        let facts = of_pod(who, request, code, object);
        return facts.map(|(who, deed)| Fact { item: about(&deed), ..fact(who, set_of(&item), deed) }).collect();
    }
    let owner = object.and_then(owner).unwrap_or(&item);
    let kind = request.resource.kind();
    let null = Value::Null;
    let object = object.unwrap_or(&null);
    let deed = match (who, request.verb, request.resource) {
        _ if !done => None,
        (Who::User, Verb::Create, Resource::StatefulSets) => {
            let labelled = object["spec"]["template"]["metadata"]["labels"][MANAGED_LABEL] == "true";
            return labelled.then(|| fact(Who::Policy, &item, Deed::Accepts)).into_iter().collect();
        }
        (Who::Controller, Verb::Create, Resource::Workloads) => Some(Deed::MakesWorkload(asks_for(object))),
        (Who::Controller, Verb::Create, Resource::PodGroups) => Some(Deed::MakesPodGroup),
        (Who::Controller, Verb::Patch, Resource::Workloads | Resource::PodGroups) => {
            min_counts(object).first().map(|size| Deed::Resizes(kind, *size))
        }
        (Who::Controller, Verb::Patch, Resource::StatefulSets) => {
            Some(Deed::Publishes(binding(object)["replicas"].as_i64()))
        }
        (Who::Scheduler, Verb::Patch, Resource::PodGroups) => condition(object, "PodGroupInitiallyScheduled")
            .filter(|(status, _)| *status == "False")
            .map(|_| Deed::NoRoomForAll),
        (Who::Scheduler, Verb::Patch, Resource::ResourceClaims) => {
            (object["status"]["reservedFor"][0]["resource"] == "podgroups").then_some(Deed::Allocates)
        }
        (Who::Claims, Verb::Create, Resource::ResourceClaims) => Some(Deed::MakesClaims),
        (Who::Garbage, Verb::Delete, Resource::Workloads | Resource::PodGroups | Resource::ResourceClaims) => {
            Some(Deed::Removes(kind))
        }
        _ => None,
    };
    // What is gone cannot tell whose it was, and what has no name yet neither.
    let set = if matches!(deed, Some(Deed::Removes(_) | Deed::MakesClaims | Deed::Allocates)) { "" } else { owner };
    deed.map(|deed| fact(who, set, deed)).into_iter().collect()
}

/// What a request about a pod did.
fn of_pod(who: Who, request: &Request, code: u16, pod: Option<&Value>) -> impl Iterator<Item = (Who, Deed)> {
    let done = (200..300).contains(&code);
    // A conflict and a pod that is gone are the usual course of things.
    let held = code >= 400 && !matches!(code, 404 | 409);
    let group = pod.and_then(|pod| pod["spec"]["schedulingGroup"]["podGroupName"].as_str());
    let waits = pod.and_then(|pod| condition(pod, "PodScheduled")).is_some_and(|it| it.0 == "False");
    let (first, second) = match (who, request.verb, request.subresource) {
        (Who::StatefulSets, Verb::Create, None) if held => (Some((Who::Policy, Deed::HoldsCreates)), None),
        (Who::StatefulSets, Verb::Delete, None) if held => (Some((Who::Policy, Deed::HoldsDeletes)), None),
        (Who::StatefulSets, Verb::Create, None) if done => {
            (Some((who, Deed::Creates)), group.map(|_| (Who::Policy, Deed::Stamps)))
        }
        (Who::StatefulSets, Verb::Delete, None) if done => (Some((who, Deed::Deletes)), None),
        (Who::Scheduler, Verb::Create, Some(Subresource::Binding)) if done => (Some((who, Deed::Binds)), None),
        (Who::Scheduler, Verb::Patch, Some(Subresource::Status)) if done && waits && group.is_none() => {
            (Some((who, Deed::NoRoom)), None)
        }
        (Who::Scheduler, Verb::Delete, None) if done => (Some((who, Deed::Preempts)), None),
        (Who::Garbage, Verb::Delete, None) if done => (Some((who, Deed::Removes("Pod"))), None),
        _ => (None, None),
    };
    first.into_iter().chain(second)
}

/// The name of the StatefulSet that controls an object, or of the one that is the object.
fn owner(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["kind"] == "StatefulSet")?["name"].as_str()
}

/// What a Workload asks for, in words.
fn asks_for(object: &Value) -> String {
    let spec = &object["spec"]["podGroupTemplates"][0];
    let mut words = vec![match min_counts(object).first() {
        Some(count) => format!("all {count} pods or none"),
        None => "each pod by itself".to_owned(),
    }];
    if let Some(key) = spec["schedulingConstraints"]["topology"][0]["key"].as_str() {
        words.push(format!("all in one {}", key.rsplit('/').next().unwrap_or(key)));
    }
    if spec["disruptionMode"]["all"].is_object() {
        words.push("preempted only as a whole".to_owned());
    }
    if let Some(claims) = spec["resourceClaims"].as_array().filter(|claims| !claims.is_empty()) {
        words.push(format!("sharing {}", claims[0]["name"].as_str().unwrap_or("a claim")));
    }
    words.join(", ")
}

/// A deed that was done to all of these.
pub fn say(deed: &Deed, set: &str, items: &[String]) -> String {
    let pods = || pods(set, items);
    match deed {
        Deed::Says(text) => text.clone(),
        Deed::Accepts => format!("finds the intent of {set} valid and labels its pod template"),
        Deed::HoldsCreates => format!("holds new pods of {set} until the controller has published their group"),
        Deed::HoldsDeletes => format!("holds the surplus pods of {set} until the controller has shrunk their group"),
        Deed::Stamps => format!("puts {} into the PodGroup of {set}", pods()),
        Deed::MakesWorkload(about) => format!("makes the Workload of {set}: {about}"),
        Deed::MakesPodGroup => format!("makes the PodGroup of {set} from it, which the scheduler goes by"),
        Deed::MakesClaims => format!("makes {} for the whole group", count(items.len(), "ResourceClaim")),
        Deed::Resizes(kind, size) => format!("changes the {kind} of {set} to {}", count_pods(*size)),
        Deed::Publishes(Some(size)) => format!("publishes the group on StatefulSet {set}, for {}", count_pods(*size)),
        Deed::Publishes(None) => format!("publishes the group on StatefulSet {set}"),
        Deed::Creates => format!("creates {}", pods()),
        Deed::Deletes => format!("deletes {}", pods()),
        Deed::Binds => format!("places {} of {set}: {}", count(items.len(), "pod"), each(items)),
        Deed::NoRoom => format!("finds no room for {}", pods()),
        Deed::NoRoomForAll => format!("finds no room for all of {set} together, so it places none of them"),
        Deed::Preempts => format!("preempts {}", pods()),
        Deed::Allocates => "allocates the device once, and reserves it for the whole group".to_owned(),
        Deed::Ready => format!("report {} ready", pods()),
        Deed::Gone => format!("report {} gone", pods()),
        Deed::Removes("Pod") => format!("deletes {}, whose owner is gone", pods()),
        Deed::Removes(kind) => {
            // A finalizer makes it be asked for again.
            let different: BTreeSet<_> = items.iter().collect();
            format!("deletes {}, whose owner is gone", count(different.len(), kind))
        }
    }
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn count_pods(n: i64) -> String {
    if n == 1 { "1 pod".to_owned() } else { format!("{n} pods") }
}

/// Pods of a StatefulSet, with the first and the last where they are all in between.
fn pods(set: &str, items: &[String]) -> String {
    let mut ordinals: Vec<u32> = items.iter().filter_map(|item| item.rsplit_once('-')?.1.parse().ok()).collect();
    ordinals.sort_unstable();
    ordinals.dedup();
    match ordinals[..] {
        [only] => format!("{set}-{only}"),
        [first, .., last]
            if ordinals.len() > 2 && usize::try_from(last - first).is_ok_and(|span| span + 1 == ordinals.len()) =>
        {
            format!("{set}-{first} to {set}-{last}")
        }
        _ => ordinals.iter().map(|ordinal| format!("{set}-{ordinal}")).collect::<Vec<_>>().join(", "),
    }
}

/// How many of each.
fn each(items: &[String]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    let of = |(item, count): (&str, usize)| if count == 1 { item.to_owned() } else { format!("{item} ×{count}") };
    counts.into_iter().map(of).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn request(user: &str, verb: Verb, resource: Resource, name: &str, code: u16) -> Request {
        Request {
            sequence: 0,
            user: Arc::from(user),
            verb,
            resource,
            subresource: None,
            namespace: Some("default".to_owned()),
            name: Some(name.to_owned()),
            body: Value::Null,
            dry_run: false,
            answer: Some(code),
            answered: Some(0),
        }
    }

    fn deeds(request: &Request, object: &Value) -> Vec<(Who, Deed, String)> {
        let facts = of(Duration::ZERO, request, Some(object)).into_iter();
        facts.map(|fact| (fact.who, fact.deed, fact.set)).collect()
    }

    #[test]
    fn a_pod_that_was_created_in_a_group_tells_of_two() {
        let asked = request(identity::STATEFULSET_CONTROLLER, Verb::Create, Resource::Pods, "my-web-10", 201);
        let pod = json!({ "spec": { "schedulingGroup": { "podGroupName": "g" } } });
        let set = || "my-web".to_owned();
        let expected = [(Who::StatefulSets, Deed::Creates, set()), (Who::Policy, Deed::Stamps, set())];
        assert_eq!(deeds(&asked, &pod), expected);
        assert_eq!(deeds(&asked, &json!({})), expected[..1]);
    }

    #[test]
    fn a_create_that_was_refused_was_held_by_the_policy_unless_it_was_a_conflict() {
        let asked = |code| request(identity::STATEFULSET_CONTROLLER, Verb::Create, Resource::Pods, "web-0", code);
        assert_eq!(deeds(&asked(403), &Value::Null), [(Who::Policy, Deed::HoldsCreates, "web".to_owned())]);
        assert_eq!(deeds(&asked(409), &Value::Null), []);
    }

    #[test]
    fn what_the_controller_makes_is_told_with_what_it_asks_for() {
        let template = json!({
            "schedulingPolicy": { "gang": { "minCount": 3 } },
            "schedulingConstraints": { "topology": [{ "key": "example.com/rack" }] },
            "disruptionMode": { "all": {} },
        });
        let workload = json!({
            "metadata": { "ownerReferences": [{ "kind": "StatefulSet", "name": "web" }] },
            "spec": { "podGroupTemplates": [template] },
        });
        let asked = request(DEFAULT_CONTROLLER, Verb::Create, Resource::Workloads, "web-1", 201);
        let about = "all 3 pods or none, all in one rack, preempted only as a whole";
        let made = Deed::MakesWorkload(about.to_owned());
        assert_eq!(deeds(&asked, &workload), [(Who::Controller, made.clone(), "web".to_owned())]);
        assert_eq!(say(&made, "web", &["web-1".to_owned()]), format!("makes the Workload of web: {about}"));
    }

    #[test]
    fn a_binding_tells_of_the_node() {
        let mut asked = request(SCHEDULER, Verb::Create, Resource::Pods, "web-0", 201);
        asked.subresource = Some(Subresource::Binding);
        let facts = of(Duration::ZERO, &asked, Some(&json!({ "spec": { "nodeName": "n1" } })));
        assert_eq!(facts.iter().map(|fact| (&*fact.set, &*fact.item)).collect::<Vec<_>>(), [("web", "n1")]);
    }

    #[test]
    fn what_nobody_wants_to_know_is_not_told() {
        let reads = request(DEFAULT_CONTROLLER, Verb::List, Resource::Pods, "", 200);
        assert_eq!(deeds(&reads, &Value::Null), []);
        let unanswered = Request { answer: None, ..reads };
        assert_eq!(deeds(&unanswered, &Value::Null), []);
    }

    #[test]
    fn pods_and_nodes_are_said_shortly() {
        let names = |ordinals: &[u32]| ordinals.iter().map(|n| format!("web-{n}")).collect::<Vec<_>>();
        assert_eq!(say(&Deed::Creates, "web", &names(&[2, 0, 1])), "creates web-0 to web-2");
        assert_eq!(say(&Deed::Deletes, "web", &names(&[4])), "deletes web-4");
        assert_eq!(say(&Deed::Removes("PodGroup"), "", &names(&[4, 4])), "deletes 1 PodGroup, whose owner is gone");
        assert_eq!(say(&Deed::Preempts, "web", &names(&[0, 3])), "preempts web-0, web-3");
        let nodes = ["n-2", "n-1", "n-2"].map(str::to_owned);
        assert_eq!(say(&Deed::Binds, "web", &nodes), "places 3 pods of web: n-1, n-2 ×2");
    }
}
