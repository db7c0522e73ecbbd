//! What a scene does to the cluster, and how it waits.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use cluster_apiserver::{Resource, View};
use kube::api::PropagationPolicy;
use serde_json::Value;

use super::deed::{Deed, Fact, Who};
use super::recorder::Recorder;
use super::scenes::Scene;
use super::teller::{self, Teller, seconds};
use super::timeline::{self, Check, Timeline};
use crate::objects::{Carrier, Set};
use crate::{Client, Cluster, invariants};

/// Where everything happens.
pub const NAMESPACE: &str = "default";
/// What nothing must be left of in the end.
pub const LEFTOVERS: [Resource; 6] = [
    Resource::StatefulSets,
    Resource::Workloads,
    Resource::PodGroups,
    Resource::Pods,
    Resource::ResourceClaims,
    Resource::ControllerRevisions,
];

/// A cluster with somebody who watches.
pub struct Stage {
    /// The cluster.
    pub cluster: Cluster,
    start: Instant,
    patience: Duration,
    recorder: Recorder,
    teller: Teller,
    played: Vec<timeline::Scene>,
}

impl Stage {
    /// Puts a cluster on the stage, where nothing is waited for longer than `patience`.
    pub fn new(cluster: Cluster, patience: Duration) -> Self {
        let start = Instant::now();
        let mut recorder = Recorder::default();
        cluster.api.look(|view| recorder.skip(view));
        Self { cluster, start, patience, recorder, teller: Teller::start(start), played: Vec::new() }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Says something that is no part of the timeline.
    pub fn text(&self, text: String) {
        self.teller.text(text);
    }

    /// Plays a scene, and tells whether it went as it should.
    pub async fn play(&mut self, number: usize, of: usize, scene: &Scene) -> bool {
        self.text(teller::opening(number, of, scene.title, scene.intro));
        let from = self.elapsed();
        let mut checks = Checks::default();
        if let Err(error) = (scene.play)(self, &mut checks).await {
            checks.that(false, format!("{error:#}"));
        }
        self.look();
        let title = scene.title.to_owned();
        let played = timeline::Scene { title, from, to: self.elapsed(), checks: checks.0 };
        self.text(String::new());
        for check in &played.checks {
            self.text(teller::checked(check));
        }
        let good = played.is_good();
        self.played.push(played);
        good
    }

    /// Says the summary, and returns all that was noticed.
    pub fn end(self) -> (Cluster, Timeline) {
        let total = self.elapsed();
        let requests: u64 = self.cluster.api.look(|view| view.counts().values().sum());
        self.text(format!("\n{}", teller::heading("What was checked")));
        for (index, scene) in self.played.iter().enumerate() {
            let took = seconds(scene.to.saturating_sub(scene.from));
            self.text(format!("\n  {}. {}  ({took})", index + 1, scene.title));
            for check in &scene.checks {
                self.text(teller::checked(check));
            }
        }
        self.text(format!(
            "\n  {} pods lived; {requests} API requests; {} evaluations of the policy module; {}",
            self.recorder.lives.len(),
            self.cluster.engine.evaluations(),
            seconds(total),
        ));
        let timeline = Timeline { scenes: self.played, lines: self.teller.end(), lives: self.recorder.lives };
        (self.cluster, timeline)
    }
}

/// What a scene does.
impl Stage {
    /// The user of the cluster.
    pub fn user(&self) -> Client {
        self.cluster.admin()
    }

    /// Tells that somebody does something.
    pub fn tell(&mut self, who: Who, what: impl Into<String>) {
        // What was done before stands before.
        self.look();
        let (at, deed) = (self.elapsed(), Deed::Says(what.into()));
        self.teller.fact(Fact { at, who, deed, set: String::new(), item: String::new() });
    }

    /// The user creates an object.
    ///
    /// # Errors
    /// It is refused.
    pub async fn create(&self, object: Value) -> anyhow::Result<Value> {
        let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
        self.user().create(object).await.with_context(|| format!("{what} is refused"))
    }

    /// The user creates a StatefulSet with an intent, in the carrier that the server stores.
    ///
    /// # Errors
    /// It is refused.
    pub async fn create_with(&self, set: Set, intent: &Value) -> anyhow::Result<Value> {
        self.create(set.with_intent(Carrier::of(self.cluster.options().profile), intent).object()).await
    }

