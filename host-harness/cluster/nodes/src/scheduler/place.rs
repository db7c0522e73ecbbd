//! Placing pods together: on one board, within one topology domain.
//!
//! Stands for the scheduling cycle of a pod group: each member in turn on the best node, seeing those
//! before it as placed, once for each domain; the domain that takes the most members wins. Left out:
//! going back on a member's node to make room for another's, which upstream does not do either: where
//! members differ, a placement that exists may be missed. Other scores than how free a node stays.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::board::{Board, Member};
use super::order::rank;
use crate::cluster::{Cluster, Group, Node, Pod};

/// All nodes that have one value of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The label.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl Domain {
    fn has(&self, node: &Node) -> bool {
        node.labels.get(&self.key) == Some(&self.value)
    }
}

/// A pod and the node for it.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// The pod, as an index of the members that were to be placed.
    pub member: usize,
    /// The node.
    pub node: &'a str,
}

/// What came of placing members.
#[derive(Clone, Debug)]
pub struct Attempt<'a> {
    /// The domain in which it was tried.
    pub domain: Option<Domain>,
    /// The board with those that fit.
    pub board: Board<'a>,
    /// Those that fit.
    pub places: Vec<Place<'a>>,
    /// Those that do not, by index, and why.
    pub failed: Vec<(usize, String)>,
}

/// The domains in which a group may be: one entry of none where it has no constraint, and one domain
/// where members are there already.
///
/// # Errors
///
/// Why there is none.
pub fn domains(cluster: &Cluster, group: Option<&Group>, bound: &[&Pod]) -> Result<Vec<Option<Domain>>, String> {
    let Some(key) = group.and_then(|group| group.topology.as_ref()) else { return Ok(vec![None]) };
    let value = |node: &Node| node.labels.get(key).cloned();
    let nodes_of_bound = bound.iter().filter_map(|pod| cluster.nodes.get(pod.node.as_deref()?));
    let mut fixed: BTreeSet<Option<String>> = nodes_of_bound.map(|node| value(node)).collect();
    let values = match (fixed.len(), fixed.pop_first()) {
        (0, _) => cluster.nodes.values().filter_map(|node| value(node)).collect(),
        (1, Some(Some(value))) => BTreeSet::from([value]),
        (1, _) => return Err(format!("members are on nodes without the label {key}")),
        _ => return Err(format!("members are in more than one domain of {key}")),
    };
    if values.is_empty() {
        return Err(format!("no node has the label {key}"));
    }
    Ok(values.into_iter().map(|value| Some(Domain { key: key.clone(), value })).collect())
}

/// Places the members in the domain that takes the most of them.
pub fn best<'a>(
    board: &Board<'a>,
    members: &[Member<'a>],
    domains: &[Option<Domain>],
    seed: u64,
) -> Option<Attempt<'a>> {
    let attempts = domains.iter().map(|domain| attempt(board, members, domain.as_ref(), seed));
    attempts.max_by_key(|it| {
        let value = it.domain.as_ref().map_or("", |domain| &domain.value);
        (it.places.len(), rank(seed, &[value]))
    })
}

/// Places as many of the members as fit in one domain.
pub fn attempt<'a>(board: &Board<'a>, members: &[Member<'a>], domain: Option<&Domain>, seed: u64) -> Attempt<'a> {
    let mut attempt = Attempt { domain: domain.cloned(), board: board.clone(), places: Vec::new(), failed: Vec::new() };
    for (index, member) in members.iter().enumerate() {
        match choose(&attempt.board, member, domain, seed) {
            Ok(node) => {
                attempt.board.put(member, node);
                attempt.places.push(Place { member: index, node });
            }
            Err(why) => attempt.failed.push((index, why)),
        }
    }
    attempt
}

/// The node for a pod: the one that stays the most free.
fn choose<'a>(board: &Board<'a>, member: &Member<'_>, domain: Option<&Domain>, seed: u64) -> Result<&'a str, String> {
    if let Err(why) = &member.needs {
        return Err(why.clone());
    }
    let nodes: Vec<_> = board.cluster.nodes.values().filter(|node| domain.is_none_or(|it| it.has(node))).collect();
    let mut obstacles: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<((i128, u64), &'a str)> = None;
    for node in &nodes {
        let found = board.obstacles(member, node);
        if found.is_empty() {
            let tie = rank(seed, &[&member.pod.key.namespace, &member.pod.key.name, &node.name]);
            let score = (board.left(member.pod, node), tie);
            if best.is_none_or(|(other, _)| score > other) {
                best = Some((score, &node.name));
            }
        }
        for obstacle in found {
            *obstacles.entry(obstacle).or_default() += 1;
        }
    }
    best.map(|(_, node)| node).ok_or_else(|| unavailable(nodes.len(), obstacles))
}

/// The message of a pod that fits nowhere: the obstacles, the most frequent first.
fn unavailable(nodes: usize, obstacles: BTreeMap<String, usize>) -> String {
    let mut obstacles: Vec<_> = obstacles.into_iter().collect();
    obstacles.sort_by_key(|(_, count)| Reverse(*count));
    let obstacles: Vec<_> = obstacles.into_iter().map(|(obstacle, count)| format!("{count} {obstacle}")).collect();
    let sentence = if obstacles.is_empty() { ".".to_owned() } else { format!(": {}.", obstacles.join(", ")) };
    format!("0/{nodes} nodes are available{sentence}")
}
