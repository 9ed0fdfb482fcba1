//! Tokens and cost of calls, and the serialised form of durations and tokens in records.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::money::{CURRENCY, Money};

/// The tokens of a call, or of all calls of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(into = "UsageMember")]
#[non_exhaustive]
pub struct Usage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens, including thinking.
    pub output_tokens: u64,
    /// The thinking tokens among the output tokens, if counted.
    pub thinking_tokens: u64,
    /// The input tokens that came from the service's prompt cache.
    pub cache_read_tokens: u64,
    /// The input tokens that were written to that cache.
    pub cache_write_tokens: u64,
    /// The total cost, if there is a price.
    pub cost: Option<Money>,
}

impl Usage {
    /// Input and output tokens, without known thinking tokens.
    #[must_use]
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        let (thinking_tokens, cache_read_tokens, cache_write_tokens) = (0, 0, 0);
        Self {
            input_tokens,
            output_tokens,
            thinking_tokens,
            cache_read_tokens,
            cache_write_tokens,
            cost: None,
        }
    }

    /// Sets the tokens read from and written to the service's prompt cache. Both are part of the input tokens.
    #[must_use]
    pub fn with_cache(self, read: u64, written: u64) -> Self {
        let read = read.min(self.input_tokens);
        Self { cache_read_tokens: read, cache_write_tokens: written.min(self.input_tokens - read), ..self }
    }

    /// Sets the cost.
    #[must_use]
    pub fn with_cost(self, cost: Option<Money>) -> Self {
        Self { cost, ..self }
    }

    /// Sets the thinking tokens, at most the output tokens.
    #[must_use]
    pub fn with_thoughts(self, tokens: u64) -> Self {
        Self { thinking_tokens: tokens.min(self.output_tokens), ..self }
    }

    /// Converts into the `usage` member of `meta`, and of the final chunk of a stream.
    #[must_use]
    pub fn to_value(self) -> Value {
        // Serialising numbers and a text to a value cannot fail.
        serde_json::to_value(UsageMember::from(self)).unwrap_or_default()
    }

    /// Parses such a member.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        let count = |member: &str| value.get(member).and_then(Value::as_u64).unwrap_or_default();
        Self::new(count("input_tokens"), count("output_tokens"))
            .with_thoughts(count("thinking_tokens"))
            .with_cache(count("cache_read_tokens"), count("cache_write_tokens"))
            .with_cost(value.get("cost").and_then(Money::from_value))
    }

    fn is_nothing(self) -> bool {
        self.input_tokens == 0 && self.output_tokens == 0
    }

    /// Returns the sum of two calls. The cost is unknown if either call with tokens has no price, because a
    /// partial sum would look complete.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            thinking_tokens: self.thinking_tokens.saturating_add(other.thinking_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_add(other.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            cost: match (self.cost, other.cost) {
                (Some(one), Some(other)) => Some(one.plus(other)),
                (cost, None) if other.is_nothing() => cost,
                (None, cost) if self.is_nothing() => cost,
                _ => None,
            },
        }
    }
}

/// The form of `meta.usage`.
#[derive(Serialize, JsonSchema)]
struct UsageMember {
    /// Input tokens.
    input_tokens: u64,
    /// Output tokens, including thinking.
    output_tokens: u64,
    /// Both together.
    total_tokens: u64,
    /// The thinking tokens among the output tokens, if counted.
    #[serde(skip_serializing_if = "is_zero")]
    thinking_tokens: u64,
    /// The input tokens that came from the service's prompt cache.
    #[serde(skip_serializing_if = "is_zero")]
    cache_read_tokens: u64,
    /// The input tokens that were written to that cache.
    #[serde(skip_serializing_if = "is_zero")]
    cache_write_tokens: u64,
    /// The total cost, if there is a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Money>,
    /// The currency of the cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'static str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the member")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl From<Usage> for UsageMember {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            thinking_tokens: usage.thinking_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            cost: usage.cost,
            currency: usage.cost.map(|_| CURRENCY),
        }
    }
}

/// Serialises a duration as whole milliseconds.
pub(crate) fn as_milliseconds<S: serde::Serializer>(
    elapsed: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_part_of_what_was_written_and_named_only_if_there_are_any() {
        let plain = Usage::new(3, 5);
        assert_eq!(plain.to_value().get("thinking_tokens"), None);
        let thought = plain.with_thoughts(4);
        assert_eq!(thought.to_value()["thinking_tokens"], 4);
        assert_eq!(thought.to_value()["total_tokens"], 8);
        assert_eq!(Usage::from_value(&thought.to_value()), thought);
        assert_eq!(thought.plus(thought).thinking_tokens, 8);
        assert_eq!(plain.with_thoughts(9).thinking_tokens, 5, "nobody thinks more than is written");
    }

    #[test]
    fn what_it_cost_is_said_in_dollars_and_added_only_where_all_of_it_is_known() {
        let priced = Usage::new(10, 5).with_cache(4, 3).with_cost(Money::parse("0.0125"));
        let value = priced.to_value();
        assert_eq!(
            (&value["cost"], &value["currency"]),
            (&serde_json::json!(0.0125), &serde_json::json!("USD"))
        );
        assert_eq!((&value["cache_read_tokens"], &value["cache_write_tokens"]), (&4.into(), &3.into()));
        assert_eq!(Usage::from_value(&value), priced);
        assert_eq!(priced.plus(priced).cost, Money::parse("0.025"));
        assert_eq!(priced.plus(Usage::new(1, 1)).cost, None, "the other has no price");
        assert_eq!(Usage::default().plus(priced), priced, "nothing has no price and costs nothing");
        assert_eq!(Usage::new(3, 0).with_cache(9, 9), Usage { cache_read_tokens: 3, ..Usage::new(3, 0) });
        assert_eq!(Usage::new(1, 1).to_value().get("cost"), None);
    }
}
