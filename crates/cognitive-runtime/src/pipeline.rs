//! The stages of a run, in order. A failure at a stage ends the run with that stage's code.

use cognitive_contract::{Envelope, Failure, policy};

use crate::answer_cache::AnswerCache;
use crate::compose;
use crate::cost;
use crate::host::RunInput;
use crate::ladder;
use crate::run::Run;
use crate::stages::{input, media, models, prompt, seal};

/// Answers one request with one module.
pub(crate) async fn answer(run: &mut Run<'_, '_>, given: RunInput) -> Result<Envelope, Failure> {
    policy::invocation_refusal(&run.module.manifest, run.options.caller).map_or(Ok(()), Err)?;
    let (mut input, context) = input::accept(run, given)?;
    models::choose(run)?;
    run.lineage.references.judge(run.module, &run.policies, input.value())?;
    let media = media::collect(run, &input).await?;
    cost::admit(run, &input)?;
    let mut composed = compose::run(run, &mut input, context).await?;
    let cache = AnswerCache::for_question(run, &input, &media);
    let mut answer = match composed.answer.take() {
        Some(answer) => compose::hand_over(run, answer).await,
        None => {
            let prompt = prompt::write(run, &mut input, media, &composed.results)?;
            match cache.as_ref().and_then(|cache| cache.lookup(run)) {
                Some(answer) => answer,
                None => {
                    run.warnings.extend(run.audit.note_context(run.module, &input));
                    composed.limit_time(run)?;
                    ladder::ask(run, prompt).await?
                }
            }
        }
    };
    if let Ok(envelope) = &mut answer.outcome {
        let undeclared = composed.share_context(run.module, envelope);
        let is_new = !run.receipt.kept;
        run.warnings.extend(run.context.forward_context(run.module, &|| input.sha256(), envelope, is_new));
        // Only the modules above share it; the result of the root run has only declared types. (D-28)
        if !run.lineage.is_empty() {
            compose::merge_context(envelope, undeclared);
        }
    }
    if let Some(cache) = cache {
        cache.store(run, &answer);
    }
    Ok(seal::seal(run.module, answer, &run.warnings))
}
