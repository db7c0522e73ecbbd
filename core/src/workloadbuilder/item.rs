//! What a workload asks for.

use k8s_openapi::api::scheduling::v1alpha3::{
    WorkloadPodGroupBasicSchedulingPolicy, WorkloadPodGroupDisruptionMode, WorkloadPodGroupResourceClaim,
    WorkloadPodGroupSchedulingConstraints, WorkloadPodGroupSchedulingPolicy,
};
use serde_json::{Map, Value};

use crate::api::{StatefulSet, StatefulSetSchedulingConfiguration};
use crate::field::Path;
use crate::gates::FeatureGates;
use crate::names;

/// A kind of scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyType {
    /// Pod by pod.
    Basic,
    /// All or nothing.
    Gang,
}

impl PolicyType {
    /// The member of the union that stands for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Gang => "gang",
        }
    }

    /// The policy that is meant, none where no member is known. With both set, basic wins.
    pub fn of(policy: &WorkloadPodGroupSchedulingPolicy) -> Option<Self> {
        if policy.basic.is_some() { Some(Self::Basic) } else { policy.gang.as_ref().map(|_| Self::Gang) }
    }
}

/// A kind of disruption mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DisruptionModeType {
    /// Each pod for itself.
    Single,
    /// The whole group at once.
    All,
}

impl DisruptionModeType {
    /// The member of the union that stands for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::All => "all",
        }
    }

    /// The mode that is meant, none where no member is known. With both set, single wins.
    pub fn of(mode: &WorkloadPodGroupDisruptionMode) -> Option<Self> {
        if mode.single.is_some() { Some(Self::Single) } else { mode.all.as_ref().map(|_| Self::All) }
    }
}

/// The scheduling of one group: what a user wrote, a default, or what both come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchedulingConfig {
    /// The policy.
    pub policy: Option<WorkloadPodGroupSchedulingPolicy>,
    /// Where the group may be placed.
    pub constraints: Option<WorkloadPodGroupSchedulingConstraints>,
    /// What preemption takes.
    pub disruption_mode: Option<WorkloadPodGroupDisruptionMode>,
    /// The claims that the group shares.
    pub resource_claims: Vec<WorkloadPodGroupResourceClaim>,
    /// The priority class of the group's pods.
    pub priority_class_name: Option<String>,
}

impl SchedulingConfig {
    /// The Basic policy and nothing else.
    pub fn basic() -> Self {
        let basic = WorkloadPodGroupBasicSchedulingPolicy(Value::Object(Map::new()));
        Self { policy: Some(WorkloadPodGroupSchedulingPolicy { basic: Some(basic), gang: None }), ..Self::default() }
    }
}

impl From<&StatefulSetSchedulingConfiguration> for SchedulingConfig {
    fn from(configuration: &StatefulSetSchedulingConfiguration) -> Self {
        Self {
            policy: configuration.scheduling_policy.clone(),
            constraints: configuration.scheduling_constraints.clone(),
            disruption_mode: configuration.disruption_mode.clone(),
            resource_claims: configuration.claims().to_vec(),
            priority_class_name: None,
        }
    }
}

/// Changes a resolved configuration: the owner's own defaults.
pub type Callback<'a> = Box<dyn Fn(&mut SchedulingConfig) + 'a>;

/// One leaf of a workload: what is asked for, and what it becomes where it is left open.
pub struct WorkloadItem<'a> {
    /// The name of its template.
    pub name: String,
    /// Where the input is written, for errors.
    pub path: Path,
    /// What holds where the input says nothing.
    pub default_config: SchedulingConfig,
    /// What the user asked for.
    pub input: SchedulingConfig,
    /// Run in order on what default and input come to.
    pub callbacks: Vec<Callback<'a>>,
}

impl<'a> WorkloadItem<'a> {
    /// The item of a configuration alone, as validation sees it.
    pub fn new(configuration: &StatefulSetSchedulingConfiguration, path: &Path) -> Self {
        Self {
            name: String::new(),
            path: path.clone(),
            default_config: SchedulingConfig::basic(),
            input: configuration.into(),
            callbacks: Vec::new(),
        }
    }

    /// The item of a StatefulSet, as it is compiled: the gang's size is derived from the replicas,
    /// the priority class from the pod template, and claims are left out while their gate is closed.
    pub fn for_statefulset(
        statefulset: &'a StatefulSet,
        configuration: &StatefulSetSchedulingConfiguration,
        gates: FeatureGates,
        path: &Path,
    ) -> Self {
        let size = statefulset.gang_size();
        let priority_class_name = statefulset.template.priority_class_name.as_ref();
        Self {
            name: names::template_name(&statefulset.name),
            callbacks: vec![
                Box::new(move |config| {
                    if let Some(gang) = config.policy.as_mut().and_then(|policy| policy.gang.as_mut()) {
                        gang.min_count = Some(size);
                    }
                }),
                Box::new(move |config| config.priority_class_name = priority_class_name.cloned()),
                Box::new(move |config| {
                    if !gates.dra_workload_resource_claims {
                        config.resource_claims.clear();
                    }
                }),
            ],
            ..Self::new(configuration, path)
        }
    }
}

/// What a workload of some kind may ask for. Whatever is not listed is refused, so a policy that
/// the API gains later stays refused until somebody has thought about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// The policies that may be asked for.
    pub allowed_policies: Vec<PolicyType>,
    /// The disruption modes that may be asked for.
    pub allowed_disruption_modes: Vec<DisruptionModeType>,
}

impl Default for BuildOptions {
    /// What a StatefulSet may ask for.
    fn default() -> Self {
        Self {
            allowed_policies: vec![PolicyType::Basic, PolicyType::Gang],
            allowed_disruption_modes: vec![DisruptionModeType::Single, DisruptionModeType::All],
        }
    }
}
