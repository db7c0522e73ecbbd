//! The webhooks that the deployed policies make.
//!
//! Stands for Kubewarden's controller, which turns each ClusterAdmissionPolicy into a webhook
//! configuration. Left out: policy groups and the policy server's own deployment.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cluster_apiserver::{Condition, FailurePolicy, Phase, Rule, Webhook};
use serde_json::Value;

use crate::engine::{Deployed, Engine};

/// Where the policies stand in the project.
pub const POLICIES: &str = "deploy/kubewarden/policies.yaml";

/// Reads the ClusterAdmissionPolicies of a manifest.
///
/// # Errors
/// The file cannot be read, or is no YAML.
pub fn read(file: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).with_context(|| file.display().to_string())?;
    Ok(documents.into_iter().filter(|document| document["kind"] == "ClusterAdmissionPolicy").collect())
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
    Ok(Webhook {
        name: format!("clusterwide-{name}.kubewarden.admission"),
        phase: if mutating { Phase::Mutating } else { Phase::Validating },
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
        timeout: Duration::from_secs(spec["timeoutSeconds"].as_u64().unwrap_or(10)),
        backend: Arc::new(backend),
    })
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
