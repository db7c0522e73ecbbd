//! A list and a watch of one resource into a local store, as client-go's shared informers.
//!
//! Whoever decides by the store decides by the past: that is what the [`Lag`] is for. It holds each
//! event back for a while, in their order, so that a test can make the past as old as it likes.
//!
//! Left out: periodic resyncs and indexes. An object that is listed again unchanged is not told of.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff as Waits;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::common::Common;
use crate::key::Key;
use crate::workqueue::Backoff;

/// What an informer can hold.
pub trait Observed: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static {}

impl<K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static> Observed for K {}

/// An event that waits to be delivered.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The object; none for the marks at the begin and the end of a list.
    pub key: Option<&'a Key>,
}

type LagOf = dyn Fn(&Delivery<'_>) -> Duration + Send + Sync;

/// How late an informer learns of changes.
#[derive(Clone, Default)]
pub struct Lag(Option<Arc<LagOf>>);

impl Lag {
    /// At once.
    pub fn none() -> Self {
        Self(None)
    }

    /// Always this late.
    pub fn of(wait: Duration) -> Self {
        Self::by(move |_| wait)
    }

    /// Up to this late, as a seed decides.
    pub fn up_to(longest: Duration, seed: u64) -> Self {
        let chance = Mutex::new(fastrand::Rng::with_seed(seed));
        Self::by(move |_| longest.mul_f64(chance.lock().unwrap_or_else(PoisonError::into_inner).f64()))
    }

    /// As late as this says. An event never overtakes an earlier one of its resource.
    pub fn by(lag: impl Fn(&Delivery<'_>) -> Duration + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(lag)))
    }

    fn of_delivery(&self, delivery: &Delivery<'_>) -> Duration {
        self.0.as_ref().map_or(Duration::ZERO, |lag| lag(delivery))
    }
}

impl fmt::Debug for Lag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Lag(…)" } else { "Lag(none)" })
    }
}

/// What happened to an object. The store has it already.
#[derive(Debug)]
pub enum Change<K> {
    /// It is new.
    Added(Arc<K>),
    /// It is another version.
    Updated {
        /// The version before.
        old: Arc<K>,
        /// The version now.
        new: Arc<K>,
    },
    /// It is gone; this was its last version.
    Deleted(Arc<K>),
}

impl<K> Change<K> {
    /// The object: its version now, or the last.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Added(object) | Self::Updated { new: object, .. } | Self::Deleted(object) => object,
        }
    }
}

/// The objects of one resource as they were a moment ago.
#[derive(Debug)]
pub struct Store<K>(Arc<Shared<K>>);

#[derive(Debug)]
struct Shared<K> {
    objects: RwLock<BTreeMap<Key, Arc<K>>>,
    synced: watch::Sender<bool>,
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self(Arc::new(Shared { objects: RwLock::default(), synced: watch::Sender::default() }))
    }
}

