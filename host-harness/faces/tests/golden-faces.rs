//! The golden vectors hold on every face of the core: natively, in the modules of Kubewarden and of OPA,
//! and in JavaScript.
//!
//! `GOLDEN_DIR` names the folder that is read. The last line tells how many vectors of each file were compared.

use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use golden_faces::{javascript, opa};
use host_harness::golden;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            println!("FAILED {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let faces = [
        golden::native(),
        golden::module().context("policy.wasm is built before this runs")?,
        opa::face().context("dist/opa.wasm is built before this runs")?,
        javascript::face().context("dist/npm is built before this runs")?,
    ];
    let outcome = golden::compare(&faces).map_err(|error| anyhow!(error))?;
    println!("{}\n{}", outcome.table(), outcome.summary("golden-faces"));
    Ok(outcome.exit_code())
}
