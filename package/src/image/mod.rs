//! The controller's image: one layer with one static binary.

mod elf;
mod layer;
mod layout;
mod registry;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

pub use self::elf::Architecture;
pub use self::layout::Layout;
pub use self::registry::{publish, pull};
use crate::source::Source;
use crate::spec::{self, Descriptor, IMAGE_CONFIG, IMAGE_LAYER, Index, MANIFEST, Manifest, Platform};

/// The binary's name, in the image's root folder.
pub const BINARY: &str = "statefulset-scheduling-controller";
/// Who it runs as: nobody in particular, and not root.
const USER: &str = "65532:65532";

/// An image's configuration, as far as it is used here.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Config {
    architecture: String,
    #[serde(rename = "config")]
    process: Process,
    created: String,
    history: Vec<History>,
    os: String,
    rootfs: Rootfs,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Process {
    entrypoint: Vec<String>,
    exposed_ports: BTreeMap<String, BTreeMap<String, String>>,
    labels: BTreeMap<String, String>,
    user: String,
    working_dir: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct History {
    created: String,
    created_by: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Rootfs {
    diff_ids: Vec<String>,
    r#type: String,
}

/// The image of a binary for each architecture. The same source and binaries give the same image.
///
/// # Errors
/// A binary is not static, or not for the architecture it is given for; or there is none.
pub fn build(source: &Source, binaries: &BTreeMap<Architecture, Vec<u8>>) -> Result<Layout> {
    if binaries.is_empty() {
        bail!("an image has a binary for at least one architecture");
    }
    let labels = labels(source);
    let mut layout = Layout::default();
    let mut manifests = Vec::new();
    for (&architecture, binary) in binaries {
        architecture.check(binary).with_context(|| format!("the binary for {architecture}"))?;
        let layer = layer::of(binary, source.epoch())?;
        let config = Config {
            architecture: architecture.to_string(),
            process: Process {
                entrypoint: vec![format!("/{BINARY}")],
                exposed_ports: BTreeMap::from([("8080/tcp".to_owned(), BTreeMap::new())]),
                labels: labels.clone(),
                user: USER.to_owned(),
                working_dir: "/".to_owned(),
            },
            created: source.time.to_string(),
            history: vec![History { created: source.time.to_string(), created_by: "make image".to_owned() }],
            os: "linux".to_owned(),
            rootfs: Rootfs { diff_ids: vec![layer.uncompressed], r#type: "layers".to_owned() },
        };
        let config = layout.add(IMAGE_CONFIG, spec::bytes(&config)?);
        let layer = layout.add(IMAGE_LAYER, layer.gzip);
        let manifest = Manifest::new(config, vec![layer], BTreeMap::new());
        let platform = Platform { architecture: architecture.to_string(), os: "linux".to_owned() };
        manifests.push(Descriptor { platform: Some(platform), ..layout.add(MANIFEST, spec::bytes(&manifest)?) });
    }
    layout.index = spec::bytes(&Index::new(manifests, labels))?;
    layout.verify()?;
    Ok(layout)
}

/// What the image says of itself, in the names that the specification gives.
fn labels(source: &Source) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        ("title", BINARY.to_owned()),
        ("description", "Keeps one Workload and one PodGroup for each StatefulSet that opted in".to_owned()),
        ("created", source.time.to_string()),
        ("licenses", "Apache-2.0".to_owned()),
        ("source", source.repository.clone()),
        ("url", source.repository.clone()),
        ("vendor", "The statefulset-scheduling authors".to_owned()),
        ("version", source.version.clone()),
    ]);
    if let (Some(commit), false) = (&source.commit, source.modified) {
        labels.insert("revision", commit.clone());
    }
    labels.into_iter().map(|(name, text)| (format!("org.opencontainers.image.{name}"), text)).collect()
}
