//! The whole that the model steps through: the cluster, and what the controller knows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use statefulset_scheduling_controller::index::{Concerned, Index, Key, Version};

use super::cluster::{Bounds, Change, Cluster, Write};
use super::machine::Action;
use super::object::{NAMESPACE, Object, Parsed, RESOURCES, Resource};

/// Everything that the future depends on.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    /// What was put into the index since the process started, in order.
    feed: Arc<Vec<Change>>,
    /// The StatefulSets in the queue, ready or waiting.
    pub(crate) queue: BTreeSet<String>,
    /// Writes that the server has not done, though nobody waits for them any more.
    pub(crate) parked: Vec<Write>,
    /// How many events of a kind the cache may lag behind.
    lag: usize,
    /// By StatefulSet, the PodGroup whose create had no answer, as the process remembers it.
    unanswered: BTreeMap<String, String>,
}

impl World {
    pub(crate) fn new(bounds: Bounds, lag: usize) -> Self {
        Self {
            cluster: Cluster::new(bounds),
            feed: Arc::default(),
            queue: BTreeSet::new(),
            parked: Vec::new(),
            lag,
            unanswered: BTreeMap::new(),
        }
    }

    /// Whether a step can be taken, and changes anything.
    pub(crate) fn allows(&self, action: Action) -> bool {
        match action {
            Action::Others(act) => self.cluster.clone().act(act),
            Action::Tell(resource) => !self.cluster.untold[resource as usize].is_empty(),
            Action::TellNext(_) => self.cluster.untold.iter().any(|untold| !untold.is_empty()),
            Action::Reconcile(set, _) => self.queue.contains(set.name()),
            Action::ReconcileNext(..) => !self.queue.is_empty(),
            Action::Land => !self.parked.is_empty(),
            Action::Relist(_) | Action::Restart => true,
        }
    }

    /// The index as the process has it.
    pub(crate) fn index(&self) -> Index {
        let mut index = Index::default();
        for change in self.feed.iter() {
            apply(&mut index, change);
        }
        for (set, pod_group) in &self.unanswered {
            index.lost(Key::new(NAMESPACE, set), pod_group.clone());
        }
        index
    }

    /// The create of a PodGroup had no answer.
    pub(crate) fn lose(&mut self, set: &str, pod_group: &str) {
        self.unanswered.insert(set.to_owned(), pod_group.to_owned());
    }

    /// The PodGroup was looked for.
    pub(crate) fn look_for(&mut self, set: &str) {
        self.unanswered.remove(set);
    }

    /// Remembers what is put into the index.
    pub(crate) fn note(&mut self, change: Change) {
        Arc::make_mut(&mut self.feed).push(change);
    }

    /// Remembers what an answer puts into the index: nothing, if the watch told meanwhile that it is gone.
    pub(crate) fn note_answer(&mut self, object: &Arc<Object>) {
        let gone = self.feed.iter().rev().find_map(|change| match change {
            Change::Put(put) if put.resource == object.resource && put.name == object.name => Some(None),
            Change::Gone { resource, name, version } if *resource == object.resource && *name == object.name => {
                Some(Some(*version))
            }
            _ => None,
        });
        if gone.flatten().is_none_or(|version| version < object.version) {
            self.note(Change::Put(Arc::clone(object)));
        }
    }

    fn put(&mut self, index: &mut Index, change: Change) {
        let concerned = apply(index, &change);
        self.queue.extend(concerned.into_iter().map(|key| key.name));
        self.note(change);
    }

    /// The watch of a kind tells one event.
    pub(crate) fn deliver(&mut self, index: &mut Index, resource: Resource) -> bool {
        let Some(change) = self.cluster.untold[resource as usize].pop_front() else { return false };
        self.put(index, change);
        true
    }

    pub(crate) fn deliver_all(&mut self, index: &mut Index) -> bool {
        RESOURCES.into_iter().fold(false, |any, resource| {
            let mut told = any;
            while self.deliver(index, resource) {
                told = true;
            }
            told
        })
    }

