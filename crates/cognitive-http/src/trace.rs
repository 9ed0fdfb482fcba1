//! W3C trace context: the id that a caller brings along, and the one that the answer carries (S-05).
//! Believes nothing that is not exactly of the published form.

use axum::http::HeaderMap;
use uuid::Uuid;

/// The trace of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    /// 32 hex digits if the caller brought it, else a UUID.
    pub(crate) id: String,
    hex: String,
    /// Whether the caller brought it.
    pub(crate) brought: bool,
}

impl Trace {
    /// The caller's trace, or a new one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let brought = headers.get("traceparent").and_then(|value| value.to_str().ok()).and_then(parse);
        match brought {
            Some(hex) => Self { id: hex.to_owned(), hex: hex.to_owned(), brought: true },
            None => {
                let id = Uuid::new_v4();
                Self { id: id.to_string(), hex: id.simple().to_string(), brought: false }
            }
        }
    }

    /// The `traceparent` of our own part of the work.
    pub(crate) fn parent(&self) -> String {
        let span = Uuid::new_v4().simple().to_string();
        let span = span.get(..16).unwrap_or("0000000000000001");
        format!("00-{}-{span}-01", self.hex)
    }
}

/// The trace id of a `traceparent`, if it is one of version 00 (or a later one that begins alike).
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
    use super::*;

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
        let trace = Trace::of(&headers);
        assert_eq!(trace.id, id);
        assert!(
            trace.parent().starts_with(&format!("00-{id}-")) && !trace.parent().contains("00f067aa0ba902b7")
        );
        assert_eq!(parse(&Trace::of(&HeaderMap::new()).parent()).map(str::len), Some(32));
    }
}
