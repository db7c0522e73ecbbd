//! A model check of the controller: the real plan, the real index and the real reconciler in a
//! cluster in memory, through every interleaving of a small alphabet, and through long random lives.
//!
//! What must never be is judged at every write and after every step; and from every state that is
//! reached, everything is let come to rest, and is judged there.

mod model;

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use model::{
    Act, Action, Bounds, Brought, Foreign, Machine, Mishap, Propagation, RESOURCES, Request, Resource, Set, Shape,
    World,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use statefulset_scheduling_core::plan::Settings;

const CREATE: Act = Act::Create(Set::Web);
const DELETE: Act = Act::Delete(Set::Web, Propagation::Background);
const DELETE_IN_THE_FOREGROUND: Act = Act::Delete(Set::Web, Propagation::Foreground);
const FOREIGN: Act = Act::AddWorkload(Foreign::Theirs, Shape::Gang);
const FOREIGN_GOES: Act = Act::RemoveWorkload(Foreign::Theirs);
const COLLECT: [Act; 3] =
    [Act::Collect(Resource::Sets), Act::Collect(Resource::Workloads), Act::Collect(Resource::PodGroups)];

/// What an exhaustive search goes through.
struct Scope {
    title: &'static str,
    /// What every schedule begins with.
    first: Vec<Action>,
    /// The longest schedule, from there on.
    depth: usize,
    bounds: Bounds,
    lag: usize,
    /// What is reconciled.
    sets: Vec<Set>,
    /// What others do between reconciles.
    acts: Vec<Act>,
    /// What others do during a reconcile, at each request of it.
    during: Vec<Act>,
    /// What others do while a reply is on its way, told by the watches before it comes.
    overtaking: Vec<Act>,
}

impl Scope {
    fn new(title: &'static str, depth: usize, acts: &[Act]) -> Self {
        Self {
            title,
            first: Vec::new(),
            depth,
            bounds: Bounds { incarnations: 2, protection: false },
            lag: 3,
            sets: vec![Set::Web],
            acts: acts.to_vec(),
            during: Vec::new(),
            overtaking: Vec::new(),
        }
    }
}

/// How a world was reached.
struct Schedule {
    action: Action,
    before: Option<Arc<Self>>,
}

struct Reached {
    world: World,
    schedule: Option<Arc<Schedule>>,
}

/// A schedule on which something is violated.
struct Violation {
    schedule: Option<Arc<Schedule>>,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut actions = Vec::new();
        let mut at = self.schedule.as_ref();
        while let Some(schedule) = at {
            actions.push(schedule.action);
            at = schedule.before.as_ref();
        }
        write!(f, "{}, after", self.what)?;
        actions.iter().rev().enumerate().try_for_each(|(index, action)| write!(f, "\n  {}. {action:?}", index + 1))
    }
}

/// A set of digests that threads share.
#[derive(Default)]
struct Seen(Mutex<HashSet<u64>>);

impl Seen {
    fn add(&self, digest: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(digest)
    }

    fn has(&self, digest: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest)
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// A StatefulSet with its objects and its binding, told to everybody.
const RUNNING: [Action; 7] = [
    Action::Others(CREATE),
    Action::Tell(Resource::Sets),
    Action::Reconcile(Set::Web, Mishap::None),
    Action::Tell(Resource::Sets),
    Action::Tell(Resource::Workloads),
    Action::Tell(Resource::PodGroups),
    Action::Reconcile(Set::Web, Mishap::None),
];

struct Search {
    scope: Scope,
    states: Seen,
    at_rest: Seen,
    transitions: AtomicUsize,
}

impl Search {
    /// Goes through every schedule, the shortest first.
    fn run(scope: Scope) {
        let mut machine = Machine::new(World::new(scope.bounds, scope.lag), Settings::default());
        let mut schedule = None;
        for action in &scope.first {
            machine.step(*action).expect("it begins well");
            schedule = Some(Arc::new(Schedule { action: *action, before: schedule }));
        }
        let first = Reached { world: machine.world(), schedule };
        let search =
            Self { scope, states: Seen::default(), at_rest: Seen::default(), transitions: AtomicUsize::default() };
        search.states.add(first.world.digest());
        let mut frontier = vec![first];
        for depth in 1..=search.scope.depth {
            let halves = frontier.split_at(frontier.len() / 2);
            let mut next = Vec::new();
            std::thread::scope(|threads| {
                let workers = [halves.0, halves.1].map(|half| threads.spawn(|| search.expand_all(half, depth)));
                for worker in workers {
                    match worker.join().expect("the search goes on") {
                        Ok(reached) => next.extend(reached),
                        Err(violation) => panic!("{}: {violation}", search.scope.title),
                    }
                }
            });
            frontier = next;
        }
        println!(
            "{}: {} states, {} transitions, all schedules of {} + {} steps; from each state to rest, by {} more states",
            search.scope.title,
            search.states.len(),
            search.transitions.load(Ordering::Relaxed),
            search.scope.first.len(),
            search.scope.depth,
            search.at_rest.len(),
        );
    }

