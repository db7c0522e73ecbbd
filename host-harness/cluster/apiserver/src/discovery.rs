//! What a client can find out about the API: versions, groups, resources.
//!
//! Stands for the legacy discovery documents and, for `kubectl`'s question whether the server can
//! validate fields, for the part of `OpenAPI` v3 that answers it. `OpenAPI` v2 is a document without
//! definitions, by which a client validates nothing. Left out: aggregated discovery (clients fall back
//! to the legacy documents), and all schemas: `kubectl explain` has nothing to explain, and a client-side
//! apply takes its merge keys from what is built into `kubectl`.

use serde_json::{Value, json};

use crate::config::Gates;
use crate::resource::{Served, Subresource};

/// `OpenAPI` v2 as protobuf, which is how `kubectl` asks for it: version, title and nothing else.
pub(crate) const OPENAPI_V2: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.37.0\x42\x00\x4a\x00";

/// What is answered to a path that is not about objects; none if it is not served.
pub(crate) fn document(path: &str, gates: Gates) -> Option<Value> {
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        ["version"] => Some(version()),
        ["api"] => Some(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        })),
        ["apis"] => {
            let groups: Vec<_> = group_names(gates).into_iter().map(|name| group(name, gates)).collect();
            Some(json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
        }
        ["apis", name] => group_names(gates).contains(name).then(|| {
            let mut group = group(name, gates);
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            group
        }),
        ["api", version] => resources("", version, gates),
        ["apis", group, version] => resources(group, version, gates),
        ["openapi", "v2"] => Some(json!({ "swagger": "2.0", "info": info(), "paths": {}, "definitions": {} })),
        ["openapi", "v3"] => Some(openapi_index(gates)),
        ["openapi", "v3", "api", version] => openapi("", version, gates),
        ["openapi", "v3", "apis", group, version] => openapi(group, version, gates),
        _ => None,
    }
}

/// Whether a version of a group is served.
pub(crate) fn serves(group: &str, version: &str, gates: Gates) -> bool {
    Served::all(gates).any(|served| served.group == group && served.version == version)
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "37",
        "gitVersion": "v1.37.0",
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.26",
        "compiler": "gc",
        "platform": "linux/amd64",
    })
}

fn group_names(gates: Gates) -> Vec<&'static str> {
    let mut names = Vec::new();
    for served in Served::all(gates) {
        if !served.group.is_empty() && !names.contains(&served.group) {
            names.push(served.group);
        }
    }
    names
}

fn group(name: &str, gates: Gates) -> Value {
    let mut versions: Vec<&str> = Vec::new();
    for served in Served::all(gates).filter(|served| served.group == name) {
        if !versions.contains(&served.version) {
            versions.push(served.version);
        }
    }
    let written = |version: &&str| json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    let versions: Vec<_> = versions.iter().map(written).collect();
    json!({ "name": name, "preferredVersion": versions[0], "versions": versions })
}

fn resources(group: &str, version: &str, gates: Gates) -> Option<Value> {
    let mut resources = Vec::new();
    let mut group_version = None;
    for served in Served::all(gates).filter(|served| served.group == group && served.version == version) {
        group_version = Some(served.api_version());
        let resource = served.resource;
        let namespaced = resource.is_namespaced();
        let mut written = json!({
            "name": resource.plural(),
            "singularName": resource.singular(),
            "namespaced": namespaced,
            "kind": resource.kind(),
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        });
        if !resource.short_names().is_empty() {
            written["shortNames"] = json!(resource.short_names());
        }
        if matches!(resource.plural(), "pods" | "statefulsets" | "services") {
            written["categories"] = json!(["all"]);
        }
        resources.push(written);
        for subresource in resource.subresources() {
            let mut written = json!({
                "name": format!("{}/{}", resource.plural(), subresource.as_str()),
                "singularName": "",
                "namespaced": namespaced,
                "kind": resource.kind(),
                "verbs": ["get", "patch", "update"],
            });
            let other = match subresource {
                Subresource::Status => None,
                Subresource::Scale => Some(("autoscaling", "v1", "Scale", json!(["get", "patch", "update"]))),
                Subresource::Binding => Some(("", "v1", "Binding", json!(["create"]))),
                Subresource::Eviction => Some(("policy", "v1", "Eviction", json!(["create"]))),
                Subresource::Finalize => Some(("", "v1", "Namespace", json!(["update"]))),
            };
            if let Some((group, version, kind, verbs)) = other {
                written["kind"] = kind.into();
                written["verbs"] = verbs;
                if !group.is_empty() {
                    written["group"] = group.into();
                    written["version"] = version.into();
                }
            }
            resources.push(written);
        }
    }
    let group_version = group_version?;
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
    }))
}

fn openapi_index(gates: Gates) -> Value {
    let paths = Served::all(gates).map(|served| {
        let path = match served.group {
            "" => format!("api/{}", served.version),
            group => format!("apis/{group}/{}", served.version),
        };
        let url = json!({ "serverRelativeURL": format!("/openapi/v3/{path}") });
        (path, url)
    });
    json!({ "paths": paths.collect::<serde_json::Map<_, _>>() })
}

fn openapi(group: &str, version: &str, gates: Gates) -> Option<Value> {
    let mut paths = serde_json::Map::new();
    for served in Served::all(gates).filter(|served| served.group == group && served.version == version) {
        let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let namespace = if served.resource.is_namespaced() { "/namespaces/{namespace}" } else { "" };
        let parameter = |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "string" } });
        let patch = json!({
            "parameters": [parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation")],
            "responses": { "200": { "description": "OK" } },
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": {
                "group": group, "version": version, "kind": served.resource.kind(),
            },
        });
        paths.insert(format!("{root}{namespace}/{}/{{name}}", served.resource.plural()), json!({ "patch": patch }));
    }
    (!paths.is_empty()).then(|| json!({ "openapi": "3.0.0", "info": info(), "paths": paths, "components": {} }))
}

fn info() -> Value {
    json!({ "title": "Kubernetes", "version": "v1.37.0" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_points_to_one_that_is_there() {
        let gates = Gates::default();
        let groups = document("/apis", gates).expect("groups");
        for group in groups["groups"].as_array().expect("a list") {
            for version in group["versions"].as_array().expect("a list") {
                let path = format!("/apis/{}", version["groupVersion"].as_str().expect("text"));
                assert!(document(&path, gates).is_some(), "{path}");
                assert!(document(&format!("/openapi/v3{path}"), gates).is_some(), "{path}");
            }
        }
        assert!(document("/api/v1", gates).is_some() && document("/version", gates).is_some());
        assert!(document("/apis/batch/v1", gates).is_none());
    }

    #[test]
    fn what_a_gate_closes_is_not_discovered() {
        let group = document("/apis/scheduling.k8s.io", Gates::upstream()).expect("a group");
        assert_eq!(group["versions"].as_array().map(Vec::len), Some(1));
        assert!(document("/apis/scheduling.k8s.io/v1beta1", Gates::upstream()).is_none());
    }

    #[test]
    fn the_scale_is_another_groups_kind() {
        let list = document("/apis/apps/v1", Gates::default()).expect("a list");
        let scale = list["resources"].as_array().expect("a list").iter().find(|it| it["name"] == "statefulsets/scale");
        assert_eq!(scale.expect("a scale")["group"], "autoscaling");
    }
}
