//! The core as one function from JSON to JSON.
//!
//! Every face of the core (the WebAssembly modules, the command line, the browser) answers the same
//! queries, so that what one shows is what all do. A query is an object with one member:
//!
//! | member | value | answer |
//! |---|---|---|
//! | `review` | `{request, settings}` | the [`Verdict`](crate::admission::Verdict) |
//! | `validate` | `{scheduling, oldScheduling, operation, featureGates}` | the [`Report`] |
//! | `compile` | `{statefulSet, settings}` | `{workload, podGroup}`, null if not opted in, or `{errors}` |
//! | `workloadName` | `{ownerName, ownerUID}` | the name |
//! | `podGroupName` | `{workloadName, templateName}` | the name |

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::Resource;
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, PodGroupSpec, Workload, WorkloadSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::admission::{self, Call, CallError, Lookup, LookupError, Settings, SettingsError};
use crate::api::{self, Carrier, StatefulSet, StatefulSetSchedulingConfiguration, UnknownFields, View, ViewError};
use crate::field::ErrorList;
use crate::gates;
use crate::json::{self, Node, read};
use crate::names;
use crate::validation::{self, Report};
use crate::workloadbuilder::{BuildError, BuildOptions, Builder, Owner, WorkloadItem, workload_reference};

/// What stands for a UID that the API server is yet to give.
pub const UNKNOWN_STATEFULSET_UID: &str = "<statefulset-uid>";
/// What stands for a UID that the API server is yet to give.
pub const UNKNOWN_WORKLOAD_UID: &str = "<workload-uid>";

/// Why a query cannot be answered.
#[derive(Debug, Error)]
pub enum QueryError {
    /// It, or its answer, is no JSON.
    #[error("the query cannot be read: {0}")]
    Json(serde_json::Error),
    /// It has not exactly one of the members that are known.
    #[error("the query must have one of review, validate, compile, workloadName, podGroupName")]
    Unknown,
    /// A member that must be a string is none.
    #[error("the query cannot be read: a name must be a string")]
    NoString,
    /// Its request cannot be read.
    #[error("{0}")]
    Call(#[from] CallError),
    /// Its settings cannot be read.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// Its feature gates cannot be read.
    #[error("featureGates: {0}")]
    FeatureGates(gates::ParseError),
    /// Its object is no StatefulSet.
    #[error("statefulSet: {0}")]
    StatefulSet(#[from] ViewError),
    /// Its configuration is of the wrong type.
    #[error("{0}")]
    Configuration(ErrorList),
    /// The object cannot be built.
    #[error("{0}")]
    Build(#[from] BuildError),
}

static QUERY: &[Node] =
    &[read("review", 0), read("validate", 1), read("compile", 2), read("workloadName", 3), read("podGroupName", 4)];
static VALIDATE: &[Node] =
    &[read("scheduling", 0), read("oldScheduling", 1), read("operation", 2), read("featureGates", 3)];
static COMPILE: &[Node] = &[read("statefulSet", 0), read("settings", 1)];
static WORKLOAD_NAME: &[Node] = &[read("ownerName", 0), read("ownerUID", 1)];
static POD_GROUP_NAME: &[Node] = &[read("workloadName", 0), read("templateName", 1)];

fn project<'a, const N: usize>(json: &'a str, nodes: &'static [Node]) -> Result<[Option<&'a RawValue>; N], QueryError> {
    let mut members = [None; N];
    json::project(json, nodes, &mut members, &mut []).map_err(QueryError::Json)?;
    Ok(members)
}

/// The text of a member; empty where it is absent.
fn text(raw: Option<&RawValue>) -> Result<Cow<'_, str>, QueryError> {
    raw.map_or(Ok(Cow::Borrowed("")), |raw| json::text(raw).ok_or(QueryError::NoString))
}

#[derive(Serialize)]
struct Refused {
    errors: ErrorList,
}

/// The two objects of a StatefulSet, as the controller creates them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Compiled {
    workload: Written<WorkloadSpec>,
    pod_group: Written<PodGroupSpec>,
}

/// An object with the metadata that is set before it exists. The type of all metadata would bring
/// the handling of times into the module.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<S> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: S,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

impl From<ObjectMeta> for Metadata {
    fn from(metadata: ObjectMeta) -> Self {
        Self {
            name: metadata.name,
            namespace: metadata.namespace,
            annotations: metadata.annotations,
            owner_references: metadata.owner_references,
        }
    }
}

impl<S> Written<S> {
    fn new<R: Resource>(metadata: ObjectMeta, spec: S) -> Self {
        Self { api_version: R::API_VERSION, kind: R::KIND, metadata: metadata.into(), spec }
    }
}

