//! Workflow commands: `::error file=…,line=…,col=…,title=…::message`.

use std::io::{self, Write};

use super::Form;
use crate::finding::Finding;
use crate::lint::Totals;

pub(super) struct GitHub;

/// What would end a message.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// What would end a property, too.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

impl Form for GitHub {
    fn finding(&mut self, out: &mut dyn Write, finding: &Finding) -> io::Result<()> {
        let Finding { line, column, severity, .. } = finding;
        let title =
            if finding.object.is_empty() { finding.rule.to_owned() } else { format!("StatefulSet {}", finding.object) };
        writeln!(
            out,
            "::{severity} file={},line={line},col={column},title={}::{}",
            property(&finding.file),
            property(&title),
            message(&finding.text())
        )
    }

    fn end(&mut self, _: &mut dyn Write, _: &Totals) -> io::Result<()> {
        Ok(())
    }
}
