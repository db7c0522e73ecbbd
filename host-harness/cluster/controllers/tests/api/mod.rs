//! A small API server for these tests: objects of any kind as JSON, lists, watches, merge patches, the
//! status subresource, finalizers and the deletion propagations. It validates and defaults nothing.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) verb: &'static str,
    pub(crate) plural: String,
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) body: Value,
    pub(crate) code: u16,
    pub(crate) at: Instant,
}

type Key = (String, String, String);

#[derive(Default)]
struct Inner {
    objects: BTreeMap<Key, Value>,
    events: Vec<(u64, String, Value)>,
    version: u64,
    log: Vec<Asked>,
    /// How often a verb on a plural and a name is still refused.
    denied: HashMap<(String, String, String), u32>,
}

struct Shared {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

/// The server.
pub(crate) struct Api {
    shared: Arc<Shared>,
    url: String,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Api {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Api {
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared { inner: Mutex::default(), changed: watch::Sender::default() });
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", tcp.local_addr().expect("a bound port has an address"));
        let router = Router::new().fallback(handle).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            axum::serve(tcp, router).await.expect("serving ends only when it is aborted");
        });
        Self { shared, url, serving }
    }

    pub(crate) fn client(&self) -> kube::Client {
        let config = kube::Config::new(self.url.parse().expect("the address makes a URL"));
        kube::Client::try_from(config).expect("a plain configuration makes a client")
    }

    /// Creates an object, or changes it if it is there.
    pub(crate) fn put(&self, plural: &str, value: Value) {
        self.shared.change(|inner| {
            let name = text(&value["metadata"]["name"]);
            let key = (plural.to_owned(), text(&value["metadata"]["namespace"]), name);
            inner.save(&key, value);
        });
    }

    pub(crate) fn modify(&self, plural: &str, name: &str, change: impl FnOnce(&mut Value)) {
        self.shared.change(|inner| {
            let key = (plural.to_owned(), "prod".to_owned(), name.to_owned());
            let mut value = inner.objects.get(&key).cloned().expect("the object is there");
            change(&mut value);
            inner.save(&key, value);
        });
    }

    /// As a user deletes.
    pub(crate) fn delete(&self, plural: &str, name: &str, policy: &str) {
        self.shared.change(|inner| {
            let key = (plural.to_owned(), "prod".to_owned(), name.to_owned());
            inner.delete(&key, &json!({ "propagationPolicy": policy }));
        });
    }

    pub(crate) fn get(&self, plural: &str, name: &str) -> Option<Value> {
        self.shared.lock().objects.get(&(plural.to_owned(), "prod".to_owned(), name.to_owned())).cloned()
    }

    pub(crate) fn list(&self, plural: &str) -> Vec<Value> {
        let inner = self.shared.lock();
        inner.objects.iter().filter(|(key, _)| key.0 == plural).map(|(_, value)| value.clone()).collect()
    }

    /// Refuses the next so many requests of this kind.
    pub(crate) fn deny(&self, verb: &str, plural: &str, name: &str, times: u32) {
        self.shared.lock().denied.insert((verb.to_owned(), plural.to_owned(), name.to_owned()), times);
    }

    /// The requests that were made of a kind, in order.
    pub(crate) fn asked(&self, verb: &str, plural: &str) -> Vec<Asked> {
        let inner = self.shared.lock();
        inner.log.iter().filter(|asked| asked.verb == verb && asked.plural == plural).cloned().collect()
    }

    /// Waits until the condition holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let reached = self.reaches(condition, Duration::from_secs(20)).await;
            assert!(reached, "{caller}: {what} was not reached; log: {:#?}", self.last());
        }
    }

    /// Asserts that the condition does not come to hold for so long.
    #[track_caller]
    pub(crate) fn never(
        &self,
        what: &str,
        time: Duration,
        condition: impl Fn(&Self) -> bool,
    ) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let reached = self.reaches(condition, time).await;
            assert!(!reached, "{caller}: {what} was reached; log: {:#?}", self.last());
        }
    }

    async fn reaches(&self, condition: impl Fn(&Self) -> bool, time: Duration) -> bool {
        let mut changed = self.shared.changed.subscribe();
        let reached = async {
            while !condition(self) {
                changed.changed().await.expect("the sender lives in the server");
            }
        };
        tokio::time::timeout(time, reached).await.is_ok()
    }

    /// Has something done now and after each change, for as long as this is polled.
    pub(crate) async fn attend(&self, work: impl Fn(&Self)) {
        let mut changed = self.shared.changed.subscribe();
        loop {
            work(self);
            changed.changed().await.expect("the sender lives in the server");
        }
    }

    fn last(&self) -> Vec<String> {
        let inner = self.shared.lock();
        let lines = inner.log.iter().rev().take(30);
        lines.map(|asked| format!("{} {} {} {}", asked.verb, asked.plural, asked.name, asked.code)).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let done = change(&mut self.lock());
        self.changed.send_modify(|count| *count += 1);
        done
    }
}

