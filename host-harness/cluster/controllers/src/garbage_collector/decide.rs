//! What becomes of one object, given how its owners are: `classifyReferences` and the decision of
//! `attemptToDeleteItem`, as functions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PropagationPolicy;

use crate::meta;

/// The finalizer of an owner that is deleted after its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an owner that is deleted without its dependents.
pub const ORPHAN: &str = "orphan";

/// How an owner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It exists. That it is being deleted does not change that.
    Solid,
    /// It exists, and is deleted once its dependents are.
    Waiting,
    /// It is gone, or another object has its name.
    Dangling,
}

/// How the owner behind a reference is, by what the API server has under its name.
pub fn classify(reference: &OwnerReference, owner: Option<&ObjectMeta>) -> Owner {
    match owner {
        Some(owner) if meta::uid(owner) != reference.uid => Owner::Dangling,
        Some(owner) if meta::is_being_deleted(owner) && meta::has_finalizer(owner, FOREGROUND) => Owner::Waiting,
        Some(_) => Owner::Solid,
        None => Owner::Dangling,
    }
}

/// What becomes of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It stays as it is.
    Keep,
    /// It stays, with these owners left.
    Strip(Vec<OwnerReference>),
    /// It is deleted.
    Delete(PropagationPolicy),
}

/// What becomes of an object with these owners.
pub fn judge(item: &ObjectMeta, owners: &[(OwnerReference, Owner)], has_dependents: bool) -> Verdict {
    let any = |wanted| owners.iter().any(|(_, owner)| *owner == wanted);
    if owners.is_empty() {
        return Verdict::Keep;
    }
    if any(Owner::Solid) {
        let solid: Vec<_> = owners.iter().filter(|(_, owner)| *owner == Owner::Solid).collect();
        if solid.len() == owners.len() {
            return Verdict::Keep;
        }
        return Verdict::Strip(solid.into_iter().map(|(reference, _)| reference.clone()).collect());
    }
    Verdict::Delete(if any(Owner::Waiting) && has_dependents {
        PropagationPolicy::Foreground
    } else if meta::has_finalizer(item, ORPHAN) {
        PropagationPolicy::Orphan
    } else if meta::has_finalizer(item, FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn reference(uid: &str) -> OwnerReference {
        OwnerReference { uid: uid.into(), name: uid.into(), ..OwnerReference::default() }
    }

    fn object(uid: &str, finalizers: &[&str], deleted: bool) -> ObjectMeta {
        ObjectMeta {
            uid: Some(uid.into()),
            finalizers: Some(finalizers.iter().map(ToString::to_string).collect()),
            deletion_timestamp: deleted.then(|| Timestamp::UNIX_EPOCH.into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn an_owner_is_solid_until_it_is_gone_or_waits_for_its_dependents() {
        let table = [
            (Some(object("a", &[], false)), Owner::Solid),
            (Some(object("a", &[], true)), Owner::Solid),
            (Some(object("a", &["scheduling.k8s.io/podgroup-protection"], true)), Owner::Solid),
            (Some(object("a", &[ORPHAN], true)), Owner::Solid),
            (Some(object("a", &[FOREGROUND], false)), Owner::Solid),
            (Some(object("a", &[FOREGROUND], true)), Owner::Waiting),
            (Some(object("b", &[FOREGROUND], true)), Owner::Dangling),
            (Some(object("b", &[], false)), Owner::Dangling),
            (None, Owner::Dangling),
        ];
        for (owner, wanted) in table {
            assert_eq!(classify(&reference("a"), owner.as_ref()), wanted, "{owner:?}");
        }
    }

    #[test]
    fn one_solid_owner_keeps_an_object_and_the_others_references_go() {
        use Owner::{Dangling, Solid, Waiting};
        use PropagationPolicy::{Background, Foreground, Orphan};
        let strip = |uids: &[&str]| Verdict::Strip(uids.iter().map(|uid| reference(uid)).collect());
        let table: [(&[Owner], &[&str], bool, Verdict); 15] = [
            (&[], &[], true, Verdict::Keep),
            (&[Solid], &[], true, Verdict::Keep),
            (&[Solid, Solid], &[], true, Verdict::Keep),
            (&[Solid, Dangling], &[], false, strip(&["0"])),
            (&[Dangling, Solid, Waiting], &[], true, strip(&["1"])),
            (&[Dangling, Solid], &[FOREGROUND], true, strip(&["1"])),
            (&[Dangling], &[], true, Verdict::Delete(Background)),
            (&[Dangling, Dangling], &["example.com/x"], true, Verdict::Delete(Background)),
            (&[Dangling], &[FOREGROUND], false, Verdict::Delete(Foreground)),
            (&[Dangling], &[ORPHAN], true, Verdict::Delete(Orphan)),
            (&[Dangling], &[FOREGROUND, ORPHAN], true, Verdict::Delete(Orphan)),
            (&[Waiting], &[], false, Verdict::Delete(Background)),
            (&[Waiting], &[], true, Verdict::Delete(Foreground)),
            (&[Waiting, Dangling], &[], true, Verdict::Delete(Foreground)),
            (&[Waiting], &[ORPHAN], false, Verdict::Delete(Orphan)),
        ];
        for (owners, finalizers, has_dependents, wanted) in table {
            let named: Vec<_> =
                owners.iter().enumerate().map(|(at, owner)| (reference(&at.to_string()), *owner)).collect();
            let item = object("x", finalizers, false);
            assert_eq!(judge(&item, &named, has_dependents), wanted, "{owners:?} {finalizers:?} {has_dependents}");
        }
    }

    #[test]
    fn a_pod_whose_pod_group_waits_for_it_keeps_running_after_its_set_is_gone() {
        // The pod belongs to its set, which is gone, and to its group. That is being deleted, too, but its
        // protection finalizer waits for the pod, and to the pod it is as solid as ever.
        let group = object("group", &["scheduling.k8s.io/podgroup-protection"], true);
        let owners = [
            (reference("set"), classify(&reference("set"), None)),
            (reference("group"), classify(&reference("group"), Some(&group))),
        ];
        assert_eq!(judge(&object("pod", &[], false), &owners, false), Verdict::Strip(vec![reference("group")]));
    }

    #[test]
    fn a_pod_group_deleted_in_the_foreground_takes_its_pods_along() {
        // The finalizer that the group was made with has the collector delete it in the foreground...
        let group = object("group", &["scheduling.k8s.io/podgroup-protection", FOREGROUND], false);
        let owners = [(reference("set"), classify(&reference("set"), None))];
        assert_eq!(judge(&group, &owners, true), Verdict::Delete(PropagationPolicy::Foreground));
        // ...and then it waits for the pod, which has no solid owner left.
        let group = object("group", &["scheduling.k8s.io/podgroup-protection", FOREGROUND], true);
        let owners = [
            (reference("set"), classify(&reference("set"), None)),
            (reference("group"), classify(&reference("group"), Some(&group))),
        ];
        assert_eq!(judge(&object("pod", &[], false), &owners, false), Verdict::Delete(PropagationPolicy::Background));
    }
}
