//! Scalars of YAML as JSON.

use std::fmt::Write as _;

use saphyr_parser::{ScalarStyle, Tag};

/// Writes a scalar as JSON, as YAML's core schema reads it.
pub fn write(json: &mut String, text: &str, style: ScalarStyle, tag: Option<&Tag>) {
    match tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str()) {
        Some("str") => string(json, text),
        None if tag.is_some() || style != ScalarStyle::Plain => string(json, text),
        _ => plain(json, text),
    }
}

/// Writes a string.
pub fn string(json: &mut String, text: &str) {
    json.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        let (clean, special) = rest.split_at(at);
        json.push_str(clean);
        let mut characters = special.chars();
        match characters.next() {
            Some('\n') => json.push_str("\\n"),
            Some(c @ ('"' | '\\')) => {
                json.push('\\');
                json.push(c);
            }
            Some(c) => {
                // Writing to a text cannot fail.
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            None => {}
        }
        rest = characters.as_str();
    }
    json.push_str(rest);
    json.push('"');
}

fn plain(json: &mut String, text: &str) {
    // Most scalars are words, and most words tell by their first letter that they are nothing else.
    if text.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() && !b"nNtTfF".contains(&first)) {
        return string(json, text);
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => json.push_str("null"),
        "true" | "True" | "TRUE" => json.push_str("true"),
        "false" | "False" | "FALSE" => json.push_str("false"),
        _ => match number(text) {
            Some(number) => json.push_str(&number),
            None => string(json, text),
        },
    }
}

/// The text of a number in JSON; none where `text` is none.
fn number(text: &str) -> Option<std::borrow::Cow<'_, str>> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix).filter(|digits| !digits.starts_with(['+', '-'])) {
            return i64::from_str_radix(digits, radix).ok().map(|number| number.to_string().into());
        }
    }
    if serde_json::from_str::<serde_json::Number>(text).is_ok() {
        return Some(text.into());
    }
    // What is left is written in a way of YAML's own: 007, +1, .5, 1.
    if !text.bytes().any(|byte| byte.is_ascii_digit()) || !text.bytes().all(|byte| b"0123456789+-.eE".contains(&byte)) {
        return None;
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.to_string().into());
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_is_what_the_core_schema_says() {
        for (text, json) in [
            ("", "null"),
            ("~", "null"),
            ("True", "true"),
            ("yes", r#""yes""#),
            ("3", "3"),
            ("-3", "-3"),
            ("+3", "3"),
            ("007", "7"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1.5", "1.5"),
            (".5", "0.5"),
            ("1e3", "1e3"),
            ("1.2.3", r#""1.2.3""#),
            ("10.0.0.1", r#""10.0.0.1""#),
            ("20Gi", r#""20Gi""#),
            ("-", r#""-""#),
            (".inf", r#"".inf""#),
            ("a \"b\" \\ \u{1}", r#""a \"b\" \\ \u0001""#),
            ("12345678901234567890123", "12345678901234567890123"),
        ] {
            let mut written = String::new();
            write(&mut written, text, ScalarStyle::Plain, None);
            assert_eq!(written, json);
            assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok(), "{written}");
        }
    }

    #[test]
    fn quotes_and_tags_make_text_of_numbers() {
        let tag = Tag { handle: "tag:yaml.org,2002:".to_owned(), suffix: "str".to_owned() };
        for (style, tag) in [(ScalarStyle::DoubleQuoted, None), (ScalarStyle::Plain, Some(&tag))] {
            let mut written = String::new();
            write(&mut written, "3", style, tag);
            assert_eq!(written, r#""3""#);
        }
    }
}
