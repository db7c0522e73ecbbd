//! The simulated cluster's API server, made strict: a request that a test does not foresee fails it, and what
//! is to go wrong is queued.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cluster_apiserver::{ApiServer, Config, Occasion};
use serde_json::Value;
use statefulset_scheduling_core::admission::DEFAULT_CONTROLLER;

#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub(crate) use cluster_apiserver::{Fault, Gates, Request, Resource, Verb, View};

/// The requests that a test expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Foreseen {
    /// All, for tests that are not about permissions.
    Everything,
    /// These verbs on these resources, as RBAC names them.
    Only(HashSet<(&'static str, &'static str)>),
}

impl Foreseen {
    fn has(&self, occasion: &Occasion<'_>) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(pairs) => {
                occasion.subresource.is_none() && pairs.contains(&(occasion.verb.as_str(), occasion.resource.plural()))
            }
        }
    }
}

/// What goes wrong, and what went wrong.
#[derive(Debug, Default)]
struct Book {
    faults: HashMap<(Verb, Resource), VecDeque<(Fault, usize)>>,
    unforeseen: Vec<String>,
}

impl Book {
    /// Uses up one fault.
    fn take(&mut self, occasion: &Occasion<'_>) -> Option<Fault> {
        let queue = self.faults.get_mut(&(occasion.verb, occasion.resource))?;
        let (fault, times) = queue.front_mut()?;
        let fault = *fault;
        *times -= 1;
        if *times == 0 {
            queue.pop_front();
        }
        Some(fault)
    }
}

/// The server. When it is dropped, requests that were not foreseen panic.
pub(crate) struct FakeApi {
    server: ApiServer,
    book: Arc<Mutex<Book>>,
}

impl Deref for FakeApi {
    type Target = ApiServer;

    fn deref(&self) -> &ApiServer {
        &self.server
    }
}

impl FakeApi {
    /// Starts on a free port. What `foreseen` does not have is refused and recorded.
    pub(crate) async fn start(foreseen: Foreseen) -> Self {
        Self::start_at(foreseen, Gates::default(), SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts with these gates, on a port of one's choice.
    pub(crate) async fn start_at(foreseen: Foreseen, gates: Gates, address: SocketAddr) -> Self {
        let namespaces = vec!["statefulset-scheduling-system".to_owned()];
        let config = Config { gates, namespaces, history: 250_000, ..Config::default() };
        let server = ApiServer::start_at(config, address).await.expect("the port can be bound");
        let book = Arc::<Mutex<Book>>::default();
        let faults = Arc::clone(&book);
        server.set_faults(move |occasion: &Occasion<'_>| lock(&faults).take(occasion));
        let unforeseen = Arc::clone(&book);
        server.set_authorizer(move |occasion: &Occasion<'_>| {
            let has = foreseen.has(occasion);
            if !has {
                lock(&unforeseen).unforeseen.push(format!("{occasion:?}"));
            }
            has
        });
        Self { server, book }
    }

    /// Stops, and tells where it was.
    pub(crate) async fn stop(mut self) -> SocketAddr {
        self.server.stop().await;
        self.server.address()
    }

    /// A new client of the controller that answers 429, 503 and 504 to its caller.
    pub(crate) fn client_without_retries(&self) -> kube::Client {
        let mut config = self.server.config_as(DEFAULT_CONTROLLER);
        config.default_retry = false;
        kube::Client::try_from(config).expect("a plain configuration makes a client")
    }

    /// Changes an object, which has to be there.
    #[track_caller]
    pub(crate) fn modify(&self, resource: Resource, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let found = self.server.modify(resource, namespace, name, change);
        assert!(found, "there is no {resource} {namespace}/{name} to modify");
    }

    pub(crate) fn count(&self, verb: Verb, resource: Resource) -> u64 {
        self.server.count(None, verb, resource)
    }

    /// The requests that create, patch, update or delete.
    pub(crate) fn writes(&self) -> Vec<Request> {
        self.server.requests().into_iter().filter(|request| request.verb.is_write()).collect()
    }

    /// Queues a fault for the next request of this kind that has none yet.
    pub(crate) fn fault(&self, verb: Verb, resource: Resource, fault: Fault) {
        self.faults(verb, resource, fault, 1);
    }

    /// Queues a fault for that many requests.
    pub(crate) fn faults(&self, verb: Verb, resource: Resource, fault: Fault, times: usize) {
        lock(&self.book).faults.entry((verb, resource)).or_default().push_back((fault, times));
    }

    /// Takes back the faults that have not happened.
    pub(crate) fn clear_faults(&self) {
        lock(&self.book).faults.clear();
    }

    /// How many requests are still to fail.
    pub(crate) fn pending_faults(&self) -> usize {
        lock(&self.book).faults.values().flatten().map(|(_, times)| times).sum()
    }
}

impl Drop for FakeApi {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let unforeseen = std::mem::take(&mut lock(&self.book).unforeseen);
            assert!(unforeseen.is_empty(), "unforeseen requests:\n{}", unforeseen.join("\n"));
        }
    }
}

/// A test that panicked under the lock has failed already and must not hide it by another panic.
fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}
