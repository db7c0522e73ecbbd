//! Random faults over random lives of StatefulSets, from a seed.
//!
//! All choices come from the seed: what people do, which requests fail and how, how late controllers learn of
//! changes. What is not chosen is how the parts interleave, so a seed that fails may have to be run more than
//! once to fail again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cluster_apiserver::{ADMIN, Fault, Faults, Occasion, Profile, Resource, Seeded, View};
use cluster_controllers::{Backoff, Lag};
use cluster_nodes::kubelet::Timings;
use fastrand::Rng;
use host_harness::module::Policy;
use kube::api::PropagationPolicy;
use serde_json::{Value, json};
use statefulset_scheduling_core::admission::DEFAULT_CONTROLLER;
use statefulset_scheduling_core::api::MANAGED_LABEL;

use crate::cluster::{Cluster, Options};
use crate::controller::As;
use crate::engine::Health;
use crate::invariants::{always, is_opted_in, violations};
use crate::objects::{Carrier, Set, gang};

/// The namespace of all lives.
const NAMESPACE: &str = "default";
/// The StatefulSets that a life is about.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// A StatefulSet whose Workload is somebody else's.
const FOREIGN: &str = "foreign";
/// How long it may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long it is watched that nothing is written at rest.
const QUIET: Duration = Duration::from_millis(300);

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create { name: &'static str, replicas: i32, gang: bool },
    CreatePlain { replicas: i32 },
    CreateForeign,
    Scale { name: &'static str, replicas: i32 },
    Update { name: &'static str, version: u32 },
    Delete { name: &'static str, foreground: bool },
    Recreate { name: &'static str, replicas: i32 },
    DeletePod { name: &'static str, ordinal: u32 },
    Evict { name: &'static str, ordinal: u32 },
    CrashController,
    RestartStatefulSetController,
    RestartApiServer,
    Engine(Health),
    CutWatches,
}

/// A life: steps, with a pause before each.
struct Story(Vec<(Duration, Step)>);

impl Story {
    fn new(random: &mut Rng) -> Self {
        let mut steps = vec![(Duration::ZERO, Step::Create { name: "a", replicas: random.i32(0..5), gang: true })];
        for version in 0..random.u32(6..14) {
            let name = NAMES[random.usize(..NAMES.len())];
            let (replicas, ordinal) = (random.i32(0..5), random.u32(0..4));
            let step = match random.u32(0..100) {
                0..18 => Step::Create { name, replicas, gang: random.bool() },
                18..40 => Step::Scale { name, replicas },
                40..46 => Step::Update { name, version },
                46..54 => Step::Delete { name, foreground: random.bool() },
                54..62 => Step::Recreate { name, replicas },
                62..68 => Step::DeletePod { name, ordinal },
                68..73 => Step::Evict { name, ordinal },
                73..81 => Step::CrashController,
                81..84 => Step::RestartStatefulSetController,
                84..87 => Step::RestartApiServer,
                87..90 => Step::Engine(Health::Down),
                90..92 => Step::Engine(Health::Failing),
                92..95 => Step::CreateForeign,
                95..98 => Step::CutWatches,
                _ => Step::CreatePlain { replicas },
            };
            steps.push((Duration::from_millis(random.u64(0..120)), step));
        }
        Self(steps)
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (pause, step) in &self.0 {
            writeln!(f, "  after {:>3} ms  {step:?}", pause.as_millis())?;
        }
        Ok(())
    }
}

/// What was seen of a seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Requests to the API server.
    pub requests: usize,
    /// Requests that failed on purpose.
    pub faults: usize,
    /// States in which what must always hold was checked.
    pub states: usize,
}

/// Faults for everybody but the people, counted by the server's log.
struct Trouble(Seeded);

impl Faults for Trouble {
    fn decide(&self, occasion: &Occasion<'_>) -> Option<Fault> {
        if occasion.user == ADMIN { None } else { self.0.decide(occasion) }
    }
}

/// Runs the life of a seed.
///
/// # Errors
/// What does not hold, with the story.
pub async fn run(policy: Arc<Policy>, seed: u64) -> Result<Seen, String> {
    let mut random = Rng::with_seed(seed);
    let profile = if random.bool() { Profile::Kep } else { Profile::V1_37 };
    let lag = Duration::from_millis(random.u64(0..20));
    let per_mille = random.u16(20..150);
    let story = Story::new(&mut random);
    let options = Options {
        profile,
        seed,
        lag: Lag::up_to(lag, seed),
        backoff: Backoff { base: Duration::from_millis(5), cap: Duration::from_millis(250) },
        timings: Timings {
            start: Duration::from_millis(5),
            ready: Duration::from_millis(5),
            shutdown: Duration::from_millis(10),
            grace_second: Duration::from_millis(5),
        },
        ..Options::default()
    };
    let told = |what: String| {
        format!("seed {seed} ({profile:?}, {per_mille}‰ of requests fail, lag up to {lag:?}): {what}\n{story}")
    };
    let cluster = Cluster::start(policy, options).await.map_err(|error| told(error.to_string()))?;
    Life { cluster, random, per_mille, seed }.live(&story).await.map_err(told)
}

struct Life {
    cluster: Cluster,
    random: Rng,
    per_mille: u16,
    seed: u64,
}

impl Life {
    async fn live(mut self, story: &Story) -> Result<Seen, String> {
        let longest_delay = Duration::from_millis(20);
        let trouble = Seeded { seed: self.seed, per_mille: self.per_mille, longest_delay };
        self.cluster.api.set_faults(Trouble(trouble));
        let mut states = 0;
        for (pause, step) in &story.0 {
            // In the pause, every change of state is looked at.
            let broken = |view: &View<'_>| {
                states += 1;
                !broken(view).is_empty()
            };
            if self.cluster.api.reaches(broken, *pause).await {
                return Err(self.cluster.api.look(|view| self::broken(view).join("; ")));
            }
            self.step(*step).await?;
        }
        self.cluster.api.clear_faults();
        self.cluster.engine.set_health(Health::Up);
        let mut wrong = Vec::new();
        let at_rest = |view: &View<'_>| {
            states += 1;
            wrong = broken(view);
            wrong.is_empty() && {
                wrong = resting(view);
                wrong.is_empty()
            }
        };
        if !self.cluster.api.reaches(at_rest, PATIENCE).await {
            return Err(format!("it does not come to rest: {}\n{}", wrong.join("; "), self.last_requests()));
        }
        self.quiet().await?;
        self.foreign_untouched()?;
        let seen = self.cluster.api.look(|view| Seen {
            requests: view.requests().len(),
            faults: view.requests().iter().filter(|it| it.answer.is_none_or(|code| matches!(code, 429 | 500))).count(),
            states,
        });
        self.end().await?;
        Ok(seen)
    }

    /// At rest nothing is written, events aside: they may still be on their way.
    async fn quiet(&self) -> Result<(), String> {
        let writes = |view: &View<'_>| {
            let of_controller = |request: &&cluster_apiserver::Request| {
                &*request.user == DEFAULT_CONTROLLER && request.verb.is_write() && request.resource != Resource::Events
            };
            view.requests().iter().filter(of_controller).count()
        };
        // A cache that is behind may repeat a write whose answer was lost. It catches up, or it never ends.
        for _ in 0..20 {
            let before = self.cluster.api.look(writes);
            if !self.cluster.api.reaches(|view| writes(view) > before, QUIET).await {
                return Ok(());
            }
        }
        Err(format!("the controller goes on writing at rest\n{}", self.last_requests()))
    }

    /// The last writes, for who looks into a failure.
    fn last_requests(&self) -> String {
        self.cluster.api.look(|view| {
            let writes = view.requests().iter().rev().filter(|request| request.verb.is_write()).take(30);
            let line = |it: &cluster_apiserver::Request| {
                let (name, part) =
                    (it.name.as_deref().unwrap_or_default(), it.subresource.map_or("", |it| it.as_str()));
                format!("  {} {} {} {} {name} {part} {:?}\n", it.sequence, it.user, it.verb, it.resource, it.answer)
            };
            let mut lines: Vec<_> = writes.map(line).collect();
            lines.reverse();
            lines.concat()
        })
    }

    /// Nothing of somebody else's was written to.
    fn foreign_untouched(&self) -> Result<(), String> {
        let touched = self.cluster.api.look(|view| {
            let kinds = [Resource::Workloads, Resource::PodGroups];
            let is_touched = |request: &&cluster_apiserver::Request| {
                &*request.user == DEFAULT_CONTROLLER
                    && request.verb.is_write()
                    && kinds.contains(&request.resource)
                    && request.name.as_deref() == Some(FOREIGN)
            };
            view.requests().iter().filter(is_touched).count()
        });
        if touched > 0 { Err(format!("{touched} writes to somebody else's object")) } else { Ok(()) }
    }

    /// Deletes everything that people made; nothing may be left.
    async fn end(mut self) -> Result<(), String> {
        let admin = self.cluster.admin();
        let names = admin.names(Resource::StatefulSets, NAMESPACE).await.map_err(|error| error.to_string())?;
        for name in names {
            let policy = self.propagation();
            let deleted = admin.delete(Resource::StatefulSets, NAMESPACE, &name, policy).await;
            deleted.map_err(|error| error.to_string())?;
        }
        let left = |view: &View<'_>| {
            let kinds = [Resource::StatefulSets, Resource::Pods, Resource::PodGroups, Resource::Workloads];
            let objects = kinds.iter().flat_map(|resource| view.list(*resource));
            let names = objects.map(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            // A Workload that the user made is the user's to delete.
            names.filter(|name| name != FOREIGN).collect::<Vec<_>>()
        };
        if !self.cluster.api.reaches(|view| left(view).is_empty(), PATIENCE).await {
            return Err(format!("left after all deletes: {}", self.cluster.api.look(left).join(", ")));
        }
        Ok(())
    }

    fn propagation(&mut self) -> PropagationPolicy {
        if self.random.bool() { PropagationPolicy::Background } else { PropagationPolicy::Foreground }
    }

    /// People may be refused: what they want may not be there, or be there already.
    async fn step(&mut self, step: Step) -> Result<(), String> {
        let admin = self.cluster.admin();
        let carrier = Carrier::of(self.cluster.options().profile);
        let set = |name: &str, replicas, is_gang| {
            let intent = if is_gang { gang() } else { json!({ "schedulingPolicy": { "basic": {} } }) };
            Set::new(name, replicas).with_intent(carrier, &intent).object()
        };
        match step {
            Step::Create { name, replicas, gang } => drop(admin.create(set(name, replicas, gang)).await),
            Step::CreatePlain { replicas } => drop(admin.create(Set::new("plain", replicas).object()).await),
            Step::CreateForeign => {
                let _ = admin.create(foreign_workload()).await;
                let _ = admin.create(set(FOREIGN, 2, true)).await;
            }
            Step::Scale { name, replicas } => drop(admin.scale(NAMESPACE, name, replicas).await),
            Step::Update { name, version } => {
                let annotations = json!({ "version": version.to_string() });
                let patch = json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } });
                let _ = admin.merge(Resource::StatefulSets, NAMESPACE, name, patch).await;
            }
            Step::Delete { name, foreground } => {
                let policy = if foreground { PropagationPolicy::Foreground } else { PropagationPolicy::Background };
                let _ = admin.delete(Resource::StatefulSets, NAMESPACE, name, policy).await;
            }
            Step::Recreate { name, replicas } => {
                let _ = admin.delete(Resource::StatefulSets, NAMESPACE, name, PropagationPolicy::Background).await;
                let _ = admin.create(set(name, replicas, true)).await;
            }
            Step::DeletePod { name, ordinal } => {
                let pod = format!("{name}-{ordinal}");
                let _ = admin.delete(Resource::Pods, NAMESPACE, &pod, PropagationPolicy::Background).await;
            }
            Step::Evict { name, ordinal } => drop(admin.evict(NAMESPACE, &format!("{name}-{ordinal}")).await),
            Step::CrashController => {
                self.cluster.kill_controller().await;
                self.cluster.start_controller(As::Library).await.map_err(|error| error.to_string())?;
            }
            Step::RestartStatefulSetController => {
                self.cluster.stop_statefulset_controller().await;
                self.cluster.start_statefulset_controller().await;
            }
            Step::RestartApiServer => {
                self.cluster.api.stop().await;
                self.cluster.api.restart().await.map_err(|error| error.to_string())?;
            }
            Step::Engine(health) => {
                self.cluster.engine.set_health(health);
                // For a moment only: what is held meanwhile is seen in the next pause.
                let moment = Duration::from_millis(self.random.u64(10..80));
                if self.cluster.api.reaches(|view| !broken(view).is_empty(), moment).await {
                    return Err(self.cluster.api.look(|view| broken(view).join("; ")));
                }
                self.cluster.engine.set_health(Health::Up);
            }
            Step::CutWatches => {
                for resource in [Resource::StatefulSets, Resource::Workloads, Resource::PodGroups, Resource::Pods] {
                    self.cluster.api.cut_watches(resource);
                }
            }
        }
        Ok(())
    }
}

