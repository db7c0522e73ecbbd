//! Pods and pod templates.
//!
//! Stands for the defaulting and validation of pods as far as a scheduler, a kubelet and the admission
//! of this project can tell a difference. Left out: most of what can be wrong inside a container, a
//! volume or an affinity; token volumes and default tolerations (admission plugins upstream); ephemeral
//! containers and resizing.

use serde_json::{Map, Value, json};
use statefulset_scheduling_core::field::{BadValue, Error, ErrorList, Path};

use super::formats::{dns_label, dns_subdomain};
use super::{immutable, object_at, one_of, set_default};
use crate::config::Gates;

/// The defaults of a pod.
pub(super) fn default(pod: &mut Value) {
    let spec = object_at(pod, "spec");
    set_default(spec, "enableServiceLinks", true);
    default_requests(spec);
    default_spec(spec);
}

/// The defaults that a pod's spec has in a template, too.
pub(super) fn default_spec(spec: &mut Map<String, Value>) {
    set_default(spec, "restartPolicy", "Always");
    set_default(spec, "dnsPolicy", "ClusterFirst");
    set_default(spec, "terminationGracePeriodSeconds", 30);
    set_default(spec, "schedulerName", "default-scheduler");
    set_default(spec, "securityContext", json!({}));
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                default_container(container);
            }
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(volume) = volume.as_object_mut() {
            default_volume(volume);
        }
    }
}

fn default_container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    let is_latest = !image.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    let policy = if is_latest { "Always" } else { "IfNotPresent" };
    set_default(container, "imagePullPolicy", policy);
    set_default(container, "terminationMessagePath", "/dev/termination-log");
    set_default(container, "terminationMessagePolicy", "File");
    set_default(container, "resources", json!({}));
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(port) = port.as_object_mut() {
            set_default(port, "protocol", "TCP");
        }
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef").and_then(Value::as_object_mut) {
            set_default(field, "apiVersion", "v1");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).and_then(Value::as_object_mut) {
            for (key, value) in
                [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
            {
                set_default(probe, key, value);
            }
            if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
                set_default(get, "path", "/");
                set_default(get, "scheme", "HTTP");
            }
        }
    }
}

fn default_volume(volume: &mut Map<String, Value>) {
    if volume.len() <= 1 {
        set_default(volume, "emptyDir", json!({}));
    }
    for source in ["configMap", "secret", "projected"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            set_default(source, "defaultMode", 420);
        }
    }
}

/// What is requested is what is limited, where only that is written.
fn default_requests(spec: &mut Map<String, Value>) {
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
            for (name, quantity) in limits {
                let requests = object_at(&mut container["resources"], "requests");
                set_default(requests, &name, quantity);
            }
        }
    }
}

/// The status of a new pod.
pub(super) fn new_status(pod: &Value) -> Value {
    json!({ "phase": "Pending", "qosClass": quality_of_service(&pod["spec"]) })
}

fn quality_of_service(spec: &Value) -> &'static str {
    let mut any = false;
    let mut all_guaranteed = true;
    for container in ["containers", "initContainers"].iter().filter_map(|list| spec[*list].as_array()).flatten() {
        for name in ["cpu", "memory"] {
            let (request, limit) = (&container["resources"]["requests"][name], &container["resources"]["limits"][name]);
            any |= request.is_string() || limit.is_string();
            all_guaranteed &= limit.is_string() && request == limit;
        }
    }
    match (any, all_guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Clears what closed gates forbid.
pub(super) fn drop_closed(gates: Gates, old: Option<&Value>, pod: &mut Value) {
    let in_use = old.is_some_and(|old| old["spec"]["schedulingGroup"].is_object());
    if !gates.generic_workload && !in_use {
        drop_scheduling_group(&mut pod["spec"]);
    }
}

pub(super) fn drop_scheduling_group(spec: &mut Value) {
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("schedulingGroup");
    }
}

