//! `StatefulSetSchedulingConfiguration`: the intent itself.

use k8s_openapi::api::scheduling::v1alpha3::{
    TopologyConstraint, WorkloadPodGroupAllDisruptionMode, WorkloadPodGroupBasicSchedulingPolicy,
    WorkloadPodGroupDisruptionMode, WorkloadPodGroupGangSchedulingPolicy, WorkloadPodGroupResourceClaim,
    WorkloadPodGroupSchedulingConstraints, WorkloadPodGroupSchedulingPolicy, WorkloadPodGroupSingleDisruptionMode,
};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};

use crate::field::{ErrorList, Path};
use crate::json::{self, UnknownFields};

/// How a StatefulSet's pods are to be scheduled as a group: the KEP's `spec.scheduling`.
///
/// Every member is optional. With none at all the pods form a group with the Basic policy, which
/// schedules as without this project.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatefulSetSchedulingConfiguration {
    /// `basic` (the default) or `gang`: all replicas or none.
    pub scheduling_policy: Option<WorkloadPodGroupSchedulingPolicy>,
    /// Where the group may be placed: at most one topology domain.
    pub scheduling_constraints: Option<WorkloadPodGroupSchedulingConstraints>,
    /// `single` (the default) or `all`: whether preemption takes one pod or the whole group.
    pub disruption_mode: Option<WorkloadPodGroupDisruptionMode>,
    /// ResourceClaims that are allocated once and shared by the group's pods: at most 4.
    pub resource_claims: Option<Vec<WorkloadPodGroupResourceClaim>>,
}

impl StatefulSetSchedulingConfiguration {
    /// Whether both mean the same to an API server: an absent list equals an empty one, an absent
    /// object does not equal an empty one, and the order of a list counts.
    pub fn semantically_equal(&self, other: &Self) -> bool {
        self.clone().without_empty_lists() == other.clone().without_empty_lists()
    }

    fn without_empty_lists(mut self) -> Self {
        self.resource_claims = self.resource_claims.filter(|claims| !claims.is_empty());
        if let Some(constraints) = &mut self.scheduling_constraints {
            constraints.topology = constraints.topology.take().filter(|topology| !topology.is_empty());
        }
        self
    }

    /// The claims, none where the list is absent.
    pub fn claims(&self) -> &[WorkloadPodGroupResourceClaim] {
        self.resource_claims.as_deref().unwrap_or_default()
    }

    /// The gang policy, where that is what was asked for.
    pub fn gang(&self) -> Option<&WorkloadPodGroupGangSchedulingPolicy> {
        self.scheduling_policy.as_ref()?.gang.as_ref()
    }
}

impl Serialize for StatefulSetSchedulingConfiguration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(policy) = &self.scheduling_policy {
            map.serialize_entry("schedulingPolicy", policy)?;
        }
        if let Some(constraints) = &self.scheduling_constraints {
            map.serialize_entry("schedulingConstraints", constraints)?;
        }
        if let Some(mode) = &self.disruption_mode {
            map.serialize_entry("disruptionMode", mode)?;
        }
        if let Some(claims) = &self.resource_claims {
            map.serialize_entry("resourceClaims", claims)?;
        }
        map.end()
    }
}

/// Reads a configuration from JSON.
///
/// # Errors
/// One error, with its path under `path`, for each member of the wrong type and, if they are
/// refused, for each unknown one.
pub fn decode_configuration(
    value: &Value,
    path: &Path,
    unknown: UnknownFields,
) -> Result<StatefulSetSchedulingConfiguration, ErrorList> {
    json::decode(value, path, unknown, |object| StatefulSetSchedulingConfiguration {
        scheduling_policy: object.object("schedulingPolicy", |policy| WorkloadPodGroupSchedulingPolicy {
            basic: policy.object("basic", |_| WorkloadPodGroupBasicSchedulingPolicy(empty())),
            gang: policy
                .object("gang", |gang| WorkloadPodGroupGangSchedulingPolicy { min_count: gang.int32("minCount") }),
        }),
        scheduling_constraints: object.object("schedulingConstraints", |constraints| {
            WorkloadPodGroupSchedulingConstraints {
                topology: constraints.list("topology", |topology| TopologyConstraint {
                    key: topology.string("key").unwrap_or_default(),
                }),
            }
        }),
        disruption_mode: object.object("disruptionMode", |mode| WorkloadPodGroupDisruptionMode {
            single: mode.object("single", |_| WorkloadPodGroupSingleDisruptionMode(empty())),
            all: mode.object("all", |_| WorkloadPodGroupAllDisruptionMode(empty())),
        }),
        resource_claims: object.list("resourceClaims", |claim| WorkloadPodGroupResourceClaim {
            name: claim.string("name").unwrap_or_default(),
            resource_claim_name: claim.string("resourceClaimName"),
            resource_claim_template_name: claim.string("resourceClaimTemplateName"),
        }),
    })
}

