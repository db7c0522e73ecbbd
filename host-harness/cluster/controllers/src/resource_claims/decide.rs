//! Which claims a pod or a PodGroup needs, and how those are made, as functions.

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate};
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, PodGroupResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use crate::meta;

/// The annotation with the name that a pod has for a claim made for it.
pub const POD_CLAIM: &str = "resource.kubernetes.io/pod-claim-name";
/// The annotation with the name that a PodGroup has for a claim made for it.
pub const GROUP_CLAIM: &str = "resource.kubernetes.io/podgroup-claim-name";
/// The finalizer of a claim that is allocated.
pub const PROTECTION: &str = "resource.kubernetes.io/delete-protection";

/// What a claim of a pod is met by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// A claim that exists by itself; nothing is to be done.
    Given,
    /// A claim made for the pod from this template.
    Own(String),
    /// The claim that was made for the pod's group; none if that is still to be made.
    Shared(Option<String>),
    /// It is not known yet, because the pod's group is not.
    Unknown,
}

/// The name of the pod's group.
pub fn group_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.scheduling_group.as_ref()?.pod_group_name.as_deref()
}

/// What this claim of the pod is met by. `group` is the pod's group, if it is known.
pub fn need(pod: &Pod, claim: &PodResourceClaim, group: Option<&PodGroup>) -> Need {
    let Some(template) = &claim.resource_claim_template_name else { return Need::Given };
    match (group_of(pod), group) {
        (Some(_), None) => Need::Unknown,
        (Some(_), Some(group)) if group_claims(group).iter().any(|shared| is_same(claim, shared)) => {
            Need::Shared(recorded_for_group(group, &claim.name).map(str::to_owned))
        }
        _ => Need::Own(template.clone()),
    }
}

/// Whether a claim of a pod is the one of its group: of the same name and from the same source.
pub fn is_same(claim: &PodResourceClaim, shared: &PodGroupResourceClaim) -> bool {
    claim.name == shared.name
        && claim.resource_claim_name == shared.resource_claim_name
        && claim.resource_claim_template_name == shared.resource_claim_template_name
}

/// The claims of a PodGroup.
pub fn group_claims(group: &PodGroup) -> &[PodGroupResourceClaim] {
    group.spec.resource_claims.as_deref().unwrap_or_default()
}

/// The claims of a pod.
pub fn pod_claims(pod: &Pod) -> &[PodResourceClaim] {
    pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default()
}

/// The name of the claim that was made for a group, by the group's name for it.
pub fn recorded_for_group<'a>(group: &'a PodGroup, name: &str) -> Option<&'a str> {
    let mut statuses = group.status.as_ref()?.resource_claim_statuses.iter().flatten();
    statuses.find(|status| status.name == name)?.resource_claim_name.as_deref()
}

/// The name of the claim that was made for a pod or is shared by it, by the pod's name for it.
pub fn recorded_for_pod<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    let mut statuses = pod.status.as_ref()?.resource_claim_statuses.iter().flatten();
    statuses.find(|status| status.name == name)?.resource_claim_name.as_deref()
}

/// A new claim for `owner`, which has this name for it under `annotation`.
pub fn new_claim<K: Resource<DynamicType = ()>>(
    owner: &K,
    annotation: &str,
    name: &str,
    template: &ResourceClaimTemplate,
) -> ResourceClaim {
    let from = template.spec.clone().unwrap_or_default();
    let made = from.metadata.unwrap_or_default();
    let mut annotations = made.annotations.unwrap_or_default();
    annotations.insert(annotation.to_owned(), name.to_owned());
    let metadata = ObjectMeta {
        generate_name: Some(generate_name(meta::name(owner.meta()), name)),
        namespace: owner.meta().namespace.clone(),
        labels: made.labels,
        annotations: Some(annotations),
        owner_references: Some(vec![meta::controller_reference(owner)]),
        ..ObjectMeta::default()
    };
    ResourceClaim { metadata, spec: from.spec, status: None }
}

/// The begin of a claim's name: the owner's and its own, both cut in proportion if they are too long.
fn generate_name(owner: &str, claim: &str) -> String {
    // Five random characters follow, and 63 are allowed.
    const LONGEST: usize = 57;
    let whole = format!("{owner}-{claim}-");
    if whole.len() <= LONGEST {
        return whole;
    }
    let cut = |text: &str| text[..text.floor_char_boundary(text.len() * LONGEST / whole.len())].to_owned();
    format!("{}-{}", cut(owner), cut(claim))
}

/// Whether a claim was made for `owner`, which has this name for it under `annotation`.
pub fn is_made_for(claim: &ResourceClaim, owner: &ObjectMeta, annotation: &str, name: &str) -> bool {
    let annotations = claim.metadata.annotations.as_ref();
    let found = annotations.and_then(|annotations| annotations.get(annotation));
    meta::is_controlled_by(&claim.metadata, meta::uid(owner)) && found.is_some_and(|found| found == name)
}

