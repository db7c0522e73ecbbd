//! The module in the `opa-wasm` crate, a host that is not this project's. `dist/opa.wasm` is built before.

use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context as _, Result};
use opa_wasm::{DefaultContext, Policy, Runtime};
use serde_json::{Value, json};
use statefulset_scheduling_core::query::{NoCluster, answer};
use wasmtime::{Engine, Module, Store};

static MODULE: LazyLock<(Engine, Module)> = LazyLock::new(|| {
    let engine = Engine::default();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/opa.wasm");
    let module = Module::from_file(&engine, file).expect("dist/opa.wasm is built before the tests");
    (engine, module)
});

struct Host {
    store: Store<()>,
    policy: Policy<DefaultContext>,
}

impl Host {
    async fn new(data: &Value) -> Result<Self> {
        let (engine, module) = &*MODULE;
        let mut store = Store::new(engine, ());
        let policy = Runtime::new(&mut store, module).await?.with_data(&mut store, data).await?;
        Ok(Self { store, policy })
    }

    async fn ask(&mut self, entrypoint: &str, input: &Value) -> Result<Value> {
        let entrypoint = format!("statefulset_scheduling/{entrypoint}");
        let results: Value = self.policy.evaluate(&mut self.store, &entrypoint, input).await?;
        results.pointer("/0/result").cloned().with_context(|| format!("no result: {results}"))
    }
}

fn request(kind: &Value, operation: &str, object: &Value) -> Value {
    json!({"request": {"uid": "u-1", "kind": kind, "operation": operation, "namespace": "ns", "object": object}})
}

fn statefulset(scheduling: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "namespace": "ns", "uid": "s-1"},
        "spec": {"replicas": 3, "podManagementPolicy": "Parallel", "scheduling": scheduling, "template": {"spec": {}}}})
}

fn create_set(scheduling: &Value) -> Value {
    let kind = json!({"group": "apps", "version": "v1", "kind": "StatefulSet"});
    request(&kind, "CREATE", &statefulset(scheduling))
}

fn create_pod() -> Value {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-0", "labels": {"statefulset-scheduling.dev/managed": "true"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s-1",
                "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"containers": []}});
    request(&json!({"group": "", "version": "v1", "kind": "Pod"}), "CREATE", &pod)
}

fn replicated(annotations: &Value) -> Value {
    let mut set = statefulset(&json!({"schedulingPolicy": {"gang": {}}}));
    set["metadata"]["annotations"] = annotations.clone();
    json!({"kubernetes": {"statefulsets": {"ns": {"web": set}}}})
}

#[tokio::test]
async fn the_module_tells_its_version_and_its_entrypoints() -> Result<()> {
    let host = Host::new(&json!({})).await?;
    assert_eq!(host.policy.abi_version().to_string(), "1.2");
    assert_eq!(host.policy.default_entrypoint(), Some("statefulset_scheduling/review"));
    let mut entrypoints: Vec<_> = host.policy.entrypoints().into_iter().collect();
    entrypoints.sort_unstable();
    let names = ["compile", "query", "review", "validate"].map(|name| format!("statefulset_scheduling/{name}"));
    assert_eq!(entrypoints, names);
    Ok(())
}

#[tokio::test]
async fn a_review_is_answered_with_the_request_s_uid() -> Result<()> {
    let mut host = Host::new(&json!({})).await?;
    let valid = host.ask("review", &create_set(&json!({"schedulingPolicy": {"gang": {}}}))).await?;
    assert_eq!(valid["response"]["uid"], "u-1");
    assert_eq!((&valid["response"]["allowed"], &valid["response"]["patchType"]), (&json!(true), &json!("JSONPatch")));
    let invalid = host.ask("review", &create_set(&json!({"schedulingPolicy": {}}))).await?;
    assert_eq!((&invalid["response"]["allowed"], &invalid["response"]["status"]["code"]), (&json!(false), &json!(422)));
    let closed = Host::new(&json!({"featureGates": "WorkloadWithStatefulSet=false"})).await?;
    let dropped = { closed }.ask("review", &create_set(&json!({"schedulingPolicy": {}}))).await?;
    assert_eq!(dropped["response"]["allowed"], true);
    Ok(())
}

#[tokio::test]
async fn a_pod_finds_its_statefulset_in_the_data() -> Result<()> {
    let bound = json!({"statefulset-scheduling.dev/pod-group": r#"{"name":"web-g","uid":"g-1","replicas":3}"#});
    for (data, allowed, part) in [
        (replicated(&bound), true, r#""patch":"#),
        (replicated(&json!({})), false, "held"),
        (json!({"kubernetes": {}}), false, "not found"),
        (json!({}), false, "data has no kubernetes"),
    ] {
        let answer = Host::new(&data).await?.ask("review", &create_pod()).await?;
        assert_eq!(answer["response"]["allowed"], allowed, "{answer}");
        assert!(answer.to_string().contains(part), "{answer}");
    }
    Ok(())
}

#[tokio::test]
async fn the_core_s_queries_are_answered_as_natively() -> Result<()> {
    let mut host = Host::new(&json!({})).await?;
    for scheduling in [json!({}), json!({"schedulingPolicy": {"gang": {"minCount": -1}}}), json!({"x": "é\u{1f}\""})] {
        for (name, input) in [
            ("validate", json!({"scheduling": scheduling})),
            ("compile", json!({"statefulSet": statefulset(&scheduling)})),
        ] {
            let expected = match answer(&json!({name: input}).to_string(), &NoCluster) {
                Ok(answer) => serde_json::from_slice(&answer)?,
                Err(error) => json!({"error": error.to_string()}),
            };
            assert_eq!(host.ask(name, &input).await?, expected, "{name} {input}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn one_instance_answers_any_number_of_times() -> Result<()> {
    let mut host = Host::new(&json!({"kubernetes": {}})).await?;
    let large = json!({"statefulSet": statefulset(&json!({})), "x": "y".repeat(1 << 20)});
    let first = host.ask("compile", &large).await?;
    for _ in 0..20 {
        assert_eq!(host.ask("compile", &large).await?, first);
        assert_eq!(host.ask("review", &create_set(&json!({}))).await?["response"]["allowed"], true);
    }
    Ok(())
}
