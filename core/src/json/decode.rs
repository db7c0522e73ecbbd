//! Reading a JSON object member by member, with an error at the path of each that cannot be read.

use serde_json::{Map, Value};

use crate::field::{Error, ErrorList, Path};

/// What becomes of a member that a type does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    /// It is skipped: an API server prunes it from a typed object anyway.
    Prune,
    /// It is an error: nothing prunes an annotation, and a misspelt field must not silently mean
    /// the default.
    Refuse,
}

/// Reads the object `value` with `read`.
///
/// # Errors
/// One error, with its path under `path`, for each member of the wrong type and, if they are
/// refused, for each unknown one.
pub(crate) fn decode<T>(
    value: &Value,
    path: &Path,
    unknown: UnknownFields,
    read: impl FnOnce(&mut Object<'_>) -> T,
) -> Result<T, ErrorList> {
    let mut errors = ErrorList::new();
    match read_object(value, path, unknown, &mut errors, read) {
        Some(result) if errors.is_empty() => Ok(result),
        _ => Err(errors),
    }
}

/// A JSON object that is being read.
pub(crate) struct Object<'a> {
    members: &'a Map<String, Value>,
    path: Path,
    unknown: UnknownFields,
    known: Vec<&'static str>,
    errors: &'a mut ErrorList,
}

impl<'a> Object<'a> {
    /// Starts to read `value`; none, and an error, if it is not an object.
    fn open(value: &'a Value, path: &Path, unknown: UnknownFields, errors: &'a mut ErrorList) -> Option<Self> {
        if let Value::Object(members) = value {
            return Some(Self { members, path: path.clone(), unknown, known: Vec::new(), errors });
        }
        errors.push(Error::type_invalid(path, value.clone(), "must be an object"));
        None
    }

    /// Ends the reading: every member that was not asked for is unknown.
    fn close(self) {
        if self.unknown == UnknownFields::Prune {
            return;
        }
        for name in self.members.keys().filter(|name| !self.known.contains(&name.as_str())) {
            let detail = if self.known.is_empty() {
                "unknown field; there are no fields here".to_owned()
            } else {
                format!("unknown field; the fields here are {}", self.known.join(", "))
            };
            self.errors.push(Error::forbidden(&self.path.child(name), detail));
        }
    }

    /// The member `name`, read by `read`.
    pub(crate) fn object<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Object<'_>) -> T) -> Option<T> {
        let value = self.member(name)?;
        let path = self.path.child(name);
        read_object(value, &path, self.unknown, self.errors, read)
    }

    /// The items of the list `name`, each read by `read`.
    pub(crate) fn list<T>(&mut self, name: &'static str, read: impl Fn(&mut Object<'_>) -> T) -> Option<Vec<T>> {
        let value = self.member(name)?;
        let path = self.path.child(name);
        let Value::Array(items) = value else {
            self.errors.push(Error::type_invalid(&path, value.clone(), "must be a list"));
            return None;
        };
        let read_item = |(index, item)| read_object(item, &path.index(index), self.unknown, self.errors, &read);
        Some(items.iter().enumerate().filter_map(read_item).collect())
    }

    /// The items of the list of texts `name`.
    pub(crate) fn strings(&mut self, name: &'static str) -> Option<Vec<String>> {
        let value = self.member(name)?;
        let texts =
            value.as_array().and_then(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        self.typed(name, texts, value, "must be a list of strings")
    }

    /// The text `name`.
    pub(crate) fn string(&mut self, name: &'static str) -> Option<String> {
        let value = self.member(name)?;
        let text = value.as_str().map(str::to_owned);
        self.typed(name, text, value, "must be a string")
    }

    /// The truth `name`.
    pub(crate) fn bool(&mut self, name: &'static str) -> Option<bool> {
        let value = self.member(name)?;
        self.typed(name, value.as_bool(), value, "must be true or false")
    }

    /// The number `name`.
    pub(crate) fn int32(&mut self, name: &'static str) -> Option<i32> {
        let value = self.member(name)?;
        let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
        self.typed(name, number, value, "must be a 32-bit integer")
    }

    fn typed<T>(&mut self, name: &str, read: Option<T>, value: &Value, detail: &str) -> Option<T> {
        if read.is_none() {
            self.errors.push(Error::type_invalid(&self.path.child(name), value.clone(), detail));
        }
        read
    }

    /// The value of a member, none where it is absent or null.
    fn member(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.members.get(name).filter(|value| !value.is_null())
    }
}

fn read_object<T>(
    value: &Value,
    path: &Path,
    unknown: UnknownFields,
    errors: &mut ErrorList,
    read: impl FnOnce(&mut Object<'_>) -> T,
) -> Option<T> {
    let mut object = Object::open(value, path, unknown, errors)?;
    let result = read(&mut object);
    object.close();
    Some(result)
}
