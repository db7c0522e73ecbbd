//! What the plan comes to, shown as whole walks: each step is applied to a cluster in memory and the
//! plan is made anew, until it rests.
//!
//! The first part is the KEP's list of unit tests for the StatefulSet controller, name by name. What
//! it says of pods is shown as what the plan publishes for them: pods are made elsewhere.

use k8s_openapi::api::scheduling::v1beta1 as api;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Change, Decision, Known, MinCountPatch, Reason, Settings, Step, Subject, binding_patch, plan};
use crate::api::{
    Carriers, GROUP_TEMPLATE_NAME_ANNOTATION, MANAGED_LABEL, PARENT_COMPOSITE_POD_GROUP_ANNOTATION,
    SCHEDULING_ANNOTATION, StatefulSet, View,
};
use crate::binding::{BINDING_ANNOTATION, Binding, PodGroupBinding};
use crate::discovery::{ControllerRef, Identity, Index, Origin, PodGroup, Workload};
use crate::gates::FeatureGates;
use crate::names;
use crate::validation::{self, GANG_REQUIRES_PARALLEL, NO_PARTITION};
use crate::workloadbuilder::{MANAGED_BY, MANAGED_BY_ANNOTATION, PolicyType};

const NAMESPACE: &str = "shop";
const UID: &str = "uid-web";
/// No walk is longer, whatever it starts from.
const LONGEST_WALK: usize = 6;

// The cluster.

/// An object and what the index knows of it.
#[derive(Clone, Debug, PartialEq)]
struct Stored<Object, Facts> {
    namespace: String,
    object: Object,
    facts: Facts,
}

impl<Object: Clone, Facts: From<Object>> Stored<Object, Facts> {
    fn new(namespace: &str, object: Object) -> Self {
        Self { namespace: namespace.to_owned(), facts: object.clone().into(), object }
    }
}

/// One StatefulSet and the objects around it.
#[derive(Clone, Debug, PartialEq)]
struct Cluster {
    statefulset: Value,
    settings: Settings,
    has_pods: bool,
    /// Whether its group was just made, and its pods are to be looked at.
    look_at_members: bool,
    /// Whether its pods have no group.
    members_without_group: bool,
    workloads: Vec<Stored<api::Workload, Workload>>,
    pod_groups: Vec<Stored<api::PodGroup, PodGroup>>,
    /// Workloads that the index does not know yet.
    unseen: Vec<api::Workload>,
    /// What has been asked since the walk began.
    known: Known,
    creates: usize,
}

impl Index for Cluster {
    fn workloads_of(&self, namespace: &str, controller: &ControllerRef) -> Vec<&Workload> {
        let found = self.workloads.iter().filter(|stored| stored.namespace == namespace);
        found.map(|stored| &stored.facts).filter(|facts| facts.controller.as_ref() == Some(controller)).collect()
    }

    fn pod_groups_of(&self, namespace: &str, workload_name: &str) -> Vec<&PodGroup> {
        let found = self.pod_groups.iter().filter(|stored| stored.namespace == namespace);
        found
            .map(|stored| &stored.facts)
            .filter(|facts| facts.workload_name.as_deref() == Some(workload_name))
            .collect()
    }

    fn pod_groups_controlled_by(&self, namespace: &str, uid: &str) -> Vec<&PodGroup> {
        let found = self.pod_groups.iter().filter(|stored| stored.namespace == namespace);
        found
            .map(|stored| &stored.facts)
            .filter(|facts| facts.identity.controller_uid.as_deref() == Some(uid))
            .collect()
    }
}

impl Cluster {
    /// A labelled StatefulSet of three parallel pods, and nothing else.
    fn new(scheduling: &Value) -> Self {
        Self {
            statefulset: json!({
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {"name": "web", "namespace": NAMESPACE, "uid": UID, "annotations": {}},
                "spec": {
                    "replicas": 3,
                    "podManagementPolicy": "Parallel",
                    "scheduling": scheduling,
                    "template": {
                        "metadata": {"labels": {MANAGED_LABEL: "true"}},
                        "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]},
                    },
                },
            }),
            settings: Settings::default(),
            has_pods: false,
            look_at_members: false,
            members_without_group: false,
            workloads: Vec::new(),
            pod_groups: Vec::new(),
            unseen: Vec::new(),
            known: Known::default(),
            creates: 0,
        }
    }

    fn gang() -> Self {
        Self::new(&json!({"schedulingPolicy": {"gang": {}}}))
    }

    /// A gang that has its objects, its binding and its pods.
    fn running() -> Self {
        let mut cluster = Self::gang();
        cluster.walk();
        cluster.has_pods = true;
        cluster.known = Known::default();
        cluster
    }

    /// A gang whose parent delegates the group `template` to it.
    fn child(template: &str) -> Self {
        let mut cluster = Self::gang();
        cluster.own(&json!([parent_reference()]));
        cluster.annotate(GROUP_TEMPLATE_NAME_ANNOTATION, template);
        cluster
    }

    fn with_workload(mut self, workload: api::Workload) -> Self {
        self.workloads.push(Stored::new(NAMESPACE, workload));
        self
    }

    fn with_pod_group(mut self, pod_group: api::PodGroup) -> Self {
        self.pod_groups.push(Stored::new(NAMESPACE, pod_group));
        self
    }

    fn with_pods(mut self) -> Self {
        self.has_pods = true;
        self
    }

    fn own(&mut self, references: &Value) {
        self.statefulset["metadata"]["ownerReferences"] = references.clone();
    }

    fn annotate(&mut self, annotation: &str, value: &str) {
        self.statefulset["metadata"]["annotations"][annotation] = value.into();
    }

    fn scale(&mut self, replicas: i32) {
        self.statefulset["spec"]["replicas"] = replicas.into();
    }

    fn subject(&self) -> Subject {
        self.read().expect("an intent")
    }

    fn read(&self) -> Option<Subject> {
        let raw = serde_json::value::to_raw_value(&self.statefulset).unwrap();
        Subject::new(&View::new(Some(&raw)).unwrap(), Carriers::default())
    }

    fn decide(&self) -> Decision {
        plan(&self.subject(), self, self.known, &self.settings)
    }

    /// Makes one step.
    fn step(&mut self) -> Step {
        let step = self.decide().step;
        self.apply(&step).unwrap();
        step
    }

    /// Makes one step after the other until there is none, as from a start.
    fn walk(&mut self) -> Vec<String> {
        self.known = Known { look_at_members: self.look_at_members, ..Known::default() };
        let mut steps = Vec::new();
        loop {
            let step = self.step();
            if step == Step::Rest {
                return steps;
            }
            steps.push(describe(&step));
            assert!(steps.len() <= LONGEST_WALK, "{steps:#?}");
        }
    }

    /// The decision at the end of a walk.
    fn rest(&self) -> Decision {
        let decision = self.decide();
        assert_eq!(decision.step, Step::Rest);
        decision
    }

    /// The reasons that are told at the end of a walk.
    fn told(&self) -> Vec<Reason> {
        self.rest().reports.iter().map(|report| report.reason).collect()
    }

    fn apply(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Rest => {}
            Step::AskPods => self.known.has_pods = Some(self.has_pods),
            Step::AskStatefulSet => self.known.is_there = Some(true),
            Step::AskMembers => self.known.members_without_group = Some(self.members_without_group),
            Step::AskParent => {
                self.known.parent_is_fresh = true;
                for workload in std::mem::take(&mut self.unseen) {
                    self.workloads.push(Stored::new(NAMESPACE, workload));
                }
            }
            Step::CreateWorkload(workload) => {
                let mut workload = (**workload).clone();
                workload.metadata.uid = Some(self.next_uid());
                let namespace = workload.metadata.namespace.clone().unwrap();
                if self.workloads.iter().any(|other| other.object.metadata.name == workload.metadata.name) {
                    return Err("already exists".to_owned());
                }
                self.workloads.push(Stored::new(&namespace, workload));
            }
            Step::CreatePodGroup(pod_group) => {
                let mut pod_group = (**pod_group).clone();
                pod_group.metadata.uid = Some(self.next_uid());
                let namespace = pod_group.metadata.namespace.clone().unwrap();
                if self.pod_groups.iter().any(|other| other.object.metadata.name == pod_group.metadata.name) {
                    return Err("already exists".to_owned());
                }
                self.pod_groups.push(Stored::new(&namespace, pod_group));
            }
            Step::SetWorkloadMinCount(patch) => {
                let stored = self.workloads.iter_mut().find(|stored| stored.facts.identity.name == patch.name).unwrap();
                *stored = Stored::new(&stored.namespace, patched(&stored.object, patch)?);
            }
            Step::SetPodGroupMinCount(patch) => {
                let stored =
                    self.pod_groups.iter_mut().find(|stored| stored.facts.identity.name == patch.name).unwrap();
                *stored = Stored::new(&stored.namespace, patched(&stored.object, patch)?);
            }
            Step::PublishBinding(binding) => {
                let patch = binding_patch(&self.subject().uid, binding.as_deref());
                merge(&mut self.statefulset, &patch);
            }
        }
        Ok(())
    }

    fn next_uid(&mut self) -> String {
        self.creates += 1;
        format!("uid-{}", self.creates)
    }

    fn workload(&self) -> &api::Workload {
        let [workload] = self.workloads.as_slice() else { panic!("{:#?}", self.workloads) };
        &workload.object
    }

    fn template(&self) -> &api::PodGroupTemplate {
        let Some([template]) = self.workload().spec.pod_group_templates.as_deref() else { panic!() };
        template
    }

    fn pod_group(&self) -> &api::PodGroup {
        let [pod_group] = self.pod_groups.as_slice() else { panic!("{:#?}", self.pod_groups) };
        &pod_group.object
    }

    /// The gang's size in the Workload and in the PodGroup.
    fn sizes(&self) -> (Option<i32>, Option<i32>) {
        let size = |policy: &api::PodGroupSchedulingPolicy| policy.gang.as_ref().map(|gang| gang.min_count);
        (size(&self.template().scheduling_policy), size(&self.pod_group().spec.scheduling_policy))
    }

    fn binding(&self) -> Option<&str> {
        self.statefulset["metadata"]["annotations"][BINDING_ANNOTATION].as_str()
    }

    /// The PodGroup and the size that the policy is told.
    fn bound(&self) -> Option<PodGroupBinding> {
        match Binding::parse(self.binding()?).unwrap() {
            Binding::PodGroup(group) => Some(group),
            Binding::Fallback(_) => None,
        }
    }
}

/// Applies a JSON Patch; one test that fails refuses all of it.
fn patched<T: Serialize + DeserializeOwned>(object: &T, change: &MinCountPatch) -> Result<T, String> {
    let mut value = serde_json::to_value(object).unwrap();
    for operation in change.json_patch().as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        let target = value.pointer_mut(path).ok_or_else(|| format!("{path} is absent"))?;
        match operation["op"].as_str() {
            Some("test") if *target == operation["value"] => {}
            Some("test") => return Err(format!("{path} is {target}, not {}", operation["value"])),
            Some("replace") => *target = operation["value"].clone(),
            other => panic!("{other:?}"),
        }
    }
    Ok(serde_json::from_value(value).unwrap())
}

/// Applies a merge patch.
fn merge(target: &mut Value, patch: &Value) {
    for (name, value) in patch.as_object().unwrap() {
        if value.is_object() {
            merge(&mut target[name.as_str()], value);
        } else if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            target[name.as_str()] = value.clone();
        }
    }
}

