//! Writes: from a request to a stored change.
//!
//! Stands for the handlers and the registry: decode, default, admit, prepare, validate, admit again, store
//! if nothing happened in between. Between the look at an object and its change nothing is locked, since
//! webhooks may ask the server; a change in between means another try, or a conflict where the request
//! names a version.

mod bind;
mod change;
mod create;
mod remove;
mod scale;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use statefulset_scheduling_core::field::{Error, Path};

use crate::admission::{Attributes, Operation, Webhook};
use crate::call::Call;
use crate::clock::seconds;
use crate::codec;
use crate::owners::Manager;
use crate::resource::{Resource, Served, Subresource};
use crate::rules::{self, Part, Rules};
use crate::select::{Labels, labels_of};
use crate::server::Shared;
use crate::status::Problem;
use crate::store::Object;

pub(crate) use remove::Deleted;
pub(crate) use scale::scale_of;

/// How often a write is tried when others are faster.
const TRIES: usize = 16;

/// A write that is being done.
pub(crate) struct Write<'a> {
    shared: &'a Shared,
    call: &'a Call,
    rules: Rules,
    webhooks: Arc<[Webhook]>,
    dry_run: bool,
    /// What the client is warned about.
    pub(crate) warnings: Vec<String>,
}

impl<'a> Write<'a> {
    pub(crate) fn new(shared: &'a Shared, call: &'a Call) -> Result<Self, Problem> {
        Ok(Self {
            shared,
            call,
            rules: shared.rules(),
            webhooks: shared.webhooks(),
            dry_run: call.dry_run()?,
            warnings: Vec::new(),
        })
    }

    fn served(&self) -> Served {
        self.call.target.served
    }

    fn resource(&self) -> Resource {
        self.served().resource
    }

    fn namespace(&self) -> &'a str {
        self.call.target.namespace.as_deref().unwrap_or_default()
    }

    /// The name in the path.
    fn name(&self) -> &'a str {
        self.call.target.name.as_deref().unwrap_or_default()
    }

    fn part(&self) -> Part {
        match self.call.target.subresource {
            Some(Subresource::Status) => Part::Status,
            Some(Subresource::Finalize) => Part::Finalize,
            _ => Part::Object,
        }
    }

    fn exists(&self) -> bool {
        self.shared.lock().store.table(self.resource()).get(self.namespace(), self.name()).is_some()
    }

    fn find(&self) -> Result<Arc<Object>, Problem> {
        self.shared.lock().store.find(self.resource(), self.namespace(), self.name()).cloned()
    }

    /// The options of another write, as admission sees them.
    fn options(&self, kind: &str) -> Value {
        let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
        for member in ["fieldManager", "fieldValidation"] {
            if let Some(text) = self.call.query.decoded(member) {
                options[member] = text.into();
            }
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    fn attributes<'b>(
        &self,
        operation: Operation,
        name: &'b str,
        object: Option<&'b Value>,
        old: Option<&'b Value>,
        options: &'b Value,
    ) -> Attributes<'b>
    where
        'a: 'b,
    {
        let uid = if self.webhooks.is_empty() { String::new() } else { self.shared.lock().reviews.uid() };
        Attributes {
            served: self.served(),
            subresource: self.call.target.subresource,
            kind: None,
            operation,
            namespace: self.namespace(),
            name,
            user: &self.call.user,
            object,
            old,
            options,
            dry_run: self.dry_run,
            uid,
            namespace_labels: self.namespace_labels(self.namespace(), object.or(old)),
        }
    }

    fn namespace_labels(&self, namespace: &str, object: Option<&Value>) -> Option<Labels> {
        if self.webhooks.is_empty() {
            return None;
        }
        if self.resource() == Resource::Namespaces {
            return object.map(|object| labels_of(&object["metadata"]));
        }
        if !self.resource().is_namespaced() {
            return None;
        }
        let found = self.shared.lock().store.value(Resource::Namespaces, "", namespace);
        Some(found.map(|found| labels_of(&found["metadata"])).unwrap_or_default())
    }

    /// Reads what a webhook made of an object.
    fn decode_again(&self, patched: Value) -> Result<Value, Problem> {
        let mut ignored = Vec::new();
        codec::decode(self.served(), self.rules.profile, patched, codec::FieldValidation::Ignore, &mut ignored)
            .map_err(|problem| Problem::internal(&problem.message))
    }

    /// Records who changes the object, if it is changed.
    fn note_manager(&self, before: &Value, after: &mut Value) {
        rules::copy(&before["metadata"], &mut after["metadata"], "managedFields");
        let manager = self.call.manager();
        if after == before && !manager.applies {
            return;
        }
        let now = seconds(self.shared.now());
        let version = self.served().api_version();
        record_manager(metadata(after), &manager, &version, self.call.target.subresource, &now);
    }
}