fn empty() -> Value {
    Value::Object(Map::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decode(value: &Value, unknown: UnknownFields) -> Result<StatefulSetSchedulingConfiguration, String> {
        decode_configuration(value, &Path::new("s"), unknown).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_configuration_survives_reading_and_writing() {
        for value in [
            json!({}),
            json!({"schedulingPolicy": {}}),
            json!({"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"all": {}}}),
            json!({"schedulingConstraints": {"topology": [{"key": "zone"}]}, "resourceClaims": []}),
            json!({"resourceClaims": [{"name": "a", "resourceClaimName": "c"}, {"name": "b", "resourceClaimTemplateName": ""}]}),
        ] {
            let decoded = decode(&value, UnknownFields::Refuse).unwrap();
            assert_eq!(serde_json::to_value(&decoded).unwrap(), value);
        }
    }

    #[test]
    fn null_means_absent() {
        let value = json!({"schedulingPolicy": null, "resourceClaims": null, "disruptionMode": {"all": null}});
        let decoded = decode(&value, UnknownFields::Refuse).unwrap();
        assert_eq!(serde_json::to_value(&decoded).unwrap(), json!({"disruptionMode": {}}));
    }

    #[test]
    fn each_member_of_the_wrong_type_is_an_error_at_its_path() {
        for (value, error) in [
            (json!(3), r"s: Invalid value: 3: must be an object"),
            (json!({"schedulingPolicy": []}), r"s.schedulingPolicy: Invalid value: []: must be an object"),
            (
                json!({"schedulingPolicy": {"gang": true}}),
                r"s.schedulingPolicy.gang: Invalid value: true: must be an object",
            ),
            (
                json!({"schedulingPolicy": {"gang": {"minCount": "3"}}}),
                r#"s.schedulingPolicy.gang.minCount: Invalid value: "3": must be a 32-bit integer"#,
            ),
            (
                json!({"schedulingPolicy": {"gang": {"minCount": 2_147_483_648_i64}}}),
                r"s.schedulingPolicy.gang.minCount: Invalid value: 2147483648: must be a 32-bit integer",
            ),
            (
                json!({"schedulingConstraints": {"topology": [{"key": 1}, "x"]}}),
                r#"[s.schedulingConstraints.topology[0].key: Invalid value: 1: must be a string, s.schedulingConstraints.topology[1]: Invalid value: "x": must be an object]"#,
            ),
            (json!({"resourceClaims": {}}), r"s.resourceClaims: Invalid value: {}: must be a list"),
            (json!({"resourceClaims": [null]}), r"s.resourceClaims[0]: Invalid value: null: must be an object"),
        ] {
            assert_eq!(decode(&value, UnknownFields::Prune), Err(error.to_owned()), "{value}");
        }
    }

    #[test]
    fn an_unknown_member_is_pruned_from_the_field_and_refused_in_the_annotation() {
        let value = json!({"schedulingPolicy": {"gang": {}, "fair": {}}, "topologgy": 1});
        assert!(decode(&value, UnknownFields::Prune).is_ok());
        assert_eq!(
            decode(&value, UnknownFields::Refuse),
            Err("[s.schedulingPolicy.fair: Forbidden: unknown field; the fields here are basic, gang, \
                 s.topologgy: Forbidden: unknown field; the fields here are schedulingPolicy, \
                 schedulingConstraints, disruptionMode, resourceClaims]"
                .to_owned())
        );
        let value = json!({"schedulingPolicy": {"basic": {"x": 1}}});
        assert_eq!(
            decode(&value, UnknownFields::Refuse),
            Err("s.schedulingPolicy.basic.x: Forbidden: unknown field; there are no fields here".to_owned())
        );
    }

    #[test]
    fn equality_is_an_api_servers() {
        let same = [
            (json!({"resourceClaims": []}), json!({})),
            (json!({"schedulingConstraints": {"topology": []}}), json!({"schedulingConstraints": {}})),
        ];
        let different = [
            (json!({"schedulingConstraints": {}}), json!({})),
            (json!({"schedulingPolicy": {}}), json!({})),
            (json!({"schedulingPolicy": {"basic": {}}}), json!({"schedulingPolicy": {}})),
        ];
        for (pairs, equal) in [(&same[..], true), (&different[..], false)] {
            for (left, right) in pairs {
                let left = decode(left, UnknownFields::Prune).unwrap();
                let right = decode(right, UnknownFields::Prune).unwrap();
                assert_eq!(left.semantically_equal(&right), equal);
                assert_eq!(right.semantically_equal(&left), equal);
            }
        }
    }
}
