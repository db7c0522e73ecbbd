//! A verdict in the words of `admission.k8s.io/v1`, as an API server expects it of a webhook.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::Verdict;

/// An `AdmissionReview` with its response.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionReview {
    api_version: &'static str,
    kind: &'static str,
    response: Response,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Status {
    message: String,
    code: u16,
}

impl AdmissionReview {
    /// `apiVersion` of the question and of the answer.
    pub const API_VERSION: &str = "admission.k8s.io/v1";
    /// `kind` of the question and of the answer.
    pub const KIND: &str = "AdmissionReview";

    /// The answer to the request of this UID.
    ///
    /// # Errors
    /// The patch cannot be written.
    pub fn new(uid: String, verdict: Verdict) -> serde_json::Result<Self> {
        let patch =
            if verdict.patch.is_empty() { None } else { Some(STANDARD.encode(serde_json::to_vec(&verdict.patch)?)) };
        Ok(Self {
            api_version: Self::API_VERSION,
            kind: Self::KIND,
            response: Response {
                uid,
                allowed: verdict.allowed,
                status: (!verdict.allowed).then_some(Status { message: verdict.message, code: verdict.code }),
                patch_type: patch.as_ref().map(|_| "JSONPatch"),
                patch,
                warnings: verdict.warnings,
            },
        })
    }
}
