//! The stages of a run, in order. A failure at a stage ends the run with that stage's code.

use cognitive_contract::ports::{Event, EventSink, Stage};
use cognitive_contract::{Envelope, Failure};
use serde_json::{Map, Value};

use crate::answer_cache::AnswerCache;
use crate::compose::{self, Composed};
use crate::cost;
use crate::early_stop::record;
use crate::host::RunInput;
use crate::ladder;
use crate::run::Run;
use crate::stages::call::{self, Reply};
use crate::stages::input::ValidInput;
use crate::stages::media::MediaSet;
use crate::stages::output::JudgedAnswer;
use crate::stages::prompt::Prompt;
use crate::stages::{input, media, output, parse, prompt, requirements, seal};
use crate::tools::ToolLoop;

/// Answers one request with one module.
pub(crate) async fn answer(run: &mut Run<'_, '_>, given: RunInput) -> Result<Envelope, Failure> {
    run.check_caller()?;
    let (mut input, context) = input::accept(run, given)?;
    requirements::check(run)?;
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

/// Asks the model, and sends a repair prompt after an answer that breaks the contract, as often as the caller allows.
pub(crate) async fn ask(run: &mut Run<'_, '_>, mut prompt: Prompt) -> Result<JudgedAnswer, Failure> {
    let mut tools = ToolLoop::new(run);
    tools.instruct(&mut prompt);
    loop {
        let mut answer = match ask_once(run, &prompt, &mut tools).await {
            Ok(answer) => answer,
            // A failure also carries the warnings about tools.
            Err(failure) if tools.warnings.is_empty() => return Err(failure),
            Err(failure) => {
                return Ok(JudgedAnswer { warnings: tools.warnings, ..JudgedAnswer::unreadable(failure) });
            }
        };
        match prompt.again(&answer) {
            Some(next) if run.receipt.reasked < run.plan.settings.reasks() => {
                prompt = next;
                run.receipt.reasked += 1;
            }
            _ => {
                answer.warnings.append(&mut tools.warnings);
                return Ok(answer);
            }
        }
    }
}

/// Makes one call and judges its answer. A call that cannot end well is cancelled, if the caller wants that (D-08).
async fn ask_once(
    run: &mut Run<'_, '_>,
    prompt: &Prompt,
    tools: &mut ToolLoop,
) -> Result<JudgedAnswer, Failure> {
    let Some(reply) = call::reply(run, prompt, tools).await? else {
        return Ok(JudgedAnswer::unreadable(record::failure(run)));
    };
    run.receipt.replied(&reply);
    run.listeners.event(Event::Stage(Stage::Check));
    let mut answer = judge(run, &reply);
    media::check_answer(run, &mut answer).await;
    answer.warnings.extend(call::lost_characters(&reply.text));
    answer.warnings.extend(call::ignored_thinking(run, &reply));
    run.receipt.judged(&answer, call::schema_ignored(run, &reply, &answer));
    Ok(answer)
}

/// Finds the answer in the model's text and checks it against the contract.
fn judge(run: &Run<'_, '_>, reply: &Reply) -> JudgedAnswer {
    let enforcement = run.plan.settings.enforced();
    let complete = |object: Map<String, Value>| call::complete(run, reply, object);
    let fits = |object| output::keeps_contract(run.module, complete(object), enforcement);
    match parse::extract(run.module, reply, run.strict(), &fits) {
        Ok(mut draft) => {
            draft.object = complete(draft.object);
            output::judge(run.module, draft, enforcement, run.host.gate)
        }
        Err(failure) => JudgedAnswer::unreadable(call::unfinished(run, failure, reply)),
    }
}
