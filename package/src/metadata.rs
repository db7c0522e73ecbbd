//! What the engine is told about the module.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

/// The version of the policy, in the annotations.
pub const VERSION: &str = "io.kubewarden.policy.version";

/// The metadata of a policy, as the engine reads it. The engine ignores keys it does not know; here they are
/// errors, so that a typo is seen.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// How the engine talks to the module.
    #[serde(default)]
    pub protocol_version: ProtocolVersion,
    /// Which requests the policy is for.
    pub rules: Vec<Rule>,
    /// For people and catalogues.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Whether it may change objects.
    pub mutating: bool,
    /// Whether it judges what exists.
    #[serde(default = "yes")]
    pub background_audit: bool,
    /// The interface of the module.
    #[serde(default)]
    pub execution_mode: ExecutionMode,
    /// What it judges.
    #[serde(default)]
    pub policy_type: PolicyType,
    /// What it may read in the cluster.
    #[serde(default)]
    pub context_aware_resources: BTreeSet<Resource>,
    /// The oldest engine that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_kubewarden_version: Option<String>,
}

/// The protocol between the engine and a waPC module.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum ProtocolVersion {
    /// The only one.
    #[default]
    #[serde(rename = "v1")]
    V1,
}

/// The interfaces that this tool writes metadata for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum ExecutionMode {
    /// Calls by name.
    #[default]
    #[serde(rename = "kubewarden-wapc")]
    KubewardenWapc,
}

/// What a policy judges.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyType {
    /// Admission requests.
    #[default]
    Kubernetes,
    /// Any JSON.
    Raw,
}

/// Requests that a policy is for, as in the configuration of a webhook.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// The groups of the API.
    pub api_groups: Vec<String>,
    /// Their versions.
    pub api_versions: Vec<String>,
    /// The kinds, in the plural.
    pub resources: Vec<String>,
    /// What is done to them.
    pub operations: Vec<Operation>,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// Something connects to it.
    Connect,
    /// All of these.
    #[serde(rename = "*")]
    All,
}

/// A kind that a policy may read.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resource {
    /// The group and the version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

impl Metadata {
    /// Reads `metadata.yml`.
    ///
    /// # Errors
    /// It is no metadata, or the engine would refuse it.
    pub fn from_yaml(text: &str) -> Result<Self> {
        let metadata: Self = serde_saphyr::from_str(text)?;
        for (number, rule) in metadata.rules.iter().enumerate() {
            rule.check().with_context(|| format!("rules[{number}]"))?;
        }
        Ok(metadata)
    }

    /// Reads what [`Metadata::section`] wrote.
    ///
    /// # Errors
    /// It is no metadata.
    pub fn from_section(bytes: &[u8]) -> Result<Self> {
        Ok(serde_json::from_slice(bytes)?)
    }

    /// The content of the module's section.
    ///
    /// # Errors
    /// None that can happen: everything in it has a form in JSON.
    pub fn section(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// The annotations that a manifest can carry: those of one line.
    pub fn manifest_annotations(&self) -> BTreeMap<String, String> {
        let one_line = |(_, text): &(&String, &String)| text.lines().count() <= 1;
        self.annotations.iter().filter(one_line).map(|(name, text)| (name.clone(), text.clone())).collect()
    }
}

impl Rule {
    fn check(&self) -> Result<()> {
        for (name, values) in
            [("apiGroups", &self.api_groups), ("apiVersions", &self.api_versions), ("resources", &self.resources)]
        {
            ensure!(!values.is_empty(), "{name} is empty");
            ensure!(values.len() == 1 || !values.iter().any(|value| value == "*"), "{name} has more than *");
        }
        ensure!(!self.operations.is_empty(), "operations is empty");
        ensure!(self.operations.len() == 1 || !self.operations.contains(&Operation::All), "operations has more than *");
        Ok(())
    }
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SMALL: &str = "rules:\n- {apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}\n\
                         mutating: false\n";

    #[test]
    fn what_is_not_said_is_written_as_the_engine_assumes_it() {
        let section = Metadata::from_yaml(SMALL).and_then(|metadata| metadata.section()).expect("metadata");
        let section: Value = serde_json::from_slice(&section).expect("JSON");
        let expected = json!({
            "protocolVersion": "v1",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            "mutating": false,
            "backgroundAudit": true,
            "executionMode": "kubewarden-wapc",
            "policyType": "kubernetes",
            "contextAwareResources": [],
        });
        assert_eq!(section, expected);
    }

    #[test]
    fn a_key_that_the_engine_does_not_know_is_an_error() {
        let error = Metadata::from_yaml(&format!("{SMALL}contextAwareResource: []\n")).expect_err("a typo");
        assert!(error.to_string().contains("contextAwareResource"), "{error}");
    }

    #[test]
    fn a_rule_that_the_engine_refuses_is_an_error() {
        for (from, to) in [("[v1]", "[]"), ("[pods]", "[pods, '*']"), ("[CREATE]", "[CREATE, '*']")] {
            let error = Metadata::from_yaml(&SMALL.replace(from, to)).expect_err(to);
            assert!(error.to_string().contains("rules[0]"), "{error}");
        }
    }

    #[test]
    fn only_annotations_of_one_line_reach_a_manifest() {
        let text = format!("{SMALL}annotations:\n  one: line\n  more: |\n    first\n    second\n");
        let annotations = Metadata::from_yaml(&text).expect("metadata").manifest_annotations();
        assert_eq!(annotations.into_iter().collect::<Vec<_>>(), [("one".to_owned(), "line".to_owned())]);
    }
}
