//! The module and the native core give the same bytes for the same bytes.

#[allow(dead_code, reason = "each test uses a part of it")]
mod common;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{POLICY, manifests, statefulsets};
use proptest::prelude::*;
use serde_json::{Value, json};
use statefulset_scheduling_policy::kubewarden;

/// StatefulSets that people could have written: what is mutated.
static CORPUS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    ["kep/field", "kep/annotation", "real-world", "real-world/with-intent", "refusals"]
        .iter()
        .flat_map(|folder| manifests(folder))
        .filter(|path| !path.to_string_lossy().ends_with(".expected.yaml"))
        .flat_map(|path| statefulsets(&path))
        .map(|object| object.value)
        .collect()
});

const SETTINGS: [&str; 6] = [
    "{}",
    r#"{"featureGates": "WorkloadWithStatefulSet=false"}"#,
    r#"{"featureGates": "DRAWorkloadResourceClaims=false"}"#,
    r#"{"carriers": ["field"], "controllers": ["kubernetes-admin"]}"#,
    r#"{"carriers": ["annotation"]}"#,
    r#"{"unknown": 1}"#,
];

/// Members to which something is likely to happen.
const POINTERS: [&str; 26] = [
    "",
    "/apiVersion",
    "/metadata",
    "/metadata/annotations",
    "/metadata/annotations/statefulset-scheduling.dev~1scheduling",
    "/metadata/annotations/statefulset-scheduling.dev~1pod-group",
    "/spec",
    "/spec/replicas",
    "/spec/podManagementPolicy",
    "/spec/updateStrategy",
    "/spec/updateStrategy/rollingUpdate/partition",
    "/spec/scheduling",
    "/spec/scheduling/schedulingPolicy",
    "/spec/scheduling/schedulingPolicy/gang",
    "/spec/scheduling/schedulingPolicy/gang/minCount",
    "/spec/scheduling/schedulingConstraints/topology",
    "/spec/scheduling/schedulingConstraints/topology/0/key",
    "/spec/scheduling/disruptionMode",
    "/spec/scheduling/resourceClaims",
    "/spec/scheduling/resourceClaims/0/name",
    "/spec/template",
    "/spec/template/metadata",
    "/spec/template/metadata/labels",
    "/spec/template/spec/priorityClassName",
    "/spec/template/spec/schedulerName",
    "/spec/template/spec/resourceClaims",
];

/// A change of an object: a member of it becomes something else.
type Change = (usize, Value);

fn value() -> impl Strategy<Value = Value> {
    let scheduling = prop_oneof![
        Just(json!({"schedulingPolicy": {"gang": {}}})),
        Just(json!({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 0}}})),
        Just(json!({"disruptionMode": {"all": {}}, "resourceClaims": [{"name": "a"}, {"name": "a"}]})),
        Just(json!({"schedulingConstraints": {"topology": [{"key": "a/b/c"}]}})),
    ];
    let text = prop_oneof![
        ".{0,40}",
        "[a-zA-Z0-9./_-]{0,70}",
        "(schedulingPolicy|disruptionMode|x): ?[{]?(gang|all|basic|single)?:? ?[{]?[}]?[}]?",
        "[\\[\\]{}:,&*!|>'\"%@`# \n\t-]{0,30}",
        Just(r#"{"name":"g","uid":"u","replicas":3}"#.to_owned()),
        Just("true".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i32..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
        scheduling,
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,9}", inner, 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((0..POINTERS.len(), value()), 0..4)
}

fn apply(mut object: Value, changes: &[Change]) -> Value {
    for (pointer, value) in changes {
        let pointer = POINTERS[*pointer];
        let Some((parent, name)) = pointer.rsplit_once('/') else {
            object = value.clone();
            continue;
        };
        if let Some(Value::Object(members)) = object.pointer_mut(parent) {
            members.insert(name.replace("~1", "/"), value.clone());
        }
    }
    object
}

/// A change of the bytes that are sent: at a place, some bytes are replaced by one, or the rest is cut.
#[derive(Clone, Debug)]
enum Edit {
    Replace(prop::sample::Index, u8),
    Remove(prop::sample::Index),
    Cut(prop::sample::Index),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        any::<prop::sample::Index>().prop_map(Edit::Remove),
        any::<prop::sample::Index>().prop_map(Edit::Cut),
    ];
    prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(edit, 1..4)]
}

