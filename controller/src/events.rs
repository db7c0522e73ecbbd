//! Events on StatefulSets. They are emitted in the background: an event that cannot be written holds
//! back nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use leaky_bucket::RateLimiter;
use statefulset_scheduling_core::api::{API_VERSION, KIND};
use statefulset_scheduling_core::plan::{Reason, Report, Subject};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::index::Key;
use crate::kube_api::FIELD_MANAGER;
use crate::metrics::Metrics;

/// How many events wait to be emitted; more are dropped, and counted.
const WAITING: usize = 32_768;
/// How many events are written at once.
const AT_ONCE: usize = 32;
/// The API's bound on a message, in bytes.
const MAX_MESSAGE: usize = 1024;

struct Emission {
    reference: ObjectReference,
    report: Report,
}

/// Writes events.
struct Emitter {
    /// Joins warnings that repeat themselves into a series.
    recorder: Recorder,
    client: kube::Client,
    instance: String,
    limiter: Option<RateLimiter>,
    metrics: Arc<Metrics>,
}

impl Emitter {
    async fn emit(&self, Emission { reference, report }: Emission) {
        if let Some(limiter) = &self.limiter {
            limiter.acquire_one().await;
        }
        let result = if report.reason.is_warning() {
            self.recorder.publish(&event(&report), &reference).await
        } else {
            self.create(&reference, &report).await
        };
        let code = match &result {
            Ok(()) => 201,
            Err(kube::Error::Api(status)) => status.code,
            Err(_) => 0,
        };
        self.metrics.request("create", "events", code);
        if let Err(error) = result {
            tracing::debug!(%error, reason = report.reason.as_str(), "an event was not emitted");
        }
    }

    /// Writes an event that happens once: the recorder would remember it, and look through all that it
    /// remembers for each.
    async fn create(&self, reference: &ObjectReference, report: &Report) -> kube::Result<()> {
        let now = Timestamp::now();
        let event = event(report);
        let name = reference.name.as_deref().unwrap_or_default();
        let event = k8s_openapi::api::events::v1::Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}", now.as_nanosecond())),
                namespace: reference.namespace.clone(),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            action: Some(event.action),
            reason: Some(event.reason),
            note: event.note,
            type_: Some("Normal".to_owned()),
            regarding: Some(reference.clone()),
            reporting_controller: Some(FIELD_MANAGER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            ..k8s_openapi::api::events::v1::Event::default()
        };
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        let events = kube::Api::<k8s_openapi::api::events::v1::Event>::namespaced(self.client.clone(), namespace);
        events.create(&PostParams::default(), &event).await.map(drop)
    }
}

/// Messages by their reason.
#[derive(Default)]
struct Messages(HashMap<Reason, String>);

impl Messages {
    fn new(reports: &[Report]) -> Self {
        Self(reports.iter().map(|report| (report.reason, report.message.clone())).collect())
    }

    /// The reports that are not among these.
    fn differ(&self, reports: &[Report]) -> Vec<Report> {
        reports.iter().filter(|report| self.0.get(&report.reason) != Some(&report.message)).cloned().collect()
    }
}

/// What was last said about a StatefulSet.
#[derive(Default)]
struct Said {
    /// Which StatefulSet of the name it was.
    uid: String,
    standing: Messages,
    failures: Messages,
}

/// Emits events, each once for as long as its cause stays the same.
pub struct Events {
    sender: Mutex<Option<mpsc::Sender<Emission>>>,
    said: Mutex<HashMap<Key, Said>>,
    metrics: Arc<Metrics>,
}

