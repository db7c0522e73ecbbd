//! What is measured.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::metrics;

/// What became of something.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Result {
    result: &'static str,
}

type Results = Family<Result, Counter>;

/// All metrics, and the registry that prints them.
pub struct Metrics {
    registry: Registry,
    reviews: Results,
    durations: Histogram,
    lookups: Results,
    handshakes: Results,
    certificates: Results,
}

impl Default for Metrics {
    fn default() -> Self {
        let durations = Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0]);
        let mut registry = Registry::default();
        let (reviews, lookups) = (Results::default(), Results::default());
        let (handshakes, certificates) = (Results::default(), Results::default());
        let webhook = registry.sub_registry_with_prefix("statefulset_scheduling_webhook");
        webhook.register("reviews", "Admission reviews", reviews.clone());
        webhook.register_with_unit(
            "review_duration",
            "How long a review takes, its look-up included",
            Unit::Seconds,
            durations.clone(),
        );
        webhook.register("lookups", "StatefulSets that were read for a review", lookups.clone());
        webhook.register("failed_handshakes", "Connections that did not get as far as TLS", handshakes.clone());
        webhook.register("certificates", "Certificates that were loaded, or could not be", certificates.clone());
        Self { registry, reviews, durations, lookups, handshakes, certificates }
    }
}

fn count(results: &Results, result: &'static str) {
    results.get_or_create(&Result { result }).inc();
}

impl Metrics {
    /// A review took so long.
    pub fn reviewed(&self, result: &'static str, duration: Duration) {
        count(&self.reviews, result);
        self.durations.observe(duration.as_secs_f64());
    }

    /// A StatefulSet was read, or could not be.
    pub fn looked_up(&self, result: &'static str) {
        count(&self.lookups, result);
    }

    /// A connection did not get as far as TLS.
    pub fn failed_handshake(&self, result: &'static str) {
        count(&self.handshakes, result);
    }

    /// A certificate was loaded, or could not be.
    pub fn certificate(&self, loaded: bool) {
        count(&self.certificates, if loaded { "loaded" } else { "refused" });
    }

    /// How many certificates were loaded, or could not be.
    pub fn certificates(&self, loaded: bool) -> u64 {
        self.certificates.get_or_create(&Result { result: if loaded { "loaded" } else { "refused" } }).get()
    }

    /// All metrics in the text format that is scraped.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn print(&self) -> std::result::Result<String, std::fmt::Error> {
        metrics::print(&self.registry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_are_printed_under_their_names() {
        let metrics = Metrics::default();
        metrics.reviewed("denied", Duration::from_millis(2));
        metrics.looked_up("found");
        metrics.failed_handshake("timed_out");
        metrics.certificate(true);
        let text = metrics.print().expect("they can be written");
        for line in [
            r#"statefulset_scheduling_webhook_reviews_total{result="denied"} 1"#,
            "statefulset_scheduling_webhook_review_duration_seconds_count 1",
            r#"statefulset_scheduling_webhook_lookups_total{result="found"} 1"#,
            r#"statefulset_scheduling_webhook_failed_handshakes_total{result="timed_out"} 1"#,
            r#"statefulset_scheduling_webhook_certificates_total{result="loaded"} 1"#,
        ] {
            assert!(text.lines().any(|printed| printed == line), "{line} is not in\n{text}");
        }
        assert_eq!((metrics.certificates(true), metrics.certificates(false)), (1, 0));
    }
}