/// What is wrong with a pod's spec at `path`.
pub(super) fn validate(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let containers = spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if containers.is_empty() {
        errors.push(Error::required(&path.child("containers"), ""));
    }
    let mut names = Vec::new();
    for list in ["containers", "initContainers"] {
        for (index, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            validate_container(container, &path.child(list).index(index), &mut names, errors);
        }
    }
    one_of(&spec["restartPolicy"], &["Always", "OnFailure", "Never"], &path.child("restartPolicy"), errors);
    one_of(
        &spec["dnsPolicy"],
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        &path.child("dnsPolicy"),
        errors,
    );
    one_of(&spec["preemptionPolicy"], &["PreemptLowerPriority", "Never"], &path.child("preemptionPolicy"), errors);
    for name in ["nodeName", "priorityClassName"] {
        if let Some(text) = spec[name].as_str().filter(|text| !text.is_empty()) {
            dns_subdomain(text, &path.child(name), errors);
        }
    }
    validate_claims(spec, containers, path, errors);
    let group = &spec["schedulingGroup"];
    if group.is_object() {
        let path = path.child("schedulingGroup");
        match group["podGroupName"].as_str() {
            Some(name) => dns_subdomain(name, &path.child("podGroupName"), errors),
            None => errors.push(
                Error::invalid(&path, BadValue::String(String::new()), "must specify one of: `podGroupName`")
                    .with_origin("union"),
            ),
        }
    }
}

fn validate_container(container: &Value, path: &Path, names: &mut Vec<String>, errors: &mut ErrorList) {
    let name = container["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    } else {
        dns_label(name, &path.child("name"), errors);
        if names.iter().any(|earlier| earlier == name) {
            errors.push(Error::duplicate(&path.child("name"), name.into()));
        }
        names.push(name.to_owned());
    }
    if container["image"].as_str().is_none_or(str::is_empty) {
        errors.push(Error::required(&path.child("image"), ""));
    }
    one_of(&container["imagePullPolicy"], &["Always", "IfNotPresent", "Never"], &path.child("imagePullPolicy"), errors);
}

