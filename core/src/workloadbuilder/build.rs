//! The objects that an item compiles to.

use std::collections::BTreeMap;

use k8s_openapi::Resource as _;
use k8s_openapi::api::scheduling::v1beta1::{
    AllDisruptionMode, BasicSchedulingPolicy, DisruptionMode, GangSchedulingPolicy, PodGroup, PodGroupResourceClaim,
    PodGroupSchedulingConstraints, PodGroupSchedulingPolicy, PodGroupSpec, PodGroupTemplate, SingleDisruptionMode,
    TopologyConstraint, TypedLocalObjectReference, Workload, WorkloadReference, WorkloadSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Map, Value};
use thiserror::Error;

use super::item::{BuildOptions, DisruptionModeType, PolicyType, SchedulingConfig, WorkloadItem};
use super::{resolve, validate};
use crate::api::{API_VERSION, GROUP, KIND, StatefulSet};
use crate::field::ErrorList;
use crate::names;

/// The annotation that marks an object as made by a workload's controller.
pub const MANAGED_BY_ANNOTATION: &str = "scheduling.k8s.io/managed-by";
/// Its value on objects made for StatefulSets: the KEP's, so that an in-tree controller knows them.
pub const MANAGED_BY: &str = "statefulset-controller";

/// The StatefulSet for which objects are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.uid`
    pub uid: String,
}

impl From<&StatefulSet> for Owner {
    fn from(statefulset: &StatefulSet) -> Self {
        Self { name: statefulset.name.clone(), namespace: statefulset.namespace.clone(), uid: statefulset.uid.clone() }
    }
}

/// Why an object cannot be made.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BuildError {
    /// The item is refused by [`validate`].
    #[error("the scheduling configuration is invalid: {0}")]
    Invalid(ErrorList),
    /// The builder stands on a Workload that exists: it makes PodGroups only.
    #[error("the Workload {0} exists already")]
    WorkloadExists(String),
    /// The Workload has no such PodGroupTemplate.
    #[error("the Workload {workload} has no podGroupTemplate {template}")]
    NoTemplate {
        /// The Workload.
        workload: String,
        /// The template that was asked for.
        template: String,
    },
    /// The template's policy is none that this project knows.
    #[error("the podGroupTemplate {0} has a scheduling policy that is neither basic nor gang")]
    UnknownPolicy(String),
}

/// Makes the Workload and the PodGroup of one StatefulSet.
pub struct Builder {
    owner: Owner,
    workload_name: String,
    templates: Vec<PodGroupTemplate>,
    state: State,
}

enum State {
    New(ErrorList),
    Existing,
}

impl Builder {
    /// A builder that makes both objects from an item.
    pub fn new(item: &WorkloadItem<'_>, options: &BuildOptions, owner: Owner) -> Self {
        Self {
            workload_name: names::workload_name(&owner.name, &owner.uid),
            templates: vec![template(item.name.clone(), resolve(item))],
            state: State::New(validate(item, options)),
            owner,
        }
    }

    /// A builder that makes PodGroups of a Workload that exists, whoever made it.
    pub fn from_existing_workload(workload: &Workload, owner: Owner) -> Self {
        let templates = workload.spec.pod_group_templates.clone().unwrap_or_default();
        Self::from_templates(workload.metadata.name.as_deref().unwrap_or_default(), templates, owner)
    }

    /// A builder that makes PodGroups of some templates of a Workload that exists.
    pub fn from_templates(workload_name: &str, templates: Vec<PodGroupTemplate>, owner: Owner) -> Self {
        Self { owner, workload_name: workload_name.to_owned(), templates, state: State::Existing }
    }

    /// The errors of the item; none for a Workload that exists.
    pub fn validate(&self) -> ErrorList {
        match &self.state {
            State::New(errors) => errors.clone(),
            State::Existing => ErrorList::new(),
        }
    }

    /// The Workload, with one template.
    ///
    /// # Errors
    /// The item is invalid, or the Workload exists already.
    pub fn build_workload(&self) -> Result<Workload, BuildError> {
        match &self.state {
            State::Existing => Err(BuildError::WorkloadExists(self.workload_name.clone())),
            State::New(errors) if !errors.is_empty() => Err(BuildError::Invalid(errors.clone())),
            State::New(_) => Ok(Workload {
                metadata: self.metadata(self.workload_name.clone()),
                spec: WorkloadSpec {
                    controller_ref: Some(TypedLocalObjectReference {
                        api_group: Some(GROUP.to_owned()),
                        kind: KIND.to_owned(),
                        name: self.owner.name.clone(),
                    }),
                    pod_group_templates: Some(self.templates.clone()),
                    ..WorkloadSpec::default()
                },
            }),
        }
    }

