//! The tests that the KEP lists for `pkg/apis/apps/validation`, by its own words, and those of the
//! rules that are added to it.

use serde_json::{Value, json};

use super::{closed_gate, validate_change, validate_configuration, validate_create, validate_update};
use crate::api::{Carrier, StatefulSet, StatefulSetSchedulingConfiguration, UnknownFields, View, decode_configuration};
use crate::field::{Error, ErrorList, Path};
use crate::gates::FeatureGates;

const IMMUTABLE: &str = "spec.scheduling: Invalid value: null: field is immutable";
const ALL_WITH_BASIC: &str = "spec.scheduling.disruptionMode: Invalid value: \"\": the disruptionMode `all` is not \
    supported with the Basic scheduling policy";
const CLOSED: FeatureGates = FeatureGates { workload_with_stateful_set: false, dra_workload_resource_claims: true };
const OPEN: FeatureGates = FeatureGates { workload_with_stateful_set: true, dra_workload_resource_claims: true };

fn path() -> Path {
    Carrier::Field.path()
}

/// The StatefulSet with this `spec`.
fn statefulset(spec: &Value) -> StatefulSet {
    let object = json!({"metadata": {"name": "web"}, "spec": spec});
    let raw = serde_json::value::to_raw_value(&object).unwrap();
    StatefulSet::decode(&View::new(Some(&raw)).unwrap()).unwrap()
}

/// The StatefulSet with this `spec.template.spec`.
fn with_pods(pod_spec: &Value) -> StatefulSet {
    statefulset(&json!({"template": {"spec": pod_spec}}))
}

fn partitioned(partition: i32) -> StatefulSet {
    statefulset(&json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}))
}

fn configuration(scheduling: &Value) -> StatefulSetSchedulingConfiguration {
    decode_configuration(scheduling, &path(), UnknownFields::Refuse).unwrap()
}

fn messages(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(Error::to_string).collect()
}

/// The errors of a new StatefulSet with this `spec` and this `spec.scheduling`.
fn on_create(spec: &Value, scheduling: &Value) -> Vec<String> {
    messages(&validate_create(&statefulset(spec), &configuration(scheduling), &path()).into_errors())
}

/// The errors of a change of a StatefulSet that keeps `spec.scheduling: {}`.
fn on_update(old: &StatefulSet, new: &StatefulSet) -> Vec<String> {
    messages(&validate_update(old, new, &configuration(&json!({})), &path()).into_errors())
}

/// The errors of a change of `spec.scheduling`, `null` being none.
fn on_change(old: &Value, new: &Value, gates: FeatureGates) -> Vec<String> {
    let read = |value: &Value| (!value.is_null()).then(|| configuration(value));
    messages(&validate_change(read(old).as_ref(), read(new).as_ref(), gates, &path()))
}

/// `count` claims that differ in name.
fn claims(count: usize) -> Value {
    (0..count).map(|index| json!({"name": format!("claim-{index}"), "resourceClaimName": "shared"})).collect()
}

// The KEP's list.

#[test]
fn reject_ordered_ready_with_gang() {
    for spec in [json!({}), json!({"podManagementPolicy": ""}), json!({"podManagementPolicy": "OrderedReady"})] {
        assert_eq!(
            on_create(&spec, &json!({"schedulingPolicy": {"gang": {}}})),
            ["spec.scheduling.schedulingPolicy.gang: Forbidden: gang scheduling requires podManagementPolicy: \
                 Parallel; OrderedReady creates pods sequentially, which can never satisfy a gang"],
            "{spec}"
        );
    }
}

#[test]
fn reject_user_set_gang_min_count() {
    let forbidden = "spec.scheduling.schedulingPolicy.gang.minCount: Forbidden: may not be set: the size of the gang \
                     is derived from spec.replicas";
    let too_small = |count: i32| {
        format!(
            "spec.scheduling.schedulingPolicy.gang.minCount: Invalid value: {count}: must be greater than or equal to 1"
        )
    };
    for (count, more) in [(3, None), (1, None), (i32::MAX, None), (0, Some(too_small(0))), (-2, Some(too_small(-2)))] {
        let spec = json!({"replicas": 3, "podManagementPolicy": "Parallel"});
        let expected: Vec<String> = [forbidden.to_owned()].into_iter().chain(more).collect();
        assert_eq!(on_create(&spec, &json!({"schedulingPolicy": {"gang": {"minCount": count}}})), expected, "{count}");
    }
}