fn describe(step: &Step) -> String {
    match step {
        Step::Rest => "rest".to_owned(),
        Step::AskPods => "ask for pods".to_owned(),
        Step::AskStatefulSet => "ask for the StatefulSet".to_owned(),
        Step::AskParent => "ask for the parent".to_owned(),
        Step::AskMembers => "ask for members".to_owned(),
        Step::CreateWorkload(workload) => create_workload(workload.metadata.name.as_deref().unwrap()),
        Step::CreatePodGroup(pod_group) => create_pod_group(pod_group.metadata.name.as_deref().unwrap()),
        Step::SetWorkloadMinCount(patch) => format!("Workload {}: {} to {}", patch.name, patch.from, patch.to),
        Step::SetPodGroupMinCount(patch) => format!("PodGroup {}: {} to {}", patch.name, patch.from, patch.to),
        Step::PublishBinding(Some(binding)) => format!("bind {binding}"),
        Step::PublishBinding(None) => "unbind".to_owned(),
    }
}

fn create_workload(name: &str) -> String {
    format!("create Workload {name}")
}

fn create_pod_group(name: &str) -> String {
    format!("create PodGroup {name}")
}

fn fall_back(reason: Reason) -> String {
    format!(r#"bind {{"fallback":"{}"}}"#, reason.as_str())
}

fn bind(name: &str, uid: &str, replicas: i32) -> String {
    format!(r#"bind {{"name":"{name}","uid":"{uid}","replicas":{replicas}}}"#)
}

fn bind_without_size(name: &str, uid: &str) -> String {
    format!(r#"bind {{"name":"{name}","uid":"{uid}"}}"#)
}

fn own_workload() -> String {
    names::workload_name("web", UID)
}

fn own_pod_group() -> String {
    names::pod_group_name(&own_workload(), "web")
}

fn delegated_pod_group(workload: &str, template: &str) -> String {
    names::delegated_pod_group_name(workload, template, "web", UID)
}

/// The steps from nothing to a gang of this size.
fn creation(replicas: i32) -> Vec<String> {
    vec![
        "ask for pods".to_owned(),
        create_workload(&own_workload()),
        create_pod_group(&own_pod_group()),
        bind(&own_pod_group(), "uid-2", replicas),
    ]
}

/// The steps of a change of size.
fn resize(from: i32, to: i32, replicas: i32) -> Vec<String> {
    vec![
        format!("Workload {}: {from} to {to}", own_workload()),
        format!("PodGroup {}: {from} to {to}", own_pod_group()),
        bind(&own_pod_group(), "uid-2", replicas),
    ]
}

// The objects of others.

/// Whose an object is, by its metadata.
#[derive(Clone, Copy, Debug)]
enum Made {
    /// By this controller, for this StatefulSet.
    Ours,
    /// By this controller, for an earlier StatefulSet of the same name.
    Earlier,
    /// By this controller, for another StatefulSet.
    Siblings,
    /// By the parent.
    Parents,
    /// With the controller's mark, and without an owner.
    MarkedOnly,
    /// Owned by this StatefulSet, and without the controller's mark.
    OwnedOnly,
    /// By somebody.
    Somebodys,
}

fn metadata(name: &str, made: Made) -> Value {
    let statefulset = |name: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": uid, "controller": true}]);
    let marks = json!({MANAGED_BY_ANNOTATION: MANAGED_BY});
    let (annotations, owners) = match made {
        Made::Ours => (marks, statefulset("web", UID)),
        Made::Earlier => (marks, statefulset("web", "uid-earlier")),
        Made::Siblings => (marks, statefulset("sibling", "uid-sibling")),
        Made::Parents => (json!({}), json!([parent_reference()])),
        Made::MarkedOnly => (marks, json!([])),
        Made::OwnedOnly => (json!({}), statefulset("web", UID)),
        Made::Somebodys => (json!({}), json!([])),
    };
    let uid = format!("uid-of-{name}");
    json!({"name": name, "namespace": NAMESPACE, "uid": uid, "annotations": annotations, "ownerReferences": owners})
}

fn workload(name: &str, made: Made, spec: &Value) -> api::Workload {
    serde_json::from_value(json!({"metadata": metadata(name, made), "spec": spec})).unwrap()
}

/// A PodGroup that was made from a template.
fn pod_group(name: &str, made: Made, (workload, template): (&str, &str), policy: &Value) -> api::PodGroup {
    let reference = json!({"workloadName": workload, "templateName": template});
    let spec = json!({"workloadRef": reference, "schedulingPolicy": policy});
    serde_json::from_value(json!({"metadata": metadata(name, made), "spec": spec})).unwrap()
}

fn parent_reference() -> Value {
    json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "name": "lws",
        "uid": "uid-lws",
        "controller": true,
    })
}

/// The spec of a Workload that refers to the StatefulSet.
fn of_web(templates: &Value) -> Value {
    let controller = json!({"apiGroup": "apps", "kind": "StatefulSet", "name": "web"});
    json!({"controllerRef": controller, "podGroupTemplates": templates})
}

/// The spec of a Workload that refers to the parent, with a tree of groups.
fn of_parent(composites: &Value) -> Value {
    let controller = json!({"apiGroup": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "name": "lws"});
    json!({"controllerRef": controller, "compositePodGroupTemplates": composites})
}

/// A group of groups.
fn composite(name: &str, templates: &Value, composites: &Value) -> Value {
    json!({
        "name": name,
        "schedulingPolicy": {"gang": {"minGroupCount": 1}},
        "podGroupTemplates": templates,
        "compositePodGroupTemplates": composites,
    })
}

/// The parent's Workload with the group `workers` of three.
fn parents_workload(name: &str) -> api::Workload {
    let composites = json!([composite("replica", &json!([template("workers", &gang(3))]), &json!([]))]);
    workload(name, Made::Parents, &of_parent(&composites))
}

fn template(name: &str, policy: &Value) -> Value {
    json!({"name": name, "schedulingPolicy": policy})
}

fn gang(min_count: i32) -> Value {
    json!({"gang": {"minCount": min_count}})
}

fn basic() -> Value {
    json!({"basic": {}})
}

fn leaving<T: Serialize + DeserializeOwned>(object: &T) -> T {
    let mut value = serde_json::to_value(object).unwrap();
    value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    serde_json::from_value(value).unwrap()
}

/// A Workload of somebody's that refers to the StatefulSet.
fn theirs(name: &str, min_count: i32) -> api::Workload {
    workload(name, Made::Somebodys, &of_web(&json!([template("members", &gang(min_count))])))
}

// The KEP's list.

#[test]
fn workload_and_pod_group_are_created_before_pods_when_spec_scheduling_is_non_nil() {
    let mut cluster = Cluster::gang();
    assert_eq!(cluster.walk(), creation(3));
    assert_eq!(cluster.sizes(), (Some(3), Some(3)));
    assert_eq!(cluster.rest().policy, Some(PolicyType::Gang));
    // Pods are held for as long as nothing is published, and that comes last.
    let mut cluster = Cluster::gang();
    for _ in 0..3 {
        cluster.step();
        assert_eq!(cluster.binding(), None);
    }
    cluster.step();
    assert!(cluster.binding().is_some());
}

#[test]
fn neither_workload_nor_pod_group_is_created_when_spec_scheduling_is_nil() {
    let mut cluster = Cluster::new(&Value::Null);
    assert_eq!(cluster.read(), None);
    cluster.statefulset["spec"].as_object_mut().unwrap().remove("scheduling");
    assert_eq!(cluster.read(), None);
}

#[test]
fn correct_field_mapping_from_stateful_set_fields_to_workload_and_pod_group_fields() {
    let mut cluster = Cluster::new(&json!({
        "schedulingPolicy": {"gang": {}},
        "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/zone"}]},
        "disruptionMode": {"all": {}},
        "resourceClaims": [{"name": "shared", "resourceClaimTemplateName": "device"}],
    }));
    cluster.statefulset["spec"]["template"]["spec"]["priorityClassName"] = "high".into();
    cluster.walk();
    let mut group = json!({
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/zone"}]},
        "disruptionMode": {"all": {}},
        "resourceClaims": [{"name": "shared", "resourceClaimTemplateName": "device"}],
        "priorityClassName": "high",
    });
    let mut of_template = group.clone();
    of_template["name"] = "web".into();
    assert_eq!(
        serde_json::to_value(&cluster.workload().spec).unwrap(),
        json!({
            "controllerRef": {"apiGroup": "apps", "kind": "StatefulSet", "name": "web"},
            "podGroupTemplates": [of_template],
        })
    );
    group["workloadRef"] = json!({"workloadName": own_workload(), "templateName": "web"});
    assert_eq!(serde_json::to_value(&cluster.pod_group().spec).unwrap(), group);
    assert_eq!(cluster.workload().metadata.name, Some(own_workload()));
    assert_eq!(cluster.pod_group().metadata.name, Some(own_pod_group()));
    for metadata in [&cluster.workload().metadata, &cluster.pod_group().metadata] {
        assert_eq!(metadata.namespace.as_deref(), Some(NAMESPACE));
        let marks = metadata.annotations.as_ref().unwrap();
        assert_eq!(marks.get("scheduling.k8s.io/managed-by").map(String::as_str), Some("statefulset-controller"));
    }
}

#[test]
fn scheduling_that_is_empty_resolves_to_a_basic_pod_group_with_no_constraints_disruption_mode_or_claims() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.statefulset["spec"]["podManagementPolicy"] = "OrderedReady".into();
    assert_eq!(
        cluster.walk(),
        [
            "ask for pods".to_owned(),
            create_workload(&own_workload()),
            create_pod_group(&own_pod_group()),
            bind_without_size(&own_pod_group(), "uid-2"),
        ]
    );
    let reference = json!({"workloadName": own_workload(), "templateName": "web"});
    let spec = serde_json::to_value(&cluster.pod_group().spec).unwrap();
    assert_eq!(spec, json!({"workloadRef": reference, "schedulingPolicy": {"basic": {}}}));
    assert_eq!(cluster.rest().policy, Some(PolicyType::Basic));
}

#[test]
fn disruption_mode_and_topology_are_passed_through_to_the_pod_group_unchanged_for_both_basic_and_gang_policies() {
    for (policy, mode) in [("basic", "single"), ("gang", "single"), ("gang", "all")] {
        let topology = json!({"topology": [{"key": "example.com/rack"}]});
        let mut cluster = Cluster::new(&json!({
            "schedulingPolicy": {policy: {}},
            "schedulingConstraints": topology,
            "disruptionMode": {mode: {}},
        }));
        cluster.walk();
        let spec = serde_json::to_value(&cluster.pod_group().spec).unwrap();
        assert_eq!(spec["schedulingConstraints"], topology, "{policy} {mode}");
        assert_eq!(spec["disruptionMode"], json!({mode: {}}), "{policy} {mode}");
        assert!(spec["schedulingPolicy"][policy].is_object(), "{policy} {mode}");
    }
}

#[test]
fn pods_receive_correct_spec_scheduling_group_pod_group_name_references() {
    let cluster = Cluster::running();
    let metadata = &cluster.pod_group().metadata;
    let bound = cluster.bound().unwrap();
    assert_eq!(Some(&bound.name), metadata.name.as_ref());
    assert_eq!(Some(&bound.uid), metadata.uid.as_ref());
    assert_eq!(bound.replicas, Some(3));
}

