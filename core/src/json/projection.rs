//! A few members of a large JSON text, borrowed; the rest is skipped without being looked at.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A member of an object that is read, or that leads to some that are.
pub(crate) struct Node {
    name: &'static str,
    kind: Kind,
}

enum Kind {
    /// Its text goes into the slot of this number.
    Read(usize),
    /// Its own members are looked at, and whether it is there goes into the slot of this number.
    Leads(Option<usize>, &'static [Node]),
}

/// A member whose text goes into the slot `slot`.
pub(crate) const fn read(name: &'static str, slot: usize) -> Node {
    Node { name, kind: Kind::Read(slot) }
}

/// An object with members that are read.
pub(crate) const fn leads(name: &'static str, members: &'static [Node]) -> Node {
    Node { name, kind: Kind::Leads(None, members) }
}

/// An object with members that are read, of which it matters whether it is there.
pub(crate) const fn level(name: &'static str, slot: usize, members: &'static [Node]) -> Node {
    Node { name, kind: Kind::Leads(Some(slot), members) }
}

/// Reads `nodes` of the JSON text `json` into `members` and `levels`. `null` means absent.
///
/// A member that is there twice is no error, the last one counting, as for an API server.
///
/// # Errors
/// The text is no JSON, or a level that must be an object is none.
pub(crate) fn project<'a>(
    json: &'a str,
    nodes: &'static [Node],
    members: &mut [Option<&'a RawValue>],
    levels: &mut [bool],
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    project_from(&mut deserializer, nodes, members, levels)?;
    deserializer.end()
}

/// The same of a text that is being read, which has to be one that can be borrowed from. Tells whether
/// there is an object, as opposed to `null`.
///
/// # Errors
/// As of [`project`].
pub(crate) fn project_from<'de, D: Deserializer<'de>>(
    deserializer: D,
    nodes: &'static [Node],
    members: &mut [Option<&'de RawValue>],
    levels: &mut [bool],
) -> Result<bool, D::Error> {
    Reader { nodes, members, levels }.deserialize(deserializer)
}

fn set<T>(slots: &mut [T], slot: usize, value: T) {
    if let Some(place) = slots.get_mut(slot) {
        *place = value;
    }
}

fn clear(nodes: &[Node], members: &mut [Option<&RawValue>], levels: &mut [bool]) {
    for node in nodes {
        match node.kind {
            Kind::Read(slot) => set(members, slot, None),
            Kind::Leads(level, children) => {
                if let Some(slot) = level {
                    set(levels, slot, false);
                }
                clear(children, members, levels);
            }
        }
    }
}

/// A key of a JSON object, borrowed unless it is written with escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Reads one level of an object.
struct Reader<'s, 'a> {
    nodes: &'static [Node],
    members: &'s mut [Option<&'a RawValue>],
    levels: &'s mut [bool],
}

impl<'de> DeserializeSeed<'de> for Reader<'_, 'de> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_, 'de> {
    /// Whether the level is there.
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_none<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some(key) = map.next_key::<Key<'de>>()? {
            match self.nodes.iter().find(|node| node.name == key.0) {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(Node { kind: Kind::Read(member), .. }) => {
                    let value = map.next_value()?;
                    set(self.members, *member, value);
                }
                Some(Node { kind: Kind::Leads(level, children), .. }) => {
                    clear(children, self.members, self.levels);
                    let reader = Reader { nodes: children, members: self.members, levels: self.levels };
                    let present = map.next_value_seed(reader)?;
                    if let Some(slot) = level {
                        set(self.levels, *slot, present);
                    }
                }
            }
        }
        Ok(true)
    }
}
