//! Runs the parts of a plan: each when all that feed it are done, one after another or at most four at once. (COMP-002 to
//! COMP-004, S-26) The first failure of a part that is needed ends the others.

use std::collections::{BTreeMap, BTreeSet};

use cognitive_contract::Warning;
use cognitive_contract::compose::plan::{Part, Progress};
use cognitive_contract::compose::{Choice, Plan};
use cognitive_contract::context::Flow;
use cognitive_contract::manifest::Pattern;
use cognitive_contract::ports::{PortFuture, Usage};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};

use super::child::{Done, Failed, Parent, Wanted, run_child};
use super::resolve::NOTICE;
use crate::host::RunInput;

/// Children that run at the same time.
pub(crate) const AT_ONCE: usize = 4;

/// What there is of a composition while it runs.
pub(crate) struct State<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) input: &'a Value,
    /// The text that was sent in place of an object.
    pub(crate) text: Option<&'a str>,
    pub(crate) results: Vec<Option<Value>>,
    /// Parts that were started, whatever became of them.
    pub(crate) started: BTreeSet<usize>,
    /// The part that a conditional composition ended with.
    pub(crate) last: Option<usize>,
    pub(crate) flow: Flow,
    pub(crate) usage: Option<Usage>,
    pub(crate) warnings: Vec<Warning>,
}

impl<'a> State<'a> {
    pub(crate) fn new(plan: &'a Plan, input: &'a Value, flow: Flow) -> Self {
        let results = vec![None; plan.parts.len()];
        let (started, warnings) = (BTreeSet::new(), Vec::new());
        Self { plan, input, text: None, results, started, last: None, flow, usage: None, warnings }
    }

    /// What the plan sees.
    pub(crate) fn progress<'s>(&'s self, parent: Parent<'s>) -> Progress<'s> {
        Progress { input: self.input, results: &self.results, custom: parent.host.aggregate.as_ref() }
    }

    /// The parts that gave an answer, by name, in the order in which they are declared.
    pub(crate) fn spoken(&self) -> Vec<(&str, &Value)> {
        let parts = self.plan.parts.iter().zip(&self.results);
        parts.filter_map(|(part, result)| Some((part.name.as_str(), result.as_ref()?))).collect()
    }

    /// Notes what a child cost and said; the context that it hands on is for the caller to place.
    pub(crate) fn take(&mut self, done: Done) -> (Result<Option<Value>, Failed>, Map<String, Value>) {
        if let Some(usage) = done.usage {
            self.usage = Some(self.usage.unwrap_or_default().plus(usage));
        }
        self.warnings.extend(done.warnings);
        (done.result, done.emitted)
    }

    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        self.warnings.push(Warning::new(NOTICE, message));
    }

    /// Runs what runs by itself, and then what the rules choose.
    pub(crate) async fn run(&mut self, parent: Parent<'a>) -> Result<(), Failed> {
        self.run_all(parent, self.plan.order.clone()).await?;
        if self.plan.pattern != Pattern::Conditional {
            return Ok(());
        }
        self.last = Some(0);
        let plan = self.plan;
        let chosen = match plan.route(self.progress(parent)) {
            Choice::Next(name) => plan.part(name),
            Choice::Enough => None,
            Choice::NoRule => {
                self.warn("no rule of `routing` holds; the result so far is the answer");
                None
            }
        };
        let Some(chosen) = chosen.filter(|place| *place != 0) else { return Ok(()) };
        self.run_all(parent, vec![chosen]).await?;
        if self.results.get(chosen).is_some_and(Option::is_some) {
            self.last = Some(chosen);
        }
        Ok(())
    }

    async fn run_all(&mut self, parent: Parent<'a>, mut waiting: Vec<usize>) -> Result<(), Failed> {
        let at_once = if self.plan.pattern == Pattern::Parallel { AT_ONCE } else { 1 };
        let mut running = FuturesUnordered::new();
        let mut open: BTreeSet<usize> = waiting.iter().copied().collect();
        let mut emitted = BTreeMap::new();
        loop {
            while running.len() < at_once
                && let Some(place) = self.next(&mut waiting, &open)
            {
                match self.start(parent, place) {
                    Some(child) => running.push(async move { (place, child.await) }),
                    None => {
                        open.remove(&place);
                    }
                }
            }
            let Some((place, done)) = running.next().await else { return Ok(()) };
            open.remove(&place);
            let (result, handed_on) = self.take(done);
            let result = result?;
            if let Some(slot) = self.results.get_mut(place) {
                *slot = result;
            }
            emitted.insert(place, handed_on);
            // Children that ran at the same time report in the order in which they are declared.
            if running.is_empty() {
                for updates in std::mem::take(&mut emitted).into_values() {
                    self.flow.child_done(updates);
                }
            }
        }
    }

    /// Takes out the first part that waits for nothing any more.
    fn next(&self, waiting: &mut Vec<usize>, open: &BTreeSet<usize>) -> Option<usize> {
        let is_ready = |place: &usize| {
            let part: Option<&Part> = self.plan.parts.get(*place);
            part.is_some_and(|part| !part.after.iter().any(|before| open.contains(before)))
        };
        let at = waiting.iter().position(is_ready)?;
        Some(waiting.remove(at))
    }

    /// Starts a part; `None` if no step to it is taken, so that it is skipped. (COMP-043)
    fn start(&mut self, parent: Parent<'a>, place: usize) -> Option<PortFuture<'a, Done>> {
        let plan = self.plan;
        let part = plan.parts.get(place)?;
        let input = plan.input_of(place, self.progress(parent))?;
        self.started.insert(place);
        let wanted = Wanted {
            name: &part.name,
            range: &part.range,
            fallback: part.fallback.as_deref(),
            optional: part.optional,
            time: part.timeout,
            tier: None,
        };
        // Text stays text as long as nobody makes something else of it. (COMP-062)
        let input = match self.text.filter(|_| input == *self.input) {
            Some(text) => RunInput::Text(text.to_owned()),
            None => RunInput::Json(input),
        };
        Some(run_child(parent, wanted, input, self.flow.handed_down()))
    }
}
