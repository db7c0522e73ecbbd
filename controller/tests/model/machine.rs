//! The real reconciler at work in the model: its requests, and what befalls them.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use serde::Serialize;
use serde_json::Value;
use statefulset_scheduling_controller::api::{Api, Stored};
use statefulset_scheduling_controller::events::Events;
use statefulset_scheduling_controller::failure::Failure;
use statefulset_scheduling_controller::index::{Index, Key};
use statefulset_scheduling_controller::metrics::Metrics;
use statefulset_scheduling_controller::object::StatefulSet;
use statefulset_scheduling_controller::queue::Outcome;
use statefulset_scheduling_controller::reconcile::Reconciler;
use statefulset_scheduling_core::api::Carriers;
use statefulset_scheduling_core::plan::{Settings, Subject};

use super::cluster::{Act, Set, Write};
use super::object::{NAMESPACE, Object, Parsed, RESOURCES, Resource};
use super::rules;
use super::world::World;

/// What befalls one request of a reconcile, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    None,
    /// It fails, and nothing is done.
    Fail(usize),
    /// It is done, and the reply is lost.
    LoseReply(usize),
    /// It is done, and the process dies.
    Crash(usize),
    /// It fails, and the server does it later.
    Late(usize),
    /// Before the server does it, somebody does something.
    Before(usize, Act),
    /// The same, and the watches tell it.
    BeforeAndTold(usize, Act),
    /// After the server did it, somebody does something, and the watches tell it before the reply comes.
    Overtaken(usize, Act),
}

/// A step of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Somebody else acts.
    Others(Act),
    /// A watch tells its next event.
    Tell(Resource),
    /// A watch starts with a new list.
    Relist(Resource),
    /// The next watch that has something to tell, from the one of this number on, tells it.
    TellNext(usize),
    /// A StatefulSet that is in the queue is reconciled.
    Reconcile(Set, Mishap),
    /// The one at this place in the queue is, counted round and round.
    ReconcileNext(usize, Mishap),
    /// A new process takes over.
    Restart,
    /// The server does a write that nobody waits for.
    Land,
}

/// A request, as far as the schedule goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Read,
    Write,
}

/// What is known while a reconcile runs.
struct Run {
    world: World,
    current: String,
    mishap: Mishap,
    requests: Vec<Request>,
    /// Whether somebody acted since the reconcile began.
    disturbed: bool,
    violation: Option<String>,
}

struct Shared {
    run: Mutex<Run>,
    index: Arc<Mutex<Index>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The API server as the reconciler sees it.
struct Server(Arc<Shared>);

/// A reconciler in a world.
pub(crate) struct Machine {
    shared: Arc<Shared>,
    reconciler: Reconciler<Server>,
    settings: Settings,
}

static METRICS: LazyLock<Arc<Metrics>> = LazyLock::new(Arc::default);

fn reconciler(shared: &Arc<Shared>, settings: Settings) -> Reconciler<Server> {
    let index = Arc::clone(&shared.index);
    let events = Events::none(Arc::clone(&METRICS));
    Reconciler::new(Server(Arc::clone(shared)), index, events, Arc::clone(&METRICS), settings, Carriers::default())
}

impl Machine {
    pub(crate) fn new(world: World, settings: Settings) -> Self {
        let index = Arc::new(Mutex::new(world.index()));
        let run = Run {
            world,
            current: String::new(),
            mishap: Mishap::None,
            requests: Vec::new(),
            disturbed: false,
            violation: None,
        };
        let shared = Arc::new(Shared { run: Mutex::new(run), index });
        Self { reconciler: reconciler(&shared, settings), shared, settings }
    }

    /// The world as it is now.
    pub(crate) fn world(&self) -> World {
        lock(&self.shared.run).world.clone()
    }

    pub(crate) fn digest(&self) -> u64 {
        lock(&self.shared.run).world.digest()
    }

    /// The requests of the last reconcile.
    pub(crate) fn requests(&self) -> Vec<Request> {
        lock(&self.shared.run).requests.clone()
    }

