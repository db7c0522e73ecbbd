//! From the path of a field, as the core reports it, to the place where the user wrote it.

use saphyr_parser::ScalarStyle;
use statefulset_scheduling_core::api::SCHEDULING_ANNOTATION;

use crate::tape::{Kind, NodeId, Position, Tape};

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'a> {
    Member(&'a str),
    Index(usize),
}

/// Takes the first step off a path: `a`, `.a`, `[0]` or `[key]`.
fn step(path: &str) -> Option<(Step<'_>, &str)> {
    if let Some(rest) = path.strip_prefix('[') {
        let (inside, rest) = rest.split_once(']')?;
        return Some((inside.parse().map_or(Step::Member(inside), Step::Index), rest));
    }
    let path = path.strip_prefix('.').unwrap_or(path);
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, rest) = path.split_at_checked(end)?;
    (!name.is_empty()).then_some((Step::Member(name), rest))
}

/// Where the field at `path` of `object` stands in `source`, the text that `tape` was read from. What is
/// not there stands where the innermost part that is there does. `detail` is what is wrong with it: of a
/// text that cannot be parsed it says where.
pub fn locate(tape: &Tape, object: NodeId, source: &str, path: &str, detail: &str) -> Position {
    let (mut place, mut value, mut rest) = (tape.start_of(object), object, path);
    while let Some((next, after)) = step(rest) {
        match next {
            Step::Member(name) => {
                // A key may have a dot: then the longest one that is there is meant.
                let longer = rest.strip_prefix('.').and_then(|rest| Some((tape.member(value, rest)?, "")));
                let Some(((key, member), after)) = longer.or_else(|| Some((tape.member(value, name)?, after))) else {
                    return place;
                };
                (place, value, rest) = (tape.start_of(key), member, after);
                if name == SCHEDULING_ANNOTATION {
                    return in_text(tape, (key, value), source, rest, detail).unwrap_or(place);
                }
            }
            Step::Index(index) => {
                let is_list = tape.node(tape.follow(value)).is_some_and(|node| node.kind == Kind::List);
                let Some(item) = tape.children(value).nth(index).filter(|_| is_list) else { return place };
                (place, value, rest) = (tape.start_of(item), item, after);
            }
        }
    }
    place
}

/// Where something stands in a document that is the text of another one.
fn in_text(tape: &Tape, (key, node): (NodeId, NodeId), source: &str, path: &str, detail: &str) -> Option<Position> {
    let text = tape.text(node)?;
    let at = match told(detail) {
        Some(at) if path.is_empty() => at,
        _ if path.is_empty() => return None,
        _ => {
            let mut inner = Tape::default();
            inner.read(&text).ok()?;
            locate(&inner, inner.root()?, &text, path, "")
        }
    };
    outside(tape, (key, node), source, &text, at)
}

/// The place that a message begins with: `line 1, column 2: …` or `line 1: …`.
fn told(detail: &str) -> Option<Position> {
    let (place, _) = detail.strip_prefix("line ")?.split_once(": ")?;
    let (line, column) = place.split_once(", column ").unwrap_or((place, "1"));
    Some(Position { line: line.parse().ok()?, column: column.parse().ok()? })
}

