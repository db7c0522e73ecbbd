//! What is going on, on a terminal, for what takes more than a second.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long nothing is said.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is said anew.
const INTERVAL: Duration = Duration::from_millis(200);
/// Goes to the beginning of the line and clears it.
const CLEAR: &str = "\r\x1b[2K";

/// Shows what is going on until it is dropped. Where the standard error is no terminal, it shows nothing.
pub struct Progress {
    what: Arc<Mutex<String>>,
    count: Arc<AtomicU64>,
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins.
    pub fn start(what: &str) -> Self {
        let what = Arc::new(Mutex::new(what.to_owned()));
        let count = Arc::new(AtomicU64::new(0));
        let shown = std::io::stderr().is_terminal().then(|| {
            let (sender, ended) = channel::<()>();
            let (what, count) = (Arc::clone(&what), Arc::clone(&count));
            let thread = std::thread::spawn(move || {
                let mut wait = PATIENCE;
                while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    let what = what.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    let text = match count.load(Ordering::Relaxed) {
                        0 => what,
                        count => format!("{what}: {count}"),
                    };
                    // What cannot be shown does not matter.
                    let _ = write!(std::io::stderr(), "{CLEAR}{text} …");
                    wait = INTERVAL;
                }
                if wait == INTERVAL {
                    let _ = write!(std::io::stderr(), "{CLEAR}");
                }
            });
            (sender, thread)
        });
        Self { what, count, shown }
    }

    /// Something else is going on now.
    pub fn now(&self, what: &str) {
        what.clone_into(&mut self.what.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// So much is done.
    pub fn done(&self, count: u64) {
        self.count.store(count, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.shown.take() {
            drop(sender);
            // It ends with the sender, and has nothing to tell.
            let _ = thread.join();
        }
    }
}
