//! What is known of the cluster: a synchronous index with no client in it.
//!
//! It is fed by the watches, and by the answers to this controller's own writes, which are in it
//! before the watch tells of them. An older version of an object never replaces a newer one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use statefulset_scheduling_core::discovery::{ControllerRef, Index as Lookup, PodGroup, Workload};
use statefulset_scheduling_core::plan::Subject;

/// The namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of `name` in `namespace`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The version of an object, by which the API server orders them.
pub type Version = u64;

/// The version in a `resourceVersion`; the oldest where it is none.
pub fn version(resource_version: Option<&str>) -> Version {
    resource_version.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// What became of an object that was put into the index.
enum Put<T> {
    /// This version, or a newer one, is there already.
    Stale,
    /// It is there now.
    New,
    /// It is there now, instead of this one.
    Replaced(T),
}

/// Objects of one kind, and which of them refer to what.
struct Objects<T, R> {
    by_key: HashMap<Key, (Version, T)>,
    by_reference: HashMap<R, BTreeSet<String>>,
    reference: fn(&str, &T) -> Option<R>,
}

impl<T, R: Hash + Eq> Objects<T, R> {
    fn new(reference: fn(&str, &T) -> Option<R>) -> Self {
        Self { by_key: HashMap::new(), by_reference: HashMap::new(), reference }
    }

    /// Puts an object in, unless what is there is as new: the answer to a write, which the watch tells
    /// once more, concerns nobody.
    fn put(&mut self, key: Key, version: Version, object: T) -> Put<T> {
        if self.by_key.get(&key).is_some_and(|(known, _)| *known >= version && version > 0) {
            return Put::Stale;
        }
        let before = self.take(&key);
        if let Some(reference) = (self.reference)(&key.namespace, &object) {
            self.by_reference.entry(reference).or_default().insert(key.name.clone());
        }
        self.by_key.insert(key, (version, object));
        before.map_or(Put::New, Put::Replaced)
    }

    /// Takes an object out, unless it is newer than the deletion that was seen.
    fn remove(&mut self, key: &Key, version: Version) -> Option<T> {
        if self.by_key.get(key).is_some_and(|(known, _)| *known > version) {
            return None;
        }
        self.take(key)
    }

    fn take(&mut self, key: &Key) -> Option<T> {
        let (_, object) = self.by_key.remove(key)?;
        if let Some(reference) = (self.reference)(&key.namespace, &object)
            && let Some(names) = self.by_reference.get_mut(&reference)
        {
            names.remove(&key.name);
            if names.is_empty() {
                self.by_reference.remove(&reference);
            }
        }
        Some(object)
    }

    fn referring(&self, namespace: &str, reference: &R) -> impl Iterator<Item = &T> {
        let names = self.by_reference.get(reference).into_iter().flatten();
        names.filter_map(move |name| self.by_key.get(&Key::new(namespace, name))).map(|(_, object)| object)
    }
}

/// A reference within a namespace.
type InNamespace<R> = (String, R);

/// The index.
pub struct Index {
    subjects: Objects<Arc<Subject>, InNamespace<ControllerRef>>,
    workloads: Objects<Workload, InNamespace<ControllerRef>>,
    pod_groups: Objects<PodGroup, InNamespace<String>>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            subjects: Objects::new(|namespace, subject| {
                Some((namespace.to_owned(), subject.parent.as_ref()?.reference.clone()))
            }),
            workloads: Objects::new(|namespace, workload| Some((namespace.to_owned(), workload.controller.clone()?))),
            pod_groups: Objects::new(|namespace, pod_group| {
                Some((namespace.to_owned(), pod_group.workload_name.clone()?))
            }),
        }
    }
}

impl Lookup for Index {
    fn workloads_of(&self, namespace: &str, controller: &ControllerRef) -> Vec<&Workload> {
        self.workloads.referring(namespace, &(namespace.to_owned(), controller.clone())).collect()
    }

    fn pod_groups_of(&self, namespace: &str, workload_name: &str) -> Vec<&PodGroup> {
        self.pod_groups.referring(namespace, &(namespace.to_owned(), workload_name.to_owned())).collect()
    }
}

/// The StatefulSets that a change may concern.
pub type Concerned = HashSet<Key>;

impl Index {
    /// The StatefulSet under a key, if it opted in.
    pub fn subject(&self, key: &Key) -> Option<Arc<Subject>> {
        self.subjects.by_key.get(key).map(|(_, subject)| Arc::clone(subject))
    }

    /// How many StatefulSets opted in.
    pub fn subjects(&self) -> usize {
        self.subjects.by_key.len()
    }

