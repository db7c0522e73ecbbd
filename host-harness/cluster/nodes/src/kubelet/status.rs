//! The status that a kubelet writes.
//!
//! Stands for the status manager's strategic merge patches, with the pod's UID in them so that they
//! never reach another pod of the same name. Left out: resources, volumes, users, quality of service, and
//! everything a container runtime would know.

use k8s_openapi::api::core::v1 as core;
use serde_json::{Value, json};

use super::lifecycle::{Phase, Seen};
use crate::clock::Clock;
use crate::cluster::Key;

/// What the kubelet keeps of a pod.
#[derive(Clone, Debug)]
pub struct Local {
    /// Namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: String,
    /// Where it is bound.
    pub node: Option<String>,
    /// What its life depends on.
    pub seen: Seen,
    /// Names and images of its containers.
    containers: Vec<(String, String)>,
    /// The address that it has already.
    address: Option<String>,
}

impl From<&core::Pod> for Local {
    fn from(pod: &core::Pod) -> Self {
        let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
        let mut conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
        let phase = match status.and_then(|status| status.phase.as_deref()) {
            Some("Running") => Phase::Running { ready },
            Some("Succeeded" | "Failed") => Phase::Done,
            _ => Phase::Pending,
        };
        let metadata = &pod.metadata;
        let grace = metadata.deletion_grace_period_seconds.map_or(30, |it| u32::try_from(it).unwrap_or(0));
        let containers = spec.iter().flat_map(|spec| &spec.containers);
        Self {
            key: Key::of(metadata),
            uid: metadata.uid.clone().unwrap_or_default(),
            node: spec.and_then(|spec| spec.node_name.clone()).filter(|node| !node.is_empty()),
            seen: Seen { phase, deleting: metadata.deletion_timestamp.is_some().then_some(grace) },
            containers: containers.map(|it| (it.name.clone(), it.image.clone().unwrap_or_default())).collect(),
            address: status.and_then(|status| status.pod_ip.clone()),
        }
    }
}

impl Local {
    /// The patch of a pod whose containers run from now on.
    pub fn running(&self, clock: &Clock, address: &str) -> Value {
        let now = json!(clock.now());
        let address = self.address.as_deref().unwrap_or(address);
        let condition = |kind: &str, status: &str| condition(clock, kind, status, None);
        self.patch(json!({
            "phase": "Running",
            "podIP": address,
            "podIPs": [{ "ip": address }],
            "startTime": now,
            "conditions": [
                condition("PodScheduled", "True"),
                condition("PodReadyToStartContainers", "True"),
                condition("Initialized", "True"),
                condition("ContainersReady", "False"),
                condition("Ready", "False"),
            ],
            "containerStatuses": self.containers(false, &json!({ "running": { "startedAt": now } })),
        }))
    }

    /// The patch of a pod that is ready from now on.
    pub fn ready(&self, clock: &Clock) -> Value {
        self.patch(json!({
            "conditions": [
                condition(clock, "ContainersReady", "True", None),
                condition(clock, "Ready", "True", None),
            ],
            "containerStatuses": self.containers(true, &json!({ "running": { "startedAt": clock.now() } })),
        }))
    }

    /// The patch of a pod whose containers have stopped.
    pub fn stopped(&self, clock: &Clock) -> Value {
        let reason = Some("PodCompleted");
        let ended = json!({ "exitCode": 0, "reason": "Completed", "finishedAt": clock.now() });
        // A server that merges these lists by name must not keep the state before.
        let terminated = json!({ "running": null, "terminated": ended });
        self.patch(json!({
            "phase": "Succeeded",
            "conditions": [
                condition(clock, "ContainersReady", "False", reason),
                condition(clock, "Ready", "False", reason),
            ],
            "containerStatuses": self.containers(false, &terminated),
        }))
    }

    #[expect(clippy::needless_pass_by_value, reason = "built in place")]
    fn patch(&self, status: Value) -> Value {
        json!({ "metadata": { "uid": self.uid }, "status": status })
    }

    fn containers(&self, ready: bool, state: &Value) -> Vec<Value> {
        let running = state["running"].is_object();
        let status = |(name, image): &(String, String)| {
            json!({
                "name": name,
                "image": image,
                "imageID": image,
                "containerID": format!("simulated://{}/{name}", self.uid),
                "ready": ready,
                "started": running,
                "restartCount": 0,
                "state": state,
            })
        };
        self.containers.iter().map(status).collect()
    }
}

fn condition(clock: &Clock, kind: &str, status: &str, reason: Option<&str>) -> Value {
    let mut condition = json!({ "type": kind, "status": status, "lastTransitionTime": clock.now() });
    if let Some(reason) = reason {
        condition["reason"] = json!(reason);
    }
    condition
}
