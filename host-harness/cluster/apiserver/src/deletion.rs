//! What a delete does to an object.
//!
//! Stands for the registry's delete: preconditions, graceful deletion of pods, the finalizers of the three
//! propagations, and namespaces, which wait for their content. A pod that is deleted at once is seen as
//! deleted without a version in between that only has the timestamp.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::seconds;
use crate::resource::Resource;
use crate::status::Problem;

/// Dependents lose their reference before the object goes.
const ORPHAN: &str = "orphan";
/// Dependents are deleted before the object goes.
const FOREGROUND: &str = "foregroundDeletion";

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plan {
    /// Nothing: it is being deleted already, and waits.
    Keep,
    /// It is marked and waits, for a finalizer or for its node.
    Mark(Value),
    /// It goes. Its last state.
    Remove(Value),
}

/// Refuses a delete of another object than was meant.
pub(crate) fn check_preconditions(
    resource: Resource,
    name: &str,
    object: &Value,
    options: &Value,
) -> Result<(), Problem> {
    for (precondition, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let current = object["metadata"][precondition].as_str().unwrap_or_default();
        if let Some(wanted) = options["preconditions"][precondition].as_str().filter(|wanted| *wanted != current) {
            let why =
                format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {current}");
            return Err(Problem::conflict(resource, name, &why));
        }
    }
    Ok(())
}

/// Decides what a delete with these options does.
pub(crate) fn plan(resource: Resource, object: &Value, options: &Value, now: Timestamp) -> Plan {
    let mut object = object.clone();
    if resource == Resource::Namespaces {
        return plan_namespace(object, options, now);
    }
    let before = object.clone();
    let grace = if resource == Resource::Pods {
        match mark_pod(&mut object, options, now) {
            Grace::Pending => return Plan::Keep,
            Grace::Seconds(seconds) => Some(seconds),
        }
    } else {
        None
    };
    if resource.is_garbage_collected() {
        set_propagation(&mut object, options);
    }
    let pending = has_finalizers(&object);
    if grace.is_none() && pending {
        mark(&mut object, 0, now);
    }
    if !pending && grace.unwrap_or_default() == 0 {
        return Plan::Remove(object);
    }
    if object == before { Plan::Keep } else { Plan::Mark(object) }
}

fn plan_namespace(mut object: Value, options: &Value, now: Timestamp) -> Plan {
    if !object["metadata"]["deletionTimestamp"].is_string() {
        set_propagation(&mut object, options);
        object["metadata"]["deletionTimestamp"] = seconds(now);
        object["status"]["phase"] = "Terminating".into();
        return Plan::Mark(object);
    }
    let content = object["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    if content || has_finalizers(&object) { Plan::Keep } else { Plan::Remove(object) }
}

enum Grace {
    /// The delete changes nothing about one that is under way.
    Pending,
    Seconds(i64),
}

fn mark_pod(pod: &mut Value, options: &Value, now: Timestamp) -> Grace {
    let wanted = options["gracePeriodSeconds"].as_i64();
    if let Some(timestamp) = pod["metadata"]["deletionTimestamp"].as_str() {
        let Some(current) = pod["metadata"]["deletionGracePeriodSeconds"].as_i64() else { return Grace::Seconds(0) };
        // A grace period may only become shorter.
        let Some(wanted) = wanted.filter(|wanted| *wanted < current) else { return Grace::Pending };
        let wanted = wanted.max(0);
        if let Ok(timestamp) = timestamp.parse::<Timestamp>() {
            let sooner = Duration::from_secs(u64::try_from(current - wanted).unwrap_or_default());
            pod["metadata"]["deletionTimestamp"] = seconds(timestamp - sooner);
        }
        pod["metadata"]["deletionGracePeriodSeconds"] = wanted.into();
        return Grace::Seconds(wanted);
    }
    let mut period = wanted.or(pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or_default();
    let unscheduled = pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty);
    if unscheduled || matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        period = 0;
    }
    if period < 0 {
        period = 1;
    }
    mark(pod, period, now);
    Grace::Seconds(period)
}

/// Sets the timestamp, if there is none, and the grace period.
fn mark(object: &mut Value, grace: i64, now: Timestamp) {
    let metadata = &mut object["metadata"];
    if !metadata["deletionTimestamp"].is_string() {
        let after = Duration::from_secs(u64::try_from(grace).unwrap_or_default());
        metadata["deletionTimestamp"] = seconds(now + after);
        if let Some(generation) = metadata["generation"].as_u64() {
            metadata["generation"] = (generation + 1).into();
        }
    }
    metadata["deletionGracePeriodSeconds"] = grace.into();
}

/// Sets the finalizers that the propagation asks for. Without an explicit one, those that are there stay.
fn set_propagation(object: &mut Value, options: &Value) {
    let (orphan, foreground) = match (options["orphanDependents"].as_bool(), options["propagationPolicy"].as_str()) {
        (Some(orphan), _) => (orphan, false),
        (None, Some("Orphan")) => (true, false),
        (None, Some("Foreground")) => (false, true),
        (None, Some(_)) => (false, false),
        (None, None) => return,
    };
    let metadata = &mut object["metadata"];
    let mut finalizers: Vec<Value> = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
    finalizers.extend(orphan.then(|| ORPHAN.into()));
    finalizers.extend(foreground.then(|| FOREGROUND.into()));
    if finalizers.is_empty() {
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("finalizers");
        }
    } else {
        metadata["finalizers"] = finalizers.into();
    }
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

