//! The text of the scheduling annotation: YAML or JSON, bounded before and while it is parsed.
//!
//! Anyone who can create an object can write it, so its size, its nesting and everything in YAML
//! that can make a small text large (anchors, aliases, tags, merges) are refused.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};
use serde_json::{Map, Number, Value};
use thiserror::Error;

/// The longest annotation that is read, in bytes. The largest valid intent is a tenth of it.
pub const MAX_ANNOTATION_LENGTH: usize = 16 * 1024;

/// How deep lists and maps may be nested. A valid intent has four levels.
pub const MAX_ANNOTATION_DEPTH: usize = 16;

/// Why the text of an annotation cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AnnotationError {
    /// It is longer than [`MAX_ANNOTATION_LENGTH`].
    #[error("may not be more than {MAX_ANNOTATION_LENGTH} bytes")]
    TooLong,
    /// It is neither YAML nor JSON.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What the parser met.
        message: String,
    },
    /// It says nothing.
    #[error("is empty; write {{}} for the Basic policy")]
    Empty,
    /// It is nested deeper than [`MAX_ANNOTATION_DEPTH`].
    #[error("line {0}: nested deeper than {MAX_ANNOTATION_DEPTH} levels")]
    TooDeep(usize),
    /// It has an anchor or an alias.
    #[error("line {0}: YAML anchors and aliases are not supported here")]
    Alias(usize),
    /// It has a tag.
    #[error("line {0}: YAML tags are not supported here")]
    Tag(usize),
    /// A key is a list or a map.
    #[error("line {0}: a key must be text")]
    Key(usize),
    /// A key stands twice in the same map.
    #[error("line {line}: the key {key:?} is there twice")]
    DuplicateKey {
        /// The key.
        key: String,
        /// The line, from 1.
        line: usize,
    },
    /// A second YAML document follows.
    #[error("line {0}: a second YAML document is not supported here")]
    SecondDocument(usize),
}

/// The value that `text` stands for.
///
/// # Errors
/// The first thing that is wrong with the text, with its line where it has one.
pub(super) fn parse(text: &str) -> Result<Value, AnnotationError> {
    if text.len() > MAX_ANNOTATION_LENGTH {
        return Err(AnnotationError::TooLong);
    }
    let mut tree = Tree::default();
    let mut documents = 0_usize;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        let line = span.start.line();
        match event {
            Event::DocumentStart(_) => {
                documents = documents.saturating_add(1);
                if documents > 1 {
                    return Err(AnnotationError::SecondDocument(line));
                }
            }
            Event::Alias(_) => return Err(AnnotationError::Alias(line)),
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _)
                if anchor > 0 =>
            {
                return Err(AnnotationError::Alias(line));
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err(AnnotationError::Tag(line));
            }
            Event::Scalar(text, style, _, None) => tree.scalar(&text, style, line)?,
            Event::SequenceStart(_, None) => tree.open(Node::List(Vec::new()), line)?,
            Event::MappingStart(_, None) => tree.open(Node::Map(Map::new(), None), line)?,
            Event::SequenceEnd | Event::MappingEnd => tree.close(line)?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
    }
    match tree.root {
        None | Some(Value::Null) => Err(AnnotationError::Empty),
        Some(value) => Ok(value),
    }
}

fn syntax(error: &ScanError) -> AnnotationError {
    AnnotationError::Syntax {
        line: error.marker().line(),
        column: error.marker().col().saturating_add(1),
        message: error.info().to_string(),
    }
}

/// A list or map whose end has not been seen.
enum Node {
    List(Vec<Value>),
    /// The members so far, and the key whose value comes next.
    Map(Map<String, Value>, Option<String>),
}

#[derive(Default)]
struct Tree {
    open: Vec<Node>,
    root: Option<Value>,
}

impl Tree {
    fn open(&mut self, node: Node, line: usize) -> Result<(), AnnotationError> {
        if matches!(self.open.last(), Some(Node::Map(_, None))) {
            return Err(AnnotationError::Key(line));
        }
        if self.open.len() >= MAX_ANNOTATION_DEPTH {
            return Err(AnnotationError::TooDeep(line));
        }
        self.open.push(node);
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<(), AnnotationError> {
        let value = match self.open.pop() {
            Some(Node::List(items)) => Value::Array(items),
            Some(Node::Map(members, _)) => Value::Object(members),
            None => Value::Null,
        };
        self.add(value, line)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, line: usize) -> Result<(), AnnotationError> {
        if let Some(Node::Map(members, key @ None)) = self.open.last_mut() {
            if members.contains_key(text) {
                return Err(AnnotationError::DuplicateKey { key: text.to_owned(), line });
            }
            *key = Some(text.to_owned());
            return Ok(());
        }
        let value = match style {
            ScalarStyle::Plain => plain(text),
            _ => Value::String(text.to_owned()),
        };
        self.add(value, line)
    }

    fn add(&mut self, value: Value, line: usize) -> Result<(), AnnotationError> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Node::List(items)) => items.push(value),
            Some(Node::Map(members, key)) => {
                let key = key.take().ok_or(AnnotationError::Key(line))?;
                members.insert(key, value);
            }
        }
        Ok(())
    }
}

