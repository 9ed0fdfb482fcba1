//! Runs modules that are made of modules. The rules are in `cognitive_contract::compose`; this module adds
//! the module source, time and models. Refuses an invalid composition before any model is asked.

mod blame;
mod caller_references;
pub(crate) mod calls;
pub(crate) mod child;
mod journal;
pub(crate) mod lineage;
mod overview;
pub(crate) mod parts;
mod queue;
mod resolve;
mod results;
mod signals;

use std::time::Instant;

use cognitive_contract::compose::plan::AnswerSource as From;
use cognitive_contract::compose::{Composition, outcome};
use cognitive_contract::context::{ContextFlow, EMITTED, split_updates};
use cognitive_contract::ports::{Event, EventSink, Stage};
use cognitive_contract::{Envelope, ErrorCode, Failure, Module};
use serde_json::{Map, Value, json};

use self::calls::PromptCalls;
use self::child::{FailedChild, ParentRun};
pub use self::overview::{
    Overview, OverviewEdge, OverviewMapping, OverviewMember, OverviewRule, OverviewStep, overview,
};
use self::parts::PartsRun;
use self::resolve::check;
pub(crate) use self::resolve::{MAX_DEPTH, sound};
pub use self::results::Results;
pub(crate) use self::results::ValueReplacement;
use self::signals::PartSignals;
use crate::run::Run;
use crate::stages::input::ValidInput;
use crate::stages::media;
use crate::stages::output::{self, JudgedAnswer};
use crate::stages::parse::Draft;

/// The outcome of the parts of a module.
#[derive(Default)]
pub(crate) struct CompositionOutcome {
    /// The answer, if the parts give it or fail; otherwise the module's own prompt gives it.
    pub(crate) answer: Option<JudgedAnswer>,
    /// The results for the prompt.
    pub(crate) results: Results,
    /// The context that the children share with the caller of the module.
    updates: Map<String, Value>,
    /// The deadline of the whole module.
    deadline: Option<Instant>,
}

impl CompositionOutcome {
    /// Limits the module's own call to the time that remains for the whole module. (COMP-080)
    pub(crate) fn limit_time(&self, run: &mut Run<'_, '_>) -> Result<(), Failure> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            let message = "the parts of the module used up its time limit";
            return Err(Failure::new(ErrorCode::Timeout, message).suggest("Raise `composition.timeout_ms`"));
        }
        run.call_timeout = run.call_timeout.min(remaining);
        Ok(())
    }

    /// Adds the context that children hand on to the module's own, if it declares the type. On conflict the module's own
    /// value wins. Returns the other types. (CTX-021, CTX-050)
    pub(crate) fn share_context(self, module: &Module, envelope: &mut Envelope) -> Map<String, Value> {
        let emits = module.manifest.context.emits.iter();
        let declared: Vec<&str> = emits.map(|emit| emit.kind.as_str()).collect();
        let (updates, others) = split_updates(self.updates, &declared);
        merge_context(envelope, updates);
        others
    }
}

/// Adds context to that of a success. The value that is there already wins.
pub(crate) fn merge_context(envelope: &mut Envelope, mut updates: Map<String, Value>) {
    if updates.is_empty() || !envelope.ok() {
        return;
    }
    match envelope.take_extra_member(EMITTED) {
        Some(Value::Object(own)) => updates.extend(own),
        // Not an object; the check of emitted context reports that.
        Some(other) => {
            envelope.set_extra_member(EMITTED, other);
            return;
        }
        None => {}
    }
    envelope.set_extra_member(EMITTED, Value::Object(updates));
}

/// Runs the parts of a module, if it has any, and merges the context that they changed into the input of its prompt.
/// `context` is the module's own context. Boxed, so that modules without parts (the usual case) have a small future.
pub(crate) async fn run(
    run: &mut Run<'_, '_>,
    input: &mut ValidInput,
    context: Map<String, Value>,
) -> Result<CompositionOutcome, Failure> {
    if run.module.is_standalone() {
        return Ok(CompositionOutcome::default());
    }
    let composed = Box::pin(run_parts(run, input, context)).await?;
    if composed.answer.is_none() && !composed.updates.is_empty() {
        let (enforcement, sanitiser) = (run.plan.settings.enforcement(), &run.host.sanitiser);
        let warnings = input.update_context(run.module, &composed.updates, enforcement, sanitiser);
        run.warnings.extend(warnings);
    }
    Ok(composed)
}

