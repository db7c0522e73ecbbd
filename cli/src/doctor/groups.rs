//! Groups that are orphaned, sizes that drifted, and StatefulSets that have no group.

use statefulset_scheduling_core::discovery::Identity;
use statefulset_scheduling_core::plan::{Reason, Step};

use super::Finding;
use crate::format::counted;
use crate::snapshot::{Set, Snapshot};
use crate::status::step;

pub(super) fn examine(snapshot: &Snapshot, findings: &mut Vec<Finding>) {
    let before = findings.len();
    for set in &snapshot.sets {
        findings.extend(statefulset(set, snapshot));
    }
    if findings.len() == before {
        let sets = counted(snapshot.sets.len(), "StatefulSet");
        findings.push(Finding::good(format!("{sets} with an intent: all groups and sizes are in step")));
    }
    let before = findings.len();
    for (namespace, pod_group) in snapshot.groups.pod_groups() {
        findings.extend(orphan("podgroup", "PodGroup", namespace, &pod_group.identity, snapshot));
    }
    for (namespace, workload) in snapshot.groups.workloads() {
        findings.extend(orphan("workload", "Workload", namespace, &workload.identity, snapshot));
    }
    if findings.len() == before {
        findings.push(Finding::good("no Workload and no PodGroup is orphaned"));
    }
}

/// What was made for a StatefulSet that is gone.
fn orphan(resource: &str, kind: &str, namespace: &str, identity: &Identity, snapshot: &Snapshot) -> Option<Finding> {
    let owner = identity.controller_uid.as_ref()?;
    if !identity.managed || identity.deleting || snapshot.uids.contains(owner) {
        return None;
    }
    let name = &identity.name;
    let of = identity.controlling_statefulset.as_deref().unwrap_or("which is unknown");
    Some(Finding::broken(
        format!("the {kind} {namespace}/{name} is orphaned: its StatefulSet {of} is gone"),
        format!("kubectl -n {namespace} delete {resource} {name}, if the garbage collector does not"),
    ))
}

fn statefulset(set: &Set, snapshot: &Snapshot) -> Vec<Finding> {
    let decision = set.decision(&snapshot.groups);
    let name = set.full_name();
    let mut findings = Vec::new();
    if let Some(todo) = step(&decision.step) {
        let drifted = matches!(decision.step, Step::SetWorkloadMinCount(_) | Step::SetPodGroupMinCount(_));
        let what = if drifted { "its size has drifted" } else { "it is behind" };
        findings.push(Finding::broken(
            format!("{name}: {what}: the controller has still {todo}"),
            "ask again; if it stays, see that the controller leads, and read its log and the events of the StatefulSet",
        ));
    }
    for report in decision.reports.iter().filter(|report| report.reason.is_warning()) {
        let what = format!("{name}: {}: {}", report.reason.as_str(), report.message);
        findings.push(Finding::broken(what, repair(report.reason, set)));
    }
    findings
}

