//! A client's socket and the place that it takes among all connections, until the very end: a WebSocket keeps its place.
//! Does not wait for ever for a client that reads nothing or next to nothing, and lets a client that still sends read the
//! last answer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::connection_limit::Seat;
use crate::pace::Pace;

/// How long and how much a client may go on sending after its answer. If the socket were closed at once, the system would
/// tell the client of a broken connection, and the answer would be lost on the way.
const LINGER: Duration = Duration::from_secs(2);
const LEFTOVERS: usize = 64 << 20;

/// One connection.
pub(crate) struct Wire<S: Link = TcpStream> {
    /// Always there until it is dropped.
    open: Option<(S, Place)>,
    /// How fast the client takes what it is sent.
    pace: Pace,
    /// The client said all that it will say, or is gone.
    silent: bool,
}

/// A place among all connections and among those of the same address.
pub(crate) type Place = (OwnedSemaphorePermit, Seat);

/// What a connection is made of: a socket, or in tests something that behaves like one.
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

    /// A write that was tried: progress, or one more moment of patience.
    fn tried(
        &mut self,
        context: &mut Context<'_>,
        tried: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let outcome = self.pace.tried(context, tried);
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
        self.tried(context, tried)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = self.stream()?.poll_write_vectored(context, parts);
        self.tried(context, tried)
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

/// Says that nothing more will come, and takes what the client still sends.
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
