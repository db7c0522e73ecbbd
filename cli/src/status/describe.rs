//! One StatefulSet, from its intent to its pods.

use statefulset_scheduling_core::binding::Binding;
use statefulset_scheduling_core::discovery::{self, Found, Index as _, PodGroup, Workload};
use statefulset_scheduling_core::plan::Decision;

use super::tree::Tree;
use super::waiting::waits;
use crate::snapshot::{Groups, Member, Set};
use crate::style::{BOLD, DIM, GREEN, RED, YELLOW};

/// The Workloads and the PodGroups that have to do with a StatefulSet, as many as there are.
fn found<'a>(set: &Set, groups: &'a Groups) -> Vec<(&'a Workload, Vec<&'a PodGroup>)> {
    let subject = &set.subject;
    let own = discovery::ControllerRef::to_statefulset(&subject.name);
    let delegated = subject.group_template_name.as_ref().and(subject.parent.as_ref());
    let controller = delegated.map_or(&own, |parent| &parent.reference);
    let workloads = groups.workloads_of(&subject.namespace, controller);
    let with_groups = workloads.into_iter().map(|workload| {
        let template = delegated.and(subject.group_template_name.as_deref());
        let name = &workload.identity.name;
        let mut pod_groups = groups.pod_groups_of(&subject.namespace, name);
        if let Found::One(one) = discovery::pod_group(groups, &subject.namespace, name, template, &subject.uid) {
            pod_groups.retain(|other| other.identity.name == one.identity.name);
        }
        (workload, pod_groups)
    });
    with_groups.collect()
}

/// The UIDs of the objects whose events matter.
pub(super) fn uids(set: &Set, groups: &Groups) -> Vec<String> {
    let pod_groups = found(set, groups).into_iter().flat_map(|(_, pod_groups)| pod_groups);
    let pod_groups = pod_groups.map(|pod_group| pod_group.identity.uid.clone());
    std::iter::once(set.subject.uid.clone()).chain(pod_groups).collect()
}

/// The tree of a StatefulSet, and whether all of it is in order.
pub fn describe(set: &Set, groups: &Groups, events: &[String]) -> (Tree, bool) {
    let decision = set.decision(groups);
    let waits = waits(set, &decision);
    let mut tree = Tree::new(format!("{BOLD}StatefulSet {}{BOLD:#}  {}", set.full_name(), intent(set)));
    let found = found(set, groups);
    if found.is_empty() {
        tree.line(format!("{YELLOW}no Workload{YELLOW:#}"));
    }
    for (workload, pod_groups) in found {
        tree.push(workload_tree(set, workload, &pod_groups, groups));
    }
    tree.line(format!("binding: {}", binding(set)));
    let named = |member: &&Member| member.group.as_ref().is_some_and(|name| is_there(set, groups, name));
    let stray: Vec<_> = set.members.iter().filter(|member| !named(member)).collect();
    if !stray.is_empty() {
        let mut pods = Tree::new(format!("{YELLOW}pods without the group{YELLOW:#}"));
        for member in &stray {
            pods.line(pod(member));
        }
        tree.push(pods);
    }
    for report in decision.reports.iter().filter(|report| report.reason.is_warning()) {
        tree.line(format!("{RED}{}{RED:#}: {}", report.reason.as_str(), report.message));
    }
    if !events.is_empty() {
        let mut node = Tree::new("events");
        for event in events {
            node.line(format!("{DIM}{event}{DIM:#}"));
        }
        tree.push(node);
    }
    for wait in &waits {
        tree.line(format!("{YELLOW}waiting{YELLOW:#}: {wait}"));
    }
    let good = is_in_order(&decision, &waits) && stray.is_empty();
    if good {
        tree.line(format!("{GREEN}in order{GREEN:#}: nothing is waited for"));
    }
    (tree, good)
}

fn is_in_order(decision: &Decision, waits: &[String]) -> bool {
    waits.is_empty() && !decision.reports.iter().any(|report| report.reason.is_warning())
}

