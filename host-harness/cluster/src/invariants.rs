//! What holds of every cluster: always, and at rest. Told from the stored objects alone, not by the
//! project's own discovery.

use std::collections::BTreeMap;

use cluster_apiserver::{Resource, View};
use serde_json::Value;
use statefulset_scheduling_core::api::{MANAGED_LABEL, SCHEDULING_ANNOTATION};
use statefulset_scheduling_core::binding::BINDING_ANNOTATION;

/// Whose an object is: the UID of its controller, if that is a StatefulSet.
pub fn controlling_set(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true && owner["kind"] == "StatefulSet")?;
    owner["uid"].as_str()
}

/// Whether the controller made it.
pub fn is_ours(object: &Value) -> bool {
    object["metadata"]["annotations"]["scheduling.k8s.io/managed-by"] == "statefulset-controller"
        && controlling_set(object).is_some()
}

/// Whether a StatefulSet carries an intent, in either carrier.
pub fn is_opted_in(set: &Value) -> bool {
    set["spec"]["scheduling"].is_object() || set["metadata"]["annotations"][SCHEDULING_ANNOTATION].is_string()
}

/// The minCounts of a Workload's templates, or of a PodGroup.
pub fn min_counts(object: &Value) -> Vec<i64> {
    let of = |spec: &Value| spec["schedulingPolicy"]["gang"]["minCount"].as_i64();
    match object["spec"]["podGroupTemplates"].as_array() {
        Some(templates) => templates.iter().filter_map(of).collect(),
        None => of(&object["spec"]).into_iter().collect(),
    }
}

/// The binding of a StatefulSet, as it is written.
pub fn binding(set: &Value) -> Value {
    let text = set["metadata"]["annotations"][BINDING_ANNOTATION].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

fn full_name(object: &Value) -> String {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default();
    format!("{} {}/{}", object["kind"].as_str().unwrap_or_default(), text("namespace"), text("name"))
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// What must never be: two Workloads or PodGroups of ours for one StatefulSet, a minCount below 1, a pod
/// of a group that is not its StatefulSet's.
pub fn always(view: &View<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for resource in [Resource::Workloads, Resource::PodGroups] {
        let mut made: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for object in view.list(resource) {
            if min_counts(&object).iter().any(|count| *count < 1) {
                wrong.push(format!("{} has a minCount below 1", full_name(&object)));
            }
            if is_ours(&object) {
                let owner = controlling_set(&object).unwrap_or_default().to_owned();
                made.entry(owner).or_default().push(full_name(&object));
            }
        }
        let twice = made.into_values().filter(|names| names.len() > 1);
        wrong.extend(twice.map(|names| format!("of one StatefulSet: {}", names.join(" and "))));
    }
    let groups: BTreeMap<_, _> = view
        .list(Resource::PodGroups)
        .into_iter()
        .filter(is_ours)
        .map(|group| (key(&group), controlling_set(&group).unwrap_or_default().to_owned()))
        .collect();
    for pod in view.list(Resource::Pods) {
        let Some(group) = pod["spec"]["schedulingGroup"]["podGroupName"].as_str() else { continue };
        let place = (key(&pod).0, group.to_owned());
        if let (Some(owner), Some(set)) = (groups.get(&place), controlling_set(&pod))
            && owner != set
        {
            wrong.push(format!("{} is in the group of another StatefulSet: {group}", full_name(&pod)));
        }
    }
    wrong
}

fn key(object: &Value) -> (String, String) {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// What is wrong with a cluster at rest: what must never be; what is left of StatefulSets that are gone;
/// sizes that are not in step; bindings that are not those of the PodGroup; pods without their group.
pub fn violations(view: &View<'_>) -> Vec<String> {
    let mut wrong = always(view);
    let sets = view.list(Resource::StatefulSets);
    let (workloads, groups) = (view.list(Resource::Workloads), view.list(Resource::PodGroups));
    let pods = view.list(Resource::Pods);
    let lives = |owner: &str| sets.iter().any(|set| uid(set) == owner);
    for object in workloads.iter().chain(&groups).chain(&pods) {
        if controlling_set(object).is_some_and(|owner| !lives(owner)) {
            wrong.push(format!("{} is left of a StatefulSet that is gone", full_name(object)));
        }
    }
    for object in sets.iter().chain(&workloads).chain(&groups).chain(&pods) {
        if is_deleting(object) {
            wrong.push(format!("{} is still being deleted", full_name(object)));
        }
    }
    for claim in view.list(Resource::ResourceClaims) {
        let owners = claim["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        for owner in owners.filter(|owner| owner["kind"] == "PodGroup") {
            if !groups.iter().any(|group| group["metadata"]["uid"] == owner["uid"]) {
                wrong.push(format!("{} is left of a PodGroup that is gone", full_name(&claim)));
            }
        }
    }
    for set in &sets {
        let own: Vec<_> = pods.iter().filter(|pod| controlling_set(pod) == Some(uid(set))).collect();
        let replicas = set["spec"]["replicas"].as_i64().unwrap_or(1);
        if i64::try_from(own.len()) != Ok(replicas) {
            wrong.push(format!("{} has {} pods of {replicas}", full_name(set), own.len()));
        }
        if is_opted_in(set) {
            let of_set = |object: &&Value| is_ours(object) && controlling_set(object) == Some(uid(set));
            let made = (workloads.iter().find(of_set), groups.iter().find(of_set));
            wrong.extend(opted_in(set, replicas, made, &own).map(|what| format!("{}: {what}", full_name(set))));
        }
    }
    wrong
}

/// What is wrong with a StatefulSet that has an intent and objects of its own.
fn opted_in<'a>(
    set: &'a Value,
    replicas: i64,
    (workload, group): (Option<&'a Value>, Option<&'a Value>),
    pods: &'a [&'a Value],
) -> impl Iterator<Item = String> + 'a {
    let mut wrong = Vec::new();
    let (Some(workload), Some(group)) = (workload, group) else {
        let there = (workload.is_some(), group.is_some());
        return vec![format!("Workload and PodGroup are there: {there:?}")].into_iter();
    };
    for object in [workload, group] {
        let sizes = min_counts(object);
        if sizes.iter().any(|size| *size != replicas.max(1)) {
            wrong.push(format!("{} has the size {sizes:?}, not {replicas}", full_name(object)));
        }
    }
    let bound = binding(set);
    if (&bound["name"], &bound["uid"]) != (&group["metadata"]["name"], &group["metadata"]["uid"]) {
        wrong.push(format!("it is bound to {bound}, not to {}", full_name(group)));
    }
    if !min_counts(group).is_empty() && bound["replicas"] != replicas {
        wrong.push(format!("it is bound to the size {}, not {replicas}", bound["replicas"]));
    }
    let labelled = pods.iter().filter(|pod| pod["metadata"]["labels"][MANAGED_LABEL] == "true");
    for pod in labelled {
        if pod["spec"]["schedulingGroup"]["podGroupName"] != group["metadata"]["name"] {
            wrong.push(format!("{} is not in its group", full_name(pod)));
        }
    }
    wrong.into_iter()
}
