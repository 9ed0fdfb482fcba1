//! One connection, driven by whoever uses it: no task of its own reads or writes behind the caller's back, and dropping it
//! closes the socket. Speaks HTTP/1.1, one request after the other. Knows no addresses and no limits.

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

/// What carries the bytes: a socket, or TLS on one.
pub(crate) trait Carrier: Read + Write + Unpin + Send {}

impl<T: Read + Write + Unpin + Send> Carrier for T {}

/// A request that was not answered, with the request itself if nothing of it was sent.
pub(crate) type Unsent = TrySendError<Request<Segments>>;

/// A connection.
pub(crate) struct Line {
    sender: SendRequest<Segments>,
    /// Gone when it is over. Only then does a request that it never looked at come back: see `send`.
    connection: Option<Connection<Box<dyn Carrier>, Segments>>,
}

impl Line {
    /// Speaks HTTP over what carries bytes.
    pub(crate) async fn over(carrier: Box<dyn Carrier>) -> hyper::Result<Self> {
        let (sender, connection) = handshake(carrier).await?;
        Ok(Self { sender, connection: Some(connection) })
    }

    /// Whether it takes a request now. Sees whether the other side has hung up since it was used last.
    pub(crate) fn is_free(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Lets the connection read and write what it can. What goes wrong is told to whoever waits for an answer.
    fn drive(&mut self, context: &mut Context<'_>) {
        if self.connection.as_mut().is_some_and(|connection| Pin::new(connection).poll(context).is_ready()) {
            self.connection = None;
        }
    }

    /// Sends a request and waits for the head of its answer. A connection that ends before it looked at the request has to
    /// be dropped, because that is what hands the request back.
    pub(crate) async fn send(&mut self, request: Request<Segments>) -> Result<Response<Incoming>, Unsent> {
        let mut answer = pin!(self.sender.try_send_request(request));
        std::future::poll_fn(|context| {
            self.drive(context);
            answer.as_mut().poll(context)
        })
        .await
    }

    /// The next bytes of a body that arrives on it; `None` at its end.
    pub(crate) async fn next(&mut self, body: &mut Incoming) -> hyper::Result<Option<Bytes>> {
        std::future::poll_fn(|context| {
            // The body says that it wants bytes, the connection brings them, the body hands them over.
            if let Poll::Ready(bytes) = arrived(body) {
                return Poll::Ready(bytes);
            }
            self.drive(context);
            arrived(body)
        })
        .await
    }
}

/// What has arrived of a body. Trailers are left out. Only the connection brings bytes, and it wakes whoever drives it, so
/// the body need not wake anybody.
fn arrived(body: &mut Incoming) -> Poll<hyper::Result<Option<Bytes>>> {
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
