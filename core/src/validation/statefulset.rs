//! The rules that span fields of the StatefulSet, which no building block can know.

use crate::api::{PodManagementPolicy, StatefulSet, StatefulSetSchedulingConfiguration};
use crate::field::{BadValue, Error, ErrorList, Path};

/// The KEP's words for a gang whose pods are created one by one.
pub const GANG_REQUIRES_PARALLEL: &str = "gang scheduling requires podManagementPolicy: Parallel; OrderedReady creates \
    pods sequentially, which can never satisfy a gang";
/// The KEP's words for a partitioned rollout of a group.
pub const NO_PARTITION: &str = "partitioned rollouts are not supported for StatefulSets with spec.scheduling set";

/// The errors of a new StatefulSet with the configuration at `path`.
pub(super) fn validate_create(
    statefulset: &StatefulSet,
    configuration: &StatefulSetSchedulingConfiguration,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(gang) = configuration.gang() {
        let path = path.child("schedulingPolicy").child("gang");
        if statefulset.pod_management_policy != PodManagementPolicy::Parallel {
            errors.push(Error::forbidden(&path, GANG_REQUIRES_PARALLEL));
        }
        if gang.min_count.is_some() {
            errors.push(Error::forbidden(
                &path.child("minCount"),
                "may not be set: the size of the gang is derived from spec.replicas",
            ));
        }
    }
    partition(statefulset, &mut errors);
    scheduling_group(statefulset, path, &mut errors);
    errors
}

/// The errors of a change of a StatefulSet that has, and had, a configuration at `path`.
///
/// What did not change is not judged again: an object that predates the policy must stay usable.
pub(super) fn validate_update(old: &StatefulSet, new: &StatefulSet, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.partition != new.partition {
        partition(new, &mut errors);
    }
    let pod_spec = StatefulSet::pod_spec_path();
    let frozen = [
        (
            "priorityClassName",
            &old.template.priority_class_name,
            &new.template.priority_class_name,
            "the scheduler refuses a group whose pods differ in priority from each other or from their PodGroup",
        ),
        (
            "schedulerName",
            &old.template.scheduler_name,
            &new.template.scheduler_name,
            "the scheduler refuses a group whose pods differ in schedulerName",
        ),
    ];
    for (name, old, new, reason) in frozen {
        if old != new {
            let value = BadValue::String(new.clone().unwrap_or_default());
            let detail = format!("field is immutable while {path} is set: {reason}");
            errors.push(Error::invalid(&pod_spec.child(name), value, detail).with_origin("immutable"));
        }
    }
    if old.template.scheduling_group != new.template.scheduling_group {
        scheduling_group(new, path, &mut errors);
    }
    errors
}

fn partition(statefulset: &StatefulSet, errors: &mut ErrorList) {
    if statefulset.partition > 0 {
        errors.push(Error::forbidden(&StatefulSet::partition_path(), NO_PARTITION));
    }
}

fn scheduling_group(statefulset: &StatefulSet, path: &Path, errors: &mut ErrorList) {
    if statefulset.template.scheduling_group.is_some() {
        errors.push(Error::forbidden(
            &StatefulSet::pod_spec_path().child("schedulingGroup"),
            format!("may not be set together with {path}: each pod gets the group that is made for the StatefulSet"),
        ));
    }
}

/// One warning for each shared claim that no claim of the pod template matches by name and source:
/// pods that do not ask for it do not use it.
pub(super) fn unmatched_claims(
    statefulset: &StatefulSet,
    configuration: &StatefulSetSchedulingConfiguration,
    path: &Path,
) -> Vec<String> {
    let in_template = &statefulset.template.resource_claims;
    let unmatched = configuration.claims().iter().enumerate().filter(|(_, shared)| {
        !in_template.iter().any(|claim| {
            claim.name == shared.name
                && claim.resource_claim_name == shared.resource_claim_name
                && claim.resource_claim_template_name == shared.resource_claim_template_name
        })
    });
    unmatched
        .map(|(index, _)| {
            format!(
                "{}: no entry of {} has the same name and source, so no pod uses this shared claim",
                path.child("resourceClaims").index(index),
                StatefulSet::pod_spec_path().child("resourceClaims"),
            )
        })
        .collect()
}
