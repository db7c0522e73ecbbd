//! Changes of a YAML text that leave all the rest of it as it is.

use serde_json::Value;

use crate::tape::{Kind, NodeId, Position, Tape};

/// A text, and the changes that are to be made to it.
pub(super) struct Edit<'a> {
    source: &'a str,
    tape: &'a Tape,
    newline: &'static str,
    /// Where something is put, how much is taken away there, and what is put.
    changes: Vec<(usize, usize, String)>,
}

impl<'a> Edit<'a> {
    /// A text without changes; `tape` was read from it.
    pub(super) fn new(source: &'a str, tape: &'a Tape) -> Self {
        let newline = if source.contains("\r\n") { "\r\n" } else { "\n" };
        Self { source, tape, newline, changes: Vec::new() }
    }

    /// The text with the changes.
    pub(super) fn apply(mut self) -> String {
        self.changes.sort_by_key(|(at, ..)| *at);
        let (mut text, mut copied) = (String::with_capacity(self.source.len() + 1024), 0);
        for (at, length, new) in &self.changes {
            text.push_str(self.source.get(copied..*at).unwrap_or_default());
            text.push_str(new);
            copied = at + length;
        }
        text.push_str(self.source.get(copied..).unwrap_or_default());
        text
    }

    /// The offset of a place.
    fn offset(&self, at: Position) -> usize {
        let start = self.line(at.line);
        let rest = self.source.get(start..).unwrap_or_default();
        start + rest.char_indices().nth(at.column.saturating_sub(1)).map_or(rest.len(), |(offset, _)| offset)
    }

    /// The offset of the beginning of a line.
    fn line(&self, line: usize) -> usize {
        let mut lines = self.source.match_indices('\n').map(|(at, _)| at + 1);
        if line <= 1 { 0 } else { lines.nth(line - 2).unwrap_or(self.source.len()) }
    }

    fn text_at(&self, at: Position) -> &str {
        self.source.get(self.offset(at)..).unwrap_or_default()
    }

    /// Whether a list or map is written in brackets.
    pub(super) fn is_flow(&self, node: NodeId) -> bool {
        self.text_at(self.tape.start_of(node)).starts_with(['{', '['])
    }

    /// Puts lines before a line, each indented.
    fn insert_lines(&mut self, line: usize, indent: usize, lines: &[String]) {
        let at = self.line(line);
        let mut text = String::new();
        // The last line may lack its end.
        if at == self.source.len() && !self.source.is_empty() && !self.source.ends_with('\n') {
            text.push_str(self.newline);
        }
        for line in lines {
            text.push_str(&" ".repeat(indent));
            text.push_str(line);
            text.push_str(self.newline);
        }
        self.changes.push((at, 0, text));
    }

    /// Puts another value in the place of one that is written in one line.
    pub(super) fn replace(&mut self, node: NodeId, new: &str) {
        if let Some(node) = self.tape.node(node) {
            let (start, end) = (self.offset(node.start), self.offset(node.end));
            self.changes.push((start, end - start, new.to_owned()));
        }
    }

    /// Adds a member to the value of the member `key`: as `lines` to a map in lines, as `name` and `value` to
    /// one in brackets. It comes after the first of `after` that is there, else first.
    pub(super) fn add(
        &mut self,
        (key, map): (NodeId, NodeId),
        (name, value): (&str, &Value),
        lines: &[String],
        after: &[&str],
    ) {
        if self.is_flow(map) && (self.is_filled(map) || self.in_flow(key)) {
            let mut text = format!("{}: {value}", Value::from(name));
            if self.is_filled(map) {
                text.push_str(", ");
            }
            let at = self.offset(self.tape.start_of(map)) + 1;
            self.changes.push((at, 0, text));
            return;
        }
        self.add_lines((key, map), lines, after);
    }

    /// Adds an item to a list that is the value of `key`.
    pub(super) fn add_item(&mut self, (key, list): (NodeId, NodeId), value: &Value, lines: &[String]) {
        if self.is_flow(list) && (self.is_filled(list) || self.in_flow(key)) {
            let separator = if self.is_filled(list) { ", " } else { "" };
            let at = self.offset(self.tape.start_of(list)) + 1;
            self.changes.push((at, 0, format!("{value}{separator}")));
            return;
        }
        let (Some(first), false) = (self.tape.children(list).next(), self.is_flow(list)) else {
            self.clear(list);
            let indent = self.tape.start_of(key).column - 1;
            return self.insert_lines(self.tape.start_of(key).line + 1, indent, lines);
        };
        // The dash may stand as far left as the key.
        let line = self.source.get(self.line(self.tape.start_of(first).line)..).unwrap_or_default();
        let indent = line.len() - line.trim_start_matches(' ').len();
        self.insert_lines(self.tape.start_of(key).line + 1, indent, lines);
    }

    fn add_lines(&mut self, (key, map): (NodeId, NodeId), lines: &[String], after: &[&str]) {
        let key_at = self.tape.start_of(key);
        let Some(first) = self.tape.children(map).next().filter(|_| !self.is_flow(map)) else {
            self.clear(map);
            return self.insert_lines(key_at.line + 1, key_at.column + 1, lines);
        };
        let scalar = |name: &&str| {
            let value = self.tape.node(self.tape.value(map, name)?)?;
            let in_line = matches!(value.kind, Kind::Scalar(_)) && value.start.line == value.end.line;
            in_line.then_some(value.end.line + 1)
        };
        let line = after.iter().find_map(scalar).unwrap_or(key_at.line + 1);
        self.insert_lines(line, self.tape.start_of(first).column - 1, lines);
    }

    /// Takes a value away that says nothing: `{}`, `[]`, `null`.
    fn clear(&mut self, node: NodeId) {
        if let Some(node) = self.tape.node(node) {
            let (mut start, end) = (self.offset(node.start), self.offset(node.end));
            if end > start && self.source.get(..start).is_some_and(|before| before.ends_with(' ')) {
                start -= 1;
            }
            self.changes.push((start, end - start, String::new()));
        }
    }

    fn is_filled(&self, node: NodeId) -> bool {
        self.tape.children(node).next().is_some()
    }

    /// Whether a key stands in a map in brackets.
    fn in_flow(&self, key: NodeId) -> bool {
        let at = self.offset(self.tape.start_of(key));
        let line = self.source.get(self.line(self.tape.start_of(key).line)..at).unwrap_or_default();
        // JSON over many lines has its keys in quotes.
        line.contains(['{', ',']) || self.source.get(at..).is_some_and(|text| text.starts_with('"'))
    }
}
