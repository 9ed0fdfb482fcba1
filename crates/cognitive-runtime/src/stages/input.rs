//! Stage 1: is the input fit to be sent to a model? (E1001)
//! Changes nothing in it, and asks no model before it is sure.

use cognitive_contract::{Enforcement, Failure, Module};
use serde_json::{Value, json};

use crate::host::RunInput;

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
        RunInput::Json(value) => {
            let must_fit = enforcement == Enforcement::Full || !value.is_object();
            match module.input_failure(value).filter(|_| must_fit) {
                Some(failure) => Err(failure),
                None => Ok(ValidInput { value: value.clone(), arguments: None }),
            }
        }
    }
}
