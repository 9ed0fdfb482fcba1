//! The stages of a run, in order. A failure at a stage ends the run with that stage's code.

use cognitive_contract::{Envelope, Failure};

use crate::answer_cache::AnswerCache;
use crate::compose::{self, Composed};
use crate::cost;
use crate::host::RunInput;
use crate::ladder;
use crate::run::Run;
use crate::stages::input::ValidInput;
use crate::stages::media::MediaSet;
use crate::stages::output::JudgedAnswer;
use crate::stages::{input, media, models, prompt, seal};

/// Answers one request with one module.
pub(crate) async fn answer(run: &mut Run<'_, '_>, given: RunInput) -> Result<Envelope, Failure> {
    run.check_caller()?;
    let (mut input, context) = input::accept(run, given)?;
    models::choose(run)?;
    run.lineage.references.judge(run.module, &run.policies, input.value())?;
    let media = media::collect(run, &input).await?;
    cost::admit(run, &input)?;
    let mut composed = compose::run(run, &mut input, context).await?;
    let cache = AnswerCache::for_question(run, &input, &media);
    let mut answer = match composed.answer.take() {
        Some(answer) => compose::hand_over(run, answer).await,
        None => own_answer(run, &mut input, media, &composed, cache.as_ref()).await?,
    };
    if let Ok(envelope) = &mut answer.outcome {
        composed.share_context(run.module, envelope);
        run.hand_on_context(&input, envelope);
    }
    if let Some(cache) = cache {
        cache.store(run, &answer);
    }
    Ok(seal::seal(run.module, answer, &run.warnings))
}

/// The answer of the module's own prompt: from the cache if it has one, else from the model.
async fn own_answer(
    run: &mut Run<'_, '_>,
    input: &mut ValidInput,
    media: MediaSet,
    composed: &Composed,
    cache: Option<&AnswerCache>,
) -> Result<JudgedAnswer, Failure> {
    let prompt = prompt::write(run, input, media, &composed.results)?;
    if let Some(answer) = cache.and_then(|cache| cache.lookup(run)) {
        return Ok(answer);
    }
    run.warnings.extend(run.audit.note_context(run.module, input));
    composed.limit_time(run)?;
    ladder::ask(run, prompt).await
}
