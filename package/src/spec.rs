//! Manifests and indexes of the OCI image specification, as far as they are used here. The fields are in the order
//! of canonical JSON, so that [`bytes`] writes what other clients write as well.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::digest;

/// The media type of a manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of an index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of an image's configuration.
pub const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// The media type of an image's layer.
pub const IMAGE_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The media type of a module's configuration.
pub const WASM_CONFIG: &str = "application/vnd.wasm.config.v1+json";
/// The media type of a module.
pub const WASM_LAYER: &str = "application/vnd.wasm.content.layer.v1+wasm";

/// What is known of a blob or a manifest before it is there.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Its digest.
    pub digest: String,
    /// Its media type.
    pub media_type: String,
    /// What it runs on, for a manifest in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Its size.
    pub size: u64,
}

/// What an image runs on.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Platform {
    /// The processor.
    pub architecture: String,
    /// The operating system.
    pub os: String,
}

/// A manifest: a configuration and layers.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// For people and catalogues.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The configuration.
    pub config: Descriptor,
    /// The layers.
    pub layers: Vec<Descriptor>,
    /// [`MANIFEST`], or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Always 2.
    pub schema_version: u8,
}

/// An index: a manifest for each platform.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// For people and catalogues.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The manifests.
    pub manifests: Vec<Descriptor>,
    /// [`INDEX`], or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Always 2.
    pub schema_version: u8,
}

impl Descriptor {
    /// Describes bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        let size = bytes.len() as u64;
        Self { digest: digest::sha256(bytes), media_type: media_type.to_owned(), platform: None, size }
    }

    /// Compares bytes with what was said about them.
    ///
    /// # Errors
    /// Their size or their digest is another one.
    pub fn verify(&self, what: &str, bytes: &[u8]) -> Result<()> {
        digest::verify(what, bytes, &self.digest, self.size)
    }

    /// Compares the media type.
    ///
    /// # Errors
    /// It is another one.
    pub fn expect(&self, what: &str, media_type: &str) -> Result<()> {
        ensure!(self.media_type == media_type, "{what}: its media type is {} instead of {media_type}", self.media_type);
        Ok(())
    }
}

impl Manifest {
    /// A manifest of a configuration and layers.
    pub fn new(config: Descriptor, layers: Vec<Descriptor>, annotations: BTreeMap<String, String>) -> Self {
        Self { annotations, config, layers, media_type: Some(MANIFEST.to_owned()), schema_version: 2 }
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// It is none.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        read(bytes, MANIFEST)
    }
}

impl Index {
    /// An index of manifests.
    pub fn new(manifests: Vec<Descriptor>, annotations: BTreeMap<String, String>) -> Self {
        Self { annotations, manifests, media_type: Some(INDEX.to_owned()), schema_version: 2 }
    }

    /// Reads an index.
    ///
    /// # Errors
    /// It is none.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        read(bytes, INDEX)
    }
}

/// A manifest, an index or a configuration as it is stored.
///
/// # Errors
/// None that can happen: everything in them has a form in JSON.
pub fn bytes(value: &impl Serialize) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(value)?)
}

fn read<T: DeserializeOwned>(bytes: &[u8], media_type: &str) -> Result<T> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        schema_version: u8,
        media_type: Option<String>,
    }
    let head: Head = serde_json::from_slice(bytes).context("no manifest")?;
    ensure!(head.schema_version == 2, "the manifest's schema version is {} instead of 2", head.schema_version);
    let told = head.media_type.as_deref().unwrap_or(media_type);
    ensure!(told == media_type, "the manifest's media type is {told} instead of {media_type}");
    serde_json::from_slice(bytes).context("the manifest cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_written_in_canonical_json() {
        let manifest = Manifest::new(
            Descriptor::of(WASM_CONFIG, b"{}"),
            vec![Descriptor::of(WASM_LAYER, b"")],
            BTreeMap::from([("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1".to_owned())]),
        );
        let written = String::from_utf8(bytes(&manifest).expect("JSON")).expect("text");
        let expected = concat!(
            r#"{"annotations":{"a":"1","b":"2"},"#,
            r#""config":{"digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","#,
            r#""mediaType":"application/vnd.wasm.config.v1+json","size":2},"#,
            r#""layers":[{"digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","#,
            r#""mediaType":"application/vnd.wasm.content.layer.v1+wasm","size":0}],"#,
            r#""mediaType":"application/vnd.oci.image.manifest.v1+json","schemaVersion":2}"#,
        );
        assert_eq!(written, expected);
        assert_eq!(Manifest::read(written.as_bytes()).expect("a manifest"), manifest);
    }

    #[test]
    fn an_index_is_no_manifest() {
        let index = bytes(&Index::new(Vec::new(), BTreeMap::new())).expect("JSON");
        let error = Manifest::read(&index).expect_err("an index").to_string();
        assert!(error.contains(INDEX) && error.contains(MANIFEST), "{error}");
    }
}
