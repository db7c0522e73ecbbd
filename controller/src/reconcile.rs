//! Plan, then act, one step at a time, until there is nothing to do.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use k8s_openapi::api::scheduling::v1beta1 as objects;
use statefulset_scheduling_core::api::Carriers;
use statefulset_scheduling_core::discovery::{ControllerRef, Index as Lookup, PodGroup, Workload};
use statefulset_scheduling_core::plan::{self, Change, Decision, Known, Reason, Report, Settings, Step, Subject};
use statefulset_scheduling_core::workloadbuilder::PolicyType;

use crate::api::{Api, Stored};
use crate::events::Events;
use crate::failure::Failure;
use crate::index::{Attempt, Index, Key};
use crate::metrics::Metrics;
use crate::queue::Outcome;

/// More steps than any plan takes: what takes more is tried again later.
const MAX_STEPS: usize = 16;

/// What a reconcile needs.
pub struct Reconciler<A> {
    /// The API server.
    pub api: A,
    /// What is known of the cluster.
    pub index: Arc<Mutex<Index>>,
    /// Where events go.
    pub events: Events,
    /// What is measured.
    pub metrics: Arc<Metrics>,
    /// How the plan is made.
    pub settings: Settings,
    /// Where intents are read from.
    pub carriers: Carriers,
    /// Whether writes are only logged.
    pub dry_run: bool,
    progress: Mutex<HashMap<Key, Progress>>,
}

/// An attempt that is under way, until this is dropped: also when the attempt is given up.
struct UnderWay<'a> {
    index: &'a Mutex<Index>,
    attempt: Attempt,
}

impl<'a> UnderWay<'a> {
    fn begin(index: &'a Mutex<Index>) -> Self {
        let attempt = index.lock().unwrap_or_else(PoisonError::into_inner).begin();
        Self { index, attempt }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).end(self.attempt);
    }
}

/// The index, with the Workloads of a StatefulSet's parent as they were read just now: the cache of
/// them may lag behind the one of StatefulSets.
struct Fresh<'a> {
    index: &'a Index,
    subject: &'a Subject,
    parents: &'a [Workload],
}

impl Lookup for Fresh<'_> {
    fn workloads_of(&self, namespace: &str, controller: &ControllerRef) -> Vec<&Workload> {
        if self.subject.parent.as_ref().is_some_and(|parent| parent.reference == *controller) {
            self.parents.iter().filter(|workload| workload.controller.as_ref() == Some(controller)).collect()
        } else {
            self.index.workloads_of(namespace, controller)
        }
    }

    fn pod_groups_of(&self, namespace: &str, workload_name: &str) -> Vec<&PodGroup> {
        self.index.pod_groups_of(namespace, workload_name)
    }

    fn pod_groups_controlled_by(&self, namespace: &str, uid: &str) -> Vec<&PodGroup> {
        self.index.pod_groups_controlled_by(namespace, uid)
    }
}

/// What is remembered of a StatefulSet: for the metrics, and to look at its first pods once.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Since when something is out of step.
    since: Option<Instant>,
    creating: bool,
    /// Whether this process made its group and has not looked at its pods.
    new: bool,
    policy: Option<PolicyType>,
}

impl<A: Api> Reconciler<A> {
    /// A reconciler that writes.
    pub fn new(
        api: A,
        index: Arc<Mutex<Index>>,
        events: Events,
        metrics: Arc<Metrics>,
        settings: Settings,
        carriers: Carriers,
    ) -> Self {
        Self { api, index, events, metrics, settings, carriers, dry_run: false, progress: Mutex::default() }
    }

    /// Brings a StatefulSet's objects to where they should be.
    pub async fn reconcile(&self, key: &Key) -> Outcome {
        let start = Instant::now();
        let outcome = match self.run(key).await {
            Ok(()) => Outcome::Done,
            Err(failure) => {
                tracing::debug!(statefulset = %key, %failure, "not finished");
                failure.outcome()
            }
        };
        self.metrics.reconciled(start.elapsed());
        outcome
    }

