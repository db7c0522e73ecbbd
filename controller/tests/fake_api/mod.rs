//! A Kubernetes API server in this process, for tests and benchmarks: real HTTP on a real port, a
//! store with versions and watches, and failures on request.
//!
//! ```ignore
//! let fake = FakeApi::start(Foreseen::nothing().and(Resource::StatefulSets, [Verb::List, Verb::Watch])).await;
//! fake.put(Resource::StatefulSets, json!({ "metadata": { "namespace": "prod", "name": "web" } }));
//! let sets: Api<StatefulSet> = Api::all(fake.client());
//! ```
//!
//! It keeps to what an API server does where a client could tell the difference. Not served:
//! subresources, collection deletes, field ownership of anything but Leases, garbage collection,
//! validation beyond immutable fields, and dry runs.

#![allow(dead_code, reason = "each test binary uses a part of it")]

mod connection;
mod fault;
mod http;
mod log;
mod owners;
mod patch;
mod resource;
mod select;
mod status;
mod store;
mod watch;

use std::future::Future;
use std::net::SocketAddr;
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch::Sender;
use tokio::task::JoinHandle;

use connection::{Door, Line, Lines};
use fault::Faults;
use log::Log;
use owners::Owners;
use store::Store;

#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub(crate) use fault::Fault;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub(crate) use log::{Foreseen, Request, Verb};
#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub(crate) use resource::Resource;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub(crate) use store::PROTECTION;

/// Whether `scheduling.k8s.io/v1beta1` is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SchedulingApi {
    #[default]
    On,
    /// 404 with a `Status`.
    Off,
    /// 404 with the plain text that an API server has for paths of which it knows nothing.
    OffText,
}

/// All state, behind one lock.
#[derive(Debug)]
struct Inner {
    store: Store,
    owners: Owners,
    log: Log,
    faults: Faults,
    foreseen: Foreseen,
    unforeseen: Vec<String>,
    scheduling: SchedulingApi,
}

/// What the server and the test share.
#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    /// Wakes those who wait for a state.
    activity: Sender<()>,
    /// The open watches of each resource. Not behind the lock: they close wherever they are dropped.
    watches: [AtomicUsize; Resource::ALL.len()],
    lines: Lines,
}

impl Shared {
    /// A test that panicked under the lock has failed already and must not hide it by another panic.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes those who wait for it.
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let done = change(&mut self.lock());
        self.tell();
        done
    }

    fn tell(&self) {
        self.activity.send_replace(());
    }
}

/// The state as a condition of [`FakeApi::wait_for`] sees it.
///
/// The state is locked meanwhile: a condition may ask this, but not the [`FakeApi`].
pub(crate) struct View<'a> {
    inner: &'a Inner,
    shared: &'a Shared,
}

impl View<'_> {
    pub(crate) fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        self.inner.store.table(resource).get(namespace, name).map(|object| object.value(resource))
    }

    /// How many objects there are; cheap.
    pub(crate) fn len(&self, resource: Resource) -> usize {
        self.inner.store.table(resource).len()
    }

    /// All objects, by namespace and name; not cheap.
    pub(crate) fn list(&self, resource: Resource) -> Vec<Value> {
        self.inner.store.table(resource).objects().map(|object| object.value(resource)).collect()
    }

    /// How many requests there were; cheap.
    pub(crate) fn count(&self, verb: Verb, resource: Resource) -> usize {
        self.inner.log.count(verb, resource)
    }

    pub(crate) fn requests(&self) -> &[Request] {
        &self.inner.log.requests
    }

    pub(crate) fn writes(&self) -> impl Iterator<Item = &Request> {
        self.inner.log.writes()
    }

    /// How many watches are open now; cheap.
    pub(crate) fn watches(&self, resource: Resource) -> usize {
        self.shared.watches[resource as usize].load(Ordering::Acquire)
    }

    /// How many faults still wait for a request.
    pub(crate) fn pending_faults(&self) -> usize {
        self.inner.faults.pending()
    }
}

/// The server. It must live as long as its clients; when it is dropped, unforeseen requests panic.
#[derive(Debug)]
pub(crate) struct FakeApi {
    shared: Arc<Shared>,
    address: SocketAddr,
    serving: Option<JoinHandle<()>>,
}

