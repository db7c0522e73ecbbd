//! The golden vectors, measured on Kubernetes' own code, hold on the native core and through the
//! module in wasmtime.
//!
//! `GOLDEN_DIR` names the folder that is read. The last line tells how many vectors of each file
//! were compared.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use host_harness::module::Policy;
use serde_json::{Map, Value, json};
use statefulset_scheduling_core::query::{NoCluster, answer};

/// One way to ask the core.
struct Face {
    name: &'static str,
    ask: Box<Ask>,
}

type Ask = dyn Fn(&Value) -> Result<Value, String>;

fn faces() -> Vec<Face> {
    let module = std::env::var_os("POLICY_WASM").map_or_else(|| root().join("policy.wasm"), PathBuf::from);
    let policy = Policy::from_file(&module).expect("the module is built before the tests");
    vec![
        Face {
            name: "native",
            ask: Box::new(|query| {
                let bytes = answer(&query.to_string(), &NoCluster).map_err(|error| error.to_string())?;
                serde_json::from_slice(&bytes).map_err(|error| error.to_string())
            }),
        },
        Face { name: "module", ask: Box::new(move |query| policy.query(query).map_err(|error| error.to_string())) },
    ]
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace")
}

/// What is compared of one file.
struct File {
    name: &'static str,
    compare: fn(&Face, &Value) -> Vec<Result<(), String>>,
}

const FILES: [File; 4] = [
    File { name: "names", compare: names },
    File { name: "compile", compare: compile },
    File { name: "validate", compare: validate },
    File { name: "update", compare: update },
];

fn main() -> ExitCode {
    let folder = std::env::var_os("GOLDEN_DIR").map_or_else(|| root().join("fixtures/golden"), PathBuf::from);
    let faces = faces();
    let mut failures = 0;
    let mut summary = String::from("golden:");
    for file in FILES {
        let vectors = match read(&folder.join(format!("{}.json", file.name))) {
            Ok(vectors) => vectors,
            Err(error) => {
                println!("FAILED {error}");
                return ExitCode::FAILURE;
            }
        };
        let mut counts = Vec::new();
        for face in &faces {
            let results = (file.compare)(face, &vectors);
            counts.push(results.len());
            for (index, result) in results.into_iter().enumerate() {
                let Err(difference) = result else { continue };
                failures += 1;
                println!("FAILED {} vector {index} on {}: {difference}", file.name, face.name);
            }
        }
        if counts.iter().any(|&count| count == 0 || count != counts[0]) {
            println!("FAILED {}: no vector, or not the same number on each face: {counts:?}", file.name);
            failures += 1;
        }
        write!(summary, " {} {}", file.name, counts[0]).expect("writing to a string");
    }
    let names: Vec<_> = faces.iter().map(|face| face.name).collect();
    println!("{summary} vectors compared on each of {}; {failures} differ", names.join(", "));
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn list<'a>(vectors: &'a Value, name: &str) -> &'a [Value] {
    vectors[name].as_array().map_or(&[], Vec::as_slice)
}

fn equal(actual: &Value, expected: &Value) -> Result<(), String> {
    if actual == expected { Ok(()) } else { Err(format!("\n  is       {actual}\n  must be  {expected}")) }
}

fn names(face: &Face, vectors: &Value) -> Vec<Result<(), String>> {
    let workloads = list(vectors, "workloadNames").iter().map(|vector| {
        let query = json!({"workloadName": {"ownerName": vector["ownerName"], "ownerUID": vector["ownerUID"]}});
        equal(&(face.ask)(&query)?, &vector["workloadName"])
    });
    let pod_groups = list(vectors, "podGroupNames").iter().map(|vector| {
        let names = json!({"workloadName": vector["workloadName"], "templateName": vector["templateName"]});
        equal(&(face.ask)(&json!({"podGroupName": names}))?, &vector["podGroupName"])
    });
    workloads.chain(pod_groups).collect()
}

fn compile(face: &Face, vectors: &Value) -> Vec<Result<(), String>> {
    list(vectors, "cases").iter().map(|vector| compile_one(face, vector)).collect()
}

