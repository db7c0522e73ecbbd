//! What is to be done about a StatefulSet's pods: the whole of `updateStatefulSet`, as a function.
//!
//! A plan has three stages, and a failure in one ends the attempt: the pods that there are to be, those
//! that there are not to be, and those that a rolling update replaces. `OrderedReady` sets do one thing
//! after the other and wait for each; `Parallel` sets do a stage in slow-start batches over all its
//! slots, also those with nothing to do.
//!
//! Left out: stale `PersistentVolumeClaims` and retention policies other than Retain.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use super::{pods, set};
use crate::meta;

/// One of the two revisions of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// The one that pods are updated from.
    Current,
    /// The one that pods are updated to.
    Update,
}

/// Something to do about one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make it, and its claims before it.
    Create(i32, Revision),
    /// Delete the pod of this ordinal.
    Delete(i32),
    /// Put back the labels that tell who the pod of this ordinal is.
    Relabel(i32),
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// For each pod that there is to be, in order; for `OrderedReady` as far as it may go.
    pub replicas: Vec<Option<Action>>,
    /// For each pod that there is not to be, the highest first; for `OrderedReady` as far as it may go.
    pub condemned: Vec<Option<Action>>,
    /// The pods that are deleted to be made anew, one after the other.
    pub outdated: Vec<Action>,
}

/// The plan for a set with these pods, all of which are its own. `update` is the name of the revision
/// that pods are updated to.
pub fn plan(set: &StatefulSet, pods: &[&Pod], update: &str, now: Timestamp) -> Plan {
    if meta::is_being_deleted(&set.metadata) {
        return Plan::default();
    }
    let view = View::new(set, pods, now);
    if set::is_parallel(set) {
        Plan {
            replicas: (0..view.replicas.len()).map(|index| view.replica(index)).collect(),
            condemned: view.condemned.iter().map(|(ordinal, pod)| delete(*ordinal, pod)).collect(),
            outdated: view.outdated(update),
        }
    } else {
        view.in_order(update)
    }
}

/// The pods of a set in their places.
struct View<'a> {
    set: &'a StatefulSet,
    replicas: Vec<Option<&'a Pod>>,
    condemned: Vec<(i32, &'a Pod)>,
    now: Timestamp,
}

/// The deletion of a pod that is not being deleted yet.
fn delete(ordinal: i32, pod: &Pod) -> Option<Action> {
    (!pods::is_terminating(pod)).then_some(Action::Delete(ordinal))
}

