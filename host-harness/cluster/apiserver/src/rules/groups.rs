//! Workloads, PodGroups and `CompositePodGroup`s.
//!
//! Stands for the strategies and the declarative validation of `scheduling.k8s.io`. What a template, a
//! PodGroup and `spec.scheduling` have in common is judged by the core's structural rules. Left out: the
//! depth of nested templates and the validation of claim statuses.

use serde_json::{Map, Value, json};
use statefulset_scheduling_core::api::{UnknownFields, decode_configuration};
use statefulset_scheduling_core::field::{BadValue, Error, ErrorList, Path};
use statefulset_scheduling_core::validation::{MAX_TOPOLOGY_CONSTRAINTS, validate_configuration};

use super::formats::{dns_label, dns_subdomain};
use super::{immutable, immutable_members, object_at, one_of, set_default};
use crate::config::Gates;

/// The most templates of a Workload, at each level.
const MAX_TEMPLATES: usize = 8;

const TEMPLATES: [&str; 2] = ["compositePodGroupTemplates", "podGroupTemplates"];

/// The defaults of a PodGroup. A template has none.
pub(super) fn default_pod_group(object: &mut Value) {
    set_default(object_at(object, "spec"), "disruptionMode", json!({ "single": {} }));
}

/// Clears what closed gates forbid, in a spec or in templates, unless the old object has it.
pub(super) fn drop_closed(gates: Gates, old: Option<&Value>, object: &mut Value) {
    let null = Value::Null;
    drop_in(gates, old.map_or(&null, |old| &old["spec"]), &mut object["spec"]);
    let claims = old.is_some_and(|old| old["spec"]["resourceClaims"].is_array());
    if let Some(status) = object.get_mut("status").filter(|_| !gates.dra_workload_resource_claims && !claims) {
        remove(status, "resourceClaimStatuses");
    }
}

fn drop_in(gates: Gates, old: &Value, holder: &mut Value) {
    for (open, member) in [
        (gates.topology_aware_workload_scheduling, "schedulingConstraints"),
        (gates.dra_workload_resource_claims, "resourceClaims"),
        (gates.pod_group_preemption_policy, "preemptionPolicy"),
        (gates.composite_pod_group, "parentCompositePodGroupName"),
        (gates.composite_pod_group, "compositePodGroupTemplates"),
    ] {
        if !open && old[member].is_null() {
            remove(holder, member);
        }
    }
    for list in TEMPLATES {
        for template in holder.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let before = old[list].as_array().into_iter().flatten().find(|old| old["name"] == template["name"]);
            drop_in(gates, before.unwrap_or(&Value::Null), template);
        }
    }
}

fn remove(holder: &mut Value, member: &str) {
    if let Some(members) = holder.as_object_mut() {
        members.remove(member);
    }
}

/// What is wrong with a new Workload.
pub(super) fn validate_workload(object: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&object["spec"], Path::new("spec"));
    let reference = &spec["controllerRef"];
    if reference.is_object() {
        let path = path.child("controllerRef");
        if let Some(group) = reference["apiGroup"].as_str().filter(|group| !group.is_empty()) {
            dns_subdomain(group, &path.child("apiGroup"), errors);
        }
        for member in ["kind", "name"] {
            if reference[member].as_str().is_none_or(str::is_empty) {
                errors.push(Error::required(&path.child(member), ""));
            }
        }
    }
    templates(spec, &path, errors);
}

