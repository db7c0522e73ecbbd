//! A document as JSON, with the place in the source of each of its nodes.
//!
//! One pass over the parser's events writes the JSON into one buffer and the nodes into another. Both
//! are used again for the next document, so what is read costs little more than its parsing.

use std::borrow::Cow;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use serde_json::{Map, Value};

use crate::scalar;

/// The most that aliases may add to a document, in bytes of JSON: more than an API server takes.
const MAX_EXPANSION: usize = 8 << 20;

/// A place in a source, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, counted from the document's beginning.
    pub at: Position,
    /// What is wrong.
    pub message: String,
}

impl From<ScanError> for Problem {
    fn from(error: ScanError) -> Self {
        let (line, column) = (error.marker().line(), error.marker().col() + 1);
        Self { at: Position { line, column }, message: error.info().to_owned() }
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A key of a map; its value follows.
    Key,
    /// Text, a number, true, false or null.
    Scalar(ScalarStyle),
    /// A list; its items follow.
    List,
    /// A map; its keys and values follow.
    Map,
    /// The same as another node.
    Alias(NodeId),
}

/// A node of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeId(u32);

impl NodeId {
    fn place(self) -> usize {
        self.0 as usize
    }
}

/// A node and where it stands. There are many: it is kept small.
#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: Kind,
    start: (u32, u32),
    end: (u32, u32),
    next: u32,
    json: (u32, u32),
}

/// A node and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Where it begins.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
}

/// A list or map whose end has not been seen.
struct Open {
    node: usize,
    anchor: usize,
    is_map: bool,
    /// Whether the next node of a map is a key.
    at_key: bool,
    is_empty: bool,
}

/// A document as JSON, with the place of each node.
#[derive(Default)]
pub struct Tape {
    json: String,
    nodes: Vec<Entry>,
    open: Vec<Open>,
    anchors: Vec<(usize, usize)>,
    expansion: usize,
    merges: bool,
}

/// The most that a document may have, in bytes: places in it are kept in 32 bits.
const MAX_DOCUMENT: usize = 1 << 30;

#[allow(clippy::cast_possible_truncation, reason = "a document is smaller than MAX_DOCUMENT")]
fn small(number: usize) -> u32 {
    number as u32
}

fn mark(marker: saphyr_parser::Marker) -> (u32, u32) {
    (small(marker.line()), small(marker.col() + 1))
}

