//! The cluster's ResourceClaim controller.
//!
//! Stands for `pkg/controller/resourceclaim` with claims of PodGroups (KEP-5729): it makes a claim for
//! each template that a PodGroup names, and for each that a pod names and its group does not, records
//! their names in the statuses of their owners, and records the group's claims in the statuses of its
//! pods. It takes reservations from claims whose consumers are gone, and gives back the allocation with
//! the last one.
//!
//! Left out: it deletes nothing (upstream deletes the claims of pods that have ended; here the garbage
//! collector deletes them with the pods); reservations for pods that were bound without a scheduler;
//! admin access, extended resources, events and metrics.

pub mod decide;

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Pod, PodResourceClaimStatus};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate};
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, PodGroupResourceClaimStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::common::Common;
use crate::error::{Error, found};
use crate::handle::{self, Handle};
use crate::informer::{Change, Store, informer};
use crate::key::Key;
use crate::workqueue::Workqueue;
use crate::{identity, meta};
use decide::{Consumer, GROUP_CLAIM, Need, POD_CLAIM, PROTECTION};

/// How the controller is started.
#[derive(Clone, Debug)]
pub struct Config {
    /// What all controllers have.
    pub common: Common,
}

impl Default for Config {
    /// As upstream: fifty workers.
    fn default() -> Self {
        Self { common: Common::new(identity::RESOURCE_CLAIM_CONTROLLER, 50) }
    }
}

/// Something to look into.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Pod(Key),
    Group(Key),
    Claim(Key),
}

impl fmt::Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(key) => write!(formatter, "pod {key}"),
            Self::Group(key) => write!(formatter, "pod group {key}"),
            Self::Claim(key) => write!(formatter, "claim {key}"),
        }
    }
}

/// Starts the controller.
pub fn start(client: &Client, config: Config) -> Handle {
    let common = config.common;
    let client = identity::acting_as(client, &common.identity);
    let queue = Arc::new(Workqueue::new(common.backoff));
    let mut informers = JoinSet::new();

    // What changes of one kind mean for another is asked of stores, so the claims come first.
    let add = Arc::clone(&queue);
    let (claims, feed) = informer(
        Api::all(client.clone()),
        &common,
        |_| {},
        move |change: Change<ResourceClaim>| {
            let claim = change.object();
            if !matches!(change, Change::Deleted(_)) {
                add.add(Work::Claim(Key::of(&**claim)));
            }
            // Its owner makes another one if it is gone.
            if let Some(owner) = meta::controller(&claim.metadata) {
                let key = Key::new(meta::namespace(&claim.metadata), &owner.name);
                match owner.kind.as_str() {
                    "Pod" => add.add(Work::Pod(key)),
                    "PodGroup" => add.add(Work::Group(key)),
                    _ => {}
                }
            }
        },
    );
    informers.spawn(feed);
    let (templates, feed) = informer(Api::all(client.clone()), &common, |_| {}, |_| {});
    informers.spawn(feed);
    let (add, known) = (Arc::clone(&queue), claims.clone());
    let (pods, feed) = informer(
        Api::all(client.clone()),
        &common,
        |_| {},
        move |change: Change<Pod>| {
            let pod = change.object();
            let deleted = matches!(change, Change::Deleted(_));
            if deleted || decide::is_done(pod) {
                add_reserved(&add, &known, &pod.metadata);
            }
            if !deleted && !decide::pod_claims(pod).is_empty() {
                add.add(Work::Pod(Key::of(&**pod)));
            }
        },
    );
    informers.spawn(feed);
    let (add, known, members) = (Arc::clone(&queue), claims.clone(), pods.clone());
    let (groups, feed) = informer(
        Api::all(client.clone()),
        &common,
        |_| {},
        move |change: Change<PodGroup>| {
            let group = change.object();
            if matches!(change, Change::Deleted(_)) {
                add_reserved(&add, &known, &group.metadata);
                return;
            }
            add.add(Work::Group(Key::of(&**group)));
            for pod in members.list_in(meta::namespace(&group.metadata)) {
                let is_member = decide::group_of(&pod) == Some(meta::name(&group.metadata));
                if is_member && !decide::pod_claims(&pod).is_empty() {
                    add.add(Work::Pod(Key::of(&*pod)));
                }
            }
        },
    );
    informers.spawn(feed);

    let made = Mutex::default();
    let controller = Arc::new(Controller { client, pods, groups, claims, templates, made });
    let waiting = Arc::clone(&controller);
    let listed = async move {
        let all = &*waiting;
        tokio::join!(all.pods.synced(), all.groups.synced(), all.claims.synced(), all.templates.synced());
    };
    handle::start("resource-claims", common.workers, queue, informers, listed, move |work| {
        let controller = Arc::clone(&controller);
        async move {
            match work {
                Work::Pod(key) => controller.sync_pod(&key).await,
                Work::Group(key) => controller.sync_group(&key).await,
                Work::Claim(key) => controller.sync_claim(&key).await,
            }
        }
    })
}

