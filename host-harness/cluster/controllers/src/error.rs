//! Why an attempt failed. Every failure is retried with backoff, so the message is for the log.

/// An attempt that is to be made again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request was refused or got lost.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// An object that was about to act is no longer the one that was looked at.
    #[error("{0} is gone, replaced or being deleted")]
    Gone(String),
    /// A `ControllerRevision` holds no pod template.
    #[error("the ControllerRevision {0} holds no pod template")]
    BadRevision(String),
    /// An owner reference names a kind that is not watched.
    #[error("the kind {kind} of {api_version} is not watched")]
    UnknownKind {
        /// The group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// An owner is known by the references to it alone.
    #[error("the owner {0} was not seen yet")]
    NotObserved(String),
    /// A ResourceClaimTemplate does not exist.
    #[error("the ResourceClaimTemplate {0} does not exist")]
    NoTemplate(String),
    /// A claim is reserved for something that is neither a pod nor a PodGroup.
    #[error("the consumer {0} of a claim is of an unknown kind")]
    UnknownConsumer(String),
}

/// Whether a request failed because its object is not there.
pub(crate) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found())
}

/// Whether a request failed because the object changed in between.
pub(crate) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.reason == "Conflict")
}

/// Whether a create failed because the name is taken.
pub(crate) fn is_already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_already_exists())
}

/// Turns "not found" into success.
pub(crate) fn found<T>(result: kube::Result<T>) -> kube::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
