//! Requests to one service over reusable connections. A connection belongs to the call that uses it. Dropping the
//! call closes its connection, so that the model stops generating.
//! Follows no redirect to another origin, which would receive the key. Bodies are read up to a limit.

mod dial;
mod line;

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cognitive_contract::lock::Lock;
use cognitive_contract::ports::ProviderError;
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HOST, LOCATION, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::client::proxy::matcher::Intercept;
#[cfg(test)]
use hyper_util::client::proxy::matcher::Matcher;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use tokio::time::timeout;

use self::dial::Dialer;
use self::line::Line;
use crate::client::{AGENT, same_place};
use crate::config::Proxies;
use crate::llm::segments::Segments;
use crate::proxy;

/// The longest answer, in bytes: a hundred times the longest output of any model.
pub(crate) const MAX_BODY_LENGTH: usize = 16 * 1024 * 1024;
/// The most bytes read from an error; the important part is at its start.
const MAX_ERROR_LENGTH: usize = 64 * 1024;
/// The longest wait for the rest of an error. The status alone is enough for a message.
const STALLED: Duration = Duration::from_secs(2);
/// The most redirects within one origin, such as to a path with a trailing slash.
const REDIRECTS: usize = 3;
/// The longest time that an idle connection stays open; most services close it sooner.
const IDLE: Duration = Duration::from_secs(90);
/// The most idle connections. Each one occupies a file handle.
const MAX_IDLE: usize = 256;

/// The reason for a missing or incomplete answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// No connection was established in time.
    Late,
    /// The connection failed.
    Unreached(Box<dyn Error + Send + Sync>),
    /// The connection ended before an answer began.
    Unanswered(hyper::Error),
    /// The connection ended in the middle of an answer.
    Broken(hyper::Error),
    /// The answer is longer than this limit.
    TooLong(usize),
}

/// The connections to the origin of one service.
pub(crate) struct Service {
    dialer: Dialer,
    /// The idle connections, most recently used last.
    idle: Lock<VecDeque<(Box<Line>, Instant)>>,
}

/// A URL of a service, with the headers of every request.
#[derive(Clone)]
pub(crate) struct Place {
    url: Url,
    uri: Uri,
    headers: HeaderMap,
}

impl Place {
    /// Returns names and values of the application headers, and whether each is secret. Transport headers are left
    /// out.
    pub(crate) fn application_headers(&self) -> impl Iterator<Item = (String, String, bool)> {
        let carrying = [HOST, ACCEPT, ACCEPT_ENCODING, USER_AGENT, CONTENT_LENGTH, PROXY_AUTHORIZATION];
        let own = self.headers.iter().filter(move |(name, _)| !carrying.contains(name));
        // Values that are not text are not shown.
        own.filter_map(|(name, value)| {
            Some((name.to_string(), value.to_str().ok()?.to_owned(), value.is_sensitive()))
        })
    }
}

impl Service {
    /// Creates a service for this address. Makes no connection.
    pub(crate) fn new(base: &Url, proxies: Proxies) -> Result<Self, ProviderError> {
        let origin = origin(base)?;
        let proxy = match proxies {
            Proxies::OfTheMachine => proxy::system_proxy(&origin)?,
            Proxies::None => None,
        };
        Ok(Self { dialer: Dialer::new(origin, proxy), idle: Lock::default() })
    }

    /// Creates a service behind these proxies.
    #[cfg(test)]
    fn with_proxies(base: &Url, proxies: Option<&Matcher>) -> Result<Self, ProviderError> {
        let origin = origin(base)?;
        let proxy = proxies.and_then(|proxies| proxies.intercept(&origin));
        Ok(Self { dialer: Dialer::new(origin, proxy), idle: Lock::default() })
    }

    /// Creates a place from a URL of this service.
    pub(crate) fn place(&self, url: &Url, headers: &HeaderMap) -> Result<Place, ProviderError> {
        let mut headers = headers.clone();
        headers.insert(HOST, host(url).ok_or_else(unusable)?);
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        // Without this header, a server may compress the answer.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        // A placeholder for the length of each request, so that a copy of the headers does not grow.
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        if let Some(password) = password(url) {
            headers.entry(AUTHORIZATION).or_insert(password);
        }
        let reader = self.dialer.reader();
        if let Some(auth) = reader.and_then(Intercept::basic_auth) {
            headers.insert(PROXY_AUTHORIZATION, auth.clone());
        }
        // The HTTP client reserves room for the length header before it checks whether the header exists.
        headers.reserve(1);
        let mut bare = url.clone();
        bare.set_fragment(None);
        // Both calls fail only for URLs without a host.
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        // A proxy that reads requests needs the absolute URI.
        let uri = match (reader, bare.query()) {
            (Some(_), _) => bare.as_str().parse(),
            (None, None) => bare.path().parse(),
            (None, Some(query)) => format!("{}?{query}", bare.path()).parse(),
        };
        Ok(Place { uri: uri.map_err(|_| unusable())?, url: bare, headers })
    }

