//! One handler behind every path: who asks, what for, what goes wrong, what is done, and how the answer
//! is written.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use crate::authorization;
use crate::call::{self, Accept, Call};
use crate::connection::Line;
use crate::discovery;
use crate::faults::{Fault, Occasion};
use crate::identity::User;
use crate::log::{self, Verb};
use crate::resource::{Resource, Served, Subresource};
use crate::server::Shared;
use crate::status::Problem;
use crate::store::{Form, Listing, Object};
use crate::table::{Rows, TableOptions};
use crate::watch::Start;
use crate::write::{Deleted, Write, scale_of};

/// The largest body that is read.
const BODY: usize = 3 << 20;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

/// What an answer consists of.
enum Content {
    Object(Arc<Object>),
    List(Listing),
    Watch(Box<Start>),
    Json(Value),
    Text(&'static str),
    Protobuf(&'static [u8]),
}

/// An answer, and how it is to be written.
struct Answer {
    code: u16,
    content: Content,
    warnings: Vec<String>,
    retry_after: Option<u32>,
}

impl Answer {
    fn new(code: u16, content: Content) -> Self {
        Self { code, content, warnings: Vec::new(), retry_after: None }
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        let retry_after = problem.retry_after;
        Self { retry_after, ..Self::new(problem.code, Content::Json(problem.to_value())) }
    }
}

/// How the objects of an answer are written.
#[derive(Clone, Copy)]
struct Style {
    served: Served,
    accept: Accept,
    table: Option<TableOptions>,
}

async fn handle(State(shared): State<Arc<Shared>>, ConnectInfo(line): ConnectInfo<Line>, request: Request) -> Response {
    let path = request.uri().path();
    let gates = shared.config().gates;
    if matches!(path.trim_end_matches('/'), "/healthz" | "/readyz" | "/livez") {
        return write(Answer::new(200, Content::Text("ok")), None, &shared);
    }
    let Some(target) = call::route(path, gates) else {
        if path == "/openapi/v2" && asks_for_protobuf(request.headers()) {
            return write(Answer::new(200, Content::Protobuf(discovery::OPENAPI_V2)), None, &shared);
        }
        shared.change(|inner| inner.log.discoveries += 1);
        let document = discovery::document(path, gates).filter(|_| request.method() == Method::GET);
        let answer = match document {
            Some(document) => Answer::new(200, Content::Json(document)),
            None => Answer::new(404, Content::Text("404 page not found\n")),
        };
        return write(answer, None, &shared);
    };
    let Some(user) = User::of(request.headers(), &shared.config().tokens) else {
        return write(Problem::unauthorized().into(), None, &shared);
    };
    let (parts, body) = request.into_parts();
    let body = match to_bytes(body, BODY).await {
        Ok(body) => body,
        Err(error) => return write(Problem::bad_request(error.to_string()).into(), None, &shared),
    };
    let call = match Call::read(&parts.method, &parts.uri, &parts.headers, target, user, &body) {
        Ok(call) => call,
        Err(problem) => return write(problem.into(), None, &shared),
    };
    let style = Style { served: call.target.served, accept: call.accept, table: call.table() };
    if let Some(answer) = answer(&shared, &call, &line).await {
        write(answer, Some(style), &shared)
    } else {
        line.cut();
        // Something has to be answered, but it can no longer be written.
        Response::new(Body::empty())
    }
}

fn asks_for_protobuf(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).is_some_and(|accept| accept.to_str().is_ok_and(|accept| accept.contains("+protobuf")))
}

/// Notes a request and does it, or what a fault does instead; none to close the connection.
async fn answer(shared: &Arc<Shared>, call: &Call, line: &Line) -> Option<Answer> {
    // A connection that was closed while the request was on its way carries no request.
    if line.is_cut() {
        return None;
    }
    let (sequence, n) = shared.change(|inner| {
        let user = inner.log.user(&call.user.username);
        let key = (Arc::clone(&user), call.verb, call.target.served.resource);
        let n = inner.log.counts().get(&key).copied().unwrap_or_default();
        let sequence = inner.log.push(log::Request {
            sequence: 0,
            user,
            verb: call.verb,
            resource: call.target.served.resource,
            subresource: call.target.subresource,
            namespace: call.target.namespace.clone(),
            name: call.name().map(str::to_owned),
            body: if inner.log.bodies { call.body.clone() } else { Value::Null },
            dry_run: call.dry_run().unwrap_or_default(),
            answer: None,
            answered: None,
        });
        (sequence, n)
    });
    let selected = call.selected_name();
    let occasion = Occasion {
        user: &call.user.username,
        verb: call.verb,
        resource: call.target.served.resource,
        group: call.target.served.group,
        subresource: call.target.subresource,
        namespace: call.target.namespace.as_deref(),
        name: call.name().or(selected.as_deref()),
        n,
        sequence,
    };
    let fault = shared.faults().and_then(|faults| faults.decide(&occasion));
    let mut cut_after = None;
    match fault {
        Some(Fault::DropBefore) => return None,
        Some(Fault::Status(code, retry_after)) => {
            shared.change(|inner| inner.log.answered(sequence, code));
            return Some(Problem::fault(code, retry_after).into());
        }
        Some(Fault::Delay(delay)) => tokio::time::sleep(delay).await,
        Some(Fault::CutAfter(events)) if call.verb == Verb::Watch => cut_after = Some(events),
        Some(Fault::DropAfter | Fault::CutAfter(_)) | None => {}
    }
    let answer = if shared.allows(&occasion) {
        perform(shared, call, cut_after).await
    } else {
        authorization::refusal(&occasion).into()
    };
    if fault == Some(Fault::DropAfter) {
        return None;
    }
    shared.change(|inner| inner.log.answered(sequence, answer.code));
    Some(answer)
}

async fn perform(shared: &Arc<Shared>, call: &Call, cut_after: Option<usize>) -> Answer {
    if !call.verb.is_write() {
        return read(shared, call, cut_after).unwrap_or_else(Answer::from);
    }
    let mut write = match Write::new(shared, call) {
        Ok(write) => write,
        Err(problem) => return problem.into(),
    };
    let mut answer = change(&mut write, call).await.unwrap_or_else(Answer::from);
    answer.warnings = write.warnings;
    answer
}

fn read(shared: &Shared, call: &Call, cut_after: Option<usize>) -> Result<Answer, Problem> {
    let resource = call.target.served.resource;
    let mut inner = shared.lock();
    let current = inner.store.version;
    let asked = call.query.number("resourceVersion").unwrap_or_default();
    match call.verb {
        Verb::Watch => {
            let wish = call.wish(cut_after)?;
            // Further than the server is, a watch waits; that far can only be another server's version.
            if wish.since.is_some_and(|since| since > current) {
                return Err(Problem::too_new(asked, current));
            }
            Ok(Answer::new(200, Content::Watch(Box::new(Start::new(wish, &inner.store)))))
        }
        Verb::List => {
            if asked > current {
                return Err(Problem::too_new(asked, current));
            }
            if call.query.get("resourceVersionMatch") == Some("Exact") && asked != current {
                return Err(Problem::expired(format!("The resourceVersion for the provided list is too old: {asked}")));
            }
            // Answers from the watch cache ignore the limit, as the real one does.
            let limit = call.query.number("limit").filter(|_| call.query.get("resourceVersion") != Some("0"));
            let limit = limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
            let listing = match call.query.decoded("continue") {
                Some(token) => inner.store.list_on(resource, &token, limit)?,
                None => inner.store.list(resource, &call.selector()?, limit),
            };
            Ok(Answer::new(200, Content::List(listing)))
        }
        _ => {
            let namespace = call.target.namespace.as_deref().unwrap_or_default();
            let name = call.target.name.as_deref().unwrap_or_default();
            let object = Arc::clone(inner.store.find(resource, namespace, name)?);
            Ok(Answer::new(
                200,
                match call.target.subresource {
                    Some(Subresource::Scale) => Content::Json(scale_of(&object.value(resource))),
                    _ => Content::Object(object),
                },
            ))
        }
    }
}

async fn change(write: &mut Write<'_>, call: &Call) -> Result<Answer, Problem> {
    let resource = call.target.served.resource;
    let written = |(object, created)| Answer::new(if created { 201 } else { 200 }, Content::Object(object));
    Ok(match (call.verb, call.target.subresource) {
        (Verb::Create, Some(Subresource::Binding)) => {
            write.bind().await?;
            Answer::new(
                201,
                Content::Json(json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
                })),
            )
        }
        (Verb::Create, Some(_)) => {
            write.evict().await?;
            Answer::new(
                201,
                Content::Json(json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
                })),
            )
        }
        (Verb::Create, None) => Answer::new(201, Content::Object(write.create().await?)),
        (_, Some(Subresource::Scale)) => Answer::new(200, Content::Json(write.scale().await?)),
        (Verb::Update, _) => written(write.update().await?),
        (Verb::Patch, _) => written(write.patch().await?),
        (Verb::DeleteCollection, _) => {
            let items = write.delete_collection().await?;
            let version = items.iter().map(|object| object.version).max().unwrap_or_default();
            Answer::new(200, Content::List(Listing { version, items, next: None }))
        }
        _ => Answer::new(
            200,
            match write.delete().await? {
                Deleted::Waits(object) => Content::Object(object),
                Deleted::Gone(object) if resource.returns_deleted() => Content::Object(object),
                Deleted::Gone(object) => Content::Json(success(resource, &object)),
            },
        ),
    })
}

