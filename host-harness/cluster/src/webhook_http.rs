//! The project's own webhook, asked over HTTPS as an API server asks.
//!
//! The webhook is the binary, in a process of its own, with a certificate that it makes itself. Stands for
//! the API server's webhook client: the certificate is believed by the `caBundle` of the configurations
//! alone, under the name of the Service, and the JSON Patch is applied to the object that was sent. Left out:
//! the Service and its DNS name, HTTP/2, audit annotations.

use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use cluster_apiserver::{ADMIN, Admission, Answer, ApiServer, Phase, Resource, WebhookError};
use futures::future::BoxFuture;
use k8s_openapi::ByteString;
use kube::api::{ApiResource, DynamicObject};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::controller::{self, binary};
use crate::engine::Health;
use crate::manifests::Container;

/// Where nobody ever listens.
const NOWHERE: &str = "127.0.0.1:1";
/// Long enough for any machine.
const SOON: Duration = Duration::from_mins(1);

/// The webhook, and what stands in for it while it does not answer.
pub struct WebhookHttp {
    /// The Service, as the configurations name it.
    service: Service,
    container: Container,
    /// What it is asked through, once it runs.
    line: watch::Sender<Option<Line>>,
    running: Mutex<JoinSet<()>>,
    health: Mutex<Health>,
    evaluations: AtomicU64,
    /// Takes connections, and never says anything on them.
    silent: TcpListener,
}

#[derive(Clone)]
struct Service {
    namespace: String,
    name: String,
    /// The configurations that name it.
    configurations: Vec<(Resource, String)>,
}

/// Clients that believe the webhook's certificate.
#[derive(Clone)]
struct Line {
    up: kube::Client,
    down: kube::Client,
    hanging: kube::Client,
}

