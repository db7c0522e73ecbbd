//! Under whose name a controller acts.
//!
//! Upstream each controller authenticates with the token of a service account of its own. Here the
//! client's requests carry an impersonation header instead, and nothing checks whether it may.

use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// The StatefulSet controller's user, where the controller manager uses service account credentials.
pub const STATEFULSET_CONTROLLER: &str = "system:serviceaccount:kube-system:statefulset-controller";
/// The garbage collector's user.
pub const GARBAGE_COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// The ResourceClaim controller's user.
pub const RESOURCE_CLAIM_CONTROLLER: &str = "system:serviceaccount:kube-system:resource-claim-controller";
/// Everybody's user, where the controller manager does not use service account credentials.
pub const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";

/// The header that names the user.
const HEADER: &str = "impersonate-user";

/// A client all of whose requests are made under this name.
///
/// # Panics
/// If the name cannot stand in a header.
pub fn acting_as(client: &Client, user: &str) -> Client {
    let namespace = client.default_namespace().to_owned();
    let user = user.parse::<HeaderValue>().expect("a user name can stand in a header");
    let inner = client.clone();
    let service = service_fn(move |mut request: Request| {
        request.headers_mut().insert(HEADER, user.clone());
        let inner = inner.clone();
        async move { inner.send(request).await }
    });
    Client::new(service, namespace)
}

type Request = http::Request<Body>;
type HeaderValue = http::HeaderValue;
