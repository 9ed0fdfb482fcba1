//! The stages of a run, in order, and nothing clever. A failure at a stage ends the run with that stage's code.

use cognitive_contract::ports::{Event, EventSink};
use cognitive_contract::{Envelope, Failure, Module, policy};

use crate::host::{Host, RunRequest};
use crate::receipt::Receipt;
use crate::stages::output::Answer;
use crate::stages::prompt::Prompt;
use crate::stages::{call, input, output, parse, prompt, requirements, seal};

/// Answers one request with one module.
pub(crate) async fn answer(
    host: &Host,
    module: &Module,
    request: &RunRequest,
    sink: &mut dyn EventSink,
    receipt: &mut Receipt,
) -> Result<Envelope, Failure> {
    if let Some(refusal) = policy::invocation_refusal(&module.manifest, request.options.caller) {
        return Err(refusal);
    }
    let input = input::validate(module, &request.input, request.options.enforcement)?;
    receipt.sha256.input = input.sha256();
    let warnings = requirements::check(module, host.provider.as_ref())?;
    let mut prompt = prompt::build(module, &input)?;
    let mut asks_left = request.options.reask;
    loop {
        let mut answer = ask_once(host, module, request, &prompt, sink, receipt).await?;
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

/// One call and the verdict on its answer.
async fn ask_once(
    host: &Host,
    module: &Module,
    request: &RunRequest,
    prompt: &Prompt,
    sink: &mut dyn EventSink,
    receipt: &mut Receipt,
) -> Result<Answer, Failure> {
    receipt.sha256.prompt = prompt.sha256();
    sink.event(Event::Stage("call"));
    let reply = call::ask(host.provider.as_ref(), module, prompt, &request.options, sink, receipt).await?;
    receipt.replied(&reply);
    sink.event(Event::Stage("check"));
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
