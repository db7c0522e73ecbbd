//! Label and field selectors.
//!
//! Stands for the label selectors of queries (equality, sets, existence) and of webhooks
//! (`matchLabels`, `matchExpressions`), and for the field selectors that each resource supports.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::resource::{Resource, Served};
use crate::status::Problem;

/// Labels of an object.
pub(crate) type Labels = BTreeMap<String, String>;

/// The labels in some metadata.
pub(crate) fn labels_of(metadata: &Value) -> Labels {
    let labels = metadata["labels"].as_object().into_iter().flatten();
    labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// A selector of labels: all requirements hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// Reads the text of a query.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let invalid = || Problem::bad_request(format!("unable to parse requirement: {text}"));
        split(text).map(|term| requirement(term.trim()).ok_or_else(invalid)).collect::<Result<_, _>>().map(Self)
    }

    /// Reads a `LabelSelector` object; null selects everything.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let mut requirements = Vec::new();
        for (key, value) in value["matchLabels"].as_object().into_iter().flatten() {
            let values = vec![value.as_str()?.to_owned()];
            requirements.push(Requirement { key: key.clone(), operator: Operator::In, values });
        }
        for expression in value["matchExpressions"].as_array().into_iter().flatten() {
            let operator = match expression["operator"].as_str()? {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                _ => return None,
            };
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values.map(|value| value.as_str().map(str::to_owned)).collect::<Option<_>>()?;
            requirements.push(Requirement { key: expression["key"].as_str()?.to_owned(), operator, values });
        }
        Some(Self(requirements))
    }

    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            match requirement.operator {
                Operator::In => value.is_some_and(|value| requirement.values.contains(value)),
                Operator::NotIn => value.is_none_or(|value| !requirement.values.contains(value)),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }
}

/// Splits at the commas that are not in parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let outer = move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(outer).filter(|term| !term.trim().is_empty())
}

fn requirement(term: &str) -> Option<Requirement> {
    let made = |key: &str, operator, values: Vec<String>| {
        let key = key.trim();
        let plausible = !key.is_empty() && !key.contains([' ', '(', ')', '!', '=']);
        plausible.then(|| Requirement { key: key.to_owned(), operator, values })
    };
    if let Some(list) = term.strip_suffix(')') {
        let (head, list) = list.split_once('(')?;
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        let head = head.trim();
        if let Some(key) = head.strip_suffix(" notin") {
            return made(key, Operator::NotIn, values);
        }
        return made(head.strip_suffix(" in")?, Operator::In, values);
    }
    if let Some((key, value, equal)) = comparison(term) {
        let operator = if equal { Operator::In } else { Operator::NotIn };
        return made(key, operator, vec![value.trim().to_owned()]);
    }
    match term.strip_prefix('!') {
        Some(key) => made(key, Operator::DoesNotExist, Vec::new()),
        None => made(term, Operator::Exists, Vec::new()),
    }
}

/// Splits at `!=`, `==` or `=`.
fn comparison(term: &str) -> Option<(&str, &str, bool)> {
    let found = |separator: &str, equal| term.split_once(separator).map(|(key, value)| (key, value, equal));
    found("!=", false).or_else(|| found("==", true)).or_else(|| found("=", true))
}

/// The fields that a resource can be selected by, besides name and namespace: path in the stored
/// object, name in a selector where it differs.
fn selectable(resource: Resource) -> &'static [(&'static str, &'static str)] {
    match resource {
        Resource::Pods => &[
            ("/spec/nodeName", "spec.nodeName"),
            ("/spec/restartPolicy", "spec.restartPolicy"),
            ("/spec/schedulerName", "spec.schedulerName"),
            ("/spec/serviceAccountName", "spec.serviceAccountName"),
            ("/spec/hostNetwork", "spec.hostNetwork"),
            ("/status/phase", "status.phase"),
            ("/status/podIP", "status.podIP"),
            ("/status/nominatedNodeName", "status.nominatedNodeName"),
        ],
        Resource::Nodes => &[("/spec/unschedulable", "spec.unschedulable")],
        Resource::Namespaces => &[("/status/phase", "status.phase")],
        Resource::Events => &[
            ("/involvedObject/kind", "involvedObject.kind"),
            ("/involvedObject/namespace", "involvedObject.namespace"),
            ("/involvedObject/name", "involvedObject.name"),
            ("/involvedObject/uid", "involvedObject.uid"),
            ("/involvedObject/apiVersion", "involvedObject.apiVersion"),
            ("/involvedObject/resourceVersion", "involvedObject.resourceVersion"),
            ("/involvedObject/fieldPath", "involvedObject.fieldPath"),
            ("/reason", "reason"),
            ("/reportingComponent", "reportingComponent"),
            ("/source/component", "source"),
            ("/type", "type"),
        ],
        Resource::ResourceSlices => &[("/spec/nodeName", "spec.nodeName"), ("/spec/driver", "spec.driver")],
        _ => &[],
    }
}

/// The values of an object's selectable fields, in the order of the resource's list.
pub(crate) fn fields_of(resource: Resource, value: &Value) -> Vec<String> {
    let text = |field: &Value| match field {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => yes.to_string(),
        _ => String::new(),
    };
    let is_flag = |name: &str| matches!(name, "spec.unschedulable" | "spec.hostNetwork");
    let value_of = |(path, name): &(&str, &str)| match value.pointer(path) {
        Some(field) => text(field),
        None if is_flag(name) => "false".to_owned(),
        None => String::new(),
    };
    selectable(resource).iter().map(value_of).collect()
}

