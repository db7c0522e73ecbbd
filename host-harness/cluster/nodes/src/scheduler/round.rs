//! One pass over everything that waits for a node.
//!
//! Stands for the scheduling cycles of pods and of pod groups, in the order of the queue. All of it
//! sees one state, and what was decided earlier in the pass. Left out: cycles that overlap with
//! binding, Permit and Reserve plugins, and a second try in the same pass.

use std::collections::BTreeSet;

use super::Settings;
use super::board::{Board, Member};
use super::claims::ClaimUse;
use super::place::{Attempt, Domain, best, domains};
use super::preempt::{Plan, on_their_way, plan};
use super::units::{Unit, queue};
use crate::cluster::{Cluster, Condition, Group, Key, Pod};

/// The reason of pods and groups that fit nowhere.
pub const UNSCHEDULABLE: &str = "Unschedulable";

/// The reason of pods and groups that cannot be scheduled whatever is free.
pub const SCHEDULER_ERROR: &str = "SchedulerError";

/// What all pods of a group hear that waits for its victims to go.
const WAITING: &str = "pod group is waiting for preemption to complete";

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Bind pods, all of them in one go.
    Place(Placement),
    /// Push pods away.
    Preempt(Preemption),
    /// Tell of a pod why it has no node.
    Pod(PodReport),
    /// Tell of a group how it stands.
    Group(GroupReport),
    /// Nothing: a pod that is not looked at yet, and why.
    Hold {
        /// The pod.
        pod: Key,
        /// What it waits for.
        why: String,
    },
}

/// A pod and its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    /// Namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: String,
}

impl From<&Pod> for PodRef {
    fn from(pod: &Pod) -> Self {
        Self { key: pod.key.clone(), uid: pod.uid.clone() }
    }
}

/// Pods that are bound in one go, claims first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// What has to be written before any pod is bound.
    pub claims: Vec<ClaimUse>,
    /// The pods and their nodes.
    pub binds: Vec<(PodRef, String)>,
    /// What to tell of the group once all are bound.
    pub group: Option<GroupReport>,
}

/// Pods that are pushed away for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preemption {
    /// For whom.
    pub preemptor: Key,
    /// Who goes.
    pub victims: Vec<PodRef>,
    /// The groups that go as a whole.
    pub groups: Vec<Key>,
}

/// What is told of a pod. What is none is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodReport {
    /// The pod.
    pub pod: PodRef,
    /// `PodScheduled`.
    pub condition: Option<Condition>,
    /// The node where room is being made, or none any more.
    pub nominated: Option<Option<String>>,
}

/// What is told of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupReport {
    /// The group.
    pub group: Key,
    /// `PodGroupInitiallyScheduled`.
    pub condition: Condition,
}

/// What to do about the cluster as it is.
pub fn round(cluster: &Cluster, settings: &Settings) -> Vec<Decision> {
    let queue = queue(cluster, settings);
    let board = Board::new(cluster, &settings.devices);
    let mut round = Round { cluster, settings, board, going: BTreeSet::new(), decisions: Vec::new() };
    for (pod, why) in queue.held {
        round.decisions.push(Decision::Hold { pod: pod.key.clone(), why });
    }
    for (group, pods, why) in queue.refused {
        for pod in pods {
            round.report(pod, SCHEDULER_ERROR, &why, None);
        }
        round.report_group(group, SCHEDULER_ERROR, &why);
    }
    for unit in queue.units {
        round.schedule(&unit);
    }
    if settings.generic_workload {
        round.report_placed_groups();
    }
    round.decisions
}

struct Round<'a> {
    cluster: &'a Cluster,
    settings: &'a Settings,
    /// With the pods that were placed, and with those that room is being made for.
    board: Board<'a>,
    /// The victims of this pass.
    going: BTreeSet<&'a Key>,
    decisions: Vec<Decision>,
}

impl<'a> Round<'a> {
    fn schedule(&mut self, unit: &Unit<'a>) {
        let (domains, attempt) = match domains(self.cluster, unit.group, &unit.bound) {
            Ok(domains) => {
                let attempt = best(&self.board, &unit.members, &domains, self.settings.seed);
                (domains, attempt)
            }
            Err(why) => {
                return self.give_up(unit, &vec![why; unit.members.len()]);
            }
        };
        let Some(attempt) = attempt else { return };
        if attempt.places.len() < unit.need() {
            return self.make_room(unit, &domains, &attempt);
        }
        self.place(unit, &attempt);
        // The group is placed without the rest, which is on its own from here, in the same domain.
        let domain = [attempt.domain.clone()];
        for (index, why) in &attempt.failed {
            let mut bound = unit.bound.clone();
            bound.extend(attempt.places.iter().map(|place| unit.members[place.member].pod));
            let rest = Unit { members: vec![unit.members[*index].clone()], bound, ..unit.clone() };
            let failed = Attempt { failed: vec![(0, why.clone())], places: Vec::new(), ..attempt.clone() };
            self.make_room(&rest, &domain, &failed);
        }
    }

    /// Binds what fits.
    fn place(&mut self, unit: &Unit<'a>, attempt: &Attempt<'a>) {
        let placed = || attempt.places.iter().map(|place| &unit.members[place.member]);
        let needs = placed().flat_map(|member| member.needs.iter().flatten());
        let binds = attempt.places.iter().map(|place| (unit.members[place.member].pod.into(), place.node.to_owned()));
        self.decisions.push(Decision::Place(Placement {
            claims: attempt.board.claims.uses(needs),
            binds: binds.collect(),
            group: unit.group.and_then(scheduled),
        }));
        self.board = attempt.board.clone();
    }

