//! The nodes with what is free on them, to try placements on.
//!
//! Stands for the snapshot of a scheduling cycle and for the filters: readiness, `unschedulable`,
//! taints, nodeSelector, resources, claims. Left out: affinity of any kind, spread, ports, volumes.

use std::collections::BTreeMap;

use super::claims::{Book, Devices, Need};
use crate::cluster::{Cluster, Node, Pod, Taint, Toleration};
use crate::quantity::{PODS, Resources};

/// A pod that waits for a node, with the claims that it needs.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Its claims, or why they are not known.
    pub needs: Result<Vec<Need>, String>,
}

/// What is free where.
#[derive(Clone, Debug)]
pub struct Board<'a> {
    /// The cluster that it was made of.
    pub cluster: &'a Cluster,
    /// The claims.
    pub claims: Book<'a>,
    free: BTreeMap<&'a str, Resources>,
}

impl<'a> Board<'a> {
    /// The cluster as it is: pods that are being deleted keep their room until they are gone.
    pub fn new(cluster: &'a Cluster, devices: &'a Devices) -> Self {
        let free = cluster.nodes.iter().map(|(name, node)| (name.as_str(), node.allocatable.clone())).collect();
        let mut board = Self { cluster, claims: Book::new(cluster, devices), free };
        for pod in cluster.pods.values().filter(|pod| pod.is_bound()) {
            board.charge(pod, pod.node.as_deref().unwrap_or_default());
        }
        board
    }

    /// Takes the room of a pod on a node, whether or not there is any.
    pub fn charge(&mut self, pod: &Pod, node: &str) {
        if let Some(free) = self.free.get_mut(node) {
            free.subtract(&pod.requests);
        }
    }

    /// Gives the room of a bound pod back.
    pub fn release(&mut self, pod: &Pod) {
        if let Some(free) = pod.node.as_deref().and_then(|node| self.free.get_mut(node)) {
            free.add(&pod.requests);
        }
    }

    /// Why a pod cannot be on a node; nothing if it can.
    pub fn obstacles(&self, member: &Member<'_>, node: &Node) -> Vec<String> {
        let pod = member.pod;
        if !node.ready {
            return vec!["node(s) were not ready".to_owned()];
        }
        let cordon = Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            value: String::new(),
            effect: "NoSchedule".to_owned(),
        };
        if node.cordoned && !tolerates(&pod.tolerations, &cordon) {
            return vec!["node(s) were unschedulable".to_owned()];
        }
        if let Some(taint) = node.taints.iter().find(|taint| !tolerates(&pod.tolerations, taint)) {
            return vec![format!("node(s) had untolerated taint {{{}: {}}}", taint.key, taint.value)];
        }
        if !pod.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value)) {
            return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
        }
        let nothing = Resources::default();
        let free = self.free.get(node.name.as_str()).unwrap_or(&nothing);
        let lacks = free.lacks(&pod.requests).map(|name| match name {
            PODS => "Too many pods".to_owned(),
            name => format!("Insufficient {name}"),
        });
        let mut obstacles: Vec<_> = lacks.collect();
        if obstacles.is_empty() {
            let needs = member.needs.as_deref().unwrap_or_default();
            obstacles.extend(self.claims.fits(needs, &node.name).err());
        }
        obstacles
    }

    /// How free a node would still be, in thousandths.
    pub fn left(&self, pod: &Pod, node: &Node) -> i128 {
        self.free.get(node.name.as_str()).map_or(0, |free| free.left_after(&pod.requests, &node.allocatable))
    }

    /// Puts a pod on a node where nothing is in its way.
    pub fn put(&mut self, member: &Member<'_>, node: &str) {
        self.charge(member.pod, node);
        if let Ok(needs) = &member.needs {
            // They fit: that has been asked before.
            let _ = self.claims.take(needs, node);
        }
    }
}

fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    if !matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute") {
        return true;
    }
    tolerations.iter().any(|it| {
        (it.effect.is_empty() || it.effect == taint.effect)
            && (it.key.is_empty() || it.key == taint.key)
            && it.value.as_ref().is_none_or(|value| *value == taint.value)
    })
}
