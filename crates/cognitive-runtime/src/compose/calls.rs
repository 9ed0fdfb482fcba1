//! Runs the calls of a prompt in order, each after the one before unless it is `async`. (COMP-060 to
//! COMP-066)
//! Runs only directives of `prompt.md`; results are never searched for more directives.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use cognitive_contract::compose::calls::{Argument, Call, Directives};
use cognitive_contract::compose::{CompositionPlan, MemberOrigin, VersionRange, as_input};
use cognitive_contract::trace::PartState;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use super::child::{ChildOutcome, ChildSpec, FailedChild, ParentRun, run_child};
use super::parts::{MAX_AT_ONCE, PartsRun};
use super::results::{CallReplacement, Results};
use crate::host::RunInput;
use crate::stages::input::ValidInput;

/// The calls of one prompt.
pub(crate) struct PromptCalls<'c> {
    directives: &'c Directives,
    input: &'c ValidInput,
    /// Modules whose results the prompt refers to.
    referenced: HashSet<&'c str>,
    /// The progress of each call, by position.
    states: Vec<CallState>,
}

/// The progress of a call.
#[derive(Clone, Default)]
enum CallState {
    /// Not started.
    #[default]
    Open,
    /// In flight.
    Running,
    /// Done; `None` without a result.
    Over(Option<Value>),
}

impl CallState {
    fn result(&self) -> Option<&Value> {
        match self {
            Self::Open | Self::Running => None,
            Self::Over(result) => result.as_ref(),
        }
    }
}

impl<'c> PromptCalls<'c> {
    pub(crate) fn new(directives: &'c Directives, input: &'c ValidInput) -> Self {
        let referenced = directives.inserts.iter().map(|insert| insert.module.as_str()).collect();
        Self { directives, input, referenced, states: vec![CallState::Open; directives.calls.len()] }
    }

