//! Starts the simulated cluster, and leaves it running for `kubectl`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use cluster::Cluster;
use cluster::cluster::policy;
use cluster::demo::shape::{self, Server};
use cluster::demo::stage::is_whole;
use cluster::objects::{Carrier, Set, gang};
use cluster_apiserver::{ADMIN, ApiServer, Config};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Runs a simulated cluster of four nodes with the policy module and the controller, until it is
/// interrupted.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The port of the API server on the loopback interface; 0 is any that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Where the kubeconfig is written.
    #[arg(long, value_name = "FILE", default_value = "target/cluster.kubeconfig")]
    kubeconfig: PathBuf,

    /// Which API server is simulated.
    #[arg(long, value_enum, default_value_t)]
    profile: Server,

    /// Creates no StatefulSet to look at.
    #[arg(long)]
    empty: bool,
}

/// The StatefulSet to look at.
const EXAMPLE: &str = "web";
const REPLICAS: i32 = 3;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    // Clients that still watch when the server goes are no news.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error,kube_client=off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    // From here on a signal ends it in good order.
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut cluster = start(&arguments).await?;
    if !arguments.empty {
        let set = Set::new(EXAMPLE, REPLICAS).with_intent(Carrier::of(cluster.options().profile), &gang());
        cluster.admin().create(set.object()).await?;
        let ready = |view: &cluster_apiserver::View<'_>| is_whole(view, EXAMPLE, REPLICAS.unsigned_abs() as usize);
        anyhow::ensure!(cluster.api.reaches(ready, Duration::from_secs(30)).await, "{EXAMPLE} does not become ready");
    }
    cluster.api.set_quiet(true);
    let file = &arguments.kubeconfig;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    cluster.api.write_kubeconfig(ADMIN, file).with_context(|| file.display().to_string())?;
    anstream::println!("{}", welcome(&cluster, &std::path::absolute(file)?.display().to_string(), arguments.empty));
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    std::fs::remove_file(file).with_context(|| file.display().to_string())?;
    cluster.stop_controller().await
}

async fn start(arguments: &Arguments) -> anyhow::Result<Cluster> {
    let options = shape::options(arguments.profile);
    let config = Config { profile: options.profile, gates: options.gates, seed: options.seed, ..Config::default() };
    let address = SocketAddr::from(([127, 0, 0, 1], arguments.port));
    let api = ApiServer::start_at(config, address).await.with_context(|| address.to_string())?;
    Cluster::start_on(api, policy()?, options).await
}

/// What to do with it.
fn welcome(cluster: &Cluster, kubeconfig: &str, empty: bool) -> String {
    let mut text = format!(
        "A simulated cluster listens at {}, with the policy and the controller.\nIn another terminal:\n\n  export \
         KUBECONFIG={kubeconfig}\n",
        cluster.api.url()
    );
    let mut commands = vec!["kubectl get nodes -L topology.example.com/rack"];
    if empty {
        commands.push("kubectl apply -f fixtures/kep/annotation/zookeeper.yaml");
    }
    commands.push("kubectl get sts,pods,workloads,podgroups");
    if !empty {
        commands.extend(["kubectl scale sts web --replicas=5", "kubectl describe podgroup", "kubectl delete sts web"]);
    }
    for command in commands {
        text.push_str("  ");
        text.push_str(command);
        text.push('\n');
    }
    text.push_str("\nctrl-C ends it.");
    text
}
