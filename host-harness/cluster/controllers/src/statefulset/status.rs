//! What is reported of a StatefulSet.
//!
//! Stands for `computeReplicaStatus`, `completeRollingUpdate` and `inconsistentStatus`. A pod counts as
//! created as soon as it exists: upstream waits for its phase, which an API server sets at once.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use super::{pods, set};

/// The status of a set with these pods. `current` and `update` are the names of its revisions.
pub fn observe(
    set: &StatefulSet,
    pods: &[&Pod],
    (current, update): (&str, &str),
    collisions: i32,
    now: Timestamp,
) -> StatefulSetStatus {
    let wait = set::min_ready_seconds(set);
    let count = |counts: &dyn Fn(&Pod) -> bool| {
        let counted = pods.iter().filter(|pod| counts(pod)).count();
        i32::try_from(counted).unwrap_or(i32::MAX)
    };
    let is_of = |pod: &Pod, revision: &str| !pods::is_terminating(pod) && pods::revision(pod) == revision;
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas: count(&|_| true),
        ready_replicas: Some(count(&pods::is_ready)),
        available_replicas: Some(count(&|pod| pods::is_available(pod, wait, now))),
        current_replicas: Some(count(&|pod| is_of(pod, current))),
        updated_replicas: Some(count(&|pod| is_of(pod, update))),
        current_revision: Some(current.to_owned()),
        update_revision: Some(update.to_owned()),
        collision_count: Some(collisions),
        conditions: None,
    }
}

/// Ends a rolling update all of whose pods are updated and ready: its revision becomes the current one.
pub fn complete(set: &StatefulSet, status: &mut StatefulSetStatus) {
    let all = i32::try_from(set::replicas(set)).unwrap_or(i32::MAX);
    let counts = [Some(status.replicas), status.ready_replicas, status.updated_replicas];
    if set::rolls(set) && counts == [Some(all); 3] {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
}

/// Whether there is something new to report. An older observation is not.
pub fn is_news(set: &StatefulSet, status: &StatefulSetStatus) -> bool {
    let Some(old) = &set.status else { return true };
    let number = |number: Option<i32>| number.unwrap_or(0);
    let facts = |status: &StatefulSetStatus| {
        let counts = [
            Some(status.replicas),
            status.ready_replicas,
            status.available_replicas,
            status.current_replicas,
            status.updated_replicas,
            status.collision_count,
        ];
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        (counts.map(number), text(&status.current_revision), text(&status.update_revision))
    };
    status.observed_generation.unwrap_or(0) > old.observed_generation.unwrap_or(0) || facts(status) != facts(old)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(revision: &str, phase: &str, ready: &str, deleted: bool) -> Pod {
        let mut value = json!({
            "metadata": { "labels": { pods::REVISION: revision } },
            "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] },
        });
        if deleted {
            value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        serde_json::from_value(value).expect("it is a Pod")
    }

    fn set(replicas: i32) -> StatefulSet {
        let value = json!({
            "metadata": { "name": "web", "generation": 4 },
            "spec": { "replicas": replicas, "selector": {}, "template": {} },
        });
        serde_json::from_value(value).expect("it is a StatefulSet")
    }

    fn observe(set: &StatefulSet, pods: &[Pod]) -> StatefulSetStatus {
        let pods: Vec<_> = pods.iter().collect();
        super::observe(set, &pods, ("old", "new"), 0, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn pods_are_counted_by_their_state_and_by_revision_unless_they_terminate() {
        let pods = [
            pod("old", "Running", "True", false),
            pod("old", "Running", "True", true),
            pod("new", "Running", "False", false),
            pod("new", "Pending", "False", false),
        ];
        let status = observe(&set(4), &pods);
        assert_eq!((status.replicas, status.ready_replicas, status.available_replicas), (4, Some(2), Some(2)));
        assert_eq!((status.current_replicas, status.updated_replicas), (Some(1), Some(2)));
        assert_eq!(status.observed_generation, Some(4));
    }

    #[test]
    fn an_update_is_complete_when_all_pods_are_updated_and_ready() {
        let updated = || pod("new", "Running", "True", false);
        let table = [
            (vec![updated(), updated()], "new"),
            (vec![updated()], "old"),
            (vec![updated(), pod("new", "Running", "False", false)], "old"),
            (vec![updated(), pod("old", "Running", "True", false)], "old"),
            (vec![updated(), updated(), updated()], "old"),
        ];
        for (pods, current) in table {
            let mut status = observe(&set(2), &pods);
            complete(&set(2), &mut status);
            assert_eq!(status.current_revision.as_deref(), Some(current), "{} pods", pods.len());
        }
    }

    #[test]
    fn a_status_is_news_when_a_count_or_a_revision_or_the_generation_is_newer() {
        let mut set = set(1);
        let status = observe(&set, &[]);
        assert!(is_news(&set, &status));
        set.status = Some(status.clone());
        assert!(!is_news(&set, &status));
        let newer = StatefulSetStatus { observed_generation: Some(5), ..status.clone() };
        assert!(is_news(&set, &newer));
        let older = StatefulSetStatus { observed_generation: Some(3), ..status.clone() };
        assert!(!is_news(&set, &older));
        let more = StatefulSetStatus { replicas: 1, ..status };
        assert!(is_news(&set, &more));
    }
}
