//! Creates.

use std::sync::Arc;

use serde_json::Value;

use super::{Write, agree, metadata, record_manager, require_name, text};
use crate::admission::{self, Operation};
use crate::clock::seconds;
use crate::codec;
use crate::plugins;
use crate::resource::Resource;
use crate::rules::{self, PROTECTED};
use crate::server::Inner;
use crate::status::Problem;
use crate::store::{Happened, Object, Store};

impl Write<'_> {
    /// `POST` of a new object.
    pub(crate) async fn create(&mut self) -> Result<Arc<Object>, Problem> {
        self.create_from(self.call.body.clone()).await
    }

    pub(super) async fn create_from(&mut self, body: Value) -> Result<Arc<Object>, Problem> {
        let (served, resource, rules) = (self.served(), self.resource(), self.rules);
        let mut object = codec::decode(served, rules.profile, body, self.call.field_validation()?, &mut self.warnings)?;
        let members = metadata(&mut object);
        if members.get("resourceVersion").and_then(Value::as_str).is_some_and(|version| !matches!(version, "" | "0")) {
            return Err(Problem::denied(500, "resourceVersion should not be set on objects to be created"));
        }
        for owned in PROTECTED.into_iter().chain(["managedFields"]) {
            members.remove(owned);
        }
        if resource.is_namespaced() {
            agree(members, "namespace", self.namespace())?;
        } else {
            members.remove("namespace");
        }
        require_name(resource, members)?;
        let given = text(&object["metadata"]["name"]);
        rules::default(resource, &mut object);
        {
            let inner = self.shared.lock();
            plugins::namespace_lifecycle(&inner.store, resource, self.namespace(), &given)?;
            plugins::admit(&inner.store, rules, resource, &mut object)?;
        }
        let options = self.options("CreateOptions");
        let webhooks = Arc::clone(&self.webhooks);
        let view = served.encode(object.clone());
        let attributes = self.attributes(Operation::Create, &given, Some(&view), None, &options);
        let patched = admission::mutate(&webhooks, &attributes, &mut self.warnings).await?;
        if let Some(patched) = patched {
            object = self.decode_again(patched)?;
        }
        rules::default(resource, &mut object);
        let name = self.complete_metadata(&mut object)?;
        rules.prepare_create(resource, &mut object);
        codec::tidy(resource, &mut object);
        let errors = rules.validate_create(resource, &object);
        if !errors.is_empty() {
            return Err(Problem::invalid(resource, &name, &errors));
        }
        plugins::validate(&self.shared.lock().store, rules, resource, &object)?;
        let view = served.encode(object.clone());
        let attributes = self.attributes(Operation::Create, &name, Some(&view), None, &options);
        admission::validate(&webhooks, &attributes, &mut self.warnings).await?;
        self.store_new(&name, object)
    }

    fn store_new(&self, name: &str, object: Value) -> Result<Arc<Object>, Problem> {
        let (resource, namespace) = (self.resource(), self.namespace());
        let store = |inner: &mut Inner| {
            if inner.store.table(resource).get(namespace, name).is_some() {
                return Err(Problem::already_exists(resource, name));
            }
            plugins::namespace_lifecycle(&inner.store, resource, namespace, name)?;
            plugins::validate(&inner.store, self.rules, resource, &object)?;
            if self.dry_run {
                return Ok(Store::preview(resource, object, inner.store.version));
            }
            if resource == Resource::Leases {
                let spec = &self.call.body["spec"];
                let manager = self.call.manager();
                inner.owners.note((namespace, name), (&Value::Null, &object["spec"]), spec, &manager);
            }
            Ok(inner.store.save(resource, Happened::Added, object))
        };
        self.shared.change(store)
    }

    /// Sets what the server sets on every new object, and returns the name.
    fn complete_metadata(&self, object: &mut Value) -> Result<String, Problem> {
        let (resource, namespace) = (self.resource(), self.namespace());
        let now = seconds(self.shared.now());
        let manager = self.call.manager();
        let version = self.served().api_version();
        let mut inner = self.shared.lock();
        let members = metadata(object);
        require_name(resource, members)?;
        for owned in PROTECTED {
            members.remove(owned);
        }
        let name = if let Some(name) = members.get("name").and_then(Value::as_str) {
            name.to_owned()
        } else {
            let prefix = members.get("generateName").and_then(Value::as_str).unwrap_or_default();
            inner.generate_name(resource, namespace, prefix)
        };
        members.insert("name".into(), name.as_str().into());
        if resource.is_namespaced() {
            members.insert("namespace".into(), namespace.into());
        }
        members.insert("uid".into(), inner.random.uid().into());
        members.insert("creationTimestamp".into(), now.clone());
        if resource.has_generation() {
            members.insert("generation".into(), 1.into());
        }
        record_manager(members, &manager, &version, None, &now);
        Ok(name)
    }
}