    fn expand_all(&self, frontier: &[Reached], depth: usize) -> Result<Vec<Reached>, Violation> {
        let mut next = Vec::new();
        for reached in frontier {
            self.expand(reached, &mut next)?;
            if depth == self.scope.depth {
                next.clear();
            }
        }
        Ok(next)
    }

    fn expand(&self, from: &Reached, next: &mut Vec<Reached>) -> Result<(), Violation> {
        for act in &self.scope.acts {
            self.step(from, Action::Others(*act), next)?;
        }
        for resource in RESOURCES {
            self.step(from, Action::Tell(resource), next)?;
        }
        self.step(from, Action::Restart, next)?;
        self.scope.sets.iter().try_for_each(|set| self.reconcile(from, *set, next))
    }

    /// Reconciles a StatefulSet, without a mishap and with each that may befall one of the requests.
    fn reconcile(&self, from: &Reached, set: Set, next: &mut Vec<Reached>) -> Result<(), Violation> {
        let requests = self.step(from, Action::Reconcile(set, Mishap::None), next)?;
        for (request, at) in requests.into_iter().zip(1..) {
            let mut mishaps = vec![Mishap::Fail(at)];
            if request == Request::Write {
                mishaps.extend([Mishap::LoseReply(at), Mishap::Crash(at)]);
            }
            mishaps.extend(self.scope.during.iter().map(|act| Mishap::Before(at, *act)));
            mishaps.extend(self.scope.during.iter().map(|act| Mishap::BeforeAndTold(at, *act)));
            mishaps.extend(self.scope.overtaking.iter().map(|act| Mishap::Overtaken(at, *act)));
            for mishap in mishaps {
                self.step(from, Action::Reconcile(set, mishap), next)?;
            }
        }
        Ok(())
    }

