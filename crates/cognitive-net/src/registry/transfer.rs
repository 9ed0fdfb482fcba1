//! Requests to registries and file servers: guarded, with manual redirects, bounded bodies and retries. Reads are
//! retried; writes are sent once. Does not evaluate status or content: the caller gets the answer.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Body, Method, Response, Url};
use tokio::time::{Instant, timeout};

use crate::client::same_place;
use crate::fetch::guard::{GuardError, GuardedClient, redirect_target, transport_refusal};
use crate::fetch::{Reason, Refusal};
use crate::retry::{Pause, RealPause, RetryDecision, retry_after, wait};
use crate::tls::{explain_tls_error, tls_error};

/// The most redirects of an answer: to a storage host, and from there to a nearby mirror.
pub(crate) const MAX_REDIRECTS: usize = 5;
/// The longest time without progress. Without it, a dead connection would never be noticed.
const SILENCE: Duration = Duration::from_secs(30);
/// The total time limit for a small answer. Without it, a server that sends a byte now and then would hold the
/// command.
pub(crate) const SMALL_ANSWER_TIME: Duration = Duration::from_mins(1);
/// The time for any body, and the slowest speed beyond it, in bytes per second. Without them, a server that sends a byte
/// now and then would hold the command.
const BODY_TIME: Duration = Duration::from_mins(5);
const SLOWEST_BODY: u64 = 1024;
/// The most bytes read from an error answer. Only its beginning is shown.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// The most memory reserved for a body based on its announced length. The announcement is untrusted; a larger body
/// grows the buffer while it arrives.
const MAX_ROOM: u64 = 1024 * 1024;
/// The size of the chunks in which a body is sent.
const PIECE: usize = 64 * 1024;
/// The most bytes assumed to be in the system's send buffer after the whole body was written, and the slowest assumed
/// speed, in bytes per second. The buffer is not visible here; the bound keeps the wait after a small body short.
const MAX_IN_FLIGHT: usize = 8 * 1024 * 1024;
const SLOWEST: u64 = 32 * 1024;
/// Retries of a transfer have no deadline.
const NO_HURRY: Duration = Duration::MAX;

/// An HTTP request.
#[derive(Debug, Clone)]
pub(crate) struct WebRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
}

impl WebRequest {
    /// Creates a request without headers and body.
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: None }
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Adds a body.
    pub(crate) fn with_body(mut self, body: Bytes) -> Self {
        self.body = Some(body);
        self
    }
}

/// An HTTP answer.
#[derive(Debug)]
pub(crate) struct WebAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// The URL of the answer, after all redirects.
    pub(crate) url: Url,
}

impl WebAnswer {
    /// Returns a header, if it is text.
    pub(crate) fn header(&self, name: impl reqwest::header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn retry_decision(&self) -> RetryDecision {
        match self.status {
            408 | 425 | 429 | 500..=599 => retry_after(&self.headers, SystemTime::now())
                .map_or(RetryDecision::Later, RetryDecision::After),
            _ => RetryDecision::Never,
        }
    }
}

/// The bound on the length of a body. Applies to successful answers only.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BodyBound {
    /// The body is absent or not read.
    Unread,
    AtMost(u64),
    Exactly(u64),
}

/// The reason for a missing answer.
#[derive(Debug)]
pub(crate) enum Setback {
    /// The guard refused the request, or the connection failed.
    Refused(Refusal),
    /// TLS failed: the reason and a remedy.
    Tls(String, Option<&'static str>),
    /// A proxy variable names no proxy.
    Proxy(String),
    /// The body is longer than this many bytes.
    TooLarge(u64),
    /// The body does not have the expected length.
    Length { expected: u64, found: u64 },
}

impl From<Refusal> for Setback {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Setback {
    fn from_error(error: GuardError, url: &Url) -> Self {
        match error {
            GuardError::Refused(refusal) => Self::Refused(refusal),
            GuardError::Proxy(why) => Self::Proxy(why),
            GuardError::Broken(error) => match tls_error(&error) {
                Some(tls) => {
                    let (why, remedy) = explain_tls_error(tls).unzip();
                    Self::Tls(why.map_or_else(|| tls.to_string(), str::to_owned), remedy)
                }
                None => Self::Refused(transport_refusal(&error, url)),
            },
        }
    }

