//! The commands.

mod compile;
mod lint;
mod opt_in;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;
use serde_json::Value;
use statefulset_scheduling_core::admission::Settings;

use crate::args::{Arguments, Command, PolicySettings};
use crate::exit::Outcome;
use crate::tape::Tape;

/// Does what is to be done.
///
/// # Errors
/// It cannot be done.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        Command::Lint(lint) => lint::run(lint),
        Command::Compile(compile) => compile::run(compile),
        Command::OptIn(opt_in) => opt_in::run(opt_in),
        Command::Status(status) => crate::status::run(status),
        Command::Doctor(doctor) => crate::doctor::run(doctor),
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Arguments::command(), "kubectl-sts_scheduling", &mut io::stdout());
            Ok(Outcome::Good)
        }
    }
}

/// The standard output, buffered, with colours where it is a terminal.
fn output() -> io::BufWriter<anstream::AutoStream<io::StdoutLock<'static>>> {
    io::BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()))
}

/// Says something beside the output.
fn say(text: &str) {
    // There is nowhere else to say that it cannot be said.
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Opens a file; - is the standard input.
fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::with_capacity(1 << 16, io::stdin().lock())));
    }
    let file = File::open(path).with_context(|| path.display().to_string())?;
    Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
}

/// The text of a file.
fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text).with_context(|| path.display().to_string())?;
    Ok(text)
}

/// The policy's settings, as JSON and as they are read.
fn settings(policy: &PolicySettings) -> anyhow::Result<(Value, Settings)> {
    let Some(path) = &policy.settings else { return Ok((Value::Null, Settings::default())) };
    let text = read(path)?;
    let mut tape = Tape::default();
    tape.read(&text).map_err(|problem| {
        anyhow::anyhow!("{}:{}:{}: {}", path.display(), problem.at.line, problem.at.column, problem.message)
    })?;
    let json = tape.root().map_or_else(|| "null".to_owned(), |root| tape.json(root).into_owned());
    let settings = Settings::parse(&json).with_context(|| path.display().to_string())?;
    Ok((serde_json::from_str(&json)?, settings))
}
