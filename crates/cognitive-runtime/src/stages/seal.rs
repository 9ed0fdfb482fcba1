//! Stage 6: adds the notices of module, answer and run. Runs after validation, so that a closed meta schema cannot
//! refuse them. Does not add model and cost: the end of the run does, because failures have them too.

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
