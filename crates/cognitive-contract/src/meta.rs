//! The control plane: confidence, risk and explain. Middleware routes on it without reading `data`.
//! Fills in and clamps nothing: an out-of-range value is a violation.

use std::fmt;

use cognitive_schema::MAX_CUSTOM_LENGTH;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::code::ErrorCode;
use crate::json::member;
use crate::risk_level::Risk;
use crate::text::{self, pointer};
use crate::usage::Usage;
use crate::violation::{OptionalMember, Violation};

/// The maximum length of `meta.explain`, in code points.
pub const EXPLAIN_LIMIT: usize = 280;
/// Members that only the runtime sets.
pub const OF_THE_RUNTIME: [&str; 10] = [
    "trace_id",
    "model",
    "latency_ms",
    "processing_time_ms",
    "usage",
    "media_processed",
    "media_validation",
    "warnings",
    "provenance",
    CALIBRATED_CONFIDENCE,
];
/// The member of `meta` with the share of answers of such a confidence that people found right. Only the
/// runtime sets it.
pub const CALIBRATED_CONFIDENCE: &str = "calibrated_confidence";
/// The member with the token counts of a run.
pub(crate) const USAGE: &str = "usage";
/// A member that only compositions use.
pub(crate) const CONFIDENCE_AGGREGATION: &str = "confidence_aggregation";

/// The module's confidence that it met its contract; not a calibrated probability of being right.
/// Invariant: within 0..=1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Confidence(f64);

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Confidence {
    /// No confidence: nothing is known.
    pub const ZERO: Self = Self(0.0);
    /// The confidence of a successful answer that states none.
    pub const DEFAULT: Self = Self(0.5);

    /// A confidence, if `value` is within 0..=1.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Returns the number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// The value of `meta.risk` in an envelope.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RiskValue {
    /// One of the four words.
    Level(Risk),
    /// `{custom, reason}`, if the module's own meta schema allows it and its enums are extensible.
    Custom(Map<String, Value>),
}

impl RiskValue {
    /// Returns the level for aggregation: a custom risk counts as medium.
    #[must_use]
    pub fn level(&self) -> Risk {
        match self {
            Self::Level(risk) => *risk,
            Self::Custom(_) => Risk::Medium,
        }
    }
}

/// A checked control plane. `extra` holds the members beyond the three required ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Meta {
    /// The module's confidence.
    pub confidence: Confidence,
    /// The harm that acting on the answer could do.
    pub risk: RiskValue,
    explain: String,
    /// `trace_id`, `model`, `latency_ms`, `warnings` and all other members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Meta {
    /// A control plane. Truncates `explain` to 280 code points.
    #[must_use]
    pub fn new(confidence: Confidence, risk: Risk, explain: &str) -> Self {
        Self {
            confidence,
            risk: RiskValue::Level(risk),
            explain: text::cut(explain, EXPLAIN_LIMIT).to_owned(),
            extra: Map::new(),
        }
    }

    /// Returns the one-line summary, at most 280 code points.
    #[must_use]
    pub fn explain(&self) -> &str {
        &self.explain
    }

    /// Adds a notice that does not change the outcome (`meta.warnings`).
    pub fn warn(&mut self, warning: &Warning) {
        let entry = serde_json::json!({ "code": warning.code, "message": warning.message });
        match self.extra.get_mut("warnings") {
            Some(Value::Array(list)) => list.push(entry),
            _ => {
                self.extra.insert("warnings".to_owned(), Value::Array(vec![entry]));
            }
        }
    }

    /// Returns the tokens of all calls of the run, if a service counted them (`meta.usage`).
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.extra.get(USAGE).map(Usage::from_value)
    }

    /// Sets the tokens and cost of a run.
    pub fn set_usage(&mut self, usage: Usage) {
        self.extra.insert(USAGE.to_owned(), usage.to_value());
    }

    /// Removes and returns the tokens and cost of a run, to add them to another total.
    pub fn take_usage(&mut self) -> Option<Usage> {
        self.extra.shift_remove(USAGE).as_ref().map(Usage::from_value)
    }

    /// Takes a checked object apart. Returns `None` where [`check`] would have reported a violation.
    pub(crate) fn from_checked(object: Map<String, Value>) -> Option<Self> {
        let (mut confidence, mut risk, mut explain, mut extra) = (None, None, None, Map::new());
        for (name, value) in object {
            match (name.as_str(), value) {
                ("confidence", value) => confidence = value.as_f64().and_then(Confidence::new),
                ("risk", Value::String(word)) => risk = Risk::parse(&word).map(RiskValue::Level),
                ("risk", Value::Object(custom)) => risk = Some(RiskValue::Custom(custom)),
                ("explain", Value::String(text)) => explain = Some(text),
                (_, value) => {
                    extra.insert(name, value);
                }
            }
        }
        Some(Self { confidence: confidence?, risk: risk?, explain: explain?, extra })
    }
}

