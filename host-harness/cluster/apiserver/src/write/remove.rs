//! Deletes, deletes of collections, and evictions.
//!
//! Left out: disruption budgets, which a real eviction asks.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{TRIES, Write, check_action, text};
use crate::admission::{self, Operation};
use crate::deletion::{self, Plan};
use crate::plugins;
use crate::server::Inner;
use crate::status::Problem;
use crate::store::{Happened, Object, Store};

/// What a delete did.
pub(crate) enum Deleted {
    /// The object is gone; its last version.
    Gone(Arc<Object>),
    /// The object waits, for a finalizer or its node.
    Waits(Arc<Object>),
}

/// Who is asked before a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Webhooks,
    /// The webhooks, without the object's name, as in the deletion of a collection.
    WebhooksNamelessly,
    /// Nobody: an eviction.
    Nobody,
}

impl Write<'_> {
    /// `DELETE` of one object.
    pub(crate) async fn delete(&mut self) -> Result<Deleted, Problem> {
        let options = self.delete_options()?;
        plugins::may_delete(self.resource(), self.name())?;
        self.delete_one(self.name(), self.namespace(), &options, Asked::Webhooks).await
    }

    /// `DELETE` of a collection: one object after the other. What was there comes back.
    pub(crate) async fn delete_collection(&mut self) -> Result<Vec<Arc<Object>>, Problem> {
        let options = self.delete_options()?;
        let selector = self.call.selector()?;
        let objects = self.shared.lock().store.table(self.resource()).select(&selector);
        for object in &objects {
            let value = object.value(self.resource());
            let (name, namespace) = (text(&value["metadata"]["name"]), text(&value["metadata"]["namespace"]));
            plugins::may_delete(self.resource(), &name)?;
            match self.delete_one(&name, &namespace, &options, Asked::WebhooksNamelessly).await {
                Ok(_) => {}
                Err(problem) if problem.code == 404 => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(objects)
    }

    /// `POST` of an eviction.
    pub(crate) async fn evict(&mut self) -> Result<(), Problem> {
        let body = &self.call.body;
        check_action(self.call, "policy/v1", "Eviction")?;
        self.find()?;
        let options = self.options("CreateOptions");
        let webhooks = Arc::clone(&self.webhooks);
        let mut attributes = self.attributes(Operation::Create, self.name(), Some(body), None, &options);
        attributes.kind = Some(("policy", "v1", "Eviction"));
        admission::mutate(&webhooks, &attributes, &mut self.warnings).await?;
        admission::validate(&webhooks, &attributes, &mut self.warnings).await?;
        let options = body["deleteOptions"].clone();
        deletion::check_options(&options)?;
        self.delete_one(self.name(), self.namespace(), &options, Asked::Nobody).await.map(drop)
    }

    async fn delete_one(
        &mut self,
        name: &str,
        namespace: &str,
        options: &Value,
        asked: Asked,
    ) -> Result<Deleted, Problem> {
        let (served, resource) = (self.served(), self.resource());
        let webhooks = Arc::clone(&self.webhooks);
        for _ in 0..TRIES {
            let warned = self.warnings.len();
            let old = self.shared.lock().store.find(resource, namespace, name)?.clone();
            let mut value = old.value(resource);
            deletion::check_preconditions(resource, name, &value, options)?;
            if asked == Asked::Nobody {
                if !value["metadata"]["deletionTimestamp"].is_string() {
                    deletion::mark_evicted(&mut value, self.shared.now());
                }
            } else {
                let view = served.encode(value.clone());
                let told = if asked == Asked::Webhooks { name } else { "" };
                let mut attributes = self.attributes(Operation::Delete, told, None, Some(&view), options);
                attributes.namespace = namespace;
                attributes.namespace_labels = self.namespace_labels(namespace, Some(&view));
                admission::mutate(&webhooks, &attributes, &mut self.warnings).await?;
                admission::validate(&webhooks, &attributes, &mut self.warnings).await?;
            }
            let plan = deletion::plan(resource, &value, options, self.shared.now());
            let store = |inner: &mut Inner| {
                if inner.store.find(resource, namespace, name)?.version != old.version {
                    return Ok(None);
                }
                Ok(Some(match plan {
                    Plan::Keep => Deleted::Waits(Arc::clone(&old)),
                    Plan::Mark(after) if self.dry_run => Deleted::Waits(Store::preview(resource, after, old.version)),
                    Plan::Mark(after) => Deleted::Waits(inner.store.save(resource, Happened::Modified, after)),
                    Plan::Remove(_) if self.dry_run => Deleted::Gone(Arc::clone(&old)),
                    Plan::Remove(last) => Deleted::Gone(inner.store.save(resource, Happened::Deleted, last)),
                }))
            };
            if let Some(done) = self.shared.change(store)? {
                return Ok(done);
            }
            self.warnings.truncate(warned);
        }
        Err(Problem::stale(resource, name))
    }

    /// The options of a delete, from the body and the query.
    fn delete_options(&self) -> Result<Value, Problem> {
        let mut options = if self.call.body.is_object() { self.call.body.clone() } else { json!({}) };
        if let Some(policy) = self.call.query.get("propagationPolicy") {
            options["propagationPolicy"] = policy.into();
        }
        if let Some(seconds) = self.call.query.get("gracePeriodSeconds").and_then(|it| it.parse::<i64>().ok()) {
            options["gracePeriodSeconds"] = seconds.into();
        }
        deletion::check_options(&options)?;
        options["kind"] = "DeleteOptions".into();
        options["apiVersion"] = "meta.k8s.io/v1".into();
        Ok(options)
    }
}
