//! Requests: what they mean, what is done for them, and how the answer is written.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::connection::Line;
use super::fault::Fault;
use super::log::{self, Verb};
use super::owners::Manager;
use super::resource::{Resource, SCHEDULING};
use super::select::Selector;
use super::status::Problem;
use super::store::{Deleted, Form, Listing, Object};
use super::watch::{Start, Wish};
use super::{Inner, SchedulingApi, Shared, patch};

/// The largest body that is read; the real limit is 3 MiB.
const BODY: usize = 3 << 20;

/// The content type of server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// The one handler behind every path.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

/// A request that was understood.
struct Call {
    verb: Verb,
    resource: Resource,
    namespace: Option<String>,
    name: Option<String>,
    query: Query,
    content_type: String,
    metadata_only: bool,
    body: Value,
}

/// What came of a call.
enum Outcome {
    Object(StatusCode, Arc<Object>),
    List(Listing),
    Watch(Box<Start>),
    Json(Value),
    /// What an API server says to a path of which it knows nothing.
    Text404,
    Problem(Problem),
}

impl From<Problem> for Outcome {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

async fn handle(State(shared): State<Arc<Shared>>, ConnectInfo(line): ConnectInfo<Line>, request: Request) -> Response {
    let asked = format!("{} {}", request.method(), request.uri());
    let call = match read(request).await {
        Ok(Some(call)) => call,
        Ok(None) => {
            shared.change(|inner| inner.unforeseen.push(asked.clone()));
            return problem(&Problem::unforeseen(&asked));
        }
        Err(refused) => return problem(&refused),
    };
    let take = |inner: &mut Inner| {
        // A connection that was closed while the request was on its way carries no request.
        if line.is_cut() {
            return Taken::Dropped;
        }
        inner.take(&call, &asked)
    };
    let outcome = match shared.change(take) {
        Taken::Done(outcome) => outcome,
        Taken::Dropped => {
            line.cut();
            // Something has to be answered, but it can no longer be written.
            Outcome::Text404
        }
        Taken::Later(after, place) => {
            tokio::time::sleep(after).await;
            let finish = |inner: &mut Inner| {
                let outcome = inner.perform(&call);
                inner.log.answered(&place, outcome.code().as_u16());
                outcome
            };
            shared.change(finish)
        }
    };
    outcome.respond(&call, shared)
}

/// How far a request got at once.
enum Taken {
    Done(Outcome),
    /// No answer: the connection is to be closed.
    Dropped,
    Later(Duration, log::Place),
}

impl Inner {
    /// Records a call and does it, or what a fault does instead. All under one lock, so that nobody
    /// sees a request in the log before its effect.
    fn take(&mut self, call: &Call, asked: &str) -> Taken {
        let place = self.log.push(call.record(self.log.quiet));
        if !self.foreseen.has(call.verb, call.resource) {
            self.unforeseen.push(asked.to_owned());
            return Taken::Done(Problem::unforeseen(asked).into());
        }
        let outcome = match self.faults.take(call.verb, call.resource) {
            None => self.perform(call),
            Some(Fault::Status(code, retry_after)) => Problem::fault(code, retry_after).into(),
            Some(Fault::DropBefore) => return Taken::Dropped,
            Some(Fault::DropAfter) => {
                self.perform(call);
                return Taken::Dropped;
            }
            Some(Fault::Delay(after)) => return Taken::Later(after, place),
        };
        self.log.answered(&place, outcome.code().as_u16());
        Taken::Done(outcome)
    }

    fn perform(&mut self, call: &Call) -> Outcome {
        match self.scheduling {
            SchedulingApi::Off if call.resource.is_scheduling() => return Problem::not_served().into(),
            SchedulingApi::OffText if call.resource.is_scheduling() => return Outcome::Text404,
            _ => {}
        }
        match call.resource {
            Resource::Discovery => Outcome::Json(discovery()),
            Resource::Version => Outcome::Json(version()),
            Resource::Leases if call.verb.is_write() => self.on_lease(call).unwrap_or_else(Outcome::Problem),
            _ => self.on_objects(call).unwrap_or_else(Outcome::Problem),
        }
    }

