//! What the policy would say about the creation of what stands in a stream.

use std::io::{self, BufRead};

use serde::Serialize;
use serde_json::value::RawValue;
use statefulset_scheduling_core::admission::{self, Request, Settings, Verdict};
use statefulset_scheduling_core::api::{self, View};
use statefulset_scheduling_core::query::NoCluster;

use crate::documents::{Document, Documents};
use crate::finding::{Finding, REFUSED, SYNTAX, Severity, WARNING};
use crate::glance;
use crate::locate::locate;
use crate::tape::{NodeId, Position, Problem, Tape};

/// How much was looked at, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Documents of any kind.
    pub documents: usize,
    /// StatefulSets among them, also those in Lists.
    pub stateful_sets: usize,
    /// StatefulSets with an intent.
    pub opted_in: usize,
    /// Findings that are errors.
    pub errors: usize,
    /// Findings that are warnings.
    pub warnings: usize,
}

impl Totals {
    /// Adds what was looked at elsewhere.
    pub fn add(&mut self, more: Self) {
        self.documents += more.documents;
        self.stateful_sets += more.stateful_sets;
        self.opted_in += more.opted_in;
        self.errors += more.errors;
        self.warnings += more.warnings;
    }
}

/// A StatefulSet in a document, and what the policy says about its creation.
pub struct Reviewed<'a> {
    /// Its JSON.
    pub json: &'a str,
    /// The document that it stands in, and where.
    pub tape: &'a Tape,
    /// The node of the document.
    pub node: NodeId,
    /// Whether it carries an intent.
    pub opted_in: bool,
    /// Whether the policy allows it.
    pub allowed: bool,
}

/// What takes what a linter finds, as soon as it is found.
pub trait Sink {
    /// A finding.
    ///
    /// # Errors
    /// It cannot be written.
    fn finding(&mut self, finding: &Finding) -> io::Result<()>;

    /// A StatefulSet, after what was found about it.
    ///
    /// # Errors
    /// What is made of it cannot be written.
    fn statefulset(&mut self, _: &Reviewed<'_>) -> io::Result<()> {
        Ok(())
    }
}

impl<F: FnMut(&Finding) -> io::Result<()>> Sink for F {
    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self(finding)
    }
}

/// Reads streams and reviews the StatefulSets in them. It holds one document at a time.
pub struct Linter {
    settings: Settings,
    tape: Tape,
    /// What was looked at so far.
    pub totals: Totals,
}

/// What is found about one document.
struct Report<'a, S: ?Sized> {
    file: &'a str,
    /// The lines before the document.
    lines: usize,
    sink: &'a mut S,
    totals: &'a mut Totals,
}

impl<S: Sink + ?Sized> Report<'_, S> {
    fn add(&mut self, at: Position, severity: Severity, rule: &'static str, what: [&str; 3]) -> io::Result<()> {
        match severity {
            Severity::Error => self.totals.errors += 1,
            Severity::Warning => self.totals.warnings += 1,
        }
        let [object, field, message] = what.map(str::to_owned);
        let (line, column) = (at.line + self.lines, at.column);
        self.sink.finding(&Finding { file: self.file.to_owned(), line, column, severity, rule, object, field, message })
    }

    fn problem(&mut self, problem: &Problem) -> io::Result<()> {
        self.add(problem.at, Severity::Error, SYNTAX, ["", "", &problem.message])
    }
}

impl Linter {
    /// A linter that answers as a policy with these settings does.
    pub fn new(settings: Settings) -> Self {
        Self { settings, tape: Tape::default(), totals: Totals::default() }
    }

    /// Reviews what stands in a stream. `file` is what it is called in findings.
    ///
    /// # Errors
    /// The stream cannot be read, or the sink fails.
    pub fn lint<S: Sink + ?Sized>(&mut self, file: &str, stream: impl BufRead, sink: &mut S) -> io::Result<()> {
        let mut documents = Documents::new(stream);
        while let Some(document) = documents.read()? {
            self.document(file, document, sink)?;
        }
        Ok(())
    }

