//! Strategic merge patches, and the merge of a server-side apply.
//!
//! Stands for `strategicpatch` and, as far as it goes, for structured merge. Lists with a merge key are
//! merged item by item; the keys are known by the list's name and its neighbours, not by schema, for the
//! lists of the kinds that are served. Directives: `$patch` (`replace`, `delete`, `merge`),
//! `$deleteFromPrimitiveList`, `$setElementOrder`, `$retainKeys`. Left out: everything about field
//! ownership: an apply never removes what it no longer mentions.

use serde_json::{Map, Value};

/// How lists are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// A strategic merge patch: lists with a patchMergeKey.
    Strategic,
    /// A server-side apply: lists that are maps or sets.
    Apply,
}

/// How the items of a list are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// The list is replaced.
    Atomic,
    /// By the values themselves.
    Values,
    By(&'static [&'static str]),
}

fn keys(name: &str, sample: Option<&Value>, flavor: Flavor) -> Keys {
    let has = |key: &str| sample.is_some_and(|item| item.get(key).is_some());
    match name {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets"
        | "containerStatuses"
        | "resourceClaimStatuses"
        | "secrets"
        | "resourceClaims"
        | "claims"
        | "schedulingGates" => Keys::By(&["name"]),
        // An apply's lists are maps by name; a strategic merge patch replaces them.
        "podGroupTemplates" | "compositePodGroupTemplates" if flavor == Flavor::Apply => Keys::By(&["name"]),
        "volumeMounts" => Keys::By(&["mountPath"]),
        "volumeDevices" => Keys::By(&["devicePath"]),
        "ports" if has("containerPort") => match flavor {
            Flavor::Strategic => Keys::By(&["containerPort"]),
            Flavor::Apply => Keys::By(&["containerPort", "protocol"]),
        },
        "ports" if has("port") => match flavor {
            Flavor::Strategic => Keys::By(&["port"]),
            Flavor::Apply => Keys::By(&["port", "protocol"]),
        },
        "ownerReferences" | "reservedFor" => Keys::By(&["uid"]),
        "conditions" | "addresses" => Keys::By(&["type"]),
        "hostAliases" | "podIPs" | "hostIPs" => Keys::By(&["ip"]),
        "topologySpreadConstraints" => match flavor {
            Flavor::Strategic => Keys::By(&["topologyKey"]),
            Flavor::Apply => Keys::By(&["topologyKey", "whenUnsatisfiable"]),
        },
        "taints" if flavor == Flavor::Strategic => Keys::By(&["key"]),
        "finalizers" | "podCIDRs" => Keys::Values,
        _ => Keys::Atomic,
    }
}

const PATCH: &str = "$patch";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";
const RETAIN: &str = "$retainKeys";

/// Merges `patch` into `target`.
pub(crate) fn merge(target: &mut Value, patch: &Value, flavor: Flavor) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    match changes.get(PATCH).and_then(Value::as_str) {
        Some("replace") => {
            *target = without_directives(patch);
            return;
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            return;
        }
        _ => {}
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    if let Some(retained) = changes.get(RETAIN).and_then(Value::as_array) {
        members.retain(|key, _| retained.iter().any(|retained| retained == key));
    }
    for (key, change) in changes {
        if let Some(list) = key.strip_prefix(DELETE_FROM) {
            if let (Some(items), Some(gone)) = (members.get_mut(list).and_then(Value::as_array_mut), change.as_array())
            {
                items.retain(|item| !gone.contains(item));
            }
        } else if key.starts_with('$') {
            // Orders are applied when all lists are merged.
        } else if change.is_null() {
            // An apply does not remove by null: there it is an absent value.
            if flavor == Flavor::Strategic {
                members.remove(key);
            }
        } else if let Value::Array(items) = change {
            merge_list(key, members, items, flavor);
        } else {
            merge(members.entry(key.clone()).or_insert(Value::Null), change, flavor);
        }
    }
    for (key, order) in changes {
        if let (Some(list), Some(order)) = (key.strip_prefix(ORDER), order.as_array()) {
            reorder(list, members, order, flavor);
        }
    }
}

