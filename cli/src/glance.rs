//! Documents that cannot hold an intent: they are parsed, their StatefulSets are counted, and that is all.

use memchr::memmem;
use saphyr_parser::{Event, Parser};
use statefulset_scheduling_core::api::{API_VERSION, KIND};

use crate::tape::Problem;

/// What stands in every document with an intent: both carriers are named so.
const CARRIED: &str = "scheduling";

/// Whether a document can hold a StatefulSet with an intent: the words are there, or may be in escapes.
pub fn may_hold_intents(document: &[u8]) -> bool {
    let has = |word: &str| memmem::find(document, word.as_bytes()).is_some();
    (has(CARRIED) && has(KIND)) || memchr::memchr(b'\\', document).is_some()
}

/// A map that may be an object: the document, or an item of the list in it.
#[derive(Default)]
struct Candidate {
    /// The member whose value comes next.
    member: Option<Member>,
    in_value: bool,
    api_version: bool,
    kind: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    ApiVersion,
    Kind,
    Other,
}

impl Candidate {
    /// A key or a value directly in the map; none for a list or map.
    fn node(&mut self, text: Option<&str>) {
        if self.in_value {
            match self.member {
                Some(Member::ApiVersion) => self.api_version = text == Some(API_VERSION),
                Some(Member::Kind) => self.kind = text == Some(KIND),
                _ => {}
            }
        } else {
            self.member = Some(match text {
                Some("apiVersion") => Member::ApiVersion,
                Some("kind") => Member::Kind,
                _ => Member::Other,
            });
        }
        self.in_value = !self.in_value;
    }

    fn is_statefulset(&self) -> bool {
        self.api_version && self.kind
    }
}

/// Parses a document, and counts the StatefulSets in it.
///
/// # Errors
/// It cannot be parsed.
pub fn statefulsets(text: &str) -> Result<usize, Problem> {
    let (mut count, mut depth, mut in_list) = (0, 0_usize, false);
    let (mut document, mut item) = (Candidate::default(), Candidate::default());
    for event in Parser::new_from_str(text) {
        let (event, _) = event?;
        let at = match depth {
            1 => Some(&mut document),
            3 if in_list => Some(&mut item),
            _ => None,
        };
        match event {
            Event::Scalar(text, ..) => {
                if let Some(at) = at {
                    at.node(Some(&text));
                }
            }
            Event::Alias(_) => {
                if let Some(at) = at {
                    at.node(None);
                }
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if let Some(at) = at {
                    at.node(None);
                }
                depth += 1;
                let opens_list = matches!(event, Event::SequenceStart(..));
                match depth {
                    1 => document = Candidate { in_value: opens_list, ..Candidate::default() },
                    2 => in_list = opens_list,
                    3 => item = Candidate { in_value: opens_list, ..Candidate::default() },
                    _ => {}
                }
            }
            Event::SequenceEnd | Event::MappingEnd => {
                count += usize::from(at.is_some_and(|at| std::mem::take(at).is_statefulset()));
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use statefulset_scheduling_core::api::Carrier;

    #[test]
    fn both_carriers_are_seen() {
        for carrier in [Carrier::Field, Carrier::Annotation] {
            assert!(carrier.path().as_str().contains(CARRIED));
            assert!(may_hold_intents(format!("kind: StatefulSet {}", carrier.path()).as_bytes()));
        }
        assert!(may_hold_intents(br"\u0053"));
        assert!(!may_hold_intents(b"kind: StatefulSet") && !may_hold_intents(b"scheduling"));
    }

    #[test]
    fn statefulsets_are_counted_as_objects_and_as_items_and_nowhere_else() {
        let set = "kind: StatefulSet, apiVersion: apps/v1";
        for (text, count) in [
            (format!("{{{set}, spec: {{a: [1, {{b: c}}]}}}}"), 1),
            (format!("{{apiVersion: v1, items: [{{{set}}}, {{kind: Service}}, {{x: {{}}, {set}}}], kind: List}}"), 2),
            (format!("{{kind: Autoscaler, spec: {{target: {{{set}}}}}}}"), 0),
            (format!("[{set}]"), 0),
            ("{x: kind, StatefulSet: y, apiVersion: apps/v1}".to_owned(), 0),
            ("{kind: StatefulSet, apiVersion: apps/v2}".to_owned(), 0),
            ("kind: &a StatefulSet\napiVersion: apps/v1\nx: *a\n".to_owned(), 1),
            (String::new(), 0),
        ] {
            assert_eq!(statefulsets(&text), Ok(count), "{text}");
        }
        assert!(statefulsets("a: [").is_err());
    }
}