    /// Only an interrupted connection is retried. A stalled one has already used its time.
    fn retry_decision(&self) -> RetryDecision {
        match self {
            Self::Refused(refusal) if refusal.reason() == Reason::Interrupted => RetryDecision::Later,
            Self::Refused(_) | Self::Tls(..) | Self::Proxy(_) | Self::TooLarge(_) | Self::Length { .. } => {
                RetryDecision::Never
            }
        }
    }
}

/// The sender of requests.
pub(crate) struct Transfer {
    pub(crate) guard: GuardedClient,
    pub(crate) pause: Arc<dyn Pause>,
}

impl Transfer {
    pub(crate) fn new(guard: GuardedClient) -> Self {
        Self { guard, pause: Arc::new(RealPause) }
    }

    /// Sends a read request, follows redirects, and retries transient errors. `total` limits the time for a small
    /// answer; without it, there is no time limit while bytes arrive.
    pub(crate) async fn fetch(
        &self,
        request: &WebRequest,
        bound: BodyBound,
        total: Option<Duration>,
    ) -> Result<WebAnswer, Setback> {
        let mut tries = 0;
        loop {
            let attempt = self.follow(request, bound);
            let outcome = match total {
                Some(total) => timeout(total, attempt).await.unwrap_or_else(|_| Err(too_late(&request.url))),
                None => attempt.await,
            };
            let again = outcome.as_ref().map_or_else(Setback::retry_decision, WebAnswer::retry_decision);
            let Some(pause) = wait(again, tries, NO_HURRY, self.pause.jitter()) else { return outcome };
            tries += 1;
            self.pause.sleep(pause).await;
        }
    }

    /// Sends a write request once. A redirect is returned like any other answer.
    pub(crate) async fn send(&self, request: &WebRequest) -> Result<WebAnswer, Setback> {
        let url = self.guard.admit(request.url.clone())?;
        let response = self.deliver(request, &url).await?;
        read(response, url, BodyBound::AtMost(MAX_ERROR_BODY as u64)).await
    }

    /// Sends a body without a time limit while bytes move. Checks every [`SILENCE`], so an upload that stalls is
    /// aborted within a minute.
    async fn deliver(&self, request: &WebRequest, url: &Url) -> Result<Response, Setback> {
        let sent = Arc::new(AtomicUsize::new(0));
        let left = request.body.clone().unwrap_or_default();
        let length = left.len();
        let body = Body::wrap(MovingBody { left, sent: Arc::clone(&sent) });
        let mut sending =
            pin!(self.guard.send(request.method.clone(), url, request.headers.clone(), Some(body)));
        let mut watch = UploadWatch { length, before: 0, silent: Duration::ZERO };
        loop {
            if let Ok(done) = timeout(SILENCE, sending.as_mut()).await {
                return done.map_err(|error| Setback::from_error(error, url));
            }
            if watch.is_dead(sent.load(Ordering::Relaxed)) {
                return Err(too_late(url));
            }
        }
    }

    async fn follow(&self, request: &WebRequest, bound: BodyBound) -> Result<WebAnswer, Setback> {
        let mut url = self.guard.admit(request.url.clone())?;
        let mut headers = request.headers.clone();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for _ in 0..=MAX_REDIRECTS {
            let asked = self.guard.send(request.method.clone(), &url, headers.clone(), None);
            let response = timeout(SILENCE, asked).await.map_err(|_| too_late(&url))?;
            let response = response.map_err(|error| Setback::from_error(error, &url))?;
            let Some(place) = place_of(&response, &url)? else { return read(response, url, bound).await };
            let place = self.guard.admit(place)?;
            // The header stays removed even after a redirect back, because another host chose the target.
            if !same_place(&url, &place) {
                headers.remove(AUTHORIZATION);
            }
            url = place;
        }
        Err(Refusal::new(Reason::TooManyRedirects, Some(&url)).into())
    }
}

/// Detects a stalled upload. Must be asked after every [`SILENCE`].
struct UploadWatch {
    length: usize,
    /// The number of bytes sent at the last check.
    before: usize,
    silent: Duration,
}

impl UploadWatch {
    /// Returns whether the upload is dead. While bytes are left to send, one interval without progress is enough.
    /// Afterwards the system may still be sending its buffer, and the registry may still be storing the content.
    fn is_dead(&mut self, sent: usize) -> bool {
        self.silent = if sent == self.before { self.silent + SILENCE } else { Duration::ZERO };
        self.before = sent;
        let settling = Duration::from_secs(self.length.min(MAX_IN_FLIGHT) as u64 / SLOWEST);
        !self.silent.is_zero() && (sent < self.length || self.silent > settling)
    }
}

fn too_late(url: &Url) -> Setback {
    Refusal::new(Reason::Timeout, Some(url)).into()
}

/// Returns the target of a redirect; `None` for any other answer.
fn place_of(response: &Response, url: &Url) -> Result<Option<Url>, Refusal> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION).and_then(|place| str::from_utf8(place.as_bytes()).ok());
    location.map(|location| redirect_target(url, location)).transpose()
}