#[test]
fn the_controller_owned_workload_template_and_pod_group_min_count_are_both_updated_in_place_on_replica_scaling_and_a_failure_between_updates_is_retried()
 {
    let mut cluster = Cluster::running();
    let before = cluster.clone();
    cluster.scale(5);
    let failing = cluster.clone();
    assert_eq!(cluster.walk(), resize(3, 5, 5));
    assert_eq!(cluster.sizes(), (Some(5), Some(5)));
    // Nothing but the sizes changed.
    assert_eq!(cluster.workload().metadata, before.workload().metadata);
    assert_eq!(cluster.pod_group().metadata, before.pod_group().metadata);

    let mut cluster = failing;
    cluster.step();
    assert_eq!(cluster.sizes(), (Some(5), Some(3)));
    let second = cluster.decide().step;
    assert_eq!(describe(&second), format!("PodGroup {}: 3 to 5", own_pod_group()));
    // It fails: the next sync has the same to do, and only that.
    assert_eq!(cluster.decide().step, second);
    assert_eq!(cluster.walk(), resize(3, 5, 5)[1..]);
    assert_eq!(cluster.sizes(), (Some(5), Some(5)));
}

#[test]
fn scale_down_lowers_both_min_count_values_before_deleting_pods_and_a_failed_update_prevents_pod_deletion_until_the_controller_retries_successfully()
 {
    let mut cluster = Cluster::running();
    cluster.scale(5);
    cluster.walk();
    cluster.scale(3);
    // A surplus pod goes only once the published size says so.
    for sizes in [(Some(3), Some(5)), (Some(3), Some(3))] {
        assert_eq!(cluster.bound().unwrap().replicas, Some(5));
        let failed = cluster.decide().step;
        assert_eq!(cluster.decide().step, failed);
        cluster.step();
        assert_eq!(cluster.sizes(), sizes);
    }
    assert_eq!(cluster.bound().unwrap().replicas, Some(5));
    assert_eq!(cluster.walk(), resize(5, 3, 3)[2..]);
    assert_eq!(cluster.bound().unwrap().replicas, Some(3));
}

#[test]
fn min_count_is_clamped_to_1_when_spec_replicas_is_0_and_neither_object_is_deleted_nor_patched_to_an_invalid_min_count()
{
    let mut cluster = Cluster::running();
    cluster.scale(0);
    assert_eq!(cluster.walk(), resize(3, 1, 0));
    assert_eq!(cluster.sizes(), (Some(1), Some(1)));
    let mut cluster = Cluster::gang();
    cluster.scale(0);
    assert_eq!(cluster.walk(), creation(0));
    assert_eq!(cluster.sizes(), (Some(1), Some(1)));
}

#[test]
fn the_derived_min_count_is_never_written_back_to_the_stateful_set() {
    let mut cluster = Cluster::gang();
    let before = cluster.statefulset.clone();
    cluster.walk();
    cluster.scale(5);
    cluster.walk();
    assert_eq!(cluster.statefulset["spec"]["scheduling"], before["spec"]["scheduling"]);
    assert_eq!(cluster.subject().intent.unwrap().configuration.gang().unwrap().min_count, None);
    // The only thing that is ever written on it is the binding.
    assert_eq!(
        binding_patch(UID, Some("text")),
        json!({"metadata": {"uid": UID, "annotations": {"statefulset-scheduling.dev/pod-group": "text"}}})
    );
    assert_eq!(
        binding_patch(UID, None),
        json!({"metadata": {"uid": UID, "annotations": {"statefulset-scheduling.dev/pod-group": null}}})
    );
}

#[test]
fn pod_group_name_and_identity_are_stable_across_a_rolling_update() {
    let mut cluster = Cluster::running();
    let before = cluster.clone();
    let template = &mut cluster.statefulset["spec"]["template"];
    template["spec"]["containers"][0]["image"] = "nginx:1.30".into();
    template["spec"]["resourceClaims"] = json!([{"name": "other", "resourceClaimName": "other"}]);
    template["metadata"]["labels"]["version"] = "2".into();
    assert!(cluster.walk().is_empty());
    assert_eq!((&cluster.workloads, &cluster.pod_groups), (&before.workloads, &before.pod_groups));
    assert_eq!(cluster.binding(), before.binding());
}

#[test]
fn workload_and_pod_group_cleanup_on_stateful_set_deletion() {
    let mut cluster = Cluster::running();
    // The garbage collector's work: both belong to the StatefulSet.
    for metadata in [&cluster.workload().metadata, &cluster.pod_group().metadata] {
        let owner = metadata.owner_references.as_ref().unwrap().first().unwrap();
        assert_eq!((owner.kind.as_str(), owner.uid.as_str(), owner.controller), ("StatefulSet", UID, Some(true)));
    }
    // And nothing is done that could keep them or make them anew.
    cluster.statefulset["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    cluster.scale(0);
    assert!(cluster.walk().is_empty());
    cluster.pod_groups.clear();
    assert!(cluster.walk().is_empty());
    cluster.workloads.clear();
    cluster.has_pods = false;
    assert!(cluster.walk().is_empty());
    assert_eq!(cluster.told(), []);
}

#[test]
fn owner_references_and_finalizers_are_set_correctly_on_all_three_object_kinds() {
    let owner = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "web",
        "uid": UID,
        "controller": true,
        "blockOwnerDeletion": true,
    });
    let source = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "name": own_workload(),
        "uid": "uid-1",
        "blockOwnerDeletion": true,
    });
    // The finalizer that protects a PodGroup is the API server's; the reference from a pod to the
    // PodGroup is a setting, and foreground deletion of the PodGroup goes with it.
    for (references_on_pods, finalizers) in [(false, None), (true, Some(vec!["foregroundDeletion".to_owned()]))] {
        let mut cluster = Cluster::gang();
        cluster.settings.pod_group_owner_reference = references_on_pods;
        assert_eq!(cluster.walk(), creation(3));
        let (workload, pod_group) = (&cluster.workload().metadata, &cluster.pod_group().metadata);
        assert_eq!(serde_json::to_value(&workload.owner_references).unwrap(), json!([owner]));
        assert_eq!(serde_json::to_value(&pod_group.owner_references).unwrap(), json!([owner, source]));
        assert_eq!(workload.finalizers, None);
        assert_eq!(pod_group.finalizers, finalizers);
        // What a pod's reference to the PodGroup takes is in the binding.
        let bound = cluster.bound().unwrap();
        assert_eq!((Some(bound.name), Some(bound.uid)), (pod_group.name.clone(), pod_group.uid.clone()));
    }
}

#[test]
fn discovery_by_reference_matches_an_existing_workload_by_controller_ref_and_an_existing_pod_group_by_workload_ref_regardless_of_their_names()
 {
    let mut cluster = Cluster::gang().with_workload(theirs("any-name", 3)).with_pod_group(pod_group(
        "another-name",
        Made::Somebodys,
        ("any-name", "members"),
        &gang(3),
    ));
    assert_eq!(cluster.walk(), [bind_without_size("another-name", "uid-of-another-name")]);
    // Ours are found the same way, should the naming scheme ever change.
    let mut cluster = Cluster::gang()
        .with_workload(workload("any-name", Made::Ours, &of_web(&json!([template("web", &gang(3))]))))
        .with_pod_group(pod_group("another-name", Made::Ours, ("any-name", "web"), &gang(3)));
    assert_eq!(cluster.walk(), [bind("another-name", "uid-of-another-name", 3)]);
    // An object that only has the right name, or an owner, is not found.
    let elsewhere = json!({"controllerRef": {"apiGroup": "apps", "kind": "StatefulSet", "name": "other"}});
    let mut cluster = Cluster::gang()
        .with_workload(workload("other", Made::OwnedOnly, &elsewhere))
        .with_pod_group(pod_group("other", Made::OwnedOnly, ("other", "web"), &gang(3)));
    assert_eq!(cluster.walk(), creation(3));
    // Nor is one of another namespace.
    let mut cluster = Cluster::gang();
    cluster.workloads.push(Stored::new("elsewhere", theirs("theirs", 3)));
    let mut elsewhere = pod_group("group", Made::Ours, (&own_workload(), "web"), &gang(3));
    elsewhere.metadata.namespace = Some("elsewhere".to_owned());
    cluster.pod_groups.push(Stored::new("elsewhere", elsewhere));
    assert_eq!(cluster.walk(), creation(3));
}

#[test]
fn no_duplicate_creation_when_a_workload_exists_but_its_pod_group_does_not() {
    let mut cluster = Cluster::gang();
    for _ in 0..2 {
        cluster.step();
    }
    assert_eq!((cluster.workloads.len(), cluster.pod_groups.len()), (1, 0));
    let steps = creation(3);
    assert_eq!(cluster.walk(), ["ask for pods", &steps[2], &steps[3]]);
    assert_eq!((cluster.workloads.len(), cluster.pod_groups.len()), (1, 1));
}

#[test]
fn no_creation_attempted_once_the_stateful_set_already_has_pods_and_existing_objects_are_discovered_and_used() {
    let late = ["ask for pods".to_owned(), fall_back(Reason::PodsPredateOptIn)];
    let mut cluster = Cluster::gang().with_pods();
    assert_eq!(cluster.walk(), late);
    assert_eq!(cluster.told(), [Reason::PodsPredateOptIn]);
    // A Workload alone is kept in step, and gets no PodGroup any more.
    let ours = |size| workload("ours", Made::Ours, &of_web(&json!([template("web", &gang(size))])));
    let mut cluster = Cluster::gang().with_pods().with_workload(ours(2));
    assert_eq!(cluster.walk(), ["Workload ours: 2 to 3", &late[0], &late[1]]);
    // Both are used.
    let mut cluster = Cluster::gang().with_pods().with_workload(ours(2)).with_pod_group(pod_group(
        "group",
        Made::Ours,
        ("ours", "web"),
        &gang(2),
    ));
    let steps = ["Workload ours: 2 to 3", "PodGroup group: 2 to 3", &bind("group", "uid-of-group", 3)];
    assert_eq!(cluster.walk(), steps);
}

#[test]
fn two_workloads_matching_the_same_stateful_set_are_treated_as_ambiguous_and_nothing_is_created_or_mutated_and_an_event_is_emitted()
 {
    let ours = workload("ours", Made::Ours, &of_web(&json!([template("web", &gang(1))])));
    for other in [theirs("zz", 1), workload("zz", Made::Ours, &of_web(&json!([template("web", &gang(2))])))] {
        let mut cluster = Cluster::gang().with_workload(other).with_workload(ours.clone());
        assert_eq!(cluster.walk(), [fall_back(Reason::AmbiguousWorkload)]);
        assert_eq!(cluster.told(), [Reason::AmbiguousWorkload]);
        let message = &cluster.rest().reports[0].message;
        assert!(message.contains("ours, zz"), "{message}");
    }
}

#[test]
fn a_workload_or_pod_group_not_created_by_the_controller_is_used_as_is_with_no_owner_reference_added_no_mutation_and_no_deletion()
 {
    for made in [Made::Somebodys, Made::MarkedOnly, Made::OwnedOnly, Made::Parents] {
        let spec = of_web(&json!([template("members", &gang(7))]));
        let mut cluster = Cluster::gang().with_workload(workload("theirs", made, &spec)).with_pod_group(pod_group(
            "group",
            made,
            ("theirs", "members"),
            &gang(2),
        ));
        let before = cluster.clone();
        assert_eq!(cluster.walk(), [bind_without_size("group", "uid-of-group")], "{made:?}");
        assert_eq!(cluster.rest().policy, Some(PolicyType::Gang));
        assert_eq!(cluster.workloads, before.workloads);
        assert_eq!(cluster.pod_groups, before.pod_groups);
    }
}

