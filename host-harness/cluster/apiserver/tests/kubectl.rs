//! `kubectl`, as it is, against the server.
//!
//! Needs `kubectl` in the PATH (Debian: `apt-get install kubernetes-client`) and the feature `kubectl`,
//! without which cargo leaves this file out: `cargo test -p cluster-apiserver --features kubectl`.
//! With the feature and without the program it fails, and says so; it never passes for want of it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use cluster_apiserver::{ADMIN, ApiServer, Config, Profile, Resource};
use serde_json::{Value, json};

/// `kubectl` with a kubeconfig and a cache of its own.
struct Kubectl {
    directory: PathBuf,
    flags: Vec<&'static str>,
}

impl Kubectl {
    fn new(server: &ApiServer, test: &str) -> Self {
        let found =
            Command::new("kubectl").args(["version", "--client"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(
            found.is_ok_and(|status| status.success()),
            "kubectl is not in the PATH: `make test` installs it (Debian: apt-get install kubernetes-client); without it, \
             test without the feature kubectl"
        );
        let directory = std::env::temp_dir().join(format!("cluster-apiserver-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a temporary directory can be made");
        server.write_kubeconfig(ADMIN, &directory.join("config")).expect("a file can be written");
        Self { directory, flags: Vec::new() }
    }

    /// Runs it with this on its standard input. Output and errors.
    async fn run(&self, arguments: &[&str], input: Option<&Value>) -> (bool, String, String) {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.directory.join("config"))
            .arg("--cache-dir")
            .arg(self.directory.join("cache"))
            .args(arguments)
            .args(&self.flags)
            .env("HOME", &self.directory)
            .stdin(Stdio::null());
        if let Some(input) = input {
            let file = self.directory.join("input.json");
            std::fs::write(&file, input.to_string()).expect("a file can be written");
            command.arg("-f").arg(file);
        }
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.expect("it does not panic").expect("kubectl starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    async fn ok(&self, arguments: &[&str]) -> String {
        let (success, output, errors) = self.run(arguments, None).await;
        assert!(success, "kubectl {arguments:?}: {errors}");
        output
    }

    async fn apply(&self, manifest: &Value) -> String {
        let (success, output, errors) = self.run(&["apply"], Some(manifest)).await;
        assert!(success, "kubectl apply: {errors}");
        output + &errors
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        // What is left over in a temporary directory does not matter.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn set() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "replicas": 2, "serviceName": "web", "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "registry.example/app:1" }] },
            },
        },
    })
}

fn objects() -> Value {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web-0", "namespace": "default", "labels": { "app": "web" } },
        "spec": {
            "containers": [{ "name": "main", "image": "registry.example/app:1" }],
            "schedulingGroup": { "podGroupName": "web" },
        },
    });
    let workload = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "controllerRef": { "apiGroup": "apps", "kind": "StatefulSet", "name": "web" },
            "podGroupTemplates": [{ "name": "web", "schedulingPolicy": { "gang": { "minCount": 2 } } }],
        },
    });
    let group = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "workloadRef": { "workloadName": "web", "templateName": "web" },
            "schedulingPolicy": { "gang": { "minCount": 2 } },
        },
    });
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" },
        "status": {
            "capacity": { "cpu": "4" }, "nodeInfo": { "kubeletVersion": "v1.37.0" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "web.1", "namespace": "default" },
        "involvedObject": { "kind": "StatefulSet", "name": "web", "namespace": "default" },
        "reason": "Greeted", "message": "hello", "type": "Normal", "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": [set(), pod, workload, group, node, event] })
}

