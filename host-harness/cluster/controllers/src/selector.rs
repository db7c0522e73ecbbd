//! Label selectors, as `metav1.LabelSelectorAsSelector` evaluates them.
//!
//! Left out: the validation of operators and values. An unknown operator matches nothing.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Whether the labels match. An empty selector matches everything.
pub fn matches(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
    let equal = selector.match_labels.iter().flatten().all(|(key, wanted)| value(key) == Some(wanted));
    equal && selector.match_expressions.iter().flatten().all(|expression| fulfils(expression, value(&expression.key)))
}

fn fulfils(expression: &LabelSelectorRequirement, value: Option<&str>) -> bool {
    let listed = value.is_some_and(|value| expression.values.iter().flatten().any(|listed| listed == value));
    match expression.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_label_and_every_expression_has_to_match() {
        let table = [
            (json!({}), json!({}), true),
            (json!({ "matchLabels": { "app": "web" } }), json!({ "app": "web", "other": "x" }), true),
            (json!({ "matchLabels": { "app": "web" } }), json!({ "app": "db" }), false),
            (expression("In", &["a", "b"]), json!({ "tier": "b" }), true),
            (expression("In", &["a", "b"]), json!({}), false),
            (expression("NotIn", &["a"]), json!({}), true),
            (expression("NotIn", &["a"]), json!({ "tier": "a" }), false),
            (expression("Exists", &[]), json!({ "tier": "" }), true),
            (expression("DoesNotExist", &[]), json!({ "tier": "" }), false),
            (expression("Near", &["a"]), json!({ "tier": "a" }), false),
        ];
        for (selector, labels, wanted) in table {
            let parsed: LabelSelector = serde_json::from_value(selector.clone()).expect("it is a selector");
            let labels: BTreeMap<String, String> = serde_json::from_value(labels).expect("they are labels");
            assert_eq!(matches(&parsed, Some(&labels)), wanted, "{selector} on {labels:?}");
        }
    }

    fn expression(operator: &str, values: &[&str]) -> Value {
        json!({ "matchExpressions": [{ "key": "tier", "operator": operator, "values": values }] })
    }
}
