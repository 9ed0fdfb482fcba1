//! Decides whether a request is admitted, and as which client: by host, origin, key and login. Refuses everything
//! that a foreign web page could send from a user's browser. Knows no single operation, only the access rule of its
//! route.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use cognitive_contract::{ErrorCode, Failure};

use crate::app::AppState;
use crate::auth::Peer;
use crate::config::ApiKey;
use crate::header_names;
use crate::operations::OperationAccess;
use crate::response;
use crate::roles::Roles;
use crate::studio::logins::{self, Login};

/// The prefix of the subprotocol in which a page sends its key to `/ws`, since it cannot set a header there.
const SHOWN: &str = "cogn.bearer.";

/// An admitted client.
pub(crate) struct AdmittedClient {
    /// The name of the key, or the address.
    pub(crate) name: Arc<str>,
    pub(crate) roles: Roles,
    /// Set if the client showed a key, is logged in, or the server requires neither.
    pub(crate) is_known: bool,
}

/// The name of a known client whose request is refused, for the access log.
#[derive(Clone)]
pub(crate) struct RefusedClient(pub(crate) Arc<str>);

/// Returns the admitted client of an operation with this access rule, or the response that refuses it.
pub(crate) fn admit(
    shared: &AppState,
    request: &Request,
    (peer, access): (&Peer, Option<OperationAccess>),
    login: Option<Login>,
) -> Result<AdmittedClient, Box<Response<Body>>> {
    let headers = request.headers();
    well_formed(headers)?;
    if !origin_allowed(headers, &shared.config.cors) {
        let failure = Failure::new(ErrorCode::PermissionDenied, "this web origin may not call the server")
            .suggest("The operator can allow it with `--cors ORIGIN`");
        return Err(Box::new(response::failure(failure)));
    }
    let method = request.method();
    if shared.config.keys.is_empty() {
        if !host_is_local(headers) && peer.address.is_none_or(|address| address.is_loopback()) {
            let failure = Failure::new(ErrorCode::PermissionDenied, "this host name is not allowed")
                .suggest("Use `localhost`, or start the server with a key");
            return Err(Box::new(response::failure(failure)));
        }
        let is_foreign = is_foreign_page(headers);
        if is_foreign && shows_past_runs(access) {
            let failure =
                Failure::new(ErrorCode::PermissionDenied, "a page of another origin may not read past runs")
                    .suggest("Open the page of this server, or start the server with keys");
            return Err(Box::new(response::failure(failure)));
        }
        let roles = if is_foreign { Roles::USUAL } else { Roles::ALL };
        return within_roles(access, AdmittedClient { name: Arc::clone(&peer.name), roles, is_known: true });
    }
    // Preflight requests of browsers carry no key; only `preflight` answers them.
    let is_preflight = *method == Method::OPTIONS && headers.contains_key(header::ORIGIN);
    let known = if is_preflight { None } else { identify_client(shared, request, login)? };
    match known {
        Some(admitted) => within_roles(access, admitted),
        None if is_preflight || access == Some(OperationAccess::Open) => {
            Ok(AdmittedClient { name: Arc::clone(&peer.name), roles: Roles::NONE, is_known: false })
        }
        None => Err(Box::new(unknown_client())),
    }
}

/// Admits a client that has the role of the operation.
fn within_roles(
    access: Option<OperationAccess>,
    admitted: AdmittedClient,
) -> Result<AdmittedClient, Box<Response<Body>>> {
    match access {
        Some(OperationAccess::Role(role) | OperationAccess::History(role)) => match admitted.roles.need(role)
        {
            Ok(()) => Ok(admitted),
            Err(failure) => {
                let mut refusal = response::failure(failure);
                refusal.extensions_mut().insert(RefusedClient(admitted.name));
                Err(Box::new(refusal))
            }
        },
        // A path without an operation is answered with 404.
        None | Some(OperationAccess::Open | OperationAccess::Known | OperationAccess::KnownHistory) => {
            Ok(admitted)
        }
    }
}

/// Returns whether a request to a server without keys comes from a page of another origin. The operator listed that
/// origin so that it can run modules. The page may neither change them nor see past runs, which all callers of this
/// machine share.
fn is_foreign_page(headers: &HeaderMap) -> bool {
    headers.get(header::ORIGIN).is_some_and(|origin| !is_own_origin(headers, origin))
}

fn shows_past_runs(access: Option<OperationAccess>) -> bool {
    match access {
        Some(OperationAccess::History(_) | OperationAccess::KnownHistory) => true,
        Some(OperationAccess::Open | OperationAccess::Known | OperationAccess::Role(_)) | None => false,
    }
}

