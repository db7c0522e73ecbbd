//! Requests: what a path, a method, a query and a body mean.
//!
//! Left out: the deprecated `/watch/` paths, `/bindings` without a pod, YAML bodies, and protobuf but for one kind.

use std::time::Duration;

use axum::http::{HeaderMap, Method, Uri, header};
use serde_json::Value;

use crate::codec::FieldValidation;
use crate::config::Gates;
use crate::discovery;
use crate::identity::User;
use crate::log::Verb;
use crate::owners::Manager;
use crate::protobuf;
use crate::resource::{Served, Subresource};
use crate::select::Selector;
use crate::status::Problem;
use crate::store::Form;
use crate::table::{Include, TableOptions, TableVersion};
use crate::watch::Wish;

/// A kind of patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    fn of(content_type: &str) -> Option<Self> {
        match content_type {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// How the answer is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) form: Form,
    pub(crate) table: Option<TableVersion>,
}

/// What a path is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) served: Served,
    pub(crate) subresource: Option<Subresource>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

/// A request that was understood.
pub(crate) struct Call {
    pub(crate) user: User,
    pub(crate) verb: Verb,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) patch: Option<PatchKind>,
    pub(crate) accept: Accept,
    pub(crate) body: Value,
    agent: String,
}

/// What a path is about; none for a path of which the server knows nothing.
pub(crate) fn route(path: &str, gates: Gates) -> Option<Target> {
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    if !discovery::serves(group, version, gates) {
        return None;
    }
    let find = |plural: &str| {
        Served::all(gates)
            .find(|served| served.group == group && served.version == version && served.resource.plural() == plural)
    };
    let owned = |text: &str| Some(decode(text));
    let part = |served: &Served, text: &str| {
        served.resource.subresources().iter().copied().find(|subresource| subresource.as_str() == text)
    };
    let target = |served: Served, subresource, namespace, name| Target { served, subresource, namespace, name };
    match rest {
        ["namespaces", name, last] if find("namespaces").is_some_and(|served| part(&served, last).is_some()) => {
            let served = find("namespaces")?;
            Some(target(served, part(&served, last), None, owned(name)))
        }
        ["namespaces", namespace, plural] => {
            let served = find(plural).filter(|served| served.resource.is_namespaced())?;
            Some(target(served, None, owned(namespace), None))
        }
        ["namespaces", namespace, plural, name] => {
            let served = find(plural).filter(|served| served.resource.is_namespaced())?;
            Some(target(served, None, owned(namespace), owned(name)))
        }
        ["namespaces", namespace, plural, name, last] => {
            let served = find(plural).filter(|served| served.resource.is_namespaced())?;
            Some(target(served, Some(part(&served, last)?), owned(namespace), owned(name)))
        }
        [plural] => Some(target(find(plural)?, None, None, None)),
        [plural, name] => {
            let served = find(plural).filter(|served| !served.resource.is_namespaced())?;
            Some(target(served, None, None, owned(name)))
        }
        [plural, name, last] => {
            let served = find(plural).filter(|served| !served.resource.is_namespaced())?;
            Some(target(served, Some(part(&served, last)?), None, owned(name)))
        }
        _ => None,
    }
}

/// What a method does to a target; none where it may not be used.
fn verb(method: &Method, target: &Target, query: &Query) -> Option<Verb> {
    let is_watch = matches!(query.get("watch"), Some("true" | "1"));
    let in_place = target.namespace.is_some() || !target.served.resource.is_namespaced();
    match (&target.name, target.subresource) {
        (_, Some(Subresource::Binding | Subresource::Eviction)) => (method == Method::POST).then_some(Verb::Create),
        (_, Some(Subresource::Finalize)) => (method == Method::PUT).then_some(Verb::Update),
        (Some(_), subresource) => match *method {
            Method::GET => Some(Verb::Get),
            Method::PUT => Some(Verb::Update),
            Method::PATCH => Some(Verb::Patch),
            Method::DELETE if subresource.is_none() => Some(Verb::Delete),
            _ => None,
        },
        (None, _) => match *method {
            Method::GET if is_watch => Some(Verb::Watch),
            Method::GET => Some(Verb::List),
            Method::POST if in_place => Some(Verb::Create),
            Method::DELETE if in_place => Some(Verb::DeleteCollection),
            _ => None,
        },
    }
}

