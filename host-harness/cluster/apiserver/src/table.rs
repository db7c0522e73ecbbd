//! Tables, as `kubectl get` prints them.
//!
//! Stands for server-side printing (`as=Table`). The columns of pods, StatefulSets, nodes, events,
//! namespaces, `PriorityClass`es, Leases, claims and revisions are upstream's, as far as the objects here
//! have something to show in them; those of Workloads and PodGroups are made for this project's readers.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::resource::{Resource, Served};
use crate::store::{Listing, Object};

/// How a table is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableOptions {
    pub(crate) include: Include,
    pub(crate) version: TableVersion,
}

/// What of the object stands beside its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Metadata,
    Object,
    Nothing,
}

/// The version of the table's own API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableVersion {
    V1,
    V1Beta1,
}

/// A column: name, type, and whether only `-o wide` shows it.
type Column = (&'static str, &'static str, bool);

const NAME: Column = ("Name", "string", false);
const AGE: Column = ("Age", "string", false);

/// Writes the rows of one resource.
pub(crate) struct Rows {
    served: Served,
    options: TableOptions,
    /// Only the first table of a watch has columns.
    told: bool,
}

impl Rows {
    pub(crate) fn new(served: Served, options: TableOptions) -> Self {
        Self { served, options, told: false }
    }

    /// The table of a list.
    pub(crate) fn list(mut self, listing: &Listing, now: Timestamp) -> Value {
        let row = |object: &Arc<Object>| self.row(&object.value(self.served.resource), now);
        let rows: Vec<_> = listing.items.iter().map(row).collect();
        let mut table = self.table(&rows);
        table["metadata"] = json!({ "resourceVersion": listing.version.to_string() });
        if let Some((token, left)) = &listing.next {
            table["metadata"]["continue"] = token.as_str().into();
            table["metadata"]["remainingItemCount"] = (*left).into();
        }
        table
    }

    /// The table of one object.
    pub(crate) fn object(mut self, object: &Object, now: Timestamp) -> Value {
        let row = self.row(&object.value(self.served.resource), now);
        let mut table = self.table(&[row]);
        table["metadata"] = json!({ "resourceVersion": object.version.to_string() });
        table
    }

    /// The table of one event of a watch.
    pub(crate) fn event(&mut self, object: &Value, now: Timestamp) -> Value {
        let row = self.row(object, now);
        let mut table = self.table(&[row]);
        table["metadata"] = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
        table
    }

    fn table(&mut self, rows: &[Value]) -> Value {
        let version = match self.options.version {
            TableVersion::V1 => "meta.k8s.io/v1",
            TableVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        };
        let columns = if std::mem::replace(&mut self.told, true) {
            Value::Null
        } else {
            let written = |(name, kind, wide): &Column| {
                let format = if *name == "Name" { "name" } else { "" };
                json!({
                    "name": name, "type": kind, "format": format, "description": name, "priority": i32::from(*wide),
                })
            };
            columns(self.served.resource).iter().map(written).collect()
        };
        json!({ "kind": "Table", "apiVersion": version, "metadata": {}, "columnDefinitions": columns, "rows": rows })
    }

    fn row(&self, object: &Value, now: Timestamp) -> Value {
        let mut row = json!({ "cells": cells(self.served.resource, object, now) });
        match self.options.include {
            Include::Nothing => {}
            Include::Object => row["object"] = self.served.encode(object.clone()),
            Include::Metadata => {
                row["object"] = json!({
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
                });
            }
        }
        row
    }
}

