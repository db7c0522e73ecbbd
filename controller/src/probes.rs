//! What one can ask the process over HTTP: `/healthz`, `/readyz`, `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// Whether the caches have synced.
#[derive(Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// The caches have synced, or are no longer trusted.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    /// Whether the process is ready.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[derive(Clone)]
struct Shared {
    readiness: Readiness,
    metrics: Arc<Metrics>,
}

/// Answers on `listener` until it is dropped.
///
/// # Errors
/// The socket fails.
pub async fn serve(listener: TcpListener, readiness: Readiness, metrics: Arc<Metrics>) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(print))
        .with_state(Shared { readiness, metrics });
    axum::serve(listener, router).await
}

async fn readyz(State(shared): State<Shared>) -> impl IntoResponse {
    if shared.readiness.get() {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the caches have not synced")
    }
}

async fn print(State(shared): State<Shared>) -> impl IntoResponse {
    let content_type = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    match shared.metrics.print() {
        Ok(text) => (StatusCode::OK, content_type, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, content_type, error.to_string()),
    }
}