    /// Writes of Leases are told apart by who makes them.
    fn on_lease(&mut self, call: &Call) -> Result<Outcome, Problem> {
        let named = call.name.as_deref().or_else(|| call.body["metadata"]["name"].as_str());
        let key = (call.namespace.as_deref().unwrap_or_default(), named.unwrap_or_default());
        let spec = |inner: &Self| {
            let lease = inner.store.table(call.resource).get(key.0, key.1);
            lease.map(|lease| lease.value(call.resource)["spec"].take()).unwrap_or_default()
        };
        let manager = call.manager();
        let (before, applied) = (spec(self), &call.body["spec"]);
        if manager.applies && call.query.get("force") != Some("true") {
            self.owners.check(key, &before, applied, &manager)?;
        }
        let outcome = self.on_objects(call)?;
        let after = spec(self);
        self.owners.note(key, (&before, &after), applied, &manager);
        Ok(outcome)
    }

    fn on_objects(&mut self, call: &Call) -> Result<Outcome, Problem> {
        let resource = call.resource;
        let namespace = call.namespace.as_deref().unwrap_or_default();
        let name = call.name.as_deref().unwrap_or_default();
        let found = |object| Outcome::Object(StatusCode::OK, object);
        match call.verb {
            Verb::Get => self.store.find(resource, namespace, name).cloned().map(found),
            Verb::List => {
                // Answers from the watch cache ignore the limit, as the real one does.
                let limit = call.query.number("limit").filter(|_| call.query.get("resourceVersion") != Some("0"));
                let limit = limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
                match call.query.get("continue") {
                    Some(token) => self.store.list_on(resource, token, limit),
                    None => Ok(self.store.list(resource, &call.selector()?, limit)),
                }
                .map(Outcome::List)
            }
            Verb::Watch => Ok(Outcome::Watch(Box::new(Start::new(call.wish()?, &self.store)))),
            Verb::Create => {
                let created = self.store.create(resource, namespace, call.body.clone())?;
                Ok(Outcome::Object(StatusCode::CREATED, created))
            }
            Verb::Update => {
                let version = call.body["metadata"]["resourceVersion"].as_str().unwrap_or_default();
                if version.is_empty() && resource == Resource::Leases {
                    let why = "Invalid value: 0: must be specified for an update";
                    return Err(Problem::invalid(resource, name, "metadata.resourceVersion", why));
                }
                let replace = |object: &mut Value| {
                    *object = call.body.clone();
                    Ok(())
                };
                self.store.update(resource, namespace, name, replace).map(found)
            }
            Verb::Patch => self.patch(call, namespace, name),
            Verb::Delete => match self.store.delete(resource, namespace, name, &call.body)? {
                Deleted::Waits(object) => Ok(found(object)),
                Deleted::Gone(object) => Ok(Outcome::Json(success(resource, &object))),
            },
        }
    }

    fn patch(&mut self, call: &Call, namespace: &str, name: &str) -> Result<Outcome, Problem> {
        let merge = |object: &mut Value| {
            patch::merge(object, &call.body);
            Ok(())
        };
        let patched = match call.content_type.as_str() {
            "application/json-patch+json" => {
                self.store.update(call.resource, namespace, name, |object| patch::apply(object, &call.body))
            }
            // A strategic merge patch differs only in lists with merge keys.
            "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
                self.store.update(call.resource, namespace, name, merge)
            }
            APPLY => {
                if self.store.table(call.resource).get(namespace, name).is_none() {
                    let mut body = call.body.clone();
                    body["metadata"]["name"] = name.into();
                    let created = self.store.create(call.resource, namespace, body)?;
                    return Ok(Outcome::Object(StatusCode::CREATED, created));
                }
                self.store.update(call.resource, namespace, name, merge)
            }
            other => Err(Problem::unsupported(other)),
        };
        patched.map(|object| Outcome::Object(StatusCode::OK, object))
    }
}

