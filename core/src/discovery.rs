//! Which Workload and which PodGroup are a StatefulSet's: found by reference, never by name.
//!
//! A Workload is found by its `spec.controllerRef`, a PodGroup by its `spec.workloadRef`. An
//! ownerReference finds nothing; it only tells whose an object is.

use k8s_openapi::api::scheduling::v1beta1 as api;
use k8s_openapi::api::scheduling::v1beta1::{CompositePodGroupTemplate, PodGroupTemplate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::api::{GROUP, KIND};
use crate::workloadbuilder::{MANAGED_BY, MANAGED_BY_ANNOTATION};

/// The controller of a workload, as a Workload refers to it: by name, not by UID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ControllerRef {
    /// The API group, without a version; empty for the core group.
    pub api_group: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
}

impl ControllerRef {
    /// The reference to a StatefulSet.
    pub fn to_statefulset(name: &str) -> Self {
        Self { api_group: GROUP.to_owned(), kind: KIND.to_owned(), name: name.to_owned() }
    }
}

impl From<&OwnerReference> for ControllerRef {
    fn from(owner: &OwnerReference) -> Self {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        Self { api_group: group.to_owned(), kind: owner.kind.clone(), name: owner.name.clone() }
    }
}

/// What of an object's metadata tells whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it is marked as made by the controller of StatefulSets.
    pub managed: bool,
    /// The UID of its controller, by ownerReference.
    pub controller_uid: Option<String>,
    /// The name of that controller, if it is a StatefulSet.
    pub controlling_statefulset: Option<String>,
}

impl From<&ObjectMeta> for Identity {
    fn from(metadata: &ObjectMeta) -> Self {
        let marks = metadata.annotations.as_ref();
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        let controller = owners.iter().find(|owner| owner.controller == Some(true));
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            managed: marks.and_then(|marks| marks.get(MANAGED_BY_ANNOTATION)).is_some_and(|by| by == MANAGED_BY),
            controller_uid: controller.map(|owner| owner.uid.clone()),
            controlling_statefulset: controller
                .filter(|owner| owner.kind == KIND && ControllerRef::from(*owner).api_group == GROUP)
                .map(|owner| owner.name.clone()),
        }
    }
}

/// Whose an object is, seen from a StatefulSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Made by this controller for this StatefulSet.
    Ours,
    /// Made by this controller for a StatefulSet that is gone, or for another one.
    Others,
    /// Made by somebody else: used, never changed.
    Foreign,
}

impl Identity {
    /// Whose the object is, seen from the StatefulSet with this UID.
    pub fn origin(&self, statefulset_uid: &str) -> Origin {
        match &self.controller_uid {
            Some(uid) if self.managed && uid == statefulset_uid => Origin::Ours,
            Some(_) if self.managed => Origin::Others,
            _ => Origin::Foreign,
        }
    }
}

/// What is known of a Workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Who it is.
    pub identity: Identity,
    /// Whose workload it describes.
    pub controller: Option<ControllerRef>,
    /// Its PodGroupTemplates.
    pub templates: Vec<PodGroupTemplate>,
    /// Its templates of groups of groups.
    pub composites: Vec<CompositePodGroupTemplate>,
}

impl From<api::Workload> for Workload {
    fn from(workload: api::Workload) -> Self {
        Self {
            identity: (&workload.metadata).into(),
            controller: workload.spec.controller_ref.map(|controller| ControllerRef {
                api_group: controller.api_group.unwrap_or_default(),
                kind: controller.kind,
                name: controller.name,
            }),
            templates: workload.spec.pod_group_templates.unwrap_or_default(),
            composites: workload.spec.composite_pod_group_templates.unwrap_or_default(),
        }
    }
}

impl Workload {
    /// The PodGroupTemplates of this name, at any depth.
    pub fn templates_named<'a>(&'a self, name: &'a str) -> Vec<&'a PodGroupTemplate> {
        let mut found: Vec<_> = self.templates.iter().filter(|template| template.name == name).collect();
        // A stack of one's own: the depth is whatever somebody wrote.
        let mut open: Vec<_> = self.composites.iter().collect();
        while let Some(composite) = open.pop() {
            let templates = composite.pod_group_templates.as_deref().unwrap_or_default();
            found.extend(templates.iter().filter(|template| template.name == name));
            open.extend(composite.composite_pod_group_templates.iter().flatten());
        }
        found
    }
}

