//! Failures that a test queues for requests to come.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::log::Verb;
use super::resource::Resource;

/// What happens to a request instead of, or around, its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not done; answered with this code and, if given, `Retry-After` in seconds.
    ///
    /// A [`kube::Client`] of the default configuration retries 429, 503 and 504 by itself.
    Status(u16, Option<u32>),
    /// Not done; the connection is closed without an answer.
    DropBefore,
    /// Done; the connection is closed without an answer.
    DropAfter,
    /// Done and answered, but only after this long.
    Delay(Duration),
}

/// The faults that wait for their requests.
#[derive(Debug, Default)]
pub(crate) struct Faults(HashMap<(Verb, Resource), VecDeque<(Fault, usize)>>);

impl Faults {
    pub(crate) fn push(&mut self, verb: Verb, resource: Resource, fault: Fault, times: usize) {
        if times > 0 {
            self.0.entry((verb, resource)).or_default().push_back((fault, times));
        }
    }

    /// Uses up one fault.
    pub(crate) fn take(&mut self, verb: Verb, resource: Resource) -> Option<Fault> {
        let queue = self.0.get_mut(&(verb, resource))?;
        let (fault, times) = queue.front_mut()?;
        let fault = *fault;
        *times -= 1;
        if *times == 0 {
            queue.pop_front();
        }
        Some(fault)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many requests are still to fail.
    pub(crate) fn pending(&self) -> usize {
        self.0.values().flatten().fold(0, |sum, (_, times)| sum.saturating_add(*times))
    }
}
