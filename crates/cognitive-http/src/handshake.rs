//! The WebSocket handshake: checks the upgrade request and builds its response. Offers no extensions and one
//! subprotocol, which browsers need because a page sends its key as another subprotocol.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

/// The constant that RFC 6455 appends to the client's key.
const SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The subprotocol that is accepted if offered. A key sent as another subprotocol is not sent back.
const PROTOCOL: &str = "cogn";

/// Returns the response that opens a socket, or the status of the refusal.
pub(crate) fn accept(method: &Method, headers: &HeaderMap) -> Result<Response<Body>, StatusCode> {
    if *method != Method::GET {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let names = |name, wanted: &str| words(headers, name).any(|word| word.eq_ignore_ascii_case(wanted));
    let version = headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    let key = headers
        .get(header::SEC_WEBSOCKET_KEY)
        .filter(|_| version && names(header::CONNECTION, "upgrade") && names(header::UPGRADE, "websocket"));
    let key = key.ok_or(StatusCode::BAD_REQUEST)?;
    let proof = STANDARD.encode(Sha1::new().chain_update(key).chain_update(SALT).finalize());
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    answer.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let proof = HeaderValue::try_from(proof).map_err(|_| StatusCode::BAD_REQUEST)?;
    answer.insert(header::SEC_WEBSOCKET_ACCEPT, proof);
    if words(headers, header::SEC_WEBSOCKET_PROTOCOL).any(|word| word == PROTOCOL) {
        answer.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    Ok(response)
}

fn words(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(change: &[(&'static str, &str)]) -> HeaderMap {
        let usual = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        usual.iter().chain(change).map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).fold(
            HeaderMap::new(),
            |mut map, (name, value): (header::HeaderName, HeaderValue)| {
                map.insert(name, value);
                map
            },
        )
    }

    // The example of RFC 6455.
    #[test]
    fn the_answer_proves_that_the_key_was_read() {
        let response = accept(&Method::GET, &headers(&[])).unwrap();
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(!response.headers().contains_key("sec-websocket-protocol"));
        let offered = [("sec-websocket-protocol", "cogn.bearer.secret, cogn")];
        let response = accept(&Method::GET, &headers(&offered)).unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], "cogn");
    }

    #[test]
    fn what_is_no_websocket_is_refused() {
        for odd in [("connection", "close"), ("upgrade", "h2c"), ("sec-websocket-version", "8")] {
            assert_eq!(accept(&Method::GET, &headers(&[odd])).unwrap_err(), 400, "{odd:?}");
        }
        assert_eq!(accept(&Method::HEAD, &headers(&[])).unwrap_err(), 405);
        assert_eq!(accept(&Method::GET, &HeaderMap::new()).unwrap_err(), 400);
    }
}
