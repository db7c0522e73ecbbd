//! The cluster's garbage collector.
//!
//! Stands for `pkg/controller/garbagecollector`: an object none of whose owners is solid is deleted, one
//! with a solid owner loses its references to the others; owners with the finalizer `foregroundDeletion`
//! go after the dependents that block them, owners with the finalizer `orphan` after their dependents
//! have forgotten them. Whether an owner is there is asked of the API server each time.
//!
//! Left out: discovery, so kinds come and go never; the cache of absent owners; the resource version
//! among the preconditions of deletes; events about owners in other namespaces.

pub mod decide;
pub mod graph;
pub mod kind;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{join_all, try_join_all};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::DynamicObject;
use kube::{Api, Client};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::common::Common;
use crate::error::{Error, found, is_conflict};
use crate::handle::{self, Handle};
use crate::informer::{Change, Store, informer};
use crate::workqueue::Workqueue;
use crate::{identity, meta};
use decide::{FOREGROUND, ORPHAN, Owner, Verdict};
use graph::{Deletion, Graph, Identity, Node, Work};
pub use kind::Kind;

/// How often the removal of a finalizer is tried against others' changes before it counts as failed.
const ATTEMPTS: u32 = 5;

/// How the controller is started.
#[derive(Clone, Debug)]
pub struct Config {
    /// What all controllers have.
    pub common: Common,
    /// The kinds that it watches. References to other kinds are failures that are retried.
    pub kinds: Vec<Kind>,
}

impl Default for Config {
    /// As upstream: twenty workers; and the kinds of [`Kind::usual`].
    fn default() -> Self {
        Self { common: Common::new(identity::GARBAGE_COLLECTOR, 20), kinds: Kind::usual() }
    }
}

/// Starts the controller.
pub fn start(client: &Client, config: Config) -> Handle {
    let Config { common, kinds } = config;
    let client = identity::acting_as(client, &common.identity);
    let queue = Arc::new(Workqueue::new(common.backoff));
    let collector = Arc::new(Collector { client, kinds, graph: Mutex::default(), queue: Arc::clone(&queue) });
    let mut informers = JoinSet::new();
    let mut stores: Vec<Store<DynamicObject>> = Vec::new();
    for (kind, seed) in collector.kinds.iter().zip(common.seed..) {
        let api = Api::all_with(collector.client.clone(), &kind.resource);
        let (watcher, of_kind) = (Arc::clone(&collector), kind.clone());
        let common = Common { seed, ..common.clone() };
        let only_metadata: fn(&mut DynamicObject) = |object| object.data = Value::Null;
        let (store, feed) = informer(api, &common, only_metadata, move |change| watcher.observe(&of_kind, &change));
        stores.push(store);
        informers.spawn(feed);
    }
    let listed = async move {
        join_all(stores.iter().map(Store::synced)).await;
    };
    handle::start("garbage-collector", common.workers, queue, informers, listed, move |work| {
        let collector = Arc::clone(&collector);
        async move {
            match work {
                Work::Delete(uid) => collector.attempt_to_delete(&uid).await,
                Work::Orphan(uid) => collector.attempt_to_orphan(&uid).await,
            }
        }
    })
}

struct Collector {
    client: Client,
    kinds: Vec<Kind>,
    graph: Mutex<Graph>,
    queue: Arc<Workqueue<Work>>,
}

impl Collector {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(&self, work: Vec<Work>) {
        for work in work {
            self.queue.add(work);
        }
    }

    fn observe(&self, kind: &Kind, change: &Change<DynamicObject>) {
        let metadata = &change.object().metadata;
        let identity = Identity {
            api_version: kind.resource.api_version.clone(),
            kind: kind.resource.kind.clone(),
            namespace: meta::namespace(metadata).to_owned(),
            name: meta::name(metadata).to_owned(),
        };
        let work = match change {
            Change::Deleted(gone) => self.graph().forget(meta::uid(&gone.metadata)),
            Change::Added(new) => self.graph().observe(identity, &new.metadata),
            Change::Updated { old, new } => {
                let mut graph = self.graph();
                // A watch that missed something may show another object of the same name.
                let mut work = Vec::new();
                if old.metadata.uid != new.metadata.uid {
                    work = graph.forget(meta::uid(&old.metadata));
                }
                work.extend(graph.observe(identity, &new.metadata));
                work
            }
        };
        self.enqueue(work);
    }

    /// Looks into an object: it may have to go, or to lose owners, or it may be done with waiting.
    async fn attempt_to_delete(&self, uid: &str) -> Result<(), Error> {
        let Some(node) = self.graph().node(uid).cloned() else { return Ok(()) };
        if matches!(node.deletion, Deletion::Plain | Deletion::AfterOrphaning) {
            return Ok(());
        }
        let live = self.get(&node.identity).await?.filter(|live| meta::uid(live) == uid);
        let Some(live) = live else {
            let work = self.graph().forget(uid);
            self.enqueue(work);
            return Ok(());
        };
        if node.waits() {
            return self.wait_for_dependents(uid, &node.identity).await;
        }
        let owners = self.classify(&node.identity, meta::owners(&live)).await?;
        match decide::judge(&live, &owners, !node.dependents.is_empty()) {
            Verdict::Keep => {}
            Verdict::Strip(left) => {
                self.merge(&node.identity, &meta::owners_patch(&live, &left)).await?;
            }
            Verdict::Delete(policy) => {
                if policy == PropagationPolicy::Foreground && self.has_waiting_dependent(uid) {
                    // Owners and dependents that wait for each other would wait for ever.
                    self.unblock(&node.identity, &live).await?;
                }
                self.delete(&node.identity, uid, policy).await?;
            }
        }
        if node.observed { Ok(()) } else { Err(Error::NotObserved(uid.to_owned())) }
    }

