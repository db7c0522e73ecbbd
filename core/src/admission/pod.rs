//! The creation and the deletion of the pods of opted-in StatefulSets.

use k8s_openapi::Resource as _;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Lookup, LookupError, Operation, Request, Settings, Verdict};
use crate::api::{ControllerOwner, Member, PodView, StatefulSet, View, has_intent};
use crate::binding::{self, Gate, PodGroupBinding};
use crate::json;

/// The status of a denial that ends by itself.
const HELD: u16 = 409;

/// Answers a request about a pod. Whatever is not the pod of a StatefulSet and carries the label is
/// untouched, and asks nothing.
pub(super) fn review(request: &Request<'_>, settings: &Settings, lookup: &dyn Lookup) -> Verdict {
    match request.operation.as_ref() {
        "CREATE" => create(request, settings, lookup),
        "DELETE" => delete(request, settings, lookup),
        _ => Verdict::allow(),
    }
}

/// Whether a request creates a pod of an opted-in StatefulSet.
pub(super) fn creates_member(request: &Request<'_>) -> bool {
    request.operation == "CREATE"
        && PodView::new(request.object).is_ok_and(|pod| pod.is_managed() && pod.statefulset().is_some())
}

fn create(request: &Request<'_>, settings: &Settings, lookup: &dyn Lookup) -> Verdict {
    let pod = match PodView::new(request.object) {
        Ok(pod) => pod,
        Err(error) => return Verdict::deny(400, format!("request.object is no Pod: {error}")),
    };
    let Some(owner) = pod.statefulset().filter(|_| pod.is_managed()) else { return Verdict::allow() };
    let set = format!("the StatefulSet {}/{}", request.namespace, owner.name);
    let text = match lookup.statefulset(&request.namespace, &owner.name) {
        Ok(text) => text,
        // The guarantee would be lost: the pod waits until its StatefulSet can be read.
        Err(error) => {
            let code = if error == LookupError::NotFound { 404 } else { 500 };
            return Verdict::deny(code, format!("held: {set} cannot be read: {error}"));
        }
    };
    let (view, statefulset) = match read(&text, &set) {
        Ok(read) => read,
        Err(denial) => return denial,
    };
    if statefulset.uid != owner.uid {
        return Verdict::deny(HELD, format!("held: {set} is not the one that this pod belongs to, which is gone"));
    }
    if !settings.feature_gates.workload_with_stateful_set || !has_intent(&view, settings.carriers) {
        return Verdict::allow();
    }
    let binding = view.get(Member::BindingAnnotation).and_then(json::text);
    match binding::gate(binding.as_deref(), index(&pod, &owner, &statefulset)) {
        Gate::Open(group) => join(&pod, &group, settings, &set),
        Gate::Held(reason) => Verdict::deny(HELD, format!("held: {set} waits for {reason}")),
        Gate::Fallback(reason) => Verdict {
            warnings: vec![format!("the pod is created without a PodGroup: {reason}; see the events of {set}")],
            ..Verdict::allow()
        },
    }
}

/// Puts the pod into its group. One that names a group already is never overwritten.
fn join(pod: &PodView<'_>, group: &PodGroupBinding, settings: &Settings, set: &str) -> Verdict {
    let mut verdict = Verdict::allow();
    match pod.pod_group_name() {
        Some(name) if name == group.name.as_str() => {}
        Some(name) => {
            return Verdict::deny(
                422,
                format!(
                    "spec.schedulingGroup.podGroupName: Forbidden: names the PodGroup {name}, but the pods of {set} belong \
                     to {}",
                    group.name
                ),
            );
        }
        None if pod.has_spec() => {
            let mut scheduling_group = Map::new();
            scheduling_group.insert("podGroupName".to_owned(), group.name.as_str().into());
            verdict.patch.push(Operation::Add {
                path: vec!["spec".to_owned(), "schedulingGroup".to_owned()],
                value: Value::Object(scheduling_group),
            });
        }
        None => return Verdict::deny(400, "request.object is no Pod: it has no spec"),
    }
    if settings.pod_group_owner_reference
        && let Some(owners) = owners_with(pod.owner_references(), group)
    {
        let path = vec!["metadata".to_owned(), "ownerReferences".to_owned()];
        verdict.patch.push(Operation::Add { path, value: owners });
    }
    verdict
}

