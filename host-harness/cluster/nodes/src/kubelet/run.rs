//! The loop: watch the pods, and do to each what is due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Config;
use super::lifecycle::{Memory, Next, Step, next};
use super::status::Local;
use crate::clock::Clock;
use crate::identity::{as_user, node_user};
use crate::task::Task;
use crate::watch::{Store, feed};

/// Running kubelets. Dropping them is a crash; pods stay as they are.
#[derive(Debug)]
pub struct Handle(Task);

impl Handle {
    /// Lets them finish what they are doing.
    pub async fn stop(self) {
        self.0.stop().await;
    }
}

/// Starts the kubelets.
pub fn start(client: &kube::Client, config: Config) -> Handle {
    let client = client.clone();
    Handle(Task::start(|stop| run(client, config, stop)))
}

/// What to do now, and when to look again.
struct Due {
    steps: Vec<(Arc<Local>, Step)>,
    wake: Option<Duration>,
}

struct Kubelet {
    client: kube::Client,
    config: Config,
    clock: Clock,
    pods: Arc<Store<Local>>,
    /// By UID.
    memory: BTreeMap<String, Memory>,
    /// The UIDs of pods that got their final DELETE and are still seen.
    removed: BTreeSet<String>,
    /// The clients of the nodes' users.
    users: BTreeMap<String, kube::Client>,
    addresses: u32,
}

async fn run(client: kube::Client, config: Config, stop: CancellationToken) {
    let changed = Arc::new(Notify::new());
    let pods = Store::new(Arc::clone(&changed));
    let mut feeds = JoinSet::new();
    feeds.spawn(feed(Api::<Pod>::all(client.clone()), Arc::clone(&pods)));
    let mut kubelet = Kubelet {
        clock: config.clock.unwrap_or_default(),
        client,
        config,
        pods,
        memory: BTreeMap::new(),
        removed: BTreeSet::new(),
        users: BTreeMap::new(),
        addresses: 0,
    };
    let mut wake = None;
    loop {
        let timer = async {
            match wake {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = changed.notified() => {}
            () = timer => {}
        }
        let due = kubelet.due();
        let failed = !kubelet.perform(due.steps).await;
        let now = kubelet.clock.elapsed();
        let retry = failed.then_some(kubelet.config.retry);
        wake = due.wake.map(|at| at.saturating_sub(now)).into_iter().chain(retry).min();
    }
}

impl Kubelet {
    fn due(&mut self) -> Due {
        let now = self.clock.elapsed();
        let mut due = Due { steps: Vec::new(), wake: None };
        let mut memory = BTreeMap::new();
        let removed = std::mem::take(&mut self.removed);
        for pod in self.pods.all().into_values() {
            let Some(node) = &pod.node else { continue };
            if self.config.nodes.as_ref().is_some_and(|nodes| !nodes.contains(node)) {
                continue;
            }
            if removed.contains(&pod.uid) {
                self.removed.insert(pod.uid.clone());
                continue;
            }
            let (remembered, next) = next(pod.seen, self.memory.get(&pod.uid).copied(), now, &self.config.timings);
            memory.insert(pod.uid.clone(), remembered);
            match next {
                Next::Now(step) => due.steps.push((pod, step)),
                Next::At(at) => due.wake = Some(due.wake.map_or(at, |wake| wake.min(at))),
                Next::Nothing => {}
            }
        }
        self.memory = memory;
        due
    }

    /// Does everything. Tells whether all of it worked.
    async fn perform(&mut self, steps: Vec<(Arc<Local>, Step)>) -> bool {
        let mut requests = Vec::new();
        for (pod, step) in steps {
            let address = self.address();
            let patch = match step {
                Step::Run => Some(pod.running(&self.clock, &address)),
                Step::Ready => Some(pod.ready(&self.clock)),
                Step::Stop => Some(pod.stopped(&self.clock)),
                Step::Remove => None,
            };
            let client = self.user(pod.node.as_deref().unwrap_or_default());
            requests.push(perform(client, Arc::clone(&self.pods), pod, patch));
        }
        let done: Vec<Done> = futures::stream::iter(requests).buffered(self.config.parallel.max(1)).collect().await;
        let all = !done.contains(&Done::No);
        self.removed.extend(done.into_iter().filter_map(|done| match done {
            Done::Removed(uid) => Some(uid),
            Done::Yes | Done::No => None,
        }));
        all
    }

    /// An address that no pod has had.
    fn address(&mut self) -> String {
        self.addresses += 1;
        let [_, high, middle, low] = self.addresses.to_be_bytes();
        format!("10.{}.{middle}.{low}", 128_u8.wrapping_add(high))
    }

    fn user(&mut self, node: &str) -> kube::Client {
        let user = || as_user(&self.client, &node_user(node));
        self.users.entry(node.to_owned()).or_insert_with(user).clone()
    }
}

/// What becomes of a request.
#[derive(PartialEq, Eq)]
enum Done {
    Yes,
    /// The pod of this UID got its final DELETE.
    Removed(String),
    /// It has to be tried again.
    No,
}

/// One request about a pod: a patch of its status, or the final DELETE.
async fn perform(client: kube::Client, store: Arc<Store<Local>>, pod: Arc<Local>, patch: Option<Value>) -> Done {
    let pods: Api<Pod> = Api::namespaced(client, &pod.key.namespace);
    let (name, uid) = (&pod.key.name, pod.uid.clone());
    let done = if let Some(patch) = patch {
        let written = pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(patch)).await;
        written.map(|written| {
            store.refresh(&written);
            Done::Yes
        })
    } else {
        let identity = Preconditions { uid: Some(uid.clone()), ..Preconditions::default() };
        let delete = DeleteParams { preconditions: Some(identity), ..DeleteParams::default().grace_period(0) };
        pods.delete(name, &delete).await.map(|_| Done::Removed(uid))
    };
    match done {
        Ok(done) => done,
        // It is gone: the watch will tell.
        Err(kube::Error::Api(status)) if status.code == 404 => Done::Yes,
        Err(error) => {
            tracing::debug!(pod = %pod.key, %error, "the kubelet tries again");
            Done::No
        }
    }
}