fn merge_list(name: &str, members: &mut Map<String, Value>, changes: &[Value], flavor: Flavor) {
    let is_replace = |item: &Value| item[PATCH] == "replace" && item.as_object().is_some_and(|item| item.len() == 1);
    let keys = keys(name, changes.iter().find(|item| !is_replace(item)), flavor);
    let replaces = changes.iter().any(is_replace);
    if keys == Keys::Atomic || replaces {
        let kept = changes.iter().filter(|item| !is_replace(item)).map(without_directives).collect();
        members.insert(name.to_owned(), Value::Array(kept));
        return;
    }
    let list = members.entry(name.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let Value::Array(items) = list else { return };
    for change in changes {
        let place = items.iter().position(|item| same(keys, item, change));
        match (place, change[PATCH].as_str()) {
            (Some(place), Some("delete")) => drop(items.remove(place)),
            (None, Some("delete")) => {}
            (Some(place), _) => merge(&mut items[place], change, flavor),
            (None, _) => items.push(without_directives(change)),
        }
    }
}

fn same(keys: Keys, left: &Value, right: &Value) -> bool {
    match keys {
        Keys::Atomic => false,
        Keys::Values => left == right,
        Keys::By(keys) => keys.iter().all(|key| match (left.get(*key), right.get(*key)) {
            (Some(left), Some(right)) => left == right,
            // What a protocol is where none is written.
            (None, Some(other)) | (Some(other), None) => *key == "protocol" && other == "TCP",
            (None, None) => *key == "protocol",
        }),
    }
}

/// Puts the items that `order` names into its order; others stay behind what they stood behind.
fn reorder(name: &str, members: &mut Map<String, Value>, order: &[Value], flavor: Flavor) {
    let Some(items) = members.get_mut(name).and_then(Value::as_array_mut) else { return };
    let keys = keys(name, items.first(), flavor);
    let rank = |item: &Value| order.iter().position(|wanted| wanted == item || same(keys, item, wanted));
    let mut last = 0;
    let mut ranked: Vec<(usize, Value)> = Vec::with_capacity(items.len());
    for item in std::mem::take(items) {
        if let Some(rank) = rank(&item) {
            last = rank;
        }
        ranked.push((last, item));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    items.extend(ranked.into_iter().map(|(_, item)| item));
}

fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, value)| !key.starts_with('$') && !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_directives(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_directives).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(mut target: Value, patch: &Value, flavor: Flavor) -> Value {
        merge(&mut target, patch, flavor);
        target
    }

    #[test]
    fn lists_with_keys_are_merged_item_by_item() {
        let pod = json!({ "containers": [
            { "name": "a", "image": "1", "env": [{ "name": "X", "value": "1" }], "args": ["p", "q"] },
            { "name": "b", "image": "1" },
        ] });
        let patch = json!({ "containers": [
            { "name": "a", "env": [{ "name": "Y", "value": "2" }, { "name": "X", "value": "3" }], "args": ["r"] },
            { "name": "b", "$patch": "delete" },
            { "name": "c", "image": "2" },
        ] });
        let expected = json!({ "containers": [
            { "name": "a", "image": "1", "args": ["r"],
              "env": [{ "name": "X", "value": "3" }, { "name": "Y", "value": "2" }] },
            { "name": "c", "image": "2" },
        ] });
        assert_eq!(merged(pod, &patch, Flavor::Strategic), expected);
    }

    #[test]
    fn directives_order_retain_replace_and_delete() {
        let target = json!({
            "finalizers": ["a", "b"],
            "conditions": [{ "type": "A" }, { "type": "B" }, { "type": "C" }],
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 1 } },
            "env": [{ "name": "X" }],
        });
        let patch = json!({
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["c", "b"],
            "finalizers": ["c"],
            "$setElementOrder/conditions": [{ "type": "C" }, { "type": "A" }],
            "strategy": { "$retainKeys": ["type"], "type": "OnDelete" },
            "env": [{ "$patch": "replace" }, { "name": "Z" }],
        });
        let expected = json!({
            "finalizers": ["c", "b"],
            "conditions": [{ "type": "C" }, { "type": "A" }, { "type": "B" }],
            "strategy": { "type": "OnDelete" },
            "env": [{ "name": "Z" }],
        });
        assert_eq!(merged(target, &patch, Flavor::Strategic), expected);
    }

    #[test]
    fn templates_are_replaced_by_a_patch_and_merged_by_an_apply() {
        let workload = json!({ "podGroupTemplates": [{ "name": "a", "priority": 1 }, { "name": "b" }] });
        let patch = json!({ "podGroupTemplates": [{ "name": "a", "x": null }] });
        assert_eq!(
            merged(workload.clone(), &patch, Flavor::Strategic),
            json!({ "podGroupTemplates": [{ "name": "a" }] })
        );
        assert_eq!(merged(workload.clone(), &patch, Flavor::Apply), workload);
    }

    #[test]
    fn ports_are_told_apart_by_what_they_are() {
        let container = json!({ "ports": [{ "containerPort": 80, "name": "http" }] });
        let patch = json!({ "ports": [{ "containerPort": 80, "protocol": "UDP" }] });
        let strategic = merged(container.clone(), &patch, Flavor::Strategic);
        assert_eq!(strategic["ports"].as_array().map(Vec::len), Some(1));
        assert_eq!(merged(container, &patch, Flavor::Apply)["ports"].as_array().map(Vec::len), Some(2));
    }
}
