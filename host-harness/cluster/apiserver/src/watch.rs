//! A watch: first the objects there are, if asked for, then every change as a line of JSON.
//!
//! Stands for the watch cache's streams: bookmarks on demand and at the end of a watch's time,
//! `sendInitialEvents`, tables, and 410 for versions that are forgotten. Left out: progress requests
//! and bookmarks by the minute (the embedder sends them).

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::resource::{Resource, Served};
use crate::select::Selector;
use crate::server::Shared;
use crate::status::Problem;
use crate::store::{Form, Happened, Object, Store, Table};
use crate::table::{Rows, TableOptions};

/// Events that are sent at once, so that a burst needs few system calls.
const BATCH: usize = 256;

/// What a request to watch asks for.
pub(crate) struct Wish {
    pub(crate) served: Served,
    pub(crate) selector: Selector,
    pub(crate) form: Form,
    pub(crate) table: Option<TableOptions>,
    pub(crate) bookmarks: bool,
    /// The last version that the client has seen; none for the current state first.
    pub(crate) since: Option<u64>,
    /// Whether a bookmark tells the end of the current state.
    pub(crate) marks_initial: bool,
    pub(crate) timeout: Option<Duration>,
    /// The connection is closed after this many events.
    pub(crate) cut_after: Option<usize>,
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
    rows: Option<Rows>,
}

impl Start {
    pub(crate) fn new(wish: Wish, store: &Store) -> Self {
        let table = store.table(wish.served.resource);
        let initial = if wish.since.is_none() { table.select(&wish.selector).into() } else { VecDeque::new() };
        Self {
            initial,
            marks_initial: wish.marks_initial,
            seen: wish.since.unwrap_or(store.version),
            cuts: table.cuts,
            ends: table.ends,
            bookmarks: table.bookmarks,
            changed: table.changed.subscribe(),
            rows: wish.table.map(|options| Rows::new(wish.served, options)),
            wish,
        }
    }

    /// The body of the answer.
    pub(crate) fn body(self, shared: Arc<Shared>) -> Body {
        let deadline = self.wish.timeout.map(|timeout| Instant::now() + timeout);
        let open = Open::new(shared, self.wish.served.resource);
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
    /// Send this, then close the connection.
    SendAndCut(Vec<u8>),
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
            if self.over {
                return None;
            }
            // Before the look, so that a change after it wakes.
            self.start.changed.mark_unchanged();
            let late = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
            let now = self.open.shared.now();
            let step = {
                let inner = self.open.shared.lock();
                if late { self.start.last(&inner.store) } else { self.start.step(&inner.store, now) }
            };
            match step {
                Step::Send(bytes) => return Some(Ok(bytes.into())),
                Step::Last(bytes) => {
                    self.over = true;
                    return Some(Ok(bytes.into()));
                }
                Step::SendAndCut(bytes) => {
                    self.start.cuts = u64::MAX;
                    return Some(Ok(bytes.into()));
                }
                Step::Cut => {
                    self.over = true;
                    // What was written so far goes out first.
                    tokio::task::yield_now().await;
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
    fn step(&mut self, store: &Store, now: k8s_openapi::jiff::Timestamp) -> Step {
        let table = store.table(self.wish.served.resource);
        if table.cuts != self.cuts || self.wish.cut_after == Some(0) {
            return Step::Cut;
        }
        if table.ends != self.ends {
            return Step::End;
        }
        if table.held {
            return Step::Wait;
        }
        let mut out = Vec::new();
        let count = self.initial.len().min(BATCH).min(self.wish.cut_after.unwrap_or(BATCH));
        let initial: Vec<_> = self.initial.drain(..count).collect();
        for object in initial {
            self.line(Happened::Added, &object, now, &mut out);
        }
        if self.initial.is_empty() && self.wish.cut_after != Some(0) {
            if std::mem::take(&mut self.marks_initial) {
                self.bookmark(true, &mut out);
            }
            if self.seen < table.expired {
                out.extend_from_slice(&too_old(self.seen, table.expired));
                return Step::Last(out);
            }
            self.changes(table, store.version, now, &mut out);
        }
        match (out.is_empty(), self.wish.cut_after) {
            (true, _) => Step::Wait,
            (false, Some(0)) => Step::SendAndCut(out),
            (false, _) => Step::Send(out),
        }
    }

    /// What a watch says when its time is over.
    fn last(&mut self, store: &Store) -> Step {
        let table = store.table(self.wish.served.resource);
        let behind = table.held || !self.initial.is_empty() || table.after(self.seen).next().is_some();
        if !self.wish.bookmarks || behind {
            return Step::End;
        }
        let mut out = Vec::new();
        self.seen = self.seen.max(store.version);
        self.bookmark(false, &mut out);
        Step::Last(out)
    }

    /// Writes what happened since, and the bookmarks that are due.
    fn changes(&mut self, table: &Table, version: u64, now: k8s_openapi::jiff::Timestamp, out: &mut Vec<u8>) {
        let mut sent = 0;
        for change in table.after(self.seen) {
            if sent == BATCH || self.wish.cut_after == Some(0) {
                return;
            }
            self.seen = change.object.version;
            if let Some(happened) = change.seen_by(&self.wish.selector) {
                self.line(happened, &change.object, now, out);
                sent += 1;
            }
        }
        if table.bookmarks != self.bookmarks {
            self.bookmarks = table.bookmarks;
            if self.wish.bookmarks {
                self.seen = self.seen.max(version);
                self.bookmark(false, out);
            }
        }
    }

    /// Writes an event; its type comes first, as the server writes it.
    fn line(&mut self, happened: Happened, object: &Object, now: k8s_openapi::jiff::Timestamp, out: &mut Vec<u8>) {
        if let Some(left) = &mut self.wish.cut_after {
            *left = left.saturating_sub(1);
        }
        let happened = match happened {
            Happened::Added => "ADDED",
            Happened::Modified => "MODIFIED",
            Happened::Deleted => "DELETED",
        };
        out.extend_from_slice(format!(r#"{{"type":"{happened}","object":"#).as_bytes());
        match &mut self.rows {
            Some(rows) => {
                let table = rows.event(&object.value(self.wish.served.resource), now);
                out.extend_from_slice(table.to_string().as_bytes());
            }
            None => object.write(self.wish.served, self.wish.form, out),
        }
        out.extend_from_slice(b"}\n");
    }

    fn bookmark(&self, ends_initial: bool, out: &mut Vec<u8>) {
        let (api_version, kind) = match (self.wish.form, &self.rows) {
            (_, Some(_)) => ("meta.k8s.io/v1".to_owned(), "Table"),
            (Form::Whole, None) => (self.wish.served.api_version(), self.wish.served.resource.kind()),
            (Form::Metadata, None) => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata"),
        };
        let version = self.seen.to_string();
        let mut object = json!({ "kind": kind, "apiVersion": api_version, "metadata": { "resourceVersion": version } });
        if self.rows.is_some() {
            object["columnDefinitions"] = Value::Null;
            object["rows"] = json!([]);
        }
        if ends_initial {
            object["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        out.extend_from_slice(format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").as_bytes());
    }
}

impl Open {
    fn new(shared: Arc<Shared>, resource: Resource) -> Self {
        shared.watch_opened(resource);
        Self { shared, resource }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.watch_closed(self.resource);
    }
}

fn too_old(seen: u64, expired: u64) -> Vec<u8> {
    let problem = Problem::expired(format!("too old resource version: {seen} ({expired})"));
    format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", problem.to_value()).into_bytes()
}
