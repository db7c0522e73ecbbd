//! What is scheduled as one: a pod, or a group with its pods that wait.
//!
//! Stands for the scheduling queue and the gate before it: a pod waits for its PodGroup and, in a
//! gang, for `minCount` members to be there; a group whose members disagree fails. Left out: backoff
//! and queueing hints (everything is looked at whenever something changes), composite pod groups, and
//! agreement on preemption policies.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Settings;
use super::board::Member;
use super::claims::needs;
use super::order::rank;
use crate::cluster::{Cluster, Group, Key, Pod};

/// Pods that are scheduled as one.
#[derive(Clone, Debug)]
pub struct Unit<'a> {
    /// Their group.
    pub group: Option<&'a Group>,
    /// Those that wait for a node.
    pub members: Vec<Member<'a>>,
    /// Those that have one.
    pub bound: Vec<&'a Pod>,
    /// The priority of them all.
    pub priority: i32,
}

impl Unit<'_> {
    /// How many of those that wait have to be placed at once.
    pub fn need(&self) -> usize {
        let min_count = self.group.and_then(|group| group.min_count).unwrap_or(1);
        min_count.saturating_sub(self.bound.len()).max(1)
    }

    /// Whether they may push others away.
    pub fn preempts(&self) -> bool {
        self.group.is_none_or(|group| group.preempts) && self.members.iter().all(|member| member.pod.preempts)
    }
}

/// What there is to schedule.
#[derive(Clone, Debug, Default)]
pub struct Queue<'a> {
    /// In the order in which they are scheduled.
    pub units: Vec<Unit<'a>>,
    /// Pods that are not looked at, and what they wait for.
    pub held: Vec<(&'a Pod, String)>,
    /// Groups that cannot be scheduled whatever is free, their pods that wait, and why.
    pub refused: Vec<(&'a Group, Vec<&'a Pod>, String)>,
}

/// The priority of a pod, which is its group's where it has one.
pub fn priority(cluster: &Cluster, settings: &Settings, pod: &Pod) -> i32 {
    match group(cluster, settings, pod) {
        Some(group) => cluster.priority(group.priority, group.class.as_deref()),
        None => cluster.priority(pod.priority, pod.class.as_deref()),
    }
}

/// The group of a pod, if it is there and groups are looked at.
pub fn group<'a>(cluster: &'a Cluster, settings: &Settings, pod: &Pod) -> Option<&'a Group> {
    let name = pod.group.as_ref().filter(|_| settings.generic_workload)?;
    cluster.groups.get(&pod.key.beside(name)).map(|group| &**group)
}

/// Everything that waits for a node.
pub fn queue<'a>(cluster: &'a Cluster, settings: &Settings) -> Queue<'a> {
    let mut queue = Queue::default();
    let mut grouped: BTreeMap<Key, Vec<&'a Pod>> = BTreeMap::new();
    for pod in cluster.pods.values().filter(|pod| pod.is_pending()) {
        let group = pod.group.as_ref().filter(|_| settings.generic_workload);
        if pod.gated {
            queue.held.push((pod, "scheduling gates".to_owned()));
        } else if let Some(group) = group {
            grouped.entry(pod.key.beside(group)).or_default().push(pod);
        } else if pod.scheduler == settings.scheduler_name {
            let member = Member { pod, needs: needs(cluster, pod, None) };
            let priority = cluster.priority(pod.priority, pod.class.as_deref());
            queue.units.push(Unit { group: None, members: vec![member], bound: Vec::new(), priority });
        }
    }
    for (key, pods) in grouped {
        if pods.iter().any(|pod| pod.scheduler == settings.scheduler_name) {
            queue.sort_in(cluster, &key, pods);
        }
    }
    queue.units.sort_by_cached_key(|unit| {
        let pods = || unit.members.iter().map(|member| member.pod);
        let created = pods().map(|pod| pod.created).min();
        let first = unit.group.map(|group| &group.key).or_else(|| pods().next().map(|pod| &pod.key));
        let tie = first.map(|key| rank(settings.seed, &[&key.namespace, &key.name]));
        let nominated = pods().any(|pod| pod.nominated.is_some());
        (Reverse(unit.priority), !nominated, created, tie)
    });
    queue
}

impl<'a> Queue<'a> {
    /// Sorts in the pods of a group that wait.
    fn sort_in(&mut self, cluster: &'a Cluster, key: &Key, mut pods: Vec<&'a Pod>) {
        let mut hold = |why: String| self.held.extend(pods.iter().map(|pod| (*pod, why.clone())));
        let Some(group) = cluster.groups.get(key) else {
            return hold(format!("waiting for pod's pod group \"{}\" to appear", key.name));
        };
        if group.deleting {
            return hold(format!("pod group \"{}\" is being deleted", key.name));
        }
        let bound: Vec<&'a Pod> = cluster.members(&group.key).filter(|pod| pod.is_bound()).map(|pod| &**pod).collect();
        if group.min_count.is_some_and(|min_count| bound.len() + pods.len() < min_count) {
            return hold("waiting for minCount pods from a gang to appear".to_owned());
        }
        if let Err(why) = agreement(cluster, group, pods.iter().chain(&bound).copied()) {
            return self.refused.push((group, pods, why));
        }
        pods.sort_by_key(|pod| (pod.created, natural(&pod.key.name)));
        let members = pods.into_iter().map(|pod| Member { pod, needs: needs(cluster, pod, Some(group)) }).collect();
        let priority = cluster.priority(group.priority, group.class.as_deref());
        self.units.push(Unit { group: Some(group), members, bound, priority });
    }
}

/// A name in an order that has `web-2` before `web-10`.
fn natural(name: &str) -> (&str, u64, &str) {
    let (stem, number) = name.rsplit_once('-').unwrap_or((name, ""));
    number.parse().map_or((name, 0, name), |ordinal| (stem, ordinal, name))
}

/// Whether the members agree with each other and with their group.
fn agreement<'a>(cluster: &Cluster, group: &Group, members: impl Iterator<Item = &'a Pod>) -> Result<(), String> {
    let expected = cluster.priority(group.priority, group.class.as_deref());
    let mut scheduler = None;
    for pod in members {
        let first = *scheduler.get_or_insert(&pod.scheduler);
        if pod.scheduler != *first {
            return Err(format!(
                "all pods in a single pod group should have the same .spec.schedulerName set, got: {:?} and {first:?}",
                pod.scheduler
            ));
        }
        let priority = cluster.priority(pod.priority, pod.class.as_deref());
        if priority != expected {
            return Err(format!(
                "all pods in a single pod group should have the same priority as the pod group's priority, \
                 got {priority} and {expected}"
            ));
        }
    }
    Ok(())
}
