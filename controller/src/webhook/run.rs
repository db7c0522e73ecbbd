//! The process: its parts, started in order and ended in order.

use std::future::{Future, IntoFuture as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use super::args::Arguments;
use super::certificate::{Certificates, server_config};
use super::files::{self, Files};
use super::listener::{Limits, TlsListener};
use super::lookup::StatefulSets;
use super::metrics::Metrics;
use super::self_signed::{self, SelfSigned};
use super::server::{Reviewer, router};
use crate::probes::{self, Probed};

/// How long reviews in hand get to end.
const DRAIN: Duration = Duration::from_secs(10);

/// Ready is who has a certificate.
impl Probed for (Arc<Certificates>, Arc<Metrics>) {
    fn unready(&self) -> Option<&'static str> {
        (!self.0.is_loaded()).then_some("there is no certificate yet")
    }

    fn metrics(&self) -> Result<String, std::fmt::Error> {
        self.1.print()
    }
}

/// The webhook, before it answers.
pub struct Webhook {
    reviews: TcpListener,
    probes: TcpListener,
    arguments: Arguments,
    /// What a connection may take.
    pub limits: Limits,
    /// How often it is looked whether the files changed.
    pub files_interval: Duration,
    /// How often it is looked whether the Secret and the configurations are in step.
    pub self_signed_interval: Duration,
}

impl Webhook {
    /// Takes its addresses.
    ///
    /// # Errors
    /// One cannot be listened on.
    pub async fn bind(arguments: Arguments) -> anyhow::Result<Self> {
        let bind = async |address: SocketAddr| {
            TcpListener::bind(address).await.with_context(|| format!("{address} cannot be listened on"))
        };
        Ok(Self {
            reviews: bind(arguments.tls_listen).await?,
            probes: bind(arguments.shared.listen).await?,
            arguments,
            limits: Limits::default(),
            files_interval: files::INTERVAL,
            self_signed_interval: self_signed::INTERVAL,
        })
    }

    /// Where reviews are answered, over TLS.
    ///
    /// # Errors
    /// The socket has no address.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.reviews.local_addr()
    }

    /// Where the probes are.
    ///
    /// # Errors
    /// The socket has no address.
    pub fn probes(&self) -> std::io::Result<SocketAddr> {
        self.probes.local_addr()
    }

    /// Runs until `shutdown` ends, or a socket fails. Reviews in hand are answered.
    ///
    /// # Errors
    /// A socket fails.
    pub async fn run(self, client: kube::Client, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        tracing::info!(address = %self.address()?, "listening for reviews");
        let arguments = &self.arguments;
        let (metrics, certificates) = (Arc::new(Metrics::default()), Arc::new(Certificates::default()));
        // What is spawned ends with this future, whatever ends it.
        let probes = probes::serve(self.probes, (Arc::clone(&certificates), Arc::clone(&metrics)));
        let mut probes = AbortOnDropHandle::new(tokio::spawn(probes));
        let keeping =
            keep(arguments, (self.files_interval, self.self_signed_interval), &client, &certificates, &metrics)?;
        let mut keeping = AbortOnDropHandle::new(keeping);
        let statefulsets = StatefulSets::new(client, Arc::clone(&metrics));
        let reviewer = Reviewer::new(arguments.settings(), statefulsets, arguments.concurrency, Arc::clone(&metrics));
        let listener = TlsListener::new(self.reviews, server_config(certificates)?, self.limits, metrics)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = axum::serve(listener, router(Arc::new(reviewer))).with_graceful_shutdown(async {
            // That the sender is gone is a reason to end, too.
            let _ = stopped.await;
        });
        let mut serving = AbortOnDropHandle::new(tokio::spawn(serving.into_future()));
        tokio::select! {
            () = shutdown => {}
            ended = &mut serving => return ended.context("the server ended")?.context("the server failed"),
            failed = &mut probes => return failed.context("the probes ended")?.context("the probes failed"),
            ended = &mut keeping => return ended.context("the certificate is no longer kept"),
        }
        tracing::info!("shutting down");
        drop(stop);
        if let Ok(ended) = tokio::time::timeout(DRAIN, serving).await {
            ended.context("the server ended")?.context("the server failed")
        } else {
            tracing::warn!("reviews in hand did not end in {DRAIN:?}");
            Ok(())
        }
    }
}

/// Keeps the certificate, from wherever it comes.
fn keep(
    arguments: &Arguments,
    (files, self_signed): (Duration, Duration),
    client: &kube::Client,
    certificates: &Arc<Certificates>,
    metrics: &Arc<Metrics>,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let (certificates, metrics) = (Arc::clone(certificates), Arc::clone(metrics));
    if arguments.self_signed {
        let keeper = SelfSigned {
            client: client.clone(),
            namespace: arguments.namespace.clone(),
            secret: arguments.secret_name.clone(),
            dns_name: arguments.dns_name(),
            configuration: arguments.webhook_configuration.clone(),
            every: self_signed,
        };
        return Ok(tokio::spawn(keeper.follow(certificates, metrics)));
    }
    let (certificate, key) =
        arguments.tls_cert.clone().zip(arguments.tls_key.clone()).context("there is no certificate")?;
    Ok(tokio::spawn(Files::new(certificate, key).follow(files, certificates, metrics)))
}

/// Takes its addresses, and runs until `shutdown` ends.
///
/// # Errors
/// An address cannot be listened on, or a socket fails.
pub async fn run(arguments: Arguments, client: kube::Client, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
    Webhook::bind(arguments).await?.run(client, shutdown).await
}
