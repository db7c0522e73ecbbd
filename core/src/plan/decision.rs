//! What a plan comes to.

use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use serde_json::{Value, json};

use crate::binding::BINDING_ANNOTATION;
use crate::discovery::Identity;
use crate::gates::FeatureGates;
use crate::workloadbuilder::PolicyType;

/// How the controller behaves in a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Which features are open.
    pub gates: FeatureGates,
    /// Whether pods get an ownerReference to their PodGroup, which then is deleted in the foreground.
    pub pod_group_owner_reference: bool,
}

/// What the API server has been asked, beyond what the index knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Whether the StatefulSet has pods, active or terminal.
    pub has_pods: Option<bool>,
    /// Whether an object that was made for the StatefulSet went while the StatefulSet seemed to stay.
    pub objects_went: bool,
    /// Whether the StatefulSet is still there, read after its object went.
    pub is_there: Option<bool>,
    /// Whether the parent's Workloads were read after the StatefulSet was.
    pub parent_is_fresh: bool,
    /// Whether the pods of a bound StatefulSet are to be looked at: once, for a group just made.
    pub look_at_members: bool,
    /// Whether pods of the bound StatefulSet have no group.
    pub members_without_group: Option<bool>,
}

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing is to be done.
    Rest,
    /// Ask whether the StatefulSet has pods, and plan again.
    AskPods,
    /// Read the StatefulSet, and plan again.
    AskStatefulSet,
    /// Read the Workloads of the StatefulSet's parent, and plan again.
    AskParent,
    /// Ask whether pods of the StatefulSet have no group, and plan again.
    AskMembers,
    /// Create the Workload.
    CreateWorkload(Box<Workload>),
    /// Create the PodGroup.
    CreatePodGroup(Box<PodGroup>),
    /// Change the gang's size in the Workload's template.
    SetWorkloadMinCount(MinCountPatch),
    /// Change the gang's size in the PodGroup.
    SetPodGroupMinCount(MinCountPatch),
    /// Write the binding, or remove it.
    PublishBinding(Option<String>),
}

/// Whether a step changes anything in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It reads, or does nothing.
    None,
    /// It writes.
    Write,
}

impl Step {
    /// Whether the step changes anything in the cluster.
    pub fn change(&self) -> Change {
        match self {
            Self::Rest | Self::AskPods | Self::AskStatefulSet | Self::AskParent | Self::AskMembers => Change::None,
            _ => Change::Write,
        }
    }

    /// The event that tells of the step's success, where one does.
    pub fn success(&self) -> Option<Report> {
        match self {
            Self::CreateWorkload(workload) => {
                let name = workload.metadata.name.as_deref().unwrap_or_default();
                Some(Report { reason: Reason::WorkloadCreated, message: format!("created the Workload {name}") })
            }
            Self::CreatePodGroup(pod_group) => {
                let name = pod_group.metadata.name.as_deref().unwrap_or_default();
                Some(Report { reason: Reason::PodGroupCreated, message: format!("created the PodGroup {name}") })
            }
            _ => None,
        }
    }
}

/// A change of a gang's size, as a JSON Patch that fails if anything is not as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinCountPatch {
    /// The object's name.
    pub name: String,
    /// The size it has.
    pub from: i32,
    /// The size it gets.
    pub to: i32,
    tests: Vec<(String, Value)>,
    path: &'static str,
}

impl MinCountPatch {
    pub(super) fn workload(identity: &Identity, template_name: &str, from: i32, to: i32) -> Self {
        let name = ("/spec/podGroupTemplates/0/name".to_owned(), template_name.into());
        Self::new(identity, from, to, "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount", Some(name))
    }

    pub(super) fn pod_group(identity: &Identity, from: i32, to: i32) -> Self {
        Self::new(identity, from, to, "/spec/schedulingPolicy/gang/minCount", None)
    }