/// Has the claims looked into that are reserved for an object.
fn add_reserved(queue: &Workqueue<Work>, claims: &Store<ResourceClaim>, consumer: &ObjectMeta) {
    for claim in claims.list_in(meta::namespace(consumer)) {
        if decide::reserved_for(&claim).iter().any(|reserved| reserved.uid == meta::uid(consumer)) {
            queue.add(Work::Claim(Key::of(&*claim)));
        }
    }
}

struct Controller {
    client: Client,
    pods: Store<Pod>,
    groups: Store<PodGroup>,
    claims: Store<ResourceClaim>,
    templates: Store<ResourceClaimTemplate>,
    /// The names of the claims that were made, by their owner's UID and its name for them: the stores may
    /// not have them yet.
    made: Mutex<BTreeMap<(String, String), String>>,
}

impl Controller {
    async fn sync_group(&self, key: &Key) -> Result<(), Error> {
        let Some(group) = self.groups.get(key).filter(|group| !meta::is_being_deleted(&group.metadata)) else {
            return Ok(());
        };
        let mut statuses = group.status.as_ref().and_then(|status| status.resource_claim_statuses.clone());
        let statuses = statuses.get_or_insert_default();
        let before = statuses.clone();
        for claim in decide::group_claims(&group) {
            let Some(template) = &claim.resource_claim_template_name else { continue };
            let recorded = decide::recorded_for_group(&group, &claim.name);
            let name = self.ensure(&*group, GROUP_CLAIM, &claim.name, template, recorded).await?;
            statuses.retain(|status| status.name != claim.name);
            statuses.push(PodGroupResourceClaimStatus { name: claim.name.clone(), resource_claim_name: Some(name) });
        }
        statuses.sort_by(|one, other| one.name.cmp(&other.name));
        if *statuses != before {
            self.merge_status::<PodGroup>(&group.metadata, &json!({ "resourceClaimStatuses": statuses })).await?;
        }
        Ok(())
    }

    async fn sync_pod(&self, key: &Key) -> Result<(), Error> {
        let Some(pod) = self.pods.get(key).filter(|pod| !meta::is_being_deleted(&pod.metadata)) else {
            return Ok(());
        };
        let group = decide::group_of(&pod).and_then(|name| self.groups.get(&Key::new(&key.namespace, name)));
        let mut statuses = pod.status.as_ref().and_then(|status| status.resource_claim_statuses.clone());
        let statuses = statuses.get_or_insert_default();
        let before = statuses.clone();
        for claim in decide::pod_claims(&pod) {
            let name = match decide::need(&pod, claim, group.as_deref()) {
                // A change of the group brings the pod back.
                Need::Given | Need::Unknown | Need::Shared(None) => continue,
                Need::Shared(Some(name)) => name,
                Need::Own(template) => {
                    let recorded = decide::recorded_for_pod(&pod, &claim.name);
                    self.ensure(&*pod, POD_CLAIM, &claim.name, &template, recorded).await?
                }
            };
            statuses.retain(|status| status.name != claim.name);
            statuses.push(PodResourceClaimStatus { name: claim.name.clone(), resource_claim_name: Some(name) });
        }
        statuses.sort_by(|one, other| one.name.cmp(&other.name));
        if *statuses != before {
            self.merge_status::<Pod>(&pod.metadata, &json!({ "resourceClaimStatuses": statuses })).await?;
        }
        Ok(())
    }

