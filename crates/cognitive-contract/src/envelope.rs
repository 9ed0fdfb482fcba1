//! The envelope: the shape of every answer, `{ok, meta, data}` or `{ok: false, meta, error, partial_data?}`.
//! A value of [`Envelope`] is valid by construction. [`check`] validates JSON from elsewhere and repairs
//! nothing.
//! Knows no HTTP status, exit code or module; `module.rs` validates against a module's own schemas.

use cognitive_schema::MAX_VIOLATIONS;
use serde::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::code::ErrorCode;
use crate::failure::Failure;
use crate::insights;
use crate::json::member;
use crate::meta::{self, Meta, RiskForm};
use crate::text::{self, pointer};
use crate::violation::{OptionalMember, Violation};

/// Members that a success may have. A top-level `usage` is only read; the runtime writes `meta.usage`, because
/// the official envelope schema is closed.
pub const SUCCESS_MEMBERS: [&str; 5] = ["ok", "meta", "data", "_emitted_context", "usage"];
/// Members that a failure may have.
pub const FAILURE_MEMBERS: [&str; 8] =
    ["ok", "meta", "error", "partial_data", "_emitted_context", "usage", "streaming", "session_id"];

/// A finished answer that satisfies the envelope contract. Boxed, because it is moved often.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope(Box<EnvelopeParts>);

#[derive(Debug, Clone, PartialEq)]
struct EnvelopeParts {
    meta: Meta,
    outcome: Outcome,
    extra_members: Map<String, Value>,
}

/// The content of an envelope besides `meta`.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// `ok: true`.
    Success {
        /// The business payload, with its `rationale`.
        data: Map<String, Value>,
    },
    /// `ok: false`.
    Failure {
        /// The error.
        error: ErrorBody,
        /// The partial result, if any.
        partial_data: Option<Map<String, Value>>,
    },
}

/// The `error` member: a code in any spelling, a message, and optional members.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorBody(Map<String, Value>);

impl ErrorBody {
    /// An error with its two required members.
    #[must_use]
    pub fn new(code: &str, message: &str) -> Self {
        let mut members = Map::new();
        members.insert("code".to_owned(), Value::from(code));
        members.insert("message".to_owned(), Value::from(message));
        Self(members)
    }

    /// Sets an optional member (`recoverable`, `suggestion`, `details`).
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Returns the code in its original spelling.
    #[must_use]
    pub fn code(&self) -> &str {
        self.0.get("code").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the error message.
    #[must_use]
    pub fn message(&self) -> &str {
        self.0.get("message").and_then(Value::as_str).unwrap_or_default()
    }

    /// All members.
    #[must_use]
    pub fn members(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl Envelope {
    /// A failure made by the runtime.
    #[must_use]
    pub fn failure(meta: Meta, error: ErrorBody, partial_data: Option<Map<String, Value>>) -> Self {
        let outcome = Outcome::Failure { error, partial_data };
        Self(Box::new(EnvelopeParts { meta, outcome, extra_members: Map::new() }))
    }

    /// Parses a finished envelope. An invalid one returns all its violations.
    pub fn from_value(value: Value) -> Result<Self, Vec<Violation>> {
        let found = check(&value, Strictness::default());
        if found.is_empty() { Self::from_checked(value).ok_or_else(not_an_envelope) } else { Err(found) }
    }

    /// Takes apart JSON that was checked before, by [`check`] or by the rules of a module.
    pub(crate) fn from_checked(value: Value) -> Option<Self> {
        let Value::Object(members) = value else { return None };
        let (mut ok, mut meta, mut payload, mut partial_data, mut extra_members) =
            (None, None, None, None, Map::new());
        for (name, value) in members {
            match name.as_str() {
                "ok" => ok = value.as_bool(),
                "meta" => meta = into_object(value).and_then(Meta::from_checked),
                "data" | "error" => payload = into_object(value),
                "partial_data" => partial_data = into_object(value),
                _ => {
                    extra_members.insert(name, value);
                }
            }
        }
        let outcome = if ok? {
            Outcome::Success { data: payload? }
        } else {
            Outcome::Failure { error: ErrorBody(payload?), partial_data }
        };
        Some(Self(Box::new(EnvelopeParts { meta: meta?, outcome, extra_members })))
    }

    /// Returns true if the run succeeded.
    #[must_use]
    pub fn ok(&self) -> bool {
        matches!(self.0.outcome, Outcome::Success { .. })
    }

    /// Returns the control plane.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.0.meta
    }

    /// Returns the control plane for changes, to add data that only the runtime knows.
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.0.meta
    }

    /// Returns data, or error and partial data.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.0.outcome
    }

