//! The process: its parts, started in order and ended in order.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::Client;
use leaky_bucket::RateLimiter;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::api::Api;
use crate::args::Arguments;
use crate::events::Events;
use crate::index::Index;
use crate::kube_api::KubeApi;
use crate::leader::{Election, Fence};
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::probes::{self, Readiness};
use crate::queue::Queue;
use crate::reconcile::Reconciler;
use crate::startup;

/// Runs until `shutdown` ends, or the lease is lost, or the socket fails. Writes in hand are finished.
///
/// # Errors
/// The address cannot be listened on, the Lease cannot be had, or was lost.
pub async fn run(arguments: Arguments, client: Client, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(arguments.shared.listen)
        .await
        .with_context(|| format!("{} cannot be listened on", arguments.shared.listen))?;
    let metrics = Arc::new(Metrics::default());
    let readiness = Readiness::default();
    let probes = probes::serve(listener, (readiness.clone(), Arc::clone(&metrics)));
    // What is spawned ends with this future, whatever ends it.
    let mut probes = AbortOnDropHandle::new(tokio::spawn(probes));
    tokio::pin!(shutdown);
    tokio::select! {
        result = lead(&arguments, client, &readiness, &metrics, &mut shutdown) => result,
        failed = &mut probes => failed.context("the probes ended")?.context("the probes failed"),
    }
}

async fn lead(
    arguments: &Arguments,
    client: Client,
    readiness: &Readiness,
    metrics: &Arc<Metrics>,
    shutdown: &mut (impl Future<Output = ()> + Unpin),
) -> anyhow::Result<()> {
    tokio::select! {
        () = startup::served(&client) => {}
        () = &mut *shutdown => return Ok(()),
    }
    let index = Arc::new(Mutex::new(Index::default()));
    let queue = Arc::new(Queue::default());
    let observer = Observer::new(Arc::clone(&index), Arc::clone(&queue), arguments.shared.carriers());
    let watches = {
        let (observer, client, namespace) = (observer.clone(), client.clone(), arguments.namespace.clone());
        AbortOnDropHandle::new(tokio::spawn(async move { observer.watch(client, namespace.as_deref()).await }))
    };
    // A replica that does not lead is ready too: it takes over with caches that are warm.
    tokio::select! {
        () = observer.synced() => readiness.set(true),
        () = &mut *shutdown => return Ok(()),
    }
    tracing::info!("the caches have synced");
    let identity = arguments.identity.clone().unwrap_or_else(host_name);
    let mut election = None;
    if arguments.leader_elect {
        let (namespace, name) = (&arguments.lease_namespace, &arguments.lease_name);
        let mut started = Election::start(client.clone(), namespace, name, &identity, Arc::clone(metrics)).await?;
        let led = tokio::select! {
            led = started.leading.wait_for(|leading| *leading) => Some(led.is_ok()),
            () = &mut *shutdown => None,
        };
        match led {
            Some(true) => {}
            Some(false) => anyhow::bail!("the election ended"),
            None => {
                started.resign().await;
                return Ok(());
            }
        }
        tracing::info!(%identity, "leading");
        election = Some(started);
    }
    let fence = election.as_ref().map_or_else(Fence::open, |election| election.fence.clone());
    let api = KubeApi::new(client.clone(), fence, limiter(arguments), Arc::clone(metrics));
    let (events, emitting) = if arguments.dry_run {
        (Events::none(Arc::clone(metrics)), tokio::spawn(async {}))
    } else {
        Events::start(client, Some(identity), limiter(arguments), Arc::clone(metrics))
    };
    let mut reconciler =
        Reconciler::new(api, index, events, Arc::clone(metrics), arguments.settings(), arguments.shared.carriers());
    reconciler.dry_run = arguments.dry_run;
    let reconciler = Arc::new(reconciler);
    let mut workers = JoinSet::new();
    for _ in 0..arguments.concurrency {
        workers.spawn(work(Arc::clone(&reconciler), Arc::clone(&queue)));
    }
    let lost = async {
        match &mut election {
            Some(election) => {
                let _ = election.leading.wait_for(|leading| !*leading).await;
            }
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        () = &mut *shutdown => Ok(()),
        () = lost => Err(anyhow::anyhow!("the lease was lost")),
    };
    tracing::info!("shutting down");
    readiness.set(false);
    queue.close();
    while workers.join_next().await.is_some() {}
    reconciler.events.close();
    // An event is no reason to outlive the grace period.
    let _ = tokio::time::timeout(Duration::from_secs(5), emitting).await;
    drop(watches);
    if let Some(election) = election {
        election.resign().await;
    }
    result
}

/// A worker: takes what is next until the queue is closed.
pub async fn work<A: Api>(reconciler: Arc<Reconciler<A>>, queue: Arc<Queue>) {
    while let Some(key) = queue.next().await {
        reconciler.metrics.queue(queue.depth());
        let started = Instant::now();
        let outcome = reconciler.reconcile(&key).await;
        tracing::trace!(statefulset = %key, ?outcome, elapsed = ?started.elapsed(), "reconciled");
        queue.done(key, outcome);
        reconciler.metrics.queue(queue.depth());
    }
}

fn limiter(arguments: &Arguments) -> Option<RateLimiter> {
    let qps = usize::try_from(arguments.client_qps).ok().filter(|&qps| qps > 0)?;
    let burst = usize::try_from(arguments.client_burst).unwrap_or(qps).max(1);
    // Refilled ten times a second: finer than anybody sees, and coarse enough to be cheap.
    let interval = Duration::from_millis(100);
    let refill = qps.div_ceil(10);
    let interval =
        interval.mul_f64(f64::from(u32::try_from(refill * 10).unwrap_or(u32::MAX)) / f64::from(arguments.client_qps));
    Some(RateLimiter::builder().initial(burst).max(burst).refill(refill).interval(interval).build())
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "statefulset-scheduling-controller".to_owned())
}