/// What the README says about each reason.
fn repair(reason: Reason, set: &Set) -> String {
    let (namespace, name) = (&set.subject.namespace, &set.subject.name);
    match reason {
        Reason::WorkloadCreated | Reason::PodGroupCreated => String::new(),
        Reason::WorkloadCreationFailed | Reason::WorkloadUpdateFailed => {
            "mend the intent: an intent cannot be changed, so delete the StatefulSet and create it anew".to_owned()
        }
        Reason::AmbiguousWorkload | Reason::AmbiguousPodGroup => {
            "delete all but one of the objects that are named".to_owned()
        }
        Reason::UnusableWorkload => "give the Workload exactly one podGroupTemplate, with basic or gang".to_owned(),
        Reason::UnresolvedParent => "see that the parent's Workload has the template, once".to_owned(),
        Reason::DelegationWithoutOwner => "remove the annotation, or let the parent own the StatefulSet".to_owned(),
        Reason::PodsPredateOptIn => format!(
            "kubectl -n {namespace} scale statefulset {name} --replicas=0, and back to {} when its pods are gone",
            set.replicas()
        ),
        Reason::TemplateNotLabelled => {
            format!("re-create it: kubectl -n {namespace} delete statefulset {name}, then apply its manifest")
        }
        Reason::MembersWithoutGroup => {
            "turn on the feature gate GenericWorkload in the cluster, then restart the pods".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Health;
    use crate::snapshot::{Groups, Member};
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};
    use statefulset_scheduling_core::api::{Carriers, View};
    use statefulset_scheduling_core::plan::Subject;

    fn metadata(name: &str, owner: &str) -> Value {
        json!({
            "name": name, "namespace": "ns", "uid": name,
            "annotations": {"scheduling.k8s.io/managed-by": "statefulset-controller"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": owner, "controller": true}],
        })
    }

    fn groups(size: i32, owner: &str) -> Groups {
        let gang = json!({"gang": {"minCount": size}});
        let mut groups = Groups::default();
        let workload = json!({"metadata": metadata("w", owner), "spec": {
            "controllerRef": {"apiGroup": "apps", "kind": "StatefulSet", "name": "web"},
            "podGroupTemplates": [{"name": "web", "schedulingPolicy": gang}],
        }});
        groups.add_workload(serde_json::from_value(workload).unwrap());
        let pod_group = json!({"metadata": metadata("g", owner), "spec": {
            "schedulingPolicy": gang, "workloadRef": {"workloadName": "w", "templateName": "web"},
        }});
        groups.add_pod_group(serde_json::from_value(pod_group).unwrap());
        groups
    }

    fn set(replicas: i32, binding: &str, members: Vec<Member>) -> Set {
        let object = json!({
            "metadata": {"name": "web", "namespace": "ns", "uid": "u", "annotations": {
                "statefulset-scheduling.dev/scheduling": "schedulingPolicy: {gang: {}}",
                "statefulset-scheduling.dev/pod-group": binding,
            }},
            "spec": {"replicas": replicas, "podManagementPolicy": "Parallel",
                "template": {"metadata": {"labels": {"statefulset-scheduling.dev/managed": "true"}}}},
        });
        let raw = to_raw_value(&object).unwrap();
        Set { subject: Subject::new(&View::new(Some(&raw)).unwrap(), Carriers::default()).unwrap(), members }
    }

    fn found(sets: Vec<Set>, groups: Groups, uids: &[&str]) -> Vec<Finding> {
        let uids = uids.iter().map(|uid| (*uid).to_owned()).collect();
        let mut findings = Vec::new();
        examine(&Snapshot { sets, uids, groups }, &mut findings);
        findings
    }

    #[test]
    fn each_way_to_be_out_of_order_is_found_and_has_a_repair() {
        let bound = r#"{"name":"g","uid":"g","replicas":3}"#;
        let stray = Member { name: "web-0".to_owned(), owner: "u".to_owned(), ..Member::default() };
        for (sets, groups, uids, words) in [
            (vec![set(3, bound, vec![])], groups(3, "u"), &["u"][..], &[][..]),
            (vec![set(5, bound, vec![])], groups(3, "u"), &["u"], &["its size has drifted", "from 3 to 5"]),
            (vec![set(3, "", vec![])], groups(3, "u"), &["u"], &["it is behind", "to publish the binding"]),
            (vec![set(3, bound, vec![stray])], groups(3, "u"), &["u"], &["MembersWithoutGroup"]),
            (vec![], groups(3, "gone"), &["u"], &["PodGroup ns/g is orphaned", "Workload ns/w is orphaned"]),
        ] {
            let findings = found(sets, groups, uids);
            let broken: Vec<_> = findings.iter().filter(|finding| finding.health != Health::Good).collect();
            assert_eq!(broken.is_empty(), words.is_empty(), "{findings:?}");
            assert!(broken.iter().all(|finding| !finding.repair.is_empty()));
            let text: String = broken.iter().map(|finding| finding.what.as_str()).collect();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }
}