impl<K> Store<K> {
    /// The object of this key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().get(key).cloned()
    }

    /// All objects, by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.read().values().cloned().collect()
    }

    /// The objects of a namespace, by name.
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<K>> {
        let objects = self.read();
        let from = objects.range(Key::new(namespace, "")..);
        from.take_while(|(key, _)| key.namespace == namespace).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Whether the resource has been listed.
    pub fn is_synced(&self) -> bool {
        *self.0.synced.borrow()
    }

    /// Waits until the resource has been listed.
    pub async fn synced(&self) {
        // The sender lives as long as this store.
        let _ = self.0.synced.subscribe().wait_for(|synced| *synced).await;
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Key, Arc<K>>> {
        self.0.objects.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource> Store<K> {
    fn put(&self, object: K) -> Option<Change<K>> {
        let (key, new) = (Key::of(&object), Arc::new(object));
        let mut objects = self.0.objects.write().unwrap_or_else(PoisonError::into_inner);
        match objects.insert(key, Arc::clone(&new)) {
            None => Some(Change::Added(new)),
            Some(old) if old.meta().resource_version == new.meta().resource_version => None,
            Some(old) => Some(Change::Updated { old, new }),
        }
    }

    fn take(&self, key: &Key) -> Option<Change<K>> {
        self.0.objects.write().unwrap_or_else(PoisonError::into_inner).remove(key).map(Change::Deleted)
    }
}

/// Watches what `api` reaches: the store, and what feeds it for as long as it runs.
///
/// `trim` takes from each object what nobody needs; `on_change` is told of each change, in order.
pub fn informer<K: Observed, F>(
    api: Api<K>,
    common: &Common,
    trim: fn(&mut K),
    mut on_change: F,
) -> (Store<K>, impl Future<Output = ()> + Send + use<K, F>)
where
    K::DynamicType: Send + Sync,
    F: FnMut(Change<K>) + Send + 'static,
{
    let store = Store::default();
    let (send, mut receive) = mpsc::unbounded_channel::<(Instant, Event<K>)>();
    let waits = Rewatch::new(common.rewatch, common.seed);
    let (lag, target) = (common.lag.clone(), store.clone());
    let watch = async move {
        let resource = api.resource_url().rsplit('/').next().unwrap_or_default().to_owned();
        let mut events = watcher(api, watcher::Config::default()).backoff(waits).boxed();
        let mut last = Instant::now();
        while let Some(event) = events.next().await {
            let event = match event {
                Ok(event) => event.modify(trim),
                Err(error) => {
                    tracing::debug!(resource, %error, "the watch failed, and is tried again");
                    continue;
                }
            };
            let key = match &event {
                Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => Some(Key::of(object)),
                Event::Init | Event::InitDone => None,
            };
            let wait = lag.of_delivery(&Delivery { resource: &resource, key: key.as_ref() });
            last = last.max(Instant::now() + wait);
            if send.send((last, event)).is_err() {
                return;
            }
        }
    };
    let deliver = async move {
        let mut gone = BTreeSet::new();
        while let Some((due, event)) = receive.recv().await {
            if due > Instant::now() {
                tokio::time::sleep_until(due).await;
            }
            match event {
                Event::Init => gone = target.read().keys().cloned().collect(),
                Event::InitApply(object) => {
                    gone.remove(&Key::of(&object));
                    target.put(object).into_iter().for_each(&mut on_change);
                }
                Event::InitDone => {
                    let lost = std::mem::take(&mut gone);
                    lost.iter().filter_map(|key| target.take(key)).for_each(&mut on_change);
                    target.0.synced.send_replace(true);
                }
                Event::Apply(object) => target.put(object).into_iter().for_each(&mut on_change),
                Event::Delete(object) => target.take(&Key::of(&object)).into_iter().for_each(&mut on_change),
            }
        }
    };
    let feed = async move {
        tokio::join!(watch, deliver);
    };
    (store, feed)
}

/// The waits of client-go's reflector: doubling, with up to as much again by chance, and from the start
/// after two quiet minutes.
struct Rewatch {
    backoff: Backoff,
    failures: u32,
    last: Option<Instant>,
    chance: fastrand::Rng,
}

impl Rewatch {
    const QUIET: Duration = Duration::from_mins(2);

    fn new(backoff: Backoff, seed: u64) -> Self {
        Self { backoff, failures: 0, last: None, chance: fastrand::Rng::with_seed(seed) }
    }
}

impl Iterator for Rewatch {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.last.is_some_and(|last| last.elapsed() > Self::QUIET) {
            self.failures = 0;
        }
        let wait = self.backoff.after(self.failures).mul_f64(1.0 + self.chance.f64());
        self.failures = self.failures.saturating_add(1);
        self.last = Some(Instant::now());
        Some(wait)
    }
}

impl Waits for Rewatch {
    /// Nothing: a watch that fails again and again succeeds in between with its first event.
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn pod(name: &str, version: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.namespace = Some("prod".into());
        pod.metadata.name = Some(name.into());
        pod.metadata.resource_version = Some(version.into());
        pod
    }

    #[test]
    fn a_store_tells_what_is_new_what_changed_and_what_did_not() {
        let store = Store::default();
        assert!(matches!(store.put(pod("a", "1")), Some(Change::Added(_))));
        assert!(store.put(pod("a", "1")).is_none());
        assert!(matches!(store.put(pod("a", "2")), Some(Change::Updated { .. })));
        assert!(matches!(store.take(&Key::new("prod", "a")), Some(Change::Deleted(_))));
        assert!(store.take(&Key::new("prod", "a")).is_none());
    }

    #[test]
    fn a_namespace_is_listed_without_its_neighbours() {
        let store = Store::default();
        for (namespace, name) in [("prod", "b"), ("prod", "a"), ("pro", "x"), ("prod-2", "y")] {
            let mut pod = pod(name, "1");
            pod.metadata.namespace = Some(namespace.into());
            store.put(pod);
        }
        let names: Vec<_> = store.list_in("prod").iter().map(|pod| Key::of(&**pod).name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_opened_again_after_waits_that_double_and_begin_anew_after_two_quiet_minutes() {
        let backoff = Backoff { base: Duration::from_millis(800), cap: Duration::from_secs(30) };
        let mut waits = Rewatch::new(backoff, 7);
        for failures in 0..8 {
            let (wait, least) = (waits.next().expect("it never ends"), backoff.after(failures));
            assert!((least..=2 * least).contains(&wait), "{wait:?} after {failures} failures");
        }
        tokio::time::advance(Duration::from_secs(121)).await;
        assert!(waits.next().expect("it never ends") <= Duration::from_millis(1600));
        let again: Vec<_> = Rewatch::new(backoff, 7).take(3).collect();
        assert_eq!(again, Rewatch::new(backoff, 7).take(3).collect::<Vec<_>>(), "the same seed, the same waits");
    }
}
