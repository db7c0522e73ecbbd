//! `kubectl`, as it is, against the cluster that `make cluster` leaves running.
//!
//! Needs `kubectl` in the PATH and the feature `kubectl`, without which cargo leaves this file out. With the
//! feature and without the program it fails, and says so; it never passes for want of it.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The cluster in a process of its own, with a folder that is removed with it.
struct Running {
    child: Child,
    folder: PathBuf,
    kubeconfig: PathBuf,
}

impl Running {
    /// Starts it, and returns when it says how it is reached.
    fn start(name: &str, arguments: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("statefulset-scheduling-{}-{name}", std::process::id()));
        let kubeconfig = folder.join("kubeconfig");
        let mut child = Command::new(env!("CARGO_BIN_EXE_cluster"))
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let said: Vec<_> = output.lines().map_while(Result::ok).take_while(|line| line != "ctrl-C ends it.").collect();
        let export = format!("  export KUBECONFIG={}", kubeconfig.display());
        assert!(said.contains(&export), "{said:?}");
        Self { child, folder, kubeconfig }
    }

    /// What `kubectl` says.
    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = Command::new("kubectl")
            .args(arguments)
            .arg("--cache-dir")
            .arg(self.folder.join("cache"))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.folder)
            .stdin(Stdio::null())
            .output()
            .expect("kubectl is in the PATH: `make setup` installs it (Debian: apt-get install kubernetes-client)");
        let text = |bytes| String::from_utf8(bytes).expect("it is text");
        let (said, errors) = (text(output.stdout), text(output.stderr));
        assert!(output.status.success(), "kubectl {arguments:?}: {said}{errors}");
        said
    }

    /// The table of `kubectl get`, each row as its words.
    fn rows(&self, arguments: &[&str]) -> Vec<Vec<String>> {
        let table = self.kubectl(arguments);
        // An empty line stands between the kinds.
        let lines = table.lines().filter(|line| !line.is_empty());
        lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    }

    /// Ends it as ctrl-C does.
    fn interrupt(mut self) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().expect("the signal is sent");
        assert!(sent.success());
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
        assert!(!self.kubeconfig.exists(), "the kubeconfig of a cluster that is gone is left");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended, and what is left over in a temporary folder does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Whether there is a row that begins so.
fn has(rows: &[Vec<String>], beginning: &[&str]) -> bool {
    rows.iter().any(|row| row.len() >= beginning.len() && row.iter().zip(beginning).all(|(cell, word)| cell == word))
}

#[test]
fn kubectl_shows_the_set_its_pods_its_workload_and_its_pod_group() {
    let cluster = Running::start("get", &[]);
    let rows = cluster.rows(&["get", "sts,pods,workloads,podgroups"]);
    for beginning in [
        &["NAME", "READY", "AGE"][..],
        &["statefulset.apps/web", "3/3"],
        &["NAME", "READY", "STATUS", "RESTARTS", "AGE"],
        &["pod/web-0", "1/1", "Running", "0"],
        &["pod/web-2", "1/1", "Running", "0"],
        &["NAME", "CONTROLLER", "TEMPLATES"],
        &["NAME", "WORKLOAD", "POLICY", "SCHEDULED"],
    ] {
        assert!(has(&rows, beginning), "{beginning:?} is not in {rows:?}");
    }
    let of = |kind: &str| rows.iter().find(|row| row[0].starts_with(kind)).expect("there is one");
    let (workload, group) = (of("workload.scheduling.k8s.io/web-"), of("podgroup.scheduling.k8s.io/web-"));
    assert_eq!(workload[1], "StatefulSet/web");
    assert_eq!(Some(&*group[1]), workload[0].strip_prefix("workload.scheduling.k8s.io/"));
    assert_eq!((&*group[2], &*group[3]), ("gang/3", "True"));
    let nodes = cluster.rows(&["get", "nodes", "-L", "topology.example.com/rack"]);
    assert!(has(&nodes, &["node-4", "Ready"]) && nodes[4].ends_with(&["b".to_owned()]), "{nodes:?}");
    let described = cluster.kubectl(&["describe", "sts", "web"]);
    assert!(described.contains("WorkloadCreated") && described.contains("PodGroupCreated"), "{described}");
    cluster.interrupt();
}

#[test]
fn kubectl_scales_and_deletes_with_everything_that_belongs_to_it() {
    let cluster = Running::start("scale", &["--profile", "kep"]);
    cluster.kubectl(&["scale", "sts", "web", "--replicas=5"]);
    let rolled = cluster.kubectl(&["rollout", "status", "sts", "web", "--timeout=60s"]);
    assert!(rolled.contains("5 new pods"), "{rolled}");
    let rows = cluster.rows(&["get", "sts,podgroups"]);
    assert!(has(&rows, &["statefulset.apps/web", "5/5"]), "{rows:?}");
    assert!(rows.iter().any(|row| row.get(2).is_some_and(|policy| policy == "gang/5")), "{rows:?}");
    // Behind the set's back, as kubectl does it where nothing else is said.
    cluster.kubectl(&["delete", "sts", "web"]);
    let asked = ["get", "sts,pods,workloads,podgroups", "-o", "name"];
    let deadline = Instant::now() + Duration::from_secs(30);
    while !cluster.kubectl(&asked).is_empty() {
        assert!(Instant::now() < deadline, "this is left: {}", cluster.kubectl(&asked));
    }
    cluster.interrupt();
}

#[test]
fn an_empty_cluster_takes_what_kubectl_applies() {
    let cluster = Running::start("apply", &["--empty"]);
    assert_eq!(cluster.kubectl(&["get", "sts,pods", "-o", "name"]), "");
    let manifest = cluster::cluster::root().join("fixtures/kep/annotation/zookeeper.yaml");
    let applied = cluster.kubectl(&["apply", "-f", manifest.to_str().expect("the path is text")]);
    assert!(applied.contains("statefulset.apps/zookeeper created"), "{applied}");
    let rolled = cluster.kubectl(&["rollout", "status", "sts", "zookeeper", "--timeout=60s"]);
    assert!(rolled.contains("3 new pods"), "{rolled}");
    // It goes with its dependents, and kubectl waits for that.
    cluster.kubectl(&["delete", "sts", "zookeeper", "--cascade=foreground"]);
    assert_eq!(cluster.kubectl(&["get", "sts,pods,workloads,podgroups", "-o", "name"]), "");
    cluster.interrupt();
}
