//! Checksums in the form of `sha256sum`.

use std::collections::BTreeMap;

/// A line for each name and its SHA-256, for `sha256sum --check`.
pub fn file(sums: &BTreeMap<String, String>) -> String {
    let line = |(name, sum): (&String, &String)| [sum, "  ", name, "\n"].concat();
    sums.iter().map(line).collect()
}
