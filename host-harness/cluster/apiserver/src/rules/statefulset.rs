//! StatefulSets.
//!
//! Stands for their defaulting and validation. In profile `kep`, `spec.scheduling` is judged by the core's
//! own validation, so that a server that has the field and the policy that stands in for it say the same.
//! Left out: the templates of volumes beyond their defaults.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use statefulset_scheduling_core::api::{
    Carrier, StatefulSet, StatefulSetSchedulingConfiguration, UnknownFields, View, decode_configuration,
};
use statefulset_scheduling_core::field::{BadValue, Error, ErrorList, Path};
use statefulset_scheduling_core::gates::FeatureGates;
use statefulset_scheduling_core::validation;

use super::metadata::validate_labels;
use super::{Rules, copy, non_negative, object_at, one_of, pod, set_default};
use crate::config::Profile;
use crate::select::{LabelSelector, labels_of};

/// The fields that an update may change, as the server lists them.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// The defaults.
pub(super) fn default(object: &mut Value) {
    let spec = object_at(object, "spec");
    set_default(spec, "podManagementPolicy", "OrderedReady");
    set_default(spec, "replicas", 1);
    set_default(spec, "revisionHistoryLimit", 10);
    set_default(spec, "updateStrategy", json!({}));
    set_default(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    let spec = &mut object["spec"];
    let retention = object_at(spec, "persistentVolumeClaimRetentionPolicy");
    set_default(retention, "whenDeleted", "Retain");
    set_default(retention, "whenScaled", "Retain");
    let strategy = object_at(spec, "updateStrategy");
    set_default(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        set_default(strategy, "rollingUpdate", json!({}));
        let rolling = object_at(&mut spec["updateStrategy"], "rollingUpdate");
        set_default(rolling, "partition", 0);
        set_default(rolling, "maxUnavailable", 1);
    }
    pod::default_spec(object_at(&mut spec["template"], "spec"));
    for claim in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(claim) = claim.as_object_mut() {
            set_default(claim, "apiVersion", "v1");
            set_default(claim, "kind", "PersistentVolumeClaim");
            set_default(claim, "status", json!({ "phase": "Pending" }));
        }
        set_default(object_at(claim, "spec"), "volumeMode", "Filesystem");
    }
}

/// Clears what closed gates forbid.
pub(super) fn drop_closed(rules: Rules, old: Option<&Value>, object: &mut Value) {
    let group = |set: &Value| set["spec"]["template"]["spec"]["schedulingGroup"].is_object();
    if !rules.gates.generic_workload && !old.is_some_and(group) {
        pod::drop_scheduling_group(&mut object["spec"]["template"]["spec"]);
    }
    if rules.profile != Profile::Kep {
        return;
    }
    let kept = |member: &str| old.is_some_and(|old| !old["spec"]["scheduling"][member].is_null());
    let Some(spec) = object["spec"].as_object_mut() else { return };
    if !rules.gates.workload_with_stateful_set && old.is_none_or(|old| old["spec"]["scheduling"].is_null()) {
        spec.remove("scheduling");
    }
    let Some(scheduling) = spec.get_mut("scheduling").and_then(Value::as_object_mut) else { return };
    if !rules.gates.dra_workload_resource_claims && !kept("resourceClaims") {
        scheduling.remove("resourceClaims");
    }
    if !rules.gates.topology_aware_workload_scheduling && !kept("schedulingConstraints") {
        scheduling.remove("schedulingConstraints");
    }
}

/// What is wrong with a new StatefulSet.
pub(super) fn validate_create(rules: Rules, object: &Value, errors: &mut ErrorList) {
    validate_spec(&object["spec"], errors);
    if rules.profile == Profile::Kep
        && let Some(configuration) = configuration(object, errors)
        && let Some(set) = core_view(object, errors)
    {
        let report = validation::validate_create(&set, &configuration, &Carrier::Field.path());
        errors.append(report.into_errors());
    }
}