fn validate_claims(spec: &Value, containers: &[Value], path: &Path, errors: &mut ErrorList) {
    let claims = spec["resourceClaims"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, claim) in claims.iter().enumerate() {
        let path = path.child("resourceClaims").index(index);
        let name = claim["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.push(Error::required(&path.child("name"), ""));
        } else if claims.iter().take(index).any(|earlier| earlier["name"] == claim["name"]) {
            errors.push(Error::duplicate(&path, name.into()));
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"].map(|source| claim[source].is_string());
        if sources.iter().filter(|set| **set).count() != 1 {
            let detail = if sources[0] {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            } else {
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            };
            errors.push(Error::invalid(&path, BadValue::Json(claim.clone()), detail));
        }
    }
    for (index, container) in containers.iter().enumerate() {
        let used = container["resources"]["claims"].as_array().into_iter().flatten();
        for (place, used) in used.enumerate() {
            if !claims.iter().any(|claim| claim["name"] == used["name"]) {
                let path = path.child("containers").index(index).child("resources").child("claims").index(place);
                let detail = "must be one of the names in pod.spec.resourceClaims";
                errors.push(Error::invalid(&path, BadValue::Json(used["name"].clone()), detail));
            }
        }
    }
}

/// What is wrong with a change of a pod: of its spec, only what is listed below may change.
pub(super) fn validate_update(old: &Value, new: &Value, errors: &mut ErrorList) {
    let path = Path::new("spec");
    let (before, after) = (&old["spec"], &new["spec"]);
    if before["schedulingGroup"] != after["schedulingGroup"] {
        errors.push(immutable(&path.child("schedulingGroup"), &after["schedulingGroup"]));
    }
    let mut left = after.clone();
    copy_images(before, &mut left);
    for member in ["activeDeadlineSeconds", "schedulingGroup"] {
        super::copy(before, &mut left, member);
    }
    if is_extended(&before["tolerations"], &after["tolerations"]) {
        super::copy(before, &mut left, "tolerations");
    }
    if is_extended(&after["schedulingGates"], &before["schedulingGates"]) {
        super::copy(before, &mut left, "schedulingGates");
    }
    if before["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        super::copy(before, &mut left, "terminationGracePeriodSeconds");
    }
    if left != *before {
        errors.push(Error::forbidden(
            &path,
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
             `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        ));
    }
}

fn copy_images(from: &Value, to: &mut Value) {
    for list in ["containers", "initContainers"] {
        let (Some(from), Some(to)) = (from[list].as_array(), to.get_mut(list).and_then(Value::as_array_mut)) else {
            continue;
        };
        for (from, to) in from.iter().zip(to).filter(|(_, to)| to["image"].as_str().is_some_and(|it| !it.is_empty())) {
            super::copy(from, to, "image");
        }
    }
}

/// Whether the longer list has everything of the shorter.
fn is_extended(shorter: &Value, longer: &Value) -> bool {
    let items = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let longer = items(longer);
    items(shorter).iter().all(|item| longer.contains(item))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        let mut pod = json!({ "spec": { "containers": [{ "name": "main", "image": "registry.example:5000/app" }] } });
        default(&mut pod);
        pod
    }

    fn update(old: &Value, new: &Value) -> String {
        let mut errors = ErrorList::new();
        validate_update(old, new, &mut errors);
        errors.to_string()
    }

    #[test]
    fn a_pod_gets_its_defaults() {
        let pod = pod();
        assert_eq!(pod["spec"]["restartPolicy"], "Always");
        assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], "Always");
        assert_eq!(new_status(&pod), json!({ "phase": "Pending", "qosClass": "BestEffort" }));
        let mut limited = json!({ "spec": { "containers": [{
            "image": "app:1", "resources": { "limits": { "cpu": "1", "memory": "1Gi" } },
        }] } });
        default(&mut limited);
        assert_eq!(limited["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
        assert_eq!(limited["spec"]["containers"][0]["resources"]["requests"]["cpu"], "1");
        assert_eq!(new_status(&limited)["qosClass"], "Guaranteed");
    }

    #[test]
    fn a_broken_pod_is_refused_at_each_field() {
        let spec = json!({
            "containers": [{ "name": "a", "image": "i", "resources": { "claims": [{ "name": "x" }] } }, { "name": "a" }],
            "resourceClaims": [{ "name": "c" }],
            "schedulingGroup": { "podGroupName": "Bad" },
        });
        let mut errors = ErrorList::new();
        validate(&spec, &Path::new("spec"), &mut errors);
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.containers[1].name",
                "spec.containers[1].image",
                "spec.resourceClaims[0]",
                "spec.containers[0].resources.claims[0]",
                "spec.schedulingGroup.podGroupName",
            ]
        );
    }

    #[test]
    fn only_a_few_fields_of_a_pod_may_change() {
        let old = pod();
        let mut new = old.clone();
        new["spec"]["containers"][0]["image"] = "other".into();
        new["spec"]["tolerations"] = json!([{ "key": "a" }]);
        assert_eq!(update(&old, &new), "[]");
        new["spec"]["nodeName"] = "n1".into();
        assert!(update(&old, &new).starts_with("spec: Forbidden: pod updates may not change fields other than"));
        let mut grouped = old.clone();
        grouped["spec"]["schedulingGroup"] = json!({ "podGroupName": "g" });
        assert_eq!(
            update(&old, &grouped),
            "spec.schedulingGroup: Invalid value: {\"podGroupName\":\"g\"}: field is immutable"
        );
    }

    #[test]
    fn a_closed_gate_drops_the_group_unless_it_is_there_already() {
        let mut pod = pod();
        pod["spec"]["schedulingGroup"] = json!({ "podGroupName": "g" });
        let old = pod.clone();
        drop_closed(Gates::upstream(), Some(&old), &mut pod);
        assert_eq!(pod, old);
        drop_closed(Gates::upstream(), None, &mut pod);
        assert!(pod["spec"].get("schedulingGroup").is_none());
    }
}
