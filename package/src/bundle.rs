//! The module and its papers: what `make package` leaves in `dist/`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::annotate::annotate;
use crate::crates::Crates;
use crate::metadata::{Metadata, VERSION};
use crate::provenance::{self, Build};
use crate::sbom::{self, Subject};
use crate::source::{Source, tool};
use crate::{checksums, digest, file};

/// The annotated module.
pub const MODULE: &str = "policy.wasm";
/// What reaches the module.
pub const MODULE_SBOM: &str = "policy.spdx.json";
/// What reaches the controller.
pub const CONTROLLER_SBOM: &str = "controller.spdx.json";
/// Where these come from.
pub const PROVENANCE: &str = "policy.provenance.json";
/// Their checksums.
pub const CHECKSUMS: &str = "SHA256SUMS";

const MODULE_TARGET: &str = "wasm32-wasip1";
const CONTROLLER_TARGET: &str = "x86_64-unknown-linux-musl";

/// The metadata of a file, for this version of the policy.
///
/// # Errors
/// It cannot be read, or is of another version.
pub fn metadata(path: &Path, version: &str) -> Result<Metadata> {
    let text = String::from_utf8(file::read(path)?)?;
    let metadata = Metadata::from_yaml(&text).with_context(|| path.display().to_string())?;
    let told = metadata.annotations.get(VERSION).map(String::as_str);
    ensure!(
        told == Some(version),
        "{}: {VERSION} is {} instead of {version}",
        path.display(),
        told.unwrap_or("missing")
    );
    Ok(metadata)
}

/// Writes the module and its papers, and tells the files' checksums.
///
/// # Errors
/// Something cannot be read or written, or the metadata does not fit.
pub fn write(
    source: &Source,
    module: &Path,
    metadata: &Metadata,
    builder: Option<String>,
    folder: &Path,
) -> Result<BTreeMap<String, String>> {
    let annotated = annotate(&file::read(module)?, metadata).with_context(|| module.display().to_string())?;
    let sha256 = digest::hex(&annotated);
    let compiler = tool(&source.root, "rustc")?;
    let subject = Subject { name: MODULE, target: MODULE_TARGET, sha256: Some(&sha256), compiler: &compiler };
    let crates = Crates::reaching(&source.root, "statefulset-scheduling-policy", MODULE_TARGET)?;
    let module_sbom = sbom::document(source, subject, &crates)?;

    let name = "statefulset-scheduling-controller";
    let subject = Subject { name, target: CONTROLLER_TARGET, sha256: None, compiler: &compiler };
    let crates = Crates::reaching(&source.root, name, CONTROLLER_TARGET)?;
    let controller_sbom = sbom::document(source, subject, &crates)?;

    let mut files = BTreeMap::from([
        (MODULE.to_owned(), annotated),
        (MODULE_SBOM.to_owned(), module_sbom),
        (CONTROLLER_SBOM.to_owned(), controller_sbom),
    ]);
    let build = Build {
        subjects: sums(&files),
        commands: &["make package"],
        tools: BTreeMap::from([
            ("rustc".to_owned(), compiler.clone()),
            ("wasm-opt".to_owned(), tool(&source.root, "wasm-opt")?),
        ]),
        builder,
    };
    files.insert(PROVENANCE.to_owned(), provenance::statement(source, &build)?);
    let sums = sums(&files);
    for (name, bytes) in files {
        file::write(&folder.join(name), &bytes)?;
    }
    // Last: whoever finds them finds what they are of.
    file::write(&folder.join(CHECKSUMS), checksums::file(&sums).as_bytes())?;
    Ok(sums)
}

fn sums(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, String> {
    files.iter().map(|(name, bytes)| (name.clone(), digest::hex(bytes))).collect()
}
