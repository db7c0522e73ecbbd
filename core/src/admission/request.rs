//! The admission request, as far as it is read.

use std::borrow::Cow;

use serde_json::value::RawValue;
use thiserror::Error;

use super::{Settings, SettingsError};
use crate::json::{self, Node, leads, read};

/// An `AdmissionRequest` of `admission.k8s.io/v1`. The objects in it are not parsed.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    /// The group of what is admitted, empty for the core group.
    pub group: Cow<'a, str>,
    /// The kind of what is admitted.
    pub kind: Cow<'a, str>,
    /// The subresource, empty for the object itself.
    pub sub_resource: Cow<'a, str>,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: Cow<'a, str>,
    /// The namespace of the object.
    pub namespace: Cow<'a, str>,
    /// Whether a deletion has a condition or says how dependents go: the garbage collector's do.
    pub has_delete_conditions: bool,
    /// The name of the user who asks.
    pub username: Cow<'a, str>,
    /// The object as it is to become.
    pub object: Option<&'a RawValue>,
    /// The object as it is.
    pub old_object: Option<&'a RawValue>,
}

/// A request and the settings by which it is answered: what an engine hands to a policy.
#[derive(Clone, Debug, Default)]
pub struct Call<'a> {
    /// The request.
    pub request: Request<'a>,
    settings: Option<&'a RawValue>,
}

/// Why a call cannot be read.
#[derive(Debug, Error)]
pub enum CallError {
    /// It is no JSON, or a level that must be an object is none.
    #[error("the request cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// There is no request in it.
    #[error("the request cannot be read: there is none")]
    NoRequest,
    /// A member that must be a string is none.
    #[error("the request cannot be read: request.{0} must be a string")]
    NoString(&'static str),
}

const GROUP: usize = 0;
const KIND: usize = 1;
const SUB_RESOURCE: usize = 2;
const OPERATION: usize = 3;
const USERNAME: usize = 4;
const OBJECT: usize = 5;
const OLD_OBJECT: usize = 6;
const SETTINGS: usize = 7;
const NAMESPACE: usize = 8;
const PRECONDITIONS: usize = 9;
const PROPAGATION_POLICY: usize = 10;
const MEMBERS: usize = 11;

static CALL: &[Node] = &[
    json::level(
        "request",
        0,
        &[
            leads("kind", &[read("group", GROUP), read("kind", KIND)]),
            read("subResource", SUB_RESOURCE),
            read("operation", OPERATION),
            read("namespace", NAMESPACE),
            leads("options", &[read("preconditions", PRECONDITIONS), read("propagationPolicy", PROPAGATION_POLICY)]),
            leads("userInfo", &[read("username", USERNAME)]),
            read("object", OBJECT),
            read("oldObject", OLD_OBJECT),
        ],
    ),
    read("settings", SETTINGS),
];

impl<'a> Call<'a> {
    /// Reads `{"request": …, "settings": …}`.
    ///
    /// # Errors
    /// The text is no JSON, has no request, or has one of which a member is of the wrong type.
    pub fn parse(json: &'a str) -> Result<Self, CallError> {
        let mut members = [None; MEMBERS];
        let mut request = [false];
        json::project(json, CALL, &mut members, &mut request)?;
        if request == [false] {
            return Err(CallError::NoRequest);
        }
        let member = |slot: usize| members.get(slot).copied().flatten();
        let text = |slot, name| match member(slot) {
            None => Ok(Cow::Borrowed("")),
            Some(raw) => json::text(raw).ok_or(CallError::NoString(name)),
        };
        Ok(Self {
            request: Request {
                group: text(GROUP, "kind.group")?,
                kind: text(KIND, "kind.kind")?,
                sub_resource: text(SUB_RESOURCE, "subResource")?,
                operation: text(OPERATION, "operation")?,
                namespace: text(NAMESPACE, "namespace")?,
                has_delete_conditions: member(PRECONDITIONS).is_some() || member(PROPAGATION_POLICY).is_some(),
                username: text(USERNAME, "userInfo.username")?,
                object: member(OBJECT),
                old_object: member(OLD_OBJECT),
            },
            settings: member(SETTINGS),
        })
    }

    /// The settings; their default where there are none.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn settings(&self) -> Result<Settings, SettingsError> {
        self.settings.map_or_else(|| Ok(Settings::default()), |raw| Settings::parse(raw.get()))
    }
}
