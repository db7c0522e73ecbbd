//! `opt-in`

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use statefulset_scheduling_core::admission::Settings;
use statefulset_scheduling_core::api;

use super::{output, read, say};
use crate::args;
use crate::documents::Documents;
use crate::exit::Outcome;
use crate::finding::{Finding, Severity};
use crate::lint::{Linter, name};
use crate::opt_in::{Edited, opt_in};
use crate::tape::Tape;

pub(super) fn run(arguments: &args::OptIn) -> anyhow::Result<Outcome> {
    let file = arguments.file.display().to_string();
    ensure!(!(arguments.in_place && arguments.file == Path::new("-")), "the standard input cannot be written back");
    let text = read(&arguments.file)?;
    let (range, edited) = edit(&text, arguments).with_context(|| file.clone())?;
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let text = format!("{before}{}{after}", edited.text);
    let mut refused = false;
    let object_lines = before.lines().count()..before.lines().count() + edited.text.lines().count() + 1;
    let mut sink = |finding: &Finding| {
        // What is wrong with other documents was wrong before.
        if object_lines.contains(&finding.line) {
            refused |= finding.severity == Severity::Error;
            say(&format!("{file}:{}:{}: {}: {}", finding.line, finding.column, finding.severity, finding.text()));
        }
        Ok(())
    };
    Linter::new(Settings::default()).lint(&file, text.as_bytes(), &mut sink)?;
    if refused {
        say("nothing was written");
        return Ok(Outcome::Bad);
    }
    if arguments.in_place {
        std::fs::write(&arguments.file, &text).context(file)?;
    } else {
        let mut out = output();
        out.write_all(text.as_bytes())?;
        out.flush()?;
    }
    for change in &edited.changes {
        say(change);
    }
    Ok(Outcome::Good)
}

/// The document that is edited, by its bytes in the text, and what becomes of it.
fn edit(text: &str, arguments: &args::OptIn) -> anyhow::Result<(std::ops::Range<usize>, Edited)> {
    let mut documents = Documents::new(text.as_bytes());
    // A mark that is passed over is no part of a document.
    let mut end = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut found = Vec::new();
    let mut names = Vec::new();
    while let Some(document) = documents.read()? {
        let start = end;
        end += document.text.len();
        let Some(source) = text.get(start..end) else { continue };
        let mut tape = Tape::default();
        tape.read(source)
            .map_err(|problem| anyhow::anyhow!("line {}: {}", problem.at.line + document.line - 1, problem.message))?;
        for object in tape.objects() {
            let is = |member, value| tape.text_of(object, member).is_some_and(|text| text == value);
            if !is("kind", api::KIND) || !is("apiVersion", api::API_VERSION) {
                continue;
            }
            let full = name(&tape, object);
            let short = full.rsplit('/').next().unwrap_or_default();
            if arguments.name.as_deref().is_none_or(|wanted| wanted == full || wanted == short) {
                let edited = opt_in(source, &tape, object, &arguments.wish(), arguments.carrier.into());
                found.push((start..end, edited));
            }
            names.push(full);
        }
    }
    match (found.pop(), found.is_empty()) {
        (Some((range, edited)), true) => Ok((range, edited?)),
        (Some(_), false) => bail!("there are several StatefulSets, choose one by --name: {}", names.join(", ")),
        (None, _) if names.is_empty() => bail!("there is no StatefulSet in it"),
        (None, _) => bail!("there is no such StatefulSet in it, only {}", names.join(", ")),
    }
}
