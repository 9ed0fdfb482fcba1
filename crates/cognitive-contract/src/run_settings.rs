//! The options of a run that callers, module configurations and operators can all set, and the one rule that merges them.
//! Chooses no model and reads no file: surfaces read the options in their own form and hand them over as this type.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::code::ErrorCode;
use crate::failure::Failure;
use crate::module::Enforcement;
use crate::money::Money;
use crate::thinking::{MAX_THINKING_TOKENS, ThinkingRule};

/// The model calls of one run, unless something else is set. Without a limit, a composition that repeats itself could
/// cost without end.
pub const DEFAULT_MAX_CALLS: u64 = 64;

/// The time for each model call, unless something else is set. Without a limit, a silent service would hold a run
/// forever.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The options of a run. A member that is absent is decided by the next, less specific source.
///
/// The comments of the members are also the help of the command line and the page of the configuration. The type is
/// exhaustive, so that a new option does not compile until the trust of project files classifies it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Run"))]
#[serde(default)]
pub struct RunSettings {
    /// Timeout of each model call, in seconds
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS", value_parser = flags::seconds))]
    #[serde(alias = "timeout_seconds", deserialize_with = "seconds", serialize_with = "as_seconds")]
    #[schemars(with = "Option<f64>", extend("exclusiveMinimum" = 0))]
    pub timeout: Option<Duration>,
    /// Ask again up to N times if the answer breaks the contract; each time costs another call
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub reask: Option<u32>,
    /// Maximum number of model calls of a run, including its parts, retries and tools (64)
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub max_calls: Option<u64>,
    /// Start a run only if it cannot cost more than this, in US dollars, including its parts and retries
    #[cfg_attr(feature = "clap", arg(long, value_name = "USD", value_parser = flags::dollars))]
    #[schemars(with = "Option<f64>")]
    pub max_cost: Option<Money>,
    /// Seed of the model, where the provider supports one
    #[cfg_attr(feature = "clap", arg(long, value_name = "NUMBER"))]
    pub seed: Option<u64>,
    /// Maximum length of the answer, in tokens
    #[cfg_attr(feature = "clap", arg(long, alias = "max-tokens", value_name = "N"))]
    pub max_output_tokens: Option<u64>,
    /// Let the model think for up to N tokens, where it supports that; 0 disables thinking
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = flags::thinking))]
    #[serde(deserialize_with = "thinking_tokens")]
    #[schemars(with = "Option<ThinkingOption>")]
    pub thinking: Option<u32>,
    /// Add the receipt of the run to `meta.provenance`
    #[cfg_attr(feature = "clap", arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL"))]
    pub receipt: Option<bool>,
    /// Accept only valid JSON from the model, as tier exec always does
    #[cfg_attr(feature = "clap", arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL"))]
    pub strict_parse: Option<bool>,
    /// Stop a call once its answer cannot become valid; the failure then holds only complete members
    // Only where the model is bound to one document. Otherwise every call is read to its end. (D-08)
    #[cfg_attr(feature = "clap", arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL"))]
    pub early_stop: Option<bool>,
    /// Ask the model even if the answer is cached
    #[cfg_attr(feature = "clap", arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL"))]
    pub no_cache: Option<bool>,
    /// The schemas that are enforced. The envelope contract always is. Only a program on this machine can set it.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip)]
    pub enforcement: Option<Enforcement>,
}

/// The forms of `thinking`: a number, or the object of `module.yaml`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum ThinkingOption {
    Tokens(#[schemars(range(min = 0, max = 32_768))] u32),
    Rule(ThinkingRule),
}

impl RunSettings {
    /// The names of the options in a request.
    pub const NAMES: [&str; 11] = [
        "timeout",
        "reask",
        "max_calls",
        "max_cost",
        "seed",
        "max_output_tokens",
        "thinking",
        "receipt",
        "strict_parse",
        "early_stop",
        "no_cache",
    ];

    /// Refuses options of a request that the server does not have: `unknown` holds what is left after every known option was taken,
    /// and `own` names the options that the surface has besides these. (D-27)
    pub fn refuse_unknown(unknown: &Map<String, Value>, own: &[&str]) -> Result<(), Failure> {
        let Some(name) = unknown.keys().next() else { return Ok(()) };
        let known: Vec<&str> = Self::NAMES.iter().chain(own).copied().collect();
        let message = format!("unknown option: `{}`", crate::text::cut(name, 64));
        Err(Failure::new(ErrorCode::InvalidInput, message)
            .suggest(format!("Use one of: {}", known.join(", "))))
    }

