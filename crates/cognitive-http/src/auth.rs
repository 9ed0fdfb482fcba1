//! Who asks, and whether they may: keys, origins, hosts, and one line in the log for every answer.
//! Lets nothing through that a stranger's web page could send from a user's browser.

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use cognitive_contract::{ErrorCode, Failure};
use futures_util::FutureExt;
use tower_service::Service;

use crate::app::Shared;
use crate::config::{AccessRecord, ApiKey};
use crate::connection_limit::house;
use crate::header_names;
use crate::response;
use crate::spans::Asked;
use crate::trace::Trace;

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The name of a key, else an address.
    pub(crate) name: Arc<str>,
    /// Whether the server has keys, and tells its clients apart by them.
    is_keyed: bool,
    /// Whether its runs per minute are limited.
    pub(crate) is_limited: bool,
    pub(crate) trace: Arc<Trace>,
}

impl Client {
    /// Whose context is read and kept: somebody who was recognised, and nobody else. (CTX-032)
    pub(crate) fn user(&self) -> Option<&str> {
        self.is_keyed.then_some(&*self.name)
    }

    /// Whose uploads are read and kept. Without a key those of whoever uses this machine: their names cannot be guessed.
    pub(crate) fn uploader(&self) -> &str {
        self.user().unwrap_or(NOBODY)
    }
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    address: Option<IpAddr>,
    /// What it is called where it has no key.
    name: Arc<str>,
}

impl Peer {
    /// Made once for all requests of a connection.
    pub(crate) fn new(address: Option<IpAddr>) -> Self {
        // This machine has many addresses and is one client.
        let name = address.map(|address| if address.is_loopback() { house(address) } else { address });
        Self { address, name: name.map_or_else(|| NOBODY.into(), |name| name.to_string().into()) }
    }

    /// Whoever a server that is not ours says it is.
    pub(crate) fn of(request: &Request) -> Self {
        Self::new(request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip()))
    }
}

/// The owner of all uploads to a server without keys, and the name of whoever has no address.
const NOBODY: &str = "local";
/// The subprotocol in which a page may show a key where it cannot set a header, and the one that it gets (`/ws`).
const SHOWN: &str = "cogn.bearer.";

/// Checks a request before it reaches its route, and completes the answer after it. What is let in goes through the router
/// and its layers; only a browser's question whether a page may ask is answered here, for every path alike.
pub(crate) async fn guard(
    shared: Arc<Shared>,
    mut table: Router,
    peer: Peer,
    mut request: Request,
) -> Response<Body> {
    let started = Instant::now();
    let trace = Arc::new(Trace::of(request.headers()));
    let method = request.method().clone();
    let path = shared.config.log.as_ref().map(|_| request.uri().path().to_owned());
    // Dropped last: what the client did not wait for is logged and counted too.
    let mut line = AccessLine {
        shared: &shared,
        method: &method,
        path,
        client: Arc::clone(&peer.name),
        trace: &trace,
        started,
        status: GONE,
    };
    let unanswered = shared.asked(trace.sampled, || Asked {
        trace: Arc::clone(&trace),
        method: method.clone(),
        path: request.uri().path().to_owned(),
        started,
    });
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut response = match admit(&shared, &request, &peer) {
        Ok(name) => {
            line.client = Arc::clone(&name);
            let is_keyed = !shared.config.keys.is_empty();
            let is_limited = is_limited(&shared, &peer, request.headers());
            let trace = Arc::clone(&trace);
            let client = Arc::new(Client { name: Arc::clone(&name), is_keyed, is_limited, trace });
            let answered = async {
                if method == Method::OPTIONS && origin.is_some() {
                    return preflight();
                }
                request.extensions_mut().insert(client);
                let Ok(response) = table.call(request).await;
                response
            };
            // A panic takes this answer, not the connection: what it held is dropped and never seen again.
            let response = AssertUnwindSafe(answered).catch_unwind().await;
            response.unwrap_or_else(|_| fault())
        }
        Err(refusal) => *refusal,
    };
    complete(&shared, origin.as_ref(), &trace, &mut response);
    line.status = response.status().as_u16();
    drop(line);
    unanswered.answered(response)
}

/// What stands in the log for an answer that nobody waited for.
const GONE: u16 = 499;