    async fn run(&self, key: &Key) -> Result<(), Failure> {
        let attempt = UnderWay::begin(&self.index);
        self.find_unanswered(key, attempt.attempt).await?;
        let mut known = Known::default();
        let mut known_of = String::new();
        let mut parents = None;
        let mut bereaved = None;
        let mut met = HashSet::new();
        for _ in 0..MAX_STEPS {
            let Some(subject) = self.index().subject(key) else {
                self.forget(key);
                return Ok(());
            };
            // One that was made anew under the same name has pods, and perhaps a parent, of its own.
            if subject.uid != known_of {
                known_of.clone_from(&subject.uid);
                known = Known { look_at_members: self.is_new(key), ..Known::default() };
                parents = None;
                bereaved = None;
            }
            let went = self.index().bereaved(key, &subject.uid);
            if went != bereaved {
                bereaved = went;
                known = Known { objects_went: went.is_some(), is_there: None, ..known };
            }
            let decision = self.plan(&subject, known, parents.as_deref());
            self.events.say(&subject, &decision.reports);
            self.note(key, &decision);
            if decision.step.change() == Change::Write && self.dry_run {
                tracing::info!(statefulset = %key, step = ?decision.step, "would write");
                return Ok(());
            }
            match &decision.step {
                Step::Rest => return Ok(()),
                Step::AskPods => known.has_pods = Some(self.api.has_pods(&subject).await?),
                Step::AskStatefulSet => {
                    known.is_there = Some(match self.api.statefulset(&key.namespace, &key.name).await {
                        Ok(stored) => {
                            let now = stored.object.subject(self.carriers);
                            self.index().answer_subject(attempt.attempt, key.clone(), stored.version, now);
                            true
                        }
                        Err(Failure::NotFound(_)) => false,
                        Err(failure) => return Err(failure),
                    });
                }
                Step::AskParent => {
                    let workloads = self.api.workloads(&subject.namespace).await?;
                    parents = Some(workloads.into_iter().map(|stored| stored.object.into()).collect::<Vec<_>>());
                    known.parent_is_fresh = true;
                }
                Step::AskMembers => {
                    known.members_without_group = Some(self.api.has_members_without_group(&subject).await?);
                    self.progress().entry(key.clone()).or_default().new = false;
                }
                step => self.write(attempt.attempt, &subject, step, &mut met).await?,
            }
        }
        Err(Failure::Later { message: "the plan does not come to rest".to_owned(), wait: None })
    }

    fn plan(&self, subject: &Subject, known: Known, parents: Option<&[Workload]>) -> Decision {
        let index = self.index();
        match parents {
            None => plan::plan(subject, &*index, known, &self.settings),
            Some(parents) => plan::plan(subject, &Fresh { index: &index, subject, parents }, known, &self.settings),
        }
    }

    /// A PodGroup whose create had no answer may be there, though no watch has told of it. It must be
    /// known before another one is made.
    async fn find_unanswered(&self, key: &Key, attempt: Attempt) -> Result<(), Failure> {
        let Some(name) = self.index().unanswered(key).map(str::to_owned) else { return Ok(()) };
        match self.api.pod_group(&key.namespace, &name).await {
            Ok(stored) => self.answer_pod_group(attempt, stored),
            Err(Failure::NotFound(_)) => {}
            Err(failure) => return Err(failure),
        }
        self.index().looked_for(key);
        Ok(())
    }

    /// Makes a write, and puts its answer into the index. `met` has the names that were taken already.
    async fn write(
        &self,
        attempt: Attempt,
        subject: &Subject,
        step: &Step,
        met: &mut HashSet<String>,
    ) -> Result<(), Failure> {
        let namespace = &subject.namespace;
        match step {
            Step::CreateWorkload(workload) => {
                let name = workload.metadata.name.as_deref().unwrap_or_default();
                let stored = match self.api.create_workload(workload).await {
                    Err(Failure::AlreadyExists) => {
                        self.meet(subject, name, met)?;
                        self.api.workload(namespace, name).await?
                    }
                    created => self.created(subject, step, created)?,
                };
                self.answer_workload(attempt, stored);
                Ok(())
            }
            Step::CreatePodGroup(pod_group) => {
                let name = pod_group.metadata.name.as_deref().unwrap_or_default();
                let created = self.api.create_pod_group(pod_group).await;
                if let Err(Failure::Later { .. }) = &created {
                    self.index().lost(Key::new(namespace, &subject.name), name.to_owned());
                }
                let stored = match created {
                    Err(Failure::AlreadyExists) => {
                        self.meet(subject, name, met)?;
                        self.api.pod_group(namespace, name).await?
                    }
                    created => self.created(subject, step, created)?,
                };
                self.answer_pod_group(attempt, stored);
                Ok(())
            }
            Step::SetWorkloadMinCount(change) => {
                let patched = self.api.patch_workload(namespace, &change.name, &change.json_patch()).await;
                if let Err(Failure::Conflict(_)) = &patched {
                    // The next attempt must see what is there now.
                    self.answer_workload(attempt, self.api.workload(namespace, &change.name).await?);
                }
                self.answer_workload(attempt, self.written(subject, patched)?);
                Ok(())
            }
            Step::SetPodGroupMinCount(change) => {
                let patched = self.api.patch_pod_group(namespace, &change.name, &change.json_patch()).await;
                if let Err(Failure::Conflict(_)) = &patched {
                    self.answer_pod_group(attempt, self.api.pod_group(namespace, &change.name).await?);
                }
                self.answer_pod_group(attempt, self.written(subject, patched)?);
                Ok(())
            }
            Step::PublishBinding(binding) => {
                let patch = plan::binding_patch(&subject.uid, binding.as_deref());
                let patched = self.api.patch_statefulset(namespace, &subject.name, &patch).await;
                let stored = self.written(subject, patched)?;
                let after = stored.object.subject(self.carriers);
                self.index().answer_subject(attempt, Key::new(namespace, &subject.name), stored.version, after);
                Ok(())
            }
            Step::Rest | Step::AskPods | Step::AskStatefulSet | Step::AskParent | Step::AskMembers => Ok(()),
        }
    }