#[test]
fn with_a_byo_or_parent_owned_workload_and_a_controller_owned_pod_group_only_the_pod_groups_min_count_is_synced_from_the_workload_template()
 {
    let byo = (Cluster::gang().with_workload(theirs("theirs", 3)), "theirs", "members");
    let delegated = (Cluster::child("workers").with_workload(parents_workload("parents")), "parents", "workers");
    for (mut cluster, workload_name, template_name) in [byo, delegated] {
        cluster.walk();
        let name = cluster.pod_group().metadata.name.clone().unwrap();
        let uid = cluster.pod_group().metadata.uid.clone().unwrap();
        assert_eq!(cluster.bound().unwrap().replicas, Some(3));
        // The replicas alone change nothing but what is published.
        let before = cluster.clone();
        cluster.scale(5);
        assert_eq!(cluster.walk(), [bind(&name, &uid, 5)]);
        assert_eq!((&cluster.workloads, &cluster.pod_groups), (&before.workloads, &before.pod_groups));
        // The template does.
        let mut spec = serde_json::to_value(&cluster.workload().spec).unwrap();
        let path = match workload_name {
            "theirs" => "/podGroupTemplates/0",
            _ => "/compositePodGroupTemplates/0/podGroupTemplates/0",
        };
        *spec.pointer_mut(path).unwrap() = template(template_name, &gang(4));
        let raised = workload(workload_name, Made::Somebodys, &spec);
        cluster.workloads = vec![Stored::new(NAMESPACE, raised)];
        let before = cluster.clone();
        assert_eq!(cluster.walk(), [format!("PodGroup {name}: 3 to 4")]);
        assert_eq!(cluster.workloads, before.workloads);
    }
}

#[test]
fn with_a_byo_pod_group_scaling_mutates_neither_that_pod_group_nor_any_byo_workload() {
    let mut cluster = Cluster::gang().with_workload(theirs("theirs", 3)).with_pod_group(pod_group(
        "group",
        Made::Somebodys,
        ("theirs", "members"),
        &gang(3),
    ));
    cluster.walk();
    let before = cluster.clone();
    for replicas in [5, 0, 1] {
        cluster.scale(replicas);
        assert!(cluster.walk().is_empty(), "{replicas}");
    }
    assert_eq!((cluster.workloads, cluster.pod_groups), (before.workloads, before.pod_groups));
    // Of a controller-owned Workload it is the Workload that is kept in step, as always.
    let mut cluster = Cluster::gang()
        .with_workload(workload("ours", Made::Ours, &of_web(&json!([template("web", &gang(3))]))))
        .with_pod_group(pod_group("group", Made::Somebodys, ("ours", "web"), &gang(3)));
    cluster.walk();
    cluster.scale(5);
    assert_eq!(cluster.walk(), ["Workload ours: 3 to 5"]);
}

#[test]
fn a_discovered_workload_with_a_pod_group_templates_count_other_than_1_is_ignored_with_an_event() {
    let one = template("members", &gang(1));
    let two = template("others", &gang(1));
    for made in [Made::Somebodys, Made::Ours] {
        for templates in [json!([]), Value::Null, json!([one, two])] {
            let mut cluster = Cluster::gang()
                .with_workload(workload("odd", made, &of_web(&templates)))
                .with_pod_group(pod_group("group", Made::Ours, ("odd", "members"), &gang(2)));
            assert_eq!(cluster.walk(), [fall_back(Reason::UnusableWorkload)], "{templates}");
            assert_eq!(cluster.told(), [Reason::UnusableWorkload]);
        }
    }
}

#[test]
fn composition_with_a_parent_owner_reference_and_group_template_name_set_creates_no_workload_and_instantiates_its_pod_group_from_the_parents_named_template()
 {
    let mut cluster = Cluster::child("workers").with_workload(parents_workload("parents"));
    let before = cluster.workloads.clone();
    cluster.scale(7);
    let name = delegated_pod_group("parents", "workers");
    assert_eq!(cluster.walk(), ["ask for pods".to_owned(), create_pod_group(&name), bind(&name, "uid-1", 7)]);
    assert_eq!(cluster.workloads, before);
    let pod_group = cluster.pod_group();
    let spec = serde_json::to_value(&pod_group.spec).unwrap();
    let reference = json!({"workloadName": "parents", "templateName": "workers"});
    assert_eq!(spec, json!({"workloadRef": reference, "schedulingPolicy": gang(3)}));
    // It goes with the StatefulSet, and never keeps or follows the parent's Workload.
    let owners = pod_group.metadata.owner_references.as_deref().unwrap();
    assert_eq!(owners.iter().map(|owner| owner.kind.as_str()).collect::<Vec<_>>(), ["StatefulSet"]);
    assert_eq!(cluster.told(), []);
}

#[test]
fn composition_with_parent_compositepodgroup_also_set_links_the_created_pod_group_to_that_parent_composite_pod_group_instance()
 {
    for (annotation, parent) in [(Some("lws-0"), Some("lws-0")), (Some(""), None), (None, None)] {
        let mut cluster = Cluster::child("workers").with_workload(parents_workload("parents"));
        if let Some(annotation) = annotation {
            cluster.annotate(PARENT_COMPOSITE_POD_GROUP_ANNOTATION, annotation);
        }
        cluster.walk();
        assert_eq!(cluster.pod_group().spec.parent_composite_pod_group_name.as_deref(), parent);
    }
    assert_eq!(PARENT_COMPOSITE_POD_GROUP_ANNOTATION, "scheduling.k8s.io/parent-compositepodgroup");
    // Without delegation there is nothing to link to.
    let mut cluster = Cluster::gang();
    cluster.annotate(PARENT_COMPOSITE_POD_GROUP_ANNOTATION, "lws-0");
    cluster.walk();
    assert_eq!(cluster.pod_group().spec.parent_composite_pod_group_name, None);
}

#[test]
fn composition_with_a_parent_owner_reference_but_no_group_template_name_annotation_creates_its_own_workload_and_pod_group_and_publishes_the_name_for_pods()
 {
    let mut cluster = Cluster::gang().with_workload(parents_workload("parents"));
    cluster.own(&json!([parent_reference()]));
    assert_eq!(cluster.walk(), creation(3));
    assert_eq!(cluster.told(), []);
    // An empty annotation names nothing.
    let mut cluster = Cluster::child("").with_workload(parents_workload("parents"));
    assert_eq!(cluster.walk(), creation(3));
}

#[test]
fn composition_with_group_template_name_but_without_a_parent_controller_owner_reference_does_not_suppress_creation_and_surfaces_an_event()
 {
    let mut owner = parent_reference();
    owner["controller"] = false.into();
    for owners in [Value::Null, json!([]), json!([owner])] {
        let mut cluster = Cluster::child("workers").with_workload(parents_workload("parents"));
        cluster.own(&owners);
        assert_eq!(cluster.walk(), creation(3), "{owners}");
        assert_eq!(cluster.told(), [Reason::DelegationWithoutOwner]);
    }
}

#[test]
fn composition_with_an_unresolved_or_ambiguous_parent_workload_or_template_falls_back_with_an_event_instead_of_creating_a_separate_workload()
 {
    let twice = json!([template("workers", &gang(3)), template("workers", &gang(4))]);
    let apart = json!([
        composite("a", &json!([template("workers", &gang(3))]), &json!([])),
        composite("b", &json!([template("workers", &gang(3))]), &json!([])),
    ]);
    let none = Cluster::child("workers");
    let cases = [
        ("no Workload", none.clone()),
        ("several", none.clone().with_workload(parents_workload("a")).with_workload(parents_workload("b"))),
        ("no template", Cluster::child("leader").with_workload(parents_workload("parents"))),
        (
            "one list with the template twice",
            none.clone().with_workload(workload(
                "parents",
                Made::Parents,
                &of_parent(&json!([composite("replica", &twice, &json!([]))])),
            )),
        ),
        ("two lists with it", none.clone().with_workload(workload("parents", Made::Parents, &of_parent(&apart)))),
        ("a Workload of its own", none.clone().with_workload(theirs("theirs", 3))),
    ];
    for (case, cluster) in cases {
        for has_pods in [false, true] {
            let mut cluster = Cluster { has_pods, ..cluster.clone() };
            // The index may be behind: the parent is asked for before anything is given up.
            let steps = ["ask for the parent".to_owned(), fall_back(Reason::UnresolvedParent)];
            assert_eq!(cluster.walk(), steps, "{case}");
            assert_eq!(cluster.told(), [Reason::UnresolvedParent], "{case}");
            assert_eq!(cluster.pod_groups, [], "{case}");
        }
    }
}

#[test]
fn resource_claims_from_spec_scheduling_are_passed_through_to_pod_group_template_and_pod_group() {
    let claims = json!([
        {"name": "one", "resourceClaimName": "claim"},
        {"name": "two", "resourceClaimTemplateName": "template"},
    ]);
    let mut cluster = Cluster::new(&json!({"schedulingPolicy": {"gang": {}}, "resourceClaims": claims}));
    cluster.walk();
    assert_eq!(serde_json::to_value(&cluster.template().resource_claims).unwrap(), claims);
    assert_eq!(serde_json::to_value(&cluster.pod_group().spec.resource_claims).unwrap(), claims);
}

#[test]
fn pods_receive_matching_spec_resource_claims_entries_when_the_pod_template_includes_them() {
    let claims = json!([{"name": "one", "resourceClaimTemplateName": "template"}]);
    let mut cluster = Cluster::new(&json!({"resourceClaims": claims}));
    cluster.statefulset["spec"]["template"]["spec"]["resourceClaims"] = claims.clone();
    let before = cluster.statefulset["spec"].clone();
    cluster.walk();
    // Pods are made from the template, which stays as it is and matches the group's claims.
    assert_eq!(cluster.statefulset["spec"], before);
    assert_eq!(serde_json::to_value(&cluster.pod_group().spec.resource_claims).unwrap(), claims);
    let subject = cluster.subject();
    let intent = subject.intent.unwrap();
    let report = validation::validate_create(&subject.spec, &intent.configuration, &intent.carrier.path());
    assert_eq!(report, validation::Report::default());
}

#[test]
fn resource_claims_field_is_omitted_from_pod_group_template_when_the_gate_is_disabled() {
    let claims = json!([{"name": "one", "resourceClaimName": "claim"}]);
    let mut cluster = Cluster::new(&json!({"schedulingPolicy": {"gang": {}}, "resourceClaims": claims}));
    cluster.settings.gates.dra_workload_resource_claims = false;
    assert_eq!(cluster.walk(), creation(3));
    assert_eq!(cluster.template().resource_claims, None);
    assert_eq!(cluster.pod_group().spec.resource_claims, None);
}

#[test]
fn resource_claims_field_is_omitted_when_spec_scheduling_resource_claims_is_empty() {
    let mut cluster = Cluster::new(&json!({"schedulingPolicy": {"gang": {}}, "resourceClaims": []}));
    assert_eq!(cluster.walk(), creation(3));
    assert_eq!(cluster.template().resource_claims, None);
    assert_eq!(cluster.pod_group().spec.resource_claims, None);
}

// What stops everything.

