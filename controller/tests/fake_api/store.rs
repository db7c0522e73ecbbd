//! The objects, their versions, and the history from which watches are served.
//!
//! Objects are kept as the bytes that are sent, so that a list copies and parses nothing.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use axum::body::Bytes;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::resource::Resource;
use super::select::Selector;
use super::status::Problem;

/// Changes that a resource remembers; a watch that falls further behind has to list again.
const HISTORY: usize = 250_000;

/// Lists of which later pages can still be had.
const PAGED_LISTS: usize = 16;

/// What the admission plugin puts on every PodGroup.
pub(crate) const PROTECTION: &str = "scheduling.k8s.io/podgroup-protection";

/// One version of an object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) labels: HashMap<String, String>,
    pub(crate) version: u64,
    /// Without `apiVersion` and `kind`, which the items of a list do not have.
    json: Bytes,
}

/// How much of an object is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
}

impl Object {
    /// Freezes a value whose metadata is complete but for its version.
    fn seal(mut value: Value, version: u64) -> Arc<Self> {
        if let Some(fields) = value.as_object_mut() {
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        value["metadata"]["resourceVersion"] = version.to_string().into();
        let json = serde_json::to_vec(&value).expect("a JSON value can be written").into();
        let metadata = &value["metadata"];
        let labels = metadata["labels"].as_object().into_iter().flatten();
        Arc::new(Self {
            namespace: text(metadata, "namespace"),
            name: text(metadata, "name"),
            labels: labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().into())).collect(),
            version,
            json,
        })
    }

    /// The object as a value, without its type.
    fn untyped(&self) -> Value {
        serde_json::from_slice(&self.json).expect("what was written can be read")
    }

    /// The object as a value, as a get shows it.
    pub(crate) fn value(&self, resource: Resource) -> Value {
        let mut value = self.untyped();
        set_types(&mut value, resource);
        value
    }

    /// Writes the object with its type.
    pub(crate) fn write(&self, resource: Resource, form: Form, out: &mut Vec<u8>) {
        if form == Form::Metadata {
            return self.write_metadata(out);
        }
        let (api_version, kind) = resource.types();
        out.extend_from_slice(format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","#).as_bytes());
        // The object has metadata at least, so a member follows the brace that is left out.
        out.extend_from_slice(&self.json[1..]);
    }

    /// Writes the object as an item of a list.
    pub(crate) fn write_item(&self, form: Form, out: &mut Vec<u8>) {
        match form {
            Form::Whole => out.extend_from_slice(&self.json),
            Form::Metadata => self.write_metadata(out),
        }
    }

    fn write_metadata(&self, out: &mut Vec<u8>) {
        #[derive(Deserialize)]
        struct Partial<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
        }
        let partial: Partial<'_> = serde_json::from_slice(&self.json).expect("every object has metadata");
        out.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#);
        out.extend_from_slice(partial.metadata.get().as_bytes());
        out.push(b'}');
    }

    /// The length of the object's text.
    pub(crate) fn len(&self) -> usize {
        self.json.len()
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Added,
    Modified,
    Deleted,
}

/// One entry of the history.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    happened: Happened,
    pub(crate) object: Arc<Object>,
    before: Option<Arc<Object>>,
}

impl Change {
    /// What a watch with this selector sees of it: an object that starts to match is added to its
    /// view, and one that stops is deleted from it.
    pub(crate) fn seen_by(&self, selector: &Selector) -> Option<Happened> {
        let before = self.before.as_ref().is_some_and(|object| selector.matches(object));
        let after = self.happened != Happened::Deleted && selector.matches(&self.object);
        match (before, after) {
            (false, true) => Some(Happened::Added),
            (true, true) => Some(Happened::Modified),
            (true, false) => Some(Happened::Deleted),
            (false, false) => None,
        }
    }
}

