//! The stages of a run, in order, and nothing clever. A failure at a stage ends the run with that stage's code.

use std::pin::pin;
use std::sync::Arc;

use cognitive_contract::context::{EMITTED, MEMBER, handed_on};
use cognitive_contract::policy::Caller;
use cognitive_contract::ports::{AuditRecord, Event, EventSink};
use cognitive_contract::{Enforcement, Envelope, ErrorCode, Failure, Module, Warning, policy};
use cognitive_schema::Target;

use serde_json::{Map, Value, json};

use crate::compose::{self, Composed};
use crate::host::{Host, RunInput, RunOptions, RunRequest};
use crate::kept::{self, Kept, Shelf};
use crate::live::watch::{Watch, unless_blown};
use crate::live::{Fuse, cut};
use crate::memory::Memory;
use crate::receipt::Receipt;
use crate::stages::input::ValidInput;
use crate::stages::media::{MediaNote, MediaSet};
use crate::stages::output::Answer;
use crate::stages::prompt::Prompt;
use crate::stages::{call, input, media, output, parse, prompt, requirements, seal};
use crate::tools::Talk;
use crate::trail;

/// Answers one request with one module.
pub(crate) async fn answer(
    host: &Host,
    module: &Arc<Module>,
    request: &RunRequest,
    given: RunInput,
    watch: &mut Watch<'_, '_>,
    receipt: &mut Receipt,
) -> Result<Envelope, Failure> {
    if let Some(refusal) = policy::invocation_refusal(&module.manifest, request.options.caller) {
        return Err(refusal);
    }
    let options = &request.options;
    let memory = Memory::new(host.context.as_deref(), &host.clock, options);
    let given = input::read(given)?.with_context(&options.above.context);
    let (recalled, mut warnings) = memory.recall(module, given.value());
    let handed = handed_down(given.value(), &recalled);
    let mut input = input::validate(module, given, &recalled, options.enforcement, &host.sanitiser)?;
    receipt.sha256.input = receipt.hash(|| input.sha256());
    warnings.extend(input.warnings().iter().cloned());
    warnings.extend(requirements::check(module, host.provider.as_ref())?);
    options.above.supplied.judge(module, &options.above.policies(module), input.value())?;
    // What a run does not need, it does not make room for: most have no media and no parts.
    let found = media::find(module, &input)?;
    let media = if found.is_empty() {
        Ok(MediaSet::default())
    } else {
        Box::pin(media::gather(host, module, &found, options, receipt)).await
    };
    warnings.extend(note_fetches(host, module, request, receipt));
    let media = media?;
    let mut composed = if compose::stands_alone(module) {
        Composed::default()
    } else {
        Box::pin(compose::run(host, module, request, &input, handed, watch, receipt)).await?
    };
    warnings.extend(composed.warnings.iter().cloned());
    if composed.answer.is_none() && !composed.updates.is_empty() {
        let seen = &composed.updates;
        warnings.extend(input.update_context(module, seen, options.enforcement, &host.sanitiser));
    }
    // What other modules say can change without this one, so a composition is not kept.
    let shelf =
        Shelf::find(&memory, host, module, &input, &media, options).filter(|_| !composed.is_composition);
    let mut answer = match composed.answer.take() {
        Some(answer) => answer_of_parts(with_fit_bytes(host, module, answer).await, watch),
        None => {
            let policies = options.above.policies(module);
            let attached = media::attach(media, &mut input);
            // Parts and the fetching of media needed all of it; the model does not.
            if media::hides(module, options.caller == Caller::Agent) {
                input.hide_secrets();
            }
            let (mut prompt, missing) =
                prompt::build_with(module, &input, &composed.results, &policies, attached)?;
            prompt.expect_media(media::may_produce(module, host.provider.as_ref()));
            warnings.extend(missing);
            match shelf.as_ref().filter(|_| !options.no_cache).and_then(|shelf| shelf.take(host, module)) {
                Some(kept) => answer_again(kept, watch, receipt),
                None => {
                    warnings.extend(note_access(host, module, request, &input));
                    let request = composed.in_time(request)?;
                    ask(host, module, &request, prompt, watch, receipt).await?
                }
            }
        }
    };
    let notices = answer.notices();
    answer.warnings.extend(warnings);
    if let Ok(envelope) = &mut answer.outcome {
        share(module, envelope, composed.updates);
        answer.warnings.extend(memory.hand_on(module, &|| input.sha256(), envelope, !receipt.kept));
        // What a tool said may be different the next time.
        if let Some(shelf) = shelf.filter(|_| !receipt.kept && receipt.tools.is_empty()) {
            let new = Kept { envelope: envelope.clone(), model: receipt.model.clone(), notices };
            answer.warnings.extend(shelf.put(module, &new));
        }
    }
    Ok(seal::seal(module, answer))
}

