//! Finished pieces of work for whoever draws traces, in the words of OpenTelemetry: who did what, when, under which trace.
//! A span has room for names, counts and codes alone. No prompt, input or answer belongs into one.

use std::time::SystemTime;

/// Takes finished spans. Must not block and must not fail: what it cannot take is counted and forgotten.
pub trait SpanSink: Send + Sync {
    /// A piece of work is over.
    fn finished(&self, span: Span);

    /// How many spans were lost so far.
    fn lost(&self) -> u64;
}

/// One piece of work.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Span {
    /// The trace that it belongs to: 32 hex digits.
    pub trace_id: String,
    /// Its own id: 16 hex digits.
    pub span_id: String,
    /// The work that it is a part of: 16 hex digits.
    pub parent: Option<String>,
    /// What was done, such as `POST /api/run/{module}`.
    pub name: String,
    /// On which side of a call it stands.
    pub kind: SpanKind,
    /// When it began.
    pub started: SystemTime,
    /// When it was over.
    pub ended: SystemTime,
    /// What is known of it, by names of the semantic conventions.
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// Whether it failed.
    pub failed: bool,
}

/// On which side of a call a span stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpanKind {
    /// Work within the process.
    Internal,
    /// Work for somebody who asked from outside.
    Server,
    /// Work that somebody outside was asked to do.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpanValue {
    /// A name or a code.
    Text(String),
    /// A count.
    Count(u64),
}

impl Span {
    /// A span from one moment to another, without attributes. The time is `(started, ended)`.
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
            // A clock that was set back must not make an end before the beginning.
            ended: ended.max(started),
            attributes: Vec::new(),
            failed: false,
        }
    }

    /// Adds a name or a code.
    #[must_use]
    pub fn text(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, SpanValue::Text(value.into())));
        self
    }

    /// Adds a count.
    #[must_use]
    pub fn count(mut self, name: &'static str, value: u64) -> Self {
        self.attributes.push((name, SpanValue::Count(value)));
        self
    }

    /// Marks the work as failed, with a code that says how (`error.type`).
    #[must_use]
    pub fn failed(mut self, code: impl Into<String>) -> Self {
        self.failed = true;
        self.text("error.type", code)
    }
}