fn columns(resource: Resource) -> &'static [Column] {
    match resource {
        Resource::Pods => &[
            NAME,
            ("Ready", "string", false),
            ("Status", "string", false),
            ("Restarts", "string", false),
            AGE,
            ("IP", "string", true),
            ("Node", "string", true),
            ("Nominated Node", "string", true),
            ("Pod Group", "string", true),
        ],
        Resource::StatefulSets => {
            &[NAME, ("Ready", "string", false), AGE, ("Containers", "string", true), ("Images", "string", true)]
        }
        Resource::Nodes => &[
            NAME,
            ("Status", "string", false),
            ("Roles", "string", false),
            AGE,
            ("Version", "string", false),
            ("Internal-IP", "string", true),
        ],
        Resource::Workloads => &[
            NAME,
            ("Controller", "string", false),
            ("Templates", "string", false),
            ("Managed By", "string", true),
            AGE,
        ],
        Resource::PodGroups => &[
            NAME,
            ("Workload", "string", false),
            ("Policy", "string", false),
            ("Scheduled", "string", false),
            ("Priority", "integer", true),
            ("Disruption", "string", true),
            AGE,
        ],
        Resource::CompositePodGroups => {
            &[NAME, ("Workload", "string", false), ("Parent", "string", false), ("Policy", "string", false), AGE]
        }
        Resource::Events => &[
            ("Last Seen", "string", false),
            ("Type", "string", false),
            ("Reason", "string", false),
            ("Object", "string", false),
            ("Subobject", "string", true),
            ("Source", "string", true),
            ("Message", "string", false),
            ("First Seen", "string", true),
            ("Count", "string", true),
            ("Name", "string", true),
        ],
        Resource::Namespaces => &[NAME, ("Status", "string", false), AGE],
        Resource::PriorityClasses => &[
            NAME,
            ("Value", "integer", false),
            ("Global-Default", "boolean", false),
            AGE,
            ("PreemptionPolicy", "string", true),
        ],
        Resource::Leases => &[NAME, ("Holder", "string", false), AGE],
        Resource::ResourceClaims => &[NAME, ("State", "string", false), AGE],
        Resource::PersistentVolumeClaims => &[
            NAME,
            ("Status", "string", false),
            ("Volume", "string", false),
            ("Capacity", "string", false),
            ("Access Modes", "string", false),
            ("StorageClass", "string", false),
            AGE,
        ],
        Resource::ControllerRevisions => &[NAME, ("Controller", "string", false), ("Revision", "integer", false), AGE],
        Resource::Services => &[
            NAME,
            ("Type", "string", false),
            ("Cluster-IP", "string", false),
            ("External-IP", "string", false),
            ("Port(s)", "string", false),
            AGE,
        ],
        Resource::ConfigMaps => &[NAME, ("Data", "string", false), AGE],
        _ => &[NAME, AGE],
    }
}

fn cells(resource: Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object["metadata"]["name"].clone();
    let age = Value::from(since(&object["metadata"]["creationTimestamp"], now));
    match resource {
        Resource::Pods => pod(object, name, age, now),
        Resource::StatefulSets => {
            let count = |value: &Value| value.as_i64().unwrap_or_default();
            let (ready, wanted) = (count(&object["status"]["readyReplicas"]), count(&object["spec"]["replicas"]));
            let containers = &object["spec"]["template"]["spec"]["containers"];
            vec![name, format!("{ready}/{wanted}").into(), age, each(containers, "name"), each(containers, "image")]
        }
        Resource::Nodes => node(object, name, age),
        Resource::Workloads => {
            let controller = &object["spec"]["controllerRef"];
            let controller = match (controller["kind"].as_str(), controller["name"].as_str()) {
                (Some(kind), Some(name)) => format!("{kind}/{name}"),
                _ => "<none>".to_owned(),
            };
            let managed_by = &object["metadata"]["annotations"]["scheduling.k8s.io/managed-by"];
            vec![name, controller.into(), templates(&object["spec"]).into(), or_none(managed_by), age]
        }
        Resource::PodGroups => {
            let spec = &object["spec"];
            let mode = spec["disruptionMode"].as_object().and_then(|mode| mode.keys().next());
            vec![
                name,
                or_none(&spec["workloadRef"]["workloadName"]),
                policy(spec).into(),
                condition(object, "PodGroupInitiallyScheduled").into(),
                spec["priority"].clone(),
                mode.map_or("<none>", String::as_str).into(),
                age,
            ]
        }
        Resource::CompositePodGroups => {
            let spec = &object["spec"];
            let workload = or_none(&spec["workloadRef"]["workloadName"]);
            vec![name, workload, or_none(&spec["parentCompositePodGroupName"]), policy(spec).into(), age]
        }
        Resource::Events => event(object, name, now),
        Resource::Namespaces => vec![name, object["status"]["phase"].clone(), age],
        Resource::PriorityClasses => {
            let default = object["globalDefault"].as_bool().unwrap_or_default();
            vec![name, object["value"].clone(), default.into(), age, object["preemptionPolicy"].clone()]
        }
        Resource::Leases => vec![name, text(&object["spec"]["holderIdentity"]).into(), age],
        Resource::ResourceClaims => vec![name, claim_state(object).into(), age],
        Resource::PersistentVolumeClaims => {
            let modes = join(object["spec"]["accessModes"].as_array().into_iter().flatten().map(text));
            vec![
                name,
                object["status"]["phase"].clone(),
                text(&object["spec"]["volumeName"]).into(),
                text(&object["status"]["capacity"]["storage"]).into(),
                modes.into(),
                text(&object["spec"]["storageClassName"]).into(),
                age,
            ]
        }
        Resource::ControllerRevisions => {
            let owners = object["metadata"]["ownerReferences"].as_array();
            let owner = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
            let owner = owner.map_or_else(
                || "<none>".to_owned(),
                |owner| format!("{}.apps/{}", text(&owner["kind"]).to_lowercase(), text(&owner["name"])),
            );
            vec![name, owner.into(), object["revision"].clone(), age]
        }
        Resource::Services => {
            let ports = object["spec"]["ports"].as_array().into_iter().flatten();
            let ports = join(ports.map(|port| format!("{}/{}", port["port"], text(&port["protocol"]))));
            let address = or_none(&object["spec"]["clusterIP"]);
            vec![name, object["spec"]["type"].clone(), address, "<none>".into(), ports.into(), age]
        }
        Resource::ConfigMaps => {
            let count =
                ["data", "binaryData"].iter().filter_map(|key| object[*key].as_object()).map(serde_json::Map::len);
            vec![name, count.sum::<usize>().to_string().into(), age]
        }
        _ => vec![name, age],
    }
}

