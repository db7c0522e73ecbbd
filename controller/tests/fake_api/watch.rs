//! A watch: first the objects there are, if asked for, then every change as a line of JSON.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::resource::Resource;
use super::select::Selector;
use super::status::Problem;
use super::store::{Form, Happened, Object, Store, Table};

/// Events that are sent at once, so that a burst needs few system calls.
const BATCH: usize = 256;

/// What a request to watch asks for.
pub(crate) struct Wish {
    pub(crate) resource: Resource,
    pub(crate) selector: Selector,
    pub(crate) form: Form,
    pub(crate) bookmarks: bool,
    /// The last version that the client has seen; none for the current state first.
    pub(crate) since: Option<u64>,
    /// Whether a bookmark tells the end of the current state.
    pub(crate) marks_initial: bool,
    pub(crate) timeout: Option<Duration>,
}

/// A watch as it was when its request was taken.
pub(crate) struct Start {
    wish: Wish,
    /// Objects to send before the changes.
    initial: VecDeque<Arc<Object>>,
    marks_initial: bool,
    /// Changes up to this version have been sent.
    seen: u64,
    cuts: u64,
    ends: u64,
    bookmarks: u64,
    changed: watch::Receiver<()>,
}

impl Start {
    pub(crate) fn new(wish: Wish, store: &Store) -> Self {
        let table = store.table(wish.resource);
        let initial = if wish.since.is_none() { table.select(&wish.selector).into() } else { VecDeque::new() };
        Self {
            initial,
            marks_initial: wish.marks_initial,
            seen: wish.since.unwrap_or(store.version),
            cuts: table.cuts,
            ends: table.ends,
            bookmarks: table.bookmarks,
            changed: table.changed.subscribe(),
            wish,
        }
    }

    /// The body of the answer.
    pub(crate) fn body(self, shared: Arc<Shared>) -> Body {
        let deadline = self.wish.timeout.map(|timeout| Instant::now() + timeout);
        let open = Open::new(shared, self.wish.resource);
        let watch = Watch { start: self, open, deadline, over: false };
        Body::from_stream(stream::unfold(watch, |mut watch| async move {
            let part = watch.next().await?;
            Some((part, watch))
        }))
    }
}

/// What a watch does next.
enum Step {
    Send(Vec<u8>),
    /// Send this, then end.
    Last(Vec<u8>),
    Wait,
    End,
    Cut,
}

/// An open watch.
struct Watch {
    start: Start,
    open: Open,
    deadline: Option<Instant>,
    over: bool,
}

/// Counts the watch among the open ones for as long as it lives.
struct Open {
    shared: Arc<Shared>,
    resource: Resource,
}

impl Watch {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.over || self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return None;
            }
            // Before the look, so that a change after it wakes.
            self.start.changed.mark_unchanged();
            let step = self.start.step(&self.open.shared.lock().store);
            match step {
                Step::Send(bytes) => return Some(Ok(bytes.into())),
                Step::Last(bytes) => {
                    self.over = true;
                    return Some(Ok(bytes.into()));
                }
                Step::Cut => {
                    self.over = true;
                    return Some(Err(io::ErrorKind::ConnectionReset.into()));
                }
                Step::End => return None,
                Step::Wait => self.wait().await,
            }
        }
    }

    /// Until something changes or the time is over.
    async fn wait(&mut self) {
        let changed = self.start.changed.changed();
        match self.deadline {
            // An error tells that the server is gone, and with it this task in a moment.
            None => drop(changed.await),
            Some(deadline) => tokio::select! {
                _ = changed => {}
                () = sleep_until(deadline) => {}
            },
        }
    }
}

impl Start {
    fn step(&mut self, store: &Store) -> Step {
        let table = store.table(self.wish.resource);
        if table.cuts != self.cuts {
            return Step::Cut;
        }
        if table.ends != self.ends {
            return Step::End;
        }
        if table.held {
            return Step::Wait;
        }
        let mut out = Vec::new();
        let count = self.initial.len().min(BATCH);
        for object in self.initial.drain(..count) {
            line(&self.wish, Happened::Added, &object, &mut out);
        }
        if self.initial.is_empty() {
            if std::mem::take(&mut self.marks_initial) {
                bookmark(&self.wish, self.seen, true, &mut out);
            }
            if self.seen < table.expired {
                return Step::Last(too_old(self.seen, table.expired));
            }
            self.changes(table, store.version, &mut out);
        }
        if out.is_empty() { Step::Wait } else { Step::Send(out) }
    }

    /// Writes what happened since, and the bookmarks that are due.
    fn changes(&mut self, table: &Table, version: u64, out: &mut Vec<u8>) {
        let mut sent = 0;
        for change in table.after(self.seen) {
            if sent == BATCH {
                return;
            }
            self.seen = change.object.version;
            if let Some(happened) = change.seen_by(&self.wish.selector) {
                line(&self.wish, happened, &change.object, out);
                sent += 1;
            }
        }
        if table.bookmarks != self.bookmarks {
            self.bookmarks = table.bookmarks;
            if self.wish.bookmarks {
                self.seen = self.seen.max(version);
                bookmark(&self.wish, self.seen, false, out);
            }
        }
    }
}

impl Open {
    fn new(shared: Arc<Shared>, resource: Resource) -> Self {
        shared.watches[resource as usize].fetch_add(1, Ordering::AcqRel);
        shared.tell();
        Self { shared, resource }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.watches[self.resource as usize].fetch_sub(1, Ordering::AcqRel);
        self.shared.tell();
    }
}

/// Writes an event; its type comes first, as the server writes it.
fn line(wish: &Wish, happened: Happened, object: &Object, out: &mut Vec<u8>) {
    let happened = match happened {
        Happened::Added => "ADDED",
        Happened::Modified => "MODIFIED",
        Happened::Deleted => "DELETED",
    };
    out.extend_from_slice(format!(r#"{{"type":"{happened}","object":"#).as_bytes());
    object.write(wish.resource, wish.form, out);
    out.extend_from_slice(b"}\n");
}

fn bookmark(wish: &Wish, version: u64, ends_initial: bool, out: &mut Vec<u8>) {
    let (api_version, kind) = match wish.form {
        Form::Whole => wish.resource.types(),
        Form::Metadata => ("meta.k8s.io/v1", "PartialObjectMetadata"),
    };
    let mut object =
        json!({ "kind": kind, "apiVersion": api_version, "metadata": { "resourceVersion": version.to_string() } });
    if ends_initial {
        object["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    }
    out.extend_from_slice(format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").as_bytes());
}

fn too_old(seen: u64, expired: u64) -> Vec<u8> {
    let problem = Problem::expired(&format!("too old resource version: {seen} ({expired})"));
    format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", problem.to_value()).into_bytes()
}
