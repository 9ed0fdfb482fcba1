//! The answer to what cannot be read as a request: no HTTP at all, or more headers than there is room for. Such a request
//! reaches no route; the HTTP library refuses it with a status and nothing else. Here that becomes an envelope.
//! Touches no answer of our own: each of those carries a trace id.

use axum::http::{HeaderMap, StatusCode};
use cognitive_contract::{ErrorCode, Failure};

use crate::answer::routing;
use crate::names;
use crate::trace::Trace;

/// What goes out in place of these bytes, if they are a refusal of the library's own: a head, no body, no trace id.
pub(crate) fn instead_of(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.starts_with(b"HTTP/1.") || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = std::str::from_utf8(bytes).ok()?;
    let status = head.get(9..12)?.parse().ok().and_then(|status: u16| StatusCode::from_u16(status).ok())?;
    let failure = failure(status)?;
    let ours = head.lines().any(|line| line.starts_with("cogn-trace-id:"));
    (!ours && head.matches("\r\n\r\n").count() == 1).then(|| text(status, failure))
}

fn failure(status: StatusCode) -> Option<Failure> {
    match status {
        StatusCode::BAD_REQUEST => Some(
            Failure::new(ErrorCode::ParseError, "this is not a request of HTTP/1.1")
                .suggest("See `GET /openapi.json` for what can be asked"),
        ),
        StatusCode::URI_TOO_LONG => Some(
            Failure::new(ErrorCode::InputTooLarge, "the address is too long")
                .suggest("Send input in the body"),
        ),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Some(too_many_headers()),
        _ => None,
    }
}

/// More headers than are read.
pub(crate) fn too_many_headers() -> Failure {
    Failure::new(ErrorCode::InputTooLarge, "the headers are too many or too long").suggest("Send fewer")
}

fn text(status: StatusCode, failure: Failure) -> Vec<u8> {
    let envelope = failure.into_envelope();
    let body = serde_json::to_vec(&envelope).unwrap_or_default();
    let trace = Trace::of(&HeaderMap::new());
    let mut text = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\n");
    let mut put = |name: &str, value: &str| text.extend([name, ": ", value, "\r\n"]);
    put("content-length", &body.len().to_string());
    put("cache-control", "no-store");
    put("x-content-type-options", "nosniff");
    put(names::RESOURCE_POLICY.as_str(), "same-origin");
    put("traceparent", &trace.parent());
    put("cogn-trace-id", &trace.id);
    for (name, value) in &routing(&envelope, None) {
        put(name.as_str(), value.to_str().unwrap_or_default());
    }
    text.push_str("\r\n");
    [text.as_bytes(), &body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_of_the_library_are_replaced() {
        for (status, code) in [(400, "E1000"), (414, "E1005"), (431, "E1005")] {
            let theirs = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\ndate: now\r\n\r\n");
            let ours = String::from_utf8(instead_of(theirs.as_bytes()).unwrap()).unwrap();
            let (head, body) = ours.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
            assert!(head.contains(&format!("cogn-error-code: {code}")), "{head}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["error"]["code"], code);
        }
        for other in [
            "HTTP/1.1 400 Bad Request\r\ncogn-trace-id: a\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 3\r\n\r\nabc",
            "{\"text\": \"HTTP/1.1 400 \"}",
            "HTTP/1.1 4",
            "",
        ] {
            assert_eq!(instead_of(other.as_bytes()), None, "{other}");
        }
    }
}