    /// The PodGroup of the template `template_name`, owned by the StatefulSet alone: the reference
    /// to the Workload takes its UID, which the answer to its create tells.
    ///
    /// # Errors
    /// The item is invalid, there is no such template, or its policy is not known.
    pub fn new_pod_group(&self, template_name: &str) -> Result<PodGroup, BuildError> {
        if let State::New(errors) = &self.state
            && !errors.is_empty()
        {
            return Err(BuildError::Invalid(errors.clone()));
        }
        let template = self.templates.iter().find(|template| template.name == template_name).ok_or_else(|| {
            BuildError::NoTemplate { workload: self.workload_name.clone(), template: template_name.to_owned() }
        })?;
        if template.scheduling_policy.basic.is_none() && template.scheduling_policy.gang.is_none() {
            return Err(BuildError::UnknownPolicy(template_name.to_owned()));
        }
        Ok(PodGroup {
            metadata: self.metadata(names::pod_group_name(&self.workload_name, template_name)),
            spec: PodGroupSpec {
                workload_ref: Some(WorkloadReference {
                    workload_name: self.workload_name.clone(),
                    template_name: template_name.to_owned(),
                }),
                scheduling_policy: template.scheduling_policy.clone(),
                scheduling_constraints: template.scheduling_constraints.clone(),
                disruption_mode: template.disruption_mode.clone(),
                resource_claims: template.resource_claims.clone(),
                priority_class_name: template.priority_class_name.clone(),
                priority: template.priority,
                preemption_policy: template.preemption_policy.clone(),
                ..PodGroupSpec::default()
            },
            status: None,
        })
    }

    fn metadata(&self, name: String) -> ObjectMeta {
        let mut annotations = BTreeMap::new();
        annotations.insert(MANAGED_BY_ANNOTATION.to_owned(), MANAGED_BY.to_owned());
        ObjectMeta {
            name: Some(name),
            namespace: Some(self.owner.namespace.clone()),
            owner_references: Some(vec![controller_reference(&self.owner)]),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        }
    }
}

/// The reference by which an object is collected with its StatefulSet.
pub fn controller_reference(owner: &Owner) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The reference of a PodGroup to the Workload that it was made from, for a Workload that is the
/// StatefulSet's own: a parent's gets none.
pub fn workload_reference(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: Workload::API_VERSION.to_owned(),
        kind: Workload::KIND.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: None,
        block_owner_deletion: Some(true),
    }
}

fn template(name: String, config: SchedulingConfig) -> PodGroupTemplate {
    let claims: Vec<_> = config
        .resource_claims
        .into_iter()
        .map(|claim| PodGroupResourceClaim {
            name: claim.name,
            resource_claim_name: claim.resource_claim_name,
            resource_claim_template_name: claim.resource_claim_template_name,
        })
        .collect();
    PodGroupTemplate {
        name,
        scheduling_policy: config.policy.map(policy).unwrap_or_default(),
        scheduling_constraints: config.constraints.map(|constraints| PodGroupSchedulingConstraints {
            topology: constraints.topology.map(|topology| {
                topology.into_iter().map(|constraint| TopologyConstraint { key: constraint.key }).collect()
            }),
        }),
        disruption_mode: config.disruption_mode.as_ref().and_then(DisruptionModeType::of).map(|mode| match mode {
            DisruptionModeType::Single => DisruptionMode { single: Some(SingleDisruptionMode(empty())), all: None },
            DisruptionModeType::All => DisruptionMode { all: Some(AllDisruptionMode(empty())), single: None },
        }),
        resource_claims: Some(claims).filter(|claims| !claims.is_empty()),
        priority_class_name: config.priority_class_name,
        ..PodGroupTemplate::default()
    }
}

