//! All or nothing.

use std::collections::BTreeMap;

use super::world::{Change, World};

#[test]
fn two_gangs_that_would_deadlock_pod_by_pod_do_not() {
    // Six places, two gangs of four, their pods created alternately.
    let story = |generic_workload| {
        let mut world = World::with_nodes(&[3, 3]);
        world.settings.generic_workload = generic_workload;
        world.gang("red", 4);
        world.gang("blue", 4);
        for ordinal in 0..4 {
            world.members("red", ordinal..ordinal + 1, 1);
            world.members("blue", ordinal..ordinal + 1, 1);
        }
        world.settle();
        let mut bound = [world.bound_of("red"), world.bound_of("blue")];
        bound.sort_unstable();
        (bound, world)
    };
    assert_eq!(story(false).0, [3, 3], "pod by pod, each holds what the other waits for");
    let (bound, mut world) = story(true);
    assert_eq!(bound, [0, 4], "one is complete and the other holds nothing");
    let (first, second) = if world.bound_of("red") == 4 { ("red", "blue") } else { ("blue", "red") };
    (0..4).for_each(|ordinal| world.remove_pod(&format!("{first}-{ordinal}")));
    world.settle();
    assert_eq!(world.bound_of(second), 4, "then it is the other's turn");
}

#[test]
fn a_gang_waits_until_enough_members_exist() {
    let mut world = World::with_nodes(&[8]);
    world.gang("db", 3);
    world.members("db", 0..2, 1);
    world.settle();
    assert_eq!(world.bound(), BTreeMap::new());
    assert_eq!(world.told("db-0"), ("", ""), "it is not even looked at");
    world.members("db", 2..3, 1);
    world.settle();
    assert_eq!(world.bound_of("db"), 3);
}

#[test]
fn insufficient_resources_leave_nothing_bound_and_say_so() {
    let mut world = World::with_nodes(&[2]);
    world.gang("db", 3);
    world.members("db", 0..3, 1);
    world.settle();
    assert_eq!(world.bound(), BTreeMap::new());
    assert_eq!(world.told("db-0"), ("Unschedulable", "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"));
    assert_eq!(world.told("db-2"), ("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."));
    let group = world.told_of_group("db");
    assert_eq!((&*group.status, &*group.reason), ("False", "Unschedulable"));
    assert_eq!(group.message, "0/1 nodes are available: 1 Insufficient cpu.");

    world.node("n2", 1, &[]);
    world.settle();
    assert_eq!(world.bound_of("db"), 3, "all are bound once they can be");
    let group = world.told_of_group("db");
    assert_eq!((&*group.status, &*group.reason), ("True", "Scheduled"));
}

#[test]
fn a_gang_that_does_not_fit_is_in_nobodys_way() {
    let mut world = World::with_nodes(&[2]);
    world.gang("db", 3);
    world.members("db", 0..3, 1);
    world.pod("web", 2);
    world.settle();
    assert_eq!(world.bound(), BTreeMap::from([("web", "n1")]));
}

#[test]
fn beyond_min_count_as_many_are_bound_as_fit() {
    let mut world = World::with_nodes(&[3]);
    world.gang("db", 2);
    world.members("db", 0..5, 1);
    world.settle();
    assert_eq!(world.bound_of("db"), 3);
    assert_eq!(world.told("db-4").0, "Unschedulable");
    assert_eq!(world.told_of_group("db").status, "True");
}

#[test]
fn replacements_join_a_placed_group_one_at_a_time() {
    let mut world = World::with_nodes(&[3]);
    world.gang("db", 3);
    world.members("db", 0..3, 1);
    world.settle();
    for ordinal in (0..3).rev() {
        world.remove_pod(&format!("db-{ordinal}"));
        world.settle();
        assert_eq!(world.bound_of("db"), 2);
        world.members("db", ordinal..ordinal + 1, 1);
        world.settle();
        assert_eq!(world.bound_of("db"), 3, "the new db-{ordinal} joins those that run");
    }
}

#[test]
fn a_scale_up_counts_the_bound_members() {
    let table = [(5, 5, 3, "both new pods are needed and one of them does not fit"), (6, 5, 5, "both fit")];
    for (cpus, min_count, expected, name) in table {
        let mut world = World::with_nodes(&[3]);
        world.gang("db", 3);
        world.members("db", 0..3, 1);
        world.settle();
        world.node("n2", cpus - 4, &[]);
        world.change_group("db").min_count = Some(min_count);
        world.members("db", 3..5, 1);
        world.settle();
        assert_eq!(world.bound_of("db"), expected, "{name}");
        assert_eq!(world.told_of_group("db").status, "True", "it was placed once, and that is terminal");
    }
}

