//! What a review costs, as ratios of times taken in the same run.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::Criterion;
use host_harness::module::Policy;
use serde_json::{Value, json};
use statefulset_scheduling_policy::kubewarden;

/// A creation of a StatefulSet of about `size` bytes.
fn request(size: usize, opted_in: bool) -> Vec<u8> {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default", "annotations": {}},
        "spec": {
            "replicas": 5,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
        },
    });
    if opted_in {
        let intent = "schedulingPolicy:\n  gang: {}\ndisruptionMode:\n  all: {}\n";
        object["metadata"]["annotations"]["statefulset-scheduling.dev/scheduling"] = intent.into();
    }
    let mut index = 0;
    while object.to_string().len() < size {
        let environment = json!({"name": format!("SETTING_{index}"), "value": "some value of usual length"});
        let container = json!({
            "name": format!("container-{index}"),
            "image": "registry.example.com/team/application:1.2.3",
            "env": [environment],
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
            "volumeMounts": [{"name": "data", "mountPath": "/var/lib/data"}],
        });
        object["spec"]["template"]["spec"]["containers"].as_array_mut().expect("a list").push(container);
        index += 1;
    }
    let kind = json!({"group": "apps", "version": "v1", "kind": "StatefulSet"});
    let request = json!({"uid": "1", "kind": kind, "operation": "CREATE", "object": object});
    json!({"request": request, "settings": {}}).to_string().into_bytes()
}

const SIZES: [(&str, usize); 2] = [("2KB", 2 << 10), ("100KB", 100 << 10)];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace");
    let module = std::env::var_os("POLICY_WASM").map_or_else(|| root.join("policy.wasm"), PathBuf::from);
    let policy = Policy::from_file(&module).expect("the module is built before the benchmarks");
    let mut criterion = Criterion::default().configure_from_args();
    for (size, bytes) in SIZES {
        for (kind, opted_in) in [("opted-in", true), ("not-opted-in", false)] {
            let payload = request(bytes, opted_in);
            criterion.bench_function(&format!("{kind}-{size}-native"), |bencher| {
                bencher.iter(|| kubewarden::validate(black_box(&payload)).expect("an answer"));
            });
            criterion.bench_function(&format!("{kind}-{size}-module"), |bencher| {
                bencher.iter(|| policy.call("validate", black_box(&payload)).expect("an answer"));
            });
            criterion.bench_function(&format!("{kind}-{size}-parse"), |bencher| {
                bencher.iter(|| serde_json::from_slice::<Value>(black_box(&payload)).expect("JSON"));
            });
        }
    }
    criterion.final_summary();
    ratios(&root.join("target/criterion"));
}

/// The mean of a benchmark, in nanoseconds, as criterion has written it down.
fn mean(folder: &Path, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(folder.join(name).join("new/estimates.json")).ok()?;
    serde_json::from_str::<Value>(&text).ok()?["mean"]["point_estimate"].as_f64()
}

fn ratios(folder: &Path) {
    println!("{:56} {:>10} {:>10} {:>8}", "ratio of means", "µs", "µs", "ratio");
    for (size, _) in SIZES {
        for (what, of, to) in [
            ("module, fresh instance / native core", "opted-in", ["module", "native"]),
            ("not opted in, native / parsing into a Value", "not-opted-in", ["native", "parse"]),
        ]
        .map(|(what, kind, faces)| (what, format!("{kind}-{size}-{}", faces[0]), format!("{kind}-{size}-{}", faces[1])))
        {
            let (Some(of), Some(to)) = (mean(folder, &of), mean(folder, &to)) else { continue };
            println!("{:56} {:>10.2} {:>10.2} {:>8.2}", format!("{what}, {size}"), of / 1e3, to / 1e3, of / to);
        }
    }
}