    /// Takes one step, and from where it leads everything is let come to rest.
    fn step(&self, from: &Reached, action: Action, next: &mut Vec<Reached>) -> Result<Vec<Request>, Violation> {
        if !from.world.allows(action) {
            return Ok(Vec::new());
        }
        let mut machine = Machine::new(from.world.clone(), Settings::default());
        let schedule = Arc::new(Schedule { action, before: from.schedule.clone() });
        let violated = |what| Violation { schedule: Some(Arc::clone(&schedule)), what };
        if !machine.step(action).map_err(violated)? {
            return Ok(Vec::new());
        }
        self.transitions.fetch_add(1, Ordering::Relaxed);
        let requests = machine.requests();
        if self.states.add(machine.digest()) {
            next.push(Reached { world: machine.world(), schedule: Some(Arc::clone(&schedule)) });
            let passed = machine.drain(|digest| self.at_rest.has(digest));
            let passed = passed.map_err(|what| violated(format!("from here on, everything arriving: {what}")))?;
            for digest in passed {
                self.at_rest.add(digest);
            }
        }
        Ok(requests)
    }
}

#[test]
fn every_schedule_of_lives_and_foreign_workloads_keeps_the_rules() {
    let scales = [0, 2, 5].map(|replicas| Act::Scale(Set::Web, replicas));
    let acts = [&[CREATE, DELETE, FOREIGN, FOREIGN_GOES], &scales[..], &COLLECT[1..]].concat();
    Search::run(Scope::new("lives and foreign workloads", 7, &acts));
    let mut scope = Scope::new("lives and foreign workloads, of a StatefulSet that is running", 6, &acts);
    scope.first = RUNNING.to_vec();
    Search::run(scope);
}

#[test]
fn every_schedule_of_pods_and_deletions_keeps_the_rules() {
    let acts = [
        CREATE,
        Act::Scale(Set::Web, 0),
        Act::Scale(Set::Web, 5),
        DELETE,
        DELETE_IN_THE_FOREGROUND,
        Act::StartPods(Set::Web),
        Act::EndPods,
        Act::Release,
        Act::RemoveOurs(Set::Web, Resource::PodGroups),
        Act::RemoveOurs(Set::Web, Resource::Workloads),
    ];
    let acts = [&acts[..], &COLLECT[..]].concat();
    for (title, first, depth) in
        [("pods and deletions", &[][..], 7), ("pods and deletions, of a StatefulSet that is running", &RUNNING, 6)]
    {
        let mut scope = Scope::new(title, depth, &acts);
        scope.first = first.to_vec();
        scope.bounds.protection = true;
        Search::run(scope);
    }
}

/// A PodGroup of ours that was made from a foreign Workload stays when that Workload goes.
#[test]
fn every_schedule_in_which_foreign_workloads_go_leaves_one_pod_group_for_each_stateful_set() {
    let acts = [CREATE, DELETE, FOREIGN, FOREIGN_GOES, COLLECT[1], COLLECT[2]];
    Search::run(Scope::new("PodGroups of foreign workloads", 7, &acts));
}

#[test]
fn every_schedule_of_stateful_sets_that_share_a_parent_keeps_the_rules() {
    let acts = [
        Act::Create(Set::Leader),
        Act::Create(Set::Workers),
        Act::Scale(Set::Workers, 5),
        Act::Delete(Set::Workers, Propagation::Background),
        Act::AddWorkload(Foreign::OfParent, Shape::Gang),
        Act::RemoveWorkload(Foreign::OfParent),
        Act::ResizeTheirs(Foreign::OfParent, 6),
        Act::Collect(Resource::PodGroups),
    ];
    let mut scope = Scope::new("StatefulSets of a parent", 7, &acts);
    scope.sets = vec![Set::Leader, Set::Workers];
    Search::run(scope);
}

#[test]
fn every_schedule_in_which_others_act_during_a_reconcile_keeps_the_rules() {
    let acts = [CREATE, Act::Scale(Set::Web, 5), DELETE, FOREIGN, FOREIGN_GOES, Act::StartPods(Set::Web)];
    let mut scope = Scope::new("acts during a reconcile", 7, &[&acts[..], &COLLECT[1..]].concat());
    scope.during = acts.to_vec();
    Search::run(scope);
}

#[test]
fn every_schedule_in_which_a_watch_overtakes_a_reply_keeps_the_rules() {
    let acts = [CREATE, Act::Scale(Set::Web, 5), DELETE, FOREIGN, FOREIGN_GOES];
    let mut scope = Scope::new("overtaken replies", 7, &[&acts[..], &COLLECT[1..]].concat());
    scope.overtaking =
        [&acts[1..], &[Act::RemoveOurs(Set::Web, Resource::Workloads), Act::RemoveOurs(Set::Web, Resource::PodGroups)]]
            .concat();
    Search::run(scope);
}

fn sets() -> impl Strategy<Value = Set> {
    use Set::{Db, Leader, MoreWorkers, Web, Workers};
    prop_oneof![3 => Just(Web), 1 => Just(Db), 1 => Just(Leader), 1 => Just(Workers), 1 => Just(MoreWorkers)]
}

fn resources() -> impl Strategy<Value = Resource> {
    prop::sample::select(&RESOURCES)
}

fn propagations() -> impl Strategy<Value = Propagation> {
    prop_oneof![3 => Just(Propagation::Background), 1 => Just(Propagation::Foreground), 1 => Just(Propagation::Orphan)]
}

fn foreigns() -> impl Strategy<Value = Foreign> {
    use Foreign::{OfDb, OfParent, OfParentToo, Theirs, TheirsToo, UnderOurName};
    prop_oneof![
        2 => Just(Theirs),
        1 => Just(TheirsToo),
        1 => Just(UnderOurName),
        1 => Just(OfDb),
        3 => Just(OfParent),
        1 => Just(OfParentToo),
    ]
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![4 => Just(Shape::Gang), 1 => Just(Shape::Basic), 1 => Just(Shape::None), 1 => Just(Shape::Two)]
}

fn acts() -> impl Strategy<Value = Act> {
    let made = || prop::sample::select(&[Resource::Workloads, Resource::PodGroups]);
    let brought =
        || prop::sample::select(&[Brought::ForWeb, Brought::ForWorkers, Brought::OfParent, Brought::OfMoreWorkers]);
    prop_oneof![
        8 => sets().prop_map(Act::Create),
        1 => sets().prop_map(Act::CreateWithOldBinding),
        5 => (sets(), 0..6).prop_map(|(set, replicas)| Act::Scale(set, replicas)),
        4 => (sets(), propagations()).prop_map(|(set, propagation)| Act::Delete(set, propagation)),
        2 => sets().prop_map(Act::StartPods),
        2 => Just(Act::EndPods),
        3 => (foreigns(), shapes()).prop_map(|(foreign, shape)| Act::AddWorkload(foreign, shape)),
        2 => foreigns().prop_map(Act::RemoveWorkload),
        1 => brought().prop_map(Act::AddPodGroup),
        1 => brought().prop_map(Act::RemovePodGroup),
        1 => (sets(), made()).prop_map(|(set, resource)| Act::RemoveOurs(set, resource)),
        1 => (sets(), made(), 1..9).prop_map(|(set, resource, size)| Act::ResizeOurs(set, resource, size)),
        1 => (foreigns(), 1..9).prop_map(|(foreign, size)| Act::ResizeTheirs(foreign, size)),
        3 => resources().prop_map(Act::Collect),
        1 => Just(Act::Release),
    ]
}

fn mishaps() -> impl Strategy<Value = Mishap> {
    prop_oneof![
        8 => Just(Mishap::None),
        2 => (1..6_usize).prop_map(Mishap::Fail),
        2 => (1..6_usize).prop_map(Mishap::LoseReply),
        2 => (1..6_usize).prop_map(Mishap::Crash),
        1 => (1..6_usize).prop_map(Mishap::Late),
        2 => (1..6_usize, acts()).prop_map(|(at, act)| Mishap::Before(at, act)),
        1 => (1..6_usize, acts()).prop_map(|(at, act)| Mishap::BeforeAndTold(at, act)),
        1 => (1..6_usize, acts()).prop_map(|(at, act)| Mishap::Overtaken(at, act)),
    ]
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        10 => acts().prop_map(Action::Others),
        12 => (0..3_usize).prop_map(Action::TellNext),
        10 => (0..5_usize, mishaps()).prop_map(|(place, mishap)| Action::ReconcileNext(place, mishap)),
        1 => resources().prop_map(Action::Relist),
        1 => Just(Action::Restart),
        1 => Just(Action::Land),
    ]
}

