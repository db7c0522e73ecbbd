//! The controller's process.

use clap::Parser as _;
use statefulset_scheduling_controller::args::{Arguments, LogFormat};
use statefulset_scheduling_controller::run::run;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// The cost of a reconcile must not grow with the heap.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

// One thread: the work is waiting for answers, and handing it between threads costs a fifth more.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    log(arguments.log_format);
    let mut config = kube::Config::infer().await?;
    // The queue retries, and only the object that failed waits.
    config.default_retry = false;
    let client = kube::Client::try_from(config)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    run(arguments, client, Box::pin(shutdown)).await
}

fn log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().init(),
    }
}
