//! A registry that runs on the loopback interface and keeps everything in a folder.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long it may take to start.
const DEADLINE: Duration = Duration::from_secs(30);

/// A running registry; it ends with the test.
pub(crate) struct Server {
    child: Child,
    address: String,
    storage: PathBuf,
}

impl Server {
    /// Starts a registry and waits until it says where it listens: it takes a free port itself.
    pub(crate) fn start(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("a folder");
        let storage = folder.join("storage");
        let config = folder.join("config.yml");
        // Nothing is cached, so that a test can change what is stored.
        let text = format!(
            "version: 0.1\nlog: {{level: info, formatter: text}}\nstorage:\n  filesystem: {{rootdirectory: {:?}}}\n\
             http: {{addr: '127.0.0.1:0', secret: test}}\n",
            storage.display().to_string()
        );
        fs::write(&config, text).expect("a file");
        let mut child = Command::new("docker-registry")
            .arg("serve")
            .arg(&config)
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("docker-registry runs; `make setup` installs it");
        let log = BufReader::new(child.stderr.take().expect("its log"));
        let (said, hear) = mpsc::channel();
        // It reads to the end, or the registry would stop at a full pipe.
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                let told = line.split_once("listening on ").map(|(_, rest)| rest);
                let address = told.and_then(|rest| rest.split([' ', '"', ',']).next()).map(str::to_owned);
                // Nobody listens any more once the address is known.
                let _ = said.send(address.ok_or(line));
            }
        });
        let mut log = Vec::new();
        let address = loop {
            match hear.recv_timeout(DEADLINE) {
                Ok(Ok(address)) => break address,
                Ok(Err(line)) => log.push(line),
                Err(error) => panic!("the registry does not start, {error}: {}", log.join("\n")),
            }
        };
        Self { child, address, storage }
    }

    /// The reference of something in this registry.
    pub(crate) fn reference(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// What is stored under a digest.
    pub(crate) fn blob(&self, digest: &str) -> Vec<u8> {
        fs::read(self.path(digest)).expect("a stored blob")
    }

    /// Puts something else there.
    pub(crate) fn replace(&self, digest: &str, bytes: &[u8]) {
        let path = self.path(digest);
        assert!(path.exists(), "{digest} is not stored");
        fs::write(path, bytes).expect("a file");
    }

    fn path(&self, digest: &str) -> PathBuf {
        let digits = digest.strip_prefix("sha256:").expect("a digest");
        self.storage.join("docker/registry/v2/blobs/sha256").join(&digits[..2]).join(digits).join("data")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to be done then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