    /// The name of the claim that an owner calls `name`: the one that was made for it, or a new one.
    async fn ensure<K: Resource<DynamicType = ()>>(
        &self,
        owner: &K,
        annotation: &str,
        name: &str,
        template: &str,
        recorded: Option<&str>,
    ) -> Result<String, Error> {
        let (namespace, id) = (meta::namespace(owner.meta()), (meta::uid(owner.meta()).to_owned(), name.to_owned()));
        let is_made = |claim: &ResourceClaim| decide::is_made_for(claim, owner.meta(), annotation, name);
        let recorded = recorded.and_then(|recorded| self.claims.get(&Key::new(namespace, recorded)));
        let mut stored = recorded.into_iter().chain(self.claims.list_in(namespace));
        if let Some(claim) = stored.find(|claim| is_made(claim)) {
            self.made.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            return Ok(meta::name(&claim.metadata).to_owned());
        }
        let api = Api::<ResourceClaim>::namespaced(self.client.clone(), namespace);
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some(made) = made
            && found(api.get(&made).await)?.as_ref().is_some_and(is_made)
        {
            return Ok(made);
        }
        let from = self.templates.get(&Key::new(namespace, template));
        let from = from.ok_or_else(|| Error::NoTemplate(format!("{namespace}/{template}")))?;
        let claim = decide::new_claim(owner, annotation, name, &from);
        let claim = api.create(&PostParams::default(), &claim).await?;
        let claim = meta::name(&claim.metadata).to_owned();
        self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(id, claim.clone());
        Ok(claim)
    }

    async fn sync_claim(&self, key: &Key) -> Result<(), Error> {
        let Some(claim) = self.claims.get(key) else { return Ok(()) };
        let mut stay = Vec::new();
        for reserved in decide::reserved_for(&claim) {
            if !self.is_gone(&key.namespace, reserved).await? {
                stay.push(reserved.clone());
            }
        }
        let release = decide::release(&claim, stay);
        let mut metadata = claim.metadata.clone();
        let mut status = serde_json::Map::new();
        if let Some(stay) = &release.reserved_for {
            status.insert("reservedFor".into(), if stay.is_empty() { Value::Null } else { json!(stay) });
        }
        if release.deallocate {
            status.insert("allocation".into(), Value::Null);
        }
        if !status.is_empty() {
            let Some(changed) = self.merge_status::<ResourceClaim>(&metadata, &Value::Object(status)).await? else {
                return Ok(());
            };
            metadata = changed.metadata;
        }
        if release.unprotect {
            let patch = Patch::Merge(meta::finalizer_patch(&metadata, PROTECTION));
            let claims = Api::<ResourceClaim>::namespaced(self.client.clone(), &key.namespace);
            found(claims.patch(&key.name, &PatchParams::default(), &patch).await)?;
        }
        Ok(())
    }

    /// Whether a consumer will not use its claim again. That it is not there is asked of the API server:
    /// the stores may not have it yet.
    async fn is_gone(&self, namespace: &str, consumer: &ResourceClaimConsumerReference) -> Result<bool, Error> {
        let key = Key::new(namespace, &consumer.name);
        let is_it = |metadata: &ObjectMeta| meta::uid(metadata) == consumer.uid;
        match decide::consumer(consumer) {
            Some(Consumer::Pod) => match self.pods.get(&key).filter(|pod| is_it(&pod.metadata)) {
                Some(pod) => Ok(decide::is_done(&pod)),
                None => Ok(!self.exists::<Pod>(&key, &consumer.uid).await?),
            },
            Some(Consumer::PodGroup) => match self.groups.get(&key).filter(|group| is_it(&group.metadata)) {
                Some(_) => Ok(false),
                None => Ok(!self.exists::<PodGroup>(&key, &consumer.uid).await?),
            },
            None => Err(Error::UnknownConsumer(format!("{} {key}", consumer.resource))),
        }
    }

    async fn exists<K>(&self, key: &Key, uid: &str) -> Result<bool, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let object = found(Api::<K>::namespaced(self.client.clone(), &key.namespace).get(&key.name).await)?;
        Ok(object.is_some_and(|object| meta::uid(object.meta()) == uid))
    }

    /// Patches the status of exactly the version of the object that was looked at; none if it is gone.
    async fn merge_status<K>(&self, metadata: &ObjectMeta, status: &Value) -> Result<Option<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let api = Api::<K>::namespaced(self.client.clone(), meta::namespace(metadata));
        let version = json!({ "uid": metadata.uid, "resourceVersion": metadata.resource_version });
        let patch = Patch::Merge(json!({ "metadata": version, "status": status }));
        Ok(found(api.patch_status(meta::name(metadata), &PatchParams::default(), &patch).await)?)
    }
}
