//! What must hold: always, before each write, and at rest. Told from the stored JSON, not by the
//! controller's own discovery.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use statefulset_scheduling_controller::index::{Index, Key};
use statefulset_scheduling_core::api::GROUP_TEMPLATE_NAME_ANNOTATION;
use statefulset_scheduling_core::binding::{BINDING_ANNOTATION, Binding, Fallback, PodGroupBinding};
use statefulset_scheduling_core::discovery::{ControllerRef, Index as _, Origin};
use statefulset_scheduling_core::names;
use statefulset_scheduling_core::plan::Subject;

use super::cluster::{Cluster, PARENT, Write};
use super::object::{NAMESPACE, Object, Resource};

type Verdict = Result<(), String>;

fn demand(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// What holds after every step.
pub(crate) fn always(cluster: &Cluster) -> Verdict {
    let mut made: BTreeMap<(Resource, &str), Vec<&str>> = BTreeMap::new();
    for object in cluster.objects() {
        demand(object.sizes().iter().all(|size| *size >= 1), || format!("a minCount of {} is below 1", object.name))?;
        if let Some(uid) = object.made_for() {
            made.entry((object.resource, uid)).or_default().push(&object.name);
        }
    }
    for ((resource, uid), names) in made {
        demand(names.len() == 1, || format!("{uid} has the {resource:?} {}", names.join(" and ")))?;
    }
    Ok(())
}

/// What holds of a write when it is sent: `index` is what the plan was made of.
pub(crate) fn before(cluster: &Cluster, index: &Index, current: &str, disturbed: bool, write: &Write) -> Verdict {
    let subject = index.subject(&Key::new(NAMESPACE, current)).ok_or("a write for no StatefulSet")?;
    demand(!subject.deleting, || format!("a write for {current}, which is being deleted"))?;
    match write {
        Write::Create(resource, value) => {
            demand(disturbed || !cluster.pods.contains(&subject.uid), || format!("{current} has pods"))?;
            creation(index, &subject, *resource, value)
        }
        Write::JsonPatch { resource, name, patch } => resize(cluster, index, &subject, *resource, name, patch),
        Write::MergeSet { name, patch } => {
            let text = patch["metadata"]["annotations"][BINDING_ANNOTATION].as_str().unwrap_or_default();
            demand(disturbed || !text.contains("UnresolvedParent") || !is_resolved(cluster, &subject), || {
                format!("{current} falls back, though its parent has the one Workload that it needs")
            })?;
            binding(cluster, &subject, name, patch)
        }
    }
}

/// The Workloads that refer to a StatefulSet, but for those that were made for an earlier one.
fn candidates<'a>(index: &'a Index, subject: &Subject) -> Vec<&'a str> {
    let workloads = index.workloads_of(NAMESPACE, &ControllerRef::to_statefulset(&subject.name));
    let theirs = workloads.into_iter().filter(|workload| workload.identity.origin(&subject.uid) != Origin::Others);
    theirs.map(|workload| workload.identity.name.as_str()).collect()
}

fn creation(index: &Index, subject: &Subject, resource: Resource, value: &Value) -> Verdict {
    let object = Object::new(resource, value.clone(), 0);
    demand(object.made_for() == Some(&subject.uid) && object.controlling_set() == Some(&subject.uid), || {
        format!("{} is not marked as made for {}", object.name, subject.uid)
    })?;
    let is_delegated = subject.group_template_name.is_some() && subject.parent.is_some();
    if resource == Resource::Workloads {
        demand(!is_delegated, || format!("a Workload for {}, whose parent has one", subject.name))?;
        let there = candidates(index, subject);
        demand(there.is_empty(), || format!("a second Workload is made, though the cache has {}", there.join(", ")))?;
        let size = i64::from(subject.spec.gang_size());
        demand(object.sizes().iter().all(|one| *one == size), || format!("a Workload of {:?}", object.sizes()))?;
        let reference = json!({"apiGroup": "apps", "kind": "StatefulSet", "name": subject.name});
        return demand(value["spec"]["controllerRef"] == reference, || "it refers to somebody else".to_owned());
    }
    if !is_delegated {
        let there = candidates(index, subject);
        demand(there == [object.workload_name().unwrap_or_default()], || {
            format!("a PodGroup of {:?}, though the cache has {}", object.workload_name(), there.join(", "))
        })?;
    }
    let groups = index.pod_groups_of(NAMESPACE, object.workload_name().unwrap_or_default());
    let ours: Vec<_> = groups.iter().filter(|group| group.identity.origin(&subject.uid) == Origin::Ours).collect();
    demand(ours.is_empty(), || "a second PodGroup is made, though the cache has one".to_owned())
}

