//! What the controller does next about one StatefulSet.
//!
//! [`plan`] is pure and total. It names at most one write; the answer to that write goes into the
//! index, and the plan is made anew. So there is no state between two writes, and a crash there is
//! the same as a fresh start.

mod decision;
mod subject;

pub use decision::{Change, Decision, Known, MinCountPatch, Reason, Report, Settings, Step, binding_patch};
pub use subject::{Parent, Subject};

use k8s_openapi::api::scheduling::v1beta1::{GangSchedulingPolicy, PodGroupTemplate};

use crate::binding::{Binding, Fallback, PodGroupBinding};
use crate::discovery::{self, Found, Index, Origin, PodGroup, Workload};
use crate::workloadbuilder::{BuildOptions, Builder, Owner, PolicyType, WorkloadItem, workload_reference};
use crate::{names, validation};

/// The finalizer by which a PodGroup is deleted in the foreground, whoever deletes it.
const FOREGROUND_DELETION: &str = "foregroundDeletion";

/// Decides what to do next about a StatefulSet that opted in.
///
/// `known` is what the API server has been asked for this decision; where more must be asked, that
/// is the next step.
pub fn plan(subject: &Subject, index: &dyn Index, known: Known, settings: &Settings) -> Decision {
    if !settings.gates.workload_with_stateful_set || subject.deleting {
        return Decision::rest();
    }
    if let Err(errors) = &subject.intent {
        return Decision::rest().report(Reason::WorkloadCreationFailed, errors.to_string());
    }
    let planner = Planner { subject, index, known, settings };
    let decision = match (&subject.group_template_name, &subject.parent) {
        (Some(template), Some(parent)) => planner.delegated(template, parent),
        (Some(template), None) => planner.managed().report(Reason::DelegationWithoutOwner, format!(
            "the annotation {} names the template {template}, but the StatefulSet has no controller that could own it; \
             it gets a Workload of its own",
            crate::api::GROUP_TEMPLATE_NAME_ANNOTATION
        )),
        (None, _) => planner.managed(),
    };
    if subject.labelled {
        return decision;
    }
    decision.report(
        Reason::TemplateNotLabelled,
        format!(
            "the pod template lacks the label {}={}, which the policy sets when a StatefulSet is created; its pods do not \
             join the group. Re-create the StatefulSet, or set the label, which starts a rollout",
            crate::api::MANAGED_LABEL,
            crate::api::MANAGED_LABEL_VALUE
        ),
    )
}

/// The gang of a template. With both members of the union set, basic wins.
fn gang(template: &PodGroupTemplate) -> Option<&GangSchedulingPolicy> {
    template.scheduling_policy.gang.as_ref().filter(|_| template.scheduling_policy.basic.is_none())
}

struct Planner<'a> {
    subject: &'a Subject,
    index: &'a dyn Index,
    known: Known,
    settings: &'a Settings,
}

/// A Workload and the one template of it that counts.
struct Source<'a> {
    workload: &'a Workload,
    template: &'a PodGroupTemplate,
    /// The parent that delegated, none for the StatefulSet's own Workload.
    delegated: bool,
}

