//! The history of a StatefulSet's pod templates.
//!
//! Stands for upstream's `history` package: a `ControllerRevision` holds the pod template and
//! nothing else, is named by its hash, and is used again when the template returns to it. The hash is 32-bit
//! FNV-1 in the alphabet of `SafeEncodeString`, over bytes of our own: upstream's encoding of the same
//! template differs, so do the names. Left out: the semantic comparison of revisions.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

use super::set;
use crate::{meta, selector};

/// The label with a revision's hash.
const HASH: &str = "controller.kubernetes.io/hash";

/// Where the revision that pods are updated to comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// It is the latest one.
    Latest(ControllerRevision),
    /// It is an earlier one, which becomes the latest with this number.
    Again(ControllerRevision, i64),
    /// It has to be made.
    New(Box<ControllerRevision>),
}

/// The revision for the set's template. `history` is sorted.
pub fn update(set: &StatefulSet, history: &[ControllerRevision], collisions: i32) -> Update {
    let next = history.last().and_then(|last| last.revision).unwrap_or(0) + 1;
    let wanted = new(set, next, collisions);
    match history.iter().rev().find(|revision| revision.data == wanted.data) {
        Some(found) if history.last() == Some(found) => Update::Latest(found.clone()),
        Some(found) => Update::Again(found.clone(), next),
        None => Update::New(Box::new(wanted)),
    }
}

/// Sorts a history: by number, then by age, then by name.
pub fn sort(history: &mut [ControllerRevision]) {
    history.sort_by(|one, other| {
        let key = |revision: &ControllerRevision| {
            let made = revision.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (revision.revision, made, meta::name(&revision.metadata).to_owned())
        };
        key(one).cmp(&key(other))
    });
}

/// A new revision of the set's template.
pub fn new(set: &StatefulSet, number: i64, collisions: i32) -> ControllerRevision {
    let data = data(set);
    let hash = hash(&data, collisions);
    let mut revision =
        ControllerRevision { data: RawExtension(data), revision: Some(number), ..ControllerRevision::default() };
    let set_name = meta::name(&set.metadata);
    let mut cut = set_name.len().min(223);
    while !set_name.is_char_boundary(cut) {
        cut -= 1;
    }
    revision.metadata.name = Some(format!("{}-{hash}", &set_name[..cut]));
    revision.metadata.namespace.clone_from(&set.metadata.namespace);
    let template = set.spec.template.metadata.as_ref();
    let mut labels = template.and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
    labels.insert(HASH.to_owned(), hash);
    revision.metadata.labels = Some(labels);
    revision.metadata.annotations.clone_from(&set.metadata.annotations);
    revision.metadata.owner_references = Some(vec![meta::controller_reference(set)]);
    revision
}

/// What a revision holds: a patch that puts the pod template into place.
fn data(set: &StatefulSet) -> Value {
    let mut template = json!(set.spec.template);
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".into(), "replace".into());
    }
    json!({ "spec": { "template": template } })
}

/// The pod template that a revision holds.
pub fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.0.get("spec")?.get("template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// The hash of a revision's data. A name that is taken by another revision counts as a collision.
fn hash(data: &Value, collisions: i32) -> String {
    let mut bytes = data.to_string().into_bytes();
    if collisions > 0 {
        bytes.extend(collisions.to_string().bytes());
    }
    let mix = |hash: u32, byte: &u8| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte);
    let hash = bytes.iter().fold(0x811c_9dc5, mix);
    let alphabet = b"bcdfghjklmnpqrstvwxz2456789";
    hash.to_string().bytes().map(|digit| char::from(alphabet[usize::from(digit) % alphabet.len()])).collect()
}

/// Whether a revision is the set's, or nobody's and the set may take it.
pub fn is_candidate(set: &StatefulSet, revision: &ControllerRevision) -> bool {
    match meta::controller(&revision.metadata) {
        Some(owner) => owner.uid == meta::uid(&set.metadata),
        None => selector::matches(&set.spec.selector, revision.metadata.labels.as_ref()),
    }
}

/// The revisions that are no longer needed, oldest first. `history` is sorted; `live` are the names of
/// those that are the current one, the update's, or some pod's.
pub fn surplus(set: &StatefulSet, history: &[ControllerRevision], live: &BTreeSet<&str>) -> Vec<ControllerRevision> {
    let old: Vec<_> = history.iter().filter(|revision| !live.contains(meta::name(&revision.metadata))).collect();
    let surplus = old.len().saturating_sub(set::history_limit(set));
    old.into_iter().take(surplus).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(image: &str) -> StatefulSet {
        let value = json!({
            "metadata": { "namespace": "prod", "name": "web", "uid": "set-uid", "annotations": { "a": "b" } },
            "spec": {
                "replicas": 2,
                "revisionHistoryLimit": 1,
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "main", "image": image }] },
                },
            },
        });
        serde_json::from_value(value).expect("it is a StatefulSet")
    }

    fn history(images: &[&str]) -> Vec<ControllerRevision> {
        (1..).zip(images).map(|(number, image)| new(&set(image), number, 0)).collect()
    }

    #[test]
    fn the_hash_is_fnv_1_in_the_safe_alphabet() {
        // FNV-1 of "1" is 84696366, of "11" 544649051.
        assert_eq!(hash(&json!(1), 0), "d8bfb7bb");
        assert_eq!(hash(&json!(1), 1), "988b8f495", "a collision is hashed, too");
    }

    #[test]
    fn the_revision_depends_on_the_template_only() {
        let mut scaled = set("one");
        scaled.spec.replicas = Some(7);
        scaled.metadata.annotations = None;
        assert_eq!(new(&scaled, 1, 0).metadata.name, new(&set("one"), 1, 0).metadata.name);
        assert_ne!(new(&set("two"), 1, 0).metadata.name, new(&set("one"), 1, 0).metadata.name);
        assert_eq!(template(&new(&set("one"), 1, 0)), Some(set("one").spec.template));
    }

    #[test]
    fn a_template_that_returns_is_its_old_revision_with_a_new_number() {
        assert!(matches!(update(&set("one"), &[], 0), Update::New(new) if new.revision == Some(1)));
        let history = history(&["one", "two"]);
        assert_eq!(update(&set("two"), &history, 0), Update::Latest(history[1].clone()));
        assert_eq!(update(&set("one"), &history, 0), Update::Again(history[0].clone(), 3));
        assert!(matches!(update(&set("three"), &history, 0), Update::New(new) if new.revision == Some(3)));
    }

    #[test]
    fn only_old_revisions_that_nothing_needs_are_surplus_the_oldest_first() {
        let history = history(&["one", "two", "three", "four"]);
        let name = |at: usize| history[at].metadata.name.as_deref().expect("it has one");
        let live = BTreeSet::from([name(1), name(3)]);
        assert_eq!(surplus(&set("four"), &history, &live), [history[0].clone()]);
        assert_eq!(surplus(&set("four"), &history[1..], &live), []);
    }

    #[test]
    fn an_orphaned_revision_may_be_taken_by_a_set_that_selects_it() {
        let mut revision = new(&set("one"), 1, 0);
        assert!(is_candidate(&set("one"), &revision));
        revision.metadata.owner_references.as_mut().expect("it has one")[0].uid = "other".into();
        assert!(!is_candidate(&set("one"), &revision));
        revision.metadata.owner_references = None;
        assert!(is_candidate(&set("one"), &revision));
        revision.metadata.labels = None;
        assert!(!is_candidate(&set("one"), &revision));
    }
}