/// What a plain scalar stands for in YAML's core schema.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with(['+', '-'])).map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return i64::from_str_radix(digits, 8).ok().filter(|_| !digits.starts_with(['+', '-'])).map(Number::from);
    }
    text.parse::<i64>().ok().map(Number::from).or_else(|| serde_json::from_str(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_and_json_of_the_same_object_are_the_same() {
        for text in [
            "schedulingPolicy:\n  gang: {}\nresourceClaims:\n- name: a # why\n  resourceClaimName: c\n",
            "---\nschedulingPolicy: {gang: {}}\nresourceClaims: [{name: a, resourceClaimName: c}]\n...\n",
            r#"{"schedulingPolicy":{"gang":{}},"resourceClaims":[{"name":"a","resourceClaimName":"c"}]}"#,
            "{\n\t\"schedulingPolicy\": {\n\t\t\"gang\": {}\n\t},\n\t\"resourceClaims\": [\n\t\t{\"name\": \"a\", \"resourceClaimName\": \"c\"}\n\t]\n}",
            "  {\"schedulingPolicy\": {\"gang\" : {}},\r\n \"resourceClaims\": [{\"n\\u0061me\": \"\\u0061\", \"resourceClaimName\": \"c\"}]}",
        ] {
            let expected =
                json!({"schedulingPolicy": {"gang": {}}, "resourceClaims": [{"name": "a", "resourceClaimName": "c"}]});
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn plain_scalars_are_those_of_yamls_core_schema() {
        for (text, value) in [
            ("a: 3", json!({"a": 3})),
            ("a: -3", json!({"a": -3})),
            ("a: 0x10", json!({"a": 16})),
            ("a: 0o10", json!({"a": 8})),
            ("a: 3.0", json!({"a": 3.0})),
            ("a: 1e3", json!({"a": 1000.0})),
            ("a: 99999999999999999999", json!({"a": 1e20})),
            ("a: '3'", json!({"a": "3"})),
            ("a: true", json!({"a": true})),
            ("a: yes", json!({"a": "yes"})),
            ("a: ~", json!({"a": null})),
            ("a:", json!({"a": null})),
            ("a: 1.2.3", json!({"a": "1.2.3"})),
            ("a: e", json!({"a": "e"})),
            ("a: |\n  b\n", json!({"a": "b\n"})),
            ("3: b", json!({"3": "b"})),
        ] {
            assert_eq!(parse(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_could_make_a_small_text_large_or_ambiguous_is_refused() {
        let deep = "[".repeat(MAX_ANNOTATION_DEPTH + 1);
        let very_deep = "[".repeat(10_000);
        let wide = "{\"a\":".repeat(3_000);
        let duplicate = |key: &str, line| AnnotationError::DuplicateKey { key: key.to_owned(), line };
        for (text, error) in [
            (" ".repeat(MAX_ANNOTATION_LENGTH + 1).as_str(), AnnotationError::TooLong),
            ("", AnnotationError::Empty),
            ("# nothing\n", AnnotationError::Empty),
            ("null", AnnotationError::Empty),
            ("a: &x 1", AnnotationError::Alias(1)),
            ("a: &x [1]\nb: 2", AnnotationError::Alias(1)),
            ("? &x a\n: 1", AnnotationError::Alias(1)),
            ("a: !!str 1", AnnotationError::Tag(1)),
            ("a: !mine {}", AnnotationError::Tag(1)),
            ("a: 1\nb: 2\na: 3", duplicate("a", 3)),
            (r#"{"a": 1, "\u0061": 2}"#, duplicate("a", 1)),
            ("? [a]\n: 1", AnnotationError::Key(1)),
            ("? {a: 1}\n: 1", AnnotationError::Key(1)),
            ("a: 1\n---\nb: 2", AnnotationError::SecondDocument(2)),
            (deep.as_str(), AnnotationError::TooDeep(1)),
        ] {
            assert_eq!(parse(text), Err(error), "{}", &text[..text.len().min(40)]);
        }
        // The scanner reads ahead, and has a limit of its own.
        for text in [very_deep, wide] {
            assert!(matches!(parse(&text), Err(AnnotationError::TooDeep(_) | AnnotationError::Syntax { .. })));
        }
    }

    #[test]
    fn a_syntax_error_tells_its_line() {
        for text in ["a: [1, 2", "a: 'x", "a: b: c", "a: {", "{\"a\" 1}", "@"] {
            assert!(matches!(parse(text), Err(AnnotationError::Syntax { line: 1.., .. })), "{text}: {:?}", parse(text));
        }
    }
}
