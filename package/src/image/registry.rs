//! The image in a registry.

use std::collections::BTreeMap;

use anyhow::Result;

use super::Layout;
use crate::registry::Registry;
use crate::spec::{IMAGE_CONFIG, IMAGE_LAYER, INDEX, Index, MANIFEST, Manifest};

/// Pushes an image and tells its digest.
///
/// # Errors
/// The registry does not take it.
pub async fn publish(registry: &Registry, layout: &Layout) -> Result<String> {
    let manifests = layout.manifests()?;
    // What a manifest describes must be there before it.
    for (_, manifest) in &manifests {
        for blob in manifest.layers.iter().chain([&manifest.config]) {
            registry.push_blob(layout.blobs[&blob.digest].clone()).await?;
        }
    }
    for (descriptor, _) in &manifests {
        registry.push_by_digest(layout.blobs[&descriptor.digest].clone(), MANIFEST).await?;
    }
    registry.push(layout.index.clone(), INDEX).await
}

/// Pulls an image for all its platforms and verifies it, with `expected` also the digest.
///
/// # Errors
/// It is not there, or something differs from what was said of it.
pub async fn pull(registry: &Registry, expected: Option<&str>) -> Result<Layout> {
    let mut layout = Layout { index: registry.pull(expected).await?, blobs: BTreeMap::new() };
    for descriptor in Index::read(&layout.index)?.manifests {
        descriptor.expect("the manifest", MANIFEST)?;
        let bytes = registry.pull_described(&descriptor).await?;
        let manifest = Manifest::read(&bytes)?;
        layout.blobs.insert(descriptor.digest, bytes);
        manifest.config.expect("the configuration", IMAGE_CONFIG)?;
        let config = registry.pull_blob("the configuration", &manifest.config).await?;
        layout.blobs.insert(manifest.config.digest, config);
        for layer in manifest.layers {
            layer.expect("the layer", IMAGE_LAYER)?;
            let bytes = registry.pull_blob("the layer", &layer).await?;
            layout.blobs.insert(layer.digest, bytes);
        }
    }
    layout.verify()?;
    Ok(layout)
}
