//! The policy's settings.

use serde_json::Value;
use thiserror::Error;

use crate::api::Carriers;
use crate::field::{BadValue, Error, ErrorList, Path};
use crate::gates::{self, FeatureGates};
use crate::json::{self, UnknownFields};

/// The user that the controller is where it is installed as `deploy` has it.
pub const DEFAULT_CONTROLLER: &str =
    "system:serviceaccount:statefulset-scheduling-system:statefulset-scheduling-controller";

/// The users that the cluster's own StatefulSet controller is: with service account credentials, and
/// without.
pub const DEFAULT_STATEFULSET_CONTROLLERS: [&str; 2] =
    ["system:serviceaccount:kube-system:statefulset-controller", "system:kube-controller-manager"];

/// How the policy behaves in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which features are open.
    pub feature_gates: FeatureGates,
    /// Where intents are read from.
    pub carriers: Carriers,
    /// The names of the users that the controller is; they alone may change a binding.
    pub controllers: Vec<String>,
    /// The names of the users that the cluster's own StatefulSet controller may be.
    pub statefulset_controllers: Vec<String>,
    /// Whether pods get an ownerReference to their PodGroup; the controller must be told the same.
    pub pod_group_owner_reference: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            feature_gates: FeatureGates::default(),
            carriers: Carriers::default(),
            controllers: vec![DEFAULT_CONTROLLER.to_owned()],
            statefulset_controllers: DEFAULT_STATEFULSET_CONTROLLERS.map(str::to_owned).to_vec(),
            pod_group_owner_reference: false,
        }
    }
}

/// Why settings cannot be read.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// They are no JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// They have an unknown key, or a value that cannot be read.
    #[error("{0}")]
    Invalid(#[from] ErrorList),
}

impl Settings {
    /// Reads settings from JSON: `featureGates`, `carriers`, `controllers`, `statefulSetControllers` and
    /// `podGroupOwnerReference`, each optional.
    ///
    /// # Errors
    /// An unknown key, or a value that cannot be read.
    pub fn parse(json: &str) -> Result<Self, SettingsError> {
        let value: Value = serde_json::from_str(json)?;
        if value.is_null() {
            return Ok(Self::default());
        }
        let path = Path::new("settings");
        let written = json::decode(&value, &path, UnknownFields::Refuse, |settings| Written {
            gates: settings.string("featureGates"),
            carriers: settings.strings("carriers"),
            controllers: settings.strings("controllers"),
            statefulset_controllers: settings.strings("statefulSetControllers"),
            pod_group_owner_reference: settings.bool("podGroupOwnerReference"),
        })?;
        let mut settings = Self::default();
        if let Some(list) = written.gates {
            let invalid = |error| invalid(&path.child("featureGates"), &list, error);
            settings.feature_gates = list.parse().map_err(|error: gates::ParseError| invalid(error.to_string()))?;
        }
        if let Some(names) = written.carriers {
            settings.carriers = read_carriers(&names, &path.child("carriers"))?;
        }
        if let Some(names) = written.controllers {
            settings.controllers = users(names, &path.child("controllers"))?;
        }
        if let Some(names) = written.statefulset_controllers {
            settings.statefulset_controllers = users(names, &path.child("statefulSetControllers"))?;
        }
        settings.pod_group_owner_reference = written.pod_group_owner_reference.unwrap_or_default();
        Ok(settings)
    }
}

/// Settings as they are written.
struct Written {
    gates: Option<String>,
    carriers: Option<Vec<String>>,
    controllers: Option<Vec<String>>,
    statefulset_controllers: Option<Vec<String>>,
    pod_group_owner_reference: Option<bool>,
}

fn users(names: Vec<String>, path: &Path) -> Result<Vec<String>, ErrorList> {
    if names.is_empty() || names.iter().any(String::is_empty) {
        return Err(Error::required(path, "must name the user that the controller is").into());
    }
    Ok(names)
}

fn read_carriers(names: &[String], path: &Path) -> Result<Carriers, ErrorList> {
    if names.is_empty() {
        return Err(Error::required(path, "must name at least one of field, annotation").into());
    }
    let mut carriers = Carriers { field: false, annotation: false };
    for name in names {
        match name.as_str() {
            "field" => carriers.field = true,
            "annotation" => carriers.annotation = true,
            _ => return Err(Error::not_supported(path, name, &["field", "annotation"]).into()),
        }
    }
    Ok(carriers)
}

fn invalid(path: &Path, value: &str, detail: String) -> ErrorList {
    Error::invalid(path, BadValue::String(value.to_owned()), detail).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_written_have_their_default() {
        for json in ["{}", "null", " {} "] {
            assert_eq!(Settings::parse(json).unwrap(), Settings::default());
        }
        let json =
            r#"{"featureGates": "DRAWorkloadResourceClaims=false", "carriers": ["annotation"], "controllers": ["me"]}"#;
        let settings = Settings::parse(json).unwrap();
        assert!(
            !settings.feature_gates.dra_workload_resource_claims && settings.feature_gates.workload_with_stateful_set
        );
        assert_eq!(settings.carriers, Carriers { field: false, annotation: true });
        assert_eq!(settings.controllers, ["me"]);
    }

    #[test]
    fn settings_are_strict() {
        for (json, error) in [
            ("", "EOF"),
            ("[]", "settings: Invalid value: []: must be an object"),
            (
                r#"{"controler": []}"#,
                "settings.controler: Forbidden: unknown field; the fields here are featureGates, carriers, controllers, \
                 statefulSetControllers, podGroupOwnerReference",
            ),
            (r#"{"featureGates": true}"#, "settings.featureGates: Invalid value: true: must be a string"),
            (r#"{"featureGates": "X=true"}"#, "unrecognized feature gate: X"),
            (r#"{"carriers": []}"#, "settings.carriers: Required value: must name"),
            (
                r#"{"carriers": ["label"]}"#,
                r#"settings.carriers: Unsupported value: "label": supported values: "field", "annotation""#,
            ),
            (r#"{"controllers": []}"#, "settings.controllers: Required value: must name"),
            (r#"{"controllers": [""]}"#, "settings.controllers: Required value: must name"),
            (r#"{"statefulSetControllers": []}"#, "settings.statefulSetControllers: Required value: must name"),
            (r#"{"podGroupOwnerReference": "yes"}"#, "must be true or false"),
            (r#"{"controllers": "me"}"#, r#"settings.controllers: Invalid value: "me": must be a list of strings"#),
        ] {
            let message = Settings::parse(json).unwrap_err().to_string();
            assert!(message.contains(error), "{json}: {message}");
        }
    }
}
