//! `status`: intent, Workload, PodGroup and pods in one tree.

mod describe;
mod events;
mod tree;
mod waiting;

pub use describe::describe;
pub use tree::Tree;
pub use waiting::{step, waits};

use std::io::Write as _;

use crate::args;
use crate::exit::Outcome;
use crate::progress::Progress;
use crate::snapshot::{connect, explain, take};

/// Shows what became of intents.
///
/// # Errors
/// The cluster cannot be asked.
pub fn run(arguments: &args::Status) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(show(arguments))
}

async fn show(arguments: &args::Status) -> anyhow::Result<Outcome> {
    let progress = Progress::start("connecting");
    let connected = connect(&arguments.connection).await?;
    let namespace = (!arguments.all_namespaces).then_some(connected.namespace.as_str());
    let snapshot = take(&connected.client, namespace, arguments.name.as_deref(), &progress).await?;
    let mut out = String::new();
    let mut good = true;
    for set in &snapshot.sets {
        progress.now(&format!("reading the events of {}", set.subject.name));
        let uids = describe::uids(set, &snapshot.groups);
        let mut events = Vec::new();
        for uid in uids {
            events.extend(events::last(&connected.client, &set.subject.namespace, &uid).await.map_err(explain)?);
        }
        let (tree, in_order) = describe(set, &snapshot.groups, &events);
        good &= in_order;
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&tree.print());
    }
    drop(progress);
    if snapshot.sets.is_empty() {
        let place = namespace.map_or_else(String::new, |namespace| format!(" in {namespace}"));
        out = format!("no StatefulSet{place} has a scheduling intent\n");
    }
    anstream::stdout().write_all(out.as_bytes())?;
    Ok(Outcome::of(good))
}
