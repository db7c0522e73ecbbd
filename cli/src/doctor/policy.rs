//! Is the policy installed, and does it answer? It is asked by dry runs that it must refuse.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use statefulset_scheduling_core::api::{MANAGED_LABEL, MANAGED_LABEL_VALUE, SCHEDULING_ANNOTATION};
use statefulset_scheduling_core::validation::GANG_REQUIRES_PARALLEL;

use super::Finding;
use super::apis::{PROBE, dry_run};
use crate::snapshot::explain;

const INSTALL: &str = "kubectl apply -k deploy/kubewarden, or deploy/webhook where no admission engine runs";
const ANSWER: &str = "see why the policy server, or the webhook, does not answer: kubectl -n kubewarden get pods, logs, or -n \
                      statefulset-scheduling-system; in an emergency the README.md of deploy/kubewarden or \
                      deploy/webhook says how all of it is switched off";

/// What an API server says of a webhook that fails.
const WEBHOOK_FAILED: [&str; 2] = ["failed calling webhook", "internal server error"];

pub(super) async fn examine(client: &Client, namespace: &str, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    findings.push(validates(client, namespace).await?);
    findings.push(mutates(client, namespace).await?);
    findings.push(holds_pods(client, namespace).await?);
    Ok(())
}

/// What a dry run came to: the object, or the message of the refusal.
async fn create(
    client: &Client,
    namespace: &str,
    object: Value,
    of: &ApiResource,
) -> anyhow::Result<Result<Value, String>> {
    let api = kube::Api::<DynamicObject>::namespaced_with(client.clone(), namespace, of);
    let object: DynamicObject = serde_json::from_value(object)?;
    match api.create(&dry_run(), &object).await {
        Ok(created) => Ok(Ok(serde_json::to_value(created)?)),
        Err(kube::Error::Api(status)) => Ok(Err(status.message)),
        Err(error) => Err(explain(error)),
    }
}

fn statefulset(pod_management_policy: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": PROBE, "annotations": {SCHEDULING_ANNOTATION: "schedulingPolicy: {gang: {}}"}},
        "spec": {
            "replicas": 1,
            "serviceName": PROBE,
            "podManagementPolicy": pod_management_policy,
            "selector": {"matchLabels": {"app": PROBE}},
            "template": {
                "metadata": {"labels": {"app": PROBE}},
                "spec": {"containers": [{"name": "probe", "image": "probe"}]},
            },
        },
    })
}

fn failed(message: &str) -> bool {
    WEBHOOK_FAILED.iter().any(|words| message.to_lowercase().contains(words))
}

fn refused(what: &str, message: &str, namespace: &str) -> Finding {
    if failed(message) {
        return Finding::broken(format!("the policy does not answer: {message}"), ANSWER);
    }
    Finding::doubtful(
        format!("{what}: {message}"),
        format!("allow dry runs in {namespace}, or choose another namespace by --namespace"),
    )
}

async fn validates(client: &Client, namespace: &str) -> anyhow::Result<Finding> {
    let created =
        create(client, namespace, statefulset("OrderedReady"), &ApiResource::erase::<StatefulSet>(&())).await?;
    Ok(match created {
        Err(message) if message.contains(GANG_REQUIRES_PARALLEL) => {
            Finding::good("the policy validates: it refuses a gang whose pods are created one by one")
        }
        Err(message) => refused("whether the policy validates cannot be told", &message, namespace),
        Ok(_) => Finding::broken("no policy validates intents: one that is not valid is admitted", INSTALL),
    })
}

async fn mutates(client: &Client, namespace: &str) -> anyhow::Result<Finding> {
    let created = create(client, namespace, statefulset("Parallel"), &ApiResource::erase::<StatefulSet>(&())).await?;
    Ok(match created {
        Err(message) => refused("whether the policy labels pods cannot be told", &message, namespace),
        Ok(set) if set["spec"]["template"]["metadata"]["labels"][MANAGED_LABEL] == MANAGED_LABEL_VALUE => {
            Finding::good("the policy labels the pods of StatefulSets with an intent")
        }
        Ok(_) => Finding::broken(
            format!("no policy labels the pods of StatefulSets with {MANAGED_LABEL}: they do not join their group"),
            INSTALL,
        ),
    })
}

/// The pod of a StatefulSet that is not there has to wait for it.
async fn holds_pods(client: &Client, namespace: &str) -> anyhow::Result<Finding> {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{PROBE}-0"),
            "labels": {MANAGED_LABEL: MANAGED_LABEL_VALUE},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": PROBE, "controller": true,
                "uid": "00000000-0000-0000-0000-000000000000",
            }],
        },
        "spec": {"containers": [{"name": "probe", "image": "probe"}]},
    });
    Ok(match create(client, namespace, pod, &ApiResource::erase::<Pod>(&())).await? {
        Err(message) if message.contains("held: ") && message.contains("not found") => {
            Finding::good("the policy holds pods until there is a group for them")
        }
        Err(message) if message.contains("held: ") => Finding::broken(
            format!("the policy cannot read StatefulSets: {message}"),
            "bind the ClusterRole statefulset-scheduling-policy to the ServiceAccount of the policy server, as \
             deploy/kubewarden/rbac.yaml does, or that of the webhook, as deploy/webhook/rbac.yaml does",
        ),
        Err(message) => refused("whether the policy holds pods cannot be told", &message, namespace),
        Ok(_) => Finding::broken("no policy puts pods into their group: they are created without it", INSTALL),
    })
}