    /// Runs all calls.
    pub(crate) async fn run<'a>(
        &mut self,
        parent: ParentRun<'a>,
        state: &mut PartsRun<'a>,
    ) -> Result<(), FailedChild>
    where
        'c: 'a,
    {
        state.count.of += self.states.len();
        let outcome = self.run_all(parent, state).await;
        if outcome.is_err() {
            let calls = self.directives.calls.iter().zip(&self.states);
            for (call, _) in calls.filter(|(_, stand)| matches!(stand, CallState::Running)) {
                state.report_unfinished(&call.module, PartState::Cancelled);
            }
        }
        outcome
    }

    async fn run_all<'a>(
        &mut self,
        parent: ParentRun<'a>,
        state: &mut PartsRun<'a>,
    ) -> Result<(), FailedChild>
    where
        'c: 'a,
    {
        let any = VersionRange::any();
        let directives = self.directives;
        let mut running = FuturesUnordered::new();
        for (place, call) in directives.calls.iter().enumerate() {
            // A path is read from the result of the previous call, so that call must be done. The number of
            // concurrent calls is limited.
            let needs_last = matches!(call.argument, Argument::Path(_)) && place > 0;
            while running.len() >= MAX_AT_ONCE || (needs_last && !self.is_done(place - 1)) {
                self.settle(next_call(parent, state, &mut running).await, state)?;
            }
            let wanted = child_spec(state.plan, call, &any);
            let context = state.flow.child_context(|turn| self.follows(state.plan, turn, needs_last, place));
            let child = run_child(parent, wanted, self.argument(call, place), context);
            running.push(async move { (place, child.await) });
            state.tell(&call.module, PartState::Started);
            self.set_state(place, CallState::Running);
            while !call.options.is_async && !self.is_done(place) {
                self.settle(next_call(parent, state, &mut running).await, state)?;
            }
        }
        while !running.is_empty() {
            self.settle(next_call(parent, state, &mut running).await, state)?;
        }
        Ok(())
    }

    /// Hands the results of the calls to the prompt.
    pub(crate) fn tell(self, results: &mut Results) {
        for (call, stand) in self.directives.calls.iter().zip(self.states) {
            let result = stand.result().cloned();
            let is_referenced = self.referenced.contains(call.module.as_str());
            results.add(&call.module, result.clone());
            let silent = call.options.is_async && !is_referenced;
            results.add_call(if silent { CallReplacement::Nothing } else { CallReplacement::Result(result) });
        }
    }

    /// Returns whether the call at `place` sees the context of a turn: that of all parts, and of all calls before it
    /// that are done in every run. (D-28)
    fn follows(&self, plan: &CompositionPlan, turn: usize, needs_last: bool, place: usize) -> bool {
        let before = self.directives.calls.iter().enumerate().take(place);
        let open = before.filter(|(each, call)| call.options.is_async && !(needs_last && each + 1 == place));
        !open.into_iter().any(|(each, _)| turn_of(plan, each) == turn)
    }

    fn is_done(&self, place: usize) -> bool {
        !matches!(self.states.get(place), Some(CallState::Open | CallState::Running))
    }

    fn set_state(&mut self, place: usize, state: CallState) {
        if let Some(slot) = self.states.get_mut(place) {
            *slot = state;
        }
    }

    fn settle(
        &mut self,
        finished: Option<(usize, ChildOutcome)>,
        state: &mut PartsRun<'_>,
    ) -> Result<(), FailedChild> {
        let Some((place, done)) = finished else { return Ok(()) };
        let call = self.directives.calls.get(place);
        state.tell(call.map_or("", |call| &call.module), done.state());
        let (result, emitted) = state.take(done);
        state.flow.child_done(turn_of(state.plan, place), emitted);
        self.set_state(place, CallState::Over(None));
        let silent =
            call.is_some_and(|call| call.options.is_async && !self.referenced.contains(call.module.as_str()));
        let result = match result {
            // The prompt does not use the result, so a failure is only a warning. (S-25)
            Err(failed) if silent => {
                state.warn(format!(
                    "the call of `{}` failed: {} ({})",
                    failed.name,
                    failed.failure.message(),
                    failed.failure.number()
                ));
                None
            }
            other => other.map_err(|failed| failed.with_blame_at(|at| self.origin(place, at)))?,
        };
        self.set_state(place, CallState::Over(result));
        Ok(())
    }

    /// The origin of a member of the input of a called module.
    fn origin(&self, place: usize, at: &str) -> MemberOrigin<'_> {
        let Some(call) = self.directives.calls.get(place) else { return MemberOrigin::Author };
        match &call.argument {
            Argument::Input | Argument::Arguments => MemberOrigin::Caller(at.to_owned()),
            Argument::Text(_) => MemberOrigin::Author,
            Argument::Path(path) => {
                let before = place.checked_sub(1).and_then(|before| {
                    Some((self.directives.calls.get(before)?, self.states.get(before)?.result()?))
                });
                match before.filter(|(_, envelope)| path.exists(*envelope)) {
                    Some((before, _)) => MemberOrigin::Part(&before.module),
                    None if path.exists(self.input.value()) => MemberOrigin::Caller(path.member_pointer(at)),
                    None => MemberOrigin::Author,
                }
            }
        }
    }

    /// The input of a called module.
    pub(crate) fn argument(&self, call: &Call, place: usize) -> RunInput {
        let whole = || RunInput::Shared(Arc::clone(self.input.shared_input()));
        match &call.argument {
            Argument::Input => {
                self.input.input_text().map_or_else(whole, |text| RunInput::Text(text.to_owned()))
            }
            Argument::Arguments => RunInput::Text(self.input.arguments().unwrap_or_default().to_owned()),
            Argument::Text(text) => RunInput::Text(text.clone()),
            Argument::Path(path) => {
                let before = place.checked_sub(1).and_then(|before| self.states.get(before));
                let found = before.and_then(CallState::result).and_then(|envelope| path.find(envelope));
                match found.or_else(|| path.find(self.input.value())) {
                    Some(Cow::Borrowed(Value::String(text))) => RunInput::Text(text.clone()),
                    Some(Cow::Owned(Value::String(text))) => RunInput::Text(text),
                    found => {
                        RunInput::Json(Value::Object(as_input(found.unwrap_or(Cow::Owned(Value::Null)))))
                    }
                }
            }
        }
    }
}

/// The place of a call in the order of shared context: after all parts.
fn turn_of(plan: &CompositionPlan, call: usize) -> usize {
    plan.parts.len() + 1 + call
}

/// Waits for the next call that is done; forwards events to the listeners in the meantime.
async fn next_call<'a>(
    parent: ParentRun<'a>,
    state: &mut PartsRun<'a>,
    running: &mut FuturesUnordered<impl Future<Output = (usize, ChildOutcome)>>,
) -> Option<(usize, ChildOutcome)> {
    parent.signals.next(running, state.sink, state.count).await
}

/// The child that a call requests. The settings in `requires` for the module apply to its calls, too.
fn child_spec<'a>(plan: &'a CompositionPlan, call: &'a Call, any: &'a VersionRange) -> ChildSpec<'a> {
    let declared = plan.part(&call.module).and_then(|place| plan.parts.get(place));
    let limit = declared.and_then(|part| part.timeout);
    ChildSpec {
        name: &call.module,
        range: declared.map_or(any, |part| &part.range),
        fallback: declared.and_then(|part| part.fallback.as_deref()),
        optional: call.options.optional,
        time: Some(limit.map_or(call.options.timeout, |limit| limit.min(call.options.timeout))),
        tier: call.options.tier,
    }
}
