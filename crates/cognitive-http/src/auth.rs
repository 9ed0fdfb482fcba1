//! The guard around all routes: identifies the client, completes the headers of every response, and writes one access
//! log line each. `admission` decides whether the client may proceed.

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use cognitive_contract::{ErrorCode, Failure};
use futures_util::FutureExt;
use tower_service::Service;

use crate::admission::{AdmittedClient, RefusedClient, admit, cookie, is_limited, shown_key, wrong_key};
use crate::app::AppState;
use crate::config::AccessRecord;
use crate::connection_limit::client_network;
use crate::header_names;
use crate::operations::{self, OperationAccess};
use crate::response;
use crate::roles::Roles;
use crate::spans::SpanRequest;
use crate::studio::shared_logins;
use crate::trace::Trace;

/// The client of a request.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The name of the key, or the address.
    pub(crate) name: Arc<str>,
    /// Set if the server has keys and distinguishes its clients by them.
    is_keyed: bool,
    /// The roles of the client.
    pub(crate) roles: Roles,
    /// Set if the client showed a key, is logged in, or the server requires neither.
    pub(crate) is_known: bool,
    /// The address, for limiting attempts to guess keys.
    pub(crate) address: Arc<str>,
    /// Set if the runs per minute of this client are limited.
    pub(crate) is_limited: bool,
    pub(crate) trace: Arc<Trace>,
}

impl Client {
    /// Returns the user whose context is read and stored; `None` for a client without a key. (CTX-032)
    pub(crate) fn user(&self) -> Option<&str> {
        self.is_keyed.then_some(&*self.name)
    }

    /// Returns the owner of this client's uploads. Without keys all local users share one owner; upload ids cannot be
    /// guessed.
    pub(crate) fn uploader(&self) -> &str {
        self.user().unwrap_or(NOBODY)
    }
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: Option<IpAddr>,
    /// The client name for requests without a key.
    pub(crate) name: Arc<str>,
}

impl Peer {
    /// Created once for all requests of a connection.
    pub(crate) fn new(address: Option<IpAddr>) -> Self {
        // Loopback has many addresses but is one client.
        let name =
            address.map(|address| if address.is_loopback() { client_network(address) } else { address });
        Self { address, name: name.map_or_else(|| NOBODY.into(), |name| name.to_string().into()) }
    }

    /// Takes the address from a foreign server that embeds these routes.
    pub(crate) fn from_request(request: &Request) -> Self {
        Self::new(request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip()))
    }
}

/// The owner of all uploads to a server without keys, and the name of a client without an address.
const NOBODY: &str = "local";

/// Checks a request before it reaches its route, and completes the response. Admitted requests go through the router
/// and its layers. CORS preflight requests are answered here, the same for every path.
pub(crate) async fn guard(
    shared: Arc<AppState>,
    mut table: Router,
    peer: Peer,
    mut request: Request,
) -> Response<Body> {
    let started = Instant::now();
    let trace = Arc::new(Trace::from_headers(request.headers()));
    let method = request.method().clone();
    let path = shared.config.log.as_ref().map(|_| request.uri().path().to_owned());
    // Dropped last, so that a request whose client disconnected is logged and counted too.
    let mut line = AccessLine {
        shared: &shared,
        method: &method,
        path,
        client: Arc::clone(&peer.name),
        trace: &trace,
        started,
        status: GONE,
    };
    let unanswered = shared.trace_request(trace.sampled, || SpanRequest {
        trace: Arc::clone(&trace),
        method: method.clone(),
        path: request.uri().path().to_owned(),
        started,
    });
    let origin = request.headers().get(header::ORIGIN).cloned();
    let secret = cookie(&shared, &request);
    let login = match secret {
        Some(secret) => shared_logins::find(&shared, &secret).await,
        None => Ok(None),
    };
    let access = operations::access(&method, request.uri().path());
    let is_open = access == Some(OperationAccess::Open);
    let admitted = match login {
        // Open operations need no login, so a failed lookup does not stop them.
        Err(failure) if !is_open => Err(Box::new(response::failure(failure))),
        login => admit(&shared, &request, (&peer, access), login.unwrap_or_default()),
    };
    let shows_key = admitted.is_err() && shown_key(&request).is_some();
    let mut response = match admitted {
        Ok(AdmittedClient { name, roles, is_known }) => {
            line.client = Arc::clone(&name);
            let is_keyed = !shared.config.keys.is_empty();
            let is_limited = is_limited(&shared, &peer, request.headers());
            let (trace, address) = (Arc::clone(&trace), Arc::clone(&peer.name));
            let client = Arc::new(Client { name, is_keyed, roles, is_known, address, is_limited, trace });
            let answered = async {
                if method == Method::OPTIONS && origin.is_some() {
                    return preflight();
                }
                request.extensions_mut().insert(client);
                let Ok(response) = table.call(request).await;
                response
            };
            // A panic ends this response, not the connection. The state it held is dropped and never used again.
            let response = AssertUnwindSafe(answered).catch_unwind().await;
            response.unwrap_or_else(|_| fault())
        }
        Err(refusal) if refusal.status() == StatusCode::UNAUTHORIZED && shows_key => {
            wrong_key(&shared, &peer.name).await
        }
        Err(mut refusal) => {
            if let Some(RefusedClient(name)) = refusal.extensions_mut().remove() {
                line.client = name;
            }
            *refusal
        }
    };
    complete(&shared, origin.as_ref(), &trace, &mut response);
    line.status = response.status().as_u16();
    drop(line);
    unanswered.trace_response(response)
}

/// The logged status of a request whose client disconnected before the response.
const GONE: u16 = 499;

/// One access log line and one count, written when a request is over: answered, or abandoned by its client.
struct AccessLine<'a> {
    shared: &'a AppState,
    method: &'a Method,
    path: Option<String>,
    client: Arc<str>,
    trace: &'a Trace,
    started: Instant,
    status: u16,
}

impl Drop for AccessLine<'_> {
    fn drop(&mut self) {
        self.shared.metrics.count_response(self.status);
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

/// The headers that a page may read, in addition to the body.
const EXPOSED: &str = "cogn-ok, cogn-confidence, cogn-risk, cogn-tier, cogn-error-code, cogn-trace-id, retry-after, \
                       traceparent, x-cognitive-recovery-session, x-cognitive-warning";

/// Sets the headers that every response has.
fn complete(shared: &AppState, origin: Option<&HeaderValue>, trace: &Trace, response: &mut Response<Body>) {
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
    // Pages of other origins cannot detect this server by loading its resources. Listed origins use CORS, which this
    // header does not affect.
    put(header_names::RESOURCE_POLICY.clone(), Some(HeaderValue::from_static("same-origin")));
    let listed =
        |origin: &&HeaderValue| shared.config.cors.iter().any(|each| each.as_bytes() == origin.as_bytes());
    if let Some(origin) = origin.filter(listed) {
        put(header::ACCESS_CONTROL_ALLOW_ORIGIN, Some(origin.clone()));
        put(header::ACCESS_CONTROL_EXPOSE_HEADERS, Some(HeaderValue::from_static(EXPOSED)));
    }
}
