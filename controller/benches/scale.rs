//! What the controller costs at scale: time as a ratio to a bare client that makes the same requests in
//! the same run, memory over an idle controller, and processor time as a ratio between two sizes.
//!
//! Each controller, and each bare client, is a process of its own. The API server is in this one.

#[path = "../tests/fake_api/mod.rs"]
mod fake_api;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fake_api::{FakeApi, Fault, Foreseen, Resource, Verb, View};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{Api, ListParams, ObjectMeta, PartialObjectMeta, Patch, PatchParams, PostParams, WatchParams};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use statefulset_scheduling_controller::kube_api::FIELD_MANAGER;
use statefulset_scheduling_controller::object::StatefulSet;
use tokio::task::JoinSet;

/// Opted-in StatefulSets that converge.
const MANY: usize = 10_000;
/// The few to which they are compared.
const FEW: usize = 100;
/// StatefulSets without an intent.
const PLAIN: usize = 100_000;
const CONCURRENCY: usize = 32;
/// Times that every wall time is taken; the shortest are compared, as the least disturbed.
const RUNS: usize = 5;
/// How long an API server takes for a write, where it has to reach a disk: etcd writes each before it answers.
const DISK: Duration = Duration::from_millis(2);
/// Turns that the two sizes take at rest, of which the medians are compared.
const TURNS: usize = 25;
/// Changes of size in a turn, of each of the few: the clock of the processor is coarse.
const CHANGES: usize = 10;

/// Wall time, as a ratio.
const MAX_WALL: f64 = 1.25;
/// Memory, in MB.
const MAX_CONVERGED: f64 = 120.0;
const MAX_PLAIN: f64 = 10.0;
/// Processor time, as a ratio.
const FLAT: (f64, f64) = (0.8, 1.2);

const PATIENCE: Duration = Duration::from_mins(2);
/// What a controller watches.
const WATCHED: [&str; 3] = [
    "/apis/apps/v1/statefulsets",
    "/apis/scheduling.k8s.io/v1beta1/workloads",
    "/apis/scheduling.k8s.io/v1beta1/podgroups",
];
const NAMESPACE: &str = "default";
const INTENT: &str = "schedulingPolicy: {gang: {}}";
const SHAPE: &str = include_str!("../../fixtures/real-world/cassandra.yaml");
/// What tells this program to be a bare client.
const BARE: &str = "SCALE_BARE_CLIENT";

