//! Bindings of pods to nodes.

use std::sync::Arc;

use serde_json::{Value, json};
use statefulset_scheduling_core::field::{Error, Path};

use super::{Write, check_action, text};
use crate::admission::{self, Operation};
use crate::clock::seconds;
use crate::deletion;
use crate::resource::{Resource, Subresource};
use crate::server::Inner;
use crate::status::Problem;
use crate::store::Happened;

impl Write<'_> {
    /// `POST` of a binding.
    pub(crate) async fn bind(&mut self) -> Result<(), Problem> {
        let body = &self.call.body;
        check_action(self.call, "v1", "Binding")?;
        let (resource, name) = (self.resource(), self.name());
        let node = text(&body["target"]["name"]);
        if node.is_empty() || body["target"]["kind"].as_str().is_some_and(|kind| !matches!(kind, "" | "Node")) {
            let path = Path::new("target");
            let error = Error::required(&path.child("name"), "a binding names a Node");
            return Err(Problem::invalid(resource, name, &error.into()));
        }
        let options = self.options("CreateOptions");
        let webhooks = Arc::clone(&self.webhooks);
        let mut attributes = self.attributes(Operation::Create, name, Some(body), None, &options);
        attributes.kind = Some(("", "v1", "Binding"));
        admission::mutate(&webhooks, &attributes, &mut self.warnings).await?;
        admission::validate(&webhooks, &attributes, &mut self.warnings).await?;
        let now = seconds(self.shared.now());
        let store = |inner: &mut Inner| {
            let mut pod = inner.store.find(resource, self.namespace(), name)?.value(resource);
            check_bindable(name, &pod, body)?;
            pod["spec"]["nodeName"] = node.as_str().into();
            for member in ["annotations", "labels"] {
                for (key, value) in body["metadata"][member].as_object().into_iter().flatten() {
                    pod["metadata"][member][key] = value.clone();
                }
            }
            deletion::set_condition(
                &mut pod,
                json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": now }),
            );
            if !self.dry_run {
                inner.store.save(resource, Happened::Modified, pod);
            }
            Ok(())
        };
        self.shared.change(store)
    }
}

fn check_bindable(name: &str, pod: &Value, binding: &Value) -> Result<(), Problem> {
    let conflict = |why: String| Err(Problem::conflict_on(Resource::Pods, Subresource::Binding, name, &why));
    let current = pod["metadata"]["uid"].as_str().unwrap_or_default();
    if let Some(wanted) = binding["metadata"]["uid"].as_str().filter(|wanted| *wanted != current) {
        return conflict(format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {current}"));
    }
    if pod["metadata"]["deletionTimestamp"].is_string() {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
        return conflict(format!("pod {name} is already assigned to node \"{node}\""));
    }
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    Ok(())
}
