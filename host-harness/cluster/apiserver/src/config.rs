//! What kind of API server it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::identity::User;

/// Which StatefulSets the server knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Kubernetes 1.37: `spec.scheduling` is no field of a StatefulSet and is pruned.
    #[default]
    V1_37,
    /// A server with the KEP: `spec.scheduling` is stored, validated and immutable.
    Kep,
}

/// The feature gates of the server.
///
/// The default has open what workload-aware scheduling needs; [`Gates::upstream`] is what a 1.37
/// server starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "gates are independent of each other")]
pub struct Gates {
    /// `GenericWorkload`: closed, `scheduling.k8s.io/v1beta1` is not served and `schedulingGroup` is
    /// dropped from pods.
    pub generic_workload: bool,
    /// `TopologyAwareWorkloadScheduling`: closed, `schedulingConstraints` is dropped.
    pub topology_aware_workload_scheduling: bool,
    /// `DRAWorkloadResourceClaims`: closed, the `resourceClaims` of groups are dropped.
    pub dra_workload_resource_claims: bool,
    /// `CompositePodGroup`: closed, `scheduling.k8s.io/v1alpha3` is not served and what names
    /// composite groups is dropped.
    pub composite_pod_group: bool,
    /// `PodGroupPreemptionPolicy`: closed, the `preemptionPolicy` of groups is dropped.
    pub pod_group_preemption_policy: bool,
    /// `WorkloadWithStatefulSet`, which only [`Profile::Kep`] has: closed, `spec.scheduling` is
    /// cleared from new StatefulSets and kept on those that have it.
    pub workload_with_stateful_set: bool,
    /// The admission plugin `PodGroupWorkloadExists` of the 1.36 cycle: a PodGroup may not name a
    /// Workload or a template that is not there. Not open by default.
    pub pod_group_workload_exists: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            generic_workload: true,
            topology_aware_workload_scheduling: true,
            dra_workload_resource_claims: true,
            composite_pod_group: true,
            pod_group_preemption_policy: false,
            workload_with_stateful_set: true,
            pod_group_workload_exists: false,
        }
    }
}

impl Gates {
    /// Every gate as a 1.37 server has it where nobody sets any: closed.
    pub const fn upstream() -> Self {
        Self {
            generic_workload: false,
            topology_aware_workload_scheduling: false,
            dra_workload_resource_claims: false,
            composite_pod_group: false,
            pod_group_preemption_policy: false,
            workload_with_stateful_set: false,
            pod_group_workload_exists: false,
        }
    }
}

/// Everything that is decided before the server starts.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which StatefulSets it knows.
    pub profile: Profile,
    /// Its feature gates.
    pub gates: Gates,
    /// Where timestamps come from.
    pub clock: Arc<dyn Clock>,
    /// UIDs and generated names depend on this and on the order of the creates, on nothing else.
    pub seed: u64,
    /// Who a bearer token stands for.
    pub tokens: BTreeMap<String, User>,
    /// How many changes a resource remembers; a watch that falls further behind gets 410.
    pub history: usize,
    /// The namespaces that are there from the start. `default` and the `kube-` ones always are.
    pub namespaces: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            gates: Gates::default(),
            clock: Arc::new(SystemClock),
            seed: 0,
            tokens: BTreeMap::new(),
            history: 100_000,
            namespaces: Vec::new(),
        }
    }
}
