//! From the bytes of an `AdmissionReview` to a question for the core, and from its verdict to bytes. Pure.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde::Deserialize;
use statefulset_scheduling_core::admission::{
    AdmissionReview, Call, CallError, Lookup, LookupError, Settings, Verdict, review,
};
use thiserror::Error;

/// What an API server asks.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    uid: String,
    call: Call<'a>,
}

/// Why bytes are no question.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// They are no text.
    #[error("the body is not UTF-8: {0}")]
    Text(#[from] std::str::Utf8Error),
    /// They are no `AdmissionReview`.
    #[error("the body is no AdmissionReview: {0}")]
    Json(#[from] serde_json::Error),
    /// They are another kind of object, or of another version.
    #[error(
        "the body is {kind} of {api_version}, and not {} of {}",
        AdmissionReview::KIND,
        AdmissionReview::API_VERSION
    )]
    Type {
        /// Its version.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// The request in it cannot be read.
    #[error("{0}")]
    Call(#[from] CallError),
}

/// The StatefulSet that has to be read before a question can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    request: Identified,
}

#[derive(Deserialize)]
struct Identified {
    uid: String,
}

impl<'a> Question<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// It is no `AdmissionReview` with a request.
    pub fn read(body: &'a [u8]) -> Result<Self, Unreadable> {
        let body = std::str::from_utf8(body)?;
        let envelope: Envelope<'_> = serde_json::from_str(body)?;
        if (&*envelope.api_version, &*envelope.kind) != (AdmissionReview::API_VERSION, AdmissionReview::KIND) {
            let (api_version, kind) = (envelope.api_version.into_owned(), envelope.kind.into_owned());
            return Err(Unreadable::Type { api_version, kind });
        }
        Ok(Self { uid: envelope.request.uid, call: Call::parse(body)? })
    }

    /// The verdict, or what has to be read before there is one. The core asks for one object at most.
    ///
    /// # Errors
    /// What has to be read.
    pub fn first(&self, settings: &Settings) -> Result<Verdict, Wanted> {
        let notes = Notes(OnceCell::new());
        let verdict = review(&self.call.request, settings, &notes);
        notes.0.into_inner().map_or(Ok(verdict), Err)
    }

    /// The verdict, once it was read.
    pub fn second(&self, settings: &Settings, found: Result<String, LookupError>) -> Verdict {
        review(&self.call.request, settings, &Found(found))
    }

    /// The bytes of the answer.
    ///
    /// # Errors
    /// The patch cannot be written.
    pub fn answer(&self, verdict: Verdict) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&AdmissionReview::new(self.uid.clone(), verdict)?)
    }
}

/// Notes what is looked up, and has nothing.
struct Notes(OnceCell<Wanted>);

impl Lookup for Notes {
    fn statefulset(&self, namespace: &str, name: &str) -> Result<String, LookupError> {
        self.0.get_or_init(|| Wanted { namespace: namespace.to_owned(), name: name.to_owned() });
        Err(LookupError::Failed("it is still to be read".to_owned()))
    }
}

/// Has what was read.
struct Found(Result<String, LookupError>);

impl Lookup for Found {
    fn statefulset(&self, _: &str, _: &str) -> Result<String, LookupError> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn body(request: &Value) -> Vec<u8> {
        let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
        review.to_string().into_bytes()
    }

    fn pod() -> Value {
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u", "controller": true });
        json!({
            "uid": "r", "kind": { "group": "", "version": "v1", "kind": "Pod" }, "operation": "CREATE",
            "namespace": "ns", "oldObject": null, "options": { "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1" },
            "object": { "metadata": { "name": "web-0", "labels": { "statefulset-scheduling.dev/managed": "true" },
                "ownerReferences": [owner] }, "spec": {} },
        })
    }

    #[test]
    fn a_pod_wants_its_stateful_set_and_is_held_without_it() {
        let body = body(&pod());
        let question = Question::read(&body).expect("it is one");
        let settings = Settings::default();
        let wanted = question.first(&settings).expect_err("it is to be read");
        assert_eq!((&*wanted.namespace, &*wanted.name), ("ns", "web"));
        let verdict = question.second(&settings, Err(LookupError::TimedOut("no answer".to_owned())));
        assert_eq!((verdict.allowed, verdict.code), (false, 500));
        let answer: Value = serde_json::from_slice(&question.answer(verdict).expect("it can be")).expect("it is JSON");
        assert_eq!((&answer["response"]["uid"], &answer["response"]["allowed"]), (&json!("r"), &json!(false)));
    }

    #[test]
    fn what_is_not_looked_at_wants_nothing() {
        let body =
            body(&json!({ "uid": "r", "kind": { "group": "apps", "kind": "Deployment" }, "operation": "CREATE" }));
        let question = Question::read(&body).expect("it is one");
        assert!(question.first(&Settings::default()).is_ok_and(|verdict| verdict.allowed));
    }

    #[test]
    fn settings_in_the_body_are_left_there() {
        let mut review: Value = serde_json::from_slice(&body(&pod())).expect("it is JSON");
        review["settings"] = json!({ "featureGates": "WorkloadWithStatefulSet=false" });
        let body = review.to_string().into_bytes();
        assert!(Question::read(&body).expect("it is one").first(&Settings::default()).is_err());
    }

    #[test]
    fn what_is_no_question_is_an_error() {
        let typed = |api_version: &str, kind: &str| {
            json!({ "apiVersion": api_version, "kind": kind, "request": { "uid": "u" } }).to_string()
        };
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for body in [
            String::new(),
            "{".to_owned(),
            "null".to_owned(),
            "[]".to_owned(),
            deep,
            json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview" }).to_string(),
            json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": null }).to_string(),
            json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {} }).to_string(),
            json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "request": { "uid": "u", "operation": 3 } })
            .to_string(),
            typed("admission.k8s.io/v1beta1", "AdmissionReview"),
            typed("admission.k8s.io/v1", "ConversionReview"),
        ] {
            assert!(Question::read(body.as_bytes()).is_err(), "{}", body.get(..80).unwrap_or(&body));
        }
        assert!(matches!(Question::read(b"\xff"), Err(Unreadable::Text(_))));
        assert!(Question::read(typed("admission.k8s.io/v1", "AdmissionReview").as_bytes()).is_ok());
    }
}