fn main() -> ExitCode {
    if let Ok(order) = std::env::var(BARE) {
        let order = serde_json::from_str(&order).expect("this program wrote it");
        // As the controller has it.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime starts").block_on(bare(order));
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let table = runtime.block_on(measure());
    table.print();
    if table.is_over() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

async fn measure() -> Table {
    let mut table = Table::default();
    let shape = shape();
    let idle = memory_at_rest(&shape, 0).await;
    let plain = memory_at_rest(&shape, PLAIN).await;
    let samples = Samples::record(&shape).await;
    let mut rounds = Vec::new();
    let mut last = None;
    for _ in 0..RUNS {
        drop(last.take());
        let cold = Cold::start(&shape, MANY).await;
        let written = 2 * MANY - cold.run.dropped;
        let same = Requests { rest: true, watches: false, events: written };
        let posts = Requests { rest: false, watches: false, events: 0 };
        let watching = Requests { watches: true, ..same };
        rounds.push(Round {
            controller: cold.run,
            same: bare_client(&shape, &samples, same, Duration::ZERO).await,
            watching: bare_client(&shape, &samples, watching, Duration::ZERO).await,
            posts: bare_client(&shape, &samples, posts, Duration::ZERO).await,
        });
        last = Some(cold);
    }
    let many = last.expect("there was a run");
    let on_disk = on_disk(&shape, &samples).await;
    let few = Cold::start(&shape, FEW).await;
    let rest = at_rest(&few, &many).await;
    table.wall(&rounds);
    table.on_disk(on_disk);
    table.memory(idle, rounds.iter().map(|round| round.controller.peak).fold(0.0, f64::max), plain);
    table.cpu(&rounds, rest);
    table
}

/// The wall times of a controller and of a bare client where a write takes as long as on a disk.
async fn on_disk(shape: &Value, samples: &Samples) -> (Duration, Duration) {
    let mut least = (Duration::MAX, Duration::MAX);
    for _ in 0..2 {
        let run = Cold::start_with_disk(shape, MANY, DISK).await.run;
        let requests = Requests { rest: true, watches: false, events: 2 * MANY - run.dropped };
        let bare = bare_client(shape, samples, requests, DISK).await;
        least = (least.0.min(run.told), least.1.min(bare.wall));
    }
    least
}

/// A StatefulSet as an API server has it, without a name.
fn shape() -> Value {
    let documents: Vec<Value> = serde_saphyr::from_multiple(SHAPE).expect("the fixture is YAML");
    let is_set = |document: &Value| document["kind"] == "StatefulSet";
    let mut set = documents.into_iter().find(is_set).expect("the fixture has one");
    set["spec"]["podManagementPolicy"] = "Parallel".into();
    set["spec"]["template"]["metadata"]["labels"]["statefulset-scheduling.dev/managed"] = "true".into();
    let fields = fields(&set);
    let metadata = set["metadata"].as_object_mut().expect("it has metadata");
    metadata.insert("namespace".to_owned(), NAMESPACE.into());
    metadata.insert(
        "managedFields".to_owned(),
        json!([{"manager": "kubectl-create", "operation": "Update", "apiVersion": "apps/v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}]),
    );
    set
}

/// Who manages which field, in the form of `managedFields`.
fn fields(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, member)| (format!("f:{name}"), fields(member))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => {
            let named = items.iter().filter(|item| item["name"].is_string());
            let key = |item: &Value| format!(r#"k:{{"name":{}}}"#, item["name"]);
            named.map(|item| (key(item), fields(item))).collect::<Map<_, _>>().into()
        }
        _ => json!({}),
    }
}

/// As many requests as this.
fn count(number: usize) -> u64 {
    u64::try_from(number).expect("it is small")
}

fn name(number: usize) -> String {
    format!("set-{number:06}")
}

/// Puts StatefulSets into the API server.
fn fill(fake: &FakeApi, shape: &Value, count: usize, intent: Option<&str>) {
    for number in 0..count {
        let mut set = shape.clone();
        set["metadata"]["name"] = name(number).into();
        if let Some(intent) = intent {
            set["metadata"]["annotations"]["statefulset-scheduling.dev/scheduling"] = intent.into();
        }
        fake.put(Resource::StatefulSets, set);
    }
}

async fn server(shape: &Value, count: usize, intent: Option<&str>) -> FakeApi {
    server_with_disk(shape, count, intent, Duration::ZERO).await
}

/// An API server whose writes take so long.
async fn server_with_disk(shape: &Value, count: usize, intent: Option<&str>, disk: Duration) -> FakeApi {
    let fake = FakeApi::start(Foreseen::Everything).await;
    fake.set_quiet(true);
    let writes = [
        (Verb::Create, Resource::Workloads),
        (Verb::Create, Resource::PodGroups),
        (Verb::Create, Resource::Events),
        (Verb::Patch, Resource::StatefulSets),
    ];
    for (verb, resource) in writes.into_iter().filter(|_| !disk.is_zero()) {
        fake.faults(verb, resource, Fault::Delay(disk), usize::MAX);
    }
    fill(&fake, shape, count, intent);
    fake
}

/// A controller's process.
struct Controller {
    child: Child,
    kubeconfig: PathBuf,
    listen: SocketAddr,
}

impl Controller {
    fn start(fake: &FakeApi) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let listen = free.local_addr().expect("a bound port has an address");
        drop(free);
        let kubeconfig =
            std::env::temp_dir().join(format!("scale-{}-{}.kubeconfig", std::process::id(), listen.port()));
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": fake.url()}}],
            "users": [{"name": "fake", "user": {}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        });
        std::fs::write(&kubeconfig, config.to_string()).expect("the folder of temporary files can be written to");
        let child = Command::new(env!("CARGO_BIN_EXE_statefulset-scheduling-controller"))
            .args(["--client-qps=0", &format!("--concurrency={CONCURRENCY}"), &format!("--listen={listen}")])
            .env_clear()
            .envs([("KUBECONFIG", kubeconfig.as_os_str()), ("RUST_LOG", "error".as_ref())])
            .spawn()
            .expect("the controller starts");
        Self { child, kubeconfig, listen }
    }

    async fn synced(&self, fake: &FakeApi) {
        // A watch is opened when its list has been taken in.
        let watched = [Resource::StatefulSets, Resource::Workloads, Resource::PodGroups];
        fake.wait_for(|view| watched.iter().all(|resource| view.watches(*resource) > 0), PATIENCE).await;
    }

    /// The most memory that was ever resident, in MB.
    fn peak(&self) -> f64 {
        let status = proc(&self.child.id().to_string(), "status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells it");
        let kib: f64 = peak.trim().trim_end_matches("kB").trim().parse().expect("it is a number");
        kib * 1024.0 / 1e6
    }

    fn cpu(&self) -> Duration {
        cpu(&self.child.id().to_string())
    }

    /// The value of a metric.
    fn metric(&self, name: &str) -> usize {
        let mut stream = TcpStream::connect(self.listen).expect("the controller listens");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let mut values = answer.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        values.next().expect("it has the metric")
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

fn proc(process: &str, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{process}/{file}")).expect("the process runs")
}

/// The time that a process was on the processor, all its threads together.
fn cpu(process: &str) -> Duration {
    let stat = proc(process, "stat");
    // The name of the program, in parentheses, may have spaces in it.
    let (_, fields) = stat.rsplit_once(") ").expect("Linux tells it");
    let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    // A tick is 10 ms wherever Linux runs.
    Duration::from_millis(ticks * 10)
}

/// The peak of a controller that has nothing to do.
async fn memory_at_rest(shape: &Value, plain: usize) -> f64 {
    let fake = server(shape, plain, None).await;
    let controller = Controller::start(&fake);
    controller.synced(&fake).await;
    // It has to come to rest, and nothing tells when it has.
    tokio::time::sleep(Duration::from_millis(500)).await;
    controller.peak()
}

/// What a controller took from nothing to bound.
#[derive(Clone, Copy)]
struct Run {
    /// From the start of the process until the caches had synced, all were bound, and the last event
    /// was written.
    synced: Duration,
    bound: Duration,
    told: Duration,
    /// Events that were not written.
    dropped: usize,
    cpu: Duration,
    peak: f64,
}

/// What a bare client took.
#[derive(Clone, Copy)]
struct Bare {
    wall: Duration,
    cpu: Duration,
}

/// Runs that are compared.
struct Round {
    controller: Run,
    /// The same requests, but for the watches.
    same: Bare,
    /// The same requests, with the watches open.
    watching: Bare,
    /// The creates of Workloads and PodGroups alone.
    posts: Bare,
}

/// A controller that has brought StatefulSets from nothing to bound.
struct Cold {
    controller: Controller,
    fake: FakeApi,
    run: Run,
}

impl Cold {
    async fn start(shape: &Value, count: usize) -> Self {
        Self::start_with_disk(shape, count, Duration::ZERO).await
    }

    async fn start_with_disk(shape: &Value, count: usize, disk: Duration) -> Self {
        let fake = server_with_disk(shape, count, Some(INTENT), disk).await;
        let start = Instant::now();
        let controller = Controller::start(&fake);
        controller.synced(&fake).await;
        let synced = start.elapsed();
        fake.wait_for(|view| view.count(None, Verb::Patch, Resource::StatefulSets) >= self::count(count), PATIENCE)
            .await;
        let bound = start.elapsed();
        let dropped = controller.metric("statefulset_scheduling_dropped_events_total");
        fake.wait_for(|view| view.len(Resource::Events) + dropped >= 2 * count, PATIENCE).await;
        let told = start.elapsed();
        let (cpu, peak) = (controller.cpu(), controller.peak());
        // The last patches may still be on their way to the disk.
        let is_bound = |set: &Value| set["metadata"]["annotations"]["statefulset-scheduling.dev/pod-group"].is_string();
        fake.wait_for(|view| view.list(Resource::StatefulSets).iter().all(is_bound), PATIENCE).await;
        assert_eq!((fake.len(Resource::Workloads), fake.len(Resource::PodGroups)), (count, count));
        Self { controller, fake, run: Run { synced, bound, told, dropped, cpu, peak } }
    }

    /// Brings the first few from one size to another, time and again, and tells what that took on the
    /// processor.
    async fn scale(&self) -> Duration {
        let before = self.controller.cpu();
        for change in 1..=CHANGES {
            let patched = self.fake.count(Verb::Patch, Resource::StatefulSets);
            for number in 0..FEW {
                // One more than before each time, and as before after the last.
                let replicas = 3 + change % CHANGES;
                let change = |set: &mut Value| set["spec"]["replicas"] = replicas.into();
                self.fake.modify(Resource::StatefulSets, NAMESPACE, &name(number), change);
            }
            let all = |view: &View<'_>| view.count(None, Verb::Patch, Resource::StatefulSets) >= patched + count(FEW);
            self.fake.wait_for(all, PATIENCE).await;
        }
        self.controller.cpu().saturating_sub(before)
    }
}

/// The time on the processor of one change of size, among few and among many. They take turns, so
/// that whatever else the machine does falls on both.
async fn at_rest(few: &Cold, many: &Cold) -> (Duration, Duration) {
    for cold in [few, many] {
        cold.fake.reset_log();
    }
    let mut spent = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        spent.0.push(few.scale().await);
        spent.1.push(many.scale().await);
    }
    for cold in [few, many] {
        for resource in [Resource::Workloads, Resource::PodGroups, Resource::StatefulSets] {
            let patches = cold.fake.count(Verb::Patch, resource);
            assert_eq!(patches, count(TURNS * CHANGES * FEW), "three patches a change");
        }
    }
    let median = |mut spent: Vec<Duration>| {
        spent.sort();
        spent[spent.len() / 2] / u32::try_from(CHANGES * FEW).expect("it is small")
    };
    (median(spent.0), median(spent.1))
}

/// What a bare client requests beyond the two creates for each StatefulSet.
#[derive(Clone, Copy, Deserialize, Serialize)]
struct Requests {
    /// A list of its pods before, and a patch of it after.
    rest: bool,
    /// The watches that a controller has open, of which nothing is looked at.
    watches: bool,
    /// So many events in all, two for each of the first.
    events: usize,
}

/// The bodies that a controller sent for one StatefulSet.
#[derive(Clone, Deserialize, Serialize)]
struct Samples {
    workload: Value,
    pod_group: Value,
    events: Vec<Value>,
    patch: Value,
    selector: String,
}

impl Samples {
    async fn record(shape: &Value) -> Self {
        let fake = FakeApi::start(Foreseen::Everything).await;
        fake.keep_bodies(true);
        fill(&fake, shape, 1, Some(INTENT));
        let _controller = Controller::start(&fake);
        let done = |view: &View<'_>| {
            view.len(Resource::Events) == 2 && view.count(None, Verb::Patch, Resource::StatefulSets) == 1
        };
        fake.wait_for(done, PATIENCE).await;
        let requests = fake.requests();
        let bodies = |verb, resource| {
            let made = requests.iter().filter(move |request| request.verb == verb && request.resource == resource);
            made.map(|request| request.body.clone())
        };
        let one = |verb, resource| bodies(verb, resource).next().expect("it was made");
        let labels = shape["spec"]["selector"]["matchLabels"].as_object().expect("it has a selector");
        let labels = labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
        Self {
            workload: one(Verb::Create, Resource::Workloads),
            pod_group: one(Verb::Create, Resource::PodGroups),
            events: bodies(Verb::Create, Resource::Events).collect(),
            patch: one(Verb::Patch, Resource::StatefulSets),
            selector: labels.collect::<Vec<_>>().join(","),
        }
    }
}

/// What a bare client is to do.
#[derive(Deserialize, Serialize)]
struct Order {
    url: String,
    requests: Requests,
    samples: Samples,
}

/// Runs a bare client, and tells what it took from its first request to its last answer.
async fn bare_client(shape: &Value, samples: &Samples, requests: Requests, disk: Duration) -> Bare {
    let fake = server_with_disk(shape, MANY, Some(INTENT), disk).await;
    let order = Order { url: fake.url(), requests, samples: samples.clone() };
    let order = serde_json::to_string(&order).expect("it can be written");
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.env_clear().env(BARE, order);
    let client = tokio::task::spawn_blocking(move || command.output().expect("the client starts"));
    // Nobody waits for this, but for a controller the counts are looked at as often.
    let never = fake.wait_for(|view| view.len(Resource::Workloads) > MANY, PATIENCE);
    let output = tokio::select! {
        output = client => output.expect("it is waited for"),
        () = never => unreachable!("there are no more"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((fake.len(Resource::Workloads), fake.len(Resource::PodGroups)), (MANY, MANY));
    let made = fake.look(|view| view.counts().values().sum::<u64>());
    let watches = if requests.watches { 3 } else { 0 };
    let ordered = if requests.rest { 4 } else { 2 } * MANY + requests.events + watches;
    assert_eq!(made, count(ordered + 1), "the list of the StatefulSets, and all that was ordered");
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut micros = printed.split_whitespace().map(|number| number.parse().expect("it prints numbers"));
    let mut duration = || Duration::from_micros(micros.next().expect("it prints two"));
    Bare { wall: duration(), cpu: duration() }
}

/// One StatefulSet's objects, made before the clock starts.
struct Work {
    name: String,
    workload: Workload,
    pod_group: PodGroup,
    events: Vec<Event>,
    patch: Value,
}

impl Work {
    /// What was sent for the first StatefulSet, for another.
    fn new(set: &ObjectMeta, samples: &Samples, events: usize) -> Self {
        let (name, uid) = (set.name.clone().unwrap_or_default(), set.uid.as_deref().unwrap_or_default());
        let first = (crate::name(0), samples.patch["metadata"]["uid"].as_str().unwrap_or_default());
        let text = |sample: &Value| sample.to_string().replace(&first.0, &name).replace(first.1, uid);
        Self {
            workload: read(&text(&samples.workload)),
            pod_group: read(&text(&samples.pod_group)),
            events: samples.events.iter().take(events).map(|event| read(&text(event))).collect(),
            patch: read(&text(&samples.patch)),
            name,
        }
    }
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect("it was read before")
}

/// The client: as many tasks as the controller has workers, and nothing else.
async fn bare(order: Order) {
    let mut config = kube::Config::new(order.url.parse().expect("it is a URL"));
    config.default_retry = false;
    let client = kube::Client::try_from(config).expect("a plain configuration makes a client");
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), NAMESPACE);
    let sets = sets.list_metadata(&ListParams::default()).await.expect("the API server answers");
    let version = sets.metadata.resource_version.clone().unwrap_or_default();
    let sets = sets.items;
    let events = |number: usize| order.requests.events.saturating_sub(2 * number);
    let work = |(number, set): (usize, &PartialObjectMeta<_>)| Work::new(&set.metadata, &order.samples, events(number));
    let works: Arc<Vec<_>> = Arc::new(sets.iter().enumerate().map(work).collect());
    let next = Arc::new(AtomicUsize::new(0));
    let mut watches = JoinSet::new();
    for path in WATCHED.into_iter().filter(|_| order.requests.watches) {
        let request = kube::core::Request::new(path).watch(&WatchParams::default(), &version).expect("it is a path");
        let stream = client.request_stream(request).await.expect("the API server answers");
        watches.spawn(async move { futures::io::copy(stream, &mut futures::io::sink()).await });
    }
    let (start, before) = (Instant::now(), cpu("self"));
    let mut tasks = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (client, works, next) = (client.clone(), Arc::clone(&works), Arc::clone(&next));
        let (rest, selector) = (order.requests.rest, order.samples.selector.clone());
        tasks.spawn(async move {
            while let Some(work) = works.get(next.fetch_add(1, Ordering::Relaxed)) {
                request(&client, work, rest, &selector).await.expect("no request fails");
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no task fails");
    }
    println!("{} {}", start.elapsed().as_micros(), cpu("self").saturating_sub(before).as_micros());
}

async fn request(client: &kube::Client, work: &Work, rest: bool, selector: &str) -> kube::Result<()> {
    let managed = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let mut events = work.events.iter();
    let event = async |event: Option<&Event>| match event {
        Some(event) => {
            let events: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
            events.create(&PostParams::default(), event).await.map(drop)
        }
        None => Ok(()),
    };
    if rest {
        let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
        pods.list_metadata(&ListParams::default().limit(10).labels(selector)).await?;
    }
    Api::<Workload>::namespaced(client.clone(), NAMESPACE).create(&managed, &work.workload).await?;
    event(events.next()).await?;
    Api::<PodGroup>::namespaced(client.clone(), NAMESPACE).create(&managed, &work.pod_group).await?;
    event(events.next()).await?;
    if rest {
        let managed = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), NAMESPACE);
        sets.patch(&work.name, &managed, &Patch::Merge(&work.patch)).await?;
    }
    Ok(())
}

/// What is printed.
#[derive(Default)]
struct Table(Vec<Row>);

struct Row {
    what: String,
    measured: String,
    bound: String,
    is_over: Option<bool>,
}

impl Table {
    fn tell(&mut self, what: impl Into<String>, measured: String) {
        self.0.push(Row { what: what.into(), measured, bound: String::new(), is_over: None });
    }

    fn compare(&mut self, what: impl Into<String>, measured: String, bound: String, is_over: bool) {
        self.0.push(Row { what: what.into(), measured, bound, is_over: Some(is_over) });
    }

    fn wall(&mut self, rounds: &[Round]) {
        let least = |pick: fn(&Round) -> Duration| rounds.iter().map(pick).min().unwrap_or_default().as_secs_f64();
        let seconds = |time: f64| format!("{time:.2} s");
        let (bound, told) = (least(|round| round.controller.bound), least(|round| round.controller.told));
        let (same, posts) = (least(|round| round.same.wall), least(|round| round.posts.wall));
        let watching = least(|round| round.watching.wall);
        self.tell(format!("{MANY} StatefulSets, from the start of the process until all are bound"), seconds(bound));
        let since = least(|round| round.controller.bound.saturating_sub(round.controller.synced));
        self.tell("  since the caches have synced", seconds(since));
        self.tell("  until the last event is written too", seconds(told));
        let dropped = rounds.iter().map(|round| round.controller.dropped).max().unwrap_or_default();
        self.tell(format!("  events that were dropped, of {}", 2 * MANY), dropped.to_string());
        self.tell("bare client, the same requests, as many events", seconds(same));
        self.tell("bare client, only the POSTs of Workloads and PodGroups", seconds(posts));
        self.tell("bare client, the same requests, with the same watches open", seconds(watching));
        let ratio = told / watching;
        self.tell("ratio: until the last event / the same requests and watches", format!("{ratio:.2}"));
        let ratio = told / same;
        self.compare(
            "ratio: until the last event / the same requests",
            format!("{ratio:.2}"),
            format!("≤ {MAX_WALL}"),
            ratio > MAX_WALL,
        );
        self.tell("ratio: until all are bound / only the POSTs", format!("{:.2}", bound / posts));
    }

    fn on_disk(&mut self, (controller, bare): (Duration, Duration)) {
        let (controller, bare) = (controller.as_secs_f64(), bare.as_secs_f64());
        self.tell(
            format!("where a write takes {} ms: until the last event", DISK.as_millis()),
            format!("{controller:.2} s"),
        );
        self.tell("  bare client, the same requests", format!("{bare:.2} s"));
        let ratio = controller / bare;
        self.compare("  ratio", format!("{ratio:.2}"), format!("≤ {MAX_WALL}"), ratio > MAX_WALL);
    }

    fn memory(&mut self, idle: f64, converged: f64, plain: f64) {
        self.tell("peak memory, idle", format!("{idle:.1} MB"));
        for (what, peak, bound) in [
            (format!("  added by {MANY} that were brought to bound"), converged, MAX_CONVERGED),
            (format!("  added by {PLAIN} without an intent"), plain, MAX_PLAIN),
        ] {
            let added = peak - idle;
            self.compare(what, format!("{added:.1} MB"), format!("≤ {bound} MB"), added > bound);
        }
    }

    fn cpu(&mut self, rounds: &[Round], rest: (Duration, Duration)) {
        let micros = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
        let many = u32::try_from(MANY).expect("it is small");
        let least = |pick: fn(&Round) -> Duration| rounds.iter().map(pick).min().unwrap_or_default() / many;
        self.tell("processor, a StatefulSet from a cold start", micros(least(|round| round.controller.cpu)));
        self.tell("  bare client, the same requests", micros(least(|round| round.same.cpu)));
        self.tell("  with the same watches open", micros(least(|round| round.watching.cpu)));
        self.tell(format!("processor, a change of size, among {FEW}"), micros(rest.0));
        self.tell(format!("  among {MANY}"), micros(rest.1));
        let ratio = rest.1.as_secs_f64() / rest.0.as_secs_f64();
        let is_over = !(FLAT.0..=FLAT.1).contains(&ratio);
        self.compare("ratio: among many / among few", format!("{ratio:.2}"), format!("{}–{}", FLAT.0, FLAT.1), is_over);
    }

    fn is_over(&self) -> bool {
        self.0.iter().any(|row| row.is_over == Some(true))
    }

    fn print(&self) {
        println!("{:72} {:>10} {:>10}", "", "measured", "bound");
        for Row { what, measured, bound, is_over } in &self.0 {
            let verdict = is_over.map_or("", |is_over| if is_over { "over" } else { "ok" });
            println!("{what:72} {measured:>10} {bound:>10} {verdict}");
        }
    }
}