    /// Another one that answers alike, and has looked at nothing.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.settings.clone())
    }

    pub(crate) fn document<S: Sink + ?Sized>(
        &mut self,
        file: &str,
        document: Document<'_>,
        sink: &mut S,
    ) -> io::Result<()> {
        let Self { settings, tape, totals } = self;
        totals.documents += 1;
        let mut report = Report { file, lines: document.line - 1, sink, totals };
        let text = match std::str::from_utf8(document.text) {
            Ok(text) => text,
            Err(error) => {
                let before = document.text.get(..error.valid_up_to()).unwrap_or_default();
                let line = memchr::memchr_iter(b'\n', before).count() + 1;
                let message = "not in UTF-8".to_owned();
                return report.problem(&Problem { at: Position { line, column: 1 }, message });
            }
        };
        if !glance::may_hold_intents(document.text) {
            return match glance::statefulsets(text) {
                Ok(count) => {
                    report.totals.stateful_sets += count;
                    Ok(())
                }
                Err(problem) => report.problem(&problem),
            };
        }
        if let Err(problem) = tape.read(text) {
            return report.problem(&problem);
        }
        for object in tape.objects() {
            let is = |name, value| tape.text_of(object, name).is_some_and(|text| text == value);
            if is("kind", api::KIND) && is("apiVersion", api::API_VERSION) {
                statefulset(tape, object, text, settings, &mut report)?;
            }
        }
        Ok(())
    }
}

fn statefulset<S: Sink + ?Sized>(
    tape: &Tape,
    node: NodeId,
    source: &str,
    settings: &Settings,
    report: &mut Report<'_, S>,
) -> io::Result<()> {
    report.totals.stateful_sets += 1;
    let json = tape.json(node);
    let raw: &RawValue = serde_json::from_str(&json)?;
    let opted_in = View::new(Some(raw)).is_ok_and(|view| api::has_intent(&view, settings.carriers));
    report.totals.opted_in += usize::from(opted_in);
    let verdict = review(raw, settings);
    if !verdict.allowed || !verdict.warnings.is_empty() {
        let object = name(tape, node);
        let find = |path: &str, detail: &str| locate(tape, node, source, path, detail);
        for error in &verdict.errors {
            let at = find(error.field.as_str(), &error.detail);
            let what = [object.as_str(), error.field.as_str(), &error.body()];
            report.add(at, Severity::Error, error.error_type.as_str(), what)?;
        }
        if !verdict.allowed && verdict.errors.is_empty() {
            report.add(tape.start_of(node), Severity::Error, REFUSED, [&object, "", &verdict.message])?;
        }
        for warning in &verdict.warnings {
            let (field, message) = warning.split_once(": ").unwrap_or(("", warning));
            report.add(find(field, ""), Severity::Warning, WARNING, [&object, field, message])?;
        }
    }
    report.sink.statefulset(&Reviewed { json: &json, tape, node, opted_in, allowed: verdict.allowed })
}

/// What the policy says about the creation of a StatefulSet.
pub fn review(object: &RawValue, settings: &Settings) -> Verdict {
    let request = Request {
        group: api::GROUP.into(),
        kind: api::KIND.into(),
        operation: "CREATE".into(),
        object: Some(object),
        ..Request::default()
    };
    admission::review(&request, settings, &NoCluster)
}

