//! The cluster: an API server's objects, what others do with them, and the garbage collector.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use statefulset_scheduling_controller::failure::Failure;
use statefulset_scheduling_controller::index::Version;
use statefulset_scheduling_core::api::{GROUP_TEMPLATE_NAME_ANNOTATION, MANAGED_LABEL, SCHEDULING_ANNOTATION};
use statefulset_scheduling_core::binding::BINDING_ANNOTATION;
use statefulset_scheduling_core::names;

use super::object::{FOREGROUND, NAMESPACE, ORPHAN, Object, PROTECTION, Resource};

/// A StatefulSet that may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Set {
    /// A gang with a Workload of its own.
    Web,
    /// Basic, with a Workload of its own.
    Db,
    /// A gang of which a parent's template is the only one.
    Leader,
    /// A gang that shares a parent's template with the next.
    Workers,
    /// A gang that shares a parent's template with the one before.
    MoreWorkers,
}

impl Set {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Db => "db",
            Self::Leader => "leader",
            Self::Workers => "workers",
            Self::MoreWorkers => "more-workers",
        }
    }

    fn intent(self) -> &'static str {
        if self == Self::Db { "{}" } else { r#"{"schedulingPolicy":{"gang":{}}}"# }
    }

    fn template(self) -> Option<&'static str> {
        match self {
            Self::Web | Self::Db => None,
            Self::Leader => Some("leader"),
            Self::Workers | Self::MoreWorkers => Some("workers"),
        }
    }
}

/// The parent that delegates.
pub(crate) const PARENT: (&str, &str, &str) = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "lws");

/// What happens to the dependents of an object that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// A Workload of somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Foreign {
    /// For the StatefulSet web.
    Theirs,
    /// For the StatefulSet web too.
    TheirsToo,
    /// For the StatefulSet web, under the name that ours would have.
    UnderOurName,
    /// For the StatefulSet db.
    OfDb,
    /// The parent's.
    OfParent,
    /// The parent's too.
    OfParentToo,
}

/// The templates of somebody's Workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    Gang,
    Basic,
    None,
    Two,
}

/// A PodGroup of somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Brought {
    /// From the Workload that refers to web.
    ForWeb,
    /// Under the same name, from the parent's Workload.
    ForWorkers,
    /// From the parent's Workload, controlled by the parent.
    OfParent,
    /// From the parent's Workload, controlled by another StatefulSet that has the template too.
    OfMoreWorkers,
}

impl Brought {
    fn name(self) -> &'static str {
        match self {
            Self::ForWeb | Self::ForWorkers => "byo",
            Self::OfParent => "byo-of-parent",
            Self::OfMoreWorkers => "byo-of-more-workers",
        }
    }
}

/// What somebody does who is not this controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Act {
    Create(Set),
    /// It carries the binding that the last StatefulSet of its name had.
    CreateWithOldBinding(Set),
    Scale(Set, i32),
    Delete(Set, Propagation),
    /// It has pods now.
    StartPods(Set),
    /// Pods whose StatefulSet is gone, leaves, or has no replicas, are gone.
    EndPods,
    AddWorkload(Foreign, Shape),
    RemoveWorkload(Foreign),
    AddPodGroup(Brought),
    RemovePodGroup(Brought),
    /// Somebody deletes what this controller made.
    RemoveOurs(Set, Resource),
    /// Somebody changes the sizes in what this controller made.
    ResizeOurs(Set, Resource, i32),
    /// Somebody changes the sizes in what somebody made.
    ResizeTheirs(Foreign, i32),
    /// The garbage collector looks at all objects of a kind.
    Collect(Resource),
    /// PodGroups that wait for pods that are gone are gone.
    Release,
}

/// A write of the controller.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Create(Resource, Value),
    JsonPatch { resource: Resource, name: String, patch: Value },
    MergeSet { name: String, patch: Value },
}

/// What a watch tells.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put(Arc<Object>),
    Gone { resource: Resource, name: String, version: Version },
}

impl Change {
    pub(crate) fn resource(&self) -> Resource {
        match self {
            Self::Put(object) => object.resource,
            Self::Gone { resource, .. } => *resource,
        }
    }