/// Starting, stopping, and reaching it.
impl FakeApi {
    /// Starts on a free port. Requests that `foreseen` does not have are answered 500 and recorded.
    pub(crate) async fn start(foreseen: Foreseen) -> Self {
        let inner = Inner {
            store: Store::default(),
            owners: Owners::default(),
            log: Log::default(),
            faults: Faults::default(),
            foreseen,
            unforeseen: Vec::new(),
            scheduling: SchedulingApi::On,
        };
        let shared = Arc::new(Shared {
            inner: Mutex::new(inner),
            activity: Sender::default(),
            watches: Default::default(),
            lines: Lines::default(),
        });
        let mut fake = Self { shared, address: SocketAddr::from(([127, 0, 0, 1], 0)), serving: None };
        fake.restart().await;
        fake
    }

    /// Closes the port and all connections. The state stays.
    pub(crate) async fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            // The only error is that it was aborted; then the port is free.
            let _ = serving.await;
        }
        self.shared.lines.cut_all();
    }

    /// Opens the port again, the same as before.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        let tcp = TcpListener::bind(self.address).await.expect("the port can be bound");
        self.address = tcp.local_addr().expect("a bound port has an address");
        let door = Door { tcp, lines: self.shared.lines.clone() };
        let service = http::router(Arc::clone(&self.shared)).into_make_service_with_connect_info::<Line>();
        self.serving = Some(tokio::spawn(async move {
            axum::serve(door, service).await.expect("serving ends only when it is aborted");
        }));
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The configuration of a client, to be changed before [`kube::Client::try_from`].
    pub(crate) fn config(&self) -> kube::Config {
        kube::Config::new(self.url().parse().expect("the address makes a URL"))
    }

    /// A new client with connections of its own. It retries 429, 503 and 504 by itself.
    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::try_from(self.config()).expect("a plain configuration makes a client")
    }

    /// A new client that answers 429, 503 and 504 to its caller.
    pub(crate) fn client_without_retries(&self) -> kube::Client {
        let mut config = self.config();
        config.default_retry = false;
        kube::Client::try_from(config).expect("a plain configuration makes a client")
    }
}

/// The objects, changed behind the back of all clients: no request, no rule, no default.
impl FakeApi {
    /// Creates or replaces an object. A uid and a creationTimestamp are made up, or kept, if absent.
    pub(crate) fn put(&self, resource: Resource, value: Value) {
        self.shared.change(|inner| inner.store.put(resource, value));
    }

    /// Changes an object, which has to be there.
    #[track_caller]
    pub(crate) fn modify(&self, resource: Resource, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let found = self.shared.change(|inner| {
            let object = inner.store.table(resource).get(namespace, name)?;
            let mut value = object.value(resource);
            change(&mut value);
            inner.store.put(resource, value);
            Some(())
        });
        assert!(found.is_some(), "there is no {resource:?} {namespace}/{name} to modify");
    }

    /// Takes an object away, whatever its finalizers. Tells whether it was there.
    pub(crate) fn remove(&self, resource: Resource, namespace: &str, name: &str) -> bool {
        self.shared.change(|inner| inner.store.remove(resource, namespace, name))
    }

    pub(crate) fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        self.look(|view| view.get(resource, namespace, name))
    }

    /// All objects, by namespace and name.
    pub(crate) fn list(&self, resource: Resource) -> Vec<Value> {
        self.look(|view| view.list(resource))
    }

    pub(crate) fn len(&self, resource: Resource) -> usize {
        self.look(|view| view.len(resource))
    }
}

/// The log.
impl FakeApi {
    /// The requests since the start or the last reset, in the order of their arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.look(|view| view.requests().to_vec())
    }

    pub(crate) fn count(&self, verb: Verb, resource: Resource) -> usize {
        self.look(|view| view.count(verb, resource))
    }

    /// The requests that create, patch, update or delete.
    pub(crate) fn writes(&self) -> Vec<Request> {
        self.look(|view| view.writes().cloned().collect())
    }

    pub(crate) fn reset_log(&self) {
        self.shared.change(|inner| inner.log.reset());
    }

    /// From now on the log keeps no bodies.
    pub(crate) fn quiet(&self) {
        self.shared.lock().log.quiet = true;
    }

    /// The requests that were not foreseen, which are forgiven by this.
    pub(crate) fn take_unforeseen(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unforeseen)
    }

    /// Panics if there were requests that were not foreseen.
    #[track_caller]
    pub(crate) fn assert_foreseen(&self) {
        let unforeseen = self.take_unforeseen();
        assert!(unforeseen.is_empty(), "unforeseen requests:\n{}", unforeseen.join("\n"));
    }
}