/// The response to a client without a valid key.
pub(crate) fn unknown_client() -> Response<Body> {
    let failure = Failure::new(ErrorCode::PermissionDenied, "a valid API key is required")
        .suggest("Send `Authorization: Bearer KEY`");
    let mut response = response::failure_as(StatusCode::UNAUTHORIZED, failure);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Answers a wrong key: at once, and after many from one address with a delay.
pub(crate) async fn wrong_key(shared: &AppState, address: &str) -> Response<Body> {
    if let Some(pause) = shared.logins.wrong_key(address, Instant::now()) {
        tokio::time::sleep(pause).await;
    }
    unknown_client()
}

/// Returns the holder of the key or the cookie of a request. A key takes precedence over a cookie. A cookie never
/// opens a WebSocket and is ignored for agents.
fn identify_client(
    shared: &AppState,
    request: &Request,
    login: Option<Login>,
) -> Result<Option<AdmittedClient>, Box<Response<Body>>> {
    if let Some(shown) = shown_key(request) {
        let keys = shared.keys();
        return Ok(ApiKey::find(&keys, shown.trim()).map(|key| AdmittedClient {
            name: key.name.as_str().into(),
            roles: key.roles,
            is_known: true,
        }));
    }
    let Some(login) = login else { return Ok(None) };
    if !is_of_our_page(request) {
        let failure = Failure::new(
            ErrorCode::PermissionDenied,
            "a login is valid only for requests of this server's own page",
        )
        .suggest("Send `Authorization: Bearer KEY` instead of the cookie");
        return Err(Box::new(response::failure(failure)));
    }
    Ok(Some(AdmittedClient { name: login.name, roles: login.roles, is_known: true }))
}

/// Returns the key that a request shows.
pub(crate) fn shown_key(request: &Request) -> Option<&str> {
    let headers = request.headers();
    bearer(headers).or_else(|| protocol(headers).filter(|_| request.uri().path() == "/ws"))
}

/// Returns the cookie of a request that is authenticated by it.
pub(crate) fn cookie(shared: &AppState, request: &Request) -> Option<String> {
    let is_for_pages = !matches!(request.uri().path(), "/ws" | "/mcp");
    let counts = is_for_pages && !shared.config.keys.is_empty() && shown_key(request).is_none();
    logins::cookie_secret(request.headers()).filter(|_| counts).map(str::to_owned)
}

/// Returns whether a request with a login cookie was sent by our own page. Reads may come from anywhere, since no
/// other page sees the response. A page of another site cannot set the header without a preflight. The origin
/// reported by the browser is a second check.
fn is_of_our_page(request: &Request) -> bool {
    let headers = request.headers();
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return true;
    }
    let is_marked = headers.get(&header_names::STUDIO).is_some_and(|value| value == "1");
    let fetched = headers.get(&header_names::FETCH_SITE).map(|site| site == "same-origin");
    let origin = headers.get(header::ORIGIN).map(|origin| is_own_origin(headers, origin));
    is_marked && (fetched.or(origin) == Some(true)) && origin != Some(false)
}

/// Headers that proxies use to name the original client.
const FORWARDED: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Returns whether the runs of this client are limited. Without a configured limit, a local client without key and
/// proxy is the operator and is not limited. A proxied request may come from any client.
pub(crate) fn is_limited(shared: &AppState, peer: &Peer, headers: &HeaderMap) -> bool {
    let is_own = shared.config.keys.is_empty() && peer.address.is_some_and(|address| address.is_loopback());
    let is_forwarded = || FORWARDED.iter().any(|name| headers.contains_key(*name));
    shared.config.limit_local_callers || !is_own || is_forwarded()
}

/// The size limit of all headers, in bytes. The HTTP library has the same limit, but checks only bytes that it has
/// not read yet.
const HEADERS: usize = 64 << 10;

/// Refuses ambiguous requests: several `Host` headers, or a transfer coding that is not supported.
fn well_formed(headers: &HeaderMap) -> Result<(), Box<Response<Body>>> {
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if size > HEADERS {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let failure =
            Failure::new(ErrorCode::InputTooLarge, "the request has too many headers, or they are too long")
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
        let failure = Failure::new(ErrorCode::ParseError, "unsupported content encoding of the body")
            .suggest("Send it without encoding, with `Content-Length` or `Transfer-Encoding: chunked`");
        return Err(Box::new(response::failure_as(StatusCode::NOT_IMPLEMENTED, failure)));
    }
    Ok(())
}

/// Returns the key in `Authorization`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key)
}

/// Returns the key in a subprotocol, the only place where a page can send it with a WebSocket.
fn protocol(headers: &HeaderMap) -> Option<&str> {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    offered.find_map(|each| each.trim().strip_prefix(SHOWN))
}

/// Browsers send the origin of a page. A request without one comes from no page of another origin.
fn origin_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    allowed.iter().any(|each| each.as_bytes() == origin.as_bytes()) || is_own_origin(headers, origin)
}

/// Returns whether a page comes from this server.
fn is_own_origin(headers: &HeaderMap, origin: &HeaderValue) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let (_, after) = origin.to_str().ok().and_then(|origin| origin.split_once("://")).unwrap_or_default();
    !after.is_empty() && host.is_some_and(|host| host.eq_ignore_ascii_case(after))
}

/// Without keys only this machine is served, and only under its local names. A web page whose domain resolves to this
/// machine still sends its own name (DNS rebinding).
pub(crate) fn host_is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return true };
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) => (name, port),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    // Any other suffix makes it another name.
    if !port.is_empty() && port.strip_prefix(':').is_none_or(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    let address = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    address || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod table_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_page_of_a_stranger_is_turned_away() {
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
