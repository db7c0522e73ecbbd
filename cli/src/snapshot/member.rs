//! A pod of a StatefulSet, as far as it matters to its group.

use k8s_openapi::api::core::v1::Pod;
use statefulset_scheduling_core::api;

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The UID of its StatefulSet.
    pub owner: String,
    /// Its phase.
    pub phase: String,
    /// The node that it is bound to.
    pub node: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The PodGroup that it names.
    pub group: Option<String>,
    /// Why it is not scheduled, as the scheduler says it.
    pub unscheduled: Option<String>,
}

impl Member {
    /// Reads a pod; none where no StatefulSet controls it.
    pub fn new(pod: Pod) -> Option<Self> {
        let owners = pod.metadata.owner_references.unwrap_or_default();
        let owner = owners.into_iter().find(|owner| owner.controller == Some(true) && owner.kind == "StatefulSet")?;
        let spec = pod.spec.unwrap_or_default();
        let status = pod.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let is = |kind: &str, value: &str| {
            conditions.iter().find(|condition| condition.type_ == kind && condition.status == value)
        };
        Some(Self {
            name: pod.metadata.name.unwrap_or_default(),
            owner: owner.uid,
            phase: status.phase.unwrap_or_default(),
            node: spec.node_name,
            ready: is("Ready", "True").is_some(),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            group: spec.scheduling_group.and_then(|group| group.pod_group_name).filter(|name| !name.is_empty()),
            unscheduled: is("PodScheduled", "False")
                .map(|condition| condition.message.clone().or_else(|| condition.reason.clone()).unwrap_or_default()),
        })
    }

    /// Its place among the pods of a StatefulSet, from 0; none where its name tells of none.
    pub fn index(&self, statefulset: &str, start: i32) -> Option<i64> {
        api::ordinal(&self.name, statefulset)?.checked_sub(i64::from(start))
    }
}