    /// An owner in the foreground: lets it go, or looks into what it waits for.
    async fn wait_for_dependents(&self, uid: &str, identity: &Identity) -> Result<(), Error> {
        let work: Option<Vec<_>> = {
            let graph = self.graph();
            let blocking = graph.blocking_dependents(uid);
            let waits = |dependent: &&str| graph.node(dependent).is_some_and(Node::waits);
            (!blocking.is_empty()).then(|| {
                blocking.iter().filter(|dependent| !waits(dependent)).map(|uid| Work::Delete((*uid).into())).collect()
            })
        };
        match work {
            Some(work) => self.enqueue(work),
            None => self.remove_finalizer(identity, uid, FOREGROUND).await?,
        }
        Ok(())
    }

    /// Has all dependents of an object forget it, and then lets it go.
    async fn attempt_to_orphan(&self, uid: &str) -> Result<(), Error> {
        let Some(node) = self.graph().node(uid).cloned() else { return Ok(()) };
        let dependents: Vec<_> = {
            let graph = self.graph();
            node.dependents.iter().filter_map(|dependent| Some(graph.node(dependent)?.identity.clone())).collect()
        };
        try_join_all(dependents.iter().map(|dependent| self.orphan(dependent, uid))).await?;
        self.remove_finalizer(&node.identity, uid, ORPHAN).await
    }

    async fn orphan(&self, dependent: &Identity, owner: &str) -> Result<(), Error> {
        let Some(live) = self.get(dependent).await? else { return Ok(()) };
        let left: Vec<_> = meta::owners(&live).iter().filter(|reference| reference.uid != owner).cloned().collect();
        if left.len() < meta::owners(&live).len() {
            self.merge(dependent, &meta::owners_patch(&live, &left)).await?;
        }
        Ok(())
    }

    async fn classify(
        &self,
        item: &Identity,
        references: &[OwnerReference],
    ) -> Result<Vec<(OwnerReference, Owner)>, Error> {
        let mut owners = Vec::new();
        for reference in references {
            let identity = Identity {
                api_version: reference.api_version.clone(),
                kind: reference.kind.clone(),
                namespace: item.namespace.clone(),
                name: reference.name.clone(),
            };
            let owner = self.get(&identity).await?;
            owners.push((reference.clone(), decide::classify(reference, owner.as_ref())));
        }
        Ok(owners)
    }

    fn has_waiting_dependent(&self, uid: &str) -> bool {
        let graph = self.graph();
        let mut dependents = graph.node(uid).into_iter().flat_map(|node| &node.dependents);
        dependents.any(|dependent| graph.node(dependent).is_some_and(Node::waits))
    }

    async fn unblock(&self, identity: &Identity, live: &ObjectMeta) -> Result<(), Error> {
        let mut owners = meta::owners(live).to_vec();
        for owner in owners.iter_mut().filter(|owner| owner.block_owner_deletion == Some(true)) {
            owner.block_owner_deletion = Some(false);
        }
        self.merge(identity, &meta::owners_patch(live, &owners)).await
    }

    async fn delete(&self, identity: &Identity, uid: &str, policy: PropagationPolicy) -> Result<(), Error> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
        let propagation_policy = Some(policy);
        let options = DeleteParams { propagation_policy, ..DeleteParams::default() }.preconditions(preconditions);
        let deleted = found(self.api(identity)?.delete(&identity.name, &options).await)?;
        if deleted.is_none() {
            let work = self.graph().forget(uid);
            self.enqueue(work);
        }
        Ok(())
    }

    async fn remove_finalizer(&self, identity: &Identity, uid: &str, finalizer: &str) -> Result<(), Error> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let live = self.get(identity).await?;
            let Some(live) = live.filter(|live| meta::uid(live) == uid && meta::has_finalizer(live, finalizer)) else {
                return Ok(());
            };
            match self.merge(identity, &meta::finalizer_patch(&live, finalizer)).await {
                Err(Error::Kube(error)) if is_conflict(&error) && attempts < ATTEMPTS => {}
                result => return result,
            }
        }
    }

    async fn get(&self, identity: &Identity) -> Result<Option<ObjectMeta>, Error> {
        let object = found(self.api(identity)?.get(&identity.name).await)?;
        Ok(object.map(|object| object.metadata))
    }

    /// Patches an object; that it is gone is as good.
    async fn merge(&self, identity: &Identity, patch: &Value) -> Result<(), Error> {
        let patch = Patch::Merge(patch);
        found(self.api(identity)?.patch(&identity.name, &PatchParams::default(), &patch).await)?;
        Ok(())
    }

    fn api(&self, identity: &Identity) -> Result<Api<DynamicObject>, Error> {
        let (api_version, kind) = (identity.api_version.clone(), identity.kind.clone());
        let known = Kind::find(&self.kinds, &api_version, &kind).ok_or(Error::UnknownKind { api_version, kind })?;
        Ok(if known.namespaced {
            Api::namespaced_with(self.client.clone(), &identity.namespace, &known.resource)
        } else {
            Api::all_with(self.client.clone(), &known.resource)
        })
    }
}
