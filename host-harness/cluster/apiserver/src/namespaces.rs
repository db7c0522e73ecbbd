//! The controller that empties namespaces which are being deleted.
//!
//! Stands for the namespace controller of kube-controller-manager: it deletes each collection of the
//! namespace, as `system:serviceaccount:kube-system:namespace-controller`, waits until nothing is left, and
//! then takes the namespace's own finalizer away. Left out: the conditions that tell what is still there, and
//! the estimate of how long pods take; it looks again at a fixed interval.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::discovery::{Discovery, Scope, verbs};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tracing::debug;

/// The user that the controller is.
pub const USER: &str = "system:serviceaccount:kube-system:namespace-controller";

/// Runs until it is dropped; `client` is [`USER`]'s. What is left is looked at every `interval`.
pub async fn run(client: Client, interval: Duration) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut events = pin!(watcher(namespaces, watcher::Config::default()));
    let mut going: BTreeSet<String> = BTreeSet::new();
    loop {
        let rest =
            async { if going.is_empty() { std::future::pending().await } else { tokio::time::sleep(interval).await } };
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(watcher::Event::Apply(namespace) | watcher::Event::InitApply(namespace))) => {
                    if namespace.metadata.deletion_timestamp.is_some() {
                        going.insert(namespace.name_any());
                    }
                }
                Some(Ok(watcher::Event::Delete(namespace))) => drop(going.remove(&namespace.name_any())),
                Some(Ok(_)) => {}
                // The watcher tries again; without a pause it would do nothing else.
                Some(Err(error)) => {
                    debug!("watching namespaces: {error}");
                    tokio::time::sleep(interval).await;
                }
                None => return,
            },
            () = rest => {}
        }
        for name in going.clone() {
            match empty(&client, &name).await {
                Ok(true) => drop(going.remove(&name)),
                Ok(false) => {}
                Err(error) => debug!("emptying namespace {name}: {error}"),
            }
        }
    }
}

/// Deletes what is in a namespace, and its finalizer if there was nothing. Whether it is done.
async fn empty(client: &Client, name: &str) -> kube::Result<bool> {
    let mut left = 0;
    for resource in collections(client).await? {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), name, &resource);
        let listed = api.list_metadata(&ListParams::default().limit(1)).await?;
        let items: Vec<PartialObjectMeta<DynamicObject>> = listed.items;
        if items.is_empty() {
            continue;
        }
        api.delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
        left += api.list_metadata(&ListParams::default().limit(1)).await?.items.len();
    }
    if left > 0 {
        return Ok(false);
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let Some(mut namespace) = namespaces.get_opt(name).await? else { return Ok(true) };
    if let Some(spec) = &mut namespace.spec {
        spec.finalizers = None;
    }
    namespaces.replace_subresource("finalize", name, &PostParams::default(), &namespace).await?;
    Ok(true)
}

/// The namespaced resources that can be deleted as collections, each once.
async fn collections(client: &Client) -> kube::Result<Vec<ApiResource>> {
    let discovery = Discovery::new(client.clone()).run().await?;
    let mut found: Vec<ApiResource> = Vec::new();
    for group in discovery.groups() {
        for version in group.versions() {
            for (resource, capabilities) in group.versioned_resources(version) {
                let known = found.iter().any(|known| known.group == resource.group && known.kind == resource.kind);
                // The same objects as the core group's.
                let is_view = resource.group == "events.k8s.io";
                let is_namespaced = matches!(capabilities.scope, Scope::Namespaced);
                if is_namespaced && !known && !is_view && capabilities.supports_operation(verbs::DELETE_COLLECTION) {
                    found.push(resource);
                }
            }
        }
    }
    Ok(found)
}
