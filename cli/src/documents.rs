//! A stream of YAML or JSON, taken apart into its documents while it is read.
//!
//! No more than one document is held at a time, so memory does not grow with the stream. The parser
//! itself could do it, but only from single characters, which takes longer than all the rest.

use std::io::{self, BufRead};

/// One document of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Its bytes, with the `---` that begins it.
    pub text: &'a [u8],
    /// The line of the stream that it begins in, from 1.
    pub line: usize,
}

/// The documents of a stream.
pub struct Documents<R> {
    reader: R,
    /// The document that was given out last, and what was read of the next one.
    buffer: Vec<u8>,
    /// How much of the buffer was given out.
    given: usize,
    /// The line that the next document begins in.
    line: usize,
}

/// What is known of the document that is being read.
#[derive(Default)]
struct Shape {
    lines: usize,
    /// Whether there is more than comments and directives, which belong to the document below them.
    content: bool,
    json: bool,
    closed: bool,
}

impl Shape {
    fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        let text = line.trim_ascii();
        if !self.content && !text.is_empty() && !line.starts_with(b"%") && !text.starts_with(b"#") {
            self.content = true;
            self.json = line.starts_with(b"{");
        }
        self.closed = text.ends_with(b"}");
    }

    /// Whether `line` begins the next document.
    fn ends_before(&self, line: &[u8]) -> bool {
        self.content && (is_marker(line, b"---") || (self.json && self.closed && line.starts_with(b"{")))
    }
}

/// Such a line is a marker wherever it stands, also in a block of text.
fn is_marker(line: &[u8], marker: &[u8]) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

impl<R: BufRead> Documents<R> {
    /// The documents of what `reader` reads.
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), given: 0, line: 1 }
    }

    /// The next document; none at the end of the stream. What holds nothing but comments is one, too.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub fn read(&mut self) -> io::Result<Option<Document<'_>>> {
        self.buffer.drain(..self.given);
        self.given = 0;
        let mut shape = Shape::default();
        if !self.buffer.is_empty() {
            shape.add(&self.buffer);
        }
        loop {
            let start = self.buffer.len();
            if self.reader.read_until(b'\n', &mut self.buffer)? == 0 {
                self.given = start;
                break;
            }
            if start == 0 && self.line == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
            let line = self.buffer.get(start..).unwrap_or_default();
            if shape.ends_before(line) {
                self.given = start;
                break;
            }
            shape.add(line);
            if is_marker(line, b"...") {
                self.given = self.buffer.len();
                break;
            }
        }
        let line = self.line;
        self.line += shape.lines;
        let text = self.buffer.get(..self.given).unwrap_or_default();
        Ok(Some(Document { text, line }).filter(|document| !document.text.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(usize, String)> {
        let mut documents = Documents::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(document) = documents.read().unwrap() {
            found.push((document.line, String::from_utf8(document.text.to_vec()).unwrap()));
        }
        assert_eq!(documents.read().unwrap(), None, "the end is the end");
        found
    }

    #[test]
    fn a_stream_falls_apart_at_its_markers_and_nothing_of_it_is_lost() {
        for (text, lines) in [
            ("", &[][..]),
            ("a: 1", &[1]),
            ("a: 1\n---\nb: 1\n", &[1, 2]),
            ("# a comment\n---\na: 1\n--- # the next\nb: |\n  ---\n  x\n", &[1, 4]),
            ("%YAML 1.2\n---\na: 1\n...\n%YAML 1.2\n---\nb: 1\n", &[1, 5]),
            ("---\n---\n---\n", &[1, 2, 3]),
            ("a: ---\n----\n--- x\n", &[1, 3]),
            ("a: 1\r\n---\r\nb: 1\r\n", &[1, 2]),
            ("{\"a\": 1}\n{\"b\":\n{\"c\": 1}\n}\n{}\n", &[1, 2, 5]),
            ("[\n{},\n{}\n]\n", &[1]),
        ] {
            let found = split(text);
            assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), lines, "{text:?}");
            assert_eq!(found.into_iter().map(|(_, text)| text).collect::<String>(), text);
        }
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        assert_eq!(split("\u{feff}a: 1\n"), [(1, "a: 1\n".to_owned())]);
    }
}
