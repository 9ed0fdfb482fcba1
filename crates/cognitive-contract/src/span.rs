//! Finished spans for tracing tools, in the terms of OpenTelemetry.
//! A span contains only names, counts and codes, never a prompt, input or answer.

use std::time::SystemTime;

/// Receives finished spans. Must not block or fail: spans that it cannot accept are counted and dropped.
pub trait SpanSink: Send + Sync {
    /// Receives a finished span.
    fn record_span(&self, span: Span);

    /// Returns the number of spans dropped so far.
    fn lost_spans(&self) -> u64;
}

/// One unit of work.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Span {
    /// The trace id: 32 hex digits.
    pub trace_id: String,
    /// The span id: 16 hex digits.
    pub span_id: String,
    /// The parent span: 16 hex digits.
    pub parent: Option<String>,
    /// The operation, such as `POST /api/run/{module}`.
    pub name: String,
    /// The role in a call.
    pub kind: SpanKind,
    /// The start time.
    pub started: SystemTime,
    /// The end time.
    pub ended: SystemTime,
    /// Attributes, by names of the semantic conventions.
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// True if the work failed.
    pub failed: bool,
}

/// The role of a span in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work within the process.
    Internal,
    /// Work for a remote caller.
    Server,
    /// A call to a remote service.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanValue {
    /// A name or a code.
    Text(String),
    /// A count.
    Count(u64),
}

impl Span {
    /// A span without attributes. The time is `(started, ended)`.
    #[must_use]
    pub fn new(
        trace_id: &str,
        span_id: &str,
        name: impl Into<String>,
        kind: SpanKind,
        (started, ended): (SystemTime, SystemTime),
    ) -> Self {
        Self {
            trace_id: trace_id.to_owned(),
            span_id: span_id.to_owned(),
            parent: None,
            name: name.into(),
            kind,
            started,
            // If the clock was set back, the end must still not precede the start.
            ended: ended.max(started),
            attributes: Vec::new(),
            failed: false,
        }
    }

    /// Adds a text attribute: a name or a code.
    #[must_use]
    pub fn text(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, SpanValue::Text(value.into())));
        self
    }

    /// Adds a numeric attribute.
    #[must_use]
    pub fn count(mut self, name: &'static str, value: u64) -> Self {
        self.attributes.push((name, SpanValue::Count(value)));
        self
    }

    /// Marks the work as failed, with an error code (`error.type`).
    #[must_use]
    pub fn with_error(mut self, code: impl Into<String>) -> Self {
        self.failed = true;
        self.text("error.type", code)
    }
}