#[test]
fn while_the_gate_is_closed_nothing_is_done_and_nothing_is_said() {
    let closed = FeatureGates { workload_with_stateful_set: false, ..FeatureGates::default() };
    let mut scaled = Cluster::running();
    scaled.scale(5);
    let ambiguous = Cluster::gang().with_workload(theirs("a", 1)).with_workload(theirs("b", 1));
    let unreadable = Cluster::new(&json!(3));
    for mut cluster in [Cluster::gang(), scaled, ambiguous, unreadable] {
        cluster.settings.gates = closed;
        let before = cluster.clone();
        assert!(cluster.walk().is_empty());
        assert_eq!(cluster.rest(), Decision::rest());
        assert_eq!((cluster.workloads, cluster.pod_groups), (before.workloads, before.pod_groups));
    }
}

#[test]
fn a_stateful_set_that_is_being_deleted_is_left_alone() {
    let mut scaled = Cluster::running();
    scaled.scale(5);
    for mut cluster in [Cluster::gang(), scaled, Cluster::child("workers"), Cluster::new(&json!(3))] {
        cluster.statefulset["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert!(cluster.walk().is_empty());
        assert_eq!(cluster.rest(), Decision::rest());
    }
}

#[test]
fn an_intent_that_cannot_be_read_is_told_and_never_sets_a_size() {
    let wrong_type = |pointer: &str, value: Value| {
        let mut cluster = Cluster::running();
        cluster.scale(5);
        *cluster.statefulset.pointer_mut(pointer).unwrap() = value;
        cluster
    };
    let mut twice = Cluster::running();
    twice.scale(5);
    twice.annotate(SCHEDULING_ANNOTATION, "{}");
    let cases = [
        ("spec.scheduling.schedulingPolicy", wrong_type("/spec/scheduling/schedulingPolicy", json!(3))),
        // Its defaults would make a gang of one.
        ("spec.replicas", wrong_type("/spec/replicas", json!("5"))),
        ("spec.replicas", wrong_type("/spec/replicas", json!(4_294_967_296_i64))),
        ("metadata.annotations", twice),
    ];
    for (path, mut cluster) in cases {
        let before = cluster.clone();
        assert!(cluster.walk().is_empty(), "{path}");
        assert_eq!(cluster, before);
        assert_eq!(cluster.told(), [Reason::WorkloadCreationFailed], "{path}");
        let message = &cluster.rest().reports[0].message;
        assert!(message.contains(path), "{message}");
    }
}

#[test]
fn an_intent_that_is_invalid_creates_nothing_and_is_told() {
    let mut ordered = Cluster::gang();
    ordered.statefulset["spec"]["podManagementPolicy"] = "OrderedReady".into();
    let mut partitioned = Cluster::gang();
    partitioned.statefulset["spec"]["updateStrategy"] = json!({"rollingUpdate": {"partition": 1}});
    let cases = [
        (ordered, GANG_REQUIRES_PARALLEL),
        (partitioned, NO_PARTITION),
        (Cluster::new(&json!({"schedulingPolicy": gang(2)})), "minCount"),
        (Cluster::new(&json!({"disruptionMode": {"all": {}}})), "disruptionMode `all` is not supported"),
        (Cluster::new(&json!({"resourceClaims": [{"name": "one"}]})), "resourceClaims"),
    ];
    for (mut cluster, reason) in cases {
        assert_eq!(cluster.walk(), ["ask for pods"], "{reason}");
        assert_eq!((cluster.workloads.len(), cluster.pod_groups.len()), (0, 0));
        assert_eq!(cluster.told(), [Reason::WorkloadCreationFailed]);
        let message = &cluster.rest().reports[0].message;
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn nothing_is_created_before_the_pods_are_asked_for() {
    let with_workload = Cluster::gang().with_workload(theirs("theirs", 3));
    let delegated = Cluster::child("workers").with_workload(parents_workload("parents"));
    for cluster in [Cluster::gang(), with_workload, delegated] {
        assert_eq!(cluster.decide().step, Step::AskPods);
    }
}

// Objects that cannot be used, or not any more.

#[test]
fn a_pod_group_that_is_being_deleted_is_unbound_and_not_replaced_while_it_is_there() {
    for has_pods in [false, true] {
        let mut cluster = Cluster::running();
        let group = leaving(cluster.pod_group());
        cluster.pod_groups = vec![Stored::new(NAMESPACE, group)];
        cluster.has_pods = has_pods;
        assert_eq!(cluster.walk(), ["unbind"]);
        assert_eq!(cluster.binding(), None);
        assert!(cluster.walk().is_empty());
        assert_eq!(cluster.rest(), Decision::rest());
        // A Workload of ours is kept in step meanwhile, the PodGroup is not touched.
        cluster.scale(5);
        assert_eq!(cluster.walk(), [format!("Workload {}: 3 to 5", own_workload())]);
        // Once it is gone the pods decide.
        cluster.pod_groups.clear();
        let steps = if has_pods {
            vec!["ask for pods".to_owned(), fall_back(Reason::PodsPredateOptIn)]
        } else {
            let name = own_pod_group();
            vec!["ask for pods".to_owned(), create_pod_group(&name), bind(&name, "uid-3", 5)]
        };
        assert_eq!(cluster.walk(), steps);
    }
}

#[test]
fn a_workload_that_is_being_deleted_is_neither_used_nor_replaced() {
    let mut cluster = Cluster::running();
    let workload = leaving(cluster.workload());
    cluster.workloads = vec![Stored::new(NAMESPACE, workload)];
    cluster.scale(5);
    let before = cluster.clone();
    assert!(cluster.walk().is_empty());
    assert_eq!(cluster, before);
    let mut cluster = Cluster::child("workers").with_workload(leaving(&parents_workload("parents")));
    assert!(cluster.walk().is_empty());
    assert_eq!(cluster.told(), []);
}

#[test]
fn a_workload_that_is_gone_is_made_anew_only_without_pods_and_meets_its_pod_group_again() {
    let mut cluster = Cluster::running();
    cluster.workloads.clear();
    let late = ["ask for pods".to_owned(), fall_back(Reason::PodsPredateOptIn)];
    assert_eq!(cluster.walk(), late);
    cluster.has_pods = false;
    let again = ["ask for pods".to_owned(), create_workload(&own_workload()), bind(&own_pod_group(), "uid-2", 3)];
    assert_eq!(cluster.walk(), again);
}

#[test]
fn two_pod_groups_of_one_workload_are_ambiguous_and_neither_is_changed() {
    let mut cluster = Cluster::running();
    let ours = cluster.pod_group().clone();
    cluster = cluster.with_pod_group(pod_group("a-second", Made::Somebodys, (&own_workload(), "web"), &gang(1)));
    assert_eq!(cluster.walk(), [fall_back(Reason::AmbiguousPodGroup)]);
    assert_eq!(cluster.told(), [Reason::AmbiguousPodGroup]);
    let message = cluster.rest().reports[0].message.clone();
    assert!(message.contains(&format!("a-second, {}", own_pod_group())), "{message}");
    cluster.scale(5);
    assert_eq!(cluster.walk(), [format!("Workload {}: 3 to 5", own_workload())]);
    // With one of the two gone, the other is used again.
    cluster.pod_groups = vec![Stored::new(NAMESPACE, ours)];
    assert_eq!(cluster.walk(), resize(3, 5, 5)[1..]);
    assert_eq!(cluster.told(), []);
}

#[test]
fn a_shape_that_a_stateful_set_cannot_use_falls_back_and_is_told() {
    let composites = json!([composite("all", &json!([template("members", &gang(1))]), &json!([]))]);
    let mut only_composites = of_web(&Value::Null);
    only_composites["compositePodGroupTemplates"] = composites;
    let odd = json!({});
    let unknown_policy = of_web(&json!([template("members", &odd)]));
    for made in [Made::Somebodys, Made::Ours] {
        for spec in [&only_composites, &unknown_policy] {
            let mut cluster = Cluster::gang().with_workload(workload("odd", made, spec));
            assert_eq!(cluster.walk(), [fall_back(Reason::UnusableWorkload)]);
            assert_eq!(cluster.told(), [Reason::UnusableWorkload]);
        }
    }
    // The same for a parent's template.
    let composites = json!([composite("all", &json!([template("workers", &odd)]), &json!([]))]);
    let parents = workload("parents", Made::Parents, &of_parent(&composites));
    let mut cluster = Cluster::child("workers").with_workload(parents);
    assert_eq!(cluster.walk(), [fall_back(Reason::UnusableWorkload)]);
}

#[test]
fn a_fallback_ends_once_its_cause_is_gone() {
    let mut cluster = Cluster::gang().with_workload(theirs("a", 3)).with_workload(theirs("b", 3));
    cluster.walk();
    cluster.workloads.pop();
    let name = names::pod_group_name("a", "members");
    assert_eq!(cluster.walk(), ["ask for pods".to_owned(), create_pod_group(&name), bind(&name, "uid-1", 3)]);
    assert_eq!(cluster.told(), []);
    // Scaled to zero and back.
    let mut cluster = Cluster::gang().with_pods();
    cluster.walk();
    cluster.has_pods = false;
    assert_eq!(cluster.walk(), creation(3));
}

#[test]
fn objects_of_an_earlier_stateful_set_of_the_name_are_no_candidates_and_not_ambiguous() {
    let spec = of_web(&json!([template("web", &gang(9))]));
    let earlier = || workload("earlier", Made::Earlier, &spec);
    let mut cluster = Cluster::gang().with_workload(earlier()).with_pod_group(pod_group(
        "earlier-group",
        Made::Earlier,
        ("earlier", "web"),
        &gang(9),
    ));
    let before = cluster.clone();
    assert_eq!(cluster.walk(), creation(3));
    assert_eq!(cluster.workloads[0], before.workloads[0]);
    assert_eq!(cluster.pod_groups[0], before.pod_groups[0]);
    // Not even while they are being deleted.
    let mut cluster = Cluster::gang().with_workload(leaving(&earlier()));
    assert_eq!(cluster.walk(), creation(3));
    // Nor an earlier PodGroup of a Workload that stays.
    let mut cluster = Cluster::gang().with_workload(theirs("theirs", 3)).with_pod_group(leaving(&pod_group(
        "earlier-group",
        Made::Earlier,
        ("theirs", "members"),
        &gang(9),
    )));
    let name = names::pod_group_name("theirs", "members");
    assert_eq!(cluster.walk(), ["ask for pods".to_owned(), create_pod_group(&name), bind(&name, "uid-1", 3)]);
}

#[test]
fn a_binding_of_an_earlier_stateful_set_or_pod_group_is_replaced() {
    let mut cluster = Cluster::running();
    for stale in
        [r#"{"name":"web","uid":"uid-earlier","replicas":3}"#, r#"{"fallback":"AmbiguousWorkload"}"#, "no JSON"]
    {
        cluster.annotate(BINDING_ANNOTATION, stale);
        assert_eq!(cluster.walk(), [bind(&own_pod_group(), "uid-2", 3)], "{stale}");
    }
}

#[test]
fn our_pod_group_of_somebody_elses_workload_is_a_snapshot_of_the_template_and_is_not_owned_by_the_workload() {
    let spec = of_web(&json!([{
        "name": "members",
        "schedulingPolicy": gang(2),
        "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
        "priorityClassName": "theirs",
    }]));
    let mut cluster = Cluster::gang().with_workload(workload("theirs", Made::Somebodys, &spec));
    let before = cluster.workloads.clone();
    let name = names::pod_group_name("theirs", "members");
    assert_eq!(cluster.walk(), ["ask for pods".to_owned(), create_pod_group(&name), bind(&name, "uid-1", 3)]);
    assert_eq!(cluster.workloads, before);
    let pod_group = cluster.pod_group();
    assert_eq!(
        serde_json::to_value(&pod_group.spec).unwrap(),
        json!({
            "workloadRef": {"workloadName": "theirs", "templateName": "members"},
            "schedulingPolicy": gang(2),
            "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
            "priorityClassName": "theirs",
        })
    );
    let owners = pod_group.metadata.owner_references.as_deref().unwrap();
    assert_eq!(owners.iter().map(|owner| owner.uid.as_str()).collect::<Vec<_>>(), [UID]);
}

// Delegation.

#[test]
fn a_parents_template_is_found_at_any_depth() {
    let workers = json!([template("leader", &gang(1)), template("workers", &gang(4))]);
    let third = composite("third", &workers, &json!([]));
    let second = composite("second", &json!([]), &json!([third]));
    let first = composite("first", &json!([template("other", &basic())]), &json!([second]));
    let deep = workload("parents", Made::Parents, &of_parent(&json!([first])));
    let mut flat = of_parent(&Value::Null);
    flat["podGroupTemplates"] = workers;
    let flat = workload("parents", Made::Parents, &flat);
    for parents in [deep, flat] {
        let mut cluster = Cluster::child("workers").with_workload(parents);
        let name = delegated_pod_group("parents", "workers");
        assert_eq!(cluster.walk(), ["ask for pods".to_owned(), create_pod_group(&name), bind(&name, "uid-1", 3)]);
        assert_eq!(cluster.pod_group().spec.scheduling_policy.gang.as_ref().unwrap().min_count, 4);
    }
}

#[test]
fn the_parent_is_asked_for_once_before_a_fallback_and_what_is_learnt_is_used() {
    let mut cluster = Cluster::child("workers");
    cluster.unseen.push(parents_workload("parents"));
    let name = delegated_pod_group("parents", "workers");
    assert_eq!(
        cluster.walk(),
        ["ask for the parent", "ask for pods", &create_pod_group(&name), &bind(&name, "uid-1", 3)]
    );
    assert_eq!(cluster.told(), []);
    // What is in the index is used without asking.
    assert!(cluster.walk().is_empty());
}

#[test]
fn stateful_sets_that_share_a_parents_template_have_a_pod_group_each() {
    let mut cluster = Cluster::child("workers").with_workload(parents_workload("parents"));
    cluster.walk();
    let first = cluster.statefulset.clone();
    cluster.statefulset["metadata"]["name"] = "web-2".into();
    cluster.statefulset["metadata"]["uid"] = "uid-web-2".into();
    cluster.statefulset["metadata"]["annotations"].as_object_mut().unwrap().remove(BINDING_ANNOTATION);
    let name = names::delegated_pod_group_name("parents", "workers", "web-2", "uid-web-2");
    assert_ne!(name, delegated_pod_group("parents", "workers"));
    assert_eq!(cluster.walk(), ["ask for pods".to_owned(), create_pod_group(&name), bind(&name, "uid-2", 3)]);
    // Each keeps to its own.
    assert!(cluster.walk().is_empty());
    cluster.statefulset = first;
    assert!(cluster.walk().is_empty());
    assert_eq!(cluster.told(), []);
    // Names differ by UID too: a StatefulSet made anew does not meet what an earlier one left.
    assert_ne!(
        names::delegated_pod_group_name("parents", "workers", "web", "uid-a"),
        names::delegated_pod_group_name("parents", "workers", "web", "uid-b")
    );
}

#[test]
fn pod_groups_of_the_parents_other_templates_are_no_candidates() {
    let mut cluster = Cluster::child("workers").with_workload(parents_workload("parents")).with_pod_group(pod_group(
        "leaders",
        Made::Parents,
        ("parents", "leader"),
        &gang(1),
    ));
    let name = delegated_pod_group("parents", "workers");
    assert_eq!(cluster.walk(), ["ask for pods".to_owned(), create_pod_group(&name), bind(&name, "uid-1", 3)]);
}

#[test]
fn a_pod_group_that_the_parent_made_of_the_template_is_used_and_never_changed() {
    let mut cluster = Cluster::child("workers")
        .with_pods()
        .with_workload(parents_workload("parents"))
        .with_pod_group(pod_group("parents-group", Made::Parents, ("parents", "workers"), &gang(1)));
    let before = cluster.pod_groups.clone();
    assert_eq!(cluster.walk(), [bind_without_size("parents-group", "uid-of-parents-group")]);
    assert_eq!(cluster.pod_groups, before);
}

#[test]
fn a_delegated_pod_group_is_not_created_once_there_are_pods() {
    let mut cluster = Cluster::child("workers").with_pods().with_workload(parents_workload("parents"));
    assert_eq!(cluster.walk(), ["ask for pods".to_owned(), fall_back(Reason::PodsPredateOptIn)]);
    assert_eq!(cluster.told(), [Reason::PodsPredateOptIn]);
}

#[test]
fn a_parents_workload_that_refers_to_a_namesake_of_another_kind_or_group_is_not_the_parents() {
    for (group, kind, name) in [
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "other"),
        ("leaderworkerset.x-k8s.io", "Other", "lws"),
        ("example.com", "LeaderWorkerSet", "lws"),
    ] {
        let mut parents = parents_workload("parents");
        parents.spec.controller_ref = Some(api::TypedLocalObjectReference {
            api_group: Some(group.to_owned()),
            kind: kind.to_owned(),
            name: name.to_owned(),
        });
        let mut cluster = Cluster::child("workers").with_workload(parents);
        assert_eq!(cluster.walk(), ["ask for the parent".to_owned(), fall_back(Reason::UnresolvedParent)]);
    }
}

// Size.

#[test]
fn a_scale_walk_goes_workload_then_pod_group_then_binding_each_time() {
    let mut cluster = Cluster::running();
    for (from, to, replicas) in [(3, 5, 5), (5, 1, 0), (1, 2, 2)] {
        cluster.scale(replicas);
        assert_eq!(cluster.walk(), resize(from, to, replicas));
        assert_eq!(cluster.sizes(), (Some(to), Some(to)));
    }
    // From none to one the sizes stay and only the published size moves.
    for (replicas, steps) in [(1, resize(2, 1, 1)), (0, vec![bind(&own_pod_group(), "uid-2", 0)])] {
        cluster.scale(replicas);
        assert_eq!(cluster.walk(), steps);
    }
}

#[test]
fn a_scale_that_is_taken_back_half_way_is_taken_back_in_the_same_order() {
    let mut cluster = Cluster::running();
    cluster.scale(5);
    cluster.step();
    cluster.scale(3);
    assert_eq!(cluster.walk(), [format!("Workload {}: 5 to 3", own_workload())]);
    cluster.scale(5);
    cluster.step();
    cluster.step();
    cluster.scale(4);
    assert_eq!(cluster.walk(), resize(5, 4, 4));
}

#[test]
fn a_size_that_somebody_changed_is_put_right() {
    let resized = |object: &Value, path: &str| {
        let mut object = object.clone();
        *object.pointer_mut(path).unwrap() = 9.into();
        object
    };
    let mut cluster = Cluster::running();
    let object = serde_json::to_value(cluster.workload()).unwrap();
    let object = resized(&object, "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount");
    cluster.workloads = vec![Stored::new(NAMESPACE, serde_json::from_value(object).unwrap())];
    assert_eq!(cluster.walk(), [format!("Workload {}: 9 to 3", own_workload())]);
    let object = serde_json::to_value(cluster.pod_group()).unwrap();
    let object = resized(&object, "/spec/schedulingPolicy/gang/minCount");
    cluster.pod_groups = vec![Stored::new(NAMESPACE, serde_json::from_value(object).unwrap())];
    assert_eq!(cluster.walk(), [format!("PodGroup {}: 9 to 3", own_pod_group())]);
}

#[test]
fn scaling_a_basic_group_writes_nothing() {
    let mut cluster = Cluster::new(&json!({"schedulingPolicy": {"basic": {}}}));
    cluster.walk();
    let before = cluster.clone();
    for replicas in [0, 1, 9] {
        cluster.scale(replicas);
        assert!(cluster.walk().is_empty());
    }
    assert_eq!((&cluster.workloads, &cluster.pod_groups), (&before.workloads, &before.pod_groups));
    assert_eq!(cluster.binding(), before.binding());
}

#[test]
fn absent_replicas_are_one() {
    let mut cluster = Cluster::gang();
    cluster.statefulset["spec"].as_object_mut().unwrap().remove("replicas");
    assert_eq!(cluster.walk(), creation(1));
    assert_eq!(cluster.sizes(), (Some(1), Some(1)));
}

#[test]
fn a_change_of_size_is_a_json_patch_that_tests_what_was_seen() {
    let mut cluster = Cluster::running();
    cluster.scale(5);
    let Step::SetWorkloadMinCount(of_workload) = cluster.step() else { panic!() };
    assert_eq!(
        of_workload.json_patch(),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "uid-1"},
            {"op": "test", "path": "/spec/podGroupTemplates/0/name", "value": "web"},
            {"op": "test", "path": "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount", "value": 3},
            {"op": "replace", "path": "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount", "value": 5},
        ])
    );
    let Step::SetPodGroupMinCount(of_pod_group) = cluster.step() else { panic!() };
    assert_eq!(
        of_pod_group.json_patch(),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "uid-2"},
            {"op": "test", "path": "/spec/schedulingPolicy/gang/minCount", "value": 3},
            {"op": "replace", "path": "/spec/schedulingPolicy/gang/minCount", "value": 5},
        ])
    );
}

