//! One model's answer to a prompt: the call, its verdict, and repair prompts as often as the caller allows. The ladder
//! asks for one attempt per model. Chooses no model and stores nothing.

use cognitive_contract::Failure;
use cognitive_contract::ports::{Event, EventSink, Stage};
use serde_json::{Map, Value};

use crate::early_stop::record;
use crate::run::Run;
use crate::stages::call::{self, Reply};
use crate::stages::output::JudgedAnswer;
use crate::stages::prompt::Prompt;
use crate::stages::{media, output, parse};
use crate::tools::ToolLoop;

/// Asks the model, and sends a repair prompt after an answer that breaks the contract, as often as the caller allows.
pub(crate) async fn ask(run: &mut Run<'_, '_>, mut prompt: Prompt) -> Result<JudgedAnswer, Failure> {
    let mut tools = ToolLoop::new(run);
    tools.instruct(&mut prompt);
    loop {
        let mut answer = match call::reply(run, &prompt, &mut tools).await {
            Ok(Some(reply)) => judge(run, &reply).await,
            // Cancelled, because it could not end well any more. (D-08)
            Ok(None) => JudgedAnswer::unreadable(record::failure(run)),
            // A failure also carries the warnings about tools.
            Err(failure) if tools.warnings.is_empty() => return Err(failure),
            Err(failure) => {
                return Ok(JudgedAnswer { warnings: tools.warnings, ..JudgedAnswer::unreadable(failure) });
            }
        };
        match prompt.repair_prompt(&answer) {
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

/// Finds the answer in the model's text and checks it against the contract.
async fn judge(run: &mut Run<'_, '_>, reply: &Reply) -> JudgedAnswer {
    run.receipt.record_reply(reply);
    run.listeners.event(Event::Stage(Stage::Check));
    let enforcement = run.plan.settings.enforcement();
    let mut answer = {
        let complete = |object: Map<String, Value>| call::complete(run, reply, object);
        let fits = |object| output::keeps_contract(run.module, complete(object), enforcement);
        match parse::extract(run.module, reply, run.strict(), &fits) {
            Ok(mut draft) => {
                draft.object = complete(draft.object);
                output::judge(run.module, draft, enforcement, run.host.gate)
            }
            Err(failure) => JudgedAnswer::unreadable(call::unfinished_failure(run, failure, reply)),
        }
    };
    media::check_answer(run, &mut answer).await;
    answer.warnings.extend(call::lost_characters(&reply.text));
    answer.warnings.extend(call::ignored_thinking(run, reply));
    run.receipt.record_verdict(&answer, call::schema_ignored(run, reply, &answer));
    answer
}