fn edit(mut bytes: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for edit in edits {
        if bytes.is_empty() {
            break;
        }
        match edit {
            Edit::Replace(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Edit::Remove(at) => {
                bytes.remove(at.index(bytes.len()));
            }
            Edit::Cut(at) => bytes.truncate(at.index(bytes.len())),
        }
    }
    bytes
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    let base = (any::<prop::sample::Index>(), changes(), changes(), any::<prop::sample::Index>());
    let operation = prop_oneof![4 => Just("CREATE"), 4 => Just("UPDATE"), 1 => Just("DELETE"), 1 => Just("x")];
    let username = prop_oneof![Just("kubernetes-admin"), Just("system:kube-scheduler")];
    let generated = (base, operation, username, 0..SETTINGS.len(), edits()).prop_map(
        |((index, new, old, other), operation, username, settings, edits)| {
            let base = &CORPUS[index.index(CORPUS.len())];
            // An update is mostly one of the same object.
            let before = if old.len() > 2 { &CORPUS[other.index(CORPUS.len())] } else { base };
            let request = json!({
                "uid": "1",
                "kind": {"group": "apps", "version": "v1", "kind": "StatefulSet"},
                "operation": operation,
                "userInfo": {"username": username},
                "object": apply(base.clone(), &new),
                "oldObject": apply(before.clone(), &old),
            });
            let text = format!(r#"{{"request":{request},"settings":{}}}"#, SETTINGS[settings]);
            edit(text.into_bytes(), &edits)
        },
    );
    prop_oneof![12 => generated, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

const CASES: u32 = 4_000;

static COMPARED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn the_module_answers_as_the_native_core_does_byte_for_byte() {
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(payload in payload())| {
        let native = kubewarden::validate(&payload).map_err(|error| error.to_string());
        let module = POLICY.call("validate", &payload).map_err(|error| error.to_string());
        prop_assert_eq!(&module, &native, "{}", String::from_utf8_lossy(&payload));
        // The other operations get the same bytes: whatever they are, the answers must be the same.
        let settings = kubewarden::validate_settings(&payload).map_err(|error| error.to_string());
        prop_assert_eq!(POLICY.call("validate_settings", &payload).map_err(|error| error.to_string()), settings);
        let query = [&b"{\"review\":"[..], &payload, b"}"].concat();
        let native = kubewarden::query(&query).map_err(|error| error.to_string());
        let module = POLICY.call("query", &query).map_err(|error| error.to_string());
        match (native, module) {
            (Ok(native), Ok(module)) => prop_assert_eq!(module, native),
            // The host puts its own words around a guest's error.
            (Err(native), Err(module)) => prop_assert!(module.contains(&native), "{module} / {native}"),
            (native, module) => prop_assert!(false, "native {native:?}, module {module:?}"),
        }
        COMPARED.fetch_add(3, Ordering::Relaxed);
    });
    println!("{} answers compared", COMPARED.load(Ordering::Relaxed));
}

#[test]
fn reviewing_what_came_out_of_a_review_changes_nothing() {
    let config = ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(index in any::<prop::sample::Index>(), changes in changes(), settings in 0..SETTINGS.len())| {
        let object = apply(CORPUS[index.index(CORPUS.len())].clone(), &changes);
        let create = |object: &Value| {
            let request = json!({
                "kind": {"group": "apps", "version": "v1", "kind": "StatefulSet"},
                "operation": "CREATE",
                "object": object,
            });
            let text = format!(r#"{{"request":{request},"settings":{}}}"#, SETTINGS[settings]);
            let answer = kubewarden::validate(text.as_bytes()).expect("there is an answer");
            serde_json::from_slice::<Value>(&answer).expect("the answer is JSON")
        };
        let first = create(&object);
        if let Some(mutated) = first.get("mutated_object").filter(|object| !object.is_null()) {
            let second = create(mutated);
            prop_assert_eq!(&second["accepted"], &json!(true));
            prop_assert_eq!(&second["mutated_object"], &Value::Null);
        }
    });
}
