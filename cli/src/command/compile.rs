//! `compile`

use std::io::{self, Write as _};

use anyhow::Context as _;
use serde_json::{Value, json};
use statefulset_scheduling_core::query::{self, NoCluster};

use super::{open, output, say, settings};
use crate::args::{self, ObjectFormat};
use crate::exit::Outcome;
use crate::finding::Finding;
use crate::lint::{Linter, Reviewed, Sink};

/// Compiles what is allowed, and says what is not.
struct Compiler<'a> {
    namespace: &'a str,
    settings: &'a Value,
    objects: Vec<Value>,
    findings: Vec<Finding>,
}

impl Sink for Compiler<'_> {
    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.findings.push(finding.clone());
        Ok(())
    }

    fn statefulset(&mut self, reviewed: &Reviewed<'_>) -> io::Result<()> {
        if !reviewed.opted_in || !reviewed.allowed {
            return Ok(());
        }
        let mut object: Value = serde_json::from_str(reviewed.json)?;
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata.filter(|metadata| metadata.get("namespace").is_none_or(Value::is_null)) {
            metadata.insert("namespace".to_owned(), self.namespace.into());
        }
        let query = json!({"compile": {"statefulSet": object, "settings": self.settings}}).to_string();
        let answer = query::answer(&query, &NoCluster).map_err(io::Error::other)?;
        let mut compiled: Value = serde_json::from_slice(&answer)?;
        for name in ["workload", "podGroup"] {
            self.objects.extend(compiled.get_mut(name).map(Value::take));
        }
        Ok(())
    }
}

pub(super) fn run(arguments: &args::Compile) -> anyhow::Result<Outcome> {
    let (written, settings) = settings(&arguments.policy)?;
    let mut compiler =
        Compiler { namespace: &arguments.namespace, settings: &written, objects: Vec::new(), findings: Vec::new() };
    let mut linter = Linter::new(settings);
    let file = arguments.file.display().to_string();
    linter.lint(&file, open(&arguments.file)?, &mut compiler).context(file)?;
    for finding in &compiler.findings {
        say(&format!("{}:{}:{}: {}: {}", finding.file, finding.line, finding.column, finding.severity, finding.text()));
    }
    if compiler.objects.is_empty() && linter.totals.errors == 0 {
        say("nothing is made: no StatefulSet in it opted in");
    }
    let mut out = output();
    match arguments.output {
        ObjectFormat::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": compiler.objects});
            serde_json::to_writer_pretty(&mut out, &list)?;
            writeln!(out)?;
        }
        ObjectFormat::Yaml => {
            for (index, object) in compiler.objects.iter().enumerate() {
                let separator = if index == 0 { "" } else { "---\n" };
                writeln!(out, "{separator}{}", serde_saphyr::to_string(object)?.trim_end())?;
            }
        }
    }
    out.flush()?;
    Ok(Outcome::of(linter.totals.errors == 0 && !compiler.objects.is_empty()))
}
