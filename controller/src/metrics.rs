//! What is measured.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use statefulset_scheduling_core::workloadbuilder::PolicyType;

/// A request to the API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    verb: String,
    resource: String,
    /// The HTTP status; 0 where there was no answer.
    code: u32,
}

/// A policy of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Policy {
    policy: String,
}

/// All metrics, and the registry that prints them.
pub struct Metrics {
    registry: Registry,
    creation_errors: Counter,
    eligible_to_bound: Histogram,
    min_count_updates: Histogram,
    workloads: Family<Policy, Gauge>,
    requests: Family<Request, Counter>,
    reconciles: Histogram,
    queue_ready: Gauge,
    queue_waiting: Gauge,
    leading: Gauge,
    dropped_events: Counter<u64, AtomicU64>,
}

fn seconds() -> Histogram {
    Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0])
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            creation_errors: Counter::default(),
            eligible_to_bound: seconds(),
            min_count_updates: seconds(),
            workloads: Family::default(),
            requests: Family::default(),
            reconciles: seconds(),
            queue_ready: Gauge::default(),
            queue_waiting: Gauge::default(),
            leading: Gauge::default(),
            dropped_events: Counter::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = self.registry.sub_registry_with_prefix("statefulset_workload");
        registry.register(
            "creation_errors",
            "Workloads and PodGroups that could not be created",
            self.creation_errors.clone(),
        );
        registry.register_with_unit(
            "creation_latency",
            "From a StatefulSet becoming eligible to its Workload and PodGroup existing",
            Unit::Seconds,
            self.eligible_to_bound.clone(),
        );
        registry.register_with_unit(
            "update_latency",
            "From a change of replicas to minCount being in step",
            Unit::Seconds,
            self.min_count_updates.clone(),
        );
        registry.register("bound", "StatefulSets bound to a PodGroup, by policy", self.workloads.clone());
        let registry = self.registry.sub_registry_with_prefix("statefulset_scheduling");
        registry.register("api_requests", "Requests to the API server", self.requests.clone());
        registry.register_with_unit(
            "reconcile_duration",
            "How long a reconcile takes, its requests included",
            Unit::Seconds,
            self.reconciles.clone(),
        );
        registry.register("queue_depth", "StatefulSets to be reconciled now", self.queue_ready.clone());
        registry.register("queue_waiting", "StatefulSets that wait after a failure", self.queue_waiting.clone());
        registry.register("leading", "Whether this replica holds the lease", self.leading.clone());
        registry.register(
            "dropped_events",
            "Events that were not emitted because too many were",
            self.dropped_events.clone(),
        );
    }

    /// A Workload or a PodGroup could not be created.
    pub fn creation_error(&self) {
        self.creation_errors.inc();
    }

    /// How many Workloads and PodGroups could not be created.
    pub fn creation_errors(&self) -> u64 {
        self.creation_errors.get()
    }

    /// A StatefulSet got its objects so long after it became eligible.
    pub fn created(&self, latency: Duration) {
        self.eligible_to_bound.observe(latency.as_secs_f64());
    }

    /// A size is in step so long after it changed.
    pub fn resized(&self, latency: Duration) {
        self.min_count_updates.observe(latency.as_secs_f64());
    }

    /// A request was made.
    pub fn request(&self, verb: &str, resource: &str, code: u16) {
        let request = Request { verb: verb.to_owned(), resource: resource.to_owned(), code: code.into() };
        self.requests.get_or_create(&request).inc();
    }

    /// A reconcile took so long.
    pub fn reconciled(&self, duration: Duration) {
        self.reconciles.observe(duration.as_secs_f64());
    }

    /// So many StatefulSets are to be reconciled now, and so many later.
    pub fn queue(&self, (ready, waiting): (usize, usize)) {
        self.queue_ready.set(i64::try_from(ready).unwrap_or(i64::MAX));
        self.queue_waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    /// The policy of a StatefulSet's group went from one to another; none is no group.
    pub fn bound(&self, from: Option<PolicyType>, to: Option<PolicyType>) {
        let gauge =
            |policy: PolicyType| self.workloads.get_or_create_owned(&Policy { policy: policy.as_str().to_owned() });
        if let Some(from) = from {
            gauge(from).dec();
        }
        if let Some(to) = to {
            gauge(to).inc();
        }
    }

    /// Whether this replica holds the lease.
    pub fn leading(&self, leading: bool) {
        self.leading.set(leading.into());
    }

    /// An event was not emitted.
    pub fn dropped_event(&self) {
        self.dropped_events.inc();
    }

    /// All metrics in the text format that is scraped.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn print(&self) -> Result<String, std::fmt::Error> {
        print(&self.registry)
    }
}

/// The metrics of a registry in the text format that is scraped.
pub(crate) fn print(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    text::encode(&mut out, registry)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_of_the_kep_are_printed_under_their_names() {
        let metrics = Metrics::default();
        metrics.creation_error();
        metrics.created(Duration::from_millis(20));
        metrics.resized(Duration::from_millis(20));
        metrics.bound(None, Some(PolicyType::Gang));
        metrics.request("create", "workloads", 201);
        metrics.reconciled(Duration::from_millis(1));
        metrics.queue((1, 2));
        metrics.leading(true);
        let text = metrics.print().expect("they can be written");
        for line in [
            "statefulset_workload_creation_errors_total 1",
            "statefulset_workload_creation_latency_seconds_count 1",
            "statefulset_workload_update_latency_seconds_count 1",
            r#"statefulset_workload_bound{policy="gang"} 1"#,
            r#"statefulset_scheduling_api_requests_total{verb="create",resource="workloads",code="201"} 1"#,
            "statefulset_scheduling_reconcile_duration_seconds_count 1",
            "statefulset_scheduling_queue_depth 1",
            "statefulset_scheduling_queue_waiting 2",
            "statefulset_scheduling_leading 1",
        ] {
            assert!(text.lines().any(|printed| printed == line), "{line} is not in\n{text}");
        }
    }
}
