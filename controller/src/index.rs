//! What is known of the cluster: a synchronous index with no client in it.
//!
//! It is fed by the watches, and by the answers to this controller's own writes, which are in it
//! before the watch tells of them. An older version of an object never replaces a newer one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use statefulset_scheduling_core::discovery::{ControllerRef, Identity, Index as Lookup, PodGroup, Workload};
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
    /// This version is there already, or a newer one.
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
    references: fn(&str, &T) -> Vec<R>,
    grave: Grave,
}

/// What went while writes were under way: the answer to one of them must not bring it back.
#[derive(Default)]
struct Grave {
    /// The versions that objects went at, and when.
    gone: HashMap<Key, (Version, Tick)>,
    /// When everything that is there was last listed.
    listed: Tick,
}

/// Counts what happens to the index.
type Tick = u64;

/// From when on the answer to a write may be older than what the index has seen since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt(Tick);

/// When an object went: what was asked before it is not known any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bereavement(Tick);

impl<T, R: Hash + Eq> Objects<T, R> {
    fn new(references: fn(&str, &T) -> Vec<R>) -> Self {
        Self { by_key: HashMap::new(), by_reference: HashMap::new(), references, grave: Grave::default() }
    }

    /// Puts in what a watch tells, unless an answer told of it, or of something newer.
    fn put(&mut self, key: Key, version: Version, object: T) -> Put<T> {
        self.grave.gone.remove(&key);
        // What has no version that can be read may differ.
        let is_known = |known| known > version || (known == version && version != Version::default());
        if self.by_key.get(&key).is_some_and(|(known, _)| is_known(*known)) {
            return Put::Stale;
        }
        let before = self.take(&key);
        for reference in (self.references)(&key.namespace, &object) {
            self.by_reference.entry(reference).or_default().insert(key.name.clone());
        }
        self.by_key.insert(key, (version, object));
        before.map_or(Put::New, Put::Replaced)
    }

    /// Puts in what an answer tells, unless the watch told meanwhile that the object is gone.
    fn answer(&mut self, attempt: Attempt, key: Key, version: Version, object: T) {
        let buried = self.grave.gone.get(&key).is_some_and(|(gone, _)| *gone >= version);
        // A list that does not have it may be older than it, or newer.
        let unlisted = !self.by_key.contains_key(&key) && self.grave.listed > attempt.0;
        if !buried && !unlisted {
            self.put(key, version, object);
        }
    }

    /// Takes an object out, unless it is newer than the deletion that was seen.
    fn remove(&mut self, key: &Key, version: Version, now: Option<Tick>) -> Option<T> {
        if self.by_key.get(key).is_some_and(|(known, _)| *known > version) {
            return None;
        }
        if let Some(now) = now {
            self.grave.gone.insert(key.clone(), (version, now));
        }
        self.take(key)
    }

    fn take(&mut self, key: &Key) -> Option<T> {
        let (_, object) = self.by_key.remove(key)?;
        for reference in (self.references)(&key.namespace, &object) {
            if let Some(names) = self.by_reference.get_mut(&reference) {
                names.remove(&key.name);
                if names.is_empty() {
                    self.by_reference.remove(&reference);
                }
            }
        }
        Some(object)
    }

    fn referring(&self, namespace: &str, reference: &R) -> impl Iterator<Item = &T> {
        let names = self.by_reference.get(reference).into_iter().flatten();
        names.filter_map(move |name| self.by_key.get(&Key::new(namespace, name))).map(|(_, object)| object)
    }

    /// Forgets what went before the oldest write that is still under way.
    fn forget_gone(&mut self, oldest: Option<Tick>) {
        match oldest {
            None => self.grave.gone.clear(),
            Some(oldest) => self.grave.gone.retain(|_, (_, tick)| *tick >= oldest),
        }
    }
}

/// A reference within a namespace.
type InNamespace<R> = (String, R);

/// What a PodGroup refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Reference {
    Workload(String),
    Controller(String),
}

/// The index.
pub struct Index {
    subjects: Objects<Arc<Subject>, InNamespace<ControllerRef>>,
    workloads: Objects<Workload, InNamespace<ControllerRef>>,
    pod_groups: Objects<PodGroup, InNamespace<Reference>>,
    tick: Tick,
    /// The attempts that are under way.
    under_way: BTreeSet<Attempt>,
    /// By StatefulSet, the PodGroup whose create had no answer.
    unanswered: HashMap<Key, String>,
    /// The UIDs of StatefulSets that seem to be there and whose objects went, and when the last did.
    bereaved: HashMap<Key, (String, Tick)>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            subjects: Objects::new(|namespace, subject| {
                let parents = subject.parent.iter();
                parents.map(|parent| (namespace.to_owned(), parent.reference.clone())).collect()
            }),
            workloads: Objects::new(|namespace, workload| {
                workload.controller.iter().map(|controller| (namespace.to_owned(), controller.clone())).collect()
            }),
            pod_groups: Objects::new(|namespace, pod_group| {
                let workload = pod_group.workload_name.iter().cloned().map(Reference::Workload);
                let controller = pod_group.identity.controller_uid.iter().cloned().map(Reference::Controller);
                workload.chain(controller).map(|reference| (namespace.to_owned(), reference)).collect()
            }),
            tick: 0,
            under_way: BTreeSet::new(),
            unanswered: HashMap::new(),
            bereaved: HashMap::new(),
        }
    }
}

