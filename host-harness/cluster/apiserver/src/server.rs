//! The server as its embedder has it: starting, stopping, looking, waiting, and making things go wrong.

use std::fmt::Write as _;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch::Sender;
use tokio::task::JoinHandle;

use crate::admission::Webhook;
use crate::authorization::Authorizer;
use crate::clock::seconds;
use crate::codec;
use crate::config::Config;
use crate::connection::{Door, Line, Lines};
use crate::deletion;
use crate::faults::{Faults, Occasion};
use crate::http;
use crate::log::{Counts, Log, Request, Verb};
use crate::owners::Owners;
use crate::random::Source;
use crate::resource::Resource;
use crate::rules::{self, Rules, SYSTEM_CLASSES};
use crate::store::{Happened, Store, Table};

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// All state, behind one lock.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) owners: Owners,
    pub(crate) log: Log,
    pub(crate) random: Source,
    /// The UIDs of what webhooks are asked, which must not change those of the objects.
    pub(crate) reviews: Source,
}

impl Inner {
    /// Stores an object, completing only what every object has.
    fn put(&mut self, resource: Resource, mut value: Value, now: Value) {
        rules::default(resource, &mut value);
        codec::tidy(resource, &mut value);
        let metadata = crate::write::metadata(&mut value);
        if resource.is_namespaced() && !metadata.get("namespace").is_some_and(Value::is_string) {
            metadata.insert("namespace".into(), "default".into());
        }
        let text = |member: &str| metadata.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let old = self.store.value(resource, &namespace, &name);
        let fresh = [("uid", self.random.uid().into()), ("creationTimestamp", now)];
        for (member, fresh) in fresh {
            let kept = old.as_ref().map_or(fresh, |old| old["metadata"][member].clone());
            let entry = metadata.entry(member).or_insert(Value::Null);
            if entry.is_null() {
                *entry = kept;
            }
        }
        let happened = match &old {
            Some(old) if deletion::is_finished(resource, old, &value) => Happened::Deleted,
            Some(_) => Happened::Modified,
            None => Happened::Added,
        };
        self.store.save(resource, happened, value);
    }

    /// A name that is not taken.
    pub(crate) fn generate_name(&mut self, resource: Resource, namespace: &str, prefix: &str) -> String {
        // The longest that leaves room for the suffix.
        let prefix = &prefix[..prefix.floor_char_boundary(prefix.len().min(58))];
        loop {
            let name = format!("{prefix}{}", self.random.suffix());
            if self.store.table(resource).get(namespace, &name).is_none() {
                return name;
            }
        }
    }
}

/// What the server and its embedder share.
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    config: Config,
    webhooks: RwLock<Arc<[Webhook]>>,
    faults: RwLock<Option<Arc<dyn Faults>>>,
    authorizer: RwLock<Option<Arc<dyn Authorizer>>>,
    /// Wakes those who wait for a state.
    activity: Sender<()>,
    /// The open watches of each resource. Not behind the lock: they close wherever they are dropped.
    watches: [AtomicUsize; Resource::COUNT],
    lines: Lines,
}

impl Shared {
    /// Whoever panicked under the lock has failed already and must not hide it by another panic.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes those who wait for it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let done = change(&mut self.lock());
        self.activity.send_replace(());
        done
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules { profile: self.config.profile, gates: self.config.gates }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    pub(crate) fn webhooks(&self) -> Arc<[Webhook]> {
        Arc::clone(&self.webhooks.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a request may be made.
    pub(crate) fn allows(&self, occasion: &Occasion<'_>) -> bool {
        let authorizer = self.authorizer.read().unwrap_or_else(PoisonError::into_inner);
        authorizer.as_ref().is_none_or(|authorizer| authorizer.allows(occasion))
    }

    pub(crate) fn faults(&self) -> Option<Arc<dyn Faults>> {
        self.faults.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn watch_opened(&self, resource: Resource) {
        self.watches[resource as usize].fetch_add(1, Ordering::AcqRel);
        self.activity.send_replace(());
    }

    pub(crate) fn watch_closed(&self, resource: Resource) {
        self.watches[resource as usize].fetch_sub(1, Ordering::AcqRel);
        self.activity.send_replace(());
    }
}

/// The state as a condition of [`ApiServer::wait_for`] sees it.
///
/// The state is locked meanwhile: a condition may ask this, but not the [`ApiServer`].
pub struct View<'a> {
    inner: &'a Inner,
    shared: &'a Shared,
}

impl View<'_> {
    /// An object; the namespace is empty for what is in none.
    pub fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        self.inner.store.value(resource, namespace, name)
    }

