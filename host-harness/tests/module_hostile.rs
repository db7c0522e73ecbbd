//! Whatever is sent to the module, it answers; it never traps, and stays within its memory.

#[allow(dead_code, reason = "each test uses a part of it")]
mod common;

use common::{POLICY, validate};
use host_harness::module::MAX_MEMORY;
use serde_json::{Value, json};

const ANNOTATION: &str = "statefulset-scheduling.dev/scheduling";

/// The payload of a creation whose object is the JSON text `object`.
fn create(object: &str) -> Vec<u8> {
    let kind = r#"{"group":"apps","version":"v1","kind":"StatefulSet"}"#;
    format!(r#"{{"request":{{"uid":"1","kind":{kind},"operation":"CREATE","object":{object}}},"settings":{{}}}}"#)
        .into_bytes()
}

fn update(old: &str, new: &str) -> Vec<u8> {
    let kind = r#"{"group":"apps","version":"v1","kind":"StatefulSet"}"#;
    format!(r#"{{"request":{{"kind":{kind},"operation":"UPDATE","object":{new},"oldObject":{old}}}}}"#).into_bytes()
}

fn annotated(text: &str) -> Vec<u8> {
    create(&json!({"metadata": {"annotations": {ANNOTATION: text}}, "spec": {"template": {}}}).to_string())
}

fn with_scheduling(scheduling: &str) -> Vec<u8> {
    create(&format!(r#"{{"metadata":{{}},"spec":{{"scheduling":{scheduling},"template":{{}}}}}}"#))
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

/// What the module must answer.
enum Answer {
    /// The request is allowed.
    Allowed,
    /// The request is denied with a message that has this in it.
    Denied(&'static str),
}

use Answer::{Allowed, Denied};

fn requests() -> Vec<(&'static str, Vec<u8>, Answer)> {
    let deep = nested("[", "]", 200_000);
    let deep_object = nested(r#"{"a":"#, "}", 100_000);
    let bomb = format!(
        "a: &a [x]\n{}",
        ('b'..='i').fold(String::new(), |text, c| {
            let previous = char::from(u8::try_from(c).expect("a letter") - 1);
            format!("{text}{c}: &{c} [*{previous},*{previous},*{previous},*{previous}]\n")
        })
    );
    let opted_in = r#"{"metadata":{"annotations":{"statefulset-scheduling.dev/scheduling":"{}"}}"#;
    let is_no_statefulset = "request.object is no StatefulSet";
    let cannot_be_read = "the request cannot be read";
    vec![
        ("nothing", Vec::new(), Denied(cannot_be_read)),
        ("a lone brace", b"{".to_vec(), Denied(cannot_be_read)),
        ("null", b"null".to_vec(), Denied(cannot_be_read)),
        ("a list", b"[]".to_vec(), Denied(cannot_be_read)),
        ("a text", b"\"request\"".to_vec(), Denied(cannot_be_read)),
        ("no request", b"{}".to_vec(), Denied(cannot_be_read)),
        ("a null request", br#"{"request":null}"#.to_vec(), Denied(cannot_be_read)),
        ("a request that is a list", br#"{"request":[]}"#.to_vec(), Denied(cannot_be_read)),
        ("an empty request", br#"{"request":{}}"#.to_vec(), Allowed),
        ("a kind that is a number", br#"{"request":{"kind":3}}"#.to_vec(), Denied(cannot_be_read)),
        ("a kind of numbers", br#"{"request":{"kind":{"group":1,"kind":2}}}"#.to_vec(), Denied("must be a string")),
        ("a user name that is a list", br#"{"request":{"userInfo":{"username":[]}}}"#.to_vec(), Denied("must be a string")),
        ("something after the end", [create("{}"), b"x".to_vec()].concat(), Denied(cannot_be_read)),
        ("a truncated request", create(&format!("{opted_in}}}"))[..150].to_vec(), Denied(cannot_be_read)),
        ("no UTF-8", b"{\"request\":{\"uid\":\"\xff\xfe\"}}".to_vec(), Denied("not UTF-8")),
        ("half of a surrogate pair", create(r#"{"metadata":{"name":"\ud800"}}"#), Allowed),
        ("half of a surrogate pair, opted in", create(r#"{"metadata":{"name":"\ud800"},"spec":{"scheduling":{}}}"#), Denied("metadata.name")),
        ("NUL in names", create(r#"{"metadata":{"name":"a\u0000b"}}"#), Allowed),
        ("no object", br#"{"request":{"kind":{"group":"apps","kind":"StatefulSet"},"operation":"CREATE"}}"#.to_vec(), Denied(is_no_statefulset)),
        ("a null object", create("null"), Denied(is_no_statefulset)),
        ("an object that is a number", create("3"), Denied(is_no_statefulset)),
        ("an object that is a text", create("\"x\""), Denied(is_no_statefulset)),
        ("an object that is a list", create("[{}]"), Denied(is_no_statefulset)),
        ("null everywhere", create(r#"{"metadata":null,"spec":null,"status":null}"#), Allowed),
        ("null in the spec", create(r#"{"spec":{"replicas":null,"scheduling":null,"template":null}}"#), Allowed),
        ("a spec that is a text", create(r#"{"spec":"x"}"#), Denied(is_no_statefulset)),
        ("annotations that are a list", create(r#"{"metadata":{"annotations":[]}}"#), Denied(is_no_statefulset)),
        ("lists nested 200,000 deep", create(&format!(r#"{{"spec":{{"x":{deep}}}}}"#)), Allowed),
        ("objects nested 100,000 deep", create(&format!(r#"{{"status":{deep_object}}}"#)), Allowed),
        ("deep and opted in", create(&format!(r#"{opted_in},"spec":{{"template":{{}},"x":{deep}}}}}"#)), Denied("cannot be changed")),
        ("a deep intent", with_scheduling(&deep), Denied("recursion limit")),
        ("a deep annotation", annotated(&nested("[", "]", 2_000)), Denied(ANNOTATION)),
        ("a deep flow mapping", annotated(&nested("{a: ", "}", 2_000)), Denied(ANNOTATION)),
        ("a deep block sequence", annotated(&format!("{}1", "- ".repeat(4_000))), Denied(ANNOTATION)),
        ("an annotation of 3 MB", annotated(&"x".repeat(3 << 20)), Denied("Too long: may not be more than 16384 bytes")),
        ("a YAML bomb", annotated(&bomb), Denied("anchors and aliases")),
        ("an alias of itself", annotated("a: &a [*a]"), Denied("anchors and aliases")),
        ("a merge key", annotated("<<: {schedulingPolicy: {gang: {}}}"), Denied("unknown field")),
        ("a tag", annotated("!!python/object:os.system x"), Denied("tags")),
        ("a directive of an unknown version", annotated("%YAML 9.9\n---\n{}"), Allowed),
        ("only tabs", annotated("\t\t\t"), Denied(ANNOTATION)),
        ("control characters", annotated("a: \u{1}\u{7f}\u{85}\u{feff}"), Denied(ANNOTATION)),
        ("many documents", annotated(&"---\n{}\n".repeat(2_000)), Denied("second YAML document")),
        ("many keys", annotated(&(0..1_500).fold(String::new(), |text, i| format!("{text}k{i}: 1\n"))), Denied("unknown field")),
        ("an annotation that is a number", create(&format!(r#"{{"metadata":{{"annotations":{{"{ANNOTATION}":1e999}}}}}}"#)), Denied(ANNOTATION)),
        ("a huge number", create(&format!(r#"{opted_in},"spec":{{"replicas":{}}}}}"#, "9".repeat(100_000))), Denied("spec.replicas")),
        ("replicas beyond 32 bits", create(&format!(r#"{opted_in},"spec":{{"replicas":4294967296}}}}"#)), Denied("spec.replicas")),
        ("negative replicas", create(&format!(r#"{opted_in},"spec":{{"replicas":-1}}}}"#)), Allowed),
        ("replicas as a text", create(&format!(r#"{opted_in},"spec":{{"replicas":"3"}}}}"#)), Denied("spec.replicas")),
        ("replicas with a fraction", create(&format!(r#"{opted_in},"spec":{{"replicas":3.7}}}}"#)), Denied("spec.replicas")),
        ("a partition that is a list", create(&format!(r#"{opted_in},"spec":{{"updateStrategy":{{"rollingUpdate":{{"partition":[]}}}}}}}}"#)), Denied("partition")),
        ("duplicate keys", create(r#"{"spec":{"scheduling":{}},"spec":{"replicas":1},"spec":null}"#), Allowed),
        ("duplicate keys in the intent", with_scheduling(r#"{"schedulingPolicy":{"gang":{}},"schedulingPolicy":null}"#), Allowed),
        ("an intent that is a text", with_scheduling("\"gang\""), Denied("must be an object")),
        ("a million topology constraints", with_scheduling(&format!(r#"{{"schedulingConstraints":{{"topology":[{}]}}}}"#, vec!["{}"; 200_000].join(","))), Denied("Too many")),
        ("a megabyte in a claim's name", with_scheduling(&format!(r#"{{"resourceClaims":[{{"name":"{}"}}]}}"#, "n".repeat(1 << 20))), Denied("resourceClaims[0]")),
        ("4 MB of containers", create(&format!(r#"{{"spec":{{"x":"{}"}}}}"#, "y".repeat(4 << 20))), Allowed),
        ("4 MB, opted in", create(&format!(r#"{opted_in},"spec":{{"template":{{}},"x":"{}"}}}}"#, "y".repeat(4 << 20))), Allowed),
        ("an update without the old object", update("null", "{}"), Denied("request.oldObject is no StatefulSet")),
        ("an update to null", update("{}", "null"), Denied(is_no_statefulset)),
        ("an unknown operation", br#"{"request":{"kind":{"group":"apps","kind":"StatefulSet"},"operation":"\u0000"}}"#.to_vec(), Allowed),
        ("settings that are a list", br#"{"request":{"operation":"CREATE","kind":{"group":"apps","kind":"StatefulSet"},"object":{"spec":{"scheduling":{}}}},"settings":[]}"#.to_vec(), Denied("settings")),
    ]
}

#[test]
fn every_hostile_request_gets_an_answer_within_the_modules_memory() {
    let requests = requests();
    assert!(requests.len() >= 40);
    for (name, payload, expected) in requests {
        // The engine's limit on memory is enforced: going over it would trap, and give no answer.
        assert!(payload.len() < MAX_MEMORY);
        let answer = validate(&payload);
        let message = answer["message"].as_str().unwrap_or_default();
        match expected {
            Allowed => assert_eq!(answer["accepted"], true, "{name}: {message}"),
            Denied(part) => {
                assert_eq!(answer["accepted"], false, "{name}");
                assert!(message.contains(part), "{name}: {message}");
                assert!(message.len() <= 9_000, "{name}: a message of {} bytes", message.len());
                assert_eq!(answer["mutated_object"], Value::Null, "{name}");
                let code = answer["code"].as_u64().unwrap_or_default();
                assert!((400..=500).contains(&code), "{name}: {code}");
            }
        }
    }
}

#[test]
fn the_modules_operations_are_those_of_the_engine_and_one_more() {
    assert_eq!(POLICY.call("protocol_version", b"").expect("an answer"), br#""v1""#);
    let settings = |json: &str| -> Value {
        serde_json::from_slice(&POLICY.call("validate_settings", json.as_bytes()).expect("an answer")).expect("JSON")
    };
    assert_eq!(settings("{}"), json!({"valid": true, "message": null}));
    assert_eq!(settings(r#"{"carriers": ["annotation"]}"#)["valid"], true);
    let invalid = settings(r#"{"carier": 1}"#);
    assert_eq!(invalid["valid"], false);
    assert!(invalid["message"].as_str().expect("a message").contains("settings.carier"), "{invalid}");
    for payload in ["", "\u{0}", "[", "{}", r#"{"review":1}"#, r#"{"review":{},"compile":{}}"#] {
        assert!(POLICY.call("query", payload.as_bytes()).is_err(), "{payload:?}");
    }
    assert!(POLICY.call("no_such_operation", b"").is_err());
}

#[test]
fn members_that_the_project_does_not_know_survive_a_mutation() {
    let object = r#"{"metadata":{"annotations":{"statefulset-scheduling.dev/scheduling":"{}"}},
        "spec":{"newField":{"a":[1,2.5,1e300,18446744073709551615,-0.0,"\u00e9"]},"template":{"metadata":{"x":null}}},
        "other":0.1}"#;
    let mut expected: Value = serde_json::from_str(object).expect("JSON");
    expected["spec"]["template"]["metadata"]["labels"] = json!({"statefulset-scheduling.dev/managed": "true"});
    assert_eq!(validate(&create(object))["mutated_object"], expected);
}
