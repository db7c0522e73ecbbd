//! What a cluster administrator applies says what the module does.

#[allow(dead_code, reason = "each test uses a part of it")]
mod common;

use std::collections::BTreeSet;

use common::{POLICY, root};
use serde_json::{Value, json};

fn yaml(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn policies() -> Vec<Value> {
    yaml("deploy/kubewarden/policies.yaml")
}

/// Operations by resource.
fn rules(rules: &Value) -> BTreeSet<(String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let rules = rules.as_array().into_iter().flatten();
    rules
        .flat_map(|rule| {
            assert_eq!(rule["apiVersions"], json!(["v1"]));
            let operations = texts(&rule["operations"]);
            texts(&rule["resources"]).into_iter().flat_map(move |resource| {
                operations.clone().into_iter().map(move |operation| (resource.clone(), operation))
            })
        })
        .collect()
}

#[test]
fn the_policies_together_ask_for_what_the_metadata_declares() {
    let metadata = &yaml("policy/metadata.yml")[0];
    let deployed: BTreeSet<_> = policies().iter().flat_map(|policy| rules(&policy["spec"]["rules"])).collect();
    assert_eq!(deployed, rules(&metadata["rules"]));
    assert_eq!(metadata["mutating"], true);
    assert_eq!(metadata["contextAwareResources"], json!([{"apiVersion": "apps/v1", "kind": "StatefulSet"}]));
    let version = &metadata["annotations"]["io.kubewarden.policy.version"];
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
}

#[test]
fn each_policy_fails_as_its_part_demands_and_its_settings_are_valid() {
    let mut names = BTreeSet::new();
    for policy in policies() {
        let spec = &policy["spec"];
        let name = policy["metadata"]["name"].as_str().expect("a name").to_owned();
        let asked = rules(&spec["rules"]);
        let deletes = asked.contains(&("pods".to_owned(), "DELETE".to_owned()));
        let pods = asked.iter().any(|(resource, _)| resource == "pods");
        assert_eq!(spec["failurePolicy"], if deletes { "Ignore" } else { "Fail" }, "{name}");
        assert!((1..=5).contains(&spec["timeoutSeconds"].as_u64().expect("a timeout")), "{name}");
        // A mutation of what is deleted, or by a policy that may not, is a denial.
        assert!(!deletes || spec["mutating"] == false, "{name}");
        let label = json!({"matchLabels": {"statefulset-scheduling.dev/managed": "true"}});
        assert_eq!(spec["objectSelector"], if pods { label } else { Value::Null }, "{name}");
        assert_eq!(spec["contextAwareResources"].is_array(), pods, "{name}: only pods ask the cluster");
        assert_eq!(spec["mode"], "protect", "{name}");
        let settings = POLICY.call("validate_settings", spec["settings"].to_string().as_bytes()).expect("an answer");
        assert_eq!(serde_json::from_slice::<Value>(&settings).expect("JSON")["valid"], true, "{name}");
        let module = spec["module"].as_str().expect("a module");
        assert!(module.ends_with(&format!(":v{}", env!("CARGO_PKG_VERSION"))), "{name}: {module}");
        names.insert(name);
    }
    assert_eq!(names.len(), 4);
    let readme = std::fs::read_to_string(root().join("deploy/kubewarden/README.md")).expect("the page is there");
    for name in names {
        assert!(readme.contains(&format!("`{name}`")), "the page tells what an outage of {name} does");
    }
}
