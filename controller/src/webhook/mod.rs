//! The core behind a plain admission webhook, for clusters without an admission engine.
//!
//! It holds no rule of its own. An API server asks over TLS, [`review`] reads the question, the core
//! answers it, and what the core has to know of the cluster [`lookup`] reads: one StatefulSet, uncached.
//!
//! | module | client? | what it does |
//! |---|---|---|
//! | [`args`] | no | what the process is told |
//! | [`review`] | no | from bytes to a question, from a verdict to bytes |
//! | [`lookup`] | yes | reads a pod's StatefulSet, as long as there is time |
//! | [`server`] | no | reviews over HTTP, within limits |
//! | [`listener`] | no | TLS: handshakes beside each other, connections within limits |
//! | [`certificate`] | no | the certificate that is presented |
//! | [`files`] | no | takes it from files, and again when they change |
//! | [`issue`] | no | makes an authority and a certificate |
//! | [`secret`] | no | them, in a Secret |
//! | [`bundle`] | yes | the authority, in the webhook configurations |
//! | [`self_signed`] | yes | keeps Secret, configurations and certificate in step |
//! | [`metrics`] | no | what is measured |
//! | [`run`] | yes | the process |

pub mod args;
pub mod bundle;
pub mod certificate;
pub mod files;
pub mod issue;
pub mod listener;
pub mod lookup;
pub mod metrics;
pub mod review;
pub mod run;
pub mod secret;
pub mod self_signed;
pub mod server;