/// Whether a change leaves an object that was waiting for its last finalizer and now goes.
pub(crate) fn is_finished(resource: Resource, before: &Value, after: &Value) -> bool {
    let content = resource == Resource::Namespaces
        && after["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    before["metadata"]["deletionTimestamp"].is_string()
        && !has_finalizers(after)
        && !content
        && before["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
}

/// Options that are no delete options.
pub(crate) fn check_options(options: &Value) -> Result<(), Problem> {
    let policy = &options["propagationPolicy"];
    let known = ["Orphan", "Background", "Foreground"];
    if !policy.is_null() && !known.iter().any(|known| policy == known) {
        return Err(Problem::bad_request(format!(
            "invalid propagationPolicy {policy}: supported values: \"Foreground\", \"Background\", \"Orphan\""
        )));
    }
    if !policy.is_null() && !options["orphanDependents"].is_null() {
        return Err(Problem::bad_request("orphanDependents and deletionPropagation cannot be both set"));
    }
    let grace = &options["gracePeriodSeconds"];
    if !grace.is_null() && !grace.is_i64() {
        return Err(Problem::bad_request(format!("invalid gracePeriodSeconds {grace}")));
    }
    Ok(())
}

/// The condition that an eviction leaves on the pod.
pub(crate) fn mark_evicted(pod: &mut Value, now: Timestamp) {
    set_condition(
        pod,
        json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastTransitionTime": seconds(now),
        }),
    );
}

/// Sets the condition of that type.
pub(crate) fn set_condition(object: &mut Value, condition: Value) {
    let conditions = &mut object["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|existing| existing["type"] == condition["type"]) {
        Some(existing) => *existing = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().expect("it is a time")
    }

    fn pod(node: &str) -> Value {
        json!({
            "metadata": { "name": "web-0" },
            "spec": { "nodeName": node, "terminationGracePeriodSeconds": 30 },
            "status": { "phase": "Running" },
        })
    }

    fn marked(plan: Plan) -> Value {
        match plan {
            Plan::Mark(object) => object,
            other => panic!("it is to be marked: {other:?}"),
        }
    }

    #[test]
    fn a_bound_pod_waits_for_its_node_and_an_unbound_one_goes() {
        assert!(matches!(plan(Resource::Pods, &pod(""), &json!({}), now()), Plan::Remove(_)));
        let waiting = marked(plan(Resource::Pods, &pod("n1"), &json!({}), now()));
        assert_eq!(waiting["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
        assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 30);
        for pending in [json!({}), json!({ "gracePeriodSeconds": 30 }), json!({ "gracePeriodSeconds": 60 })] {
            assert_eq!(plan(Resource::Pods, &waiting, &pending, now()), Plan::Keep);
        }
        let sooner = marked(plan(Resource::Pods, &waiting, &json!({ "gracePeriodSeconds": 10 }), now()));
        assert_eq!(sooner["metadata"]["deletionTimestamp"], "2026-01-01T00:00:10Z");
        assert!(matches!(plan(Resource::Pods, &waiting, &json!({ "gracePeriodSeconds": 0 }), now()), Plan::Remove(_)));
    }

    #[test]
    fn a_finalizer_holds_a_pod_after_its_node_is_done() {
        let mut held = pod("n1");
        held["metadata"]["finalizers"] = json!(["example.dev/hold"]);
        let waiting = marked(plan(Resource::Pods, &held, &json!({}), now()));
        let mut released = waiting.clone();
        released["metadata"]["finalizers"] = json!([]);
        assert!(!is_finished(Resource::Pods, &waiting, &released), "its node is not done");
        let stopped = marked(plan(Resource::Pods, &waiting, &json!({ "gracePeriodSeconds": 0 }), now()));
        released["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        assert!(is_finished(Resource::Pods, &stopped, &released));
    }

    #[test]
    fn propagation_sets_replaces_and_keeps_finalizers() {
        let set = json!({ "metadata": { "name": "web", "generation": 1 } });
        let delete = |object: &Value, policy: &str| {
            plan(Resource::StatefulSets, object, &json!({ "propagationPolicy": policy }), now())
        };
        assert!(matches!(delete(&set, "Background"), Plan::Remove(_)));
        let foreground = marked(delete(&set, "Foreground"));
        assert_eq!(foreground["metadata"]["finalizers"], json!([FOREGROUND]));
        assert_eq!(foreground["metadata"]["generation"], 2);
        assert_eq!(plan(Resource::StatefulSets, &foreground, &json!({}), now()), Plan::Keep);
        assert_eq!(marked(delete(&foreground, "Orphan"))["metadata"]["finalizers"], json!([ORPHAN]));
        assert!(matches!(delete(&foreground, "Background"), Plan::Remove(_)));
    }

    #[test]
    fn a_namespace_waits_for_its_content() {
        let namespace = json!({ "metadata": { "name": "a" }, "spec": { "finalizers": ["kubernetes"] } });
        let going = marked(plan(Resource::Namespaces, &namespace, &json!({}), now()));
        assert_eq!(going["status"]["phase"], "Terminating");
        assert_eq!(plan(Resource::Namespaces, &going, &json!({}), now()), Plan::Keep);
        let mut empty = going.clone();
        empty["spec"] = json!({});
        assert!(is_finished(Resource::Namespaces, &going, &empty));
    }

    #[test]
    fn preconditions_and_options_are_checked() {
        let object = json!({ "metadata": { "uid": "u", "resourceVersion": "7" } });
        let check = |options: Value| check_preconditions(Resource::Pods, "p", &object, &options);
        assert!(check(json!({ "preconditions": { "uid": "u", "resourceVersion": "7" } })).is_ok());
        assert_eq!(check(json!({ "preconditions": { "uid": "v" } })).expect_err("another").code, 409);
        assert!(check_options(&json!({ "propagationPolicy": "Sideways" })).is_err());
        assert!(check_options(&json!({ "propagationPolicy": "Orphan", "orphanDependents": true })).is_err());
    }
}
