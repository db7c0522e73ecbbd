//! Who depends on whom: upstream's `GraphBuilder`, as a value.
//!
//! An owner that was never seen has a node as soon as something refers to it, and is looked for at the
//! API server. Left out: references that name an owner's UID with another kind or namespace, beyond
//! that they are taken for what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::decide::{FOREGROUND, ORPHAN};
use crate::meta;

/// Something to look into, by UID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Whether the object is to be deleted, or has waited for its dependents long enough.
    Delete(String),
    /// The object's dependents are to lose their references to it.
    Orphan(String),
}

impl fmt::Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delete(uid) => write!(formatter, "delete {uid}"),
            Self::Orphan(uid) => write!(formatter, "orphan {uid}"),
        }
    }
}

/// Where an object is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for objects of the cluster.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// An object as the graph has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it is to be found.
    pub identity: Identity,
    /// Its owners.
    pub owners: Vec<OwnerReference>,
    /// The UIDs of what it owns.
    pub dependents: BTreeSet<String>,
    /// Whether and how it is being deleted.
    pub deletion: Deletion,
    /// Whether it was ever seen, and not only referred to.
    pub observed: bool,
}

impl Node {
    /// Whether it is deleted once its dependents are.
    pub fn waits(&self) -> bool {
        self.deletion == Deletion::AfterDependents
    }
}

/// How an object is being deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deletion {
    /// Not at all.
    #[default]
    None,
    /// As soon as its own finalizers allow.
    Plain,
    /// After its dependents.
    AfterDependents,
    /// After its dependents have forgotten it.
    AfterOrphaning,
}

impl Deletion {
    fn of(metadata: &ObjectMeta) -> Self {
        if !meta::is_being_deleted(metadata) {
            Self::None
        } else if meta::has_finalizer(metadata, ORPHAN) {
            Self::AfterOrphaning
        } else if meta::has_finalizer(metadata, FOREGROUND) {
            Self::AfterDependents
        } else {
            Self::Plain
        }
    }
}

/// All objects by UID.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: BTreeMap<String, Node>,
}

