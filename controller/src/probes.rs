//! What one can ask the process over HTTP: `/healthz`, `/readyz`, `/metrics`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// What is asked.
pub trait Probed: Send + Sync + 'static {
    /// Why it is not ready; none if it is.
    fn unready(&self) -> Option<&'static str>;

    /// All metrics in the text format that is scraped.
    ///
    /// # Errors
    /// They cannot be written.
    fn metrics(&self) -> Result<String, fmt::Error>;
}

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

impl Probed for (Readiness, Arc<Metrics>) {
    fn unready(&self) -> Option<&'static str> {
        (!self.0.get()).then_some("the caches have not synced")
    }

    fn metrics(&self) -> Result<String, fmt::Error> {
        self.1.print()
    }
}

/// Answers on `listener` until it is dropped.
///
/// # Errors
/// The socket fails.
pub async fn serve<P: Probed>(listener: TcpListener, probed: P) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(readyz::<P>))
        .route("/metrics", get(print::<P>))
        .with_state(Arc::new(probed));
    axum::serve(listener, router).await
}

async fn readyz<P: Probed>(State(probed): State<Arc<P>>) -> impl IntoResponse {
    probed.unready().map_or((StatusCode::OK, "ok"), |why| (StatusCode::SERVICE_UNAVAILABLE, why))
}

async fn print<P: Probed>(State(probed): State<Arc<P>>) -> impl IntoResponse {
    let content_type = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    match probed.metrics() {
        Ok(text) => (StatusCode::OK, content_type, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, content_type, error.to_string()),
    }
}
