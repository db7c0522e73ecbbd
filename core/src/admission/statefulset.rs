//! The creation and the update of StatefulSets.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Operation, Patch, Request, Settings, Verdict};
use crate::api::{
    Carrier, Carriers, Intent, Level, MANAGED_LABEL, MANAGED_LABEL_VALUE, Member, SCHEDULING_ANNOTATION, StatefulSet,
    View, carried, has_intent, intent,
};
use crate::binding::{self, BINDING_ANNOTATION};
use crate::field::ErrorList;
use crate::gates::{DRA_WORKLOAD_RESOURCE_CLAIMS, WORKLOAD_WITH_STATEFUL_SET};
use crate::validation;

/// Answers a request about a StatefulSet.
pub(super) fn review(request: &Request<'_>, settings: &Settings) -> Verdict {
    let result = match request.operation.as_ref() {
        "CREATE" => view(request.object, "object").and_then(|new| create(&new, settings)),
        "UPDATE" => view(request.old_object, "oldObject").and_then(|old| {
            let new = view(request.object, "object")?;
            let by_controller = binding::may_change(&request.username, &settings.controllers);
            update(&old, &new, by_controller, settings)
        }),
        _ => Ok(Verdict::allow()),
    };
    result.unwrap_or_else(|denial| *denial)
}

/// Whether a request creates or updates what carries an intent, wherever it is carried.
pub(super) fn writes_opted_in(request: &Request<'_>) -> bool {
    let objects = match request.operation.as_ref() {
        "CREATE" | "UPDATE" => [request.object, request.old_object],
        _ => [None, None],
    };
    objects
        .into_iter()
        .flatten()
        .any(|object| View::new(Some(object)).is_ok_and(|view| has_intent(&view, Carriers::default())))
}

/// A denial ends the review. Boxed, since it is large and rare.
type Review<T> = Result<T, Box<Verdict>>;

fn view<'a>(object: Option<&'a RawValue>, name: &str) -> Review<View<'a>> {
    View::new(object)
        .map_err(|error| Box::new(Verdict::deny(400, format!("request.{name} is no StatefulSet: {error}"))))
}

impl From<ErrorList> for Box<Verdict> {
    fn from(errors: ErrorList) -> Self {
        Self::new(Verdict::invalid(errors))
    }
}

fn create(new: &View<'_>, settings: &Settings) -> Review<Verdict> {
    let mut verdict = Verdict::allow();
    if new.get(Member::BindingAnnotation).is_some() {
        verdict.patch.push(remove_annotation(BINDING_ANNOTATION));
    }
    if !has_intent(new, settings.carriers) {
        return Ok(verdict);
    }
    if !settings.feature_gates.workload_with_stateful_set {
        clear_intent(new, settings.carriers, &mut verdict);
        return Ok(verdict);
    }
    let (statefulset, mut intent) = decode(new, settings)?;
    clear_claims(&mut intent, settings, &mut verdict);
    let path = intent.carrier.path();
    let report = validation::validate_create(&statefulset, &intent.configuration, &path);
    verdict.warnings.extend(report.warnings.iter().cloned());
    if !report.is_valid() {
        return Err(Box::new(Verdict { warnings: verdict.warnings, ..Verdict::invalid(report.into_errors()) }));
    }
    label_template(new, &mut verdict.patch);
    Ok(verdict)
}

fn update(old: &View<'_>, new: &View<'_>, by_controller: bool, settings: &Settings) -> Review<Verdict> {
    let mut verdict = Verdict::allow();
    if !by_controller {
        restore_binding(old, new, &mut verdict.patch);
    }
    let was_set = has_intent(old, settings.carriers);
    if !was_set {
        if has_intent(new, settings.carriers) {
            added(new, settings, &mut verdict)?;
        }
        return Ok(verdict);
    }
    let before = intent(old, settings.carriers);
    if !written_alike(old, new, settings.carriers) {
        rewritten(&before, old, new, settings, &mut verdict)?;
    }
    // An intent that cannot be read and did not change has no group: nothing depends on it.
    let Ok(Some(kept)) = before else { return Ok(verdict) };
    let carrier = written_in(new, settings.carriers);
    let new_set = StatefulSet::decode(new)?;
    if let Ok(old_set) = StatefulSet::decode(old) {
        let report = validation::validate_update(&old_set, &new_set, &kept.configuration, &carrier.path());
        verdict.warnings.extend(report.warnings.iter().cloned());
        if !report.is_valid() {
            return Err(Box::new(Verdict { warnings: verdict.warnings, ..Verdict::invalid(report.into_errors()) }));
        }
    }
    if !by_controller {
        restore_label(old, new, &mut verdict.patch);
    }
    Ok(verdict)
}

/// An intent that the old object lacks: cleared while the gate is closed, else refused.
fn added(new: &View<'_>, settings: &Settings, verdict: &mut Verdict) -> Review<()> {
    if !settings.feature_gates.workload_with_stateful_set {
        clear_intent(new, settings.carriers, verdict);
        return Ok(());
    }
    let path = written_in(new, settings.carriers).path();
    Err(validation::changed(true, settings.feature_gates, &path).into())
}

/// The intent was written anew: what it says must be what it said.
fn rewritten(
    before: &Result<Option<Intent>, ErrorList>,
    old: &View<'_>,
    new: &View<'_>,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Review<()> {
    let gates = settings.feature_gates;
    let before = before.as_ref().ok().and_then(Option::as_ref).map(|intent| &intent.configuration);
    let Some(mut after) = intent(new, settings.carriers)? else {
        let path = written_in(old, settings.carriers).path();
        return Err(validation::changed(false, gates, &path).into());
    };
    if before.is_some_and(|before| before.claims().is_empty()) {
        clear_claims(&mut after, settings, verdict);
    }
    let errors = validation::validate_change(before, Some(&after.configuration), gates, &after.carrier.path());
    if errors.is_empty() { Ok(()) } else { Err(errors.into()) }
}

