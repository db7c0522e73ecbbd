//! A running controller, and the workers behind it.
//!
//! Stands for what upstream's controllers share: they wait until their informers have listed, then a
//! number of workers take keys from the queue, forget those that succeed and re-queue those that fail.
//!
//! Left out: leader election and the sharing of informers between controllers.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::workqueue::Workqueue;

/// A controller that runs. It is asked to stop when this is dropped.
#[derive(Debug)]
pub struct Handle {
    stop: CancellationToken,
    synced: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl Handle {
    /// Waits until the controller has listed what it watches, or has ended.
    pub async fn synced(&self) {
        // The only error is that the controller has ended.
        let _ = self.synced.clone().wait_for(|synced| *synced).await;
    }

    /// Stops the controller: attempts that have begun are finished.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // The only error is that the task was aborted or panicked, and then it has ended, too.
        let _ = (&mut self.task).await;
    }

    /// Stops the controller in the middle of whatever it does, as a crash would.
    pub async fn kill(mut self) {
        self.task.abort();
        // It was aborted.
        let _ = (&mut self.task).await;
    }

    /// Whether the controller has ended.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Starts a controller: `informers` feed the queue, and `work` is done for each key once all are
/// `listed`.
pub(crate) fn start<K, W>(
    name: &'static str,
    workers: usize,
    queue: Arc<Workqueue<K>>,
    informers: JoinSet<()>,
    listed: impl Future<Output = ()> + Send + 'static,
    work: impl Fn(K) -> W + Clone + Send + 'static,
) -> Handle
where
    K: Ord + Clone + Display + Send + 'static,
    W: Future<Output = Result<(), Error>> + Send + 'static,
{
    let stop = CancellationToken::new();
    let (tell, synced) = watch::channel(false);
    let stopped = stop.clone().cancelled_owned();
    let task = tokio::spawn(async move {
        // They end with this task.
        let _informers = informers;
        let mut stopped = std::pin::pin!(stopped);
        tokio::select! {
            () = &mut stopped => return,
            () = listed => {}
        }
        tell.send_replace(true);
        let mut tasks = JoinSet::new();
        for _ in 0..workers.max(1) {
            tasks.spawn(worker(name, Arc::clone(&queue), work.clone()));
        }
        stopped.await;
        queue.close();
        // One that panicked has told so; at the end of the runtime all are cancelled.
        while tasks.join_next().await.is_some() {}
    });
    Handle { stop, synced, task }
}

async fn worker<K, W>(name: &'static str, queue: Arc<Workqueue<K>>, work: impl Fn(K) -> W)
where
    K: Ord + Clone + Display,
    W: Future<Output = Result<(), Error>>,
{
    while let Some(key) = queue.next().await {
        match work(key.clone()).await {
            Ok(()) => queue.forget(&key),
            Err(error) => {
                tracing::debug!(controller = name, %key, %error, "failed, and is tried again");
                queue.add_rate_limited(key.clone());
            }
        }
        queue.done(&key);
    }
}