fn position(marker: saphyr_parser::Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

impl Tape {
    /// Reads a document; what was read before is gone.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(&mut self, text: &str) -> Result<(), Problem> {
        self.json.clear();
        self.nodes.clear();
        self.open.clear();
        self.anchors.clear();
        (self.expansion, self.merges) = (0, false);
        if text.len() > MAX_DOCUMENT {
            let message = format!("longer than {MAX_DOCUMENT} bytes");
            return Err(Problem { at: Position { line: 1, column: 1 }, message });
        }
        for event in Parser::new_from_str(text) {
            let (event, span) = event?;
            match event {
                Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref(), &span)?,
                Event::MappingStart(anchor, _) => self.start(true, anchor, &span)?,
                Event::SequenceStart(anchor, _) => self.start(false, anchor, &span)?,
                Event::MappingEnd | Event::SequenceEnd => self.end(&span),
                Event::Alias(anchor) => self.alias(anchor, &span)?,
                Event::DocumentStart(_) if !self.nodes.is_empty() => {
                    return Err(Problem { at: position(span.start), message: "a second document".to_owned() });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes what stands before a value, and says whether the next node is a key.
    fn separate(&mut self) -> bool {
        let Some(open) = self.open.last_mut() else { return false };
        if open.is_map && !open.at_key {
            open.at_key = true;
            self.json.push(':');
            return false;
        }
        if !std::mem::replace(&mut open.is_empty, false) {
            self.json.push(',');
        }
        open.at_key = false;
        open.is_map
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&saphyr_parser::Tag>,
        span: &Span,
    ) -> Result<(), Problem> {
        let is_key = self.separate();
        let begin = self.json.len();
        if is_key {
            self.merges |= text == "<<" && style == ScalarStyle::Plain;
            scalar::string(&mut self.json, text);
        } else {
            scalar::write(&mut self.json, text, style, tag);
        }
        self.push(if is_key { Kind::Key } else { Kind::Scalar(style) }, begin, span);
        if anchor > 0 {
            if is_key {
                return Err(Problem { at: position(span.start), message: "a key with an anchor".to_owned() });
            }
            self.anchors.push((anchor, self.nodes.len() - 1));
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind, begin: usize, span: &Span) {
        let next = small(self.nodes.len() + 1);
        let json = (small(begin), small(self.json.len()));
        self.nodes.push(Entry { kind, start: mark(span.start), end: mark(span.end), next, json });
    }

    fn start(&mut self, is_map: bool, anchor: usize, span: &Span) -> Result<(), Problem> {
        if self.separate() {
            return Err(Problem { at: position(span.start), message: "a key must be text".to_owned() });
        }
        let begin = self.json.len();
        self.json.push(if is_map { '{' } else { '[' });
        self.open.push(Open { node: self.nodes.len(), anchor, is_map, at_key: true, is_empty: true });
        self.push(if is_map { Kind::Map } else { Kind::List }, begin, span);
        Ok(())
    }

    fn end(&mut self, span: &Span) {
        let Some(open) = self.open.pop() else { return };
        self.json.push(if open.is_map { '}' } else { ']' });
        let (next, end) = (self.nodes.len(), self.json.len());
        if let Some(node) = self.nodes.get_mut(open.node) {
            (node.next, node.json.1, node.end) = (small(next), small(end), mark(span.end));
        }
        if open.anchor > 0 {
            self.anchors.push((open.anchor, open.node));
        }
    }

    fn alias(&mut self, anchor: usize, span: &Span) -> Result<(), Problem> {
        let problem = |message: &str| Problem { at: position(span.start), message: message.to_owned() };
        if self.separate() {
            return Err(problem("a key must be text"));
        }
        let target = self.anchors.iter().rev().find(|(id, _)| *id == anchor).map(|(_, node)| *node);
        // An anchor that is still open is not known yet.
        let target = target.ok_or_else(|| problem("an alias inside of what it stands for"))?;
        let (from, to) = self.nodes.get(target).map_or((0, 0), |node| (node.json.0 as usize, node.json.1 as usize));
        self.expansion += to - from;
        if self.expansion > MAX_EXPANSION {
            return Err(problem("aliases make this document too large"));
        }
        let begin = self.json.len();
        self.json.extend_from_within(from..to);
        self.push(Kind::Alias(NodeId(small(target))), begin, span);
        Ok(())
    }

    /// The document; none where it is empty.
    pub fn root(&self) -> Option<NodeId> {
        (!self.nodes.is_empty()).then_some(NodeId(0))
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> Option<Node> {
        let position = |(line, column): (u32, u32)| Position { line: line as usize, column: column as usize };
        let entry = self.nodes.get(id.place())?;
        Some(Node { kind: entry.kind, start: position(entry.start), end: position(entry.end) })
    }

    fn kind(&self, id: NodeId) -> Option<Kind> {
        self.nodes.get(id.place()).map(|entry| entry.kind)
    }

    /// Where a node begins.
    pub fn start_of(&self, id: NodeId) -> Position {
        self.node(id).map(|node| node.start).unwrap_or_default()
    }

    /// The JSON of a node, with maps that are merged into others where they belong.
    pub fn json(&self, id: NodeId) -> Cow<'_, str> {
        let json = self.raw(id);
        if self.merges
            && let Ok(mut value) = serde_json::from_str(json)
        {
            merge(&mut value);
            return Cow::Owned(value.to_string());
        }
        Cow::Borrowed(json)
    }

    fn raw(&self, id: NodeId) -> &str {
        let (from, to) = self.nodes.get(id.place()).map(|node| node.json).unwrap_or_default();
        self.json.get(from as usize..to as usize).unwrap_or_default()
    }

    /// The text of a node that is text; none where it is none.
    pub fn text(&self, id: NodeId) -> Option<Cow<'_, str>> {
        let json = self.raw(id);
        let text = json.strip_prefix('"')?.strip_suffix('"')?;
        if text.contains('\\') { serde_json::from_str(json).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(text)) }
    }

    /// The node that an alias stands for, or the node itself.
    pub fn follow(&self, id: NodeId) -> NodeId {
        match self.kind(id) {
            Some(Kind::Alias(target)) => self.follow(target),
            _ => id,
        }
    }

    /// The nodes directly in a list or map: items, or keys and values by turns.
    pub fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let parent = self.follow(id);
        let end = match self.nodes.get(parent.place()) {
            Some(node) if matches!(node.kind, Kind::List | Kind::Map) => node.next,
            _ => 0,
        };
        let mut at = parent.0 + 1;
        std::iter::from_fn(move || {
            let child = Some(NodeId(at)).filter(|_| at < end)?;
            at = self.nodes.get(child.place())?.next;
            Some(child)
        })
    }

    /// The key and the value of a member of a map; the last one where there are several.
    pub fn member(&self, map: NodeId, name: &str) -> Option<(NodeId, NodeId)> {
        if self.kind(self.follow(map))? != Kind::Map {
            return None;
        }
        let mut found = None;
        let mut merged = None;
        let mut children = self.children(map);
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            match self.text(key) {
                Some(text) if text == name => found = Some((key, value)),
                Some(text) if text == "<<" => merged = Some(value),
                _ => {}
            }
        }
        found.or_else(|| {
            let merged = merged.filter(|_| self.merges)?;
            match self.kind(self.follow(merged))? {
                Kind::List => self.children(merged).find_map(|map| self.member(map, name)),
                _ => self.member(merged, name),
            }
        })
    }

    /// The value of a member of a map.
    pub fn value(&self, map: NodeId, name: &str) -> Option<NodeId> {
        self.member(map, name).map(|(_, value)| value)
    }

    /// The text of a member of a map.
    pub fn text_of(&self, map: NodeId, name: &str) -> Option<Cow<'_, str>> {
        self.text(self.value(map, name)?)
    }

    /// The objects of the document: itself, or those of the List that it is, at any depth.
    pub fn objects(&self) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut open: Vec<NodeId> = self.root().into_iter().collect();
        while let Some(object) = open.pop() {
            let items = self.value(object, "items").filter(|items| self.kind(self.follow(*items)) == Some(Kind::List));
            match items {
                Some(items) => {
                    let first = open.len();
                    open.extend(self.children(items));
                    open.get_mut(first..).unwrap_or_default().reverse();
                }
                None => found.push(object),
            }
        }
        found
    }
}

