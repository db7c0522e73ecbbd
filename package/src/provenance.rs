//! Where something comes from, as an in-toto statement with SLSA's provenance. It is not signed: it tells what a
//! build did, and a rebuild of the commit shows whether that is so.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use crate::source::Source;

/// A build and what came of it.
#[derive(Clone, Debug)]
pub struct Build<'a> {
    /// The names of what was built, with their SHA-256.
    pub subjects: BTreeMap<String, String>,
    /// The commands that build it from the source.
    pub commands: &'a [&'a str],
    /// The tools that had a part, with their versions.
    pub tools: BTreeMap<String, String>,
    /// Who built it, as a URI; the repository's own Makefile where nothing is said.
    pub builder: Option<String>,
}

/// The statement. The same source and build give the same bytes.
///
/// # Errors
/// None that can happen: everything in it has a form in JSON.
pub fn statement(source: &Source, build: &Build<'_>) -> Result<Vec<u8>> {
    let described = format!("{}/blob/main/package/README.md", source.repository);
    let builder = build.builder.clone().unwrap_or_else(|| format!("{}/blob/main/Makefile", source.repository));
    let subjects: Vec<_> =
        build.subjects.iter().map(|(name, sha256)| json!({"name": name, "digest": {"sha256": sha256}})).collect();
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": described,
                "externalParameters": {"repository": source.repository, "commands": build.commands},
                "internalParameters": {"tools": build.tools, "SOURCE_DATE_EPOCH": source.epoch()},
                "resolvedDependencies": dependencies(source),
            },
            "runDetails": {"builder": {"id": builder}},
        },
    });
    let mut text = serde_json::to_vec_pretty(&statement)?;
    text.push(b'\n');
    Ok(text)
}

fn dependencies(source: &Source) -> Vec<Value> {
    let repository = format!("git+{}.git", source.repository);
    let commit = source.commit.as_ref().map(|commit| {
        let mut dependency = json!({"uri": format!("{repository}@{commit}"), "digest": {"gitCommit": commit}});
        if source.modified {
            // The commit alone would then be a false witness.
            dependency["annotations"] = json!({"modified": true});
        }
        dependency
    });
    let lock =
        json!({"name": "Cargo.lock", "uri": format!("{repository}#Cargo.lock"), "digest": {"sha256": source.lock}});
    commit.into_iter().chain([lock]).collect()
}
