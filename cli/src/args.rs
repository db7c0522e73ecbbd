//! What the program is told.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use statefulset_scheduling_core::api::Carrier;

use crate::exit;
use crate::format::Format;
use crate::opt_in::{Claim, Disruption, Wish};

const EXAMPLES: &str = "\
Examples:
  helm template my-chart | kubectl sts-scheduling lint -
  kubectl sts-scheduling opt-in web.yaml --gang --topology topology.kubernetes.io/zone --in-place
  kubectl sts-scheduling compile web.yaml
  kubectl sts-scheduling status web
  kubectl sts-scheduling doctor";

/// Workload-aware scheduling for StatefulSets.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-sts_scheduling",
    bin_name = "kubectl sts-scheduling",
    version,
    after_help = format!("{EXAMPLES}\n\n{}", exit::HELP)
)]
pub struct Arguments {
    /// What is to be done.
    #[command(subcommand)]
    pub command: Command,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Says what the policy would say about manifests, without a cluster.
    ///
    /// Documents of any kind are read, and Lists are taken apart; only StatefulSets are judged. A stream of any
    /// length is read document by document.
    #[command(after_help = format!("\
Examples:
  kubectl sts-scheduling lint web.yaml
  helm template my-chart | kubectl sts-scheduling lint -
  kustomize build . | kubectl sts-scheduling lint --output sarif - > findings.sarif
  kubectl sts-scheduling lint --output github manifests/*.yaml

{}", exit::HELP))]
    Lint(Lint),
    /// Shows the Workload and the PodGroup that would be made for a StatefulSet.
    ///
    /// UIDs, and the hashes in names that come from them, are the API server's to give.
    #[command(after_help = format!("\
Examples:
  kubectl sts-scheduling compile web.yaml
  kubectl sts-scheduling compile --output json web.yaml

{}", exit::HELP))]
    Compile(Compile),
    /// Writes an intent into a manifest, and sets what the intent needs.
    ///
    /// Comments and order stay. What was changed is said on the standard error; the manifest goes to the standard
    /// output, or back into the file with --in-place. With none of the wishes the group has the Basic policy, which
    /// schedules as today.
    #[command(after_help = format!("\
Examples:
  kubectl sts-scheduling opt-in web.yaml --gang
  kubectl sts-scheduling opt-in web.yaml --gang --topology topology.kubernetes.io/zone --disruption all
  kubectl sts-scheduling opt-in web.yaml --claim fabric=fabric-template --in-place

{}", exit::HELP))]
    OptIn(OptIn),
    /// Shows what became of an intent: Workload, PodGroup, pods, and what is waited for.
    #[command(after_help = format!("\
Examples:
  kubectl sts-scheduling status
  kubectl sts-scheduling status web --namespace shop
  kubectl sts-scheduling status --all-namespaces

{}", exit::HELP))]
    Status(Status),
    /// Looks for what is wrong with this cluster, and says how it is repaired.
    ///
    /// Whether the policy answers is asked by dry runs: nothing is created.
    #[command(after_help = format!("\
Examples:
  kubectl sts-scheduling doctor
  kubectl sts-scheduling doctor --namespace shop

{}", exit::HELP))]
    Doctor(Doctor),
    /// Writes the completions of a shell.
    #[command(after_help = "\
Examples:
  source <(kubectl sts-scheduling completions bash)
  kubectl sts-scheduling completions fish > ~/.config/fish/completions/kubectl-sts_scheduling.fish")]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// How the policy is set.
#[derive(Debug, Args)]
pub struct PolicySettings {
    /// A file with the policy's settings, YAML or JSON; their defaults without it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub settings: Option<PathBuf>,
}

/// The arguments of `lint`.
#[derive(Debug, Args)]
pub struct Lint {
    /// The manifests; - is the standard input.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,

    /// The form of what is found.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,

    /// Counts warnings as errors.
    #[arg(long)]
    pub strict: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "told there")]
    pub policy: PolicySettings,
}

/// The form of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    /// Documents of YAML.
    #[default]
    Yaml,
    /// One List in JSON.
    Json,
}

/// The arguments of `compile`.
#[derive(Debug, Args)]
pub struct Compile {
    /// The manifest; - is the standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The form of the objects.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ObjectFormat,

    /// The namespace of what names none.
    #[arg(short, long, default_value = "default")]
    pub namespace: String,

    #[command(flatten)]
    #[allow(missing_docs, reason = "told there")]
    pub policy: PolicySettings,
}

/// Where an intent is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CarrierName {
    /// The annotation, on any cluster.
    #[default]
    Annotation,
    /// spec.scheduling, on an API server that has it.
    Field,
}

impl From<CarrierName> for Carrier {
    fn from(name: CarrierName) -> Self {
        match name {
            CarrierName::Annotation => Self::Annotation,
            CarrierName::Field => Self::Field,
        }
    }
}

/// The arguments of `opt-in`.
#[derive(Debug, Args)]
pub struct OptIn {
    /// The manifest; - is the standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// All pods are placed, or none: needs podManagementPolicy Parallel, which is set.
    #[arg(long)]
    pub gang: bool,

    /// All pods in one domain of this node label.
    #[arg(long, value_name = "KEY")]
    pub topology: Option<String>,

    /// What preemption takes; all needs --gang.
    #[arg(long, value_enum, value_name = "MODE")]
    pub disruption: Option<Disruption>,

    /// A claim that is allocated once for the group, made from a ResourceClaimTemplate; may be repeated.
    #[arg(long = "claim", value_name = "NAME=TEMPLATE")]
    pub claims: Vec<Claim>,

    /// Where the intent is written.
    #[arg(long, value_enum, default_value_t)]
    pub carrier: CarrierName,

    /// The StatefulSet, where the manifest has several.
    #[arg(long)]
    pub name: Option<String>,

    /// Writes the manifest back into the file.
    #[arg(short, long)]
    pub in_place: bool,
}

impl OptIn {
    /// What is asked for.
    pub fn wish(&self) -> Wish {
        Wish {
            gang: self.gang,
            topology: self.topology.clone(),
            disruption: self.disruption,
            claims: self.claims.clone(),
        }
    }
}

/// How the cluster is reached.
#[derive(Debug, Args)]
pub struct Connection {
    /// The kubeconfig; KUBECONFIG, or ~/.kube/config, without it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig.
    #[arg(long)]
    pub context: Option<String>,

    /// The namespace; that of the context without it.
    #[arg(short, long)]
    pub namespace: Option<String>,
}

/// The arguments of `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// The StatefulSet; all that opted in without it.
    pub name: Option<String>,

    /// Looks at all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["name", "namespace"])]
    pub all_namespaces: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "told there")]
    pub connection: Connection,
}

/// The arguments of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The namespace in which the controller runs.
    #[arg(long, value_name = "NAMESPACE", default_value = "statefulset-scheduling-system")]
    pub controller_namespace: String,

    #[command(flatten)]
    #[allow(missing_docs, reason = "told there")]
    pub connection: Connection,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_sound() {
        Arguments::command().debug_assert();
    }
}