/// `namespace/name`, or the name alone.
pub fn name(tape: &Tape, object: NodeId) -> String {
    let Some(metadata) = tape.value(object, "metadata") else { return String::new() };
    let name = tape.text_of(metadata, "name").or_else(|| tape.text_of(metadata, "generateName")).unwrap_or_default();
    match tape.text_of(metadata, "namespace") {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &str = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: web\nspec:\n  scheduling:\n    \
                       schedulingPolicy:\n      gang: {minCount: 3}\n";

    fn lint(text: &str) -> (Vec<String>, Totals) {
        let mut found = Vec::new();
        let mut linter = Linter::new(Settings::default());
        let mut sink = |finding: &Finding| {
            found.push(format!("{}:{} {} {}", finding.line, finding.column, finding.rule, finding.field));
            Ok(())
        };
        linter.lint("x", text.as_bytes(), &mut sink).unwrap();
        (found, linter.totals)
    }

    #[test]
    fn each_error_of_the_policy_stands_at_its_field() {
        let (found, totals) = lint(SET);
        let field = "spec.scheduling.schedulingPolicy.gang";
        assert_eq!(
            found,
            [format!("8:7 FieldValueForbidden {field}"), format!("8:14 FieldValueForbidden {field}.minCount")]
        );
        assert_eq!(totals, Totals { documents: 1, stateful_sets: 1, opted_in: 1, errors: 2, warnings: 0 });
    }

    #[test]
    fn lines_are_counted_across_documents_and_lists_are_taken_apart() {
        let list = format!("kind: List\napiVersion: v1\nitems:\n- {}", SET.trim_end().replace('\n', "\n  "));
        let (found, totals) = lint(&format!("kind: Service\n---\n{list}\n---\n{SET}"));
        let lines: Vec<_> = found.iter().map(|found| found.split(' ').next().unwrap()).collect();
        assert_eq!(lines, ["13:9", "13:16", "22:7", "22:14"]);
        assert_eq!((totals.documents, totals.stateful_sets), (3, 2));
    }

    #[test]
    fn what_cannot_be_read_is_found_in_documents_of_any_kind_and_ends_nothing() {
        let (found, totals) = lint(&format!("kind: Service\nx: [\n---\nkind: StatefulSet\n x: : 1\n---\n{SET}"));
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found.iter().take(2).all(|found| found.contains("Syntax")), "{found:?}");
        assert_eq!((totals.documents, totals.errors), (3, 4));
        assert!(lint("a: \u{fffd}\n").0.is_empty());
        let mut linter = Linter::new(Settings::default());
        linter.lint("x", &b"a: 1\nb: \xff\n"[..], &mut |_: &Finding| Ok(())).unwrap();
        assert_eq!(linter.totals.errors, 1);
    }

    #[test]
    fn what_did_not_opt_in_or_is_of_another_kind_is_none_of_the_policys_business() {
        for text in [
            "apiVersion: apps/v1\nkind: StatefulSet\nspec:\n  updateStrategy: {rollingUpdate: {partition: 3}}\n",
            "apiVersion: example.com/v1\nkind: StatefulSet\nspec:\n  scheduling: 3\n",
            "kind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {kind: StatefulSet}}\n",
            "- StatefulSet\n",
            "StatefulSet\n",
            "# StatefulSet\n",
        ] {
            assert_eq!(lint(text).0, Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn what_opted_in_is_counted_also_where_it_is_written_with_an_alias() {
        let set = "apiVersion: apps/v1\nkind: StatefulSet\n";
        for (text, opted_in) in [
            ("spec: {scheduling: {}}", 1),
            ("spec: {scheduling: ~}", 0),
            ("spec: {scheduling: 3}", 1),
            ("metadata: {annotations: {statefulset-scheduling.dev/scheduling: x}}", 1),
            ("metadata: {annotations: {statefulset-scheduling.dev/scheduling: null}}", 0),
            ("metadata: {annotations: {other/scheduling: x}}", 0),
            ("x: &x {scheduling: {}}\nspec: *x", 1),
            ("x: &x {scheduling: {}}\nspec: {<<: *x}", 1),
        ] {
            assert_eq!(lint(&format!("{set}{text}")).1.opted_in, opted_in, "{text}");
        }
    }

    #[test]
    fn a_kind_that_is_written_with_escapes_is_found() {
        assert_eq!(lint(&SET.replace("StatefulSet", "\"Stateful\\u0053et\"")).1.stateful_sets, 1);
    }
}