/// Puts the members of `<<` where they belong; those that are written out win.
fn merge(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(merge),
        Value::Object(members) => {
            members.values_mut().for_each(merge);
            let merged = members.remove("<<");
            let maps = match merged {
                Some(Value::Array(maps)) => maps,
                Some(map) => vec![map],
                None => Vec::new(),
            };
            for map in maps {
                add(members, map);
            }
        }
        _ => {}
    }
}

fn add(members: &mut Map<String, Value>, map: Value) {
    if let Value::Object(map) = map {
        for (name, value) in map {
            members.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape(text: &str) -> Tape {
        let mut tape = Tape::default();
        tape.read(text).unwrap();
        tape
    }

    #[test]
    fn a_document_is_the_json_that_it_stands_for() {
        for (text, json) in [
            ("a: 1\nb: [x, {c: ~}]\n", r#"{"a":1,"b":["x",{"c":null}]}"#),
            ("- a\n-\n- {}\n- []\n", r#"["a",null,{},[]]"#),
            ("a: |\n  x\n  y\nb: >\n  x\n  y\n", r#"{"a":"x\ny\n","b":"x y\n"}"#),
            ("{\"a\": {\"b\": \"\\u00e9\"}}", r#"{"a":{"b":"é"}}"#),
            ("1: true\ntrue: 2\n", r#"{"1":true,"true":2}"#),
            ("a: &x {b: 1}\nc: *x\n", r#"{"a":{"b":1},"c":{"b":1}}"#),
            ("a: &x {b: 1, d: 2}\nc: {<<: *x, d: 3}\n", r#"{"a":{"b":1,"d":2},"c":{"b":1,"d":3}}"#),
            (
                "a: &x {b: 1}\ny: &y {b: 2, e: 3}\nc:\n  <<: [*x, *y]\n",
                r#"{"a":{"b":1},"c":{"b":1,"e":3},"y":{"b":2,"e":3}}"#,
            ),
            ("\"<<\": 1\n", r#"{"<<":1}"#),
        ] {
            let tape = tape(text);
            assert_eq!(tape.json(tape.root().unwrap()), json);
        }
        assert_eq!(tape("# nothing\n").root(), None);
    }

    #[test]
    fn a_member_knows_where_it_stands() {
        let tape = tape("---\nspec:\n  replicas: 3\n  base: &x\n    key: v\n  other: *x\n  more:\n    <<: *x\n");
        let root = tape.root().unwrap();
        let spec = tape.value(root, "spec").unwrap();
        let (key, value) = tape.member(spec, "replicas").unwrap();
        assert_eq!(tape.start_of(key), Position { line: 3, column: 3 });
        assert_eq!(tape.start_of(value), Position { line: 3, column: 13 });
        for name in ["base", "other", "more"] {
            let (key, _) = tape.member(tape.value(spec, name).unwrap(), "key").unwrap();
            assert_eq!(tape.start_of(key), Position { line: 5, column: 5 }, "{name}");
        }
        assert_eq!(tape.value(spec, "absent"), None);
    }

    #[test]
    fn the_items_of_lists_are_objects_in_their_order() {
        let tape = tape("items:\n- {n: a}\n- items: [{n: b}, {n: c}]\n- {n: d}\nkind: List\n");
        let names: Vec<_> = tape.objects().into_iter().filter_map(|object| tape.text_of(object, "n")).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let bomb = (1..30).fold("a0: &a0 [x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
            format!("{text}a{n}: &a{n} [*a{m}, *a{m}, *a{m}, *a{m}]\n", m = n - 1)
        });
        for (text, line) in [("a: [", 2), ("a: &x [*x]\n", 1), ("? [a]\n: b\n", 1), (bomb.as_str(), 11)] {
            let problem = Tape::default().read(text).unwrap_err();
            assert!(problem.at.line.abs_diff(line) <= 1, "{text:.40}: {problem:?}");
        }
    }
}
