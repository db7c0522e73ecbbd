//! A stand-in for an API server: objects by path, lists and watches, the patches that are used here,
//! graceful deletion of pods, and bindings. No validation, no defaults, no selectors, one page.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The largest body that is read.
const BODY: usize = 1 << 20;

/// How long a condition may take to hold.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request that changed something, or tried to.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) user: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Value,
}

#[derive(Default)]
struct Inner {
    /// By path.
    objects: BTreeMap<String, Value>,
    /// Path and event, in the order of their versions, which count from one.
    history: Vec<(String, Value)>,
    log: Vec<Asked>,
    /// How many bindings are done and answered with an error.
    unsure_bindings: usize,
    uids: usize,
}

/// The server, and what it holds.
#[derive(Clone)]
pub(crate) struct FakeApi {
    inner: Arc<Mutex<Inner>>,
    changed: watch::Sender<()>,
    url: String,
}

impl FakeApi {
    pub(crate) async fn start() -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", tcp.local_addr().expect("a bound port has an address"));
        let api = Self { inner: Arc::default(), changed: watch::Sender::default(), url };
        let router = Router::new().fallback(handle).with_state(api.clone());
        tokio::spawn(async move { axum::serve(tcp, router).await.expect("it serves for ever") });
        api
    }

    pub(crate) fn client(&self) -> kube::Client {
        let mut config = kube::Config::new(self.url.parse().expect("the address makes a URL"));
        config.default_retry = false;
        kube::Client::try_from(config).expect("a plain configuration makes a client")
    }

    /// Creates an object behind everybody's back.
    pub(crate) fn create(&self, collection: &str, object: Value) {
        self.change(|inner| {
            inner.create(collection, object);
        });
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.lock().objects.get(path).cloned()
    }

    pub(crate) fn log(&self) -> Vec<Asked> {
        self.lock().log.clone()
    }

    pub(crate) fn be_unsure_about_bindings(&self, times: usize) {
        self.lock().unsure_bindings = times;
    }

    /// Deletes a pod, gracefully if it is bound.
    pub(crate) fn delete_pod(&self, path: &str) {
        self.change(|inner| {
            inner.delete(path, None);
        });
    }

    pub(crate) async fn wait_until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let reached = self.reaches(condition, PATIENCE).await;
        assert!(reached, "not in {PATIENCE:?}: {what}\n{:#?}", self.lock().objects);
    }

    /// Asserts that the condition does not come to hold for so long.
    pub(crate) async fn never(&self, what: &str, time: Duration, condition: impl Fn(&Self) -> bool) {
        let reached = self.reaches(condition, time).await;
        assert!(!reached, "{what}\n{:#?}", self.lock().objects);
    }

    async fn reaches(&self, condition: impl Fn(&Self) -> bool, time: Duration) -> bool {
        let mut changes = self.changed.subscribe();
        let reached = async {
            while !condition(self) {
                changes.changed().await.expect("the sender lives as long as this");
            }
        };
        tokio::time::timeout(time, reached).await.is_ok()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let done = change(&mut self.lock());
        self.changed.send_replace(());
        done
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn create(&mut self, collection: &str, mut object: Value) -> Value {
        self.uids += 1;
        object["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
        object["metadata"]["creationTimestamp"] = json!("2026-10-01T00:00:00Z");
        let mut parts = collection.rsplit('/');
        let plural = parts.next().unwrap_or_default();
        if let Some(namespace) = parts.next().filter(|_| collection.contains("/namespaces/")) {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let kind = match plural {
            "nodes" => "Node",
            "pods" => "Pod",
            "podgroups" => "PodGroup",
            "resourceclaims" => "ResourceClaim",
            _ => "PriorityClass",
        };
        object["kind"] = json!(kind);
        let path = format!("{collection}/{}", object["metadata"]["name"].as_str().expect("it has a name"));
        self.store("ADDED", &path, object)
    }

    fn store(&mut self, event: &str, path: &str, mut object: Value) -> Value {
        object["metadata"]["resourceVersion"] = json!((self.history.len() + 1).to_string());
        self.history.push((path.to_owned(), json!({ "type": event, "object": object })));
        if event == "DELETED" {
            self.objects.remove(path);
        } else {
            self.objects.insert(path.to_owned(), object.clone());
        }
        object
    }

    fn delete(&mut self, path: &str, grace: Option<u64>) -> Value {
        let Some(mut object) = self.objects.get(path).cloned() else { return not_found(path) };
        let bound = object["spec"]["nodeName"].is_string();
        if !path.contains("/pods/") || !bound || grace == Some(0) {
            return self.store("DELETED", path, object);
        }
        object["metadata"]["deletionTimestamp"] = json!("2026-10-01T00:00:30Z");
        object["metadata"]["deletionGracePeriodSeconds"] = json!(grace.unwrap_or(30));
        self.store("MODIFIED", path, object)
    }

    fn bind(&mut self, path: &str, body: &Value) -> Value {
        let Some(mut pod) = self.objects.get(path).cloned() else { return not_found(path) };
        if pod["spec"]["nodeName"].is_string() || pod["metadata"]["uid"] != body["metadata"]["uid"] {
            return status(409, "Conflict", "already bound, or another pod");
        }
        pod["spec"]["nodeName"] = body["target"]["name"].clone();
        self.store("MODIFIED", path, pod);
        if self.unsure_bindings > 0 {
            self.unsure_bindings -= 1;
            return status(500, "InternalError", "it may have been done");
        }
        status(201, "", "")
    }

    fn patch(&mut self, path: &str, body: &Value) -> Value {
        let Some(mut object) = self.objects.get(path).cloned() else { return not_found(path) };
        for field in ["resourceVersion", "uid"] {
            let wanted = &body["metadata"][field];
            if wanted.is_string() && *wanted != object["metadata"][field] {
                return status(409, "Conflict", "the object has been modified");
            }
        }
        merge(&mut object, &json!({ "status": body["status"] }));
        self.store("MODIFIED", path, object)
    }
}

/// A merge patch, but conditions are merged by type.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, change) in changes {
        match (name.as_str(), change, &mut target[name]) {
            ("conditions", Value::Array(changes), Value::Array(conditions)) => {
                for change in changes {
                    match conditions.iter_mut().find(|it| it["type"] == change["type"]) {
                        Some(condition) => merge(condition, change),
                        None => conditions.push(change.clone()),
                    }
                }
            }
            (_, Value::Null, _) => {
                target.as_object_mut().expect("it is an object").remove(name);
            }
            (_, change, target) => merge(target, change),
        }
    }
}

