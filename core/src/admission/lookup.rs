//! What an admission request may have to ask the cluster.

use thiserror::Error;

/// Why an object cannot be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LookupError {
    /// There is no such object.
    #[error("not found")]
    NotFound,
    /// The engine may not read it.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// No answer came in time.
    #[error("timed out: {0}")]
    TimedOut(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// What is read of a StatefulSet that is looked up, its metadata aside.
pub const STATEFULSET_FIELDS: [&str; 3] = ["spec.replicas", "spec.ordinals", "spec.scheduling"];

/// Reads an object as it is now, from no cache.
pub trait Lookup {
    /// The JSON text of a StatefulSet: its metadata, and of the rest at least [`STATEFULSET_FIELDS`].
    ///
    /// # Errors
    /// Why it cannot be had.
    fn statefulset(&self, namespace: &str, name: &str) -> Result<String, LookupError>;
}
