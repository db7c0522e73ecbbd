//! What the doctor finds.

use std::fmt::Write as _;

use crate::style::{BOLD, GREEN, RED, YELLOW};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Nothing is wrong.
    Good,
    /// It may be wrong, or part of it does not work.
    Doubtful,
    /// It does not work.
    Broken,
}

/// What is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub health: Health,
    /// What it is.
    pub what: String,
    /// What to do about it; empty where nothing is wrong.
    pub repair: String,
}

impl Finding {
    /// Nothing is wrong.
    pub fn good(what: impl Into<String>) -> Self {
        Self { health: Health::Good, what: what.into(), repair: String::new() }
    }

    /// It may be wrong.
    pub fn doubtful(what: impl Into<String>, repair: impl Into<String>) -> Self {
        Self { health: Health::Doubtful, what: what.into(), repair: repair.into() }
    }

    /// It is wrong.
    pub fn broken(what: impl Into<String>, repair: impl Into<String>) -> Self {
        Self { health: Health::Broken, what: what.into(), repair: repair.into() }
    }
}

/// Findings as text.
pub(super) fn print(findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let (style, mark) = match finding.health {
            Health::Good => (GREEN, "ok     "),
            Health::Doubtful => (YELLOW, "warning"),
            Health::Broken => (RED, "error  "),
        };
        // Writing to a text cannot fail.
        let _ = writeln!(out, "{style}{mark}{style:#}  {}", finding.what);
        if !finding.repair.is_empty() {
            let _ = writeln!(out, "         {BOLD}repair{BOLD:#}: {}", finding.repair);
        }
    }
    let count = |health| findings.iter().filter(|finding| finding.health == health).count();
    let (good, doubtful, broken) = (count(Health::Good), count(Health::Doubtful), count(Health::Broken));
    let _ = writeln!(out, "\n{good} ok, {doubtful} to look at, {broken} broken");
    out
}
