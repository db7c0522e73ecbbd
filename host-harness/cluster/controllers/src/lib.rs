//! The controllers that a cluster has of its own, for a simulated control plane: a test bench, not a
//! product.
//!
//! They know the API server only through a [`kube::Client`]. Each module says which upstream behaviour
//! it stands for and what it leaves out. What to do is decided in pure functions; the rest carries it
//! out.
//!
//! ```no_run
//! # async fn doc(client: kube::Client) {
//! use cluster_controllers::{garbage_collector, resource_claims, statefulset};
//!
//! let sets = statefulset::start(&client, statefulset::Config::default());
//! let garbage = garbage_collector::start(&client, garbage_collector::Config::default());
//! let claims = resource_claims::start(&client, resource_claims::Config::default());
//! sets.synced().await;
//! sets.stop().await;
//! # drop((garbage, claims));
//! # }
//! ```

pub mod batches;
pub mod common;
pub mod error;
pub mod garbage_collector;
pub mod handle;
pub mod identity;
pub mod informer;
pub mod key;
mod meta;
pub mod resource_claims;
pub mod selector;
pub mod statefulset;
pub mod workqueue;

pub use common::{Clock, Common};
pub use error::Error;
pub use handle::Handle;
pub use informer::Lag;
pub use key::Key;
pub use workqueue::Backoff;