    fn new(identity: &Identity, from: i32, to: i32, path: &'static str, also: Option<(String, Value)>) -> Self {
        let mut tests = vec![("/metadata/uid".to_owned(), Value::from(identity.uid.as_str()))];
        tests.extend(also);
        tests.push((path.to_owned(), from.into()));
        Self { name: identity.name.clone(), from, to, tests, path }
    }

    /// The JSON Patch: tests of the UID, the template's name and the old size, then the new size.
    pub fn json_patch(&self) -> Value {
        let tests = self.tests.iter().map(|(path, value)| json!({"op": "test", "path": path, "value": value}));
        let replace = json!({"op": "replace", "path": self.path, "value": self.to});
        tests.chain([replace]).collect()
    }
}

/// The merge patch that writes or removes the binding of the StatefulSet with this UID. A
/// StatefulSet that was made anew under the same name has another, and the server refuses the patch.
pub fn binding_patch(uid: &str, binding: Option<&str>) -> Value {
    json!({"metadata": {"uid": uid, "annotations": {BINDING_ANNOTATION: binding}}})
}

/// Why an event is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The Workload was created.
    WorkloadCreated,
    /// The PodGroup was created.
    PodGroupCreated,
    /// The Workload or the PodGroup could not be created.
    WorkloadCreationFailed,
    /// The Workload, the PodGroup or the binding could not be changed.
    WorkloadUpdateFailed,
    /// Several Workloads refer to the StatefulSet.
    AmbiguousWorkload,
    /// Several PodGroups are made from its Workload.
    AmbiguousPodGroup,
    /// The Workload has a shape that a StatefulSet cannot use.
    UnusableWorkload,
    /// The parent's Workload, or the template in it, cannot be told.
    UnresolvedParent,
    /// A template is named, but there is no parent.
    DelegationWithoutOwner,
    /// There are pods, and no group.
    PodsPredateOptIn,
    /// The pod template lacks the label.
    TemplateNotLabelled,
    /// Pods of a bound StatefulSet have no group: the cluster's feature gate is off.
    MembersWithoutGroup,
}

impl Reason {
    /// The reason as the event has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WorkloadCreated => "WorkloadCreated",
            Self::PodGroupCreated => "PodGroupCreated",
            Self::WorkloadCreationFailed => "WorkloadCreationFailed",
            Self::WorkloadUpdateFailed => "WorkloadUpdateFailed",
            Self::AmbiguousWorkload => "AmbiguousWorkload",
            Self::AmbiguousPodGroup => "AmbiguousPodGroup",
            Self::UnusableWorkload => "UnusableWorkload",
            Self::UnresolvedParent => "UnresolvedParent",
            Self::DelegationWithoutOwner => "DelegationWithoutOwner",
            Self::PodsPredateOptIn => "PodsPredateOptIn",
            Self::TemplateNotLabelled => "TemplateNotLabelled",
            Self::MembersWithoutGroup => "MembersWithoutGroup",
        }
    }

    /// Whether the event is a warning.
    pub fn is_warning(self) -> bool {
        !matches!(self, Self::WorkloadCreated | Self::PodGroupCreated)
    }
}

/// An event on the StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// Why.
    pub reason: Reason,
    /// What happened, and what to do about it.
    pub message: String,
}

/// What to do next, and what to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The next step.
    pub step: Step,
    /// The events; they hold for as long as the decision stays the same.
    pub reports: Vec<Report>,
    /// The policy of the group, once the StatefulSet is bound to it.
    pub policy: Option<PolicyType>,
}

impl Decision {
    pub(super) fn rest() -> Self {
        Self::step(Step::Rest)
    }

    pub(super) fn step(step: Step) -> Self {
        Self { step, reports: Vec::new(), policy: None }
    }

    pub(super) fn report(mut self, reason: Reason, message: String) -> Self {
        self.reports.push(Report { reason, message });
        self
    }

    pub(super) fn bound(self, policy: PolicyType) -> Self {
        Self { policy: Some(policy), ..self }
    }
}