impl Events {
    /// Starts to emit, at most as `limiter` lets it: a rate of its own, so that events never hold back a
    /// write. The task ends once [`Events::close`] was called and everything is emitted.
    pub fn start(
        client: kube::Client,
        instance: Option<String>,
        limiter: Option<RateLimiter>,
        metrics: Arc<Metrics>,
    ) -> (Self, JoinHandle<()>) {
        let (sender, mut emissions) = mpsc::channel::<Emission>(WAITING);
        let emitter = Arc::new(Emitter {
            recorder: Recorder::new(
                client.clone(),
                Reporter { controller: FIELD_MANAGER.to_owned(), instance: instance.clone() },
            ),
            client,
            instance: instance.unwrap_or_else(|| FIELD_MANAGER.to_owned()),
            limiter,
            metrics: Arc::clone(&metrics),
        });
        let task = tokio::spawn(async move {
            let mut emitting = JoinSet::new();
            while let Some(emission) = emissions.recv().await {
                while emitting.len() >= AT_ONCE {
                    let _ = emitting.join_next().await;
                }
                let emitter = Arc::clone(&emitter);
                emitting.spawn(async move { emitter.emit(emission).await });
            }
            while emitting.join_next().await.is_some() {}
        });
        (Self { sender: Mutex::new(Some(sender)), said: Mutex::default(), metrics }, task)
    }

    /// Events that go nowhere.
    pub fn none(metrics: Arc<Metrics>) -> Self {
        Self { sender: Mutex::new(None), said: Mutex::default(), metrics }
    }

    /// Says what holds about a StatefulSet now. What was said already is not said again.
    pub fn say(&self, subject: &Subject, reports: &[Report]) {
        let new = self.with_said(subject, |said| {
            let new = said.standing.differ(reports);
            said.standing = Messages::new(reports);
            new
        });
        for report in new {
            self.emit(subject, report);
        }
    }

    /// Says that a write failed. The same failure is not said again until a write succeeds.
    pub fn failed(&self, subject: &Subject, report: Report) {
        let new = self.with_said(subject, |said| {
            let new = said.failures.differ(std::slice::from_ref(&report));
            said.failures = Messages::new(&[report]);
            new
        });
        for report in new {
            self.emit(subject, report);
        }
    }

    /// A write succeeded.
    pub fn succeeded(&self, subject: &Subject) {
        self.with_said(subject, |said| said.failures = Messages::default());
    }

    fn with_said<T>(&self, subject: &Subject, change: impl FnOnce(&mut Said) -> T) -> T {
        let key = Key::new(&subject.namespace, &subject.name);
        let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let mut said = all.remove(&key).filter(|said| said.uid == subject.uid).unwrap_or_default();
        let result = change(&mut said);
        // At rest there is nothing to say, and nothing to remember.
        if said.standing.0.is_empty() && said.failures.0.is_empty() {
            return result;
        }
        said.uid.clone_from(&subject.uid);
        all.insert(key, said);
        result
    }

    /// Emits one event.
    pub fn emit(&self, subject: &Subject, report: Report) {
        if report.reason.is_warning() {
            tracing::warn!(statefulset = %Key::new(&subject.namespace, &subject.name), reason = report.reason.as_str(), "{}", report.message);
        } else {
            tracing::info!(statefulset = %Key::new(&subject.namespace, &subject.name), reason = report.reason.as_str(), "{}", report.message);
        }
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = sender.as_ref() else { return };
        if sender.try_send(Emission { reference: reference(subject), report }).is_err() {
            self.metrics.dropped_event();
        }
    }

    /// A StatefulSet is gone: nothing is remembered of it.
    pub fn forget(&self, key: &Key) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Takes no further event.
    pub fn close(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn reference(subject: &Subject) -> ObjectReference {
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some(KIND.to_owned()),
        namespace: Some(subject.namespace.clone()),
        name: Some(subject.name.clone()),
        uid: Some(subject.uid.clone()),
        ..ObjectReference::default()
    }
}

fn event(report: &Report) -> Event {
    let mut note = report.message.clone();
    if note.len() > MAX_MESSAGE {
        note.truncate(note.floor_char_boundary(MAX_MESSAGE - '…'.len_utf8()));
        note.push('…');
    }
    Event {
        type_: if report.reason.is_warning() { EventType::Warning } else { EventType::Normal },
        reason: report.reason.as_str().to_owned(),
        note: Some(note),
        action: "Reconcile".to_owned(),
        secondary: None,
    }
}
