//! The watches that feed the index, and the queue of what they concern.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use statefulset_scheduling_core::api::Carriers;
use tokio::sync::watch;

use crate::index::{Concerned, Index, Key, Kind, Version, version};
use crate::object::StatefulSet;
use crate::queue::Queue;

/// How many objects are read at once when a kind is listed: a page of large StatefulSets is held in
/// memory, twice, while it is read.
const PAGE: u32 = 100;

/// Feeds an index and a queue.
#[derive(Clone)]
pub struct Observer {
    index: Arc<Mutex<Index>>,
    queue: Arc<Queue>,
    carriers: Carriers,
    synced: Arc<watch::Sender<HashSet<Kind>>>,
}

/// A kind that is watched.
trait Watched: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static {
    const KIND: Kind;

    /// Puts an object into the index.
    fn apply(self, observer: &Observer, key: Key, version: Version) -> Concerned;

    /// Takes it out.
    fn delete(observer: &Observer, key: &Key, version: Version) -> Concerned;
}

impl Watched for StatefulSet {
    const KIND: Kind = Kind::StatefulSet;

    fn apply(self, observer: &Observer, key: Key, version: Version) -> Concerned {
        let subject = self.subject(observer.carriers);
        observer.index().apply_subject(key, version, subject)
    }

    fn delete(observer: &Observer, key: &Key, version: Version) -> Concerned {
        observer.index().remove_subject(key, version)
    }
}

impl Watched for Workload {
    const KIND: Kind = Kind::Workload;

    fn apply(self, observer: &Observer, key: Key, version: Version) -> Concerned {
        observer.index().apply_workload(key, version, self.into())
    }

    fn delete(observer: &Observer, key: &Key, version: Version) -> Concerned {
        observer.index().remove_workload(key, version)
    }
}

impl Watched for PodGroup {
    const KIND: Kind = Kind::PodGroup;

    fn apply(self, observer: &Observer, key: Key, version: Version) -> Concerned {
        observer.index().apply_pod_group(key, version, self.into())
    }

    fn delete(observer: &Observer, key: &Key, version: Version) -> Concerned {
        observer.index().remove_pod_group(key, version)
    }
}

impl Observer {
    /// An observer that reads intents from `carriers`.
    pub fn new(index: Arc<Mutex<Index>>, queue: Arc<Queue>, carriers: Carriers) -> Self {
        Self { index, queue, carriers, synced: Arc::new(watch::Sender::default()) }
    }

    /// Watches all kinds, in one namespace or in all, until it is dropped.
    pub async fn watch(&self, client: kube::Client, namespace: Option<&str>) {
        tokio::join!(
            self.run::<StatefulSet>(api(&client, namespace)),
            self.run::<Workload>(api(&client, namespace)),
            self.run::<PodGroup>(api(&client, namespace)),
        );
    }

    /// Whether every kind has been listed.
    pub fn is_synced(&self) -> bool {
        self.synced.borrow().len() == 3
    }

    /// Waits until every kind has been listed.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        // The sender lives as long as this observer.
        let _ = synced.wait_for(|kinds| kinds.len() == 3).await;
    }

    async fn run<K: Watched>(&self, api: Api<K>) {
        let mut events = watcher(api, watcher::Config::default().page_size(PAGE)).default_backoff().boxed();
        let mut gone = HashSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => gone = self.index().keys(K::KIND),
                Ok(Event::InitApply(object)) => {
                    gone.remove(&key(&object));
                    self.apply(object);
                }
                Ok(Event::InitDone) => {
                    let mut concerned = Concerned::new();
                    for key in gone.drain() {
                        concerned.extend(self.index().forget(K::KIND, &key));
                    }
                    self.index().listed(K::KIND);
                    self.enqueue(concerned);
                    tracing::debug!(kind = ?K::KIND, "listed");
                    self.synced.send_modify(|kinds| {
                        kinds.insert(K::KIND);
                    });
                }
                Ok(Event::Apply(object)) => self.apply(object),
                Ok(Event::Delete(object)) => {
                    let version = version(object.meta().resource_version.as_deref());
                    self.enqueue(K::delete(self, &key(&object), version));
                }
                Err(error) => tracing::warn!(kind = ?K::KIND, %error, "the watch failed, and is tried again"),
            }
        }
    }

    fn apply<K: Watched>(&self, object: K) {
        let (key, version) = (key(&object), version(object.meta().resource_version.as_deref()));
        let concerned = object.apply(self, key, version);
        self.enqueue(concerned);
    }

    fn enqueue(&self, concerned: Concerned) {
        for key in concerned {
            self.queue.add(key);
        }
    }

    fn index(&self) -> std::sync::MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn api<K>(client: &kube::Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

fn key<K: Resource>(object: &K) -> Key {
    let metadata = object.meta();
    Key::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
}
