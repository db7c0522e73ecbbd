//! What is wrong with a field.

use std::fmt;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

use super::{Path, quote};

/// The kinds of errors that Kubernetes' API tells apart (`field.ErrorType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// A value that must be there is absent or empty.
    Required,
    /// A list that is a map or a set has the same key twice.
    Duplicate,
    /// The value breaks a rule.
    Invalid,
    /// The value is none of those that are supported.
    NotSupported,
    /// The field may not be set here.
    Forbidden,
    /// The text is longer than allowed.
    TooLong,
    /// The list has more items than allowed.
    TooMany,
    /// The value is of the wrong JSON type.
    TypeInvalid,
}

impl ErrorType {
    /// The name in the API, as in a Status' `causes[].reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong)
    }
}

/// The value that an error is about.
#[derive(Clone, Debug, PartialEq)]
pub enum BadValue {
    /// No value: the error is about a change, not about a value.
    Null,
    /// A whole number: a count, or an integer field.
    Int(i64),
    /// Text, printed in quotes.
    String(String),
    /// Anything else, printed as JSON.
    Json(Value),
}

/// The most of a bad value that is printed, in bytes: what is wrong with it must be readable.
const MAX_PRINTED_VALUE: usize = 4096;

impl BadValue {
    fn print(&self) -> String {
        let mut text = match self {
            Self::Null | Self::Json(Value::Null) => "null".to_owned(),
            Self::Int(number) => number.to_string(),
            Self::String(text) | Self::Json(Value::String(text)) => quote(text),
            Self::Json(value) => go_json(value),
        };
        if text.len() > MAX_PRINTED_VALUE {
            text.truncate(text.floor_char_boundary(MAX_PRINTED_VALUE));
            text.push('…');
        }
        text
    }
}

/// `value` as Go's `encoding/json` prints it: compact, with HTML's special characters escaped.
fn go_json(value: &Value) -> String {
    let mut out = String::new();
    // These characters stand for themselves only inside JSON strings.
    for c in value.to_string().chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// One error about one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What kind of error it is.
    pub error_type: ErrorType,
    /// Where it is, as the user wrote it.
    pub field: Path,
    /// The value it is about.
    pub bad_value: BadValue,
    /// What is wrong and what to change; empty where the kind says it all.
    pub detail: String,
    /// Which declarative rule found it, where one did: `union`, `format=k8s-long-name`, ….
    pub origin: Option<&'static str>,
}

impl Error {
    fn new(error_type: ErrorType, field: &Path, bad_value: BadValue, detail: impl Into<String>) -> Self {
        Self { error_type, field: field.clone(), bad_value, detail: detail.into(), origin: None }
    }

