//! Stage 6: add what only the runtime knows. Comes after validation, so that a closed meta schema cannot object.

use cognitive_contract::{Envelope, Failure, Module};
use serde_json::Value;

use super::call::Reply;
use super::output::Answer;

/// Turns a judged answer into the envelope that the caller gets.
#[must_use]
pub fn seal(module: &Module, answer: Answer, reply: &Reply) -> Envelope {
    let mut envelope = answer.outcome.unwrap_or_else(Failure::into_envelope);
    let repairs = answer.repairs.iter().map(cognitive_contract::repair::Repair::warning);
    let warnings: Vec<_> = module.warnings.iter().cloned().chain(answer.warnings).chain(repairs).collect();
    for warning in &warnings {
        envelope.meta_mut().warn(warning);
    }
    envelope.meta_mut().extra.insert("model".to_owned(), Value::String(reply.model.clone()));
    if let Some(usage) = reply.end.usage {
        envelope.set_beside("usage", usage.to_value());
    }
    envelope
}
