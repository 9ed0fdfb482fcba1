//! Stage 1: is the input fit to be sent to a model? (E1000, E1001)
//! Changes nothing in it, and asks no model before it is sure.

use cognitive_contract::code::Blame;
use cognitive_contract::{Enforcement, ErrorCode, Failure, Module};
use cognitive_library::json;
use serde_json::{Value, json};

use crate::host::RunInput;
use crate::receipt::canonical_sha256;

/// Input that the module's contract accepts. Only [`validate`] makes one.
#[derive(Debug, Clone)]
pub struct ValidInput {
    value: Value,
    arguments: Option<String>,
}

impl ValidInput {
    /// The input object.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The hash of the input without context, whatever the order of its members.
    #[must_use]
    pub fn sha256(&self) -> String {
        let mut value = self.value.clone();
        if let Value::Object(members) = &mut value {
            members.shift_remove("_context");
        }
        canonical_sha256(&value)
    }

    /// The user's text for `$ARGUMENTS`: given as such, or taken from the members that stand for it.
    #[must_use]
    pub fn arguments(&self) -> Option<&str> {
        let member = |name: &str| self.value.get(name).and_then(Value::as_str);
        self.arguments.as_deref().or_else(|| member("$ARGUMENTS")).or_else(|| member("query"))
    }
}

/// Accepts or refuses an input.
pub fn validate(module: &Module, input: &RunInput, enforcement: Enforcement) -> Result<ValidInput, Failure> {
    match input {
        // Free text fits no schema by design; it becomes an object with the two customary names.
        RunInput::Text(text) => {
            let value = json!({ "$ARGUMENTS": text, "query": text });
            Ok(ValidInput { value, arguments: Some(text.clone()) })
        }
        RunInput::Json(value) => judge(module, value.clone(), enforcement),
        RunInput::Raw(text) => judge(module, parse(text)?, enforcement),
    }
}

fn judge(module: &Module, value: Value, enforcement: Enforcement) -> Result<ValidInput, Failure> {
    let must_fit = enforcement == Enforcement::Full || !value.is_object();
    match must_fit.then(|| module.input_failure(&value)).flatten() {
        Some(failure) => Err(failure),
        None => Ok(ValidInput { value, arguments: None }),
    }
}

fn parse(text: &str) -> Result<Value, Failure> {
    json::parse(text.trim_start_matches('\u{feff}')).map_err(|error| {
        let message = format!("the input is not JSON: {} (byte {})", error.message, error.offset);
        Failure::new(ErrorCode::ParseError, message)
            .blaming(Blame::Caller)
            .with_detail("source", json!("caller"))
            .suggest("Pass an object such as `--input '{\"text\": \"…\"}'`, or free text with `--args`")
    })
}
