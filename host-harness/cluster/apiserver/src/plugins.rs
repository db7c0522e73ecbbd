//! The admission that is built in.
//!
//! Stands for the plugins `NamespaceLifecycle`, `Priority`, `PodGroupProtection` and, with its gate open,
//! `PodGroupWorkloadExists`. Left out: every other plugin (service accounts, default tolerations, limits,
//! quotas, storage protection, owner reference permissions).

use serde_json::{Value, json};

use crate::config::Gates;
use crate::resource::Resource;
use crate::rules::Rules;
use crate::status::Problem;
use crate::store::Store;

/// What is put on every PodGroup at create, and taken off by [`crate::podgroup_protection`].
pub const PROTECTION: &str = "scheduling.k8s.io/podgroup-protection";

/// Refuses a create where its namespace is not there or going.
pub(crate) fn namespace_lifecycle(
    store: &Store,
    resource: Resource,
    namespace: &str,
    name: &str,
) -> Result<(), Problem> {
    if !resource.is_namespaced() {
        return Ok(());
    }
    let found = store.value(Resource::Namespaces, "", namespace);
    let found = found.ok_or_else(|| Problem::not_found(Resource::Namespaces, namespace))?;
    if found["metadata"]["deletionTimestamp"].is_string() {
        return Err(Problem::terminating(resource, name, namespace));
    }
    Ok(())
}

