//! The certificate that is presented, and how connections are made safe.

use std::sync::{Arc, PoisonError, RwLock};

use thiserror::Error;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{Error, ServerConfig};

/// Why a certificate and a key cannot be used.
#[derive(Debug, Error)]
pub enum BadPair {
    /// There is no certificate.
    #[error("there is no certificate in the file")]
    NoCertificate,
    /// They are no PEM.
    #[error("the certificate or its key is no PEM: {0}")]
    Pem(#[from] pem::Error),
    /// The key cannot be used, or is another certificate's.
    #[error("the certificate and its key cannot be used: {0}")]
    Tls(#[from] Error),
}

/// The certificate that is presented to whoever connects.
#[derive(Debug, Default)]
pub struct Certificates(RwLock<Option<Arc<CertifiedKey>>>);

impl Certificates {
    /// Presents a certificate from now on, and from the next connection. One that cannot be used changes
    /// nothing.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn load(&self, certificate: &[u8], key: &[u8]) -> Result<(), BadPair> {
        let pair = pair(certificate, key)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(pair));
        Ok(())
    }

    /// Whether there is one.
    pub fn is_loaded(&self) -> bool {
        self.current().is_some()
    }

    fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
    }
}

/// Reads a certificate chain and its key, and compares them.
///
/// # Errors
/// Why they cannot be used.
pub fn pair(certificate: &[u8], key: &[u8]) -> Result<CertifiedKey, BadPair> {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>()?;
    if chain.is_empty() {
        return Err(BadPair::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key)?;
    Ok(CertifiedKey::from_der(chain, key, &ring::default_provider())?)
}

/// TLS 1.2 and newer, with these certificates.
///
/// # Errors
/// The provider has no ciphers for them.
pub fn server_config(certificates: Arc<Certificates>) -> Result<ServerConfig, Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS13, &TLS12])?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::issue::{LIFE, issue};
    use std::time::SystemTime;

    #[test]
    fn a_pair_that_cannot_be_used_leaves_the_one_before() {
        let issued = || issue("web.ns.svc", SystemTime::now(), LIFE).expect("it can be made");
        let (one, other) = (issued(), issued());
        let certificates = Certificates::default();
        assert!(!certificates.is_loaded());
        for (certificate, key) in [
            ("", &*one.key),
            ("x", "y"),
            (&*one.certificate, ""),
            (&*one.certificate, &*other.key),
            (&*one.key, &*one.key),
        ] {
            assert!(certificates.load(certificate.as_bytes(), key.as_bytes()).is_err());
            assert!(!certificates.is_loaded());
        }
        certificates.load(one.certificate.as_bytes(), one.key.as_bytes()).expect("they belong together");
        let before = certificates.current();
        assert!(certificates.load(other.certificate.as_bytes(), one.key.as_bytes()).is_err());
        let same = before.zip(certificates.current()).is_some_and(|(before, now)| Arc::ptr_eq(&before, &now));
        assert!(same);
    }
}
