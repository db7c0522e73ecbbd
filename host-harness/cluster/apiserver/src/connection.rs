//! TCP connections that can be closed from outside, without an answer.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use futures::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// The switch of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    cut: AtomicBool,
    task: AtomicWaker,
}

impl Line {
    /// Closes the connection: nothing more is read or written.
    pub(crate) fn cut(&self) {
        self.0.cut.store(true, Ordering::Release);
        self.0.task.wake();
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.0.cut.load(Ordering::Acquire)
    }

    /// Fails if cut, and otherwise has the task woken when that happens.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        self.0.task.register(context.waker());
        if self.is_cut() { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

/// The connections that are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<Weak<Switch>>>>);

impl Lines {
    fn open(&self) -> Line {
        let line = Line::default();
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Forgets the closed ones only when it has to grow anyway.
        if lines.len() == lines.capacity() {
            lines.retain(|line| line.strong_count() > 0);
        }
        lines.push(Arc::downgrade(&line.0));
        line
    }

    pub(crate) fn cut_all(&self) {
        let lines = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        lines.iter().filter_map(Weak::upgrade).for_each(|switch| Line(switch).cut());
    }
}

/// A stream with its switch.
pub(crate) struct Stream {
    tcp: TcpStream,
    line: Line,
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.line.check(cx)?;
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.line.check(cx)?;
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.line.check(cx)?;
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.line.check(cx)?;
        Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }
}

/// Accepts connections and remembers their switches.
pub(crate) struct Door {
    pub(crate) tcp: TcpListener,
    pub(crate) lines: Lines,
}

impl Listener for Door {
    type Io = Stream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Stream, SocketAddr) {
        let (tcp, address) = Listener::accept(&mut self.tcp).await;
        // Without it a short answer may wait for the acknowledgement of the one before. A connection
        // on which this fails is already dead.
        let _ = tcp.set_nodelay(true);
        (Stream { tcp, line: self.lines.open() }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

impl Connected<IncomingStream<'_, Door>> for Line {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        stream.io().line.clone()
    }
}
