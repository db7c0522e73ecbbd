//! The controller under test: its library in this process, or its binary.

use std::path::PathBuf;
use std::process::Stdio;

use crate::manifests::Container;
use anyhow::Context as _;
use clap::Parser as _;
use cluster_apiserver::ApiServer;
use statefulset_scheduling_controller::args::Arguments;
use statefulset_scheduling_controller::run::run;
use statefulset_scheduling_core::admission::DEFAULT_CONTROLLER;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How the controller is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum As {
    /// In a task of this process.
    #[default]
    Library,
    /// In a process of its own.
    Binary,
}

/// A controller that runs. Dropping it kills it.
#[derive(Debug)]
pub struct Controller(Running);

#[derive(Debug)]
enum Running {
    Library { shutdown: oneshot::Sender<()>, task: JoinHandle<anyhow::Result<()>> },
    Binary { child: Child, _kubeconfig: Kubeconfig },
}

/// A file that is removed with this.
#[derive(Debug)]
pub(crate) struct Kubeconfig(pub(crate) PathBuf);

impl Kubeconfig {
    /// A file of a name that nothing else has.
    pub(crate) fn write(server: &ApiServer, user: &str) -> anyhow::Result<Self> {
        let unique = format!("statefulset-scheduling-{}-{:x}.kubeconfig", std::process::id(), fastrand::u64(..));
        let file = Self(std::env::temp_dir().join(unique));
        server.write_kubeconfig(user, &file.0)?;
        Ok(file)
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // That it is gone already is as good.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Controller {
    /// Starts it against a server, with these arguments after the usual ones. Its binary is started as its
    /// container is, in an election of which it is the only candidate.
    ///
    /// # Errors
    /// The arguments are not valid, or the binary is not built.
    pub fn start(server: &ApiServer, how: As, container: Container, arguments: &[String]) -> anyhow::Result<Self> {
        let usual = ["--listen=127.0.0.1:0", "--identity=simulated"].map(str::to_owned);
        let arguments = usual.iter().chain(arguments);
        Ok(Self(match how {
            As::Library => {
                let arguments = Arguments::try_parse_from(std::iter::once(&"controller".to_owned()).chain(arguments))?;
                let (shutdown, ended) = oneshot::channel();
                let ended = Box::pin(async move {
                    // That the sender is gone is a reason to end, too.
                    let _ = ended.await;
                });
                Running::Library {
                    shutdown,
                    task: tokio::spawn(run(arguments, server.client_as(DEFAULT_CONTROLLER), ended)),
                }
            }
            As::Binary => {
                let kubeconfig = Kubeconfig::write(server, &container.user)?;
                let program = binary()?;
                let child = Command::new(&program)
                    .args(&container.arguments)
                    .args(arguments)
                    .envs(container.environment)
                    .env("KUBECONFIG", &kubeconfig.0)
                    .env("RUST_LOG", std::env::var("RUST_LOG").unwrap_or_else(|_| "error".to_owned()))
                    .stdin(Stdio::null())
                    .kill_on_drop(true)
                    .spawn()
                    .with_context(|| program.display().to_string())?;
                Running::Binary { child, _kubeconfig: kubeconfig }
            }
        }))
    }

    /// Ends it in good order: a write in hand is finished.
    ///
    /// # Errors
    /// It ended for another reason.
    pub async fn stop(self) -> anyhow::Result<()> {
        match self.0 {
            Running::Library { shutdown, task } => {
                // It may have ended by itself; then the task tells why.
                let _ = shutdown.send(());
                task.await?
            }
            Running::Binary { mut child, .. } => {
                let id = child.id().context("it has ended already")?;
                let killed = Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
                anyhow::ensure!(killed.success(), "the signal cannot be sent");
                let status = child.wait().await?;
                anyhow::ensure!(status.success(), "the controller ended with {status}");
                Ok(())
            }
        }
    }

    /// Ends it as a crash does.
    pub async fn kill(self) {
        match self.0 {
            Running::Library { task, .. } => {
                task.abort();
                // It was aborted.
                let _ = task.await;
            }
            Running::Binary { mut child, .. } => {
                // It may have ended by itself.
                let _ = child.kill().await;
            }
        }
    }
}

/// The controller's binary, which cargo puts beside this one.
pub(crate) fn binary() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let name = format!("statefulset-scheduling-controller{}", std::env::consts::EXE_SUFFIX);
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(&name)).find(|path| path.is_file());
    found.with_context(|| format!("{name} is not built: cargo build -p statefulset-scheduling-controller"))
}
