//! Does the API server serve what is needed, and does it keep what is written?

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::Client;
use kube::api::PostParams;
use serde_json::json;

use super::Finding;
use crate::snapshot::{api, explain};

/// The API that Workloads and PodGroups belong to.
const GROUP_VERSION: &str = "scheduling.k8s.io/v1beta1";
/// The name of what is created in dry runs.
pub(super) const PROBE: &str = "sts-scheduling-doctor";
const SERVE: &str = "use Kubernetes 1.37 or newer, and start kube-apiserver with \
                     --runtime-config=scheduling.k8s.io/v1beta1=true --feature-gates=GenericWorkload=true";

/// How a dry run is made.
pub(super) fn dry_run() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

/// Whether Workloads and PodGroups are served.
pub(super) async fn examine(client: &Client, namespace: &str, findings: &mut Vec<Finding>) -> anyhow::Result<bool> {
    let resources = match client.list_api_group_resources(GROUP_VERSION).await {
        Ok(list) => list.resources,
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(explain(error)),
    };
    let missing: Vec<_> =
        ["workloads", "podgroups"].into_iter().filter(|name| !resources.iter().any(|one| one.name == *name)).collect();
    if !missing.is_empty() {
        findings.push(Finding::broken(format!("{GROUP_VERSION} is not served: no {}", missing.join(", no ")), SERVE));
        return Ok(false);
    }
    findings.push(Finding::good(format!("{GROUP_VERSION} is served: workloads, podgroups")));
    findings.push(pods_keep_their_group(client, namespace).await);
    findings.extend(groups_keep_their_members(client, namespace).await);
    Ok(true)
}

/// A closed gate drops the field of pods without a word.
async fn pods_keep_their_group(client: &Client, namespace: &str) -> Finding {
    let pod = json!({
        "metadata": {"name": PROBE},
        "spec": {"schedulingGroup": {"podGroupName": PROBE}, "containers": [{"name": "probe", "image": "probe"}]},
    });
    let created = match serde_json::from_value::<Pod>(pod) {
        Ok(pod) => api::<Pod>(client, Some(namespace)).create(&dry_run(), &pod).await,
        Err(error) => Err(kube::Error::SerdeError(error)),
    };
    match created {
        Ok(pod) if pod.spec.as_ref().is_some_and(|spec| spec.scheduling_group.is_some()) => {
            Finding::good("pods keep their group: the feature gate GenericWorkload is on")
        }
        Ok(_) => Finding::broken("the API server drops spec.schedulingGroup of pods", SERVE),
        Err(error) => Finding::doubtful(
            format!("whether pods keep their group cannot be told: {}", explain(error)),
            format!("allow dry runs of pods in {namespace}, or choose another namespace by --namespace"),
        ),
    }
}

/// Closed gates drop parts of an intent without a word.
async fn groups_keep_their_members(client: &Client, namespace: &str) -> Vec<Finding> {
    let pod_group = json!({
        "metadata": {"name": PROBE},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 1}},
            "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/zone"}]},
            "disruptionMode": {"all": {}},
            "resourceClaims": [{"name": "probe", "resourceClaimTemplateName": "probe"}],
        },
    });
    let created = match serde_json::from_value::<PodGroup>(pod_group) {
        Ok(pod_group) => api::<PodGroup>(client, Some(namespace)).create(&dry_run(), &pod_group).await,
        Err(error) => Err(kube::Error::SerdeError(error)),
    };
    let spec = match created {
        Ok(created) => created.spec,
        Err(error) => {
            return vec![Finding::doubtful(
                format!("which parts of an intent are kept cannot be told: {}", explain(error)),
                format!("allow dry runs of podgroups in {namespace}, or choose another namespace by --namespace"),
            )];
        }
    };
    let members = [
        (spec.scheduling_constraints.is_some(), "schedulingConstraints", "TopologyAwareWorkloadScheduling"),
        (spec.disruption_mode.is_some(), "disruptionMode", "GenericWorkload"),
        (spec.resource_claims.is_some_and(|claims| !claims.is_empty()), "resourceClaims", "DRAWorkloadResourceClaims"),
    ];
    let dropped = members.iter().filter(|(kept, ..)| !kept).map(|(_, member, gate)| {
        Finding::doubtful(
            format!("the API server drops {member} of PodGroups: in an intent it has no effect"),
            format!("turn on the feature gate {gate} in kube-apiserver and kube-scheduler, or do not use {member}"),
        )
    });
    let mut findings: Vec<_> = dropped.collect();
    if findings.is_empty() {
        let kept = members.map(|(_, member, _)| member).join(", ");
        findings.push(Finding::good(format!("PodGroups keep every part of an intent: {kept}")));
    }
    findings
}
