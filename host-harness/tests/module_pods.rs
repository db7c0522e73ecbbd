//! Pods, reviewed by the module with a cluster behind it: the host call is the engine's, its errors are
//! told apart, and the answers are the native core's.

#[allow(dead_code, reason = "each test uses a part of it")]
mod common;

use std::sync::{Arc, Mutex};

use common::POLICY;
use host_harness::module::HostCall;
use proptest::prelude::*;
use serde_json::{Value, json};
use statefulset_scheduling_core::admission::{Lookup, LookupError};
use statefulset_scheduling_policy::kubewarden;

const STATEFULSET_CONTROLLER: &str = "system:serviceaccount:kube-system:statefulset-controller";

fn set(binding: Option<&str>) -> Value {
    let mut set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "ns", "uid": "s-1",
            "annotations": {"statefulset-scheduling.dev/scheduling": "schedulingPolicy: {gang: {}}"}},
        "spec": {"replicas": 3}});
    if let Some(binding) = binding {
        set["metadata"]["annotations"]["statefulset-scheduling.dev/pod-group"] = binding.into();
    }
    set
}

fn pod(ordinal: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("web-{ordinal}"), "labels": {"statefulset-scheduling.dev/managed": "true"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s-1",
                "controller": true}]},
        "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}], "unknown": [1, 2.5]}})
}

fn payload(operation: &str, pod: &Value) -> Vec<u8> {
    let object = if operation == "DELETE" { "oldObject" } else { "object" };
    let mut request = json!({"uid": "1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "ns",
        "operation": operation, "userInfo": {"username": STATEFULSET_CONTROLLER}});
    request[object] = pod.clone();
    json!({"request": request, "settings": {}}).to_string().into_bytes()
}

/// What the module answers while the cluster answers its look-up so, and what it asked.
fn validate(payload: &[u8], answer: Result<Value, String>) -> (Value, Vec<Value>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let host = move |call: &HostCall<'_>| {
        assert_eq!((call.binding, call.namespace, call.operation), ("kubewarden", "kubernetes", "get_resource"));
        seen.lock().expect("no test panics with it").push(serde_json::from_slice(call.payload).expect("JSON"));
        answer.clone().map(|object| object.to_string().into_bytes())
    };
    let bytes = POLICY.call_with("validate", payload, Arc::new(host)).expect("the module answers");
    let asked = asked.lock().expect("no test panics with it").clone();
    (serde_json::from_slice(&bytes).expect("JSON"), asked)
}

#[test]
fn a_pod_is_stamped_for_one_uncached_read_of_what_is_needed() {
    let binding = r#"{"name":"web-g","uid":"g-1","replicas":3}"#;
    let (answer, asked) = validate(&payload("CREATE", &pod(1)), Ok(set(Some(binding))));
    assert_eq!(answer["accepted"], true);
    let mut expected = pod(1);
    expected["spec"]["schedulingGroup"] = json!({"podGroupName": "web-g"});
    assert_eq!(answer["mutated_object"], expected);
    let request = json!({"api_version": "apps/v1", "kind": "StatefulSet", "name": "web", "namespace": "ns",
        "disable_cache": true, "field_masks": ["spec.replicas", "spec.ordinals", "spec.scheduling"]});
    assert_eq!(asked, [request]);
}

#[test]
fn the_engines_errors_hold_a_create_with_their_meaning_and_let_a_delete_pass() {
    for (error, meaning) in [
        (
            r#"Cannot find apps/v1/StatefulSet named 'web' inside of namespace 'Some("ns")'"#,
            "cannot be read: not found",
        ),
        ("Policy has not been granted access to Kubernetes apps/v1/StatefulSet resources", "cannot be read: forbidden"),
        ("request timed out", "cannot be read: timed out"),
        ("error finding resource apps/v1/StatefulSet: ApiError: x", "cannot be read: Host error"),
    ] {
        let (answer, _) = validate(&payload("CREATE", &pod(0)), Err(error.to_owned()));
        let message = answer["message"].as_str().expect("a message");
        assert_eq!(answer["accepted"], false);
        assert!(message.contains(meaning), "{error}: {message}");
        let (answer, _) = validate(&payload("DELETE", &pod(9)), Err(error.to_owned()));
        assert_eq!(answer["accepted"], true);
    }
}

#[test]
fn a_pod_without_the_label_makes_no_host_call() {
    let mut plain = pod(0);
    plain["metadata"]["labels"] = json!({"app": "web"});
    let (answer, asked) = validate(&payload("CREATE", &plain), Err("never asked".to_owned()));
    assert_eq!((&answer["accepted"], &answer["mutated_object"]), (&json!(true), &Value::Null));
    assert_eq!(asked, [] as [Value; 0]);
}

struct Native(Result<Value, LookupError>);

impl Lookup for Native {
    fn statefulset(&self, _: &str, _: &str) -> Result<String, LookupError> {
        self.0.clone().map(|object| object.to_string())
    }
}

#[test]
fn the_module_answers_for_pods_as_the_native_core_does_byte_for_byte() {
    let binding = prop_oneof![
        Just(None),
        Just(Some(r#"{"name":"g","uid":"u","replicas":3}"#.to_owned())),
        Just(Some(r#"{"name":"g","uid":"u"}"#.to_owned())),
        Just(Some(r#"{"fallback":"x"}"#.to_owned())),
        ".{0,30}".prop_map(Some),
    ];
    let operation = prop_oneof![Just("CREATE"), Just("DELETE"), Just("UPDATE")];
    let config = ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(binding in binding, operation in operation, ordinal in 0_u32..6, replicas in -1..6_i32,
            start in 0..3_i32, group in prop::option::of("[a-g]{0,2}"), missing in prop::bool::weighted(0.1))| {
        let mut set = set(binding.as_deref());
        set["spec"] = json!({"replicas": replicas, "ordinals": {"start": start}});
        let mut pod = pod(ordinal);
        if let Some(group) = group {
            pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
        }
        let payload = payload(operation, &pod);
        let native = if missing { Native(Err(LookupError::NotFound)) } else { Native(Ok(set.clone())) };
        let native: Value =
            serde_json::from_slice(&kubewarden::validate_with(&payload, &native).expect("an answer")).expect("JSON");
        let answer = if missing { Err("Cannot find it".to_owned()) } else { Ok(set) };
        prop_assert_eq!(validate(&payload, answer).0, native);
    });
}
