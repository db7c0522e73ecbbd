//! What the controller asks of an API server, and nothing more.

use std::future::Future;

use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use serde_json::Value;
use statefulset_scheduling_core::plan::Subject;

use crate::failure::Failure;
use crate::index::Version;
use crate::object::StatefulSet;

/// An object as the API server has it, with its version.
#[derive(Clone, Debug)]
pub struct Stored<T> {
    /// Its version.
    pub version: Version,
    /// The object.
    pub object: T,
}

/// The requests that the controller makes on behalf of a StatefulSet.
pub trait Api: Send + Sync {
    /// Whether a StatefulSet has pods, active or terminal.
    fn has_pods(&self, subject: &Subject) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Whether pods of a StatefulSet that should have a group have none.
    fn has_members_without_group(&self, subject: &Subject) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// A StatefulSet, read now.
    fn statefulset(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Stored<StatefulSet>, Failure>> + Send;

    /// The Workloads of a namespace, read now.
    fn workloads(&self, namespace: &str) -> impl Future<Output = Result<Vec<Stored<Workload>>, Failure>> + Send;

    /// A Workload, read now.
    fn workload(&self, namespace: &str, name: &str) -> impl Future<Output = Result<Stored<Workload>, Failure>> + Send;

    /// A PodGroup, read now.
    fn pod_group(&self, namespace: &str, name: &str) -> impl Future<Output = Result<Stored<PodGroup>, Failure>> + Send;

    /// Creates a Workload.
    fn create_workload(&self, workload: &Workload) -> impl Future<Output = Result<Stored<Workload>, Failure>> + Send;

    /// Creates a PodGroup.
    fn create_pod_group(&self, pod_group: &PodGroup) -> impl Future<Output = Result<Stored<PodGroup>, Failure>> + Send;

    /// Changes a Workload by a JSON Patch; a test in it that fails is a conflict.
    fn patch_workload(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> impl Future<Output = Result<Stored<Workload>, Failure>> + Send;

    /// Changes a PodGroup by a JSON Patch; a test in it that fails is a conflict.
    fn patch_pod_group(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> impl Future<Output = Result<Stored<PodGroup>, Failure>> + Send;

    /// Changes a StatefulSet by a merge patch.
    fn patch_statefulset(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> impl Future<Output = Result<Stored<StatefulSet>, Failure>> + Send;
}
