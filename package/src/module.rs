//! The module in a registry, as `kwctl push` stores it.

use anyhow::{Context as _, Result, ensure};

use crate::registry::Registry;
use crate::spec::{self, Descriptor, MANIFEST, Manifest, WASM_CONFIG, WASM_LAYER};
use crate::{annotate, digest};

/// What is said of a module beside its metadata: nothing.
const CONFIG: &[u8] = b"{}";

/// A module that was pulled, and the manifest it came with.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// The manifest's digest.
    pub digest: String,
    /// The module.
    pub module: Vec<u8>,
}

/// Pushes an annotated module and tells its manifest's digest.
///
/// # Errors
/// It is not annotated, or the registry does not take it.
pub async fn publish(registry: &Registry, module: Vec<u8>) -> Result<String> {
    let metadata = annotate::metadata(&module)?;
    let config = Descriptor::of(WASM_CONFIG, CONFIG);
    let layer = Descriptor::of(WASM_LAYER, &module);
    let manifest = Manifest::new(config, vec![layer], metadata.manifest_annotations());
    registry.push_blob(module).await?;
    registry.push_blob(CONFIG.to_vec()).await?;
    registry.push(spec::bytes(&manifest)?, MANIFEST).await
}

/// Pulls a module and verifies it: the manifest's digest where one is expected, the media types, the sizes and
/// digests of what it describes, and that the module has the metadata that the engine asks for.
///
/// # Errors
/// It is not there, or something differs; the error says what.
pub async fn pull(registry: &Registry, expected: Option<&str>) -> Result<Pulled> {
    let bytes = registry.pull(expected).await?;
    let manifest = Manifest::read(&bytes)?;
    manifest.config.expect("the configuration", WASM_CONFIG)?;
    ensure!(manifest.layers.len() == 1, "the manifest has {} layers instead of one", manifest.layers.len());
    let layer = &manifest.layers[0];
    layer.expect("the layer", WASM_LAYER)?;
    registry.pull_blob("the configuration", &manifest.config).await?;
    let module = registry.pull_blob("the layer", layer).await?;
    annotate::metadata(&module).with_context(|| format!("the layer {}", layer.digest))?;
    Ok(Pulled { digest: digest::sha256(&bytes), module })
}
