//! What was asked, and what may be asked.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::resource::Resource;

/// The verb of a request, as RBAC names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Patch,
    Update,
    Delete,
}

impl Verb {
    pub(crate) const ALL: [Self; 7] =
        [Self::Get, Self::List, Self::Watch, Self::Create, Self::Patch, Self::Update, Self::Delete];

    /// Whether the request changes something.
    pub(crate) fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Patch | Self::Update | Self::Delete)
    }
}

/// A request that arrived, whether or not it was done.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    pub(crate) resource: Resource,
    pub(crate) namespace: Option<String>,
    /// From the path; for a create, from the body.
    pub(crate) name: Option<String>,
    /// The kind of patch.
    pub(crate) content_type: Option<String>,
    /// Null for no body, and in quiet mode.
    pub(crate) body: Value,
    /// The parameters behind the question mark, as sent.
    pub(crate) query: String,
    /// The code of the answer; none while it is delayed, or if the connection was closed instead.
    pub(crate) answer: Option<u16>,
}

/// The requests since the start or the last reset.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) requests: Vec<Request>,
    counts: HashMap<(Verb, Resource), usize>,
    /// Keep the requests without their bodies.
    pub(crate) quiet: bool,
    resets: u64,
}

/// Where a request is in the log.
pub(crate) struct Place(u64, usize);

impl Log {
    pub(crate) fn push(&mut self, request: Request) -> Place {
        *self.counts.entry((request.verb, request.resource)).or_default() += 1;
        self.requests.push(request);
        Place(self.resets, self.requests.len() - 1)
    }

    /// Notes how a request was answered, unless the log was reset in between.
    pub(crate) fn answered(&mut self, place: &Place, code: u16) {
        if place.0 == self.resets
            && let Some(request) = self.requests.get_mut(place.1)
        {
            request.answer = Some(code);
        }
    }

    pub(crate) fn count(&self, verb: Verb, resource: Resource) -> usize {
        self.counts.get(&(verb, resource)).copied().unwrap_or_default()
    }

    pub(crate) fn writes(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.verb.is_write())
    }

    pub(crate) fn reset(&mut self) {
        self.requests.clear();
        self.counts.clear();
        self.resets += 1;
    }

    /// The counts in one line, for the message of a failed test.
    pub(crate) fn summary(&self) -> String {
        let mut counts: Vec<_> = self.counts.iter().collect();
        counts.sort();
        let counts = counts.iter().map(|((verb, resource), count)| format!("{verb:?} {resource:?} ×{count}"));
        counts.collect::<Vec<_>>().join(", ")
    }
}

/// The requests that a test expects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Foreseen(HashSet<(Verb, Resource)>);

impl Foreseen {
    /// No request at all.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// Every verb on every resource, for tests that are not about permissions.
    pub(crate) fn everything() -> Self {
        Resource::ALL.into_iter().fold(Self::default(), |foreseen, resource| foreseen.and(resource, Verb::ALL))
    }

    /// These verbs on this resource, too.
    pub(crate) fn and(mut self, resource: Resource, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.0.extend(verbs.into_iter().map(|verb| (verb, resource)));
        self
    }

    pub(crate) fn has(&self, verb: Verb, resource: Resource) -> bool {
        self.0.contains(&(verb, resource))
    }
}

impl FromIterator<(Verb, Resource)> for Foreseen {
    fn from_iter<I: IntoIterator<Item = (Verb, Resource)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}
