//! All of it, started and stopped in parts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cluster_apiserver::{
    ADMIN, ApiServer, Config, Gates, Profile, Resource, Verb, View, namespaces, podgroup_protection,
};
use cluster_controllers::garbage_collector::Kind;
use cluster_controllers::{Backoff, Common, Handle, Lag, garbage_collector, identity, resource_claims, statefulset};
use cluster_nodes::node::NodeShape;
use cluster_nodes::{kubelet, scheduler};
use host_harness::module::Policy;
use serde_json::{Value, json};
use statefulset_scheduling_core::admission::DEFAULT_CONTROLLER;
use statefulset_scheduling_core::gates::FeatureGates;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::controller::{As, Controller};
use crate::engine::{self, Engine, Health};
use crate::manifests::{EngineKind, Manifests, Source};
use crate::permissions::Permissions;
use crate::webhook_http::WebhookHttp;
use crate::{deployed, invariants};

/// What the cluster's own two controllers that come with the server look at again, and how often.
const INTERVAL: Duration = Duration::from_millis(20);

/// What answers the webhooks, running.
pub enum Answering {
    /// The module, as in Kubewarden.
    Kubewarden(Arc<Engine>),
    /// The project's own webhook.
    Webhook(Arc<WebhookHttp>),
}

impl Answering {
    /// Sets whether it answers from now on.
    pub fn set_health(&self, health: Health) {
        match self {
            Self::Kubewarden(engine) => engine.set_health(health),
            Self::Webhook(webhook) => webhook.set_health(health),
        }
    }

    /// The user that it reads StatefulSets as.
    pub fn user(&self) -> &str {
        match self {
            Self::Kubewarden(_) => engine::USER,
            Self::Webhook(webhook) => webhook.user(),
        }
    }

    /// How many requests it evaluated.
    pub fn evaluations(&self) -> u64 {
        match self {
            Self::Kubewarden(engine) => engine.evaluations(),
            Self::Webhook(webhook) => webhook.evaluations(),
        }
    }
}

/// How a cluster is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which StatefulSets the server knows.
    pub profile: Profile,
    /// The gates of the server and of the scheduler.
    pub gates: Gates,
    /// Decides all chance.
    pub seed: u64,
    /// Its nodes.
    pub nodes: Vec<NodeShape>,
    /// The devices that claims are made of.
    pub devices: scheduler::Devices,
    /// How long things take on a node.
    pub timings: kubelet::Timings,
    /// How the cluster's controllers wait after a failure.
    pub backoff: Backoff,
    /// How late the cluster's controllers learn of changes.
    pub lag: Lag,
    /// What is deployed: how the engine and the controller are started, and what they may do.
    pub source: Source,
    /// Whether the policies are deployed.
    pub policies: bool,
    /// How the controller is run, if at all.
    pub controller: Option<As>,
    /// `podGroupOwnerReference`, of policy and controller.
    pub owner_reference: bool,
    /// The feature gates of policy and controller, as they are written.
    pub feature_gates: String,
    /// Namespaces beside the usual ones.
    pub namespaces: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            gates: Gates::default(),
            seed: 1,
            nodes: (1..=4).map(|n| NodeShape::new(&format!("node-{n}"), "8", "32Gi")).collect(),
            devices: scheduler::Devices::default(),
            timings: kubelet::Timings::default(),
            backoff: Backoff::default(),
            lag: Lag::none(),
            source: Source::default(),
            policies: true,
            controller: Some(As::default()),
            owner_reference: false,
            feature_gates: FeatureGates::default().to_string(),
            namespaces: Vec::new(),
        }
    }
}

/// A cluster that runs. Everything ends when it is dropped.
pub struct Cluster {
    /// The API server.
    pub api: ApiServer,
    /// The admission engine, or what takes its place.
    pub engine: Answering,
    options: Options,
    manifests: Manifests,
    controller: Option<Controller>,
    statefulsets: Option<Handle>,
    scheduler: Option<scheduler::Handle>,
    _others: (Handle, Handle, kubelet::Handle),
    _tasks: JoinSet<()>,
}

impl Cluster {
    /// Starts everything, and returns when all of it watches.
    ///
    /// # Errors
    /// A port, a file or a binary is missing.
    pub async fn start(policy: Arc<Policy>, options: Options) -> anyhow::Result<Self> {
        let config = Config {
            profile: options.profile,
            gates: options.gates,
            seed: options.seed,
            namespaces: options.namespaces.clone(),
            ..Config::default()
        };
        Self::start_on(ApiServer::start(config).await?, policy, options).await
    }

