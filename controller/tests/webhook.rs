//! The webhook over real TLS, beside a simulated API server: what it answers, how it fails, and how it gets
//! its certificate.

#[path = "webhook_client/mod.rs"]
mod webhook_client;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::Parser as _;
use cluster_apiserver::{ApiServer, Config, Fault, Occasion, Resource, Verb, View};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use statefulset_scheduling_controller::args::{Mode, Program};
use statefulset_scheduling_controller::webhook::certificate::{Certificates, server_config};
use statefulset_scheduling_controller::webhook::issue::{Issued, LIFE, issue};
use statefulset_scheduling_controller::webhook::listener::{Limits, TlsListener};
use statefulset_scheduling_controller::webhook::metrics::Metrics;
use statefulset_scheduling_controller::webhook::run::Webhook;
use statefulset_scheduling_controller::webhook::self_signed::SelfSigned;
use statefulset_scheduling_controller::webhook::server::MAX_BODY;
use statefulset_scheduling_core::admission::{
    AdmissionReview, Call, DEFAULT_STATEFULSET_CONTROLLERS, Lookup, LookupError, Settings, Verdict, review,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::version;
use webhook_client::{NAME, connect, connect_with, head, probe, receive, send};

/// Long enough for any machine; nothing waits for its end.
const SOON: Duration = Duration::from_mins(1);
const USER: &str = "system:serviceaccount:statefulset-scheduling-system:statefulset-scheduling-webhook";
const SYSTEM: &str = "statefulset-scheduling-system";
const CONFIGURATION: &str = "statefulset-scheduling-webhook";
const SECRET: &str = "statefulset-scheduling-webhook-tls";
const CONFIGURATIONS: [Resource; 2] =
    [Resource::MutatingWebhookConfigurations, Resource::ValidatingWebhookConfigurations];

/// A webhook that runs. Dropping it ends it.
struct Running {
    address: SocketAddr,
    probes: SocketAddr,
    shutdown: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    async fn start(api: &ApiServer, arguments: &[&str], change: impl FnOnce(&mut Webhook)) -> Self {
        let usual = ["controller", "webhook", "--listen=127.0.0.1:0", "--tls-listen=127.0.0.1:0"];
        let program = Program::try_parse_from(usual.iter().chain(arguments)).expect("the arguments are valid");
        let Some(Mode::Webhook(arguments)) = program.mode else { panic!("the webhook was asked for") };
        let mut webhook = Webhook::bind(*arguments).await.expect("there are ports");
        change(&mut webhook);
        let (address, probes) = (webhook.address().expect("an address"), webhook.probes().expect("an address"));
        let (shutdown, ended) = oneshot::channel();
        let ended = async move {
            let _ = ended.await;
        };
        let task = tokio::spawn(webhook.run(api.client_as(USER), ended));
        Self { address, probes, shutdown, task }
    }

    async fn stop(self) {
        let _ = self.shutdown.send(());
        self.task.await.expect("it does not panic").expect("it ends well");
    }
}

/// Files that are removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let unique = format!("webhook-{}-{:x}", std::process::id(), fastrand::u64(..));
        let folder = std::env::temp_dir().join(unique);
        std::fs::create_dir(&folder).expect("a folder");
        Self(folder)
    }

    /// Puts a certificate there as the kubelet does: the files are links into a link, and that is swapped.
    fn mount(&self, issued: &Issued) {
        let version = format!("..{:x}", fastrand::u64(..));
        std::fs::create_dir(self.0.join(&version)).expect("a folder");
        let write =
            |name: &str, text: &str| std::fs::write(self.0.join(&version).join(name), text).expect("it is written");
        write("tls.crt", &issued.certificate);
        write("tls.key", &issued.key);
        let (swapped, data) = (self.0.join("..data_tmp"), self.0.join("..data"));
        std::os::unix::fs::symlink(&version, &swapped).expect("a link");
        std::fs::rename(&swapped, &data).expect("it is swapped");
        for name in ["tls.crt", "tls.key"] {
            if !self.0.join(name).exists() {
                std::os::unix::fs::symlink(Path::new("..data").join(name), self.0.join(name)).expect("a link");
            }
        }
    }

    fn arguments(&self) -> [String; 2] {
        let path = |name: &str| self.0.join(name).display().to_string();
        [format!("--tls-cert={}", path("tls.crt")), format!("--tls-key={}", path("tls.key"))]
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn issued() -> Issued {
    issue(NAME, SystemTime::now(), LIFE).expect("it can be made")
}

/// An API server, and a webhook with a certificate from files.
struct Bench {
    api: ApiServer,
    webhook: Running,
    authority: Vec<u8>,
    _folder: Folder,
}

impl Bench {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Webhook)) -> Self {
        let api = ApiServer::start(Config::default()).await.expect("a port");
        let (folder, issued) = (Folder::new(), issued());
        folder.mount(&issued);
        let [certificate, key] = folder.arguments();
        let webhook = Running::start(&api, &[&certificate, &key], change).await;
        let bench = Self { api, webhook, authority: issued.authority.into_bytes(), _folder: folder };
        bench.trusted().await;
        bench
    }

    /// Returns when the certificate is presented.
    async fn trusted(&self) {
        presents(self.webhook.address, &self.authority).await;
    }

    async fn ask(&self, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        send(self.webhook.address, &self.authority, "POST", path, body).await
    }

    /// The response to a request.
    async fn review(&self, path: &str, request: &Value) -> Value {
        let (code, body) = self.ask(path, &asked(request)).await;
        assert_eq!(code, 200, "{}", String::from_utf8_lossy(&body));
        let mut answer: Value = serde_json::from_slice(&body).expect("it is JSON");
        assert_eq!(
            (&answer["apiVersion"], &answer["kind"]),
            (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
        );
        assert_eq!(answer["response"]["uid"], request["uid"]);
        answer["response"].take()
    }

    fn reads(&self) -> u64 {
        self.api.count(Some(USER), Verb::Get, Resource::StatefulSets)
    }
}

