//! What the process is told.

use std::net::SocketAddr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use statefulset_scheduling_core::api::Carriers;
use statefulset_scheduling_core::gates::FeatureGates;
use statefulset_scheduling_core::plan::Settings;

use crate::webhook;

/// The controller, or, as a subcommand, the webhook.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "statefulset-scheduling-controller",
    version,
    args_override_self = true,
    args_conflicts_with_subcommands = true
)]
pub struct Program {
    /// What else it can be.
    #[command(subcommand)]
    pub mode: Option<Mode>,

    /// The controller.
    #[command(flatten)]
    pub controller: Arguments,
}

/// What the program can be beside the controller.
#[derive(Clone, Debug, Subcommand)]
pub enum Mode {
    /// Answers admission webhooks, where no admission engine runs the policy.
    Webhook(Box<webhook::args::Arguments>),
}

/// What the controller and the webhook are told alike. A policy in place of the webhook has the first three as
/// settings.
#[derive(Args, Clone, Debug)]
pub struct Shared {
    /// Feature gates: `WorkloadWithStatefulSet=true|false,DRAWorkloadResourceClaims=true|false`; controller and
    /// policy, or webhook, must be told the same, as with the next two.
    #[arg(long, env = "FEATURE_GATES", default_value = "")]
    pub feature_gates: FeatureGates,

    /// Where intents are read from.
    #[arg(long, env = "CARRIERS", value_delimiter = ',', default_values_t = [CarrierName::Field, CarrierName::Annotation])]
    pub carriers: Vec<CarrierName>,

    /// Whether pods get an ownerReference to their PodGroup.
    #[arg(long, env = "POD_GROUP_OWNER_REFERENCE")]
    pub pod_group_owner_reference: bool,

    /// Where `/healthz`, `/readyz` and `/metrics` are served.
    #[arg(long, env = "LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// The form of the log.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

impl Shared {
    /// Where intents are read from.
    pub fn carriers(&self) -> Carriers {
        Carriers {
            field: self.carriers.contains(&CarrierName::Field),
            annotation: self.carriers.contains(&CarrierName::Annotation),
        }
    }
}

/// Keeps one Workload and one PodGroup for each StatefulSet with a scheduling intent.
#[derive(Clone, Debug, Parser)]
#[command(name = "statefulset-scheduling-controller", version, args_override_self = true)]
pub struct Arguments {
    /// What the webhook is told, too.
    #[command(flatten)]
    pub shared: Shared,

    /// The only namespace that is watched; all without it.
    #[arg(long, env = "WATCH_NAMESPACE")]
    pub namespace: Option<String>,

    /// How many StatefulSets are worked on at once.
    #[arg(long, env = "CONCURRENCY", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,

    /// How many requests a second are made to the API server at most, and as many events; watches are not
    /// counted, and 0 is no bound.
    #[arg(long, env = "CLIENT_QPS", default_value_t = 100)]
    pub client_qps: u32,

    /// How many requests may be made at once after a quiet while.
    #[arg(long, env = "CLIENT_BURST", default_value_t = 200)]
    pub client_burst: u32,

    /// Leads only while holding a Lease: needed with more than one replica.
    #[arg(long, env = "LEADER_ELECT")]
    pub leader_elect: bool,

    /// The namespace of the Lease.
    #[arg(long, env = "POD_NAMESPACE", default_value = "statefulset-scheduling-system")]
    pub lease_namespace: String,

    /// The name of the Lease.
    #[arg(long, env = "LEASE_NAME", default_value = "statefulset-scheduling-controller")]
    pub lease_name: String,

    /// The name of this replica, in the Lease and in events; the host's without it.
    #[arg(long, env = "POD_NAME")]
    pub identity: Option<String>,

    /// Logs what would be written, and writes nothing.
    #[arg(long, env = "DRY_RUN")]
    pub dry_run: bool,
}

/// A carrier, as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CarrierName {
    /// `spec.scheduling`
    Field,
    /// The annotation.
    Annotation,
}

impl std::fmt::Display for CarrierName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Field => "field",
            Self::Annotation => "annotation",
        })
    }
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// An object a line.
    Json,
}

impl Arguments {
    /// The settings of the plan.
    pub fn settings(&self) -> Settings {
        let Shared { feature_gates, pod_group_owner_reference, .. } = self.shared;
        Settings { gates: feature_gates, pod_group_owner_reference }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_the_policys_defaults() {
        let arguments = Arguments::try_parse_from(["controller"]).expect("all have a default");
        assert_eq!(arguments.settings(), Settings::default());
        assert_eq!(arguments.shared.carriers(), Carriers::default());
        assert!(!arguments.leader_elect && !arguments.dry_run);
    }

    #[test]
    fn arguments_are_strict() {
        for argument in ["--feature-gates=X=true", "--carriers=label", "--concurrency=0", "--listen=x", "--unknown"] {
            assert!(Arguments::try_parse_from(["controller", argument]).is_err(), "{argument}");
        }
        let arguments =
            Arguments::try_parse_from(["controller", "--carriers=annotation", "--feature-gates=AllAlpha=false"])
                .expect("they are valid");
        assert_eq!(arguments.shared.carriers(), Carriers { field: false, annotation: true });
        assert!(!arguments.settings().gates.workload_with_stateful_set);
    }

    #[test]
    fn without_a_subcommand_it_is_the_controller() {
        let program = Program::try_parse_from(["controller", "--dry-run"]).expect("it is valid");
        assert!(program.mode.is_none() && program.controller.dry_run);
        let webhook = Program::try_parse_from(["controller", "webhook", "--self-signed"]).expect("it is valid");
        assert!(matches!(webhook.mode, Some(Mode::Webhook(_))));
        assert!(Program::try_parse_from(["controller", "--dry-run", "webhook", "--self-signed"]).is_err());
    }
}