fn resize(
    cluster: &Cluster,
    index: &Index,
    subject: &Subject,
    resource: Resource,
    name: &str,
    patch: &Value,
) -> Verdict {
    let operations = patch.as_array().ok_or("it is no JSON Patch")?;
    let uid = operations.iter().find(|operation| operation["op"] == "test" && operation["path"] == "/metadata/uid");
    let uid = uid.and_then(|operation| operation["value"].as_str()).ok_or("the UID is not tested")?;
    let made_for = cluster.history(uid).and_then(|[first, _]| first.made_for());
    demand(made_for == Some(&subject.uid), || format!("{name} is changed, which is not {}'s", subject.uid))?;
    let changes: Vec<_> = operations.iter().filter(|operation| operation["op"] != "test").collect();
    let [change] = changes.as_slice() else { return Err(format!("{name} gets {} changes", changes.len())) };
    let is_size = change["path"].as_str().is_some_and(|path| path.ends_with("/schedulingPolicy/gang/minCount"));
    let is_valid = change["op"] == "replace" && change["value"].as_i64().is_some_and(|size| size >= 1);
    demand(is_size && is_valid, || format!("{name} gets the change {change}"))?;
    if resource == Resource::Workloads {
        let there = candidates(index, subject);
        demand(there == [name], || format!("{name} is changed, though the choice is {}", there.join(", ")))?;
        demand(change["value"] == subject.spec.gang_size(), || format!("{name} gets the size {}", change["value"]))?;
    }
    Ok(())
}

fn binding(cluster: &Cluster, subject: &Subject, name: &str, patch: &Value) -> Verdict {
    demand(name == subject.name, || format!("{name} is changed instead of {}", subject.name))?;
    let text = &patch["metadata"]["annotations"][BINDING_ANNOTATION];
    let expected = json!({"metadata": {"uid": subject.uid, "annotations": {BINDING_ANNOTATION: text}}});
    demand(*patch == expected, || format!("more than the binding is changed: {patch}"))?;
    let Some(text) = text.as_str() else { return Ok(()) };
    let Binding::PodGroup(bound) = Binding::parse(text).map_err(|error| error.to_string())? else { return Ok(()) };
    let [first, group] =
        cluster.history(&bound.uid).ok_or_else(|| format!("{text} names no PodGroup that ever was"))?;
    demand(group.resource == Resource::PodGroups && group.name == bound.name, || format!("{text} is {}", group.name))?;
    demand(group.controlling_set().is_none_or(|uid| uid == subject.uid), || {
        format!("{text} is another StatefulSet's: {:?}", group.controlling_set())
    })?;
    let own = ("apps", "StatefulSet", subject.name.as_str());
    let template = subject.group_template_name.as_deref().filter(|_| subject.parent.is_some());
    let controller = if template.is_some() { PARENT } else { own };
    let refers = |workload: &&Arc<Object>| {
        Some(workload.name.as_str()) == group.workload_name() && refers_to(workload, controller)
    };
    demand(cluster.ever(Resource::Workloads).any(|workload| refers(&workload)), || {
        format!("{text} is made from {:?}, which never was {name}'s", group.workload_name())
    })?;
    demand(template.is_none_or(|name| group.value["spec"]["workloadRef"]["templateName"] == name), || {
        format!("{text} is made from another template")
    })?;
    let Some(replicas) = bound.replicas else { return Ok(()) };
    demand(first.made_for() == Some(&subject.uid), || format!("{text} keeps the size of somebody else's PodGroup"))?;
    // Of our own Workload alone is the size known, and only while nobody else changes it.
    let now = cluster.get(Resource::PodGroups, &bound.name).filter(|now| now.uid == bound.uid);
    let mut of_the_name =
        cluster.ever(Resource::Workloads).filter(|workload| Some(workload.name.as_str()) == group.workload_name());
    let ours = of_the_name.all(|workload| workload.made_for() == Some(&subject.uid));
    if let Some(now) = now
        && ours
        && !cluster.tampered
    {
        let size = i64::from(replicas.max(1));
        demand(now.sizes() == [size], || format!("{text} is published while the PodGroup has {:?}", now.sizes()))?;
    }
    Ok(())
}

/// Whether the parent has one Workload, with the one template that is asked for.
fn is_resolved(cluster: &Cluster, subject: &Subject) -> bool {
    let workloads: Vec<_> = cluster.all(Resource::Workloads).filter(|one| refers_to(one, PARENT)).collect();
    let is_asked_for = |template: &&Value| template["name"].as_str() == subject.group_template_name.as_deref();
    matches!(workloads.as_slice(), [one] if one.templates().iter().filter(is_asked_for).count() == 1)
}

fn refers_to(workload: &Object, (group, kind, name): (&str, &str, &str)) -> bool {
    workload.value["spec"]["controllerRef"] == json!({"apiGroup": group, "kind": kind, "name": name})
}

/// What holds when nothing moves.
pub(crate) fn at_rest(cluster: &Cluster) -> Verdict {
    for object in cluster.objects() {
        if let Some(uid) = object.made_for() {
            let lives = cluster.all(Resource::Sets).any(|set| set.uid == uid);
            demand(lives, || format!("{} is left of {uid}, which is gone", object.name))?;
        }
    }
    for set in cluster.all(Resource::Sets).filter(|set| !set.is_deleting()) {
        let expected = expected(cluster, set).map_err(|error| format!("{}: {error}", set.uid))?;
        let expected = expected.as_ref().map(Binding::print);
        let binding = set.value["metadata"]["annotations"][BINDING_ANNOTATION].as_str();
        demand(binding == expected.as_deref(), || {
            format!("{} is bound to {binding:?}, and should be to {expected:?}", set.uid)
        })?;
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "it is a result wherever it is used")]
fn fallback(reason: &str) -> Result<Option<Binding>, String> {
    Ok(Some(Binding::Fallback(Fallback { fallback: reason.to_owned() })))
}