impl Lookup for Index {
    fn workloads_of(&self, namespace: &str, controller: &ControllerRef) -> Vec<&Workload> {
        self.workloads.referring(namespace, &(namespace.to_owned(), controller.clone())).collect()
    }

    fn pod_groups_of(&self, namespace: &str, workload_name: &str) -> Vec<&PodGroup> {
        let reference = Reference::Workload(workload_name.to_owned());
        self.pod_groups.referring(namespace, &(namespace.to_owned(), reference)).collect()
    }

    fn pod_groups_controlled_by(&self, namespace: &str, uid: &str) -> Vec<&PodGroup> {
        let reference = Reference::Controller(uid.to_owned());
        self.pod_groups.referring(namespace, &(namespace.to_owned(), reference)).collect()
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

    /// An attempt begins that will tell of the answers to its writes.
    pub fn begin(&mut self) -> Attempt {
        self.tick += 1;
        let attempt = Attempt(self.tick);
        self.under_way.insert(attempt);
        attempt
    }

    /// The attempt is over.
    pub fn end(&mut self, attempt: Attempt) {
        self.under_way.remove(&attempt);
        let oldest = self.under_way.first().map(|attempt| attempt.0);
        self.subjects.forget_gone(oldest);
        self.workloads.forget_gone(oldest);
        self.pod_groups.forget_gone(oldest);
    }

    /// The time, where somebody may bring back what goes now.
    fn now(&mut self) -> Option<Tick> {
        self.tick += 1;
        (!self.under_way.is_empty()).then_some(self.tick)
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
        let now = self.now();
        self.bereaved.remove(key);
        self.subjects.remove(key, version, now).map(|_| key.clone()).into_iter().collect()
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
        let now = self.now();
        let Some(before) = self.workloads.remove(key, version, now) else { return Concerned::new() };
        self.bereave(&key.namespace, &before.identity);
        self.concerned_by_workload(&key.namespace, &before)
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
        let now = self.now();
        let Some(before) = self.pod_groups.remove(key, version, now) else { return Concerned::new() };
        self.bereave(&key.namespace, &before.identity);
        self.concerned_by_pod_group(&key.namespace, &before)
    }

    /// An object went that a StatefulSet controls. If that is known, it may be gone, too.
    fn bereave(&mut self, namespace: &str, gone: &Identity) {
        let (Some(name), Some(uid)) = (&gone.controlling_statefulset, &gone.controller_uid) else { return };
        let key = Key::new(namespace, name);
        if self.subjects.by_key.get(&key).is_some_and(|(_, subject)| subject.uid == *uid) {
            self.tick += 1;
            self.bereaved.insert(key, (uid.clone(), self.tick));
        }
    }

    /// When the last object of this StatefulSet went while it seemed to stay.
    pub fn bereaved(&self, statefulset: &Key, uid: &str) -> Option<Bereavement> {
        let (bereaved, tick) = self.bereaved.get(statefulset)?;
        (bereaved == uid).then_some(Bereavement(*tick))
    }

    /// The answer to a write of a StatefulSet. The watch tells of it too, and whom it concerns.
    pub fn answer_subject(&mut self, attempt: Attempt, key: Key, version: Version, subject: Option<Subject>) {
        match subject {
            Some(subject) => self.subjects.answer(attempt, key, version, Arc::new(subject)),
            None => drop(self.remove_subject(&key, version)),
        }
    }

    /// The answer to a request for a Workload.
    pub fn answer_workload(&mut self, attempt: Attempt, key: Key, version: Version, workload: Workload) {
        self.workloads.answer(attempt, key, version, workload);
    }

    /// The answer to a request for a PodGroup.
    pub fn answer_pod_group(&mut self, attempt: Attempt, key: Key, version: Version, pod_group: PodGroup) {
        self.pod_groups.answer(attempt, key, version, pod_group);
    }

    /// The create of a StatefulSet's PodGroup had no answer: it may be there, though no watch tells of it.
    pub fn lost(&mut self, statefulset: Key, pod_group_name: String) {
        self.unanswered.insert(statefulset, pod_group_name);
    }

    /// The PodGroup of a StatefulSet whose create had no answer.
    pub fn unanswered(&self, statefulset: &Key) -> Option<&str> {
        self.unanswered.get(statefulset).map(String::as_str)
    }

    /// It has been looked for.
    pub fn looked_for(&mut self, statefulset: &Key) {
        self.unanswered.remove(statefulset);
    }

    /// All objects of a kind have been listed.
    pub fn listed(&mut self, kind: Kind) {
        self.tick += 1;
        let grave = match kind {
            Kind::StatefulSet => &mut self.subjects.grave,
            Kind::Workload => &mut self.workloads.grave,
            Kind::PodGroup => &mut self.pod_groups.grave,
        };
        grave.listed = self.tick;
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
