//! The answer to an admission request.

use serde::Serialize;

use super::Patch;
use crate::field::ErrorList;

/// The longest message of a denial, in bytes: a bad value can be as large as the object.
pub const MAX_MESSAGE_LENGTH: usize = 8 * 1024;

/// The answer to an admission request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Why it is denied, and what to change; empty where it is allowed.
    pub message: String,
    /// The HTTP status of a denial; 0 where it is allowed.
    pub code: u16,
    /// The errors behind a denial that is about fields.
    pub errors: ErrorList,
    /// What is allowed and yet hardly meant.
    pub warnings: Vec<String>,
    /// What changes about the object.
    pub patch: Patch,
}

impl Verdict {
    /// The request is allowed, and the object is not touched.
    pub fn allow() -> Self {
        Self {
            allowed: true,
            message: String::new(),
            code: 0,
            errors: ErrorList::new(),
            warnings: Vec::new(),
            patch: Patch::default(),
        }
    }

    /// The request is denied.
    pub fn deny(code: u16, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MAX_MESSAGE_LENGTH {
            message.truncate(message.floor_char_boundary(MAX_MESSAGE_LENGTH));
            message.push('…');
        }
        Self { allowed: false, message, code, ..Self::allow() }
    }

    /// The object is invalid.
    pub fn invalid(errors: ErrorList) -> Self {
        let denial = Self::deny(422, errors.to_string());
        Self { errors, ..denial }
    }
}
