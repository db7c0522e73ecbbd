//! Who goes for whom.

use std::collections::BTreeMap;

use super::world::{World, victims};

/// A gang of three low pods on three nodes of one processor each.
fn low_gang(whole: bool) -> World {
    let mut world = World::with_nodes(&[1, 1, 1]);
    world.gang("low", 3).whole = whole;
    world.members("low", 0..3, 1);
    world.settle();
    assert_eq!(world.bound_of("low"), 3);
    world
}

#[test]
fn a_group_is_preempted_whole_or_pod_by_pod_as_its_mode_says() {
    for (whole, expected) in [(true, 3), (false, 1)] {
        let mut world = low_gang(whole);
        world.pod("high", 1).priority = Some(10);
        let decisions = world.step();
        assert_eq!(victims(&decisions)["high"].len(), expected, "whole: {whole}");
        world.settle();
        assert!(world.bound().contains_key("high"));
        assert_eq!(world.bound_of("low"), 3 - expected, "whole: {whole}");
    }
}

#[test]
fn equal_and_higher_priorities_are_never_preempted() {
    for priority in [0, -1] {
        let mut world = low_gang(false);
        world.pod("new", 1).priority = Some(priority);
        world.settle();
        assert_eq!(world.bound_of("low"), 3);
        assert_eq!(world.told("new").0, "Unschedulable");
    }
}

#[test]
fn a_pod_that_must_not_preempt_waits() {
    let mut world = low_gang(false);
    let pod = world.pod("new", 1);
    (pod.priority, pod.preempts) = (Some(10), false);
    world.settle();
    assert_eq!(world.bound_of("low"), 3);
}

#[test]
fn a_gang_preempts_for_all_of_its_members_at_once() {
    let mut world = low_gang(false);
    world.gang("high", 2).priority = Some(10);
    world.members("high", 0..2, 1);
    let decisions = world.step();
    assert_eq!(victims(&decisions)["high"].len(), 2);
    assert_eq!(world.bound_of("high"), 0, "nothing is bound before all victims are gone");
    assert_eq!(world.told_of_group("high").message, "pod group is waiting for preemption to complete");
    world.settle();
    assert_eq!((world.bound_of("high"), world.bound_of("low")), (2, 1));
}

#[test]
fn a_gang_that_would_not_fit_even_so_preempts_nobody() {
    let mut world = low_gang(false);
    world.gang("high", 4).priority = Some(10);
    world.members("high", 0..4, 1);
    world.settle();
    assert_eq!((world.bound_of("high"), world.bound_of("low")), (0, 3));
    assert_eq!(world.told("high-0").0, "Unschedulable");
    assert_eq!(world.change_pod("high-0").nominated, None);
}

#[test]
fn as_few_units_go_as_possible() {
    let mut world = World::with_nodes(&[4]);
    for name in ["small-0", "small-1"] {
        world.pod(name, 1).priority = Some(1);
    }
    world.pod("large", 2).priority = Some(5);
    world.settle();
    world.pod("high", 2).priority = Some(10);
    let decisions = world.step();
    assert_eq!(victims(&decisions)["high"], ["large"], "one instead of two");
}

#[test]
fn of_equally_few_the_lowest_priority_goes() {
    let mut world = World::with_nodes(&[3]);
    for (name, priority) in [("three", 3), ("one", 1), ("two", 2)] {
        world.pod(name, 1).priority = Some(priority);
    }
    world.settle();
    world.pod("high", 1).priority = Some(10);
    let decisions = world.step();
    assert_eq!(victims(&decisions)["high"], ["one"]);
}

#[test]
fn room_that_is_being_made_is_kept() {
    let mut world = low_gang(false);
    world.gang("high", 2).priority = Some(10);
    world.members("high", 0..2, 1);
    world.step();
    let going: Vec<_> =
        world.cluster.pods.values().filter(|pod| pod.deleting).map(|pod| pod.key.name.clone()).collect();
    assert_eq!(going.len(), 2);
    // The first victim is gone, and another pod would like its place.
    world.remove_pod(&going[0]);
    world.pod("middle", 1).priority = Some(5);
    let decisions = world.step();
    assert!(!victims(&decisions).contains_key("high"), "no more victims for the same pods");
    assert!(!world.bound().contains_key("middle"));
    world.remove_pod(&going[1]);
    world.step();
    assert_eq!(world.bound_of("high"), 2);
}

