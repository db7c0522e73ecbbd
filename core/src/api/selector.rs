//! A label selector as an API server reads it from a query.

use serde_json::Value;

/// The text of a `LabelSelector`; none where it is not one, or selects everything.
pub fn label_selector(selector: &Value) -> Option<String> {
    let mut requirements = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        requirements.push(format!("{key}={}", value.as_str()?));
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression.get("key")?.as_str()?;
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.map(Value::as_str).collect::<Option<Vec<_>>>()?.join(",");
        requirements.push(match expression.get("operator")?.as_str()? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    Some(requirements.join(",")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_is_written_as_in_a_query() {
        for (selector, text) in [
            (json!({"matchLabels": {"app": "web", "tier": "db"}}), Some("app=web,tier=db")),
            (
                json!({"matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["x", "y"]},
                    {"key": "b", "operator": "NotIn", "values": ["z"]},
                    {"key": "c", "operator": "Exists"},
                    {"key": "d", "operator": "DoesNotExist"},
                ]}),
                Some("a in (x,y),b notin (z),c,!d"),
            ),
            (json!({}), None),
            (json!(null), None),
            (json!({"matchLabels": {"app": 1}}), None),
            (json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}), None),
        ] {
            assert_eq!(label_selector(&selector).as_deref(), text, "{selector}");
        }
    }
}