impl Call {
    pub(crate) fn read(
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        target: Target,
        user: User,
        body: &[u8],
    ) -> Result<Self, Problem> {
        let text =
            |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let query = Query(uri.query().unwrap_or_default().to_owned());
        let verb = verb(method, &target, &query).ok_or_else(Problem::method_not_allowed)?;
        let content_type = text(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
        let patch = match verb {
            Verb::Patch => Some(PatchKind::of(content_type).ok_or_else(|| Problem::unsupported(content_type))?),
            _ => None,
        };
        let body = match serde_json::from_slice(body) {
            _ if body.is_empty() => Value::Null,
            _ if content_type.ends_with("protobuf") => {
                protobuf::namespace(body).ok_or_else(|| Problem::unsupported(content_type))?
            }
            _ if content_type.ends_with("cbor") => return Err(Problem::unsupported(content_type)),
            Ok(body) => body,
            Err(error) => return Err(Problem::bad_request(format!("the body is not JSON: {error}"))),
        };
        Ok(Self {
            user,
            verb,
            target,
            query,
            patch,
            accept: accept(text(header::ACCEPT)),
            body,
            agent: text(header::USER_AGENT).split('/').next().unwrap_or_default().to_owned(),
        })
    }

    /// The name in the path; for a create, from the body.
    pub(crate) fn name(&self) -> Option<&str> {
        self.target.name.as_deref().or_else(|| self.body["metadata"]["name"].as_str())
    }

    /// The only name that a list or a watch selects by its field: authorization takes it for the name.
    pub(crate) fn selected_name(&self) -> Option<String> {
        let fields = self.query.decoded("fieldSelector")?;
        let is_name = |field: &str| Some(field.strip_prefix("metadata.name=")?.trim_start_matches('=').to_owned());
        fields.split(',').find_map(is_name)
    }

    /// Whether nothing is to be stored.
    pub(crate) fn dry_run(&self) -> Result<bool, Problem> {
        let in_query = self.query.decoded("dryRun");
        let options = if self.target.subresource == Some(Subresource::Eviction) {
            &self.body["deleteOptions"]
        } else {
            &self.body
        };
        let is_delete = matches!(self.verb, Verb::Delete | Verb::DeleteCollection)
            || self.target.subresource == Some(Subresource::Eviction);
        let in_body = options["dryRun"].as_array().filter(|_| is_delete).and_then(|list| list.first()?.as_str());
        match in_query.as_deref().or(in_body) {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => {
                Err(Problem::bad_request(format!("dryRun: Unsupported value: \"{other}\": supported values: \"All\"")))
            }
        }
    }

    pub(crate) fn field_validation(&self) -> Result<FieldValidation, Problem> {
        FieldValidation::parse(self.query.get("fieldValidation"))
    }

    pub(crate) fn manager(&self) -> Manager {
        let name = self
            .query
            .decoded("fieldManager")
            .unwrap_or_else(|| if self.agent.is_empty() { "unknown".to_owned() } else { self.agent.clone() });
        Manager { name, applies: self.patch == Some(PatchKind::Apply) }
    }

    /// Whether an apply takes fields from others.
    pub(crate) fn forces(&self) -> bool {
        self.query.get("force") == Some("true")
    }

    pub(crate) fn selector(&self) -> Result<Selector, Problem> {
        let text = |key| self.query.decoded(key).unwrap_or_default();
        let namespace = self.target.namespace.as_deref();
        Selector::parse(self.target.served, namespace, &text("labelSelector"), &text("fieldSelector"))
    }

    pub(crate) fn table(&self) -> Option<TableOptions> {
        let include = match self.query.get("includeObject") {
            Some("Object") => Include::Object,
            Some("None") => Include::Nothing,
            _ => Include::Metadata,
        };
        self.accept.table.map(|version| TableOptions { include, version })
    }

    pub(crate) fn wish(&self, cut_after: Option<usize>) -> Result<Wish, Problem> {
        let is_set = |key| self.query.get(key) == Some("true");
        let marks_initial = is_set("sendInitialEvents");
        // Versions 0 and none ask for the current state first.
        let since = self.query.number("resourceVersion").filter(|version| *version > 0 && !marks_initial);
        Ok(Wish {
            served: self.target.served,
            selector: self.selector()?,
            form: self.accept.form,
            table: self.table(),
            bookmarks: is_set("allowWatchBookmarks"),
            since,
            marks_initial,
            timeout: self.query.number("timeoutSeconds").filter(|it| *it > 0).map(Duration::from_secs),
            cut_after,
        })
    }
}

/// The first form of an answer that is asked for and served.
fn accept(header: &str) -> Accept {
    for range in header.split(',') {
        let mut parts = range.split(';').map(str::trim);
        if !matches!(parts.next(), Some("application/json" | "*/*" | "application/*")) {
            continue;
        }
        let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let get = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        match (get("as"), get("v")) {
            (None, _) => break,
            (Some("Table"), Some("v1")) => return Accept { form: Form::Whole, table: Some(TableVersion::V1) },
            (Some("Table"), Some("v1beta1")) => {
                return Accept { form: Form::Whole, table: Some(TableVersion::V1Beta1) };
            }
            (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("v1")) => {
                return Accept { form: Form::Metadata, table: None };
            }
            _ => {}
        }
    }
    Accept { form: Form::Whole, table: None }
}

/// The part of a URL behind the question mark.
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(name, value)| *name == key && !value.is_empty()).map(|(_, value)| value)
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    pub(crate) fn decoded(&self, key: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Resource;

    type Routed = (Resource, Option<Subresource>, Option<String>, Option<String>);

    fn routed(path: &str) -> Option<Routed> {
        route(path, Gates::default())
            .map(|target| (target.served.resource, target.subresource, target.namespace, target.name))
    }

    #[test]
    fn paths_lead_to_resources() {
        let some = |text: &str| Some(text.to_owned());
        for (path, target) in [
            ("/api/v1/pods", Some((Resource::Pods, None, None, None))),
            ("/api/v1/namespaces", Some((Resource::Namespaces, None, None, None))),
            ("/api/v1/namespaces/a", Some((Resource::Namespaces, None, None, some("a")))),
            (
                "/api/v1/namespaces/a/finalize",
                Some((Resource::Namespaces, Some(Subresource::Finalize), None, some("a"))),
            ),
            ("/api/v1/namespaces/a/pods", Some((Resource::Pods, None, some("a"), None))),
            (
                "/apis/apps/v1/namespaces/a/statefulsets/web/scale",
                Some((Resource::StatefulSets, Some(Subresource::Scale), some("a"), some("web"))),
            ),
            ("/apis/events.k8s.io/v1/events", Some((Resource::Events, None, None, None))),
            ("/api/v1/nodes/n1/status", Some((Resource::Nodes, Some(Subresource::Status), None, some("n1")))),
            ("/api/v1/namespaces/a/nodes", None),
            ("/api/v1/pods/web-0", None),
            ("/apis/apps/v1/pods", None),
            ("/apis/apps/v2/statefulsets", None),
            ("/nothing", None),
        ] {
            assert_eq!(routed(path), target, "{path}");
        }
    }

    #[test]
    fn methods_are_verbs() {
        let verb_of = |method: Method, path: &str, query: &str| {
            let target = route(path, Gates::default()).expect("it is served");
            verb(&method, &target, &Query(query.into()))
        };
        assert_eq!(verb_of(Method::GET, "/api/v1/pods", "watch=1"), Some(Verb::Watch));
        assert_eq!(verb_of(Method::POST, "/api/v1/pods", ""), None);
        assert_eq!(verb_of(Method::POST, "/api/v1/nodes", ""), Some(Verb::Create));
        assert_eq!(verb_of(Method::DELETE, "/api/v1/namespaces/a/pods", ""), Some(Verb::DeleteCollection));
        assert_eq!(verb_of(Method::POST, "/api/v1/namespaces/a/pods/p/binding", ""), Some(Verb::Create));
        assert_eq!(verb_of(Method::GET, "/api/v1/namespaces/a/pods/p/binding", ""), None);
        assert_eq!(verb_of(Method::DELETE, "/apis/apps/v1/namespaces/a/statefulsets/s/status", ""), None);
    }

    #[test]
    fn the_first_form_that_is_served_is_taken() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                     application/json";
        assert_eq!(accept(table).table, Some(TableVersion::V1));
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(accept(metadata).form, Form::Metadata);
        let protobuf = "application/vnd.kubernetes.protobuf, application/json";
        assert_eq!(accept(protobuf), Accept { form: Form::Whole, table: None });
    }
}