    pub(crate) fn queue(&self) -> Vec<String> {
        lock(&self.shared.run).world.queue.iter().cloned().collect()
    }

    /// Takes a step; false where it cannot be taken, or changes nothing.
    ///
    /// # Errors
    /// The controller did what it never may.
    pub(crate) fn step(&mut self, action: Action) -> Result<bool, String> {
        let taken = match action {
            Action::Reconcile(set, mishap) => {
                let queued = lock(&self.shared.run).world.queue.contains(set.name());
                if queued {
                    self.reconcile(set.name(), mishap);
                }
                queued
            }
            Action::ReconcileNext(place, mishap) => {
                let queue = self.queue();
                let name = (!queue.is_empty()).then(|| queue[place % queue.len()].clone());
                name.map(|name| self.reconcile(&name, mishap)).is_some()
            }
            Action::Restart => {
                self.restart();
                true
            }
            Action::TellNext(first) => {
                let (world, index) = (&mut lock(&self.shared.run).world, &mut lock(&self.shared.index));
                (first..first + RESOURCES.len()).any(|at| world.deliver(index, RESOURCES[at % RESOURCES.len()]))
            }
            Action::Others(act) => lock(&self.shared.run).world.cluster.act(act),
            Action::Tell(resource) => lock(&self.shared.run).world.deliver(&mut lock(&self.shared.index), resource),
            Action::Relist(resource) => {
                lock(&self.shared.run).world.relist(&mut lock(&self.shared.index), resource);
                true
            }
            Action::Land => {
                let world = &mut lock(&self.shared.run).world;
                let write = world.parked.pop();
                write.map(|write| drop(world.cluster.execute(&write))).is_some()
            }
        };
        let mut run = lock(&self.shared.run);
        run.world.keep_up(&mut lock(&self.shared.index));
        match run.violation.take() {
            Some(violation) => Err(violation),
            None => rules::always(&run.world.cluster).map(|()| taken),
        }
    }

    /// Everything that is on its way arrives, and everybody finishes.
    ///
    /// # Errors
    /// It does not end, or not where it should, or the controller did what it never may.
    pub(crate) fn drain(&mut self, known: impl Fn(u64) -> bool) -> Result<Vec<u64>, String> {
        let mut passed = Vec::new();
        for _ in 0..32 {
            let mut moved = false;
            while self.step(Action::Land)? {
                moved = true;
            }
            moved |= lock(&self.shared.run).world.deliver_all(&mut lock(&self.shared.index));
            let digest = self.digest();
            if known(digest) {
                return Ok(passed);
            }
            passed.push(digest);
            for name in self.queue() {
                moved = true;
                self.reconcile(&name, Mishap::None);
            }
            for act in [
                Act::EndPods,
                Act::Collect(Resource::Workloads),
                Act::Collect(Resource::PodGroups),
                Act::Collect(Resource::Sets),
                Act::Release,
            ] {
                moved |= self.step(Action::Others(act))?;
            }
            if !moved {
                self.rest()?;
                return Ok(passed);
            }
        }
        Err(format!(
            "it does not come to rest; the queue is {:?}, the last requests {:?}",
            self.queue(),
            self.requests()
        ))
    }

    /// Nothing moves: everything is where it should be, and no reconcile writes, not even after a restart.
    fn rest(&mut self) -> Result<(), String> {
        rules::at_rest(&self.world().cluster)?;
        for process in ["the process", "a new process"] {
            let names: Vec<_> = self
                .world()
                .cluster
                .all(Resource::Sets)
                .map(|set| set.name.clone())
                .chain(["nobody".to_owned()])
                .collect();
            for name in names {
                self.reconcile(&name, Mishap::None);
                if self.requests().contains(&Request::Write) {
                    return Err(format!("{process} writes at rest, for {name}"));
                }
            }
            self.restart();
        }
        Ok(())
    }

