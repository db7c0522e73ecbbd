//! A loop that runs until it is told to stop.

use std::future::Future;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A running loop. Dropping it ends the loop wherever it is, as a crash would.
#[derive(Debug)]
pub(crate) struct Task {
    stop: CancellationToken,
    running: Option<JoinHandle<()>>,
}

impl Task {
    /// Starts a loop, which is given what tells it to stop.
    pub(crate) fn start<F>(run: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let running = tokio::spawn(run(stop.clone()));
        Self { stop, running: Some(running) }
    }

    /// Lets the loop finish what it is doing.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        if let Some(running) = self.running.take() {
            // That it panicked has been told where it did.
            let _ = running.await;
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}