#[tokio::test(flavor = "multi_thread")]
async fn get_apply_scale_describe_and_delete() {
    let server = ApiServer::start(Config::default()).await.expect("there is a port");
    let kubectl = Kubectl::new(&server, "life");
    let created = kubectl.apply(&objects()).await;
    for name in ["statefulset.apps/web", "pod/web-0", "podgroup.scheduling.k8s.io/web", "node/n1", "event/web.1"] {
        assert!(created.contains(&format!("{name} created")), "{created}");
    }
    assert!(kubectl.apply(&set()).await.contains("statefulset.apps/web unchanged"));

    let table = kubectl.ok(&["get", "sts,pods,workloads,podgroups,nodes,events"]).await;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        &["NAME", "READY", "AGE"][..],
        &["statefulset.apps/web", "0/2"],
        &["pod/web-0", "0/1", "Pending", "0"],
        &["workload.scheduling.k8s.io/web", "StatefulSet/web", "web:", "gang/2"],
        &["podgroup.scheduling.k8s.io/web", "web", "gang/2", "<none>"],
        &["node/n1", "Ready", "<none>"],
    ] {
        assert!(rows.iter().any(|found| found.starts_with(row)), "{row:?} is not in\n{table}");
    }
    assert!(table.contains("Greeted") && table.contains("statefulset/web"), "{table}");
    let yaml = kubectl.ok(&["get", "sts", "web", "-o", "yaml"]).await;
    assert!(yaml.contains("podManagementPolicy: Parallel") && yaml.contains("revisionHistoryLimit: 10"), "{yaml}");
    assert_eq!(kubectl.ok(&["get", "pods", "-l", "app=web", "-o", "name"]).await.trim(), "pod/web-0");
    assert_eq!(kubectl.ok(&["get", "pods", "--field-selector", "spec.nodeName=n1", "-o", "name"]).await.trim(), "");

    kubectl.ok(&["scale", "sts", "web", "--replicas=4"]).await;
    let replicas = |server: &ApiServer| {
        server.get(Resource::StatefulSets, "default", "web").expect("a set")["spec"]["replicas"].clone()
    };
    assert_eq!(replicas(&server), 4);
    let mut changed = set();
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/app:2".into();
    changed["spec"]["replicas"] = 5.into();
    assert!(kubectl.apply(&changed).await.contains("configured"));
    assert_eq!(replicas(&server), 5);
    let (success, output, errors) = kubectl.run(&["apply", "--server-side", "--force-conflicts"], Some(&set())).await;
    assert!(success && output.contains("serverside-applied"), "{output}{errors}");
    let (success, _, errors) = kubectl
        .run(
            &["apply"],
            Some(&json!({
                "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload",
                "metadata": { "name": "web", "namespace": "default" }, "spec": { "podGroupTemplates": [] },
            })),
        )
        .await;
    assert!(!success && errors.contains("field is immutable") || errors.contains("must specify"), "{errors}");
    assert_eq!(replicas(&server), 2);

    let mut event = server.get(Resource::Events, "default", "web.1").expect("an event");
    let uid = &server.get(Resource::StatefulSets, "default", "web").expect("a set")["metadata"]["uid"];
    event["involvedObject"]["uid"] = uid.clone();
    server.put(Resource::Events, event);
    let described = kubectl.ok(&["describe", "sts", "web"]).await;
    assert!(described.contains("Greeted") && described.contains("Replicas:"), "{described}");
    assert!(kubectl.ok(&["describe", "pod", "web-0"]).await.contains("registry.example/app:1"));
    assert!(kubectl.ok(&["describe", "podgroup", "web"]).await.contains("Min Count"));
    assert!(kubectl.ok(&["describe", "node", "n1"]).await.contains("Non-terminated Pods"));
    kubectl.ok(&["label", "sts", "web", "tier=front"]).await;
    kubectl.ok(&["annotate", "sts", "web", "a=b"]).await;
    kubectl.ok(&["patch", "sts", "web", "-p", r#"{"spec":{"minReadySeconds":1}}"#]).await;

    kubectl.ok(&["delete", "sts", "web", "--cascade=orphan", "--wait=false"]).await;
    let waiting = server.get(Resource::StatefulSets, "default", "web").expect("it waits");
    assert_eq!(waiting["metadata"]["finalizers"], json!(["orphan"]));
    kubectl.ok(&["delete", "sts", "web", "--cascade=foreground", "--wait=false"]).await;
    let waiting = server.get(Resource::StatefulSets, "default", "web").expect("it waits");
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    kubectl.ok(&["delete", "sts", "web", "--cascade=background"]).await;
    assert!(server.get(Resource::StatefulSets, "default", "web").is_none());
    kubectl.ok(&["delete", "pod", "web-0"]).await;
    kubectl.ok(&["api-resources"]).await;
    kubectl.ok(&["create", "namespace", "demo"]).await;
    assert!(kubectl.ok(&["get", "namespaces"]).await.contains("demo"));
    kubectl.ok(&["delete", "namespace", "demo", "--wait=false"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_field_of_the_kep_is_refused_by_a_server_without_it() {
    let mut gang = set();
    gang["spec"]["scheduling"] = json!({ "schedulingPolicy": { "gang": {} } });
    for (profile, stored) in [(Profile::V1_37, false), (Profile::Kep, true)] {
        let server = ApiServer::start(Config { profile, ..Config::default() }).await.expect("there is a port");
        let mut kubectl = Kubectl::new(&server, if stored { "kep" } else { "v137" });
        let (success, _, errors) = kubectl.run(&["apply"], Some(&gang)).await;
        if stored {
            assert!(success, "{errors}");
        } else {
            // Before 1.25 it is a warning, not an error.
            assert!(errors.contains("unknown field \"spec.scheduling\""), "{errors}");
            kubectl.flags.push("--validate=false");
            kubectl.apply(&gang).await;
        }
        let found = server.get(Resource::StatefulSets, "default", "web").expect("it is there");
        assert_eq!(found["spec"]["scheduling"].is_object(), stored);
    }
}
