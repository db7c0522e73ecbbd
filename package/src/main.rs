//! The command line of the packaging; the Makefile is its user.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr as _;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};
use package::image::{self, Architecture, Layout};
use package::registry::{Registry, Transport};
use package::source::{Source, tool};
use package::{bundle, digest, file, module, provenance};

/// Packages what is released, pushes it to a registry, pulls and verifies it.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The root of the repository
    #[arg(long, default_value = ".", global = true)]
    root: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes the annotated module, its SBOM and the controller's, its provenance, and their checksums
    Module {
        /// The module as it was built
        #[arg(long, default_value = "policy.wasm")]
        module: PathBuf,
        /// What the engine is told about it
        #[arg(long, default_value = "policy/metadata.yml")]
        metadata: PathBuf,
        /// Where to write
        #[arg(long, default_value = "dist")]
        out: PathBuf,
        /// Who builds, as a URI
        #[arg(long, env = "BUILDER_ID")]
        builder: Option<String>,
    },
    /// Pushes the annotated module and prints its digest
    Publish {
        #[command(flatten)]
        place: Place,
        /// The annotated module
        #[arg(long, default_value = "dist/policy.wasm")]
        module: PathBuf,
    },
    /// Pulls and verifies a module and prints its digest
    Pull {
        #[command(flatten)]
        place: Place,
        /// The digest that it must have
        #[arg(long)]
        digest: Option<String>,
        /// Where to write
        #[arg(long, default_value = "dist/pulled.wasm")]
        out: PathBuf,
    },
    /// Writes the controller's image as an OCI layout, its provenance beside it, and prints its digest
    Image {
        /// The static binary for an architecture: amd64=FILE, arm64=FILE
        #[arg(long = "binary", value_name = "ARCHITECTURE=FILE", required = true)]
        binaries: Vec<String>,
        /// A tool that had a part in the binaries: its version is in the provenance
        #[arg(long = "tool")]
        tools: Vec<String>,
        /// Where to write
        #[arg(long, default_value = "dist/image")]
        out: PathBuf,
        /// Who builds, as a URI
        #[arg(long, env = "BUILDER_ID")]
        builder: Option<String>,
    },
    /// Pushes an image and prints its digest
    PublishImage {
        #[command(flatten)]
        place: Place,
        /// The layout
        #[arg(long, default_value = "dist/image")]
        layout: PathBuf,
    },
    /// Pulls and verifies an image and prints its digest
    PullImage {
        #[command(flatten)]
        place: Place,
        /// The digest that it must have
        #[arg(long)]
        digest: Option<String>,
        /// Where to write
        #[arg(long, default_value = "dist/pulled-image")]
        out: PathBuf,
    },
}

#[derive(Args)]
struct Place {
    /// Where it is in a registry: HOST/REPOSITORY:TAG, with @DIGEST to pull
    #[arg(long = "ref", value_name = "REF")]
    reference: String,
    /// Speaks HTTP, for a registry on the same machine
    #[arg(long)]
    plain_http: bool,
}

impl Place {
    async fn registry(&self) -> Result<Registry> {
        Registry::new(&self.reference, if self.plain_http { Transport::Plain } else { Transport::Tls }).await
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { root, command } = Arguments::parse();
    match run(&root, command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("package: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(root: &Path, command: Command) -> Result<()> {
    let digest = match command {
        Command::Module { module, metadata, out, builder } => {
            let source = Source::of(root)?;
            let metadata = bundle::metadata(&metadata, &source.version)?;
            for (name, sum) in bundle::write(&source, &module, &metadata, builder, &out)? {
                println!("{sum}  {}", out.join(name).display());
            }
            return Ok(());
        }
        Command::Publish { place, module } => {
            let bytes = file::read(&module)?;
            let published = module::publish(&place.registry().await?, bytes).await;
            published.with_context(|| module.display().to_string())?
        }
        Command::Pull { place, digest, out } => {
            let pulled = module::pull(&place.registry().await?, digest.as_deref()).await;
            let pulled = pulled.with_context(|| format!("pulling {}", place.reference))?;
            file::write(&out, &pulled.module)?;
            pulled.digest
        }
        Command::Image { binaries, tools, out, builder } => {
            write_image(&Source::of(root)?, &binaries, &tools, builder, &out)?
        }
        Command::PublishImage { place, layout } => {
            image::publish(&place.registry().await?, &Layout::read(&layout)?).await?
        }
        Command::PullImage { place, digest, out } => {
            let pulled = image::pull(&place.registry().await?, digest.as_deref()).await;
            let pulled = pulled.with_context(|| format!("pulling {}", place.reference))?;
            pulled.write(&out)?;
            pulled.digest()
        }
    };
    println!("{digest}");
    Ok(())
}

fn write_image(
    source: &Source,
    binaries: &[String],
    tools: &[String],
    builder: Option<String>,
    out: &Path,
) -> Result<String> {
    let binaries = binaries.iter().map(|binary| {
        let (architecture, path) = binary.split_once('=').context("a binary is ARCHITECTURE=FILE")?;
        Ok((Architecture::from_str(architecture)?, file::read(Path::new(path))?))
    });
    let layout = image::build(source, &binaries.collect::<Result<BTreeMap<_, _>>>()?)?;
    let tools = tools.iter().map(|name| Ok((name.clone(), tool(&source.root, name)?)));
    let build = provenance::Build {
        subjects: BTreeMap::from([(image::BINARY.to_owned(), digest::digits(&layout.digest())?.to_owned())]),
        commands: &["make image"],
        tools: tools.collect::<Result<_>>()?,
        builder,
    };
    let statement = provenance::statement(source, &build)?;
    layout.write(out)?;
    file::write(&out.with_extension("provenance.json"), &statement)?;
    Ok(layout.digest())
}
