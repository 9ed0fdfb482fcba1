//! A client's socket and its permit among all connections, which a WebSocket keeps until it closes. Disconnects
//! clients that read too slowly, and lets a client that still sends read the last response.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::connection_limit::ConnectionPermit;
use crate::pace::Pace;

/// The limits of time and size for a client that still sends after its response. Closing the socket at once would
/// reset the connection, and the response would be lost.
const LINGER: Duration = Duration::from_secs(2);
const LEFTOVERS: usize = 64 << 20;

/// One connection.
pub(crate) struct Wire<S: Link = TcpStream> {
    /// Set until the connection is dropped.
    open: Option<(S, Place)>,
    /// Tracks how fast the client reads.
    pace: Pace,
    /// Set when the client has sent everything or is gone.
    silent: bool,
}

/// A permit among all connections, and one among those of the same address.
pub(crate) type Place = (OwnedSemaphorePermit, ConnectionPermit);

/// The transport of a connection: a socket, or a substitute in tests.
pub(crate) trait Link: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Link for S {}

impl<S: Link> Wire<S> {
    pub(crate) fn new(stream: S, place: Place, patience: Duration) -> Self {
        Self { open: Some((stream, place)), pace: Pace::new(patience), silent: false }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut S>> {
        let closed = || io::Error::from(io::ErrorKind::NotConnected);
        self.open.as_mut().map(|(stream, _)| Pin::new(stream)).ok_or_else(closed)
    }

    /// Handles the outcome of a write: records progress or checks the deadline.
    fn record_write(
        &mut self,
        context: &mut Context<'_>,
        tried: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let outcome = self.pace.record_write(context, tried);
        self.silent |= matches!(&outcome, Poll::Ready(Err(_)));
        outcome
    }
}

impl<S: Link> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.remaining();
        let read = self.stream()?.poll_read(context, buffer);
        let nothing = before > 0 && buffer.remaining() == before;
        self.silent |= matches!(&read, Poll::Ready(outcome) if outcome.is_err() || nothing);
        read
    }
}

impl<S: Link> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = self.stream()?.poll_write(context, bytes);
        self.record_write(context, tried)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = self.stream()?.poll_write_vectored(context, parts);
        self.record_write(context, tried)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }
}

impl<S: Link> Drop for Wire<S> {
    fn drop(&mut self) {
        let Some((stream, place)) = self.open.take().filter(|_| !self.silent) else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(LINGER, leave(stream)).await;
                drop(place);
            });
        }
    }
}

/// Shuts down the writing side and discards what the client still sends.
async fn leave(mut stream: impl Link) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut bin = vec![0; 16 << 10];
    let mut taken = 0;
    while taken < LEFTOVERS {
        match stream.read(&mut bin).await {
            Ok(0) | Err(_) => return,
            Ok(count) => taken += count,
        }
    }
}
