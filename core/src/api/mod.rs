//! What a user writes, where it is carried, and how it is read.
//!
//! A StatefulSet is read in two steps. [`View`] borrows the few fields that matter and skips the
//! rest without looking at it; that is all that a StatefulSet without an intent costs. Only an
//! opted-in one is then decoded into [`StatefulSet`], with an error at each field that cannot be
//! read.

mod annotation;
mod carrier;
mod configuration;
mod owner;
mod pod;
mod selector;
mod statefulset;
mod view;

pub use crate::json::UnknownFields;
pub use annotation::{AnnotationError, MAX_ANNOTATION_DEPTH, MAX_ANNOTATION_LENGTH};
pub use carrier::{Carrier, Carriers, Intent, SCHEDULING_ANNOTATION, both_carriers, carried, has_intent, intent};
pub use configuration::{StatefulSetSchedulingConfiguration, decode_configuration};
pub use owner::ControllerOwner;
pub use pod::{PodView, ordinal};
pub use selector::label_selector;
pub use statefulset::{PodManagementPolicy, PodResourceClaim, PodTemplate, StatefulSet};
pub use view::{Level, Member, View, ViewError};

/// The API group of StatefulSets.
pub const GROUP: &str = "apps";
/// The API version of StatefulSets, as in `apiVersion`.
pub const API_VERSION: &str = "apps/v1";
/// The kind of StatefulSets.
pub const KIND: &str = "StatefulSet";
/// The label on the pods of an opted-in StatefulSet, by which the admission engine selects them.
pub const MANAGED_LABEL: &str = "statefulset-scheduling.dev/managed";
/// The value of [`MANAGED_LABEL`].
pub const MANAGED_LABEL_VALUE: &str = "true";
/// The annotation by which a parent controller delegates: it names the template of the group in the
/// parent's Workload.
pub const GROUP_TEMPLATE_NAME_ANNOTATION: &str = "scheduling.k8s.io/group-template-name";
/// The annotation by which a parent controller names its CompositePodGroup.
pub const PARENT_COMPOSITE_POD_GROUP_ANNOTATION: &str = "scheduling.k8s.io/parent-compositepodgroup";