/// Whether a pod will never use its claims again.
pub fn is_done(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let scheduled = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    matches!(phase, Some("Succeeded" | "Failed")) || meta::is_being_deleted(&pod.metadata) && !scheduled
}

/// Who a claim is reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// A pod.
    Pod,
    /// A PodGroup.
    PodGroup,
}

/// What kind of thing a claim is reserved for.
pub fn consumer(reference: &ResourceClaimConsumerReference) -> Option<Consumer> {
    match (reference.api_group.as_deref().unwrap_or_default(), reference.resource.as_str()) {
        ("", "pods") => Some(Consumer::Pod),
        ("scheduling.k8s.io", "podgroups") => Some(Consumer::PodGroup),
        _ => None,
    }
}

/// What a claim is reserved for.
pub fn reserved_for(claim: &ResourceClaim) -> &[ResourceClaimConsumerReference] {
    claim.status.as_ref().and_then(|status| status.reserved_for.as_deref()).unwrap_or_default()
}

/// What is to be changed of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Those that it stays reserved for, if some are gone.
    pub reserved_for: Option<Vec<ResourceClaimConsumerReference>>,
    /// Whether its allocation is to be given back.
    pub deallocate: bool,
    /// Whether its finalizer is to be removed, once it is not allocated.
    pub unprotect: bool,
}

