//! The golden vectors, measured on Kubernetes' own code, hold on the native core and through the
//! module in wasmtime.
//!
//! `GOLDEN_DIR` names the folder that is read. The last line tells how many vectors of each file
//! were compared.

use std::process::ExitCode;

use host_harness::golden;

fn main() -> ExitCode {
    let faces = [golden::native(), golden::module().expect("the module is built before the tests")];
    match golden::compare(&faces) {
        Ok(outcome) => {
            println!("{}", outcome.summary("golden"));
            outcome.exit_code()
        }
        Err(error) => {
            println!("FAILED {error}");
            ExitCode::FAILURE
        }
    }
}