impl Call {
    fn record(&self, quiet: bool) -> log::Request {
        log::Request {
            verb: self.verb,
            resource: self.resource,
            namespace: self.namespace.clone(),
            name: self.name.clone().or_else(|| self.body["metadata"]["name"].as_str().map(str::to_owned)),
            content_type: (self.verb == Verb::Patch).then(|| self.content_type.clone()),
            body: if quiet { Value::Null } else { self.body.clone() },
            query: self.query.0.clone(),
            answer: None,
        }
    }

    fn form(&self) -> Form {
        if self.metadata_only { Form::Metadata } else { Form::Whole }
    }

    fn manager(&self) -> Manager {
        let name = self.query.decoded("fieldManager").unwrap_or_else(|| "unknown".into());
        Manager { name, applies: self.content_type == APPLY }
    }

    fn selector(&self) -> Result<Selector, Problem> {
        let text = |key| self.query.decoded(key).unwrap_or_default();
        Selector::parse(self.namespace.as_deref(), &text("labelSelector"), &text("fieldSelector"))
    }

    fn wish(&self) -> Result<Wish, Problem> {
        let is_set = |key| self.query.get(key) == Some("true");
        let marks_initial = is_set("sendInitialEvents");
        // Versions 0 and none ask for the current state first.
        let since = self.query.number("resourceVersion").filter(|version| *version > 0 && !marks_initial);
        Ok(Wish {
            resource: self.resource,
            selector: self.selector()?,
            form: self.form(),
            bookmarks: is_set("allowWatchBookmarks"),
            since,
            marks_initial,
            timeout: self.query.number("timeoutSeconds").map(Duration::from_secs),
        })
    }
}

/// The part of a URL behind the question mark.
struct Query(String);

impl Query {
    fn get(&self, key: &str) -> Option<&str> {
        let pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(name, value)| *name == key && !value.is_empty()).map(|(_, value)| value)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    fn decoded(&self, key: &str) -> Option<String> {
        self.get(key).map(decode)
    }
}

/// Undoes the encoding of a form.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next(), rest.next()].map(|digit| char::from(digit.unwrap_or(b'0')).to_digit(16));
                let [high, low] = digits.map(|digit| digit.and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0));
                high << 4 | low
            }
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads a request; none for a path or a method that is not served.
async fn read(request: Request) -> Result<Option<Call>, Problem> {
    let (parts, body) = request.into_parts();
    let Some((resource, namespace, name)) = route(parts.uri.path()) else { return Ok(None) };
    let query = Query(parts.uri.query().unwrap_or_default().to_owned());
    let is_watch = matches!(query.get("watch"), Some("true" | "1"));
    let is_collection = name.is_none() && !matches!(resource, Resource::Discovery | Resource::Version);
    let verb = match (parts.method, is_collection) {
        (Method::GET, true) if is_watch => Verb::Watch,
        (Method::GET, true) => Verb::List,
        (Method::GET, false) => Verb::Get,
        (Method::POST, true) if namespace.is_some() => Verb::Create,
        (Method::PUT, false) if name.is_some() => Verb::Update,
        (Method::PATCH, false) if name.is_some() => Verb::Patch,
        (Method::DELETE, false) if name.is_some() => Verb::Delete,
        _ => return Ok(None),
    };
    let bytes = to_bytes(body, BODY).await.map_err(|error| Problem::bad_request(error.to_string()))?;
    let body = match serde_json::from_slice(&bytes) {
        _ if bytes.is_empty() => Value::Null,
        Ok(body) => body,
        Err(error) => return Err(Problem::bad_request(format!("the body is not JSON: {error}"))),
    };
    if matches!(verb, Verb::Create | Verb::Update) && !body.is_object() {
        return Err(Problem::bad_request("an object was expected"));
    }
    let metadata_only = text(&parts.headers, &header::ACCEPT).contains("as=PartialObjectMetadata");
    let content_type = text(&parts.headers, &header::CONTENT_TYPE);
    let content_type = content_type.split(';').next().unwrap_or_default().trim().to_owned();
    Ok(Some(Call { verb, resource, namespace, name, query, content_type, metadata_only, body }))
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// What a path names: the resource, the namespace and the name. Subresources are not served.
fn route(path: &str) -> Option<(Resource, Option<String>, Option<String>)> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (api_version, rest) = match parts.as_slice() {
        ["version"] => return Some((Resource::Version, None, None)),
        ["api", version, rest @ ..] => ((*version).to_owned(), rest),
        ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return None,
    };
    let find = |plural| Resource::find(&api_version, plural);
    let owned = |text: &&str| Some((*text).to_owned());
    match rest {
        [] if api_version == SCHEDULING => Some((Resource::Discovery, None, None)),
        [plural] => Some((find(plural)?, None, None)),
        ["namespaces", namespace, plural] => Some((find(plural)?, owned(namespace), None)),
        ["namespaces", namespace, plural, name] => Some((find(plural)?, owned(namespace), owned(name))),
        _ => None,
    }
}