/// Returns when a certificate of this authority is presented.
async fn presents(address: SocketAddr, authority: &[u8]) {
    let presented = async {
        // A handshake that fails is an answer, and takes its time.
        while connect(address, authority).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, presented).await.expect("the certificate is presented");
}

fn asked(request: &Value) -> Vec<u8> {
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
    review.to_string().into_bytes()
}

/// The request about a StatefulSet, as a server on the wire has it.
fn about_set(object: &Value, old: Option<&Value>) -> Value {
    json!({
        "uid": format!("uid-{}", object["metadata"]["name"]),
        "kind": { "group": "apps", "version": "v1", "kind": "StatefulSet" },
        "resource": { "group": "apps", "version": "v1", "resource": "statefulsets" },
        "name": object["metadata"]["name"], "namespace": "default",
        "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
        "userInfo": { "username": "kubernetes-admin" },
        "object": object, "oldObject": old, "dryRun": false, "options": null,
    })
}

fn about_pod(operation: &str) -> Value {
    let owner =
        json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s-1", "controller": true });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web-1", "labels": { "statefulset-scheduling.dev/managed": "true" }, "ownerReferences": [owner] },
        "spec": { "containers": [{ "name": "main", "image": "example.com/app:1" }] },
    });
    let (object, old) = if operation == "DELETE" { (Value::Null, pod) } else { (pod, Value::Null) };
    json!({
        "uid": "pod-1", "kind": { "group": "", "version": "v1", "kind": "Pod" },
        "resource": { "group": "", "version": "v1", "resource": "pods" },
        "name": "web-1", "namespace": "default", "operation": operation,
        "userInfo": { "username": DEFAULT_STATEFULSET_CONTROLLERS[0] }, "object": object, "oldObject": old,
    })
}

/// A StatefulSet with an intent, bound to a group up to this size.
fn set(replicas: i32, bound: Option<i32>) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "web", "namespace": "default", "uid": "s-1",
            "annotations": { "statefulset-scheduling.dev/scheduling": "schedulingPolicy: {gang: {}}" } },
        "spec": { "replicas": replicas, "serviceName": "web", "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "example.com/app:1" }] } } },
    });
    if let Some(size) = bound {
        let binding = json!({ "name": "web-g", "uid": "g-1", "replicas": size }).to_string();
        set["metadata"]["annotations"]["statefulset-scheduling.dev/pod-group"] = binding.into();
    }
    set
}

struct NoLookup;

impl Lookup for NoLookup {
    fn statefulset(&self, _: &str, _: &str) -> Result<String, LookupError> {
        Err(LookupError::NotFound)
    }
}