    /// Pushes others away, or waits for those that were, or says why not.
    fn make_room(&mut self, unit: &Unit<'a>, domains: &[Option<Domain>], attempt: &Attempt<'a>) {
        if self.waits_for_room(unit) {
            return;
        }
        match plan(self.cluster, self.settings, &self.board, &self.going, unit, domains) {
            Some(plan) => self.preempt(unit, &plan),
            None => self.give_up(unit, &reasons(unit, domains, attempt)),
        }
    }

    /// Whether room is being made for the pods; then it is kept for them.
    fn waits_for_room(&mut self, unit: &Unit<'a>) -> bool {
        let nominated = |member: &Member<'a>| {
            let node = self.cluster.nodes.get(member.pod.nominated.as_deref()?)?;
            Some((member.pod, node.name.as_str()))
        };
        let nominated: Vec<_> = unit.members.iter().filter_map(nominated).collect();
        let mut going = on_their_way(self.cluster, self.settings, &self.going, unit.priority);
        let nodes: BTreeSet<_> = nominated.iter().map(|(_, node)| *node).collect();
        if nominated.len() < unit.need() || !going.any(|pod| pod.node.as_deref().is_some_and(|it| nodes.contains(it))) {
            return false;
        }
        for (pod, node) in nominated {
            self.board.charge(pod, node);
        }
        true
    }

    fn preempt(&mut self, unit: &Unit<'a>, plan: &Plan<'a>) {
        let pods = || plan.victims.iter().flat_map(|victims| &victims.pods).copied();
        let preemptor = unit.group.map(|group| &group.key).or(unit.members.first().map(|it| &it.pod.key));
        if let Some(preemptor) = preemptor.filter(|_| !plan.victims.is_empty()) {
            self.decisions.push(Decision::Preempt(Preemption {
                preemptor: preemptor.clone(),
                victims: pods().map(PodRef::from).collect(),
                groups: plan.victims.iter().filter_map(|victims| victims.group.cloned()).collect(),
            }));
        }
        self.going.extend(pods().map(|pod| &pod.key));
        for place in &plan.attempt.places {
            let pod = unit.members[place.member].pod;
            self.board.charge(pod, place.node);
            self.report(pod, UNSCHEDULABLE, WAITING, Some(place.node));
        }
        for (index, why) in &plan.attempt.failed {
            self.report(unit.members[*index].pod, UNSCHEDULABLE, why, None);
        }
        if let Some(group) = unit.group {
            self.report_group(group, UNSCHEDULABLE, WAITING);
        }
    }

    fn give_up(&mut self, unit: &Unit<'a>, reasons: &[String]) {
        for (member, why) in unit.members.iter().zip(reasons) {
            self.report(member.pod, UNSCHEDULABLE, why, None);
        }
        if let (Some(group), Some(why)) = (unit.group, reasons.iter().max_by_key(|why| why.starts_with("0/"))) {
            self.report_group(group, UNSCHEDULABLE, why);
        }
    }

    fn report(&mut self, pod: &Pod, reason: &str, message: &str, nominate: Option<&str>) {
        let condition = condition("False", reason, message);
        let condition = Some(condition).filter(|condition| pod.scheduled.as_ref() != Some(condition));
        let nominated = (pod.nominated.as_deref() != nominate).then(|| nominate.map(ToOwned::to_owned));
        if condition.is_some() || nominated.is_some() {
            self.decisions.push(Decision::Pod(PodReport { pod: pod.into(), condition, nominated }));
        }
    }

    /// Says that a group is not scheduled, unless it once was.
    fn report_group(&mut self, group: &Group, reason: &str, message: &str) {
        let condition = condition("False", reason, message);
        let same = |it: &Condition| it.status == "True" || *it == condition;
        if !group.scheduled.as_ref().is_some_and(same) {
            self.decisions.push(Decision::Group(GroupReport { group: group.key.clone(), condition }));
        }
    }

    /// Says that groups are scheduled whose members are bound, where it was not said then.
    fn report_placed_groups(&mut self) {
        for group in self.cluster.groups.values().filter(|group| !group.deleting) {
            let bound = || self.cluster.members(&group.key).filter(|pod| pod.is_bound()).count();
            if let Some(report) = scheduled(group)
                && bound() >= group.min_count.unwrap_or(1).max(1)
                && !self.decisions.iter().any(|it| matches!(it, Decision::Group(it) if it.group == group.key))
            {
                self.decisions.push(Decision::Group(report));
            }
        }
    }
}

/// Why each member has no node. Those that would fit hear of the rest.
fn reasons(unit: &Unit<'_>, domains: &[Option<Domain>], attempt: &Attempt<'_>) -> Vec<String> {
    let min_count = unit.group.and_then(|group| group.min_count).unwrap_or(1);
    let fit = unit.bound.len() + attempt.places.len();
    let together = format!("minCount ({min_count}) cannot be satisfied: {fit} scheduled, 0 remaining");
    let mut reasons = vec![together; unit.members.len()];
    for (index, why) in &attempt.failed {
        reasons[*index].clone_from(why);
    }
    let constrained = attempt.domain.as_ref().filter(|_| domains.len() > 1);
    if let Some(domain) = constrained {
        let many = domains.len();
        for why in &mut reasons {
            *why = format!("0/{many} placements are available, {} {}: {why}", domain.key, domain.value);
        }
    }
    reasons
}

/// The report that a group is placed, unless it was made.
fn scheduled(group: &Group) -> Option<GroupReport> {
    let told = group.scheduled.as_ref().is_some_and(|it| it.status == "True");
    (!told).then(|| GroupReport { group: group.key.clone(), condition: condition("True", "Scheduled", "") })
}

fn condition(status: &str, reason: &str, message: &str) -> Condition {
    Condition { status: status.to_owned(), reason: reason.to_owned(), message: message.to_owned() }
}