/// The context that children may be given: what came with the input, and what was recalled.
fn handed_down(given: &Value, recalled: &Map<String, Value>) -> Map<String, Value> {
    let own = given.get(MEMBER).and_then(Value::as_object).into_iter().flatten();
    own.chain(recalled).map(|(kind, value)| (kind.clone(), value.clone())).collect()
}

/// Adds the context that children hand on to what the module hands on itself; its own word counts, and it hands on only
/// what it declares. (CTX-021, CTX-050)
fn share(module: &Module, envelope: &mut Envelope, updates: Map<String, Value>) {
    let declared: Vec<&str> = module.manifest.context.emits.iter().map(|emit| emit.kind.as_str()).collect();
    let mut updates = handed_on(updates, &declared);
    if updates.is_empty() || !envelope.ok() {
        return;
    }
    match envelope.take_beside(EMITTED) {
        Some(Value::Object(own)) => updates.extend(own),
        // Not an object; whoever judges it says so.
        Some(other) => {
            envelope.set_beside(EMITTED, other);
            return;
        }
        None => {}
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
    Answer { warnings, ..Answer::new(Ok(kept.envelope)) }
}

/// Puts down which context the model is about to get, without any of its values. (CTX-043)
fn note_access(host: &Host, module: &Module, request: &RunRequest, input: &ValidInput) -> Option<Warning> {
    host.audit.as_ref()?;
    let access = input.access()?;
    let trace_id = request.options.trace_id.as_deref().unwrap_or_default();
    let hash = input.sha256();
    let mut record = AuditRecord::context_access(host.clock.now(), trace_id, &request.module, &access, &hash);
    record.version.clone_from(&module.manifest.version);
    let noted = trail::note(host, request, record);
    noted.err().map(|reason| Warning::new("AUDIT", format!("the use of context was not recorded: {reason}")))
}

/// Puts down what was fetched from elsewhere for the run: kinds, sizes and hashes, no addresses. (S-22)
fn note_fetches(host: &Host, module: &Module, request: &RunRequest, receipt: &Receipt) -> Option<Warning> {
    host.audit.as_ref()?;
    let fetched: Vec<&MediaNote> = receipt.media.iter().filter(|note| note.source != "base64").collect();
    if fetched.is_empty() || host.media.is_none() {
        return None;
    }
    let trace_id = request.options.trace_id.as_deref().unwrap_or_default();
    let ok = fetched.iter().all(|note| note.status != "failed");
    let mut record = AuditRecord::media_fetch(
        host.clock.now(),
        trace_id,
        &request.module,
        ok,
        json!({ "media": fetched }),
    );
    record.version.clone_from(&module.manifest.version);
    let noted = trail::note(host, request, record);
    noted
        .err()
        .map(|reason| Warning::new("AUDIT", format!("the fetching of media was not recorded: {reason}")))
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
    let mut talk = Talk::new(host, module, request);
    talk.instruct(&mut prompt);
    loop {
        let asked = ask_once(host, module, request, &prompt, &mut talk, watch, receipt).await;
        let mut answer = match asked {
            Ok(answer) => answer,
            // What there is to say of tools is to be said of a failure too.
            Err(failure) => {
                let warnings = talk.warnings();
                if warnings.is_empty() {
                    return Err(failure);
                }
                return Ok(Answer { warnings, ..Answer::unreadable(failure) });
            }
        };
        match prompt.again(&answer).filter(|_| asks_left > 0) {
            Some(next) => {
                prompt = next;
                asks_left -= 1;
                receipt.reasked += 1;
            }
            None => {
                answer.warnings.extend(talk.warnings());
                return Ok(answer);
            }
        }
    }
}

/// One call and the verdict on its answer. A call that cannot end well is cut, if the caller wants that (D-08).
async fn ask_once(
    host: &Host,
    module: &Arc<Module>,
    request: &RunRequest,
    prompt: &Prompt,
    talk: &mut Talk<'_>,
    watch: &mut Watch<'_, '_>,
    receipt: &mut Receipt,
) -> Result<Answer, Failure> {
    receipt.sha256.prompt = receipt.hash(|| prompt.sha256());
    let options = &request.options;
    let may_stop = options.early_stop && !talk.has_tools() && !prompt.wants_media;
    watch.begin_call(module, options.strict_parse, may_stop.then(|| fuse(host, module, options)).flatten());
    watch.event(Event::Stage("call"));
    let live = watch.fuse();
    let replied = unless_blown(pin!(talk.ask(prompt, watch, receipt)), &live).await;
    let Some(reply) = replied else {
        return Ok(Answer::unreadable(cut::failure(module, watch, receipt, options)));
    };
    let reply = reply.map_err(|failure| in_words_of_a_stream(failure, watch))?;
    receipt.replied(&reply);
    watch.event(Event::Stage("check"));
    let complete = |object: &mut Map<String, Value>| {
        call::undo_stand_ins(host.provider.as_ref(), module, &reply, object);
        media::insert(object, &reply.end.media);
    };
    let fits = |mut object: Map<String, Value>| {
        complete(&mut object);
        output::keeps_contract(module, object, options.enforcement)
    };
    let mut answer = match parse::extract(module, &reply, options.strict_parse, &fits) {
        Ok(mut draft) => {
            complete(&mut draft.object);
            let answer = output::judge(module, draft, options.enforcement, host.gate);
            with_fit_bytes(host, module, answer).await
        }
        Err(failure) => {
            Answer::unreadable(call::unfinished(failure, host.provider.as_ref(), &reply, receipt))
        }
    };
    answer.warnings.extend(call::lost_characters(&reply.text));
    receipt.schema_ignored = call::schema_ignored(host.provider.as_ref(), module, &reply, &answer);
    receipt.liberties.clone_from(&answer.liberties);
    receipt.repairs.clone_from(&answer.repairs);
    Ok(answer)
}

/// The same answer, unless the bytes of its media are not what it says. (D-15)
async fn with_fit_bytes(host: &Host, module: &Module, mut answer: Answer) -> Answer {
    if let Ok(envelope) = &answer.outcome
        && module.manifest.modalities.declared
    {
        let found = Box::pin(media::unfit_media(host, module, envelope)).await;
        answer.refuse(module, &found);
    }
    answer
}

/// A fuse for one call. Without enforcement there is no contract to break.
fn fuse(host: &Host, module: &Arc<Module>, options: &RunOptions) -> Option<Fuse> {
    // These targets write null for members that are absent; see `call::undo_stand_ins`.
    let null_is_absent = matches!(host.provider.target(), Some(Target::OpenAi | Target::Anthropic));
    (options.enforcement == Enforcement::Full).then(|| Fuse::new(Arc::clone(module), null_is_absent))
}

/// A stream has a code of its own for a lack of time (C-12).
fn in_words_of_a_stream(failure: Failure, watch: &Watch<'_, '_>) -> Failure {
    match failure.code() {
        ErrorCode::Timeout if watch.streams() => failure.recoded(ErrorCode::StreamTimeout),
        _ => failure,
    }
}