/// A pod's phase, or what explains more.
fn pod(object: &Value, name: Value, age: Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let containers = status["containerStatuses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let total = spec["containers"].as_array().map_or(0, Vec::len);
    let ready = containers.iter().filter(|container| container["ready"] == true).count();
    let restarts: i64 = containers.iter().filter_map(|container| container["restartCount"].as_i64()).sum();
    let mut reason = status["reason"].as_str().or(status["phase"].as_str()).unwrap_or("Unknown").to_owned();
    let gated = condition_reason(object, "PodScheduled").is_some_and(|reason| reason == "SchedulingGated");
    if gated {
        "SchedulingGated".clone_into(&mut reason);
    }
    for container in containers {
        let state = &container["state"];
        let why = state["waiting"]["reason"].as_str().or(state["terminated"]["reason"].as_str());
        if let Some(why) = why {
            why.clone_into(&mut reason);
        }
    }
    let terminal = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
    if object["metadata"]["deletionTimestamp"].is_string() && !terminal {
        "Terminating".clone_into(&mut reason);
    }
    let last_restart = containers.iter().map(|container| &container["lastState"]["terminated"]["finishedAt"]);
    let last_restart = last_restart.filter_map(Value::as_str).max();
    let restarts = match last_restart {
        Some(time) if restarts > 0 => format!("{restarts} ({} ago)", since(&time.into(), now)),
        _ => restarts.to_string(),
    };
    vec![
        name,
        format!("{ready}/{total}").into(),
        reason.into(),
        restarts.into(),
        age,
        or_none(&status["podIP"]),
        or_none(&spec["nodeName"]),
        or_none(&status["nominatedNodeName"]),
        or_none(&spec["schedulingGroup"]["podGroupName"]),
    ]
}

fn node(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let mut status = match condition(object, "Ready").as_str() {
        "True" => "Ready".to_owned(),
        "<none>" => "Unknown".to_owned(),
        _ => "NotReady".to_owned(),
    };
    if object["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let roles = join(labels.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).map(str::to_owned));
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles };
    let addresses = object["status"]["addresses"].as_array().into_iter().flatten();
    let internal =
        addresses.filter(|address| address["type"] == "InternalIP").map(|address| or_none(&address["address"]));
    let version = text(&object["status"]["nodeInfo"]["kubeletVersion"]);
    vec![
        name,
        status.into(),
        roles.into(),
        age,
        version.into(),
        internal.into_iter().next().unwrap_or_else(|| "<none>".into()),
    ]
}

fn event(object: &Value, name: Value, now: Timestamp) -> Vec<Value> {
    let first = [&object["firstTimestamp"], &object["eventTime"], &object["metadata"]["creationTimestamp"]];
    let first = first.into_iter().find(|time| time.is_string()).unwrap_or(&Value::Null);
    let last = [&object["series"]["lastObservedTime"], &object["lastTimestamp"], &object["eventTime"]];
    let last = last.into_iter().find(|time| time.is_string()).unwrap_or(first);
    let involved = &object["involvedObject"];
    let about = format!("{}/{}", text(&involved["kind"]).to_lowercase(), text(&involved["name"]));
    let source = if object["source"]["component"].is_string() {
        [text(&object["source"]["component"]), text(&object["source"]["host"])]
    } else {
        [text(&object["reportingComponent"]), text(&object["reportingInstance"])]
    };
    let source = source.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let count = object["series"]["count"].as_i64().or(object["count"].as_i64()).unwrap_or(1);
    vec![
        since(last, now).into(),
        text(&object["type"]).into(),
        text(&object["reason"]).into(),
        about.into(),
        text(&involved["fieldPath"]).into(),
        source.into(),
        text(&object["message"]).trim().into(),
        since(first, now).into(),
        count.to_string().into(),
        name,
    ]
}

/// The templates of a Workload with their policies, nested ones in parentheses.
fn templates(spec: &Value) -> String {
    let groups = spec["podGroupTemplates"].as_array().into_iter().flatten();
    let groups = groups.map(|template| format!("{}: {}", text(&template["name"]), policy(template)));
    let composites = spec["compositePodGroupTemplates"].as_array().into_iter().flatten();
    let composites = composites.map(|template| format!("{}({})", text(&template["name"]), templates(template)));
    join(groups.chain(composites))
}

fn policy(holder: &Value) -> String {
    let policy = &holder["schedulingPolicy"];
    let count = &policy["gang"]["minCount"];
    match (policy["gang"].is_object(), count.is_null()) {
        (true, false) => format!("gang/{count}"),
        (true, true) => match &policy["gang"]["minGroupCount"] {
            Value::Null => "gang".to_owned(),
            count => format!("gang/{count}"),
        },
        (false, _) if policy["basic"].is_object() => "basic".to_owned(),
        _ => "<none>".to_owned(),
    }
}

fn claim_state(object: &Value) -> String {
    let claim = &object["status"];
    let mut states = Vec::new();
    if object["metadata"]["deletionTimestamp"].is_string() {
        states.push("deleted");
    }
    if claim["allocation"].is_object() {
        states.push("allocated");
        if claim["reservedFor"].as_array().is_some_and(|users| !users.is_empty()) {
            states.push("reserved");
        }
    } else {
        states.push("pending");
    }
    states.join(",")
}

fn find_condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn condition(object: &Value, kind: &str) -> String {
    find_condition(object, kind).map_or_else(|| "<none>".to_owned(), |condition| text(&condition["status"]))
}

fn condition_reason<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    find_condition(object, kind)?["reason"].as_str()
}

