//! The loop: watch, decide, do, again.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::scheduling::v1 as priority;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::Api;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::apply::{Actor, Assumed};
use super::{Config, round};
use crate::cluster::{Claim, Cluster, Group, Node, Pod, PriorityClass};
use crate::identity::{SCHEDULER, as_user};
use crate::task::Task;
use crate::watch::{Store, feed};

/// A running scheduler. Dropping it is a crash.
#[derive(Debug)]
pub struct Handle(Task);

impl Handle {
    /// Lets it finish the pass that it is in.
    pub async fn stop(self) {
        self.0.stop().await;
    }
}

/// Starts a scheduler.
pub fn start(client: &kube::Client, config: Config) -> Handle {
    let client = as_user(client, SCHEDULER);
    Handle(Task::start(|stop| run(client, config, stop)))
}

struct Stores {
    nodes: Arc<Store<Node>>,
    pods: Arc<Store<Pod>>,
    groups: Arc<Store<Group>>,
    claims: Arc<Store<Claim>>,
    classes: Arc<Store<PriorityClass>>,
}

impl Stores {
    fn new(changed: &Arc<Notify>) -> Self {
        Self {
            nodes: Store::new(Arc::clone(changed)),
            pods: Store::new(Arc::clone(changed)),
            groups: Store::new(Arc::clone(changed)),
            claims: Store::new(Arc::clone(changed)),
            classes: Store::new(Arc::clone(changed)),
        }
    }

    fn feed(&self, client: &kube::Client, groups: bool) -> JoinSet<()> {
        let mut feeds = JoinSet::new();
        feeds.spawn(feed(Api::<core::Node>::all(client.clone()), Arc::clone(&self.nodes)));
        feeds.spawn(feed(Api::<core::Pod>::all(client.clone()), Arc::clone(&self.pods)));
        feeds.spawn(feed(Api::<ResourceClaim>::all(client.clone()), Arc::clone(&self.claims)));
        feeds.spawn(feed(Api::<priority::PriorityClass>::all(client.clone()), Arc::clone(&self.classes)));
        if groups {
            feeds.spawn(feed(Api::<PodGroup>::all(client.clone()), Arc::clone(&self.groups)));
        }
        feeds
    }

    fn are_synced(&self, groups: bool) -> bool {
        let others = self.claims.is_synced() && self.classes.is_synced();
        self.nodes.is_synced() && self.pods.is_synced() && others && (!groups || self.groups.is_synced())
    }

    fn cluster(&self, assumed: &mut Assumed) -> Cluster {
        let mut cluster = Cluster {
            pods: self.pods.all(),
            groups: self.groups.all(),
            nodes: self.nodes.all().into_iter().map(|(key, node)| (key.name, node)).collect(),
            claims: self.claims.all(),
            classes: self.classes.all().into_iter().map(|(key, class)| (key.name, class)).collect(),
        };
        assumed.overlay(&mut cluster.pods);
        cluster
    }
}

async fn run(client: kube::Client, config: Config, stop: CancellationToken) {
    let changed = Arc::new(Notify::new());
    let stores = Stores::new(&changed);
    let groups = config.settings.generic_workload;
    let _feeds = stores.feed(&client, groups);
    let mut actor = Actor {
        client,
        clock: config.clock.unwrap_or_default(),
        parallel: config.parallel.max(1),
        pods: Arc::clone(&stores.pods),
        groups: Arc::clone(&stores.groups),
        claims: Arc::clone(&stores.claims),
        assumed: Assumed::default(),
    };
    let mut failed = false;
    loop {
        let again = async { if failed { tokio::time::sleep(config.retry).await } else { changed.notified().await } };
        tokio::select! {
            () = stop.cancelled() => return,
            () = again => {}
        }
        tokio::time::sleep(config.gather).await;
        if !stores.are_synced(groups) {
            failed = false;
            continue;
        }
        let cluster = stores.cluster(&mut actor.assumed);
        let decisions = round(&cluster, &config.settings);
        failed = !actor.apply(&cluster, decisions).await;
    }
}
