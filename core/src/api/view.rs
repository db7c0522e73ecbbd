//! A view of a StatefulSet that borrows the fields the rules need and skips the rest.

use std::borrow::Cow;

use serde::Deserializer;
use serde::de::Error as _;
use serde_json::value::RawValue;
use thiserror::Error;

use super::{
    GROUP_TEMPLATE_NAME_ANNOTATION, MANAGED_LABEL, PARENT_COMPOSITE_POD_GROUP_ANNOTATION, SCHEDULING_ANNOTATION,
};
use crate::binding::BINDING_ANNOTATION;
use crate::json::{self, Node, leads, level, read};

/// Why a JSON text cannot be viewed as a StatefulSet.
#[derive(Debug, Error)]
pub enum ViewError {
    /// It is `null`, or was never there.
    #[error("it is null")]
    Null,
    /// It is no JSON, or a level that must be an object is none.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// A member of a StatefulSet that the rules read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// `metadata.name`
    Name,
    /// `metadata.namespace`
    Namespace,
    /// `metadata.uid`
    Uid,
    /// `metadata.resourceVersion`
    ResourceVersion,
    /// `metadata.deletionTimestamp`
    DeletionTimestamp,
    /// `metadata.ownerReferences`
    OwnerReferences,
    /// The annotation by which a parent names the template of the group.
    GroupTemplateName,
    /// The annotation by which a parent names its CompositePodGroup.
    ParentCompositePodGroup,
    /// The annotation that carries the intent.
    SchedulingAnnotation,
    /// The annotation that holds the binding.
    BindingAnnotation,
    /// `spec.selector`
    Selector,
    /// `spec.replicas`
    Replicas,
    /// `spec.ordinals.start`
    OrdinalsStart,
    /// `spec.podManagementPolicy`
    PodManagementPolicy,
    /// `spec.updateStrategy.rollingUpdate.partition`
    Partition,
    /// `spec.scheduling`
    SchedulingField,
    /// The label of the pod template by which the engine selects pods.
    ManagedLabel,
    /// `spec.template.spec.priorityClassName`
    PriorityClassName,
    /// `spec.template.spec.schedulerName`
    SchedulerName,
    /// `spec.template.spec.schedulingGroup`
    SchedulingGroup,
    /// `spec.template.spec.resourceClaims`
    ResourceClaims,
    /// `status.replicas`
    StatusReplicas,
}

/// The number of [`Member`]s.
const MEMBERS: usize = 22;

/// A level of a StatefulSet of which it matters whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `metadata`
    Metadata,
    /// `metadata.annotations`
    Annotations,
    /// `spec.template`
    Template,
    /// `spec.template.metadata`
    TemplateMetadata,
    /// `spec.template.metadata.labels`
    TemplateLabels,
}

/// The number of [`Level`]s.
const LEVELS: usize = 5;

/// Everything that is read of a StatefulSet.
static STATEFULSET: &[Node] = &[
    level(
        "metadata",
        Level::Metadata as usize,
        &[
            read("name", Member::Name as usize),
            read("namespace", Member::Namespace as usize),
            read("uid", Member::Uid as usize),
            read("resourceVersion", Member::ResourceVersion as usize),
            read("deletionTimestamp", Member::DeletionTimestamp as usize),
            read("ownerReferences", Member::OwnerReferences as usize),
            level(
                "annotations",
                Level::Annotations as usize,
                &[
                    read(SCHEDULING_ANNOTATION, Member::SchedulingAnnotation as usize),
                    read(BINDING_ANNOTATION, Member::BindingAnnotation as usize),
                    read(GROUP_TEMPLATE_NAME_ANNOTATION, Member::GroupTemplateName as usize),
                    read(PARENT_COMPOSITE_POD_GROUP_ANNOTATION, Member::ParentCompositePodGroup as usize),
                ],
            ),
        ],
    ),
    leads(
        "spec",
        &[
            read("selector", Member::Selector as usize),
            read("replicas", Member::Replicas as usize),
            leads("ordinals", &[read("start", Member::OrdinalsStart as usize)]),
            read("podManagementPolicy", Member::PodManagementPolicy as usize),
            leads("updateStrategy", &[leads("rollingUpdate", &[read("partition", Member::Partition as usize)])]),
            read("scheduling", Member::SchedulingField as usize),
            level(
                "template",
                Level::Template as usize,
                &[
                    level(
                        "metadata",
                        Level::TemplateMetadata as usize,
                        &[level(
                            "labels",
                            Level::TemplateLabels as usize,
                            &[read(MANAGED_LABEL, Member::ManagedLabel as usize)],
                        )],
                    ),
                    leads(
                        "spec",
                        &[
                            read("priorityClassName", Member::PriorityClassName as usize),
                            read("schedulerName", Member::SchedulerName as usize),
                            read("schedulingGroup", Member::SchedulingGroup as usize),
                            read("resourceClaims", Member::ResourceClaims as usize),
                        ],
                    ),
                ],
            ),
        ],
    ),
    leads("status", &[read("replicas", Member::StatusReplicas as usize)]),
];

/// A view of a StatefulSet: the JSON text of each [`Member`] that is there. `null` means absent.
#[derive(Clone, Debug, Default)]
pub struct View<'a> {
    members: [Option<&'a RawValue>; MEMBERS],
    levels: [bool; LEVELS],
}

