//! The admission engine: answers webhooks with the policy module.
//!
//! Stands for Kubewarden's policy server: a fresh instance for each request, the returned object taken as
//! the new one, a guest that fails counted as a denial, and `get_resource` read from the API server with
//! field masks. Left out: its cache (the policy reads past it), audits, monitor mode, and HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use cluster_apiserver::{Admission, Answer, Phase, WebhookError};
use futures::future::BoxFuture;
use host_harness::module::{Host, HostCall, Policy};
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

/// The user that the engine reads the cluster as.
pub const USER: &str = "system:serviceaccount:kubewarden:policy-server";

/// Whether the engine answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Health {
    /// It does.
    #[default]
    Up = 0,
    /// Nothing can be reached.
    Down = 1,
    /// It takes requests and never answers them.
    Hanging = 2,
    /// The module traps.
    Failing = 3,
}

/// The engine: one for all policies, as a policy server is.
pub struct Engine {
    policy: Arc<Policy>,
    client: kube::Client,
    health: AtomicU8,
    evaluations: AtomicU64,
}

impl Engine {
    /// An engine that runs this module, and reads the cluster through this client.
    pub fn new(policy: Arc<Policy>, client: kube::Client) -> Self {
        Self { policy, client, health: AtomicU8::default(), evaluations: AtomicU64::default() }
    }

    /// Sets whether it answers from now on.
    pub fn set_health(&self, health: Health) {
        self.health.store(health as u8, Ordering::Release);
    }

    /// How many requests it evaluated.
    pub fn evaluations(&self) -> u64 {
        self.evaluations.load(Ordering::Acquire)
    }

    fn health(&self) -> Health {
        match self.health.load(Ordering::Acquire) {
            0 => Health::Up,
            1 => Health::Down,
            2 => Health::Hanging,
            _ => Health::Failing,
        }
    }
}

/// One deployed policy.
pub struct Deployed {
    /// The engine it is deployed on.
    pub engine: Arc<Engine>,
    /// Its settings.
    pub settings: Value,
    /// Whether it may change objects.
    pub mutating: bool,
    /// The `apiVersion` and `kind` of what it may read.
    pub context: Vec<(String, String)>,
}

impl Admission for Deployed {
    fn review(&self, request: Value, _: Phase) -> BoxFuture<'_, Result<Answer, WebhookError>> {
        Box::pin(async move {
            match self.engine.health() {
                Health::Up | Health::Failing => {}
                Health::Down => return Err(WebhookError::Failed("dial tcp: connect: connection refused".into())),
                Health::Hanging => return std::future::pending().await,
            }
            self.engine.evaluations.fetch_add(1, Ordering::AcqRel);
            // An operation that the guest does not have fails in it, as everything does in one that is broken.
            let operation = if self.engine.health() == Health::Failing { "fail" } else { "validate" };
            let payload = json!({ "request": request, "settings": self.settings });
            let host = host(self.engine.client.clone(), self.context.clone());
            let policy = Arc::clone(&self.engine.policy);
            let called = move || policy.call_with(operation, payload.to_string().as_bytes(), host);
            let answered = tokio::task::spawn_blocking(called).await;
            let answered = answered.map_err(|error| WebhookError::Failed(error.to_string()))?;
            let answered = answered.map_err(|error| error.to_string());
            let answered = answered.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
            Ok(match answered {
                Ok(answer) => self.answer(&request, &answer),
                Err(_) => Answer::deny(500, "internal server error: Guest call failure"),
            })
        })
    }
}