    /// A value that must be there is absent or empty.
    pub fn required(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, field, BadValue::String(String::new()), detail)
    }

    /// The key of `value` has been seen in this list before.
    pub fn duplicate(field: &Path, value: Value) -> Self {
        Self::new(ErrorType::Duplicate, field, BadValue::Json(value), "")
    }

    /// `value` breaks the rule that `detail` tells.
    pub fn invalid(field: &Path, value: BadValue, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, field, value, detail)
    }

    /// `value` is none of the `supported` ones.
    pub fn not_supported(field: &Path, value: &str, supported: &[&str]) -> Self {
        let list = supported.iter().map(|value| quote(value)).collect::<Vec<_>>().join(", ");
        let detail = format!("supported values: {list}");
        Self::new(ErrorType::NotSupported, field, BadValue::String(value.to_owned()), detail)
    }

    /// The field may not be set, for the reason in `detail`.
    pub fn forbidden(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Forbidden, field, BadValue::String(String::new()), detail)
    }

    /// The text is longer than `maximum` bytes.
    pub fn too_long(field: &Path, maximum: usize) -> Self {
        let value = BadValue::String("<value omitted>".to_owned());
        Self::new(ErrorType::TooLong, field, value, format!("may not be more than {maximum} bytes"))
    }

    /// The list has `actual` items where at most `maximum` are allowed.
    pub fn too_many(field: &Path, actual: usize, maximum: usize) -> Self {
        let items = if maximum == 1 { "item" } else { "items" };
        let value = BadValue::Int(i64::try_from(actual).unwrap_or(i64::MAX));
        Self::new(ErrorType::TooMany, field, value, format!("must have at most {maximum} {items}"))
    }

    /// `value` is not of the type that `detail` asks for.
    pub fn type_invalid(field: &Path, value: Value, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::TypeInvalid, field, BadValue::Json(value), detail)
    }

    /// The same error, found by the declarative rule `origin`.
    #[must_use]
    pub fn with_origin(self, origin: &'static str) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// The error without its path: the text of a Status' `causes[].message`.
    pub fn body(&self) -> String {
        let mut body = self.error_type.title().to_owned();
        if self.error_type.shows_value() {
            body.push_str(": ");
            body.push_str(&self.bad_value.print());
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for Error {}

impl Serialize for Error {
    /// `{type, field, badValue, detail, body, origin}`, `badValue` and `origin` only where there is one.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.error_type.as_str())?;
        map.serialize_entry("field", self.field.as_str())?;
        match &self.bad_value {
            BadValue::Null => {}
            BadValue::Int(number) => map.serialize_entry("badValue", number)?,
            BadValue::String(text) => map.serialize_entry("badValue", text)?,
            BadValue::Json(value) => map.serialize_entry("badValue", value)?,
        }
        map.serialize_entry("detail", &self.detail)?;
        map.serialize_entry("body", &self.body())?;
        if let Some(origin) = self.origin {
            map.serialize_entry("origin", origin)?;
        }
        map.end()
    }
}

/// Errors in the order in which they are reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorList(Vec<Error>);

impl ErrorList {
    /// No errors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one error.
    pub fn push(&mut self, error: Error) {
        self.0.push(error);
    }

    /// Appends all errors of `other`.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The errors, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }
}

impl From<Error> for ErrorList {
    fn from(error: Error) -> Self {
        Self(vec![error])
    }
}

impl FromIterator<Error> for ErrorList {
    fn from_iter<I: IntoIterator<Item = Error>>(errors: I) -> Self {
        Self(errors.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a ErrorList {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for ErrorList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl fmt::Display for ErrorList {
    /// One error as it is, several as `[a, b]`; a message that was there before is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut messages: Vec<String> = Vec::new();
        for error in &self.0 {
            let message = error.to_string();
            if !messages.contains(&message) {
                messages.push(message);
            }
        }
        match messages.as_slice() {
            [message] => f.write_str(message),
            messages => write!(f, "[{}]", messages.join(", ")),
        }
    }
}

impl std::error::Error for ErrorList {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_type_prints_the_body_that_kubernetes_prints() {
        let at = Path::new("spec");
        for (error, body) in [
            (Error::required(&at, ""), "Required value"),
            (Error::forbidden(&at, ""), "Forbidden"),
            (Error::forbidden(&at, "not here"), "Forbidden: not here"),
            (Error::invalid(&at, BadValue::Null, "field is immutable"), "Invalid value: null: field is immutable"),
            (Error::invalid(&at, BadValue::Int(-3), "low"), "Invalid value: -3: low"),
            (Error::invalid(&at, BadValue::String("a\n".into()), "bad"), r#"Invalid value: "a\n": bad"#),
            (Error::too_many(&at, 2, 1), "Too many: 2: must have at most 1 item"),
            (Error::too_many(&at, 5, 4), "Too many: 5: must have at most 4 items"),
            (Error::too_long(&at, 9), "Too long: may not be more than 9 bytes"),
            (Error::duplicate(&at, json!({"name": "a&b"})), r#"Duplicate value: {"name":"a\u0026b"}"#),
            (Error::not_supported(&at, "x", &["a", "b"]), r#"Unsupported value: "x": supported values: "a", "b""#),
            (Error::type_invalid(&at, json!([1]), "must be an object"), "Invalid value: [1]: must be an object"),
        ] {
            assert_eq!(error.body(), body);
        }
    }

    #[test]
    fn an_aggregate_is_bracketed_only_when_it_has_several_messages_and_never_repeats_one() {
        let one = Error::forbidden(&Path::new("a"), "x");
        let two = Error::forbidden(&Path::new("b"), "y");
        assert_eq!(ErrorList::from(one.clone()).to_string(), "a: Forbidden: x");
        let list: ErrorList = [one.clone(), two, one].into_iter().collect();
        assert_eq!(list.to_string(), "[a: Forbidden: x, b: Forbidden: y]");
    }
}
