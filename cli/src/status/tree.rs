//! A tree of lines.

use std::fmt::Write as _;

/// A line, and those that belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    text: String,
    children: Vec<Tree>,
}

impl Tree {
    /// A line.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), children: Vec::new() }
    }

    /// Adds a line to this one.
    pub fn push(&mut self, child: Self) {
        self.children.push(child);
    }

    /// Adds a line without lines of its own.
    pub fn line(&mut self, text: impl Into<String>) {
        self.push(Self::new(text));
    }

    /// The tree as text.
    pub fn print(&self) -> String {
        let mut out = format!("{}\n", self.text);
        self.print_children(&mut out, "");
        out
    }

    fn print_children(&self, out: &mut String, before: &str) {
        for (index, child) in self.children.iter().enumerate() {
            let (branch, below) =
                if index + 1 == self.children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            // Writing to a text cannot fail.
            let _ = writeln!(out, "{before}{branch}{}", child.text);
            child.print_children(out, &format!("{before}{below}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_lead_to_what_belongs_to_a_line() {
        let mut tree = Tree::new("a");
        let mut child = Tree::new("b");
        child.line("c");
        child.line("d");
        tree.push(child);
        tree.line("e");
        assert_eq!(tree.print(), "a\n├─ b\n│  ├─ c\n│  └─ d\n└─ e\n");
    }
}