/// Answers a query.
///
/// # Errors
/// The query, or something in it, cannot be read. That an intent is invalid is an answer.
pub fn answer(query: &str, lookup: &dyn Lookup) -> Result<Vec<u8>, QueryError> {
    match project::<5>(query, QUERY)? {
        [Some(query), None, None, None, None] => {
            let call = Call::parse(query.get())?;
            write(&admission::answer(&call, lookup))
        }
        [None, Some(query), None, None, None] => write(&validate(query.get())?),
        [None, None, Some(query), None, None] => match compile(query.get())? {
            Ok(compiled) => write(&compiled),
            Err(errors) => write(&Refused { errors }),
        },
        [None, None, None, Some(query), None] => {
            let [owner_name, owner_uid] = project(query.get(), WORKLOAD_NAME)?;
            write(&names::workload_name(&text(owner_name)?, &text(owner_uid)?))
        }
        [None, None, None, None, Some(query)] => {
            let [workload_name, template_name] = project(query.get(), POD_GROUP_NAME)?;
            write(&names::pod_group_name(&text(workload_name)?, &text(template_name)?))
        }
        _ => Err(QueryError::Unknown),
    }
}

fn write(answer: &impl Serialize) -> Result<Vec<u8>, QueryError> {
    serde_json::to_vec(answer).map_err(QueryError::Json)
}

fn validate(query: &str) -> Result<Report, QueryError> {
    let [scheduling, old_scheduling, operation, gates] = project(query, VALIDATE)?;
    let gates = text(gates)?.parse().map_err(QueryError::FeatureGates)?;
    let path = Carrier::Field.path();
    let read = |raw: Option<&RawValue>| -> Result<Option<StatefulSetSchedulingConfiguration>, QueryError> {
        let Some(raw) = raw else { return Ok(None) };
        let value = serde_json::from_str(raw.get()).map_err(QueryError::Json)?;
        api::decode_configuration(&value, &path, UnknownFields::Refuse).map(Some).map_err(QueryError::Configuration)
    };
    let (old, new) = (read(old_scheduling)?, read(scheduling)?);
    if text(operation)? == "UPDATE" {
        let declarative = validation::validate_change(old.as_ref(), new.as_ref(), gates, &path);
        return Ok(Report { declarative, ..Report::default() });
    }
    let declarative = validation::closed_gate(gates, new.is_some(), &path);
    Ok(match new {
        Some(new) if declarative.is_empty() => validation::validate_configuration(&new, &path),
        _ => Report { declarative, ..Report::default() },
    })
}

/// The two objects, none for a StatefulSet that did not opt in, or what is wrong with the intent.
fn compile(query: &str) -> Result<Result<Option<Compiled>, ErrorList>, QueryError> {
    let [statefulset, settings] = project(query, COMPILE)?;
    let settings = settings.map_or_else(|| Ok(Settings::default()), |raw| Settings::parse(raw.get()))?;
    let view = View::new(statefulset)?;
    let intent = match api::intent(&view, settings.carriers) {
        Ok(Some(intent)) if settings.feature_gates.workload_with_stateful_set => intent,
        Ok(_) => return Ok(Ok(None)),
        Err(errors) => return Ok(Err(errors)),
    };
    let mut statefulset = match StatefulSet::decode(&view) {
        Ok(statefulset) => statefulset,
        Err(errors) => return Ok(Err(errors)),
    };
    if statefulset.uid.is_empty() {
        UNKNOWN_STATEFULSET_UID.clone_into(&mut statefulset.uid);
    }
    let path = intent.carrier.path();
    let item = WorkloadItem::for_statefulset(&statefulset, &intent.configuration, settings.feature_gates, &path);
    let builder = Builder::new(&item, &BuildOptions::default(), Owner::from(&statefulset));
    let errors = builder.validate();
    if !errors.is_empty() {
        return Ok(Err(errors));
    }
    let workload = builder.build_workload()?;
    let mut pod_group = builder.new_pod_group(&item.name)?;
    let name = workload.metadata.name.clone().unwrap_or_default();
    let references = pod_group.metadata.owner_references.get_or_insert_default();
    references.push(workload_reference(&name, UNKNOWN_WORKLOAD_UID));
    Ok(Ok(Some(Compiled {
        workload: Written::new::<Workload>(workload.metadata, workload.spec),
        pod_group: Written::new::<PodGroup>(pod_group.metadata, pod_group.spec),
    })))
}

/// A look-up where there is no cluster.
pub struct NoCluster;

impl Lookup for NoCluster {
    fn statefulset(&self, _namespace: &str, _name: &str) -> Result<String, LookupError> {
        Err(LookupError::Failed("there is no cluster to ask".to_owned()))
    }
}
