//! A cluster to tell stories of: what is decided is done at once, and looked at again.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::{
    Claim, Cluster, Condition, DeviceRequest, Group, Key, Node, Pod, PriorityClass, Reference, Source,
};
use crate::quantity::{PODS, Resources};
use crate::scheduler::round::{Decision, round};
use crate::scheduler::{Preemption, Settings};

/// What one row of a table changes.
pub(super) type Change = fn(&mut World);

/// The cluster and the scheduler's settings.
#[derive(Default)]
pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) settings: Settings,
    created: i64,
}

fn key(name: &str) -> Key {
    Key::new("prod", name)
}

impl World {
    /// Nodes `n1`, `n2`, … with these numbers of processors.
    pub(super) fn with_nodes(cpus: &[i64]) -> Self {
        let mut world = Self::default();
        for (index, cpu) in cpus.iter().enumerate() {
            world.node(&format!("n{}", index + 1), *cpu, &[]);
        }
        world
    }

    pub(super) fn node(&mut self, name: &str, cpu: i64, labels: &[(&str, &str)]) {
        let node = Node {
            name: name.to_owned(),
            labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            allocatable: Resources::default().with("cpu", cpu).with(PODS, 110),
            ready: true,
            ..Node::default()
        };
        self.cluster.nodes.insert(name.to_owned(), Arc::new(node));
    }

    pub(super) fn change_node(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
        change(Arc::make_mut(self.cluster.nodes.get_mut(name).expect("the node is there")));
    }

    /// A gang, to be changed.
    pub(super) fn gang(&mut self, name: &str, min_count: usize) -> &mut Group {
        self.group(name).min_count = Some(min_count);
        self.change_group(name)
    }

    /// A Basic group, to be changed.
    pub(super) fn group(&mut self, name: &str) -> &mut Group {
        let group = Group { key: key(name), uid: format!("uid-{name}"), preempts: true, ..Group::default() };
        self.cluster.groups.insert(group.key.clone(), Arc::new(group));
        self.change_group(name)
    }

    pub(super) fn change_group(&mut self, name: &str) -> &mut Group {
        Arc::make_mut(self.cluster.groups.get_mut(&key(name)).expect("the group is there"))
    }

    /// A pod that waits, to be changed.
    pub(super) fn pod(&mut self, name: &str, cpu: i64) -> &mut Pod {
        self.created += 1;
        let pod = Pod {
            key: key(name),
            uid: format!("uid-{name}-{}", self.created),
            created: self.created,
            scheduler: "default-scheduler".to_owned(),
            preempts: true,
            requests: Resources::default().with("cpu", cpu).with(PODS, 1),
            ..Pod::default()
        };
        self.cluster.pods.insert(pod.key.clone(), Arc::new(pod));
        self.change_pod(name)
    }

    /// Pods `<group>-<from>` to `<group>-<to - 1>` of a group, with its priority.
    pub(super) fn members(&mut self, group: &str, ordinals: std::ops::Range<usize>, cpu: i64) {
        for ordinal in ordinals {
            let priority = self.cluster.groups.get(&key(group)).and_then(|group| group.priority);
            let pod = self.pod(&format!("{group}-{ordinal}"), cpu);
            pod.group = Some(group.to_owned());
            pod.priority = priority;
        }
    }

    pub(super) fn change_pod(&mut self, name: &str) -> &mut Pod {
        Arc::make_mut(self.cluster.pods.get_mut(&key(name)).expect("the pod is there"))
    }

    pub(super) fn remove_pod(&mut self, name: &str) {
        self.cluster.pods.remove(&key(name)).expect("the pod is there");
    }

    /// A claim for so many devices of class `gpu`.
    pub(super) fn claim(&mut self, name: &str, count: u32) {
        let request = DeviceRequest { name: "device".to_owned(), class: "gpu".to_owned(), count };
        let claim = Claim { key: key(name), requests: vec![request], ..Claim::default() };
        self.cluster.claims.insert(claim.key.clone(), Arc::new(claim));
    }

    pub(super) fn allocated(&self, name: &str) -> Option<Vec<String>> {
        let allocation = self.cluster.claims.get(&key(name))?.allocation.as_ref()?;
        Some(allocation.devices.iter().map(|it| format!("{}/{}", it.device.pool, it.device.name)).collect())
    }

    pub(super) fn class(&mut self, name: &str, value: i32, default: bool) {
        self.cluster.classes.insert(name.to_owned(), Arc::new(PriorityClass { value, default }));
    }

    /// What is decided now.
    pub(super) fn decide(&self) -> Vec<Decision> {
        round(&self.cluster, &self.settings)
    }

