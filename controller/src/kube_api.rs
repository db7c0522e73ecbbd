//! The API server behind a client: every request is counted, and kept within the rate; every write
//! checks the lease first.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use kube::Resource;
use kube::api::{Api as Client, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use leaky_bucket::RateLimiter;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use statefulset_scheduling_core::api::{MANAGED_LABEL, MANAGED_LABEL_VALUE};
use statefulset_scheduling_core::plan::Subject;

use crate::api::{Api, Stored};
use crate::failure::Failure;
use crate::index::version;
use crate::leader::Fence;
use crate::metrics::Metrics;
use crate::object::StatefulSet;

/// The name under which fields are managed.
pub const FIELD_MANAGER: &str = "statefulset-scheduling-controller";

/// How long an answer may take. A request that is given up may have been done: the next attempt
/// finds out.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How many pods are read at once: one is enough, unless the selector matches another's pods.
const PODS_PAGE: u32 = 10;

/// The API server behind a client.
#[derive(Clone)]
pub struct KubeApi {
    client: kube::Client,
    fence: Fence,
    limiter: Option<Arc<RateLimiter>>,
    metrics: Arc<Metrics>,
}

/// Whether a request changes anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// A kind of this controller, in a namespace.
trait Namespaced: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned {}

impl<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned> Namespaced
    for K
{
}

impl KubeApi {
    /// Requests through `client`, at most as `limiter` lets them, writing only while `fence` holds.
    pub fn new(client: kube::Client, fence: Fence, limiter: Option<RateLimiter>, metrics: Arc<Metrics>) -> Self {
        Self { client, fence, limiter: limiter.map(Arc::new), metrics }
    }

    fn namespaced<K: Namespaced>(&self, namespace: &str) -> Client<K> {
        Client::namespaced(self.client.clone(), namespace)
    }

    async fn call<K: Namespaced, T>(
        &self,
        access: Access,
        verb: &'static str,
        request: impl Future<Output = kube::Result<T>>,
        failure: fn(kube::Error) -> Failure,
    ) -> Result<T, Failure> {
        if let Some(limiter) = &self.limiter {
            limiter.acquire_one().await;
        }
        // After the wait: the lease may have been lost in it.
        if access == Access::Write && !self.fence.holds() {
            return Err(Failure::NotLeading);
        }
        let result = tokio::time::timeout(REQUEST_TIMEOUT, request).await;
        let code = match &result {
            Ok(Ok(_)) => 200,
            Ok(Err(kube::Error::Api(status))) => status.code,
            Ok(Err(_)) | Err(_) => 0,
        };
        self.metrics.request(verb, &K::plural(&()), code);
        match result {
            Ok(result) => result.map_err(failure),
            Err(_) => Err(Failure::Later { message: format!("no answer in {REQUEST_TIMEOUT:?}"), wait: None }),
        }
    }

    async fn get<K: Namespaced>(&self, namespace: &str, name: &str) -> Result<Stored<K>, Failure> {
        let client = self.namespaced::<K>(namespace);
        self.call::<K, _>(Access::Read, "get", client.get(name), Failure::from).await.map(stored)
    }

    async fn create<K: Namespaced + Serialize>(&self, object: &K) -> Result<Stored<K>, Failure> {
        let client = self.namespaced::<K>(object.meta().namespace.as_deref().unwrap_or_default());
        let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        self.call::<K, _>(Access::Write, "create", client.create(&parameters, object), Failure::from).await.map(stored)
    }

    async fn json_patch<K: Namespaced>(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Stored<K>, Failure> {
        let patch = serde_json::from_value(patch.clone())
            .map_err(|error| Failure::Terminal(format!("the patch cannot be written: {error}")))?;
        self.patch(namespace, name, &Patch::Json(patch), untested).await
    }

    async fn patch<K: Namespaced>(
        &self,
        namespace: &str,
        name: &str,
        patch: &Patch<Value>,
        failure: fn(kube::Error) -> Failure,
    ) -> Result<Stored<K>, Failure> {
        let client = self.namespaced::<K>(namespace);
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let request = client.patch(name, &parameters, patch);
        self.call::<K, _>(Access::Write, "patch", request, failure).await.map(stored)
    }
}

fn is_owned(pod: &ObjectMeta, subject: &Subject) -> bool {
    let owners = pod.owner_references.iter().flatten();
    owners.into_iter().any(|owner| owner.controller == Some(true) && owner.uid == subject.uid)
}

fn stored<K: Resource<DynamicType = ()>>(object: K) -> Stored<K> {
    Stored { version: version(object.meta().resource_version.as_deref()), object }
}

/// An API server answers a JSON Patch with a test that fails as if the patch were invalid.
fn untested(error: kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) if status.code == 422 => Failure::Conflict(status.message),
        error => error.into(),
    }
}