/// Everything about one resource.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// By namespace and name, joined by a slash.
    objects: BTreeMap<String, Arc<Object>>,
    /// Rising by version.
    history: VecDeque<Change>,
    /// Watches from before this version cannot be served.
    pub(crate) expired: u64,
    /// Whether events are kept back.
    pub(crate) held: bool,
    /// How often open watches were cut, ended, and sent a bookmark.
    pub(crate) cuts: u64,
    pub(crate) ends: u64,
    pub(crate) bookmarks: u64,
    /// Wakes the watches.
    pub(crate) changed: watch::Sender<()>,
}

impl Table {
    /// The changes after `version`, oldest first.
    pub(crate) fn after(&self, version: u64) -> impl Iterator<Item = &Change> {
        let start = self.history.partition_point(|change| change.object.version <= version);
        self.history.range(start..)
    }

    /// The matching objects in the order of their names.
    pub(crate) fn select(&self, selector: &Selector) -> Vec<Arc<Object>> {
        let prefix = selector.namespace().map(|namespace| format!("{namespace}/"));
        let start = prefix.as_deref().map_or(Bound::Unbounded, Bound::Included);
        self.objects
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(|(key, _)| prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix)))
            .filter(|(_, object)| selector.matches(object))
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.objects.get(&key(namespace, name))
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values()
    }

    pub(crate) fn wake(&self) {
        self.changed.send_replace(());
    }

    /// Stores what a change leaves, remembers the change, and wakes the watches.
    fn record(&mut self, happened: Happened, object: &Arc<Object>) {
        let key = key(&object.namespace, &object.name);
        let before = match happened {
            Happened::Deleted => self.objects.remove(&key),
            Happened::Added | Happened::Modified => self.objects.insert(key, Arc::clone(object)),
        };
        self.history.push_back(Change { happened, object: Arc::clone(object), before });
        if self.history.len() > HISTORY
            && let Some(forgotten) = self.history.pop_front()
        {
            self.expired = forgotten.object.version;
        }
        self.wake();
    }
}

/// A page of a list.
pub(crate) struct Listing {
    pub(crate) version: u64,
    pub(crate) items: Vec<Arc<Object>>,
    /// The token for the next page, and how many items are left.
    pub(crate) next: Option<(String, usize)>,
}

/// A list that was begun with a limit. All its pages show the state of the first.
#[derive(Debug)]
struct Paged {
    id: u64,
    resource: Resource,
    version: u64,
    items: Vec<Arc<Object>>,
}

/// What a delete did.
pub(crate) enum Deleted {
    /// The object is gone; its last version.
    Gone(Arc<Object>),
    /// Finalizers hold the object, which now has a deletionTimestamp.
    Waits(Arc<Object>),
}

/// All objects of all resources.
#[derive(Debug)]
pub(crate) struct Store {
    /// The version of the latest change of anything.
    pub(crate) version: u64,
    made: u64,
    tables: [Table; Resource::ALL.len()],
    paged: VecDeque<Paged>,
    lists: u64,
}

impl Default for Store {
    fn default() -> Self {
        // Not from zero: as a resourceVersion, zero means something else.
        Self { version: 1000, made: 0, tables: Default::default(), paged: VecDeque::new(), lists: 0 }
    }
}

impl Store {
    pub(crate) fn table(&self, resource: Resource) -> &Table {
        &self.tables[resource as usize]
    }

    pub(crate) fn table_mut(&mut self, resource: Resource) -> &mut Table {
        &mut self.tables[resource as usize]
    }

    pub(crate) fn find(&self, resource: Resource, namespace: &str, name: &str) -> Result<&Arc<Object>, Problem> {
        self.table(resource).get(namespace, name).ok_or_else(|| Problem::not_found(resource, name))
    }

    /// The first page of a list; all of it without a limit.
    pub(crate) fn list(&mut self, resource: Resource, selector: &Selector, limit: Option<usize>) -> Listing {
        let items = self.table(resource).select(selector);
        let Some(limit) = limit.filter(|limit| *limit < items.len()) else {
            return Listing { version: self.version, items, next: None };
        };
        self.lists += 1;
        self.paged.push_back(Paged { id: self.lists, resource, version: self.version, items });
        if self.paged.len() > PAGED_LISTS {
            self.paged.pop_front();
        }
        self.page(self.lists, 0, resource, limit).expect("the list was kept just now")
    }