    /// No watch lags further behind than it may.
    pub(crate) fn keep_up(&mut self, index: &mut Index) {
        for resource in RESOURCES {
            while self.cluster.untold[resource as usize].len() > self.lag {
                self.deliver(index, resource);
            }
        }
    }

    /// The watch of a kind was interrupted, and starts with a new list.
    pub(crate) fn relist(&mut self, index: &mut Index, resource: Resource) {
        self.cluster.untold[resource as usize].clear();
        let mut gone = index.keys(resource.kind());
        let listed: Vec<_> = self.cluster.all(resource).cloned().collect();
        for object in listed {
            gone.remove(&object.key());
            self.put(index, Change::Put(object));
        }
        for Key { name, .. } in gone {
            self.put(index, Change::Gone { resource, name, version: Version::MAX });
        }
        index.listed(resource.kind());
    }

    /// A new process lists everything.
    pub(crate) fn restart(&mut self) -> Index {
        let mut index = Index::default();
        self.feed = Arc::default();
        self.unanswered.clear();
        self.queue.clear();
        for resource in RESOURCES {
            self.relist(&mut index, resource);
        }
        index
    }

    /// What tells this world from others, as far as its future goes: of the versions, their order.
    pub(crate) fn digest(&self) -> u64 {
        let mut known: BTreeMap<(Resource, &str), &Arc<Object>> = BTreeMap::new();
        for change in self.feed.iter() {
            let (at, newer) = match change {
                Change::Put(object) => ((object.resource, object.name.as_str()), object.version),
                Change::Gone { resource, name, version } => ((*resource, name.as_str()), *version),
            };
            if known.get(&at).is_some_and(|before| before.version > newer) {
                continue;
            }
            match change {
                Change::Put(object) => known.insert(at, object),
                Change::Gone { .. } => known.remove(&at),
            };
        }
        let mut ranks: [Vec<Version>; 3] = <[Vec<Version>; 3]>::default();
        for object in known.values().copied().chain(self.cluster.objects()) {
            ranks[object.resource as usize].push(object.version);
        }
        for change in self.cluster.untold.iter().flatten() {
            ranks[change.resource() as usize].push(change.version());
        }
        for versions in &mut ranks {
            versions.sort_unstable();
            versions.dedup();
        }
        let rank = |resource: Resource, version| ranks[resource as usize].partition_point(|&one| one < version);
        let mut hasher = DefaultHasher::new();
        let put = |hasher: &mut DefaultHasher, object: &Object| {
            (object.digest, rank(object.resource, object.version)).hash(hasher);
        };
        known.len().hash(&mut hasher);
        for object in known.into_values().chain(self.cluster.objects()) {
            put(&mut hasher, object);
        }
        for untold in &self.cluster.untold {
            untold.len().hash(&mut hasher);
            for change in untold {
                match change {
                    Change::Put(object) => put(&mut hasher, object),
                    Change::Gone { resource, name, version } => (name, rank(*resource, *version)).hash(&mut hasher),
                }
            }
        }
        for incarnation in self.cluster.incarnations() {
            incarnation.hash(&mut hasher);
        }
        (&self.cluster.pods, &self.queue, self.cluster.tampered, self.parked.len(), &self.unanswered).hash(&mut hasher);
        hasher.finish()
    }
}

/// Puts a change into an index.
fn apply(index: &mut Index, change: &Change) -> Concerned {
    match change {
        Change::Put(object) => match &object.parsed {
            Parsed::Set(_, subject) => index.apply_subject(object.key(), object.version, (**subject).clone()),
            Parsed::Workload(workload) => index.apply_workload(object.key(), object.version, workload.clone().into()),
            Parsed::PodGroup(group) => index.apply_pod_group(object.key(), object.version, group.clone().into()),
        },
        Change::Gone { resource, name, version } => {
            let key = Key::new(NAMESPACE, name);
            match resource {
                Resource::Sets => index.remove_subject(&key, *version),
                Resource::Workloads => index.remove_workload(&key, *version),
                Resource::PodGroups => index.remove_pod_group(&key, *version),
            }
        }
    }
}