/// A notice for `meta.warnings`: a published code, or a word such as `REPAIRED` or `DEPRECATED`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RunWarning")]
#[non_exhaustive]
pub struct Warning {
    /// A published code, or one of our words in capitals.
    pub code: String,
    /// The message, for people.
    pub message: String,
}

impl Warning {
    /// A notice.
    #[must_use]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// The accepted forms of `meta.risk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RiskForm<'a> {
    /// The four words only.
    Words,
    /// Also the object `{<tag>: 1–32 characters, reason}`.
    WordsOrCustom {
        /// The name of the member that holds the unknown value.
        tag: &'a str,
    },
}

/// Returns the violations of the `meta` object of a finished envelope.
#[must_use]
pub fn check(meta: &Map<String, Value>, risk_form: RiskForm<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    check_confidence(member(meta, "confidence"), &mut found);
    check_risk(member(meta, "risk"), risk_form, &mut found);
    check_explain(member(meta, "explain"), &mut found);
    check_optional(meta, &mut found);
    found
}

fn violation(member: &str, rule: &'static str, message: &str) -> Violation {
    Violation::new(pointer("", member), ErrorCode::SchemaValidationFailed, rule, message)
}

fn missing(member: &str) -> Violation {
    violation(member, "required", &format!("required member `{member}` is missing"))
}

fn check_confidence(value: Option<&Value>, found: &mut Vec<Violation>) {
    match value {
        None => found.push(missing("confidence")),
        Some(Value::Number(number)) => {
            if number.as_f64().and_then(Confidence::new).is_none() {
                found.push(violation("confidence", "maximum", "expected a number from 0 to 1"));
            }
        }
        Some(_) => found.push(violation("confidence", "type", "expected a number from 0 to 1")),
    }
}

fn check_risk(value: Option<&Value>, form: RiskForm<'_>, found: &mut Vec<Violation>) {
    match (value, form) {
        (None, _) => found.push(missing("risk")),
        (Some(Value::String(word)), _) if Risk::parse(word).is_some() => {}
        (Some(Value::Object(custom)), RiskForm::WordsOrCustom { tag }) if is_custom(custom, tag) => {}
        (Some(_), _) => {
            let options = std::sync::Arc::new(serde_json::json!(Risk::WORDS));
            found.push(
                violation("risk", "enum", "expected one of `none`, `low`, `medium`, `high`")
                    .with_options(options),
            );
        }
    }
}

/// Returns whether `object` is a custom enum value: `tag` of 1–32 characters and a `reason`.
pub(crate) fn is_custom(object: &Map<String, Value>, tag: &str) -> bool {
    let named = object.get(tag).and_then(Value::as_str);
    named.is_some_and(|name| !name.is_empty() && text::fits(name, MAX_CUSTOM_LENGTH))
        && object.get("reason").is_some_and(Value::is_string)
}

fn check_explain(value: Option<&Value>, found: &mut Vec<Violation>) {
    match value {
        None => found.push(missing("explain")),
        Some(Value::String(text)) => {
            if !text::fits(text, EXPLAIN_LIMIT) {
                found.push(violation("explain", "maxLength", "expected at most 280 characters"));
            }
        }
        Some(_) => found.push(violation("explain", "type", "expected a string")),
    }
}

fn check_optional(meta: &Map<String, Value>, found: &mut Vec<Violation>) {
    // Fast path: most models write only the required members.
    if meta.keys().all(|name| matches!(name.as_str(), "confidence" | "risk" | "explain")) {
        return;
    }
    let rules: [OptionalMember; 11] = [
        ("trace_id", Value::is_string, "expected a string"),
        ("model", Value::is_string, "expected a string"),
        ("latency_ms", |value| value.as_f64().is_some_and(|ms| ms >= 0.0), "expected a number, 0 or more"),
        ("processing_time_ms", |value| value.is_u64(), "expected a whole number, 0 or more"),
        (
            CALIBRATED_CONFIDENCE,
            |value| value.as_f64().and_then(Confidence::new).is_some(),
            "expected a number from 0 to 1",
        ),
        ("media_processed", Value::is_array, "expected a list"),
        ("warnings", Value::is_array, "expected a list"),
        (
            "confidence_aggregation",
            |value| matches!(value.as_str(), Some("mean" | "min" | "weighted_mean")),
            "expected `mean`, `min` or `weighted_mean`",
        ),
        ("media_validation", Value::is_object, "expected an object"),
        ("generation_quality", is_generation_quality, "expected an object whose scores are numbers"),
        (
            "temporal_confidence",
            is_temporal_confidence,
            "expected an object: `overall` from 0 to 1, `segments` and `low_confidence_regions` as lists",
        ),
    ];
    for (name, holds, message) in rules {
        if member(meta, name).is_some_and(|value| !holds(value)) {
            found.push(violation(name, "type", message));
        }
    }
}