impl Planner<'_> {
    /// The Workload describes this StatefulSet and nothing else.
    fn managed(&self) -> Decision {
        let subject = self.subject;
        let workload = match discovery::workload(self.index, &subject.namespace, &subject.name, &subject.uid) {
            Found::None => return self.create_workload(),
            Found::Leaving(_) => return Decision::rest(),
            Found::Several(names) => {
                return self.fall_back(
                    Reason::AmbiguousWorkload,
                    format!("the Workloads {} all refer to this StatefulSet; delete all but one", names.join(", ")),
                );
            }
            Found::One(workload) => workload,
        };
        let [template] = workload.templates.as_slice() else {
            return self.fall_back(
                Reason::UnusableWorkload,
                format!(
                    "the Workload {} has {} podGroupTemplates; a StatefulSet is one group and needs exactly 1",
                    workload.identity.name,
                    workload.templates.len()
                ),
            );
        };
        if let (Origin::Ours, Some(gang)) = (workload.identity.origin(&subject.uid), gang(template)) {
            let size = subject.spec.gang_size();
            if gang.min_count != size {
                return Decision::step(Step::SetWorkloadMinCount(MinCountPatch::workload(
                    &workload.identity,
                    &template.name,
                    gang.min_count,
                    size,
                )));
            }
        }
        self.pod_group(&Source { workload, template, delegated: false })
    }

    /// The Workload is a parent's, and one template in it is this StatefulSet's.
    fn delegated(&self, template_name: &str, parent: &Parent) -> Decision {
        let subject = self.subject;
        let unresolved = |what: String| {
            if self.known.parent_is_fresh {
                self.fall_back(Reason::UnresolvedParent, what)
            } else {
                Decision::step(Step::AskParent)
            }
        };
        let owner = &parent.reference;
        let workload = match discovery::parent_workload(self.index, &subject.namespace, owner) {
            Found::One(workload) => workload,
            Found::Leaving(_) => return Decision::rest(),
            Found::None => {
                return unresolved(format!("no Workload refers to the parent {} {}", owner.kind, owner.name));
            }
            Found::Several(names) => {
                return unresolved(format!(
                    "the Workloads {} all refer to the parent {} {}",
                    names.join(", "),
                    owner.kind,
                    owner.name
                ));
            }
        };
        match workload.templates_named(template_name).as_slice() {
            [template] => self.pod_group(&Source { workload, template, delegated: true }),
            templates => unresolved(format!(
                "the parent's Workload {} has {} podGroupTemplates named {template_name}",
                workload.identity.name,
                templates.len()
            )),
        }
    }

    fn create_workload(&self) -> Decision {
        // One that was made from our own Workload is met again once that is made anew.
        let own = names::workload_name(&self.subject.name, &self.subject.uid);
        if let Some(decision) = self.unless_stranded(&own) {
            return decision;
        }
        if let Some(decision) = self.unless_without_pods() {
            return decision;
        }
        let subject = self.subject;
        let Ok(intent) = &subject.intent else { return Decision::rest() };
        let path = intent.carrier.path();
        let report = validation::validate_create(&subject.spec, &intent.configuration, &path);
        if !report.is_valid() {
            return Decision::rest().report(Reason::WorkloadCreationFailed, report.into_errors().to_string());
        }
        let item = WorkloadItem::for_statefulset(&subject.spec, &intent.configuration, self.settings.gates, &path);
        let builder = Builder::new(&item, &BuildOptions::default(), Owner::from(&subject.spec));
        match builder.build_workload() {
            Ok(workload) => Decision::step(Step::CreateWorkload(Box::new(workload))),
            Err(error) => Decision::rest().report(Reason::WorkloadCreationFailed, error.to_string()),
        }
    }

    fn pod_group(&self, source: &Source<'_>) -> Decision {
        let subject = self.subject;
        let policy = &source.template.scheduling_policy;
        if policy.basic.is_none() && policy.gang.is_none() {
            return self.fall_back(
                Reason::UnusableWorkload,
                format!(
                    "the podGroupTemplate {} of the Workload {} has a policy that is neither basic nor gang",
                    source.template.name, source.workload.identity.name
                ),
            );
        }
        let template_name = source.delegated.then_some(source.template.name.as_str());
        let name = &source.workload.identity.name;
        match discovery::pod_group(self.index, &subject.namespace, name, template_name, &subject.uid) {
            Found::None => self.create_pod_group(source),
            // Its pods are held until it is gone.
            Found::Leaving(_) => self.publish(None),
            Found::Several(names) => self.fall_back(
                Reason::AmbiguousPodGroup,
                format!("the PodGroups {} are all made from the Workload {name}; delete all but one", names.join(", ")),
            ),
            Found::One(pod_group) => self.keep(source, pod_group),
        }
    }

    fn create_pod_group(&self, source: &Source<'_>) -> Decision {
        if let Some(decision) = self.unless_stranded(&source.workload.identity.name) {
            return decision;
        }
        if let Some(decision) = self.unless_without_pods() {
            return decision;
        }
        let subject = self.subject;
        let identity = &source.workload.identity;
        let builder =
            Builder::from_templates(&identity.name, vec![source.template.clone()], Owner::from(&subject.spec));
        let mut pod_group = match builder.new_pod_group(&source.template.name) {
            Ok(pod_group) => pod_group,
            Err(error) => return Decision::rest().report(Reason::WorkloadCreationFailed, error.to_string()),
        };
        if source.delegated {
            let name =
                names::delegated_pod_group_name(&identity.name, &source.template.name, &subject.name, &subject.uid);
            pod_group.metadata.name = Some(name);
            pod_group.spec.parent_composite_pod_group_name.clone_from(&subject.parent_composite_pod_group);
        }
        if identity.origin(&subject.uid) == Origin::Ours {
            // Only here: a Workload that outlives the StatefulSet would keep the PodGroup for ever.
            let references = pod_group.metadata.owner_references.get_or_insert_default();
            references.push(workload_reference(&identity.name, &identity.uid));
        }
        if self.settings.pod_group_owner_reference {
            pod_group.metadata.finalizers = Some(vec![FOREGROUND_DELETION.to_owned()]);
        }
        Decision::step(Step::CreatePodGroup(Box::new(pod_group)))
    }

    /// The PodGroup is there: its size follows the template's, and then the binding follows it.
    fn keep(&self, source: &Source<'_>, pod_group: &PodGroup) -> Decision {
        let subject = self.subject;
        let ours = pod_group.identity.origin(&subject.uid) == Origin::Ours;
        let mut replicas = None;
        if let (true, Some(gang), Some(size)) = (ours, gang(source.template), pod_group.min_count) {
            if gang.min_count != size {
                return Decision::step(Step::SetPodGroupMinCount(MinCountPatch::pod_group(
                    &pod_group.identity,
                    size,
                    gang.min_count,
                )));
            }
            replicas = Some(subject.spec.replicas.unwrap_or(1));
        }
        let PodGroup { identity, .. } = pod_group;
        let decision = self.publish(Some(&Binding::PodGroup(PodGroupBinding {
            name: identity.name.clone(),
            uid: identity.uid.clone(),
            replicas,
        })));
        let policy = gang(source.template).map_or(PolicyType::Basic, |_| PolicyType::Gang);
        self.look_at_members(decision.bound(policy))
    }

    /// Pods that were stamped and yet have no group: the API server dropped it.
    fn look_at_members(&self, decision: Decision) -> Decision {
        let at_rest = decision.step == Step::Rest && self.subject.has_members && self.subject.labelled;
        match self.known.members_without_group {
            Some(true) => decision.report(
                Reason::MembersWithoutGroup,
                "pods of this StatefulSet have no spec.schedulingGroup: the API server drops it while the feature gate \
                 GenericWorkload is off, and they are scheduled one by one"
                    .to_owned(),
            ),
            None if at_rest && self.known.look_at_members => Decision { step: Step::AskMembers, ..decision },
            _ => decision,
        }
    }

    /// Nothing is made while there is a PodGroup of ours that was made of another Workload: it can be
    /// neither moved nor, by this controller, deleted.
    fn unless_stranded(&self, workload_name: &str) -> Option<Decision> {
        let subject = self.subject;
        let stranded = discovery::stranded(self.index, &subject.namespace, workload_name, &subject.uid)?;
        if stranded.identity.deleting {
            return Some(self.publish(None));
        }
        Some(self.fall_back(
            Reason::AmbiguousPodGroup,
            format!(
                "the PodGroup {} was made from the Workload {}, which is not this StatefulSet's any more; delete the \
                 PodGroup to get another one",
                stranded.identity.name,
                stranded.workload_name.as_deref().unwrap_or_default()
            ),
        ))
    }

    /// Objects are made only while there are no pods: a pod can never join a group later.
    fn unless_without_pods(&self) -> Option<Decision> {
        if let Some(decision) = self.unless_gone() {
            return Some(decision);
        }
        match self.known.has_pods {
            Some(false) => None,
            None => Some(Decision::step(Step::AskPods)),
            Some(true) => Some(self.fall_back(
                Reason::PodsPredateOptIn,
                "the StatefulSet has pods and no group to put them in; scale it to zero and back to get one".to_owned(),
            )),
        }
    }

    /// The objects of a StatefulSet that is gone go after it. Where the watch of StatefulSets is behind the one
    /// of its objects, they would be made again and again for nobody.
    fn unless_gone(&self) -> Option<Decision> {
        match (self.known.objects_went, self.known.is_there) {
            (false, _) | (true, Some(true)) => None,
            (true, None) => Some(Decision::step(Step::AskStatefulSet)),
            (true, Some(false)) => Some(Decision::rest()),
        }
    }

    /// Pods are admitted without a group, and the binding says why.
    fn fall_back(&self, reason: Reason, message: String) -> Decision {
        let fallback = Fallback { fallback: reason.as_str().to_owned() };
        self.publish(Some(&Binding::Fallback(fallback))).report(reason, message)
    }

    fn publish(&self, binding: Option<&Binding>) -> Decision {
        let text = binding.map(Binding::print);
        if text == self.subject.binding { Decision::rest() } else { Decision::step(Step::PublishBinding(text)) }
    }
}

#[cfg(test)]
mod tests;
