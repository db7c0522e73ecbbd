//! Runs every command of `README.md`, here and at the root, and fails where a README and the tool disagree.
//!
//! A block of the kind `console` is a transcript: `$` lines are run by a shell in the root of the project, and
//! what stands below each must be what it prints, the standard error included. A comment `<!-- given: … -->`
//! before a block says which cluster it is run against; [`given`] knows each of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cluster::cluster::{condition, policy, root};
use cluster::objects::{Carrier, Set, gang};
use cluster::{Cluster, Options};
use cluster_apiserver::{ADMIN, Resource, View};
use cluster_nodes::node::NodeShape;
use serde_json::Value;

const README: &str = include_str!("../README.md");
/// The project's.
const ROOT_README: &str = include_str!("../../README.md");
const MAKEFILE: &str = include_str!("../../Makefile");
const PATIENCE: Duration = Duration::from_mins(1);
/// With a UID that is always the same, the names that are made from it are, too.
const UID: &str = "11111111-2222-3333-4444-555555555555";

/// A command, and what the README says that it prints.
#[derive(Debug)]
struct Entry {
    file: &'static str,
    given: Option<&'static str>,
    line: usize,
    command: &'static str,
    expected: String,
}

fn entries(file: &'static str, readme: &'static str) -> Vec<Entry> {
    let (mut entries, mut given, mut in_block) = (Vec::<Entry>::new(), None, false);
    for (index, line) in readme.lines().enumerate() {
        match line {
            "```console" => in_block = true,
            "```" => (in_block, given) = (false, if in_block { None } else { given }),
            _ if in_block => match (line.strip_prefix("$ "), entries.last_mut()) {
                (Some(command), _) => {
                    let (given, expected) = (given.take(), String::new());
                    entries.push(Entry { file, given, line: index + 1, command, expected });
                }
                (None, Some(entry)) => {
                    entry.expected.push_str(line);
                    entry.expected.push('\n');
                }
                (None, None) => panic!("line {}: output of no command", index + 1),
            },
            _ => {
                if let Some(text) = line.strip_prefix("<!-- given: ").and_then(|rest| rest.strip_suffix(" -->")) {
                    given = Some(text);
                }
            }
        }
    }
    entries
}