/// The owners with the PodGroup among them; none where it is there already.
fn owners_with(owners: Option<&RawValue>, group: &PodGroupBinding) -> Option<Value> {
    let mut owners: Vec<Value> = serde_json::from_str(owners?.get()).ok()?;
    if owners.iter().any(|owner| owner.get("uid").and_then(Value::as_str) == Some(&group.uid)) {
        return None;
    }
    owners.push(json!({
        "apiVersion": PodGroup::API_VERSION,
        "kind": PodGroup::KIND,
        "name": group.name,
        "uid": group.uid,
    }));
    Some(Value::Array(owners))
}

/// Only a surplus pod that the cluster's own StatefulSet controller scales away may have to wait. What
/// cannot be told is allowed: a late minCount is better than a pod that nobody can delete.
fn delete(request: &Request<'_>, settings: &Settings, lookup: &dyn Lookup) -> Verdict {
    if !settings.statefulset_controllers.iter().any(|name| *name == request.username) || request.has_delete_conditions {
        return Verdict::allow();
    }
    waits(request, settings, lookup).unwrap_or_else(Verdict::allow)
}

fn waits(request: &Request<'_>, settings: &Settings, lookup: &dyn Lookup) -> Option<Verdict> {
    let pod = PodView::new(request.old_object).ok()?;
    let owner = pod.statefulset().filter(|_| pod.is_managed() && !pod.is_deleting())?;
    let text = lookup.statefulset(&request.namespace, &owner.name).ok()?;
    let set = format!("the StatefulSet {}/{}", request.namespace, owner.name);
    let (view, statefulset) = read(&text, &set).ok()?;
    let going = view.get(Member::DeletionTimestamp).is_some() || statefulset.uid != owner.uid;
    if going || !settings.feature_gates.workload_with_stateful_set || !has_intent(&view, settings.carriers) {
        return None;
    }
    let index = index(&pod, &owner, &statefulset)?;
    let binding = view.get(Member::BindingAnnotation).and_then(json::text);
    let reason = binding::holds_deletion(binding.as_deref(), index, statefulset.replicas.unwrap_or(1))?;
    Some(Verdict::deny(HELD, format!("held: {set} waits for {reason}")))
}

/// The place of the pod among those of its StatefulSet, from 0.
fn index(pod: &PodView<'_>, owner: &ControllerOwner, statefulset: &StatefulSet) -> Option<i64> {
    pod.ordinal(&owner.name)?.checked_sub(i64::from(statefulset.ordinals_start))
}