impl<'a> View<'a> {
    /// Views `object`, the JSON text of a StatefulSet.
    ///
    /// A member that is there twice is no error, the last one counting, as for an API server: what
    /// did not opt in must never fail here. Nor is a member of the wrong type, until it is decoded.
    ///
    /// # Errors
    /// The text is absent or null, is no JSON, or is no object where it must be one.
    pub fn new(object: Option<&'a RawValue>) -> Result<Self, ViewError> {
        let object = object.filter(|object| object.get() != "null").ok_or(ViewError::Null)?;
        let mut view = Self::default();
        json::project(object.get(), STATEFULSET, &mut view.members, &mut view.levels)?;
        Ok(view)
    }

    /// Views the StatefulSet that is being read from a JSON text, in one pass.
    ///
    /// # Errors
    /// As of [`View::new`], or the text cannot be borrowed from.
    pub fn read<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let mut view = Self::default();
        let is_there = json::project_from(deserializer, STATEFULSET, &mut view.members, &mut view.levels)?;
        if is_there { Ok(view) } else { Err(D::Error::custom(ViewError::Null)) }
    }

    /// The text of a member that is a string; none where it is absent or none.
    pub fn text(&self, member: Member) -> Option<Cow<'a, str>> {
        self.get(member).and_then(json::text)
    }

    /// The JSON text of a member, none where it is absent.
    pub fn get(&self, member: Member) -> Option<&'a RawValue> {
        self.members.get(member as usize).copied().flatten()
    }

    /// Whether a level is there.
    pub fn has(&self, level: Level) -> bool {
        self.levels.get(level as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_view_borrows_what_it_needs_and_skips_the_rest() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let json = format!(
            r#"{{"x": {deep}, "metadata": {{"name": "web", "managedFields": {deep},
                "annotations": {{"a": "b", "statefulset-scheduling.dev/scheduling": "{{}}"}}}},
                "spec": {{"replicas": 3, "template": {{"spec": {{"containers": {deep}, "schedulerName": "s"}}}}}}}}"#
        );
        // A raw value is itself checked without recursion.
        let view = View::new(Some(raw(&json))).unwrap();
        let text = |member| view.get(member).map(RawValue::get);
        assert_eq!(text(Member::SchedulingAnnotation), Some(r#""{}""#));
        assert_eq!(text(Member::Replicas), Some("3"));
        assert_eq!(text(Member::SchedulerName), Some(r#""s""#));
        assert_eq!(text(Member::SchedulingField), None);
        assert!(view.has(Level::Annotations) && view.has(Level::Template) && !view.has(Level::TemplateMetadata));
    }

    #[test]
    fn a_view_that_is_read_on_the_way_is_the_same() {
        let json = r#"{"metadata": {"name": "web", "labels": {"a": [1, {"b": null}]}},
                       "spec": {"replicas": 3, "template": null, "scheduling": {"x": [{}]}}}"#;
        let mut reader = serde_json::Deserializer::from_str(json);
        let read = View::read(&mut reader).unwrap();
        assert!(reader.end().is_ok());
        let viewed = View::new(Some(raw(json))).unwrap();
        let texts = |view: &View<'_>| view.members.map(|member| member.map(|raw| raw.get().to_owned()));
        assert_eq!((texts(&read), read.levels), (texts(&viewed), viewed.levels));
        for json in ["null", "[]", "3", r#"{"spec": "x"}"#, r#"{"spec""#] {
            assert!(View::read(&mut serde_json::Deserializer::from_str(json)).is_err(), "{json}");
        }
    }

    #[test]
    fn keys_may_be_written_with_escapes_and_the_last_of_two_counts() {
        let json = r#"{"spec": {"replicas": 1, "scheduling": {}, "template": {}},
                       "sp\u0065c": {"\u0072eplicas": 2, "replicas": 3}}"#;
        let view = View::new(Some(raw(json))).unwrap();
        assert_eq!(view.get(Member::Replicas).unwrap().get(), "3");
        assert!(view.get(Member::SchedulingField).is_none() && !view.has(Level::Template));
    }

    #[test]
    fn null_means_absent_at_every_level() {
        for json in [
            "{}",
            r#"{"metadata": null, "spec": null}"#,
            r#"{"metadata": {"annotations": null}, "spec": {"scheduling": null, "template": null}}"#,
            r#"{"metadata": {"annotations": {"statefulset-scheduling.dev/scheduling": null}}}"#,
            r#"{"spec": {"template": {"metadata": {"labels": {"statefulset-scheduling.dev/managed": null}}}}}"#,
        ] {
            let view = View::new(Some(raw(json))).unwrap();
            for member in [Member::SchedulingAnnotation, Member::SchedulingField, Member::ManagedLabel] {
                assert!(view.get(member).is_none(), "{json}");
            }
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert!(matches!(View::new(None), Err(ViewError::Null)));
        assert!(matches!(View::new(Some(raw("null"))), Err(ViewError::Null)));
        for json in ["3", r#""x""#, "[]", r#"{"spec": 3}"#, r#"{"metadata": []}"#, r#"{"spec": {"template": "x"}}"#] {
            assert!(matches!(View::new(Some(raw(json))), Err(ViewError::Json(_))), "{json}");
        }
    }
}