fn decode(view: &View<'_>, settings: &Settings) -> Review<(StatefulSet, Intent)> {
    let intent = intent(view, settings.carriers);
    let statefulset = StatefulSet::decode(view);
    match (intent, statefulset) {
        (Ok(Some(intent)), Ok(statefulset)) => Ok((statefulset, intent)),
        (intent, statefulset) => {
            let mut errors = statefulset.err().unwrap_or_default();
            errors.append(intent.err().unwrap_or_default());
            Err(errors.into())
        }
    }
}

/// Whether both objects carry the very same text, in which case it need not be read.
fn written_alike(old: &View<'_>, new: &View<'_>, carriers: Carriers) -> bool {
    let text = |view, carrier| carried(view, carrier, carriers).map(RawValue::get);
    [Carrier::Field, Carrier::Annotation].into_iter().all(|carrier| text(old, carrier) == text(new, carrier))
}

/// The carrier of an intent that is there.
fn written_in(view: &View<'_>, carriers: Carriers) -> Carrier {
    let annotated = carried(view, Carrier::Annotation, carriers).is_some();
    if annotated { Carrier::Annotation } else { Carrier::Field }
}

/// A closed gate removes the intent of what is new, as an API server does.
fn clear_intent(view: &View<'_>, carriers: Carriers, verdict: &mut Verdict) {
    for carrier in [Carrier::Field, Carrier::Annotation] {
        if carried(view, carrier, carriers).is_some() {
            verdict.patch.push(match carrier {
                Carrier::Field => Operation::Remove { path: path(&["spec", "scheduling"]) },
                Carrier::Annotation => remove_annotation(SCHEDULING_ANNOTATION),
            });
            verdict
                .warnings
                .push(format!("{}: removed, the feature gate {WORKLOAD_WITH_STATEFUL_SET} is closed", carrier.path()));
        }
    }
}

/// A closed gate removes the shared claims of what is new, and keeps the rest.
fn clear_claims(intent: &mut Intent, settings: &Settings, verdict: &mut Verdict) {
    if settings.feature_gates.dra_workload_resource_claims || intent.configuration.claims().is_empty() {
        return;
    }
    intent.configuration.resource_claims = None;
    verdict.patch.push(match intent.carrier {
        Carrier::Field => Operation::Remove { path: path(&["spec", "scheduling", "resourceClaims"]) },
        Carrier::Annotation => Operation::Add {
            path: path(&["metadata", "annotations", SCHEDULING_ANNOTATION]),
            value: Value::String(serde_json::to_string(&intent.configuration).unwrap_or_default()),
        },
    });
    verdict.warnings.push(format!(
        "{}: removed, the feature gate {DRA_WORKLOAD_RESOURCE_CLAIMS} is closed",
        intent.carrier.path().child("resourceClaims")
    ));
}

/// Marks the pods, so that the engine's webhook selects them and no others.
fn label_template(new: &View<'_>, patch: &mut Patch) {
    if !is_labelled(new) {
        set_label(new, patch);
    }
}

/// Puts back a label that the old object has. One that it lacks is never added: that would start a
/// rollout of a StatefulSet that predates the policy.
fn restore_label(old: &View<'_>, new: &View<'_>, patch: &mut Patch) {
    if is_labelled(old) && !is_labelled(new) {
        set_label(new, patch);
    }
}

fn is_labelled(view: &View<'_>) -> bool {
    let label = view.get(Member::ManagedLabel).map(|raw| serde_json::from_str::<String>(raw.get()));
    matches!(label, Some(Ok(value)) if value == MANAGED_LABEL_VALUE)
}

/// Sets the label, and whatever of the way to it is not there. Without a template nothing is set:
/// the API server refuses the object.
fn set_label(new: &View<'_>, patch: &mut Patch) {
    if !new.has(Level::Template) {
        return;
    }
    let mut names = vec!["spec", "template", "metadata", "labels", MANAGED_LABEL];
    let mut value = Value::String(MANAGED_LABEL_VALUE.to_owned());
    if !new.has(Level::TemplateLabels) {
        value = object(MANAGED_LABEL, value);
        names.pop();
    }
    if !new.has(Level::TemplateMetadata) {
        value = object("labels", value);
        names.pop();
    }
    patch.push(Operation::Add { path: path(&names), value });
}

/// Undoes what anybody but the controller did to the binding.
fn restore_binding(old: &View<'_>, new: &View<'_>, patch: &mut Patch) {
    let text = |view: &View<'_>| {
        view.get(Member::BindingAnnotation).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok())
    };
    match (text(old), text(new)) {
        (old, new) if old == new => {}
        (None, _) => patch.push(remove_annotation(BINDING_ANNOTATION)),
        (Some(value), _) if new.has(Level::Annotations) => {
            patch.push(Operation::Add { path: path(&["metadata", "annotations", BINDING_ANNOTATION]), value });
        }
        (Some(value), _) => {
            let annotations = object(BINDING_ANNOTATION, value);
            patch.push(if new.has(Level::Metadata) {
                Operation::Add { path: path(&["metadata", "annotations"]), value: annotations }
            } else {
                Operation::Add { path: path(&["metadata"]), value: object("annotations", annotations) }
            });
        }
    }
}

fn remove_annotation(name: &str) -> Operation {
    Operation::Remove { path: path(&["metadata", "annotations", name]) }
}

fn object(name: &str, value: Value) -> Value {
    let mut members = Map::new();
    members.insert(name.to_owned(), value);
    Value::Object(members)
}

fn path(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
