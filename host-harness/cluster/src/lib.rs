//! A whole simulated cluster in one process: the control plane, its nodes, an admission engine that
//! runs the policy module as `deploy/kubewarden` says, or the webhook of `deploy/webhook` instead, and the
//! controller.
//!
//! The parts know each other only through the API server, over HTTP. Each stands in a crate of its own
//! that names the upstream behaviour it stands for and what it leaves out; here they are put together.
//!
//! | module | what it is about |
//! |---|---|
//! | [`engine`] | the module in wasmtime, answering webhooks as Kubewarden does |
//! | [`manifests`] | what is deployed: the project's manifests, or the rendered chart |
//! | [`permissions`] | what the deployed RBAC allows |
//! | [`webhook_http`] | the project's own webhook, asked over HTTPS as an API server asks |
//! | [`deployed`] | the webhooks that the deployed policies make, or that are configured |
//! | [`controller`] | the controller, in this process or as its binary |
//! | [`client`] | what people do to a cluster |
//! | [`cluster`] | all of it, started and stopped in parts |
//! | [`objects`] | the objects that tests and the demo begin with |
//! | [`chaos`] | random faults over random lives |
//! | [`invariants`] | what holds of every cluster at rest |
//! | [`demo`] | scenes that are played on one, told and checked |

pub mod chaos;
pub mod client;
pub mod cluster;
pub mod controller;
pub mod demo;
pub mod deployed;
pub mod engine;
pub mod invariants;
pub mod manifests;
pub mod objects;
pub mod permissions;
pub mod webhook_http;

pub use client::Client;
pub use cluster::{Cluster, Options};
pub use controller::Controller;
pub use engine::Engine;
