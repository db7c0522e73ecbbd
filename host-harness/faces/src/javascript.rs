//! The npm package, in Node: one process that answers a line with a line.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use host_harness::golden::{Face, root};
use serde_json::Value;

struct Node {
    process: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// The package in `dist/npm`.
///
/// # Errors
/// It is not built, or its host cannot run it.
pub fn face() -> Result<Face> {
    let package = root().join("dist/npm/node.js");
    ensure!(package.exists(), "there is no {}", package.display());
    let mut process = Command::new("node")
        .arg(root().join("host-harness/faces/src/answer.mjs"))
        .arg(package)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("node cannot be started")?;
    let questions = process.stdin.take();
    let answers = BufReader::new(process.stdout.take().context("node has no output")?);
    let node = RefCell::new(Node { process, questions, answers });
    Ok(Face {
        name: "javascript",
        ask: Box::new(move |query| node.borrow_mut().ask(query).map_err(|e| format!("{e:#}"))),
    })
}

impl Node {
    fn ask(&mut self, query: &Value) -> Result<Value> {
        let questions = self.questions.as_mut().context("node has no input")?;
        writeln!(questions, "{query}")?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("node has ended");
        }
        let mut answer: Value = serde_json::from_str(&line)?;
        match answer["error"].as_str() {
            Some(error) => Err(anyhow!("{error}")),
            None => Ok(answer["answer"].take()),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.questions.take());
        let _ = self.process.wait();
    }
}
