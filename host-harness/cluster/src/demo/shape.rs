//! The cluster that the demo is played on: eight processors in two racks, and one fabric.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;
use cluster_apiserver::{Profile, Resource, View};
use cluster_nodes::kubelet::Timings;
use cluster_nodes::node::NodeShape;
use cluster_nodes::scheduler::{Devices, Supply};

use crate::Options;

/// The label that says in which rack a node stands.
pub const RACK: &str = "topology.example.com/rack";
/// The class of the device that the cluster has one of.
pub const FABRIC: &str = "fabric";
/// How many pods of one processor fit.
pub const ROOM: usize = 8;

/// The API server to play on, as the command line names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Server {
    /// Kubernetes 1.37: the intent is an annotation.
    #[default]
    #[value(name = "1.37")]
    V1_37,
    /// A server with the KEP: the intent is the field spec.scheduling.
    Kep,
}

impl From<Server> for Profile {
    fn from(server: Server) -> Self {
        match server {
            Server::V1_37 => Self::V1_37,
            Server::Kep => Self::Kep,
        }
    }
}

/// Four nodes of two processors, two in each rack, and pods that take long enough to be seen.
pub fn options(server: Server) -> Options {
    let racks = [("node-1", "a"), ("node-2", "a"), ("node-3", "b"), ("node-4", "b")];
    Options {
        profile: server.into(),
        nodes: racks.map(|(name, rack)| NodeShape::new(name, "2", "8Gi").label(RACK, rack)).into(),
        devices: Devices { classes: BTreeMap::from([(FABRIC.to_owned(), Supply::Cluster(1))]), ..Devices::default() },
        timings: Timings {
            start: Duration::from_millis(200),
            ready: Duration::from_millis(500),
            shutdown: Duration::from_millis(250),
            grace_second: Duration::from_millis(250),
        },
        ..Options::default()
    }
}

/// The nodes by name, each with its rack.
pub fn racks(view: &View<'_>) -> BTreeMap<String, String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let nodes = view.list(Resource::Nodes).into_iter().map(|node| node["metadata"].clone());
    nodes.map(|metadata| (text(&metadata["name"]), text(&metadata["labels"][RACK]))).collect()
}
