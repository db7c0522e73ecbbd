//! The resources that are served, and how their paths and kinds are spelt.

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Resource {
    StatefulSets,
    Pods,
    Workloads,
    PodGroups,
    Events,
    Leases,
    /// `GET /apis/scheduling.k8s.io/v1beta1`; holds no objects.
    Discovery,
    /// `GET /version`; holds no objects.
    Version,
}

/// The group and version of the Workload API.
pub(crate) const SCHEDULING: &str = "scheduling.k8s.io/v1beta1";

impl Resource {
    /// Every member, in the order of the discriminants.
    pub(crate) const ALL: [Self; 8] = [
        Self::StatefulSets,
        Self::Pods,
        Self::Workloads,
        Self::PodGroups,
        Self::Events,
        Self::Leases,
        Self::Discovery,
        Self::Version,
    ];

    /// `apiVersion` and `kind` of the objects.
    pub(crate) fn types(self) -> (&'static str, &'static str) {
        match self {
            Self::StatefulSets => ("apps/v1", "StatefulSet"),
            Self::Pods => ("v1", "Pod"),
            Self::Workloads => (SCHEDULING, "Workload"),
            Self::PodGroups => (SCHEDULING, "PodGroup"),
            Self::Events => ("events.k8s.io/v1", "Event"),
            Self::Leases => ("coordination.k8s.io/v1", "Lease"),
            Self::Discovery => ("v1", "APIResource"),
            Self::Version => ("v1", "Info"),
        }
    }

    /// The last part of a collection's path.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::StatefulSets => "statefulsets",
            Self::Pods => "pods",
            Self::Workloads => "workloads",
            Self::PodGroups => "podgroups",
            Self::Events => "events",
            Self::Leases => "leases",
            Self::Discovery => "discovery",
            Self::Version => "version",
        }
    }

    /// The API group; empty for the core group.
    pub(crate) fn group(self) -> &'static str {
        self.types().0.split_once('/').map_or("", |(group, _)| group)
    }

    /// `workloads.scheduling.k8s.io`, as messages name it.
    pub(crate) fn qualified(self) -> String {
        match self.group() {
            "" => self.plural().to_owned(),
            group => format!("{}.{group}", self.plural()),
        }
    }

    /// The resource of this group version and plural name, if it is one that holds objects.
    pub(crate) fn find(api_version: &str, plural: &str) -> Option<Self> {
        Self::ALL[..6].iter().copied().find(|it| it.types().0 == api_version && it.plural() == plural)
    }

    /// Whether it disappears when the Workload API is off.
    pub(crate) fn is_scheduling(self) -> bool {
        matches!(self, Self::Workloads | Self::PodGroups | Self::Discovery)
    }

    /// Whether `status` is a subresource, so that writes of the object leave it alone.
    pub(crate) fn has_status(self) -> bool {
        matches!(self, Self::StatefulSets | Self::Pods | Self::PodGroups)
    }

    /// Whether the server counts changes of the spec in `metadata.generation`.
    pub(crate) fn has_generation(self) -> bool {
        matches!(self, Self::StatefulSets | Self::Pods)
    }
}
