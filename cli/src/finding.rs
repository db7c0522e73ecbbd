//! What is found about a manifest.

use std::fmt;

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The policy refuses the object, or nobody can read it.
    Error,
    /// The policy warns.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// What is found about one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file; `-` is the standard input.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// How bad it is.
    pub severity: Severity,
    /// Which rule it is about: one of [`RULES`].
    pub rule: &'static str,
    /// The StatefulSet, as `namespace/name` or `name`; empty where none can be read.
    pub object: String,
    /// The field; empty where it is about the whole.
    pub field: String,
    /// What is wrong.
    pub message: String,
}

/// The rule of what cannot be read.
pub const SYNTAX: &str = "Syntax";
/// The rule of an object that is refused for what is no single field's fault.
pub const REFUSED: &str = "Refused";
/// The rule of what is allowed and yet hardly meant.
pub const WARNING: &str = "Warning";

/// All rules, each with what it says.
pub const RULES: [(&str, &str); 11] = [
    (SYNTAX, "The document can be read"),
    (REFUSED, "The object is a StatefulSet"),
    (WARNING, "What is written has an effect"),
    ("FieldValueRequired", "A value that must be there is there"),
    ("FieldValueDuplicate", "A key is there once"),
    ("FieldValueInvalid", "A value keeps its rule"),
    ("FieldValueNotSupported", "A value is one of those that are supported"),
    ("FieldValueForbidden", "A field is set only where it may be"),
    ("FieldValueTooLong", "A text is not too long"),
    ("FieldValueTooMany", "A list has not too many items"),
    ("FieldValueTypeInvalid", "A value is of the right type"),
];

impl Finding {
    /// Field and message.
    pub fn text(&self) -> String {
        if self.field.is_empty() { self.message.clone() } else { format!("{}: {}", self.field, self.message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statefulset_scheduling_core::field::ErrorType;

    #[test]
    fn each_kind_of_error_is_a_rule() {
        for kind in [
            ErrorType::Required,
            ErrorType::Duplicate,
            ErrorType::Invalid,
            ErrorType::NotSupported,
            ErrorType::Forbidden,
            ErrorType::TooLong,
            ErrorType::TooMany,
            ErrorType::TypeInvalid,
        ] {
            assert!(RULES.iter().any(|(rule, _)| *rule == kind.as_str()), "{kind:?}");
        }
    }
}