    /// A later page of a list.
    pub(crate) fn list_on(&self, resource: Resource, token: &str, limit: Option<usize>) -> Result<Listing, Problem> {
        let numbers = token.split_once('.').and_then(|(id, from)| Some((id.parse().ok()?, from.parse().ok()?)));
        let (id, from) = numbers.ok_or_else(|| Problem::bad_request("continue key is not valid"))?;
        self.page(id, from, resource, limit.unwrap_or(usize::MAX))
            .ok_or_else(|| Problem::expired("The provided continue parameter is too old"))
    }

    fn page(&self, id: u64, from: usize, resource: Resource, limit: usize) -> Option<Listing> {
        let list = self.paged.iter().find(|list| list.id == id && list.resource == resource)?;
        let rest = list.items.get(from..)?;
        let items: Vec<_> = rest.iter().take(limit).cloned().collect();
        let left = rest.len() - items.len();
        let next = (left > 0).then(|| (format!("{id}.{}", from + items.len()), left));
        Some(Listing { version: list.version, items, next })
    }

    /// A request to create.
    pub(crate) fn create(&mut self, resource: Resource, namespace: &str, body: Value) -> Result<Arc<Object>, Problem> {
        let mut value = body;
        drop_nulls(&mut value);
        tidy(&mut value);
        let number = self.made + 1;
        let metadata = metadata(&mut value);
        default_name(metadata, number)?;
        agree(metadata, "namespace", namespace)?;
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        if self.table(resource).get(namespace, &name).is_some() {
            return Err(Problem::already_exists(resource, &name));
        }
        for owned in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields"] {
            metadata.remove(owned);
        }
        metadata.insert("uid".into(), uid(number).into());
        metadata.insert("creationTimestamp".into(), now());
        if resource.has_generation() {
            metadata.insert("generation".into(), 1.into());
        }
        if resource == Resource::PodGroups {
            protect(metadata);
        }
        if resource.has_status()
            && let Some(fields) = value.as_object_mut()
        {
            fields.remove("status");
        }
        default_spec(&mut value, resource);
        self.made = number;
        Ok(self.save(resource, Happened::Added, value))
    }

    /// A request to change the object by `edit`.
    pub(crate) fn update(
        &mut self,
        resource: Resource,
        namespace: &str,
        name: &str,
        edit: impl FnOnce(&mut Value) -> Result<(), Problem>,
    ) -> Result<Arc<Object>, Problem> {
        let old = Arc::clone(self.find(resource, namespace, name)?);
        let before = old.value(resource);
        let mut after = before.clone();
        edit(&mut after)?;
        drop_nulls(&mut after);
        if !after.is_object() {
            return Err(Problem::bad_request("an object was expected"));
        }
        set_types(&mut after, resource);
        let changed = metadata(&mut after);
        agree(changed, "name", name)?;
        agree(changed, "namespace", namespace)?;
        for (precondition, current) in [
            ("resourceVersion", old.version.to_string().as_str()),
            ("uid", before["metadata"]["uid"].as_str().unwrap_or_default()),
        ] {
            let wanted = changed.get(precondition).and_then(Value::as_str).unwrap_or_default();
            if !wanted.is_empty() && wanted != current {
                return Err(Problem::stale(resource, name));
            }
        }
        keep(&before["metadata"], changed);
        if resource.has_status() {
            copy(&before, &mut after, "status");
        }
        tidy(&mut after);
        default_spec(&mut after, resource);
        if resource.is_scheduling() && but_min_count(&before["spec"]) != but_min_count(&after["spec"]) {
            return Err(Problem::invalid(resource, name, "spec", "Invalid value: field is immutable"));
        }
        if after == before {
            return Ok(old);
        }
        if resource.has_generation() && after["spec"] != before["spec"] {
            let generation = before["metadata"]["generation"].as_u64().unwrap_or_default() + 1;
            after["metadata"]["generation"] = generation.into();
        }
        let happened = if is_finished(&before, &after) { Happened::Deleted } else { Happened::Modified };
        Ok(self.save(resource, happened, after))
    }

    /// A request to delete, with the body of its options.
    pub(crate) fn delete(
        &mut self,
        resource: Resource,
        namespace: &str,
        name: &str,
        options: &Value,
    ) -> Result<Deleted, Problem> {
        let old = Arc::clone(self.find(resource, namespace, name)?);
        let mut value = old.untyped();
        for precondition in ["uid", "resourceVersion"] {
            let wanted = options["preconditions"][precondition].as_str();
            let current = value["metadata"][precondition].as_str();
            if wanted.is_some() && wanted != current {
                let why = format!("the {precondition} in the precondition ({wanted:?}) does not match {current:?}");
                return Err(Problem::conflict(resource, name, &why));
            }
        }
        if !has_finalizers(&value) {
            return Ok(Deleted::Gone(self.save(resource, Happened::Deleted, value)));
        }
        if value["metadata"]["deletionTimestamp"].is_string() {
            return Ok(Deleted::Waits(old));
        }
        value["metadata"]["deletionTimestamp"] = now();
        value["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        Ok(Deleted::Waits(self.save(resource, Happened::Modified, value)))
    }

    /// Stores a value as it is, completing only what every object has.
    pub(crate) fn put(&mut self, resource: Resource, mut value: Value) {
        let metadata = metadata(&mut value);
        if !metadata.get("namespace").is_some_and(Value::is_string) {
            metadata.insert("namespace".into(), "default".into());
        }
        let (namespace, name) = (metadata["namespace"].as_str().unwrap_or_default(), metadata.get("name"));
        let name = name.and_then(Value::as_str).expect("a value that a test puts has a name");
        let old = self.tables[resource as usize].get(namespace, name).map(|old| old.untyped());
        let happened = match &old {
            Some(old) if is_finished(old, &value) => Happened::Deleted,
            Some(_) => Happened::Modified,
            None => Happened::Added,
        };
        let metadata = self::metadata(&mut value);
        for (field, fresh) in [("uid", uid(self.made + 1).into()), ("creationTimestamp", now())] {
            let kept = old.as_ref().map_or(fresh, |old| old["metadata"][field].clone());
            let entry = metadata.entry(field).or_insert(Value::Null);
            if entry.is_null() {
                *entry = kept;
            }
        }
        self.made += 1;
        self.save(resource, happened, value);
    }

    /// Takes an object away, whatever its finalizers. Tells whether it was there.
    pub(crate) fn remove(&mut self, resource: Resource, namespace: &str, name: &str) -> bool {
        let old = self.table(resource).get(namespace, name).map(|old| old.untyped());
        old.map(|value| self.save(resource, Happened::Deleted, value)).is_some()
    }

    /// Forgets the past of every resource: open watches end, older versions and lists are gone.
    pub(crate) fn expire(&mut self) {
        // One version up, so that even a watch that had seen everything is too old.
        self.version += 1;
        self.paged.clear();
        for table in &mut self.tables {
            table.history.clear();
            table.expired = self.version;
            table.ends += 1;
            table.wake();
        }
    }

    fn save(&mut self, resource: Resource, happened: Happened, value: Value) -> Arc<Object> {
        self.version += 1;
        let object = Object::seal(value, self.version);
        self.table_mut(resource).record(happened, &object);
        object
    }
}

fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// The time in the form of a creationTimestamp.
fn now() -> Value {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

/// A UUID that looks random and is the same in every run.
fn uid(number: u64) -> String {
    let mix = |seed: u64| {
        let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let seed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        seed ^ (seed >> 31)
    };
    let (high, low) = (mix(number * 2), mix(number * 2 + 1));
    // Version 4 and its variant, in the places where every UUID has them.
    let (time, clock) = ((high & !0xf000) | 0x4000, (low >> 48 & 0x3fff) | 0x8000);
    let (time_low, time_mid, node) = (time >> 32, time >> 16 & 0xffff, low & 0xffff_ffff_ffff);
    format!("{time_low:08x}-{time_mid:04x}-{:04x}-{clock:04x}-{node:012x}", time & 0xffff)
}

/// Gives the value the type of its resource.
fn set_types(value: &mut Value, resource: Resource) {
    let (api_version, kind) = resource.types();
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.into();
}

/// The metadata, made if there is none.
fn metadata(value: &mut Value) -> &mut Map<String, Value> {
    let metadata = &mut value["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("it was made an object just now")
}

/// Sees to it that there is a name.
fn default_name(metadata: &mut Map<String, Value>, number: u64) -> Result<(), Problem> {
    if metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty()) {
        return Ok(());
    }
    let prefix = metadata.get("generateName").and_then(Value::as_str);
    let prefix = prefix.ok_or_else(|| Problem::bad_request("name or generateName is required"))?;
    let name = format!("{prefix}{number:05x}");
    metadata.insert("name".into(), name.into());
    Ok(())
}

/// Sets a field that the path tells, unless the body tells something else.
fn agree(metadata: &mut Map<String, Value>, field: &str, path: &str) -> Result<(), Problem> {
    match metadata.get(field).and_then(Value::as_str) {
        Some(body) if body != path => {
            let message = format!("the {field} of the object ({body}) does not match the {field} on the URL ({path})");
            Err(Problem::bad_request(message))
        }
        _ => {
            metadata.insert(field.into(), path.into());
            Ok(())
        }
    }
}

/// Restores what only the server sets.
fn keep(before: &Value, after: &mut Map<String, Value>) {
    let owned = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ];
    for field in owned {
        match before.get(field) {
            Some(value) => after.insert(field.into(), value.clone()),
            None => after.remove(field),
        };
    }
    after.remove("managedFields");
}

