//! The semantic rules, checked on what is compiled.

use super::item::{BuildOptions, DisruptionModeType, PolicyType, WorkloadItem};
use super::resolve;
use crate::field::{BadValue, Error, ErrorList};

/// The errors of an item: a policy or a mode that is not on the list, and modes that do not go with
/// the policy.
pub fn validate(item: &WorkloadItem<'_>, options: &BuildOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let config = resolve(item);
    let policy = config.policy.as_ref().and_then(PolicyType::of);
    if let Some(policy) = policy.filter(|policy| !options.allowed_policies.contains(policy)) {
        let allowed: Vec<&str> = options.allowed_policies.iter().map(|policy| policy.as_str()).collect();
        errors.push(Error::not_supported(&item.path.child("schedulingPolicy"), policy.as_str(), &allowed));
    }
    let path = item.path.child("disruptionMode");
    let mode = config.disruption_mode.as_ref().and_then(DisruptionModeType::of);
    if let Some(mode) = mode.filter(|mode| !options.allowed_disruption_modes.contains(mode)) {
        let allowed: Vec<&str> = options.allowed_disruption_modes.iter().map(|mode| mode.as_str()).collect();
        errors.push(Error::not_supported(&path, mode.as_str(), &allowed));
    }
    if (policy, mode) == (Some(PolicyType::Basic), Some(DisruptionModeType::All)) {
        errors.push(Error::invalid(
            &path,
            BadValue::String(String::new()),
            "the disruptionMode `all` is not supported with the Basic scheduling policy",
        ));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{StatefulSetSchedulingConfiguration, UnknownFields, decode_configuration};
    use crate::field::Path;
    use serde_json::json;

    fn errors(value: &serde_json::Value, options: &BuildOptions) -> String {
        let path = Path::new("s");
        let configuration: StatefulSetSchedulingConfiguration =
            decode_configuration(value, &path, UnknownFields::Prune).unwrap();
        validate(&WorkloadItem::new(&configuration, &path), options).to_string()
    }

    #[test]
    fn a_policy_or_mode_that_is_not_on_the_list_is_refused() {
        let gang = json!({"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}});
        assert_eq!(errors(&gang, &BuildOptions::default()), "[]");
        let only_basic = BuildOptions {
            allowed_policies: vec![PolicyType::Basic],
            allowed_disruption_modes: vec![DisruptionModeType::Single],
        };
        assert_eq!(
            errors(&gang, &only_basic),
            r#"[s.schedulingPolicy: Unsupported value: "gang": supported values: "basic", s.disruptionMode: Unsupported value: "all": supported values: "single"]"#
        );
        assert_eq!(errors(&json!({}), &only_basic), "[]");
        let only_gang = BuildOptions { allowed_policies: vec![PolicyType::Gang], ..BuildOptions::default() };
        assert_eq!(
            errors(&json!({}), &only_gang),
            r#"s.schedulingPolicy: Unsupported value: "basic": supported values: "gang""#
        );
    }
}