/// What is to be changed of a claim that stays reserved for these. The last consumer that goes gives
/// back the allocation; a claim that never had one keeps it, until it is deleted.
pub fn release(claim: &ResourceClaim, stay: Vec<ResourceClaimConsumerReference>) -> Release {
    let allocated = claim.status.as_ref().is_some_and(|status| status.allocation.is_some());
    let (fewer, none) = (stay.len() < reserved_for(claim).len(), stay.is_empty());
    let ends = none && (fewer || meta::is_being_deleted(&claim.metadata));
    let protected = meta::has_finalizer(&claim.metadata, PROTECTION);
    Release { reserved_for: fewer.then_some(stay), deallocate: ends && allocated, unprotect: ends && protected }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(group: Option<&str>) -> Pod {
        let group = group.map(|name| json!({ "podGroupName": name }));
        let value = json!({ "metadata": { "name": "web-0", "uid": "pod-uid" }, "spec": {
            "containers": [], "schedulingGroup": group,
        }});
        serde_json::from_value(value).expect("it is a Pod")
    }

    fn group(claims: &Value, statuses: &Value) -> PodGroup {
        let value = json!({
            "metadata": { "name": "web", "uid": "group-uid", "namespace": "prod" },
            "spec": { "schedulingPolicy": {}, "resourceClaims": claims },
            "status": { "resourceClaimStatuses": statuses },
        });
        serde_json::from_value(value).expect("it is a PodGroup")
    }

    fn of_pod(claim: &Value) -> PodResourceClaim {
        serde_json::from_value(claim.clone()).expect("it is a claim of a pod")
    }

    #[test]
    fn a_pods_claim_is_its_groups_if_name_and_source_are_the_same() {
        let made = json!([{ "name": "gpu", "resourceClaimName": "web-gpu-x" }]);
        let group = group(&json!([{ "name": "gpu", "resourceClaimTemplateName": "gpus" }]), &made);
        let unmade =
            super::tests::group(&json!([{ "name": "gpu", "resourceClaimTemplateName": "gpus" }]), &json!(null));
        let gpu = json!({ "name": "gpu", "resourceClaimTemplateName": "gpus" });
        let (inside, outside) = (pod(Some("web")), pod(None));
        let table = [
            (&inside, gpu.clone(), Some(&group), Need::Shared(Some("web-gpu-x".into()))),
            (&inside, gpu.clone(), Some(&unmade), Need::Shared(None)),
            (&inside, gpu.clone(), None, Need::Unknown),
            (&outside, gpu.clone(), None, Need::Own("gpus".into())),
            (
                &inside,
                json!({ "name": "gpu", "resourceClaimTemplateName": "others" }),
                Some(&group),
                Need::Own("others".into()),
            ),
            (
                &inside,
                json!({ "name": "gpu2", "resourceClaimTemplateName": "gpus" }),
                Some(&group),
                Need::Own("gpus".into()),
            ),
            (&inside, json!({ "name": "gpu", "resourceClaimName": "mine" }), Some(&group), Need::Given),
            (&inside, json!({ "name": "gpu", "resourceClaimName": "mine" }), None, Need::Given),
        ];
        for (pod, claim, group, wanted) in table {
            assert_eq!(need(pod, &of_pod(&claim), group), wanted, "{claim} of {:?}", group_of(pod));
        }
    }

    #[test]
    fn a_new_claim_is_its_owners_and_says_what_for() {
        let template = json!({ "metadata": { "name": "gpus" }, "spec": {
            "metadata": { "labels": { "a": "b" }, "annotations": { "c": "d" } },
            "spec": { "devices": { "requests": [{ "name": "one" }] } },
        }});
        let template: ResourceClaimTemplate = serde_json::from_value(template).expect("it is a template");
        let group = group(&json!(null), &json!(null));
        let claim = new_claim(&group, GROUP_CLAIM, "gpu", &template);
        assert!(is_made_for(&claim, &group.metadata, GROUP_CLAIM, "gpu"));
        assert!(!is_made_for(&claim, &group.metadata, GROUP_CLAIM, "other"));
        assert!(!is_made_for(&claim, &group.metadata, POD_CLAIM, "gpu"));
        assert!(!is_made_for(&claim, &ObjectMeta::default(), GROUP_CLAIM, "gpu"));
        let claim = serde_json::to_value(claim).expect("it can be written");
        assert_eq!(claim["metadata"]["generateName"], "web-gpu-");
        assert_eq!(claim["metadata"]["labels"], json!({ "a": "b" }));
        assert_eq!(claim["metadata"]["annotations"], json!({ "c": "d", GROUP_CLAIM: "gpu" }));
        assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "PodGroup");
        assert_eq!(claim["spec"]["devices"]["requests"][0]["name"], "one");
    }

    #[test]
    fn long_names_are_cut_in_proportion_so_that_something_of_both_is_left() {
        let name = generate_name(&"o".repeat(100), &"c".repeat(20));
        assert_eq!(name, format!("{}-{}", "o".repeat(46), "c".repeat(9)));
        assert_eq!(generate_name("web-0", "gpu"), "web-0-gpu-");
    }

    #[test]
    fn a_pod_needs_no_claims_once_it_has_ended_or_was_deleted_before_it_was_placed() {
        let table = [
            (json!({ "spec": { "containers": [] }, "status": { "phase": "Pending" } }), false),
            (json!({ "spec": { "containers": [] }, "status": { "phase": "Failed" } }), true),
            (json!({ "spec": { "containers": [] }, "status": { "phase": "Succeeded" } }), true),
            (
                json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" }, "spec": { "containers": [] } }),
                true,
            ),
            (
                json!({
                    "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" },
                    "spec": { "containers": [], "nodeName": "n1" },
                }),
                false,
            ),
        ];
        for (mut value, wanted) in table {
            if value["metadata"].is_null() {
                value["metadata"] = json!({});
            }
            let pod: Pod = serde_json::from_value(value.clone()).expect("it is a Pod");
            assert_eq!(is_done(&pod), wanted, "{value}");
        }
    }

    fn claim(consumers: &[&str], allocated: bool, protected: bool, deleted: bool) -> ResourceClaim {
        let reserved: Vec<_> =
            consumers.iter().map(|name| json!({ "resource": "pods", "name": name, "uid": name })).collect();
        let value = json!({
            "metadata": {
                "finalizers": if protected { json!([PROTECTION]) } else { json!(null) },
                "deletionTimestamp": if deleted { json!("2026-01-01T00:00:00Z") } else { json!(null) },
            },
            "status": {
                "reservedFor": reserved,
                "allocation": if allocated { json!({}) } else { json!(null) },
            },
        });
        serde_json::from_value(value).expect("it is a ResourceClaim")
    }

    #[test]
    fn the_last_consumer_that_goes_gives_back_the_allocation() {
        // The claim, how many of its consumers stay, and: who is kept, deallocate, unprotect.
        let table = [
            (claim(&["a", "b"], true, true, false), 2, (None, false, false)),
            (claim(&["a", "b"], true, true, false), 1, (Some(1), false, false)),
            (claim(&["a", "b"], true, true, false), 0, (Some(0), true, true)),
            (claim(&["a"], true, false, false), 0, (Some(0), true, false)),
            (claim(&["a"], false, true, false), 0, (Some(0), false, true)),
            (claim(&[], true, true, false), 0, (None, false, false)),
            (claim(&[], true, true, true), 0, (None, true, true)),
            (claim(&["a"], true, true, true), 1, (None, false, false)),
        ];
        for (claim, stay, wanted) in table {
            let release = release(&claim, reserved_for(&claim)[..stay].to_vec());
            let found = (release.reserved_for.map(|stay| stay.len()), release.deallocate, release.unprotect);
            assert_eq!(found, wanted, "{claim:?} for {stay}");
        }
    }

    #[test]
    fn a_claim_is_reserved_for_pods_and_pod_groups() {
        let kind = |group: Option<&str>, resource: &str| {
            consumer(&ResourceClaimConsumerReference {
                api_group: group.map(str::to_owned),
                resource: resource.into(),
                ..ResourceClaimConsumerReference::default()
            })
        };
        assert_eq!(kind(None, "pods"), Some(Consumer::Pod));
        assert_eq!(kind(Some(""), "pods"), Some(Consumer::Pod));
        assert_eq!(kind(Some("scheduling.k8s.io"), "podgroups"), Some(Consumer::PodGroup));
        assert_eq!(kind(None, "podgroups"), None);
        assert_eq!(kind(Some("apps"), "pods"), None);
    }
}