impl Api for KubeApi {
    async fn has_pods(&self, subject: &Subject) -> Result<bool, Failure> {
        let client = self.namespaced::<Pod>(&subject.namespace);
        let mut parameters = ListParams::default().limit(PODS_PAGE);
        parameters.label_selector.clone_from(&subject.selector);
        loop {
            let request = client.list_metadata(&parameters);
            let pods = self.call::<Pod, _>(Access::Read, "list", request, Failure::from).await?;
            if pods.items.iter().any(|pod| is_owned(&pod.metadata, subject)) {
                return Ok(true);
            }
            match pods.metadata.continue_.filter(|token| !token.is_empty()) {
                None => return Ok(false),
                Some(token) => parameters.continue_token = Some(token),
            }
        }
    }

    async fn has_members_without_group(&self, subject: &Subject) -> Result<bool, Failure> {
        let client = self.namespaced::<Pod>(&subject.namespace);
        let managed = format!("{MANAGED_LABEL}={MANAGED_LABEL_VALUE}");
        let selector = subject.selector.iter().fold(managed, |managed, selector| format!("{selector},{managed}"));
        let parameters = ListParams::default().limit(PODS_PAGE).labels(&selector);
        let request = client.list(&parameters);
        let pods = self.call::<Pod, _>(Access::Read, "list", request, Failure::from).await?;
        let without = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.scheduling_group.is_none());
        Ok(pods.items.iter().any(|pod| is_owned(&pod.metadata, subject) && without(pod)))
    }

    async fn statefulset(&self, namespace: &str, name: &str) -> Result<Stored<StatefulSet>, Failure> {
        self.get(namespace, name).await
    }

    async fn workloads(&self, namespace: &str) -> Result<Vec<Stored<Workload>>, Failure> {
        let client = self.namespaced::<Workload>(namespace);
        let parameters = ListParams::default();
        let request = client.list(&parameters);
        let list = self.call::<Workload, _>(Access::Read, "list", request, Failure::from).await?;
        Ok(list.items.into_iter().map(stored).collect())
    }

    async fn workload(&self, namespace: &str, name: &str) -> Result<Stored<Workload>, Failure> {
        self.get(namespace, name).await
    }

    async fn pod_group(&self, namespace: &str, name: &str) -> Result<Stored<PodGroup>, Failure> {
        self.get(namespace, name).await
    }

    async fn create_workload(&self, workload: &Workload) -> Result<Stored<Workload>, Failure> {
        self.create(workload).await
    }

    async fn create_pod_group(&self, pod_group: &PodGroup) -> Result<Stored<PodGroup>, Failure> {
        self.create(pod_group).await
    }

    async fn patch_workload(&self, namespace: &str, name: &str, patch: &Value) -> Result<Stored<Workload>, Failure> {
        self.json_patch(namespace, name, patch).await
    }

    async fn patch_pod_group(&self, namespace: &str, name: &str, patch: &Value) -> Result<Stored<PodGroup>, Failure> {
        self.json_patch(namespace, name, patch).await
    }

    async fn patch_statefulset(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Stored<StatefulSet>, Failure> {
        self.patch(namespace, name, &Patch::Merge(patch.clone()), Failure::from).await
    }
}
