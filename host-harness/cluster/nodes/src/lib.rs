//! The scheduler and the kubelet of the simulated control plane.
//!
//! They know the API server only through a client, as the real ones do. Every decision is a pure
//! function; the loops around them watch, ask, and do.
//!
//! | module | client? | what it does |
//! |---|---|---|
//! | [`cluster`] | no | what is known of the cluster, in the words of the decisions |
//! | [`quantity`] | no | amounts of resources |
//! | [`clock`] | no | what time it is |
//! | [`node`] | no | a Node to create |
//! | [`scheduler::round()`] | no | one pass over everything that waits for a node |
//! | [`kubelet::lifecycle`] | no | what happens to a pod on its node, and when |
//! | [`identity`] | yes | who asks |
//! | [`watch`] | yes | stores fed by watches |
//! | [`mod@scheduler`], [`mod@kubelet`] | yes | the loops |

pub mod clock;
pub mod cluster;
pub mod identity;
pub mod kubelet;
pub mod node;
pub mod quantity;
pub mod scheduler;
mod task;
pub mod watch;
