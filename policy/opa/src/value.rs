//! The values that a host keeps in the module: JSON texts.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// Whether a text is JSON, however deeply nested.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Why nothing can be changed; the numbers are the ABI's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum PathError {
    /// A value cannot be read.
    Internal = 1,
    /// The path is no list.
    InvalidType = 2,
    /// It is empty, has a member that is no string, or leads through something that is no object.
    InvalidPath = 3,
}

/// `base` with `value` at the end of `path`; objects that are not there on the way are made.
///
/// # Errors
/// Why it cannot be changed.
pub fn add_path(base: &str, path: &str, value: &str) -> Result<String, PathError> {
    let value: Value = read(value)?;
    change(base, path, true, |parent, name| {
        parent.insert(name, value);
    })
}

/// `base` without the member at the end of `path`, which need not be there.
///
/// # Errors
/// Why it cannot be changed.
pub fn remove_path(base: &str, path: &str) -> Result<String, PathError> {
    change(base, path, false, |parent, name| {
        parent.remove(&name);
    })
}

fn change(
    base: &str,
    path: &str,
    make: bool,
    apply: impl FnOnce(&mut Map<String, Value>, String),
) -> Result<String, PathError> {
    let mut base: Value = read(base)?;
    let Value::Array(path) = read(path)? else { return Err(PathError::InvalidType) };
    let names = path.into_iter().map(|name| match name {
        Value::String(name) => Ok(name),
        _ => Err(PathError::InvalidPath),
    });
    let mut names: Vec<String> = names.collect::<Result<_, _>>()?;
    let last = names.pop().ok_or(PathError::InvalidPath)?;
    let mut parent = &mut base;
    for name in names {
        let members = parent.as_object_mut().ok_or(PathError::InvalidPath)?;
        if make {
            members.entry(name.as_str()).or_insert_with(|| Value::Object(Map::new()));
        }
        parent = members.get_mut(&name).ok_or(PathError::InvalidPath)?;
    }
    apply(parent.as_object_mut().ok_or(PathError::InvalidPath)?, last);
    Ok(base.to_string())
}

fn read(text: &str) -> Result<Value, PathError> {
    serde_json::from_str(text).map_err(|_| PathError::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_depth_of_json_is_json() {
        for text in ["{}", " 3 ", "null", r#"{"a": [1, "\u00e9"]}"#] {
            assert!(is_json(text), "{text}");
        }
        for text in ["", "{", "{}}", "nul", "'a'", "{\"a\0\": 1}", "NaN"] {
            assert!(!is_json(text), "{text}");
        }
        assert!(is_json(&format!("{}{}", "[".repeat(200_000), "]".repeat(200_000))));
    }

    #[test]
    fn members_are_added_and_removed() {
        assert_eq!(add_path("{}", r#"["a","b"]"#, "[1]").unwrap(), r#"{"a":{"b":[1]}}"#);
        assert_eq!(add_path(r#"{"a":{"b":1,"c":2}}"#, r#"["a","b"]"#, "3").unwrap(), r#"{"a":{"b":3,"c":2}}"#);
        assert_eq!(remove_path(r#"{"a":{"b":1,"c":2}}"#, r#"["a","b"]"#).unwrap(), r#"{"a":{"c":2}}"#);
        assert_eq!(remove_path("{}", r#"["a"]"#).unwrap(), "{}");
    }

    #[test]
    fn a_path_that_leads_nowhere_is_an_error() {
        for (base, path, error) in [
            ("{}", "{}", PathError::InvalidType),
            ("{}", "[]", PathError::InvalidPath),
            ("{}", "[1]", PathError::InvalidPath),
            ("[]", r#"["a"]"#, PathError::InvalidPath),
            (r#"{"a":1}"#, r#"["a","b"]"#, PathError::InvalidPath),
            ("{", r#"["a"]"#, PathError::Internal),
            ("{}", "{", PathError::Internal),
        ] {
            assert_eq!(add_path(base, path, "1"), Err(error), "{base} {path}");
            assert_eq!(remove_path(base, path), Err(error), "{base} {path}");
        }
        assert_eq!(add_path("{}", r#"["a"]"#, "{"), Err(PathError::Internal));
        assert_eq!(remove_path("{}", r#"["a","b"]"#), Err(PathError::InvalidPath));
    }
}
