//! What the process is told.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use statefulset_scheduling_core::admission::{DEFAULT_CONTROLLER, DEFAULT_STATEFULSET_CONTROLLERS, Settings};

use crate::args::Shared;

/// Answers an API server's admission webhooks, where no admission engine runs the policy.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct Arguments {
    /// What the controller is told, too.
    #[command(flatten)]
    pub shared: Shared,

    /// The users that the controller is: they alone may change a binding.
    #[arg(long = "controller-user", env = "CONTROLLER_USERS", value_delimiter = ',',
        default_value = DEFAULT_CONTROLLER, value_parser = NonEmptyStringValueParser::new())]
    pub controller_users: Vec<String>,

    /// The users that the cluster's own StatefulSet controller may be.
    #[arg(long = "statefulset-controller-user", env = "STATEFULSET_CONTROLLER_USERS", value_delimiter = ',',
        default_values = DEFAULT_STATEFULSET_CONTROLLERS, value_parser = NonEmptyStringValueParser::new())]
    pub statefulset_controller_users: Vec<String>,

    /// Where reviews are answered, over TLS.
    #[arg(long, env = "TLS_LISTEN", default_value = "0.0.0.0:9443")]
    pub tls_listen: SocketAddr,

    /// The certificate and what it is signed by, in PEM; read again when it changes.
    #[arg(long, env = "TLS_CERT", requires = "tls_key", required_unless_present = "self_signed")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's key, in PEM.
    #[arg(long, env = "TLS_KEY", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Makes the certificate, keeps it in a Secret, and writes its authority into the webhook configurations.
    #[arg(long, env = "SELF_SIGNED", conflicts_with_all = ["tls_cert", "tls_key"])]
    pub self_signed: bool,

    /// The namespace of this process, its Service and its Secret.
    #[arg(long, env = "POD_NAMESPACE", default_value = "statefulset-scheduling-system")]
    pub namespace: String,

    /// The Service that the API server calls: what a certificate is made for.
    #[arg(long, env = "SERVICE_NAME", default_value = "statefulset-scheduling-webhook")]
    pub service_name: String,

    /// The Secret of the certificate that is made.
    #[arg(long, env = "SECRET_NAME", default_value = "statefulset-scheduling-webhook-tls")]
    pub secret_name: String,

    /// The `MutatingWebhookConfiguration` and the `ValidatingWebhookConfiguration` that get the authority: both
    /// have this name.
    #[arg(long, env = "WEBHOOK_CONFIGURATION", default_value = "statefulset-scheduling-webhook")]
    pub webhook_configuration: String,

    /// How many reviews are answered at once.
    #[arg(long, env = "CONCURRENCY", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,
}

impl Arguments {
    /// The policy's settings.
    pub fn settings(&self) -> Settings {
        Settings {
            feature_gates: self.shared.feature_gates,
            carriers: self.shared.carriers(),
            controllers: self.controller_users.clone(),
            statefulset_controllers: self.statefulset_controller_users.clone(),
            pod_group_owner_reference: self.shared.pod_group_owner_reference,
        }
    }

    /// The name by which the API server calls.
    pub fn dns_name(&self) -> String {
        format!("{}.{}.svc", self.service_name, self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Mode, Program};

    fn parse(arguments: &[&str]) -> Result<Arguments, clap::Error> {
        let program = Program::try_parse_from(["controller", "webhook"].iter().chain(arguments))?;
        let Some(Mode::Webhook(arguments)) = program.mode else { panic!("the webhook was asked for") };
        Ok(*arguments)
    }

    #[test]
    fn the_defaults_are_the_policys() {
        let arguments = parse(&["--self-signed"]).expect("all else has a default");
        assert_eq!(arguments.settings(), Settings::default());
        assert_eq!(arguments.dns_name(), "statefulset-scheduling-webhook.statefulset-scheduling-system.svc");
    }

    #[test]
    fn users_may_be_given_one_by_one_or_in_a_list() {
        let arguments =
            ["--self-signed", "--controller-user=a", "--controller-user=b", "--statefulset-controller-user=c,d"];
        let settings = parse(&arguments).expect("they are valid").settings();
        assert_eq!(
            (settings.controllers, settings.statefulset_controllers),
            (vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned(), "d".to_owned()])
        );
    }

    #[test]
    fn there_is_exactly_one_certificate() {
        for refused in [
            &[][..],
            &["--tls-cert=a"],
            &["--tls-key=a"],
            &["--self-signed", "--tls-cert=a", "--tls-key=b"],
            &["--self-signed", "--controller-user="],
            &["--self-signed", "--carriers=label"],
            &["--self-signed", "--leader-elect"],
        ] {
            assert!(parse(refused).is_err(), "{refused:?}");
        }
        assert!(parse(&["--tls-cert=a", "--tls-key=b"]).is_ok());
    }
}
