//! What is known of a StatefulSet that opted in.

use serde_json::Value;

use crate::api::{self, Carriers, ControllerOwner, Intent, MANAGED_LABEL_VALUE, Member, StatefulSet, View};
use crate::discovery::ControllerRef;
use crate::field::ErrorList;

/// The controller that owns a StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// How a Workload refers to it.
    pub reference: ControllerRef,
}

/// A StatefulSet that opted in, as far as the plan needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.uid`
    pub uid: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// What of its spec matters; its defaults where it cannot be read.
    pub spec: StatefulSet,
    /// The intent, or why it cannot be read.
    pub intent: Result<Intent, ErrorList>,
    /// The selector of its pods, as in a query; none where it cannot be read.
    pub selector: Option<String>,
    /// The controller that owns it.
    pub parent: Option<Parent>,
    /// The template that a parent names.
    pub group_template_name: Option<String>,
    /// The CompositePodGroup that a parent names.
    pub parent_composite_pod_group: Option<String>,
    /// Whether its pods carry the label by which the policy selects them.
    pub labelled: bool,
    /// The text of the binding that it carries.
    pub binding: Option<String>,
    /// Whether its status tells of pods.
    pub has_members: bool,
}

impl Subject {
    /// Reads a StatefulSet; none where it did not opt in.
    pub fn new(view: &View<'_>, carriers: Carriers) -> Option<Self> {
        let intent = match api::intent(view, carriers) {
            Ok(None) => return None,
            Ok(Some(intent)) => Ok(intent),
            Err(errors) => Err(errors),
        };
        let text = |member| view.text(member).map(std::borrow::Cow::into_owned);
        let name = text(Member::Name).unwrap_or_default();
        let namespace = text(Member::Namespace).unwrap_or_default();
        let uid = text(Member::Uid).unwrap_or_default();
        let (spec, intent) = match StatefulSet::decode(view) {
            Ok(spec) => (spec, intent),
            Err(errors) => {
                let named = StatefulSet {
                    name: name.clone(),
                    namespace: namespace.clone(),
                    uid: uid.clone(),
                    ..StatefulSet::default()
                };
                (named, Err(errors))
            }
        };
        Some(Self {
            deleting: view.get(Member::DeletionTimestamp).is_some(),
            selector: view
                .get(Member::Selector)
                .and_then(|raw| serde_json::from_str(raw.get()).ok())
                .and_then(|selector: Value| api::label_selector(&selector)),
            parent: parent(view),
            group_template_name: text(Member::GroupTemplateName).filter(|name| !name.is_empty()),
            parent_composite_pod_group: text(Member::ParentCompositePodGroup).filter(|name| !name.is_empty()),
            labelled: text(Member::ManagedLabel).is_some_and(|value| value == MANAGED_LABEL_VALUE),
            binding: text(Member::BindingAnnotation),
            has_members: view.get(Member::StatusReplicas).is_some_and(|replicas| replicas.get() != "0"),
            name,
            namespace,
            uid,
            spec,
            intent,
        })
    }
}

/// The controller among the owners.
fn parent(view: &View<'_>) -> Option<Parent> {
    let owner = ControllerOwner::find(view.get(Member::OwnerReferences))?;
    let reference = ControllerRef { api_group: owner.api_group, kind: owner.kind, name: owner.name };
    Some(Parent { reference })
}
