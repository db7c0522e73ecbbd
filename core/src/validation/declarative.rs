//! The structural rules that the building blocks carry themselves (declarative validation).

use k8s_openapi::api::scheduling::v1alpha3::{TopologyConstraint, WorkloadPodGroupResourceClaim};
use serde_json::Value;

use super::format;
use crate::api::StatefulSetSchedulingConfiguration;
use crate::field::{BadValue, Error, ErrorList, Path};

/// At most so many topology constraints may be set.
pub const MAX_TOPOLOGY_CONSTRAINTS: usize = 1;
/// At most so many claims may be shared.
pub const MAX_RESOURCE_CLAIMS: usize = 4;

/// The errors of a new configuration at `path`, block by block.
pub(super) fn validate(configuration: &StatefulSetSchedulingConfiguration, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(policy) = &configuration.scheduling_policy {
        let path = path.child("schedulingPolicy");
        union(&path, &[("basic", policy.basic.is_some()), ("gang", policy.gang.is_some())], &mut errors);
        if let Some(min_count) = policy.gang.as_ref().and_then(|gang| gang.min_count) {
            minimum(&path.child("gang").child("minCount"), min_count, 1, &mut errors);
        }
    }
    if let Some(constraints) = &configuration.scheduling_constraints {
        let path = path.child("schedulingConstraints").child("topology");
        topology(&path, constraints.topology.as_deref().unwrap_or_default(), &mut errors);
    }
    if let Some(mode) = &configuration.disruption_mode {
        let path = path.child("disruptionMode");
        union(&path, &[("single", mode.single.is_some()), ("all", mode.all.is_some())], &mut errors);
    }
    resource_claims(&path.child("resourceClaims"), configuration.claims(), &mut errors);
    errors
}

fn topology(path: &Path, constraints: &[TopologyConstraint], errors: &mut ErrorList) {
    if constraints.len() > MAX_TOPOLOGY_CONSTRAINTS {
        errors.push(too_many(path, constraints.len(), MAX_TOPOLOGY_CONSTRAINTS));
        return;
    }
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index).child("key");
        required(&path, &constraint.key, "format=k8s-label-key", format::label_key, errors);
    }
}

fn resource_claims(path: &Path, claims: &[WorkloadPodGroupResourceClaim], errors: &mut ErrorList) {
    if claims.len() > MAX_RESOURCE_CLAIMS {
        errors.push(too_many(path, claims.len(), MAX_RESOURCE_CLAIMS));
        return;
    }
    for (index, claim) in claims.iter().enumerate() {
        if claims.iter().take(index).any(|earlier| earlier.name == claim.name) {
            let value = serde_json::to_value(claim).unwrap_or(Value::Null);
            errors.push(Error::duplicate(&path.index(index), value));
        }
    }
    for (index, claim) in claims.iter().enumerate() {
        let path = path.index(index);
        let sources = [
            ("resourceClaimName", &claim.resource_claim_name),
            ("resourceClaimTemplateName", &claim.resource_claim_template_name),
        ];
        union(&path, &sources.map(|(name, source)| (name, source.is_some())), errors);
        required(&path.child("name"), &claim.name, "format=k8s-short-name", format::short_name, errors);
        for (name, source) in sources {
            if let Some(source) = source {
                formatted(&path.child(name), source, "format=k8s-long-name", format::long_name, errors);
            }
        }
    }
}

/// Exactly one member of a union must be set.
fn union(path: &Path, members: &[(&str, bool)], errors: &mut ErrorList) {
    let set: Vec<&str> = members.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
    let (value, exactly) = match set.as_slice() {
        [] => (String::new(), ""),
        [_] => return,
        several => (format!("{{{}}}", several.join(", ")), "exactly "),
    };
    let names = members.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let detail = format!("must specify {exactly}one of: {names}");
    errors.push(Error::invalid(path, BadValue::String(value), detail).with_origin("union"));
}

fn minimum(path: &Path, value: i32, minimum: i32, errors: &mut ErrorList) {
    if value < minimum {
        let detail = format!("must be greater than or equal to {minimum}");
        errors.push(Error::invalid(path, BadValue::Int(value.into()), detail).with_origin("minimum"));
    }
}

fn too_many(path: &Path, actual: usize, maximum: usize) -> Error {
    Error::too_many(path, actual, maximum).with_origin("maxItems")
}

/// An empty text is an absent one, and has no format.
fn required(path: &Path, value: &str, origin: &'static str, problems: fn(&str) -> Vec<String>, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(Error::required(path, ""));
    } else {
        formatted(path, value, origin, problems, errors);
    }
}

fn formatted(
    path: &Path,
    value: &str,
    origin: &'static str,
    problems: fn(&str) -> Vec<String>,
    errors: &mut ErrorList,
) {
    for problem in problems(value) {
        errors.push(Error::invalid(path, BadValue::String(value.to_owned()), problem).with_origin(origin));
    }
}