    /// A StatefulSet is there, or changed. One that did not opt in is looked up and forgotten.
    pub fn apply_subject(&mut self, key: Key, version: Version, subject: Option<Subject>) -> Concerned {
        match subject {
            None => self.remove_subject(&key, version),
            Some(subject) => match self.subjects.put(key.clone(), version, Arc::new(subject)) {
                Put::New | Put::Replaced(_) => Concerned::from([key]),
                Put::Stale => Concerned::new(),
            },
        }
    }

    /// A StatefulSet is gone. It concerns itself once more, so that what is remembered of it is
    /// forgotten; one that did not opt in concerns nothing.
    pub fn remove_subject(&mut self, key: &Key, version: Version) -> Concerned {
        self.subjects.remove(key, version).map(|_| key.clone()).into_iter().collect()
    }

    /// A Workload is there, or changed.
    pub fn apply_workload(&mut self, key: Key, version: Version, workload: Workload) -> Concerned {
        let mut concerned = self.concerned_by_workload(&key.namespace, &workload);
        let namespace = key.namespace.clone();
        match self.workloads.put(key, version, workload) {
            Put::Stale => return Concerned::new(),
            Put::New => {}
            Put::Replaced(before) => concerned.extend(self.concerned_by_workload(&namespace, &before)),
        }
        concerned
    }

    /// A Workload is gone.
    pub fn remove_workload(&mut self, key: &Key, version: Version) -> Concerned {
        let before = self.workloads.remove(key, version);
        before.map(|workload| self.concerned_by_workload(&key.namespace, &workload)).unwrap_or_default()
    }

    /// A PodGroup is there, or changed.
    pub fn apply_pod_group(&mut self, key: Key, version: Version, pod_group: PodGroup) -> Concerned {
        let concerned = self.concerned_by_pod_group(&key.namespace, &pod_group);
        match self.pod_groups.put(key, version, pod_group) {
            Put::Stale => Concerned::new(),
            // What a PodGroup refers to never changes.
            Put::New | Put::Replaced(_) => concerned,
        }
    }

    /// A PodGroup is gone.
    pub fn remove_pod_group(&mut self, key: &Key, version: Version) -> Concerned {
        let before = self.pod_groups.remove(key, version);
        before.map(|pod_group| self.concerned_by_pod_group(&key.namespace, &pod_group)).unwrap_or_default()
    }

    /// The keys of all objects of a kind: what a new list does not have is gone.
    pub fn keys(&self, kind: Kind) -> HashSet<Key> {
        match kind {
            Kind::StatefulSet => self.subjects.by_key.keys().cloned().collect(),
            Kind::Workload => self.workloads.by_key.keys().cloned().collect(),
            Kind::PodGroup => self.pod_groups.by_key.keys().cloned().collect(),
        }
    }

    /// An object that a new list does not have is gone, whatever its version.
    pub fn forget(&mut self, kind: Kind, key: &Key) -> Concerned {
        match kind {
            Kind::StatefulSet => self.remove_subject(key, Version::MAX),
            Kind::Workload => self.remove_workload(key, Version::MAX),
            Kind::PodGroup => self.remove_pod_group(key, Version::MAX),
        }
    }

    /// The StatefulSet that a Workload describes, and those that its controller owns.
    fn concerned_by_workload(&self, namespace: &str, workload: &Workload) -> Concerned {
        let Some(controller) = &workload.controller else { return Concerned::new() };
        let parent = (namespace.to_owned(), controller.clone());
        let children = self.subjects.referring(namespace, &parent);
        let mut concerned: Concerned = children.map(|subject| Key::new(namespace, &subject.name)).collect();
        if *controller == ControllerRef::to_statefulset(&controller.name) {
            concerned.insert(Key::new(namespace, &controller.name));
        }
        concerned
    }

    /// The StatefulSet that controls a PodGroup, and those that its Workload concerns.
    fn concerned_by_pod_group(&self, namespace: &str, pod_group: &PodGroup) -> Concerned {
        let name = pod_group.workload_name.as_deref().unwrap_or_default();
        let workload = self.workloads.by_key.get(&Key::new(namespace, name));
        let mut concerned =
            workload.map(|(_, workload)| self.concerned_by_workload(namespace, workload)).unwrap_or_default();
        concerned.extend(pod_group.identity.controlling_statefulset.iter().map(|name| Key::new(namespace, name)));
        concerned
    }
}

/// The kinds that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// StatefulSets.
    StatefulSet,
    /// Workloads.
    Workload,
    /// PodGroups.
    PodGroup,
}