    /// Does what is decided, once. Victims are from then on being deleted.
    pub(super) fn step(&mut self) -> Vec<Decision> {
        let decisions = self.decide();
        for decision in &decisions {
            match decision {
                Decision::Place(placement) => {
                    for used in &placement.claims {
                        let claim = Arc::make_mut(self.cluster.claims.get_mut(&used.claim).expect("it is there"));
                        if let Some(allocation) = &used.allocate {
                            let allocated = claim.allocation.get_or_insert_with(|| allocation.clone());
                            assert_eq!(allocated, allocation, "a claim is allocated once");
                        }
                        claim.reserved.clone_from(&used.reserved);
                    }
                    for (pod, node) in &placement.binds {
                        let pod = self.change_pod(&pod.key.name);
                        assert_eq!(pod.node, None, "a pod is bound once");
                        pod.node = Some(node.clone());
                    }
                    if let Some(report) = &placement.group {
                        self.change_group(&report.group.name).scheduled = Some(report.condition.clone());
                    }
                }
                Decision::Preempt(preemption) => {
                    for pod in &preemption.victims {
                        self.change_pod(&pod.key.name).deleting = true;
                    }
                }
                Decision::Pod(report) => {
                    let pod = self.change_pod(&report.pod.key.name);
                    if let Some(condition) = &report.condition {
                        pod.scheduled = Some(condition.clone());
                    }
                    if let Some(nominated) = &report.nominated {
                        pod.nominated.clone_from(nominated);
                    }
                }
                Decision::Group(report) => {
                    self.change_group(&report.group.name).scheduled = Some(report.condition.clone());
                }
                Decision::Hold { .. } => {}
            }
        }
        self.assert_nothing_is_overcommitted();
        decisions
    }

    /// Does what is decided until nothing is; victims go at the end of each step.
    pub(super) fn settle(&mut self) {
        for _ in 0..20 {
            let decisions = self.step();
            let before = self.cluster.pods.len();
            self.cluster.pods.retain(|_, pod| !pod.deleting);
            if self.cluster.pods.len() == before && decisions.iter().all(|it| matches!(it, Decision::Hold { .. })) {
                return;
            }
        }
        panic!("it does not come to rest: {:#?}", self.decide());
    }

    fn assert_nothing_is_overcommitted(&self) {
        for (name, node) in &self.cluster.nodes {
            let mut used = Resources::default();
            let here = |pod: &&Arc<Pod>| pod.is_bound() && pod.node.as_ref() == Some(name);
            self.cluster.pods.values().filter(here).for_each(|pod| used.add(&pod.requests));
            assert_eq!(node.allocatable.lacks(&used).next(), None, "{name} has more than it can bear");
        }
    }

    /// The pods that are bound, with their nodes.
    pub(super) fn bound(&self) -> BTreeMap<&str, &str> {
        let bound = self.cluster.pods.values().filter_map(|pod| Some((pod.key.name.as_str(), pod.node.as_deref()?)));
        bound.collect()
    }

    /// How many pods of a group are bound.
    pub(super) fn bound_of(&self, group: &str) -> usize {
        self.cluster.members(&key(group)).filter(|pod| pod.is_bound()).count()
    }

    /// Reason and message of a pod.
    pub(super) fn told(&self, pod: &str) -> (&str, &str) {
        let condition = self.cluster.pods.get(&key(pod)).and_then(|pod| pod.scheduled.as_ref());
        condition.map_or(("", ""), |it| (&it.reason, &it.message))
    }

    /// The condition of a group.
    pub(super) fn told_of_group(&self, group: &str) -> Condition {
        self.cluster.groups.get(&key(group)).and_then(|group| group.scheduled.clone()).unwrap_or_default()
    }
}

/// The victims of a pass, by the pod or group that they go for.
pub(super) fn victims(decisions: &[Decision]) -> BTreeMap<&str, Vec<&str>> {
    let preemptions = decisions.iter().filter_map(|it| match it {
        Decision::Preempt(Preemption { preemptor, victims, .. }) => Some((preemptor, victims)),
        _ => None,
    });
    preemptions.map(|(by, pods)| (&*by.name, pods.iter().map(|pod| &*pod.key.name).collect())).collect()
}

/// A reference to a claim of this name.
pub(super) fn by_name(name: &str, claim: &str) -> Reference {
    Reference { name: name.to_owned(), source: Source::Claim(claim.to_owned()) }
}

/// A reference to a claim made from this template.
pub(super) fn by_template(name: &str, template: &str) -> Reference {
    Reference { name: name.to_owned(), source: Source::Template(template.to_owned()) }
}
