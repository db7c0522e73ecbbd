//! What people do to a cluster: create, change, scale and delete.

use cluster_apiserver::Resource;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, EvictParams, ListParams, Patch, PatchParams, PostParams,
    PropagationPolicy,
};
use serde_json::{Value, json};

/// A client of one user.
#[derive(Clone)]
pub struct Client(kube::Client);

impl Client {
    /// What this client does.
    pub fn new(client: kube::Client) -> Self {
        Self(client)
    }

    /// The client below.
    pub fn kube(&self) -> &kube::Client {
        &self.0
    }

    fn api(&self, resource: Resource, namespace: &str) -> Api<DynamicObject> {
        let resource_type = ApiResource {
            group: resource.group().to_owned(),
            version: resource.version().to_owned(),
            api_version: resource.api_version(),
            kind: resource.kind().to_owned(),
            plural: resource.plural().to_owned(),
        };
        if resource.is_namespaced() {
            Api::namespaced_with(self.0.clone(), namespace, &resource_type)
        } else {
            Api::all_with(self.0.clone(), &resource_type)
        }
    }

    /// Creates an object, in the namespace that it names or in `default`.
    ///
    /// # Errors
    /// What the API server answers; or the object is none.
    pub async fn create(&self, object: Value) -> kube::Result<Value> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let of = |resource: &Resource| resource.kind() == kind && object["apiVersion"] == resource.api_version();
        let resource = Resource::all().find(of).unwrap_or(Resource::ConfigMaps);
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        let object: DynamicObject = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        value(self.api(resource, &namespace).create(&PostParams::default(), &object).await)
    }

    /// An object as it is now.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn get(&self, resource: Resource, namespace: &str, name: &str) -> kube::Result<Value> {
        value(self.api(resource, namespace).get(name).await)
    }

    /// The names of what there is, as a list with pages of ten.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn names(&self, resource: Resource, namespace: &str) -> kube::Result<Vec<String>> {
        let list = self.api(resource, namespace).list(&ListParams::default()).await?;
        Ok(list.items.iter().map(kube::ResourceExt::name_any).collect())
    }

    /// Changes an object by a merge patch.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn merge(&self, resource: Resource, namespace: &str, name: &str, patch: Value) -> kube::Result<Value> {
        value(self.api(resource, namespace).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    /// Sets the size of a StatefulSet, as `kubectl scale`.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn scale(&self, namespace: &str, name: &str, replicas: i32) -> kube::Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        let api = self.api(Resource::StatefulSets, namespace);
        api.patch_scale(name, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Evicts a pod, as a drain does.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn evict(&self, namespace: &str, pod: &str) -> kube::Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.0.clone(), namespace);
        pods.evict(pod, &EvictParams::default()).await.map(drop)
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn delete(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
        propagation: PropagationPolicy,
    ) -> kube::Result<()> {
        let options = DeleteParams { propagation_policy: Some(propagation), ..DeleteParams::default() };
        self.api(resource, namespace).delete(name, &options).await.map(drop)
    }
}

fn value(answered: kube::Result<DynamicObject>) -> kube::Result<Value> {
    answered.and_then(|object| serde_json::to_value(object).map_err(kube::Error::SerdeError))
}