    /// Returns the error of a failure.
    #[must_use]
    pub fn error(&self) -> Option<&ErrorBody> {
        match &self.0.outcome {
            Outcome::Success { .. } => None,
            Outcome::Failure { error, .. } => Some(error),
        }
    }

    /// Returns the payload of a success.
    #[must_use]
    pub fn data(&self) -> Option<&Map<String, Value>> {
        match &self.0.outcome {
            Outcome::Success { data } => Some(data),
            Outcome::Failure { .. } => None,
        }
    }

    /// Returns the payload of a success, to change a member that the contract does not cover.
    pub(crate) fn data_mut(&mut self) -> Option<&mut Map<String, Value>> {
        match &mut self.0.outcome {
            Outcome::Success { data } => Some(data),
            Outcome::Failure { .. } => None,
        }
    }

    /// Adds a top-level member: `_emitted_context`, and on failures `session_id` and `streaming`. Returns false
    /// for any other name, because the envelope is a closed object. Token counts belong into `meta`.
    pub fn set_extra_member(&mut self, name: &str, value: Value) -> bool {
        let members: &[&str] = if self.ok() { &SUCCESS_MEMBERS } else { &FAILURE_MEMBERS };
        let has_its_place = ["ok", "meta", "data", "error", "partial_data", "usage"].contains(&name);
        let allowed = members.contains(&name) && !has_its_place;
        if allowed {
            self.0.extra_members.insert(name.to_owned(), value);
        }
        allowed
    }

    /// Removes and returns an additional top-level member.
    pub fn take_extra_member(&mut self, name: &str) -> Option<Value> {
        self.0.extra_members.shift_remove(name)
    }

    /// Returns an additional top-level member.
    #[must_use]
    pub fn extra_member(&self, name: &str) -> Option<&Value> {
        self.0.extra_members.get(name)
    }

    /// Deserializes the payload of a success into a type of the caller. A failed envelope returns its failure.
    /// A payload that satisfies the module's contract but not the type is E3001.
    pub fn data_as<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Failure> {
        match &self.0.outcome {
            Outcome::Success { data } => T::deserialize(data).map_err(|error| {
                let message = format!("cannot read the data as the requested type: {error}");
                Failure::new(ErrorCode::SchemaValidationFailed, message)
                    .suggest("Align the type with `data` in the module's `schema.json`")
            }),
            Outcome::Failure { error, partial_data } => {
                Err(Failure::from_envelope(&self.0.meta, error, partial_data.clone()))
            }
        }
    }

    /// Returns the payload of a success, or the failure.
    pub fn into_result(self) -> Result<Map<String, Value>, Failure> {
        let EnvelopeParts { meta, outcome, .. } = *self.0;
        match outcome {
            Outcome::Success { data } => Ok(data),
            Outcome::Failure { error, partial_data } => {
                Err(Failure::from_envelope(&meta, &error, partial_data))
            }
        }
    }

    /// Returns the payload of a success, for a failure that keeps it as `partial_data`.
    #[must_use]
    pub fn into_data(self) -> Option<Map<String, Value>> {
        match self.0.outcome {
            Outcome::Success { data } => Some(data),
            Outcome::Failure { .. } => None,
        }
    }
}

fn not_an_envelope() -> Vec<Violation> {
    vec![Violation::new("", ErrorCode::SchemaValidationFailed, "type", "expected an envelope")]
}

fn into_object(value: Value) -> Option<Map<String, Value>> {
    if let Value::Object(object) = value { Some(object) } else { None }
}

impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("ok", &self.ok())?;
        map.serialize_entry("meta", &self.0.meta)?;
        match &self.0.outcome {
            Outcome::Success { data } => map.serialize_entry("data", data)?,
            Outcome::Failure { error, partial_data } => {
                map.serialize_entry("error", &error.0)?;
                if let Some(partial) = partial_data {
                    map.serialize_entry("partial_data", partial)?;
                }
            }
        }
        for (name, value) in &self.0.extra_members {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The changes of a module to the common contract. The default is the contract without a module.
#[derive(Debug, Clone, Copy)]
pub struct Strictness<'a> {
    /// The accepted forms of `meta.risk`.
    pub risk: RiskForm<'a>,
    /// The insight limits.
    pub insights: insights::Limit,
    /// True if `rationale` may be an object (modules of format v1 and v0).
    pub rationale_object: bool,
    /// True if a failure may carry a partial result.
    pub partial_allowed: bool,
}