impl Deployed {
    /// The engine's answer for the guest's.
    fn answer(&self, request: &Value, guest: &Value) -> Answer {
        let text = |member: &str| guest[member].as_str().unwrap_or_default().to_owned();
        let warnings = guest["warnings"].as_array().into_iter().flatten();
        let warnings: Vec<_> = warnings.filter_map(Value::as_str).map(str::to_owned).collect();
        if guest["accepted"] != true {
            let code = guest["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(400);
            return Answer { warnings, ..Answer::deny(code, text("message")) };
        }
        let patched =
            Some(&guest["mutated_object"]).filter(|object| !object.is_null() && **object != request["object"]);
        if patched.is_some() && (!self.mutating || request["operation"] == "DELETE") {
            let why =
                "The policy attempted to mutate the request, but it is currently configured to not allow mutations";
            return Answer::deny(500, why);
        }
        Answer { warnings, patched: patched.cloned(), ..Answer::allow() }
    }
}

/// What the guest may ask its host.
fn host(client: kube::Client, context: Vec<(String, String)>) -> Arc<Host> {
    let runtime = Handle::current();
    Arc::new(move |call: &HostCall<'_>| {
        if (call.binding, call.namespace, call.operation) != ("kubewarden", "kubernetes", "get_resource") {
            return Err(format!("unknown operation: {}/{}/{}", call.binding, call.namespace, call.operation));
        }
        let asked: Value = serde_json::from_slice(call.payload).map_err(|error| error.to_string())?;
        runtime.block_on(get_resource(&client, &context, &asked)).map(|object| object.to_string().into_bytes())
    })
}

async fn get_resource(client: &kube::Client, context: &[(String, String)], asked: &Value) -> Result<Value, String> {
    let text = |member: &str| asked[member].as_str().unwrap_or_default();
    let (api_version, kind, name) = (text("api_version"), text("kind"), text("name"));
    if !context.iter().any(|(version, of)| version == api_version && of == kind) {
        return Err(format!("Policy has not been granted access to Kubernetes {api_version}/{kind} resources"));
    }
    let resource = ApiResource::erase::<StatefulSet>(&());
    if (resource.api_version.as_str(), resource.kind.as_str()) != (api_version, kind) {
        return Err(format!("error finding resource {api_version}/{kind}: not simulated"));
    }
    let namespace = asked["namespace"].as_str();
    let api: kube::Api<DynamicObject> = kube::Api::namespaced_with(client.clone(), namespace.unwrap_or(""), &resource);
    match api.get_opt(name).await {
        Ok(Some(object)) => {
            let mut object = serde_json::to_value(object).map_err(|error| error.to_string())?;
            if let Some(masks) = asked["field_masks"].as_array() {
                object = masked(&object, masks.iter().filter_map(Value::as_str));
            }
            Ok(object)
        }
        Ok(None) => Err(format!("Cannot find {api_version}/{kind} named '{name}' inside of namespace '{namespace:?}'")),
        Err(error) => Err(error.to_string()),
    }
}

/// Only metadata, apiVersion, kind, and what the masks name.
fn masked<'a>(object: &Value, masks: impl Iterator<Item = &'a str>) -> Value {
    let mut kept = json!({});
    for member in ["apiVersion", "kind", "metadata"] {
        if let Some(value) = object.get(member) {
            kept[member] = value.clone();
        }
    }
    for mask in masks {
        let path: Vec<_> = mask.split('.').collect();
        if let Some(value) = path.iter().try_fold(object, |value, member| value.get(member)) {
            let mut place = &mut kept;
            for member in path {
                let map = if place.is_object() { place } else { continue };
                place = map
                    .as_object_mut()
                    .map_or_else(|| unreachable!(), |map| map.entry(member).or_insert(json!(Map::new())));
            }
            *place = value.clone();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_keeps_metadata_and_what_it_names() {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"},
            "spec": {"replicas": 3, "template": {"spec": {}}, "ordinals": {"start": 2}}, "status": {"replicas": 1},
        });
        let kept = masked(&object, ["spec.replicas", "spec.ordinals.start", "spec.scheduling"].into_iter());
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"},
            "spec": {"replicas": 3, "ordinals": {"start": 2}},
        });
        assert_eq!(kept, expected);
    }
}
