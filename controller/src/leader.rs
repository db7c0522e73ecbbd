//! Who writes: the holder of a Lease, and only while the Lease is known to be valid.
//!
//! The lease manager acquires and renews. The fence does not take its word for it: it follows the
//! Lease itself, and from each renewal knows until when writing is safe, also when no answer comes any
//! more.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::metrics::Metrics;

/// How long a lease lasts without being renewed.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How long before its end it is renewed.
pub const LEASE_GRACE: Duration = Duration::from_secs(10);
/// How long before its end nothing is written any more: a write that is under way may take as long.
const MARGIN: Duration = Duration::from_secs(2);

/// Whether writing is safe.
#[derive(Clone)]
pub struct Fence(Option<Arc<Mutex<Option<SystemTime>>>>);

impl Fence {
    /// A fence that always holds: there is one replica, and no lease.
    pub fn open() -> Self {
        Self(None)
    }

    fn closed() -> Self {
        Self(Some(Arc::default()))
    }

    /// Whether the lease is held, and long enough for one more write.
    pub fn holds(&self) -> bool {
        let Some(until) = &self.0 else { return true };
        let until = *until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| SystemTime::now() + MARGIN < until)
    }

    fn set(&self, until: Option<SystemTime>) {
        if let Some(current) = &self.0 {
            *current.lock().unwrap_or_else(PoisonError::into_inner) = until;
        }
    }
}

/// The election, while it runs.
pub struct Election {
    /// Whether this replica leads.
    pub leading: watch::Receiver<bool>,
    /// Whether it may write.
    pub fence: Fence,
    manager: JoinHandle<kube_lease_manager::Result<LeaseManager>>,
    follower: AbortOnDropHandle<()>,
}

impl Election {
    /// Stands for the Lease `name` in `namespace` as `identity`.
    ///
    /// # Errors
    /// The Lease can be neither read nor created.
    pub async fn start(
        client: kube::Client,
        namespace: &str,
        name: &str,
        identity: &str,
        metrics: Arc<Metrics>,
    ) -> anyhow::Result<Self> {
        let manager = LeaseManagerBuilder::new(client.clone(), name)
            .with_namespace(namespace)
            .with_identity(identity)
            .with_duration(LEASE_DURATION.as_secs())
            .with_grace(LEASE_GRACE.as_secs())
            .build()
            .await?;
        let (leading, manager) = manager.watch().await;
        let fence = Fence::closed();
        let leases = kube::Api::namespaced(client, namespace);
        let follower = follow(leases, name.to_owned(), identity.to_owned(), fence.clone(), metrics);
        let follower = AbortOnDropHandle::new(tokio::spawn(follower));
        Ok(Self { leading, fence, manager, follower })
    }

    /// Gives the Lease up, so that another replica need not wait for its end.
    pub async fn resign(self) {
        self.fence.set(None);
        self.follower.abort();
        drop(self.leading);
        if let Ok(Err(error)) = self.manager.await {
            tracing::warn!(%error, "the lease was not released");
        }
    }
}

/// Follows the Lease: each version of it says until when writing is safe.
async fn follow(leases: kube::Api<Lease>, name: String, identity: String, fence: Fence, metrics: Arc<Metrics>) {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = watcher(leases, config).default_backoff().map_err(drop).boxed();
    while let Some(event) = events.next().await {
        let until = match event {
            Ok(Event::Apply(lease) | Event::InitApply(lease)) => valid_until(&lease, &identity),
            Ok(Event::Delete(_)) => None,
            // An error tells nothing of the Lease: what is known of it holds until its end.
            Ok(Event::Init | Event::InitDone) | Err(()) => continue,
        };
        // What is told holds already.
        fence.set(until);
        metrics.leading(until.is_some());
    }
}

/// Until when a Lease is valid for a holder. Both times are of this host's clock.
fn valid_until(lease: &Lease, identity: &str) -> Option<SystemTime> {
    let spec = lease.spec.as_ref()?;
    if spec.holder_identity.as_deref() != Some(identity) {
        return None;
    }
    let renewed = SystemTime::from(spec.renew_time.as_ref()?.0);
    let duration = u64::try_from(spec.lease_duration_seconds?).ok()?;
    renewed.checked_add(Duration::from_secs(duration))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use k8s_openapi::jiff::Timestamp;

    fn lease(holder: &str, renewed: SystemTime) -> Lease {
        Lease {
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                renew_time: Timestamp::try_from(renewed).ok().map(MicroTime),
                lease_duration_seconds: Some(15),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        }
    }

    #[test]
    fn writing_is_safe_only_while_the_lease_is_held_and_not_about_to_end() {
        let now = SystemTime::now();
        let ago = |seconds| now - Duration::from_secs(seconds);
        for (lease, holds) in [
            (lease("me", now), true),
            (lease("me", ago(10)), true),
            (lease("me", ago(14)), false),
            (lease("me", ago(60)), false),
            (lease("another", now), false),
            (Lease::default(), false),
        ] {
            let fence = Fence::closed();
            assert!(!fence.holds());
            fence.set(valid_until(&lease, "me"));
            assert_eq!(fence.holds(), holds, "{lease:?}");
        }
        assert!(Fence::open().holds());
    }
}
