//! A failed run: one published code, a message, a suggestion, and any partial result.
//! Building a failure never logs, and its texts never contain secrets. The surface that ends the request logs
//! it once.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::address::shown_reason;
use crate::code::{Blame, DefaultConfidence, ErrorCode};
use crate::envelope::{Envelope, ErrorBody};
use crate::meta::{Confidence, Meta};
use crate::risk_level::Risk;
use crate::violation::{Violation, summarise};

/// The reason why a run failed. Converts into exactly one failure envelope.
///
/// Boxed, because it is the error type of many results and must not enlarge their success case. Implements
/// `Error`, so that `?` works with it. Its texts are the code, the message and the hint.
#[derive(Clone)]
#[must_use = "a failure must reach the caller as an envelope"]
pub struct Failure(Box<FailureParts>);

/// `details.kind` of a cancelled run.
const CANCELLED: &str = "cancelled";

/// `details.kind` of a failure that the wiring of a composition caused.
const MODULE_AT_FAULT: &str = "module";

/// Returns whether the caller cancelled the run of this envelope. Such a run has nothing to recover.
#[must_use]
pub fn was_cancelled(envelope: &Envelope) -> bool {
    let details = envelope.error().and_then(|error| error.members().get("details"));
    details.and_then(|details| details.get("kind")).is_some_and(|kind| kind == CANCELLED)
}

#[derive(Debug, Clone)]
struct FailureParts {
    code: ErrorCode,
    /// A code of the module itself, which the catalogue does not contain.
    own_code: Option<String>,
    message: String,
    blame: Blame,
    confidence: Confidence,
    risk: Risk,
    /// Set if it differs from the code's default.
    recoverable: Option<bool>,
    suggestion: Option<String>,
    /// The suggestion for a remote caller, who cannot type a command here.
    remote_suggestion: Option<String>,
    details: Map<String, Value>,
    partial_data: Option<Map<String, Value>>,
}

