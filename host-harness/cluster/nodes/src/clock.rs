//! What time it is: a start, and what has passed on the runtime's clock since.
//!
//! So that a runtime whose clock is paused, or runs faster, has timestamps to match.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Timestamp,
    start: Instant,
}

impl Clock {
    /// A clock that shows `epoch` now.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, start: Instant::now() }
    }

    /// What has passed since the clock was started.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The time, in whole seconds as the API has it.
    pub fn now(&self) -> Time {
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::MAX);
        let now = self.epoch.checked_add(elapsed).unwrap_or(Timestamp::MAX);
        Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::starting_at(Timestamp::now())
    }
}