/// Exactly one of the two lists of templates, and what is in it.
fn templates(holder: &Value, path: &Path, errors: &mut ErrorList) {
    union(holder, path, TEMPLATES, Value::is_array, errors);
    for list in TEMPLATES {
        let Some(items) = holder[list].as_array() else { continue };
        let path = path.child(list);
        if items.len() > MAX_TEMPLATES {
            errors.push(Error::too_many(&path, items.len(), MAX_TEMPLATES).with_origin("maxItems"));
            continue;
        }
        for (index, template) in items.iter().enumerate() {
            if items.iter().take(index).any(|earlier| earlier["name"] == template["name"]) {
                errors.push(Error::duplicate(&path.index(index), template.clone()));
            }
        }
        for (index, template) in items.iter().enumerate() {
            let path = path.index(index);
            required_name(template, &path, errors);
            if list == "podGroupTemplates" {
                group(template, &path, errors);
            } else {
                composite(template, &path, errors);
                templates(template, &path, errors);
            }
        }
    }
}

fn required_name(holder: &Value, path: &Path, errors: &mut ErrorList) {
    match holder["name"].as_str() {
        None | Some("") => errors.push(Error::required(&path.child("name"), "")),
        Some(name) => dns_label(name, &path.child("name"), errors),
    }
}

/// What is wrong with a new PodGroup.
pub(super) fn validate_pod_group(object: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&object["spec"], Path::new("spec"));
    if spec["workloadRef"].is_object() {
        workload_ref(&spec["workloadRef"], &path.child("workloadRef"), errors);
    }
    parent(spec, &path, errors);
    group(spec, &path, errors);
}

/// What is wrong with a new CompositePodGroup.
pub(super) fn validate_composite(object: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&object["spec"], Path::new("spec"));
    workload_ref(&spec["workloadRef"], &path.child("workloadRef"), errors);
    parent(spec, &path, errors);
    composite(spec, &path, errors);
}

fn parent(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(parent) = spec["parentCompositePodGroupName"].as_str() {
        dns_subdomain(parent, &path.child("parentCompositePodGroupName"), errors);
    }
}

fn workload_ref(reference: &Value, path: &Path, errors: &mut ErrorList) {
    match reference["workloadName"].as_str() {
        None | Some("") => errors.push(Error::required(&path.child("workloadName"), "")),
        Some(name) => dns_subdomain(name, &path.child("workloadName"), errors),
    }
    match reference["templateName"].as_str() {
        None | Some("") => errors.push(Error::required(&path.child("templateName"), "")),
        Some(name) => dns_label(name, &path.child("templateName"), errors),
    }
}

/// What a PodGroup and its template have in common.
fn group(holder: &Value, path: &Path, errors: &mut ErrorList) {
    let members = ["schedulingPolicy", "schedulingConstraints", "disruptionMode", "resourceClaims"];
    let shape = members.iter().filter_map(|member| Some(((*member).to_owned(), holder.get(*member)?.clone())));
    let mut shape = Value::Object(shape.collect());
    // A policy is no pointer: an absent one is an empty union.
    let policy = object_at(&mut shape, "schedulingPolicy");
    if let Some(gang) = policy.get_mut("gang").and_then(Value::as_object_mut)
        && gang.get("minCount").is_none_or(|count| count == 0)
    {
        gang.remove("minCount");
        let path = path.child("schedulingPolicy").child("gang").child("minCount");
        errors.push(Error::required(&path, ""));
    }
    match decode_configuration(&shape, path, UnknownFields::Prune) {
        Ok(configuration) => errors.append(validate_configuration(&configuration, path).declarative),
        Err(misfits) => errors.append(misfits),
    }
    priority(holder, path, errors);
}