    /// Tells of a creation, or of why there was none.
    fn created<T>(
        &self,
        subject: &Subject,
        step: &Step,
        created: Result<Stored<T>, Failure>,
    ) -> Result<Stored<T>, Failure> {
        match &created {
            Ok(_) => {
                self.events.succeeded(subject);
                if let Some(report) = step.success() {
                    self.events.emit(subject, report);
                }
            }
            Err(Failure::NotLeading) => {}
            Err(failure) => {
                self.metrics.creation_error();
                let report = Report { reason: Reason::WorkloadCreationFailed, message: failure.to_string() };
                self.events.failed(subject, report);
            }
        }
        created
    }

    /// Tells of an update that fails until something changes.
    fn written<T>(&self, subject: &Subject, written: Result<Stored<T>, Failure>) -> Result<Stored<T>, Failure> {
        match &written {
            Ok(_) => self.events.succeeded(subject),
            Err(Failure::Terminal(message)) => {
                let report = Report { reason: Reason::WorkloadUpdateFailed, message: message.clone() };
                self.events.failed(subject, report);
            }
            Err(_) => {}
        }
        written
    }

    /// An object of the name that ours would have is there. Once, it is looked at: it may be ours,
    /// from an attempt whose answer was lost. If it is planned again it is not, and keeps ours from
    /// being made until it is gone.
    fn meet(&self, subject: &Subject, name: &str, met: &mut HashSet<String>) -> Result<(), Failure> {
        if met.insert(name.to_owned()) {
            return Ok(());
        }
        self.metrics.creation_error();
        let message = format!("{name} exists already, and is not this StatefulSet's");
        let report = Report { reason: Reason::WorkloadCreationFailed, message: message.clone() };
        self.events.failed(subject, report);
        Err(Failure::Later { message, wait: None })
    }

    fn answer_workload(&self, attempt: Attempt, stored: Stored<objects::Workload>) {
        let metadata = &stored.object.metadata;
        let key =
            Key::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default());
        self.index().answer_workload(attempt, key, stored.version, stored.object.into());
    }

    fn answer_pod_group(&self, attempt: Attempt, stored: Stored<objects::PodGroup>) {
        let metadata = &stored.object.metadata;
        let key =
            Key::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default());
        self.index().answer_pod_group(attempt, key, stored.version, stored.object.into());
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<Key, Progress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_new(&self, key: &Key) -> bool {
        self.progress().get(key).is_some_and(|progress| progress.new)
    }

    /// Measures how long it takes to get into step.
    fn note(&self, key: &Key, decision: &Decision) {
        let mut progress = self.progress();
        let entry = progress.entry(key.clone()).or_default();
        match &decision.step {
            Step::Rest | Step::AskMembers => {
                if let Some(since) = entry.since.take()
                    && decision.policy.is_some()
                {
                    if entry.creating {
                        self.metrics.created(since.elapsed());
                    } else {
                        self.metrics.resized(since.elapsed());
                    }
                }
                entry.creating = false;
                if entry.policy != decision.policy {
                    self.metrics.bound(entry.policy, decision.policy);
                    entry.policy = decision.policy;
                }
            }
            step => {
                entry.since.get_or_insert_with(Instant::now);
                entry.creating |= matches!(step, Step::AskPods | Step::CreateWorkload(_) | Step::CreatePodGroup(_));
                entry.new |= matches!(step, Step::CreatePodGroup(_));
            }
        }
    }

    fn forget(&self, key: &Key) {
        self.events.forget(key);
        let before = self.progress().remove(key);
        self.metrics.bound(before.and_then(|progress| progress.policy), None);
    }
}
