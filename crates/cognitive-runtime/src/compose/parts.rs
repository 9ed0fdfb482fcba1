//! Runs the parts of a plan: each when all parts that feed it are done, one after another or at most four
//! concurrently. (COMP-002 to COMP-004, S-26) The first failure of a required part cancels the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use cognitive_contract::Warning;
use cognitive_contract::compose::plan::Progress;
use cognitive_contract::compose::{Choice, CompositionPlan};
use cognitive_contract::context::ContextFlow;
use cognitive_contract::manifest::Pattern;
use cognitive_contract::ports::{EventSink, PortFuture};
use cognitive_contract::trace::{PartState, Trace};
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};

use super::child::{ChildOutcome, ChildSpec, FailedChild, ParentRun, run_child};
use super::queue::PartQueue;
use super::resolve::NOTICE;
use super::results::Results;
use super::signals::PartCount;
use crate::host::RunInput;
use crate::receipt::Receipt;
use crate::run::Run;
use crate::stages::input::ValidInput;

/// The maximum number of children in flight. More would run into the rate limits of most services.
pub(crate) const MAX_AT_ONCE: usize = 4;

/// The state of a running composition.
pub(crate) struct PartsRun<'a> {
    pub(crate) plan: &'a CompositionPlan,
    pub(crate) input: &'a Arc<Value>,
    /// The text that was sent instead of an object.
    pub(crate) text: Option<&'a str>,
    pub(crate) results: Vec<Option<Value>>,
    /// The parts that were started, whatever their outcome.
    pub(crate) started: BTreeSet<usize>,
    /// The part that a conditional composition ended with.
    pub(crate) last: Option<usize>,
    pub(crate) flow: ContextFlow,
    /// The place of each part in the order of shared context, by position.
    turns: Vec<usize>,
    /// The warnings of the whole run.
    warnings: &'a mut Vec<Warning>,
    /// The receipt of the whole run.
    receipt: &'a mut Receipt,
    /// Receives the progress of the parts.
    pub(crate) sink: &'a mut dyn EventSink,
    pub(crate) count: PartCount,
}

impl<'a> PartsRun<'a> {
    pub(crate) fn new(
        run: &'a mut Run<'_, '_>,
        plan: &'a CompositionPlan,
        input: &'a ValidInput,
        flow: ContextFlow,
    ) -> Self {
        // A part that a rule may choose is counted from the beginning, so that progress never goes back.
        let of = plan.order.len() + usize::from(plan.pattern == Pattern::Conditional);
        Self {
            plan,
            input: input.shared_input(),
            text: input.input_text(),
            results: vec![None; plan.parts.len()],
            started: BTreeSet::new(),
            last: None,
            flow,
            turns: turns(plan),
            warnings: &mut run.warnings,
            receipt: &mut *run.receipt,
            sink: &mut *run.listeners,
            count: PartCount { done: 0, of },
        }
    }

    /// The progress as the plan sees it.
    pub(crate) fn progress<'s>(&'s self, parent: ParentRun<'s>) -> Progress<'s> {
        Progress { input: self.input, results: &self.results, custom: parent.host.aggregate.as_ref() }
    }

    /// The parts that gave an answer, by name, in declaration order.
    pub(crate) fn answered_parts(&self) -> Vec<(&str, &Value)> {
        let parts = self.plan.parts.iter().zip(&self.results);
        parts.filter_map(|(part, result)| Some((part.name.as_str(), result.as_ref()?))).collect()
    }

    /// Records the cost and warnings of a child. The caller stores the context that the child hands on.
    pub(crate) fn take(
        &mut self,
        done: ChildOutcome,
    ) -> (Result<Option<Value>, FailedChild>, Map<String, Value>) {
        if let Some(usage) = done.usage {
            self.receipt.add_usage(usage);
        }
        if let Some(time) = done.model_time {
            self.receipt.add_time(time);
        }
        self.receipt.parts.extend(done.traces);
        self.warnings.extend(done.warnings);
        (done.result, done.emitted)
    }

    /// Adds the results of the parts for the prompt, in the order in which they ran.
    pub(crate) fn tell_results(&self, results: &mut Results) {
        for place in &self.plan.order {
            let (part, result) = (self.plan.parts.get(*place), self.results.get(*place));
            if let (Some(part), Some(result)) = (part, result) {
                results.add(&part.name, result.clone());
            }
        }
    }

    /// Records the model of the answer, if all parts used the same model.
    pub(crate) fn note_model(&mut self) {
        let of = |(_, envelope): &(&str, &Value)| envelope.pointer("/meta/model").cloned();
        let mut models: Vec<Option<Value>> = self.answered_parts().iter().map(of).collect();
        models.dedup();
        if let [Some(Value::String(model))] = models.as_slice() {
            self.receipt.model = Some(model.clone());
        }
    }

    /// Reports the state of a part. Every state except started counts as done.
    pub(crate) fn tell(&mut self, name: &str, state: PartState) {
        self.count.done += usize::from(state != PartState::Started);
        self.count.tell(self.sink, name, state);
    }

