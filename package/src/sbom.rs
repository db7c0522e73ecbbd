//! What reaches a binary, as an SPDX 2.3 document.

use anyhow::Result;
use serde_json::{Value, json};

use crate::crates::{Crate, Crates, Key};
use crate::digest;
use crate::source::Source;

/// What the document is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its name: a file, or an image.
    pub name: &'a str,
    /// The Rust target it is built for.
    pub target: &'a str,
    /// Its SHA-256, where it is built already.
    pub sha256: Option<&'a str>,
    /// The compiler: its standard library is linked as well.
    pub compiler: &'a str,
}

const BINARY: &str = "SPDXRef-Binary";
const STD: &str = "SPDXRef-RustStd";
const NOTHING: &str = "NOASSERTION";

/// The document. The same source and subject give the same bytes: its name space is the digest of what it says.
///
/// # Errors
/// None that can happen: everything in it has a form in JSON.
pub fn document(source: &Source, subject: Subject<'_>, crates: &Crates) -> Result<Vec<u8>> {
    let mut packages = vec![binary(source, subject), standard_library(subject)];
    packages.extend(crates.all.iter().map(|(key, found)| package(source, key, found)));
    let mut relationships = vec![
        relationship("SPDXRef-DOCUMENT", "DESCRIBES", BINARY),
        relationship(BINARY, "GENERATED_FROM", &id(&crates.root)),
        relationship(BINARY, "STATIC_LINK", STD),
    ];
    for (key, found) in &crates.all {
        relationships.extend(found.dependencies.iter().map(|on| relationship(&id(key), "DEPENDS_ON", &id(on))));
    }
    let mut document = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("{}-{}", subject.name, source.version),
        "creationInfo": {
            "created": source.time.to_string(),
            "creators": [format!("Tool: package-{}", env!("CARGO_PKG_VERSION"))],
        },
        "packages": packages,
        "relationships": relationships,
    });
    let said = digest::hex(&serde_json::to_vec(&document)?);
    document["documentNamespace"] = json!(format!("{}/spdx/{}-{said}", source.repository, subject.name));
    let mut text = serde_json::to_vec_pretty(&document)?;
    text.push(b'\n');
    Ok(text)
}

fn binary(source: &Source, subject: Subject<'_>) -> Value {
    let mut package = json!({
        "SPDXID": BINARY,
        "name": subject.name,
        "versionInfo": source.version,
        "supplier": NOTHING,
        "downloadLocation": NOTHING,
        "filesAnalyzed": false,
        "licenseConcluded": NOTHING,
        "licenseDeclared": "Apache-2.0",
        "copyrightText": NOTHING,
        "comment": format!("Built for {}.", subject.target),
    });
    if let Some(sha256) = subject.sha256 {
        package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": sha256}]);
    }
    package
}

fn standard_library(subject: Subject<'_>) -> Value {
    json!({
        "SPDXID": STD,
        "name": "rust-std",
        "versionInfo": subject.compiler,
        "supplier": "Organization: The Rust Project",
        "downloadLocation": "https://github.com/rust-lang/rust",
        "filesAnalyzed": false,
        "licenseConcluded": NOTHING,
        "licenseDeclared": "MIT OR Apache-2.0",
        "copyrightText": NOTHING,
        "comment": format!("With the C library that it carries for {}.", subject.target),
    })
}

fn package(source: &Source, (name, version): &Key, found: &Crate) -> Value {
    let location = if found.registry {
        format!("https://crates.io/crates/{name}/{version}")
    } else {
        let commit = source.commit.as_ref().map(|commit| format!("@{commit}")).unwrap_or_default();
        format!("git+{}.git{commit}", source.repository)
    };
    let mut package = json!({
        "SPDXID": id(&(name.clone(), version.clone())),
        "name": name,
        "versionInfo": version,
        "supplier": NOTHING,
        "downloadLocation": location,
        "filesAnalyzed": false,
        "licenseConcluded": NOTHING,
        "licenseDeclared": found.license.as_deref().unwrap_or(NOTHING),
        "copyrightText": NOTHING,
    });
    if let Some(checksum) = &found.checksum {
        package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": checksum}]);
    }
    if found.registry {
        // A plus sign is a space to some readers of such a locator.
        let locator = format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"));
        package["externalRefs"] = json!([{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator,
        }]);
    }
    package
}

fn relationship(from: &str, kind: &str, to: &str) -> Value {
    json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to})
}

/// An identifier has letters, digits, dots and hyphens.
fn id((name, version): &Key) -> String {
    let allowed = |char: char| if char.is_ascii_alphanumeric() || char == '.' { char } else { '-' };
    format!("SPDXRef-{}", format!("{name}-{version}").chars().map(allowed).collect::<String>())
}
