//! The scale of a StatefulSet.
//!
//! Left out: the scale of anything else, and a selector's expressions in it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use statefulset_scheduling_core::field::{BadValue, Error, Path};

use super::change::{Ready, apply_patch};
use super::{TRIES, Write, check_versions, metadata, text};
use crate::admission::{self, Operation};
use crate::resource::Resource;
use crate::rules::Part;
use crate::status::Problem;

impl Write<'_> {
    /// The scale of a StatefulSet, changed by `PUT` or `PATCH`.
    pub(crate) async fn scale(&mut self) -> Result<Value, Problem> {
        let (served, resource) = (self.served(), self.resource());
        let (kind, body) = (self.call.patch, &self.call.body);
        let options = self.options(if kind.is_some() { "PatchOptions" } else { "UpdateOptions" });
        let webhooks = Arc::clone(&self.webhooks);
        for _ in 0..TRIES {
            let warned = self.warnings.len();
            let old = self.find()?;
            let before = old.value(resource);
            let scale_before = scale_of(&before);
            let edited = match kind {
                Some(_) => apply_patch(kind, scale_before.clone(), body)?,
                None => body.clone(),
            };
            let pinned = check_versions(resource, self.name(), &before, metadata(&mut edited.clone()))?;
            let mut scale = scale_before.clone();
            scale["spec"]["replicas"] = read_replicas(self.name(), &edited)?;
            let mut attributes =
                self.attributes(Operation::Update, self.name(), Some(&scale), Some(&scale_before), &options);
            attributes.kind = Some(("autoscaling", "v1", "Scale"));
            let patched = admission::mutate(&webhooks, &attributes, &mut self.warnings).await?;
            let scale = patched.unwrap_or(scale);
            let mut attributes =
                self.attributes(Operation::Update, self.name(), Some(&scale), Some(&scale_before), &options);
            attributes.kind = Some(("autoscaling", "v1", "Scale"));
            admission::validate(&webhooks, &attributes, &mut self.warnings).await?;
            let mut after = before.clone();
            after["spec"]["replicas"] = read_replicas(self.name(), &scale)?;
            if after["spec"] != before["spec"] {
                let generation = before["metadata"]["generation"].as_u64().unwrap_or_default() + 1;
                after["metadata"]["generation"] = generation.into();
                self.note_manager(&before, &mut after);
            }
            let errors = self.rules.validate_update(resource, Part::Object, &before, &after);
            if !errors.is_empty() {
                return Err(Problem::invalid(resource, self.name(), &errors));
            }
            if let Some(done) = self.commit(Ready { served, old: &old, before, after, pinned, applied: None })? {
                return Ok(scale_of(&done.value(resource)));
            }
            self.warnings.truncate(warned);
        }
        Err(Problem::stale(resource, self.name()))
    }
}

/// The scale of an object that has replicas.
pub(crate) fn scale_of(object: &Value) -> Value {
    let from = &object["metadata"];
    let mut metadata = Map::new();
    for member in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = from.get(member) {
            metadata.insert(member.to_owned(), value.clone());
        }
    }
    let labels = object["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let selector: Vec<_> = labels.map(|(key, value)| format!("{key}={}", text(value))).collect();
    let count = |value: &Value| Value::from(value.as_i64().unwrap_or_default());
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": { "replicas": count(&object["spec"]["replicas"]) },
        "status": { "replicas": count(&object["status"]["replicas"]), "selector": selector.join(",") },
    })
}

fn read_replicas(name: &str, scale: &Value) -> Result<Value, Problem> {
    let replicas = &scale["spec"]["replicas"];
    match replicas.as_i64().map(i32::try_from) {
        Some(Ok(count)) if count >= 0 => Ok(count.into()),
        Some(Ok(count)) => {
            let path = Path::new("spec").child("replicas");
            let error = Error::invalid(&path, BadValue::Int(count.into()), "must be greater than or equal to 0");
            let mut problem = Problem::invalid(Resource::StatefulSets, name, &error.into());
            problem.message = problem.message.replacen("StatefulSet.apps", "Scale.autoscaling", 1);
            Err(problem)
        }
        None if replicas.is_null() => Ok(0.into()),
        _ => Err(Problem::bad_request(format!("Scale cannot be handled as a Scale: spec.replicas: {replicas}"))),
    }
}
