//! The two places in which an intent is carried.

use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

use super::annotation::{self, AnnotationError, MAX_ANNOTATION_LENGTH};
use super::{Member, StatefulSetSchedulingConfiguration, UnknownFields, View, decode_configuration};
use crate::field::{BadValue, Error, ErrorList, Path};

/// The annotation that carries an intent on an API server without `spec.scheduling`.
pub const SCHEDULING_ANNOTATION: &str = "statefulset-scheduling.dev/scheduling";

/// Where an intent is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// `spec.scheduling`, on an API server that stores it.
    Field,
    /// The annotation [`SCHEDULING_ANNOTATION`], on any other.
    Annotation,
}

impl Carrier {
    /// The path of the intent, as the user wrote it.
    pub fn path(self) -> Path {
        match self {
            Self::Field => Path::new("spec").child("scheduling"),
            Self::Annotation => Path::new("metadata").child("annotations").key(SCHEDULING_ANNOTATION),
        }
    }

    fn unknown_fields(self) -> UnknownFields {
        match self {
            Self::Field => UnknownFields::Prune,
            Self::Annotation => UnknownFields::Refuse,
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Field => "field",
            Self::Annotation => "annotation",
        })
    }
}

/// The carriers that are read. An intent in one that is not read is somebody else's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Carriers {
    /// Whether `spec.scheduling` is read.
    pub field: bool,
    /// Whether the annotation is read.
    pub annotation: bool,
}

impl Default for Carriers {
    fn default() -> Self {
        Self { field: true, annotation: true }
    }
}

impl Carriers {
    /// Whether `carrier` is read.
    pub fn reads(self, carrier: Carrier) -> bool {
        match carrier {
            Carrier::Field => self.field,
            Carrier::Annotation => self.annotation,
        }
    }
}

/// An intent and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    /// Where it was written.
    pub carrier: Carrier,
    /// What was written.
    pub configuration: StatefulSetSchedulingConfiguration,
}

/// The JSON text of the intent in `carrier`, none where it carries none or is not read.
pub fn carried<'a>(view: &View<'a>, carrier: Carrier, carriers: Carriers) -> Option<&'a RawValue> {
    let member = match carrier {
        Carrier::Field => Member::SchedulingField,
        Carrier::Annotation => Member::SchedulingAnnotation,
    };
    view.get(member).filter(|_| carriers.reads(carrier))
}

/// Whether the StatefulSet opted in: it carries an intent in a carrier that is read.
pub fn has_intent(view: &View<'_>, carriers: Carriers) -> bool {
    carried(view, Carrier::Field, carriers).is_some() || carried(view, Carrier::Annotation, carriers).is_some()
}

/// The error of a StatefulSet that carries an intent in both carriers.
pub fn both_carriers() -> Error {
    Error::forbidden(
        &Carrier::Annotation.path(),
        format!("may not be set together with {}; remove one of the two", Carrier::Field.path()),
    )
}

/// The intent of a StatefulSet, none where it did not opt in.
///
/// # Errors
/// Both carriers are set, the annotation cannot be parsed, or a member is of the wrong type or, in
/// the annotation, unknown.
pub fn intent(view: &View<'_>, carriers: Carriers) -> Result<Option<Intent>, ErrorList> {
    let in_carrier = |carrier| carried(view, carrier, carriers);
    let (carrier, raw) = match (in_carrier(Carrier::Field), in_carrier(Carrier::Annotation)) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(both_carriers().into()),
        (Some(field), None) => (Carrier::Field, field),
        (None, Some(annotation)) => (Carrier::Annotation, annotation),
    };
    let path = carrier.path();
    let value = serde_json::from_str::<Value>(raw.get())
        .map_err(|error| Error::invalid(&path, BadValue::Null, format!("cannot be read: {error}")))?;
    let value = match carrier {
        Carrier::Field => value,
        Carrier::Annotation => parse_annotation(&value, &path)?,
    };
    let configuration = decode_configuration(&value, &path, carrier.unknown_fields())?;
    Ok(Some(Intent { carrier, configuration }))
}

