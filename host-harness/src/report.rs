//! Reviews, printed for people and for programs.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde_json::json;

use crate::review::{Compiled, Review};

/// In which form reviews are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people, and one compiled pair.
    Table,
    /// A YAML document for each StatefulSet, followed by the Workload and PodGroup.
    Yaml,
    /// One JSON object.
    Json,
}

const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const BOLD: Style = Style::new().bold();

/// Prints reviews. Colours are written as escapes; the stream strips them where they do not belong.
///
/// # Errors
/// A value cannot be written as YAML or JSON.
pub fn print(reviews: &[Review], passed: usize, format: Format) -> anyhow::Result<String> {
    match format {
        Format::Table => table(reviews, passed),
        Format::Yaml => reviews.iter().map(yaml).collect(),
        Format::Json => Ok(serde_json::to_string_pretty(&json!({"reviews": reviews, "passed": passed}))? + "\n"),
    }
}

fn table(reviews: &[Review], passed: usize) -> anyhow::Result<String> {
    let header = ["STATEFULSET", "VERDICT", "POLICY", "SIZE", "FILE"].map(str::to_owned);
    let rows: Vec<[String; 5]> = reviews.iter().map(row).collect();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| rows.iter().chain([&header]).map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    write_row(&mut out, &header, &widths, BOLD)?;
    for (review, row) in reviews.iter().zip(&rows) {
        write_row(&mut out, row, &widths, if review.verdict.allowed { Style::new() } else { RED })?;
        for error in &review.verdict.errors {
            writeln!(out, "  {RED}error{RED:#}    {}: {}", error.field, error.body)?;
        }
        if !review.verdict.allowed && review.verdict.errors.is_empty() {
            writeln!(out, "  {RED}error{RED:#}    {}", review.verdict.message)?;
        }
        for warning in &review.verdict.warnings {
            writeln!(out, "  {YELLOW}warning{YELLOW:#}  {warning}")?;
        }
        for operation in &review.verdict.patch {
            writeln!(out, "  patch    {operation}")?;
        }
    }
    let denied = reviews.iter().filter(|review| !review.verdict.allowed).count();
    let opted_in = reviews.iter().filter(|review| review.opted_in).count();
    writeln!(
        out,
        "\n{} StatefulSets: {GREEN}{} allowed{GREEN:#}, {} denied, {opted_in} opted in; {passed} objects of other kinds passed",
        reviews.len(),
        reviews.len() - denied,
        denied
    )?;
    if let Some((review, compiled)) = reviews.iter().find_map(|review| Some((review, review.compiled.as_ref()?))) {
        writeln!(
            out,
            "\n{BOLD}{}/{} compiles to{BOLD:#} (UIDs, and the hashes in names that come from them, are the API server's \
             to give):\n",
            review.namespace, review.name
        )?;
        out.push_str(&pair(compiled)?);
    }
    Ok(out)
}

fn row(review: &Review) -> [String; 5] {
    let template = review.compiled.as_ref().map(|compiled| &compiled.workload["spec"]["podGroupTemplates"][0]);
    let gang = template.map(|template| &template["schedulingPolicy"]["gang"]["minCount"]);
    let (policy, size) = match gang {
        None => ("-", "-".to_owned()),
        Some(size) if size.is_null() => ("basic", "-".to_owned()),
        Some(size) => ("gang", size.to_string()),
    };
    let verdict = match (review.verdict.allowed, review.opted_in) {
        (false, _) => "denied",
        (true, true) => "allowed",
        (true, false) => "untouched",
    };
    [format!("{}/{}", review.namespace, review.name), verdict.to_owned(), policy.to_owned(), size, review.file.clone()]
}

fn write_row(out: &mut String, row: &[String; 5], widths: &[usize], style: Style) -> std::fmt::Result {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        write!(line, "{cell:width$}  ")?;
    }
    writeln!(out, "{style}{}{style:#}", line.trim_end())
}

fn yaml(review: &Review) -> anyhow::Result<String> {
    let summary = json!({
        "statefulSet": format!("{}/{}", review.namespace, review.name),
        "file": review.file,
        "optedIn": review.opted_in,
        "verdict": review.verdict,
    });
    let mut out = format!("---\n{}", document(&summary)?);
    if let Some(compiled) = &review.compiled {
        out.push_str("---\n");
        out.push_str(&pair(compiled)?);
    }
    Ok(out)
}

/// The Workload and the PodGroup as two YAML documents.
fn pair(compiled: &Compiled) -> anyhow::Result<String> {
    Ok(format!("{}---\n{}", document(&compiled.workload)?, document(&compiled.pod_group)?))
}

fn document(value: &serde_json::Value) -> anyhow::Result<String> {
    let mut text = serde_saphyr::to_string(value)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
