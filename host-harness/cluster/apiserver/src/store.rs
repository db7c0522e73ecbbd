//! The objects, their versions, and the history from which watches are served.
//!
//! Stands for etcd and the watch cache. Objects are kept as the bytes that are sent, so that a list
//! copies and parses nothing. Left out: compaction by time, leases, and reading a past version other
//! than the later pages of a list.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use axum::body::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::resource::{Resource, Served};
use crate::select::{Labels, Selectable, Selector, fields_of, labels_of};
use crate::status::Problem;

/// Lists of which later pages can still be had.
const PAGED_LISTS: usize = 32;

/// One version of an object.
#[derive(Debug)]
pub(crate) struct Object {
    namespace: String,
    name: String,
    labels: Labels,
    fields: Vec<String>,
    pub(crate) version: u64,
    /// As the resource's own version has it, without `apiVersion` and `kind`, which the items of a
    /// list do not have.
    json: Bytes,
}

impl Selectable for Object {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn labels(&self) -> &Labels {
        &self.labels
    }

    fn fields(&self) -> &[String] {
        &self.fields
    }
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
    fn seal(resource: Resource, mut value: Value, version: u64) -> Arc<Self> {
        if let Some(members) = value.as_object_mut() {
            members.remove("apiVersion");
            members.remove("kind");
        }
        value["metadata"]["resourceVersion"] = version.to_string().into();
        let json = serde_json::to_vec(&value).expect("a JSON value can be written").into();
        let metadata = &value["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
        Arc::new(Self {
            namespace: text("namespace"),
            name: text("name"),
            labels: labels_of(metadata),
            fields: fields_of(resource, &value),
            version,
            json,
        })
    }

    /// The object as it is stored, with its type.
    pub(crate) fn value(&self, resource: Resource) -> Value {
        let value = serde_json::from_slice(&self.json).expect("what was written can be read");
        resource.served().encode(value)
    }

    /// Writes the object with its type.
    pub(crate) fn write(&self, served: Served, form: Form, out: &mut Vec<u8>) {
        if form == Form::Metadata {
            return self.write_metadata(out);
        }
        if served.renames.is_empty() {
            let (version, kind) = (served.api_version(), served.resource.kind());
            out.extend_from_slice(format!(r#"{{"kind":"{kind}","apiVersion":"{version}","#).as_bytes());
            // The object has metadata at least, so a member follows the brace that is left out.
            out.extend_from_slice(&self.json[1..]);
        } else {
            let value = served.encode(self.value(served.resource));
            serde_json::to_writer(out, &value).expect("a JSON value can be written");
        }
    }

    /// Writes the object as an item of a list.
    pub(crate) fn write_item(&self, served: Served, form: Form, out: &mut Vec<u8>) {
        if form == Form::Whole && served.renames.is_empty() {
            out.extend_from_slice(&self.json);
        } else {
            self.write(served, form, out);
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
        let before = self.before.as_ref().is_some_and(|object| selector.matches(&**object));
        let after = self.happened != Happened::Deleted && selector.matches(&*self.object);
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
            .filter(|(_, object)| selector.matches(&***object))
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
    fn record(&mut self, happened: Happened, object: &Arc<Object>, history: usize) {
        let key = key(&object.namespace, &object.name);
        let before = match happened {
            Happened::Deleted => self.objects.remove(&key),
            Happened::Added | Happened::Modified => self.objects.insert(key, Arc::clone(object)),
        };
        self.history.push_back(Change { happened, object: Arc::clone(object), before });
        while self.history.len() > history
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

/// All objects of all resources.
#[derive(Debug)]
pub(crate) struct Store {
    /// The version of the latest change of anything.
    pub(crate) version: u64,
    tables: [Table; Resource::COUNT],
    paged: VecDeque<Paged>,
    lists: u64,
    history: usize,
}

impl Store {
    pub(crate) fn new(history: usize) -> Self {
        // Not from zero: as a resourceVersion, zero means something else.
        Self { version: 1000, tables: Default::default(), paged: VecDeque::new(), lists: 0, history }
    }

    pub(crate) fn table(&self, resource: Resource) -> &Table {
        &self.tables[resource as usize]
    }

    pub(crate) fn table_mut(&mut self, resource: Resource) -> &mut Table {
        &mut self.tables[resource as usize]
    }

    pub(crate) fn find(&self, resource: Resource, namespace: &str, name: &str) -> Result<&Arc<Object>, Problem> {
        self.table(resource).get(namespace, name).ok_or_else(|| Problem::not_found(resource, name))
    }

    /// An object as a value, with its type.
    pub(crate) fn value(&self, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        self.table(resource).get(namespace, name).map(|object| object.value(resource))
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
        self.page(id, from, resource, limit.unwrap_or(usize::MAX)).ok_or_else(|| {
            Problem::expired(
                "The provided continue parameter is too old to display a consistent list result. You must start a new \
                 list without the continue parameter.",
            )
        })
    }

    fn page(&self, id: u64, from: usize, resource: Resource, limit: usize) -> Option<Listing> {
        let list = self.paged.iter().find(|list| list.id == id && list.resource == resource)?;
        let rest = list.items.get(from..)?;
        let items: Vec<_> = rest.iter().take(limit).cloned().collect();
        let left = rest.len() - items.len();
        let next = (left > 0).then(|| (format!("{id}.{}", from + items.len()), left));
        Some(Listing { version: list.version, items, next })
    }

    /// Stores a change.
    pub(crate) fn save(&mut self, resource: Resource, happened: Happened, value: Value) -> Arc<Object> {
        self.version += 1;
        let object = Object::seal(resource, value, self.version);
        let history = self.history;
        self.table_mut(resource).record(happened, &object, history);
        object
    }

    /// What a change would leave, without storing it.
    pub(crate) fn preview(resource: Resource, value: Value, version: u64) -> Arc<Object> {
        Object::seal(resource, value, version)
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
}

fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config_map(namespace: &str, name: &str, app: &str) -> Value {
        json!({ "metadata": { "namespace": namespace, "name": name, "labels": { "app": app } }, "data": {} })
    }

    fn selector(namespace: Option<&str>, labels: &str) -> Selector {
        Selector::parse(Resource::ConfigMaps.served(), namespace, labels, "").expect("it is a selector")
    }

    fn names(objects: &[Arc<Object>]) -> Vec<&str> {
        objects.iter().map(|object| object.name()).collect()
    }

    #[test]
    fn pages_show_the_state_of_the_first() {
        let mut store = Store::new(100);
        for name in ["a", "b", "c"] {
            store.save(Resource::ConfigMaps, Happened::Added, config_map("x", name, "web"));
        }
        let first = store.list(Resource::ConfigMaps, &selector(Some("x"), ""), Some(2));
        assert_eq!((names(&first.items), first.next.as_ref().map(|next| next.1)), (vec!["a", "b"], Some(1)));
        store.save(Resource::ConfigMaps, Happened::Deleted, config_map("x", "c", "web"));
        let token = first.next.expect("there is more").0;
        let second = store.list_on(Resource::ConfigMaps, &token, Some(2)).expect("a page");
        assert_eq!((names(&second.items), second.version, second.next), (vec!["c"], first.version, None));
        store.expire();
        assert_eq!(store.list_on(Resource::ConfigMaps, &token, None).err().expect("it is gone").code, 410);
        assert_eq!(store.list_on(Resource::ConfigMaps, "x", None).err().expect("it is no token").code, 400);
    }

    #[test]
    fn a_change_of_labels_is_an_addition_to_one_view_and_a_deletion_from_another() {
        let mut store = Store::new(100);
        let start = store.version;
        store.save(Resource::ConfigMaps, Happened::Added, config_map("x", "a", "web"));
        store.save(Resource::ConfigMaps, Happened::Modified, config_map("x", "a", "db"));
        let seen = |labels| {
            let selector = selector(None, labels);
            let changes = store.table(Resource::ConfigMaps).after(start);
            changes.filter_map(|change| change.seen_by(&selector)).collect::<Vec<_>>()
        };
        assert_eq!(seen("app=web"), [Happened::Added, Happened::Deleted]);
        assert_eq!(seen("app=db"), [Happened::Added]);
        assert_eq!(seen(""), [Happened::Added, Happened::Modified]);
    }

    #[test]
    fn a_short_history_forgets_its_beginning() {
        let mut store = Store::new(2);
        let versions: Vec<_> = (0..4)
            .map(|count| {
                let happened = if count == 0 { Happened::Added } else { Happened::Modified };
                store.save(Resource::ConfigMaps, happened, config_map("x", "a", "web")).version
            })
            .collect();
        assert_eq!(store.table(Resource::ConfigMaps).expired, versions[1]);
    }
}