    pub(crate) fn version(&self) -> Version {
        match self {
            Self::Put(object) => object.version,
            Self::Gone { version, .. } => *version,
        }
    }
}

/// What may happen in a cluster at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How often a StatefulSet or somebody's object is created under a name.
    pub(crate) incarnations: u32,
    /// Whether PodGroups outlive their deletion until their pods are gone.
    pub(crate) protection: bool,
}

/// The cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    bounds: Bounds,
    revision: Version,
    objects: Arc<BTreeMap<(Resource, String), Arc<Object>>>,
    incarnations: Arc<BTreeMap<(Resource, String), u32>>,
    /// What the watches have not told yet, by kind.
    pub(crate) untold: [VecDeque<Change>; 3],
    /// The UIDs of StatefulSets that have pods.
    pub(crate) pods: BTreeSet<String>,
    /// The first and the last version of every object by UID, also of those that are gone.
    history: Arc<BTreeMap<String, [Arc<Object>; 2]>>,
    /// The last binding under each name.
    bindings: Arc<BTreeMap<String, String>>,
    /// Whether somebody changed a size behind this controller's back.
    pub(crate) tampered: bool,
}

fn reference(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

fn parent_reference() -> Value {
    let (group, kind, name) = PARENT;
    reference(&format!("{group}/v1"), kind, name, "uid-of-the-parent")
}

impl Cluster {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            revision: 0,
            objects: Arc::default(),
            incarnations: Arc::default(),
            untold: <[VecDeque<Change>; 3]>::default(),
            pods: BTreeSet::new(),
            history: Arc::default(),
            bindings: Arc::default(),
            tampered: false,
        }
    }

    // What is there.

    pub(crate) fn get(&self, resource: Resource, name: &str) -> Option<&Arc<Object>> {
        self.objects.get(&(resource, name.to_owned()))
    }

    pub(crate) fn all(&self, resource: Resource) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values().filter(move |object| object.resource == resource)
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values()
    }

    pub(crate) fn incarnations(&self) -> impl Iterator<Item = (&(Resource, String), &u32)> {
        self.incarnations.iter()
    }

    /// The object of this UID as it was made, and as it was last.
    pub(crate) fn history(&self, uid: &str) -> Option<&[Arc<Object>; 2]> {
        self.history.get(uid)
    }

    /// All objects of a kind that there ever were, as they were made.
    pub(crate) fn ever(&self, resource: Resource) -> impl Iterator<Item = &Arc<Object>> {
        self.history.values().map(|[first, _]| first).filter(move |object| object.resource == resource)
    }

    fn is_alive(&self, uid: &str) -> bool {
        self.objects.values().any(|object| object.uid == uid)
    }

    // The API server.

    fn store(&mut self, resource: Resource, value: Value) -> Arc<Object> {
        self.revision += 1;
        let object = Arc::new(Object::new(resource, value, self.revision));
        Arc::make_mut(&mut self.objects).insert((resource, object.name.clone()), Arc::clone(&object));
        self.untold[resource as usize].push_back(Change::Put(Arc::clone(&object)));
        let history = Arc::make_mut(&mut self.history);
        let versions = history.entry(object.uid.clone()).or_insert_with(|| [Arc::clone(&object), Arc::clone(&object)]);
        versions[1] = Arc::clone(&object);
        object
    }

    fn remove(&mut self, object: &Object) {
        self.revision += 1;
        Arc::make_mut(&mut self.objects).remove(&(object.resource, object.name.clone()));
        let gone = Change::Gone { resource: object.resource, name: object.name.clone(), version: self.revision };
        self.untold[object.resource as usize].push_back(gone);
    }

    fn create(&mut self, resource: Resource, mut value: Value) -> Result<Arc<Object>, Failure> {
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let at = (resource, name.clone());
        if self.objects.contains_key(&at) {
            return Err(Failure::AlreadyExists);
        }
        let incarnation = Arc::make_mut(&mut self.incarnations).entry(at).or_default();
        *incarnation += 1;
        value["metadata"]["uid"] = format!("{resource:?}-{name}-{incarnation}").into();
        if resource == Resource::PodGroups && self.bounds.protection {
            let finalizers = value["metadata"]["finalizers"].take();
            let mut finalizers = finalizers.as_array().cloned().unwrap_or_default();
            finalizers.push(PROTECTION.into());
            value["metadata"]["finalizers"] = finalizers.into();
        }
        Ok(self.store(resource, value))
    }

    /// Stores a change, unless it is none.
    fn update(&mut self, object: &Arc<Object>, change: impl FnOnce(&mut Value)) -> Arc<Object> {
        let mut value = object.value.clone();
        change(&mut value);
        if value == object.value {
            return Arc::clone(object);
        }
        self.store(object.resource, value)
    }

    fn delete(&mut self, object: &Arc<Object>, propagation: Propagation) {
        let add = match propagation {
            Propagation::Background => None,
            Propagation::Foreground => Some(FOREGROUND),
            Propagation::Orphan => Some(ORPHAN),
        };
        let mut finalizers: Vec<&str> = object.finalizers().collect();
        finalizers.extend(add.filter(|finalizer| !object.has_finalizer(finalizer)));
        if finalizers.is_empty() {
            self.remove(object);
        } else {
            self.update(object, |value| {
                value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                value["metadata"]["finalizers"] = finalizers.into();
            });
        }
    }

    fn drop_finalizer(&mut self, object: &Arc<Object>, finalizer: &str) {
        let finalizers: Vec<&str> = object.finalizers().filter(|one| *one != finalizer).collect();
        if finalizers.is_empty() && object.is_deleting() {
            self.remove(object);
        } else {
            self.update(object, |value| value["metadata"]["finalizers"] = finalizers.into());
        }
    }

    /// Does a write of the controller.
    pub(crate) fn execute(&mut self, write: &Write) -> Result<Arc<Object>, Failure> {
        match write {
            Write::Create(resource, value) => self.create(*resource, value.clone()),
            Write::JsonPatch { resource, name, patch } => {
                let object = self.get(*resource, name).cloned().ok_or_else(|| Failure::NotFound(name.clone()))?;
                let mut value = object.value.clone();
                for operation in patch.as_array().expect("it is a JSON Patch") {
                    let at = operation["path"].as_str().expect("it has a path");
                    let found = value.pointer_mut(at).ok_or_else(|| Failure::Conflict(format!("no {at}")))?;
                    match operation["op"].as_str() {
                        Some("test") if *found == operation["value"] => {}
                        Some("test") => return Err(Failure::Conflict(format!("the test of {at} failed"))),
                        Some("replace") => *found = operation["value"].clone(),
                        other => panic!("{other:?} is not expected"),
                    }
                }
                Ok(self.update(&object, |stored| *stored = value))
            }
            Write::MergeSet { name, patch } => {
                let object = self.get(Resource::Sets, name).cloned().ok_or_else(|| Failure::NotFound(name.clone()))?;
                if patch["metadata"].get("uid").is_some_and(|uid| *uid != object.uid) {
                    return Err(Failure::Conflict("the UID in the precondition is another".to_owned()));
                }
                let object = self.update(&object, |value| merge(value, patch));
                if let Some(binding) = object.value["metadata"]["annotations"][BINDING_ANNOTATION].as_str() {
                    Arc::make_mut(&mut self.bindings).insert(name.clone(), binding.to_owned());
                }
                Ok(object)
            }
        }
    }

    // The others.

    /// Does what somebody else does; false where it cannot be done, or changes nothing.
    pub(crate) fn act(&mut self, act: Act) -> bool {
        match act {
            Act::Create(set) => self.create_set(set, None),
            Act::CreateWithOldBinding(set) => {
                let binding = self.bindings.get(set.name()).cloned();
                binding.is_some() && self.create_set(set, binding)
            }
            Act::Scale(set, replicas) => {
                self.change(Resource::Sets, set.name(), |value| value["spec"]["replicas"] = replicas.into())
            }
            Act::Delete(set, propagation) => {
                let set = self.get(Resource::Sets, set.name()).filter(|set| !set.is_deleting()).cloned();
                set.map(|set| self.delete(&set, propagation)).is_some()
            }
            Act::StartPods(set) => self.start_pods(set),
            Act::EndPods => self.end_pods(),
            Act::AddWorkload(foreign, shape) => self.add_workload(foreign, shape),
            Act::RemoveWorkload(foreign) => {
                let found = self.get(Resource::Workloads, &self.foreign_name(foreign)).cloned();
                let found = found.filter(|found| found.made_for().is_none());
                found.map(|found| self.delete(&found, Propagation::Background)).is_some()
            }
            Act::AddPodGroup(brought) => self.add_pod_group(brought),
            Act::RemovePodGroup(brought) => {
                let name = brought.name();
                let found = self.get(Resource::PodGroups, name).filter(|found| !found.is_deleting()).cloned();
                found.map(|found| self.delete(&found, Propagation::Background)).is_some()
            }
            Act::RemoveOurs(set, resource) => {
                let found = self.ours(set, resource).filter(|found| !found.is_deleting());
                found.map(|found| self.delete(&found, Propagation::Background)).is_some()
            }
            Act::ResizeOurs(set, resource, size) => {
                let Some(found) = self.ours(set, resource) else { return false };
                self.tampered = true;
                self.change(resource, &found.name, |value| resize(value, size))
            }
            Act::ResizeTheirs(foreign, size) => {
                let name = self.foreign_name(foreign);
                let theirs = self.get(Resource::Workloads, &name).is_some_and(|found| found.made_for().is_none());
                theirs && self.change(Resource::Workloads, &name, |value| resize(value, size))
            }
            Act::Collect(resource) => {
                let objects: Vec<_> = self.all(resource).cloned().collect();
                objects.iter().filter(|object| self.collect(object)).count() > 0
            }
            Act::Release => self.release(),
        }
    }

    fn change(&mut self, resource: Resource, name: &str, change: impl FnOnce(&mut Value)) -> bool {
        let Some(object) = self.get(resource, name).cloned() else { return false };
        !Arc::ptr_eq(&self.update(&object, change), &object)
    }

    fn spent(&self, resource: Resource, name: &str) -> bool {
        let made = self.incarnations.get(&(resource, name.to_owned())).copied().unwrap_or_default();
        made >= self.bounds.incarnations
    }

    fn create_set(&mut self, set: Set, binding: Option<String>) -> bool {
        let name = set.name();
        if self.spent(Resource::Sets, name) {
            return false;
        }
        let mut annotations = json!({SCHEDULING_ANNOTATION: set.intent()});
        if let Some(template) = set.template() {
            annotations[GROUP_TEMPLATE_NAME_ANNOTATION] = template.into();
        }
        if let Some(binding) = binding {
            annotations[BINDING_ANNOTATION] = binding.into();
        }
        let owners = if set.template().is_some() { json!([parent_reference()]) } else { json!([]) };
        let metadata = json!({
            "name": name,
            "namespace": NAMESPACE,
            "annotations": annotations,
            "ownerReferences": owners,
        });
        let template = json!({
            "metadata": {"labels": {"app": name, MANAGED_LABEL: "true"}},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        });
        let created = self.create(
            Resource::Sets,
            json!({
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": metadata,
                "spec": {
                    "replicas": 3,
                    "podManagementPolicy": "Parallel",
                    "selector": {"matchLabels": {"app": name}},
                    "template": template,
                },
                "status": {"replicas": 0},
            }),
        );
        created.is_ok()
    }

    fn start_pods(&mut self, set: Set) -> bool {
        let Some(set) = self.get(Resource::Sets, set.name()).cloned() else { return false };
        if set.is_deleting() || set.replicas() == 0 || !self.pods.insert(set.uid.clone()) {
            return false;
        }
        self.update(&set, |value| value["status"]["replicas"] = set.replicas().into());
        true
    }

    fn end_pods(&mut self) -> bool {
        let before = self.pods.len();
        let sets: Vec<_> = self.all(Resource::Sets).cloned().collect();
        self.pods.retain(|uid| sets.iter().any(|set| set.uid == *uid && !set.is_deleting() && (set.replicas() > 0)));
        for set in sets {
            if !self.pods.contains(&set.uid) {
                self.update(&set, |value| value["status"]["replicas"] = 0.into());
            }
        }
        self.pods.len() < before
    }

    fn foreign_name(&self, foreign: Foreign) -> String {
        match foreign {
            Foreign::Theirs => "theirs".to_owned(),
            Foreign::TheirsToo => "theirs-too".to_owned(),
            Foreign::UnderOurName => {
                let uid = self.get(Resource::Sets, "web").map_or("none", |web| web.uid.as_str());
                names::workload_name("web", uid)
            }
            Foreign::OfDb => "theirs-of-db".to_owned(),
            Foreign::OfParent => "of-parent".to_owned(),
            Foreign::OfParentToo => "of-parent-too".to_owned(),
        }
    }

    fn add_workload(&mut self, foreign: Foreign, shape: Shape) -> bool {
        let name = self.foreign_name(foreign);
        if self.spent(Resource::Workloads, &name) {
            return false;
        }
        let gang = |name: &str, size: i32| json!({"name": name, "schedulingPolicy": {"gang": {"minCount": size}}});
        let basic = |name: &str| json!({"name": name, "schedulingPolicy": {"basic": {}}});
        let (controller, owners, templates) = match foreign {
            Foreign::OfParent | Foreign::OfParentToo => {
                let (group, kind, name) = PARENT;
                let templates = match shape {
                    Shape::Gang | Shape::Two => json!([gang("leader", 1), gang("workers", 4)]),
                    Shape::Basic => json!([basic("leader"), basic("workers")]),
                    Shape::None => json!([gang("leader", 1)]),
                };
                (json!({"apiGroup": group, "kind": kind, "name": name}), json!([parent_reference()]), templates)
            }
            _ => {
                let of = if foreign == Foreign::OfDb { "db" } else { "web" };
                let templates = match shape {
                    Shape::Gang => json!([gang("theirs", 4)]),
                    Shape::Basic => json!([basic("theirs")]),
                    Shape::None => json!([]),
                    Shape::Two => json!([gang("theirs", 4), gang("others", 1)]),
                };
                (json!({"apiGroup": "apps", "kind": "StatefulSet", "name": of}), json!([]), templates)
            }
        };
        let created = self.create(
            Resource::Workloads,
            json!({
                "apiVersion": "scheduling.k8s.io/v1beta1",
                "kind": "Workload",
                "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": owners},
                "spec": {"controllerRef": controller, "podGroupTemplates": templates},
            }),
        );
        created.is_ok()
    }

    fn add_pod_group(&mut self, brought: Brought) -> bool {
        let of_web = |workload: &&Arc<Object>| workload.value["spec"]["controllerRef"]["name"] == "web";
        let name = brought.name();
        let (workload, template, owners) = match brought {
            Brought::ForWeb => {
                let Some(workload) = self.all(Resource::Workloads).find(of_web) else { return false };
                let template = workload.templates().first().and_then(|template| template["name"].as_str());
                (workload.name.clone(), template.unwrap_or("none"), json!([]))
            }
            Brought::ForWorkers => ("of-parent".to_owned(), "workers", json!([])),
            Brought::OfParent => ("of-parent".to_owned(), "leader", json!([parent_reference()])),
            Brought::OfMoreWorkers => {
                let Some(set) = self.get(Resource::Sets, "more-workers") else { return false };
                let owner = reference("apps/v1", "StatefulSet", &set.name, &set.uid);
                ("of-parent".to_owned(), "workers", json!([owner]))
            }
        };
        if self.spent(Resource::PodGroups, name) {
            return false;
        }
        let created = self.create(
            Resource::PodGroups,
            json!({
                "apiVersion": "scheduling.k8s.io/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": owners},
                "spec": {
                    "workloadRef": {"workloadName": workload, "templateName": template},
                    "schedulingPolicy": {"gang": {"minCount": 2}},
                },
            }),
        );
        created.is_ok()
    }

    /// What this controller made for the StatefulSet that has the name now.
    fn ours(&self, set: Set, resource: Resource) -> Option<Arc<Object>> {
        let set = self.get(Resource::Sets, set.name())?;
        self.all(resource).find(|object| object.made_for() == Some(&set.uid)).cloned()
    }

    // The garbage collector, as kube-controller-manager's.

    fn collect(&mut self, object: &Arc<Object>) -> bool {
        if object.is_deleting() {
            if object.has_finalizer(ORPHAN) {
                self.orphan(object);
                self.drop_finalizer(object, ORPHAN);
                return true;
            }
            let done = object.has_finalizer(FOREGROUND) && !self.is_blocked(object);
            if done {
                self.drop_finalizer(object, FOREGROUND);
            }
            return done;
        }
        let (mut solid, mut waiting, mut absent) = (Vec::new(), 0, 0);
        for owner in object.owners() {
            let uid = owner["uid"].as_str().unwrap_or_default();
            let found = self.objects.values().find(|found| found.uid == uid);
            match found {
                // The parent is always there.
                None if owner["kind"] == PARENT.1 => solid.push(owner.clone()),
                None => absent += 1,
                Some(found) if found.is_deleting() && found.has_finalizer(FOREGROUND) => waiting += 1,
                Some(_) => solid.push(owner.clone()),
            }
        }
        if waiting + absent == 0 {
            return false;
        }
        if !solid.is_empty() {
            self.update(object, |value| value["metadata"]["ownerReferences"] = solid.into());
        } else if waiting > 0 && self.has_dependents(object) {
            self.delete(object, Propagation::Foreground);
        } else {
            self.delete(object, Propagation::Background);
        }
        true
    }

    fn dependents(&self, object: &Object) -> impl Iterator<Item = (&Arc<Object>, &Value)> {
        let owned = self.objects.values().flat_map(|dependent| dependent.owners().map(move |owner| (dependent, owner)));
        owned.filter(|(_, owner)| owner["uid"] == object.uid)
    }

    fn has_dependents(&self, object: &Object) -> bool {
        self.dependents(object).next().is_some()
    }

    fn is_blocked(&self, object: &Object) -> bool {
        self.pods.contains(&object.uid) || self.dependents(object).any(|(_, owner)| owner["blockOwnerDeletion"] == true)
    }

    fn orphan(&mut self, object: &Object) {
        let dependents: Vec<_> = self.dependents(object).map(|(dependent, _)| Arc::clone(dependent)).collect();
        self.pods.remove(&object.uid);
        for dependent in dependents {
            let owners: Vec<_> = dependent.owners().filter(|owner| owner["uid"] != object.uid).cloned().collect();
            self.update(&dependent, |value| value["metadata"]["ownerReferences"] = owners.into());
        }
    }

    /// The controller that protects PodGroups which pods use.
    fn release(&mut self) -> bool {
        let waits = |group: &&Arc<Object>| group.is_deleting() && group.has_finalizer(PROTECTION);
        let is_used = |group: &Arc<Object>| match group.controlling_set() {
            Some(uid) => self.pods.contains(uid),
            None => self.pods.iter().any(|uid| self.is_alive(uid)),
        };
        let free: Vec<_> =
            self.all(Resource::PodGroups).filter(waits).filter(|group| !is_used(group)).cloned().collect();
        for group in &free {
            self.drop_finalizer(group, PROTECTION);
        }
        !free.is_empty()
    }
}

fn resize(value: &mut Value, size: i32) {
    let spec = &mut value["spec"];
    let resize = |at: &mut Value| {
        if let Some(count) = at.pointer_mut("/schedulingPolicy/gang/minCount") {
            *count = size.into();
        }
    };
    resize(spec);
    let templates = spec.get_mut("podGroupTemplates").and_then(Value::as_array_mut);
    templates.into_iter().flatten().for_each(resize);
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (member, value) in members {
        if value.is_null() {
            target.as_object_mut().expect("it is an object").remove(member);
        } else {
            merge(&mut target[member], value);
        }
    }
}