#[test]
fn a_higher_priority_may_take_room_that_is_being_made() {
    let mut world = World::with_nodes(&[1]);
    world.pod("low", 1);
    world.settle();
    world.pod("middle", 1).priority = Some(5);
    world.step();
    world.remove_pod("low");
    world.pod("high", 1).priority = Some(10);
    world.settle();
    assert_eq!(world.bound(), BTreeMap::from([("high", "n1")]));
    assert_eq!(world.change_pod("middle").nominated, None, "it is not waiting for that room any more");
}

#[test]
fn two_preemptors_do_not_count_on_the_same_victim() {
    let mut world = World::with_nodes(&[1, 1]);
    world.pod("low-0", 1);
    world.pod("low-1", 1);
    world.settle();
    world.pod("high-0", 1).priority = Some(10);
    world.pod("high-1", 1).priority = Some(10);
    let decisions = world.step();
    let victims = victims(&decisions);
    assert_eq!((victims["high-0"].len(), victims["high-1"].len()), (1, 1));
    assert_ne!(victims["high-0"], victims["high-1"]);
    world.settle();
    assert_eq!(world.bound().len(), 2);
}

#[test]
fn victims_that_are_on_their_way_out_are_enough() {
    let mut world = World::with_nodes(&[1]);
    world.pod("low", 1);
    world.settle();
    world.change_pod("low").deleting = true;
    world.pod("high", 1).priority = Some(10);
    let decisions = world.step();
    assert!(victims(&decisions).is_empty());
    assert_eq!(world.change_pod("high").nominated.as_deref(), Some("n1"));
}

#[test]
fn a_group_preempts_in_the_domain_where_the_fewest_go() {
    let mut world = World::default();
    world.node("a0", 2, &[("rack", "a")]);
    world.node("b0", 2, &[("rack", "b")]);
    for (name, node) in [("low-0", "a0"), ("low-1", "a0"), ("low-2", "b0")] {
        world.pod(name, 1).node = Some(node.to_owned());
    }
    world.gang("high", 2).topology = Some("rack".to_owned());
    world.change_group("high").priority = Some(10);
    world.members("high", 0..2, 1);
    let decisions = world.step();
    assert_eq!(victims(&decisions)["high"], ["low-2"]);
    world.settle();
    assert_eq!(world.bound_of("high"), 2);
}

#[test]
fn the_groups_priority_protects_its_members() {
    let mut world = World::with_nodes(&[1]);
    world.gang("db", 1).priority = Some(50);
    world.members("db", 0..1, 1);
    world.settle();
    // Whatever the pod itself says by now.
    world.change_pod("db-0").priority = Some(0);
    world.pod("high", 1).priority = Some(10);
    world.settle();
    assert_eq!(world.bound_of("db"), 1);
}

#[test]
fn a_replacement_preempts_on_its_own() {
    let mut world = World::with_nodes(&[3]);
    world.gang("high", 3).priority = Some(10);
    world.members("high", 0..3, 1);
    world.settle();
    world.remove_pod("high-1");
    world.pod("low", 1);
    world.settle();
    world.members("high", 1..2, 1);
    world.settle();
    assert_eq!(world.bound_of("high"), 3);
    assert!(!world.bound().contains_key("low"));
}

#[test]
fn many_candidates_are_reprieved_where_not_all_sets_can_be_tried() {
    let mut world = World::with_nodes(&[40]);
    for index in 0..40 {
        world.pod(&format!("low-{index}"), 1).priority = Some(index % 4);
    }
    world.settle();
    world.pod("high", 5).priority = Some(10);
    let decisions = world.step();
    let gone = &victims(&decisions)["high"];
    assert_eq!(gone.len(), 5);
    let lowest =
        gone.iter().all(|name| world.cluster.pods.values().any(|pod| pod.key.name == *name && pod.priority == Some(0)));
    assert!(lowest, "{gone:?}");
}
