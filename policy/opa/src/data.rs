//! A host's data: the settings, and the objects of the cluster.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use statefulset_scheduling_core::admission::{Lookup, LookupError};

/// The members of a JSON object, of which a large one is not parsed for the sake of a small one.
pub(crate) type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Reads the members of an object; none where `json` is no object. The last of two with one name counts.
pub(crate) fn members(json: &str) -> Option<Members<'_>> {
    serde_json::from_str(json).ok()
}

/// The member of this name.
fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    members(json)?.get(name).map(|raw| raw.get())
}

/// What a host gives beside the input.
pub(crate) struct Data<'a> {
    /// The settings, for the core to read.
    pub(crate) settings: Cow<'a, str>,
    kubernetes: Option<&'a str>,
}

impl<'a> Data<'a> {
    /// Takes the objects out of the data; what is left are the settings.
    pub(crate) fn new(data: &'a str) -> Self {
        let Some(mut members) = members(data) else { return Self { settings: data.into(), kubernetes: None } };
        let Some(kubernetes) = members.remove("kubernetes") else {
            return Self { settings: data.into(), kubernetes: None };
        };
        let settings = serde_json::to_string(&members).map_or(Cow::Borrowed(data), Cow::Owned);
        Self { settings, kubernetes: Some(kubernetes.get()) }
    }
}

impl Lookup for Data<'_> {
    fn statefulset(&self, namespace: &str, name: &str) -> Result<String, LookupError> {
        let Some(kubernetes) = self.kubernetes else {
            return Err(LookupError::Failed("the engine hands over no objects: data has no kubernetes".to_owned()));
        };
        // Kubewarden leaves out what there is none of.
        let names = ["statefulsets", namespace, name];
        let object = names.iter().try_fold(kubernetes, |json, name| member(json, name));
        object.map(str::to_owned).ok_or(LookupError::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects_are_taken_out_of_the_settings() {
        for (data, settings) in [
            ("{}", "{}"),
            ("null", "null"),
            ("[]", "[]"),
            (r#"{"carriers": []}"#, r#"{"carriers": []}"#),
            (r#"{"kubernetes": {}, "carriers": [ ]}"#, r#"{"carriers":[ ]}"#),
            (r#"{"\u006bubernetes": {}, "x\"y": 1}"#, r#"{"x\"y":1}"#),
        ] {
            assert_eq!(Data::new(data).settings, settings, "{data}");
        }
    }

    #[test]
    fn an_object_is_found_by_its_namespace_and_name() {
        let data =
            Data::new(r#"{"kubernetes": {"statefulsets": {"ns": {"web": {"a": 1}}}, "pods": {"ns": {"db": 1}}}}"#);
        assert_eq!(data.statefulset("ns", "web").unwrap(), r#"{"a": 1}"#);
        for (namespace, name) in [("ns", "db"), ("other", "web"), ("", "")] {
            assert_eq!(data.statefulset(namespace, name), Err(LookupError::NotFound));
        }
        for kubernetes in ["{}", "null", "3", r#"{"statefulsets": []}"#] {
            let data = format!(r#"{{"kubernetes": {kubernetes}}}"#);
            assert_eq!(Data::new(&data).statefulset("ns", "web"), Err(LookupError::NotFound), "{data}");
        }
    }

    #[test]
    fn without_objects_a_look_up_fails() {
        for data in ["{}", "null", "", "{\"kubernetes\""] {
            assert!(matches!(Data::new(data).statefulset("ns", "web"), Err(LookupError::Failed(_))), "{data}");
        }
    }
}
