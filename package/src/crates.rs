//! Which crates reach a binary.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::source::cargo;

/// A crate, by name and version.
pub type Key = (String, String);

/// A crate that reaches a binary.
#[derive(Clone, Debug, Default)]
pub struct Crate {
    /// Its licence, as an SPDX expression.
    pub license: Option<String>,
    /// Whether it comes from crates.io; otherwise it is in this repository.
    pub registry: bool,
    /// The SHA-256 of its archive in the registry, from the lock file.
    pub checksum: Option<String>,
    /// The crates it is linked with.
    pub dependencies: Vec<Key>,
}

/// The crates that reach a binary, and the one it is built from.
#[derive(Clone, Debug)]
pub struct Crates {
    /// The crate it is built from.
    pub root: Key,
    /// All of them.
    pub all: BTreeMap<Key, Crate>,
}

#[derive(Deserialize)]
struct Described {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

impl Crates {
    /// The crates that `package` is linked with for `target`: normal dependencies with the features of a build of
    /// this package alone. Macros run in the compiler and reach nothing.
    ///
    /// # Errors
    /// The lock file does not fit the workspace, or cargo cannot be asked.
    pub fn reaching(root: &Path, package: &str, target: &str) -> Result<Self> {
        // The features of the whole workspace are in `metadata`; those of one package's build only `tree` tells.
        let edges = ["--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", " {p}"];
        let arguments = [&["tree", "--locked", "--package", package, "--target", target], &edges[..]].concat();
        let mut crates = Self::from_tree(&String::from_utf8(cargo(root, &arguments)?)?)?;
        let arguments = ["metadata", "--locked", "--format-version", "1", "--filter-platform", target];
        let described: Described = serde_json::from_slice(&cargo(root, &arguments)?)?;
        let checksums = checksums(&std::fs::read_to_string(root.join("Cargo.lock"))?);
        for package in described.packages {
            let key = (package.name, package.version);
            if let Some(found) = crates.all.get_mut(&key) {
                // The slash is how crates wrote it before there were expressions.
                found.license = package.license.map(|license| license.replace('/', " OR "));
                found.registry = package.source.is_some();
                found.checksum = checksums.get(&key).cloned();
            }
        }
        Ok(crates)
    }

    /// Reads a tree of `cargo tree --prefix depth --format ' {p}'`: the depth, the name, the version.
    fn from_tree(tree: &str) -> Result<Self> {
        let mut all = BTreeMap::<Key, Crate>::new();
        let mut path = Vec::<Key>::new();
        for line in tree.lines() {
            let mut words = line.split_whitespace();
            let (Some(depth), Some(name), Some(version)) = (words.next(), words.next(), words.next()) else {
                bail!("no line of a tree: {line:?}");
            };
            let key = (name.to_owned(), version.trim_start_matches('v').to_owned());
            path.truncate(depth.parse().with_context(|| format!("no line of a tree: {line:?}"))?);
            if let Some(parent) = path.last().and_then(|parent| all.get_mut(parent))
                && !parent.dependencies.contains(&key)
            {
                parent.dependencies.push(key.clone());
            }
            all.entry(key.clone()).or_default();
            path.push(key);
        }
        for found in all.values_mut() {
            found.dependencies.sort();
        }
        Ok(Self { root: path.into_iter().next().context("an empty tree")?, all })
    }
}

/// The checksums of a lock file: cargo writes each key on a line of its own, and the checksum last.
fn checksums(lock: &str) -> BTreeMap<Key, String> {
    let (mut name, mut version, mut checksums) = ("", "", BTreeMap::new());
    for line in lock.lines() {
        let Some((key, value)) = line.split_once(" = ") else { continue };
        let value = value.trim_matches('"');
        match key {
            "name" => name = value,
            "version" => version = value,
            "checksum" => {
                checksums.insert((name.to_owned(), version.to_owned()), value.to_owned());
            }
            _ => {}
        }
    }
    checksums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        (name.to_owned(), "1.0.0".to_owned())
    }

    #[test]
    fn a_tree_is_read_with_its_edges() {
        let tree = "0 a v1.0.0 (/somewhere)\n1 b v1.0.0\n2 c v1.0.0\n1 c v1.0.0 (*)\n1 d v1.0.0\n";
        let crates = Crates::from_tree(tree).expect("a tree");
        assert_eq!(crates.root, key("a"));
        assert_eq!(crates.all[&key("a")].dependencies, [key("b"), key("c"), key("d")]);
        assert_eq!(crates.all[&key("b")].dependencies, [key("c")]);
        assert_eq!(crates.all.len(), 4);
    }

    #[test]
    fn checksums_belong_to_a_name_and_a_version() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"b\"\n\
                    version = \"1.0.0\"\nsource = \"registry\"\nchecksum = \"00ff\"\n";
        assert_eq!(checksums(lock).into_iter().collect::<Vec<_>>(), [(key("b"), "00ff".to_owned())]);
    }
}