#[test]
fn a_change_of_size_is_refused_where_anything_is_not_as_it_was_seen_and_planned_anew() {
    let mut cluster = Cluster::running();
    cluster.scale(5);
    let stale = cluster.decide().step;
    let Step::SetWorkloadMinCount(patch) = &stale else { panic!() };
    let seen = cluster.workload().clone();
    assert!(patched(&seen, patch).is_ok());
    let mut anew = seen.clone();
    anew.metadata.uid = Some("uid-anew".to_owned());
    let mut renamed = seen.clone();
    renamed.spec.pod_group_templates.as_mut().unwrap()[0].name = "other".to_owned();
    let mut policy = seen.clone();
    policy.spec.pod_group_templates.as_mut().unwrap()[0].scheduling_policy = serde_json::from_value(basic()).unwrap();
    let mut resized = seen.clone();
    resized.spec.pod_group_templates.as_mut().unwrap()[0].scheduling_policy = serde_json::from_value(gang(4)).unwrap();
    for other in [anew, renamed, policy, resized.clone()] {
        assert!(patched(&other, patch).is_err(), "{other:?}");
    }
    cluster.workloads = vec![Stored::new(NAMESPACE, resized)];
    assert!(cluster.apply(&stale).is_err());
    let name = own_workload();
    assert_eq!(cluster.walk()[0], format!("Workload {name}: 4 to 5"));
}

// Restarts.

/// Stops after each step of a walk, starts again, and compares where both come to rest.
fn survives_a_crash_after_each_step(start: &Cluster) {
    let mut whole = start.clone();
    let steps = whole.walk();
    assert!(!steps.is_empty());
    for crash in 0..=steps.len() {
        let mut cluster = start.clone();
        for _ in 0..crash {
            cluster.step();
        }
        let rest = cluster.walk();
        let asked = |step: &&String| !step.starts_with("ask");
        let writes: Vec<_> = steps.iter().filter(asked).collect();
        let written = steps[..crash].iter().filter(asked).count();
        assert_eq!(rest.iter().filter(asked).collect::<Vec<_>>(), writes[written..], "after {crash} of {steps:#?}");
        assert_eq!(cluster.workloads, whole.workloads);
        assert_eq!(cluster.pod_groups, whole.pod_groups);
        assert_eq!(cluster.statefulset, whole.statefulset);
    }
}

