//! What is refused on create and on update, in three layers, and what is warned about.
//!
//! The layers are the KEP's: the structural rules of the building blocks, the rules of the
//! StatefulSet, and those of [`workloadbuilder`], which are checked on the
//! same item that is compiled later.

mod declarative;
mod format;
mod statefulset;

pub use declarative::{MAX_RESOURCE_CLAIMS, MAX_TOPOLOGY_CONSTRAINTS};
pub use statefulset::{GANG_REQUIRES_PARALLEL, NO_PARTITION};

use serde::Serialize;

use crate::api::{StatefulSet, StatefulSetSchedulingConfiguration};
use crate::field::{BadValue, Error, ErrorList, Path};
use crate::gates::FeatureGates;
use crate::workloadbuilder;

/// What validation found, layer by layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Errors of the StatefulSet's own rules.
    pub statefulset: ErrorList,
    /// Errors of workloadbuilder's rules.
    pub builder: ErrorList,
    /// Errors of declarative validation.
    pub declarative: ErrorList,
    /// What is accepted and yet hardly meant.
    pub warnings: Vec<String>,
}

impl Report {
    /// Whether nothing is refused.
    pub fn is_valid(&self) -> bool {
        self.statefulset.is_empty() && self.builder.is_empty() && self.declarative.is_empty()
    }

    /// All errors in the order of an API server's answer: hand-written ones before declarative ones.
    pub fn into_errors(self) -> ErrorList {
        let mut errors = self.statefulset;
        errors.append(self.builder);
        errors.append(self.declarative);
        errors
    }
}

/// Judges a new configuration at `path` for itself, without the StatefulSet around it.
pub fn validate_configuration(configuration: &StatefulSetSchedulingConfiguration, path: &Path) -> Report {
    let item = workloadbuilder::WorkloadItem::new(configuration, path);
    Report {
        builder: workloadbuilder::validate(&item, &workloadbuilder::BuildOptions::default()),
        declarative: declarative::validate(configuration, path),
        ..Report::default()
    }
}

/// Judges a new StatefulSet whose configuration is written at `path`.
pub fn validate_create(
    statefulset: &StatefulSet,
    configuration: &StatefulSetSchedulingConfiguration,
    path: &Path,
) -> Report {
    Report {
        statefulset: statefulset::validate_create(statefulset, configuration, path),
        warnings: statefulset::unmatched_claims(statefulset, configuration, path),
        ..validate_configuration(configuration, path)
    }
}

/// Judges a change of a StatefulSet that keeps its configuration at `path`.
pub fn validate_update(
    old: &StatefulSet,
    new: &StatefulSet,
    configuration: &StatefulSetSchedulingConfiguration,
    path: &Path,
) -> Report {
    Report {
        statefulset: statefulset::validate_update(old, new, path),
        warnings: statefulset::unmatched_claims(new, configuration, path),
        ..Report::default()
    }
}

/// The errors of a configuration that was set with the gate closed: none may be.
pub fn closed_gate(gates: FeatureGates, is_set: bool, path: &Path) -> ErrorList {
    if gates.workload_with_stateful_set || !is_set {
        return ErrorList::new();
    }
    Error::forbidden(path, "").into()
}

/// The errors of a change from one configuration to another, either of which may be absent:
/// a configuration is immutable as a whole, and one that did not change is not judged again.
pub fn validate_change(
    old: Option<&StatefulSetSchedulingConfiguration>,
    new: Option<&StatefulSetSchedulingConfiguration>,
    gates: FeatureGates,
    path: &Path,
) -> ErrorList {
    let same = match (old, new) {
        (None, None) => true,
        (Some(old), Some(new)) => old.semantically_equal(new),
        _ => false,
    };
    if same { ErrorList::new() } else { changed(new.is_some(), gates, path) }
}

/// The errors of a configuration that changed to another one, or to none.
pub fn changed(is_set: bool, gates: FeatureGates, path: &Path) -> ErrorList {
    let mut errors = closed_gate(gates, is_set, path);
    errors.push(Error::invalid(path, BadValue::Null, "field is immutable").with_origin("immutable"));
    errors
}

#[cfg(test)]
mod tests;
