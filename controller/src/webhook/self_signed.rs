//! Keeps three things in step: the Secret with the certificate, what the webhook configurations trust, and
//! what this replica presents.
//!
//! Replicas agree through the Secret alone. The first to find none creates it, the first to find it old
//! replaces it, and whoever comes second reads what is there. A new certificate is presented only once a
//! look found the configurations trusting it: until then the one before is, which they trust as well.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;

use super::bundle;
use super::certificate::Certificates;
use super::issue::{LIFE, issue};
use super::metrics::Metrics;
use super::secret::{self, Kept};
use crate::kube_api::{FIELD_MANAGER, REQUEST_TIMEOUT};

/// How often it is looked whether all is in step.
pub const INTERVAL: Duration = Duration::from_mins(1);
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How many replicas may come first, one after the other, before it is tried again later.
const ATTEMPTS: usize = 5;

/// What is kept in step.
#[derive(Clone)]
pub struct SelfSigned {
    /// Reads and writes the cluster.
    pub client: kube::Client,
    /// The namespace of the Secret.
    pub namespace: String,
    /// The Secret.
    pub secret: String,
    /// The name by which the API server calls.
    pub dns_name: String,
    /// The configurations that are to trust the certificate.
    pub configuration: String,
    /// How often it is looked.
    pub every: Duration,
}

impl SelfSigned {
    /// Looks again and again.
    pub async fn follow(self, certificates: Arc<Certificates>, metrics: Arc<Metrics>) {
        let (mut presented, mut wait) = (None, FIRST_WAIT);
        loop {
            let looked = self.look(SystemTime::now(), &mut presented, &certificates).await;
            let pause = match &looked {
                Ok(loaded) => {
                    if *loaded {
                        metrics.certificate(true);
                    }
                    wait = FIRST_WAIT;
                    self.every
                }
                Err(error) => {
                    metrics.certificate(false);
                    tracing::error!("the certificate cannot be kept: {error:#}; trying again in {} s", wait.as_secs());
                    let pause = wait;
                    wait = wait.saturating_mul(2).min(self.every.max(FIRST_WAIT));
                    pause
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Looks once. `presented` is the certificate that this replica presents. Whether another was loaded.
    ///
    /// # Errors
    /// Something cannot be read or written.
    pub async fn look(
        &self,
        now: SystemTime,
        presented: &mut Option<Vec<u8>>,
        certificates: &Certificates,
    ) -> anyhow::Result<bool> {
        let kept = self.kept(now).await?;
        let trusted = tokio::time::timeout(
            2 * REQUEST_TIMEOUT,
            bundle::ensure(&self.client, &self.configuration, &kept.authorities),
        )
        .await;
        let in_place = matches!(trusted, Ok(Ok(true)));
        // The first one is presented at once: there is none that would be trusted instead.
        let loads = presented.is_none() || (in_place && presented.as_ref() != Some(&kept.certificate));
        if loads {
            certificates.load(&kept.certificate, &kept.key)?;
            tracing::info!(secret = self.secret, "the certificate is loaded");
            *presented = Some(kept.certificate);
        }
        trusted.context("the API server does not answer")?.context("the webhook configurations")?;
        Ok(loads)
    }

    /// The certificate of the Secret, which is made or replaced where it must be.
    async fn kept(&self, now: SystemTime) -> anyhow::Result<Kept> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        for _ in 0..ATTEMPTS {
            let found = request(secrets.get_opt(&self.secret)).await.context("the Secret cannot be read")?;
            if let Some(found) = &found {
                match secret::read(found, &self.dns_name, now) {
                    Ok(kept) => return Ok(kept),
                    Err(why) => tracing::info!(secret = self.secret, "the certificate is replaced: {why}"),
                }
            }
            let issued = issue(&self.dns_name, now, LIFE)?;
            let place = (&*self.namespace, &*self.secret);
            let made = secret::write(place, &self.dns_name, &issued, secret::renew_at(now, LIFE), found.as_ref());
            let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
            let written = match found {
                None => request(secrets.create(&parameters, &made)).await,
                Some(_) => request(secrets.replace(&self.secret, &parameters, &made)).await,
            };
            match written {
                // What is there now is what counts, and it is read as every replica reads it.
                Ok(_) => {}
                // Another replica came first; or the Secret went.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) && status.reason != "Forbidden" => {
                    tracing::debug!(%status, "another came first");
                }
                Err(error) => return Err(error).context("the Secret cannot be written"),
            }
        }
        anyhow::bail!("the Secret {}/{} keeps changing", self.namespace, self.secret)
    }
}

/// A request within its time.
async fn request<T>(request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    let late = |_| kube::Error::Service(format!("no answer in {REQUEST_TIMEOUT:?}").into());
    tokio::time::timeout(REQUEST_TIMEOUT, request).await.map_err(late)?
}