    /// The user scales a StatefulSet.
    ///
    /// # Errors
    /// It is refused.
    pub async fn scale(&mut self, name: &str, replicas: i32) -> anyhow::Result<()> {
        self.tell(Who::User, format!("scales {name} to {replicas}"));
        self.user().scale(NAMESPACE, name, replicas).await.with_context(|| format!("{name} cannot be scaled"))
    }

    /// The user deletes a StatefulSet, as kubectl does.
    ///
    /// # Errors
    /// It is refused.
    pub async fn delete(&mut self, name: &str) -> anyhow::Result<()> {
        self.tell(Who::User, format!("deletes StatefulSet {name}"));
        let background = PropagationPolicy::Background;
        let deleted = self.user().delete(Resource::StatefulSets, NAMESPACE, name, background).await;
        deleted.with_context(|| format!("{name} cannot be deleted"))
    }

    /// Waits until nothing is left of any StatefulSet.
    ///
    /// # Errors
    /// Something stays.
    pub async fn until_empty(&mut self) -> anyhow::Result<()> {
        self.until("nothing is left", |view| LEFTOVERS.iter().all(|resource| view.len(*resource) == 0)).await
    }

    /// Waits until a StatefulSet has so many ready pods, and all objects agree.
    ///
    /// # Errors
    /// It does not come to that.
    pub async fn until_settled(&mut self, name: &str, replicas: usize) -> anyhow::Result<()> {
        let what = format!("{name} has {replicas} ready pods, and all objects agree");
        self.until(&what, |view| is_whole(view, name, replicas) && invariants::violations(view).is_empty()).await
    }

    /// Waits for a state, and notices everything on the way.
    ///
    /// # Errors
    /// It is not reached in time.
    pub async fn until(&mut self, what: &str, mut reached: impl FnMut(&View<'_>) -> bool) -> anyhow::Result<()> {
        let Self { cluster, start, patience, recorder, teller, .. } = self;
        let condition = |view: &View<'_>| {
            for fact in recorder.notice(start.elapsed(), view) {
                teller.fact(fact);
            }
            reached(view)
        };
        let reached = cluster.api.reaches(condition, *patience).await;
        anyhow::ensure!(reached, "{what} (waited for {} in vain)", seconds(*patience));
        Ok(())
    }

    /// Notices what happened since it last waited.
    fn look(&mut self) {
        let Self { cluster, start, recorder, teller, .. } = self;
        for fact in cluster.api.look(|view| recorder.notice(start.elapsed(), view)) {
            teller.fact(fact);
        }
    }
}

/// What a scene finds.
#[derive(Debug, Default)]
pub struct Checks(Vec<Check>);

impl Checks {
    /// Notes whether something holds.
    pub fn that(&mut self, holds: bool, what: impl Into<String>) {
        self.0.push(Check { what: what.into(), holds });
    }
}

/// The pods of a StatefulSet by its name, in the order of their names.
pub fn pods(view: &View<'_>, name: &str) -> Vec<Value> {
    let pods = view.list(Resource::Pods).into_iter();
    pods.filter(|pod| pod["metadata"]["labels"]["app"] == name).collect()
}

/// Whether a pod has a node.
pub fn is_bound(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_string()
}

/// Whether a pod is ready.
pub fn is_ready(pod: &Value) -> bool {
    crate::cluster::condition(pod, "Ready").is_some_and(|it| it.0 == "True")
}

/// How many pods of a StatefulSet are so.
pub fn how_many(view: &View<'_>, name: &str, so: fn(&Value) -> bool) -> usize {
    pods(view, name).iter().filter(|pod| so(pod)).count()
}

/// Whether a StatefulSet reports so many pods, all of them ready and of the newest revision.
pub fn is_whole(view: &View<'_>, name: &str, replicas: usize) -> bool {
    let set = view.get(Resource::StatefulSets, NAMESPACE, name).unwrap_or_default();
    let status = &set["status"];
    let counts = ["replicas", "readyReplicas", "availableReplicas", "updatedReplicas"];
    set["metadata"]["generation"] == status["observedGeneration"]
        && counts.iter().all(|count| status[*count].as_u64().unwrap_or(0) == replicas as u64)
        && status["currentRevision"] == status["updateRevision"]
}
