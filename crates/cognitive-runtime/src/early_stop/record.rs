//! The result of an early stop: a failure with the complete members, and an entry in the receipt. The failure depends
//! on the text alone, not on its chunks.

use cognitive_contract::module::output_code;
use cognitive_contract::{ErrorCode, Failure};
use serde::Serialize;
use serde_json::json;

use crate::run::Run;
use crate::stages::prompt::estimated_tokens;
use crate::stream::listeners::StoppedCall;
use crate::stream::partial;

/// An early stop in the receipt of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EarlyStopRecord {
    /// JSON pointer to the value that could not become valid any more.
    pub path: String,
    /// The rule that it broke.
    pub rule: &'static str,
    /// The offset in the reply at which that was certain.
    pub at: usize,
    /// An estimate of the tokens that the model had written when it was stopped.
    pub tokens_written: u64,
    /// The most tokens that it could still have written, if there was a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_saved_at_most: Option<u64>,
}

impl EarlyStopRecord {
    pub(crate) fn new(cut: &StoppedCall, limit: Option<u64>) -> Self {
        let tokens_written = estimated_tokens(&cut.text);
        Self {
            path: cut.verdict.violation.path.clone(),
            rule: cut.verdict.violation.rule,
            at: cut.verdict.at,
            tokens_written,
            tokens_saved_at_most: limit.map(|limit| limit.saturating_sub(tokens_written)),
        }
    }
}

/// The failure of a cut reply, which is also recorded in the receipt.
pub(crate) fn failure(run: &mut Run<'_, '_>) -> Failure {
    let Some(cut) = run.listeners.take_stopped_call() else {
        return Failure::new(ErrorCode::InternalError, "a call was stopped for an unknown reason");
    };
    run.receipt.cut(&cut, run.plan.settings.max_output_tokens);
    let found = std::slice::from_ref(&cut.verdict.violation);
    let read = cut.text.get(..cut.verdict.at).unwrap_or(&cut.text);
    let allowed = run.module.manifest.failure.partial_allowed;
    let partial = allowed.then(|| partial::complete(run.module, read, run.strict()).unwrap_or_default());
    Failure::from_violations(output_code(found), found)
        .with_partial(partial)
        .with_detail("stopped_at", json!(cut.verdict.at))
        .suggest(
            "The call was stopped early, because no further text could make the answer valid; without \
             `early_stop` the whole answer is stored",
        )
}
