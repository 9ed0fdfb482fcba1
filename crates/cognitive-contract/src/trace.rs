//! What a run did, as a tree: the module and the modules that it is made of, with time, verdict and tokens of each.
//! Holds nothing that anybody said: inputs, answers and context are not in it.

use serde::Serialize;

use crate::envelope::Envelope;
use crate::usage::{Usage, as_member};

/// One module of a run. Time and tokens of its parts are counted in.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trace {
    /// The name under which it was run.
    pub module: String,
    /// Its version; empty if it did not run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// How it ended.
    pub outcome: PartState,
    /// The code of its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The module that it was run in place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands_in_for: Option<String>,
    /// Why it was not run: the condition that did not hold, or the module that gave no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// When it began, counted from the beginning of the parts of its caller.
    pub started_ms: f64,
    /// How long it took.
    pub latency_ms: f64,
    /// How sure it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// How risky its answer is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
    /// What it cost.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_member")]
    pub usage: Option<Usage>,
    /// The modules that it is made of, in the order in which they ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Trace>,
}

/// How far a module is that another one is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PartState {
    /// It begins.
    Started,
    /// Its model writes.
    Speaks,
    /// It has answered.
    Finished,
    /// It has failed.
    Failed,
    /// It was not run, because no step to it was taken.
    Skipped,
    /// It was ended, because another one failed that is needed.
    Cancelled,
}

impl PartState {
    /// The word for people.
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

/// Something happened to a module that this one is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartEvent<'a> {
    /// Its name; `outer/inner` for a part of a part.
    pub path: &'a str,
    /// How far it is.
    pub state: PartState,
    /// How many parts are done.
    pub done: usize,
    /// How many there are.
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
    /// A module that did not run to its end.
    #[must_use]
    pub fn unfinished(module: &str, outcome: PartState) -> Self {
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

    /// A module that gave an envelope.
    #[must_use]
    pub fn of(
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
            ..Self::unfinished(module, outcome)
        }
    }

    /// The same with the reason why it was not run.
    #[must_use]
    pub fn because(mut self, reason: Option<String>) -> Self {
        self.because = reason;
        self
    }

    /// The same with its parts.
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
        let part = Trace::of("part", "1.0.0", &envelope, 2.5, usage);
        let whole = Trace::unfinished("whole", PartState::Cancelled).with_parts(vec![part]);
        let shown = serde_json::to_value(&whole).unwrap();
        assert_eq!(shown["outcome"], "cancelled");
        assert_eq!(shown["parts"][0]["code"], "E2002");
        assert_eq!(shown["parts"][0]["usage"]["total_tokens"], json!(4));
        assert!(!shown.to_string().contains("secret words"));
        assert!(shown.get("usage").is_none() && shown.get("version").is_none());
    }
}
