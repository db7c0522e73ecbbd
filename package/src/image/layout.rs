//! An image as an OCI layout.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use flate2::read::GzDecoder;

use super::Config;
use crate::spec::{Descriptor, IMAGE_CONFIG, IMAGE_LAYER, Index, MANIFEST, Manifest};
use crate::{digest, file};

const MARK: &str = "oci-layout";
const MARK_TEXT: &str = "{\"imageLayoutVersion\":\"1.0.0\"}";
const INDEX_FILE: &str = "index.json";
const BLOBS: &str = "blobs/sha256";
/// No binary is as large: a layer that unpacks to more is no layer of this repository.
const MAX_LAYER: u64 = 1024 * 1024 * 1024;

/// An image: its index, and by their digests the blobs that it leads to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Layout {
    /// The index; its digest is the image's.
    pub index: Vec<u8>,
    /// Manifests, configurations and layers.
    pub blobs: BTreeMap<String, Vec<u8>>,
}

impl Layout {
    /// The image's digest.
    pub fn digest(&self) -> String {
        digest::sha256(&self.index)
    }

    /// Adds a blob and describes it.
    pub fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Descriptor {
        let descriptor = Descriptor::of(media_type, &bytes);
        self.blobs.insert(descriptor.digest.clone(), bytes);
        descriptor
    }

    /// The manifests, in the index's order.
    ///
    /// # Errors
    /// The index or a manifest cannot be read, or is not what was said of it.
    pub fn manifests(&self) -> Result<Vec<(Descriptor, Manifest)>> {
        let manifests = Index::read(&self.index)?.manifests.into_iter().map(|descriptor| {
            descriptor.expect("the manifest", MANIFEST)?;
            let manifest = Manifest::read(self.blob("the manifest", &descriptor)?)?;
            Ok((descriptor, manifest))
        });
        manifests.collect()
    }

    /// Follows every digest from the index to the archives in the layers.
    ///
    /// # Errors
    /// Something differs from what was said of it, is missing, or is more than the index leads to.
    pub fn verify(&self) -> Result<()> {
        let mut seen = std::collections::BTreeSet::new();
        for (descriptor, manifest) in self.manifests()? {
            manifest.config.expect("the configuration", IMAGE_CONFIG)?;
            let config = self.blob("the configuration", &manifest.config)?;
            let config: Config = serde_json::from_slice(config).context("the configuration cannot be read")?;
            let platform = descriptor.platform.context("a manifest in the index has no platform")?;
            ensure!(
                platform.architecture == config.architecture && platform.os == config.os,
                "the image for {}/{} is in the index as one for {}/{}",
                config.os,
                config.architecture,
                platform.os,
                platform.architecture
            );
            let ids = &config.rootfs.diff_ids;
            ensure!(ids.len() == manifest.layers.len(), "{} layers instead of {}", manifest.layers.len(), ids.len());
            for (layer, id) in manifest.layers.iter().zip(ids) {
                layer.expect("the layer", IMAGE_LAYER)?;
                let mut archive = Vec::new();
                let packed = self.blob("the layer", layer)?;
                GzDecoder::new(packed).take(MAX_LAYER).read_to_end(&mut archive).context("the layer is no gzip")?;
                let actual = digest::sha256(&archive);
                ensure!(actual == *id, "the layer's archive: its digest is {actual} instead of {id}");
                seen.insert(layer.digest.clone());
            }
            seen.extend([descriptor.digest, manifest.config.digest]);
        }
        let strange = self.blobs.keys().find(|digest| !seen.contains(*digest));
        ensure!(strange.is_none(), "the index does not lead to {}", strange.map_or("", String::as_str));
        Ok(())
    }

    fn blob(&self, what: &str, descriptor: &Descriptor) -> Result<&[u8]> {
        let bytes =
            self.blobs.get(&descriptor.digest).with_context(|| format!("{what} {} is missing", descriptor.digest))?;
        descriptor.verify(what, bytes)?;
        Ok(bytes)
    }

    /// Reads and verifies the layout in a folder.
    ///
    /// # Errors
    /// It is none, or something in it differs from what was said of it.
    pub fn read(folder: &Path) -> Result<Self> {
        let mark = file::read(&folder.join(MARK))?;
        ensure!(mark == MARK_TEXT.as_bytes(), "{} is no layout of version 1.0.0", folder.display());
        let mut layout = Self { index: file::read(&folder.join(INDEX_FILE))?, blobs: BTreeMap::new() };
        let blobs = folder.join(BLOBS);
        for entry in fs::read_dir(&blobs).with_context(|| blobs.display().to_string())? {
            let entry = entry?;
            let digest = format!("sha256:{}", entry.file_name().display());
            layout.blobs.insert(digest, file::read(&entry.path())?);
        }
        layout.verify().with_context(|| folder.display().to_string())?;
        Ok(layout)
    }

    /// Writes the layout to a folder, in place of one that is there.
    ///
    /// # Errors
    /// It cannot be written, or the folder is something else.
    pub fn write(&self, folder: &Path) -> Result<()> {
        ensure!(!folder.exists() || folder.join(MARK).exists(), "{} is there and is no layout", folder.display());
        let aside = file::aside(folder)?;
        let written = self.write_aside(&aside, folder);
        if written.is_err() {
            // The first error is the one to tell.
            let _ = fs::remove_dir_all(&aside);
        }
        written.with_context(|| folder.display().to_string())
    }

    /// Writes the layout to a folder and then puts that in the place of another one.
    fn write_aside(&self, aside: &Path, folder: &Path) -> Result<()> {
        for (digest, bytes) in &self.blobs {
            file::write(&aside.join(BLOBS).join(digest::digits(digest)?), bytes)?;
        }
        file::write(&aside.join(INDEX_FILE), &self.index)?;
        file::write(&aside.join(MARK), MARK_TEXT.as_bytes())?;
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::rename(aside, folder)?;
        Ok(())
    }
}
