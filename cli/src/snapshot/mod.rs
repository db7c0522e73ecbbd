//! A cluster as it is: StatefulSets with an intent, their Workloads, PodGroups and pods.

mod connect;
mod index;
mod member;

pub use connect::{Connected, connect};
pub use index::{Groups, PodGroupStatus};
pub use member::Member;

use anyhow::Context as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use statefulset_scheduling_core::api::{Carriers, View};
use statefulset_scheduling_core::plan::{self, Decision, Known, Settings, Subject};

use crate::progress::Progress;

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// All objects of a list, page by page.
///
/// # Errors
/// What the API server answers.
pub async fn list<K>(api: &Api<K>, params: ListParams) -> kube::Result<Vec<K>>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut params = params.limit(PAGE);
    let mut items = Vec::new();
    loop {
        let page = api.list(&params).await?;
        items.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(items),
        }
    }
}

/// A typed API of a namespace, or of all.
pub fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// StatefulSets as they are, with fields that no type knows.
fn statefulsets(client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<StatefulSet>(&());
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Reads a StatefulSet; none where it did not opt in.
fn subject(object: &DynamicObject) -> anyhow::Result<Option<Subject>> {
    let text = serde_json::to_string(object)?;
    let raw: &RawValue = serde_json::from_str(&text)?;
    Ok(Subject::new(&View::new(Some(raw))?, Carriers::default()))
}

/// A StatefulSet with an intent, and its pods.
pub struct Set {
    /// The StatefulSet.
    pub subject: Subject,
    /// Its pods, by their place.
    pub members: Vec<Member>,
}

impl Set {
    /// `namespace/name`
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.subject.namespace, self.subject.name)
    }

    /// Its size.
    pub fn replicas(&self) -> i32 {
        self.subject.spec.replicas.unwrap_or(1)
    }

    /// The place of a pod, from 0.
    pub fn index(&self, member: &Member) -> Option<i64> {
        member.index(&self.subject.name, self.subject.spec.ordinals_start)
    }

    /// What the controller has still to do, and what it says: the core decides it here as it does there.
    pub fn decision(&self, groups: &Groups) -> Decision {
        let bound = self.members.iter().filter(|member| !member.deleting);
        let without = bound.clone().any(|member| member.group.is_none()) && self.subject.labelled;
        let known = Known {
            has_pods: Some(!self.members.is_empty()),
            is_there: Some(true),
            parent_is_fresh: true,
            members_without_group: Some(without),
            ..Known::default()
        };
        let decision = plan::plan(&self.subject, groups, known, &Settings::default());
        // Pods of a set that falls back have no group for the reason that is told already.
        let falls_back = decision.policy.is_none();
        let reports = decision
            .reports
            .into_iter()
            .filter(|report| !(falls_back && report.reason == plan::Reason::MembersWithoutGroup));
        Decision { step: decision.step, reports: reports.collect(), policy: decision.policy }
    }
}

/// What was read of a cluster.
pub struct Snapshot {
    /// The StatefulSets with an intent, by namespace and name.
    pub sets: Vec<Set>,
    /// The UIDs of all StatefulSets that were read.
    pub uids: std::collections::HashSet<String>,
    /// Workloads and PodGroups.
    pub groups: Groups,
}

/// Reads a namespace, or all of them; with `name`, of the StatefulSets only that one.
///
/// # Errors
/// What the API server answers, or that there is no such StatefulSet.
pub async fn take(
    client: &Client,
    namespace: Option<&str>,
    name: Option<&str>,
    progress: &Progress,
) -> anyhow::Result<Snapshot> {
    progress.now("reading StatefulSets");
    let sets = statefulsets(client, namespace);
    let objects = match name {
        Some(name) => vec![sets.get(name).await.map_err(explain).context("the StatefulSet cannot be read")?],
        None => list(&sets, ListParams::default()).await.map_err(explain).context("StatefulSets cannot be read")?,
    };
    let uids = objects.iter().filter_map(|object| object.metadata.uid.clone()).collect();
    let mut subjects = Vec::new();
    for object in &objects {
        subjects.extend(subject(object)?);
    }
    if let (Some(name), true) = (name, subjects.is_empty()) {
        anyhow::bail!("the StatefulSet {name} has no scheduling intent");
    }
    progress.now("reading Workloads and PodGroups");
    let mut groups = Groups::default();
    let workloads = list(&api::<Workload>(client, namespace), ListParams::default()).await;
    for workload in workloads.map_err(explain).context("Workloads cannot be read")? {
        groups.add_workload(workload);
    }
    let pod_groups = list(&api::<PodGroup>(client, namespace), ListParams::default()).await;
    for pod_group in pod_groups.map_err(explain).context("PodGroups cannot be read")? {
        groups.add_pod_group(pod_group);
    }
    let mut sets = Vec::new();
    for subject in subjects {
        progress.now(&format!("reading the pods of {}", subject.name));
        progress.done(sets.len() as u64);
        let members = members(client, &subject).await?;
        sets.push(Set { subject, members });
    }
    sets.sort_by_key(Set::full_name);
    Ok(Snapshot { sets, uids, groups })
}

async fn members(client: &Client, subject: &Subject) -> anyhow::Result<Vec<Member>> {
    let Some(selector) = &subject.selector else { return Ok(Vec::new()) };
    let pods = api::<Pod>(client, Some(&subject.namespace));
    let pods = list(&pods, ListParams::default().labels(selector)).await.map_err(explain);
    let pods = pods.context("pods cannot be read")?.into_iter().filter_map(Member::new);
    let mut members: Vec<_> = pods.filter(|member| member.owner == subject.uid).collect();
    members.sort_by_key(|member| member.index(&subject.name, subject.spec.ordinals_start));
    Ok(members)
}

/// The error of the API server in its own words.
pub fn explain(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => anyhow::anyhow!("{}", status.message),
        kube::Error::Service(error) => {
            let mut source: &dyn std::error::Error = error.as_ref();
            while let Some(deeper) = source.source() {
                source = deeper;
            }
            anyhow::anyhow!("the API server does not answer: {source}")
        }
        error => error.into(),
    }
}
