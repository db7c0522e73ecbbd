//! What `deploy/webhook` asks the API server to send is what `deploy/kubewarden` asks it to send, what it
//! lets the webhook do is what it does, and the Deployment starts the webhook that is built here.

use std::collections::BTreeSet;

use clap::{CommandFactory as _, Parser as _};
use serde_json::{Value, json};
use statefulset_scheduling_controller::args::{Mode, Program};
use statefulset_scheduling_controller::webhook::args::Arguments;
use statefulset_scheduling_controller::webhook::server::PATH;

const POLICIES: &str = include_str!("../../deploy/kubewarden/policies.yaml");
const WEBHOOKS: &str = include_str!("../../deploy/webhook/webhooks.yaml");
const RBAC: &str = include_str!("../../deploy/webhook/rbac.yaml");
const DEPLOYMENT: &str = include_str!("../../deploy/webhook/deployment.yaml");
const SERVICE: &str = include_str!("../../deploy/webhook/service.yaml");
const ACCOUNT: &str = include_str!("../../deploy/webhook/serviceaccount.yaml");
const KUSTOMIZATION: &str = include_str!("../../deploy/webhook/kustomization.yaml");

/// Verb, resource and name of every request that is ever made. The tests of `webhook.rs` make them all.
const USED: &[(&str, &str, Option<&str>)] = &[
    ("get", "statefulsets", None),
    ("create", "secrets", None),
    ("get", "secrets", Some("statefulset-scheduling-webhook-tls")),
    ("update", "secrets", Some("statefulset-scheduling-webhook-tls")),
    ("get", "mutatingwebhookconfigurations", Some("statefulset-scheduling-webhook")),
    ("patch", "mutatingwebhookconfigurations", Some("statefulset-scheduling-webhook")),
    ("get", "validatingwebhookconfigurations", Some("statefulset-scheduling-webhook")),
    ("patch", "validatingwebhookconfigurations", Some("statefulset-scheduling-webhook")),
];

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("it is YAML")
}