/// What is wrong with a change of a StatefulSet.
pub(super) fn validate_update(rules: Rules, old: &Value, new: &Value, errors: &mut ErrorList) {
    validate_spec(&new["spec"], errors);
    let mut left = new["spec"].clone();
    for member in MUTABLE.into_iter().chain(["scheduling"]) {
        copy(&old["spec"], &mut left, member);
    }
    if left != old["spec"] {
        errors.push(Error::forbidden(
            &Path::new("spec"),
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
             'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ));
    }
    if rules.profile == Profile::Kep {
        validate_scheduling_update(rules, old, new, errors);
    }
}

fn validate_scheduling_update(rules: Rules, old: &Value, new: &Value, errors: &mut ErrorList) {
    let path = Carrier::Field.path();
    let (before, after) = (configuration(old, errors), configuration(new, errors));
    let gates = FeatureGates {
        workload_with_stateful_set: rules.gates.workload_with_stateful_set,
        dra_workload_resource_claims: rules.gates.dra_workload_resource_claims,
    };
    let changed = validation::validate_change(before.as_ref(), after.as_ref(), gates, &path);
    if !changed.is_empty() {
        errors.append(changed);
        return;
    }
    if let Some(configuration) = after
        && let (Some(old), Some(new)) = (core_view(old, errors), core_view(new, errors))
    {
        errors.append(validation::validate_update(&old, &new, &configuration, &path).into_errors());
    }
}

/// The configuration in `spec.scheduling`.
fn configuration(object: &Value, errors: &mut ErrorList) -> Option<StatefulSetSchedulingConfiguration> {
    let scheduling = object["spec"].get("scheduling").filter(|scheduling| !scheduling.is_null())?;
    match decode_configuration(scheduling, &Carrier::Field.path(), UnknownFields::Prune) {
        Ok(configuration) => Some(configuration),
        Err(misfits) => {
            errors.append(misfits);
            None
        }
    }
}

/// The StatefulSet as the core sees it.
fn core_view(object: &Value, errors: &mut ErrorList) -> Option<StatefulSet> {
    let raw = to_raw_value(object).expect("a JSON value can be written");
    let view = View::new(Some(&raw)).expect("a StatefulSet that was decoded has objects where it must");
    match StatefulSet::decode(&view) {
        Ok(set) => Some(set),
        Err(misfits) => {
            errors.append(misfits);
            None
        }
    }
}

fn validate_spec(spec: &Value, errors: &mut ErrorList) {
    let path = Path::new("spec");
    one_of(&spec["podManagementPolicy"], &["OrderedReady", "Parallel"], &path.child("podManagementPolicy"), errors);
    let strategy = path.child("updateStrategy");
    one_of(&spec["updateStrategy"]["type"], &["RollingUpdate", "OnDelete"], &strategy.child("type"), errors);
    non_negative(&spec["updateStrategy"]["rollingUpdate"], "partition", &strategy.child("rollingUpdate"), errors);
    for member in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
        non_negative(spec, member, &path, errors);
    }
    non_negative(&spec["ordinals"], "start", &path.child("ordinals"), errors);
    for member in ["whenDeleted", "whenScaled"] {
        let policy = "persistentVolumeClaimRetentionPolicy";
        one_of(&spec[policy][member], &["Retain", "Delete"], &path.child(policy).child(member), errors);
    }
    validate_selector(spec, &path, errors);
    let template = path.child("template");
    validate_labels(&spec["template"]["metadata"]["labels"], &template.child("metadata").child("labels"), errors);
    pod::validate(&spec["template"]["spec"], &template.child("spec"), errors);
    let restart = &spec["template"]["spec"]["restartPolicy"];
    if restart.is_string() && restart != "Always" {
        one_of(restart, &["Always"], &template.child("spec").child("restartPolicy"), errors);
    }
}

fn validate_selector(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let selector = &spec["selector"];
    let is_empty = |member: &str| match &selector[member] {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    if is_empty("matchLabels") && is_empty("matchExpressions") {
        errors.push(Error::invalid(
            &path.child("selector"),
            BadValue::Json(selector.clone()),
            "empty selector is invalid for statefulset",
        ));
        return;
    }
    let labels = labels_of(&spec["template"]["metadata"]);
    match LabelSelector::of(selector) {
        None => errors.push(Error::invalid(
            &path.child("selector"),
            BadValue::Json(selector.clone()),
            "cannot be read as a selector",
        )),
        Some(selector) if !selector.matches(&labels) => errors.push(Error::invalid(
            &path.child("template").child("metadata").child("labels"),
            BadValue::Json(spec["template"]["metadata"]["labels"].clone()),
            "`selector` does not match template `labels`",
        )),
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Gates;

    const KEP: Rules = Rules { profile: Profile::Kep, gates: OPEN };
    const OPEN: Gates = Gates {
        generic_workload: true,
        topology_aware_workload_scheduling: true,
        dra_workload_resource_claims: true,
        workload_with_stateful_set: true,
        ..Gates::upstream()
    };

    fn set(scheduling: Value) -> Value {
        let mut set = json!({
            "metadata": { "name": "web", "namespace": "prod" },
            "spec": {
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "main", "image": "app:1" }] },
                },
            },
        });
        if !scheduling.is_null() {
            set["spec"]["scheduling"] = scheduling;
        }
        default(&mut set);
        set
    }

    fn created(set: &Value) -> String {
        let mut errors = ErrorList::new();
        validate_create(KEP, set, &mut errors);
        errors.to_string()
    }

    fn updated(old: &Value, new: &Value) -> String {
        let mut errors = ErrorList::new();
        validate_update(KEP, old, new, &mut errors);
        errors.to_string()
    }

    #[test]
    fn a_statefulset_gets_its_defaults_once() {
        let set = set(Value::Null);
        let spec = &set["spec"];
        assert_eq!((&spec["podManagementPolicy"], &spec["replicas"]), (&json!("OrderedReady"), &json!(1)));
        assert_eq!(spec["updateStrategy"]["rollingUpdate"]["partition"], 0);
        assert!(spec.as_object().is_some_and(|spec| spec.values().all(|member| !member.is_null())), "{spec}");
        let mut again = set.clone();
        default(&mut again);
        assert_eq!(again, set);
        assert_eq!(created(&set), "[]");
    }

    #[test]
    fn a_broken_statefulset_is_refused() {
        let mut broken = set(Value::Null);
        broken["spec"]["replicas"] = (-1).into();
        broken["spec"]["podManagementPolicy"] = "Serial".into();
        broken["spec"]["template"]["metadata"]["labels"]["app"] = "db".into();
        assert_eq!(
            created(&broken),
            "[spec.podManagementPolicy: Unsupported value: \"Serial\": supported values: \"OrderedReady\", \
             \"Parallel\", spec.replicas: Invalid value: -1: must be greater than or equal to 0, \
             spec.template.metadata.labels: Invalid value: {\"app\":\"db\"}: `selector` does not match template \
             `labels`]"
        );
    }

    #[test]
    fn the_core_judges_the_scheduling() {
        let gang = json!({ "schedulingPolicy": { "gang": {} } });
        assert!(created(&set(gang.clone())).contains("gang scheduling requires podManagementPolicy: Parallel"));
        let mut parallel = set(gang);
        parallel["spec"]["podManagementPolicy"] = "Parallel".into();
        assert_eq!(created(&parallel), "[]");
        assert_eq!(
            updated(&parallel, &set(Value::Null))
                .matches("spec.scheduling: Invalid value: null: field is immutable")
                .count(),
            1
        );
        let mut scaled = parallel.clone();
        scaled["spec"]["replicas"] = 5.into();
        assert_eq!(updated(&parallel, &scaled), "[]");
    }

    #[test]
    fn most_of_the_spec_is_immutable() {
        let old = set(Value::Null);
        let mut new = old.clone();
        new["spec"]["template"]["metadata"]["annotations"] = json!({ "a": "b" });
        assert_eq!(updated(&old, &new), "[]");
        new["spec"]["serviceName"] = "other".into();
        assert!(updated(&old, &new).starts_with("spec: Forbidden: updates to statefulset spec for fields other than"));
    }

    #[test]
    fn closed_gates_clear_new_values_and_keep_stored_ones() {
        let scheduling = json!({ "schedulingConstraints": {}, "resourceClaims": [] });
        let closed = Rules { gates: Gates::upstream(), ..KEP };
        let mut new = set(scheduling.clone());
        drop_closed(closed, None, &mut new);
        assert!(new["spec"].get("scheduling").is_none());
        let mut stored = set(scheduling.clone());
        drop_closed(closed, Some(&set(scheduling.clone())), &mut stored);
        assert_eq!(stored["spec"]["scheduling"], scheduling);
        let only = Gates { workload_with_stateful_set: true, ..Gates::upstream() };
        let mut new = set(scheduling);
        drop_closed(Rules { gates: only, ..KEP }, None, &mut new);
        assert_eq!(new["spec"]["scheduling"], json!({}));
    }
}
