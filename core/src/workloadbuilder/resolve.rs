//! What an item comes to.

use super::item::DisruptionModeType;
use super::{PolicyType, SchedulingConfig, WorkloadItem};

/// The input over the default, then the callbacks. What says nothing (an empty union, an empty
/// list) is absent, and of a union only the member that counts is left.
pub fn resolve(item: &WorkloadItem<'_>) -> SchedulingConfig {
    let default = item.default_config.clone();
    let input = normalise(item.input.clone());
    let mut config = SchedulingConfig {
        policy: input.policy.or(default.policy),
        constraints: input.constraints.or(default.constraints),
        disruption_mode: input.disruption_mode.or(default.disruption_mode),
        resource_claims: if input.resource_claims.is_empty() { default.resource_claims } else { input.resource_claims },
        priority_class_name: input.priority_class_name.or(default.priority_class_name),
    };
    for callback in &item.callbacks {
        callback(&mut config);
    }
    normalise(config)
}

fn normalise(mut config: SchedulingConfig) -> SchedulingConfig {
    config.policy = config.policy.and_then(|mut policy| {
        match PolicyType::of(&policy)? {
            PolicyType::Basic => policy.gang = None,
            PolicyType::Gang => policy.basic = None,
        }
        Some(policy)
    });
    config.constraints =
        config.constraints.filter(|constraints| constraints.topology.as_ref().is_some_and(|list| !list.is_empty()));
    config.disruption_mode = config.disruption_mode.and_then(|mut mode| {
        match DisruptionModeType::of(&mode)? {
            DisruptionModeType::Single => mode.all = None,
            DisruptionModeType::All => mode.single = None,
        }
        Some(mode)
    });
    config
}