impl Graph {
    /// The object of this UID.
    pub fn node(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// The dependents that an owner in the foreground still waits for.
    pub fn blocking_dependents(&self, uid: &str) -> Vec<&str> {
        let Some(owner) = self.nodes.get(uid) else { return Vec::new() };
        let blocks =
            |node: &Node| node.owners.iter().any(|owner| owner.uid == uid && owner.block_owner_deletion == Some(true));
        let dependents = owner.dependents.iter().map(String::as_str);
        dependents.filter(|dependent| self.nodes.get(*dependent).is_some_and(blocks)).collect()
    }

    /// Takes note of an object that is new or changed.
    pub fn observe(&mut self, identity: Identity, metadata: &ObjectMeta) -> Vec<Work> {
        let (uid, owners) = (meta::uid(metadata), meta::owners(metadata).to_vec());
        let deletion = Deletion::of(metadata);
        let old = self.nodes.remove(uid);
        let mut work = Vec::new();
        let before = old.as_ref().map_or(&[][..], |old| &old.owners);
        for reference in before {
            let now = owners.iter().find(|owner| owner.uid == reference.uid);
            if now.is_none()
                && let Some(owner) = self.nodes.get_mut(&reference.uid)
            {
                owner.dependents.remove(uid);
            }
            let blocked = |owner: &OwnerReference| owner.block_owner_deletion == Some(true);
            if blocked(reference) && !now.is_some_and(blocked) {
                work.push(Work::Delete(reference.uid.clone()));
            }
        }
        for owner in &owners {
            work.extend(self.add_dependent(owner, &identity.namespace, uid));
        }
        let dependents = old.as_ref().map(|old| old.dependents.clone()).unwrap_or_default();
        if old.map(|old| old.deletion).unwrap_or_default() != deletion {
            match deletion {
                Deletion::AfterOrphaning => work.push(Work::Orphan(uid.to_owned())),
                Deletion::AfterDependents => {
                    work.extend(dependents.iter().cloned().map(Work::Delete));
                    work.push(Work::Delete(uid.to_owned()));
                }
                Deletion::None | Deletion::Plain => {}
            }
        }
        let node = Node { identity, owners, dependents, deletion, observed: true };
        self.nodes.insert(uid.to_owned(), node);
        work
    }

    /// Notes a dependent at its owner, which is made up if it was never seen.
    fn add_dependent(&mut self, owner: &OwnerReference, namespace: &str, dependent: &str) -> Option<Work> {
        if let Some(node) = self.nodes.get_mut(&owner.uid) {
            node.dependents.insert(dependent.to_owned());
            return None;
        }
        let identity = Identity {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            namespace: namespace.to_owned(),
            name: owner.name.clone(),
        };
        let node = Node {
            identity,
            owners: Vec::new(),
            dependents: BTreeSet::from([dependent.to_owned()]),
            deletion: Deletion::None,
            observed: false,
        };
        self.nodes.insert(owner.uid.clone(), node);
        Some(Work::Delete(owner.uid.clone()))
    }

    /// Takes note that an object is gone.
    pub fn forget(&mut self, uid: &str) -> Vec<Work> {
        let Some(gone) = self.nodes.remove(uid) else { return Vec::new() };
        let mut work: Vec<_> = gone.dependents.into_iter().map(Work::Delete).collect();
        for reference in &gone.owners {
            let Some(owner) = self.nodes.get_mut(&reference.uid) else { continue };
            owner.dependents.remove(uid);
            if owner.waits() {
                work.push(Work::Delete(reference.uid.clone()));
            }
        }
        work
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn identity(name: &str) -> Identity {
        Identity { api_version: "v1".into(), kind: "Pod".into(), namespace: "prod".into(), name: name.into() }
    }

    fn metadata(uid: &str, owners: &[&str]) -> ObjectMeta {
        let reference = |uid: &&str| OwnerReference {
            uid: (*uid).to_owned(),
            name: (*uid).to_owned(),
            block_owner_deletion: Some(true),
            ..OwnerReference::default()
        };
        let owners = owners.iter().map(reference).collect();
        ObjectMeta { uid: Some(uid.into()), owner_references: Some(owners), ..ObjectMeta::default() }
    }

    fn ending(mut metadata: ObjectMeta, finalizer: &str) -> ObjectMeta {
        metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        metadata.finalizers = Some(vec![finalizer.into()]);
        metadata
    }

    fn observe(graph: &mut Graph, metadata: &ObjectMeta) -> Vec<String> {
        let work = graph.observe(identity(meta::uid(metadata)), metadata);
        work.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_owner_that_was_never_seen_is_looked_for() {
        let mut graph = Graph::default();
        assert_eq!(observe(&mut graph, &metadata("pod", &["set"])), ["delete set"]);
        assert!(graph.node("set").is_some_and(|node| !node.observed));
        assert_eq!(observe(&mut graph, &metadata("set", &[])), [""; 0]);
        let set = graph.node("set").expect("it was seen now");
        assert!(set.observed && set.dependents.contains("pod"));
    }

    #[test]
    fn what_depends_on_an_object_that_is_gone_is_looked_into() {
        let mut graph = Graph::default();
        observe(&mut graph, &metadata("set", &[]));
        observe(&mut graph, &metadata("pod-0", &["set"]));
        observe(&mut graph, &metadata("pod-1", &["set"]));
        assert_eq!(graph.forget("set"), ["pod-0", "pod-1"].map(|pod| Work::Delete(pod.into())));
        assert_eq!(graph.forget("set"), []);
    }

    #[test]
    fn an_owner_in_the_foreground_is_looked_into_with_its_dependents_and_after_each_that_goes() {
        let mut graph = Graph::default();
        observe(&mut graph, &metadata("set", &[]));
        observe(&mut graph, &metadata("pod", &["set"]));
        let set = ending(metadata("set", &[]), FOREGROUND);
        assert_eq!(observe(&mut graph, &set), ["delete pod", "delete set"]);
        assert_eq!(observe(&mut graph, &set), [""; 0], "only when it begins");
        assert_eq!(graph.blocking_dependents("set"), ["pod"]);
        assert_eq!(graph.forget("pod"), [Work::Delete("set".into())]);
        assert_eq!(graph.blocking_dependents("set"), [""; 0]);
    }

    #[test]
    fn an_owner_in_the_foreground_is_looked_into_when_a_dependent_no_longer_blocks_it() {
        let mut graph = Graph::default();
        observe(&mut graph, &ending(metadata("set", &[]), FOREGROUND));
        let mut pod = metadata("pod", &["set"]);
        observe(&mut graph, &pod);
        pod.owner_references.as_mut().expect("it has one")[0].block_owner_deletion = None;
        assert_eq!(observe(&mut graph, &pod), ["delete set"]);
        assert_eq!(graph.blocking_dependents("set"), [""; 0]);
        assert!(graph.node("set").is_some_and(|set| set.dependents.contains("pod")));
        assert_eq!(observe(&mut graph, &metadata("pod", &[])), [""; 0]);
        assert!(graph.node("set").is_some_and(|set| set.dependents.is_empty()));
    }

    #[test]
    fn an_owner_with_the_orphan_finalizer_lets_its_dependents_go_first() {
        let mut graph = Graph::default();
        observe(&mut graph, &metadata("set", &[]));
        observe(&mut graph, &metadata("pod", &["set"]));
        assert_eq!(observe(&mut graph, &ending(metadata("set", &[]), ORPHAN)), ["orphan set"]);
    }

    #[test]
    fn an_object_that_is_first_seen_while_it_ends_is_looked_into() {
        let mut graph = Graph::default();
        assert_eq!(observe(&mut graph, &ending(metadata("set", &[]), FOREGROUND)), ["delete set"]);
        assert_eq!(observe(&mut graph, &ending(metadata("job", &[]), ORPHAN)), ["orphan job"]);
    }
}