    /// Returns these options, with `below` for the members that are absent. The more specific source is `self`. (D-33)
    #[must_use]
    pub fn or(self, below: Self) -> Self {
        // Without `..`: a new option does not compile until it is merged here.
        let Self {
            timeout,
            reask,
            max_calls,
            max_cost,
            seed,
            max_output_tokens,
            thinking,
            receipt,
            strict_parse,
            early_stop,
            no_cache,
            enforcement,
        } = self;
        Self {
            timeout: timeout.or(below.timeout),
            reask: reask.or(below.reask),
            max_calls: max_calls.or(below.max_calls),
            max_cost: max_cost.or(below.max_cost),
            seed: seed.or(below.seed),
            max_output_tokens: max_output_tokens.or(below.max_output_tokens),
            thinking: thinking.or(below.thinking),
            receipt: receipt.or(below.receipt),
            strict_parse: strict_parse.or(below.strict_parse),
            early_stop: early_stop.or(below.early_stop),
            no_cache: no_cache.or(below.no_cache),
            enforcement: enforcement.or(below.enforcement),
        }
    }

    /// Returns these options as another party may set them: a limit of `operator` can be tightened and not loosened. (D-33)
    #[must_use]
    pub fn limited_by(self, operator: Self) -> Self {
        let operator_timeout = operator.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let operator_calls = operator.max_calls.unwrap_or(DEFAULT_MAX_CALLS);
        Self {
            timeout: self.timeout.map(|asked| asked.min(operator_timeout)),
            max_calls: self.max_calls.map(|asked| asked.min(operator_calls)),
            max_cost: smaller_limit(self.max_cost, operator.max_cost),
            max_output_tokens: smaller_limit(self.max_output_tokens, operator.max_output_tokens),
            strict_parse: operator.strict_parse.filter(|strict| *strict).or(self.strict_parse),
            enforcement: operator.enforcement,
            ..self
        }
    }

    /// The time for each model call.
    #[must_use]
    pub fn call_timeout(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    /// The most model calls of the run.
    #[must_use]
    pub fn call_limit(&self) -> u64 {
        self.max_calls.unwrap_or(DEFAULT_MAX_CALLS)
    }

    /// The maximum number of times the model is asked again.
    #[must_use]
    pub fn reasks(&self) -> u32 {
        self.reask.unwrap_or(0)
    }

    /// Returns whether the receipt goes into `meta.provenance`.
    #[must_use]
    pub fn wants_receipt(&self) -> bool {
        self.receipt == Some(true)
    }

    /// Returns whether only valid JSON is accepted.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.strict_parse == Some(true)
    }

    /// Returns whether a call stops as soon as its answer cannot become valid.
    #[must_use]
    pub fn stops_early(&self) -> bool {
        self.early_stop == Some(true)
    }

    /// Returns whether cached answers are passed over.
    #[must_use]
    pub fn bypasses_cache(&self) -> bool {
        self.no_cache == Some(true)
    }

    /// The schemas that are enforced.
    #[must_use]
    pub fn enforcement(&self) -> Enforcement {
        self.enforcement.unwrap_or_default()
    }
}

/// Reads a time limit in seconds, which may have a fraction.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let Some(seconds) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.map(Some).ok_or_else(|| de::Error::custom("`timeout` must be a number of seconds above 0"))
}

/// Writes a time limit in seconds, without a fraction if there is none.
#[expect(clippy::ref_option, reason = "serde passes a reference to the member")]
fn as_seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        None => serializer.serialize_none(),
        Some(time) if time.subsec_nanos() == 0 => serializer.serialize_u64(time.as_secs()),
        Some(time) => serializer.serialize_f64(time.as_secs_f64()),
    }
}

/// Reads the limit of a thought: a number of tokens, or `{max_tokens: N}` as in `module.yaml`.
fn thinking_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let tokens = match &value {
        Value::Null => return Ok(None),
        Value::Object(_) => serde_json::from_value(value).map(|rule: ThinkingRule| rule.max_tokens),
        _ => serde_json::from_value(value),
    };
    let tokens = tokens.map_err(de::Error::custom)?;
    if tokens > MAX_THINKING_TOKENS {
        let message = format!("`thinking` must be a number of tokens from 0 to {MAX_THINKING_TOKENS}");
        return Err(de::Error::custom(message));
    }
    Ok(Some(tokens))
}