    fn restart(&mut self) {
        let index = lock(&self.shared.run).world.restart();
        *lock(&self.shared.index) = index;
        self.reconciler = reconciler(&self.shared, self.settings);
    }

    fn reconcile(&mut self, name: &str, mishap: Mishap) {
        {
            let mut run = lock(&self.shared.run);
            run.world.queue.remove(name);
            name.clone_into(&mut run.current);
            run.mishap = mishap;
            run.requests.clear();
            run.disturbed = false;
        }
        let outcome = poll_once(self.reconciler.reconcile(&Key::new(NAMESPACE, name)));
        match outcome {
            Some(Outcome::Done) => {}
            Some(Outcome::Retry(_) | Outcome::Terminal) => {
                lock(&self.shared.run).world.queue.insert(name.to_owned());
            }
            None => self.restart(),
        }
    }
}

/// What a future is at once; none where it waits, which here it does for ever.
fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn no_answer() -> Failure {
    Failure::Later { message: "no answer".to_owned(), wait: None }
}

impl Run {
    fn disturb(&mut self, index: &mut Index, act: Act, told: bool) {
        self.disturbed |= self.world.cluster.act(act);
        if told {
            self.world.deliver_all(index);
        }
    }

    /// One request of the reconciler; none where the process dies.
    fn request<T>(
        &mut self,
        index: &mut Index,
        write: Option<&Write>,
        execute: impl FnOnce(&mut World) -> Result<T, Failure>,
    ) -> Option<Result<T, Failure>> {
        self.requests.push(if write.is_some() { Request::Write } else { Request::Read });
        let number = self.requests.len();
        if let Some(write) = write
            && let Err(violation) = rules::before(&self.world.cluster, index, &self.current, self.disturbed, write)
        {
            self.violation.get_or_insert(violation);
        }
        match self.mishap {
            Mishap::Fail(at) if at == number => return Some(Err(no_answer())),
            Mishap::Late(at) if at == number => {
                self.world.cluster.tampered = true;
                self.world.parked.extend(write.cloned());
                return Some(Err(no_answer()));
            }
            Mishap::Before(at, act) if at == number => self.disturb(index, act, false),
            Mishap::BeforeAndTold(at, act) if at == number => self.disturb(index, act, true),
            _ => {}
        }
        let result = execute(&mut self.world);
        if write.is_some()
            && let Err(violation) = rules::always(&self.world.cluster)
        {
            self.violation.get_or_insert(violation);
        }
        match self.mishap {
            Mishap::LoseReply(at) if at == number => return Some(Err(no_answer())),
            Mishap::Crash(at) if at == number => return None,
            Mishap::Overtaken(at, act) if at == number => self.disturb(index, act, true),
            _ => {}
        }
        Some(result)
    }
}

impl Server {
    async fn read<T>(&self, execute: impl FnOnce(&mut World) -> Result<T, Failure>) -> Result<T, Failure> {
        let answer = {
            let mut run = lock(&self.0.run);
            run.request(&mut lock(&self.0.index), None, execute)
        };
        match answer {
            Some(answer) => answer,
            None => pending().await,
        }
    }

    async fn get(&self, resource: Resource, name: &str) -> Result<Arc<Object>, Failure> {
        let object = self
            .read(|world| world.cluster.get(resource, name).cloned().ok_or_else(|| Failure::NotFound(name.to_owned())))
            .await?;
        self.note(&object);
        Ok(object)
    }

    async fn write(&self, write: Write) -> Result<Arc<Object>, Failure> {
        let answer = {
            let mut run = lock(&self.0.run);
            run.request(&mut lock(&self.0.index), Some(&write), |world| world.cluster.execute(&write))
        };
        let object = match answer {
            Some(answer) => answer?,
            None => pending().await,
        };
        self.note(&object);
        Ok(object)
    }

