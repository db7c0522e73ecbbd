//! The one body that comes as protobuf.
//!
//! `kubectl create namespace` speaks protobuf only. Stands for the decoding of that: the envelope, and of a
//! Namespace its name, labels and annotations. Left out: every other kind, which is answered 415; a manifest
//! of it is JSON by the time `kubectl create -f` or `kubectl apply` sends it.

use serde_json::{Map, Value, json};

/// What comes before the envelope.
const MAGIC: &[u8] = b"k8s\0";

/// Reads a Namespace; none if it is anything else.
pub(crate) fn namespace(body: &[u8]) -> Option<Value> {
    let envelope = fields(body.strip_prefix(MAGIC)?)?;
    let types = fields(find(&envelope, 1)?)?;
    let (version, kind) = (text(find(&types, 1)?)?, text(find(&types, 2)?)?);
    if (version.as_str(), kind.as_str()) != ("v1", "Namespace") {
        return None;
    }
    let raw = fields(find(&envelope, 2)?)?;
    let metadata = fields(find(&raw, 1)?)?;
    let mut object = json!({ "apiVersion": version, "kind": kind, "metadata": {} });
    for (number, member) in [(1, "name"), (2, "generateName")] {
        if let Some(value) = find(&metadata, number).and_then(text).filter(|value| !value.is_empty()) {
            object["metadata"][member] = value.into();
        }
    }
    for (number, member) in [(11, "labels"), (12, "annotations")] {
        let mut entries = Map::new();
        for (_, entry) in metadata.iter().filter(|(found, _)| *found == number) {
            let entry = fields(entry)?;
            entries.insert(text(find(&entry, 1)?)?, text(find(&entry, 2)?)?.into());
        }
        object["metadata"][member] = entries.into();
    }
    Some(object)
}

/// The fields of a message that have a length; the others are passed over.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        match tag & 7 {
            0 => drop(varint(&mut bytes)?),
            1 => bytes = bytes.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                fields.push((tag >> 3, value));
                bytes = rest;
            }
            5 => bytes = bytes.get(4..)?,
            _ => return None,
        }
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn find<'a>(fields: &[(u64, &'a [u8])], number: u64) -> Option<&'a [u8]> {
    fields.iter().find(|(found, _)| *found == number).map(|(_, value)| *value)
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, value: &[u8]) -> Vec<u8> {
        let length = u8::try_from(value.len()).expect("it is short");
        [&[number << 3 | 2, length], value].concat()
    }

    fn body(kind: &[u8]) -> Vec<u8> {
        let label = field(11, &[field(1, b"team"), field(2, b"a")].concat());
        // A generation, to be passed over, among the texts.
        let metadata = [field(1, b"demo"), vec![7 << 3, 0x96, 1], label].concat();
        let types = [field(1, b"v1"), field(2, kind)].concat();
        let raw = [field(1, &metadata), field(2, b"")].concat();
        [MAGIC.to_vec(), field(1, &types), field(2, &raw)].concat()
    }

    #[test]
    fn a_namespace_is_read_and_nothing_else() {
        let read = namespace(&body(b"Namespace")).expect("it is one");
        assert_eq!(read["metadata"], json!({ "name": "demo", "labels": { "team": "a" }, "annotations": {} }));
        assert_eq!(namespace(&body(b"Secret")), None);
        assert_eq!(namespace(b"{}"), None);
        let whole = body(b"Namespace");
        assert!((0..whole.len()).all(|length| namespace(&whole[..length]).is_none()));
    }
}
