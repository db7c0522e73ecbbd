//! Reviews manifests with the policy module: what an API server with the policy would say.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use host_harness::module::Policy;
use host_harness::report::{self, Format};
use host_harness::{manifest, review};
use serde_json::{Value, json};

/// Reviews manifests with the policy module, run in wasmtime as an admission engine runs it.
///
/// Exit status: 0 if every StatefulSet is allowed, 1 if one is denied, 2 if the input cannot be used.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The manifests: YAML or JSON, any number of documents of any kind; - is the standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// The policy module.
    #[arg(long, env = "POLICY_WASM", default_value = "policy.wasm")]
    module: PathBuf,

    /// A file with the policy's settings, YAML or JSON.
    #[arg(long)]
    settings: Option<PathBuf>,

    /// The form in which reviews are printed.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

const ALLOWED: u8 = 0;
const DENIED: u8 = 1;
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::from(ALLOWED),
        Ok(false) => ExitCode::from(DENIED),
        Err(error) => {
            anstream::eprintln!("review: {error:#}");
            ExitCode::from(UNUSABLE)
        }
    }
}

/// Whether every StatefulSet is allowed.
fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let policy = Policy::from_file(&arguments.module)?;
    let settings = settings(arguments, &policy)?;
    let mut reviews = Vec::new();
    let mut passed = 0;
    for file in &arguments.files {
        for object in manifest::read(file)? {
            if object.is_statefulset() {
                reviews.push(review::review(&policy, file, &object, &settings)?);
            } else {
                passed += 1;
            }
        }
    }
    let text = report::print(&reviews, passed, arguments.output)?;
    anstream::stdout().write_all(text.as_bytes()).context("the reviews cannot be written")?;
    Ok(reviews.iter().all(|review| review.verdict.allowed))
}

/// The settings, which the module itself must find valid.
fn settings(arguments: &Arguments, policy: &Policy) -> anyhow::Result<Value> {
    let Some(path) = &arguments.settings else { return Ok(json!({})) };
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let settings: Value = serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
    let answer = policy.call("validate_settings", settings.to_string().as_bytes())?;
    let answer: Value = serde_json::from_slice(&answer)?;
    anyhow::ensure!(answer["valid"] == true, "{}: {}", path.display(), answer["message"].as_str().unwrap_or_default());
    Ok(settings)
}