    /// Sends a request and waits for the head of its answer. Follows redirects within the service.
    pub(crate) async fn ask(
        &self,
        method: Method,
        place: &Place,
        body: Segments,
    ) -> Result<Answer<'_>, Trouble> {
        let answer = self.ask_once(method.clone(), place, body.clone()).await?;
        match self.redirect_target(place, &answer.head) {
            None => Ok(answer),
            // Rare, and a large future: boxed as in `ask_once`.
            Some(to) => {
                drop(answer);
                Box::pin(self.follow(method, to, body)).await
            }
        }
    }

    /// Sends a request again to the target of a redirect.
    async fn follow(&self, method: Method, mut to: Place, body: Segments) -> Result<Answer<'_>, Trouble> {
        for _ in 1..REDIRECTS {
            let answer = self.ask_once(method.clone(), &to, body.clone()).await?;
            match self.redirect_target(&to, &answer.head) {
                None => return Ok(answer),
                Some(next) => to = next,
            }
        }
        self.ask_once(method, &to, body).await
    }

    async fn ask_once(&self, method: Method, place: &Place, body: Segments) -> Result<Answer<'_>, Trouble> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = place.uri.clone();
        *request.headers_mut() = place.headers.clone();
        let length = request.body().size_hint().exact().filter(|length| *length > 0);
        match (length, request.headers_mut()) {
            (None, headers) => drop(headers.remove(CONTENT_LENGTH)),
            // `insert` would reserve room for another header before it finds the existing one.
            (Some(length), headers) => {
                if let Some(value) = headers.get_mut(CONTENT_LENGTH) {
                    *value = length.into();
                }
            }
        }
        loop {
            let (mut line, is_used) = match self.idle_line() {
                Some(line) => (line, true),
                // Rare, and a large future: boxing it keeps calls on existing connections small.
                None => (Box::pin(self.dialer.dial()).await?, false),
            };
            let mut refusal = match line.send(request).await {
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    return Ok(Answer { service: self, line: Some(line), head, body, left: usize::MAX });
                }
                Err(refusal) => refusal,
            };
            match refusal.take_message().filter(|_| is_used) {
                // The server closed an idle connection, and nothing of the request was sent.
                Some(unsent) => request = unsent,
                None => return Err(Trouble::Unanswered(refusal.into_error())),
            }
        }
    }

    /// Returns the target of a redirect: only within the service, and only if method and body stay the same.
    fn redirect_target(&self, from: &Place, head: &Parts) -> Option<Place> {
        let kept = matches!(head.status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let location = head.headers.get(LOCATION).filter(|_| kept)?.to_str().ok()?;
        let to = from.url.join(location).ok().filter(|to| same_place(&from.url, to))?;
        self.place(&to, &from.headers).ok()
    }

    /// Returns an idle connection. Sending shows whether the server has closed it in the meantime.
    fn idle_line(&self) -> Option<Box<Line>> {
        self.idle().pop_back().map(|(line, _)| line)
    }

    /// Returns the idle connections without expired ones. Idle connections are not polled: a connection closed by the
    /// server occupies a socket until the next call of this function.
    fn idle(&self) -> MutexGuard<'_, VecDeque<(Box<Line>, Instant)>> {
        let mut idle = self.idle.lock();
        let too_many = idle.len().saturating_sub(MAX_IDLE);
        let too_old = idle.iter().take_while(|(_, since)| since.elapsed() >= IDLE).count();
        idle.drain(..too_many.max(too_old));
        idle
    }

    /// Takes a connection back, if it is reusable.
    fn return_line(&self, mut line: Box<Line>) {
        if line.is_free() {
            self.idle().push_back((line, Instant::now()));
        }
    }
}

/// An answer with an unread body.
pub(crate) struct Answer<'a> {
    service: &'a Service,
    line: Option<Box<Line>>,
    head: Parts,
    body: Incoming,
    left: usize,
}

impl Answer<'_> {
    /// Returns the status.
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Returns the headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns the next piece of a body of at most `longest` bytes; `None` at its end. The connection is then
    /// reusable.
    pub(crate) async fn next(&mut self, longest: usize) -> Result<Option<Bytes>, Trouble> {
        let Some(line) = &mut self.line else { return Ok(None) };
        self.left = self.left.min(longest);
        match line.next(&mut self.body).await.map_err(Trouble::Broken)? {
            Some(bytes) => {
                self.left = self.left.checked_sub(bytes.len()).ok_or(Trouble::TooLong(longest))?;
                Ok(Some(bytes))
            }
            None => {
                if let Some(line) = self.line.take() {
                    self.service.return_line(line);
                }
                Ok(None)
            }
        }
    }

    /// Returns the start of an error's body. A body that breaks off, stalls or never ends is returned as far as it
    /// was read.
    pub(crate) async fn beginning(mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Ok(Some(bytes))) = timeout(STALLED, self.next(usize::MAX)).await {
            body.extend_from_slice(&bytes);
            if body.len() >= MAX_ERROR_LENGTH {
                body.truncate(MAX_ERROR_LENGTH);
                break;
            }
        }
        body
    }
}

/// Shows only the host, because a URL may contain a key.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

/// Returns the origin of a URL.
fn origin(base: &Url) -> Result<Uri, ProviderError> {
    base.origin().ascii_serialization().parse().map_err(|_| unusable())
}

fn unusable() -> ProviderError {
    ProviderError::Misconfigured("the address cannot be used".to_owned())
}

/// Returns the value of `Host`, with the port if it is not the default.
fn host(url: &Url) -> Option<HeaderValue> {
    let host = url.host_str()?;
    let text = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    HeaderValue::from_str(&text).ok()
}

/// Returns the `Authorization` value for the user name and password in a URL.
fn password(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let plain = |text| percent_decode_str(text).collect::<Vec<u8>>();
    let both = [plain(url.username()), plain(url.password().unwrap_or_default())].join(&b':');
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(both))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests;