impl<'a> View<'a> {
    fn new(set: &'a StatefulSet, pods: &[&'a Pod], now: Timestamp) -> Self {
        let mut replicas = vec![None; set::replicas(set)];
        let mut condemned = Vec::new();
        for pod in pods {
            let Some(ordinal) = set::ordinal_of(set, meta::name(&pod.metadata)) else { continue };
            match set::index_of(set, ordinal) {
                Some(index) => replicas[index] = Some(*pod),
                None => condemned.push((ordinal, *pod)),
            }
        }
        condemned.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        Self { set, replicas, condemned, now }
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        pods::is_unavailable(pod, set::min_ready_seconds(self.set), self.now)
    }

    /// What is to be done about a pod that there is to be. One that has ended is made anew, however well
    /// it ended, once it is gone.
    fn replica(&self, index: usize) -> Option<Action> {
        let ordinal = set::ordinal_at(self.set, index);
        let Some(pod) = self.replicas[index] else {
            let current = set::keeps_current(self.set, index);
            return Some(Action::Create(ordinal, if current { Revision::Current } else { Revision::Update }));
        };
        if pods::has_ended(pod) {
            return delete(ordinal, pod);
        }
        (!pods::has_identity(self.set, ordinal, pod)).then_some(Action::Relabel(ordinal))
    }

    fn in_order(&self, update: &str) -> Plan {
        let mut plan = Plan::default();
        for (index, pod) in self.replicas.iter().enumerate() {
            let action = self.replica(index);
            match pod {
                // One that waits is relabelled only when it need not be waited for.
                Some(pod) if !pods::has_ended(pod) && self.is_unavailable(pod) => return plan,
                Some(pod) if !pods::has_ended(pod) => plan.replicas.push(action),
                _ => {
                    plan.replicas.push(action);
                    return plan;
                }
            }
        }
        // All that there are to be are available, so the first that is not is the lowest of these.
        let first = self.condemned.iter().rev().find(|(_, pod)| self.is_unavailable(pod));
        if let Some((ordinal, pod)) = self.condemned.first() {
            let waits = self.is_unavailable(pod) && first.is_some_and(|(first, _)| first != ordinal);
            plan.condemned.extend((!waits).then(|| delete(*ordinal, pod)));
            return plan;
        }
        plan.outdated = self.outdated(update);
        plan
    }

    /// The pods that a rolling update deletes now, the highest first. A `Parallel` set replaces pods that
    /// are unavailable anyway, and for the others has what `maxUnavailable` leaves.
    fn outdated(&self, update: &str) -> Vec<Action> {
        if !set::rolls(self.set) {
            return Vec::new();
        }
        let allowed = set::max_unavailable(self.set);
        let left = allowed
            .saturating_sub(self.replicas.iter().filter(|pod| pod.is_none_or(|pod| self.is_unavailable(pod))).count());
        let targets = self.replicas.iter().enumerate().skip(set::partition(self.set)).rev();
        let targets: Vec<_> = targets
            .filter_map(|(index, pod)| Some((set::ordinal_at(self.set, index), (*pod)?)))
            .filter(|(_, pod)| pods::revision(pod) != update && !pods::is_terminating(pod) && !pods::has_ended(pod))
            .collect();
        let (broken, well): (Vec<_>, Vec<_>) = targets.into_iter().partition(|(_, pod)| self.is_unavailable(pod));
        let broken = if set::is_parallel(self.set) { broken } else { Vec::new() };
        let chosen = broken.into_iter().chain(well.into_iter().take(left));
        chosen.map(|(ordinal, _)| Action::Delete(ordinal)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-01-01T00:01:00Z";

    fn set(spec: &Value) -> StatefulSet {
        let mut value = json!({ "metadata": { "name": "web" }, "spec": { "selector": {}, "template": {} } });
        value["spec"].as_object_mut().expect("it is an object").extend(spec.as_object().expect("so is this").clone());
        serde_json::from_value(value).expect("it is a StatefulSet")
    }

    /// Pods in a few words: `0` is well and up to date, `0 old pending`, `1 gone` terminates, `2 failed`.
    fn pods(texts: &[&str]) -> Vec<Pod> {
        texts.iter().map(|text| pod(text)).collect()
    }

    fn pod(text: &str) -> Pod {
        let (ordinal, words) = text.split_once(' ').unwrap_or((text, ""));
        let has = |word: &str| words.split(' ').any(|found| found == word);
        let name = format!("web-{ordinal}");
        let phase = [("pending", "Pending"), ("failed", "Failed"), ("succeeded", "Succeeded")];
        let phase = phase.into_iter().find(|(word, _)| has(word)).map_or("Running", |(_, phase)| phase);
        let ready = if phase == "Running" && !has("unready") { "True" } else { "False" };
        let since = if has("fresh") { NOW } else { "2026-01-01T00:00:00Z" };
        let mut value = json!({
            "metadata": { "name": name, "labels": {
                pods::REVISION: if has("old") { "old" } else { "new" },
                pods::POD_NAME: name,
                pods::POD_INDEX: ordinal,
            }},
            "status": {
                "phase": phase,
                "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": since }],
            },
        });
        if has("gone") {
            value["metadata"]["deletionTimestamp"] = NOW.into();
        }
        if has("nameless") {
            value["metadata"]["labels"] = json!({ pods::REVISION: "new" });
        }
        serde_json::from_value(value).expect("it is a Pod")
    }

    /// What is done, in order, in a few words.
    fn planned(spec: &Value, texts: &[&str]) -> String {
        let pods = pods(texts);
        let plan = plan(&set(spec), &pods.iter().collect::<Vec<_>>(), "new", NOW.parse().expect("it is a time"));
        let actions = plan.replicas.into_iter().chain(plan.condemned).flatten().chain(plan.outdated);
        let words = actions.map(|action| match action {
            Action::Create(ordinal, Revision::Update) => format!("+{ordinal}"),
            Action::Create(ordinal, Revision::Current) => format!("+{ordinal} old"),
            Action::Delete(ordinal) => format!("-{ordinal}"),
            Action::Relabel(ordinal) => format!("={ordinal}"),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    fn check(spec: &Value, table: &[(&[&str], &str)]) {
        for (pods, wanted) in table {
            assert_eq!(planned(spec, pods), *wanted, "{spec} with {pods:?}");
        }
    }

    #[test]
    fn ordered_sets_make_one_pod_after_the_other_and_wait_until_each_is_ready() {
        check(
            &json!({ "replicas": 3 }),
            &[
                (&[], "+0"),
                (&["0 pending"], ""),
                (&["0 unready"], ""),
                (&["0"], "+1"),
                (&["0", "2"], "+1"),
                (&["0 gone", "1"], ""),
                (&["0", "1", "2"], ""),
            ],
        );
    }

    #[test]
    fn ordered_sets_wait_until_a_pod_was_ready_for_long_enough() {
        let spec = json!({ "replicas": 2, "minReadySeconds": 60 });
        check(&spec, &[(&["0 fresh"], ""), (&["0"], "+1")]);
    }

    #[test]
    fn parallel_sets_make_all_pods_at_once() {
        let spec = json!({ "replicas": 4, "podManagementPolicy": "Parallel" });
        check(&spec, &[(&[], "+0, +1, +2, +3"), (&["0 pending", "2 gone"], "+1, +3"), (&["0", "1", "2", "3"], "")]);
    }

    #[test]
    fn every_slot_of_a_parallel_set_counts_in_its_batches_also_one_with_nothing_to_do() {
        let set = set(&json!({ "replicas": 4, "podManagementPolicy": "Parallel" }));
        let pods = pods(&["0", "1", "9"]);
        let plan = plan(&set, &pods.iter().collect::<Vec<_>>(), "new", Timestamp::UNIX_EPOCH);
        assert_eq!((plan.replicas.len(), plan.condemned.len()), (4, 1));
        assert_eq!(plan.replicas[0], None);
    }

    #[test]
    fn ordinals_begin_where_the_set_says_and_others_are_condemned() {
        let spec = json!({ "replicas": 2, "ordinals": { "start": 3 }, "podManagementPolicy": "Parallel" });
        check(&spec, &[(&[], "+3, +4"), (&["0", "3", "4", "5"], "-5, -0")]);
        let ordered = json!({ "replicas": 2, "ordinals": { "start": 3 } });
        check(&ordered, &[(&["0", "3"], "+4"), (&["0", "3", "4"], "-0")]);
    }

    #[test]
    fn ordered_sets_scale_down_from_the_highest_one_by_one() {
        check(
            &json!({ "replicas": 1 }),
            &[
                (&["0", "1", "2", "3"], "-3"),
                (&["0", "1", "2", "3 gone"], ""),
                (&["0", "1", "2"], "-2"),
                // Not while another is missing or not ready.
                (&["0 unready", "1", "2"], ""),
                (&["1", "2"], "+0"),
                (&["0", "1 unready", "2"], "-2"),
                // The lowest that is not ready may go, others wait for it.
                (&["0", "1", "2 unready"], "-2"),
                (&["0", "1 unready", "2 unready"], ""),
            ],
        );
    }

    #[test]
    fn parallel_sets_scale_down_all_at_once_the_highest_first() {
        let spec = json!({ "replicas": 1, "podManagementPolicy": "Parallel" });
        check(
            &spec,
            &[
                (&["0", "1", "2", "3"], "-3, -2, -1"),
                (&["0 unready", "1 pending", "2 gone", "3"], "-3, -1"),
                (&["1", "2"], "+0, -2, -1"),
            ],
        );
    }

    #[test]
    fn pods_that_ended_are_deleted_and_made_anew_once_they_are_gone() {
        for policy in ["OrderedReady", "Parallel"] {
            let spec = json!({ "replicas": 2, "podManagementPolicy": policy });
            check(
                &spec,
                &[
                    (&["0 failed", "1"], "-0"),
                    (&["0 succeeded", "1"], "-0"),
                    (&["0 failed gone", "1"], ""),
                    (&["1"], "+0"),
                ],
            );
        }
    }

    #[test]
    fn a_rolling_update_replaces_one_pod_at_a_time_from_the_highest() {
        for policy in ["OrderedReady", "Parallel"] {
            let spec = json!({ "replicas": 3, "podManagementPolicy": policy });
            check(
                &spec,
                &[
                    (&["0 old", "1 old", "2 old"], "-2"),
                    (&["0 old", "1 old", "2 old gone"], ""),
                    (&["0 old", "1 old"], "+2"),
                    (&["0 old", "1 old", "2 pending"], ""),
                    (&["0 old", "1 old", "2"], "-1"),
                    (&["0 old", "1", "2"], "-0"),
                    (&["0", "1", "2"], ""),
                ],
            );
        }
    }

    #[test]
    fn a_partition_keeps_the_pods_below_it_at_the_current_revision() {
        let spec = json!({ "replicas": 3, "updateStrategy": { "rollingUpdate": { "partition": 2 } } });
        check(
            &spec,
            &[(&["0 old", "1 old", "2 old"], "-2"), (&["0 old", "1 old", "2"], ""), (&["0 old", "2"], "+1 old")],
        );
    }

    #[test]
    fn max_unavailable_lets_that_many_pods_be_replaced_at_once() {
        let spec = json!({ "replicas": 4, "updateStrategy": { "rollingUpdate": { "maxUnavailable": 2 } } });
        check(
            &spec,
            &[(&["0 old", "1 old", "2 old", "3 old"], "-3, -2"), (&["0 old", "1 old", "2 old", "3"], "-2, -1")],
        );
        let mut parallel = spec;
        parallel["podManagementPolicy"] = "Parallel".into();
        check(
            &parallel,
            &[(&["0 old", "1 old", "2 old", "3 pending"], "-2"), (&["0 old", "1 old", "2 gone", "3 gone"], "")],
        );
    }

    #[test]
    fn a_parallel_set_replaces_outdated_pods_that_are_unavailable_anyway() {
        let spec = json!({ "replicas": 3, "podManagementPolicy": "Parallel" });
        check(
            &spec,
            &[(&["0 old unready", "1 old", "2 old"], "-0"), (&["0 old unready", "1 old unready", "2"], "-1, -0")],
        );
        // An ordered set waits for the pod that somebody has to mend.
        check(&json!({ "replicas": 3 }), &[(&["0 old unready", "1 old", "2 old"], "")]);
    }

    #[test]
    fn on_delete_leaves_outdated_pods_alone_and_makes_missing_ones_up_to_date() {
        let spec = json!({ "replicas": 2, "updateStrategy": { "type": "OnDelete" } });
        check(&spec, &[(&["0 old", "1 old"], ""), (&["0 old"], "+1")]);
    }

    #[test]
    fn scaling_goes_before_updating_in_ordered_sets() {
        check(&json!({ "replicas": 2 }), &[(&["0 old", "1 old", "2 old"], "-2")]);
    }

    #[test]
    fn a_pod_without_the_labels_that_tell_who_it_is_gets_them_back() {
        check(&json!({ "replicas": 2 }), &[(&["0 nameless", "1 nameless pending"], "=0")]);
        let parallel = json!({ "replicas": 2, "podManagementPolicy": "Parallel" });
        check(&parallel, &[(&["0 nameless", "1 nameless pending"], "=0, =1")]);
    }

    #[test]
    fn nothing_is_done_for_a_set_that_is_being_deleted() {
        let mut set = set(&json!({ "replicas": 2, "podManagementPolicy": "Parallel" }));
        set.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        assert_eq!(plan(&set, &[], "new", Timestamp::UNIX_EPOCH), Plan::default());
    }

    #[test]
    fn a_set_of_no_pods_needs_nothing() {
        check(&json!({ "replicas": 0 }), &[(&[], ""), (&["0"], "-0")]);
    }
}