impl Outcome {
    fn code(&self) -> StatusCode {
        match self {
            Self::Object(code, _) => *code,
            Self::List(_) | Self::Watch(_) | Self::Json(_) => StatusCode::OK,
            Self::Text404 => StatusCode::NOT_FOUND,
            Self::Problem(problem) => {
                StatusCode::from_u16(problem.code).expect("a test asks only for codes that HTTP has")
            }
        }
    }

    fn respond(self, call: &Call, shared: Arc<Shared>) -> Response {
        let code = self.code();
        match self {
            Self::Object(_, object) => {
                let mut body = Vec::with_capacity(object.len() + 64);
                object.write(call.resource, call.form(), &mut body);
                answer(code, Body::from(body))
            }
            Self::List(listing) => answer(code, Body::from(listing.write(call.resource, call.form()))),
            Self::Watch(start) => answer(code, start.body(shared)),
            Self::Json(value) => answer(code, Body::from(value.to_string())),
            Self::Text404 => {
                let mut response = answer(code, Body::from("404 page not found\n"));
                let plain = HeaderValue::from_static("text/plain; charset=utf-8");
                response.headers_mut().insert(header::CONTENT_TYPE, plain);
                response
            }
            Self::Problem(refused) => problem(&refused),
        }
    }
}

impl Listing {
    fn write(&self, resource: Resource, form: Form) -> Vec<u8> {
        let (api_version, kind) = match form {
            Form::Whole => (resource.types().0, format!("{}List", resource.types().1)),
            Form::Metadata => ("meta.k8s.io/v1", "PartialObjectMetadataList".to_owned()),
        };
        let mut metadata = json!({ "resourceVersion": self.version.to_string() });
        if let Some((token, left)) = &self.next {
            metadata["continue"] = token.as_str().into();
            metadata["remainingItemCount"] = (*left).into();
        }
        let room = self.items.iter().map(|object| object.len() + 80).sum::<usize>() + 256;
        let mut out = Vec::with_capacity(room);
        let head = format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"items":["#);
        out.extend_from_slice(head.as_bytes());
        for (index, object) in self.items.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            object.write_item(form, &mut out);
        }
        out.extend_from_slice(b"]}");
        out
    }
}

fn answer(code: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn problem(refused: &Problem) -> Response {
    let code = Outcome::Problem(refused.clone()).code();
    let mut response = answer(code, Body::from(refused.to_value().to_string()));
    if let Some(seconds) = refused.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// What a delete that left nothing answers.
fn success(resource: Resource, object: &Object) -> Value {
    let uid = object.value(resource)["metadata"]["uid"].take();
    let details = json!({ "name": object.name, "group": resource.group(), "kind": resource.plural(), "uid": uid });
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}

fn discovery() -> Value {
    let verbs = json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": SCHEDULING,
        "resources": [
            { "name": "podgroups", "singularName": "podgroup", "namespaced": true, "kind": "PodGroup", "verbs": verbs },
            {
                "name": "podgroups/status", "singularName": "", "namespaced": true, "kind": "PodGroup",
                "verbs": ["get", "patch", "update"],
            },
            { "name": "workloads", "singularName": "workload", "namespaced": true, "kind": "Workload", "verbs": verbs },
        ],
    })
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "37",
        "gitVersion": "v1.37.0",
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.26",
        "compiler": "gc",
        "platform": "linux/amd64",
    })
}