impl Default for Strictness<'_> {
    fn default() -> Self {
        Self {
            risk: RiskForm::Words,
            insights: insights::Limit::WIDEST,
            rationale_object: false,
            partial_allowed: true,
        }
    }
}

/// The fault of an `ok` that is present and not a boolean. No shape of an answer allows it, so it is looked for before
/// an answer is wrapped or repaired. An answer without `ok` has no such fault: v2.1 has none. (D-19)
#[must_use]
pub fn mistyped_ok(members: &Map<String, Value>) -> Option<Violation> {
    let is_mistyped = member(members, "ok").is_some_and(|ok| !ok.is_boolean());
    is_mistyped.then(|| contract("/ok", "type", "expected `true` or `false`"))
}

/// Returns all violations of a finished envelope. An empty list means that it is valid.
#[must_use]
pub fn check(value: &Value, strictness: Strictness<'_>) -> Vec<Violation> {
    let Value::Object(members) = value else {
        return vec![contract("", "type", "expected an object")];
    };
    let mut found = Vec::new();
    found.extend(mistyped_ok(members));
    match member(members, "ok") {
        Some(Value::Bool(true)) => check_success(members, strictness, &mut found),
        Some(Value::Bool(false)) => check_failure(members, strictness, &mut found),
        Some(_) => {}
        None => found.push(contract("/ok", "required", "required member `ok` is missing")),
    }
    match member(members, "meta") {
        Some(Value::Object(object)) => {
            found.extend(
                meta::check(object, strictness.risk).into_iter().map(|each| each.with_prefix("/meta")),
            );
        }
        Some(_) => found.push(contract("/meta", "type", "expected an object")),
        None => found.push(contract("/meta", "required", "required member `meta` is missing")),
    }
    check_extra_members(members, &mut found);
    found
}

fn contract(path: &str, rule: &'static str, message: impl Into<String>) -> Violation {
    Violation::new(path, ErrorCode::SchemaValidationFailed, rule, message)
}

fn check_success(members: &Map<String, Value>, strictness: Strictness<'_>, found: &mut Vec<Violation>) {
    for forbidden in ["error", "partial_data"] {
        if member(members, forbidden).is_some() {
            let message = format!("a success must not have `{forbidden}`");
            found.push(contract(&pointer("", forbidden), "closed", message));
        }
    }
    check_closed(members, &SUCCESS_MEMBERS, &["error", "partial_data"], found);
    match member(members, "data") {
        Some(Value::Object(data)) => {
            check_rationale(member(data, "rationale"), strictness, found);
            found.extend(insights::check(data, strictness.insights));
        }
        Some(_) => found.push(contract("/data", "type", "expected an object")),
        None => found.push(contract("/data", "required", "required member `data` is missing")),
    }
}

fn check_rationale(value: Option<&Value>, strictness: Strictness<'_>, found: &mut Vec<Violation>) {
    let (rule, message) = match value {
        Some(Value::String(text)) if !text.trim().is_empty() => return,
        Some(Value::Object(_)) if strictness.rationale_object => return,
        Some(Value::String(_)) => ("blank", "expected a rationale that is not empty"),
        Some(_) => ("type", "expected a string"),
        None => ("required", "required member `rationale` is missing"),
    };
    found.push(Violation::new("/data/rationale", ErrorCode::MissingRationale, rule, message));
}

fn check_failure(members: &Map<String, Value>, strictness: Strictness<'_>, found: &mut Vec<Violation>) {
    if member(members, "data").is_some() {
        found.push(contract("/data", "closed", "a failure must not have `data`; use `partial_data`"));
    }
    check_closed(members, &FAILURE_MEMBERS, &["data"], found);
    match member(members, "error") {
        Some(Value::Object(error)) => check_error(error, found),
        Some(_) => found.push(contract("/error", "type", "expected an object")),
        None => found.push(contract("/error", "required", "required member `error` is missing")),
    }
    match member(members, "partial_data") {
        None | Some(Value::Null) => {}
        Some(Value::Object(_)) if strictness.partial_allowed => {}
        Some(Value::Object(_)) => {
            found.push(contract("/partial_data", "closed", "this module allows no partial data"));
        }
        Some(_) => found.push(contract("/partial_data", "type", "expected an object")),
    }
    for (name, holds, message) in STREAM_MEMBERS {
        if member(members, name).is_some_and(|value| !holds(value)) {
            found.push(contract(&pointer("", name), "type", message));
        }
    }
}

