//! W3C trace context: the trace id that a caller sends, and the one in the response (S-05). Ignores everything that
//! does not match the published format exactly.

use axum::http::HeaderMap;
use cognitive_runtime::ids::{span_id, unique_number};
use uuid::{Builder, Uuid};

use crate::header_names;

/// The length of a `traceparent`.
const LENGTH: usize = 55;

/// The trace of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    /// The trace id: 32 hex digits if the caller sent it, otherwise a UUID.
    pub(crate) id: String,
    /// True if the caller sent the trace id.
    pub(crate) brought: bool,
    /// The span of the caller that is the parent of this request.
    pub(crate) caller: Option<String>,
    /// The span of this request: 16 hex digits.
    pub(crate) span: String,
    /// True if the caller samples the trace.
    pub(crate) sampled: bool,
}

impl Trace {
    /// Returns the caller's trace, or a new one.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let brought = headers.get(&header_names::TRACEPARENT).and_then(|value| value.to_str().ok());
        brought.and_then(Self::parse).unwrap_or_else(|| {
            let id = Builder::from_random_bytes(unique_number().to_be_bytes()).into_uuid();
            Self {
                id: id.hyphenated().encode_lower(&mut Uuid::encode_buffer()).to_owned(),
                brought: false,
                caller: None,
                span: span_id(),
                sampled: true,
            }
        })
    }

    /// Parses a `traceparent`; `None` if it is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = parse(text)?.to_owned();
        let mut parts = text.split('-').skip(2);
        let caller = parts.next().map(str::to_owned);
        let flags = parts.next().and_then(|flags| u8::from_str_radix(flags, 16).ok()).unwrap_or(1);
        let span = span_id();
        Some(Self { id, brought: true, caller, span, sampled: flags & 1 == 1 })
    }

    /// Returns the trace id as 32 hex digits.
    pub(crate) fn hex(&self) -> String {
        self.id.replace('-', "")
    }

    /// Returns the `traceparent` of this request's span.
    pub(crate) fn parent(&self) -> String {
        let mut text = String::with_capacity(LENGTH);
        text.push_str("00-");
        text.extend(self.id.split('-'));
        text.extend(["-", &self.span, if self.sampled { "-01" } else { "-00" }]);
        text
    }
}

/// Returns the trace id of a `traceparent` of version 00, or of a later version that starts with the same fields.
pub(crate) fn parse(text: &str) -> Option<&str> {
    let mut parts = text.split('-');
    let (version, id, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hex = |part: &str, length: usize| {
        part.len() == length
            && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let shaped = hex(version, 2) && version != "ff" && hex(id, 32) && hex(span, 16) && hex(flags, 2);
    let closed = version != "00" || parts.next().is_none();
    let real = id.bytes().any(|byte| byte != b'0') && span.bytes().any(|byte| byte != b'0');
    (shaped && closed && real).then_some(id)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    // S-05: a request without a trace gets a unique one in the published format.
    #[test]
    fn s_05_every_request_has_ids_of_its_own() {
        let traces: Vec<Trace> = (0..1_000).map(|_| Trace::from_headers(&HeaderMap::new())).collect();
        let ids: HashSet<&str> = traces.iter().map(|trace| trace.id.as_str()).collect();
        let spans: HashSet<&str> = traces.iter().map(|trace| trace.span.as_str()).collect();
        assert_eq!((ids.len(), spans.len()), (1_000, 1_000));
        for trace in &traces {
            let id = Uuid::parse_str(&trace.id).unwrap();
            assert_eq!(id.get_version_num(), 4);
            assert_eq!(parse(&trace.parent()), Some(trace.hex().as_str()));
            assert_eq!(trace.parent().len(), LENGTH);
        }
    }

    #[test]
    fn s_05_a_trace_id_is_taken_over_only_in_its_published_form() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(parse(&format!("00-{id}-00f067aa0ba902b7-01")), Some(id));
        assert_eq!(parse(&format!("cc-{id}-00f067aa0ba902b7-01-more")), Some(id));
        let wrong = [
            format!("00-{id}-00f067aa0ba902b7-01-more"),
            format!("ff-{id}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{}-00f067aa0ba902b7-01", id.to_uppercase()),
            format!("00-{id}-00f067aa0ba902b7"),
            String::new(),
        ];
        for text in wrong {
            assert_eq!(parse(&text), None, "{text}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", format!("00-{id}-00f067aa0ba902b7-01").parse().unwrap());
        let trace = Trace::from_headers(&headers);
        assert_eq!(trace.id, id);
        assert!(
            trace.parent().starts_with(&format!("00-{id}-")) && !trace.parent().contains("00f067aa0ba902b7")
        );
        assert_eq!(parse(&Trace::from_headers(&HeaderMap::new()).parent()).map(str::len), Some(32));
        assert_eq!(trace.caller.as_deref(), Some("00f067aa0ba902b7"));
        let unseen = Trace::parse(&format!("00-{id}-00f067aa0ba902b7-00")).unwrap();
        assert!(trace.sampled && !unseen.sampled && unseen.parent().ends_with("-00"));
    }
}
