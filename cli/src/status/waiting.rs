//! What a StatefulSet waits for, and who has to do it.

use std::collections::BTreeMap;

use statefulset_scheduling_core::binding::{self, Gate};
use statefulset_scheduling_core::plan::{Decision, Step};

use crate::snapshot::Set;

/// What the controller has still to do; none where it is at rest.
pub fn step(step: &Step) -> Option<String> {
    Some(match step {
        Step::CreateWorkload(_) => "to create the Workload".to_owned(),
        Step::CreatePodGroup(_) => "to create the PodGroup".to_owned(),
        Step::SetWorkloadMinCount(patch) => {
            format!("to set the minCount of the Workload {} from {} to {}", patch.name, patch.from, patch.to)
        }
        Step::SetPodGroupMinCount(patch) => {
            format!("to set the minCount of the PodGroup {} from {} to {}", patch.name, patch.from, patch.to)
        }
        Step::PublishBinding(Some(_)) => "to publish the binding to the PodGroup".to_owned(),
        Step::PublishBinding(None) => "to remove the binding to a PodGroup that is going".to_owned(),
        // What is only asked was answered when the snapshot was taken.
        _ => return None,
    })
}

/// What is waited for, each with those who wait.
pub fn waits(set: &Set, decision: &Decision) -> Vec<String> {
    let mut waits = Vec::new();
    let is_whole = pods(set);
    if let Some(step) = step(&decision.step) {
        waits.push(format!("the StatefulSet waits for the controller {step}"));
    }
    let mut reasons: Vec<_> = is_whole.into_iter().collect();
    reasons.sort_by(|left, right| left.1.cmp(&right.1));
    for (reason, names) in reasons {
        let verb = if names.len() == 1 { "waits" } else { "wait" };
        waits.push(format!("{} {verb} for {reason}", some(&names)));
    }
    waits
}

/// The first few of many names.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 4;
    match names.get(SHOWN..) {
        Some(rest) if !rest.is_empty() => {
            format!("{} and {} more", names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", "), rest.len())
        }
        _ => names.join(", "),
    }
}

/// The pods that wait, by what they wait for.
fn pods(set: &Set) -> BTreeMap<String, Vec<String>> {
    let mut waits: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let binding = set.subject.binding.as_deref();
    let replicas = set.replicas();
    for index in 0..i64::from(replicas) {
        if set.members.iter().any(|member| set.index(member) == Some(index)) {
            continue;
        }
        let reason = match binding::gate(binding, Some(index)) {
            Gate::Held(reason) => reason,
            Gate::Open(_) | Gate::Fallback(_) => "the cluster's StatefulSet controller to create it".to_owned(),
        };
        let ordinal = index + i64::from(set.subject.spec.ordinals_start);
        waits.entry(reason).or_default().push(format!("{}-{ordinal}", set.subject.name));
    }
    for member in &set.members {
        let surplus = set.index(member).filter(|index| *index >= i64::from(replicas));
        let reason = if member.deleting {
            "its containers to end".to_owned()
        } else if let Some(index) = surplus {
            let held = binding::holds_deletion(binding, index, replicas);
            held.unwrap_or_else(|| "the cluster's StatefulSet controller to delete it".to_owned())
        } else if let Some(node) = member.node.as_ref().filter(|_| !member.ready && member.phase != "Succeeded") {
            format!("the kubelet of {node} to make it ready")
        } else if member.node.is_none() {
            match &member.unscheduled {
                Some(why) if !why.is_empty() => format!("the scheduler: {why}"),
                _ => "the scheduler".to_owned(),
            }
        } else {
            continue;
        };
        waits.entry(reason).or_default().push(member.name.clone());
    }
    waits
}