/// Where `at` of the text of a scalar stands in the source; none where folding has moved it.
fn outside(tape: &Tape, (key, node): (NodeId, NodeId), source: &str, text: &str, at: Position) -> Option<Position> {
    let node = tape.node(node)?;
    let Kind::Scalar(style) = node.kind else { return None };
    if style == ScalarStyle::Literal {
        // The text begins in the line below the header, which stands beside the key.
        let header = tape.start_of(key).line;
        let lines = || source.lines().skip(header);
        let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let (inner, outer) = text.lines().zip(lines()).find(|(inner, _)| !inner.trim().is_empty())?;
        let indent = indentation(outer).checked_sub(indentation(inner))?;
        // A place after the end stands at the end.
        let line = at.line.min(text.lines().count().max(1));
        return Some(Position { line: header + line, column: indent + at.column });
    }
    if node.start.line != node.end.line || at.line != 1 {
        return None;
    }
    let written = source.lines().nth(node.start.line.checked_sub(1)?)?;
    let mut written = written.chars().skip(node.start.column - 1).peekable();
    let mut column = node.start.column;
    if style != ScalarStyle::Plain {
        written.next();
        column += 1;
    }
    for _ in 1..at.column {
        let length = match (style, written.next()?, written.peek()) {
            (ScalarStyle::DoubleQuoted, '\\', Some('x')) => 4,
            (ScalarStyle::DoubleQuoted, '\\', Some('u')) => 6,
            (ScalarStyle::DoubleQuoted, '\\', Some('U')) => 10,
            (ScalarStyle::DoubleQuoted, '\\', Some(_)) | (ScalarStyle::SingleQuoted, '\'', _) => 2,
            _ => 1,
        };
        for _ in 1..length {
            written.next();
        }
        column += length;
    }
    Some(Position { line: node.start.line, column })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(source: &str, path: &str, detail: &str) -> (usize, usize) {
        let mut tape = Tape::default();
        tape.read(source).unwrap();
        let at = locate(&tape, tape.root().unwrap(), source, path, detail);
        (at.line, at.column)
    }

    #[test]
    fn a_field_stands_at_its_key_and_an_item_at_its_beginning() {
        let source = "spec:\n  claims:\n  - name: a\n  - name: b\n    x: {y: 1}\n  a.b:\n    c: 1\n";
        for (path, at) in [
            ("spec", (1, 1)),
            ("spec.claims[1]", (4, 5)),
            ("spec.claims[1].x.y", (5, 9)),
            ("spec.claims[1].name", (4, 5)),
            ("spec.claims[7].name", (2, 3)),
            ("spec.absent.deeper", (1, 1)),
            ("spec.a.b", (6, 3)),
            ("spec[a.b].c", (7, 5)),
            ("absent", (1, 1)),
            ("", (1, 1)),
        ] {
            assert_eq!(place(source, path, ""), at, "{path}");
        }
    }

    #[test]
    fn a_field_of_the_annotation_stands_inside_of_its_text() {
        let key = "metadata:\n  annotations:\n    statefulset-scheduling.dev/scheduling: ";
        let path = format!("metadata.annotations[{SCHEDULING_ANNOTATION}]");
        for (written, tail, detail, at) in [
            ("|\n      policy:\n        gang: {}\n", ".policy.gang", "", (5, 9)),
            ("|\n\n      policy:\n        gang: {}\n", ".policy.gang", "", (6, 9)),
            ("|2\n       policy: {}\n", ".policy", "", (4, 8)),
            ("|-\n      {\"policy\":\n        {\"gang\": {}}}", ".policy.gang", "", (5, 10)),
            ("|\n      policy: {}\n", ".absent", "", (4, 7)),
            ("|\n      policy: {}\n", "", "", (3, 5)),
            ("|\n      a: 1\n      b: [\n", "", "line 2, column 4: broken", (5, 10)),
            ("|\n      a: 1\n      a: 1\n", "", "line 2: the key is there twice", (5, 7)),
            ("|\n      a: [\n", "", "line 9, column 1: broken", (4, 7)),
            ("'{\"it''s\": {\"gang\": 1}}'\n", ".it's.gang", "", (3, 56)),
            ("\"{\\\"policy\\\": {\\\"gang\\\": 1}}\"\n", ".policy.gang", "", (3, 59)),
            ("{}\n", ".policy", "", (3, 5)),
            (">\n      policy:\n      gang\n", ".policy", "", (3, 5)),
            ("'policy:\n      gang'\n", ".policy", "", (3, 5)),
        ] {
            assert_eq!(place(&format!("{key}{written}"), &format!("{path}{tail}"), detail), at, "{written}");
        }
    }
}