fn parse_annotation(value: &Value, path: &Path) -> Result<Value, Error> {
    let Value::String(text) = value else {
        return Err(Error::type_invalid(path, value.clone(), "must be a string"));
    };
    annotation::parse(text).map_err(|error| match error {
        AnnotationError::TooLong => Error::too_long(path, MAX_ANNOTATION_LENGTH),
        AnnotationError::Empty => Error::required(path, error.to_string()),
        error => Error::invalid(path, BadValue::String(beginning(text)), error.to_string()),
    })
}

/// Enough of a text to recognise it by: the reason must not drown in it.
fn beginning(text: &str) -> String {
    const LENGTH: usize = 80;
    match text.get(..text.floor_char_boundary(LENGTH)) {
        Some(beginning) if beginning.len() < text.len() => format!("{beginning}…"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(object: &Value, carriers: Carriers) -> Result<Option<Intent>, String> {
        let raw = serde_json::value::to_raw_value(object).unwrap();
        let view = View::new(Some(&raw)).unwrap();
        let intent = intent(&view, carriers).map_err(|errors| errors.to_string());
        assert_eq!(has_intent(&view, carriers), !matches!(intent, Ok(None)));
        intent
    }

    fn annotated(text: impl Into<Value>) -> Value {
        json!({"metadata": {"annotations": {SCHEDULING_ANNOTATION: text.into()}}})
    }

    #[test]
    fn an_intent_is_read_from_either_carrier() {
        let field = json!({"spec": {"scheduling": {"schedulingPolicy": {"gang": {}}}}});
        let field = read(&field, Carriers::default()).unwrap().unwrap();
        let annotation = read(&annotated("schedulingPolicy: {gang: {}}"), Carriers::default()).unwrap().unwrap();
        assert_eq!((field.carrier, annotation.carrier), (Carrier::Field, Carrier::Annotation));
        assert_eq!(field.configuration, annotation.configuration);
    }

    #[test]
    fn a_carrier_that_is_not_read_is_somebody_elses() {
        let field = json!({"spec": {"scheduling": 3}});
        assert_eq!(read(&field, Carriers { field: false, annotation: true }), Ok(None));
        assert_eq!(read(&annotated("["), Carriers { field: true, annotation: false }), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_told_at_the_path_where_it_was_written() {
        let mut both = annotated("{}");
        both["spec"] = json!({"scheduling": {}});
        for (object, error) in [
            (
                both,
                "metadata.annotations[statefulset-scheduling.dev/scheduling]: Forbidden: may not be set together \
                 with spec.scheduling; remove one of the two",
            ),
            (
                annotated(""),
                "metadata.annotations[statefulset-scheduling.dev/scheduling]: Required value: is empty; write {} \
                 for the Basic policy",
            ),
            (
                annotated(3),
                "metadata.annotations[statefulset-scheduling.dev/scheduling]: Invalid value: 3: must be a string",
            ),
            (
                annotated("x".repeat(MAX_ANNOTATION_LENGTH + 1)),
                "metadata.annotations[statefulset-scheduling.dev/scheduling]: Too long: may not be more than 16384 \
                 bytes",
            ),
            (
                annotated("a: &x 1"),
                "metadata.annotations[statefulset-scheduling.dev/scheduling]: Invalid value: \"a: &x 1\": line 1: \
                 YAML anchors and aliases are not supported here",
            ),
            (
                annotated("schedulingPollicy: {gang: {}}"),
                "metadata.annotations[statefulset-scheduling.dev/scheduling].schedulingPollicy: Forbidden: unknown \
                 field; the fields here are schedulingPolicy, schedulingConstraints, disruptionMode, resourceClaims",
            ),
            (
                annotated("schedulingPolicy: {gang: {minCount: x}}"),
                "metadata.annotations[statefulset-scheduling.dev/scheduling].schedulingPolicy.gang.minCount: \
                 Invalid value: \"x\": must be a 32-bit integer",
            ),
            (json!({"spec": {"scheduling": "gang"}}), "spec.scheduling: Invalid value: \"gang\": must be an object"),
        ] {
            assert_eq!(read(&object, Carriers::default()), Err(error.to_owned()));
        }
    }
}
