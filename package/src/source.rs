//! What is packaged: which commit, of when, with which lock file.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::{digest, file};

/// The state of the repository.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its root.
    pub root: PathBuf,
    /// Where it is published.
    pub repository: String,
    /// The version of all that is in it.
    pub version: String,
    /// The commit, where it is known.
    pub commit: Option<String>,
    /// Whether files differ from the commit.
    pub modified: bool,
    /// The time that everything packaged carries.
    pub time: jiff::Timestamp,
    /// The lock file's SHA-256.
    pub lock: String,
}

#[derive(Deserialize)]
struct Workspace {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    repository: Option<String>,
}

impl Source {
    /// Looks at the repository that `root` is the root of. The time is `SOURCE_DATE_EPOCH` or the commit's.
    ///
    /// # Errors
    /// It is no workspace of this repository, or has no time.
    pub fn of(root: &Path) -> Result<Self> {
        let arguments = ["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"];
        let workspace: Workspace = serde_json::from_slice(&cargo(root, &arguments)?)?;
        let policy = workspace.packages.into_iter().find(|package| package.name == "statefulset-scheduling-policy");
        let policy = policy.with_context(|| format!("{} has no policy", root.display()))?;
        // Outside git nothing is known of a commit, and that is what is said.
        let commit = git(root, &["rev-parse", "HEAD"]).ok();
        let modified = commit.is_some() && !git(root, &["status", "--porcelain", "--untracked-files=no"])?.is_empty();
        let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(seconds) => seconds,
            Err(_) if commit.is_some() => git(root, &["log", "-1", "--format=%ct"])?,
            Err(_) => bail!("no commit to take the time of: set SOURCE_DATE_EPOCH"),
        };
        let time = jiff::Timestamp::from_second(seconds.parse().context("the seconds of the time")?)?;
        Ok(Self {
            root: root.to_owned(),
            repository: policy.repository.context("the workspace names no repository")?,
            version: policy.version,
            commit,
            modified,
            time,
            lock: digest::hex(&file::read(&root.join("Cargo.lock"))?),
        })
    }

    /// The time in seconds, for formats that have no time before 1970.
    pub fn epoch(&self) -> u64 {
        u64::try_from(self.time.as_second()).unwrap_or_default()
    }
}

/// What cargo writes about the workspace.
///
/// # Errors
/// It cannot be run, or fails.
pub fn cargo(root: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo).current_dir(root).args(arguments))
}

/// The first line of what a tool says about its version.
///
/// # Errors
/// It cannot be run, or fails.
pub fn tool(root: &Path, name: &str) -> Result<String> {
    let text = run(Command::new(name).current_dir(root).arg("--version"))?;
    Ok(String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned())
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let text = run(Command::new("git").arg("-C").arg(root).args(arguments))?;
    Ok(String::from_utf8(text)?.trim().to_owned())
}

fn run(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("{}", command.get_program().display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}", errors.trim());
    Ok(output.stdout)
}