/// A Workload of the user's for a StatefulSet.
fn foreign_workload() -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": { "name": FOREIGN },
        "spec": {
            "controllerRef": { "apiGroup": "apps", "kind": "StatefulSet", "name": FOREIGN },
            "podGroupTemplates": [{ "name": "members", "schedulingPolicy": { "gang": { "minCount": 1 } } }],
        },
    })
}

/// What must never be: also, no pod that is to be in a group is outside of it.
fn broken(view: &View<'_>) -> Vec<String> {
    let mut wrong = always(view);
    for pod in view.list(Resource::Pods) {
        let is_managed = pod["metadata"]["labels"][MANAGED_LABEL] == "true";
        if is_managed && pod["spec"]["schedulingGroup"].is_null() {
            wrong.push(format!("the pod {} is in no group", pod["metadata"]["name"]));
        }
    }
    wrong
}

/// What is wrong at rest.
fn resting(view: &View<'_>) -> Vec<String> {
    // What is made for a StatefulSet with somebody else's Workload is judged by `always` alone.
    let mut wrong: Vec<_> = violations(view).into_iter().filter(|what| !what.contains(FOREIGN)).collect();
    for set in view.list(Resource::StatefulSets) {
        let replicas = set["spec"]["replicas"].as_i64().unwrap_or(1);
        let ready = set["status"]["readyReplicas"].as_i64().unwrap_or(0);
        let is_observed = set["metadata"]["generation"] == set["status"]["observedGeneration"];
        if ready != replicas || !is_observed {
            wrong.push(format!("{} has {ready} ready pods of {replicas}", set["metadata"]["name"]));
        }
        if set["metadata"]["name"] == FOREIGN && !is_opted_in(&set) {
            wrong.push("the intent of the StatefulSet with somebody else's Workload is gone".to_owned());
        }
    }
    wrong
}
