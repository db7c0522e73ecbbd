//! `file:line:column: error: field: message`, as compilers have it.

use std::io::{self, Write};

use super::{Form, counted};
use crate::finding::{Finding, Severity};
use crate::lint::Totals;
use crate::style::{BOLD, RED, YELLOW};

pub(super) struct Text;

impl Form for Text {
    fn finding(&mut self, out: &mut dyn Write, finding: &Finding) -> io::Result<()> {
        let Finding { file, line, column, severity, .. } = finding;
        let style = if *severity == Severity::Error { RED } else { YELLOW };
        writeln!(out, "{BOLD}{file}:{line}:{column}:{BOLD:#} {style}{severity}{style:#}: {}", finding.text())
    }

    fn end(&mut self, out: &mut dyn Write, totals: &Totals) -> io::Result<()> {
        writeln!(
            out,
            "{}, {} of them opted in: {}, {}",
            counted(totals.stateful_sets, "StatefulSet"),
            totals.opted_in,
            counted(totals.errors, "error"),
            counted(totals.warnings, "warning")
        )
    }
}
