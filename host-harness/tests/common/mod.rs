//! What the tests of the module share.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use host_harness::manifest;
use host_harness::module::Policy;
use serde_json::Value;

/// The module, compiled once.
pub(crate) static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let path = std::env::var_os("POLICY_WASM").map_or_else(|| root().join("policy.wasm"), PathBuf::from);
    Policy::from_file(&path).expect("the module is built before the tests")
});

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace")
}

/// The manifests under a folder of the fixtures, in order.
pub(crate) fn manifests(folder: &str) -> Vec<PathBuf> {
    let folder = root().join("fixtures").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    assert!(!paths.is_empty(), "{} has no manifests", folder.display());
    paths
}

/// The StatefulSets of a manifest.
pub(crate) fn statefulsets(path: &Path) -> Vec<manifest::Object> {
    let objects = manifest::read(path).unwrap_or_else(|error| panic!("{error}"));
    objects.into_iter().filter(manifest::Object::is_statefulset).collect()
}

/// What the module answers to an admission request.
pub(crate) fn validate(payload: &[u8]) -> Value {
    let answer = POLICY.call("validate", payload).unwrap_or_else(|error| panic!("no answer: {error}"));
    serde_json::from_slice(&answer).expect("the answer is JSON")
}
