//! Whether the API server serves what this controller lives on.

use std::time::Duration;

use kube::Client;

/// The API of Workloads and PodGroups.
pub const SCHEDULING_API: &str = "scheduling.k8s.io/v1beta1";

const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Waits until the API server serves Workloads and PodGroups, and says plainly while it does not.
pub async fn served(client: &Client) {
    let mut wait = FIRST_WAIT;
    loop {
        match missing(client).await {
            Ok(missing) if missing.is_empty() => return,
            Ok(missing) => tracing::error!(
                "the API server does not serve {} of {SCHEDULING_API}: enable the feature gate GenericWorkload and the \
                 API {SCHEDULING_API} on it; trying again in {} s",
                missing.join(" and "),
                wait.as_secs()
            ),
            Err(error) => {
                tracing::error!(%error, "the API server does not answer; trying again in {} s", wait.as_secs());
            }
        }
        tokio::time::sleep(wait).await;
        wait = wait.saturating_mul(2).min(MAX_WAIT);
    }
}

/// The resources that are not served.
async fn missing(client: &Client) -> kube::Result<Vec<&'static str>> {
    let needed = ["workloads", "podgroups"];
    match client.list_api_group_resources(SCHEDULING_API).await {
        Ok(list) => {
            let served = |name: &&str| list.resources.iter().any(|resource| resource.name == *name);
            Ok(needed.into_iter().filter(|name| !served(name)).collect())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(needed.to_vec()),
        Err(error) => Err(error),
    }
}