/// One line of the log and one count, written when a request is over: answered, or left by its client.
struct AccessLine<'a> {
    shared: &'a Shared,
    method: &'a Method,
    path: Option<String>,
    client: Arc<str>,
    trace: &'a Trace,
    started: Instant,
    status: u16,
}

impl Drop for AccessLine<'_> {
    fn drop(&mut self) {
        self.shared.metrics.answered(self.status);
        if let Some((log, path)) = self.shared.config.log.as_ref().zip(self.path.as_ref()) {
            log(&AccessRecord {
                method: self.method.to_string(),
                path: cognitive_contract::text::cut(path, 256).to_owned(),
                status: self.status,
                client: self.client.to_string(),
                trace_id: self.trace.id.clone(),
                latency_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            });
        }
    }
}

fn fault() -> Response<Body> {
    let failure = Failure::new(ErrorCode::InternalError, "internal error of the server");
    response::failure(failure.suggest("Report it with the trace id"))
}

/// The name of the client, or the answer that turns it away.
fn admit(shared: &Shared, request: &Request, peer: &Peer) -> Result<Arc<str>, Box<Response<Body>>> {
    let headers = request.headers();
    well_formed(headers)?;
    if !origin_allowed(headers, &shared.config.cors) {
        let failure = Failure::new(ErrorCode::PermissionDenied, "this web origin may not call the server")
            .suggest("The operator can allow it with `--cors ORIGIN`");
        return Err(Box::new(response::failure(failure)));
    }
    if shared.config.keys.is_empty() {
        if !host_is_local(headers) && peer.address.is_none_or(|address| address.is_loopback()) {
            let failure = Failure::new(ErrorCode::PermissionDenied, "this host name is not allowed")
                .suggest("Use `localhost`, or start it with a key");
            return Err(Box::new(response::failure(failure)));
        }
        return Ok(Arc::clone(&peer.name));
    }
    // Whether the server lives is no secret, and who watches over it has no key. The page for people says nothing of what is
    // here either; it asks for the key, since a browser cannot send one by itself.
    // A browser asks without a key whether a page may send one; only `preflight` answers that.
    let preflight = request.method() == Method::OPTIONS && headers.contains_key(header::ORIGIN);
    let page = matches!(*request.method(), Method::GET | Method::HEAD)
        && matches!(request.uri().path(), "/" | "/docs" | "/docs.js");
    if matches!(request.uri().path(), "/health" | "/ready") || page || preflight {
        return Ok(Arc::clone(&peer.name));
    }
    let shown = bearer(headers).or_else(|| protocol(headers).filter(|_| request.uri().path() == "/ws"));
    shown.and_then(|key| ApiKey::find(&shared.config.keys, key.trim())).map(Arc::from).ok_or_else(|| {
        let failure = Failure::new(ErrorCode::PermissionDenied, "a valid API key is needed")
            .suggest("Send `Authorization: Bearer KEY`");
        let mut response = response::failure_as(StatusCode::UNAUTHORIZED, failure);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Box::new(response)
    })
}

/// Headers by which proxies say for whom they ask.
const FORWARDED: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Whether the runs of whoever sent this are limited. Where the operator has set no limit, whoever uses this machine without
/// a key and without a proxy is the operator; what a proxy hands on may come from anybody.
fn is_limited(shared: &Shared, peer: &Peer, headers: &HeaderMap) -> bool {
    let is_own = shared.config.keys.is_empty() && peer.address.is_some_and(|address| address.is_loopback());
    let is_forwarded = || FORWARDED.iter().any(|name| headers.contains_key(*name));
    shared.config.limit_local_callers || !is_own || is_forwarded()
}

/// All headers together, in bytes. The HTTP library has the same limit, but looks only at what it has not read yet.
const HEADERS: usize = 64 << 10;

/// Refuses what can be read in two ways: more names than one, and a body in a form that nobody here undoes.
fn well_formed(headers: &HeaderMap) -> Result<(), Box<Response<Body>>> {
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if size > HEADERS {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let failure = Failure::new(ErrorCode::InputTooLarge, "the headers are too many or too long")
            .suggest("Send fewer");
        return Err(Box::new(response::failure_as(status, failure)));
    }
    if headers.get_all(header::HOST).iter().nth(1).is_some() {
        let failure = Failure::new(ErrorCode::ParseError, "the request has more than one `Host` header")
            .suggest("Send one");
        return Err(Box::new(response::failure(failure)));
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let plain = |coding: &HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if !codings.all(plain) {
        let failure =
            Failure::new(ErrorCode::ParseError, "the body is sent in a form that is not undone here")
                .suggest("Send it as it is, with `Content-Length` or `Transfer-Encoding: chunked`");
        return Err(Box::new(response::failure_as(StatusCode::NOT_IMPLEMENTED, failure)));
    }
    Ok(())
}

/// The key in `Authorization`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key)
}

