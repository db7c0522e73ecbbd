//! Stores fed by watches.
//!
//! Stands for shared informers. An object never goes back to an older version, so that the answer to
//! a write may be put in before its event arrives. Left out: indexes and resyncs. Assumes what the
//! simulated server keeps to: resource versions are numbers that grow.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::cluster::Key;

/// The longest pause between attempts of a watch that fails.
const LONGEST: Duration = Duration::from_secs(2);

/// The first pause.
const SHORTEST: Duration = Duration::from_millis(20);

/// Objects by key, in the form that is needed of them.
#[derive(Debug)]
pub struct Store<T> {
    inner: Mutex<Inner<T>>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct Inner<T> {
    objects: BTreeMap<Key, (u64, Arc<T>)>,
    synced: bool,
}

impl<T> Store<T> {
    /// An empty store that tells of its changes.
    pub fn new(changed: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::new(Inner { objects: BTreeMap::new(), synced: false }), changed })
    }

    /// All objects.
    pub fn all(&self) -> BTreeMap<Key, Arc<T>> {
        self.lock().objects.iter().map(|(key, (_, object))| (key.clone(), Arc::clone(object))).collect()
    }

    /// Whether all objects were seen once.
    pub fn is_synced(&self) -> bool {
        self.lock().synced
    }

    /// Puts an object in, unless a newer one is there.
    pub fn apply<K: Resource<DynamicType = ()>>(&self, object: &K)
    where
        T: for<'a> From<&'a K>,
    {
        let (key, version) = (Key::of(object.meta()), version(object));
        let mut inner = self.lock();
        if inner.objects.get(&key).is_none_or(|(known, _)| *known < version) {
            inner.objects.insert(key, (version, Arc::new(object.into())));
            drop(inner);
            self.changed.notify_one();
        }
    }

    /// Puts in the answer to a write, if it is newer than what is there. An object that is not there is
    /// not put in: it may be gone already.
    pub fn refresh<K: Resource<DynamicType = ()>>(&self, object: &K)
    where
        T: for<'a> From<&'a K>,
    {
        let (key, version) = (Key::of(object.meta()), version(object));
        let mut inner = self.lock();
        if let Some(known) = inner.objects.get_mut(&key).filter(|(known, _)| *known < version) {
            *known = (version, Arc::new(object.into()));
            drop(inner);
            self.changed.notify_one();
        }
    }

    /// Takes an object out, unless a newer one is there.
    pub fn remove<K: Resource<DynamicType = ()>>(&self, object: &K) {
        let key = Key::of(object.meta());
        let mut inner = self.lock();
        if inner.objects.get(&key).is_some_and(|(known, _)| *known <= version(object)) {
            inner.objects.remove(&key);
            drop(inner);
            self.changed.notify_one();
        }
    }

    /// Everything was listed; `gone` was not in the list.
    fn listed(&self, gone: BTreeMap<Key, u64>) {
        let mut inner = self.lock();
        for (key, known) in gone {
            // What came while listing is newer than the list, or will be told of.
            if inner.objects.get(&key).is_some_and(|(version, _)| *version == known) {
                inner.objects.remove(&key);
            }
        }
        inner.synced = true;
        drop(inner);
        self.changed.notify_one();
    }

    fn versions(&self) -> BTreeMap<Key, u64> {
        self.lock().objects.iter().map(|(key, (version, _))| (key.clone(), *version)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Feeds a store for ever. A kind that is not served counts as having no objects.
pub async fn feed<K, T>(api: Api<K>, store: Arc<Store<T>>)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    T: for<'a> From<&'a K>,
{
    let mut events = watcher(api, watcher::Config::default()).backoff(Pauses::default()).boxed();
    let mut gone = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => gone = store.versions(),
            Ok(Event::InitApply(object)) => {
                gone.remove(&Key::of(object.meta()));
                store.apply(&object);
            }
            Ok(Event::InitDone) => store.listed(std::mem::take(&mut gone)),
            Ok(Event::Apply(object)) => store.apply(&object),
            Ok(Event::Delete(object)) => store.remove(&object),
            Err(error) => {
                let plural = K::plural(&());
                tracing::debug!(kind = %plural, %error, "the watch failed, and is tried again");
                if matches!(&error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404) {
                    store.listed(store.versions());
                }
            }
        }
    }
}

fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// Pauses that double, and start over after a success.
struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(SHORTEST)
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST);
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Pod;
    use k8s_openapi::api::core::v1 as core;
    use kube::api::ObjectMeta;

    fn pod(name: &str, version: u64) -> core::Pod {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            resource_version: Some(version.to_string()),
            uid: Some(version.to_string()),
            ..ObjectMeta::default()
        };
        core::Pod { metadata, ..core::Pod::default() }
    }

    fn versions(store: &Store<Pod>) -> Vec<(String, String)> {
        store.all().into_iter().map(|(key, pod)| (key.name, pod.uid.clone())).collect()
    }

    #[test]
    fn an_object_never_goes_back_and_an_answer_never_brings_one_back() {
        let store = Store::<Pod>::new(Arc::default());
        let seen = |name: &str, version: u64| vec![(name.to_owned(), version.to_string())];
        store.apply(&pod("a", 5));
        store.apply(&pod("a", 4));
        assert_eq!(versions(&store), seen("a", 5), "an older event");
        store.refresh(&pod("a", 7));
        store.apply(&pod("a", 6));
        assert_eq!(versions(&store), seen("a", 7), "an event that the answer overtook");
        store.remove(&pod("a", 6));
        assert_eq!(versions(&store), seen("a", 7), "the end of an earlier one");
        store.remove(&pod("a", 8));
        store.refresh(&pod("a", 7));
        assert_eq!(versions(&store), [], "an answer that the end overtook");
    }

    #[test]
    fn what_a_list_no_longer_has_is_gone_unless_it_changed_meanwhile() {
        let store = Store::<Pod>::new(Arc::default());
        store.apply(&pod("a", 1));
        store.apply(&pod("b", 1));
        let gone = store.versions();
        store.refresh(&pod("b", 2));
        store.listed(gone);
        assert!(store.is_synced());
        assert_eq!(versions(&store), [("b".to_owned(), "2".to_owned())]);
    }
}