#[test]
fn a_crash_after_any_step_comes_to_the_same_rest_without_a_write_twice() {
    survives_a_crash_after_each_step(&Cluster::gang());
    survives_a_crash_after_each_step(&Cluster::new(&json!({})));
    survives_a_crash_after_each_step(&Cluster::gang().with_workload(theirs("theirs", 2)));
    survives_a_crash_after_each_step(&Cluster::gang().with_pods());
    survives_a_crash_after_each_step(&Cluster::child("workers").with_workload(parents_workload("parents")));
    survives_a_crash_after_each_step(&Cluster::child("workers"));
    for replicas in [5, 2, 0] {
        let mut cluster = Cluster::running();
        cluster.scale(replicas);
        survives_a_crash_after_each_step(&cluster);
    }
}

#[test]
fn a_create_whose_answer_was_lost_is_repeated_with_the_same_object() {
    let mut cluster = Cluster::gang();
    cluster.step();
    let before = cluster.clone();
    let first = cluster.step();
    assert_eq!(before.decide().step, first);
    assert_eq!(cluster.apply(&first), Err("already exists".to_owned()));
    let before = cluster.clone();
    let second = cluster.step();
    assert_eq!(before.decide().step, second);
    assert_eq!(cluster.apply(&second), Err("already exists".to_owned()));
}

#[test]
fn at_rest_the_plan_stays_at_rest() {
    let mut several = Cluster::gang().with_workload(theirs("a", 3)).with_workload(theirs("b", 3));
    several.walk();
    for mut cluster in [Cluster::running(), several] {
        let (rest, state) = (cluster.rest(), cluster.clone());
        for _ in 0..3 {
            assert!(cluster.walk().is_empty());
            assert_eq!(cluster.rest(), rest);
            assert_eq!((&cluster.workloads, &cluster.pod_groups), (&state.workloads, &state.pod_groups));
            assert_eq!(cluster.statefulset, state.statefulset);
        }
    }
}

// What is read of a StatefulSet.

#[test]
fn a_subject_is_what_the_stateful_set_says() {
    let subject = Cluster::gang().subject();
    assert_eq!((subject.name.as_str(), subject.namespace.as_str(), subject.uid.as_str()), ("web", NAMESPACE, UID));
    assert_eq!(subject.spec.replicas, Some(3));
    assert!(subject.labelled && !subject.deleting && !subject.has_members);
    assert_eq!((subject.parent, subject.group_template_name, subject.binding), (None, None, None));
    assert_eq!((subject.parent_composite_pod_group, subject.selector), (None, None));

    let mut cluster = Cluster::child("workers");
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"});
    cluster.own(&json!([other, parent_reference()]));
    cluster.annotate(PARENT_COMPOSITE_POD_GROUP_ANNOTATION, "lws-0");
    cluster.annotate(BINDING_ANNOTATION, "text");
    cluster.statefulset["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    cluster.statefulset["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
    cluster.statefulset["status"] = json!({"replicas": 2});
    let subject = cluster.subject();
    let reference = subject.parent.unwrap().reference;
    assert_eq!(
        (reference.api_group.as_str(), reference.kind.as_str(), reference.name.as_str()),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "lws")
    );
    assert_eq!(subject.group_template_name.as_deref(), Some("workers"));
    assert_eq!(subject.parent_composite_pod_group.as_deref(), Some("lws-0"));
    assert_eq!(subject.binding.as_deref(), Some("text"));
    assert_eq!(subject.selector.as_deref(), Some("app=web"));
    assert!(subject.deleting && subject.has_members);
}

// What is said and published.

#[test]
fn a_pod_template_without_the_label_is_told_with_whatever_else_there_is() {
    let unlabelled = |mut cluster: Cluster| {
        cluster.statefulset["spec"]["template"]["metadata"]["labels"] = json!({MANAGED_LABEL: "false"});
        cluster
    };
    let mut cluster = unlabelled(Cluster::gang());
    assert_eq!(cluster.walk(), creation(3));
    assert_eq!(cluster.told(), [Reason::TemplateNotLabelled]);
    assert!(cluster.rest().reports[0].message.contains("statefulset-scheduling.dev/managed=true"));
    let mut cluster = unlabelled(Cluster::gang().with_pods());
    cluster.walk();
    assert_eq!(cluster.told(), [Reason::PodsPredateOptIn, Reason::TemplateNotLabelled]);
    let mut cluster = unlabelled(Cluster::child("workers"));
    cluster.own(&Value::Null);
    cluster.walk();
    assert_eq!(cluster.told(), [Reason::DelegationWithoutOwner, Reason::TemplateNotLabelled]);
    let mut cluster = Cluster::gang();
    cluster.statefulset["spec"]["template"].as_object_mut().unwrap().remove("metadata");
    cluster.walk();
    assert_eq!(cluster.told(), [Reason::TemplateNotLabelled]);
}

#[test]
fn the_members_of_a_group_just_made_are_looked_at_once_and_told_of_where_they_have_no_group() {
    for (members_without_group, told) in [(false, vec![]), (true, vec![Reason::MembersWithoutGroup])] {
        let mut cluster = Cluster { look_at_members: true, members_without_group, ..Cluster::gang() };
        // There are none yet.
        assert_eq!(cluster.walk(), creation(3));
        cluster.statefulset["status"] = json!({"replicas": 0});
        assert!(cluster.walk().is_empty());
        cluster.statefulset["status"] = json!({"replicas": 1});
        assert_eq!(cluster.walk(), ["ask for members"]);
        assert_eq!(cluster.told(), told);
        assert_eq!(cluster.rest().policy, Some(PolicyType::Gang));
        // What is to be written comes first.
        cluster.scale(5);
        let mut steps = resize(3, 5, 5);
        steps.push("ask for members".to_owned());
        assert_eq!(cluster.walk(), steps);
        cluster.look_at_members = false;
        assert!(cluster.walk().is_empty());
        assert_eq!(cluster.told(), []);
    }
}

#[test]
fn members_that_cannot_have_a_group_are_not_looked_at() {
    let with_members = |mut cluster: Cluster| {
        cluster.statefulset["status"] = json!({"replicas": 3});
        cluster.look_at_members = true;
        cluster
    };
    let mut unlabelled = with_members(Cluster::running());
    unlabelled.statefulset["spec"]["template"]["metadata"] = Value::Null;
    assert!(unlabelled.walk().is_empty());
    let mut late = with_members(Cluster::gang().with_pods());
    assert_eq!(late.walk(), ["ask for pods".to_owned(), fall_back(Reason::PodsPredateOptIn)]);
}

#[test]
fn what_is_told_stays_the_same_from_the_fallbacks_step_to_its_rest() {
    let mut cluster = Cluster::gang().with_workload(theirs("a", 3)).with_workload(theirs("b", 3));
    let deciding = cluster.decide();
    assert_eq!(deciding.step.change(), Change::Write);
    cluster.walk();
    assert_eq!(cluster.rest().reports, deciding.reports);
}

#[test]
fn the_success_of_a_create_is_told_and_of_nothing_else() {
    let mut cluster = Cluster::gang();
    let mut told = Vec::new();
    for _ in 0..5 {
        let step = cluster.step();
        told.push(step.success().map(|report| (report.reason, report.message)));
    }
    let workload = (Reason::WorkloadCreated, format!("created the Workload {}", own_workload()));
    let pod_group = (Reason::PodGroupCreated, format!("created the PodGroup {}", own_pod_group()));
    assert_eq!(told, [None, Some(workload), Some(pod_group), None, None]);
    assert!(!Reason::WorkloadCreated.is_warning() && !Reason::PodGroupCreated.is_warning());
    assert!(Reason::AmbiguousWorkload.is_warning() && Reason::TemplateNotLabelled.is_warning());
}

#[test]
fn objects_that_went_are_made_again_only_for_a_stateful_set_that_is_still_there() {
    let mut cluster = Cluster::gang();
    assert_eq!(cluster.decide().step, Step::AskPods);
    cluster.known.objects_went = true;
    assert_eq!(cluster.decide().step, Step::AskStatefulSet, "before anything else is asked");
    cluster.known.is_there = Some(false);
    assert_eq!(cluster.decide().step, Step::Rest, "the watch will tell that it is gone");
    cluster.known.is_there = Some(true);
    assert_eq!(cluster.decide().step, Step::AskPods);
}

#[test]
fn questions_change_nothing_and_all_else_does() {
    for step in [Step::Rest, Step::AskPods, Step::AskStatefulSet, Step::AskParent, Step::AskMembers] {
        assert_eq!(step.change(), Change::None);
    }
    let mut cluster = Cluster::gang();
    cluster.step();
    for _ in 0..3 {
        assert_eq!(cluster.step().change(), Change::Write);
    }
}