    /// How many objects there are; cheap.
    pub fn len(&self, resource: Resource) -> usize {
        self.inner.store.table(resource).len()
    }

    /// All objects, by namespace and name; not cheap.
    pub fn list(&self, resource: Resource) -> Vec<Value> {
        self.inner.store.table(resource).objects().map(|object| object.value(resource)).collect()
    }

    /// The version of the latest change of anything; cheap.
    pub fn version(&self) -> u64 {
        self.inner.store.version
    }

    /// The requests since the start or the last reset, in the order of their arrival.
    pub fn requests(&self) -> &[Request] {
        self.inner.log.requests()
    }

    /// How many requests each user made; cheap.
    pub fn counts(&self) -> &Counts {
        self.inner.log.counts()
    }

    /// How many requests there were, of one user or of all.
    pub fn count(&self, user: Option<&str>, verb: Verb, resource: Resource) -> u64 {
        let counts = self.counts().iter();
        let counts = counts.filter(|((who, what, about), _)| {
            user.is_none_or(|user| user == &**who) && *what == verb && *about == resource
        });
        counts.map(|(_, count)| count).sum()
    }

    /// How often it was asked what is served, since the start or the last reset; cheap.
    pub fn discoveries(&self) -> u64 {
        self.inner.log.discoveries
    }

    /// How many watches are open now; cheap.
    pub fn watches(&self, resource: Resource) -> usize {
        self.shared.watches[resource as usize].load(Ordering::Acquire)
    }
}

/// The server. Its port is closed when it is dropped.
pub struct ApiServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    serving: Option<JoinHandle<()>>,
}

