//! Plays the demo: what StatefulSets gain from being scheduled as a whole, on a simulated cluster.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use cluster::Cluster;
use cluster::cluster::policy;
use cluster::demo::picture::{self, Row};
use cluster::demo::scenes::SCENES;
use cluster::demo::shape::{self, Server};
use cluster::demo::{Stage, teller};

/// Plays scenes on a simulated cluster of four nodes that runs the real policy module and the real
/// controller, and checks each of them.
///
/// Exit status: 0 if everything that was checked holds, 1 if not, 2 if the demo cannot be played.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Writes the timeline as a picture to this file, too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Which API server is simulated.
    #[arg(long, value_enum, default_value_t)]
    profile: Server,

    /// Plays without the policies: scenes that need them fail.
    #[arg(long, hide = true)]
    without_policies: bool,

    /// How many seconds a scene waits for what should happen.
    #[arg(long, hide = true, default_value_t = 20)]
    patience: u64,
}

const FAILED: u8 = 1;
const UNPLAYABLE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            anstream::eprintln!("demo: {error:#}");
            ExitCode::from(UNPLAYABLE)
        }
    }
}

/// Whether everything holds.
async fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let mut options = shape::options(arguments.profile);
    options.policies = !arguments.without_policies;
    let cluster = Cluster::start(policy()?, options).await?;
    let racks = cluster.api.look(shape::racks);
    let rows: Vec<Row> = racks.into_iter().map(|(node, rack)| Row { node, rack }).collect();
    let mut stage = Stage::new(cluster, Duration::from_secs(arguments.patience));
    stage.text(opening(&rows));
    for (index, scene) in SCENES.iter().enumerate() {
        // What comes after begins with what this one should have left.
        if !stage.play(index + 1, SCENES.len(), scene).await {
            break;
        }
    }
    let (mut cluster, timeline) = stage.end();
    cluster.stop_controller().await?;
    let good = timeline.is_good() && timeline.scenes.len() == SCENES.len();
    let facts = timeline.scenes.iter().map(|scene| scene.checks.len()).sum::<usize>();
    let verdict = if good {
        format!("{} scenes, {facts} checked facts: all of them hold, and nothing is left.", timeline.scenes.len())
    } else {
        let failed = timeline.scenes.iter().filter(|scene| !scene.is_good()).map(|scene| &*scene.title);
        format!("FAILED: {}", failed.collect::<Vec<_>>().join("; "))
    };
    anstream::println!("\n  {}", teller::verdict(good, &verdict));
    if let Some(file) = &arguments.html {
        std::fs::write(file, picture::html(&timeline, &rows)).with_context(|| file.display().to_string())?;
        anstream::println!("  The picture is in {}", file.display());
    }
    Ok(good)
}

/// What the audience sees before the first scene.
fn opening(rows: &[Row]) -> String {
    let mut text = teller::heading("StatefulSets that are scheduled as a whole");
    text.push_str(
        "\n\n  A simulated cluster in this process, with the policy module and the controller as they are deployed.\n",
    );
    for row in rows {
        // Writing to a text cannot fail.
        let _ = write!(text, "\n    {}   rack {}   2 processors", row.node, row.rack);
    }
    text.push_str("\n\n  Each pod wants one processor. Times count from here.");
    text
}
