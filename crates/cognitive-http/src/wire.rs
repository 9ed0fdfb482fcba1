//! A client's socket and the place that it takes among all connections, until the very end: a WebSocket keeps its place.
//! Does not wait for ever for a client that reads nothing or next to nothing, lets a client that still sends read the last
//! answer, and lets no answer out that is no envelope.

use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use memchr::memmem::Finder;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::crowd::Seat;
use crate::pace::Pace;
use crate::unparsed;

/// How long and how much a client may go on sending after its answer. If the socket were closed at once, the system would
/// tell the client of a broken connection, and the answer would be lost on the way.
const LINGER: Duration = Duration::from_secs(2);
const LEFTOVERS: usize = 64 << 20;

/// Finds the header that only files have.
static DISPOSITION: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(b"\r\ncontent-disposition:"));

/// One connection.
pub(crate) struct Wire<S: Link = TcpStream> {
    /// Always there until it is dropped.
    open: Option<(S, Place)>,
    /// How fast the client takes what it is sent.
    pace: Pace,
    /// The client said all that it will say, or is gone.
    silent: bool,
    /// An answer that goes out in place of another, and how much of it has gone.
    instead: Option<(Vec<u8>, usize)>,
    /// Bytes of somebody else's making have been sent. From then on nothing is taken for a refusal of the library: a file
    /// may look like one, and what went out in its place would have another length than was announced.
    foreign: bool,
}

/// A place among all connections and among those of the same address.
pub(crate) type Place = (OwnedSemaphorePermit, Seat);

/// What a connection is made of: a socket, or in tests something that behaves like one.
pub(crate) trait Link: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Link for S {}

impl<S: Link> Wire<S> {
    pub(crate) fn new(stream: S, place: Place, patience: Duration) -> Self {
        let open = Some((stream, place));
        Self { open, pace: Pace::new(patience), silent: false, instead: None, foreign: false }
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

    /// Looks at the beginning of what goes out: only files have a disposition.
    fn notice(&mut self, bytes: &[u8]) {
        self.foreign |= bytes.starts_with(b"HTTP/1.") && DISPOSITION.find(bytes).is_some();
    }

    /// Whether something else goes out in place of these bytes. While it does, the same bytes are offered again.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        if self.instead.is_none() && !self.foreign {
            self.instead = unparsed::instead_of(bytes).map(|text| (text, 0));
        }
        self.instead.is_some()
    }

    fn write_instead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some((text, sent)) = self.instead.take() {
            let Some(rest) = text.get(sent..).filter(|rest| !rest.is_empty()) else { break };
            let tried = self.stream()?.poll_write(context, rest);
            match self.tried(context, tried) {
                Poll::Ready(Ok(count)) => self.instead = Some((text, sent + count)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.instead = Some((text, sent));
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
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
        self.notice(bytes);
        if self.replaces(bytes) {
            return self.write_instead(context).map_ok(|()| bytes.len());
        }
        let tried = self.stream()?.poll_write(context, bytes);
        self.tried(context, tried)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = parts.iter().filter(|part| !part.is_empty());
        let first = filled.next();
        if let Some(first) = first {
            self.notice(first);
        }
        if let (Some(only), None) = (first, filled.next())
            && self.replaces(only)
        {
            return self.write_instead(context).map_ok(|()| only.len());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wire() -> Wire {
        let pace = Pace::new(Duration::ZERO);
        Wire { open: None, pace, silent: false, instead: None, foreign: false }
    }

    // An upload can hold anything. Where connections are shared, a body of another length would reach somebody else.
    #[test]
    fn a_file_that_looks_like_a_refusal_goes_out_as_it_is() {
        let refusal = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        assert!(wire().replaces(refusal));
        let mut wire = wire();
        wire.notice(
            b"HTTP/1.1 200 OK\r\ncontent-disposition: inline; filename=\"a\"\r\ncogn-trace-id: 1\r\n\r\n",
        );
        assert!(!wire.replaces(refusal));
    }
}