/// Starting, stopping, and reaching it.
impl ApiServer {
    /// Starts on a free port of the loopback interface.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start(config: Config) -> io::Result<Self> {
        Self::start_at(config, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts on a port of one's choice.
    ///
    /// # Errors
    /// The port cannot be bound.
    pub async fn start_at(config: Config, address: SocketAddr) -> io::Result<Self> {
        let inner = Inner {
            store: Store::new(config.history),
            owners: Owners::default(),
            log: Log::default(),
            random: Source::new(config.seed),
            reviews: Source::new(!config.seed),
        };
        let shared = Arc::new(Shared {
            inner: Mutex::new(inner),
            config,
            webhooks: RwLock::new(Arc::from([])),
            faults: RwLock::new(None),
            authorizer: RwLock::new(None),
            activity: Sender::default(),
            watches: Default::default(),
            lines: Lines::default(),
        });
        let mut server = Self { shared, address, serving: None };
        server.furnish();
        server.restart().await?;
        Ok(server)
    }

    /// Makes what every cluster has.
    fn furnish(&self) {
        let namespaces = NAMESPACES.into_iter().chain(self.shared.config.namespaces.iter().map(String::as_str));
        for name in namespaces {
            let mut namespace = json!({ "metadata": { "name": name } });
            self.shared.rules().prepare_create(Resource::Namespaces, &mut namespace);
            self.put(Resource::Namespaces, namespace);
        }
        for (name, value) in SYSTEM_CLASSES {
            let class = json!({
                "metadata": { "name": name }, "value": value, "preemptionPolicy": "PreemptLowerPriority",
            });
            self.put(Resource::PriorityClasses, class);
        }
    }

    /// Closes the port and all connections. The state stays.
    pub async fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            // The only error is that it was aborted; then the port is free.
            let _ = serving.await;
        }
        self.shared.lines.cut_all();
    }

    /// Closes everything and opens the port again, the same as before.
    ///
    /// # Errors
    /// The port cannot be bound: somebody else took it in between.
    pub async fn restart(&mut self) -> io::Result<()> {
        self.stop().await;
        let tcp = TcpListener::bind(self.address).await?;
        self.address = tcp.local_addr()?;
        let door = Door { tcp, lines: self.shared.lines.clone() };
        let service = http::router(Arc::clone(&self.shared)).into_make_service_with_connect_info::<Line>();
        self.serving = Some(tokio::spawn(async move {
            if let Err(error) = axum::serve(door, service).await {
                tracing::error!("serving ended: {error}");
            }
        }));
        Ok(())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of its root.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The configuration of a client of this user. The client does not retry by itself.
    ///
    /// # Panics
    /// Never: the address makes a URL.
    pub fn config_as(&self, user: &str) -> kube::Config {
        let mut config = kube::Config::new(self.url().parse().expect("the address makes a URL"));
        config.auth_info.impersonate = Some(user.to_owned());
        config.default_retry = false;
        config
    }

    /// A new client of this user, with connections of its own.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn client_as(&self, user: &str) -> kube::Client {
        kube::Client::try_from(self.config_as(user)).expect("a plain configuration makes a client")
    }

    /// A kubeconfig of this user, as text.
    pub fn kubeconfig(&self, user: &str) -> String {
        let url = self.url();
        let user = Value::from(user);
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: simulated\nclusters:\n- name: simulated\n  cluster:\n    \
             server: {url}\nusers:\n- name: user\n  user:\n    as: {user}\ncontexts:\n- name: simulated\n  context:\n    \
             cluster: simulated\n    user: user\n    namespace: default\n"
        )
    }

    /// Writes a kubeconfig of this user.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_kubeconfig(&self, user: &str, file: &Path) -> io::Result<()> {
        std::fs::write(file, self.kubeconfig(user))
    }
}

/// What surrounds the requests.
impl ApiServer {
    /// Sets the webhooks that are asked from now on, in their order.
    pub fn set_webhooks(&self, webhooks: Vec<Webhook>) {
        *self.shared.webhooks.write().unwrap_or_else(PoisonError::into_inner) = webhooks.into();
    }

    /// Sets what decides from now on who may do what.
    pub fn set_authorizer(&self, authorizer: impl Authorizer + 'static) {
        *self.shared.authorizer.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(authorizer));
    }

    /// Sets what decides about faults from now on.
    pub fn set_faults(&self, faults: impl Faults + 'static) {
        *self.shared.faults.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(faults));
    }

    /// From now on nothing goes wrong.
    pub fn clear_faults(&self) {
        *self.shared.faults.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Closes the connections of the open watches in the middle of the answer.
    pub fn cut_watches(&self, resource: Resource) {
        self.on_table(resource, |table| table.cuts += 1);
    }

    /// Ends the open watches in good order, as at their timeout.
    pub fn end_watches(&self, resource: Resource) {
        self.on_table(resource, |table| table.ends += 1);
    }

    /// Keeps events back from now on, from open watches and from new ones. Lists are not affected.
    pub fn hold_watches(&self, resource: Resource) {
        self.on_table(resource, |table| table.held = true);
    }

    /// Sends the events that were kept back.
    pub fn release_watches(&self, resource: Resource) {
        self.on_table(resource, |table| table.held = false);
    }

    /// Sends a bookmark to every open watch that allows bookmarks, after the events it has not yet got.
    pub fn send_bookmarks(&self, resource: Resource) {
        self.on_table(resource, |table| table.bookmarks += 1);
    }

    /// Forgets the past: open watches end, and watches from a version before now get 410, as do the
    /// later pages of lists.
    pub fn expire_history(&self) {
        self.shared.change(|inner| inner.store.expire());
    }

    fn on_table(&self, resource: Resource, change: impl FnOnce(&mut Table)) {
        self.shared.change(|inner| {
            let table = inner.store.table_mut(resource);
            change(table);
            table.wake();
        });
    }
}

