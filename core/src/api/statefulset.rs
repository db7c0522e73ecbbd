//! The facts about an opted-in StatefulSet on which validation and compilation decide.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Member, View};
use crate::field::{Error, ErrorList, Path};
use crate::json::{self, UnknownFields};

/// How a StatefulSet's pods are created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PodManagementPolicy {
    /// One after the other, each once the one before is ready: the default.
    #[default]
    OrderedReady,
    /// All at once.
    Parallel,
    /// A policy that this project does not know; the API server refuses it.
    Other(String),
}

impl From<Option<String>> for PodManagementPolicy {
    fn from(name: Option<String>) -> Self {
        match name.as_deref() {
            None | Some("" | "OrderedReady") => Self::OrderedReady,
            Some("Parallel") => Self::Parallel,
            Some(other) => Self::Other(other.to_owned()),
        }
    }
}

/// A claim of a pod template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodResourceClaim {
    /// The name by which containers refer to it.
    pub name: String,
    /// The ResourceClaim it is.
    pub resource_claim_name: Option<String>,
    /// The ResourceClaimTemplate it is made from.
    pub resource_claim_template_name: Option<String>,
}

/// What of the pod template matters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodTemplate {
    /// `spec.template.spec.priorityClassName`, none where absent or empty.
    pub priority_class_name: Option<String>,
    /// `spec.template.spec.schedulerName`, none where absent, empty, or the default scheduler's.
    pub scheduler_name: Option<String>,
    /// `spec.template.spec.schedulingGroup`, whatever it holds.
    pub scheduling_group: Option<Value>,
    /// `spec.template.spec.resourceClaims`
    pub resource_claims: Vec<PodResourceClaim>,
}

/// What of a StatefulSet matters, apart from its intent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatefulSet {
    /// `metadata.name`, empty where the server is yet to generate it.
    pub name: String,
    /// `metadata.namespace`, empty where the request tells it.
    pub namespace: String,
    /// `metadata.uid`, empty before the object exists.
    pub uid: String,
    /// `spec.replicas`, none where absent: the API server's default is 1.
    pub replicas: Option<i32>,
    /// `spec.ordinals.start`, 0 where absent.
    pub ordinals_start: i32,
    /// `spec.podManagementPolicy`
    pub pod_management_policy: PodManagementPolicy,
    /// `spec.updateStrategy.rollingUpdate.partition`, 0 where absent.
    pub partition: i32,
    /// `spec.template`
    pub template: PodTemplate,
}

/// The scheduler of pods that name none.
const DEFAULT_SCHEDULER_NAME: &str = "default-scheduler";

impl StatefulSet {
    /// Decodes what a view has borrowed.
    ///
    /// # Errors
    /// One error, with its path, for each member of the wrong type.
    pub fn decode(view: &View<'_>) -> Result<Self, ErrorList> {
        let mut errors = ErrorList::new();
        let statefulset = Self::read(view, &mut errors);
        if errors.is_empty() { Ok(statefulset) } else { Err(errors) }
    }

    fn read(view: &View<'_>, errors: &mut ErrorList) -> Self {
        let metadata = Path::new("metadata");
        let spec = Path::new("spec");
        let pod = Self::pod_spec_path();
        let mut string = |member, path: &Path| typed(view.get(member), path, "must be a string", errors);
        let name = string(Member::Name, &metadata.child("name"));
        let namespace = string(Member::Namespace, &metadata.child("namespace"));
        let uid = string(Member::Uid, &metadata.child("uid"));
        let pod_management_policy = string(Member::PodManagementPolicy, &spec.child("podManagementPolicy"));
        let priority_class_name = string(Member::PriorityClassName, &pod.child("priorityClassName"));
        let scheduler_name = string(Member::SchedulerName, &pod.child("schedulerName"));
        let mut int32 = |member, path: &Path| typed(view.get(member), path, "must be a 32-bit integer", errors);
        let replicas = int32(Member::Replicas, &spec.child("replicas"));
        let ordinals_start = int32(Member::OrdinalsStart, &spec.child("ordinals").child("start"));
        let partition = int32(Member::Partition, &Self::partition_path());
        let claims = resource_claims(any(view.get(Member::ResourceClaims)), &pod, errors);
        Self {
            name: name.unwrap_or_default(),
            namespace: namespace.unwrap_or_default(),
            uid: uid.unwrap_or_default(),
            replicas,
            ordinals_start: ordinals_start.unwrap_or(0),
            pod_management_policy: PodManagementPolicy::from(pod_management_policy),
            partition: partition.unwrap_or(0),
            template: PodTemplate {
                priority_class_name: priority_class_name.filter(|name: &String| !name.is_empty()),
                scheduler_name: scheduler_name
                    .filter(|name: &String| !name.is_empty() && name != DEFAULT_SCHEDULER_NAME),
                scheduling_group: any(view.get(Member::SchedulingGroup)),
                resource_claims: claims,
            },
        }
    }