#[test]
fn the_binding_has_these_exact_texts() {
    let name = own_pod_group();
    let cluster = Cluster::running();
    assert_eq!(cluster.binding(), Some(format!(r#"{{"name":"{name}","uid":"uid-2","replicas":3}}"#).as_str()));
    let mut cluster = Cluster::new(&json!({}));
    cluster.walk();
    assert_eq!(cluster.binding(), Some(format!(r#"{{"name":"{name}","uid":"uid-2"}}"#).as_str()));
    let mut cluster = Cluster::gang().with_pods();
    cluster.walk();
    assert_eq!(cluster.binding(), Some(r#"{"fallback":"PodsPredateOptIn"}"#));
    let group = |size| pod_group("group", Made::Somebodys, ("theirs", "members"), &gang(size));
    let mut cluster = Cluster::gang().with_workload(theirs("theirs", 3)).with_pod_group(group(3));
    cluster.walk();
    assert_eq!(cluster.binding(), Some(r#"{"name":"group","uid":"uid-of-group"}"#));
    cluster = cluster.with_workload(theirs("others", 3));
    cluster.walk();
    assert_eq!(cluster.binding(), Some(r#"{"fallback":"AmbiguousWorkload"}"#));
}

#[test]
fn a_name_that_is_long_or_has_dots_is_compiled_and_bound_too() {
    for name in ["web.v1".to_owned(), "w".repeat(253)] {
        let mut cluster = Cluster::gang();
        cluster.statefulset["metadata"]["name"] = name.as_str().into();
        cluster.walk();
        assert_eq!(cluster.workload().spec.controller_ref.as_ref().unwrap().name, name);
        assert_eq!(cluster.template().name, names::template_name(&name));
        assert_eq!(cluster.bound().map(|bound| bound.name), cluster.pod_group().metadata.name);
        cluster.scale(5);
        assert_eq!(cluster.walk().len(), 3);
    }
}

#[test]
fn an_intent_in_the_annotation_is_planned_as_one_in_the_field() {
    let mut cluster = Cluster::gang();
    cluster.statefulset["spec"].as_object_mut().unwrap().remove("scheduling");
    cluster.annotate(SCHEDULING_ANNOTATION, "schedulingPolicy: {gang: {}}");
    let (mut of_field, mut of_annotation) = (Cluster::gang(), cluster);
    assert_eq!(of_annotation.walk(), of_field.walk());
    assert_eq!(of_annotation.workloads, of_field.workloads);
    assert_eq!(of_annotation.pod_groups, of_field.pod_groups);
}

#[test]
fn the_size_that_a_stateful_set_starts_with_is_its_replicas() {
    for (replicas, size) in [(None, 1), (Some(0), 1), (Some(1), 1), (Some(40), 40)] {
        assert_eq!(StatefulSet { replicas, ..StatefulSet::default() }.gang_size(), size);
    }
}

// Whatever there is.

mod whatever_there_is {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn policies() -> impl Strategy<Value = Value> + Clone {
        prop_oneof![2 => (1..6).prop_map(gang), 1 => Just(basic()), 1 => Just(json!({}))]
    }

    fn origins() -> impl Strategy<Value = Made> {
        select(vec![
            Made::Ours,
            Made::Ours,
            Made::Earlier,
            Made::Siblings,
            Made::Parents,
            Made::MarkedOnly,
            Made::OwnedOnly,
            Made::Somebodys,
        ])
    }

    fn templates() -> impl Strategy<Value = Value> {
        let one = (select(vec!["web", "workers"]), policies()).prop_map(|(name, policy)| template(name, &policy));
        prop_oneof![
            4 => one.clone().prop_map(|one| json!([one])),
            1 => vec(one, 0..3).prop_map(Value::from),
        ]
    }

    fn specs() -> impl Strategy<Value = Value> {
        let nested = (templates(), templates()).prop_map(|(outer, inner)| {
            json!([composite("outer", &outer, &json!([composite("inner", &inner, &json!([]))]))])
        });
        prop_oneof![
            4 => templates().prop_map(|templates| of_web(&templates)),
            3 => nested.prop_map(|composites| of_parent(&composites)),
            1 => Just(json!({})),
        ]
    }

    fn workloads() -> impl Strategy<Value = Vec<api::Workload>> {
        let one = (origins(), specs(), prop::bool::weighted(0.1));
        vec(one, 0..3).prop_map(|list| {
            let numbered = list.into_iter().enumerate();
            numbered
                .map(|(number, (made, spec, is_leaving))| {
                    let workload = workload(&format!("workload-{number}"), made, &spec);
                    if is_leaving { leaving(&workload) } else { workload }
                })
                .collect()
        })
    }

    fn pod_groups() -> impl Strategy<Value = Vec<api::PodGroup>> {
        let workloads = select(vec!["workload-0", "workload-1", "workload-2"]);
        let source = (workloads, select(vec!["web", "workers"]));
        vec((origins(), source, policies(), prop::bool::weighted(0.1)), 0..4).prop_map(|list| {
            let numbered = list.into_iter().enumerate();
            numbered
                .map(|(number, (made, source, policy, is_leaving))| {
                    let pod_group = pod_group(&format!("group-{number}"), made, source, &policy);
                    if is_leaving { leaving(&pod_group) } else { pod_group }
                })
                .collect()
        })
    }

    fn statefulsets() -> impl Strategy<Value = Value> {
        let scheduling = select(vec![
            json!({}),
            json!({"schedulingPolicy": {"gang": {}}}),
            json!({"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}}),
            json!({"disruptionMode": {"all": {}}}),
            json!({"schedulingPolicy": {"gang": {"minCount": 2}}}),
            json!({"resourceClaims": [{"name": "one", "resourceClaimName": "claim"}]}),
            json!([]),
        ]);
        let replicas = prop_oneof![
            4 => (0..6).prop_map(Value::from),
            1 => select(vec![json!(i32::MAX), json!(-1), json!("3"), Value::Null]),
        ];
        let management = select(vec!["Parallel", "Parallel", "Parallel", "OrderedReady"]);
        let delegation = option::of(select(vec!["web", "workers", "nowhere", ""]));
        let binding = option::of(select(vec![
            r#"{"fallback":"AmbiguousWorkload"}"#,
            r#"{"name":"group-0","uid":"uid-of-group-0","replicas":3}"#,
            r#"{"name":"group-1","uid":"uid-of-group-1"}"#,
            "{",
        ]));
        let switches = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.05), any::<bool>(), any::<bool>());
        (scheduling, replicas, management, delegation, binding, switches).prop_map(
            |(
                scheduling,
                replicas,
                management,
                delegation,
                binding,
                (owned, labelled, is_leaving, composite, pods),
            )| {
                let mut cluster = Cluster::new(&scheduling);
                cluster.statefulset["spec"]["replicas"] = replicas;
                cluster.statefulset["spec"]["podManagementPolicy"] = management.into();
                if owned {
                    cluster.own(&json!([parent_reference()]));
                }
                if let Some(template) = delegation {
                    cluster.annotate(GROUP_TEMPLATE_NAME_ANNOTATION, template);
                }
                if let Some(binding) = binding {
                    cluster.annotate(BINDING_ANNOTATION, binding);
                }
                if composite {
                    cluster.annotate(PARENT_COMPOSITE_POD_GROUP_ANNOTATION, "lws-0");
                }
                if pods {
                    cluster.statefulset["status"] = json!({"replicas": 1});
                }
                if !labelled {
                    cluster.statefulset["spec"]["template"]["metadata"] = Value::Null;
                }
                if is_leaving {
                    cluster.statefulset["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                }
                cluster.statefulset
            },
        )
    }

    fn clusters() -> impl Strategy<Value = Cluster> {
        let settings = (prop::bool::weighted(0.95), any::<bool>(), any::<bool>());
        let answers = (any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.2));
        (statefulsets(), workloads(), pod_groups(), settings, answers).prop_map(
            |(statefulset, workloads, pod_groups, (gate, claims, references), answers)| {
                let (has_pods, look_at_members, members_without_group, unseen) = answers;
                Cluster {
                    statefulset,
                    settings: Settings {
                        gates: FeatureGates { workload_with_stateful_set: gate, dra_workload_resource_claims: claims },
                        pod_group_owner_reference: references,
                    },
                    has_pods,
                    look_at_members,
                    members_without_group,
                    workloads: workloads.into_iter().map(|workload| Stored::new(NAMESPACE, workload)).collect(),
                    pod_groups: pod_groups.into_iter().map(|group| Stored::new(NAMESPACE, group)).collect(),
                    unseen: unseen.then(|| parents_workload("late")).into_iter().collect(),
                    known: Known { look_at_members, ..Known::default() },
                    creates: 0,
                }
            },
        )
    }

    /// The object that a patch names, by what the index knows of it.
    fn identity<'a>(mut identities: impl Iterator<Item = &'a Identity>, patch: &MinCountPatch) -> &'a Identity {
        identities.find(|identity| identity.name == patch.name).expect("a patch of an object that is there")
    }

    /// What holds for a step before it is made.
    fn check(cluster: &Cluster, step: &Step) {
        let workloads = cluster.workloads.iter().map(|stored| &stored.facts.identity);
        let pod_groups = cluster.pod_groups.iter().map(|stored| &stored.facts.identity);
        match step {
            Step::Rest
            | Step::AskPods
            | Step::AskStatefulSet
            | Step::AskParent
            | Step::AskMembers
            | Step::PublishBinding(None) => {}
            Step::CreateWorkload(workload) => {
                assert_eq!(cluster.known.has_pods, Some(false));
                assert_eq!(Identity::from(&workload.metadata).origin(UID), Origin::Ours);
                let [template] = workload.spec.pod_group_templates.as_deref().unwrap() else { panic!() };
                assert!(template.scheduling_policy.gang.as_ref().is_none_or(|gang| gang.min_count >= 1));
            }
            Step::CreatePodGroup(pod_group) => {
                assert_eq!(cluster.known.has_pods, Some(false));
                assert_eq!(Identity::from(&pod_group.metadata).origin(UID), Origin::Ours);
                assert!(pod_group.spec.scheduling_policy.gang.as_ref().is_none_or(|gang| gang.min_count >= 1));
                // It belongs to the StatefulSet, and else only to a Workload of ours.
                for owner in pod_group.metadata.owner_references.iter().flatten().skip(1) {
                    let owner = workloads.clone().find(|identity| identity.uid == owner.uid).unwrap();
                    assert_eq!(owner.origin(UID), Origin::Ours);
                }
            }
            Step::SetWorkloadMinCount(patch) => {
                assert!(patch.to >= 1 && patch.to != patch.from);
                assert_eq!(identity(workloads, patch).origin(UID), Origin::Ours);
            }
            Step::SetPodGroupMinCount(patch) => {
                assert!(patch.to >= 1 && patch.to != patch.from);
                assert_eq!(identity(pod_groups, patch).origin(UID), Origin::Ours);
            }
            Step::PublishBinding(Some(text)) => match Binding::parse(text).unwrap() {
                Binding::Fallback(_) => {}
                Binding::PodGroup(binding) => {
                    let mut facts = cluster.pod_groups.iter().map(|stored| &stored.facts);
                    let group = facts.find(|facts| facts.identity.uid == binding.uid).unwrap();
                    assert_eq!(group.identity.name, binding.name);
                    assert!(!group.identity.deleting);
                    // A size is published only where it is kept, and is in step.
                    if binding.replicas.is_some() {
                        assert_eq!(group.identity.origin(UID), Origin::Ours);
                        let mut workloads = cluster.workloads.iter().map(|stored| &stored.facts);
                        let source = workloads.find(|facts| Some(&facts.identity.name) == group.workload_name.as_ref());
                        let templates = source.unwrap().templates_named(group.template_name.as_deref().unwrap());
                        let sizes: Vec<_> =
                            templates.iter().map(|template| template.scheduling_policy.gang.as_ref()).collect();
                        // A managed PodGroup may name a template that its Workload does not have.
                        if let [gang] = sizes.as_slice() {
                            assert_eq!(gang.map(|gang| gang.min_count), group.min_count);
                        }
                    }
                }
            },
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_walk_ends_writes_only_what_is_ours_and_publishes_only_what_is_in_step(start in clusters()) {
            let mut cluster = start.clone();
            let mut steps = Vec::new();
            loop {
                let decision = cluster.decide();
                check(&cluster, &decision.step);
                if decision.step == Step::Rest {
                    prop_assert_eq!(cluster.decide(), decision);
                    break;
                }
                steps.push(describe(&decision.step));
                prop_assert!(steps.len() <= LONGEST_WALK, "{:#?}", steps);
                cluster.apply(&decision.step).unwrap();
            }
            // Whatever was there and is not ours is there as it was.
            for before in &start.workloads {
                if before.facts.identity.origin(UID) != Origin::Ours {
                    prop_assert!(cluster.workloads.contains(before));
                }
            }
            for before in &start.pod_groups {
                if before.facts.identity.origin(UID) != Origin::Ours {
                    prop_assert!(cluster.pod_groups.contains(before));
                }
            }
            // Of the StatefulSet itself only the binding is written.
            prop_assert_eq!(&cluster.statefulset["spec"], &start.statefulset["spec"]);
            // A fresh start has nothing to write any more.
            let rest = cluster.clone();
            for step in cluster.walk() {
                prop_assert!(step.starts_with("ask"), "{}", step);
            }
            prop_assert_eq!(&cluster.statefulset, &rest.statefulset);
        }

        #[test]
        fn a_crash_anywhere_comes_to_the_same_rest(start in clusters(), crash in 0..LONGEST_WALK) {
            let mut whole = start.clone();
            whole.walk();
            let mut cluster = start;
            for _ in 0..crash {
                cluster.step();
            }
            cluster.walk();
            prop_assert_eq!(cluster.workloads, whole.workloads);
            prop_assert_eq!(cluster.pod_groups, whole.pod_groups);
            prop_assert_eq!(cluster.statefulset, whole.statefulset);
        }
    }
}
