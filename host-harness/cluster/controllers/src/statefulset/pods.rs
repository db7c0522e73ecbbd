//! The pods of a StatefulSet: what they are made of, and how they fare.
//!
//! Stands for `newStatefulSetPod` and the predicates of `stateful_set_utils.go`. Left out: volumes of an
//! existing pod that do not fit the claims, which cannot be changed anyway.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodCondition, PodTemplateSpec, Volume,
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::set;
use crate::meta;

/// The label that says which revision a pod is of.
pub const REVISION: &str = "controller-revision-hash";
/// The label with the pod's name.
pub const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// The label with the pod's ordinal.
pub const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The labels that tell who a pod is.
pub fn identity(set: &StatefulSet, ordinal: i32) -> BTreeMap<String, String> {
    [(POD_NAME, set::pod_name(set, ordinal)), (POD_INDEX, ordinal.to_string())]
        .map(|(label, value)| (label.to_owned(), value))
        .into()
}

/// A new pod of this revision.
pub fn new_pod(set: &StatefulSet, template: &PodTemplateSpec, revision: &str, ordinal: i32) -> Pod {
    let mut pod = Pod::default();
    let made = template.metadata.clone().unwrap_or_default();
    pod.metadata.annotations = made.annotations;
    pod.metadata.finalizers = made.finalizers;
    pod.metadata.generate_name = Some(format!("{}-", meta::name(&set.metadata)));
    pod.metadata.name = Some(set::pod_name(set, ordinal));
    pod.metadata.namespace.clone_from(&set.metadata.namespace);
    pod.metadata.owner_references = Some(vec![meta::controller_reference(set)]);
    let mut labels = made.labels.unwrap_or_default();
    labels.extend(identity(set, ordinal));
    labels.insert(REVISION.to_owned(), revision.to_owned());
    pod.metadata.labels = Some(labels);

    let mut spec = template.spec.clone().unwrap_or_default();
    spec.hostname.clone_from(&pod.metadata.name);
    spec.subdomain = set.spec.service_name.clone().filter(|name| !name.is_empty());
    let mut volumes: Vec<_> = claims(set, ordinal).into_iter().map(|(name, claim)| volume(name, &claim)).collect();
    let own = spec.volumes.take().unwrap_or_default();
    let taken: Vec<_> = volumes.iter().map(|volume| volume.name.clone()).collect();
    volumes.extend(own.into_iter().filter(|volume| !taken.contains(&volume.name)));
    spec.volumes = (!volumes.is_empty()).then_some(volumes);
    pod.spec = Some(spec);
    pod
}

/// The `PersistentVolumeClaims` of a pod, with the names of their templates.
pub fn claims(set: &StatefulSet, ordinal: i32) -> Vec<(String, PersistentVolumeClaim)> {
    let templates = set.spec.volume_claim_templates.iter().flatten();
    let claims = templates.map(|template| {
        let template_name = meta::name(&template.metadata).to_owned();
        let mut claim = template.clone();
        claim.metadata.name = Some(format!("{template_name}-{}", set::pod_name(set, ordinal)));
        claim.metadata.namespace.clone_from(&set.metadata.namespace);
        let selected = set.spec.selector.match_labels.clone().unwrap_or_default();
        claim.metadata.labels.get_or_insert_default().extend(selected);
        claim.status = None;
        (template_name, claim)
    });
    claims.collect()
}

fn volume(name: String, claim: &PersistentVolumeClaim) -> Volume {
    let claim_name = meta::name(&claim.metadata).to_owned();
    let source = PersistentVolumeClaimVolumeSource { claim_name, read_only: None };
    Volume { name, persistent_volume_claim: Some(source), ..Volume::default() }
}

/// Whether the pod's labels tell who it is.
pub fn has_identity(set: &StatefulSet, ordinal: i32, pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    identity(set, ordinal).iter().all(|(label, value)| labels.and_then(|labels| labels.get(label)) == Some(value))
}

/// The name of the revision that the pod is of.
pub fn revision(pod: &Pod) -> &str {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(REVISION)).map_or("", String::as_str)
}

/// Whether the pod is being deleted.
pub fn is_terminating(pod: &Pod) -> bool {
    meta::is_being_deleted(&pod.metadata)
}

/// Whether the pod has ended, well or badly.
pub fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), Some("Failed" | "Succeeded"))
}

