//! The cluster's StatefulSet controller.
//!
//! Stands for `pkg/controller/statefulset`: revisions, pods by ordinal, both pod management policies,
//! rolling updates with partition and `maxUnavailable`, `OnDelete`, claims, adoption, the status. A
//! failure re-queues a set with backoff and ends the attempt, so that of many refused pods few are tried;
//! a change of a set or of its pods re-queues it at once. Deletes carry a grace period and no propagation.
//!
//! Left out: events, the client's own rate limit, `PersistentVolumeClaim` retention other than
//! Retain, claims that vanish below an existing pod, and the check whether the caches are behind its own writes.

pub mod ownership;
pub mod plan;
pub mod pods;
pub mod revisions;
pub mod set;
pub mod status;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinSet;

use crate::batches::slow_start;
use crate::common::{Clock, Common};
use crate::error::{Error, found, is_already_exists};
use crate::handle::{self, Handle};
use crate::informer::{Change, Store, informer};
use crate::key::Key;
use crate::workqueue::Workqueue;
use crate::{identity, meta, selector};
use ownership::Standing;
use plan::{Action, Plan, Revision};
use revisions::Update;

/// How the controller is started.
#[derive(Clone, Debug)]
pub struct Config {
    /// What all controllers have.
    pub common: Common,
    /// The time by which pods become available.
    pub clock: Clock,
}

impl Default for Config {
    /// As upstream: five workers.
    fn default() -> Self {
        Self { common: Common::new(identity::STATEFULSET_CONTROLLER, 5), clock: Clock::real() }
    }
}

/// Starts the controller.
pub fn start(client: &Client, config: Config) -> Handle {
    let Config { common, clock } = config;
    let client = identity::acting_as(client, &common.identity);
    let queue = Arc::new(Workqueue::new(common.backoff));
    let mut informers = JoinSet::new();

    let add = Arc::clone(&queue);
    let (sets, feed) = informer(
        Api::all(client.clone()),
        &common,
        |_| {},
        move |change: Change<StatefulSet>| {
            add.add(Key::of(&**change.object()));
        },
    );
    informers.spawn(feed);
    let (add, known) = (Arc::clone(&queue), sets.clone());
    let (pods, feed) = informer(
        Api::all(client.clone()),
        &common,
        |_| {},
        move |change| {
            for key in concerned(&known, &change) {
                add.add(key);
            }
        },
    );
    informers.spawn(feed);
    let (revisions, feed) = informer(Api::all(client.clone()), &common, |_| {}, |_| {});
    informers.spawn(feed);

    let controller = Arc::new(Controller { client, sets, pods, revisions, queue: Arc::clone(&queue), clock });
    let waiting = Arc::clone(&controller);
    let listed = async move {
        tokio::join!(waiting.sets.synced(), waiting.pods.synced(), waiting.revisions.synced());
    };
    handle::start("statefulset", common.workers, queue, informers, listed, move |key| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&key).await }
    })
}

/// The sets that a change of a pod concerns: its controller's, and the former controller's; for a pod
/// that nobody controls all that select it.
fn concerned(sets: &Store<StatefulSet>, change: &Change<Pod>) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    let versions = match change {
        Change::Updated { old, new } if meta::controller(&old.metadata) != meta::controller(&new.metadata) => {
            vec![old, new]
        }
        _ => vec![change.object()],
    };
    for pod in versions {
        let namespace = meta::namespace(&pod.metadata);
        match meta::controller(&pod.metadata) {
            Some(owner) => {
                let key = Key::new(namespace, &owner.name);
                let owns = |set: Arc<StatefulSet>| meta::uid(&set.metadata) == owner.uid;
                if owner.kind == "StatefulSet" && sets.get(&key).is_some_and(owns) {
                    keys.insert(key);
                }
            }
            None if matches!(change, Change::Deleted(_)) => {}
            None => {
                let labels = pod.metadata.labels.as_ref();
                let selects = |set: &Arc<StatefulSet>| selector::matches(&set.spec.selector, labels);
                keys.extend(sets.list_in(namespace).iter().filter(|set| selects(set)).map(|set| Key::of(&**set)));
            }
        }
    }
    keys
}

struct Controller {
    client: Client,
    sets: Store<StatefulSet>,
    pods: Store<Pod>,
    revisions: Store<ControllerRevision>,
    queue: Arc<Workqueue<Key>>,
    clock: Clock,
}