impl Inner {
    fn save(&mut self, key: &Key, mut value: Value) -> Value {
        self.version += 1;
        let ends = value["metadata"]["deletionTimestamp"].is_string();
        let finalizers = value["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        let known = self.objects.contains_key(key);
        let metadata = value["metadata"].as_object_mut().expect("objects have metadata");
        metadata.retain(|_, value| !value.is_null());
        metadata.insert("resourceVersion".into(), self.version.to_string().into());
        metadata.entry("uid").or_insert_with(|| format!("uid-{}", self.version).into());
        metadata.entry("creationTimestamp").or_insert_with(|| "2026-01-01T00:00:00Z".into());
        let happened = match (known, ends && !finalizers) {
            (true, true) => {
                self.objects.remove(key);
                "DELETED"
            }
            (true, false) => "MODIFIED",
            (false, _) => "ADDED",
        };
        if happened != "DELETED" {
            self.objects.insert(key.clone(), value.clone());
        }
        let event = json!({ "type": happened, "object": value });
        self.events.push((self.version, key.0.clone(), event));
        value
    }

    fn delete(&mut self, key: &Key, options: &Value) -> Option<Result<Value, &'static str>> {
        let mut value = self.objects.get(key)?.clone();
        let wanted = &options["preconditions"]["uid"];
        if wanted.is_string() && *wanted != value["metadata"]["uid"] {
            return Some(Err("the uid does not match"));
        }
        let finalizers = value["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let mut finalizers: Vec<_> = finalizers;
        if let Some(policy) = options["propagationPolicy"].as_str() {
            finalizers.retain(|finalizer| finalizer != "foregroundDeletion" && finalizer != "orphan");
            match policy {
                "Foreground" => finalizers.push("foregroundDeletion".into()),
                "Orphan" => finalizers.push("orphan".into()),
                _ => {}
            }
        }
        value["metadata"]["finalizers"] = finalizers.into();
        value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        Some(Ok(self.save(key, value)))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn problem(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    (code, status)
}

/// What a path is about: the plural, the namespace, the name and the subresource.
fn route(path: &str) -> Option<(String, String, String, String)> {
    let mut parts: Vec<_> = path.trim_matches('/').split('/').collect();
    parts.drain(..if parts.first() == Some(&"api") { 2 } else { 3.min(parts.len()) });
    let namespace = if parts.first() == Some(&"namespaces") && parts.len() > 2 { parts.drain(..2).nth(1)? } else { "" };
    let part = |at: usize| parts.get(at).copied().unwrap_or_default().to_owned();
    Some((part(0), namespace.to_owned(), part(1), part(2)))
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let query: HashMap<_, _> =
        parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')).collect();
    let Some((plural, namespace, name, sub)) = route(parts.uri.path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let bytes = to_bytes(body, 4 << 20).await.expect("the body arrives");
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let user = parts.headers.get("impersonate-user").and_then(|user| user.to_str().ok()).unwrap_or_default();
    if query.contains_key("watch") {
        let since = query.get("resourceVersion").and_then(|since| since.parse().ok()).unwrap_or(0);
        return watch_events(shared, plural, since);
    }
    let verb = match (parts.method, name.is_empty()) {
        (Method::GET, true) => "list",
        (Method::GET, false) => "get",
        (Method::POST, _) => "create",
        (Method::PATCH, _) => "patch",
        (Method::DELETE, _) => "delete",
        _ => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
    };
    let named = if name.is_empty() { text(&body["metadata"]["name"]) } else { name };
    let (code, answer) = shared.change(|inner| {
        let denied = inner.denied.get_mut(&(verb.to_owned(), plural.clone(), named.clone()));
        let (code, answer) = match denied.filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                problem(403, "Forbidden", "the test refuses this")
            }
            None => inner.perform(verb, &(plural.clone(), namespace.clone(), named.clone()), &sub, &body),
        };
        let (plural, user) = (plural.clone(), user.to_owned());
        inner.log.push(Asked { verb, plural, name: named, user, body, code, at: Instant::now() });
        (code, answer)
    });
    let code = StatusCode::from_u16(code).expect("it is a code");
    (code, [("content-type", "application/json")], answer.to_string()).into_response()
}

impl Inner {
    fn perform(&mut self, verb: &str, key: &Key, sub: &str, body: &Value) -> (u16, Value) {
        let not_found = || problem(404, "NotFound", "it is not there");
        match verb {
            "list" => {
                let of_kind = self.objects.iter().filter(|(found, _)| found.0 == key.0);
                let items: Vec<_> = of_kind.map(|(_, value)| value).collect();
                let version = json!({ "resourceVersion": self.version.max(1).to_string() });
                (200, json!({ "kind": "List", "apiVersion": "v1", "metadata": version, "items": items }))
            }
            "get" => self.objects.get(key).map_or_else(not_found, |value| (200, value.clone())),
            "create" => {
                let mut value = body.clone();
                let mut key = key.clone();
                if key.2.is_empty() {
                    key.2 = format!("{}{:05}", text(&value["metadata"]["generateName"]), self.version);
                    value["metadata"]["name"] = key.2.clone().into();
                }
                value["metadata"]["namespace"] = key.1.clone().into();
                if self.objects.contains_key(&key) {
                    return problem(409, "AlreadyExists", "it is there already");
                }
                (201, self.save(&key, value))
            }
            "patch" => {
                let Some(before) = self.objects.get(key).cloned() else { return not_found() };
                for field in ["uid", "resourceVersion"] {
                    let wanted = &body["metadata"][field];
                    if wanted.is_string() && *wanted != before["metadata"][field] {
                        return problem(409, "Conflict", "the object has changed");
                    }
                }
                let mut after = before.clone();
                merge(&mut after, body);
                if sub == "status" {
                    let status = after["status"].take();
                    after = before.clone();
                    after["status"] = status;
                } else {
                    after["status"] = before["status"].clone();
                }
                drop_nulls(&mut after);
                if after == before { (200, before) } else { (200, self.save(key, after)) }
            }
            "delete" => match self.delete(key, body) {
                None => not_found(),
                Some(Err(why)) => problem(409, "Conflict", why),
                Some(Ok(value)) => (200, value),
            },
            _ => problem(405, "MethodNotAllowed", verb),
        }
    }
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (name, value) in patch {
        merge(&mut target[name], value);
    }
}

fn watch_events(shared: Arc<Shared>, plural: String, since: u64) -> Response {
    let changed = shared.changed.subscribe();
    let lines =
        stream::unfold((shared, plural, since, changed), |(shared, plural, mut since, mut changed)| async move {
            loop {
                changed.mark_unchanged();
                let mut lines = String::new();
                {
                    // Under one lock: what happens between two would be missed.
                    let inner = shared.lock();
                    for (version, kind, event) in &inner.events {
                        if *version > since && *kind == plural {
                            lines.push_str(&event.to_string());
                            lines.push('\n');
                        }
                    }
                    since = since.max(inner.version);
                }
                if !lines.is_empty() {
                    let chunk = Ok::<_, std::convert::Infallible>(Bytes::from(lines));
                    return Some((chunk, (shared, plural, since, changed)));
                }
                changed.changed().await.ok()?;
            }
        });
    ([("content-type", "application/json")], Body::from_stream(lines)).into_response()
}
