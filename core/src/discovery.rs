//! Which Workload and which PodGroup are a StatefulSet's: found by reference, never by name.
//!
//! A Workload is found by its `spec.controllerRef`, a PodGroup by its `spec.workloadRef`. An
//! ownerReference finds nothing; it only tells whose an object is.

use k8s_openapi::api::scheduling::v1beta1 as api;
use k8s_openapi::api::scheduling::v1beta1::{CompositePodGroupTemplate, PodGroupTemplate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::api::{GROUP, KIND};
use crate::workloadbuilder::{MANAGED_BY, MANAGED_BY_ANNOTATION};

/// The controller of a workload, as a Workload refers to it: by name, not by UID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ControllerRef {
    /// The API group, without a version; empty for the core group.
    pub api_group: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
}

impl ControllerRef {
    /// The reference to a StatefulSet.
    pub fn to_statefulset(name: &str) -> Self {
        Self { api_group: GROUP.to_owned(), kind: KIND.to_owned(), name: name.to_owned() }
    }
}

impl From<&OwnerReference> for ControllerRef {
    fn from(owner: &OwnerReference) -> Self {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        Self { api_group: group.to_owned(), kind: owner.kind.clone(), name: owner.name.clone() }
    }
}

/// What of an object's metadata tells whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it is marked as made by the controller of StatefulSets.
    pub managed: bool,
    /// The UID of its controller, by ownerReference.
    pub controller_uid: Option<String>,
    /// Whether that controller is a StatefulSet.
    pub controlled_by_statefulset: bool,
}

impl From<&ObjectMeta> for Identity {
    fn from(metadata: &ObjectMeta) -> Self {
        let marks = metadata.annotations.as_ref();
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        let controller = owners.iter().find(|owner| owner.controller == Some(true));
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            managed: marks.and_then(|marks| marks.get(MANAGED_BY_ANNOTATION)).is_some_and(|by| by == MANAGED_BY),
            controller_uid: controller.map(|owner| owner.uid.clone()),
            controlled_by_statefulset: controller
                .is_some_and(|owner| owner.kind == KIND && ControllerRef::from(owner).api_group == GROUP),
        }
    }
}

/// Whose an object is, seen from a StatefulSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Made by this controller for this StatefulSet.
    Ours,
    /// Made by this controller for a StatefulSet that is gone, or for another one.
    Others,
    /// Made by somebody else: used, never changed.
    Foreign,
}

impl Identity {
    /// Whose the object is, seen from the StatefulSet with this UID.
    pub fn origin(&self, statefulset_uid: &str) -> Origin {
        match &self.controller_uid {
            Some(uid) if self.managed && uid == statefulset_uid => Origin::Ours,
            Some(_) if self.managed => Origin::Others,
            _ => Origin::Foreign,
        }
    }
}

/// What is known of a Workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Who it is.
    pub identity: Identity,
    /// Whose workload it describes.
    pub controller: Option<ControllerRef>,
    /// Its PodGroupTemplates.
    pub templates: Vec<PodGroupTemplate>,
    /// Its templates of groups of groups.
    pub composites: Vec<CompositePodGroupTemplate>,
}

impl From<api::Workload> for Workload {
    fn from(workload: api::Workload) -> Self {
        Self {
            identity: (&workload.metadata).into(),
            controller: workload.spec.controller_ref.map(|controller| ControllerRef {
                api_group: controller.api_group.unwrap_or_default(),
                kind: controller.kind,
                name: controller.name,
            }),
            templates: workload.spec.pod_group_templates.unwrap_or_default(),
            composites: workload.spec.composite_pod_group_templates.unwrap_or_default(),
        }
    }
}

impl Workload {
    /// The PodGroupTemplates of this name, at any depth.
    pub fn templates_named<'a>(&'a self, name: &'a str) -> Vec<&'a PodGroupTemplate> {
        let mut found: Vec<_> = self.templates.iter().filter(|template| template.name == name).collect();
        // A stack of one's own: the depth is whatever somebody wrote.
        let mut open: Vec<_> = self.composites.iter().collect();
        while let Some(composite) = open.pop() {
            let templates = composite.pod_group_templates.as_deref().unwrap_or_default();
            found.extend(templates.iter().filter(|template| template.name == name));
            open.extend(composite.composite_pod_group_templates.iter().flatten());
        }
        found
    }
}