/// What the pods of a set are made from.
struct Templates<'a> {
    current: (&'a str, PodTemplateSpec),
    update: (&'a str, PodTemplateSpec),
}

impl Controller {
    async fn sync(&self, key: &Key) -> Result<(), Error> {
        let Some(set) = self.sets.get(key) else { return Ok(()) };
        let history = self.claim_revisions(&set).await?;
        let pods = self.claim_pods(&set).await?;
        let mut collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
        let update = self.update_revision(&set, &history, &mut collisions).await?;
        let wanted = set.status.as_ref().and_then(|status| status.current_revision.as_ref());
        let current = history.iter().find(|revision| revision.metadata.name.as_ref() == wanted).unwrap_or(&update);

        let worked = self.work(&set, &pods, (current, &update), collisions).await;
        let live: BTreeSet<_> = pods.iter().map(|pod| pods::revision(pod)).collect();
        let names = [current, &update].map(|revision| meta::name(&revision.metadata));
        let live = live.into_iter().chain(names).collect();
        for old in revisions::surplus(&set, &history, &live) {
            let name = meta::name(&old.metadata);
            found(self.api::<ControllerRevision>(&set).delete(name, &DeleteParams::default()).await)?;
        }
        worked
    }

    /// Does what is to be done about the pods, and reports how they are even if that failed.
    async fn work(
        &self,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        (current, update): (&ControllerRevision, &ControllerRevision),
        collisions: i32,
    ) -> Result<(), Error> {
        let template = |revision: &ControllerRevision| {
            let bad = || Error::BadRevision(meta::name(&revision.metadata).to_owned());
            revisions::template(revision).ok_or_else(bad)
        };
        let names = (meta::name(&current.metadata), meta::name(&update.metadata));
        let templates = Templates { current: (names.0, template(current)?), update: (names.1, template(update)?) };
        let pods: Vec<_> = pods.iter().map(|pod| &**pod).collect();
        let now = self.clock.now();
        let plan = plan::plan(set, &pods, names.1, now);
        let mut status = status::observe(set, &pods, names, collisions, now);
        let mut replaced = 0;
        let done = self.carry_out(set, &pods, &templates, &plan, &mut replaced).await;
        status.current_replicas = status.current_replicas.map(|count| count - replaced);
        let reported = self.report(set, &mut status).await;
        done?;
        reported?;
        if status.available_replicas != status.ready_replicas {
            let wait = u64::try_from(set::min_ready_seconds(set)).unwrap_or(0);
            self.queue.add_after(Key::of(set), Duration::from_secs(wait));
        }
        Ok(())
    }

    async fn carry_out(
        &self,
        set: &StatefulSet,
        pods: &[&Pod],
        templates: &Templates<'_>,
        plan: &Plan,
        replaced: &mut i32,
    ) -> Result<(), Error> {
        for stage in [&plan.replicas, &plan.condemned] {
            let slot = |slot: usize| self.act(set, pods, templates, stage[slot].as_ref());
            if set::is_parallel(set) {
                slow_start(stage.len(), slot).await?;
            } else {
                for index in 0..stage.len() {
                    slot(index).await?;
                }
            }
        }
        for action in &plan.outdated {
            self.act(set, pods, templates, Some(action)).await?;
            *replaced += 1;
        }
        Ok(())
    }

    async fn act(
        &self,
        set: &StatefulSet,
        pods: &[&Pod],
        templates: &Templates<'_>,
        action: Option<&Action>,
    ) -> Result<(), Error> {
        match action {
            None => {}
            Some(Action::Create(ordinal, revision)) => {
                for (_, claim) in pods::claims(set, *ordinal) {
                    let claims = self.api::<PersistentVolumeClaim>(set);
                    match claims.create(&PostParams::default(), &claim).await {
                        Err(error) if is_already_exists(&error) => {}
                        result => drop(result?),
                    }
                }
                let (name, template) = match revision {
                    Revision::Current => &templates.current,
                    Revision::Update => &templates.update,
                };
                let pod = pods::new_pod(set, template, name, *ordinal);
                self.api::<Pod>(set).create(&PostParams::default(), &pod).await?;
            }
            Some(Action::Delete(ordinal)) => {
                let name = set::pod_name(set, *ordinal);
                let pod = pods.iter().find(|pod| meta::name(&pod.metadata) == name);
                let grace = pod.and_then(|pod| pod.spec.as_ref()?.termination_grace_period_seconds);
                let grace = grace.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(30);
                found(self.api::<Pod>(set).delete(&name, &DeleteParams::default().grace_period(grace)).await)?;
            }
            Some(Action::Relabel(ordinal)) => {
                let patch = json!({ "metadata": { "labels": pods::identity(set, *ordinal) } });
                self.merge::<Pod>(set, &set::pod_name(set, *ordinal), &patch).await?;
            }
        }
        Ok(())
    }

    async fn report(&self, set: &StatefulSet, status: &mut StatefulSetStatus) -> Result<(), Error> {
        status::complete(set, status);
        if status::is_news(set, status) {
            let patch = Patch::Merge(json!({ "status": status }));
            let sets = self.api::<StatefulSet>(set);
            found(sets.patch_status(meta::name(&set.metadata), &PatchParams::default(), &patch).await)?;
        }
        Ok(())
    }

    /// The revision for the set's template, which is made or made the latest if need be.
    async fn update_revision(
        &self,
        set: &StatefulSet,
        history: &[ControllerRevision],
        collisions: &mut i32,
    ) -> Result<ControllerRevision, Error> {
        let mut wanted = match revisions::update(set, history, *collisions) {
            Update::Latest(revision) => return Ok(revision),
            Update::Again(revision, number) => {
                let patch = json!({ "revision": number });
                return Ok(self.merge(set, meta::name(&revision.metadata), &patch).await?);
            }
            Update::New(revision) => revision,
        };
        let api = self.api::<ControllerRevision>(set);
        loop {
            match api.create(&PostParams::default(), &wanted).await {
                Err(error) if is_already_exists(&error) => {}
                result => return Ok(result?),
            }
            // Either it was made a moment ago, or another template has the same hash.
            let taken = api.get(meta::name(&wanted.metadata)).await?;
            if taken.data == wanted.data {
                return Ok(taken);
            }
            *collisions += 1;
            *wanted = revisions::new(set, wanted.revision.unwrap_or(1), *collisions);
        }
    }

    /// The set's revisions, sorted; those that nobody controls become its own.
    async fn claim_revisions(&self, set: &StatefulSet) -> Result<Vec<ControllerRevision>, Error> {
        let mut may_adopt = None;
        let mut history = Vec::new();
        for revision in self.revisions.list_in(meta::namespace(&set.metadata)) {
            if !revisions::is_candidate(set, &revision) {
                continue;
            }
            if meta::controller(&revision.metadata).is_none() && !meta::is_being_deleted(&set.metadata) {
                self.check_may_adopt(set, &mut may_adopt).await?;
                let owners = ownership::with(set, meta::owners(&revision.metadata));
                let patch = meta::owners_patch(&revision.metadata, &owners);
                history.push(self.merge(set, meta::name(&revision.metadata), &patch).await?);
            } else {
                history.push((*revision).clone());
            }
        }
        revisions::sort(&mut history);
        Ok(history)
    }

    /// The set's pods; those to be adopted become its own, those to be released are no longer.
    async fn claim_pods(&self, set: &StatefulSet) -> Result<Vec<Arc<Pod>>, Error> {
        let mut may_adopt = None;
        let mut own = Vec::new();
        for pod in self.pods.list_in(meta::namespace(&set.metadata)) {
            let name = meta::name(&pod.metadata);
            match ownership::standing(set, &pod) {
                Standing::Own => own.push(pod),
                Standing::Foreign => {}
                Standing::Adoptable => {
                    self.check_may_adopt(set, &mut may_adopt).await?;
                    let owners = ownership::with(set, meta::owners(&pod.metadata));
                    let adopted = self.merge(set, name, &meta::owners_patch(&pod.metadata, &owners)).await;
                    own.extend(found(adopted)?.map(Arc::new));
                }
                Standing::Stray => {
                    let owners = ownership::without(set, meta::owners(&pod.metadata));
                    found(self.merge::<Pod>(set, name, &meta::owners_patch(&pod.metadata, &owners)).await)?;
                }
            }
        }
        Ok(own)
    }

    /// Asks the API server, once per attempt, whether the set is still there and stays.
    async fn check_may_adopt(&self, set: &StatefulSet, answer: &mut Option<()>) -> Result<(), Error> {
        if answer.is_none() {
            let now = found(self.api::<StatefulSet>(set).get(meta::name(&set.metadata)).await)?;
            let stays =
                |now: &StatefulSet| now.metadata.uid == set.metadata.uid && !meta::is_being_deleted(&now.metadata);
            if !now.as_ref().is_some_and(stays) {
                return Err(Error::Gone(Key::of(set).to_string()));
            }
            *answer = Some(());
        }
        Ok(())
    }

    async fn merge<K>(&self, set: &StatefulSet, name: &str, patch: &serde_json::Value) -> kube::Result<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        self.api::<K>(set).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    fn api<K>(&self, set: &StatefulSet) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), meta::namespace(&set.metadata))
    }
}
