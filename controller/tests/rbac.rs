//! What `deploy/controller` lets the controller do is what it does, and the Deployment starts the
//! controller that is built here.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use clap::{CommandFactory as _, Parser as _};
use serde_json::{Value, json};
use statefulset_scheduling_controller::args::Arguments;
use statefulset_scheduling_controller::metrics::Metrics;
use statefulset_scheduling_controller::probes::{self, Readiness};
use statefulset_scheduling_core::admission::DEFAULT_CONTROLLER;
use tokio::net::TcpListener;

mod used_verbs;

use used_verbs::USED;

const RBAC: &str = include_str!("../../deploy/controller/rbac.yaml");
const DEPLOYMENT: &str = include_str!("../../deploy/controller/deployment.yaml");

/// Permissions that admission asks for, and no request: owner references with `blockOwnerDeletion`.
const PERMISSION_ONLY: &[(&str, &str)] = &[("update", "statefulsets/finalizers"), ("update", "workloads/finalizers")];

/// The API group of each resource.
const GROUPS: &[(&str, &str)] = &[
    ("events", "events.k8s.io"),
    ("leases", "coordination.k8s.io"),
    ("podgroups", "scheduling.k8s.io"),
    ("pods", ""),
    ("statefulsets", "apps"),
    ("statefulsets/finalizers", "apps"),
    ("workloads", "scheduling.k8s.io"),
    ("workloads/finalizers", "scheduling.k8s.io"),
];

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("it is YAML")
}

/// The objects of a kind in `rbac.yaml`.
fn of_kind(kind: &str) -> Vec<Value> {
    documents(RBAC).into_iter().filter(|object| object["kind"] == kind).collect()
}