fn is_there(set: &Set, groups: &Groups, name: &str) -> bool {
    groups.status(&set.subject.namespace, name).is_some()
}

fn intent(set: &Set) -> String {
    let size = set.replicas();
    match &set.subject.intent {
        Err(errors) => format!("{RED}its intent cannot be read{RED:#}: {errors}"),
        Ok(intent) => {
            let policy = if intent.configuration.gang().is_some() { "gang" } else { "basic" };
            let replicas = if size == 1 { "replica" } else { "replicas" };
            format!("{policy}, {size} {replicas}, by {}", intent.carrier)
        }
    }
}

/// A size, and whether it is in step with the other one.
fn size(min_count: Option<i32>, expected: Option<i32>, of: &str) -> String {
    match (min_count, expected) {
        (None, _) => "basic".to_owned(),
        (Some(count), Some(expected)) if count != expected => {
            format!("minCount {count}, {RED}not in step{RED:#} with {of} {expected}")
        }
        (Some(count), _) => format!("minCount {count}, in step"),
    }
}

fn workload_tree(set: &Set, workload: &Workload, pod_groups: &[&PodGroup], groups: &Groups) -> Tree {
    let origin = workload.identity.origin(&set.subject.uid);
    let gang = |template: &k8s_openapi::api::scheduling::v1beta1::PodGroupTemplate| {
        template.scheduling_policy.gang.as_ref().map(|gang| gang.min_count)
    };
    let template = match &set.subject.group_template_name {
        Some(name) => workload.templates_named(name).first().copied(),
        None => workload.templates.first(),
    };
    let in_template = template.and_then(gang);
    let ours = origin == discovery::Origin::Ours;
    let size_of_template = size(in_template, ours.then(|| set.subject.spec.gang_size()), "the size");
    let whose = if ours { "" } else { ", made by somebody else" };
    let leaving = if workload.identity.deleting { ", being deleted" } else { "" };
    let mut tree = Tree::new(format!("Workload {}  {size_of_template}{whose}{leaving}", workload.identity.name));
    if pod_groups.is_empty() {
        tree.line(format!("{YELLOW}no PodGroup{YELLOW:#}"));
    }
    for pod_group in pod_groups {
        let leaving = if pod_group.identity.deleting { ", being deleted" } else { "" };
        let mut node = Tree::new(format!(
            "PodGroup {}  {}{leaving}",
            pod_group.identity.name,
            size(pod_group.min_count, in_template, "the Workload's")
        ));
        let status = groups.status(&set.subject.namespace, &pod_group.identity.name);
        for condition in status.into_iter().flat_map(|status| &status.conditions) {
            let style = if condition.status == "True" { GREEN } else { YELLOW };
            let message = if condition.message.is_empty() { String::new() } else { format!(": {}", condition.message) };
            node.line(format!(
                "{} {style}{}{style:#} ({}){message}",
                condition.type_, condition.status, condition.reason
            ));
        }
        for member in set.members.iter().filter(|member| member.group.as_ref() == Some(&pod_group.identity.name)) {
            node.line(pod(member));
        }
        tree.push(node);
    }
    tree
}

fn pod(member: &Member) -> String {
    let state = match (member.deleting, member.ready) {
        (true, _) => "ending",
        (false, true) => "ready",
        (false, false) => &member.phase,
    };
    let node = member.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
    format!("pod {}  {state}{node}", member.name)
}

fn binding(set: &Set) -> String {
    match set.subject.binding.as_deref().map(Binding::parse) {
        None => "none yet".to_owned(),
        Some(Err(error)) => format!("{RED}broken{RED:#}: it {error}"),
        Some(Ok(Binding::Fallback(fallback))) => format!("no group, {}", fallback.fallback),
        Some(Ok(Binding::PodGroup(group))) => match group.replicas {
            None => format!("PodGroup {}", group.name),
            Some(size) if size == set.replicas() => format!("PodGroup {}, up to {size} replicas", group.name),
            Some(size) => format!("PodGroup {}, up to {size} replicas of {}", group.name, set.replicas()),
        },
    }
}
