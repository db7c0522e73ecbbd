//! Whose pods are whose.
//!
//! Stands for `PodControllerRefManager`: a set adopts a pod that its selector and its name match and
//! that nobody controls, and releases one of its own that no longer matches.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::set;
use crate::{meta, selector};

/// What a pod is to a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its own.
    Own,
    /// To be adopted.
    Adoptable,
    /// Its own, and to be released.
    Stray,
    /// None of its business.
    Foreign,
}

/// What this pod is to this set.
pub fn standing(set: &StatefulSet, pod: &Pod) -> Standing {
    let selects = selector::matches(&set.spec.selector, pod.metadata.labels.as_ref());
    let matches = selects && set::ordinal_of(set, meta::name(&pod.metadata)).is_some();
    let ends = meta::is_being_deleted(&set.metadata);
    match meta::controller(&pod.metadata) {
        Some(owner) if owner.uid != meta::uid(&set.metadata) => Standing::Foreign,
        Some(_) if matches => Standing::Own,
        Some(_) if ends => Standing::Foreign,
        Some(_) => Standing::Stray,
        None if matches && !ends && !meta::is_being_deleted(&pod.metadata) => Standing::Adoptable,
        None => Standing::Foreign,
    }
}

/// The owners of an object that the set adopts.
pub fn with(set: &StatefulSet, owners: &[OwnerReference]) -> Vec<OwnerReference> {
    let mut owners = without(set, owners);
    owners.push(meta::controller_reference(set));
    owners
}

/// The owners of an object that the set releases.
pub fn without(set: &StatefulSet, owners: &[OwnerReference]) -> Vec<OwnerReference> {
    owners.iter().filter(|owner| owner.uid != meta::uid(&set.metadata)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn set() -> StatefulSet {
        let value = json!({
            "metadata": { "namespace": "prod", "name": "web", "uid": "mine" },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": {} },
        });
        serde_json::from_value(value).expect("it is a StatefulSet")
    }

    fn pod(name: &str, label: &str, owner: Option<&str>) -> Pod {
        let owners = owner.map(|uid| {
            json!([{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "uid": uid, "controller": true }])
        });
        let value = json!({ "metadata": { "name": name, "labels": { "app": label }, "ownerReferences": owners } });
        serde_json::from_value(value).expect("it is a Pod")
    }

    #[test]
    fn a_set_adopts_what_its_selector_and_name_match_and_releases_what_they_do_not() {
        let table = [
            ("web-0", "web", Some("mine"), Standing::Own),
            ("web-0", "web", None, Standing::Adoptable),
            ("web-0", "web", Some("other"), Standing::Foreign),
            ("web-0", "db", None, Standing::Foreign),
            ("other-0", "web", None, Standing::Foreign),
            ("web-0", "db", Some("mine"), Standing::Stray),
            ("other-0", "web", Some("mine"), Standing::Stray),
        ];
        for (name, label, owner, wanted) in table {
            let found = standing(&set(), &pod(name, label, owner));
            assert_eq!(found, wanted, "{name} with {label} of {owner:?}");
        }
    }

    #[test]
    fn a_set_that_is_being_deleted_adopts_and_releases_nothing() {
        let mut set = set();
        set.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        assert_eq!(standing(&set, &pod("web-0", "web", Some("mine"))), Standing::Own);
        assert_eq!(standing(&set, &pod("web-0", "web", None)), Standing::Foreign);
        assert_eq!(standing(&set, &pod("web-0", "db", Some("mine"))), Standing::Foreign);
    }

    #[test]
    fn a_pod_that_is_being_deleted_is_not_adopted() {
        let mut pod = pod("web-0", "web", None);
        pod.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        assert_eq!(standing(&set(), &pod), Standing::Foreign);
    }

    #[test]
    fn adopting_and_releasing_leave_other_owners_alone() {
        let other = pod("web-0", "web", Some("other")).metadata.owner_references.expect("it has one");
        let both = with(&set(), &other);
        let uids: Vec<_> = both.iter().map(|owner| owner.uid.as_str()).collect();
        assert_eq!(uids, ["other", "mine"]);
        assert_eq!(without(&set(), &both), other);
    }
}
