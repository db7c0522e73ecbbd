//! Failures of requests and of connections.
//!
//! Stands for everything between a client and etcd that can go wrong. The embedder decides about
//! each request; nothing here is random by itself.

use std::time::Duration;

use crate::log::Verb;
use crate::resource::{Resource, Subresource};

/// A request about which is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Occasion<'a> {
    /// Who makes it.
    pub user: &'a str,
    /// What it does.
    pub verb: Verb,
    /// What it is about.
    pub resource: Resource,
    /// The API group in the path: some resources are served by two.
    pub group: &'a str,
    /// The part of it.
    pub subresource: Option<Subresource>,
    /// The namespace in the path.
    pub namespace: Option<&'a str>,
    /// The name in the path; for a create, from the body; for a list or a watch, the only one it selects.
    pub name: Option<&'a str>,
    /// How many requests of this user, verb and resource came before it since the start or the last
    /// reset of the log.
    pub n: u64,
    /// How many requests came before it since the start.
    pub sequence: u64,
}

/// What happens to a request instead of, or around, its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Done and answered, but only after this long.
    Delay(Duration),
    /// Not done; the connection is closed without an answer.
    DropBefore,
    /// Done; the connection is closed without an answer.
    DropAfter,
    /// Not done; answered with this code and, if given, `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// A watch is begun, and its connection closed in the middle after this many events. Other
    /// requests are served as if there were no fault.
    CutAfter(usize),
}

/// Decides about each request. A closure does.
pub trait Faults: Send + Sync {
    /// What goes wrong with the request, if anything.
    fn decide(&self, occasion: &Occasion<'_>) -> Option<Fault>;
}

impl<F: Fn(&Occasion<'_>) -> Option<Fault> + Send + Sync> Faults for F {
    fn decide(&self, occasion: &Occasion<'_>) -> Option<Fault> {
        self(occasion)
    }
}

/// Faults that depend on a seed and on the request's user, verb, resource and number, and not on how
/// the requests of different users interleave.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    /// The seed.
    pub seed: u64,
    /// How many of a thousand requests fail.
    pub per_mille: u16,
    /// The longest delay.
    pub longest_delay: Duration,
}

impl Faults for Seeded {
    fn decide(&self, occasion: &Occasion<'_>) -> Option<Fault> {
        let mut hash = crate::random::mix(self.seed);
        let text = [occasion.user, occasion.verb.as_str(), occasion.resource.plural()];
        for byte in text.iter().flat_map(|text| text.bytes()) {
            hash = crate::random::mix(hash ^ u64::from(byte));
        }
        hash = crate::random::mix(hash ^ occasion.n);
        if hash % 1000 >= u64::from(self.per_mille) {
            return None;
        }
        let choice = crate::random::mix(hash);
        Some(match choice % 8 {
            0 | 1 => Fault::Delay(
                self.longest_delay.mul_f64(f64::from(u8::try_from(choice >> 8 & 0xff).unwrap_or_default()) / 255.0),
            ),
            2 => Fault::DropBefore,
            3 => Fault::DropAfter,
            4 if occasion.verb.is_write() => Fault::Status(409, None),
            5 => Fault::Status(429, Some(1)),
            _ if occasion.verb == Verb::Watch => Fault::CutAfter(usize::try_from(choice >> 8 & 7).unwrap_or_default()),
            _ => Fault::Status(500, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_faults_repeat_and_have_their_rate() {
        let faults = Seeded { seed: 7, per_mille: 100, longest_delay: Duration::from_millis(10) };
        let decide = |n| {
            let occasion = Occasion {
                user: "me",
                verb: Verb::Update,
                resource: Resource::Pods,
                group: "",
                subresource: None,
                namespace: None,
                name: None,
                n,
                sequence: 99 - n % 100,
            };
            faults.decide(&occasion)
        };
        let first: Vec<_> = (0..10_000).map(decide).collect();
        let second: Vec<_> = (0..10_000).map(decide).collect();
        assert_eq!(first, second);
        let failed = first.iter().flatten().count();
        assert!((800..1200).contains(&failed), "{failed}");
    }
}
