//! The deterministic names of Workloads and PodGroups, the same bytes as upstream's.
//!
//! Names are for people: nothing is ever found again by its name. They are deterministic so that a
//! create that is repeated after a crash meets the object that the first one made.

/// The longest name that the API server takes (a DNS subdomain), in bytes.
pub const MAX_NAME_LENGTH: usize = 253;

/// The longest name of a PodGroupTemplate (a DNS label), in bytes.
pub const MAX_TEMPLATE_NAME_LENGTH: usize = 63;

const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The name of the Workload of an owner: `<owner>-<hash>`, the owner's name cut so that all fits.
pub fn workload_name(owner_name: &str, owner_uid: &str) -> String {
    let hash = hash(&["(types.UID)", owner_uid]);
    let room = MAX_NAME_LENGTH.saturating_sub(hash.len()).saturating_sub(1);
    join(&[cut(owner_name, room), &hash])
}

/// The name of the PodGroup of a Workload's template: `<workload>-<template>-<hash>`.
///
/// Where both names are longer than half of the room, they share it evenly; otherwise only the
/// longer one is cut.
pub fn pod_group_name(workload_name: &str, template_name: &str) -> String {
    let hash = hash(&[workload_name, template_name]);
    let (workload, template) = (workload_name.len(), template_name.len());
    // An empty name takes no separator.
    let separators = usize::from(workload > 0).saturating_add(usize::from(template > 0));
    let room = MAX_NAME_LENGTH.saturating_sub(hash.len()).saturating_sub(separators);
    let half = room / 2;
    let (workload, template) = if workload.saturating_add(template) <= room {
        (workload, template)
    } else if workload > half && template > half {
        (room.saturating_sub(half), half)
    } else if workload > half {
        (room.saturating_sub(template), template)
    } else {
        (workload, room.saturating_sub(workload))
    };
    join(&[cut(workload_name, workload), cut(template_name, template), &hash])
}

/// The name of the PodGroup that a StatefulSet makes of a parent's template: many StatefulSets may
/// share one, so each one's own name and UID go into the hash.
pub fn delegated_pod_group_name(
    workload_name: &str,
    template_name: &str,
    statefulset_name: &str,
    statefulset_uid: &str,
) -> String {
    let hash = hash(&[workload_name, template_name, "(types.UID)", statefulset_uid]);
    let room = MAX_NAME_LENGTH.saturating_sub(hash.len()).saturating_sub(2);
    let template = cut(template_name, room / 2);
    let statefulset = cut(statefulset_name, room.saturating_sub(template.len()));
    join(&[statefulset, template, &hash])
}

/// The name of the one PodGroupTemplate of a StatefulSet: the StatefulSet's own name where that is
/// a DNS label, else a DNS label made from it and kept unique by a hash.
pub fn template_name(statefulset_name: &str) -> String {
    if statefulset_name.len() <= MAX_TEMPLATE_NAME_LENGTH && !statefulset_name.contains('.') {
        return statefulset_name.to_owned();
    }
    let hash = hash(&[statefulset_name]);
    let room = MAX_TEMPLATE_NAME_LENGTH.saturating_sub(hash.len()).saturating_sub(1);
    let label = statefulset_name.replace('.', "-");
    join(&[cut(&label, room).trim_matches('-'), &hash])
}

/// The hash in names: 32-bit FNV-1a of the parts without separators, in decimal, each digit moved
/// into an alphabet without vowels.
fn hash(parts: &[&str]) -> String {
    safe_encode(&fnv1a32(parts).to_string())
}

fn fnv1a32(parts: &[&str]) -> u32 {
    parts
        .iter()
        .flat_map(|part| part.bytes())
        .fold(0x811c_9dc5, |sum: u32, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn safe_encode(text: &str) -> String {
    text.bytes()
        .filter_map(|byte| ALPHABET.get(usize::from(byte).checked_rem(ALPHABET.len())?))
        .map(|&byte| char::from(byte))
        .collect()
}

/// At most `length` bytes of `text`, never a part of a character.
fn cut(text: &str, length: usize) -> &str {
    text.get(..text.floor_char_boundary(length)).unwrap_or(text)
}

fn join(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_dns_label_is_the_template_name() {
        for name in ["web", "a", &"s".repeat(63)] {
            assert_eq!(template_name(name), *name);
        }
    }

    #[test]
    fn a_name_that_is_no_dns_label_gives_a_unique_dns_label() {
        let dotted = template_name("web.v1");
        let dashed = template_name("web-v1");
        let long = template_name(&"s".repeat(64));
        let longer = template_name(&"s".repeat(65));
        for name in [&dotted, &long, &longer] {
            assert!(name.len() <= MAX_TEMPLATE_NAME_LENGTH, "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{name}");
            assert!(!name.starts_with('-') && !name.ends_with('-'), "{name}");
        }
        assert_ne!(dotted, dashed);
        assert_ne!(long, longer);
        assert_eq!(dotted, template_name("web.v1"));
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        let name = workload_name(&"é".repeat(200), "uid");
        assert!(name.len() <= MAX_NAME_LENGTH);
        assert!(pod_group_name(&"é".repeat(200), &"日".repeat(200)).len() <= MAX_NAME_LENGTH);
    }
}