/// The binding that a StatefulSet should have.
fn expected(cluster: &Cluster, set: &Object) -> Result<Option<Binding>, String> {
    let has_pods = cluster.pods.contains(&set.uid);
    if let Some(template) = set.value["metadata"]["annotations"][GROUP_TEMPLATE_NAME_ANNOTATION].as_str() {
        let workloads: Vec<_> = cluster.all(Resource::Workloads).filter(|one| refers_to(one, PARENT)).collect();
        let [workload] = workloads.as_slice() else { return fallback("UnresolvedParent") };
        let templates: Vec<_> = workload.templates().iter().filter(|one| one["name"] == template).collect();
        let [template] = templates.as_slice() else { return fallback("UnresolvedParent") };
        return group(cluster, set, workload, template, template["name"].as_str());
    }
    let own = ("apps", "StatefulSet", set.name.as_str());
    let is_earlier = |one: &Object| one.made_for().is_some_and(|uid| uid != set.uid);
    let workloads: Vec<_> =
        cluster.all(Resource::Workloads).filter(|one| refers_to(one, own) && !is_earlier(one)).collect();
    let own_name = names::workload_name(&set.name, &set.uid);
    if let (true, Some(stranded)) = (workloads.is_empty(), stranded(cluster, set, &own_name)) {
        return Ok(stranded.binding);
    }
    let workload = match workloads.as_slice() {
        [] if has_pods => return fallback("PodsPredateOptIn"),
        [] => return Err("it has no Workload".to_owned()),
        [workload] => workload,
        _ => return fallback("AmbiguousWorkload"),
    };
    let [template] = workload.templates() else { return fallback("UnusableWorkload") };
    if workload.made_for().is_some() {
        let size = set.replicas().max(1);
        let sizes = workload.sizes();
        if sizes.iter().any(|one| *one != size) {
            return Err(format!("the Workload has {sizes:?} and should have {size}"));
        }
    }
    group(cluster, set, workload, template, None)
}

/// A StatefulSet with a PodGroup that it cannot use any more.
struct Stranded {
    binding: Option<Binding>,
}

/// What a StatefulSet is bound to while there is a PodGroup of its own of another Workload than
/// `workload_name`: it gets no second one.
fn stranded(cluster: &Cluster, set: &Object, workload_name: &str) -> Option<Stranded> {
    let is_stranded =
        |group: &&Arc<Object>| group.made_for() == Some(&set.uid) && group.workload_name() != Some(workload_name);
    let mut groups: Vec<_> = cluster.all(Resource::PodGroups).filter(is_stranded).collect();
    groups.sort_by(|one, other| one.name.cmp(&other.name));
    let first = groups.first()?;
    let binding = Binding::Fallback(Fallback { fallback: "AmbiguousPodGroup".to_owned() });
    Some(Stranded { binding: (!first.is_deleting()).then_some(binding) })
}

fn group(
    cluster: &Cluster,
    set: &Object,
    workload: &Object,
    template: &Value,
    template_name: Option<&str>,
) -> Result<Option<Binding>, String> {
    let is_candidate = |group: &&Arc<Object>| {
        let of_template = template_name.is_none_or(|name| group.value["spec"]["workloadRef"]["templateName"] == name);
        let is_anothers = group.controlling_set().is_some_and(|uid| uid != set.uid);
        group.workload_name() == Some(&workload.name) && of_template && !is_anothers
    };
    let groups: Vec<_> = cluster.all(Resource::PodGroups).filter(is_candidate).collect();
    if groups.iter().any(|group| group.is_deleting()) {
        return Ok(None);
    }
    if let (true, Some(stranded)) = (groups.is_empty(), stranded(cluster, set, &workload.name)) {
        return Ok(stranded.binding);
    }
    let group = match groups.as_slice() {
        [] if cluster.pods.contains(&set.uid) => return fallback("PodsPredateOptIn"),
        [] => return Err("it has no PodGroup".to_owned()),
        [group] => group,
        _ => return fallback("AmbiguousPodGroup"),
    };
    let wanted = template["schedulingPolicy"]["gang"]["minCount"].as_i64();
    let size = group.value["spec"]["schedulingPolicy"]["gang"]["minCount"].as_i64();
    let mut replicas = None;
    if let (Some(_), Some(wanted), Some(size)) = (group.made_for(), wanted, size) {
        if size != wanted {
            return Err(format!("the PodGroup has {size} and should have {wanted}"));
        }
        replicas = i32::try_from(set.replicas()).ok();
    }
    Ok(Some(Binding::PodGroup(PodGroupBinding { name: group.name.clone(), uid: group.uid.clone(), replicas })))
}
