//! `kubectl sts-scheduling`.

use std::process::ExitCode;

use clap::Parser as _;
use kubectl_sts_scheduling::args::Arguments;
use kubectl_sts_scheduling::{command, exit};

fn main() -> ExitCode {
    match command::run(&Arguments::parse()) {
        Ok(outcome) => outcome.into(),
        // Whoever reads has read enough.
        Err(error) if error.downcast_ref().is_some_and(is_broken_pipe) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {error:#}");
            ExitCode::from(exit::UNUSABLE)
        }
    }
}

fn is_broken_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}
