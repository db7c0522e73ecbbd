//! How the cluster is reached: as `kubectl` reaches it.

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::args::Connection;

/// A client, and the namespace that is meant.
pub struct Connected {
    /// The client.
    pub client: Client,
    /// The namespace on the command line, or that of the context.
    pub namespace: String,
}

/// Reads the kubeconfig. Nothing is asked of the cluster yet.
///
/// # Errors
/// There is no kubeconfig, or it cannot be used.
pub async fn connect(connection: &Connection) -> anyhow::Result<Connected> {
    let options = KubeConfigOptions { context: connection.context.clone(), ..KubeConfigOptions::default() };
    let config = match &connection.kubeconfig {
        Some(file) => {
            let kubeconfig = Kubeconfig::read_from(file).with_context(|| file.display().to_string())?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await?
        }
        None if connection.context.is_some() => Config::from_kubeconfig(&options).await?,
        None => Config::infer().await.context("no kubeconfig can be used")?,
    };
    let namespace = connection.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    Ok(Connected { client: Client::try_from(config)?, namespace })
}