fn read<'a>(text: &'a str, set: &str) -> Result<(View<'a>, StatefulSet), Verdict> {
    let unreadable = |error: String| Verdict::deny(500, format!("held: {set} cannot be read: {error}"));
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let view = View::new(Some(raw)).map_err(|error| unreadable(error.to_string()))?;
    let statefulset = StatefulSet::decode(&view).map_err(|errors| unreadable(errors.to_string()))?;
    Ok((view, statefulset))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::admission::{Call, answer};
    use serde_json::json;

    const CONTROLLER: &str = "system:serviceaccount:kube-system:statefulset-controller";
    const GROUP: &str = r#"{"name":"web-g","uid":"g-1","replicas":3}"#;

    /// A cluster with one StatefulSet, or none, that counts what it is asked.
    struct Cluster {
        answer: Result<Value, LookupError>,
        asked: RefCell<Vec<String>>,
    }

    impl Lookup for Cluster {
        fn statefulset(&self, namespace: &str, name: &str) -> Result<String, LookupError> {
            self.asked.borrow_mut().push(format!("{namespace}/{name}"));
            self.answer.clone().map(|object| object.to_string())
        }
    }

    fn cluster(answer: Result<Value, LookupError>) -> Cluster {
        Cluster { answer, asked: RefCell::default() }
    }

    fn set(replicas: i32, binding: Option<&str>) -> Value {
        let mut annotations = json!({"statefulset-scheduling.dev/scheduling": "schedulingPolicy: {gang: {}}"});
        if let Some(binding) = binding {
            annotations["statefulset-scheduling.dev/pod-group"] = binding.into();
        }
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "web", "namespace": "ns", "uid": "s-1", "annotations": annotations},
            "spec": {"replicas": replicas}})
    }

    fn pod(ordinal: i64) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("web-{ordinal}"), "labels": {"statefulset-scheduling.dev/managed": "true"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s-1",
                    "controller": true, "blockOwnerDeletion": true}]},
            "spec": {"containers": []}})
    }

    fn request(operation: &str, username: &str, pod: &Value) -> Value {
        let object = if operation == "DELETE" { "oldObject" } else { "object" };
        let mut request = json!({"kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "ns",
            "operation": operation, "userInfo": {"username": username}, "options": {"kind": "DeleteOptions"}});
        request[object] = pod.clone();
        request
    }

    fn ask(request: &Value, settings: &Value, cluster: &Cluster) -> Verdict {
        let text = json!({"request": request, "settings": settings}).to_string();
        answer(&Call::parse(&text).unwrap(), cluster)
    }

    fn create(pod: &Value, cluster: &Cluster) -> Verdict {
        ask(&request("CREATE", CONTROLLER, pod), &json!({}), cluster)
    }

    fn delete(pod: &Value, cluster: &Cluster) -> Verdict {
        ask(&request("DELETE", CONTROLLER, pod), &json!({}), cluster)
    }

    #[test]
    fn a_pod_of_a_bound_statefulset_gets_its_group_for_one_lookup() {
        let cluster = cluster(Ok(set(3, Some(GROUP))));
        let verdict = create(&pod(2), &cluster);
        assert!(verdict.allowed && verdict.warnings.is_empty());
        assert_eq!(
            serde_json::to_value(&verdict.patch).unwrap(),
            json!([{"op": "add", "path": "/spec/schedulingGroup", "value": {"podGroupName": "web-g"}}])
        );
        assert_eq!(*cluster.asked.borrow(), ["ns/web"]);
        let stamped = verdict.patch.apply(&pod(2).to_string()).unwrap();
        assert!(create(&stamped, &cluster).patch.is_empty(), "a second review changes nothing");
    }

    #[test]
    fn the_owner_reference_is_added_only_where_it_is_asked_for() {
        let cluster = cluster(Ok(set(3, Some(GROUP))));
        let settings = json!({"podGroupOwnerReference": true});
        let verdict = ask(&request("CREATE", CONTROLLER, &pod(0)), &settings, &cluster);
        let stamped = verdict.patch.apply(&pod(0).to_string()).unwrap();
        assert_eq!(
            stamped["metadata"]["ownerReferences"][1],
            json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "web-g", "uid": "g-1"})
        );
        assert_eq!(stamped["metadata"]["ownerReferences"][0], pod(0)["metadata"]["ownerReferences"][0]);
        assert!(ask(&request("CREATE", CONTROLLER, &stamped), &settings, &cluster).patch.is_empty());
    }

    #[test]
    fn a_pod_is_held_with_the_reason_until_its_group_is_there_and_large_enough() {
        for (binding, ordinal, message) in [
            (None, 0, "held: the StatefulSet ns/web waits for the controller to create the PodGroup and to publish it"),
            (
                Some(GROUP),
                3,
                "held: the StatefulSet ns/web waits for the controller to raise the minCount of the PodGroup web-g, which \
                 is in step with 3 replicas",
            ),
        ] {
            let verdict = create(&pod(ordinal), &cluster(Ok(set(5, binding))));
            assert_eq!((verdict.allowed, verdict.code, verdict.message.as_str()), (false, 409, message));
        }
        let verdict = create(&pod(0), &cluster(Ok(set(5, Some("{")))));
        assert!(!verdict.allowed && verdict.message.contains("mend the annotation"), "{}", verdict.message);
    }

    #[test]
    fn ordinals_are_counted_from_where_the_statefulset_starts_them() {
        let mut set = set(5, Some(GROUP));
        set["spec"]["ordinals"] = json!({"start": 10});
        for (ordinal, allowed) in [(10, true), (12, true), (13, false)] {
            assert_eq!(create(&pod(ordinal), &cluster(Ok(set.clone()))).allowed, allowed, "{ordinal}");
        }
        set["spec"]["replicas"] = 2.into();
        for (ordinal, allowed) in [(11, true), (12, false)] {
            assert_eq!(delete(&pod(ordinal), &cluster(Ok(set.clone()))).allowed, allowed, "{ordinal}");
        }
    }

    #[test]
    fn a_fallback_admits_the_pod_unchanged_with_a_warning() {
        let verdict = create(&pod(0), &cluster(Ok(set(3, Some(r#"{"fallback":"AmbiguousWorkload"}"#)))));
        assert!(verdict.allowed && verdict.patch.is_empty());
        assert_eq!(
            verdict.warnings,
            ["the pod is created without a PodGroup: AmbiguousWorkload; see the events of the StatefulSet ns/web"]
        );
    }

    #[test]
    fn a_group_that_a_pod_names_already_is_never_overwritten() {
        let cluster = cluster(Ok(set(3, Some(GROUP))));
        let mut named = pod(0);
        named["spec"]["schedulingGroup"] = json!({"podGroupName": "web-g"});
        let verdict = create(&named, &cluster);
        assert!(verdict.allowed && verdict.patch.is_empty());
        named["spec"]["schedulingGroup"] = json!({"podGroupName": "another"});
        let verdict = create(&named, &cluster);
        assert_eq!(verdict.code, 422);
        assert!(verdict.message.contains("names the PodGroup another, but the pods of"), "{}", verdict.message);
    }

    #[test]
    fn a_lookup_that_fails_holds_a_create_and_lets_a_delete_pass() {
        for (error, message) in [
            (LookupError::NotFound, "held: the StatefulSet ns/web cannot be read: not found"),
            (LookupError::Forbidden("x".into()), "held: the StatefulSet ns/web cannot be read: forbidden: x"),
            (LookupError::TimedOut("x".into()), "held: the StatefulSet ns/web cannot be read: timed out: x"),
            (LookupError::Failed("x".into()), "held: the StatefulSet ns/web cannot be read: x"),
        ] {
            let verdict = create(&pod(0), &cluster(Err(error.clone())));
            assert_eq!((verdict.allowed, verdict.message.as_str()), (false, message));
            assert_eq!(delete(&pod(4), &cluster(Err(error))), Verdict::allow());
        }
        for nonsense in [json!(null), json!("x"), json!({"spec": 3}), json!({"spec": {"replicas": "x"}})] {
            assert!(!create(&pod(0), &cluster(Ok(nonsense.clone()))).allowed, "{nonsense}");
            assert!(delete(&pod(4), &cluster(Ok(nonsense.clone()))).allowed, "{nonsense}");
        }
    }

    #[test]
    fn what_is_not_the_pod_of_an_opted_in_statefulset_is_untouched_and_asks_nothing() {
        let mut unlabelled = pod(0);
        unlabelled["metadata"]["labels"] = json!({"app": "web"});
        let mut orphan = pod(0);
        orphan["metadata"]["ownerReferences"] = json!([]);
        let mut of_a_job = pod(0);
        of_a_job["metadata"]["ownerReferences"][0]["kind"] = "Job".into();
        let mut is_static = pod(0);
        is_static["metadata"]["ownerReferences"][0] = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n",
            "controller": true});
        for pod in [unlabelled, orphan, of_a_job, is_static] {
            let cluster = cluster(Ok(set(3, None)));
            assert_eq!(create(&pod, &cluster), Verdict::allow());
            assert_eq!(delete(&pod, &cluster), Verdict::allow());
            assert!(cluster.asked.borrow().is_empty());
        }
    }

    #[test]
    fn a_labelled_pod_of_a_statefulset_without_an_intent_or_with_the_gate_closed_is_untouched() {
        let mut plain = set(3, Some(GROUP));
        plain["metadata"]["annotations"] = json!({});
        assert_eq!(create(&pod(0), &cluster(Ok(plain))), Verdict::allow());
        let settings = json!({"featureGates": "WorkloadWithStatefulSet=false"});
        let verdict = ask(&request("CREATE", CONTROLLER, &pod(0)), &settings, &cluster(Ok(set(3, Some(GROUP)))));
        assert_eq!(verdict, Verdict::allow());
    }

    #[test]
    fn a_pod_of_a_statefulset_that_was_made_anew_is_not_put_into_the_new_ones_group() {
        let mut anew = set(3, Some(GROUP));
        anew["metadata"]["uid"] = "s-2".into();
        assert!(!create(&pod(0), &cluster(Ok(anew.clone()))).allowed);
        assert!(delete(&pod(4), &cluster(Ok(anew))).allowed);
    }

    #[test]
    fn only_the_statefulset_controllers_deletion_of_a_surplus_pod_is_held() {
        let larger = r#"{"name":"web-g","uid":"g-1","replicas":5}"#;
        let shrinking = || cluster(Ok(set(3, Some(larger))));
        let verdict = delete(&pod(4), &shrinking());
        assert_eq!(
            verdict.message,
            "held: the StatefulSet ns/web waits for the controller to lower the minCount of the PodGroup web-g, which is in \
             step with 5 replicas and not with 3"
        );
        assert_eq!(verdict.code, 409);
        assert!(verdict.patch.is_empty());
        assert!(delete(&pod(2), &shrinking()).allowed, "a rolling update replaces it");
        assert!(delete(&pod(4), &cluster(Ok(set(3, Some(GROUP))))).allowed, "the group is in step");
        for user in ["system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-scheduler", "admin"] {
            assert!(ask(&request("DELETE", user, &pod(4)), &json!({}), &shrinking()).allowed, "{user}");
        }
        let mut going = pod(4);
        going["metadata"]["deletionTimestamp"] = "2026-11-29T00:00:00Z".into();
        assert!(delete(&going, &shrinking()).allowed, "the kubelet's last deletion");
        let mut leaving = set(3, Some(larger));
        leaving["metadata"]["deletionTimestamp"] = "2026-11-29T00:00:00Z".into();
        assert!(delete(&pod(4), &cluster(Ok(leaving))).allowed, "the StatefulSet is going");
        for options in [json!({"preconditions": {"uid": "p"}}), json!({"propagationPolicy": "Background"})] {
            let mut collected = request("DELETE", "system:kube-controller-manager", &pod(4));
            assert!(!ask(&collected, &json!({}), &shrinking()).allowed);
            collected["options"] = options;
            assert!(ask(&collected, &json!({}), &shrinking()).allowed, "the garbage collector under the same name");
        }
    }

    #[test]
    fn malformed_pods_are_denied_on_create_and_never_keep_from_a_deletion() {
        for object in [json!(null), json!(3), json!({"metadata": []})] {
            assert!(!create(&object, &cluster(Ok(set(3, Some(GROUP))))).allowed, "{object}");
            assert!(delete(&object, &cluster(Ok(set(3, Some(GROUP))))).allowed, "{object}");
        }
        let mut without_spec = pod(0);
        without_spec.as_object_mut().unwrap().remove("spec");
        assert_eq!(create(&without_spec, &cluster(Ok(set(3, Some(GROUP))))).code, 400);
    }

    #[test]
    fn settings_that_cannot_be_read_hold_the_pods_of_what_opted_in_and_no_others() {
        let settings = json!({"unknown": 1});
        let cluster = cluster(Ok(set(3, Some(GROUP))));
        assert_eq!(ask(&request("CREATE", CONTROLLER, &pod(0)), &settings, &cluster).code, 500);
        assert!(ask(&request("DELETE", CONTROLLER, &pod(4)), &settings, &cluster).allowed);
        let mut plain = pod(0);
        plain["metadata"]["labels"] = json!({});
        assert!(ask(&request("CREATE", CONTROLLER, &plain), &settings, &cluster).allowed);
    }
}