fn not_found(path: &str) -> Value {
    status(404, "NotFound", path)
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    let status = if code < 300 { "Success" } else { "Failure" };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {},
        "status": status, "code": code, "reason": reason, "message": message,
    })
}

async fn handle(State(api): State<FakeApi>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY).await.expect("the body can be read");
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = head.uri.path().to_owned();
    let query = head.uri.query().unwrap_or_default();
    if head.method == Method::GET {
        let is_object = api.lock().objects.contains_key(&path);
        return match (is_object, parameter(query, "watch")) {
            (true, _) => answer(&api.get(&path).unwrap_or_default()),
            (false, Some(_)) => {
                let since = parameter(query, "resourceVersion").and_then(|it| it.parse().ok()).unwrap_or(0);
                watching(api, path, since)
            }
            (false, None) if path.contains("/namespaces/") => answer(&not_found(&path)),
            (false, None) => answer(&list(&api, &path)),
        };
    }
    let user = head.headers.get("impersonate-user").and_then(|user| user.to_str().ok()).unwrap_or_default();
    let asked =
        Asked { user: user.to_owned(), method: head.method.to_string(), path: path.clone(), body: body.clone() };
    let object = |suffix: &str| path.strip_suffix(suffix).unwrap_or(&path).to_owned();
    answer(&api.change(|inner| {
        inner.log.push(asked);
        match head.method.as_str() {
            "POST" if path.ends_with("/binding") => inner.bind(&object("/binding"), &body),
            "POST" => inner.create(&path, body),
            "PATCH" => inner.patch(&object("/status"), &body),
            _ => inner.delete(&path, body["gracePeriodSeconds"].as_u64()),
        }
    }))
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
}

fn answer(value: &Value) -> Response {
    let code = value["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(200);
    Response::builder()
        .status(StatusCode::from_u16(code).expect("it is a code"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(value.to_string()))
        .expect("the answer is well-formed")
}

/// The last part of a collection's path, which is asked for in all namespaces.
fn is_in(path: &str, collection: &str) -> bool {
    let plural = collection.rsplit('/').next().unwrap_or_default();
    path.rsplit('/').nth(1) == Some(plural)
}

fn list(api: &FakeApi, collection: &str) -> Value {
    let inner = api.lock();
    let items: Vec<_> = inner.objects.iter().filter(|(path, _)| is_in(path, collection)).map(|(_, it)| it).collect();
    let version = inner.history.len().to_string();
    json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": version }, "items": items })
}

fn watching(api: FakeApi, collection: String, since: usize) -> Response {
    let changes = api.changed.subscribe();
    let events = futures::stream::unfold((api, changes, since), move |(api, mut changes, mut at)| {
        let collection = collection.clone();
        async move {
            loop {
                changes.mark_unchanged();
                let event = {
                    let inner = api.lock();
                    let next =
                        inner.history.iter().enumerate().skip(at).find(|(_, (path, _))| is_in(path, &collection));
                    at = next.as_ref().map_or(inner.history.len(), |(index, _)| index + 1);
                    next.map(|(_, (_, event))| format!("{event}\n"))
                };
                if let Some(event) = event {
                    return Some((Ok::<_, std::convert::Infallible>(event), (api, changes, at)));
                }
                changes.changed().await.ok()?;
            }
        }
    });
    Response::builder().body(Body::from_stream(events)).expect("the answer is well-formed")
}