    /// The path of the partition of a rolling update.
    pub fn partition_path() -> Path {
        Path::new("spec").child("updateStrategy").child("rollingUpdate").child("partition")
    }

    /// The path of the spec of the pod template.
    pub fn pod_spec_path() -> Path {
        Path::new("spec").child("template").child("spec")
    }

    /// The size of a gang of all replicas: at least 1, since a gang of none is not valid, and 1
    /// where `replicas` is absent.
    pub fn gang_size(&self) -> i32 {
        self.replicas.unwrap_or(1).max(1)
    }
}

fn typed<T: for<'de> Deserialize<'de>>(
    raw: Option<&RawValue>,
    path: &Path,
    detail: &str,
    errors: &mut ErrorList,
) -> Option<T> {
    let raw = raw?;
    if let Ok(value) = serde_json::from_str(raw.get()) {
        return Some(value);
    }
    errors.push(Error::type_invalid(path, any(Some(raw)).unwrap_or_default(), detail));
    None
}

/// The claims in `value`, which stand under `resourceClaims` of the pod spec at `path`.
fn resource_claims(value: Option<Value>, path: &Path, errors: &mut ErrorList) -> Vec<PodResourceClaim> {
    let Some(value) = value else { return Vec::new() };
    let mut pod_spec = Map::new();
    pod_spec.insert("resourceClaims".to_owned(), value);
    let claims = json::decode(&Value::Object(pod_spec), path, UnknownFields::Prune, |pod_spec| {
        pod_spec.list("resourceClaims", |claim| PodResourceClaim {
            name: claim.string("name").unwrap_or_default(),
            resource_claim_name: claim.string("resourceClaimName"),
            resource_claim_template_name: claim.string("resourceClaimTemplateName"),
        })
    });
    claims
        .unwrap_or_else(|found| {
            errors.append(found);
            None
        })
        .unwrap_or_default()
}

fn any(raw: Option<&RawValue>) -> Option<Value> {
    serde_json::from_str(raw?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decode(object: &Value) -> Result<StatefulSet, String> {
        let raw = serde_json::value::to_raw_value(object).unwrap();
        StatefulSet::decode(&View::new(Some(&raw)).unwrap()).map_err(|errors| errors.to_string())
    }

    #[test]
    fn absent_members_have_the_api_servers_defaults() {
        let decoded = decode(&json!({})).unwrap();
        assert_eq!(decoded, StatefulSet::default());
        assert_eq!(decoded.gang_size(), 1);
        let object = json!({"spec": {"podManagementPolicy": "", "template": {"spec":
            {"schedulerName": "default-scheduler", "priorityClassName": "", "resourceClaims": null}}}});
        assert_eq!(decode(&object), Ok(StatefulSet::default()));
    }

    #[test]
    fn a_gang_has_as_many_members_as_replicas_but_never_less_than_one() {
        for (replicas, size) in [(-5, 1), (0, 1), (1, 1), (7, 7), (i32::MAX, i32::MAX)] {
            assert_eq!(decode(&json!({"spec": {"replicas": replicas}})).unwrap().gang_size(), size);
        }
    }

    #[test]
    fn each_member_of_the_wrong_type_is_an_error_at_its_path() {
        for (object, error) in [
            (json!({"spec": {"replicas": "3"}}), r#"spec.replicas: Invalid value: "3": must be a 32-bit integer"#),
            (json!({"spec": {"replicas": 3.5}}), r"spec.replicas: Invalid value: 3.5: must be a 32-bit integer"),
            (
                json!({"spec": {"replicas": 4_294_967_296_i64}}),
                r"spec.replicas: Invalid value: 4294967296: must be a 32-bit integer",
            ),
            (
                json!({"spec": {"podManagementPolicy": []}}),
                r"spec.podManagementPolicy: Invalid value: []: must be a string",
            ),
            (
                json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": "1"}}}}),
                r#"spec.updateStrategy.rollingUpdate.partition: Invalid value: "1": must be a 32-bit integer"#,
            ),
            (
                json!({"spec": {"template": {"spec": {"resourceClaims": [1]}}}}),
                r"spec.template.spec.resourceClaims[0]: Invalid value: 1: must be an object",
            ),
            (
                json!({"metadata": {"name": 1, "uid": {}}}),
                r"[metadata.name: Invalid value: 1: must be a string, metadata.uid: Invalid value: {}: must be a string]",
            ),
        ] {
            assert_eq!(decode(&object), Err(error.to_owned()));
        }
    }
}