fn one(text: &str) -> Value {
    let mut documents = documents(text);
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

fn of_kind(text: &str, kind: &str) -> Vec<Value> {
    documents(text).into_iter().filter(|object| object["kind"] == kind).collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// The arguments that the Deployment gives, read as the process reads them.
fn arguments() -> Arguments {
    let deployment = one(DEPLOYMENT);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let given = array(&container["args"]).iter().map(text);
    let program = Program::try_parse_from(["controller"].into_iter().chain(given)).expect("they are the webhook's");
    let Some(Mode::Webhook(arguments)) = program.mode else { panic!("it is not the webhook that is started") };
    *arguments
}

#[test]
fn the_webhooks_are_asked_about_what_the_policies_are_asked_about() {
    let policies = of_kind(POLICIES, "ClusterAdmissionPolicy");
    let mut compared = 0;
    for (kind, mutating) in [("MutatingWebhookConfiguration", true), ("ValidatingWebhookConfiguration", false)] {
        let configurations = of_kind(WEBHOOKS, kind);
        assert_eq!(configurations.len(), 1);
        let policies: Vec<_> = policies.iter().filter(|policy| policy["spec"]["mutating"] == mutating).collect();
        let webhooks = array(&configurations[0]["webhooks"]);
        assert_eq!(webhooks.len(), policies.len());
        for (webhook, policy) in webhooks.iter().zip(policies) {
            let name = text(&policy["metadata"]["name"]);
            assert_eq!(webhook["name"], format!("{name}.statefulset-scheduling.dev"));
            for member in
                ["rules", "namespaceSelector", "objectSelector", "matchConditions", "failurePolicy", "timeoutSeconds"]
            {
                assert_eq!(webhook[member], policy["spec"][member], "{name}: {member}");
            }
            assert_eq!(webhook["sideEffects"], "None");
            assert_eq!(webhook["admissionReviewVersions"], json!(["v1"]));
            // What is not compared has its default.
            let known = [
                "name",
                "rules",
                "namespaceSelector",
                "objectSelector",
                "matchConditions",
                "failurePolicy",
                "timeoutSeconds",
                "sideEffects",
                "admissionReviewVersions",
                "clientConfig",
            ];
            let members = webhook.as_object().expect("it is an object").keys();
            assert!(
                members.clone().all(|member| known.contains(&member.as_str())),
                "{:?}",
                members.collect::<Vec<_>>()
            );
            compared += 1;
        }
    }
    assert_eq!(compared, policies.len());
}

#[test]
fn the_api_server_calls_the_service_by_the_name_that_the_certificate_is_for() {
    let (arguments, service, deployment) = (arguments(), one(SERVICE), one(DEPLOYMENT));
    let namespace = &service["metadata"]["namespace"];
    assert_eq!(
        (text(namespace), text(&service["metadata"]["name"])),
        (&*arguments.namespace, &*arguments.service_name)
    );
    for configuration in documents(WEBHOOKS) {
        assert_eq!(configuration["metadata"]["name"], arguments.webhook_configuration.as_str());
        for webhook in array(&configuration["webhooks"]) {
            let expected = json!({ "service": { "namespace": namespace, "name": service["metadata"]["name"],
                "path": PATH, "port": service["spec"]["ports"][0]["port"] } });
            assert_eq!(webhook["clientConfig"], expected);
            // Nothing that it needs to start may depend on it.
            let excluded = &webhook["namespaceSelector"]["matchExpressions"][0];
            let by_label = webhook["objectSelector"]["matchLabels"].is_object();
            assert!(by_label || (excluded["operator"] == "NotIn" && array(&excluded["values"]).contains(namespace)));
        }
    }
    let template = &deployment["spec"]["template"];
    assert_eq!(service["spec"]["selector"], template["metadata"]["labels"]);
    let ports = array(&template["spec"]["containers"][0]["ports"]);
    let port = |name: &Value| ports.iter().find(|port| port["name"] == *name).map(|port| &port["containerPort"]);
    assert_eq!(port(&service["spec"]["ports"][0]["targetPort"]), Some(&arguments.tls_listen.port().into()));
    assert_eq!(port(&"http".into()), Some(&arguments.shared.listen.port().into()));
}

#[test]
fn exactly_what_is_used_is_allowed() {
    let mut allowed = BTreeSet::new();
    for rule in of_kind(RBAC, "ClusterRole").iter().chain(&of_kind(RBAC, "Role")).flat_map(|role| array(&role["rules"]))
    {
        let (groups, resources) = (array(&rule["apiGroups"]), array(&rule["resources"]));
        // Several would allow each with each.
        assert_eq!((groups.len(), resources.len()), (1, 1), "{rule}");
        let group = match text(&resources[0]) {
            "secrets" => "",
            "statefulsets" => "apps",
            _ => "admissionregistration.k8s.io",
        };
        assert_eq!(groups[0], group);
        let names = array(&rule["resourceNames"]);
        assert!(names.len() <= 1, "{rule}");
        for verb in array(&rule["verbs"]) {
            let name = names.first().map(|name| text(name).to_owned());
            allowed.insert((text(verb).to_owned(), text(&resources[0]).to_owned(), name));
        }
    }
    let used = USED.iter();
    let used = used.map(|(verb, resource, name)| ((*verb).to_owned(), (*resource).to_owned(), name.map(str::to_owned)));
    assert_eq!(allowed, used.collect());
}

#[test]
fn secrets_are_the_webhooks_own() {
    let (arguments, roles) = (arguments(), of_kind(RBAC, "Role"));
    assert_eq!(roles.len(), 1);
    assert_eq!(roles[0]["metadata"]["namespace"], arguments.namespace.as_str());
    for rule in array(&roles[0]["rules"]) {
        assert_eq!(rule["resources"], json!(["secrets"]));
        // There is no name yet when an object is created.
        let names = if rule["verbs"] == json!(["create"]) { Value::Null } else { json!([arguments.secret_name]) };
        assert_eq!(rule["resourceNames"], names);
    }
    for role in of_kind(RBAC, "ClusterRole") {
        assert!(array(&role["rules"]).iter().all(|rule| rule["resources"] != json!(["secrets"])));
    }
}

#[test]
fn every_rule_says_why() {
    let lines: Vec<_> = RBAC.lines().map(str::trim).collect();
    let rules = lines.windows(2).filter(|pair| pair[1].starts_with("- apiGroups:"));
    assert_eq!(rules.inspect(|pair| assert!(pair[0].starts_with("# "), "{pair:?}")).count(), 5);
}

#[test]
fn the_roles_are_bound_to_the_account_that_the_pods_have() {
    let (account, deployment) = (one(ACCOUNT), one(DEPLOYMENT));
    let (namespace, name) = (&account["metadata"]["namespace"], &account["metadata"]["name"]);
    for (binding, role) in [("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")] {
        let (bindings, roles) = (of_kind(RBAC, binding), of_kind(RBAC, role));
        assert_eq!((bindings.len(), roles.len()), (1, 1));
        assert_eq!(
            (&bindings[0]["roleRef"]["kind"], &bindings[0]["roleRef"]["name"]),
            (&json!(role), &roles[0]["metadata"]["name"])
        );
        assert_eq!(
            bindings[0]["subjects"],
            json!([{ "kind": "ServiceAccount", "name": name, "namespace": namespace }])
        );
    }
    assert_eq!(&deployment["metadata"]["namespace"], namespace);
    assert_eq!(&deployment["spec"]["template"]["spec"]["serviceAccountName"], name);
}

#[test]
fn the_deployment_says_what_the_webhook_understands() {
    let (arguments, deployment) = (arguments(), one(DEPLOYMENT));
    assert!(arguments.self_signed);
    let command = Program::command();
    let command = command.find_subcommand("webhook").expect("there is one").clone();
    let known: BTreeSet<_> =
        command.get_arguments().filter_map(|argument| argument.get_env().and_then(|name| name.to_str())).collect();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    for variable in array(&container["env"]) {
        assert!(known.contains(text(&variable["name"])), "{variable}");
    }
    let image = text(&container["image"]);
    assert!(image.ends_with(concat!("statefulset-scheduling-controller:v", env!("CARGO_PKG_VERSION"))), "{image}");
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"], json!({ "path": path, "port": "http" }));
    }
}

#[test]
fn everything_in_the_folder_is_applied() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/webhook");
    let files =
        std::fs::read_dir(folder).expect("it is there").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_resource = |name: &str| name.strip_suffix(".yaml").is_some_and(|name| name != "kustomization");
    let files: BTreeSet<_> = files.filter(|name| is_resource(name)).collect();
    let applied = one(KUSTOMIZATION);
    let applied: BTreeSet<_> = array(&applied["resources"]).iter().map(|name| text(name).to_owned()).collect();
    assert_eq!(files, applied);
}

#[test]
fn what_the_environment_says_to_the_controller_does_not_conflict_with_the_webhook() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_statefulset-scheduling-controller"))
        .args(["webhook", "--self-signed", "--concurrency=0"])
        .envs([("POD_NAMESPACE", "ns"), ("LEADER_ELECT", "true"), ("LISTEN", "127.0.0.1:0")])
        .output()
        .expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("--concurrency") && !said.contains("cannot be used with"), "{said}");
}