    /// Does the same for a part without a result.
    pub(crate) fn report_unfinished(&mut self, name: &str, state: PartState) {
        self.receipt.parts.push(Trace::unfinished_trace(name, state));
        self.tell(name, state);
    }

    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        self.warnings.push(Warning::new(NOTICE, message));
    }

    /// Runs the parts that always run, then the one that the rules choose.
    pub(crate) async fn run(&mut self, parent: ParentRun<'a>) -> Result<(), FailedChild> {
        self.run_all(parent, &self.plan.order).await?;
        if self.plan.pattern != Pattern::Conditional {
            return Ok(());
        }
        self.last = Some(0);
        let plan = self.plan;
        let chosen = match plan.route(self.progress(parent)) {
            Choice::Next(name) => plan.part(name),
            Choice::Enough => None,
            Choice::NoRule => {
                self.warn("no rule of `routing` applies; the result so far is the answer");
                None
            }
        };
        let Some(chosen) = chosen.filter(|place| *place != 0) else { return Ok(()) };
        self.run_all(parent, &[chosen]).await?;
        if self.results.get(chosen).is_some_and(Option::is_some) {
            self.last = Some(chosen);
        }
        Ok(())
    }

    async fn run_all(&mut self, parent: ParentRun<'a>, order: &[usize]) -> Result<(), FailedChild> {
        let at_once = if self.plan.pattern == Pattern::Parallel { MAX_AT_ONCE } else { 1 };
        let (mut queue, mut running) = (PartQueue::new(self.plan, order), FuturesUnordered::new());
        let mut open = BTreeSet::new();
        loop {
            while running.len() < at_once
                && let Some(place) = queue.next()
            {
                match self.start(parent, place) {
                    Some(child) => {
                        open.insert(place);
                        running.push(async move { (place, child.await) });
                    }
                    None => queue.mark_done(place),
                }
            }
            let next = parent.signals.next(&mut running, self.sink, self.count).await;
            let Some((place, done)) = next else { return Ok(()) };
            open.remove(&place);
            queue.mark_done(place);
            self.tell(self.name(place), done.state());
            let (result, handed_on) = self.take(done);
            let result = result.map_err(|failed| {
                self.cancel(&open);
                failed.with_blame_at(|at| self.plan.origin(place, at, self.progress(parent)))
            })?;
            if let Some(slot) = self.results.get_mut(place) {
                *slot = result;
            }
            self.flow.child_done(self.turn(place), handed_on);
        }
    }

    fn turn(&self, place: usize) -> usize {
        self.turns.get(place).copied().unwrap_or_default()
    }

    /// The context that a part starts with. It follows all earlier parts of a sequence; among parts that run
    /// concurrently, only those that feed it. (D-28)
    fn context_of(&self, place: usize) -> Map<String, Value> {
        if self.plan.pattern != Pattern::Parallel {
            return self.flow.child_context(|_| true);
        }
        let (mut before, mut open) = (BTreeSet::new(), vec![place]);
        while let Some(part) = open.pop().and_then(|place| self.plan.parts.get(place)) {
            open.extend(part.after.iter().filter(|place| before.insert(self.turn(**place))));
        }
        self.flow.child_context(|turn| before.contains(&turn))
    }

    fn name(&self, place: usize) -> &'a str {
        self.plan.parts.get(place).map_or("", |part| part.name.as_str())
    }

    /// Records that running parts are no longer awaited.
    fn cancel(&mut self, open: &BTreeSet<usize>) {
        for place in open {
            self.report_unfinished(self.name(*place), PartState::Cancelled);
        }
    }

    /// Starts a part. `None` if no step to it is taken: the part is skipped. (COMP-043)
    fn start(&mut self, parent: ParentRun<'a>, place: usize) -> Option<PortFuture<'a, ChildOutcome>> {
        let plan = self.plan;
        let part = plan.parts.get(place)?;
        let progress = self.progress(parent);
        let Some(input) = part_input(plan, (self.input, self.text), progress, place) else {
            let reason = plan.why_skipped(place, progress);
            self.receipt
                .parts
                .push(Trace::unfinished_trace(&part.name, PartState::Skipped).with_reason(reason));
            self.tell(&part.name, PartState::Skipped);
            return None;
        };
        self.started.insert(place);
        self.tell(&part.name, PartState::Started);
        let wanted = ChildSpec {
            name: &part.name,
            range: &part.range,
            fallback: part.fallback.as_deref(),
            optional: part.optional,
            time: part.timeout,
            tier: None,
        };
        Some(run_child(parent, wanted, input, self.context_of(place)))
    }
}

/// The input of a part; `None` if no step to it is taken. `given` is the input of the whole module, which is shared and
/// not copied, and the text that was sent instead of an object. Text stays text unless a step maps it. (COMP-062)
pub(crate) fn part_input(
    plan: &CompositionPlan,
    given: (&Arc<Value>, Option<&str>),
    progress: Progress<'_>,
    place: usize,
) -> Option<RunInput> {
    let (whole, text) = given;
    let (input, is_whole) = if plan.forwards_input(place, progress) {
        (RunInput::Shared(Arc::clone(whole)), true)
    } else {
        let input = plan.input_of(place, progress)?;
        let is_whole = text.is_some() && input == **whole;
        (RunInput::Json(input), is_whole)
    };
    Some(match text.filter(|_| is_whole) {
        Some(text) => RunInput::Text(text.to_owned()),
        None => input,
    })
}

/// The order in which parts share context: each after all that feed it, otherwise as declared. A part that a rule or a
/// call selects comes after the parts that always run.
fn turns(plan: &CompositionPlan) -> Vec<usize> {
    let (mut queue, mut turns) =
        (PartQueue::new(plan, &plan.order), vec![plan.parts.len(); plan.parts.len()]);
    let mut next = 0;
    while let Some(place) = queue.next() {
        queue.mark_done(place);
        if let Some(turn) = turns.get_mut(place) {
            *turn = next;
        }
        next += 1;
    }
    turns
}
