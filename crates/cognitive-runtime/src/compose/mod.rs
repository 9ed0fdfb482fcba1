//! Modules that are made of modules, at run time. The laws are in `cognitive_contract::compose`; here they are given
//! modules, time and a model. Everything that can be refused is refused before any model is asked.

pub(crate) mod above;
mod calls;
mod child;
mod overview;
mod parts;
mod queue;
mod resolve;
mod results;
mod signals;
mod supplied;

use std::borrow::Cow;
use std::time::Instant;

use cognitive_contract::compose::outcome;
use cognitive_contract::compose::plan::Answer as From;
use cognitive_contract::context::Flow;
use cognitive_contract::envelope::ErrorBody;
use cognitive_contract::ports::EventSink;
use cognitive_contract::{Confidence, Envelope, ErrorCode, Failure, Meta, Module, Risk, Warning};
use serde_json::{Map, Value, json};

use self::calls::Calls;
use self::child::{Failed, Parent};
pub use self::overview::{Edge, Member, Overview, overview};
use self::parts::State;
pub(crate) use self::resolve::stands_alone;
use self::resolve::{Composition, check, composition};
pub use self::results::Results;
pub(crate) use self::results::Shown;
use self::signals::Signals;
use crate::host::{Host, RunRequest};
use crate::receipt::Receipt;
use crate::stages::input::ValidInput;
use crate::stages::output::{self, Answer};
use crate::stages::parse::Draft;

/// What the parts of a module came to.
#[derive(Default)]
pub(crate) struct Composed {
    /// Whether the module is made of modules at all.
    pub(crate) is_composition: bool,
    /// The answer, where the parts give it or fail; otherwise the module's own prompt does.
    pub(crate) answer: Option<Answer>,
    /// What the prompt is told.
    pub(crate) results: Results,
    pub(crate) warnings: Vec<Warning>,
    /// The context that the children share with whoever called the module.
    pub(crate) updates: Map<String, Value>,
    /// When the whole must be done.
    deadline: Option<Instant>,
}

impl Composed {
    /// The request for the module's own call, which has no more time than is left of the whole. (COMP-080)
    pub(crate) fn in_time<'r>(&self, request: &'r RunRequest) -> Result<Cow<'r, RunRequest>, Failure> {
        let Some(deadline) = self.deadline else { return Ok(Cow::Borrowed(request)) };
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            let message = "the parts of the module took all of its time";
            return Err(Failure::new(ErrorCode::Timeout, message).suggest("Raise `composition.timeout_ms`"));
        }
        let mut request = request.clone();
        request.options.timeout = request.options.timeout.min(remaining);
        Ok(Cow::Owned(request))
    }
}

/// Runs the parts of a module. `context` is what it was given besides its input.
pub(crate) async fn run(
    host: &Host,
    module: &Module,
    request: &RunRequest,
    input: &ValidInput,
    context: Map<String, Value>,
    watch: &mut dyn EventSink,
    receipt: &mut Receipt,
) -> Result<Composed, Failure> {
    let above = &request.options.above;
    let Some(made_of) = composition(module)? else { return Ok(Composed::default()) };
    if above.is_endless() {
        return Err(Failure::new(ErrorCode::MaxDepthExceeded, "modules call each other without an end"));
    }
    // The run that began it all has judged what is below.
    let warnings = if above.is_empty() { check(host, module, above, &made_of)? } else { Vec::new() };
    let Composition { plan, directives } = &made_of;
    // A child has no more time than it was given; the time of a surface is for each call.
    let time = if above.is_empty() { plan.timeout } else { plan.timeout.min(request.options.timeout) };
    let (started, signals) = (Instant::now(), Signals::default());
    let supplied = &above.supplied.or_by(input.value());
    let deadline = started + time;
    let parent = Parent { host, module, request, started, deadline, signals: &signals, supplied };
    let flow = Flow::new(module.manifest.context.mode, context);
    let mut state = State::new(plan, input.value(), flow, receipt, watch);
    state.warnings = warnings;
    state.text = input.given_text();
    let mut calls = Calls::new(directives, input);
    let mut outcome = Box::pin(state.run(parent)).await;
    if outcome.is_ok() && plan.answer == From::Prompt {
        outcome = Box::pin(calls.run(parent, &mut state)).await;
    }
    let deadline = Some(deadline);
    let mut composed = Composed { is_composition: true, deadline, ..Composed::default() };
    match outcome {
        Err(failed) => composed.answer = Some(failure(module, &state, &failed)),
        Ok(()) if plan.answer == From::Prompt => {
            for place in &plan.order {
                let (part, result) = (plan.parts.get(*place), state.results.get(*place));
                if let (Some(part), Some(result)) = (part, result) {
                    composed.results.add(&part.name, result.clone());
                }
            }
            calls.tell(&mut composed.results);
        }
        Ok(()) => {
            composed.answer = Some(answer(parent, &state));
            state.note_model();
        }
    }
    composed.warnings = state.warnings;
    composed.updates = state.flow.into_updates();
    Ok(composed)
}

/// The answer that the parts give, judged like any other.
fn answer(parent: Parent<'_>, state: &State<'_>) -> Answer {
    let last = state.last.and_then(|place| {
        let name = state.plan.parts.get(place)?.name.as_str();
        Some((name, state.results.get(place)?.as_ref()?))
    });
    let (spoken, data) = match state.plan.answer {
        From::Chosen => {
            let data = last.and_then(|(_, envelope)| envelope.get("data").cloned());
            (last.into_iter().collect(), data)
        }
        _ => (state.spoken(), state.plan.output(state.progress(parent))),
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
    let enforcement = parent.request.options.enforcement;
    let mut answer = output::judge(parent.module, draft, enforcement, parent.host.gate);
    // Whatever the data says, the whole is never less risky than its riskiest part.
    if let Ok(envelope) = &mut answer.outcome
        && envelope.meta().risk.level() < riskiest.level()
    {
        envelope.meta_mut().risk = riskiest;
    }
    answer
}

/// What is handed over when a part that is needed failed. (COMP-081)
fn failure(module: &Module, state: &State<'_>, failed: &Failed) -> Answer {
    let Failed { name, code, message } = failed;
    let parts = state.started.iter().filter_map(|place| {
        let name = state.plan.parts.get(*place)?.name.as_str();
        Some((name, state.results.get(*place).and_then(Option::as_ref)))
    });
    let partial = outcome::partial_data(parts);
    let partial = Some(partial).filter(|data| module.manifest.failure.partial_allowed && !data.is_empty());
    let message = format!("module `{name}` failed: {message}");
    let outcome = match ErrorCode::find(code) {
        Some(code) => {
            Err(Failure::new(code, message).with_detail("module", json!(name)).with_partial(partial))
        }
        // A code of the child's own is passed on as it is.
        None => {
            let meta = Meta::new(Confidence::ZERO, Risk::High, &message);
            Ok(Envelope::failure(meta, ErrorBody::new(code, &message), partial))
        }
    };
    Answer::new(outcome)
}