impl Failure {
    /// A failure with the code's defaults for blame, confidence and risk.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(FailureParts {
            code,
            own_code: None,
            message: message.into(),
            blame: code.blame(),
            confidence: Confidence::ZERO,
            risk: code.risk(),
            recoverable: None,
            suggestion: None,
            remote_suggestion: None,
            details: Map::new(),
            partial_data: None,
        }))
    }

    /// A failure that lists every broken rule in `error.details.violations`.
    pub fn from_violations(code: ErrorCode, violations: &[Violation]) -> Self {
        // The violations with this code come first, so that the message matches the code.
        let mut violations: Vec<&Violation> = violations.iter().collect();
        violations.sort_by_key(|each| each.code != code);
        Self::new(code, summarise(&violations)).with_detail("violations", json!(violations))
    }

    /// A module folder that cannot be loaded: E4000 with `details.kind = "module_invalid"`.
    pub fn module_invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InternalError, message)
            .with_blame(Blame::Module)
            .with_detail("kind", json!("module_invalid"))
    }

    /// A module whose author wired its parts so that one of them refuses its input: E4000 with
    /// `details.kind = "module"`. (D-21)
    pub fn module_at_fault(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InternalError, message)
            .with_blame(Blame::Module)
            .with_detail("kind", json!(MODULE_AT_FAULT))
    }

    /// An unusable configuration file. Without it the model to call is unknown, so the code is E4001 with
    /// `details.kind = "configuration"`. The caller's input was not read.
    pub fn config_fault(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ProviderUnavailable, message)
            .with_blame(Blame::Operator)
            .with_detail("kind", json!("configuration"))
    }

    /// A run cancelled by its caller: E2010 with `details.kind = "cancelled"`. No party is blamed.
    pub fn cancellation(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::StreamInterrupted, message)
            .with_blame(Blame::Nobody)
            .with_detail("kind", json!(CANCELLED))
    }

    /// Replaces the code with a more specific one, such as E2011 for a stream that ran out of time.
    pub fn with_code(mut self, code: ErrorCode) -> Self {
        if self.0.blame == self.0.code.blame() {
            self.0.blame = code.blame();
        }
        self.0.code = code;
        self.0.risk = code.risk();
        self
    }

    /// Overrides the party that the code blames by default.
    pub fn with_blame(mut self, blame: Blame) -> Self {
        self.0.blame = blame;
        self
    }

    /// Overrides whether the failure is recoverable.
    pub fn with_recoverable(mut self, recoverable: bool) -> Self {
        self.0.recoverable = Some(recoverable);
        self
    }

    /// Sets the suggestion for the reader, concrete enough to paste.
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.0.suggestion = Some(suggestion.into());
        self.0.remote_suggestion = None;
        self
    }

    /// Sets the suggestion for a remote caller, if the local one names a command or a flag of this program.
    pub fn suggest_remotely(mut self, suggestion: impl Into<String>) -> Self {
        self.0.remote_suggestion = Some(suggestion.into());
        self
    }

    /// Adapts the failure for a remote caller: commands, flags and places of stores are for the server operator only.
    pub fn for_remote_caller(mut self) -> Self {
        // The reason of a store follows the text of the failure.
        if let Some((text, reason)) = self.0.message.split_once(": store `") {
            let reason = format!("store `{reason}");
            self.0.message = format!("{text}: {}", shown_reason(&reason, true));
        }
        let names_command = |hint: &String| hint.contains("`cogn ") || hint.contains("`--");
        if let Some(own) = self.0.remote_suggestion.take() {
            self.0.suggestion = Some(own);
        } else if self.0.suggestion.as_ref().is_some_and(names_command) {
            self.0.suggestion = Some("Contact the server operator".to_owned());
        }
        self
    }

    /// Adds a member to `error.details`.
    pub fn with_detail(mut self, name: &str, value: Value) -> Self {
        self.0.details.insert(name.to_owned(), value);
        self
    }

    /// Sets the partial result. `None` omits the member.
    pub fn with_partial(mut self, partial: Option<Map<String, Value>>) -> Self {
        self.0.partial_data = partial;
        self
    }

    /// Keeps the model's own confidence, and its risk if higher. Applies only to codes about the answer itself
    /// (E2001).
    pub fn with_model_view(mut self, confidence: Confidence, risk: Risk) -> Self {
        if self.0.code.confidence() == DefaultConfidence::OfTheModel {
            self.0.confidence = confidence;
            self.0.risk = self.0.risk.max(risk);
        }
        self
    }

    /// Returns the published code. For a module's own code this is `E4000`; see [`number`](Self::number).
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Returns the number of the code, such as `E2001`, or the module's own code.
    #[must_use]
    pub fn number(&self) -> &str {
        self.0.own_code.as_deref().unwrap_or(self.0.code.number())
    }

    /// Returns the partial result.
    #[must_use]
    pub fn partial_data(&self) -> Option<&Map<String, Value>> {
        self.0.partial_data.as_ref()
    }

    /// The failure of a composition whose part `name` failed. Keeps code, recoverability and details of the
    /// part; the other fields are the composition's own. (COMP-081)
    pub fn in_part(self, name: &str) -> Self {
        let part = *self.0;
        let mut failure = Self::new(part.code, format!("module `{name}` failed: {}", part.message));
        if part.own_code.is_some() || part.blame != part.code.blame() {
            (failure.0.own_code, failure.0.blame) = (part.own_code, part.blame);
        }
        failure.0.recoverable = part.recoverable;
        failure.0.details = part.details;
        failure.with_detail("module", json!(name))
    }

    /// Converts a failed envelope into a failure.
    pub(crate) fn from_envelope(
        meta: &Meta,
        error: &ErrorBody,
        partial_data: Option<Map<String, Value>>,
    ) -> Self {
        let known = ErrorCode::find(error.code());
        let code = known.unwrap_or(ErrorCode::InternalError);
        let member = |name: &str| error.members().get(name);
        let mut failure = Self::new(code, error.message()).with_partial(partial_data);
        let parts = &mut failure.0;
        if known.is_none() {
            parts.own_code = Some(error.code().to_owned());
            parts.blame = Blame::Model;
        }
        parts.confidence = meta.confidence;
        parts.risk = meta.risk.level();
        parts.recoverable = member("recoverable").and_then(Value::as_bool);
        parts.suggestion = member("suggestion").and_then(Value::as_str).map(str::to_owned);
        parts.details = member("details").and_then(Value::as_object).cloned().unwrap_or_default();
        if parts.details.get("kind").is_some_and(|kind| kind == MODULE_AT_FAULT) {
            parts.blame = Blame::Module;
        }
        failure
    }

    /// Returns the details that go into `error.details`.
    #[must_use]
    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }

    /// Returns the error message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the suggestion for the reader, if there is one.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.0.suggestion.as_deref()
    }

    /// Converts the failure into the envelope that the caller receives.
    #[must_use]
    pub fn into_envelope(self) -> Envelope {
        let parts = *self.0;
        let own = parts.blame == parts.code.blame();
        let opening = if own { parts.code.opening() } else { parts.blame.opening() };
        let explain = format!("{opening}: {}", parts.message);
        let meta = Meta::new(parts.confidence, parts.risk, &explain);
        let number = parts.own_code.as_deref().unwrap_or(parts.code.number());
        let mut error = ErrorBody::new(number, &parts.message);
        error.set("recoverable", Value::Bool(parts.recoverable.unwrap_or(parts.code.recoverable())));
        if let Some(suggestion) = parts.suggestion {
            error.set("suggestion", Value::String(suggestion));
        }
        if !parts.details.is_empty() {
            error.set("details", Value::Object(parts.details));
        }
        Envelope::failure(meta, error, parts.partial_data)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.number(), self.message())
    }
}