/// Returns whether a value is a valid `generation_quality`: optional scores for generated media. The
/// specification defines no maximum score. (EXT-CONF)
fn is_generation_quality(value: &Value) -> bool {
    let scores = ["prompt_adherence", "aesthetic_score", "technical_quality"];
    value.is_object() && scores.iter().all(|name| value.get(name).is_none_or(Value::is_number))
}

/// Returns whether a value is a valid `temporal_confidence`: the confidence in each part of a timed medium.
/// (EXT-CONF)
fn is_temporal_confidence(value: &Value) -> bool {
    let sure = |value: &Value| value.as_f64().and_then(Confidence::new).is_some();
    let lists = ["segments", "low_confidence_regions"];
    value.is_object()
        && value.get("overall").is_none_or(sure)
        && lists.iter().all(|name| value.get(name).is_none_or(Value::is_array))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(meta: &Value, form: RiskForm<'_>) -> Vec<String> {
        let found = check(meta.as_object().unwrap(), form);
        found.iter().map(|violation| format!("{} {}", violation.path, violation.rule)).collect()
    }

    #[test]
    fn meta_001_003_005_each_required_member_is_checked_on_its_own() {
        assert_eq!(
            rules(&json!({ "confidence": true, "risk": "LOW", "explain": 1 }), RiskForm::Words),
            ["/confidence type", "/risk enum", "/explain type"]
        );
        assert_eq!(
            rules(&json!({}), RiskForm::Words),
            ["/confidence required", "/risk required", "/explain required"]
        );
    }

    #[test]
    fn meta_004_the_object_form_of_risk_needs_leave_a_short_name_and_a_reason() {
        let open = RiskForm::WordsOrCustom { tag: "custom" };
        let with = |risk: Value| json!({ "confidence": 1, "risk": risk, "explain": "" });
        let good = with(json!({ "custom": "legal", "reason": "licence" }));
        assert!(rules(&good, open).is_empty());
        assert_eq!(rules(&good, RiskForm::Words), ["/risk enum"]);
        assert_eq!(rules(&with(json!({ "custom": "", "reason": "r" })), open), ["/risk enum"]);
        assert_eq!(rules(&with(json!({ "custom": "x".repeat(33), "reason": "r" })), open), ["/risk enum"]);
        assert_eq!(rules(&with(json!({ "custom": "x" })), open), ["/risk enum"]);
    }

    #[test]
    fn meta_007_to_010_optional_members_are_typed_and_011_others_are_kept() {
        let meta = json!({
            "confidence": 0.5, "risk": "low", "explain": "e", "trace_id": 1, "model": 2, "latency_ms": -1,
            "processing_time_ms": 1.5, "media_processed": {}, "team": "blue",
        });
        assert_eq!(
            rules(&meta, RiskForm::Words),
            [
                "/trace_id type",
                "/model type",
                "/latency_ms type",
                "/processing_time_ms type",
                "/media_processed type"
            ]
        );
        let kept = json!({ "confidence": 0.5, "risk": "low", "explain": "e", "team": "blue" });
        let meta = Meta::from_checked(kept.as_object().unwrap().clone()).unwrap();
        assert_eq!(serde_json::to_value(&meta).unwrap(), kept);
    }

    // EXT-CONF: known members are typed, and unknown ones pass through.
    #[test]
    fn ext_conf_what_is_said_of_confidence_is_typed() {
        let with = |name: &str, value: Value| {
            let mut meta = json!({ "confidence": 0.5, "risk": "low", "explain": "e" });
            meta[name] = value;
            rules(&meta, RiskForm::Words)
        };
        for good in [json!({}), json!({ "prompt_adherence": 0.9, "aesthetic_score": 7, "own": "x" })] {
            assert_eq!(with("generation_quality", good), [""; 0]);
        }
        for bad in [json!("x"), json!([]), json!({ "technical_quality": "good" })] {
            assert_eq!(with("generation_quality", bad), ["/generation_quality type"]);
        }
        for good in
            [json!({ "overall": 1, "segments": [], "own": 1 }), json!({ "low_confidence_regions": [{}] })]
        {
            assert_eq!(with("temporal_confidence", good), [""; 0]);
        }
        for bad in [json!(0.5), json!({ "overall": 2 }), json!({ "overall": "1" }), json!({ "segments": {} })]
        {
            assert_eq!(with("temporal_confidence", bad), ["/temporal_confidence type"]);
        }
        assert_eq!(with("confidence_aggregation", json!("median")), ["/confidence_aggregation type"]);
    }

    #[test]
    fn meta_015_warnings_gather_in_order() {
        let mut meta = Meta::new(Confidence::ZERO, Risk::High, "e");
        meta.warn(&Warning::new("E4010", "one"));
        meta.warn(&Warning::new("REPAIRED", "two"));
        assert_eq!(
            meta.extra["warnings"],
            json!([{ "code": "E4010", "message": "one" }, { "code": "REPAIRED", "message": "two" }])
        );
    }
}
