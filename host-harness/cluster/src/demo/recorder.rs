//! What is noticed of the cluster: the requests as the API server logs them, and the lives of the pods.
//!
//! Whoever waits for a state looks at each one on the way, so looking costs no watch and no polling.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster_apiserver::{Request, Resource, View};
use serde_json::Value;

use super::deed::{self, Deed, Fact};
use super::timeline::{self, Life};

/// Notices each request and each change once.
#[derive(Debug, Default)]
pub struct Recorder {
    /// The lives of the pods so far.
    pub lives: Vec<Life>,
    /// How many requests were looked at.
    seen: usize,
    /// Those of them that had no answer yet.
    unanswered: Vec<usize>,
    /// The version of the objects that were looked at.
    version: Option<u64>,
    /// The groups and pods of which it was told that there is no room.
    no_room: BTreeSet<String>,
}

impl Recorder {
    /// Forgets what was before: whatever happened, it was before the curtain rose.
    pub fn skip(&mut self, view: &View<'_>) {
        self.seen = view.requests().len();
    }

    /// What is new.
    pub fn notice(&mut self, at: Duration, view: &View<'_>) -> Vec<Fact> {
        let requests = view.requests();
        let due = std::mem::take(&mut self.unanswered).into_iter().chain(self.seen..requests.len());
        let mut facts = Vec::new();
        for index in due {
            let request = &requests[index];
            if request.answer.is_none() {
                self.unanswered.push(index);
            } else if request.verb.is_write() {
                let object = named(view, request);
                let new = deed::of(at, request, object.as_ref()).into_iter();
                facts.extend(new.filter(|fact| self.is_news(fact, object.as_ref())));
            }
        }
        self.seen = requests.len();
        if self.version.replace(view.version()) != Some(view.version()) {
            facts.extend(timeline::notice(&mut self.lives, at, &view.list(Resource::Pods)));
        }
        facts
    }

    /// That there is no room is said again only after there was some.
    fn is_news(&mut self, fact: &Fact, object: Option<&Value>) -> bool {
        match fact.deed {
            Deed::NoRoomForAll => self.no_room.insert(fact.set.clone()),
            Deed::NoRoom => {
                let uid = object.and_then(|object| object["metadata"]["uid"].as_str());
                self.no_room.insert(uid.unwrap_or_default().to_owned())
            }
            Deed::Binds | Deed::Creates => {
                self.no_room.remove(&fact.set);
                true
            }
            _ => true,
        }
    }
}

/// The object that a request names, as it is now.
fn named(view: &View<'_>, request: &Request) -> Option<Value> {
    view.get(request.resource, request.namespace.as_deref().unwrap_or_default(), request.name.as_deref()?)
}
