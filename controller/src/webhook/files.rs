//! A certificate from files, read again when they change.
//!
//! A Secret's volume changes by the swap of a link. What is compared is what is in the files, every few
//! seconds: they are small, and no kind of change is missed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::certificate::Certificates;
use super::metrics::Metrics;

/// How often the files are looked at.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// The texts of certificate and key, or why they cannot be read.
type Found = Result<(Vec<u8>, Vec<u8>), String>;

/// The files.
pub struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// What was there last, good or bad; a problem is told once.
    seen: Option<Found>,
}

impl Files {
    /// These files.
    pub fn new(certificate: PathBuf, key: PathBuf) -> Self {
        Self { certificate, key, seen: None }
    }

    /// Looks at the files, and loads what is new in them.
    pub fn look(&mut self, certificates: &Certificates, metrics: &Metrics) {
        let now = self.read();
        if self.seen.as_ref() == Some(&now) {
            return;
        }
        let loaded = match &now {
            Ok((certificate, key)) => certificates.load(certificate, key).map_err(|error| error.to_string()),
            Err(error) => Err(error.clone()),
        };
        metrics.certificate(loaded.is_ok());
        match loaded {
            Ok(()) => tracing::info!(file = %self.certificate.display(), "the certificate is loaded"),
            // In the middle of a change the two may be of different ages: the next look finds them in step.
            Err(error) if certificates.is_loaded() => tracing::error!(%error, "the certificate before stays in use"),
            Err(error) => tracing::error!(%error, "there is no certificate yet"),
        }
        self.seen = Some(now);
    }

    // They are small, and on a local disk: no thread of its own is worth it.
    fn read(&self) -> Found {
        let read = |file: &PathBuf| std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()));
        Ok((read(&self.certificate)?, read(&self.key)?))
    }

    /// Looks at the files again and again.
    pub async fn follow(mut self, every: Duration, certificates: Arc<Certificates>, metrics: Arc<Metrics>) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look(&certificates, &metrics);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::issue::{Issued, LIFE, issue};
    use std::time::SystemTime;

    #[test]
    fn a_change_is_loaded_once_and_a_bad_one_is_told_once() {
        let folder = std::env::temp_dir().join(format!("webhook-files-{}-{:x}", std::process::id(), fastrand::u64(..)));
        std::fs::create_dir(&folder).expect("a folder");
        let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
        let (certificates, metrics) = (Certificates::default(), Metrics::default());
        let mut files = Files::new(certificate.clone(), key.clone());
        let mut look = |loaded, refused| {
            // The second look at the same finds nothing to do.
            for _ in 0..2 {
                files.look(&certificates, &metrics);
                assert_eq!((metrics.certificates(true), metrics.certificates(false)), (loaded, refused));
            }
        };
        let issued = || issue("web.ns.svc", SystemTime::now(), LIFE).expect("it can be made");
        let write = |Issued { certificate: text, key: secret, .. }: &Issued| {
            std::fs::write(&certificate, text).and_then(|()| std::fs::write(&key, secret)).expect("they are written");
        };
        look(0, 1);
        let (one, other) = (issued(), issued());
        write(&one);
        look(1, 1);
        std::fs::write(&certificate, &other.certificate).expect("it is written");
        look(1, 2);
        write(&other);
        look(2, 2);
        std::fs::remove_file(&key).expect("it is there");
        look(2, 3);
        assert!(certificates.is_loaded(), "what cannot be read leaves the one before");
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