fn composite(holder: &Value, path: &Path, errors: &mut ErrorList) {
    let policy = path.child("schedulingPolicy");
    union(&holder["schedulingPolicy"], &policy, ["basic", "gang"], Value::is_object, errors);
    let count = &holder["schedulingPolicy"]["gang"]["minGroupCount"];
    let path_of_count = policy.child("gang").child("minGroupCount");
    match count.as_i64() {
        Some(0) => errors.push(Error::required(&path_of_count, "")),
        Some(count) if count < 0 => {
            let detail = "must be greater than or equal to 1";
            errors.push(Error::invalid(&path_of_count, BadValue::Int(count), detail).with_origin("minimum"));
        }
        _ => {}
    }
    if holder["disruptionMode"].is_object() {
        union(&holder["disruptionMode"], &path.child("disruptionMode"), ["single", "all"], Value::is_object, errors);
    }
    let topology = &holder["schedulingConstraints"]["topology"];
    if let Some(count) = topology.as_array().map(Vec::len).filter(|count| *count > MAX_TOPOLOGY_CONSTRAINTS) {
        let path = path.child("schedulingConstraints").child("topology");
        errors.push(Error::too_many(&path, count, MAX_TOPOLOGY_CONSTRAINTS).with_origin("maxItems"));
    }
    priority(holder, path, errors);
}

fn priority(holder: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(class) = holder["priorityClassName"].as_str().filter(|class| !class.is_empty()) {
        dns_subdomain(class, &path.child("priorityClassName"), errors);
    }
    let supported = ["PreemptLowerPriority", "Never"];
    one_of(&holder["preemptionPolicy"], &supported, &path.child("preemptionPolicy"), errors);
}

/// Exactly one member of a union must be set.
fn union(holder: &Value, path: &Path, members: [&str; 2], is_set: fn(&Value) -> bool, errors: &mut ErrorList) {
    let set: Vec<_> = members.into_iter().filter(|member| is_set(&holder[*member])).collect();
    let (value, exactly) = match set.as_slice() {
        [] => (String::new(), ""),
        [_] => return,
        several => (format!("{{{}}}", several.join(", ")), "exactly "),
    };
    let detail = format!("must specify {exactly}one of: `{}`, `{}`", members[0], members[1]);
    errors.push(Error::invalid(path, BadValue::String(value), detail).with_origin("union"));
}

/// What is wrong with a change: of all of a spec, only the minCount of a gang may change.
pub(super) fn validate_update(old: &Value, new: &Value, errors: &mut ErrorList) {
    update_in(old, new, &Path::new("spec"), errors);
}

fn update_in(old: &Value, new: &Value, path: &Path, errors: &mut ErrorList) {
    let (mut before, mut after) = (members(old), members(new));
    for list in TEMPLATES {
        let (Some(old), Some(new)) = (old[list].as_array(), new[list].as_array()) else { continue };
        before.remove(list);
        after.remove(list);
        let names = |items: &[Value]| items.iter().map(|item| item["name"].clone()).collect::<Vec<_>>();
        let path = path.child(list);
        if names(old) != names(new) {
            errors.push(immutable(&path, &new.clone().into()));
            continue;
        }
        for (index, (old, new)) in old.iter().zip(new).enumerate() {
            update_in(old, new, &path.index(index), errors);
        }
    }
    let count = |members: &mut Map<String, Value>| {
        let gang = members.get_mut("schedulingPolicy")?.get_mut("gang")?.as_object_mut()?;
        gang.insert("minCount".to_owned(), Value::Null)
    };
    let (was, is) = (count(&mut before), count(&mut after));
    immutable_members(&before.into(), &after.into(), path, errors);
    if let (Some(was), Some(is)) = (was, is)
        && was != is
        && is.as_i64().is_some_and(|count| count < 1)
    {
        let path = path.child("schedulingPolicy").child("gang").child("minCount");
        let count = is.as_i64().unwrap_or_default();
        errors.push(if count == 0 {
            Error::required(&path, "")
        } else {
            let detail = "must be greater than or equal to 1";
            Error::invalid(&path, BadValue::Int(count), detail).with_origin("minimum")
        });
    }
}

fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(check: impl FnOnce(&mut ErrorList)) -> Vec<String> {
        let mut errors = ErrorList::new();
        check(&mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    fn gang(name: &str, count: i64) -> Value {
        json!({ "name": name, "schedulingPolicy": { "gang": { "minCount": count } } })
    }

    fn workload(templates: &[Value]) -> Value {
        json!({ "spec": { "podGroupTemplates": templates } })
    }

    #[test]
    fn a_workload_has_one_kind_of_templates_and_not_too_many() {
        let check = |object: &Value| errors(|errors| validate_workload(object, errors));
        assert!(check(&workload(&[gang("a", 3)])).is_empty());
        assert_eq!(
            check(&json!({ "spec": {} })),
            ["spec: Invalid value: \"\": must specify one of: `compositePodGroupTemplates`, `podGroupTemplates`"]
        );
        let many: Vec<_> = (0..9).map(|index| gang(&format!("t{index}"), 1)).collect();
        assert_eq!(check(&workload(&many)), ["spec.podGroupTemplates: Too many: 9: must have at most 8 items"]);
        let broken = [gang("A", 0), json!({ "name": "b" }), gang("b", 2)];
        let found = check(&workload(&broken));
        let starts = [
            "spec.podGroupTemplates[2]: Duplicate value",
            "spec.podGroupTemplates[0].name: Invalid value: \"A\"",
            "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Required value",
            "spec.podGroupTemplates[1].schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`",
        ];
        assert_eq!(found.len(), starts.len(), "{found:?}");
        for (found, start) in found.iter().zip(starts) {
            assert!(found.starts_with(start), "{found}");
        }
    }

    #[test]
    fn only_the_min_count_of_a_gang_may_change() {
        let update = |old: &Value, new: &Value| errors(|errors| validate_update(&old["spec"], &new["spec"], errors));
        let old = workload(&[gang("a", 3), gang("b", 1)]);
        assert!(update(&old, &workload(&[gang("a", 5), gang("b", 1)])).is_empty());
        assert_eq!(
            update(&old, &workload(&[gang("a", -1), gang("b", 1)])),
            ["spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or \
              equal to 1"]
        );
        let fewer = update(&old, &workload(&[gang("a", 3)]));
        assert!(fewer[0].starts_with("spec.podGroupTemplates: Invalid value: ["), "{fewer:?}");
        let mut other = old.clone();
        other["spec"]["podGroupTemplates"][1]["priorityClassName"] = "high".into();
        assert_eq!(
            update(&old, &other),
            ["spec.podGroupTemplates[1].priorityClassName: Invalid value: \"high\": field is immutable"]
        );
        let basic = json!({ "spec": { "schedulingPolicy": { "basic": {} } } });
        let gang = json!({ "spec": { "schedulingPolicy": { "gang": { "minCount": 1 } } } });
        assert_eq!(update(&basic, &gang).len(), 1);
    }

    #[test]
    fn a_pod_group_is_judged_as_a_template_and_gets_a_mode() {
        let mut group = json!({ "spec": {
            "schedulingPolicy": { "gang": { "minCount": 3 } },
            "workloadRef": { "workloadName": "w", "templateName": "t" },
        } });
        default_pod_group(&mut group);
        assert_eq!(group["spec"]["disruptionMode"], json!({ "single": {} }));
        let check = |object: &Value| errors(|errors| validate_pod_group(object, errors));
        assert!(check(&group).is_empty());
        group["spec"]["workloadRef"]["templateName"] = "".into();
        group["spec"]["schedulingConstraints"] = json!({ "topology": [{ "key": "a" }, { "key": "b" }] });
        assert_eq!(
            check(&group),
            [
                "spec.workloadRef.templateName: Required value",
                "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item",
            ]
        );
    }

    #[test]
    fn closed_gates_clear_templates_at_every_level() {
        let mut workload = json!({ "spec": { "podGroupTemplates": [
            { "name": "a", "schedulingConstraints": {}, "resourceClaims": [{}], "preemptionPolicy": "Never" },
        ] } });
        drop_closed(Gates::upstream(), None, &mut workload);
        assert_eq!(workload, json!({ "spec": { "podGroupTemplates": [{ "name": "a" }] } }));
    }
}
