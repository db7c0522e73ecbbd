//! `lint`

use std::io::{self, Write};

use anyhow::Context as _;

use super::{open, output, settings};
use crate::args;
use crate::exit::Outcome;
use crate::finding::Finding;
use crate::format::Writer;
use crate::lint::{Linter, Reviewed, Sink};
use crate::progress::Progress;

/// Counts what goes through.
struct Counted<W> {
    writer: Writer<W>,
    progress: Progress,
    statefulsets: u64,
}

impl<W: Write> Sink for Counted<W> {
    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.writer.finding(finding)
    }

    fn statefulset(&mut self, _: &Reviewed<'_>) -> io::Result<()> {
        self.statefulsets += 1;
        self.progress.done(self.statefulsets);
        Ok(())
    }
}

pub(super) fn run(arguments: &args::Lint) -> anyhow::Result<Outcome> {
    let (_, settings) = settings(&arguments.policy)?;
    let mut linter = Linter::new(settings);
    let writer = Writer::begin(output(), arguments.output)?;
    let mut sink = Counted { writer, progress: Progress::start("StatefulSets"), statefulsets: 0 };
    for path in &arguments.files {
        let file = path.display().to_string();
        linter.lint(&file, open(path)?, &mut sink).context(file)?;
    }
    let Counted { writer, progress, .. } = sink;
    drop(progress);
    let totals = linter.totals;
    writer.end(&totals)?;
    Ok(Outcome::of(totals.errors == 0 && (totals.warnings == 0 || !arguments.strict)))
}