/// Whether the pod runs and is ready.
pub fn is_ready(pod: &Pod) -> bool {
    ready(pod).is_some()
}

/// Whether the pod is ready, and has been for long enough.
pub fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    let Some(ready) = ready(pod) else { return false };
    let wait = SignedDuration::from_secs(i64::from(min_ready_seconds));
    let since = ready.last_transition_time.as_ref().map(|time| time.0);
    min_ready_seconds == 0 || since.is_some_and(|since| since.checked_add(wait).is_ok_and(|due| due <= now))
}

/// Whether the pod cannot be counted on: it is not available, or about to go.
pub fn is_unavailable(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    is_terminating(pod) || !is_available(pod, min_ready_seconds, now)
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// What says that the pod runs and is ready.
fn ready(pod: &Pod) -> Option<&PodCondition> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready" && condition.status == "True")?;
    (phase(pod) == Some("Running")).then_some(ready)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set() -> StatefulSet {
        let value = json!({
            "metadata": { "namespace": "prod", "name": "web", "uid": "set-uid" },
            "spec": {
                "serviceName": "web-headless",
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" }, "annotations": { "note": "x" } },
                    "spec": { "containers": [], "volumes": [{ "name": "data", "emptyDir": {} }, { "name": "tmp", "emptyDir": {} }] },
                },
                "volumeClaimTemplates": [{ "metadata": { "name": "data", "labels": { "kind": "disk" } }, "spec": {} }],
            },
        });
        serde_json::from_value(value).expect("it is a StatefulSet")
    }

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({ "metadata": {}, "status": status })).expect("it is a Pod")
    }

    #[test]
    fn a_new_pod_says_who_it_is_whose_it_is_and_where_its_disks_are() {
        let set = set();
        let template = &set.spec.template;
        let pod = serde_json::to_value(new_pod(&set, template, "web-abc", 3)).expect("it can be written");
        assert_eq!(
            pod["metadata"],
            json!({
                "annotations": { "note": "x" },
                "generateName": "web-",
                "labels": {
                    "app": "web",
                    "apps.kubernetes.io/pod-index": "3",
                    "controller-revision-hash": "web-abc",
                    "statefulset.kubernetes.io/pod-name": "web-3",
                },
                "name": "web-3",
                "namespace": "prod",
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "set-uid",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            })
        );
        assert_eq!(pod["spec"]["hostname"], "web-3");
        assert_eq!(pod["spec"]["subdomain"], "web-headless");
        let disk = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "data-web-3" } });
        assert_eq!(pod["spec"]["volumes"], json!([disk, { "name": "tmp", "emptyDir": {} }]));
    }

    #[test]
    fn a_claim_has_its_templates_labels_and_the_selectors() {
        let claims = claims(&set(), 3);
        let (template, claim) = claims.first().expect("there is one template");
        assert_eq!((template.as_str(), claim.metadata.name.as_deref()), ("data", Some("data-web-3")));
        let labels = serde_json::to_value(&claim.metadata.labels).expect("they can be written");
        assert_eq!(labels, json!({ "app": "web", "kind": "disk" }));
    }

    #[test]
    fn a_pod_is_available_once_it_was_ready_for_long_enough() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().expect("it is a time");
        let ready = |time: Value| json!([{ "type": "Ready", "status": "True", "lastTransitionTime": time }]);
        let at = ready("2026-01-01T00:00:30Z".into());
        let table = [
            (json!({ "phase": "Pending" }), 0, false, false),
            (json!({ "phase": "Running" }), 0, false, false),
            (json!({ "phase": "Pending", "conditions": at }), 0, false, false),
            (json!({ "phase": "Running", "conditions": at }), 0, true, true),
            (json!({ "phase": "Running", "conditions": at }), 30, true, true),
            (json!({ "phase": "Running", "conditions": at }), 31, true, false),
            (json!({ "phase": "Running", "conditions": ready(Value::Null) }), 0, true, true),
            (json!({ "phase": "Running", "conditions": ready(Value::Null) }), 1, true, false),
        ];
        for (status, seconds, is_ready, available) in table {
            let pod = pod(&status);
            let found = (super::is_ready(&pod), is_available(&pod, seconds, now));
            assert_eq!(found, (is_ready, available), "{status} for {seconds} s");
        }
    }
}