/// What is known of a PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodGroup {
    /// Who it is.
    pub identity: Identity,
    /// The Workload that it was made from.
    pub workload_name: Option<String>,
    /// The template that it was made from.
    pub template_name: Option<String>,
    /// The size of its gang; none for another policy.
    pub min_count: Option<i32>,
}

impl From<api::PodGroup> for PodGroup {
    fn from(pod_group: api::PodGroup) -> Self {
        let (workload_name, template_name) =
            pod_group.spec.workload_ref.map(|reference| (reference.workload_name, reference.template_name)).unzip();
        Self {
            identity: (&pod_group.metadata).into(),
            workload_name,
            template_name,
            min_count: pod_group.spec.scheduling_policy.gang.map(|gang| gang.min_count),
        }
    }
}

/// Finds objects by their references. An implementation answers from an index, at a cost that does
/// not grow with the namespace.
pub trait Index {
    /// The Workloads of a namespace that describe the workload of `controller`.
    fn workloads_of(&self, namespace: &str, controller: &ControllerRef) -> Vec<&Workload>;

    /// The PodGroups of a namespace that were made from a Workload.
    fn pod_groups_of(&self, namespace: &str, workload_name: &str) -> Vec<&PodGroup>;

    /// The PodGroups of a namespace that the object with this UID controls.
    fn pod_groups_controlled_by(&self, namespace: &str, uid: &str) -> Vec<&PodGroup>;
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<'a, T> {
    /// There is none.
    None,
    /// There is exactly one.
    One(&'a T),
    /// There are several: the choice is nobody's to guess.
    Several(Vec<&'a str>),
    /// One is being deleted: it is neither used nor replaced while it is there.
    Leaving(&'a str),
}

/// The Workload of a StatefulSet. One that was made for another StatefulSet of the name is none.
pub fn workload<'a>(index: &'a dyn Index, namespace: &str, name: &str, uid: &str) -> Found<'a, Workload> {
    let mut candidates = index.workloads_of(namespace, &ControllerRef::to_statefulset(name));
    candidates.retain(|workload| workload.identity.origin(uid) != Origin::Others);
    choose(&candidates, |workload| &workload.identity)
}

/// The Workload of a parent controller.
pub fn parent_workload<'a>(index: &'a dyn Index, namespace: &str, parent: &ControllerRef) -> Found<'a, Workload> {
    choose(&index.workloads_of(namespace, parent), |workload| &workload.identity)
}

/// The PodGroup that a StatefulSet has of a Workload, and, where `template_name` is given, of that
/// template: a parent's Workload may have many. One that another StatefulSet controls is none.
pub fn pod_group<'a>(
    index: &'a dyn Index,
    namespace: &str,
    workload_name: &str,
    template_name: Option<&str>,
    uid: &str,
) -> Found<'a, PodGroup> {
    let mut candidates = index.pod_groups_of(namespace, workload_name);
    candidates.retain(|pod_group| {
        let identity = &pod_group.identity;
        let anothers = identity.controlling_statefulset.is_some()
            && identity.controller_uid.as_deref().is_some_and(|owner| owner != uid);
        let other_template = template_name.is_some_and(|name| pod_group.template_name.as_deref() != Some(name));
        !anothers && !other_template && identity.origin(uid) != Origin::Others
    });
    choose(&candidates, |pod_group| &pod_group.identity)
}

/// A PodGroup of ours that was made of another Workload than `workload_name`: that Workload is gone, or
/// is not the one that counts any more. A StatefulSet has one PodGroup for its whole life.
pub fn stranded<'a>(index: &'a dyn Index, namespace: &str, workload_name: &str, uid: &str) -> Option<&'a PodGroup> {
    let mut ours = index.pod_groups_controlled_by(namespace, uid);
    ours.retain(|pod_group| {
        pod_group.identity.origin(uid) == Origin::Ours && pod_group.workload_name.as_deref() != Some(workload_name)
    });
    ours.into_iter().min_by_key(|pod_group| &pod_group.identity.name)
}

