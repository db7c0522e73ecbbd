//! A Node to create.
//!
//! Stands for what a kubelet registers: labels, capacity and a Ready condition. Left out: heartbeats,
//! Leases, pressure conditions, and the node controller's taints.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::identity::{as_user, node_user};

/// The label that every node has with its own name.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// What makes a node.
#[derive(Clone, Debug, Default)]
pub struct NodeShape {
    /// Its name, which is also its hostname.
    pub name: String,
    /// Labels beside the hostname.
    pub labels: BTreeMap<String, String>,
    /// Amounts by resource; `pods` is 110 where it is not said.
    pub capacity: BTreeMap<String, String>,
    /// Taints, as `key=value:Effect` or `key:Effect`.
    pub taints: Vec<String>,
}

impl NodeShape {
    /// A node with these amounts of processor and memory.
    pub fn new(name: &str, cpu: &str, memory: &str) -> Self {
        let capacity = [("cpu", cpu), ("memory", memory)].map(|(name, amount)| (name.to_owned(), amount.to_owned()));
        Self { name: name.to_owned(), capacity: capacity.into(), ..Self::default() }
    }

    /// With one more label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With an amount of one more resource.
    #[must_use]
    pub fn resource(mut self, name: &str, amount: &str) -> Self {
        self.capacity.insert(name.to_owned(), amount.to_owned());
        self
    }

    /// With one more taint.
    #[must_use]
    pub fn taint(mut self, taint: &str) -> Self {
        self.taints.push(taint.to_owned());
        self
    }

    /// The object, ready and with its status.
    pub fn object(&self) -> Node {
        let mut labels = self.labels.clone();
        labels.insert(HOSTNAME.to_owned(), self.name.clone());
        let mut capacity: BTreeMap<String, Quantity> =
            self.capacity.iter().map(|(name, amount)| (name.clone(), Quantity(amount.clone()))).collect();
        capacity.entry("pods".to_owned()).or_insert_with(|| Quantity("110".to_owned()));
        let ready = NodeCondition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: Some("KubeletReady".to_owned()),
            message: Some("kubelet is posting ready status".to_owned()),
            ..NodeCondition::default()
        };
        let hostname = NodeAddress { type_: "Hostname".to_owned(), address: self.name.clone() };
        Node {
            metadata: ObjectMeta { name: Some(self.name.clone()), labels: Some(labels), ..ObjectMeta::default() },
            spec: Some(NodeSpec {
                taints: (!self.taints.is_empty()).then(|| self.taints.iter().map(|it| taint(it)).collect()),
                ..NodeSpec::default()
            }),
            status: Some(NodeStatus {
                allocatable: Some(capacity.clone()),
                capacity: Some(capacity),
                conditions: Some(vec![ready]),
                addresses: Some(vec![hostname]),
                ..NodeStatus::default()
            }),
        }
    }

    /// Creates the node and writes its status, as its kubelet. One that is there is only written to.
    ///
    /// # Errors
    ///
    /// What the API server answers.
    pub async fn register(&self, client: &kube::Client) -> kube::Result<Node> {
        let nodes: Api<Node> = Api::all(as_user(client, &node_user(&self.name)));
        let object = self.object();
        match nodes.create(&PostParams::default(), &object).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(error),
        }
        // A server that has a status subresource for nodes drops the status of a create.
        let patch = Patch::Merge(json!({ "status": object.status }));
        nodes.patch_status(&self.name, &PatchParams::default(), &patch).await
    }
}

fn taint(text: &str) -> Taint {
    let (name, effect) = text.rsplit_once(':').unwrap_or((text, "NoSchedule"));
    let (key, value) = name.split_once('=').map_or((name, None), |(key, value)| (key, Some(value.to_owned())));
    Taint { key: key.to_owned(), value, effect: effect.to_owned(), ..Taint::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_carries_its_name_as_a_label_and_room_for_pods() {
        let node = NodeShape::new("n1", "4", "8Gi").label("rack", "a").taint("gpu=yes:NoSchedule").object();
        let labels = node.metadata.labels.expect("there are labels");
        assert_eq!(labels[HOSTNAME], "n1");
        assert_eq!(labels["rack"], "a");
        let status = node.status.expect("there is a status");
        assert_eq!(status.allocatable.expect("something is allocatable")["pods"].0, "110");
        let taints = node.spec.and_then(|spec| spec.taints).expect("there are taints");
        assert_eq!(
            (&*taints[0].key, taints[0].value.as_deref(), &*taints[0].effect),
            ("gpu", Some("yes"), "NoSchedule")
        );
    }
}