/// The text that `main` prints for an error: code, message and hint. The alternate form shows all fields.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return f.debug_tuple("Failure").field(&self.0).finish();
        }
        write!(f, "{self}")?;
        self.suggestion().map_or(Ok(()), |hint| write!(f, " (hint: {hint})"))
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(failure: Failure) -> Value {
        serde_json::to_value(failure.into_envelope()).unwrap()
    }

    #[test]
    fn err_007_008_009_010_defaults_come_from_the_catalogue() {
        let value = envelope(Failure::new(ErrorCode::InvalidInput, "no `code`").suggest("add it"));
        assert_eq!(value["meta"]["confidence"], 0.0);
        assert_eq!(value["meta"]["risk"], "high");
        assert_eq!(value["meta"]["explain"], "Input validation failed: no `code`");
        assert_eq!(value["error"]["recoverable"], true);
        assert_eq!(value["error"]["suggestion"], "add it");
    }

    // COMP-081, D-16: recoverability and kind of a failure are the same for the composition as for the part.
    #[test]
    fn comp_081_d_16_a_whole_fails_as_its_part_did() {
        let refused = Failure::new(ErrorCode::ProviderUnavailable, "the key is not valid")
            .with_recoverable(false)
            .with_detail("kind", json!("auth"));
        let part = refused.into_envelope().into_result().unwrap_err();
        let whole = envelope(part.in_part("summarizer"));
        assert_eq!(whole["error"]["code"], "E4001");
        assert_eq!(whole["error"]["message"], "module `summarizer` failed: the key is not valid");
        assert_eq!(whole["error"]["recoverable"], false);
        assert_eq!(whole["error"]["details"], json!({ "kind": "auth", "module": "summarizer" }));
        let own = json!({ "ok": false, "meta": { "confidence": 0.1, "risk": "low", "explain": "e" },
                          "error": { "code": "E5001", "message": "m" } });
        let part = Envelope::from_value(own).unwrap().into_result().unwrap_err();
        let whole = envelope(part.in_part("a"));
        assert_eq!((&whole["error"]["code"], &whole["meta"]["confidence"]), (&json!("E5001"), &json!(0.0)));
    }

    #[test]
    fn a_caller_from_elsewhere_is_told_no_command() {
        let hint = |failure: Failure| failure.for_remote_caller().suggestion().map(str::to_owned);
        let failure = || Failure::new(ErrorCode::InvalidInput, "m");
        assert_eq!(hint(failure()), None);
        assert_eq!(hint(failure().suggest("Send less")).as_deref(), Some("Send less"));
        let own = failure().suggest("Run `cogn list`").suggest_remotely("`GET /api/modules`");
        assert_eq!(own.suggestion(), Some("Run `cogn list`"), "here it is a command");
        assert_eq!(hint(own).as_deref(), Some("`GET /api/modules`"));
        for command in ["Run `cogn doctor`", "Use `--model`"] {
            assert_eq!(hint(failure().suggest(command)).as_deref(), Some("Contact the server operator"));
        }
    }

    #[test]
    fn a_failure_is_an_error_of_the_usual_kind() {
        let failure = Failure::new(ErrorCode::InvalidInput, "no `code`").suggest("add it");
        let error: Box<dyn std::error::Error + Send + Sync> = failure.clone().into();
        assert_eq!(error.to_string(), "E1001: no `code`");
        assert_eq!(format!("{failure:?}"), "E1001: no `code` (hint: add it)");
        assert!(format!("{failure:#?}").contains("suggestion: Some("));
    }

    #[test]
    fn err_009_only_low_confidence_keeps_the_view_of_the_model() {
        let sure = Confidence::new(0.8).unwrap();
        let low = envelope(Failure::new(ErrorCode::LowConfidence, "m").with_model_view(sure, Risk::High));
        assert_eq!(low["meta"]["confidence"], 0.8);
        assert_eq!(low["meta"]["risk"], "high");
        let other = envelope(Failure::new(ErrorCode::Timeout, "m").with_model_view(sure, Risk::None));
        assert_eq!(other["meta"]["confidence"], 0.0);
    }

    #[test]
    fn err_011_a_long_message_keeps_explain_short() {
        let value = envelope(Failure::new(ErrorCode::InternalError, "x".repeat(5_000)));
        assert_eq!(value["meta"]["explain"].as_str().unwrap().chars().count(), 280);
        assert_eq!(value["error"]["message"].as_str().unwrap().len(), 5_000);
    }

    #[test]
    fn err_006_violations_travel_in_details() {
        let violation = Violation::new("/code", ErrorCode::MissingRequiredField, "required", "is missing");
        let value = envelope(Failure::from_violations(ErrorCode::InvalidInput, &[violation]));
        assert_eq!(value["error"]["code"], "E1001");
        assert_eq!(
            value["error"]["details"]["violations"][0],
            json!({ "path": "/code", "code": "E1002", "rule": "required", "message": "is missing" })
        );
    }

    #[test]
    fn over_002_the_message_is_about_the_code() {
        let missing = Violation::new("/data/a", ErrorCode::SchemaValidationFailed, "required", "is missing");
        let many =
            Violation::new("/data/extensions/insights", ErrorCode::OverflowLimit, "overflow", "too many");
        let failure = Failure::from_violations(ErrorCode::OverflowLimit, &[missing, many]);
        assert!(failure.message().starts_with("`/data/extensions/insights`"), "{}", failure.message());
    }

    // ERR-008: neither the input nor the provider is the cause.
    #[test]
    fn err_008_a_cancelled_run_and_a_faulty_configuration_blame_nobody_else() {
        let cancelled = Failure::cancellation("by the client").into_envelope();
        assert!(was_cancelled(&cancelled));
        let value = serde_json::to_value(cancelled).unwrap();
        assert_eq!(value["error"]["code"], "E2010");
        assert_eq!(value["meta"]["explain"], "Cancelled by the caller: by the client");
        let configuration = Failure::config_fault("`a.yaml`: line 1").into_envelope();
        assert!(!was_cancelled(&configuration));
        let value = serde_json::to_value(configuration).unwrap();
        assert_eq!(value["error"]["code"], "E4001");
        assert_eq!(value["meta"]["explain"], "Configuration is invalid: `a.yaml`: line 1");
        assert_eq!(value["error"]["details"]["kind"], "configuration");
    }

    #[test]
    fn meta_006_explain_names_the_side_that_failed() {
        let model = envelope(Failure::new(ErrorCode::ParseError, "m"));
        assert_eq!(model["meta"]["explain"], "Model answer rejected: m");
        let provider = envelope(Failure::new(ErrorCode::RateLimited, "m"));
        assert_eq!(provider["meta"]["explain"], "Provider failed: m");
        assert!(
            envelope(Failure::module_invalid("m"))["meta"]["explain"].as_str().unwrap().starts_with("Module")
        );
    }
}
