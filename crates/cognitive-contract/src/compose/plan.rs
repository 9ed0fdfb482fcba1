//! A composition that is ready to run: every expression compiled, every name resolved, the order fixed.
//! Computes the data flow; runs nothing, loads nothing, waits for nothing.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::aggregate::{CustomAggregate, aggregate, merge};
use super::calls::Call;
use super::expr::Condition;
use super::graph::{ModuleNode, Need};
use super::mapping::Mapping;
use super::path::PathRoot;
use super::routing::{Choice, RoutingRule, route};
use super::version::VersionRange;
use crate::manifest::{Aggregate, Pattern};

/// The default timeout of a composition. Without it, a part that never ends would hold the run.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// A compiled `composition` block. Parts are identified by their index in `parts`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CompositionPlan {
    /// The execution pattern.
    pub pattern: Pattern,
    /// The maximum depth of nested modules, if the author sets one.
    pub max_depth: Option<u64>,
    /// The timeout of the whole composition.
    pub timeout: Duration,
    /// The modules, in the order of `requires`.
    pub parts: Vec<PlanPart>,
    /// The data flow, in the order of `dataflow`.
    pub steps: Vec<FlowStep>,
    /// The rules of a conditional composition.
    pub rules: Vec<RoutingRule>,
    /// The parts that run without being called, each after all that feed it. A conditional composition has one: the
    /// first part. Parts that a rule or a call selects are not included.
    pub order: Vec<usize>,
    /// The source of the answer.
    pub answer: AnswerSource,
}

/// One module of a composition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanPart {
    /// Its name.
    pub name: String,
    /// The accepted versions.
    pub range: VersionRange,
    /// True if the composition can run without it.
    pub optional: bool,
    /// The module to use instead.
    pub fallback: Option<String>,
    /// The timeout of the part, if the author sets one.
    pub timeout: Option<Duration>,
    /// The steps that feed it.
    pub fed_by: Vec<usize>,
    /// The parts that must be finished before it starts.
    pub after: Vec<usize>,
}

/// A step of the data flow.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FlowStep {
    /// The sources, in order.
    pub from: Vec<FlowSource>,
    /// The targets.
    pub to: Vec<FlowTarget>,
    /// The mapping of the data; without it, everything is passed on.
    pub mapping: Option<Mapping>,
    /// The condition for the step.
    pub condition: Option<Condition>,
    /// The method to combine several sources.
    pub aggregate: Aggregate,
}

/// The source of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowSource {
    /// The input of the composition.
    Input,
    /// The envelope of a part.
    Part(usize),
}

/// The target of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowTarget {
    /// The input of a part.
    Part(usize),
    /// The answer of the composition.
    Output,
}

/// The source of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerSource {
    /// From the steps to `output`, without a further model call.
    Flow,
    /// From the part that ran last: the first one, or the one that a rule selected.
    Chosen,
    /// From the module's own prompt, with the results of its parts.
    Prompt,
}

/// The state of a running composition.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The input of the composition.
    pub input: &'a Value,
    /// The envelope of each part by its index; `None` if it has not run, was skipped, or failed and is optional.
    pub results: &'a [Option<Value>],
    /// The host's function for `aggregate: custom`.
    pub custom: Option<&'a CustomAggregate>,
}

impl<'a> Progress<'a> {
    fn envelope(&self, part: usize) -> Option<&'a Value> {
        self.results.get(part).and_then(Option::as_ref)
    }
}

