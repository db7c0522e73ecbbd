//! The core for JavaScript: `validate`, `compile`, `review`, and `query` for whatever else the core
//! answers.
//!
//! There is no rule in this crate. A function turns its argument into a question for
//! [`statefulset_scheduling_core::query`], and the answer into an object. What goes in and what comes out is
//! told in `types.d.ts`; what cannot be read is thrown as an `Error`.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::arithmetic_side_effects
    )
)]

use statefulset_scheduling_core::admission::{Lookup, LookupError};
use statefulset_scheduling_core::query::{self, NoCluster};
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("types.d.ts");

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = JSON, catch)]
    fn parse(text: &str) -> Result<JsValue, JsValue>;

    /// None for what JSON has no text for, such as `undefined`.
    #[wasm_bindgen(js_namespace = JSON, catch)]
    fn stringify(value: &JsValue) -> Result<Option<String>, JsValue>;

    #[wasm_bindgen(js_name = String, catch)]
    fn string(value: &JsValue) -> Result<String, JsValue>;

    /// A function that finds a StatefulSet.
    pub type Find;

    #[wasm_bindgen(method, catch)]
    fn call(this: &Find, this_argument: &JsValue, namespace: &str, name: &str) -> Result<JsValue, JsValue>;
}

/// The cluster behind a function.
struct Cluster(Find);

impl Lookup for Cluster {
    fn statefulset(&self, namespace: &str, name: &str) -> Result<String, LookupError> {
        let failed = |error: JsValue| {
            LookupError::Failed(string(&error).unwrap_or_else(|_| "the look-up has thrown something".to_owned()))
        };
        let object = self.0.call(&JsValue::NULL, namespace, name).map_err(failed)?;
        match stringify(&object).map_err(failed)? {
            Some(text) if text != "null" => Ok(text),
            _ => Err(LookupError::NotFound),
        }
    }
}

/// Judges an intent for itself.
///
/// # Errors
/// The question cannot be read.
#[wasm_bindgen(skip_typescript)]
pub fn validate(question: &JsValue) -> Result<JsValue, JsValue> {
    ask("validate", question, &NoCluster)
}

/// Compiles the intent of a StatefulSet.
///
/// # Errors
/// The question cannot be read.
#[wasm_bindgen(skip_typescript)]
pub fn compile(question: &JsValue) -> Result<JsValue, JsValue> {
    ask("compile", question, &NoCluster)
}

/// Answers an admission request. `find` finds the StatefulSet of a pod.
///
/// # Errors
/// The question cannot be read.
#[wasm_bindgen(skip_typescript)]
pub fn review(question: &JsValue, find: Option<Find>) -> Result<JsValue, JsValue> {
    match find {
        Some(find) => ask("review", question, &Cluster(find)),
        None => ask("review", question, &NoCluster),
    }
}

/// Answers any query of the core.
///
/// # Errors
/// The question cannot be read.
#[wasm_bindgen(skip_typescript)]
pub fn query(question: &JsValue) -> Result<JsValue, JsValue> {
    answer(&text(question)?, &NoCluster)
}

fn ask(name: &str, question: &JsValue, lookup: &dyn Lookup) -> Result<JsValue, JsValue> {
    answer(&format!(r#"{{"{name}":{}}}"#, text(question)?), lookup)
}

fn text(question: &JsValue) -> Result<String, JsValue> {
    Ok(stringify(question)?.unwrap_or_else(|| "null".to_owned()))
}

fn answer(question: &str, lookup: &dyn Lookup) -> Result<JsValue, JsValue> {
    let answer = query::answer(question, lookup).map_err(|error| JsError::new(&error.to_string()))?;
    parse(std::str::from_utf8(&answer).map_err(|error| JsError::new(&error.to_string()))?)
}
