//! A queue of keys, as client-go's `workqueue` with its per-item exponential failure rate limiter.
//!
//! A key is in the queue once, is worked on by one worker at a time, and comes back at once if it was
//! added meanwhile. A failed key waits alone; an [`add`](Workqueue::add) does not wait for it.
//!
//! Left out: the overall bucket of 10 keys per second that upstream puts beside the per-item limiter,
//! and metrics.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a key waits after a failure: the base, doubled with each further one, up to the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
}

impl Default for Backoff {
    /// What client-go's `DefaultControllerRateLimiter` has: 5 ms up to 1000 s.
    fn default() -> Self {
        Self { base: Duration::from_millis(5), cap: Duration::from_secs(1000) }
    }
}

impl Backoff {
    /// The wait after one more failure than this.
    pub fn after(self, failures: u32) -> Duration {
        self.base
            .saturating_mul(1_u32.checked_shl(failures).filter(|_| failures < 31).unwrap_or(u32::MAX))
            .min(self.cap)
    }
}

/// The queue.
#[derive(Debug)]
pub struct Workqueue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    backoff: Backoff,
}

#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    /// Those that are to be worked on: in `ready`, or in `running` and added again.
    dirty: BTreeSet<K>,
    running: BTreeSet<K>,
    waiting: BTreeMap<(Instant, u64), K>,
    /// Where a key is in `waiting`.
    due: BTreeMap<K, (Instant, u64)>,
    failures: BTreeMap<K, u32>,
    sequence: u64,
    closed: bool,
}

impl<K: Ord + Clone> Workqueue<K> {
    /// An empty queue.
    pub fn new(backoff: Backoff) -> Self {
        let state = State {
            ready: VecDeque::new(),
            dirty: BTreeSet::new(),
            running: BTreeSet::new(),
            waiting: BTreeMap::new(),
            due: BTreeMap::new(),
            failures: BTreeMap::new(),
            sequence: 0,
            closed: false,
        };
        Self { state: Mutex::new(state), changed: Notify::new(), backoff }
    }

    /// Adds a key: it is worked on as soon as a worker is free.
    pub fn add(&self, key: K) {
        self.lock().push(key);
        self.changed.notify_one();
    }

    /// Adds a key after a wait. A key that waits already keeps the shorter wait.
    pub fn add_after(&self, key: K, wait: Duration) {
        if wait.is_zero() {
            return self.add(key);
        }
        self.lock().wait(key, Instant::now() + wait);
        self.changed.notify_one();
    }

    /// Adds a key that failed, after a wait that doubles with each failure since it was forgotten.
    pub fn add_rate_limited(&self, key: K) {
        let mut state = self.lock();
        let failures = state.failures.entry(key.clone()).or_default();
        let wait = self.backoff.after(*failures);
        *failures = failures.saturating_add(1);
        drop(state);
        self.add_after(key, wait);
    }

    /// Forgets the failures of a key.
    pub fn forget(&self, key: &K) {
        self.lock().failures.remove(key);
    }

    /// How often a key failed in a row.
    pub fn failures(&self, key: &K) -> u32 {
        self.lock().failures.get(key).copied().unwrap_or_default()
    }

    /// Takes the next key, as soon as there is one; none once the queue is closed.
    pub async fn next(&self) -> Option<K> {
        loop {
            let changed = self.changed.notified();
            let due = {
                let mut state = self.lock();
                if state.closed {
                    drop(state);
                    self.changed.notify_one();
                    return None;
                }
                state.wake(Instant::now());
                if let Some(key) = state.pop() {
                    let more = !state.ready.is_empty();
                    drop(state);
                    if more {
                        self.changed.notify_one();
                    }
                    return Some(key);
                }
                state.waiting.keys().next().map(|(due, _)| *due)
            };
            match due {
                None => changed.await,
                Some(due) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(due) => {}
                },
            }
        }
    }

    /// Gives a key back after an attempt.
    pub fn done(&self, key: &K) {
        let mut state = self.lock();
        state.running.remove(key);
        if state.dirty.contains(key) {
            state.ready.push_back(key.clone());
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Ends the queue: every worker finishes what it has in hand.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// How many keys are to be worked on now or being worked on, and how many wait.
    pub fn depth(&self) -> (usize, usize) {
        let state = self.lock();
        (state.dirty.union(&state.running).count(), state.waiting.len())
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> State<K> {
    fn push(&mut self, key: K) {
        if self.dirty.insert(key.clone()) && !self.running.contains(&key) {
            self.ready.push_back(key);
        }
    }

    fn pop(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        self.dirty.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    fn wait(&mut self, key: K, due: Instant) {
        if let Some(place) = self.due.get(&key).copied() {
            if place.0 <= due {
                return;
            }
            self.waiting.remove(&place);
        }
        self.sequence += 1;
        self.due.insert(key.clone(), (due, self.sequence));
        self.waiting.insert((due, self.sequence), key);
    }

    /// Moves what is due to the end of the queue.
    fn wake(&mut self, now: Instant) {
        while let Some(entry) = self.waiting.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.due.remove(&key);
            self.push(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Workqueue<&'static str> {
        Workqueue::new(Backoff::default())
    }

    #[test]
    fn the_backoff_doubles_from_5_milliseconds_up_to_1000_seconds() {
        let backoff = Backoff::default();
        let waits: Vec<_> = (0..19).map(|failures| backoff.after(failures).as_millis()).collect();
        assert_eq!(waits[..5], [5, 10, 20, 40, 80]);
        assert_eq!(waits[17], 655_360);
        assert_eq!(waits[18], 1_000_000);
        assert_eq!(backoff.after(u32::MAX), backoff.cap);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_queued_once_and_worked_on_by_one_worker_at_a_time() {
        let queue = queue();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, Some("a"));
        queue.add("a");
        assert_eq!(queue.next().await, Some("b"));
        assert_eq!(queue.depth(), (2, 0));
        queue.done(&"a");
        assert_eq!(queue.next().await, Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn each_failure_of_a_key_doubles_its_wait_until_it_is_forgotten() {
        let queue = queue();
        let mut waits = Vec::new();
        for _ in 0..4 {
            queue.add_rate_limited("a");
            let before = Instant::now();
            assert_eq!(queue.next().await, Some("a"));
            waits.push(before.elapsed().as_millis());
            queue.done(&"a");
        }
        assert_eq!(waits, [5, 10, 20, 40]);
        assert_eq!(queue.failures(&"a"), 4);
        queue.forget(&"a");
        assert_eq!(queue.failures(&"a"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_added_key_does_not_wait_for_its_backoff_and_comes_again_when_that_ends() {
        let queue = Workqueue::new(Backoff { base: Duration::from_mins(1), cap: Duration::from_mins(1) });
        queue.add_rate_limited("a");
        queue.add("a");
        let before = Instant::now();
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(before.elapsed(), Duration::ZERO);
        queue.done(&"a");
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(before.elapsed(), Duration::from_mins(1));
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_waits_of_a_key_the_shorter_one_counts() {
        let queue = queue();
        let before = Instant::now();
        queue.add_after("a", Duration::from_secs(9));
        queue.add_after("a", Duration::from_secs(3));
        queue.add_after("a", Duration::from_secs(6));
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(before.elapsed(), Duration::from_secs(3));
        queue.done(&"a");
        assert_eq!(queue.depth(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_queue_ends_every_worker() {
        let queue = std::sync::Arc::new(queue());
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let queue = std::sync::Arc::clone(&queue);
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.close();
        for worker in workers {
            assert_eq!(worker.await.expect("the worker ends"), None);
        }
    }
}
