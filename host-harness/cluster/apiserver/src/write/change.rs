//! Updates and patches.

use std::sync::Arc;

use serde_json::{Value, json};
use statefulset_scheduling_core::field::{BadValue, Error, Path};

use super::{TRIES, Write, agree, check_versions, metadata};
use crate::admission::{self, Operation};
use crate::call::PatchKind;
use crate::codec;
use crate::deletion;
use crate::patch;
use crate::resource::{Resource, Served, Subresource};
use crate::rules::{self, Part, keep_metadata};
use crate::server::Inner;
use crate::status::Problem;
use crate::store::{Happened, Object, Store};
use crate::strategic::{self, Flavor};

/// A change that is ready to be stored.
pub(super) struct Ready<'a> {
    pub(super) served: Served,
    pub(super) old: &'a Arc<Object>,
    pub(super) before: Value,
    pub(super) after: Value,
    /// Whether the request names the version that it is based on.
    pub(super) pinned: bool,
    /// What an apply of a Lease sets.
    pub(super) applied: Option<&'a Value>,
}

impl Write<'_> {
    /// `PUT`; whether the object was created by it.
    pub(crate) async fn update(&mut self) -> Result<(Arc<Object>, bool), Problem> {
        let part = self.part();
        let pinned = |body: &Value| body["metadata"]["resourceVersion"].as_str().is_some_and(|it| !it.is_empty());
        if part == Part::Object && self.resource().needs_version() && !pinned(&self.call.body) {
            let path = Path::new("metadata").child("resourceVersion");
            let error = Error::invalid(&path, BadValue::Int(0), "must be specified for an update");
            return Err(Problem::invalid(self.resource(), self.name(), &error.into()));
        }
        if self.resource().creates_on_update() && !self.exists() {
            let mut body = self.call.body.clone();
            agree(metadata(&mut body), "name", self.name())?;
            return Ok((self.create_from(body).await?, true));
        }
        let body = &self.call.body;
        self.change(part, |_| Ok(body.clone())).await.map(|object| (object, false))
    }

    /// `PATCH`; whether the object was created by it.
    pub(crate) async fn patch(&mut self) -> Result<(Arc<Object>, bool), Problem> {
        let (kind, body) = (self.call.patch, &self.call.body);
        if kind == Some(PatchKind::Apply) && self.call.target.subresource.is_none() && !self.exists() {
            let mut body = body.clone();
            strategic_clean(&mut body);
            agree(metadata(&mut body), "name", self.name())?;
            return Ok((self.create_from(body).await?, true));
        }
        if kind == Some(PatchKind::Apply) {
            self.check_apply()?;
        }
        self.change(self.part(), |current| apply_patch(kind, current, body)).await.map(|object| (object, false))
    }

    fn check_apply(&self) -> Result<(), Problem> {
        let (version, kind) = (&self.call.body["apiVersion"], &self.call.body["kind"]);
        if self.call.target.subresource != Some(Subresource::Scale)
            && (*version != self.served().api_version() || *kind != self.resource().kind())
        {
            return Err(Problem::bad_request(format!(
                "an apply must have the type of its object, not {version} {kind}"
            )));
        }
        if self.call.query.get("fieldManager").is_none() {
            return Err(Problem::bad_request(
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
            ));
        }
        Ok(())
    }

    /// Changes an object. `edit` makes of what the client sees what it wants.
    async fn change(
        &mut self,
        part: Part,
        edit: impl Fn(Value) -> Result<Value, Problem>,
    ) -> Result<Arc<Object>, Problem> {
        let (served, resource, rules) = (self.served(), self.resource(), self.rules);
        let options = self.options(if self.call.patch.is_some() { "PatchOptions" } else { "UpdateOptions" });
        let webhooks = Arc::clone(&self.webhooks);
        for _ in 0..TRIES {
            let warned = self.warnings.len();
            let old = self.find()?;
            let before = old.value(resource);
            let view_before = served.encode(before.clone());
            let edited = edit(view_before.clone())?;
            let validation = self.call.field_validation()?;
            let mut after = codec::decode(served, rules.profile, edited, validation, &mut self.warnings)?;
            let members = metadata(&mut after);
            agree(members, "name", self.name())?;
            if resource.is_namespaced() {
                agree(members, "namespace", self.namespace())?;
            }
            let pinned = check_versions(resource, self.name(), &before, members)?;
            keep_metadata(&before["metadata"], members);
            rules::default(resource, &mut after);
            let view = served.encode(after.clone());
            let attributes = self.attributes(Operation::Update, self.name(), Some(&view), Some(&view_before), &options);
            if let Some(patched) = admission::mutate(&webhooks, &attributes, &mut self.warnings).await? {
                after = self.decode_again(patched)?;
                rules::default(resource, &mut after);
            }
            keep_metadata(&before["metadata"], metadata(&mut after));
            rules.prepare_update(resource, part, &before, &mut after);
            if resource.has_generation() && after["spec"] != before["spec"] {
                let generation = before["metadata"]["generation"].as_u64().unwrap_or_default() + 1;
                after["metadata"]["generation"] = generation.into();
            }
            self.note_manager(&before, &mut after);
            codec::tidy(resource, &mut after);
            let errors = rules.validate_update(resource, part, &before, &after);
            if !errors.is_empty() {
                return Err(Problem::invalid(resource, self.name(), &errors));
            }
            let view = served.encode(after.clone());
            let attributes = self.attributes(Operation::Update, self.name(), Some(&view), Some(&view_before), &options);
            admission::validate(&webhooks, &attributes, &mut self.warnings).await?;
            let applied = Some(&self.call.body["spec"]);
            if let Some(done) = self.commit(Ready { served, old: &old, before, after, pinned, applied })? {
                return Ok(done);
            }
            self.warnings.truncate(warned);
        }
        Err(Problem::stale(resource, self.name()))
    }

    /// Stores a change, unless the object is no longer what it was.
    pub(super) fn commit(&self, ready: Ready<'_>) -> Result<Option<Arc<Object>>, Problem> {
        let Ready { served, old, before, after, pinned, applied } = ready;
        let resource = served.resource;
        let key = (self.namespace(), self.name());
        let manager = self.call.manager();
        let store = |inner: &mut Inner| {
            let current = inner.store.find(resource, key.0, key.1)?;
            if current.version != old.version {
                return if pinned { Err(Problem::stale(resource, key.1)) } else { Ok(None) };
            }
            if let Some(spec) = applied.filter(|_| resource == Resource::Leases && !self.dry_run) {
                if manager.applies && !self.call.forces() {
                    inner.owners.check(key, &before["spec"], spec, &manager)?;
                }
                inner.owners.note(key, (&before["spec"], &after["spec"]), spec, &manager);
            }
            if after == before {
                return Ok(Some(Arc::clone(old)));
            }
            if self.dry_run {
                return Ok(Some(Store::preview(resource, after, old.version)));
            }
            let finished = deletion::is_finished(resource, &before, &after);
            let happened = if finished { Happened::Deleted } else { Happened::Modified };
            Ok(Some(inner.store.save(resource, happened, after)))
        };
        self.shared.change(store)
    }
}

pub(super) fn apply_patch(kind: Option<PatchKind>, mut current: Value, body: &Value) -> Result<Value, Problem> {
    let named = match kind {
        // Whether the version is tested is known only to the patch.
        Some(PatchKind::Json) => body.to_string().contains("/metadata/resourceVersion"),
        _ => body["metadata"]["resourceVersion"].is_string(),
    };
    match kind {
        Some(PatchKind::Json) => patch::apply(&mut current, body)?,
        Some(PatchKind::Merge) => patch::merge(&mut current, body),
        Some(PatchKind::Strategic) => strategic::merge(&mut current, body, Flavor::Strategic),
        Some(PatchKind::Apply) => strategic::merge(&mut current, body, Flavor::Apply),
        None => return Err(Problem::bad_request("no patch")),
    }
    if !current.is_object() {
        return Err(Problem::bad_request("an object was expected"));
    }
    if !named {
        metadata(&mut current).remove("resourceVersion");
    }
    Ok(current)
}

/// An apply that creates has nothing to merge with: nulls are absent values.
fn strategic_clean(body: &mut Value) {
    let mut clean = json!({});
    strategic::merge(&mut clean, body, Flavor::Apply);
    *body = clean;
}