/// Reads a body, and stores at most the allowed number of bytes.
async fn read(mut response: Response, url: Url, bound: BodyBound) -> Result<WebAnswer, Setback> {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    if !response.status().is_success() {
        // An error while reading an error body is ignored.
        while let Ok(Ok(Some(piece))) = timeout(SILENCE, response.chunk()).await {
            let room = MAX_ERROR_BODY.saturating_sub(body.len());
            body.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
            if body.len() >= MAX_ERROR_BODY {
                break;
            }
        }
        return Ok(WebAnswer { status, headers, body, url });
    }
    if headers.get_all(CONTENT_ENCODING).iter().any(|name| name != "identity" && !name.is_empty()) {
        return Err(Refusal::new(Reason::Encoding, Some(&url)).into());
    }
    let announced = response.content_length();
    let (most, exact) = match bound {
        BodyBound::Unread => return Ok(WebAnswer { status, headers, body, url }),
        BodyBound::AtMost(most) => (most, false),
        BodyBound::Exactly(most) => (most, true),
    };
    let wrong =
        |found| if exact { Setback::Length { expected: most, found } } else { Setback::TooLarge(most) };
    if let Some(found) = announced.filter(|found| *found > most || exact && *found != most) {
        return Err(wrong(found));
    }
    body.reserve(usize::try_from(announced.unwrap_or_default().min(MAX_ROOM)).unwrap_or_default());
    let began = Instant::now();
    loop {
        let piece = timeout(SILENCE, response.chunk()).await.map_err(|_| too_late(&url))?;
        if began.elapsed() > BODY_TIME + Duration::from_secs(body.len() as u64 / SLOWEST_BODY) {
            return Err(too_late(&url));
        }
        let Some(piece) = piece.map_err(|error| transport_refusal(&error, &url))? else { break };
        let found = (body.len() as u64).saturating_add(piece.len() as u64);
        if found > most {
            return Err(wrong(found));
        }
        body.extend_from_slice(&piece);
    }
    let found = body.len() as u64;
    if exact && found != most {
        return Err(wrong(found));
    }
    Ok(WebAnswer { status, headers, body, url })
}

/// A body that counts the bytes sent, so that a slow connection is not mistaken for a dead one.
struct MovingBody {
    left: Bytes,
    sent: Arc<AtomicUsize>,
}

impl HttpBody for MovingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.left.len().min(PIECE);
        let piece = self.left.split_to(length);
        self.sent.fetch_add(length, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns after how many checks the watch gives up, if these numbers of bytes were sent.
    fn looks(length: usize, sent: impl IntoIterator<Item = usize>) -> Option<usize> {
        let mut watch = UploadWatch { length, before: 0, silent: Duration::ZERO };
        sent.into_iter().position(|sent| watch.is_dead(sent))
    }

    #[test]
    fn an_upload_may_take_its_time_while_it_moves() {
        let mebibyte = 1024 * 1024;
        // A chunk leaves in every interval, for hours.
        assert_eq!(looks(1_000 * mebibyte, (1..1_000).map(|count| count * mebibyte)), None);
        // No bytes leave, from the start or in the middle.
        assert_eq!(looks(mebibyte, [0]), Some(0));
        assert_eq!(looks(9 * mebibyte, [mebibyte, 2 * mebibyte, 2 * mebibyte]), Some(2));
        // All bytes have left. The time for the answer depends on the length: none for an empty body, four minutes
        // for a long one.
        assert_eq!(looks(0, [0]), Some(0));
        assert_eq!(looks(2, [2; 9]), Some(1));
        assert_eq!(looks(2 * mebibyte, [2 * mebibyte; 99]), Some(3));
        assert_eq!(looks(8 * mebibyte, [8 * mebibyte; 99]), Some(9));
        assert_eq!(looks(800 * mebibyte, [800 * mebibyte; 99]), Some(9));
    }
}