/// The objects, behind the back of all clients.
impl ApiServer {
    /// Stores an object with its defaults, but without any other rule and without admission. What metadata
    /// every object has is kept from the one that it replaces, or made up. For what older servers may have
    /// stored.
    pub fn put(&self, resource: Resource, value: Value) {
        let now = seconds(self.shared.now());
        self.shared.change(|inner| inner.put(resource, value, now));
    }

    /// Changes an object in the same way. Tells whether it was there.
    pub fn modify(&self, resource: Resource, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) -> bool {
        let now = seconds(self.shared.now());
        self.shared.change(|inner| {
            let Some(mut value) = inner.store.value(resource, namespace, name) else { return false };
            change(&mut value);
            inner.put(resource, value, now);
            true
        })
    }

    /// Takes an object away, whatever its finalizers. Tells whether it was there.
    pub fn remove(&self, resource: Resource, namespace: &str, name: &str) -> bool {
        self.shared.change(|inner| {
            let old = inner.store.value(resource, namespace, name);
            old.map(|old| inner.store.save(resource, Happened::Deleted, old)).is_some()
        })
    }

    /// An object; the namespace is empty for what is in none.
    pub fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        self.look(|view| view.get(resource, namespace, name))
    }

    /// All objects, by namespace and name.
    pub fn list(&self, resource: Resource) -> Vec<Value> {
        self.look(|view| view.list(resource))
    }

    /// How many objects there are.
    pub fn len(&self, resource: Resource) -> usize {
        self.look(|view| view.len(resource))
    }

    /// The requests since the start or the last reset, in the order of their arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.look(|view| view.requests().to_vec())
    }

    /// How many requests there were, of one user or of all.
    pub fn count(&self, user: Option<&str>, verb: Verb, resource: Resource) -> u64 {
        self.look(|view| view.count(user, verb, resource))
    }

    /// Forgets the requests, and counts anew.
    pub fn reset_log(&self) {
        self.shared.change(|inner| inner.log.reset());
    }

    /// Whether from now on what was sent is kept.
    pub fn keep_bodies(&self, keep: bool) {
        self.shared.lock().log.bodies = keep;
    }

    /// Whether from now on requests are only counted, for long runs.
    pub fn set_quiet(&self, quiet: bool) {
        self.shared.lock().log.set_quiet(quiet);
    }
}

/// Waiting. Every change of the objects, the log and the set of open watches has the condition looked
/// at again; nothing polls.
impl ApiServer {
    /// Returns when the condition holds.
    ///
    /// # Panics
    /// It does not in time.
    #[track_caller]
    pub fn wait_for(&self, condition: impl FnMut(&View<'_>) -> bool, timeout: Duration) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let reached = self.reaches(condition, timeout).await;
            assert!(reached, "{caller}: not reached in {timeout:?}; requests: {}", self.summary());
        }
    }

    /// Whether the condition holds at some time before the timeout.
    pub async fn reaches(&self, mut condition: impl FnMut(&View<'_>) -> bool, timeout: Duration) -> bool {
        let mut activity = self.shared.activity.subscribe();
        let reached = async {
            loop {
                activity.mark_unchanged();
                if self.look(&mut condition) || activity.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(timeout, reached).await.is_ok()
    }

    /// Looks at one state of everything.
    pub fn look<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        look(&View { inner: &self.shared.lock(), shared: &self.shared })
    }

    /// The counts of requests in one line.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for ((user, verb, resource), count) in self.shared.lock().log.counts() {
            let separator = if text.is_empty() { "" } else { ", " };
            // Writing to a text cannot fail.
            let _ = write!(text, "{separator}{user} {verb} {resource} ×{count}");
        }
        text
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
        self.shared.lines.cut_all();
    }
}