    /// What is answered is put into the index at once.
    fn note(&self, object: &Arc<Object>) {
        lock(&self.0.run).world.note_answer(object);
    }
}

fn workload(object: &Object) -> Stored<Workload> {
    let Parsed::Workload(workload) = &object.parsed else { panic!("{} is no Workload", object.name) };
    Stored { version: object.version, object: workload.clone() }
}

fn pod_group(object: &Object) -> Stored<PodGroup> {
    let Parsed::PodGroup(group) = &object.parsed else { panic!("{} is no PodGroup", object.name) };
    Stored { version: object.version, object: group.clone() }
}

fn statefulset(object: &Object) -> Stored<StatefulSet> {
    let Parsed::Set(set, _) = &object.parsed else { panic!("{} is no StatefulSet", object.name) };
    Stored { version: object.version, object: set.clone() }
}

fn creation(resource: Resource, object: &impl Serialize) -> Write {
    Write::Create(resource, serde_json::to_value(object).expect("it can be written"))
}

fn json_patch(resource: Resource, namespace: &str, name: &str, patch: &Value) -> Write {
    assert_eq!(namespace, NAMESPACE);
    Write::JsonPatch { resource, name: name.to_owned(), patch: patch.clone() }
}

impl Api for Server {
    async fn has_pods(&self, subject: &Subject) -> Result<bool, Failure> {
        self.read(|world| Ok(world.cluster.pods.contains(&subject.uid))).await
    }

    async fn has_members_without_group(&self, _: &Subject) -> Result<bool, Failure> {
        self.read(|_| Ok(false)).await
    }

    async fn statefulset(&self, _: &str, name: &str) -> Result<Stored<StatefulSet>, Failure> {
        self.get(Resource::Sets, name).await.map(|object| statefulset(&object))
    }

    async fn workloads(&self, _: &str) -> Result<Vec<Stored<Workload>>, Failure> {
        let all = self.read(|world| Ok(world.cluster.all(Resource::Workloads).cloned().collect::<Vec<_>>())).await?;
        Ok(all.iter().map(|object| workload(object)).collect())
    }

    async fn workload(&self, _: &str, name: &str) -> Result<Stored<Workload>, Failure> {
        self.get(Resource::Workloads, name).await.map(|object| workload(&object))
    }

    async fn pod_group(&self, _: &str, name: &str) -> Result<Stored<PodGroup>, Failure> {
        let found = self.get(Resource::PodGroups, name).await;
        if matches!(found, Ok(_) | Err(Failure::NotFound(_))) {
            let mut run = lock(&self.0.run);
            let current = run.current.clone();
            run.world.look_for(&current);
        }
        found.map(|object| pod_group(&object))
    }

    async fn create_workload(&self, new: &Workload) -> Result<Stored<Workload>, Failure> {
        self.write(creation(Resource::Workloads, new)).await.map(|object| workload(&object))
    }

    async fn create_pod_group(&self, new: &PodGroup) -> Result<Stored<PodGroup>, Failure> {
        let created = self.write(creation(Resource::PodGroups, new)).await;
        if let Err(Failure::Later { .. }) = &created {
            let mut run = lock(&self.0.run);
            let current = run.current.clone();
            run.world.lose(&current, new.metadata.name.as_deref().unwrap_or_default());
        }
        created.map(|object| pod_group(&object))
    }

    async fn patch_workload(&self, namespace: &str, name: &str, patch: &Value) -> Result<Stored<Workload>, Failure> {
        self.write(json_patch(Resource::Workloads, namespace, name, patch)).await.map(|object| workload(&object))
    }

    async fn patch_pod_group(&self, namespace: &str, name: &str, patch: &Value) -> Result<Stored<PodGroup>, Failure> {
        self.write(json_patch(Resource::PodGroups, namespace, name, patch)).await.map(|object| pod_group(&object))
    }

    async fn patch_statefulset(&self, _: &str, name: &str, patch: &Value) -> Result<Stored<StatefulSet>, Failure> {
        let write = Write::MergeSet { name: name.to_owned(), patch: patch.clone() };
        self.write(write).await.map(|object| statefulset(&object))
    }
}
