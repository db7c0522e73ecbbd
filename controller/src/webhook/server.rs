//! Reviews over HTTP, within limits of size, number and time.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use statefulset_scheduling_core::admission::{Settings, Verdict};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::lookup::StatefulSets;
use super::metrics::Metrics;
use super::review::Question;

/// Where reviews are answered.
pub const PATH: &str = "/review";
/// The longest body: an API server takes objects of 3 MiB, and an update has two of them.
pub const MAX_BODY: usize = 7 * 1024 * 1024;
/// How long an API server waits where it does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// As long as an API server ever waits.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// What answers reviews.
pub struct Reviewer {
    settings: Settings,
    statefulsets: StatefulSets,
    permits: Semaphore,
    metrics: Arc<Metrics>,
}

impl Reviewer {
    /// Answers so many reviews at once.
    pub fn new(settings: Settings, statefulsets: StatefulSets, concurrency: u16, metrics: Arc<Metrics>) -> Self {
        Self { settings, statefulsets, permits: Semaphore::new(concurrency.into()), metrics }
    }

    async fn answer(&self, request: Request, deadline: Instant) -> (&'static str, Response) {
        let Ok(_permit) = self.permits.acquire().await else { return ("failed", failed("shutting down")) };
        let body = match Bytes::from_request(request, &()).await {
            Ok(body) => body,
            Err(rejection) => return ("unreadable", rejection.into_response()),
        };
        let question = match Question::read(&body) {
            Ok(question) => question,
            // Nobody was asked anything: what that means is for the failurePolicy to say.
            Err(error) => {
                tracing::warn!(%error, "a request cannot be read");
                return ("unreadable", (StatusCode::BAD_REQUEST, error.to_string()).into_response());
            }
        };
        let verdict = match question.first(&self.settings) {
            Ok(verdict) => verdict,
            Err(wanted) => {
                let within = deadline.saturating_duration_since(Instant::now());
                question.second(&self.settings, self.statefulsets.read(&wanted, within).await)
            }
        };
        let result = name(&verdict);
        match question.answer(verdict) {
            Ok(answer) => (result, ([(header::CONTENT_TYPE, "application/json")], answer).into_response()),
            Err(error) => ("failed", failed(error.to_string())),
        }
    }
}

/// A verdict, as it is counted.
fn name(verdict: &Verdict) -> &'static str {
    match (verdict.allowed, verdict.patch.is_empty()) {
        (false, _) => "denied",
        (true, true) => "allowed",
        (true, false) => "changed",
    }
}

fn failed(why: impl Into<String>) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, why.into()).into_response()
}

/// The routes.
pub fn router(reviewer: Arc<Reviewer>) -> Router {
    Router::new().route(PATH, post(review)).layer(DefaultBodyLimit::max(MAX_BODY)).with_state(reviewer)
}

async fn review(State(reviewer): State<Arc<Reviewer>>, request: Request) -> Response {
    let started = Instant::now();
    let timeout = timeout(request.uri().query());
    // A look-up ends while there is still time to answer.
    let answered = reviewer.answer(request, started + timeout * 3 / 4);
    let answered = tokio::time::timeout(timeout, answered).await;
    let (result, response) = answered.unwrap_or_else(|_| ("timed_out", failed("the request took too long")));
    reviewer.metrics.reviewed(result, started.elapsed());
    response
}

/// How long the API server waits: it says so, as `timeout=5s`.
fn timeout(query: Option<&str>) -> Duration {
    let said = query.into_iter().flat_map(|query| query.split('&')).find_map(|pair| pair.strip_prefix("timeout="));
    let seconds = said.and_then(|said| said.strip_suffix('s')?.parse::<u64>().ok()).filter(|seconds| *seconds > 0);
    seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs).min(MAX_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_as_much_time_as_the_api_server_says() {
        for (query, seconds) in [
            (None, 10),
            (Some(""), 10),
            (Some("timeout=2s"), 2),
            (Some("dryRun=All&timeout=5s"), 5),
            (Some("timeout=0s"), 10),
            (Some("timeout=1m0s"), 10),
            (Some("timeout=9999s"), 30),
            (Some("timeout=99999999999999999999s"), 10),
        ] {
            assert_eq!(timeout(query), Duration::from_secs(seconds), "{query:?}");
        }
    }
}
