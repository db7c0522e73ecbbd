//! What a StatefulSet asks for, with the defaults that the API server fills in.

use k8s_openapi::api::apps::v1::{RollingUpdateStatefulSetStrategy, StatefulSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::meta;

/// How many pods there are to be.
pub fn replicas(set: &StatefulSet) -> usize {
    let replicas = set.spec.replicas.unwrap_or(1);
    usize::try_from(replicas).unwrap_or(0)
}

/// The ordinal of the first pod.
pub fn first_ordinal(set: &StatefulSet) -> i32 {
    set.spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0)
}

/// Whether pods are made and deleted without waiting for each other.
pub fn is_parallel(set: &StatefulSet) -> bool {
    set.spec.pod_management_policy.as_deref() == Some("Parallel")
}

/// How long a pod has to be ready to count as available, in seconds.
pub fn min_ready_seconds(set: &StatefulSet) -> i32 {
    set.spec.min_ready_seconds.unwrap_or(0)
}

/// How many old revisions are kept.
pub fn history_limit(set: &StatefulSet) -> usize {
    let limit = set.spec.revision_history_limit.unwrap_or(10);
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Whether outdated pods are replaced by the controller, and not only when somebody deletes them.
pub fn rolls(set: &StatefulSet) -> bool {
    let strategy = set.spec.update_strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()).unwrap_or("RollingUpdate") == "RollingUpdate"
}

fn rolling(set: &StatefulSet) -> Option<&RollingUpdateStatefulSetStrategy> {
    set.spec.update_strategy.as_ref()?.rolling_update.as_ref()
}

/// How many of the lowest pods keep the current revision.
pub fn partition(set: &StatefulSet) -> usize {
    let partition = rolling(set).and_then(|rolling| rolling.partition).unwrap_or(0);
    usize::try_from(partition).unwrap_or(0)
}

/// Whether a missing pod at this index is made from the current revision: below the partition, and,
/// where no partition is told, below the pods that are still of it.
pub fn keeps_current(set: &StatefulSet, index: usize) -> bool {
    if !rolls(set) {
        return false;
    }
    if rolling(set).is_some() {
        return index < partition(set);
    }
    let current = set.status.as_ref().and_then(|status| status.current_replicas).unwrap_or(0);
    usize::try_from(current).is_ok_and(|current| index < current)
}

/// How many pods a rolling update may make unavailable: at least one; a percentage is rounded down.
pub fn max_unavailable(set: &StatefulSet) -> usize {
    let wanted = match rolling(set).and_then(|rolling| rolling.max_unavailable.as_ref()) {
        None => 1,
        Some(IntOrString::Int(number)) => usize::try_from(*number).unwrap_or(0),
        Some(IntOrString::String(text)) => {
            let percent: usize = text.strip_suffix('%').and_then(|number| number.parse().ok()).unwrap_or(0);
            percent * replicas(set) / 100
        }
    };
    wanted.max(1)
}

/// The name of the pod with this ordinal.
pub fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", meta::name(&set.metadata))
}

/// The ordinal in a pod's name, if it is a name that this set gives.
pub fn ordinal_of(set: &StatefulSet, pod: &str) -> Option<i32> {
    let ordinal: i32 = pod.strip_prefix(meta::name(&set.metadata))?.strip_prefix('-')?.parse().ok()?;
    (ordinal >= 0 && pod_name(set, ordinal) == pod).then_some(ordinal)
}

/// The place of an ordinal among the pods that there are to be.
pub fn index_of(set: &StatefulSet, ordinal: i32) -> Option<usize> {
    let index = usize::try_from(i64::from(ordinal) - i64::from(first_ordinal(set))).ok()?;
    (index < replicas(set)).then_some(index)
}

/// The ordinal at a place among the pods that there are to be.
pub fn ordinal_at(set: &StatefulSet, index: usize) -> i32 {
    first_ordinal(set).saturating_add(i32::try_from(index).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(spec: &Value) -> StatefulSet {
        let mut value = json!({ "metadata": { "name": "web" }, "spec": { "selector": {}, "template": {} } });
        value["spec"].as_object_mut().expect("it is an object").extend(spec.as_object().expect("so is this").clone());
        serde_json::from_value(value).expect("it is a StatefulSet")
    }

    #[test]
    fn only_the_canonical_name_of_an_ordinal_is_the_sets_own() {
        let set = set(&json!({}));
        let table = [
            ("web-0", Some(0)),
            ("web-12", Some(12)),
            ("web-01", None),
            ("web--1", None),
            ("web-", None),
            ("web-a", None),
            ("web-1-2", None),
            ("webx-1", None),
            ("other-1", None),
        ];
        for (name, wanted) in table {
            assert_eq!(ordinal_of(&set, name), wanted, "{name}");
        }
    }

    #[test]
    fn ordinals_begin_where_the_set_says() {
        let set = set(&json!({ "replicas": 3, "ordinals": { "start": 5 } }));
        let places: Vec<_> = [4, 5, 7, 8].map(|ordinal| index_of(&set, ordinal)).into();
        assert_eq!(places, [None, Some(0), Some(2), None]);
        assert_eq!(ordinal_at(&set, 2), 7);
    }

    #[test]
    fn max_unavailable_is_at_least_one_and_percentages_are_rounded_down() {
        let table = [
            (json!(null), 1),
            (json!(3), 3),
            (json!(0), 1),
            (json!("30%"), 3),
            (json!("39%"), 3),
            (json!("1%"), 1),
            (json!("many"), 1),
        ];
        for (wanted, number) in table {
            let strategy = json!({ "rollingUpdate": { "maxUnavailable": wanted } });
            let set = set(&json!({ "replicas": 10, "updateStrategy": strategy }));
            assert_eq!(max_unavailable(&set), number, "{wanted}");
        }
    }

    #[test]
    fn a_missing_pod_is_of_the_current_revision_below_the_partition_only() {
        let partitioned = set(&json!({ "replicas": 4, "updateStrategy": { "rollingUpdate": { "partition": 2 } } }));
        assert_eq!([0, 1, 2, 3].map(|index| keeps_current(&partitioned, index)), [true, true, false, false]);
        let on_delete = set(&json!({ "replicas": 4, "updateStrategy": { "type": "OnDelete" } }));
        assert!(!keeps_current(&on_delete, 0));
        let mut untold = set(&json!({ "replicas": 4 }));
        untold.status = serde_json::from_value(json!({ "replicas": 4, "currentReplicas": 1 })).expect("a status");
        assert_eq!([0, 1].map(|index| keeps_current(&untold, index)), [true, false]);
    }
}