fn choose<'a, T>(candidates: &[&'a T], identity: fn(&T) -> &Identity) -> Found<'a, T> {
    if let Some(leaving) = candidates.iter().find(|candidate| identity(candidate).deleting) {
        return Found::Leaving(&identity(leaving).name);
    }
    match candidates {
        [] => Found::None,
        [one] => Found::One(one),
        several => {
            let mut names: Vec<_> = several.iter().map(|candidate| identity(candidate).name.as_str()).collect();
            names.sort_unstable();
            Found::Several(names)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const UID: &str = "uid-web";

    /// Everything of one namespace.
    #[derive(Default)]
    struct Objects {
        workloads: Vec<Workload>,
        pod_groups: Vec<PodGroup>,
    }

    impl Index for Objects {
        fn workloads_of(&self, namespace: &str, controller: &ControllerRef) -> Vec<&Workload> {
            assert_eq!(namespace, "shop");
            self.workloads.iter().filter(|workload| workload.controller.as_ref() == Some(controller)).collect()
        }

        fn pod_groups_of(&self, namespace: &str, workload_name: &str) -> Vec<&PodGroup> {
            assert_eq!(namespace, "shop");
            let of_workload = |group: &&PodGroup| group.workload_name.as_deref() == Some(workload_name);
            self.pod_groups.iter().filter(of_workload).collect()
        }

        fn pod_groups_controlled_by(&self, namespace: &str, uid: &str) -> Vec<&PodGroup> {
            assert_eq!(namespace, "shop");
            let controlled = |group: &&PodGroup| group.identity.controller_uid.as_deref() == Some(uid);
            self.pod_groups.iter().filter(controlled).collect()
        }
    }

    fn owner(api_version: &str, kind: &str, uid: &str, controller: bool) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "name": "web", "uid": uid, "controller": controller})
    }

    fn statefulset(uid: &str) -> Value {
        owner("apps/v1", "StatefulSet", uid, true)
    }

    fn metadata(name: &str, managed_by: Option<&str>, owners: &[Value]) -> Value {
        let annotations = json!({MANAGED_BY_ANNOTATION: managed_by});
        let annotations = if managed_by.is_some() { annotations } else { json!({}) };
        json!({"name": name, "uid": format!("uid-of-{name}"), "annotations": annotations, "ownerReferences": owners})
    }

    fn identity(metadata: &Value) -> Identity {
        Identity::from(&serde_json::from_value::<ObjectMeta>(metadata.clone()).unwrap())
    }

    fn workload_of(name: &str, managed_by: Option<&str>, owners: &[Value], controller: &Value) -> Workload {
        let object = json!({"metadata": metadata(name, managed_by, owners), "spec": {"controllerRef": controller}});
        serde_json::from_value::<api::Workload>(object).unwrap().into()
    }

    fn of_web() -> Value {
        json!({"apiGroup": "apps", "kind": "StatefulSet", "name": "web"})
    }

    fn group_of(name: &str, managed_by: Option<&str>, owners: &[Value], template: &str) -> PodGroup {
        let spec = json!({
            "workloadRef": {"workloadName": "work", "templateName": template},
            "schedulingPolicy": {"gang": {"minCount": 3}},
        });
        let object = json!({"metadata": metadata(name, managed_by, owners), "spec": spec});
        serde_json::from_value::<api::PodGroup>(object).unwrap().into()
    }

    fn found<T>(found: &Found<'_, T>, identity: fn(&T) -> &Identity) -> String {
        match found {
            Found::None => "none".to_owned(),
            Found::One(one) => identity(one).name.clone(),
            Found::Several(names) => names.join(" and "),
            Found::Leaving(name) => format!("{name} leaves"),
        }
    }

    fn find_workload(workloads: Vec<Workload>) -> String {
        let objects = Objects { workloads, ..Objects::default() };
        found(&workload(&objects, "shop", "web", UID), |workload| &workload.identity)
    }

    fn find_group(pod_groups: Vec<PodGroup>, template: Option<&str>) -> String {
        let objects = Objects { pod_groups, ..Objects::default() };
        found(&pod_group(&objects, "shop", "work", template, UID), |group| &group.identity)
    }

    #[test]
    fn an_object_is_ours_by_the_mark_and_the_owners_uid_together() {
        let parent = owner("example.com/v1", "Parent", "uid-parent", true);
        for (managed_by, owners, origin) in [
            (Some(MANAGED_BY), vec![statefulset(UID)], Origin::Ours),
            (Some(MANAGED_BY), vec![statefulset("uid-earlier")], Origin::Others),
            (Some(MANAGED_BY), vec![parent.clone()], Origin::Others),
            (Some(MANAGED_BY), vec![], Origin::Foreign),
            // An owner that is no controller owns nothing.
            (Some(MANAGED_BY), vec![owner("apps/v1", "StatefulSet", UID, false)], Origin::Foreign),
            (Some("job-controller"), vec![statefulset(UID)], Origin::Foreign),
            (Some(""), vec![statefulset(UID)], Origin::Foreign),
            (None, vec![statefulset(UID)], Origin::Foreign),
            (None, vec![statefulset("uid-earlier")], Origin::Foreign),
            (None, vec![parent], Origin::Foreign),
            (None, vec![], Origin::Foreign),
        ] {
            assert_eq!(identity(&metadata("a", managed_by, &owners)).origin(UID), origin, "{managed_by:?} {owners:?}");
        }
    }

    #[test]
    fn an_identity_is_read_from_the_metadata() {
        assert_eq!(identity(&json!({})), Identity::default());
        let owners = [owner("v1", "ConfigMap", "uid-other", false), statefulset(UID)];
        let mut object = metadata("a", Some(MANAGED_BY), &owners);
        let read = Identity {
            name: "a".into(),
            uid: "uid-of-a".into(),
            deleting: false,
            managed: true,
            controller_uid: Some(UID.into()),
            controlling_statefulset: Some("web".into()),
        };
        assert_eq!(identity(&object), read);
        object["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(identity(&object), Identity { deleting: true, ..read });
    }

    #[test]
    fn only_a_controller_of_the_kind_and_group_is_a_stateful_set() {
        for (api_version, kind, controller, expected) in [
            ("apps/v1", "StatefulSet", true, true),
            ("apps/v1beta2", "StatefulSet", true, true),
            ("apps/v1", "StatefulSet", false, false),
            ("apps/v1", "Deployment", true, false),
            ("v1", "StatefulSet", true, false),
            ("apps.kruise.io/v1beta1", "StatefulSet", true, false),
        ] {
            let identity = identity(&metadata("a", None, &[owner(api_version, kind, "u", controller)]));
            let name = expected.then_some("web");
            assert_eq!(identity.controlling_statefulset.as_deref(), name, "{api_version} {kind} {controller}");
            assert_eq!(identity.controller_uid.is_some(), controller);
        }
    }

    #[test]
    fn an_owner_is_referred_to_by_group_kind_and_name() {
        for (api_version, group) in [("apps/v1", "apps"), ("leaderworkerset.x-k8s.io/v1", "leaderworkerset.x-k8s.io")] {
            let reference = ControllerRef { api_group: group.into(), kind: "Kind".into(), name: "web".into() };
            let owner = serde_json::from_value(owner(api_version, "Kind", "u", true)).unwrap();
            assert_eq!(ControllerRef::from(&owner), reference);
        }
        // The core group has no name.
        let owner = serde_json::from_value(owner("v1", "Kind", "u", true)).unwrap();
        assert_eq!(ControllerRef::from(&owner).api_group, "");
        let own = ControllerRef { api_group: "apps".into(), kind: "StatefulSet".into(), name: "web".into() };
        assert_eq!(ControllerRef::to_statefulset("web"), own);
    }

    #[test]
    fn a_reference_without_a_group_is_to_the_core_group() {
        let workload = workload_of("a", None, &[], &json!({"kind": "StatefulSet", "name": "web"}));
        assert_eq!(workload.controller.as_ref().map(|controller| controller.api_group.as_str()), Some(""));
        assert_eq!(find_workload(vec![workload]), "none");
    }

    #[test]
    fn a_workload_is_found_by_its_controller_ref_alone() {
        let mine = || workload_of("any-name", None, &[], &of_web());
        assert_eq!(find_workload(vec![mine()]), "any-name");
        for (group, kind, name) in
            [("apps", "StatefulSet", "other"), ("apps", "Deployment", "web"), ("", "StatefulSet", "web")]
        {
            let controller = json!({"apiGroup": group, "kind": kind, "name": name});
            let other = workload_of("web", Some(MANAGED_BY), &[statefulset(UID)], &controller);
            assert_eq!(find_workload(vec![other.clone()]), "none");
            assert_eq!(find_workload(vec![mine(), other]), "any-name");
        }
        assert_eq!(
            find_workload(vec![workload_of("web", Some(MANAGED_BY), &[statefulset(UID)], &Value::Null)]),
            "none"
        );
    }

    #[test]
    fn a_workload_of_an_earlier_stateful_set_is_none_and_does_not_count() {
        let earlier = || workload_of("earlier", Some(MANAGED_BY), &[statefulset("uid-earlier")], &of_web());
        let ours = workload_of("ours", Some(MANAGED_BY), &[statefulset(UID)], &of_web());
        assert_eq!(find_workload(vec![earlier()]), "none");
        assert_eq!(find_workload(vec![earlier(), ours]), "ours");
        // Without the mark it is somebody's, whoever owns it.
        let foreign = workload_of("foreign", None, &[statefulset("uid-earlier")], &of_web());
        assert_eq!(find_workload(vec![earlier(), foreign]), "foreign");
    }

    #[test]
    fn several_are_told_by_their_names_in_order() {
        let named = |name| workload_of(name, None, &[], &of_web());
        assert_eq!(find_workload(vec![named("c"), named("a"), named("b")]), "a and b and c");
        let group = |name| group_of(name, None, &[], "t");
        assert_eq!(find_group(vec![group("b"), group("a")], None), "a and b");
    }

    #[test]
    fn one_that_is_being_deleted_comes_before_all_others() {
        let mut leaving = workload_of("z", None, &[], &of_web());
        leaving.identity.deleting = true;
        let named = |name| workload_of(name, None, &[], &of_web());
        assert_eq!(find_workload(vec![leaving.clone()]), "z leaves");
        assert_eq!(find_workload(vec![named("a"), leaving.clone()]), "z leaves");
        assert_eq!(find_workload(vec![named("a"), named("b"), leaving]), "z leaves");
        // Unless it is none of the candidates.
        let mut earlier = workload_of("z", Some(MANAGED_BY), &[statefulset("uid-earlier")], &of_web());
        earlier.identity.deleting = true;
        assert_eq!(find_workload(vec![named("a"), earlier]), "a");
    }

    #[test]
    fn a_parents_workload_is_found_whoever_made_it() {
        let parent = ControllerRef { api_group: "example.com".into(), kind: "Parent".into(), name: "p".into() };
        let controller = json!({"apiGroup": "example.com", "kind": "Parent", "name": "p"});
        let made = |name, managed_by, uid| workload_of(name, managed_by, &[statefulset(uid)], &controller);
        let find = |workloads| {
            let objects = Objects { workloads, ..Objects::default() };
            found(&parent_workload(&objects, "shop", &parent), |workload| &workload.identity)
        };
        assert_eq!(find(vec![]), "none");
        assert_eq!(find(vec![workload_of("web", None, &[], &of_web())]), "none");
        assert_eq!(find(vec![made("a", Some(MANAGED_BY), "uid-other")]), "a");
        assert_eq!(find(vec![made("b", None, UID), made("a", Some(MANAGED_BY), UID)]), "a and b");
    }

    #[test]
    fn a_pod_group_of_another_stateful_set_is_none() {
        let group = |name, managed_by, owner: Value| group_of(name, managed_by, &[owner], "t");
        for managed_by in [Some(MANAGED_BY), None] {
            let others = group("others", managed_by, statefulset("uid-other"));
            assert_eq!(find_group(vec![others.clone()], None), "none");
            assert_eq!(find_group(vec![others, group("ours", Some(MANAGED_BY), statefulset(UID))], Some("t")), "ours");
            assert_eq!(find_group(vec![group("mine", managed_by, statefulset(UID))], None), "mine");
        }
        // A parent's is one, unless it says that this controller made it; one without an owner is too.
        let parent = || owner("example.com/v1", "Parent", "uid-parent", true);
        assert_eq!(find_group(vec![group("parents", None, parent())], Some("t")), "parents");
        assert_eq!(find_group(vec![group("parents", Some(MANAGED_BY), parent())], Some("t")), "none");
        assert_eq!(find_group(vec![group_of("free", None, &[], "t")], Some("t")), "free");
        assert_eq!(find_group(vec![group_of("marked", Some(MANAGED_BY), &[], "t")], None), "marked");
    }

    #[test]
    fn a_pod_group_of_another_template_is_none_where_a_template_is_asked_for() {
        let groups = || vec![group_of("a", None, &[], "t"), group_of("b", None, &[], "other")];
        assert_eq!(find_group(groups(), Some("t")), "a");
        assert_eq!(find_group(groups(), Some("other")), "b");
        assert_eq!(find_group(groups(), Some("none")), "none");
        assert_eq!(find_group(groups(), None), "a and b");
    }

    #[test]
    fn a_pod_group_of_another_workload_or_of_none_is_none() {
        let mut elsewhere = group_of("a", Some(MANAGED_BY), &[statefulset(UID)], "t");
        elsewhere.workload_name = Some("other".into());
        let mut free = elsewhere.clone();
        free.workload_name = None;
        assert_eq!(find_group(vec![elsewhere, free], None), "none");
    }

    #[test]
    fn a_pod_group_is_read_with_its_source_and_the_size_of_its_gang() {
        let group = group_of("a", None, &[], "t");
        assert_eq!(group.workload_name.as_deref(), Some("work"));
        assert_eq!(group.template_name.as_deref(), Some("t"));
        assert_eq!(group.min_count, Some(3));
        let free = json!({"metadata": {"name": "a"}, "spec": {"schedulingPolicy": {"basic": {}}}});
        let free: PodGroup = serde_json::from_value::<api::PodGroup>(free).unwrap().into();
        assert_eq!((free.workload_name, free.template_name, free.min_count), (None, None, None));
    }

    #[test]
    fn templates_are_found_by_name_at_any_depth() {
        let template = |name: &str, size: i32| json!({"name": name, "schedulingPolicy": {"gang": {"minCount": size}}});
        let composite = |name: &str, templates: Value, composites: Value| {
            json!({
                "name": name,
                "schedulingPolicy": {"basic": {}},
                "podGroupTemplates": templates,
                "compositePodGroupTemplates": composites,
            })
        };
        let third = composite("third", json!([template("t", 3), template("u", 30)]), Value::Null);
        let second = composite("second", Value::Null, json!([third]));
        let first = composite("t", json!([template("t", 1)]), json!([second]));
        let last = composite("last", json!([]), json!([]));
        let spec = json!({"podGroupTemplates": [template("t", 0)], "compositePodGroupTemplates": [first, last]});
        let workload: Workload =
            serde_json::from_value::<api::Workload>(json!({"metadata": {}, "spec": spec})).unwrap().into();
        let sizes = |name| {
            let found = workload.templates_named(name);
            let mut sizes: Vec<_> =
                found.iter().filter_map(|template| Some(template.scheduling_policy.gang.as_ref()?.min_count)).collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sizes("t"), [0, 1, 3]);
        assert_eq!(sizes("u"), [30]);
        // The name of a group of groups is no template's.
        assert!(sizes("third").is_empty());
        assert!(sizes("").is_empty());
    }

    #[test]
    fn a_deep_tree_of_templates_is_searched_without_recursion() {
        let mut composites = Vec::new();
        for _ in 0..20_000 {
            composites = vec![CompositePodGroupTemplate {
                pod_group_templates: Some(vec![PodGroupTemplate { name: "t".into(), ..PodGroupTemplate::default() }]),
                composite_pod_group_templates: Some(composites),
                ..CompositePodGroupTemplate::default()
            }];
        }
        let mut workload = Workload { composites, ..Workload::default() };
        assert_eq!(workload.templates_named("t").len(), 20_000);
        // Taken apart level by level: dropping it at once would recurse.
        while let Some(mut composite) = workload.composites.pop() {
            workload.composites = composite.composite_pod_group_templates.take().unwrap_or_default();
        }
    }
}
