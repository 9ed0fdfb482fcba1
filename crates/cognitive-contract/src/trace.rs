//! The trace of a run, as a tree: the module and its parts, with time, outcome and tokens of each.
//! Contains no inputs, answers or context.

use serde::Serialize;

use crate::envelope::Envelope;
use crate::usage::Usage;

/// One module of a run. Time and tokens include those of its parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trace {
    /// The name that was called.
    pub module: String,
    /// The module's version; empty if it did not run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The outcome.
    pub outcome: PartState,
    /// The error code of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The module that it replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands_in_for: Option<String>,
    /// The reason why it did not run: the condition that did not hold, or the module without a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The start, relative to the start of its caller's parts.
    pub started_ms: f64,
    /// The duration.
    pub latency_ms: f64,
    /// The confidence of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The risk of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
    /// Tokens and cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The parts of the module, in the order in which they ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Trace>,
}

/// The state of a part of a composition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PartState {
    /// It started.
    Started,
    /// Its model produces text.
    Speaks,
    /// It answered.
    Finished,
    /// It failed.
    Failed,
    /// It was not run, because no step led to it.
    Skipped,
    /// It was cancelled, because another required part failed.
    Cancelled,
}

impl PartState {
    /// Returns the word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Speaks => "speaks",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A change in the state of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartEvent<'a> {
    /// Its name; `outer/inner` for a part of a part.
    pub path: &'a str,
    /// Its state.
    pub state: PartState,
    /// The number of finished parts.
    pub done: usize,
    /// The number of all parts.
    pub of: usize,
}

impl<'a> PartEvent<'a> {
    /// An event.
    #[must_use]
    pub fn new(path: &'a str, state: PartState, done: usize, of: usize) -> Self {
        Self { path, state, done, of }
    }
}

impl Trace {
    /// The trace of a module that did not finish.
    #[must_use]
    pub fn unfinished_trace(module: &str, outcome: PartState) -> Self {
        Self {
            module: module.to_owned(),
            version: String::new(),
            outcome,
            code: None,
            stands_in_for: None,
            because: None,
            started_ms: 0.0,
            latency_ms: 0.0,
            confidence: None,
            risk: None,
            usage: None,
            parts: Vec::new(),
        }
    }

    /// The trace of a module that returned an envelope.
    #[must_use]
    pub fn from_envelope(
        module: &str,
        version: &str,
        envelope: &Envelope,
        latency_ms: f64,
        usage: Option<Usage>,
    ) -> Self {
        let outcome = if envelope.ok() { PartState::Finished } else { PartState::Failed };
        Self {
            version: version.to_owned(),
            code: envelope.error().map(|error| error.code().to_owned()),
            latency_ms,
            confidence: Some(envelope.meta().confidence.get()),
            risk: Some(envelope.meta().risk.level().word().to_owned()),
            usage,
            ..Self::unfinished_trace(module, outcome)
        }
    }

    /// Sets the reason why the module was not run.
    #[must_use]
    pub fn with_reason(mut self, reason: Option<String>) -> Self {
        self.because = reason;
        self
    }

    /// Sets the parts.
    #[must_use]
    pub fn with_parts(mut self, parts: Vec<Self>) -> Self {
        self.parts = parts;
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::code::ErrorCode;
    use crate::failure::Failure;

    #[test]
    fn a_trace_says_what_a_part_cost_and_nothing_of_what_it_said() {
        let envelope = Failure::new(ErrorCode::Timeout, "secret words").into_envelope();
        let usage = Some(Usage::new(3, 1));
        let part = Trace::from_envelope("part", "1.0.0", &envelope, 2.5, usage);
        let whole = Trace::unfinished_trace("whole", PartState::Cancelled).with_parts(vec![part]);
        let shown = serde_json::to_value(&whole).unwrap();
        assert_eq!(shown["outcome"], "cancelled");
        assert_eq!(shown["parts"][0]["code"], "E2002");
        assert_eq!(shown["parts"][0]["usage"]["total_tokens"], json!(4));
        assert!(!shown.to_string().contains("secret words"));
        assert!(shown.get("usage").is_none() && shown.get("version").is_none());
    }
}
