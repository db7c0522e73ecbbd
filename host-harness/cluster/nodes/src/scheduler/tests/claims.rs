//! Devices, shared and not.

use std::collections::BTreeMap;

use super::world::{World, by_name, by_template};
use crate::cluster::{Consumer, Key};
use crate::scheduler::{Decision, Supply};

fn reserved(world: &World, claim: &str) -> Vec<Consumer> {
    world.cluster.claims[&Key::new("prod", claim)].reserved.clone()
}

fn for_group(name: &str) -> Consumer {
    Consumer::Group(name.to_owned(), format!("uid-{name}"))
}

/// A gang of two that shares the claim made from template `gpu`, as `shared`.
fn sharing() -> World {
    let mut world = World::with_nodes(&[4, 4]);
    let group = world.gang("db", 2);
    group.claims = vec![by_template("shared", "gpu")];
    group.made = [("shared".to_owned(), Some("db-gpu".to_owned()))].into();
    world.members("db", 0..2, 1);
    (0..2).for_each(|it| world.change_pod(&format!("db-{it}")).claims = vec![by_template("shared", "gpu")]);
    world
}

#[test]
fn a_shared_claim_is_allocated_once_and_reserved_for_the_group() {
    let mut world = sharing();
    world.claim("db-gpu", 1);
    world.settle();
    assert_eq!(world.bound_of("db"), 2);
    assert_eq!(world.allocated("db-gpu"), Some(vec!["cluster/device-0".to_owned()]));
    assert_eq!(reserved(&world, "db-gpu"), [for_group("db")]);

    world.members("db", 2..4, 1);
    (2..4).for_each(|it| world.change_pod(&format!("db-{it}")).claims = vec![by_template("shared", "gpu")]);
    let decisions = world.step();
    let written = decisions.iter().any(|it| matches!(it, Decision::Place(placement) if !placement.claims.is_empty()));
    assert!(!written, "a member that joins changes nothing about the claim");
    assert_eq!(world.bound_of("db"), 4);
}

#[test]
fn a_gang_waits_for_its_claim_to_be_made() {
    let mut world = sharing();
    world.settle();
    assert_eq!(world.bound(), BTreeMap::new());
    assert_eq!(world.told("db-0"), ("Unschedulable", "resourceclaim \"db-gpu\" not found"));
    world.claim("db-gpu", 1);
    world.settle();
    assert_eq!(world.bound_of("db"), 2);
}

#[test]
fn a_claim_is_the_groups_only_if_name_and_source_are_the_same() {
    let table = [
        ("the same", by_template("shared", "gpu"), Some(for_group("db"))),
        ("another name", by_template("own", "gpu"), None),
        ("another template", by_template("shared", "other"), None),
        ("a claim instead of a template", by_name("shared", "gpu"), None),
    ];
    for (name, reference, expected) in table {
        let mut world = sharing();
        world.claim("db-gpu", 1);
        world.claim("pods-own", 1);
        world.claim("gpu", 1);
        let pod = world.change_pod("db-1");
        pod.made = [("shared", "pods-own"), ("own", "pods-own")]
            .map(|(name, claim)| (name.to_owned(), Some(claim.to_owned())))
            .into();
        pod.claims = vec![reference.clone()];
        let own = Consumer::Pod("db-1".to_owned(), pod.uid.clone());
        world.settle();
        assert_eq!(world.bound_of("db"), 2, "{name}");
        let claim = match (&expected, &reference.source) {
            (Some(_), _) => "db-gpu",
            (None, crate::cluster::Source::Claim(claim)) => claim,
            (None, crate::cluster::Source::Template(_)) => "pods-own",
        };
        assert_eq!(reserved(&world, claim), [expected.unwrap_or(own)], "{name}");
    }
}

#[test]
fn a_named_claim_is_shared_by_all_groups_that_name_it() {
    let mut world = World::with_nodes(&[4]);
    world.claim("pool", 1);
    for group in ["red", "blue"] {
        world.gang(group, 1).claims = vec![by_name("shared", "pool")];
        world.members(group, 0..1, 1);
        world.change_pod(&format!("{group}-0")).claims = vec![by_name("shared", "pool")];
    }
    world.settle();
    assert_eq!(world.bound().len(), 2);
    let mut reserved = reserved(&world, "pool");
    reserved.sort_by_key(|it| format!("{it:?}"));
    assert_eq!(reserved, [for_group("blue"), for_group("red")]);
    assert_eq!(world.allocated("pool").map(|devices| devices.len()), Some(1));
}

#[test]
fn a_device_at_a_node_keeps_the_whole_group_there() {
    let mut world = sharing();
    world.settings.devices.classes.insert("gpu".to_owned(), Supply::AtNodes([("n2".to_owned(), 1)].into()));
    world.claim("db-gpu", 1);
    world.settle();
    assert_eq!(world.bound(), BTreeMap::from([("db-0", "n2"), ("db-1", "n2")]));
    assert_eq!(world.allocated("db-gpu"), Some(vec!["n2/device-0".to_owned()]));
}

#[test]
fn devices_run_out() {
    let table = [(Supply::Cluster(1), 1), (Supply::PerNode(1), 2), (Supply::Cluster(3), 3)];
    for (supply, expected) in table {
        let mut world = World::with_nodes(&[4, 4]);
        world.settings.devices.classes.insert("gpu".to_owned(), supply.clone());
        for index in 0..3 {
            world.claim(&format!("c{index}"), 1);
            world.pod(&format!("p{index}"), 1).claims = vec![by_name("gpu", &format!("c{index}"))];
        }
        world.settle();
        assert_eq!(world.bound().len(), expected, "{supply:?}");
        let allocated: Vec<_> = (0..3).filter_map(|index| world.allocated(&format!("c{index}"))).flatten().collect();
        let distinct: std::collections::BTreeSet<_> = allocated.iter().collect();
        assert_eq!((allocated.len(), distinct.len()), (expected, expected), "{supply:?}");
    }
}

#[test]
fn a_gang_that_lacks_a_device_takes_none() {
    let mut world = World::with_nodes(&[4]);
    world.settings.devices.classes.insert("gpu".to_owned(), Supply::Cluster(1));
    world.gang("db", 2);
    world.members("db", 0..2, 1);
    for index in 0..2 {
        world.claim(&format!("c{index}"), 1);
        world.change_pod(&format!("db-{index}")).claims = vec![by_name("gpu", &format!("c{index}"))];
    }
    world.settle();
    assert_eq!(world.bound(), BTreeMap::new());
    assert_eq!((world.allocated("c0"), world.allocated("c1")), (None, None));
    assert_eq!(world.told("db-1"), ("Unschedulable", "0/1 nodes are available: 1 cannot allocate all claims."));
}
