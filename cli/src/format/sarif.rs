//! SARIF 2.1.0, as far as code scanning reads it.

use std::io::{self, Write};

use serde_json::json;

use super::Form;
use crate::finding::{Finding, RULES};
use crate::lint::Totals;

#[derive(Default)]
pub(super) struct Sarif {
    begun: bool,
}

impl Form for Sarif {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let rules: Vec<_> =
            RULES.iter().map(|(id, text)| json!({"id": id, "shortDescription": {"text": text}})).collect();
        let tool = json!({"driver": {
            "name": "kubectl-sts_scheduling",
            "version": env!("CARGO_PKG_VERSION"),
            "informationUri": env!("CARGO_PKG_REPOSITORY"),
            "rules": rules,
        }});
        write!(
            out,
            "{{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{{\"tool\":\
             {tool},\"columnKind\":\"unicodeCodePoints\",\"results\":["
        )
    }

    fn finding(&mut self, out: &mut dyn Write, finding: &Finding) -> io::Result<()> {
        let result = json!({
            "ruleId": finding.rule,
            "ruleIndex": RULES.iter().position(|(id, _)| *id == finding.rule),
            "level": finding.severity,
            "message": {"text": finding.text()},
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": {"uri": finding.file},
                    "region": {"startLine": finding.line, "startColumn": finding.column},
                },
                "logicalLocations": [{"fullyQualifiedName": finding.object, "kind": "object"}],
            }],
        });
        let separator = if std::mem::replace(&mut self.begun, true) { ",\n" } else { "\n" };
        write!(out, "{separator}{result}")
    }

    fn end(&mut self, out: &mut dyn Write, _: &Totals) -> io::Result<()> {
        out.write_all(b"\n]}]}\n")
    }
}
