//! Preemption: whom to push away so that pods fit.
//!
//! Stands for default preemption and workload-aware preemption: only lower priorities, a pod at a
//! time or a whole group where its disruption mode says `all`, for all that has to be placed at once
//! or not at all. Upstream reprieves as many victims as it can; this looks for the smallest number of
//! units first. Left out: `PodDisruptionBudget`s, freeing claims, and extenders.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Settings;
use super::board::Board;
use super::order::rank;
use super::place::{Attempt, Domain, best};
use super::units::{self, Unit};
use crate::cluster::{Cluster, Key, Pod};

/// How many combinations of victims are tried at most before the first that works is taken, and how
/// often a pod is held against a node for it.
const TRIALS: usize = 2000;
const COMPARISONS: usize = 400_000;

/// The largest number of units of which every combination may be tried.
const EXACT: usize = 3;

/// Pods that go together or stay together.
#[derive(Clone, Debug)]
pub struct Victims<'a> {
    /// The bound pods.
    pub pods: Vec<&'a Pod>,
    /// The group, where it goes as a whole.
    pub group: Option<&'a Key>,
    priority: i32,
}

/// Whom to push away, and where the pods go then.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// Possibly nobody, where enough is on its way out already.
    pub victims: Vec<Victims<'a>>,
    /// The placement once they are gone.
    pub attempt: Attempt<'a>,
}

/// The bound pods of lower priority, in units, the cheapest first.
pub fn candidates<'a>(
    cluster: &'a Cluster,
    settings: &Settings,
    priority: i32,
    going: &BTreeSet<&Key>,
) -> Vec<Victims<'a>> {
    let mut whole: BTreeMap<&'a Key, Victims<'a>> = BTreeMap::new();
    let mut single = Vec::new();
    for pod in cluster.pods.values().filter(|pod| pod.is_bound() && !pod.deleting && !going.contains(&pod.key)) {
        let priority = units::priority(cluster, settings, pod);
        match units::group(cluster, settings, pod).filter(|group| group.whole && group.min_count.is_some()) {
            Some(group) => {
                let empty = || Victims { pods: Vec::new(), group: Some(&group.key), priority };
                whole.entry(&group.key).or_insert_with(empty).pods.push(pod);
            }
            None => single.push(Victims { pods: vec![pod], group: None, priority }),
        }
    }
    let mut candidates: Vec<_> = whole.into_values().chain(single).filter(|it| it.priority < priority).collect();
    candidates.sort_by_cached_key(|it| {
        let newest = it.pods.iter().map(|pod| pod.created).max();
        let tie = it.pods.first().map(|pod| rank(settings.seed, &[&pod.key.namespace, &pod.key.name]));
        (it.priority, it.pods.len(), Reverse(newest), tie)
    });
    candidates
}

/// The smallest number of units to push away so that as many pods of `unit` as it needs can be placed.
pub fn plan<'a>(
    cluster: &'a Cluster,
    settings: &Settings,
    board: &Board<'a>,
    going: &BTreeSet<&Key>,
    unit: &Unit<'a>,
    domains: &[Option<Domain>],
) -> Option<Plan<'a>> {
    if !unit.preempts() {
        return None;
    }
    let mut base = board.clone();
    for pod in on_their_way(cluster, settings, going, unit.priority) {
        base.release(pod);
    }
    let candidates = candidates(cluster, settings, unit.priority, going);
    let fits = |chosen: &[usize]| {
        let mut board = base.clone();
        chosen.iter().flat_map(|index| &candidates[*index].pods).for_each(|pod| board.release(pod));
        let attempt = best(&board, &unit.members, domains, settings.seed)?;
        (attempt.places.len() >= unit.need()).then_some(attempt)
    };
    let all: Vec<usize> = (0..candidates.len()).collect();
    fits(&all)?;
    let trials = (COMPARISONS / (unit.members.len() * cluster.nodes.len()).max(1)).min(TRIALS);
    let chosen = smallest(candidates.len(), trials, |chosen| fits(chosen).is_some()).unwrap_or_else(|| {
        // Too many to try: let those of the highest priority stay, one after the other.
        let mut left = all;
        for index in (0..candidates.len()).rev() {
            let without: Vec<_> = left.iter().copied().filter(|it| *it != index).collect();
            if fits(&without).is_some() {
                left = without;
            }
        }
        left
    });
    let attempt = fits(&chosen)?;
    let victims = chosen.into_iter().map(|index| candidates[index].clone()).collect();
    Some(Plan { victims, attempt })
}

/// The pods of lower priority that are bound and will soon be gone.
pub fn on_their_way<'a>(
    cluster: &'a Cluster,
    settings: &Settings,
    going: &BTreeSet<&Key>,
    priority: i32,
) -> impl Iterator<Item = &'a Pod> {
    let pods = cluster.pods.values().filter(|pod| pod.is_bound() && (pod.deleting || going.contains(&pod.key)));
    pods.filter(move |pod| units::priority(cluster, settings, pod) < priority).map(|pod| &**pod)
}

/// The first of the smallest sets of indices that satisfy a test; none if it takes too many trials.
fn smallest(count: usize, mut trials: usize, mut works: impl FnMut(&[usize]) -> bool) -> Option<Vec<usize>> {
    for size in 0..=EXACT.min(count) {
        let mut chosen: Vec<usize> = (0..size).collect();
        loop {
            trials = trials.checked_sub(1)?;
            if works(&chosen) {
                return Some(chosen);
            }
            if !advance(&mut chosen, count) {
                break;
            }
        }
    }
    None
}

/// The next combination in lexicographic order.
fn advance(chosen: &mut [usize], count: usize) -> bool {
    let size = chosen.len();
    let Some(at) = (0..size).rev().find(|at| chosen[*at] < count - size + at) else { return false };
    let start = chosen[at] + 1;
    chosen[at..].iter_mut().zip(start..).for_each(|(slot, value)| *slot = value);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_set_is_found_first_and_in_order() {
        assert_eq!(smallest(5, 100, |chosen| chosen.iter().sum::<usize>() >= 7), Some(vec![3, 4]));
        assert_eq!(smallest(5, 100, <[usize]>::is_empty), Some(vec![]));
        assert_eq!(smallest(2, 100, |_| false), None);
        assert_eq!(smallest(5, 6, |chosen| chosen.len() > 1), None, "that takes seven");
    }
}