/// The key in a subprotocol: all that a page can send with a WebSocket.
fn protocol(headers: &HeaderMap) -> Option<&str> {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    offered.find_map(|each| each.trim().strip_prefix(SHOWN))
}

/// A browser says where a page comes from. Without the header it is no page of somebody else.
fn origin_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let Ok(origin) = origin.to_str() else { return false };
    let own = || {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let (_, after) = origin.split_once("://").unwrap_or_default();
        !after.is_empty() && host.is_some_and(|host| host.eq_ignore_ascii_case(after))
    };
    allowed.iter().any(|each| each == origin) || own()
}

/// Without keys only this machine is served, under the names that only it has: a web page whose name was made to
/// point here still sends its own name.
fn host_is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return true };
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) => (name, port),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    // Whatever else follows a name makes it another one.
    if !port.is_empty() && port.strip_prefix(':').is_none_or(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    let address = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    address || name.eq_ignore_ascii_case("localhost")
}

fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, PUT, DELETE, OPTIONS"),
    );
    let allowed = "authorization, content-type, last-event-id, traceparent, x-cognitive-response-mode, \
                   x-cognitive-session, x-cognitive-recovery-session, x-cognitive-recovery-seq";
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// What a page may read of an answer, besides its body.
const EXPOSED: &str = "cogn-ok, cogn-confidence, cogn-risk, cogn-tier, cogn-error-code, cogn-trace-id, retry-after, \
                       traceparent, x-cognitive-recovery-session, x-cognitive-warning";

/// The headers that every answer has.
fn complete(shared: &Shared, origin: Option<&HeaderValue>, trace: &Trace, response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let of_text = |text: String| HeaderValue::from_maybe_shared(Bytes::from(text)).ok();
    let mut put = |name: HeaderName, value: Option<HeaderValue>| {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    };
    put(header_names::TRACEPARENT.clone(), of_text(trace.parent()));
    put(header_names::TRACE_ID.clone(), of_text(trace.id.clone()));
    put(header::X_CONTENT_TYPE_OPTIONS, Some(HeaderValue::from_static("nosniff")));
    // No page of another origin can tell by what loads that there is a server. Listed pages ask with CORS, which this
    // leaves alone.
    put(header_names::RESOURCE_POLICY.clone(), Some(HeaderValue::from_static("same-origin")));
    let listed =
        |origin: &&HeaderValue| shared.config.cors.iter().any(|each| each.as_bytes() == origin.as_bytes());
    if let Some(origin) = origin.filter(listed) {
        put(header::ACCESS_CONTROL_ALLOW_ORIGIN, Some(origin.clone()));
        put(header::ACCESS_CONTROL_EXPOSE_HEADERS, Some(HeaderValue::from_static(EXPOSED)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn s_19_a_page_of_a_stranger_is_turned_away() {
        let listed = vec!["https://app.example".to_owned()];
        let from = |origin: &str| {
            origin_allowed(&headers(&[("origin", origin), ("host", "localhost:8000")]), &listed)
        };
        assert!(from("https://app.example") && from("http://localhost:8000"));
        assert!(!from("https://evil.example") && !from("null") && !from("https://app.example.evil"));
        assert!(origin_allowed(&HeaderMap::new(), &[]));
        assert!(
            !origin_allowed(&headers(&[("origin", "null"), ("host", "")]), &[]),
            "no name is not our name"
        );
    }

    #[test]
    fn a_name_that_was_made_to_point_here_is_not_ours() {
        let local = |host: &str| host_is_local(&headers(&[("host", host)]));
        assert!(local("127.0.0.1:8000") && local("localhost") && local("[::1]:8000") && local("LOCALHOST:1"));
        for odd in ["[::1]evil.example", "localhost:evil", "127.0.0.1:80:80", "[::1]:", "localhost:99999"] {
            assert!(!local(odd), "{odd}");
        }
        assert!(!local("evil.example:8000") && !local("10.0.0.1") && !local("localhost.evil.example"));
    }
}
