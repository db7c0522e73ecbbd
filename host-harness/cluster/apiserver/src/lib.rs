//! The API server of a simulated Kubernetes control plane: real HTTP for an unmodified client and for
//! `kubectl`, and everything in one process that a test or a demo wants to see and to break.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use cluster_apiserver::{ApiServer, Config, Profile, namespaces, podgroup_protection};
//! use std::time::Duration;
//!
//! let server = ApiServer::start(Config { profile: Profile::Kep, ..Config::default() }).await?;
//! let interval = Duration::from_millis(50);
//! tokio::spawn(namespaces::run(server.client_as(namespaces::USER), interval));
//! tokio::spawn(podgroup_protection::run(server.client_as(podgroup_protection::USER), interval));
//! println!("{}", server.kubeconfig("kubernetes-admin"));
//! # Ok(())
//! # }
//! ```
//!
//! It is a test bench: each module says which part of the real thing it stands for and what it leaves
//! out. Left out as a whole: TLS, authentication worth the name, CRDs, aggregation, audit,
//! priority and fairness, `OpenAPI` schemas, CBOR and all but a little protobuf, `exec`, `logs` and other connections.
//!
//! | module | what it is about |
//! |---|---|
//! | [`namespaces`], [`podgroup_protection`] | the two controllers that the server cannot do without |
//! | `server`, `http`, `call`, `connection` | the process, a request's way through it, what it means, its line |
//! | `store`, `watch`, `select`, `table` | objects and versions, streams of changes, selectors, `kubectl get` |
//! | `write`, `patch`, `strategic`, `owners`, `deletion` | how a write becomes a change |
//! | `codec`, `protobuf`, `rules`, `plugins`, `admission`, `conditions` | pruning; defaults and validation; built-in admission; webhooks |
//! | `resource`, `discovery`, `status` | what is served, how that is found out, how it says no |
//! | `config`, `identity`, `authorization`, `clock`, `random`, `faults`, `log` | what the embedder decides and gets to know |

mod admission;
mod authorization;
mod call;
mod clock;
mod codec;
mod conditions;
mod config;
mod connection;
mod deletion;
mod discovery;
mod faults;
mod http;
mod identity;
mod log;
pub mod namespaces;
mod owners;
mod patch;
mod plugins;
pub mod podgroup_protection;
mod protobuf;
mod random;
mod resource;
mod rules;
mod select;
mod server;
mod status;
mod store;
mod strategic;
mod table;
mod watch;
mod write;

pub use admission::{Admission, Answer, FailurePolicy, Phase, Rule, Webhook, WebhookError};
pub use authorization::Authorizer;
pub use clock::{Clock, ManualClock, SystemClock};
pub use conditions::Condition;
pub use config::{Config, Gates, Profile};
pub use faults::{Fault, Faults, Occasion, Seeded};
pub use identity::{ADMIN, User};
pub use log::{Counts, Request, Verb};
pub use plugins::PROTECTION;
pub use resource::{Resource, Subresource};
pub use server::{ApiServer, View};