#[test]
fn a_scale_down_lets_a_replacement_in_that_the_old_size_would_not() {
    let mut world = World::with_nodes(&[5]);
    world.gang("db", 5);
    world.members("db", 0..5, 1);
    world.settle();
    for ordinal in [0, 3, 4] {
        world.remove_pod(&format!("db-{ordinal}"));
    }
    world.members("db", 0..1, 1);
    world.settle();
    assert_eq!(world.bound_of("db"), 2, "five are asked for and three are there");
    world.change_group("db").min_count = Some(3);
    world.settle();
    assert_eq!(world.bound_of("db"), 3);
}

#[test]
fn a_pod_waits_for_the_group_that_it_names() {
    let mut world = World::with_nodes(&[4]);
    world.members("db", 0..2, 1);
    world.settle();
    assert_eq!(world.bound(), BTreeMap::new());
    world.gang("db", 2);
    world.settle();
    assert_eq!(world.bound_of("db"), 2);
}

#[test]
fn a_group_that_is_being_deleted_takes_no_more() {
    let mut world = World::with_nodes(&[4]);
    world.gang("db", 2);
    world.members("db", 0..2, 1);
    world.settle();
    world.change_group("db").deleting = true;
    world.members("db", 2..3, 1);
    world.settle();
    assert_eq!(world.bound_of("db"), 2);
}

#[test]
fn a_group_whose_members_disagree_fails_with_the_reason() {
    let same_priority = "all pods in a single pod group should have the same priority as the pod group's priority";
    let same_name = "all pods in a single pod group should have the same .spec.schedulerName set";
    let table: [(&str, Change, &str); 4] = [
        ("a pod's priority differs", |world| world.change_pod("db-1").priority = Some(7), same_priority),
        (
            "all pods' priority differs from the group's",
            |world| (0..2).for_each(|it| world.change_pod(&format!("db-{it}")).class = Some("high".to_owned())),
            same_priority,
        ),
        (
            "the group's priority differs",
            |world| world.change_group("db").class = Some("high".to_owned()),
            same_priority,
        ),
        ("a pod's scheduler differs", |world| world.change_pod("db-1").scheduler = "another".to_owned(), same_name),
    ];
    for (name, change, expected) in table {
        let mut world = World::with_nodes(&[4]);
        world.class("high", 100, false);
        world.gang("db", 2);
        world.members("db", 0..2, 1);
        change(&mut world);
        world.settle();
        assert_eq!(world.bound(), BTreeMap::new(), "{name}");
        let group = world.told_of_group("db");
        assert_eq!((&*group.status, &*group.reason), ("False", "SchedulerError"), "{name}");
        assert!(group.message.starts_with(expected), "{name}: {}", group.message);
        assert_eq!(world.told("db-0"), ("SchedulerError", &*group.message), "{name}");
    }
}

#[test]
fn a_class_by_name_is_the_same_as_its_number() {
    let mut world = World::with_nodes(&[4]);
    world.class("high", 100, false);
    world.class("usual", 5, true);
    world.gang("db", 2).class = Some("high".to_owned());
    world.members("db", 0..2, 1);
    world.change_pod("db-0").priority = Some(100);
    world.change_pod("db-1").class = Some("high".to_owned());
    world.gang("kv", 1);
    world.members("kv", 0..1, 1);
    world.change_pod("kv-0").class = Some("usual".to_owned());
    world.settle();
    assert_eq!((world.bound_of("db"), world.bound_of("kv")), (2, 1));
}

#[test]
fn a_bound_member_counts_in_the_agreement() {
    let mut world = World::with_nodes(&[4]);
    world.gang("db", 1);
    world.members("db", 0..1, 1);
    world.settle();
    world.change_pod("db-0").priority = Some(9);
    world.members("db", 1..2, 1);
    world.settle();
    assert_eq!(world.bound_of("db"), 1);
    assert_eq!(world.told("db-1").0, "SchedulerError");
    assert_eq!(world.told_of_group("db").status, "True", "what is terminal stays");
}

#[test]
fn a_group_found_bound_is_reported_as_scheduled() {
    let mut world = World::with_nodes(&[4]);
    world.gang("db", 2);
    world.members("db", 0..2, 1);
    (0..2).for_each(|it| world.change_pod(&format!("db-{it}")).node = Some("n1".to_owned()));
    world.settle();
    assert_eq!(world.told_of_group("db").status, "True");
}

#[test]
fn pods_of_a_basic_group_are_bound_as_they_come() {
    let mut world = World::with_nodes(&[2]);
    world.group("web");
    world.members("web", 0..1, 1);
    world.settle();
    assert_eq!(world.bound_of("web"), 1);
    assert_eq!(world.told_of_group("web").status, "True");
    world.members("web", 1..3, 1);
    world.settle();
    assert_eq!(world.bound_of("web"), 2);
}

#[test]
fn a_large_gang_is_placed_in_a_blink() {
    let mut world = World::with_nodes(&[10; 50]);
    world.gang("big", 500);
    world.members("big", 0..500, 1);
    world.settle();
    assert_eq!(world.bound_of("big"), 500);
}
