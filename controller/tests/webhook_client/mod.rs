//! An API server's side of a webhook call: TLS, and HTTP as plain as it can be.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};

/// The name that the certificates are for.
pub(crate) const NAME: &str = "statefulset-scheduling-webhook.statefulset-scheduling-system.svc";

/// A connection to a webhook whose certificate one of the authorities signed.
pub(crate) async fn connect(address: SocketAddr, authorities: &[u8]) -> std::io::Result<TlsStream<TcpStream>> {
    connect_with(address, authorities, &version::TLS13).await
}

/// The same with this version of TLS.
pub(crate) async fn connect_with(
    address: SocketAddr,
    authorities: &[u8],
    version: &'static SupportedProtocolVersion,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        roots.add(certificate.expect("it is PEM")).expect("it is a certificate");
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .expect("there are ciphers")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(NAME).expect("it is a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// The code and the body of the answer to a request, on a connection of its own.
pub(crate) async fn send(
    address: SocketAddr,
    authorities: &[u8],
    method: &str,
    path: &str,
    body: &[u8],
) -> (u16, Vec<u8>) {
    let mut stream = connect(address, authorities).await.expect("it is trusted");
    stream.write_all(head(method, path, body.len()).as_bytes()).await.expect("it is sent");
    // An answer may come before all was read.
    let _ = stream.write_all(body).await;
    receive(&mut stream).await
}

/// The head of a request that is the last on its connection.
pub(crate) fn head(method: &str, path: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    )
}

/// An answer; the code is 0 where there is none.
pub(crate) async fn receive(stream: &mut TlsStream<TcpStream>) -> (u16, Vec<u8>) {
    let mut bytes = Vec::new();
    // That the connection ends without a farewell is no matter: what came, came.
    let _ = stream.read_to_end(&mut bytes).await;
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(head) = head else { return (0, bytes) };
    let body = bytes.split_off(head + 4);
    let code = std::str::from_utf8(&bytes).ok().and_then(|head| head.split(' ').nth(1)?.parse().ok());
    (code.unwrap_or_default(), body)
}

/// The code that a path is answered with, over plain HTTP.
pub(crate) async fn probe(address: SocketAddr, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it is text");
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default()
}