/// Reads the options of a command line.
#[cfg(feature = "clap")]
pub mod flags {
    use std::time::Duration;

    use crate::money::Money;
    use crate::thinking::checked_bound;

    /// Parses a number of seconds above 0, which may have a fraction.
    pub fn seconds(text: &str) -> Result<Duration, String> {
        let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.filter(|time| !time.is_zero()).ok_or_else(|| "expected a number of seconds above 0".to_owned())
    }

    pub(super) fn dollars(text: &str) -> Result<Money, String> {
        Money::parse(text.trim_start_matches('$'))
            .ok_or_else(|| "expected an amount in dollars, such as 0.05".to_owned())
    }

    pub(super) fn thinking(text: &str) -> Result<u32, String> {
        let tokens = text.parse().map_err(|_| "expected a number of tokens".to_owned())?;
        checked_bound(tokens).map_err(|failure| failure.message().to_owned())
    }
}

/// The smaller of two limits. A limit that is absent does not limit.
fn smaller_limit<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Option<Money> {
        Money::parse(text)
    }

    #[test]
    fn the_more_specific_source_wins_member_by_member() {
        let request = RunSettings { reask: Some(0), receipt: Some(false), ..RunSettings::default() };
        let module = RunSettings { reask: Some(2), seed: Some(7), ..RunSettings::default() };
        let decided = request.or(module);
        assert_eq!((decided.reask, decided.receipt, decided.seed), (Some(0), Some(false), Some(7)));
        assert_eq!(decided.call_timeout(), DEFAULT_TIMEOUT);
    }

    #[test]
    fn each_name_is_read_and_every_other_name_is_refused() {
        for name in RunSettings::NAMES {
            let value = match name {
                "receipt" | "strict_parse" | "early_stop" | "no_cache" => Value::Bool(true),
                _ => Value::from(1),
            };
            let given: Map<String, Value> = [(name.to_owned(), value)].into_iter().collect();
            let read: RunSettings = serde_json::from_value(Value::Object(given.clone())).unwrap();
            assert_ne!(read, RunSettings::default(), "{name}");
            assert!(RunSettings::refuse_unknown(&given, &["session"]).is_err(), "{name} was not taken");
        }
        for wrong in
            [r#"{"timeout": 0}"#, r#"{"timeout": "1"}"#, r#"{"thinking": 32769}"#, r#"{"reask": -1}"#]
        {
            assert!(serde_json::from_str::<RunSettings>(wrong).is_err(), "{wrong}");
        }
        let refused = RunSettings::refuse_unknown(
            &[("reaks".to_owned(), Value::Null)].into_iter().collect(),
            &["session"],
        );
        let refused = refused.unwrap_err();
        assert_eq!(refused.message(), "unknown option: `reaks`");
        assert!(refused.suggestion().unwrap().ends_with("no_cache, session"), "{refused:?}");
        assert!(RunSettings::refuse_unknown(&Map::new(), &[]).is_ok());
    }

    #[test]
    fn a_caller_tightens_the_limits_of_an_operator_and_loosens_none() {
        let operator = RunSettings {
            max_cost: money("1"),
            max_output_tokens: Some(100),
            strict_parse: Some(true),
            ..RunSettings::default()
        };
        let asked = RunSettings {
            timeout: Some(Duration::from_hours(1)),
            max_calls: Some(1_000),
            max_cost: money("2"),
            max_output_tokens: Some(50),
            strict_parse: Some(false),
            enforcement: Some(Enforcement::EnvelopeOnly),
            reask: Some(3),
            ..RunSettings::default()
        };
        let decided = asked.limited_by(operator).or(operator);
        assert_eq!((decided.call_timeout(), decided.call_limit()), (DEFAULT_TIMEOUT, DEFAULT_MAX_CALLS));
        assert_eq!((decided.max_cost, decided.max_output_tokens), (money("1"), Some(50)));
        assert!(decided.is_strict() && decided.enforcement() == Enforcement::Full);
        assert_eq!(decided.reasks(), 3, "no limit, so the request decides");
    }
}