/// What is known of a PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodGroup {
    /// Who it is.
    pub identity: Identity,
    /// The Workload that it was made from.
    pub workload_name: Option<String>,
    /// The template that it was made from.
    pub template_name: Option<String>,
    /// The size of its gang; none for another policy.
    pub min_count: Option<i32>,
}

impl From<api::PodGroup> for PodGroup {
    fn from(pod_group: api::PodGroup) -> Self {
        let (workload_name, template_name) =
            pod_group.spec.workload_ref.map(|reference| (reference.workload_name, reference.template_name)).unzip();
        Self {
            identity: (&pod_group.metadata).into(),
            workload_name,
            template_name,
            min_count: pod_group.spec.scheduling_policy.gang.map(|gang| gang.min_count),
        }
    }
}

/// Finds objects by their references. An implementation answers from an index, at a cost that does
/// not grow with the namespace.
pub trait Index {
    /// The Workloads of a namespace that describe the workload of `controller`.
    fn workloads_of(&self, namespace: &str, controller: &ControllerRef) -> Vec<&Workload>;

    /// The PodGroups of a namespace that were made from a Workload.
    fn pod_groups_of(&self, namespace: &str, workload_name: &str) -> Vec<&PodGroup>;
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<'a, T> {
    /// There is none.
    None,
    /// There is exactly one.
    One(&'a T),
    /// There are several: the choice is nobody's to guess.
    Several(Vec<&'a str>),
    /// One is being deleted: it is neither used nor replaced while it is there.
    Leaving(&'a str),
}

/// The Workload of a StatefulSet. One that was made for another StatefulSet of the name is none.
pub fn workload<'a>(index: &'a dyn Index, namespace: &str, name: &str, uid: &str) -> Found<'a, Workload> {
    let mut candidates = index.workloads_of(namespace, &ControllerRef::to_statefulset(name));
    candidates.retain(|workload| workload.identity.origin(uid) != Origin::Others);
    choose(&candidates, |workload| &workload.identity)
}

/// The Workload of a parent controller.
pub fn parent_workload<'a>(index: &'a dyn Index, namespace: &str, parent: &ControllerRef) -> Found<'a, Workload> {
    choose(&index.workloads_of(namespace, parent), |workload| &workload.identity)
}

/// The PodGroup that a StatefulSet has of a Workload, and, where `template_name` is given, of that
/// template: a parent's Workload may have many. One that another StatefulSet controls is none.
pub fn pod_group<'a>(
    index: &'a dyn Index,
    namespace: &str,
    workload_name: &str,
    template_name: Option<&str>,
    uid: &str,
) -> Found<'a, PodGroup> {
    let mut candidates = index.pod_groups_of(namespace, workload_name);
    candidates.retain(|pod_group| {
        let identity = &pod_group.identity;
        let anothers =
            identity.controlled_by_statefulset && identity.controller_uid.as_deref().is_some_and(|owner| owner != uid);
        let other_template = template_name.is_some_and(|name| pod_group.template_name.as_deref() != Some(name));
        !anothers && !other_template && identity.origin(uid) != Origin::Others
    });
    choose(&candidates, |pod_group| &pod_group.identity)
}

fn choose<'a, T>(candidates: &[&'a T], identity: fn(&T) -> &Identity) -> Found<'a, T> {
    if let Some(leaving) = candidates.iter().find(|candidate| identity(candidate).deleting) {
        return Found::Leaving(&identity(leaving).name);
    }
    match candidates {
        [] => Found::None,
        [one] => Found::One(one),
        several => {
            let mut names: Vec<_> = several.iter().map(|candidate| identity(candidate).name.as_str()).collect();
            names.sort_unstable();
            Found::Several(names)
        }
    }
}
