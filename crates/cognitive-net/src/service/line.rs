//! One connection, driven by its user: no background task reads or writes, and dropping it closes the socket.
//! HTTP/1.1, one request after the other. Knows no addresses and no limits.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::rt::{Read, Write};
use hyper::{Request, Response};

use crate::llm::segments::Segments;

/// A byte stream: a socket, or TLS on a socket.
pub(crate) trait Carrier: Read + Write + Unpin + Send {}

impl<T: Read + Write + Unpin + Send> Carrier for T {}

/// A request without an answer; it includes the request if nothing of it was sent.
pub(crate) type UnsentRequest = TrySendError<Request<Segments>>;

/// A connection.
pub(crate) struct Line {
    sender: SendRequest<Segments>,
    /// `None` after the connection has ended. Only dropping it returns a request that it never read: see `send`.
    connection: Option<Connection<Box<dyn Carrier>, Segments>>,
}

impl Line {
    /// Starts HTTP over a byte stream.
    pub(crate) async fn connect_over(carrier: Box<dyn Carrier>) -> hyper::Result<Self> {
        let (sender, connection) = handshake(carrier).await?;
        Ok(Self { sender, connection: Some(connection) })
    }

    /// Returns whether the connection accepts a request now. Detects whether the server has closed it since its last
    /// use.
    pub(crate) fn is_free(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Polls the connection. Its errors are delivered to the future that waits for the answer.
    fn drive(&mut self, context: &mut Context<'_>) {
        if self.connection.as_mut().is_some_and(|connection| Pin::new(connection).poll(context).is_ready()) {
            self.connection = None;
        }
    }

    /// Sends a request and waits for the head of its answer. A connection that ends before it read the request must
    /// be dropped, because the drop returns the request.
    pub(crate) async fn send(
        &mut self,
        request: Request<Segments>,
    ) -> Result<Response<Incoming>, UnsentRequest> {
        let mut answer = pin!(self.sender.try_send_request(request));
        std::future::poll_fn(|context| {
            self.drive(context);
            answer.as_mut().poll(context)
        })
        .await
    }

    /// Returns the next bytes of a body on this connection; `None` at its end.
    pub(crate) async fn next(&mut self, body: &mut Incoming) -> hyper::Result<Option<Bytes>> {
        std::future::poll_fn(|context| {
            // The body requests bytes, the connection reads them, and the body returns them.
            if let Poll::Ready(bytes) = poll_bytes(body) {
                return Poll::Ready(bytes);
            }
            self.drive(context);
            poll_bytes(body)
        })
        .await
    }
}

/// Returns the received bytes of a body, without trailers. Only the connection delivers bytes and it wakes its
/// driver, so the body needs no waker.
fn poll_bytes(body: &mut Incoming) -> Poll<hyper::Result<Option<Bytes>>> {
    let mut nobody = Context::from_waker(Waker::noop());
    loop {
        match Pin::new(&mut *body).poll_frame(&mut nobody) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Ok(bytes) = frame.into_data() {
                    return Poll::Ready(Ok(Some(bytes)));
                }
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(None) => return Poll::Ready(Ok(None)),
            Poll::Pending => return Poll::Pending,
        }
    }
}
