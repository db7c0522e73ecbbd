//! A place in a registry.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use docker_credential::{CredentialRetrievalError, DockerCredential};
use futures::TryStreamExt as _;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};

use crate::digest;
use crate::spec::{Descriptor, INDEX, MANIFEST};

/// More than any blob of this repository has: what a registry says of a size is not believed beyond it.
const MAX_BLOB: u64 = 256 * 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// How a registry is reached.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Transport {
    /// HTTPS.
    #[default]
    Tls,
    /// HTTP, for a registry on the same machine.
    Plain,
}

/// A place in a registry: a repository with a tag or a digest.
pub struct Registry {
    client: Client,
    auth: RegistryAuth,
    reference: Reference,
}

impl Registry {
    /// The place that a reference names. The credentials are those of `REGISTRY_USERNAME` and `REGISTRY_PASSWORD`, or
    /// those that `docker login` left.
    ///
    /// # Errors
    /// It is no reference, or the credentials cannot be read.
    pub async fn new(reference: &str, transport: Transport) -> Result<Self> {
        let reference: Reference = reference.parse().with_context(|| format!("{reference:?} is no reference"))?;
        let name = reference.resolve_registry();
        let auth = auth(name)?;
        // Only the first one counts, and they are all the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = ClientConfig {
            protocol: match transport {
                Transport::Tls => ClientProtocol::Https,
                Transport::Plain => ClientProtocol::Http,
            },
            connect_timeout: Some(CONNECT_TIMEOUT),
            read_timeout: Some(READ_TIMEOUT),
            ..ClientConfig::default()
        };
        let client = Client::try_from(config)?;
        client.store_auth_if_needed(name, &auth).await;
        Ok(Self { client, auth, reference })
    }

    /// The digest that the reference itself names.
    pub fn digest(&self) -> Option<&str> {
        self.reference.digest()
    }

    /// Stores a blob.
    ///
    /// # Errors
    /// The registry does not take it.
    pub async fn push_blob(&self, bytes: Vec<u8>) -> Result<()> {
        let digest = digest::sha256(&bytes);
        let pushed = self.client.push_blob(&self.reference, bytes, &digest).await;
        pushed.with_context(|| format!("pushing the blob {digest}"))?;
        Ok(())
    }

    /// Stores a manifest or an index under its digest.
    ///
    /// # Errors
    /// The registry does not take it.
    pub async fn push_by_digest(&self, bytes: Vec<u8>, media_type: &'static str) -> Result<()> {
        let reference = self.reference.clone_with_digest(digest::sha256(&bytes));
        self.push_manifest(&reference, bytes, media_type).await
    }

    /// Stores a manifest or an index under the tag, reads it back, and tells its digest.
    ///
    /// # Errors
    /// The registry does not take it, or does not give it back.
    pub async fn push(&self, bytes: Vec<u8>, media_type: &'static str) -> Result<String> {
        ensure!(self.reference.digest().is_none(), "a reference to push to has a tag and no digest");
        let digest = digest::sha256(&bytes);
        self.push_manifest(&self.reference, bytes, media_type).await?;
        self.pull(Some(&digest)).await?;
        Ok(digest)
    }

    async fn push_manifest(&self, to: &Reference, bytes: Vec<u8>, media_type: &'static str) -> Result<()> {
        let media_type = media_type.parse().context("a media type")?;
        let pushed = self.client.push_manifest_raw(to, bytes, media_type).await;
        pushed.with_context(|| format!("pushing the manifest {to}"))?;
        Ok(())
    }

    /// The manifest or index that the reference names; with `digest`, no other than this one.
    ///
    /// # Errors
    /// The registry does not have it, or has another one.
    pub async fn pull(&self, digest: Option<&str>) -> Result<Vec<u8>> {
        let bytes = self.manifest(&self.reference).await?;
        let actual = digest::sha256(&bytes);
        for expected in [digest, self.digest()].into_iter().flatten() {
            digest::digits(expected)?;
            ensure!(actual == expected, "{}: its digest is {actual} instead of {expected}", self.reference);
        }
        Ok(bytes)
    }

    /// The manifest that an index describes.
    ///
    /// # Errors
    /// The registry does not have it.
    pub async fn pull_described(&self, descriptor: &Descriptor) -> Result<Vec<u8>> {
        digest::digits(&descriptor.digest)?;
        let bytes = self.manifest(&self.reference.clone_with_digest(descriptor.digest.clone())).await?;
        descriptor.verify("the manifest", &bytes)?;
        Ok(bytes)
    }

    async fn manifest(&self, reference: &Reference) -> Result<Vec<u8>> {
        let pulled = self.client.pull_manifest_raw(reference, &self.auth, &[MANIFEST, INDEX]).await;
        let (bytes, _) = pulled.with_context(|| format!("pulling the manifest {reference}"))?;
        Ok(bytes.to_vec())
    }

    /// A blob, with the size and the digest that were said of it.
    ///
    /// # Errors
    /// The registry does not have it, or sends something else.
    pub async fn pull_blob(&self, what: &str, descriptor: &Descriptor) -> Result<Vec<u8>> {
        let Descriptor { digest, size, .. } = descriptor;
        digest::digits(digest)?;
        ensure!(*size <= MAX_BLOB, "{what} {digest}: {size} bytes, more than {MAX_BLOB}");
        let mut bytes = Vec::new();
        let pulled = self.client.pull_blob_stream(&self.reference, digest.as_str()).await;
        let mut stream = pulled.with_context(|| format!("pulling {what} {digest}"))?;
        loop {
            // The stream compares the digest when it ends; a wrong size is the better thing to tell.
            match stream.try_next().await {
                Ok(Some(part)) => bytes.extend_from_slice(&part),
                Ok(None) => break,
                Err(_) if bytes.len() as u64 == *size => break,
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("{what} {digest}: {} bytes instead of {size}", bytes.len()));
                }
            }
            if bytes.len() as u64 > *size {
                bail!("{what} {digest}: more bytes than {size}");
            }
        }
        descriptor.verify(what, &bytes)?;
        Ok(bytes)
    }
}

fn auth(registry: &str) -> Result<RegistryAuth> {
    if let (Ok(user), Ok(password)) = (std::env::var("REGISTRY_USERNAME"), std::env::var("REGISTRY_PASSWORD")) {
        return Ok(RegistryAuth::Basic(user, password));
    }
    match docker_credential::get_credential(registry) {
        Ok(DockerCredential::UsernamePassword(user, password)) => Ok(RegistryAuth::Basic(user, password)),
        Ok(DockerCredential::IdentityToken(_)) => bail!("{registry}: an identity token is no password to log in with"),
        // Many registries are public.
        Err(
            CredentialRetrievalError::ConfigNotFound
            | CredentialRetrievalError::ConfigReadError
            | CredentialRetrievalError::NoCredentialConfigured,
        ) => Ok(RegistryAuth::Anonymous),
        Err(error) => Err(error).with_context(|| format!("the credentials for {registry}")),
    }
}
