//! What was asked, by whom, and how it was answered.
//!
//! Stands for the audit log, at the level of metadata, or with what was sent.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::resource::{Resource, Subresource};

/// The verb of a request, as RBAC names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "RBAC's verbs need no explanation")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// Whether the request changes something.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }

    /// As RBAC spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request that arrived, whether or not it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number of the request since the start, from 0.
    pub sequence: u64,
    /// Who made it.
    pub user: Arc<str>,
    /// What it does.
    pub verb: Verb,
    /// What it is about.
    pub resource: Resource,
    /// The part of it.
    pub subresource: Option<Subresource>,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path; for a create, from the body.
    pub name: Option<String>,
    /// What was sent; null for nothing, and where it is not kept.
    pub body: Value,
    /// Whether nothing was to be stored.
    pub dry_run: bool,
    /// The code of the answer; none while there is none, and if the connection was closed instead.
    pub answer: Option<u16>,
    /// The number of its answer among all answers, from 0. A request that was answered before another was
    /// done before the other's answer, whichever came first.
    pub answered: Option<u64>,
}

/// The requests of one user, verb and resource, subresources included.
pub type Counts = BTreeMap<(Arc<str>, Verb, Resource), u64>;

/// The requests since the start or the last reset.
#[derive(Debug, Default)]
pub(crate) struct Log {
    requests: Vec<Request>,
    counts: Counts,
    /// How many requests were forgotten by resets.
    forgotten: u64,
    quiet: bool,
    /// How often it was asked what is served.
    pub(crate) discoveries: u64,
    /// Whether bodies are kept.
    pub(crate) bodies: bool,
    next: u64,
    answers: u64,
    users: BTreeMap<String, Arc<str>>,
}

impl Log {
    /// Notes a request and returns its number.
    pub(crate) fn push(&mut self, mut request: Request) -> u64 {
        request.sequence = self.next;
        self.next += 1;
        *self.counts.entry((Arc::clone(&request.user), request.verb, request.resource)).or_default() += 1;
        if self.quiet {
            self.forgotten = self.next;
        } else {
            self.requests.push(request);
        }
        self.next - 1
    }

    /// One text for each user, however many requests.
    pub(crate) fn user(&mut self, name: &str) -> Arc<str> {
        if let Some(user) = self.users.get(name) {
            return Arc::clone(user);
        }
        let user: Arc<str> = name.into();
        self.users.insert(name.to_owned(), Arc::clone(&user));
        user
    }

    /// Notes how a request was answered, unless it was forgotten.
    pub(crate) fn answered(&mut self, sequence: u64, code: u16) {
        self.answers += 1;
        let place = sequence.checked_sub(self.forgotten).and_then(|place| usize::try_from(place).ok());
        if let Some(request) = place.and_then(|place| self.requests.get_mut(place)) {
            request.answer = Some(code);
            request.answered = Some(self.answers);
        }
    }

    pub(crate) fn requests(&self) -> &[Request] {
        &self.requests
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether only counts are kept from now on.
    pub(crate) fn set_quiet(&mut self, quiet: bool) {
        self.quiet = quiet;
        if quiet {
            self.requests.clear();
            self.forgotten = self.next;
        }
    }

    pub(crate) fn reset(&mut self) {
        self.requests.clear();
        self.counts.clear();
        self.discoveries = 0;
        self.forgotten = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(log: &mut Log) -> Request {
        Request {
            sequence: 0,
            user: log.user("me"),
            verb: Verb::Get,
            resource: Resource::Pods,
            subresource: None,
            namespace: None,
            name: None,
            body: Value::Null,
            dry_run: false,
            answer: None,
            answered: None,
        }
    }

    #[test]
    fn answers_find_their_requests_and_forgotten_ones_are_passed_over() {
        let mut log = Log::default();
        let first = request(&mut log);
        let first = log.push(first);
        log.reset();
        let second = request(&mut log);
        let second = log.push(second);
        log.answered(first, 500);
        log.answered(second, 200);
        assert_eq!(log.requests().iter().map(|request| request.answer).collect::<Vec<_>>(), [Some(200)]);
        log.set_quiet(true);
        let third = request(&mut log);
        let third = log.push(third);
        log.answered(third, 200);
        assert!(log.requests().is_empty());
        assert_eq!(log.counts().values().sum::<u64>(), 2);
    }
}