/// Checks the type of what is posted to an action.
fn check_action(call: &Call, version: &str, kind: &str) -> Result<(), Problem> {
    let body = &call.body;
    let sent = (body["apiVersion"].as_str().unwrap_or(version), body["kind"].as_str().unwrap_or(kind));
    if !body.is_object() || sent != (version, kind) {
        return Err(Problem::bad_request(format!("{version} {kind} was expected")));
    }
    let name = body["metadata"]["name"].as_str();
    if name.is_some_and(|name| Some(name) != call.target.name.as_deref()) {
        return Err(Problem::bad_request("the name in the URL does not match the name in the body"));
    }
    Ok(())
}

/// Refuses a change that is based on another version or meant for another object. Whether a version is named.
fn check_versions(
    resource: Resource,
    name: &str,
    before: &Value,
    wanted: &Map<String, Value>,
) -> Result<bool, Problem> {
    let named = |member: &str| wanted.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
    let current = |member: &str| before["metadata"][member].as_str().unwrap_or_default();
    if let Some(uid) = named("uid").filter(|uid| *uid != current("uid")) {
        let found = current("uid");
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
        return Err(Problem::conflict(resource, name, &why));
    }
    match named("resourceVersion") {
        Some(version) if version != current("resourceVersion") => Err(Problem::stale(resource, name)),
        // A patch that does not touch the version carries the current one and is tried again.
        version => Ok(version.is_some()),
    }
}

/// Notes a manager that is not noted yet. Which fields are its, is not recorded.
fn record_manager(
    metadata: &mut Map<String, Value>,
    manager: &Manager,
    version: &str,
    subresource: Option<Subresource>,
    now: &Value,
) {
    let operation = if manager.applies { "Apply" } else { "Update" };
    let mut entry = json!({ "manager": manager.name, "operation": operation, "apiVersion": version });
    if let Some(subresource) = subresource {
        entry["subresource"] = subresource.as_str().into();
    }
    let list = metadata.entry("managedFields").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    let members = ["manager", "operation", "apiVersion", "subresource"];
    if !list.iter().any(|known| members.iter().all(|member| known.get(*member) == entry.get(*member))) {
        entry["time"] = now.clone();
        // Clients look into it without asking whether it is there.
        entry["fieldsType"] = "FieldsV1".into();
        entry["fieldsV1"] = json!({});
        list.push(entry);
    }
}

/// The metadata, made if there is none.
pub(crate) fn metadata(value: &mut Value) -> &mut Map<String, Value> {
    let metadata = &mut value["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("it was made an object just now")
}

fn require_name(resource: Resource, metadata: &Map<String, Value>) -> Result<(), Problem> {
    let is_set = |member: &str| metadata.get(member).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if is_set("name") || is_set("generateName") {
        return Ok(());
    }
    let error = Error::required(&Path::new("metadata").child("name"), "name or generateName is required");
    Err(Problem::invalid(resource, "", &error.into()))
}

/// Sets a member that the path tells, unless the body tells something else.
fn agree(metadata: &mut Map<String, Value>, member: &str, path: &str) -> Result<(), Problem> {
    match metadata.get(member).and_then(Value::as_str) {
        Some(body) if body != path && !body.is_empty() => Err(Problem::bad_request(format!(
            "the {member} of the object ({body}) does not match the {member} on the URL ({path})"
        ))),
        _ => {
            metadata.insert(member.into(), path.into());
            Ok(())
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
