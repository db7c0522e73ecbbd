//! One domain for all.

use std::collections::{BTreeMap, BTreeSet};

use super::world::{Change, World};

/// Racks by name, each with the processors of its nodes.
fn racks(racks: &[(&str, &[i64])]) -> World {
    let mut world = World::default();
    for (rack, nodes) in racks {
        for (index, cpu) in nodes.iter().enumerate() {
            world.node(&format!("{rack}{index}"), *cpu, &[("rack", rack)]);
        }
    }
    world.node("unlabelled", 100, &[]);
    world
}

fn racks_of(world: &World) -> BTreeSet<String> {
    world.bound().values().map(|node| node[..1].to_owned()).collect()
}

#[test]
fn a_group_goes_into_the_one_domain_that_takes_all_of_it() {
    let mut world = racks(&[("a", &[1, 1]), ("b", &[2, 1]), ("c", &[2])]);
    world.gang("db", 3).topology = Some("rack".to_owned());
    world.members("db", 0..3, 1);
    world.settle();
    assert_eq!(world.bound_of("db"), 3);
    assert_eq!(racks_of(&world), BTreeSet::from(["b".to_owned()]));
}

#[test]
fn a_group_that_fits_into_no_single_domain_is_not_placed_at_all() {
    let mut world = racks(&[("a", &[1, 1]), ("b", &[2])]);
    world.gang("db", 3).topology = Some("rack".to_owned());
    world.members("db", 0..3, 1);
    world.settle();
    assert_eq!(world.bound(), BTreeMap::new());
    let group = world.told_of_group("db");
    assert_eq!(group.reason, "Unschedulable");
    assert!(group.message.starts_with("0/2 placements are available, rack "), "{}", group.message);
}

#[test]
fn members_that_are_there_fix_the_domain() {
    let mut world = racks(&[("a", &[2]), ("b", &[4])]);
    world.gang("db", 2).topology = Some("rack".to_owned());
    world.members("db", 0..2, 1);
    (0..2).for_each(|it| world.change_pod(&format!("db-{it}")).node = Some("a0".to_owned()));
    world.members("db", 2..3, 1);
    world.settle();
    assert_eq!(world.bound_of("db"), 2, "the other rack has room and is not used");
    assert_eq!(world.told("db-2"), ("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."));
}

#[test]
fn a_basic_group_stays_in_the_domain_of_its_first_pod() {
    let mut world = racks(&[("a", &[1, 1]), ("b", &[1, 1])]);
    world.group("web").topology = Some("rack".to_owned());
    for ordinal in 0..3 {
        world.members("web", ordinal..ordinal + 1, 1);
        world.settle();
    }
    assert_eq!(world.bound_of("web"), 2);
    assert_eq!(racks_of(&world).len(), 1);
}

#[test]
fn a_constraint_that_cannot_be_met_says_why() {
    let table: [(&str, Change, &str); 3] = [
        ("no node has the label", |_| {}, "no node has the label zone"),
        (
            "a member is where there is no label",
            |world| {
                world.node("z", 4, &[("zone", "z1")]);
                world.change_pod("db-0").node = Some("a0".to_owned());
            },
            "members are on nodes without the label zone",
        ),
        (
            "members are in two domains",
            |world| {
                world.node("z", 4, &[("zone", "z1")]);
                world.node("y", 4, &[("zone", "z2")]);
                world.change_pod("db-0").node = Some("z".to_owned());
                world.change_pod("db-1").node = Some("y".to_owned());
            },
            "members are in more than one domain of zone",
        ),
    ];
    for (name, change, expected) in table {
        let mut world = racks(&[("a", &[4])]);
        world.gang("db", 1).topology = Some("zone".to_owned());
        world.members("db", 0..3, 1);
        change(&mut world);
        world.settle();
        assert_eq!(world.told("db-2"), ("Unschedulable", expected), "{name}");
    }
}

#[test]
fn which_of_two_equal_domains_is_taken_depends_on_the_seed_only() {
    let chosen: BTreeSet<_> = (0..20)
        .map(|seed| {
            let mut world = racks(&[("a", &[2]), ("b", &[2])]);
            world.settings.seed = seed;
            world.gang("db", 2).topology = Some("rack".to_owned());
            world.members("db", 0..2, 1);
            world.settle();
            racks_of(&world)
        })
        .collect();
    assert_eq!(chosen.len(), 2);
}
