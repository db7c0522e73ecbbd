//! Who asks: the same connection, as another user.
//!
//! Stands for the credentials of each component, by way of impersonation. Left out: groups, extra
//! fields, and any check that the impersonation is allowed.

use http::HeaderValue;
use http::header::HeaderName;
use kube::client::{Body, Client};

/// The header that an API server takes a user's name from.
pub const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");

/// The user of the scheduler.
pub const SCHEDULER: &str = "system:kube-scheduler";

/// The user of the kubelet of a node.
pub fn node_user(node: &str) -> String {
    format!("system:node:{node}")
}

/// A client whose every request says that it comes from `user`.
///
/// # Panics
///
/// If `user` has characters that no header may have.
pub fn as_user(client: &Client, user: &str) -> Client {
    let value = HeaderValue::from_str(user).expect("a user's name is fit for a header");
    let namespace = client.default_namespace().to_owned();
    let inner = client.clone();
    let service = tower::service_fn(move |mut request: http::Request<Body>| {
        request.headers_mut().insert(IMPERSONATE_USER, value.clone());
        let inner = inner.clone();
        async move { inner.send(request).await }
    });
    Client::new(service, namespace)
}
