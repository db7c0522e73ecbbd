//! `lint`

use std::num::NonZeroUsize;

use anyhow::Context as _;

use super::{open, output, settings};
use crate::args;
use crate::exit::Outcome;
use crate::format::Writer;
use crate::lint::{Linter, Sink as _};
use crate::parallel;
use crate::progress::Progress;

pub(super) fn run(arguments: &args::Lint) -> anyhow::Result<Outcome> {
    let (_, settings) = settings(&arguments.policy)?;
    let mut linter = Linter::new(settings);
    let mut writer = Writer::begin(output(), arguments.output)?;
    let progress = Progress::start("documents");
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    for path in &arguments.files {
        let file = path.display().to_string();
        parallel::lint(&mut linter, threads, &file, open(path)?, |findings, totals| {
            progress.done(u64::try_from(totals.documents).unwrap_or(u64::MAX));
            findings.iter().try_for_each(|finding| writer.finding(finding))
        })
        .context(file)?;
    }
    drop(progress);
    let totals = linter.totals;
    writer.end(&totals)?;
    Ok(Outcome::of(totals.errors == 0 && (totals.warnings == 0 || !arguments.strict)))
}
