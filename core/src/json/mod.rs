//! Reading JSON that anybody may have written: a few members of a large text, or every member of a
//! small one.

mod decode;
mod projection;

pub use decode::UnknownFields;
pub(crate) use decode::decode;
pub(crate) use projection::{Node, leads, level, project, project_from, read};

use std::borrow::Cow;

use serde_json::value::RawValue;

/// The text of a JSON string, borrowed unless it is written with escapes; none if it is no string.
pub(crate) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if quoted.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(quoted))
    }
}