    /// Starts everything around a server.
    ///
    /// # Errors
    /// A file or a binary is missing.
    pub async fn start_on(api: ApiServer, policy: Arc<Policy>, options: Options) -> anyhow::Result<Self> {
        let manifests = Manifests::read(&options.source)?;
        api.set_authorizer(Permissions::of(&manifests));
        for namespace in manifests.of(&["Namespace"]) {
            api.put(Resource::Namespaces, namespace);
        }
        let engine = match manifests.engine()? {
            EngineKind::Kubewarden => Answering::Kubewarden(Arc::new(Engine::new(policy, api.client_as(engine::USER)))),
            EngineKind::Webhook => {
                let webhook = WebhookHttp::new(&api, &manifests.configurations(), manifests.container("webhook")?)?;
                webhook.restart(&api, &options.settings())?;
                webhook.ready().await?;
                Answering::Webhook(webhook)
            }
        };
        let client = api.client_as(ADMIN);
        for node in &options.nodes {
            node.register(&client).await?;
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(namespaces::run(api.client_as(namespaces::USER), INTERVAL));
        tasks.spawn(podgroup_protection::run(api.client_as(podgroup_protection::USER), INTERVAL));
        let garbage = garbage_collector::Config {
            common: options.common(identity::GARBAGE_COLLECTOR, 20),
            kinds: options.kinds(),
        };
        let garbage = garbage_collector::start(&api.client_as(identity::GARBAGE_COLLECTOR), garbage);
        let claims = resource_claims::Config { common: options.common(identity::RESOURCE_CLAIM_CONTROLLER, 50) };
        let claims = resource_claims::start(&api.client_as(identity::RESOURCE_CLAIM_CONTROLLER), claims);
        let kubelets = kubelet::Config { timings: options.timings, ..kubelet::Config::default() };
        let kubelets = kubelet::start(&client, kubelets);
        let mut cluster = Self {
            api,
            engine,
            options,
            manifests,
            controller: None,
            statefulsets: None,
            scheduler: None,
            _others: (garbage, claims, kubelets),
            _tasks: tasks,
        };
        cluster.start_scheduler();
        cluster.deploy_policies(cluster.options.policies)?;
        cluster.start_statefulset_controller().await;
        if let Some(how) = cluster.options.controller {
            cluster.start_controller(how).await?;
        }
        Ok(cluster)
    }

    /// How it was made.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The administrator.
    pub fn admin(&self) -> Client {
        self.user(ADMIN)
    }

    /// Somebody.
    pub fn user(&self, name: &str) -> Client {
        Client::new(self.api.client_as(name))
    }

    /// Applies the policies, or takes them away.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn deploy_policies(&mut self, deploy: bool) -> anyhow::Result<()> {
        self.options.policies = deploy;
        let webhooks = match &self.engine {
            _ if !deploy => Vec::new(),
            Answering::Kubewarden(engine) => {
                let settings = json!({
                    "podGroupOwnerReference": self.options.owner_reference,
                    "featureGates": self.options.feature_gates,
                });
                deployed::webhooks(&self.manifests.policies(), engine, &settings)?
            }
            Answering::Webhook(webhook) => deployed::configured(&self.manifests.configurations(), webhook)?,
        };
        self.api.set_webhooks(webhooks);
        Ok(())
    }

    /// Sets the feature gates of the policy; the controller has them from its next start.
    ///
    /// # Errors
    /// The policies cannot be read.
    pub fn set_feature_gates(&mut self, gates: &str) -> anyhow::Result<()> {
        gates.clone_into(&mut self.options.feature_gates);
        if let Answering::Webhook(webhook) = &self.engine {
            webhook.restart(&self.api, &self.options.settings())?;
        }
        self.deploy_policies(self.options.policies)
    }

