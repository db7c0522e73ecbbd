//! The kinds that the garbage collector watches. Upstream asks discovery; here it is told.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, Workload};
use kube::Resource;
use kube::core::{ApiResource, GroupVersionKind, NamespaceResourceScope};

/// A kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// How it is spelt.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// A kind whose objects live in namespaces.
    pub fn of<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>() -> Self {
        Self { resource: ApiResource::erase::<K>(&()), namespaced: true }
    }

    /// A kind by its names.
    pub fn named(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        Self { resource: ApiResource::from_gvk_with_plural(&gvk, plural), namespaced }
    }

    /// Those that have to do with StatefulSets and their groups.
    pub fn usual() -> Vec<Self> {
        vec![
            Self::of::<StatefulSet>(),
            Self::of::<ControllerRevision>(),
            Self::of::<Pod>(),
            Self::of::<PersistentVolumeClaim>(),
            Self::of::<Workload>(),
            Self::of::<PodGroup>(),
            Self::of::<ResourceClaim>(),
        ]
    }

    /// The kind of this name among these; any version of its group will do.
    pub fn find<'a>(kinds: &'a [Self], api_version: &str, kind: &str) -> Option<&'a Self> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        kinds.iter().find(|known| known.resource.kind == kind && known.resource.group == group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_group_whatever_the_version() {
        let kinds = Kind::usual();
        let plural = |version, kind| Kind::find(&kinds, version, kind).map(|kind| kind.resource.plural.as_str());
        assert_eq!(plural("v1", "Pod"), Some("pods"));
        assert_eq!(plural("scheduling.k8s.io/v1alpha1", "PodGroup"), Some("podgroups"));
        assert_eq!(plural("apps/v1", "Pod"), None);
        assert_eq!(plural("v1", "Node"), None);
    }
}
