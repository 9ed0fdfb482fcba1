//! The stages of a run, in order, and nothing clever. A failure at a stage ends the run with that stage's code.

use std::sync::Arc;

use cognitive_contract::context::{EMITTED, MEMBER};
use cognitive_contract::lower::Target;
use cognitive_contract::ports::{AuditRecord, Event, EventSink};
use cognitive_contract::{Enforcement, Envelope, ErrorCode, Failure, Module, Warning, policy};

use serde_json::{Map, Value};

use crate::compose;
use crate::host::{Host, RunRequest};
use crate::kept::{self, Kept, Shelf};
use crate::live::watch::{Watch, unless_blown};
use crate::live::{Fuse, cut};
use crate::memory::Memory;
use crate::receipt::Receipt;
use crate::stages::input::ValidInput;
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
    let options = &request.options;
    let memory = Memory::new(host.context.as_deref(), &host.clock, options);
    let given = input::read(&request.input)?;
    let (recalled, mut warnings) = memory.recall(module, given.value());
    let handed = handed_down(given.value(), &recalled);
    let input = input::validate(module, given, &recalled, options.enforcement)?;
    receipt.sha256.input = input.sha256();
    warnings.extend(input.warnings().iter().cloned());
    warnings.extend(requirements::check(module, &input, host.provider.as_ref())?);
    let mut composed = Box::pin(compose::run(host, module, request, &input, handed, receipt)).await?;
    warnings.extend(composed.warnings.iter().cloned());
    // What other modules say can change without this one, so a composition is not kept.
    let shelf = Shelf::find(&memory, host, module, &input, options).filter(|_| !composed.is_composition);
    let mut answer = match composed.answer.take() {
        Some(answer) => answer_of_parts(answer, watch),
        None => {
            let policies = options.above.policies(module);
            let (prompt, missing) = prompt::build_with(module, &input, &composed.results, &policies)?;
            warnings.extend(missing);
            match shelf.as_ref().filter(|_| !options.no_cache).and_then(|shelf| shelf.take(host, module)) {
                Some(kept) => answer_again(kept, watch, receipt),
                None => {
                    warnings.extend(note_access(host, module, request, &input, receipt));
                    let request = composed.in_time(request)?;
                    Box::pin(ask(host, module, &request, prompt, watch, receipt)).await?
                }
            }
        }
    };
    let notices = answer.notices();
    answer.warnings.extend(warnings);
    if let Ok(envelope) = &mut answer.outcome {
        answer.warnings.extend(memory.hand_on(module, &receipt.sha256.input, envelope, !receipt.kept));
        if let Some(shelf) = shelf.filter(|_| !receipt.kept) {
            let new = Kept { envelope: envelope.clone(), model: receipt.model.clone(), notices };
            answer.warnings.extend(shelf.put(module, &new));
        }
        share(envelope, composed.updates);
    }
    Ok(seal::seal(module, answer, receipt, options.receipt))
}

/// The context that children may be given: what came with the input, and what was recalled.
fn handed_down(given: &Value, recalled: &Map<String, Value>) -> Map<String, Value> {
    let own = given.get(MEMBER).and_then(Value::as_object).into_iter().flatten();
    own.chain(recalled).map(|(kind, value)| (kind.clone(), value.clone())).collect()
}

/// Adds the context that children hand on to what the module hands on itself; its own word counts. (CTX-050)
fn share(envelope: &mut Envelope, mut updates: Map<String, Value>) {
    if updates.is_empty() || !envelope.ok() {
        return;
    }
    if let Some(Value::Object(own)) = envelope.take_beside(EMITTED) {
        updates.extend(own);
    }
    envelope.set_beside(EMITTED, Value::Object(updates));
}

/// The answer that the parts of a module gave.
fn answer_of_parts(mut answer: Answer, watch: &mut Watch<'_, '_>) -> Answer {
    if answer.outcome.is_ok() {
        watch.event(Event::Stage("composed"));
    }
    answer.outcome = answer.outcome.map_err(|failure| in_words_of_a_stream(failure, watch));
    answer
}

/// The answer of an earlier run to the same question.
fn answer_again(kept: Kept, watch: &mut Watch<'_, '_>, receipt: &mut Receipt) -> Answer {
    watch.event(Event::Stage("kept"));
    receipt.kept = true;
    receipt.model = kept.model;
    let warnings = [vec![kept::notice()], kept.notices].concat();
    Answer { outcome: Ok(kept.envelope), liberties: Vec::new(), repairs: Vec::new(), warnings }
}

/// Puts down which context the model is about to get, without any of its values. (CTX-043)
fn note_access(
    host: &Host,
    module: &Module,
    request: &RunRequest,
    input: &ValidInput,
    receipt: &Receipt,
) -> Option<Warning> {
    let (audit, access) = (host.audit.as_ref()?, input.access()?);
    let trace_id = request.options.trace_id.as_deref().unwrap_or_default();
    let hash = &receipt.sha256.input;
    let mut record = AuditRecord::context_access(host.clock.now(), trace_id, &request.module, &access, hash);
    record.version.clone_from(&module.manifest.version);
    let noted = audit.record(&record);
    noted.err().map(|reason| Warning::new("AUDIT", format!("the use of context was not recorded: {reason}")))
}

/// Asks the model, and asks it again after an answer that breaks the contract, as often as the caller allows.
async fn ask(
    host: &Host,
    module: &Arc<Module>,
    request: &RunRequest,
    mut prompt: Prompt,
    watch: &mut Watch<'_, '_>,
    receipt: &mut Receipt,
) -> Result<Answer, Failure> {
    let mut asks_left = request.options.reask;
    loop {
        let answer = ask_once(host, module, request, &prompt, watch, receipt).await?;
        match prompt.again(&answer).filter(|_| asks_left > 0) {
            Some(next) => {
                prompt = next;
                asks_left -= 1;
                receipt.reasked += 1;
            }
            None => return Ok(answer),
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