fn array<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.unwrap_or_else(|| panic!("{pointer} is no list in {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn texts<'a>(rule: &'a Value, member: &str) -> BTreeSet<&'a str> {
    rule[member].as_array().into_iter().flatten().map(text).collect()
}

fn rules() -> Vec<Value> {
    let roles = ["ClusterRole", "Role"].into_iter().flat_map(of_kind);
    roles.flat_map(|role| array(&role, "/rules").to_vec()).collect()
}

/// The verbs and resources that the roles allow.
fn allowed() -> BTreeSet<(String, String)> {
    let mut allowed = BTreeSet::new();
    for rule in rules() {
        for resource in texts(&rule, "resources") {
            allowed.extend(texts(&rule, "verbs").into_iter().map(|verb| (verb.to_owned(), resource.to_owned())));
        }
    }
    allowed
}

fn deployment() -> Value {
    let mut documents = documents(DEPLOYMENT);
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

fn container(deployment: &Value) -> &Value {
    let containers = array(deployment, "/spec/template/spec/containers");
    assert_eq!(containers.len(), 1);
    &containers[0]
}

/// The arguments that the Deployment gives, read as the process reads them.
fn arguments(container: &Value) -> Arguments {
    let given = array(container, "/args").iter().map(text);
    Arguments::try_parse_from(["controller"].into_iter().chain(given)).expect("they are the controller's")
}

#[test]
fn exactly_what_is_used_is_allowed() {
    let pairs = USED.iter().chain(PERMISSION_ONLY);
    let used: BTreeSet<_> = pairs.map(|&(verb, resource)| (verb.to_owned(), resource.to_owned())).collect();
    let allowed = allowed();
    let of = |a: &BTreeSet<_>, b: &BTreeSet<_>| a.difference(b).cloned().collect::<Vec<(String, String)>>();
    assert_eq!(of(&allowed, &used), [], "allowed, and not used");
    assert_eq!(of(&used, &allowed), [], "used, and not allowed");
}

#[test]
fn the_roles_allow_nothing_that_does_harm() {
    for (verb, resource) in allowed() {
        assert!(!["delete", "deletecollection", "escalate", "bind", "impersonate"].contains(&verb.as_str()), "{verb}");
        assert_ne!(resource, "secrets");
        assert!(resource != "pods" || verb == "list", "{verb} pods");
    }
    for rule in rules() {
        for member in ["apiGroups", "resources", "resourceNames", "verbs", "nonResourceURLs"] {
            assert!(texts(&rule, member).iter().all(|entry| !entry.contains('*')), "{rule}");
        }
        assert!(rule["nonResourceURLs"].is_null(), "{rule}");
        // Several groups and several resources would allow each with each.
        for resource in texts(&rule, "resources") {
            let (_, group) = GROUPS.iter().find(|(name, _)| *name == resource).expect("its group is known");
            assert_eq!(texts(&rule, "apiGroups"), BTreeSet::from([*group]), "{rule}");
        }
    }
}

#[test]
fn every_rule_says_why() {
    let lines: Vec<_> = RBAC.lines().map(str::trim).collect();
    let explained = lines.windows(2).filter(|pair| pair[1].starts_with("- apiGroups:"));
    let explained = explained.inspect(|pair| assert!(pair[0].starts_with("# "), "{pair:?}")).count();
    assert_eq!(explained, rules().len());
}

#[test]
fn leases_are_allowed_in_one_namespace_and_by_name() {
    let defaults = Arguments::try_parse_from(["controller"]).expect("all have a default");
    let roles = of_kind("Role");
    assert_eq!(roles.len(), 1);
    assert_eq!(roles[0]["metadata"]["namespace"], defaults.lease_namespace.as_str());
    for rule in array(&roles[0], "/rules") {
        assert_eq!(rule["resources"], json!(["leases"]));
        // There is no name yet when an object is created.
        let names = if rule["verbs"] == json!(["create"]) { Value::Null } else { json!([defaults.lease_name]) };
        assert_eq!(rule["resourceNames"], names);
    }
    for role in of_kind("ClusterRole") {
        assert!(array(&role, "/rules").iter().all(|rule| rule["resources"] != json!(["leases"])));
    }
}

#[test]
fn the_roles_are_bound_to_the_user_that_the_policy_trusts_and_the_pods_are() {
    for (binding, role) in [("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")] {
        let (bindings, roles) = (of_kind(binding), of_kind(role));
        assert_eq!((bindings.len(), roles.len()), (1, 1));
        assert_eq!(bindings[0]["roleRef"]["kind"], role);
        assert_eq!(bindings[0]["roleRef"]["name"], roles[0]["metadata"]["name"]);
        assert_eq!(bindings[0]["metadata"]["namespace"], roles[0]["metadata"]["namespace"]);
        let subjects = array(&bindings[0], "/subjects");
        assert_eq!(subjects.len(), 1);
        assert_eq!(subjects[0]["kind"], "ServiceAccount");
        assert_eq!(user(&subjects[0]["namespace"], &subjects[0]["name"]), DEFAULT_CONTROLLER);
    }
    let deployment = deployment();
    let account = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
    assert_eq!(user(&deployment["metadata"]["namespace"], account), DEFAULT_CONTROLLER);
}

fn user(namespace: &Value, name: &Value) -> String {
    format!("system:serviceaccount:{}:{}", text(namespace), text(name))
}

#[test]
fn the_deployment_says_what_the_controller_understands() {
    let deployment = deployment();
    let container = container(&deployment);
    let command = Arguments::command();
    let flags: BTreeSet<_> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    for argument in array(container, "/args").iter().map(text) {
        let flag = argument.strip_prefix("--").and_then(|argument| argument.split('=').next());
        assert!(flag.is_some_and(|flag| flags.contains(flag)), "{argument}");
    }
    let known: BTreeSet<_> =
        command.get_arguments().filter_map(|argument| argument.get_env().and_then(|name| name.to_str())).collect();
    for variable in array(container, "/env") {
        assert!(known.contains(text(&variable["name"])), "{variable}");
    }
    let arguments = arguments(container);
    let replicas = deployment["spec"]["replicas"].as_u64().expect("a number");
    assert!(arguments.leader_elect || replicas <= 1, "several replicas need an election");
    assert_eq!(arguments.lease_name, text(&deployment["metadata"]["name"]));
    let ports = array(container, "/ports");
    assert_eq!(ports.len(), 1);
    assert_eq!(ports[0]["containerPort"], arguments.shared.listen.port());
    let image = text(&container["image"]);
    assert!(image.ends_with(concat!(":v", env!("CARGO_PKG_VERSION"))), "{image}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_probes_of_the_deployment_are_answered() {
    let deployment = deployment();
    let container = container(&deployment);
    let readiness = Readiness::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(probes::serve(listener, (readiness.clone(), Arc::new(Metrics::default()))));
    for ready in [false, true] {
        readiness.set(ready);
        for (probe, passes) in [("livenessProbe", true), ("readinessProbe", ready)] {
            let get = &container[probe]["httpGet"];
            assert_eq!(get["port"], container["ports"][0]["name"], "{probe}");
            let code = if passes { 200 } else { 503 };
            assert_eq!(answer(address, text(&get["path"])), code, "{probe}, ready: {ready}");
        }
    }
    serving.abort();
}

/// The code that a path is answered with.
fn answer(address: SocketAddr, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n").expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is text");
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.unwrap_or_else(|| panic!("no answer of HTTP: {answer}"))
}
