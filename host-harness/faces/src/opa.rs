//! The module of OPA's ABI, in the `opa-wasm` crate.

use std::cell::RefCell;

use anyhow::{Context as _, Result};
use host_harness::golden::{Face, root};
use opa_wasm::{DefaultContext, Policy, Runtime};
use serde_json::{Value, json};
use tokio::runtime;
use wasmtime::{Engine, Module, Store};

/// One instance answers all questions, as in a host that serves.
struct Opa {
    threads: runtime::Runtime,
    store: Store<()>,
    policy: Policy<DefaultContext>,
}

/// The module in `dist/opa.wasm`.
///
/// # Errors
/// It is not built, or its host cannot run it.
pub fn face() -> Result<Face> {
    let threads = runtime::Builder::new_current_thread().build()?;
    let engine = Engine::default();
    let module = Module::from_file(&engine, root().join("dist/opa.wasm"))?;
    let mut store = Store::new(&engine, ());
    let policy = threads.block_on(async {
        let runtime = Runtime::new(&mut store, &module).await?;
        runtime.without_data(&mut store).await
    })?;
    let opa = RefCell::new(Opa { threads, store, policy });
    Ok(Face {
        name: "opa",
        ask: Box::new(move |query| ask(&mut opa.borrow_mut(), query).map_err(|e| format!("{e:#}"))),
    })
}

fn ask(opa: &mut Opa, query: &Value) -> Result<Value> {
    let (entrypoint, input) = ["review", "validate", "compile"]
        .into_iter()
        .find_map(|name| query.get(name).map(|input| (name, input)))
        .unwrap_or(("query", query));
    let entrypoint = format!("statefulset_scheduling/{entrypoint}");
    let results: Value = opa.threads.block_on(opa.policy.evaluate(&mut opa.store, &entrypoint, input))?;
    let result = results.pointer("/0/result").with_context(|| format!("no result: {results}"))?;
    match result.get("response") {
        // The vectors ask of a verdict only whether it allows.
        Some(response) => Ok(json!({"allowed": response["allowed"]})),
        None => Ok(result.clone()),
    }
}
