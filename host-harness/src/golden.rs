//! The golden vectors, measured on Kubernetes' own code: one table, compared on any number of faces.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use statefulset_scheduling_core::query::{NoCluster, answer};

use crate::module::Policy;

/// One way to ask the core.
pub struct Face {
    /// What it is called.
    pub name: &'static str,
    /// Answers a query of the core, or says why not.
    pub ask: Box<Ask>,
}

/// Answers a query of the core.
pub type Ask = dyn Fn(&Value) -> Result<Value, String>;

/// The core itself.
pub fn native() -> Face {
    Face {
        name: "native",
        ask: Box::new(|query| {
            let bytes = answer(&query.to_string(), &NoCluster).map_err(|error| error.to_string())?;
            serde_json::from_slice(&bytes).map_err(|error| error.to_string())
        }),
    }
}

/// The module that Kubewarden loads: that of `POLICY_WASM`, or `policy.wasm`.
///
/// # Errors
/// It is not built, or cannot be loaded.
pub fn module() -> Result<Face, crate::module::Error> {
    let file = std::env::var_os("POLICY_WASM").map_or_else(|| root().join("policy.wasm"), PathBuf::from);
    let policy = Policy::from_file(&file)?;
    let ask = move |query: &Value| policy.query(query).map_err(|error| error.to_string());
    Ok(Face { name: "module", ask: Box::new(ask) })
}

/// The folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
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

/// How many vectors of a file were compared on each face, and on how many there was a difference.
struct Row {
    file: &'static str,
    counts: Vec<usize>,
    differ: Vec<usize>,
}

/// What a comparison found.
pub struct Outcome {
    faces: Vec<&'static str>,
    rows: Vec<Row>,
    failures: usize,
}

/// Compares every vector of the folder `GOLDEN_DIR`, or else of `fixtures/golden`, on each face, and prints
/// the differences.
///
/// # Errors
/// A file cannot be read.
pub fn compare(faces: &[Face]) -> Result<Outcome, String> {
    let folder = std::env::var_os("GOLDEN_DIR").map_or_else(|| root().join("fixtures/golden"), PathBuf::from);
    let mut failures = 0;
    let mut rows = Vec::new();
    for file in FILES {
        let vectors = read(&folder.join(format!("{}.json", file.name)))?;
        let mut row = Row { file: file.name, counts: Vec::new(), differ: Vec::new() };
        for face in faces {
            let results = (file.compare)(face, &vectors);
            row.counts.push(results.len());
            row.differ.push(results.iter().filter(|result| result.is_err()).count());
            for (index, result) in results.into_iter().enumerate() {
                let Err(difference) = result else { continue };
                failures += 1;
                println!("FAILED {} vector {index} on {}: {difference}", file.name, face.name);
            }
        }
        if row.counts.iter().any(|&count| count == 0 || Some(&count) != row.counts.first()) {
            println!("FAILED {}: no vector, or not the same number on each face: {:?}", file.name, row.counts);
            failures += 1;
        }
        rows.push(row);
    }
    Ok(Outcome { faces: faces.iter().map(|face| face.name).collect(), rows, failures })
}

impl Outcome {
    /// One row for each file, one column for each face: how many vectors hold of how many.
    pub fn table(&self) -> String {
        let mut table = format!("{:10}", "");
        let width = |name: &str| name.len().max(9) + 2;
        for name in &self.faces {
            write!(table, "{name:>0$}", width(name)).expect("writing to a string");
        }
        for row in &self.rows {
            write!(table, "\n{:10}", row.file).expect("writing to a string");
            for ((name, count), differ) in self.faces.iter().zip(&row.counts).zip(&row.differ) {
                let cell = format!("{}/{count}", count - differ);
                write!(table, "{cell:>0$}", width(name)).expect("writing to a string");
            }
        }
        table
    }

    /// How many vectors of each file were compared, in one line.
    pub fn summary(&self, title: &str) -> String {
        let mut summary = format!("{title}:");
        for row in &self.rows {
            let count = row.counts.first().copied().unwrap_or_default();
            write!(summary, " {} {count}", row.file).expect("writing to a string");
        }
        format!("{summary} vectors compared on each of {}; {} differ", self.faces.join(", "), self.failures)
    }

    /// Whether all vectors hold.
    pub fn exit_code(&self) -> ExitCode {
        if self.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
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