impl WebhookHttp {
    /// Applies these configurations, and makes ready for their webhook.
    ///
    /// # Errors
    /// They do not name one Service.
    pub fn new(api: &ApiServer, configurations: &[Value], container: Container) -> anyhow::Result<Arc<Self>> {
        let service = Service::of(configurations)?;
        if api.get(Resource::Namespaces, "", &service.namespace).is_none() {
            let name = &service.namespace;
            let labels = json!({ "kubernetes.io/metadata.name": name });
            let metadata = json!({ "name": name, "labels": labels });
            api.put(Resource::Namespaces, json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
        }
        for (configuration, (resource, _)) in configurations.iter().zip(&service.configurations) {
            api.put(*resource, configuration.clone());
        }
        Ok(Arc::new(Self {
            service,
            container,
            line: watch::Sender::new(None),
            running: Mutex::default(),
            health: Mutex::default(),
            evaluations: AtomicU64::default(),
            silent: TcpListener::bind("127.0.0.1:0")?,
        }))
    }

    /// Starts the webhook with these settings, in place of the one that runs. What is asked meanwhile waits.
    ///
    /// # Errors
    /// The binary is not built, or cannot be started.
    pub fn restart(&self, api: &ApiServer, settings: &[String]) -> anyhow::Result<()> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = JoinSet::new();
        self.line.send_replace(None);
        let kubeconfig = controller::Kubeconfig::write(api, &self.container.user)?;
        let program = binary()?;
        let mut child = Command::new(&program)
            .args(&self.container.arguments)
            .args(["--listen=127.0.0.1:0", "--tls-listen=127.0.0.1:0", "--log-format=json"])
            .args(settings)
            .envs(self.container.environment.clone())
            .env("KUBECONFIG", &kubeconfig.0)
            .env("RUST_LOG", "warn,statefulset_scheduling_controller::webhook=info")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| program.display().to_string())?;
        let log = child.stderr.take().context("it has a log")?;
        // It does not own this: with this, it ends.
        let attendant =
            Attendant { service: self.service.clone(), line: self.line.clone(), silent: self.silent.local_addr()? };
        let client = api.client_as(ADMIN);
        running.spawn(async move {
            if let Err(error) = attendant.attend(child, log, client).await {
                tracing::error!("the webhook: {error:#}");
            }
            drop(kubeconfig);
        });
        Ok(())
    }

    /// Returns when the webhook can be asked.
    ///
    /// # Errors
    /// It cannot within a time that is enough for any machine.
    pub async fn ready(&self) -> anyhow::Result<()> {
        tokio::time::timeout(SOON, self.line()).await.context("the webhook does not start")?;
        Ok(())
    }

    /// The user that its ServiceAccount is.
    pub fn user(&self) -> &str {
        &self.container.user
    }

    /// Sets whether it answers from now on.
    pub fn set_health(&self, health: Health) {
        *self.health.lock().unwrap_or_else(PoisonError::into_inner) = health;
    }

    /// How many requests it got.
    pub fn evaluations(&self) -> u64 {
        self.evaluations.load(Ordering::Acquire)
    }

    fn health(&self) -> Health {
        *self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn line(&self) -> Line {
        let mut line = self.line.subscribe();
        let found = line.wait_for(Option::is_some).await.map(|line| line.clone());
        match found {
            Ok(Some(line)) => line,
            // The sender is as old as this.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

/// Attends to a process.
struct Attendant {
    service: Service,
    line: watch::Sender<Option<Line>>,
    silent: SocketAddr,
}

impl Attendant {
    /// Reads the log of a process until it can be asked, and then until it ends.
    async fn attend(&self, child: Child, log: ChildStderr, client: kube::Client) -> anyhow::Result<()> {
        let mut log = BufReader::new(log).lines();
        let address = said(&mut log, "listening for reviews", "address").await?;
        // The configurations trust it by then.
        said(&mut log, "the certificate is loaded", "secret").await?;
        let bundle = self.bundle(client).await?;
        self.line.send_replace(Some(Line {
            up: self.client(&address, &bundle).await?,
            down: self.client(NOWHERE, &bundle).await?,
            hanging: self.client(&self.silent.to_string(), &bundle).await?,
        }));
        while let Some(line) = log.next_line().await? {
            tracing::debug!("the webhook: {line}");
        }
        drop(child);
        Ok(())
    }

    /// What all webhooks of the configurations trust.
    async fn bundle(&self, client: kube::Client) -> anyhow::Result<String> {
        let mut bundles = Vec::new();
        for (resource, name) in &self.service.configurations {
            let kind = ApiResource {
                group: resource.group().to_owned(),
                version: resource.version().to_owned(),
                api_version: resource.api_version(),
                kind: resource.kind().to_owned(),
                plural: resource.plural().to_owned(),
            };
            let stored: DynamicObject = kube::Api::all_with(client.clone(), &kind).get(name).await?;
            let webhooks = stored.data["webhooks"].as_array().into_iter().flatten();
            bundles.extend(webhooks.map(|webhook| webhook["clientConfig"]["caBundle"].clone()));
        }
        bundles.dedup();
        match bundles.as_slice() {
            [Value::String(bundle)] => Ok(bundle.clone()),
            others => anyhow::bail!("the configurations do not trust one and the same: {others:?}"),
        }
    }

    async fn client(&self, address: &str, bundle: &str) -> anyhow::Result<kube::Client> {
        let Service { namespace, name, .. } = &self.service;
        let kubeconfig: Kubeconfig = serde_json::from_value(json!({
            "current-context": "webhook",
            "clusters": [{ "name": "webhook", "cluster": {
                "server": format!("https://{address}"),
                "certificate-authority-data": bundle,
                "tls-server-name": format!("{name}.{namespace}.svc"),
            } }],
            "users": [{ "name": "webhook", "user": {} }],
            "contexts": [{ "name": "webhook", "context": { "cluster": "webhook", "user": "webhook" } }],
        }))?;
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok(kube::Client::try_from(config)?)
    }
}

impl Service {
    fn of(configurations: &[Value]) -> anyhow::Result<Self> {
        let mut named = Vec::new();
        let mut services = Vec::new();
        for configuration in configurations {
            let resource = Resource::all().find(|resource| configuration["kind"] == resource.kind());
            let name = configuration["metadata"]["name"].as_str().context("a configuration has no name")?;
            named.push((resource.context("a configuration is of no kind")?, name.to_owned()));
            let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
            services.extend(webhooks.map(|webhook| {
                let service = &webhook["clientConfig"]["service"];
                (service["namespace"].as_str().map(str::to_owned), service["name"].as_str().map(str::to_owned))
            }));
        }
        services.dedup();
        match services.as_slice() {
            [(Some(namespace), Some(name))] => {
                Ok(Self { namespace: namespace.clone(), name: name.clone(), configurations: named })
            }
            others => anyhow::bail!("the configurations do not name one Service: {others:?}"),
        }
    }
}

/// Reads a log until a message comes, and returns a field of it.
async fn said(log: &mut Lines<BufReader<ChildStderr>>, message: &str, field: &str) -> anyhow::Result<String> {
    while let Some(line) = log.next_line().await? {
        let Ok(said) = serde_json::from_str::<Value>(&line) else { anyhow::bail!("it said {line}") };
        let fields = &said["fields"];
        if fields["message"] == message {
            return Ok(fields[field].as_str().unwrap_or_default().to_owned());
        }
        if said["level"] == "ERROR" {
            tracing::error!("the webhook: {line}");
        }
    }
    anyhow::bail!("it ended before it said: {message}")
}

/// One webhook of the configurations.
pub struct Called {
    /// What answers it.
    pub server: Arc<WebhookHttp>,
    /// Where.
    pub path: String,
    /// How long it may take, which it is told.
    pub timeout: Duration,
}

impl Admission for Called {
    fn review(&self, request: Value, _: Phase) -> BoxFuture<'_, Result<Answer, WebhookError>> {
        Box::pin(async move {
            let line = self.server.line().await;
            let health = self.server.health();
            if matches!(health, Health::Up | Health::Failing) {
                self.server.evaluations.fetch_add(1, Ordering::AcqRel);
            }
            let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
            let (client, review) = match health {
                Health::Up => (line.up, review),
                Health::Down => (line.down, review),
                Health::Hanging => (line.hanging, review),
                // What cannot be read is answered with an error, as by a webhook that is broken.
                Health::Failing => (line.up, json!({})),
            };
            let asked = http::Request::post(format!("{}?timeout={}s", self.path, self.timeout.as_secs()))
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(review.to_string().into_bytes())
                .map_err(|error| failed(&error))?;
            let answered = client.request_text(asked).await.map_err(|error| failed(&error))?;
            answer(request, &serde_json::from_str(&answered).map_err(|error| failed(&error))?)
        })
    }
}

fn failed(error: &impl std::fmt::Display) -> WebhookError {
    WebhookError::Failed(error.to_string())
}

/// What an `AdmissionReview` answers to a request.
fn answer(mut request: Value, review: &Value) -> Result<Answer, WebhookError> {
    let response = &review["response"];
    if (&review["apiVersion"], &review["kind"]) != (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
        || response["uid"] != request["uid"]
    {
        return Err(failed(&format!("it is no answer: {review}")));
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings: Vec<_> = warnings.filter_map(Value::as_str).map(str::to_owned).collect();
    if response["allowed"] != true {
        let status = &response["status"];
        let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(403);
        return Ok(Answer { warnings, ..Answer::deny(code, status["message"].as_str().unwrap_or_default()) });
    }
    let changed = match (&response["patchType"], &response["patch"]) {
        (Value::Null, Value::Null) => Answer::allow(),
        (patch_type, patch) if patch_type == "JSONPatch" => {
            let patch: ByteString = serde_json::from_value(patch.clone()).map_err(|error| failed(&error))?;
            let patch = serde_json::from_slice(&patch.0).map_err(|error| failed(&error))?;
            Answer::json_patch(request["object"].take(), &patch)?
        }
        (patch_type, _) => return Err(failed(&format!("there is no patchType {patch_type}"))),
    };
    Ok(Answer { warnings, ..changed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_an_api_server_reads_it() {
        let request = json!({ "uid": "u", "object": { "spec": {} } });
        let read = |response: Value| {
            let review =
                json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response });
            answer(request.clone(), &review)
        };
        assert_eq!(read(json!({ "uid": "u", "allowed": true })), Ok(Answer::allow()));
        let denied =
            json!({ "uid": "u", "allowed": false, "status": { "code": 409, "message": "no" }, "warnings": ["w"] });
        assert_eq!(read(denied), Ok(Answer { warnings: vec!["w".into()], ..Answer::deny(409, "no") }));
        // [{"op":"add","path":"/spec/a","value":1}]
        let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvYSIsInZhbHVlIjoxfV0=";
        let patched = json!({ "uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": patch });
        assert_eq!(read(patched), Ok(Answer::patch(json!({ "spec": { "a": 1 } }))));
        for unreadable in [
            json!({ "uid": "another", "allowed": true }),
            json!({ "uid": "u", "allowed": true, "patch": patch }),
            json!({ "uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": "e30=" }),
        ] {
            assert!(read(unreadable).is_err());
        }
    }
}
