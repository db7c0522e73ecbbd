//! Why a request failed, and what that means for the next attempt.

use std::time::Duration;

use thiserror::Error;

use crate::queue::Outcome;

/// Why a request failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    /// An object of that name is there already: it is to be looked at.
    #[error("there is an object of that name already")]
    AlreadyExists,
    /// The object is not as it was seen: it is to be looked at again.
    #[error("the object changed meanwhile: {0}")]
    Conflict(String),
    /// The object, its kind or its namespace is not there.
    #[error("not found: {0}")]
    NotFound(String),
    /// The request may succeed later, not before this wait.
    #[error("{message}")]
    Later {
        /// What happened.
        message: String,
        /// The wait that the server asks for.
        wait: Option<Duration>,
    },
    /// The request fails until something changes: the object, or this controller's permissions.
    #[error("{0}")]
    Terminal(String),
    /// Another replica is leading, or may be: nothing may be written.
    #[error("this replica does not hold the lease")]
    NotLeading,
}

impl Failure {
    /// What the failure means for the next attempt.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::AlreadyExists | Self::Conflict(_) | Self::NotFound(_) | Self::NotLeading => Outcome::Retry(None),
            Self::Later { wait, .. } => Outcome::Retry(*wait),
            Self::Terminal(_) => Outcome::Terminal,
        }
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            return Self::Later { message: error.to_string(), wait: None };
        };
        let message = status.message.clone();
        let details = status.details.as_ref();
        let wait = details
            .filter(|details| details.retry_after_seconds > 0)
            .map(|details| Duration::from_secs(details.retry_after_seconds.into()));
        let terminating =
            details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"));
        match (status.code, status.reason.as_str()) {
            (409, "AlreadyExists") => Self::AlreadyExists,
            (409, _) => Self::Conflict(message),
            (404, _) => Self::NotFound(message),
            // It goes away with everything in it.
            (403, _) if terminating => Self::Later { message, wait },
            // Not 400: an admission webhook that denies without a code, or cannot read, answers so for a while.
            // Not 401: tokens expire, and are read again.
            (403 | 405 | 413 | 415 | 422, _) => Self::Terminal(message),
            _ => Self::Later { message, wait },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn status(code: u16, reason: &str) -> Status {
        Status { code, reason: reason.to_owned(), message: "m".to_owned(), ..Status::default() }
    }

    #[test]
    fn each_error_decides_between_retrying_and_waiting() {
        let later = |wait| Failure::Later { message: "m".to_owned(), wait };
        let mut busy = status(429, "TooManyRequests");
        busy.details = serde_json::from_str(r#"{"retryAfterSeconds": 7}"#).expect("details");
        let mut terminating = status(403, "Forbidden");
        terminating.details =
            serde_json::from_str(r#"{"causes": [{"reason": "NamespaceTerminating"}]}"#).expect("details");
        for (status, failure) in [
            (status(409, "AlreadyExists"), Failure::AlreadyExists),
            (status(409, "Conflict"), Failure::Conflict("m".to_owned())),
            (status(404, "NotFound"), Failure::NotFound("m".to_owned())),
            (status(403, "Forbidden"), Failure::Terminal("m".to_owned())),
            (status(422, "Invalid"), Failure::Terminal("m".to_owned())),
            (status(400, ""), later(None)),
            (status(401, "Unauthorized"), later(None)),
            (status(500, "InternalError"), later(None)),
            (status(503, ""), later(None)),
            (busy, later(Some(Duration::from_secs(7)))),
            (terminating, later(None)),
        ] {
            assert_eq!(Failure::from(kube::Error::Api(Box::new(status))), failure);
        }
    }
}
