//! Stage 6: add what only the runtime knows. Comes after validation, so that a closed meta schema cannot object.

use cognitive_contract::violation::MOST;
use cognitive_contract::{Envelope, Failure, Module, Warning};
use serde_json::Value;

use super::output::Answer;
use crate::receipt::Receipt;

/// Turns a judged answer into the envelope that the caller gets.
#[must_use]
pub fn seal(module: &Module, answer: Answer, receipt: &Receipt, show_receipt: bool) -> Envelope {
    let mut warnings: Vec<Warning> = module.warnings.iter().cloned().chain(answer.notices()).collect();
    let mut envelope = answer.outcome.unwrap_or_else(Failure::into_envelope);
    if warnings.len() > MOST {
        let more = warnings.len() - MOST;
        warnings.truncate(MOST);
        warnings.push(Warning::new("REPAIRED", format!("and {more} more")));
    }
    let meta = envelope.meta_mut();
    for warning in &warnings {
        meta.warn(warning);
    }
    if let Some(model) = &receipt.model {
        meta.extra.insert("model".to_owned(), Value::String(model.clone()));
    }
    if show_receipt {
        let receipt = serde_json::to_value(receipt).unwrap_or_default();
        meta.extra.insert("provenance".to_owned(), receipt);
    }
    envelope
}