    /// Starts the controller, and returns when it watches.
    ///
    /// # Errors
    /// The binary is missing.
    ///
    /// # Panics
    /// It does not begin to watch within a time that is enough for any machine.
    pub async fn start_controller(&mut self, how: As) -> anyhow::Result<()> {
        let watched = [Resource::StatefulSets, Resource::Workloads, Resource::PodGroups];
        let begun = |view: &View<'_>| watched.map(|one| view.count(Some(DEFAULT_CONTROLLER), Verb::Watch, one));
        let before = self.api.look(begun);
        let mut arguments = self.options.settings();
        arguments.push("--client-qps=0".to_owned());
        let container = self.manifests.container("controller")?;
        self.controller = Some(Controller::start(&self.api, how, container, &arguments)?);
        if self.options.gates.generic_workload {
            let watching = |view: &View<'_>| begun(view).iter().zip(before).all(|(now, before)| *now > before);
            self.api.wait_for(watching, Duration::from_secs(30)).await;
        }
        Ok(())
    }

    /// Ends the controller in good order.
    ///
    /// # Errors
    /// It ended for another reason.
    pub async fn stop_controller(&mut self) -> anyhow::Result<()> {
        match self.controller.take() {
            Some(controller) => controller.stop().await,
            None => Ok(()),
        }
    }

    /// Ends the controller as a crash does.
    pub async fn kill_controller(&mut self) {
        if let Some(controller) = self.controller.take() {
            controller.kill().await;
        }
    }

    /// Starts the cluster's StatefulSet controller, and returns when it watches.
    pub async fn start_statefulset_controller(&mut self) {
        let config = statefulset::Config {
            common: self.options.common(identity::STATEFULSET_CONTROLLER, 5),
            ..statefulset::Config::default()
        };
        let handle = statefulset::start(&self.api.client_as(identity::STATEFULSET_CONTROLLER), config);
        handle.synced().await;
        self.statefulsets = Some(handle);
    }

    /// Ends the cluster's StatefulSet controller in good order.
    pub async fn stop_statefulset_controller(&mut self) {
        if let Some(handle) = self.statefulsets.take() {
            handle.stop().await;
        }
    }

    /// Starts the scheduler.
    pub fn start_scheduler(&mut self) {
        let settings = scheduler::Settings {
            seed: self.options.seed,
            generic_workload: self.options.gates.generic_workload,
            devices: self.options.devices.clone(),
            ..scheduler::Settings::default()
        };
        let config = scheduler::Config { settings, ..scheduler::Config::default() };
        self.scheduler = Some(scheduler::start(&self.api.client_as(ADMIN), config));
    }

    /// Ends the scheduler in good order.
    pub async fn stop_scheduler(&mut self) {
        if let Some(handle) = self.scheduler.take() {
            handle.stop().await;
        }
    }

    /// What is wrong with this cluster, if it is at rest.
    pub fn violations(&self) -> Vec<String> {
        self.api.look(invariants::violations)
    }
}

impl Options {
    /// The settings that controller and webhook have as flags.
    fn settings(&self) -> Vec<String> {
        let mut settings = vec![format!("--feature-gates={}", self.feature_gates)];
        if self.owner_reference {
            settings.push("--pod-group-owner-reference".to_owned());
        }
        settings
    }

    fn common(&self, identity: &str, workers: usize) -> Common {
        Common {
            backoff: self.backoff,
            lag: self.lag.clone(),
            rewatch: Backoff { base: Duration::from_millis(20), cap: Duration::from_secs(1) },
            seed: self.seed,
            ..Common::new(identity, workers)
        }
    }

    /// What the garbage collector watches.
    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Kind::usual();
        if !self.gates.generic_workload {
            kinds.retain(|kind| kind.resource.group != "scheduling.k8s.io");
        }
        if self.gates.generic_workload && self.gates.composite_pod_group {
            kinds.push(Kind::named("scheduling.k8s.io", "v1alpha3", "CompositePodGroup", "compositepodgroups", true));
        }
        kinds.push(Kind::named("", "v1", "ConfigMap", "configmaps", true));
        kinds
    }
}

/// The root of the project.
pub fn root() -> &'static Path {
    let mut root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for _ in 0..2 {
        root = root.parent().unwrap_or(root);
    }
    root
}

/// Loads the module: `POLICY_WASM`, or the one that is built at the root of the project.
///
/// # Errors
/// It is not built, or cannot be loaded.
pub fn policy() -> anyhow::Result<Arc<Policy>> {
    let path = std::env::var_os("POLICY_WASM").map_or_else(|| root().join("policy.wasm"), PathBuf::from);
    Ok(Arc::new(Policy::from_file(&path)?))
}

/// The members of a condition: its status and reason.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some((found["status"].as_str()?, found["reason"].as_str().unwrap_or_default()))
}
