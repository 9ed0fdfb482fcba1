//! Tokens that calls cost, and how durations and tokens are written in records.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

/// Tokens that a call cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

impl Usage {
    /// The `usage` member of `meta`, and of the final chunk of a stream.
    #[must_use]
    pub fn to_value(self) -> Value {
        serde_json::json!({
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.input_tokens.saturating_add(self.output_tokens),
        })
    }

    /// What such a member says.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        let count = |member: &str| value.get(member).and_then(Value::as_u64).unwrap_or_default();
        Self { input_tokens: count("input_tokens"), output_tokens: count("output_tokens") }
    }

    /// The tokens of two calls together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}

/// A duration in whole milliseconds.
pub(crate) fn as_milliseconds<S: serde::Serializer>(
    elapsed: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// Tokens as they are written in `meta`.
#[expect(clippy::ref_option, reason = "serde hands over a reference")]
pub(crate) fn as_member<S: serde::Serializer>(
    usage: &Option<Usage>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    usage.map(Usage::to_value).serialize(serializer)
}
