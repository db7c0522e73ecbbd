//! The controller: keeps one Workload and one PodGroup for each StatefulSet with a scheduling intent.
//!
//! It holds no rule of its own. [`observe`] feeds an [`index`] from watches, [`reconcile`] asks the
//! core's plan what to do next and does it through [`api`], and so on until there is nothing to do.
//!
//! | module | client? | what it does |
//! |---|---|---|
//! | [`args`] | no | what the process is told |
//! | [`object`] | no | StatefulSets as they are watched |
//! | [`index`] | no | what is known of the cluster |
//! | [`queue`] | no | what is to be reconciled, and when |
//! | [`failure`] | no | what an error means for the next attempt |
//! | [`metrics`] | no | what is measured |
//! | [`probes`] | no | `/healthz`, `/readyz`, `/metrics` |
//! | [`api`] | no | what is asked of an API server |
//! | [`reconcile`] | no | plan, act, repeat |
//! | [`kube_api`] | yes | the requests themselves |
//! | [`observe`] | yes | the watches |
//! | [`events`] | yes | events on StatefulSets |
//! | [`leader`] | yes | who writes |
//! | [`startup`] | yes | whether the API is served |
//! | [`run`] | yes | the process |
//! | [`webhook`] | yes | instead of all this: the core behind a plain admission webhook |

pub mod api;
pub mod args;
pub mod events;
pub mod failure;
pub mod index;
pub mod kube_api;
pub mod leader;
pub mod metrics;
pub mod object;
pub mod observe;
pub mod probes;
pub mod queue;
pub mod reconcile;
pub mod run;
pub mod startup;
pub mod webhook;