fn policy(
    policy: k8s_openapi::api::scheduling::v1alpha3::WorkloadPodGroupSchedulingPolicy,
) -> PodGroupSchedulingPolicy {
    match (PolicyType::of(&policy), policy.gang) {
        (Some(PolicyType::Gang), Some(gang)) => PodGroupSchedulingPolicy {
            gang: Some(GangSchedulingPolicy { min_count: gang.min_count.unwrap_or(1) }),
            basic: None,
        },
        (Some(_), _) => PodGroupSchedulingPolicy { basic: Some(BasicSchedulingPolicy(empty())), gang: None },
        (None, _) => PodGroupSchedulingPolicy::default(),
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::StatefulSetSchedulingConfiguration;
    use crate::field::Path;
    use crate::gates::FeatureGates;
    use k8s_openapi::api::scheduling::v1alpha3;

    fn owner() -> Owner {
        Owner { name: "web".into(), namespace: "default".into(), uid: "u".into() }
    }

    fn claims() -> StatefulSetSchedulingConfiguration {
        StatefulSetSchedulingConfiguration {
            resource_claims: Some(vec![v1alpha3::WorkloadPodGroupResourceClaim {
                name: "shared".into(),
                resource_claim_name: Some("c".into()),
                resource_claim_template_name: None,
            }]),
            ..StatefulSetSchedulingConfiguration::default()
        }
    }

    #[test]
    fn claims_are_left_out_while_their_gate_is_closed() {
        let statefulset = StatefulSet { name: "web".into(), ..StatefulSet::default() };
        for (open, count) in [(true, Some(1)), (false, None)] {
            let gates = FeatureGates { dra_workload_resource_claims: open, ..FeatureGates::default() };
            let item = WorkloadItem::for_statefulset(&statefulset, &claims(), gates, &Path::new("s"));
            let builder = Builder::new(&item, &BuildOptions::default(), owner());
            let templates = builder.build_workload().unwrap().spec.pod_group_templates.unwrap();
            assert_eq!(templates[0].resource_claims.as_ref().map(Vec::len), count);
            let pod_group = builder.new_pod_group("web").unwrap();
            assert_eq!(pod_group.spec.resource_claims.map(|claims| claims.len()), count);
        }
    }

    #[test]
    fn an_existing_workload_gives_pod_groups_that_are_snapshots_of_its_templates() {
        let mut workload = Workload::default();
        workload.metadata.name = Some("theirs".into());
        workload.spec.pod_group_templates = Some(vec![
            PodGroupTemplate {
                name: "workers".into(),
                scheduling_policy: PodGroupSchedulingPolicy {
                    gang: Some(GangSchedulingPolicy { min_count: 9 }),
                    basic: None,
                },
                priority_class_name: Some("high".into()),
                priority: Some(7),
                ..PodGroupTemplate::default()
            },
            PodGroupTemplate { name: "odd".into(), ..PodGroupTemplate::default() },
        ]);
        let builder = Builder::from_existing_workload(&workload, owner());
        assert!(builder.validate().is_empty());
        let pod_group = builder.new_pod_group("workers").unwrap();
        assert_eq!(pod_group.spec.scheduling_policy.gang.unwrap().min_count, 9);
        assert_eq!(pod_group.spec.priority, Some(7));
        assert_eq!(pod_group.spec.workload_ref.unwrap().workload_name, "theirs");
        assert_eq!(builder.build_workload(), Err(BuildError::WorkloadExists("theirs".into())));
        assert_eq!(builder.new_pod_group("odd"), Err(BuildError::UnknownPolicy("odd".into())));
        assert!(matches!(builder.new_pod_group("none"), Err(BuildError::NoTemplate { .. })));
    }

    #[test]
    fn an_invalid_item_makes_nothing() {
        let configuration = StatefulSetSchedulingConfiguration {
            disruption_mode: Some(v1alpha3::WorkloadPodGroupDisruptionMode {
                all: Some(v1alpha3::WorkloadPodGroupAllDisruptionMode(empty())),
                single: None,
            }),
            ..StatefulSetSchedulingConfiguration::default()
        };
        let item = WorkloadItem::new(&configuration, &Path::new("s"));
        let builder = Builder::new(&item, &BuildOptions::default(), owner());
        assert!(matches!(builder.build_workload(), Err(BuildError::Invalid(_))));
        assert!(matches!(builder.new_pod_group(""), Err(BuildError::Invalid(_))));
    }
}
