//! Where in an object an error lies.

use std::fmt;

/// The path of a field, as a user reads it in an error: `spec.scheduling.resourceClaims[0].name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(String);

impl Path {
    /// A path of one field.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The path of the member `name` of this field: `<self>.<name>`.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    /// The path of the `index`-th item of this list: `<self>[<index>]`.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The path of the value under `key` of this map: `<self>[<key>]`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_kubernetes_prints_it() {
        let path = Path::new("metadata").child("annotations").key("example.dev/x");
        assert_eq!(path.to_string(), "metadata.annotations[example.dev/x]");
        let path = Path::new("spec").child("claims").index(3).child("name");
        assert_eq!(path.as_str(), "spec.claims[3].name");
    }
}