/// Waiting. Every change of the objects, the log and the set of open watches has the condition looked
/// at again; nothing polls.
impl FakeApi {
    /// Returns when the condition holds, and panics if it does not in time.
    #[track_caller]
    pub(crate) fn wait_for(
        &self,
        condition: impl FnMut(&View<'_>) -> bool,
        timeout: Duration,
    ) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let reached = self.reaches(condition, timeout).await;
            assert!(reached, "{caller}: not reached in {timeout:?}; {}", self.shared.lock().log.summary());
        }
    }

    /// Whether the condition holds at some time before the timeout.
    pub(crate) async fn reaches(&self, mut condition: impl FnMut(&View<'_>) -> bool, timeout: Duration) -> bool {
        let mut activity = self.shared.activity.subscribe();
        let reached = async {
            loop {
                activity.mark_unchanged();
                if self.look(&mut condition) {
                    return;
                }
                activity.changed().await.expect("the sender lives in the server");
            }
        };
        tokio::time::timeout(timeout, reached).await.is_ok()
    }

    /// Looks at one state of everything.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        look(&View { inner: &self.shared.lock(), shared: &self.shared })
    }
}

/// Failures.
impl FakeApi {
    /// Queues a fault for the next request of this kind that has none yet.
    pub(crate) fn fault(&self, verb: Verb, resource: Resource, fault: Fault) {
        self.faults(verb, resource, fault, 1);
    }

    /// Queues a fault for that many requests.
    pub(crate) fn faults(&self, verb: Verb, resource: Resource, fault: Fault, times: usize) {
        self.shared.lock().faults.push(verb, resource, fault, times);
    }

    /// Takes back the faults that have not happened.
    pub(crate) fn clear_faults(&self) {
        self.shared.change(|inner| inner.faults.clear());
    }

    /// How many requests are still to fail.
    pub(crate) fn pending_faults(&self) -> usize {
        self.shared.lock().faults.pending()
    }

    /// Closes the connections of the open watches in the middle of the answer.
    pub(crate) fn cut_watches(&self, resource: Resource) {
        self.on_table(resource, |table| table.cuts += 1);
    }

    /// Ends the open watches in good order, as at their timeout.
    pub(crate) fn end_watches(&self, resource: Resource) {
        self.on_table(resource, |table| table.ends += 1);
    }

    /// Keeps events back from now on, from open watches and from new ones. Lists are not affected.
    pub(crate) fn hold_watches(&self, resource: Resource) {
        self.on_table(resource, |table| table.held = true);
    }

    /// Sends the events that were kept back.
    pub(crate) fn release_watches(&self, resource: Resource) {
        self.on_table(resource, |table| table.held = false);
    }

    /// Sends a bookmark to every open watch that allows bookmarks, after the events it has not yet got.
    pub(crate) fn send_bookmarks(&self, resource: Resource) {
        self.on_table(resource, |table| table.bookmarks += 1);
    }

    /// Forgets the past: open watches end, and watches from a version before now get 410, as do the
    /// later pages of lists.
    pub(crate) fn expire_history(&self) {
        self.shared.change(|inner| inner.store.expire());
    }

    /// Switches the Workload API. Off ends its open watches; the objects stay.
    pub(crate) fn set_scheduling_api(&self, scheduling: SchedulingApi) {
        self.shared.lock().scheduling = scheduling;
        if scheduling != SchedulingApi::On {
            self.end_watches(Resource::Workloads);
            self.end_watches(Resource::PodGroups);
        }
    }

    fn on_table(&self, resource: Resource, change: impl FnOnce(&mut store::Table)) {
        self.shared.change(|inner| {
            let table = inner.store.table_mut(resource);
            change(table);
            table.wake();
        });
    }
}

impl Drop for FakeApi {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
        self.shared.lines.cut_all();
        if !std::thread::panicking() {
            self.assert_foreseen();
        }
    }
}
