//! Feature gates, parsed as Kubernetes parses `--feature-gates`.

use std::fmt;

use thiserror::Error;

/// Which features are open.
///
/// Both are open unless closed: installing this project is the opt-in that a gate is upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FeatureGates {
    /// `WorkloadWithStatefulSet`: whether an intent has any effect at all. Closed, it is removed
    /// from new StatefulSets and kept on those that have it.
    pub workload_with_stateful_set: bool,
    /// `DRAWorkloadResourceClaims`: whether `resourceClaims` has any effect. Closed, the list is
    /// removed from new StatefulSets and left out of what is compiled.
    pub dra_workload_resource_claims: bool,
}

/// The name of the gate of the whole feature.
pub const WORKLOAD_WITH_STATEFUL_SET: &str = "WorkloadWithStatefulSet";
/// The name of the gate of shared ResourceClaims.
pub const DRA_WORKLOAD_RESOURCE_CLAIMS: &str = "DRAWorkloadResourceClaims";
/// Sets every gate that is not named: both features are alpha upstream.
const ALL_ALPHA: &str = "AllAlpha";

impl Default for FeatureGates {
    fn default() -> Self {
        Self { workload_with_stateful_set: true, dra_workload_resource_claims: true }
    }
}

/// Why a list of feature gates cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ParseError {
    /// An entry without `=`.
    #[error("missing bool value for {0}")]
    MissingValue(String),
    /// A name that is no gate of this project.
    #[error(
        "unrecognized feature gate: {0} (known: {WORKLOAD_WITH_STATEFUL_SET}, {DRA_WORKLOAD_RESOURCE_CLAIMS}, {ALL_ALPHA})"
    )]
    Unrecognized(String),
    /// A value that is neither true nor false.
    #[error("invalid value of {gate}={value}: must be true or false")]
    InvalidValue {
        /// The gate that was to be set.
        gate: String,
        /// What it was to be set to.
        value: String,
    },
}

impl std::str::FromStr for FeatureGates {
    type Err = ParseError;

    /// Reads `Name=true,Other=false`; spaces and empty entries are skipped, a later entry wins,
    /// and gates that are not named keep their default.
    fn from_str(list: &str) -> Result<Self, ParseError> {
        let mut all_alpha = None;
        let mut workload = None;
        let mut claims = None;
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let Some((gate, value)) = entry.split_once('=') else {
                return Err(ParseError::MissingValue(entry.to_owned()));
            };
            let (gate, value) = (gate.trim(), value.trim());
            let target = match gate {
                WORKLOAD_WITH_STATEFUL_SET => &mut workload,
                DRA_WORKLOAD_RESOURCE_CLAIMS => &mut claims,
                ALL_ALPHA => &mut all_alpha,
                _ => return Err(ParseError::Unrecognized(gate.to_owned())),
            };
            *target = Some(
                parse_bool(value)
                    .ok_or_else(|| ParseError::InvalidValue { gate: gate.to_owned(), value: value.to_owned() })?,
            );
        }
        let default = Self::default();
        Ok(Self {
            workload_with_stateful_set: workload.or(all_alpha).unwrap_or(default.workload_with_stateful_set),
            dra_workload_resource_claims: claims.or(all_alpha).unwrap_or(default.dra_workload_resource_claims),
        })
    }
}

impl fmt::Display for FeatureGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{WORKLOAD_WITH_STATEFUL_SET}={},{DRA_WORKLOAD_RESOURCE_CLAIMS}={}",
            self.workload_with_stateful_set, self.dra_workload_resource_claims
        )
    }
}

/// The words that Go's `strconv.ParseBool` takes.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gates(workload: bool, claims: bool) -> FeatureGates {
        FeatureGates { workload_with_stateful_set: workload, dra_workload_resource_claims: claims }
    }

    #[test]
    fn gates_are_read_as_kubernetes_reads_them() {
        for (list, expected) in [
            ("", Ok(gates(true, true))),
            (" , ,", Ok(gates(true, true))),
            ("WorkloadWithStatefulSet=false", Ok(gates(false, true))),
            (" WorkloadWithStatefulSet = F , DRAWorkloadResourceClaims=0", Ok(gates(false, false))),
            ("AllAlpha=false", Ok(gates(false, false))),
            ("AllAlpha=false,WorkloadWithStatefulSet=true", Ok(gates(true, false))),
            ("WorkloadWithStatefulSet=true,AllAlpha=false", Ok(gates(true, false))),
            ("WorkloadWithStatefulSet=false,WorkloadWithStatefulSet=true", Ok(gates(true, true))),
            ("WorkloadWithStatefulSet", Err(ParseError::MissingValue("WorkloadWithStatefulSet".into()))),
            ("GenericWorkload=true", Err(ParseError::Unrecognized("GenericWorkload".into()))),
            ("=true", Err(ParseError::Unrecognized(String::new()))),
            (
                "WorkloadWithStatefulSet=yes",
                Err(ParseError::InvalidValue { gate: "WorkloadWithStatefulSet".into(), value: "yes".into() }),
            ),
        ] {
            assert_eq!(list.parse(), expected, "{list:?}");
        }
    }

    #[test]
    fn gates_print_as_they_are_read() {
        for workload in [true, false] {
            for claims in [true, false] {
                let gates = gates(workload, claims);
                assert_eq!(gates.to_string().parse(), Ok(gates));
            }
        }
    }
}
