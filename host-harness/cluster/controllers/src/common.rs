//! What every controller is started with.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::informer::Lag;
use crate::workqueue::Backoff;

/// The settings that all controllers have.
#[derive(Clone, Debug)]
pub struct Common {
    /// The user that the requests are made as.
    pub identity: String,
    /// How many keys are worked on at once.
    pub workers: usize,
    /// How long a failed key waits.
    pub backoff: Backoff,
    /// How long to wait before a watch that failed is opened again; up to twice that by chance.
    pub rewatch: Backoff,
    /// How late the controller learns of changes.
    pub lag: Lag,
    /// Decides all chance.
    pub seed: u64,
}

impl Common {
    /// The usual settings under this identity and with so many workers.
    pub fn new(identity: &str, workers: usize) -> Self {
        Self {
            identity: identity.to_owned(),
            workers,
            backoff: Backoff::default(),
            rewatch: Backoff { base: std::time::Duration::from_millis(800), cap: std::time::Duration::from_secs(30) },
            lag: Lag::none(),
            seed: 0,
        }
    }
}

/// The time of day, which passes as tokio's time does: it stands while that is paused.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Timestamp,
    since: Instant,
}

impl Clock {
    /// The real time.
    pub fn real() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// A time that is this one now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, since: Instant::now() }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::real()
    }
}
