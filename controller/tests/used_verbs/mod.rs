//! What the controller asks of an API server, as RBAC names it.

/// Verb and resource of every request that is ever made, discovery aside.
pub(crate) const USED: &[(&str, &str)] = &[
    ("create", "events"),
    ("create", "leases"),
    ("create", "podgroups"),
    ("create", "workloads"),
    ("get", "leases"),
    ("get", "podgroups"),
    ("get", "statefulsets"),
    ("get", "workloads"),
    ("list", "leases"),
    ("list", "podgroups"),
    ("list", "pods"),
    ("list", "statefulsets"),
    ("list", "workloads"),
    ("patch", "events"),
    ("patch", "leases"),
    ("patch", "podgroups"),
    ("patch", "statefulsets"),
    ("patch", "workloads"),
    ("watch", "leases"),
    ("watch", "podgroups"),
    ("watch", "statefulsets"),
    ("watch", "workloads"),
];