fn compile_one(face: &Face, vector: &Value) -> Result<(), String> {
    let given = &vector["statefulSet"];
    let statefulset = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": given["name"], "namespace": given["namespace"], "uid": given["uid"]},
        "spec": {
            "replicas": given["replicas"],
            "podManagementPolicy": given["podManagementPolicy"],
            "scheduling": given["scheduling"],
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"priorityClassName": given["priorityClassName"]}},
        },
    });
    let kind = json!({"group": "apps", "version": "v1", "kind": "StatefulSet"});
    let request = json!({"kind": kind, "operation": "CREATE", "object": statefulset});
    let admitted = (face.ask)(&json!({"review": {"request": request}}))?["allowed"].clone();
    equal(&admitted, &vector["admitted"])?;
    if admitted == false {
        return Ok(());
    }
    let mut compiled = (face.ask)(&json!({"compile": {"statefulSet": statefulset}}))?;
    let marks = json!({"scheduling.k8s.io/managed-by": "statefulset-controller"});
    for (object, kind) in [("workload", "Workload"), ("podGroup", "PodGroup")] {
        // The type and the mark are the controller's to add, and so is the reference to the Workload.
        let written = &mut compiled[object];
        equal(&written["apiVersion"].take(), &json!("scheduling.k8s.io/v1beta1"))?;
        equal(&written["kind"].take(), &json!(kind))?;
        equal(&written["metadata"]["annotations"].take(), &marks)?;
    }
    let workload_name = compiled["workload"]["metadata"]["name"].clone();
    let references = compiled["podGroup"]["metadata"]["ownerReferences"].as_array_mut();
    let reference = references.and_then(Vec::pop).unwrap_or_default();
    equal(
        &json!([reference["kind"], reference["name"], reference["controller"], reference["blockOwnerDeletion"]]),
        &json!(["Workload", workload_name, null, true]),
    )?;
    for object in ["workload", "podGroup"] {
        let mut expected = vector[object].clone();
        if expected["status"] == json!({}) {
            expected["status"].take();
        }
        equal(&without_nulls(&compiled[object]), &without_nulls(&expected))?;
    }
    Ok(())
}

/// In the vectors a null member means an absent one.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(present.map(|(name, value)| (name.clone(), without_nulls(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

fn validate(face: &Face, vectors: &Value) -> Vec<Result<(), String>> {
    let cases = list(vectors, "cases").iter();
    cases.map(|vector| layers(face, &json!({"scheduling": vector["scheduling"]}), vector)).collect()
}

fn update(face: &Face, vectors: &Value) -> Vec<Result<(), String>> {
    let gates = |vector: &Value| format!("WorkloadWithStatefulSet={}", vector["gate"]);
    let updates = list(vectors, "cases").iter().map(|vector| {
        let query = json!({
            "operation": "UPDATE",
            "oldScheduling": vector["oldScheduling"],
            "scheduling": vector["scheduling"],
            "featureGates": gates(vector),
        });
        layers(face, &query, vector)
    });
    let creates = list(vectors, "createGateOff").iter().map(|vector| {
        let query = json!({"operation": "CREATE", "scheduling": vector["scheduling"], "featureGates": gates(vector)});
        layers(face, &query, vector)
    });
    updates.chain(creates).collect()
}

/// Compares the errors of each layer, in order, with all that is told of them.
fn layers(face: &Face, query: &Value, vector: &Value) -> Result<(), String> {
    let report = (face.ask)(&json!({"validate": query}))?;
    let mut expected = json!({"dv": [], "builder": []});
    for error in list(vector, "errors") {
        let mut error = error.clone();
        let layer = error["layer"].take();
        let layer = layer.as_str().ok_or("a vector's error has no layer")?;
        let error = without_nulls(&error);
        expected[layer].as_array_mut().ok_or(format!("the layer {layer} is unknown"))?.push(error);
    }
    equal(&json!({"dv": report["declarative"], "builder": report["builder"]}), &expected)
}
