//! `doctor`: what is wrong with a cluster, and how it is repaired.

mod apis;
mod controller;
mod finding;
mod groups;
mod policy;

pub use finding::{Finding, Health};

use std::io::Write as _;

use kube::Client;

use crate::args;
use crate::exit::Outcome;
use crate::progress::Progress;
use crate::snapshot::{connect, explain, take};

/// Looks for what is wrong, and says it.
///
/// # Errors
/// The cluster cannot be asked.
pub fn run(arguments: &args::Doctor) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let findings = runtime.block_on(async {
        let progress = Progress::start("connecting");
        let connected = connect(&arguments.connection).await?;
        let namespace = arguments.connection.namespace.as_deref();
        let place = (connected.namespace.as_str(), namespace, arguments.controller_namespace.as_str());
        examine(&connected.client, place, &progress).await
    })?;
    anstream::stdout().write_all(finding::print(&findings).as_bytes())?;
    Ok(Outcome::of(findings.iter().all(|finding| finding.health == Health::Good)))
}

/// Everything that is found: dry runs are made in `namespace`, groups are looked at in `only`, or everywhere.
///
/// # Errors
/// The API server does not answer.
async fn examine(
    client: &Client,
    (namespace, only, controller): (&str, Option<&str>, &str),
    progress: &Progress,
) -> anyhow::Result<Vec<Finding>> {
    progress.now("asking for the version");
    let version = client.apiserver_version().await.map_err(explain)?;
    let mut findings = vec![Finding::good(format!("the API server answers: {}", version.git_version))];
    progress.now("asking what is served");
    let served = apis::examine(client, namespace, &mut findings).await?;
    progress.now("asking the policy");
    policy::examine(client, namespace, &mut findings).await?;
    if !served {
        return Ok(findings);
    }
    let snapshot = take(client, only, None, progress).await?;
    progress.now("asking for the controller's Lease");
    controller::examine(client, controller, &snapshot, &mut findings).await?;
    groups::examine(&snapshot, &mut findings);
    Ok(findings)
}
