//! From the built module to one that was pulled, verified and loaded: a real registry, a real engine.

mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use host_harness::module::Policy;
use serde_json::{Value, json};

use crate::server::Server;

/// A folder of a test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("package").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("what an earlier run left");
    }
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// Runs the tool in the repository, as the Makefile does.
fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_package"));
    // A proxy does not reach the loopback interface, and credentials of whoever runs the test are none of its business.
    command.env("NO_PROXY", "127.0.0.1").env("DOCKER_CONFIG", env!("CARGO_TARGET_TMPDIR"));
    command.env_remove("REGISTRY_USERNAME").env_remove("SOURCE_DATE_EPOCH");
    if !root().join(".git").exists() {
        command.env("SOURCE_DATE_EPOCH", "1700000000");
    }
    command.current_dir(root()).args(arguments).output().expect("the tool runs")
}

/// What the tool prints when it succeeds.
fn ok(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// What it prints when it refuses.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("text")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// What `make package` does once the module is built.
fn package(folder: &Path) {
    let module = std::env::var("POLICY_WASM").unwrap_or_else(|_| text(&root().join("policy.wasm")).to_owned());
    ok(&["module", "--module", &module, "--out", text(folder)]);
}

/// Annotates the smallest module and publishes it; tells the annotated module, the reference and the digest.
fn publish_small(server: &Server, folder: &Path) -> (Vec<u8>, String, String) {
    let metadata = package::bundle::metadata(&root().join("policy/metadata.yml"), env!("CARGO_PKG_VERSION"));
    let module = package::annotate::annotate(b"\0asm\x01\0\0\0", &metadata.expect("metadata")).expect("a module");
    let path = folder.join("small.wasm");
    fs::write(&path, &module).expect("a file");
    let reference = server.reference("small:v1");
    let digest = ok(&["publish", "--plain-http", "--ref", &reference, "--module", text(&path)]);
    (module, reference, digest)
}

#[test]
fn a_packaged_module_is_published_pulled_verified_and_loaded() {
    let folder = folder("round-trip");
    package(&folder);
    let packaged = folder.join(package::bundle::MODULE);

    let server = Server::start(&folder.join("registry"));
    let reference = server.reference("policies/statefulset-scheduling:v0.1.0");
    let published = ok(&["publish", "--plain-http", "--ref", &reference, "--module", text(&packaged)]);
    let pulled = folder.join("pulled.wasm");
    let pull = ["pull", "--plain-http", "--ref", &reference, "--digest", &published, "--out", text(&pulled)];
    assert_eq!(ok(&pull), published);
    assert_eq!(fs::read(&pulled).expect("a file"), fs::read(&packaged).expect("a file"));
    // A reference can name the digest as well.
    let named = format!("{}@{published}", server.reference("policies/statefulset-scheduling"));
    assert_eq!(ok(&["pull", "--plain-http", "--ref", &named, "--out", text(&pulled)]), published);
    // The same module again has the same digest.
    assert_eq!(ok(&["publish", "--plain-http", "--ref", &reference, "--module", text(&packaged)]), published);

    let manifest: Value = serde_json::from_slice(&server.blob(&published)).expect("JSON");
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v1+json");
    assert_eq!(manifest["layers"][0]["mediaType"], "application/vnd.wasm.content.layer.v1+wasm");
    assert_eq!(manifest["annotations"]["io.kubewarden.policy.title"], "statefulset-scheduling");

    let policy = Policy::from_file(&pulled).expect("the engine loads it");
    let protocol = policy.call("protocol_version", b"").expect("an answer");
    let metadata = package::annotate::metadata(&fs::read(&pulled).expect("a file")).expect("metadata");
    assert_eq!(
        serde_json::from_slice::<Value>(&protocol).expect("JSON"),
        serde_json::to_value(metadata.protocol_version).expect("JSON"),
    );
    let answer = policy.call("validate_settings", b"{}").expect("an answer");
    assert_eq!(serde_json::from_slice::<Value>(&answer).expect("JSON")["valid"], json!(true));
}

#[test]
fn another_digest_than_the_expected_one_is_refused() {
    let folder = folder("wrong-digest");
    let server = Server::start(&folder.join("registry"));
    let (_, reference, digest) = publish_small(&server, &folder);
    let out = folder.join("out.wasm");
    let wrong = format!("sha256:{}", "0".repeat(64));
    let error = refused(&["pull", "--plain-http", "--ref", &reference, "--digest", &wrong, "--out", text(&out)]);
    assert!(error.contains(&wrong) && error.contains(&digest), "{error}");
    let error = refused(&["pull", "--plain-http", "--ref", &reference, "--digest", "latest", "--out", text(&out)]);
    assert!(error.contains("no digest"), "{error}");
    assert!(!out.exists());
}

#[test]
fn a_truncated_blob_is_refused() {
    let folder = folder("truncated");
    let server = Server::start(&folder.join("registry"));
    let (module, reference, _) = publish_small(&server, &folder);
    let layer = package::digest::sha256(&module);
    server.replace(&layer, &module[..module.len() - 7]);
    let out = folder.join("out.wasm");
    let error = refused(&["pull", "--plain-http", "--ref", &reference, "--out", text(&out)]);
    let expected = format!("the layer {layer}: {} bytes instead of {}", module.len() - 7, module.len());
    assert!(error.contains(&expected), "{error}");
    assert!(!out.exists());
}

#[test]
fn a_changed_blob_is_refused_and_what_was_pulled_before_stays() {
    let folder = folder("changed");
    let server = Server::start(&folder.join("registry"));
    let (module, reference, _) = publish_small(&server, &folder);
    let out = folder.join("out.wasm");
    ok(&["pull", "--plain-http", "--ref", &reference, "--out", text(&out)]);
    let mut changed = module.clone();
    *changed.last_mut().expect("a byte") ^= 1;
    let layer = package::digest::sha256(&module);
    server.replace(&layer, &changed);
    let error = refused(&["pull", "--plain-http", "--ref", &reference, "--out", text(&out)]);
    assert!(error.contains(&layer) && error.contains(&package::digest::sha256(&changed)), "{error}");
    assert_eq!(fs::read(&out).expect("a file"), module);
}

#[test]
fn a_changed_manifest_is_refused() {
    let folder = folder("changed-manifest");
    let server = Server::start(&folder.join("registry"));
    let (_, reference, digest) = publish_small(&server, &folder);
    let manifest = String::from_utf8(server.blob(&digest)).expect("text");
    server.replace(&digest, manifest.replace("Scheduling", "Scheming").as_bytes());
    let out = folder.join("out.wasm");
    let error = refused(&["pull", "--plain-http", "--ref", &reference, "--digest", &digest, "--out", text(&out)]);
    assert!(error.contains(&reference), "{error}");
    assert!(!out.exists());
}

#[test]
fn a_module_without_metadata_is_not_published() {
    let folder = folder("without-metadata");
    let server = Server::start(&folder.join("registry"));
    let path = folder.join("bare.wasm");
    fs::write(&path, b"\0asm\x01\0\0\0").expect("a file");
    let reference = server.reference("bare:v1");
    let error = refused(&["publish", "--plain-http", "--ref", &reference, "--module", text(&path)]);
    assert!(error.contains("no section io.kubewarden.metadata"), "{error}");
}

#[test]
fn an_image_is_published_and_pulled_for_all_its_platforms() {
    let folder = folder("image");
    for (name, machine) in [("amd64", 62), ("arm64", 183)] {
        fs::write(folder.join(name), static_binary(machine)).expect("a file");
    }
    let amd64 = format!("amd64={}", text(&folder.join("amd64")));
    let arm64 = format!("arm64={}", text(&folder.join("arm64")));
    let layout = folder.join("layout");
    let image = ["image", "--binary", &amd64, "--binary", &arm64, "--tool", "rustc", "--out", text(&layout)];
    let built = ok(&image);
    // Built again, it is the same.
    assert_eq!(ok(&image), built);
    let provenance = json(&folder.join("layout.provenance.json"));
    assert_eq!(format!("sha256:{}", provenance["subject"][0]["digest"]["sha256"].as_str().expect("a digest")), built);

    let server = Server::start(&folder.join("registry"));
    let reference = server.reference("controller:v0.1.0");
    assert_eq!(ok(&["publish-image", "--plain-http", "--ref", &reference, "--layout", text(&layout)]), built);
    let pulled = folder.join("pulled");
    let pull = ["pull-image", "--plain-http", "--ref", &reference, "--digest", &built, "--out", text(&pulled)];
    assert_eq!(ok(&pull), built);
    let layout = package::image::Layout::read(&layout).expect("a layout");
    assert_eq!(package::image::Layout::read(&pulled).expect("a layout"), layout);

    let manifests = layout.manifests().expect("manifests");
    let platforms: Vec<_> = manifests
        .iter()
        .map(|(manifest, _)| manifest.platform.as_ref().expect("a platform").architecture.as_str())
        .collect();
    assert_eq!(platforms, ["amd64", "arm64"]);
    for (_, manifest) in &manifests {
        assert_eq!(manifest.layers.len(), 1);
        let config: Value = serde_json::from_slice(&layout.blobs[&manifest.config.digest]).expect("JSON");
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"], json!(["/statefulset-scheduling-controller"]));
    }

    // A module is no image, and an image is no module.
    let error = refused(&["pull", "--plain-http", "--ref", &reference, "--out", text(&folder.join("out.wasm"))]);
    assert!(error.contains("application/vnd.oci.image.index.v1+json"), "{error}");
    // A truncated layer is refused, and the image that was pulled before stays.
    let layer = &manifests[0].1.layers[0].digest;
    server.replace(layer, &layout.blobs[layer][..100]);
    let error = refused(&pull);
    assert!(error.contains(layer.as_str()) && error.contains("100 bytes instead of"), "{error}");
    assert_eq!(package::image::Layout::read(&pulled).expect("a layout"), layout);
}

#[test]
fn the_papers_of_a_package_fit_each_other_and_are_the_same_each_time() {
    let (first, second) = (folder("papers-1"), folder("papers-2"));
    package(&first);
    package(&second);
    let sums = fs::read_to_string(first.join(package::bundle::CHECKSUMS)).expect("checksums");
    assert_eq!(fs::read_to_string(second.join(package::bundle::CHECKSUMS)).expect("checksums"), sums);
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", "--quiet", package::bundle::CHECKSUMS]).current_dir(&first);
    assert!(check.status().expect("sha256sum").success());

    let module = package::digest::hex(&fs::read(first.join(package::bundle::MODULE)).expect("the module"));
    let provenance = json(&first.join(package::bundle::PROVENANCE));
    let subjects = provenance["subject"].as_array().expect("subjects");
    assert!(subjects.contains(&json!({"name": package::bundle::MODULE, "digest": {"sha256": module}})));
    for name in [package::bundle::MODULE_SBOM, package::bundle::CONTROLLER_SBOM] {
        let sbom = json(&first.join(name));
        let packages: Vec<_> =
            sbom["packages"].as_array().expect("packages").iter().map(|found| &found["SPDXID"]).collect();
        for relationship in sbom["relationships"].as_array().expect("relationships") {
            assert!(packages.contains(&&relationship["relatedSpdxElement"]), "{name}: {relationship}");
        }
        for found in sbom["packages"].as_array().expect("packages") {
            assert_ne!(found["licenseDeclared"], "NOASSERTION", "{name}: {found}");
        }
    }
    let sbom = fs::read_to_string(first.join(package::bundle::MODULE_SBOM)).expect("the SBOM");
    assert!(sbom.contains("pkg:cargo/serde_json@") && !sbom.contains("pkg:cargo/kube@"));
}

/// A header of a static ELF for a machine: as much as the packaging looks at.
fn static_binary(machine: u8) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..6].copy_from_slice(b"\x7fELF\x02\x01");
    header[18] = machine;
    // Long enough that a part of the layer is no whole one.
    header.extend((0..4096_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()));
    header
}