/// Makes one member of `after` what it is in `before`.
fn copy(before: &Value, after: &mut Value, member: &str) {
    match before.get(member) {
        Some(value) => after[member] = value.clone(),
        None => drop(after.as_object_mut().and_then(|fields| fields.remove(member))),
    }
}

/// Removes members that are null, as reading them into the server's types does.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Removes lists and maps of the metadata that are empty, which the server does not write.
fn tidy(value: &mut Value) {
    let empty =
        |value: &Value| value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
    metadata(value).retain(|_, member| !empty(member));
}

/// What the server fills in.
fn default_spec(value: &mut Value, resource: Resource) {
    if resource == Resource::PodGroups && value["spec"].is_object() && value["spec"]["disruptionMode"].is_null() {
        value["spec"]["disruptionMode"] = json!({ "single": {} });
    }
}

fn protect(metadata: &mut Map<String, Value>) {
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|finalizer| finalizer == PROTECTION)
    {
        finalizers.push(PROTECTION.into());
    }
}

/// The spec of a Workload or a PodGroup without its only mutable field.
fn but_min_count(spec: &Value) -> Value {
    let mut rest = spec.clone();
    forget_min_count(&mut rest);
    rest
}

fn forget_min_count(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(gang) = fields.get_mut("gang").and_then(Value::as_object_mut) {
                gang.remove("minCount");
            }
            fields.values_mut().for_each(forget_min_count);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_min_count),
        _ => {}
    }
}

fn has_finalizers(value: &Value) -> bool {
    value["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

/// Whether a change removes the last finalizer of an object that is being deleted. A pod may wait for
/// its node without any finalizer, so their absence alone does not tell.
fn is_finished(before: &Value, after: &Value) -> bool {
    after["metadata"]["deletionTimestamp"].is_string() && has_finalizers(before) && !has_finalizers(after)
}