async fn run_parts(
    run: &mut Run<'_, '_>,
    input: &ValidInput,
    context: Map<String, Value>,
) -> Result<CompositionOutcome, Failure> {
    let (module, lineage) = (run.module, run.lineage);
    let Some(made_of) = module.composition()? else { return Ok(CompositionOutcome::default()) };
    if lineage.is_endless() {
        return Err(Failure::new(ErrorCode::MaxDepthExceeded, "modules call each other without an end"));
    }
    // The root run has checked the whole graph below it.
    if lineage.is_empty() {
        run.warnings.extend(check(run.host, module, lineage, made_of)?);
    }
    let Composition { plan, directives, .. } = made_of;
    // A child has no more time than it was given. The time limit of a root run applies to each call, so it
    // does not limit the parts.
    let time = if lineage.is_empty() { plan.timeout } else { plan.timeout.min(run.call_timeout) };
    let (started, signals) = (Instant::now(), PartSignals::default());
    let (references, span) = (lineage.references.or_from_input(input.value()), run.listeners.span_parent());
    let deadline = started + time;
    let parent = ParentRun {
        host: run.host,
        module,
        options: run.options,
        plan: run.plan,
        lineage,
        span: span.as_ref(),
        started,
        deadline,
        signals: &signals,
        references: &references,
    };
    let flow = ContextFlow::new(module.manifest.context.mode, context);
    let mut parts = PartsRun::new(run, plan, input, flow);
    let mut calls = PromptCalls::new(directives, input);
    let mut outcome = Box::pin(parts.run(parent)).await;
    if outcome.is_ok() && plan.answer == From::Prompt {
        outcome = Box::pin(calls.run(parent, &mut parts)).await;
    }
    let mut composed = CompositionOutcome { deadline: Some(deadline), ..CompositionOutcome::default() };
    match outcome {
        Err(failed) => composed.answer = Some(failure(module, &parts, failed)),
        Ok(()) if plan.answer == From::Prompt => {
            parts.tell_results(&mut composed.results);
            calls.tell(&mut composed.results);
        }
        Ok(()) => {
            composed.answer = Some(answer(parent, &parts));
            parts.note_model();
        }
    }
    composed.updates = parts.flow.into_updates();
    Ok(composed)
}

/// Delivers the answer that the parts of a module gave.
pub(crate) async fn hand_over(run: &mut Run<'_, '_>, mut answer: JudgedAnswer) -> JudgedAnswer {
    media::check_answer(run, &mut answer).await;
    if answer.outcome.is_ok() {
        run.listeners.event(Event::Stage(Stage::Composed));
    }
    answer.outcome = answer.outcome.map_err(|failure| run.with_stream_code(failure));
    answer
}

/// The answer that the parts give, judged like any other.
fn answer(parent: ParentRun<'_>, state: &PartsRun<'_>) -> JudgedAnswer {
    let last = state.last.and_then(|place| {
        let name = state.plan.parts.get(place)?.name.as_str();
        Some((name, state.results.get(place)?.as_ref()?))
    });
    let (spoken, data) = match state.plan.answer {
        From::Chosen => {
            let data = last.and_then(|(_, envelope)| envelope.get("data").cloned());
            (last.into_iter().collect(), data)
        }
        _ => (state.answered_parts(), state.plan.output(state.progress(parent))),
    };
    let mut data = match data {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    outcome::add_rationale(&mut data, &spoken);
    let meta = outcome::meta(&spoken);
    let riskiest = meta.risk.clone();
    let envelope = json!({ "ok": true, "meta": meta, "data": data });
    let object = envelope.as_object().cloned().unwrap_or_default();
    let draft = Draft { object, ..Draft::default() };
    let enforcement = parent.plan.settings.enforcement();
    let mut answer = output::judge(parent.module, draft, enforcement, parent.host.gate);
    // The risk of the whole is never lower than the risk of its riskiest part, whatever the data says.
    if let Ok(envelope) = &mut answer.outcome
        && envelope.meta().risk.level() < riskiest.level()
    {
        envelope.meta_mut().risk = riskiest;
    }
    answer
}

/// The answer if a required part failed. (COMP-081)
fn failure(module: &Module, state: &PartsRun<'_>, failed: FailedChild) -> JudgedAnswer {
    let parts = state.started.iter().filter_map(|place| {
        let name = state.plan.parts.get(*place)?.name.as_str();
        Some((name, state.results.get(*place).and_then(Option::as_ref)))
    });
    let partial = outcome::partial_data(parts);
    let partial = Some(partial).filter(|data| module.manifest.failure.partial_allowed && !data.is_empty());
    JudgedAnswer::new(Err(failed.failure.in_part(&failed.name).with_partial(partial)))
}
