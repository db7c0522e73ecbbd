//! The webhooks that are asked: those that the deployed policies make, or those that are configured.
//!
//! Stands for Kubewarden's controller, which turns each ClusterAdmissionPolicy into a webhook
//! configuration, and for an API server that reads one. Left out: policy groups and the policy server's own
//! deployment.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cluster_apiserver::{Admission, Condition, FailurePolicy, Phase, Rule, Webhook};
use serde_json::Value;

use crate::engine::{Deployed, Engine};
use crate::webhook_http::{Called, WebhookHttp};

fn phase(configuration: &Value) -> Option<Phase> {
    match configuration["kind"].as_str() {
        Some("MutatingWebhookConfiguration") => Some(Phase::Mutating),
        Some("ValidatingWebhookConfiguration") => Some(Phase::Validating),
        _ => None,
    }
}

/// The webhooks of these configurations, all of which this one answers.
///
/// # Errors
/// A configuration says something that the simulated API server does not know.
pub fn configured(configurations: &[Value], server: &Arc<WebhookHttp>) -> anyhow::Result<Vec<Webhook>> {
    let webhooks = configurations.iter().filter_map(|configuration| Some((phase(configuration)?, configuration)));
    let webhooks = webhooks.flat_map(|(phase, configuration)| {
        configuration["webhooks"].as_array().into_iter().flatten().map(move |webhook| (phase, webhook))
    });
    let made = webhooks.map(|(phase, webhook)| {
        let backend = Called {
            server: Arc::clone(server),
            path: text(&webhook["clientConfig"]["service"]["path"]),
            timeout: timeout(webhook),
        };
        of(text(&webhook["name"]), phase, webhook, Arc::new(backend))
    });
    made.collect()
}

/// The webhooks of these policies, with `settings` over those that they are deployed with.
///
/// # Errors
/// A policy says something that the simulated engine does not know.
pub fn webhooks(policies: &[Value], engine: &Arc<Engine>, settings: &Value) -> anyhow::Result<Vec<Webhook>> {
    policies.iter().map(|policy| webhook(policy, engine, settings)).collect()
}

fn webhook(policy: &Value, engine: &Arc<Engine>, over: &Value) -> anyhow::Result<Webhook> {
    let (name, spec) = (policy["metadata"]["name"].as_str().context("a policy has no name")?, &policy["spec"]);
    anyhow::ensure!(spec["mode"] == "protect", "{name}: only the mode protect is simulated");
    let mutating = spec["mutating"] == true;
    let mut settings = spec["settings"].clone();
    for (member, value) in over.as_object().into_iter().flatten() {
        settings[member] = value.clone();
    }
    let context = spec["contextAwareResources"].as_array().into_iter().flatten();
    let context = context.map(|resource| (text(&resource["apiVersion"]), text(&resource["kind"]))).collect();
    let backend = Deployed { engine: Arc::clone(engine), settings, mutating, context };
    let phase = if mutating { Phase::Mutating } else { Phase::Validating };
    of(format!("clusterwide-{name}.kubewarden.admission"), phase, spec, Arc::new(backend))
}

/// What a policy and a webhook of a configuration say in the same words.
fn of(name: String, phase: Phase, spec: &Value, backend: Arc<dyn Admission>) -> anyhow::Result<Webhook> {
    Ok(Webhook {
        phase,
        rules: spec["rules"].as_array().with_context(|| format!("{name} has no rules"))?.iter().map(rule).collect(),
        object_selector: spec["objectSelector"].clone(),
        namespace_selector: spec["namespaceSelector"].clone(),
        conditions: spec["matchConditions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(condition)
            .collect::<Result<_, _>>()?,
        failure_policy: match spec["failurePolicy"].as_str() {
            Some("Ignore") => FailurePolicy::Ignore,
            Some("Fail") | None => FailurePolicy::Fail,
            Some(other) => anyhow::bail!("{name}: there is no failurePolicy {other}"),
        },
        timeout: timeout(spec),
        backend,
        name,
    })
}

fn timeout(spec: &Value) -> Duration {
    Duration::from_secs(spec["timeoutSeconds"].as_u64().unwrap_or(10))
}

fn condition(condition: &Value) -> anyhow::Result<Condition> {
    Condition::new(&text(&condition["name"]), &text(&condition["expression"])).map_err(anyhow::Error::msg)
}

fn rule(rule: &Value) -> Rule {
    let texts = |member: &str| rule[member].as_array().into_iter().flatten().map(text).collect();
    Rule {
        api_groups: texts("apiGroups"),
        api_versions: texts("apiVersions"),
        resources: texts("resources"),
        operations: texts("operations"),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
