//! The fixtures, reviewed by the module.

#[allow(dead_code, reason = "each test uses a part of it")]
mod common;

use std::path::Path;

use common::{POLICY, manifests, statefulsets};
use host_harness::manifest::Object;
use host_harness::review::{self, FieldError};
use serde::Deserialize;
use serde_json::{Value, json};

fn reviews(folder: &str) -> Vec<(String, review::Review)> {
    let mut reviews = Vec::new();
    for path in manifests(folder) {
        for object in statefulsets(&path) {
            let review = review::review(&POLICY, &path, &object, &json!({})).expect("the module answers");
            reviews.push((path.file_name().expect("a file").to_string_lossy().into_owned(), review));
        }
    }
    reviews
}

#[test]
fn the_keps_manifests_are_allowed_without_warnings_and_both_carriers_compile_to_the_same() {
    let (field, annotation) = (reviews("kep/field"), reviews("kep/annotation"));
    assert_eq!(field.len(), annotation.len());
    for ((name, field), (_, annotation)) in field.iter().zip(&annotation) {
        for review in [field, annotation] {
            assert!(review.verdict.allowed && review.opted_in, "{name}: {}", review.verdict.message);
            assert_eq!(review.verdict.warnings, [] as [&str; 0], "{name}");
        }
        assert!(field.compiled.is_some(), "{name}");
        assert_eq!(field.compiled, annotation.compiled, "{name}");
    }
}

#[test]
fn real_world_statefulsets_without_an_intent_are_untouched() {
    for (name, review) in reviews("real-world") {
        assert!(review.verdict.allowed && !review.opted_in, "{name}: {}", review.verdict.message);
        assert!(review.verdict.patch.is_empty() && review.verdict.warnings.is_empty(), "{name}");
        assert_eq!(review.compiled, None, "{name}");
    }
}

#[test]
fn real_world_statefulsets_with_an_intent_are_allowed_and_compile() {
    for (name, review) in reviews("real-world/with-intent") {
        assert!(review.verdict.allowed && review.opted_in, "{name}: {}", review.verdict.message);
        assert_eq!(review.verdict.patch.len(), 1, "{name}: only the pods' label is added");
        assert!(review.compiled.is_some(), "{name}");
    }
}

#[test]
fn my_db_compiles_to_the_objects_of_the_kep() {
    let all = reviews("kep/field");
    let (_, review) = all.iter().find(|(name, _)| name == "my-db.yaml").expect("the fixture is there");
    let compiled = review.compiled.as_ref().expect("it compiles");
    let scheduling = json!({
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/zone"}]},
        "disruptionMode": {"all": {}},
        "resourceClaims": [{"name": "shared-device", "resourceClaimTemplateName": "shared-device-template"}],
    });
    let mut template = compiled.workload["spec"]["podGroupTemplates"][0].clone();
    assert_eq!(template["name"].take(), "my-db");
    template.as_object_mut().expect("an object").remove("name");
    assert_eq!(template, scheduling);
    let mut spec = compiled.pod_group["spec"].clone();
    let reference = spec.as_object_mut().expect("an object").remove("workloadRef").expect("it is linked");
    assert_eq!(reference, json!({"workloadName": compiled.workload["metadata"]["name"], "templateName": "my-db"}));
    assert_eq!(spec, scheduling);
}

/// What a refusal is expected to be.
#[derive(Deserialize)]
struct Expected {
    errors: Vec<FieldError>,
    #[serde(default)]
    settings: Option<Value>,
}

fn one(path: &Path) -> Object {
    let mut objects = statefulsets(path);
    assert_eq!(objects.len(), 1, "{}", path.display());
    objects.remove(0)
}

#[test]
fn every_refusal_gives_the_errors_beside_it() {
    let mut seen = 0;
    for path in manifests("refusals") {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".yaml").filter(|stem| !stem.contains('.')) else { continue };
        let beside = |suffix: &str| path.with_file_name(format!("{stem}.{suffix}.yaml"));
        let text = std::fs::read_to_string(beside("expected")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected: Expected = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let old = beside("old").exists().then(|| one(&beside("old")));
        let request = one(&path).request(old.as_ref());
        let settings = expected.settings.unwrap_or_else(|| json!({}));
        let verdict = review::verdict(&POLICY, &request, &settings).expect("the module answers");
        assert!(!verdict.allowed, "{name}");
        assert!(!expected.errors.is_empty(), "{name}");
        assert_eq!(verdict.errors, expected.errors, "{name}");
        seen += 1;
    }
    assert!(seen >= 20, "only {seen} refusals");
}

#[test]
fn the_statefulset_of_the_readme_can_be_pasted() {
    let text = std::fs::read_to_string(common::root().join("README.md")).expect("the README is there");
    let (_, rest) = text.split_once("```yaml\n").expect("it has a manifest");
    let (manifest, _) = rest.split_once("```").expect("the manifest ends");
    let objects = host_harness::manifest::parse(manifest, "README.md").expect("it is one");
    let review = review::review(&POLICY, Path::new("README.md"), &objects[0], &json!({})).expect("the module answers");
    assert!(review.verdict.allowed && review.verdict.warnings.is_empty(), "{}", review.verdict.message);
    assert!(review.compiled.is_some());
}