impl CompositionPlan {
    /// Returns the index of a part.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<usize> {
        self.parts.iter().position(|part| part.name == name)
    }

    /// Returns the input of a part; `None` if no step to it applies, so that it is skipped. A part without incoming
    /// steps gets the input of the composition. If several steps feed it, later ones win. (COMP-033, COMP-043)
    #[must_use]
    pub fn input_of(&self, part: usize, progress: Progress<'_>) -> Option<Value> {
        let fed_by = &self.parts.get(part)?.fed_by;
        if fed_by.is_empty() {
            return Some(progress.input.clone());
        }
        self.flow(fed_by.iter().copied(), progress)
    }

    /// Explains why a part gets no input: for each step to it, the condition that does not hold or the missing results.
    #[must_use]
    pub fn why_skipped(&self, part: usize, progress: Progress<'_>) -> Option<String> {
        let steps = self.parts.get(part)?.fed_by.iter().filter_map(|step| self.steps.get(*step));
        let reasons = steps.map(|step| {
            let sources = step.from.iter().map(|source| self.source(*source, progress));
            let (there, missing): (Vec<_>, Vec<_>) = sources.partition(|(_, value)| value.is_some());
            match &step.condition {
                Some(condition) if !there.is_empty() => format!("`{}` does not hold", condition.source()),
                _ => {
                    let names: Vec<String> = missing.iter().map(|(name, _)| format!("`{name}`")).collect();
                    format!("no result of {}", names.join(", "))
                }
            }
        });
        let reasons: Vec<String> = reasons.collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Returns whether a part gets the composition's input unchanged, in which case [`input_of`](Self::input_of) would
    /// only copy it.
    #[must_use]
    pub fn forwards_input(&self, part: usize, progress: Progress<'_>) -> bool {
        let Some(part) = self.parts.get(part) else { return false };
        let mut steps = part.fed_by.iter().filter_map(|step| self.steps.get(*step));
        match (steps.next(), steps.next()) {
            (None, _) => true,
            (Some(step), None) => {
                let is_whole = step.from == [FlowSource::Input] && step.mapping.is_none();
                let holds = |condition: &Condition| condition.holds(PathRoot::Value(progress.input));
                is_whole
                    && matches!(step.aggregate, Aggregate::Merge | Aggregate::First)
                    && step.condition.as_ref().is_none_or(holds)
                    && progress.input.is_object()
            }
            (Some(_), Some(_)) => false,
        }
    }

    /// Returns the data of the answer from the steps to `output`; `None` if none of them applies.
    #[must_use]
    pub fn output(&self, progress: Progress<'_>) -> Option<Value> {
        let to_output =
            |(place, step): (usize, &FlowStep)| step.to.contains(&FlowTarget::Output).then_some(place);
        self.flow(self.steps.iter().enumerate().filter_map(to_output), progress)
    }

    /// Evaluates the rules after the first part. They see every result by the name of its module. (COMP-031)
    #[must_use]
    pub fn route(&self, progress: Progress<'_>) -> Choice<'_> {
        let parts = self.parts.iter().enumerate();
        let members: Vec<(&str, &Value)> =
            parts.filter_map(|(place, part)| Some((part.name.as_str(), progress.envelope(place)?))).collect();
        route(&self.rules, PathRoot::Named(&members))
    }

    /// Builds the graph node of a module with this composition and these calls in its prompt.
    #[must_use]
    pub fn node(&self, version: &str, calls: &[Call]) -> ModuleNode {
        let declared: HashMap<&str, &PlanPart> =
            self.parts.iter().map(|part| (part.name.as_str(), part)).collect();
        let mut needs: Vec<Need> = self.parts.iter().map(PlanPart::need).collect();
        for call in calls {
            let optional = call.options.optional;
            match declared.get(call.module.as_str()) {
                None => needs.push(Need { optional, ..Need::required_module(call.module.as_str()) }),
                // The part is optional in `requires`, but required by this call.
                Some(part) if part.optional && !optional => needs.push(Need { optional, ..part.need() }),
                Some(_) => {}
            }
        }
        let asks = self.answer == AnswerSource::Prompt;
        let mut certain = self.certain();
        if asks {
            let of = |call: &Call| match declared.get(call.module.as_str()) {
                Some(part) => part.need(),
                None => Need::required_module(call.module.as_str()),
            };
            certain.extend(calls.iter().map(of));
        }
        ModuleNode { version: version.to_owned(), max_depth: self.max_depth, needs, certain, asks }
    }

    /// Returns the parts that run in every case: no condition precedes them.
    fn certain(&self) -> Vec<Need> {
        let mut runs = vec![false; self.parts.len()];
        for place in &self.order {
            let Some(part) = self.parts.get(*place) else { continue };
            let leads = |step: &FlowStep| {
                let has_result = |source: &FlowSource| match source {
                    FlowSource::Input => true,
                    FlowSource::Part(before) => runs.get(*before).copied().unwrap_or_default(),
                };
                step.condition.is_none() && step.from.iter().any(has_result)
            };
            let is_certain = part.fed_by.is_empty()
                || part.fed_by.iter().filter_map(|step| self.steps.get(*step)).any(leads);
            if let Some(slot) = runs.get_mut(*place) {
                *slot = is_certain;
            }
        }
        let certain = self.parts.iter().zip(runs).filter(|(_, runs)| *runs);
        certain.map(|(part, _)| part.need()).collect()
    }

    fn flow(&self, steps: impl Iterator<Item = usize>, progress: Progress<'_>) -> Option<Value> {
        let steps = steps.filter_map(|place| self.steps.get(place));
        let taken: Vec<Value> = steps.filter_map(|step| self.take(step, progress)).collect();
        if taken.is_empty() { None } else { Some(merge(taken)) }
    }

    /// Returns the data of a step; `None` if its condition does not hold or none of its sources has a result.
    pub(super) fn take(&self, step: &FlowStep, progress: Progress<'_>) -> Option<Value> {
        let sources: Vec<(&str, Option<&Value>)> =
            step.from.iter().map(|source| self.source(*source, progress)).collect();
        let present: Vec<(&str, &Value)> =
            sources.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
        let root = match (sources.as_slice(), present.as_slice()) {
            (_, []) => return None,
            ([_], [(_, only)]) => PathRoot::Value(only),
            (_, present) => PathRoot::Named(present),
        };
        if step.condition.as_ref().is_some_and(|condition| !condition.holds(root)) {
            return None;
        }
        if let Some(mapping) = &step.mapping {
            return Some(Value::Object(mapping.apply(root)));
        }
        let data = |(source, (_, value)): (&FlowSource, &(&str, Option<&Value>))| match (source, value) {
            (_, None) => Value::Null,
            (FlowSource::Input, Some(input)) => (*input).clone(),
            (FlowSource::Part(_), Some(envelope)) => envelope.get("data").cloned().unwrap_or(Value::Null),
        };
        let values = step.from.iter().zip(&sources).map(data).collect();
        match aggregate(step.aggregate, values, progress.custom)? {
            Value::Null => None,
            object @ Value::Object(_) => Some(object),
            // Inputs and answers are objects. (COMP-051)
            Value::Array(list) => Some(Value::Object(Map::from_iter([("results".to_owned(), list.into())]))),
            other => Some(Value::Object(Map::from_iter([("value".to_owned(), other)]))),
        }
    }

    fn source<'a>(&'a self, source: FlowSource, progress: Progress<'a>) -> (&'a str, Option<&'a Value>) {
        match source {
            FlowSource::Input => ("input", Some(progress.input)),
            FlowSource::Part(place) => {
                let name = self.parts.get(place).map_or("", |part| part.name.as_str());
                (name, progress.envelope(place))
            }
        }
    }
}

impl PlanPart {
    fn need(&self) -> Need {
        Need {
            name: self.name.clone(),
            range: self.range.clone(),
            optional: self.optional,
            fallback: self.fallback.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
