//! Writes the metadata into the module, as `kwctl annotate` does.

use anyhow::{Context as _, Result, bail, ensure};
use wasm_encoder::{CustomSection, Module, RawSection};
use wasmparser::{Encoding, Parser, Payload};

use crate::metadata::Metadata;

/// The section that the engine looks for.
pub const SECTION: &str = "io.kubewarden.metadata";

/// The module with the metadata as its last section; metadata that was there is replaced. Everything else is
/// copied as it is, so one module and one metadata always give the same bytes.
///
/// # Errors
/// The bytes are no WebAssembly module.
pub fn annotate(module: &[u8], metadata: &Metadata) -> Result<Vec<u8>> {
    let mut annotated = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.context("no WebAssembly module")?;
        match &payload {
            Payload::Version { encoding, .. } => {
                ensure!(*encoding == Encoding::Module, "a WebAssembly component, and no module");
            }
            Payload::CustomSection(section) if section.name() == SECTION => {}
            // A function's body is a part of the code section.
            Payload::CodeSectionEntry(_) => {}
            _ => {
                if let Some((id, range)) = payload.as_section() {
                    annotated.section(&RawSection { id, data: &module[range] });
                }
            }
        }
    }
    annotated.section(&CustomSection { name: SECTION.into(), data: metadata.section()?.into() });
    Ok(annotated.finish())
}

/// The metadata in a module.
///
/// # Errors
/// The bytes are no WebAssembly module, or it has no metadata, or more than one, or one that cannot be read.
pub fn metadata(module: &[u8]) -> Result<Metadata> {
    let mut found = None;
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::CustomSection(section) = payload.context("no WebAssembly module")?
            && section.name() == SECTION
            && found.replace(section.data()).is_some()
        {
            bail!("the module has more than one section {SECTION}");
        }
    }
    let section = found.with_context(|| format!("the module has no section {SECTION}"))?;
    Metadata::from_section(section).with_context(|| format!("the module's section {SECTION}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(version: &str) -> Metadata {
        let text = format!("rules: []\nmutating: true\nannotations: {{io.kubewarden.policy.version: {version}}}\n");
        Metadata::from_yaml(&text).expect("metadata")
    }

    /// A type, a function, and a section of somebody else.
    fn module() -> Vec<u8> {
        let mut module = Module::new();
        module.section(&RawSection { id: 1, data: &[1, 0x60, 0, 0] });
        module.section(&RawSection { id: 3, data: &[1, 0] });
        module.section(&RawSection { id: 10, data: &[1, 2, 0, 0x0b] });
        module.section(&CustomSection { name: "other".into(), data: b"kept"[..].into() });
        module.finish()
    }

    #[test]
    fn the_metadata_follows_the_module_as_it_was() {
        let annotated = annotate(&module(), &some("1.0.0")).expect("a module");
        assert!(annotated.starts_with(&module()));
        assert_eq!(metadata(&annotated).expect("metadata"), some("1.0.0"));
    }

    #[test]
    fn a_second_annotation_replaces_the_first() {
        let once = annotate(&module(), &some("2.0.0")).expect("a module");
        let first = annotate(&module(), &some("1.0.0")).expect("a module");
        let twice = annotate(&first, &some("2.0.0")).expect("a module");
        assert_eq!(twice, once);
    }

    #[test]
    fn a_module_without_metadata_is_told_from_what_is_no_module() {
        assert!(metadata(&module()).expect_err("none").to_string().contains("has no section"));
        assert!(format!("{:#}", metadata(b"text").expect_err("text")).contains("no WebAssembly module"));
        assert!(annotate(b"", &some("1.0.0")).is_err());
    }

    #[test]
    fn doubled_metadata_is_an_error() {
        let mut doubled = annotate(&module(), &some("1.0.0")).expect("a module");
        let section = doubled[module().len()..].to_vec();
        doubled.extend(section);
        assert!(metadata(&doubled).expect_err("two").to_string().contains("more than one"));
    }
}
