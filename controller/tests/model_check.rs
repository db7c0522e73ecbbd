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
use proptest::test_runner::{Config, TestRunner};
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
    /// The longest schedule.
    depth: usize,
    bounds: Bounds,
    lag: usize,
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
            depth,
            bounds: Bounds { incarnations: 2, protection: false },
            lag: 3,
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

struct Search {
    scope: Scope,
    states: Seen,
    at_rest: Seen,
    transitions: AtomicUsize,
}

impl Search {
    /// Goes through every schedule, the shortest first.
    fn run(scope: Scope) {
        let first = Reached { world: World::new(scope.bounds, scope.lag), schedule: None };
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
            "{}: {} states, {} transitions, schedules of up to {} steps; from each state to rest, {} states on the way",
            search.scope.title,
            search.states.len(),
            search.transitions.load(Ordering::Relaxed),
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
        let requests = self.step(from, Action::Reconcile(Set::Web, Mishap::None), next)?;
        for (request, at) in requests.into_iter().zip(1..) {
            let mut mishaps = vec![Mishap::Fail(at)];
            if request == Request::Write {
                mishaps.extend([Mishap::LoseReply(at), Mishap::Crash(at)]);
            }
            mishaps.extend(self.scope.during.iter().map(|act| Mishap::Before(at, *act)));
            mishaps.extend(self.scope.during.iter().map(|act| Mishap::BeforeAndTold(at, *act)));
            mishaps.extend(self.scope.overtaking.iter().map(|act| Mishap::Overtaken(at, *act)));
            for mishap in mishaps {
                self.step(from, Action::Reconcile(Set::Web, mishap), next)?;
            }
        }
        Ok(())
    }

    /// Takes one step, and from where it leads everything is let come to rest.
    fn step(&self, from: &Reached, action: Action, next: &mut Vec<Reached>) -> Result<Vec<Request>, Violation> {
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
    Search::run(Scope::new("lives and foreign workloads", 6, &acts));
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
    let mut scope = Scope::new("pods and deletions", 6, &[&acts[..], &COLLECT[..]].concat());
    scope.bounds.protection = true;
    Search::run(scope);
}

#[test]
fn every_schedule_in_which_others_act_during_a_reconcile_keeps_the_rules() {
    let acts = [CREATE, Act::Scale(Set::Web, 5), DELETE, FOREIGN, FOREIGN_GOES];
    let mut scope = Scope::new("acts during a reconcile", 5, &[&acts[..], &COLLECT[1..]].concat());
    scope.during = [&acts[1..], &[CREATE, Act::StartPods(Set::Web)]].concat();
    Search::run(scope);
}

#[test]
fn every_schedule_in_which_a_watch_overtakes_a_reply_keeps_the_rules() {
    let acts = [CREATE, Act::Scale(Set::Web, 5), DELETE, FOREIGN, FOREIGN_GOES];
    let mut scope = Scope::new("overtaken replies", 5, &[&acts[..], &COLLECT[1..]].concat());
    scope.overtaking =
        [&acts[1..], &[Act::RemoveOurs(Set::Web, Resource::Workloads), Act::RemoveOurs(Set::Web, Resource::PodGroups)]]
            .concat();
    Search::run(scope);
}

fn sets() -> impl Strategy<Value = Set> {
    prop_oneof![3 => Just(Set::Web), 1 => Just(Set::Db), 1 => Just(Set::Leader), 1 => Just(Set::Workers), 1 => Just(Set::MoreWorkers)]
}

fn resources() -> impl Strategy<Value = Resource> {
    prop::sample::select(RESOURCES.to_vec())
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
    let made = || prop::sample::select(vec![Resource::Workloads, Resource::PodGroups]);
    let brought = || prop::sample::select(vec![Brought::ForWeb, Brought::ForWorkers, Brought::OfParent]);
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
    ]
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        10 => acts().prop_map(Action::Others),
        12 => resources().prop_map(Action::Tell),
        10 => (sets(), mishaps()).prop_map(|(set, mishap)| Action::Reconcile(set, mishap)),
        1 => resources().prop_map(Action::Relist),
        1 => Just(Action::Restart),
        1 => Just(Action::Land),
    ]
}

#[test]
fn long_random_lives_of_many_stateful_sets_keep_the_rules() {
    const CASES: u32 = 1500;
    let lives = (prop::collection::vec(actions(), 40..80), any::<bool>(), any::<bool>(), 0..12_usize);
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let (steps, requests) = (AtomicUsize::default(), AtomicUsize::default());
    let result = runner.run(&lives, |(actions, protection, pod_group_owner_reference, lag)| {
        let world = World::new(Bounds { incarnations: u32::MAX, protection }, lag);
        let mut machine = Machine::new(world, Settings { pod_group_owner_reference, ..Settings::default() });
        for action in actions {
            if machine.step(action).map_err(TestCaseError::fail)? {
                steps.fetch_add(1, Ordering::Relaxed);
                if matches!(action, Action::Reconcile(..)) {
                    requests.fetch_add(machine.requests().len(), Ordering::Relaxed);
                }
            }
        }
        machine.drain(|_| false).map_err(TestCaseError::fail)?;
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("{CASES} lives, {} steps that changed something, {} requests", steps.into_inner(), requests.into_inner());
}
