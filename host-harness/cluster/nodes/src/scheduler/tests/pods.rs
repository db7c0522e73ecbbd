//! Pods without groups.

use std::collections::BTreeMap;

use super::world::{Change, World};
use crate::cluster::{Taint, Toleration};
use crate::scheduler::Decision;

#[test]
fn pods_are_placed_one_by_one_as_long_as_they_fit() {
    let mut world = World::with_nodes(&[2, 1]);
    for name in ["a", "b", "c", "d"] {
        world.pod(name, 1);
    }
    world.settle();
    assert_eq!(world.bound().len(), 3);
    assert_eq!(world.told("d"), ("Unschedulable", "0/2 nodes are available: 2 Insufficient cpu."));
}

#[test]
fn a_pod_goes_only_where_labels_taints_and_readiness_let_it() {
    let table: [(&str, Change, Option<&str>); 6] = [
        ("nothing is in its way", |_| {}, Some("n1")),
        (
            "the node selector does not match",
            |world| {
                world.change_pod("a").node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
            },
            None,
        ),
        (
            "the node selector matches",
            |world| {
                world.change_pod("a").node_selector = [("zone".to_owned(), "z1".to_owned())].into();
            },
            Some("n1"),
        ),
        ("the node is tainted", |world| taint(world), None),
        (
            "the pod tolerates the taint",
            |world| {
                taint(world);
                let toleration = Toleration { key: "gpu".to_owned(), value: None, effect: String::new() };
                world.change_pod("a").tolerations = vec![toleration];
            },
            Some("n1"),
        ),
        ("the node is not ready", |world| world.change_node("n1", |node| node.ready = false), None),
    ];
    for (name, change, expected) in table {
        let mut world = World::default();
        world.node("n1", 1, &[("zone", "z1")]);
        world.pod("a", 1);
        change(&mut world);
        world.settle();
        assert_eq!(world.bound().get("a").copied(), expected, "{name}");
    }
}

fn taint(world: &mut World) {
    let taint = Taint { key: "gpu".to_owned(), value: "yes".to_owned(), effect: "NoSchedule".to_owned() };
    world.change_node("n1", |node| node.taints = vec![taint]);
}

#[test]
fn pods_of_another_scheduler_and_gated_pods_are_left_alone() {
    let mut world = World::with_nodes(&[4]);
    world.pod("other", 1).scheduler = "my-scheduler".to_owned();
    world.pod("gated", 1).gated = true;
    assert!(world.step().iter().all(|it| matches!(it, Decision::Hold { .. })));
    assert_eq!(world.bound(), BTreeMap::new());
}

#[test]
fn the_higher_priority_is_placed_first_whoever_came_first() {
    let mut world = World::with_nodes(&[1]);
    world.class("high", 100, false);
    world.pod("early", 1);
    world.pod("late", 1).class = Some("high".to_owned());
    world.settle();
    assert_eq!(world.bound(), BTreeMap::from([("late", "n1")]));
}

#[test]
fn one_seed_leads_to_one_outcome_and_seeds_differ() {
    let outcome = |seed| {
        let mut world = World::with_nodes(&[4, 4, 4, 4]);
        world.settings.seed = seed;
        for index in 0..6 {
            world.pod(&format!("p{index}"), 1);
        }
        world.settle();
        world.bound().into_iter().map(|(pod, node)| (pod.to_owned(), node.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(outcome(7), outcome(7));
    assert!((0..10).any(|seed| outcome(seed) != outcome(7)), "the seed matters");
}

#[test]
fn with_the_feature_off_groups_are_ignored() {
    let mut world = World::with_nodes(&[2]);
    world.settings.generic_workload = false;
    world.gang("db", 3);
    world.members("db", 0..3, 1);
    world.settle();
    assert_eq!(world.bound_of("db"), 2, "each pod for itself");
    assert_eq!(world.told_of_group("db").status, "");
}