#[test]
fn reject_rolling_update_partition_together_with_scheduling_on_create_and_on_update() {
    let refused =
        ["spec.updateStrategy.rollingUpdate.partition: Forbidden: partitioned rollouts are not supported for \
                    StatefulSets with spec.scheduling set"];
    for scheduling in [json!({}), json!({"schedulingPolicy": {"basic": {}}}), json!({"schedulingPolicy": {"gang": {}}})]
    {
        for (partition, refuses) in [(0, false), (1, true), (7, true)] {
            let spec = json!({"podManagementPolicy": "Parallel",
                "updateStrategy": {"rollingUpdate": {"partition": partition}}});
            let expected: &[&str] = if refuses { &refused } else { &[] };
            assert_eq!(on_create(&spec, &scheduling), expected, "{partition} {scheduling}");
        }
    }
    for (old, new, refuses) in [(0, 1, true), (3, 2, true), (2, 3, true), (3, 0, false), (0, 0, false)] {
        let expected: &[&str] = if refuses { &refused } else { &[] };
        assert_eq!(on_update(&partitioned(old), &partitioned(new)), expected, "{old} -> {new}");
    }
    assert_eq!(on_update(&statefulset(&json!({})), &partitioned(1)), refused);
}

#[test]
fn reject_disruption_mode_all_with_the_basic_policy() {
    for (scheduling, expected) in [
        (json!({"disruptionMode": {"all": {}}}), &[ALL_WITH_BASIC][..]),
        (json!({"schedulingPolicy": {"basic": {}}, "disruptionMode": {"all": {}}}), &[ALL_WITH_BASIC]),
        (
            json!({"schedulingPolicy": {}, "disruptionMode": {"all": {}}}),
            &[
                ALL_WITH_BASIC,
                "spec.scheduling.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`",
            ],
        ),
        (json!({"disruptionMode": {"single": {}}}), &[]),
        (json!({"schedulingPolicy": {"basic": {}}, "disruptionMode": {"single": {}}}), &[]),
        (json!({"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}}), &[]),
    ] {
        let found = on_create(&json!({"podManagementPolicy": "Parallel"}), &scheduling);
        assert_eq!(found, expected, "{scheduling}");
    }
}

#[test]
fn accept_valid_parallel_with_gang_combinations() {
    let zone = json!({"topology": [{"key": "topology.kubernetes.io/zone"}]});
    for scheduling in [
        json!({"schedulingPolicy": {"gang": {}}}),
        json!({"schedulingPolicy": {"gang": {}}, "disruptionMode": {"single": {}}}),
        json!({"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}}),
        json!({"schedulingPolicy": {"gang": {}}, "schedulingConstraints": zone}),
        json!({"schedulingPolicy": {"gang": {}}, "resourceClaims": claims(4)}),
        json!({"schedulingPolicy": {"gang": {}}, "schedulingConstraints": zone, "disruptionMode": {"all": {}},
            "resourceClaims": claims(1)}),
    ] {
        for replicas in [json!(null), json!(0), json!(1), json!(1000)] {
            let spec = json!({"replicas": replicas, "podManagementPolicy": "Parallel"});
            assert_eq!(on_create(&spec, &scheduling), [""; 0], "{replicas} {scheduling}");
        }
    }
}

#[test]
fn accept_ordered_ready_with_basic_including_with_topology_constraints_and_shared_resource_claims() {
    let rack = json!({"topology": [{"key": "topology.kubernetes.io/rack"}]});
    for scheduling in [
        json!({"schedulingPolicy": {"basic": {}}}),
        json!({"schedulingPolicy": {"basic": {}}, "disruptionMode": {"single": {}}}),
        json!({"schedulingPolicy": {"basic": {}}, "schedulingConstraints": rack}),
        json!({"schedulingPolicy": {"basic": {}}, "resourceClaims": claims(2)}),
        json!({"schedulingPolicy": {"basic": {}}, "schedulingConstraints": rack, "resourceClaims": claims(4)}),
    ] {
        for policy in [json!(null), json!("OrderedReady"), json!("Parallel")] {
            let spec = json!({"podManagementPolicy": policy});
            assert_eq!(on_create(&spec, &scheduling), [""; 0], "{policy} {scheduling}");
        }
    }
}

#[test]
fn accept_empty_scheduling() {
    for spec in [json!({}), json!({"podManagementPolicy": "OrderedReady"}), json!({"podManagementPolicy": "Parallel"})]
    {
        let report = validate_create(&statefulset(&spec), &configuration(&json!({})), &path());
        assert!(report.is_valid(), "{spec}");
        assert_eq!(report.warnings, [""; 0]);
    }
}

#[test]
fn reject_mutations_of_any_kind_add_after_create_unset_switch_and_claims_edits() {
    let gang = json!({"schedulingPolicy": {"gang": {}}});
    let basic = json!({"schedulingPolicy": {"basic": {}}});
    let with = |member: &str, value: Value| json!({"schedulingPolicy": {"gang": {}}, member: value});
    let [a, b] = ["a", "b"].map(|name| json!({"name": name, "resourceClaimName": "one"}));
    let other = json!({"name": "a", "resourceClaimName": "two"});
    let template = json!({"name": "a", "resourceClaimTemplateName": "one"});
    for (what, old, new) in [
        ("added empty", json!(null), json!({})),
        ("added", json!(null), gang.clone()),
        ("unset", gang.clone(), json!(null)),
        ("unset while empty", json!({}), json!(null)),
        ("emptied", gang.clone(), json!({})),
        ("gang to basic", gang.clone(), basic.clone()),
        ("basic to gang", basic.clone(), gang.clone()),
        ("the default, written", json!({}), basic.clone()),
        ("minCount added", gang.clone(), json!({"schedulingPolicy": {"gang": {"minCount": 3}}})),
        ("constraints added", gang.clone(), with("schedulingConstraints", json!({"topology": [{"key": "zone"}]}))),
        (
            "key changed",
            with("schedulingConstraints", json!({"topology": [{"key": "zone"}]})),
            with("schedulingConstraints", json!({"topology": [{"key": "rack"}]})),
        ),
        ("mode added", gang.clone(), with("disruptionMode", json!({"all": {}}))),
        ("mode changed", with("disruptionMode", json!({"all": {}})), with("disruptionMode", json!({"single": {}}))),
        ("claims added", gang.clone(), with("resourceClaims", json!([a]))),
        ("claims removed", with("resourceClaims", json!([a])), gang.clone()),
        ("a claim added", with("resourceClaims", json!([a])), with("resourceClaims", json!([a, b]))),
        ("a claim removed", with("resourceClaims", json!([a, b])), with("resourceClaims", json!([b]))),
        ("a source changed", with("resourceClaims", json!([a])), with("resourceClaims", json!([other]))),
        ("a source's kind changed", with("resourceClaims", json!([a])), with("resourceClaims", json!([template]))),
        ("claims reordered", with("resourceClaims", json!([a, b])), with("resourceClaims", json!([b, a]))),
    ] {
        assert_eq!(on_change(&old, &new, OPEN), [IMMUTABLE], "{what}");
    }
}

#[test]
fn accept_valid_resource_claims_with_one_of_name_and_template_set() {
    for claims in [
        json!([]),
        json!([{"name": "gpus", "resourceClaimName": "gpu-pool"}]),
        json!([{"name": "gpus", "resourceClaimTemplateName": "gpu-pool.v2"}]),
        json!([{"name": "a", "resourceClaimName": "shared"}, {"name": "b", "resourceClaimTemplateName": "shared"}]),
        claims(4),
    ] {
        assert_eq!(on_create(&json!({}), &json!({"resourceClaims": claims})), [""; 0], "{claims}");
    }
}

#[test]
fn reject_resource_claims_with_both_or_neither_source_set() {
    let both = "spec.scheduling.resourceClaims[0]: Invalid value: \"{resourceClaimName, resourceClaimTemplateName}\": \
                must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`";
    let neither = "spec.scheduling.resourceClaims[1]: Invalid value: \"\": must specify one of: `resourceClaimName`, \
                   `resourceClaimTemplateName`";
    let claim = json!({"name": "a", "resourceClaimName": "x"});
    for (claims, expected) in [
        (json!([{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}]), &[both][..]),
        (json!([claim, {"name": "b"}]), &[neither]),
        (
            json!([{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}, {"name": "b"}]),
            &[both, neither],
        ),
    ] {
        assert_eq!(on_create(&json!({}), &json!({"resourceClaims": claims})), expected, "{claims}");
    }
}

#[test]
fn reject_more_than_four_resource_claims() {
    for count in [5, 6, 100] {
        assert_eq!(
            on_create(&json!({}), &json!({"resourceClaims": claims(count)})),
            [format!("spec.scheduling.resourceClaims: Too many: {count}: must have at most 4 items")]
        );
    }
    let mut broken = vec![json!({}); 5];
    broken[0] = json!({"name": "Not A Name"});
    assert_eq!(
        on_create(&json!({}), &json!({"resourceClaims": broken})),
        ["spec.scheduling.resourceClaims: Too many: 5: must have at most 4 items"],
        "nothing inside a list that is too long is reported"
    );
}

// What the building blocks forbid by themselves.

#[test]
fn a_union_must_have_exactly_one_member() {
    for (scheduling, expected) in [
        (
            json!({"schedulingPolicy": {}}),
            "spec.scheduling.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`",
        ),
        (
            json!({"schedulingPolicy": {"basic": {}, "gang": {}}}),
            "spec.scheduling.schedulingPolicy: Invalid value: \"{basic, gang}\": must specify exactly one of: `basic`, \
             `gang`",
        ),
        (
            json!({"disruptionMode": {}}),
            "spec.scheduling.disruptionMode: Invalid value: \"\": must specify one of: `single`, `all`",
        ),
        (
            json!({"disruptionMode": {"single": {}, "all": {}}}),
            "spec.scheduling.disruptionMode: Invalid value: \"{single, all}\": must specify exactly one of: `single`, \
             `all`",
        ),
    ] {
        let spec = json!({"podManagementPolicy": "Parallel"});
        assert_eq!(on_create(&spec, &scheduling), [expected], "{scheduling}");
    }
}

#[test]
fn one_topology_constraint_with_the_key_of_a_label_may_be_set() {
    let many = "spec.scheduling.schedulingConstraints.topology: Too many: 2: must have at most 1 item";
    let required = "spec.scheduling.schedulingConstraints.topology[0].key: Required value";
    let no_prefix = "spec.scheduling.schedulingConstraints.topology[0].key: Invalid value: \"/zone\": prefix part must \
                     be non-empty";
    for (topology, expected) in [
        (json!(null), &[][..]),
        (json!([]), &[]),
        (json!([{"key": "zone"}]), &[]),
        (json!([{"key": "topology.kubernetes.io/zone"}]), &[]),
        (json!([{"key": "zone"}, {"key": "rack"}]), &[many]),
        (json!([{}, {"key": "/"}]), &[many]),
        (json!([{}]), &[required]),
        (json!([{"key": ""}]), &[required]),
        (json!([{"key": "/zone"}]), &[no_prefix]),
    ] {
        let scheduling = json!({"schedulingConstraints": {"topology": topology}});
        assert_eq!(on_create(&json!({}), &scheduling), expected, "{topology}");
    }
}

#[test]
fn a_claim_that_is_there_twice_is_reported_before_what_is_wrong_inside_the_claims() {
    let scheduling = json!({"resourceClaims": [{"name": "a"}, {"name": "a", "resourceClaimName": "x"}]});
    assert_eq!(
        on_create(&json!({}), &scheduling),
        [
            "spec.scheduling.resourceClaims[1]: Duplicate value: {\"name\":\"a\",\"resourceClaimName\":\"x\"}",
            "spec.scheduling.resourceClaims[0]: Invalid value: \"\": must specify one of: `resourceClaimName`, \
             `resourceClaimTemplateName`",
        ]
    );
}

// The rules that are added to the KEP's.

#[test]
fn the_priority_class_and_the_scheduler_of_the_pods_are_frozen() {
    let priority = |value: &str| {
        format!(
            "spec.template.spec.priorityClassName: Invalid value: \"{value}\": field is immutable while \
             spec.scheduling is set: the scheduler refuses a group whose pods differ in priority from each other or \
             from their PodGroup"
        )
    };
    let scheduler = |value: &str| {
        format!(
            "spec.template.spec.schedulerName: Invalid value: \"{value}\": field is immutable while spec.scheduling \
             is set: the scheduler refuses a group whose pods differ in schedulerName"
        )
    };
    for (old, new, expected) in [
        (json!({}), json!({"priorityClassName": "high"}), vec![priority("high")]),
        (json!({"priorityClassName": "high"}), json!({"priorityClassName": "low"}), vec![priority("low")]),
        (json!({"priorityClassName": "high"}), json!({}), vec![priority("")]),
        (json!({"priorityClassName": ""}), json!({}), vec![]),
        (json!({"priorityClassName": "high"}), json!({"priorityClassName": "high"}), vec![]),
        (json!({}), json!({"schedulerName": "mine"}), vec![scheduler("mine")]),
        (json!({"schedulerName": "mine"}), json!({"schedulerName": "default-scheduler"}), vec![scheduler("")]),
        (json!({"schedulerName": "mine"}), json!({"schedulerName": "mine"}), vec![]),
        (
            json!({}),
            json!({"priorityClassName": "high", "schedulerName": "mine"}),
            vec![priority("high"), scheduler("mine")],
        ),
    ] {
        assert_eq!(on_update(&with_pods(&old), &with_pods(&new)), expected, "{old} -> {new}");
    }
}

#[test]
fn the_name_of_the_default_scheduler_equals_none() {
    let names = [json!({}), json!({"schedulerName": ""}), json!({"schedulerName": "default-scheduler"})];
    for old in &names {
        for new in &names {
            assert_eq!(on_update(&with_pods(old), &with_pods(new)), [""; 0], "{old} -> {new}");
        }
    }
}

#[test]
fn reject_a_scheduling_group_set_by_hand() {
    let expected = "spec.template.spec.schedulingGroup: Forbidden: may not be set together with spec.scheduling: each \
                    pod gets the group that is made for the StatefulSet";
    for group in [json!({"podGroupName": "mine"}), json!({}), json!("mine")] {
        let spec = json!({"template": {"spec": {"schedulingGroup": group}}});
        assert_eq!(on_create(&spec, &json!({})), [expected], "{group}");
        let set = with_pods(&json!({"schedulingGroup": group}));
        assert_eq!(on_update(&with_pods(&json!({})), &set), [expected], "{group}");
        let other = with_pods(&json!({"schedulingGroup": {"podGroupName": "other"}}));
        assert_eq!(on_update(&other, &set), [expected], "{group}");
        assert_eq!(on_update(&set, &with_pods(&json!({}))), [""; 0], "{group}");
    }
}

#[test]
fn what_did_not_change_is_not_judged_again() {
    let old = statefulset(&json!({"updateStrategy": {"rollingUpdate": {"partition": 2}},
        "template": {"spec": {"schedulingGroup": {"podGroupName": "mine"}, "priorityClassName": "high"}}}));
    let new = StatefulSet { replicas: Some(9), ..old.clone() };
    assert_eq!(on_update(&old, &new), [""; 0]);
    for scheduling in [
        json!({"schedulingPolicy": {}}),
        json!({"schedulingPolicy": {"gang": {"minCount": 0}}}),
        json!({"disruptionMode": {"all": {}}, "resourceClaims": claims(9)}),
    ] {
        assert_eq!(on_change(&scheduling, &scheduling, OPEN), [""; 0], "{scheduling}");
        assert_eq!(on_change(&scheduling, &scheduling, CLOSED), [""; 0], "{scheduling}");
        let report = validate_update(&old, &new, &configuration(&scheduling), &path());
        assert!(report.is_valid(), "{scheduling}");
    }
}

#[test]
fn what_means_the_same_to_an_api_server_is_no_change() {
    for (old, new) in [
        (json!(null), json!(null)),
        (json!({}), json!({"resourceClaims": []})),
        (json!({"schedulingConstraints": {}}), json!({"schedulingConstraints": {"topology": []}})),
    ] {
        assert_eq!(on_change(&old, &new, OPEN), [""; 0], "{old} -> {new}");
        assert_eq!(on_change(&new, &old, OPEN), [""; 0], "{new} -> {old}");
    }
    for (old, new) in [
        (json!({}), json!({"schedulingConstraints": {}})),
        (json!({}), json!({"schedulingPolicy": {}})),
        (json!({}), json!({"disruptionMode": {}})),
    ] {
        assert_eq!(on_change(&old, &new, OPEN), [IMMUTABLE], "{old} -> {new}");
    }
}

#[test]
fn errors_come_in_the_order_statefulset_builder_declarative() {
    let spec = json!({"updateStrategy": {"rollingUpdate": {"partition": 1}},
        "template": {"spec": {"schedulingGroup": {"podGroupName": "mine"}}}});
    // Both policies are set: it is a gang to the StatefulSet's rules, and Basic to the builder.
    let scheduling = json!({
        "resourceClaims": [{"name": "a"}],
        "disruptionMode": {"all": {}},
        "schedulingConstraints": {"topology": [{"key": ""}]},
        "schedulingPolicy": {"basic": {}, "gang": {"minCount": 0}},
    });
    let report = validate_create(&statefulset(&spec), &configuration(&scheduling), &path());
    assert_eq!((report.statefulset.iter().count(), report.builder.iter().count()), (4, 1));
    assert_eq!(
        messages(&report.into_errors()),
        [
            "spec.scheduling.schedulingPolicy.gang: Forbidden: gang scheduling requires podManagementPolicy: Parallel; \
             OrderedReady creates pods sequentially, which can never satisfy a gang",
            "spec.scheduling.schedulingPolicy.gang.minCount: Forbidden: may not be set: the size of the gang is \
             derived from spec.replicas",
            "spec.updateStrategy.rollingUpdate.partition: Forbidden: partitioned rollouts are not supported for \
             StatefulSets with spec.scheduling set",
            "spec.template.spec.schedulingGroup: Forbidden: may not be set together with spec.scheduling: each pod \
             gets the group that is made for the StatefulSet",
            ALL_WITH_BASIC,
            "spec.scheduling.schedulingPolicy: Invalid value: \"{basic, gang}\": must specify exactly one of: `basic`, \
             `gang`",
            "spec.scheduling.schedulingPolicy.gang.minCount: Invalid value: 0: must be greater than or equal to 1",
            "spec.scheduling.schedulingConstraints.topology[0].key: Required value",
            "spec.scheduling.resourceClaims[0]: Invalid value: \"\": must specify one of: `resourceClaimName`, \
             `resourceClaimTemplateName`",
        ]
    );
}

#[test]
fn a_configuration_alone_is_judged_by_the_rules_that_need_no_statefulset() {
    let scheduling = configuration(&json!({"schedulingPolicy": {"gang": {"minCount": 3}}}));
    assert!(validate_configuration(&scheduling, &path()).is_valid());
    let scheduling = configuration(&json!({"disruptionMode": {"all": {}}, "resourceClaims": claims(5)}));
    assert_eq!(
        messages(&validate_configuration(&scheduling, &path()).into_errors()),
        [ALL_WITH_BASIC, "spec.scheduling.resourceClaims: Too many: 5: must have at most 4 items"]
    );
}

#[test]
fn errors_and_warnings_are_told_where_the_configuration_is_written() {
    let path = Carrier::Annotation.path();
    let scheduling = configuration(&json!({"schedulingPolicy": {"gang": {}}, "resourceClaims": claims(1)}));
    let report = validate_create(&statefulset(&json!({})), &scheduling, &path);
    assert_eq!(
        report.warnings,
        ["metadata.annotations[statefulset-scheduling.dev/scheduling].resourceClaims[0]: no entry of \
          spec.template.spec.resourceClaims has the same name and source, so no pod uses this shared claim"]
    );
    assert_eq!(
        messages(&report.into_errors()),
        ["metadata.annotations[statefulset-scheduling.dev/scheduling].schedulingPolicy.gang: Forbidden: gang \
          scheduling requires podManagementPolicy: Parallel; OrderedReady creates pods sequentially, which can never \
          satisfy a gang"]
    );
    let set = with_pods(&json!({"priorityClassName": "high"}));
    assert_eq!(
        messages(&validate_update(&with_pods(&json!({})), &set, &scheduling, &path).into_errors()),
        ["spec.template.spec.priorityClassName: Invalid value: \"high\": field is immutable while \
          metadata.annotations[statefulset-scheduling.dev/scheduling] is set: the scheduler refuses a group whose pods \
          differ in priority from each other or from their PodGroup"]
    );
}

#[test]
fn warn_about_a_shared_claim_that_no_claim_of_the_pods_matches_by_name_and_source() {
    let unmatched = |index: usize| {
        format!(
            "spec.scheduling.resourceClaims[{index}]: no entry of spec.template.spec.resourceClaims has the same name \
             and source, so no pod uses this shared claim"
        )
    };
    let scheduling = json!({"resourceClaims": [
        {"name": "a", "resourceClaimName": "pool"},
        {"name": "b", "resourceClaimTemplateName": "made"},
    ]});
    let a = json!({"name": "a", "resourceClaimName": "pool"});
    let b = json!({"name": "b", "resourceClaimTemplateName": "made"});
    for (in_template, expected) in [
        (json!(null), vec![unmatched(0), unmatched(1)]),
        (json!([]), vec![unmatched(0), unmatched(1)]),
        (json!([a, b]), vec![]),
        (json!([b, {"name": "c", "resourceClaimName": "more"}, a]), vec![]),
        (json!([a]), vec![unmatched(1)]),
        (json!([{"name": "other", "resourceClaimName": "pool"}, b]), vec![unmatched(0)]),
        (json!([{"name": "a", "resourceClaimName": "other"}, b]), vec![unmatched(0)]),
        (json!([{"name": "a", "resourceClaimTemplateName": "pool"}, b]), vec![unmatched(0)]),
        (json!([{"name": "a"}, b]), vec![unmatched(0)]),
        (json!([a, {"name": "b", "resourceClaimName": "made"}]), vec![unmatched(1)]),
        (json!([a, {"name": "b", "resourceClaimTemplateName": "other"}]), vec![unmatched(1)]),
    ] {
        let set = with_pods(&json!({"resourceClaims": in_template}));
        let created = validate_create(&set, &configuration(&scheduling), &path());
        assert!(created.is_valid(), "a warning refuses nothing: {in_template}");
        assert_eq!(created.warnings, expected, "{in_template}");
        let updated = validate_update(&with_pods(&json!({})), &set, &configuration(&scheduling), &path());
        assert!(updated.is_valid(), "a warning refuses nothing: {in_template}");
        assert_eq!(updated.warnings, expected, "{in_template}");
    }
}

#[test]
fn a_closed_gate_forbids_a_new_value_and_keeps_a_stored_one() {
    let forbidden = "spec.scheduling: Forbidden";
    for (is_set, gates, expected) in
        [(true, CLOSED, &[forbidden][..]), (false, CLOSED, &[]), (true, OPEN, &[]), (false, OPEN, &[])]
    {
        assert_eq!(messages(&closed_gate(gates, is_set, &path())), expected, "{is_set} {gates}");
    }
    let gang = json!({"schedulingPolicy": {"gang": {}}});
    for (old, new, expected) in [
        (json!(null), json!(null), &[][..]),
        (gang.clone(), gang.clone(), &[]),
        (json!({}), json!({"resourceClaims": []}), &[]),
        (json!(null), gang.clone(), &[forbidden, IMMUTABLE]),
        (gang.clone(), json!({}), &[forbidden, IMMUTABLE]),
        (gang.clone(), json!(null), &[IMMUTABLE]),
    ] {
        assert_eq!(on_change(&old, &new, CLOSED), expected, "{old} -> {new}");
    }
}