/// What a delete that left nothing answers.
fn success(resource: Resource, object: &Object) -> Value {
    let metadata = object.value(resource)["metadata"].take();
    let details = json!({
        "name": metadata["name"], "group": resource.group(), "kind": resource.plural(), "uid": metadata["uid"],
    });
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}

impl Listing {
    fn write(&self, served: Served, form: Form) -> Vec<u8> {
        let (api_version, kind) = match form {
            Form::Whole => (served.api_version(), format!("{}List", served.resource.kind())),
            Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned()),
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
            object.write_item(served, form, &mut out);
        }
        out.extend_from_slice(b"]}");
        out
    }
}

fn write(answer: Answer, style: Option<Style>, shared: &Arc<Shared>) -> Response {
    let rows = style.and_then(|style| style.table.map(|options| Rows::new(style.served, options)));
    let served = style.map_or_else(|| Resource::Pods.served(), |style| style.served);
    let form = style.map_or(Form::Whole, |style| style.accept.form);
    let mut content_type = "application/json";
    let body = match (answer.content, rows) {
        (Content::Object(object), Some(rows)) => Body::from(rows.object(&object, shared.now()).to_string()),
        (Content::List(listing), Some(rows)) => Body::from(rows.list(&listing, shared.now()).to_string()),
        (Content::Object(object), None) => {
            let mut body = Vec::with_capacity(object.len() + 64);
            object.write(served, form, &mut body);
            Body::from(body)
        }
        (Content::List(listing), None) => Body::from(listing.write(served, form)),
        (Content::Watch(start), _) => start.body(Arc::clone(shared)),
        (Content::Json(value), _) => Body::from(value.to_string()),
        (Content::Text(text), _) => {
            content_type = "text/plain; charset=utf-8";
            Body::from(text)
        }
        (Content::Protobuf(bytes), _) => {
            content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
            Body::from(bytes)
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(seconds) = answer.retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    for warning in &answer.warnings {
        let text: String = warning.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            headers.append(header::WARNING, value);
        }
    }
    response
}