/// A folder with a `kubectl` that runs the plugin as `kubectl` does, so that none needs to be installed.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("sts-scheduling-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let kubectl = folder.join("kubectl");
        let plugin = env!("CARGO_BIN_EXE_kubectl-sts_scheduling");
        let script = format!("#!/bin/sh\ntest \"$1\" = sts-scheduling || exit 127\nshift\nexec '{plugin}' \"$@\"\n");
        std::fs::write(&kubectl, script).unwrap();
        std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    /// What a command prints, in the root of the project.
    fn run(&self, command: &str) -> String {
        let path = format!("{}:{}", self.0.display(), std::env::var("PATH").unwrap_or_default());
        let output = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(root())
            .env("PATH", path)
            .env("KUBECONFIG", self.kubeconfig())
            .env("TMP", &self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over in a temporary folder does not matter.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How long ago something was is the one thing that no two runs share.
fn without_ages(text: &str) -> String {
    let line = |line: &str| match line.split_once(" ago  ") {
        Some((before, after)) => {
            format!("{}<age> ago  {after}", before.trim_end_matches(|c: char| c.is_ascii_alphanumeric()))
        }
        None => line.to_owned(),
    };
    text.lines().map(|text| line(text.trim_end()) + "\n").collect()
}

/// Where the README and the tool disagree, and what the tool prints.
fn disagreement(entry: &Entry, printed: &str) -> Option<String> {
    let differs = without_ages(&entry.expected) != without_ages(printed);
    differs.then(|| format!("{}:{}: $ {}\n{printed}", entry.file, entry.line, entry.command))
}

#[test]
fn each_offline_command_of_the_readme_prints_what_it_says() {
    let folder = Folder::new("offline");
    for (file, readme, least) in [("cli/README.md", README, 6), ("README.md", ROOT_README, 2)] {
        let offline: Vec<_> = entries(file, readme).into_iter().take_while(|entry| entry.given.is_none()).collect();
        let wrong: Vec<_> =
            offline.iter().filter_map(|entry| disagreement(entry, &folder.run(entry.command))).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(offline.len() >= least, "only {} commands were found in {file}", offline.len());
    }
}

#[test]
fn each_target_that_a_readme_names_is_one_of_the_makefile() {
    let targets: BTreeSet<_> = MAKEFILE.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    let package = include_str!("../../package/README.md");
    let mut found = 0;
    for readme in [README, ROOT_README, package] {
        // In a block of commands, or quoted.
        let named = readme.split(['`', '\n']).filter_map(|text| text.strip_prefix("make "));
        for target in named.filter_map(|rest| rest.split_whitespace().next()) {
            assert!(targets.contains(target), "make {target}");
            found += 1;
        }
    }
    assert!(found > 20, "only {found} were found");
}

/// One node, so that there is no choice where a pod goes.
fn options() -> Options {
    Options { nodes: vec![NodeShape::new("node-1", "8", "32Gi")], ..Options::default() }
}

fn is_ready(view: &View<'_>, replicas: i64) -> bool {
    let set = view.get(Resource::StatefulSets, "default", "web").unwrap_or_default();
    let groups = view.list(Resource::PodGroups);
    let scheduled =
        |group: &Value| condition(group, "PodGroupInitiallyScheduled").is_some_and(|(status, _)| status == "True");
    let bound = set["metadata"]["annotations"]["statefulset-scheduling.dev/pod-group"].is_string();
    let events = view.list(Resource::Events);
    let said = |reason: &str| events.iter().any(|event| event["reason"] == reason);
    let all = set["status"]["readyReplicas"] == replicas && groups.iter().all(scheduled) && bound;
    all && said("WorkloadCreated") && said("PodGroupCreated")
}

/// Brings a cluster into the state that the README speaks of.
async fn given(text: &str, cluster: &mut Cluster) {
    match text {
        "a cluster with web, a gang of three" => {
            let set = Set::new("web", 3).with_intent(Carrier::Annotation, &gang());
            let set = set.with("/metadata/uid", UID.into());
            let label = "/spec/template/metadata/labels/statefulset-scheduling.dev~1managed";
            // Stored as it was admitted.
            cluster.api.put(Resource::StatefulSets, set.with(label, "true".into()).object());
            cluster.api.wait_for(|view| is_ready(view, 3), PATIENCE).await;
        }
        "the controllers are down, and web is scaled to five" => {
            cluster.stop_statefulset_controller().await;
            cluster.stop_controller().await.unwrap();
            cluster.admin().scale("default", "web", 5).await.unwrap();
        }
        "the policies are deleted" => cluster.deploy_policies(false).unwrap(),
        other => panic!("nobody knows how to give {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_of_the_readme_that_asks_a_cluster_prints_what_it_says() {
    let folder = Folder::new("cluster");
    let mut cluster = Cluster::start(policy().unwrap(), options()).await.unwrap();
    cluster.api.write_kubeconfig(ADMIN, &folder.kubeconfig()).unwrap();
    let (mut count, mut wrong) = (0, Vec::new());
    for entry in entries("cli/README.md", README).into_iter().skip_while(|entry| entry.given.is_none()) {
        if let Some(text) = entry.given {
            given(text, &mut cluster).await;
        }
        let printed = tokio::task::block_in_place(|| folder.run(entry.command));
        wrong.extend(disagreement(&entry, &printed));
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 4, "only {count} commands were found");
}

#[test]
fn the_help_of_each_command_has_examples_and_tells_of_the_exit_status() {
    let folder = Folder::new("help");
    for command in ["lint", "compile", "opt-in", "status", "doctor"] {
        let help = folder.run(&format!("kubectl sts-scheduling {command} --help"));
        assert!(help.contains("Examples:\n") && help.contains("Exit status:\n"), "{help}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.run(&format!("kubectl sts-scheduling completions {shell}"));
        assert!(script.contains("opt-in") && script.contains("doctor"), "{shell}");
    }
    assert!(README.contains("kubectl sts-scheduling completions"));
}

#[test]
fn what_is_edited_in_place_is_in_the_file() {
    let folder = Folder::new("in-place");
    let file = folder.0.join("etcd.yaml");
    std::fs::copy(Path::new(root()).join("fixtures/real-world/etcd.yaml"), &file).unwrap();
    let said = folder.run(&format!("kubectl sts-scheduling opt-in {} --gang --in-place", file.display()));
    assert!(said.starts_with("added metadata.annotations["), "{said}");
    let linted = folder.run(&format!("kubectl sts-scheduling lint {}", file.display()));
    assert!(linted.contains("1 of them opted in: 0 errors, 0 warnings"), "{linted}");
    let again = folder.run(&format!("kubectl sts-scheduling opt-in {} --gang; echo $?", file.display()));
    assert!(again.contains("has an intent already") && again.ends_with("\n2\n"), "{again}");
}