#[derive(Clone, Debug)]
enum Field {
    Name,
    Namespace,
    /// By its place in the resource's list.
    Other(usize),
}

#[derive(Clone, Debug)]
struct FieldTerm {
    field: Field,
    value: String,
    equal: bool,
}

/// What a selector looks at.
pub(crate) trait Selectable {
    fn namespace(&self) -> &str;
    fn name(&self) -> &str;
    fn labels(&self) -> &Labels;
    fn fields(&self) -> &[String];
}

/// Which objects a list or a watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    namespace: Option<String>,
    labels: LabelSelector,
    fields: Vec<FieldTerm>,
}

impl Selector {
    pub(crate) fn parse(served: Served, namespace: Option<&str>, labels: &str, fields: &str) -> Result<Self, Problem> {
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            labels: LabelSelector::parse(labels)?,
            fields: split(fields).map(|term| field_term(served, term)).collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub(crate) fn matches(&self, object: &impl Selectable) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| namespace == object.namespace())
            && self.labels.matches(object.labels())
            && self.fields.iter().all(|term| {
                let value = match term.field {
                    Field::Name => object.name(),
                    Field::Namespace => object.namespace(),
                    Field::Other(place) => object.fields().get(place).map_or("", String::as_str),
                };
                (value == term.value) == term.equal
            })
    }
}

fn field_term(served: Served, term: &str) -> Result<FieldTerm, Problem> {
    let (name, value, equal) = comparison(term)
        .ok_or_else(|| Problem::bad_request(format!("invalid selector: '{term}'; can't understand '{term}'")))?;
    let mut stored = name.trim().to_owned();
    for (from, to) in served.renames {
        if let Some(rest) = stored.strip_prefix(to)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            stored = format!("{from}{rest}");
            break;
        }
    }
    let field = match stored.as_str() {
        "metadata.name" => Field::Name,
        "metadata.namespace" => Field::Namespace,
        other => {
            let place = selectable(served.resource).iter().position(|(_, name)| *name == other);
            Field::Other(
                place.ok_or_else(|| Problem::bad_request(format!("field label not supported: {}", name.trim())))?,
            )
        }
    };
    Ok(FieldTerm { field, value: value.to_owned(), equal })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn label_selectors_of_queries() {
        let web = labels(&[("app", "web"), ("tier", "a")]);
        for (selector, matches) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=a", true),
            ("app!=web", false),
            ("other!=x", true),
            ("app", true),
            ("!app", false),
            ("app in (db, web),tier", true),
            ("app notin (db,web)", false),
            ("other notin (x)", true),
            ("other in (x)", false),
        ] {
            let parsed = LabelSelector::parse(selector).expect(selector);
            assert_eq!(parsed.matches(&web), matches, "{selector}");
        }
        for broken in ["app in web", "app (web)", "=x", "a b"] {
            assert!(LabelSelector::parse(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn label_selectors_of_objects() {
        let web = labels(&[("app", "web")]);
        for (selector, matches) in [
            (json!(null), true),
            (json!({}), true),
            (json!({ "matchLabels": { "app": "web" } }), true),
            (json!({ "matchLabels": { "app": "db" } }), false),
            (json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": ["web"] }] }), false),
            (json!({ "matchExpressions": [{ "key": "x", "operator": "DoesNotExist" }] }), true),
        ] {
            assert_eq!(LabelSelector::of(&selector).expect("it is a selector").matches(&web), matches, "{selector}");
        }
        assert_eq!(LabelSelector::of(&json!({ "matchExpressions": [{ "key": "x", "operator": "Near" }] })), None);
    }

    struct Pod(Labels, Vec<String>);

    impl Selectable for Pod {
        fn namespace(&self) -> &'static str {
            "prod"
        }
        fn name(&self) -> &'static str {
            "web-0"
        }
        fn labels(&self) -> &Labels {
            &self.0
        }
        fn fields(&self) -> &[String] {
            &self.1
        }
    }

    #[test]
    fn field_selectors_are_those_of_the_resource() {
        let value = json!({ "spec": { "nodeName": "n1" }, "status": { "phase": "Running" } });
        let pod = Pod(Labels::new(), fields_of(Resource::Pods, &value));
        for (selector, matches) in [
            ("metadata.name=web-0", true),
            ("metadata.namespace!=prod", false),
            ("spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed", true),
            ("spec.nodeName=", false),
            ("spec.hostNetwork=false", true),
        ] {
            let parsed = Selector::parse(Resource::Pods.served(), None, "", selector).expect(selector);
            assert_eq!(parsed.matches(&pod), matches, "{selector}");
        }
        let unknown = Selector::parse(Resource::StatefulSets.served(), None, "", "spec.nodeName=x");
        assert_eq!(unknown.expect_err("it is refused").message, "field label not supported: spec.nodeName");
    }

    #[test]
    fn the_other_view_of_events_has_its_own_names() {
        let view = Served::all(crate::Gates::default()).find(|served| served.group == "events.k8s.io");
        let view = view.expect("it is served");
        assert!(Selector::parse(view, None, "", "regarding.name=a,reportingController=b,reason=c").is_ok());
    }
}
