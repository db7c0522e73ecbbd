//! Reads a pod's StatefulSet from the API server: as it is now, and as long as there is time.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Resource as _;
use kube::api::GetParams;
use kube::core::Request;
use statefulset_scheduling_core::admission::LookupError;

use super::metrics::Metrics;
use super::review::Wanted;

/// The StatefulSets of the cluster.
#[derive(Clone)]
pub struct StatefulSets {
    client: kube::Client,
    metrics: Arc<Metrics>,
}

impl StatefulSets {
    /// Reads through this client.
    pub fn new(client: kube::Client, metrics: Arc<Metrics>) -> Self {
        Self { client, metrics }
    }

    /// The JSON text of a StatefulSet. It is not parsed here: a type would drop what it does not know, and
    /// the core reads a few members only.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub async fn read(&self, wanted: &Wanted, within: Duration) -> Result<String, LookupError> {
        let result = match tokio::time::timeout(within, self.get(wanted)).await {
            Ok(result) => result,
            Err(_) => Err(LookupError::TimedOut(format!("the API server did not answer in {within:?}"))),
        };
        self.metrics.looked_up(match &result {
            Ok(_) => "found",
            Err(LookupError::NotFound) => "not_found",
            Err(LookupError::Forbidden(_)) => "forbidden",
            Err(LookupError::TimedOut(_)) => "timed_out",
            Err(LookupError::Failed(_)) => "failed",
        });
        result
    }

    async fn get(&self, wanted: &Wanted) -> Result<String, LookupError> {
        // They become parts of a path.
        if !is_name(&wanted.namespace) || !is_name(&wanted.name) {
            return Err(LookupError::Failed("its name or its namespace is none".to_owned()));
        }
        let request = Request::new(StatefulSet::url_path(&(), Some(&wanted.namespace)));
        let request = request.get(&wanted.name, &GetParams::default());
        let request = request.map_err(|error| LookupError::Failed(error.to_string()))?;
        self.client.request_text(request).await.map_err(classify)
    }
}

/// Whether a text can be a name of an object: no more than is needed to be safe in a path.
fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !text.is_empty() && text.len() <= 253 && !text.starts_with('.') && text.chars().all(allowed)
}

fn classify(error: kube::Error) -> LookupError {
    let kube::Error::Api(status) = error else { return LookupError::Failed(error.to_string()) };
    match status.code {
        404 => LookupError::NotFound,
        401 | 403 => LookupError::Forbidden(status.message),
        408 | 504 => LookupError::TimedOut(status.message),
        code => LookupError::Failed(format!("{code}: {}", status.message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn only_what_is_a_name_becomes_part_of_a_path() {
        for name in ["web", "web-0", "a.b", "0"] {
            assert!(is_name(name), "{name}");
        }
        for text in ["", ".", "..", "../x", "a/b", "a%2fb", "a?b", "A", "ä", &"a".repeat(254)] {
            assert!(!is_name(text), "{text}");
        }
    }

    #[test]
    fn failures_are_told_apart() {
        let of =
            |code| classify(kube::Error::Api(Box::new(Status { code, message: "m".to_owned(), ..Status::default() })));
        assert_eq!(of(404), LookupError::NotFound);
        assert_eq!(of(403), LookupError::Forbidden("m".to_owned()));
        assert_eq!(of(401), LookupError::Forbidden("m".to_owned()));
        assert_eq!(of(504), LookupError::TimedOut("m".to_owned()));
        assert_eq!(of(500), LookupError::Failed("500: m".to_owned()));
    }
}
