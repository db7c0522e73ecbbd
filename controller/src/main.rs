//! The controller's process, or the webhook's.

use clap::Parser as _;
use statefulset_scheduling_controller::args::{LogFormat, Mode, Program};
use statefulset_scheduling_controller::run::run;
use statefulset_scheduling_controller::webhook;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// The cost of a reconcile must not grow with the heap.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    let program = Program::parse();
    let (log_format, mut runtime) = match &program.mode {
        // One thread: the work is waiting for answers, and handing it between threads costs a fifth more.
        None => (program.controller.shared.log_format, Builder::new_current_thread()),
        // Each review is work of its own.
        Some(Mode::Webhook(arguments)) => (arguments.shared.log_format, Builder::new_multi_thread()),
    };
    log(log_format);
    runtime.enable_all().build()?.block_on(serve(program))
}

async fn serve(program: Program) -> anyhow::Result<()> {
    let mut config = kube::Config::infer().await?;
    // The queue retries, and only the object that failed waits; a review has no time to.
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
    match program.mode {
        None => run(program.controller, client, Box::pin(shutdown)).await,
        Some(Mode::Webhook(arguments)) => webhook::run::run(*arguments, client, shutdown).await,
    }
}

fn log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().init(),
    }
}