/// Refuses the deletion of the namespaces that have to stay.
pub(crate) fn may_delete(resource: Resource, name: &str) -> Result<(), Problem> {
    if resource == Resource::Namespaces && matches!(name, "default" | "kube-system" | "kube-public") {
        return Err(Problem::forbidden(resource, name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Changes a new object, before any webhook.
pub(crate) fn admit(store: &Store, rules: Rules, resource: Resource, object: &mut Value) -> Result<(), Problem> {
    match resource {
        Resource::Pods => priority(store, resource, object, true),
        Resource::PodGroups => {
            protect(object);
            priority(store, resource, object, rules.gates.pod_group_preemption_policy)
        }
        Resource::CompositePodGroups => priority(store, resource, object, rules.gates.pod_group_preemption_policy),
        _ => Ok(()),
    }
}

/// Judges a new object, after the mutating webhooks.
pub(crate) fn validate(store: &Store, rules: Rules, resource: Resource, object: &Value) -> Result<(), Problem> {
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    let name = metadata["name"].as_str().unwrap_or_default();
    let alive = |parent: Resource, reference: &Value| {
        let Some(reference) = reference.as_str().filter(|reference| !reference.is_empty()) else { return Ok(()) };
        let found = store.value(parent, namespace, reference);
        if found.is_some_and(|found| found["metadata"]["deletionTimestamp"].is_string()) {
            let (child, parent) = (resource.kind(), parent.kind());
            let why = format!("cannot create {child} referencing {parent} \"{reference}\" because it is being deleted");
            return Err(Problem::forbidden(resource, name, &why));
        }
        Ok(())
    };
    let gates = rules.gates;
    match resource {
        Resource::Pods if gates.generic_workload => {
            alive(Resource::PodGroups, &spec["schedulingGroup"]["podGroupName"])
        }
        Resource::PodGroups | Resource::CompositePodGroups => {
            alive(Resource::CompositePodGroups, &spec["parentCompositePodGroupName"])?;
            if resource == Resource::PodGroups { workload_exists(store, gates, object) } else { Ok(()) }
        }
        Resource::PriorityClasses if object["globalDefault"] == true => match default_class(store) {
            Some(class) if class["metadata"]["name"] != name => {
                let other = class["metadata"]["name"].as_str().unwrap_or_default();
                let why = format!("PriorityClass {other} is already marked as default. Only one default can exist");
                Err(Problem::forbidden(resource, name, &why))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn protect(object: &mut Value) {
    let finalizers = &mut object["metadata"]["finalizers"];
    if !finalizers.is_array() {
        *finalizers = json!([]);
    }
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|finalizer| finalizer == PROTECTION)
    {
        finalizers.push(PROTECTION.into());
    }
}

/// Resolves a priority from its class.
fn priority(store: &Store, resource: Resource, object: &mut Value, preemption: bool) -> Result<(), Problem> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let forbidden = |why: &str| Err(Problem::forbidden(resource, &name, why));
    let spec = &mut object["spec"];
    let class = match spec["priorityClassName"].as_str().filter(|class| !class.is_empty()) {
        Some(class) => {
            let Some(found) = store.value(Resource::PriorityClasses, "", class) else {
                return forbidden(&format!("no PriorityClass with name {class} was found"));
            };
            Some(found)
        }
        None => default_class(store),
    };
    let value = class.as_ref().map_or(0, |class| class["value"].as_i64().unwrap_or_default());
    if let Some(class) = &class {
        spec["priorityClassName"] = class["metadata"]["name"].clone();
    }
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != value) {
        let kind = if resource == Resource::Pods { "pod" } else { "pod group" };
        return forbidden(&format!(
            "the integer value of priority ({given}) must not be provided in {kind} spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        ));
    }
    spec["priority"] = value.into();
    if preemption {
        let policy = class.as_ref().and_then(|class| class["preemptionPolicy"].as_str());
        let policy = policy.unwrap_or("PreemptLowerPriority");
        if let Some(given) = spec["preemptionPolicy"].as_str().filter(|given| *given != policy) {
            return forbidden(&format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
                 controller computed {policy} from the given PriorityClass name"
            ));
        }
        spec["preemptionPolicy"] = policy.into();
    }
    Ok(())
}

/// The class for those who name none.
fn default_class(store: &Store) -> Option<Value> {
    let classes = store.table(Resource::PriorityClasses).objects();
    let classes = classes.map(|class| class.value(Resource::PriorityClasses));
    classes.filter(|class| class["globalDefault"] == true).min_by_key(|class| class["value"].as_i64())
}

fn workload_exists(store: &Store, gates: Gates, object: &Value) -> Result<(), Problem> {
    let reference = &object["spec"]["workloadRef"];
    if !gates.pod_group_workload_exists || !reference.is_object() {
        return Ok(());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (workload, template) = (text(&reference["workloadName"]), text(&reference["templateName"]));
    let forbidden = |why: String| {
        Err(Problem::forbidden(
            Resource::PodGroups,
            &text(&object["metadata"]["name"]),
            &format!("PodGroup rejected: {why}"),
        ))
    };
    let Some(found) = store.value(Resource::Workloads, &text(&object["metadata"]["namespace"]), &workload) else {
        return forbidden(format!("Workload \"{workload}\" not found"));
    };
    if found["metadata"]["deletionTimestamp"].is_string() {
        return forbidden(format!("Workload \"{workload}\" is being deleted"));
    }
    if !has_template(&found["spec"], &template) {
        return forbidden(format!("PodGroupTemplate \"{template}\" not found in Workload \"{workload}\""));
    }
    Ok(())
}

/// Whether a template is anywhere in the tree.
fn has_template(holder: &Value, name: &str) -> bool {
    let items = |list: &str| holder[list].as_array().map(Vec::as_slice).unwrap_or_default();
    items("podGroupTemplates").iter().any(|template| template["name"] == name)
        || items("compositePodGroupTemplates").iter().any(|template| has_template(template, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;
    use crate::store::Happened;

    const RULES: Rules = Rules { profile: Profile::V1_37, gates: Gates::upstream() };

    fn store() -> Store {
        let mut store = Store::new(100);
        for (name, value, default) in [("high", 100, false), ("usual", 5, true)] {
            let class = json!({ "metadata": { "name": name }, "value": value, "globalDefault": default });
            store.save(Resource::PriorityClasses, Happened::Added, class);
        }
        let going = json!({ "metadata": {
            "name": "going", "namespace": "prod", "deletionTimestamp": "2026-01-01T00:00:00Z",
        } });
        store.save(Resource::PodGroups, Happened::Added, going);
        let workload = json!({
            "metadata": { "name": "w", "namespace": "prod" },
            "spec": { "compositePodGroupTemplates": [{ "name": "c", "podGroupTemplates": [{ "name": "t" }] }] },
        });
        store.save(Resource::Workloads, Happened::Added, workload);
        store
    }

    fn admitted(spec: &Value) -> Result<Value, String> {
        let mut pod = json!({ "metadata": { "name": "p" }, "spec": spec });
        admit(&store(), RULES, Resource::Pods, &mut pod).map_err(|problem| problem.message)?;
        Ok(pod["spec"].take())
    }

    #[test]
    fn a_priority_comes_from_its_class() {
        let spec = admitted(&json!({ "priorityClassName": "high" })).expect("it is resolved");
        assert_eq!((&spec["priority"], &spec["preemptionPolicy"]), (&json!(100), &json!("PreemptLowerPriority")));
        let spec = admitted(&json!({})).expect("there is a default");
        assert_eq!((&spec["priority"], &spec["priorityClassName"]), (&json!(5), &json!("usual")));
        assert_eq!(
            admitted(&json!({ "priorityClassName": "none" })),
            Err("pods \"p\" is forbidden: no PriorityClass with name none was found".into())
        );
        let differs = admitted(&json!({ "priorityClassName": "high", "priority": 7 }));
        assert!(differs.expect_err("it differs").contains("the integer value of priority (7) must not be provided"));
    }

    #[test]
    fn a_pod_group_is_protected_once() {
        let mut group = json!({ "metadata": { "name": "g" }, "spec": {} });
        for _ in 0..2 {
            admit(&store(), RULES, Resource::PodGroups, &mut group).expect("it is admitted");
        }
        assert_eq!(group["metadata"]["finalizers"], json!([PROTECTION]));
    }

    #[test]
    fn nothing_joins_what_is_going() {
        let gates = Gates::default();
        let pod = json!({
            "metadata": { "name": "p", "namespace": "prod" },
            "spec": { "schedulingGroup": { "podGroupName": "going" } },
        });
        let problem = validate(&store(), Rules { gates, ..RULES }, Resource::Pods, &pod).expect_err("it is going");
        assert_eq!(
            problem.message,
            "pods \"p\" is forbidden: cannot create Pod referencing PodGroup \"going\" because it is being deleted"
        );
        assert!(validate(&store(), RULES, Resource::Pods, &pod).is_ok(), "the gate is closed");
    }

    #[test]
    fn with_its_gate_a_workload_must_have_the_template() {
        let gates = Gates { pod_group_workload_exists: true, ..Gates::default() };
        let check = |workload: &str, template: &str| {
            let reference = json!({ "workloadName": workload, "templateName": template });
            let group =
                json!({ "metadata": { "name": "g", "namespace": "prod" }, "spec": { "workloadRef": reference } });
            validate(&store(), Rules { gates, ..RULES }, Resource::PodGroups, &group).map_err(|problem| problem.message)
        };
        assert_eq!(check("w", "t"), Ok(()));
        assert!(check("w", "x").expect_err("none").contains("PodGroupTemplate \"x\" not found in Workload \"w\""));
        assert!(check("v", "t").expect_err("none").contains("Workload \"v\" not found"));
    }
}
