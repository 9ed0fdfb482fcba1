//! The stages of a run, in order, and nothing clever. A failure at a stage ends the run with that stage's code.

use std::sync::Arc;

use cognitive_contract::lower::Target;
use cognitive_contract::ports::{Event, EventSink};
use cognitive_contract::{Enforcement, Envelope, ErrorCode, Failure, Module, policy};

use crate::host::{Host, RunRequest};
use crate::live::watch::{Watch, unless_blown};
use crate::live::{Fuse, cut};
use crate::receipt::Receipt;
use crate::stages::output::Answer;
use crate::stages::prompt::Prompt;
use crate::stages::{call, input, output, parse, prompt, requirements, seal};

/// Answers one request with one module.
pub(crate) async fn answer(
    host: &Host,
    module: &Arc<Module>,
    request: &RunRequest,
    watch: &mut Watch<'_, '_>,
    receipt: &mut Receipt,
) -> Result<Envelope, Failure> {
    if let Some(refusal) = policy::invocation_refusal(&module.manifest, request.options.caller) {
        return Err(refusal);
    }
    let input = input::validate(module, &request.input, request.options.enforcement)?;
    receipt.sha256.input = input.sha256();
    let warnings = requirements::check(module, &input, host.provider.as_ref())?;
    let mut prompt = prompt::build(module, &input)?;
    let mut asks_left = request.options.reask;
    loop {
        let mut answer = ask_once(host, module, request, &prompt, watch, receipt).await?;
        match prompt.again(&answer).filter(|_| asks_left > 0) {
            Some(next) => {
                prompt = next;
                asks_left -= 1;
                receipt.reasked += 1;
            }
            None => {
                answer.warnings.extend(warnings);
                return Ok(seal::seal(module, answer, receipt, request.options.receipt));
            }
        }
    }
}

/// One call and the verdict on its answer. A call that cannot end well is cut.
async fn ask_once(
    host: &Host,
    module: &Arc<Module>,
    request: &RunRequest,
    prompt: &Prompt,
    watch: &mut Watch<'_, '_>,
    receipt: &mut Receipt,
) -> Result<Answer, Failure> {
    receipt.sha256.prompt = prompt.sha256();
    let options = &request.options;
    watch.begin_call(module, options.strict_parse, fuse(host, module, request));
    watch.event(Event::Stage("call"));
    let blown = watch.blown();
    let called = call::ask(host.provider.as_ref(), module, prompt, options, watch, receipt);
    let Some(reply) = unless_blown(called, &blown).await else {
        return Ok(Answer::unreadable(cut::failure(module, watch, receipt, options)));
    };
    let reply = reply.map_err(|failure| in_words_of_a_stream(failure, watch))?;
    receipt.replied(&reply);
    watch.event(Event::Stage("check"));
    let answer = match parse::extract(module, &reply, request.options.strict_parse) {
        Ok(mut draft) => {
            call::undo_stand_ins(host.provider.as_ref(), module, &reply, &mut draft.object);
            output::judge(module, draft, request.options.enforcement, host.gate)
        }
        Err(failure) => Answer::unreadable(failure),
    };
    receipt.schema_ignored = call::schema_ignored(host.provider.as_ref(), module, &reply, &answer);
    receipt.liberties.clone_from(&answer.liberties);
    receipt.repairs.clone_from(&answer.repairs);
    Ok(answer)
}

/// The fuse for one call. Without enforcement there is no contract to break.
fn fuse(host: &Host, module: &Arc<Module>, request: &RunRequest) -> Option<Fuse> {
    let wanted = request.options.fuse && request.options.enforcement == Enforcement::Full;
    // These targets write null for members that are absent; see `call::undo_stand_ins`.
    let null_is_absent = matches!(host.provider.target(), Some(Target::OpenAi | Target::Anthropic));
    wanted.then(|| Fuse::new(Arc::clone(module), null_is_absent))
}

/// A stream has a code of its own for a lack of time (C-12).
fn in_words_of_a_stream(failure: Failure, watch: &Watch<'_, '_>) -> Failure {
    match failure.code() {
        ErrorCode::Timeout if watch.streams() => failure.recoded(ErrorCode::StreamTimeout),
        _ => failure,
    }
}