/// A long life story, and the cluster in which it takes place.
#[derive(Clone)]
struct Life {
    actions: Vec<Action>,
    protection: bool,
    pod_group_owner_reference: bool,
    lag: usize,
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protection, pod_group_owner_reference, lag, .. } = self;
        write!(f, "protection {protection}, ownerReference {pod_group_owner_reference}, lag {lag}")?;
        self.actions.iter().try_for_each(|action| write!(f, "\n  {action:?}"))
    }
}

/// How much happened.
#[derive(Default)]
struct Happened {
    steps: usize,
    reads: usize,
    writes: usize,
}

impl Life {
    fn live(&self) -> Result<Happened, String> {
        let bounds = Bounds { incarnations: u32::MAX, protection: self.protection };
        let settings = Settings { pod_group_owner_reference: self.pod_group_owner_reference, ..Settings::default() };
        let mut machine = Machine::new(World::new(bounds, self.lag), settings);
        let mut happened = Happened::default();
        for action in &self.actions {
            if machine.step(*action)? {
                happened.steps += 1;
                if matches!(action, Action::ReconcileNext(..)) {
                    let requests = machine.requests();
                    let writes = requests.iter().filter(|request| **request == Request::Write).count();
                    happened.writes += writes;
                    happened.reads += requests.len() - writes;
                }
            }
        }
        machine.drain(|_| false)?;
        Ok(happened)
    }

    /// A life without what does not matter for its violation.
    fn shortest(mut self) -> Self {
        let mut at = self.actions.len();
        while at > 0 {
            at -= 1;
            let mut shorter = self.clone();
            shorter.actions.remove(at);
            if shorter.live().is_err() {
                self = shorter;
                at = self.actions.len();
            }
        }
        self
    }
}

#[test]
fn long_random_lives_of_many_stateful_sets_keep_the_rules() {
    const CASES: u32 = 1500;
    let lives = (prop::collection::vec(actions(), 40..=80), any::<bool>(), any::<bool>(), 0..12_usize).prop_map(
        |(actions, protection, pod_group_owner_reference, lag)| Life {
            actions,
            protection,
            pod_group_owner_reference,
            lag,
        },
    );
    let config = Config { cases: CASES, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let (steps, reads, writes) = (AtomicUsize::default(), AtomicUsize::default(), AtomicUsize::default());
    let result = TestRunner::new(config).run(&lives, |life| {
        let happened = life.live().map_err(TestCaseError::fail)?;
        steps.fetch_add(happened.steps, Ordering::Relaxed);
        reads.fetch_add(happened.reads, Ordering::Relaxed);
        writes.fetch_add(happened.writes, Ordering::Relaxed);
        Ok(())
    });
    if let Err(TestError::Fail(_, life)) = &result {
        let life = life.clone().shortest();
        panic!("{}, in a life with {life:?}", life.live().err().unwrap_or_default());
    }
    result.expect("every life is lived");
    println!(
        "{CASES} lives: {} steps that changed something, and in their reconciles {} reads and {} writes",
        steps.into_inner(),
        reads.into_inner(),
        writes.into_inner()
    );
}
