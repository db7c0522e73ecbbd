//! JSON merge patch (RFC 7386) and JSON patch (RFC 6902), with the API server's answers to misfits.
//!
//! Left out: a limit on the number of operations.

use serde_json::{Map, Value};

use crate::status::Problem;

/// Merges `patch` into `target`: objects key by key, null removes, all else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

/// Applies the operations of a JSON patch in order.
///
/// The caller throws `document` away on an error: operations before the failing one have been done.
pub(crate) fn apply(document: &mut Value, patch: &Value) -> Result<(), Problem> {
    let operations = patch.as_array().ok_or_else(|| Problem::bad_request("a JSON patch is an array"))?;
    operations.iter().try_for_each(|operation| apply_one(document, operation))
}

fn apply_one(document: &mut Value, operation: &Value) -> Result<(), Problem> {
    let text = |key: &str| {
        let missing = || Problem::bad_request(format!("an operation of a JSON patch has no {key}"));
        operation[key].as_str().ok_or_else(missing)
    };
    let value = || {
        let missing = || Problem::bad_request("an operation of a JSON patch has no value");
        operation.get("value").cloned().ok_or_else(missing)
    };
    let path = text("path")?;
    match text("op")? {
        "add" => add(document, path, value()?),
        "remove" => remove(document, path).map(drop),
        "replace" => {
            let target = document.pointer_mut(path).ok_or_else(|| missing("replace", path))?;
            *target = value()?;
            Ok(())
        }
        "move" => {
            let moved = remove(document, text("from")?)?;
            add(document, path, moved)
        }
        "copy" => {
            let from = text("from")?;
            let copied = document.pointer(from).cloned().ok_or_else(|| missing("copy", from))?;
            add(document, path, copied)
        }
        "test" => {
            // A missing value equals null, as in the library that the API server uses.
            let holds = *document.pointer(path).unwrap_or(&Value::Null) == value()?;
            if holds { Ok(()) } else { Err(Problem::patch_rejected(&format!("testing value {path} failed"))) }
        }
        other => Err(Problem::bad_request(format!("a JSON patch has no operation {other}"))),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), Problem> {
    let (parent, key) = parent(document, path, "add")?;
    match parent {
        Value::Object(fields) => {
            fields.insert(key, value);
            Ok(())
        }
        Value::Array(items) => {
            let end = items.len();
            let index = if key == "-" { Some(end) } else { key.parse().ok().filter(|index| *index <= end) };
            items.insert(index.ok_or_else(|| missing("add", path))?, value);
            Ok(())
        }
        _ => Err(missing("add", path)),
    }
}

fn remove(document: &mut Value, path: &str) -> Result<Value, Problem> {
    let (parent, key) = parent(document, path, "remove")?;
    let removed = match parent {
        Value::Object(fields) => fields.remove(&key),
        Value::Array(items) => {
            key.parse().ok().filter(|index| *index < items.len()).map(|index: usize| items.remove(index))
        }
        _ => None,
    };
    removed.ok_or_else(|| missing("remove", path))
}

/// What holds the last token of `path`, and that token.
fn parent<'a>(document: &'a mut Value, path: &str, operation: &str) -> Result<(&'a mut Value, String), Problem> {
    let (parent, key) = path.rsplit_once('/').ok_or_else(|| missing(operation, path))?;
    let key = key.replace("~1", "/").replace("~0", "~");
    Ok((document.pointer_mut(parent).ok_or_else(|| missing(operation, path))?, key))
}

fn missing(operation: &str, path: &str) -> Problem {
    Problem::patch_rejected(&format!("{operation} operation does not apply: doc is missing path: {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_merge_replaces_lists_and_removes_nulls() {
        let mut target = json!({ "a": { "b": 1, "c": [1, 2] }, "d": 3 });
        merge(&mut target, &json!({ "a": { "b": null, "c": [3] }, "e": { "f": null } }));
        assert_eq!(target, json!({ "a": { "c": [3] }, "d": 3, "e": {} }));
    }

    #[test]
    fn a_json_patch_is_done_in_order_or_refused() {
        let mut target = json!({ "a": [1, 2], "b/c": {} });
        let operations = json!([
            { "op": "test", "path": "/a/0", "value": 1 },
            { "op": "add", "path": "/a/-", "value": 3 },
            { "op": "remove", "path": "/a/0" },
            { "op": "copy", "from": "/a/1", "path": "/b~1c/d" },
            { "op": "move", "from": "/a/0", "path": "/e" },
            { "op": "test", "path": "/missing", "value": null },
        ]);
        apply(&mut target, &operations).expect("it fits");
        assert_eq!(target, json!({ "a": [3], "b/c": { "d": 3 }, "e": 2 }));
        for misfit in [
            json!([{ "op": "test", "path": "/e", "value": 3 }]),
            json!([{ "op": "replace", "path": "/x", "value": 3 }]),
            json!([{ "op": "remove", "path": "/x" }]),
            json!([{ "op": "add", "path": "/x/y", "value": 1 }]),
        ] {
            assert_eq!(apply(&mut target.clone(), &misfit).expect_err("it does not fit").code, 422, "{misfit}");
        }
        for broken in [json!({}), json!([{ "op": "add" }]), json!([{ "op": "fly", "path": "/e" }])] {
            assert_eq!(apply(&mut target.clone(), &broken).expect_err("it is no patch").code, 400, "{broken}");
        }
    }
}
