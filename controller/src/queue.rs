//! Which StatefulSets are to be reconciled, and when.
//!
//! A key is in the queue once, however often it is added, and is worked on by one worker at a time.
//! One that failed waits for itself alone.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::index::Key;

/// The wait after the first failure; it doubles with each further one.
pub const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// The longest wait between two attempts.
pub const MAX_BACKOFF: Duration = Duration::from_mins(1);
/// The wait after a failure that only a change can mend, in case the change is not seen.
pub const TERMINAL_BACKOFF: Duration = Duration::from_mins(10);

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do.
    Done,
    /// It failed and may do better later, not before this wait.
    Retry(Option<Duration>),
    /// It fails until something changes.
    Terminal,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Key>,
    /// Those in `ready`.
    queued: HashSet<Key>,
    running: HashSet<Key>,
    /// Those that were added while they were worked on.
    again: HashSet<Key>,
    waiting: BTreeMap<(Instant, u64), Key>,
    failures: HashMap<Key, u32>,
    sequence: u64,
    closed: bool,
}

/// The queue.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

impl Queue {
    /// Adds a key: it is worked on as soon as a worker is free.
    pub fn add(&self, key: Key) {
        let mut state = self.lock();
        if state.running.contains(&key) {
            state.again.insert(key);
        } else {
            state.push(key);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Takes the next key, as soon as there is one; none once the queue is closed.
    pub async fn next(&self) -> Option<Key> {
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
                Some(due) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(due.into()) => {}
                    }
                }
            }
        }
    }

    /// Gives a key back after an attempt.
    pub fn done(&self, key: Key, outcome: Outcome) {
        let mut state = self.lock();
        state.running.remove(&key);
        let again = state.again.remove(&key);
        match outcome {
            Outcome::Done => {
                state.failures.remove(&key);
                if again {
                    state.push(key);
                }
            }
            // Even if it changed meanwhile: an object that fails must not be tried in a hot loop.
            Outcome::Retry(at_least) => {
                let failures = state.failures.entry(key.clone()).or_default();
                *failures = failures.saturating_add(1);
                let wait = backoff(*failures).max(at_least.unwrap_or_default());
                state.wait(key, jitter(wait));
            }
            Outcome::Terminal if again => {
                state.failures.remove(&key);
                state.push(key);
            }
            Outcome::Terminal => {
                state.failures.remove(&key);
                state.wait(key, jitter(TERMINAL_BACKOFF));
            }
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

    /// How many keys are to be worked on now, and how many wait.
    pub fn depth(&self) -> (usize, usize) {
        let state = self.lock();
        (state.ready.len(), state.waiting.len())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, key: Key) {
        if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn pop(&mut self) -> Option<Key> {
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    fn wait(&mut self, key: Key, wait: Duration) {
        self.sequence += 1;
        self.waiting.insert((Instant::now() + wait, self.sequence), key);
    }

    /// Moves what is due to the end of the queue.
    fn wake(&mut self, now: Instant) {
        while let Some(entry) = self.waiting.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            if self.running.contains(&key) {
                self.again.insert(key);
            } else {
                self.push(key);
            }
        }
    }
}

/// The wait after so many failures in a row.
fn backoff(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    FIRST_BACKOFF.saturating_mul(1 << doublings).min(MAX_BACKOFF)
}

/// Between the whole wait and a quarter more, so that many that failed together do not return together.
fn jitter(wait: Duration) -> Duration {
    wait.mul_f64(1.0 + fastrand::f64() / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("default", name)
    }

    #[test]
    fn the_backoff_doubles_up_to_its_bound() {
        let waits: Vec<_> = (1..=12).map(|failures| backoff(failures).as_millis()).collect();
        assert_eq!(waits[..4], [100, 200, 400, 800]);
        assert_eq!(waits[11], MAX_BACKOFF.as_millis());
        assert_eq!(backoff(u32::MAX), MAX_BACKOFF);
    }

    #[tokio::test]
    async fn a_key_is_queued_once_and_worked_on_by_one_worker_at_a_time() {
        let queue = Queue::default();
        queue.add(key("a"));
        queue.add(key("a"));
        queue.add(key("b"));
        assert_eq!(queue.depth(), (2, 0));
        assert_eq!(queue.next().await, Some(key("a")));
        queue.add(key("a"));
        assert_eq!(queue.next().await, Some(key("b")));
        assert_eq!(queue.depth(), (0, 0));
        queue.done(key("a"), Outcome::Done);
        assert_eq!(queue.next().await, Some(key("a")));
    }

    #[tokio::test]
    async fn a_failed_key_waits_for_itself_alone_even_if_it_changes_meanwhile() {
        let queue = Queue::default();
        queue.add(key("a"));
        let taken = queue.next().await.expect("it is there");
        queue.add(key("a"));
        queue.done(taken, Outcome::Retry(None));
        assert_eq!(queue.depth(), (0, 1));
        queue.add(key("b"));
        assert_eq!(queue.next().await, Some(key("b")));
    }

    #[tokio::test]
    async fn a_terminal_failure_ends_with_the_next_change() {
        let queue = Queue::default();
        queue.add(key("a"));
        let taken = queue.next().await.expect("it is there");
        queue.done(taken, Outcome::Terminal);
        assert_eq!(queue.depth(), (0, 1));
        queue.add(key("a"));
        assert_eq!(queue.next().await, Some(key("a")));
    }

    #[tokio::test]
    async fn a_closed_queue_ends_every_worker() {
        let queue = std::sync::Arc::new(Queue::default());
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
