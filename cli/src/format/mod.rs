//! Findings, written in the form that somebody reads. Each is written when it is found.

mod github;
mod json;
mod sarif;
mod text;

use std::io::{self, Write};

use clap::ValueEnum;

use crate::finding::Finding;
use crate::lint::{Sink, Totals};

/// The form in which findings are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line each, for people and editors.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Workflow commands that GitHub shows beside the lines.
    Github,
}

/// One form of writing.
trait Form {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
    fn finding(&mut self, out: &mut dyn Write, finding: &Finding) -> io::Result<()>;
    fn end(&mut self, out: &mut dyn Write, totals: &Totals) -> io::Result<()>;
}

/// Writes findings.
pub struct Writer<W> {
    out: W,
    form: Box<dyn Form>,
}

impl<W: Write> Writer<W> {
    /// A writer that has begun.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn begin(mut out: W, format: Format) -> io::Result<Self> {
        let mut form: Box<dyn Form> = match format {
            Format::Text => Box::new(text::Text),
            Format::Json => Box::new(json::Json::default()),
            Format::Sarif => Box::new(sarif::Sarif::default()),
            Format::Github => Box::new(github::GitHub),
        };
        form.begin(&mut out)?;
        Ok(Self { out, form })
    }

    /// Ends what was begun.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(mut self, totals: &Totals) -> io::Result<()> {
        self.form.end(&mut self.out, totals)?;
        self.out.flush()
    }
}

impl<W: Write> Sink for Writer<W> {
    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.form.finding(&mut self.out, finding)
    }
}

/// A count with its noun: `1 error`, `2 errors`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{RULES, Severity};
    use serde_json::Value;

    fn write(format: Format, findings: usize) -> String {
        let mut out = Vec::new();
        let mut writer = Writer::begin(&mut out, format).unwrap();
        for line in 1..=findings {
            let finding = Finding {
                file: "a,b:c.yaml".to_owned(),
                line,
                column: 2,
                severity: if line == 1 { Severity::Error } else { Severity::Warning },
                rule: "FieldValueForbidden",
                object: "ns/web".to_owned(),
                field: "spec.x".to_owned(),
                message: "100% \"wrong\"\nhere".to_owned(),
            };
            writer.finding(&finding).unwrap();
        }
        writer
            .end(&Totals { errors: findings.min(1), warnings: findings.saturating_sub(1), ..Totals::default() })
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_and_sarif_are_whole_whatever_was_found() {
        for findings in 0..3 {
            let json: Value = serde_json::from_str(&write(Format::Json, findings)).unwrap();
            assert_eq!(json["findings"].as_array().unwrap().len(), findings);
            assert_eq!(json["totals"]["errors"], findings.min(1));
            let sarif: Value = serde_json::from_str(&write(Format::Sarif, findings)).unwrap();
            let run = &sarif["runs"][0];
            assert_eq!(run["results"].as_array().unwrap().len(), findings);
            assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), RULES.len());
        }
    }

    #[test]
    fn sarif_points_at_the_line_and_at_the_rule() {
        let sarif: Value = serde_json::from_str(&write(Format::Sarif, 2)).unwrap();
        let result = &sarif["runs"][0]["results"][1];
        assert_eq!(result["level"], "warning");
        let rule = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(result["ruleId"], RULES[rule].0);
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a,b:c.yaml");
        assert_eq!((&place["region"]["startLine"], &place["region"]["startColumn"]), (&2.into(), &2.into()));
    }

    #[test]
    fn githubs_commands_escape_what_would_end_them() {
        let text = write(Format::Github, 1);
        assert!(text.starts_with("::error file=a%2Cb%3Ac.yaml,line=1,col=2,title="), "{text}");
        assert!(text.contains("::spec.x: 100%25 \"wrong\"%0Ahere\n"), "{text}");
    }
}
