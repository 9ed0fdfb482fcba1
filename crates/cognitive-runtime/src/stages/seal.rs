//! Stage 6: add the notices of module, answer and run. Comes after validation, so that a closed meta schema cannot object;
//! who answered, and at what cost, is added where a run ends, because failures have that too.

use cognitive_contract::{Envelope, Failure, Module, Warning};
use cognitive_schema::MAX_VIOLATIONS;

use super::output::JudgedAnswer;

/// Turns a judged answer into the envelope that the caller gets.
#[must_use]
pub fn seal(module: &Module, answer: JudgedAnswer, of_the_run: &[Warning]) -> Envelope {
    let mut warnings: Vec<Warning> =
        module.warnings.iter().cloned().chain(answer.notices(of_the_run)).collect();
    let mut envelope = answer.outcome.unwrap_or_else(Failure::into_envelope);
    if warnings.len() > MAX_VIOLATIONS {
        let more = warnings.len() - MAX_VIOLATIONS;
        warnings.truncate(MAX_VIOLATIONS);
        warnings.push(Warning::new("REPAIRED", format!("and {more} more")));
    }
    let meta = envelope.meta_mut();
    for warning in &warnings {
        meta.warn(warning);
    }
    envelope
}
