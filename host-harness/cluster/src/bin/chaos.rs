//! Runs seeds of chaos, and says which failed.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use cluster::chaos::{Seen, run};
use cluster::cluster::policy;
use futures::StreamExt as _;

/// Random faults over random lives of StatefulSets.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds are run.
    #[arg(long, env = "SEEDS", default_value_t = 200)]
    seeds: u64,
    /// The first of them: with `--seeds 1`, the one to replay.
    #[arg(long, env = "SEED", default_value_t = 1)]
    seed: u64,
    /// How many are run at once.
    #[arg(long, default_value_t = 8)]
    at_once: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let policy = policy()?;
    let started = Instant::now();
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.seeds);
    let runs = futures::stream::iter(seeds).map(|seed| {
        let policy = Arc::clone(&policy);
        // A task of its own: what panics fails its seed and no other.
        async move { (seed, tokio::spawn(run(policy, seed)).await) }
    });
    let mut runs = runs.buffer_unordered(arguments.at_once.max(1));
    let (mut total, mut failed) = (Seen::default(), Vec::new());
    while let Some((seed, result)) = runs.next().await {
        match result {
            Ok(Ok(seen)) => {
                total.requests += seen.requests;
                total.faults += seen.faults;
                total.states += seen.states;
            }
            Ok(Err(why)) => {
                eprintln!("{why}");
                failed.push(seed);
            }
            Err(error) => {
                eprintln!("seed {seed}: {error}");
                failed.push(seed);
            }
        }
    }
    println!(
        "{} seeds in {:.0?}: {} requests, {} of them failed on purpose, {} states checked; {} seeds failed",
        arguments.seeds,
        started.elapsed(),
        total.requests,
        total.faults,
        total.states,
        failed.len()
    );
    for seed in &failed {
        println!("  replay: make chaos SEEDS=1 SEED={seed}");
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
