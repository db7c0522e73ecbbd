//! TLS for `axum`: handshakes run beside each other, none longer than it may, and no connection lives
//! without being answered.

use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tokio_util::task::AbortOnDropHandle;

use super::metrics::Metrics;

/// What a connection may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections there are at once; further ones wait.
    pub connections: usize,
    /// How long a handshake takes.
    pub handshake: Duration,
    /// How long a connection lives on without an answer being written: a request that never ends, or none.
    /// Longer than an API server keeps its connections, so that it never uses one that is being closed.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 1024, handshake: Duration::from_secs(5), silence: Duration::from_mins(2) }
    }
}

/// Connections that are ready for HTTP.
pub struct TlsListener {
    ready: mpsc::Receiver<(Connection, SocketAddr)>,
    address: SocketAddr,
    _accepting: AbortOnDropHandle<()>,
}

impl TlsListener {
    /// Accepts from `listener` at once.
    ///
    /// # Errors
    /// The socket has no address.
    pub fn new(listener: TcpListener, config: ServerConfig, limits: Limits, metrics: Arc<Metrics>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (sender, ready) = mpsc::channel(1);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let accepting = tokio::spawn(accept(listener, acceptor, limits, metrics, sender));
        Ok(Self { ready, address, _accepting: AbortOnDropHandle::new(accepting) })
    }
}

impl Listener for TlsListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        match self.ready.recv().await {
            Some(ready) => ready,
            // The task that accepts ends with this value only.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

async fn accept(
    mut listener: TcpListener,
    acceptor: TlsAcceptor,
    limits: Limits,
    metrics: Arc<Metrics>,
    ready: mpsc::Sender<(Connection, SocketAddr)>,
) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    // They end with this task.
    let mut handshakes = JoinSet::new();
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        let (stream, address) = Listener::accept(&mut listener).await;
        while handshakes.try_join_next().is_some() {}
        let (acceptor, metrics, ready) = (acceptor.clone(), Arc::clone(&metrics), ready.clone());
        handshakes.spawn(async move {
            match tokio::time::timeout(limits.handshake, shake(acceptor, stream)).await {
                Ok(Ok(stream)) => {
                    // That nobody takes it any more is the end of everything.
                    let _ = ready.send((Connection::new(stream, limits.silence, permit), address)).await;
                }
                Ok(Err(error)) => {
                    metrics.failed_handshake("failed");
                    tracing::debug!(%address, %error, "the handshake failed");
                }
                Err(_) => {
                    metrics.failed_handshake("timed_out");
                    tracing::debug!(%address, "the handshake did not end");
                }
            }
        });
    }
}

async fn shake(acceptor: TlsAcceptor, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    stream.set_nodelay(true)?;
    acceptor.accept(stream).await
}

/// A connection that ends when nothing was answered on it for too long.
pub struct Connection {
    stream: TlsStream<TcpStream>,
    silence: Duration,
    end: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    fn new(stream: TlsStream<TcpStream>, silence: Duration, permit: OwnedSemaphorePermit) -> Self {
        Self { stream, silence, end: Box::pin(sleep(silence)), _permit: permit }
    }

    fn answered(&mut self) {
        self.end.as_mut().reset(Instant::now() + self.silence);
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(1..)) = written {
            self.answered();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