fn each(items: &Value, key: &str) -> Value {
    join(items.as_array().into_iter().flatten().map(|item| text(&item[key]))).into()
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn or_none(value: &Value) -> Value {
    match value.as_str() {
        None | Some("") => "<none>".into(),
        Some(text) => text.into(),
    }
}

/// How long ago a time was, in the words of `kubectl`.
fn since(time: &Value, now: Timestamp) -> String {
    let Some(time) = time.as_str().and_then(|time| time.parse::<Timestamp>().ok()) else {
        return "<unknown>".to_owned();
    };
    human(now.duration_since(time).as_secs())
}

fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let with = |whole: i64, unit: char, rest: i64, small: char| {
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{small}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => with(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        _ => with(days / 365, 'y', days % 365, 'd'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_written_as_kubectl_writes_them() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (3600, "60m"),
            (10_860, "3h1m"),
            (40_000, "11h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
            (66_000_000, "2y33d"),
        ] {
            assert_eq!(human(seconds), text);
        }
    }

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let now = Timestamp::UNIX_EPOCH;
        for resource in Resource::all() {
            let count = cells(resource, &json!({ "metadata": { "name": "a" } }), now).len();
            assert_eq!(count, columns(resource).len(), "{resource}");
        }
    }

    #[test]
    fn a_pod_says_what_explains_most() {
        let mut pod = json!({
            "metadata": { "name": "web-0" },
            "spec": { "containers": [{}, {}], "nodeName": "n1" },
            "status": { "phase": "Running", "containerStatuses": [{ "ready": true, "restartCount": 2 }] },
        });
        let status = |pod: &Value| {
            let cells = cells(Resource::Pods, pod, Timestamp::UNIX_EPOCH);
            cells[1..4].iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(status(&pod), ["1/2", "Running", "2"]);
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] = "CrashLoopBackOff".into();
        assert_eq!(status(&pod)[1], "CrashLoopBackOff");
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(status(&pod)[1], "Terminating");
    }

    #[test]
    fn a_workload_shows_its_templates() {
        let spec = json!({ "compositePodGroupTemplates": [{
            "name": "all",
            "podGroupTemplates": [
                { "name": "a", "schedulingPolicy": { "gang": { "minCount": 3 } } },
                { "name": "b", "schedulingPolicy": { "basic": {} } },
            ],
        }] });
        assert_eq!(templates(&spec), "all(a: gang/3,b: basic)");
    }
}
