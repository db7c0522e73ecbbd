//! What one can ask the process over plain HTTP: `/healthz`, `/readyz`, `/metrics`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use super::certificate::Certificates;
use super::metrics::Metrics;

#[derive(Clone)]
struct Shared {
    certificates: Arc<Certificates>,
    metrics: Arc<Metrics>,
}

/// Answers on `listener` until it is dropped. Ready is who has a certificate.
///
/// # Errors
/// The socket fails.
pub async fn serve(
    listener: TcpListener,
    certificates: Arc<Certificates>,
    metrics: Arc<Metrics>,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(print))
        .with_state(Shared { certificates, metrics });
    axum::serve(listener, router).await
}

async fn readyz(State(shared): State<Shared>) -> impl IntoResponse {
    if shared.certificates.is_loaded() {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "there is no certificate yet")
    }
}

async fn print(State(shared): State<Shared>) -> impl IntoResponse {
    let content_type = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    match shared.metrics.print() {
        Ok(text) => (StatusCode::OK, content_type, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, content_type, error.to_string()),
    }
}