/// The core's own answer.
fn expected(body: &[u8]) -> (Verdict, Vec<u8>) {
    let text = std::str::from_utf8(body).expect("it is text");
    let call = Call::parse(text).expect("it is a review");
    let verdict = review(&call.request, &Settings::default(), &NoLookup);
    let uid: Value = serde_json::from_str(text).expect("it is JSON");
    let uid = uid["request"]["uid"].as_str().expect("it has one").to_owned();
    let answer = AdmissionReview::new(uid, verdict.clone()).and_then(|review| serde_json::to_vec(&review));
    (verdict, answer.expect("it can be written"))
}

/// The StatefulSets of the fixtures, with what they replace.
fn fixtures() -> Vec<(PathBuf, Value, Option<Value>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let read = |path: &Path| -> Option<Value> {
        let text = std::fs::read_to_string(path).ok()?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("it is YAML");
        documents.into_iter().find(|document| document["kind"] == "StatefulSet")
    };
    let mut fixtures = Vec::new();
    for folder in ["kep/field", "kep/annotation", "real-world", "real-world/with-intent", "refusals"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("it is there") {
            let path = entry.expect("it can be read").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(case) = name.strip_suffix(".yaml") else { continue };
            // What is expected of it, and what it was before, stand beside it.
            if matches!(case.rsplit_once('.'), Some((_, "expected" | "old"))) {
                continue;
            }
            let old = read(&path.with_file_name(format!("{case}.old.yaml")));
            fixtures.push((path.clone(), read(&path).expect("it is there"), old));
        }
    }
    fixtures
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fixtures_are_answered_byte_for_byte_as_the_core_answers_them() {
    let bench = Bench::start().await;
    let (mut allowed, mut changed, mut denied, mut warned) = (0, 0, 0, 0);
    for (path, object, old) in fixtures() {
        // A StatefulSet that is as it was is looked at, too.
        for old in [old.clone(), old.or_else(|| Some(object.clone()))] {
            let body = asked(&about_set(&object, old.as_ref()));
            let (verdict, expected) = expected(&body);
            let (code, answer) = bench.ask("/review?timeout=5s", &body).await;
            assert_eq!(code, 200);
            assert_eq!(String::from_utf8(answer), String::from_utf8(expected), "{}", path.display());
            denied += u32::from(!verdict.allowed);
            allowed += u32::from(verdict.allowed && verdict.patch.is_empty());
            changed += u32::from(!verdict.patch.is_empty());
            warned += u32::from(!verdict.warnings.is_empty());
        }
    }
    assert!(allowed > 0 && changed > 0 && denied > 0 && warned > 0, "{allowed} {changed} {denied} {warned}");
    assert_eq!(bench.reads(), 0, "a StatefulSet is all that there is to know");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_answered_for_one_read_of_its_set() {
    let bench = Bench::start().await;
    let create = async || bench.review("/review?timeout=5s", &about_pod("CREATE")).await;
    let held = create().await;
    assert_eq!((&held["allowed"], &held["status"]["code"]), (&json!(false), &json!(404)), "{held}");

    bench.api.put(Resource::StatefulSets, set(3, None));
    let held = create().await;
    assert_eq!((&held["allowed"], &held["status"]["code"]), (&json!(false), &json!(409)), "{held}");

    bench.api.put(Resource::StatefulSets, set(3, Some(3)));
    let open = create().await;
    assert_eq!((&open["allowed"], &open["patchType"]), (&json!(true), &json!("JSONPatch")), "{open}");
    let patch: ByteString = serde_json::from_value(open["patch"].clone()).expect("it is base64");
    let patch: Value = serde_json::from_slice(&patch.0).expect("it is JSON");
    let join = json!([{ "op": "add", "path": "/spec/schedulingGroup", "value": { "podGroupName": "web-g" } }]);
    assert_eq!(patch, join);
    assert_eq!(bench.reads(), 3, "one read for each");

    // Scaled to one, while the group still counts three.
    bench.api.put(Resource::StatefulSets, set(1, Some(3)));
    let kept = bench.review("/review?timeout=2s", &about_pod("DELETE")).await;
    assert_eq!((&kept["allowed"], &kept["status"]["code"]), (&json!(false), &json!(409)), "{kept}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_fails_holds_a_create_saying_why_and_lets_a_delete_pass() {
    let bench = Bench::start().await;
    bench.api.put(Resource::StatefulSets, set(1, Some(3)));
    for (fault, why, path) in [
        (Fault::Status(403, None), "forbidden: ", "/review?timeout=30s"),
        (Fault::Status(504, None), "timed out: ", "/review?timeout=30s"),
        (Fault::Status(500, None), "500", "/review?timeout=30s"),
        (Fault::DropBefore, "", "/review?timeout=30s"),
        (Fault::Delay(SOON), "timed out: ", "/review?timeout=2s"),
    ] {
        bench.api.set_faults(move |occasion: &Occasion<'_>| (occasion.user == USER).then_some(fault));
        let held = bench.review(path, &about_pod("CREATE")).await;
        assert_eq!((&held["allowed"], &held["status"]["code"]), (&json!(false), &json!(500)), "{fault:?}: {held}");
        let message = held["status"]["message"].as_str().expect("it says why");
        assert!(message.contains(&format!("cannot be read: {why}")), "{fault:?}: {message}");
        let passed = bench.review(path, &about_pod("DELETE")).await;
        assert_eq!(passed["allowed"], true, "{fault:?}: {passed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_review_gets_an_error_and_no_verdict() {
    let bench = Bench::start().await;
    let large = vec![b' '; MAX_BODY + 1];
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    for (method, path, body, code) in [
        ("POST", "/review", &large[..], 413),
        ("POST", "/review", deep.as_bytes(), 400),
        ("POST", "/review", b"", 400),
        ("POST", "/review", b"{}", 400),
        ("POST", "/review", b"\xff\xfe", 400),
        ("GET", "/review", b"", 405),
        ("POST", "/", b"{}", 404),
        ("GET", "/metrics", b"", 404),
    ] {
        let answer = send(bench.webhook.address, &bench.authority, method, path, body).await;
        assert_eq!(answer.0, code, "{method} {path}, {} bytes", body.len());
    }
    // As large as two objects can be.
    let mut request = about_set(&set(3, None), None);
    request["oldObject"] = json!({ "padding": "x".repeat(6 * 1024 * 1024) });
    assert_eq!(bench.review("/review", &request).await["allowed"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_are_cut_off_and_keep_nobody_waiting() {
    let short = Duration::from_secs(2);
    let bench = Bench::with(|webhook| {
        webhook.limits = Limits { handshake: short, silence: short, ..Limits::default() };
    })
    .await;
    let mut silent = TcpStream::connect(bench.webhook.address).await.expect("a connection");
    let mut header = connect(bench.webhook.address, &bench.authority).await.expect("it is trusted");
    header.write_all(b"POST /review HTTP/1.1\r\nHost:").await.expect("it is sent");
    let review = bench.review("/review", &about_set(&set(3, None), None)).await;
    assert_eq!(review["allowed"], true);
    let mut bytes = Vec::new();
    // It may be told farewell, or just go.
    let _ = tokio::time::timeout(SOON, silent.read_to_end(&mut bytes)).await.expect("it is cut off");
    let _ = tokio::time::timeout(SOON, header.read_to_end(&mut bytes)).await.expect("it is cut off");
    assert!(!String::from_utf8_lossy(&bytes).contains(" 200 "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_end_is_given_up_in_time() {
    let bench = Bench::start().await;
    let mut stream = connect(bench.webhook.address, &bench.authority).await.expect("it is trusted");
    stream.write_all(head("POST", "/review?timeout=1s", 1000).as_bytes()).await.expect("it is sent");
    stream.write_all(b"{").await.expect("it is sent");
    let (code, _) = tokio::time::timeout(SOON, receive(&mut stream)).await.expect("it is answered");
    assert_eq!(code, 503);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_1_2_and_1_3_are_spoken() {
    let bench = Bench::start().await;
    for version in [&version::TLS12, &version::TLS13] {
        let connected = connect_with(bench.webhook.address, &bench.authority, version).await;
        assert!(connected.is_ok(), "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_loaded_when_it_comes_and_again_when_it_changes() {
    let api = ApiServer::start(Config::default()).await.expect("a port");
    let folder = Folder::new();
    let [certificate, key] = folder.arguments();
    let often = |webhook: &mut Webhook| webhook.files_interval = Duration::from_millis(20);
    let webhook = Running::start(&api, &[&certificate, &key], often).await;
    assert_eq!(probe(webhook.probes, "/healthz").await, 200);
    assert_eq!(probe(webhook.probes, "/readyz").await, 503, "there is no certificate");
    let (one, two) = (issued(), issued());
    folder.mount(&one);
    presents(webhook.address, one.authority.as_bytes()).await;
    assert_eq!(probe(webhook.probes, "/readyz").await, 200);
    folder.mount(&Issued { key: two.key.clone(), ..one.clone() });
    folder.mount(&two);
    presents(webhook.address, two.authority.as_bytes()).await;
    assert!(connect(webhook.address, one.authority.as_bytes()).await.is_err(), "the one before is gone");
    webhook.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_in_hand_is_answered_before_the_end() {
    let bench = Bench::start().await;
    bench.api.put(Resource::StatefulSets, set(3, Some(3)));
    bench.api.set_faults(|occasion: &Occasion<'_>| {
        (occasion.user == USER).then_some(Fault::Delay(Duration::from_millis(300)))
    });
    let Bench { api, webhook, authority, .. } = bench;
    let address = webhook.address;
    let body = asked(&about_pod("CREATE"));
    let asking = tokio::spawn(async move { send(address, &authority, "POST", "/review?timeout=5s", &body).await });
    api.wait_for(|view| view.count(Some(USER), Verb::Get, Resource::StatefulSets) == 1, SOON).await;
    webhook.stop().await;
    let (code, answer) = asking.await.expect("it does not panic");
    assert_eq!(code, 200);
    let answer: Value = serde_json::from_slice(&answer).expect("it is JSON");
    assert_eq!(answer["response"]["allowed"], true);
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

/// Both configurations, as they are deployed: trusting nobody.
fn configure(api: &ApiServer) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/webhook/webhooks.yaml");
    let text = std::fs::read_to_string(file).expect("it is there");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("it is YAML");
    for document in documents {
        let resource = CONFIGURATIONS.into_iter().find(|resource| document["kind"] == resource.kind());
        api.put(resource.expect("it is one of them"), document);
    }
}

/// What the Secret has under a name.
fn kept(view: &View<'_>, name: &str) -> Option<Vec<u8>> {
    let secret = view.get(Resource::Secrets, SYSTEM, SECRET)?;
    serde_json::from_value::<ByteString>(secret["data"][name].clone()).ok().map(|bytes| bytes.0)
}

/// Whether all webhooks trust what is in the Secret.
fn is_in_step(view: &View<'_>) -> bool {
    let Some(secret) = view.get(Resource::Secrets, SYSTEM, SECRET) else { return false };
    let bundles: Vec<_> = CONFIGURATIONS
        .into_iter()
        .filter_map(|resource| view.get(resource, "", CONFIGURATION)?["webhooks"].as_array().cloned())
        .flatten()
        .map(|webhook| webhook["clientConfig"]["caBundle"].clone())
        .collect();
    bundles.len() == 4 && bundles.iter().all(|bundle| *bundle == secret["data"]["ca.crt"])
}

fn writes(view: &View<'_>) -> usize {
    view.requests().iter().filter(|request| &*request.user == USER && request.verb.is_write()).count()
}

async fn self_signed_api() -> ApiServer {
    let config = Config { namespaces: vec![SYSTEM.to_owned()], ..Config::default() };
    ApiServer::start(config).await.expect("a port")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_agree_about_one_certificate_and_then_write_nothing() {
    let api = self_signed_api().await;
    configure(&api);
    let often = |webhook: &mut Webhook| webhook.self_signed_interval = Duration::from_millis(50);
    let replicas =
        [Running::start(&api, &["--self-signed"], often).await, Running::start(&api, &["--self-signed"], often).await];
    api.wait_for(is_in_step, SOON).await;
    let authority = api.look(|view| kept(view, "ca.crt")).expect("it is there");
    for replica in &replicas {
        presents(replica.address, &authority).await;
        assert_eq!(probe(replica.probes, "/readyz").await, 200);
    }
    api.reset_log();
    let looked = |view: &View<'_>| view.count(Some(USER), Verb::Get, Resource::Secrets) >= 8;
    api.wait_for(looked, SOON).await;
    assert_eq!(api.look(writes), 0, "{}", api.summary());
    // Somebody applies the manifests once more.
    configure(&api);
    api.wait_for(is_in_step, SOON).await;
    // Somebody deletes the Secret.
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> = kube::Api::namespaced(api.client_as("me"), SYSTEM);
    secrets.delete(SECRET, &kube::api::DeleteParams::default()).await.expect("it is there");
    let again = |view: &View<'_>| is_in_step(view) && kept(view, "ca.crt").as_deref() != Some(&authority);
    api.wait_for(again, SOON).await;
    let authority = api.look(|view| kept(view, "ca.crt")).expect("it is there");
    for replica in replicas {
        presents(replica.address, &authority).await;
        replica.stop().await;
    }
}

/// One replica's certificate, and where it is presented.
struct Replica {
    keeper: SelfSigned,
    presented: Option<Vec<u8>>,
    certificates: Arc<Certificates>,
    listener: TlsListener,
    address: SocketAddr,
}

impl Replica {
    async fn new(api: &ApiServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let certificates = Arc::new(Certificates::default());
        let config = server_config(Arc::clone(&certificates)).expect("there are ciphers");
        let metrics = Arc::new(Metrics::default());
        let listener = TlsListener::new(listener, config, Limits::default(), metrics).expect("an address");
        let keeper = SelfSigned {
            client: api.client_as(USER),
            namespace: SYSTEM.to_owned(),
            secret: SECRET.to_owned(),
            dns_name: NAME.to_owned(),
            configuration: CONFIGURATION.to_owned(),
            every: SOON,
        };
        Self { keeper, presented: None, certificates, listener, address }
    }

    /// Looks once; whether another certificate is presented now.
    async fn look(&mut self, now: SystemTime) -> bool {
        self.keeper.look(now, &mut self.presented, &self.certificates).await.expect("it can")
    }

    /// Whether it is believed by whom the configurations trust.
    async fn is_trusted(&mut self, api: &ApiServer) -> bool {
        let bundle = api.get(CONFIGURATIONS[0], "", CONFIGURATION).expect("it is there");
        let bundle = bundle["webhooks"][0]["clientConfig"]["caBundle"].clone();
        let bundle: ByteString = serde_json::from_value(bundle).expect("it is base64");
        tokio::select! {
            trusted = connect(self.address, &bundle.0) => trusted.is_ok(),
            _ = async { loop { axum::serve::Listener::accept(&mut self.listener).await; } } => unreachable!(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_replaced_in_time_and_every_replica_is_trusted_at_every_step() {
    let api = self_signed_api().await;
    configure(&api);
    let mut replicas = [Replica::new(&api).await, Replica::new(&api).await];
    let now = SystemTime::now();
    // More than two thirds of its life ago, and within it.
    let then = now - Duration::from_hours(250 * 24);
    for replica in &mut replicas {
        assert!(replica.look(then).await);
    }
    let first = replicas[0].presented.clone();
    assert_eq!(first, replicas[1].presented);
    for (looking, loads) in [(0, false), (1, true), (0, true), (0, false), (1, false)] {
        assert_eq!(replicas[looking].look(now).await, loads, "{looking}");
        for replica in &mut replicas {
            assert!(replica.is_trusted(&api).await);
        }
    }
    assert_eq!(replicas[0].presented, replicas[1].presented);
    assert_ne!(replicas[0].presented, first);
    let updates = api.count(Some(USER), Verb::Update, Resource::Secrets);
    assert_eq!(updates, 1, "one replica replaced it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_comes_second_takes_what_is_there() {
    let api = self_signed_api().await;
    // Both find none, and only then does either write.
    let (one, two) = (Replica::new(&api).await, Replica::new(&api).await);
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let look = |mut replica: Replica| {
        let barrier = Arc::clone(&barrier);
        tokio::spawn(async move {
            barrier.wait().await;
            replica.look(SystemTime::now()).await;
            replica.presented
        })
    };
    api.set_faults(|occasion: &Occasion<'_>| {
        let first = occasion.verb == Verb::Create && occasion.resource == Resource::Secrets;
        first.then_some(Fault::Delay(Duration::from_millis(200)))
    });
    let (one, two) = (look(one), look(two));
    let (one, two) = (one.await.expect("it does not panic"), two.await.expect("it does not panic"));
    assert!(one.is_some() && one == two, "there is no configuration yet, and a certificate all the same");
    assert_eq!(api.len(Resource::Secrets), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_permission_the_certificate_is_kept_and_tried_again() {
    let api = self_signed_api().await;
    configure(&api);
    let mut replica = Replica::new(&api).await;
    api.set_faults(|occasion: &Occasion<'_>| {
        CONFIGURATIONS.contains(&occasion.resource).then_some(Fault::Status(403, None))
    });
    let looked = replica.keeper.look(SystemTime::now(), &mut replica.presented, &replica.certificates).await;
    assert!(looked.is_err_and(|error| format!("{error:#}").contains("webhook configurations")));
    assert!(replica.certificates.is_loaded(), "whoever is patched by hand can go on");
    api.clear_faults();
    replica.look(SystemTime::now()).await;
    assert!(api.look(is_in_step) && replica.is_trusted(&api).await);
}