/// Additional members of a failure that came from a stream.
const STREAM_MEMBERS: [OptionalMember; 2] = [
    ("streaming", |value| value == &Value::Bool(true), "expected `true`"),
    (
        "session_id",
        |value| value.as_str().is_some_and(|id| !id.is_empty()),
        "expected a string that is not empty",
    ),
];

fn check_error(error: &Map<String, Value>, found: &mut Vec<Violation>) {
    for name in ["code", "message"] {
        let path = pointer("/error", name);
        match member(error, name) {
            Some(Value::String(_)) => {}
            Some(_) => found.push(contract(&path, "type", "expected a string")),
            None => {
                found.push(contract(&path, "required", format!("required member `{name}` is missing")));
            }
        }
    }
    let optional: [OptionalMember; 3] = [
        ("recoverable", Value::is_boolean, "expected `true` or `false`"),
        ("suggestion", Value::is_string, "expected a string"),
        ("details", Value::is_object, "expected an object"),
    ];
    for (name, holds, message) in optional {
        if member(error, name).is_some_and(|value| !holds(value)) {
            found.push(contract(&pointer("/error", name), "type", message));
        }
    }
}

fn check_closed(
    members: &Map<String, Value>,
    allowed: &[&str],
    reported: &[&str],
    found: &mut Vec<Violation>,
) {
    let unknown =
        members.keys().filter(|name| !allowed.contains(&name.as_str()) && !reported.contains(&name.as_str()));
    for name in unknown.take(MAX_VIOLATIONS) {
        let message = format!("an envelope has no member `{}`", text::cut(name, 80));
        found.push(contract(&pointer("", name), "closed", message));
    }
}

fn check_extra_members(members: &Map<String, Value>, found: &mut Vec<Violation>) {
    for name in ["_emitted_context", "usage"] {
        if member(members, name).is_some_and(|value| !value.is_object()) {
            found.push(contract(&pointer("", name), "type", "expected an object"));
        }
    }
    if let Some(Value::Object(usage)) = member(members, "usage") {
        check_usage(usage, found);
    }
}

fn check_usage(usage: &Map<String, Value>, found: &mut Vec<Violation>) {
    let names = ["input_tokens", "output_tokens", "total_tokens"];
    for name in names {
        if member(usage, name).is_some_and(|value| !value.is_u64()) {
            found.push(contract(&pointer("/usage", name), "type", "expected a whole number, 0 or more"));
        }
    }
    let [input, output, total] = names.map(|name| member(usage, name).and_then(Value::as_u64));
    if let (Some(input), Some(output), Some(total)) = (input, output, total)
        && input.checked_add(output) != Some(total)
    {
        let message = "expected the sum of `input_tokens` and `output_tokens`";
        found.push(contract("/usage/total_tokens", "sum", message));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(value: &Value) -> Vec<String> {
        let found = check(value, Strictness::default());
        found.iter().map(|violation| format!("{} {}", violation.path, violation.rule)).collect()
    }

    fn success() -> Value {
        json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } })
    }

    #[test]
    fn data_is_read_as_a_type_or_the_failure_is_an_error() {
        #[derive(Debug, serde::Deserialize)]
        struct Word<'a> {
            word: &'a str,
        }
        let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
        let good = json!({ "ok": true, "meta": meta, "data": { "word": "a", "rationale": "r" } });
        let good = Envelope::from_value(good).unwrap();
        assert_eq!(good.data_as::<Word<'_>>().unwrap().word, "a");
        let wrong = good.data_as::<Vec<u8>>().unwrap_err();
        assert_eq!(wrong.code(), ErrorCode::SchemaValidationFailed);
        assert_eq!(good.into_result().unwrap()["rationale"], "r");

        let error = json!({ "code": "E5001", "message": "m", "suggestion": "s", "details": { "a": 1 } });
        let bad = json!({ "ok": false, "meta": meta, "error": error, "partial_data": { "word": "b" } });
        let bad = Envelope::from_value(bad).unwrap();
        let failure = bad.data_as::<Word<'_>>().unwrap_err();
        assert_eq!((failure.to_string().as_str(), failure.suggestion()), ("E5001: m", Some("s")));
        let failure = bad.into_result().unwrap_err();
        assert_eq!(failure.partial_data().unwrap()["word"], "b");
        let again = serde_json::to_value(failure.into_envelope()).unwrap();
        assert_eq!((&again["error"]["code"], &again["error"]["details"]["a"]), (&json!("E5001"), &json!(1)));
    }

    #[test]
    fn env_001_a_success_survives_the_round_trip() {
        let value = success();
        let envelope = Envelope::from_value(value.clone()).unwrap();
        assert!(envelope.ok());
        assert_eq!(serde_json::to_value(&envelope).unwrap(), value);
    }

    #[test]
    fn env_002_008_a_success_is_closed() {
        let mut value = success();
        value["error"] = Value::Null;
        value["foo"] = json!(1);
        assert_eq!(paths(&value), ["/error closed", "/foo closed"]);
        let mut value = success();
        value["usage"] = json!({ "input_tokens": 1 });
        value["_emitted_context"] = json!({});
        assert!(paths(&value).is_empty());
        value["usage"] = json!(3);
        assert_eq!(paths(&value), ["/usage type"]);
    }

    #[test]
    fn env_003_to_006_a_failure_has_an_error_no_data_and_maybe_partial_data() {
        let mut value = json!({
            "ok": false, "meta": { "confidence": 0, "risk": "high", "explain": "e" },
            "error": { "code": "E2006", "message": "m" }, "partial_data": null, "session_id": "s", "streaming": true,
        });
        assert!(paths(&value).is_empty());
        assert!(Envelope::from_value(value.clone()).unwrap().error().is_some());
        value["data"] = json!({});
        value["partial_data"] = json!([]);
        value["error"] = json!({ "code": 1 });
        assert_eq!(
            paths(&value),
            ["/data closed", "/error/code type", "/error/message required", "/partial_data type"]
        );
    }

    #[test]
    fn env_007_012_what_is_missing_or_mistyped_is_said_all_at_once() {
        assert_eq!(paths(&json!([])), [" type"]);
        assert_eq!(paths(&json!({})), ["/ok required", "/meta required"]);
        assert_eq!(paths(&json!({ "ok": 1, "meta": null })), ["/ok type", "/meta type"]);
        assert_eq!(
            paths(&json!({ "ok": true, "meta": {}, "data": [] })),
            ["/data type", "/meta/confidence required", "/meta/risk required", "/meta/explain required"]
        );
    }

    #[test]
    fn data_001_002_a_blank_rationale_is_no_rationale() {
        for rationale in [json!(""), json!("  \n"), json!(5), json!({ "decisions": [] })] {
            let mut value = success();
            value["data"]["rationale"] = rationale.clone();
            let found = check(&value, Strictness::default());
            assert_eq!(found.len(), 1, "{rationale}");
            assert_eq!(found[0].code, ErrorCode::MissingRationale);
        }
    }

    #[test]
    fn a_long_rationale_survives_byte_for_byte() {
        let mut value = success();
        let long = "é".repeat(1 << 19);
        value["data"]["rationale"] = Value::from(long.clone());
        let envelope = Envelope::from_value(value).unwrap();
        assert_eq!(envelope.data().unwrap()["rationale"], long);
    }

    #[test]
    fn err_001_002_optional_error_members_are_typed_and_others_tolerated() {
        let mut value = json!({
            "ok": false, "meta": { "confidence": 0, "risk": "high", "explain": "e" },
            "error": { "code": "FOO", "message": "m", "recoverable": "yes", "suggestion": 3, "details": [], "hint": 1 },
        });
        assert_eq!(
            paths(&value),
            ["/error/recoverable type", "/error/suggestion type", "/error/details type"]
        );
        value["error"] = json!({ "code": "FOO", "message": "m", "hint": 1 });
        assert!(paths(&value).is_empty());
    }

    #[test]
    fn env_008_only_known_members_can_be_put_beside_the_payload() {
        let mut envelope = Envelope::from_value(success()).unwrap();
        assert!(envelope.set_extra_member("_emitted_context", json!({})));
        assert!(!envelope.set_extra_member("session_id", json!("s")));
        // D-07
        assert!(!envelope.set_extra_member("usage", json!({})));
        assert!(Envelope::from_value(serde_json::to_value(&envelope).unwrap()).is_ok());
    }
}
