//! Compiles the `composition` block of a manifest to a [`CompositionPlan`]. Reports all faults at once, each with its
//! place in `module.yaml` and its characters within an expression. (COMP-001, COMP-034, COMP-042)
//! Checks only this module: the graph checks whether the others exist, and cycles through them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::ops::Range;
use std::time::Duration;

use cognitive_schema::MAX_VIOLATIONS;

use super::calls::Call;
use super::cursor::Slip;
use super::expr::Condition;
use super::mapping::Mapping;
use super::path::Path;
use super::plan::{
    AnswerSource, CompositionPlan, DEFAULT_TIMEOUT, FlowSource, FlowStep, FlowTarget, PlanPart,
};
use super::routing::RoutingRule;
use super::version::VersionRange;
use crate::code::ErrorCode;
use crate::manifest::{Aggregate, CompositionFile, Dependency, FlowEntry, OneOrMore, Pattern, Route};
use crate::text::pointer;
use crate::violation::Violation;

/// Reserved names of a data flow.
const RESERVED: [&str; 2] = ["input", "output"];

/// The maximum number of connections. A step connects each source with each target, so a short manifest could ask for
/// billions.
const MAX_CONNECTIONS: usize = 100_000;

/// A fault or note about a composition, with its place in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompositionFault {
    /// JSON pointer into the manifest.
    pub path: String,
    /// The bytes of the text at `path`, if only a part of it is wrong.
    pub span: Option<Range<usize>>,
    /// The kind of fault: `name`, `range`, `path`, `condition`, `flow` or `routing`.
    pub rule: &'static str,
    /// The expectation that was not met.
    pub message: String,
}

impl CompositionFault {
    fn new(path: impl Into<String>, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.into(), span: None, rule, message: message.into() }
    }

    fn from_slip(path: String, rule: &'static str, text: &str, slip: Slip) -> Self {
        let before = text.get(..slip.span.start).unwrap_or(text);
        let message = format!("{} (at character {})", slip.message, before.chars().count() + 1);
        Self { path, span: Some(slip.span), rule, message }
    }

    /// Converts the fault to a violation of the manifest: the module is invalid.
    #[must_use]
    pub fn into_violation(self) -> Violation {
        Violation::new(self.path, ErrorCode::InternalError, self.rule, self.message)
    }
}

/// A plan, with notes for its author that do not prevent a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CompiledComposition {
    /// The plan.
    pub plan: CompositionPlan,
    /// Findings that are unusual, but not wrong.
    pub notes: Vec<CompositionFault>,
}

impl CompositionPlan {
    /// Compiles a composition. `calls` are the calls of the module's prompt. A part that is called there and has no
    /// incoming step does not also run on its own.
    pub fn compile(
        file: &CompositionFile,
        calls: &[Call],
    ) -> Result<CompiledComposition, Vec<CompositionFault>> {
        let mut compiler = PlanCompiler::default();
        let mut parts = compiler.parts(file);
        let steps = compiler.steps(file.dataflow.as_deref().unwrap_or_default());
        let rules = compiler.rules(file.routing.as_deref().unwrap_or_default());
        let pattern = file.pattern.unwrap_or(Pattern::Sequential);
        compiler.pattern(pattern, &parts, &rules);
        let connections = steps.iter().map(|step| step.from.len().saturating_mul(step.to.len()));
        if connections.fold(0, usize::saturating_add) > MAX_CONNECTIONS {
            let message = format!("expected at most {MAX_CONNECTIONS} connections from a source to a target");
            compiler.fault("/composition/dataflow", "flow", &message);
            return Err(compiler.faults);
        }
        connect(&mut parts, &steps);
        let sorted = topological_order(&parts);
        if sorted.len() < parts.len() {
            let message = "expected steps that lead forward: these modules feed each other in a circle";
            compiler.faults.push(CompositionFault::new("/composition/dataflow", "flow", message));
        }
        if !compiler.faults.is_empty() {
            compiler.faults.truncate(MAX_VIOLATIONS);
            return Err(compiler.faults);
        }
        let order = order(pattern, sorted, &parts, calls);
        let answer = answer(pattern, &steps);
        let timeout = file.timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
        let plan = Self { pattern, max_depth: file.max_depth, timeout, parts, steps, rules, order, answer };
        Ok(CompiledComposition { plan, notes: compiler.notes })
    }

    /// Returns the pointer to the first custom aggregate. It needs a host function; without one the module is invalid.
    /// (COMP-050)
    #[must_use]
    pub fn custom_at(&self) -> Option<String> {
        let place = self.steps.iter().position(|step| step.aggregate == Aggregate::Custom)?;
        Some(format!("/composition/dataflow/{place}/aggregate"))
    }
}

/// Returns the parts that run without being called.
fn order(pattern: Pattern, sorted: Vec<usize>, parts: &[PlanPart], calls: &[Call]) -> Vec<usize> {
    if pattern == Pattern::Conditional {
        return vec![0];
    }
    let called: HashSet<&str> = calls.iter().map(|call| call.module.as_str()).collect();
    let is_called = |place: &usize| {
        let unfed = parts.get(*place).filter(|part| part.fed_by.is_empty());
        unfed.is_some_and(|part| called.contains(part.name.as_str()))
    };
    sorted.into_iter().filter(|place| !is_called(place)).collect()
}

fn answer(pattern: Pattern, steps: &[FlowStep]) -> AnswerSource {
    match pattern {
        _ if steps.iter().any(|step| step.to.contains(&FlowTarget::Output)) => AnswerSource::Flow,
        Pattern::Conditional => AnswerSource::Chosen,
        Pattern::Sequential | Pattern::Parallel => AnswerSource::Prompt,
    }
}

/// Returns all faults of a composition as violations of its manifest.
#[must_use]
pub fn violations(file: &CompositionFile) -> Vec<Violation> {
    let faults = CompositionPlan::compile(file, &[]).err().unwrap_or_default();
    faults.into_iter().map(CompositionFault::into_violation).collect()
}

#[derive(Default)]
struct PlanCompiler<'a> {
    places: HashMap<&'a str, usize>,
    faults: Vec<CompositionFault>,
    notes: Vec<CompositionFault>,
}

impl<'a> PlanCompiler<'a> {
    fn fault(&mut self, path: impl Into<String>, rule: &'static str, message: &str) {
        self.faults.push(CompositionFault::new(path, rule, message));
    }

    fn parts(&mut self, file: &'a CompositionFile) -> Vec<PlanPart> {
        let requires = file.requires.as_deref().unwrap_or_default();
        let part = |(place, dependency)| self.part(place, dependency, file.fallback.as_deref());
        requires.iter().enumerate().map(part).collect()
    }

    fn part(&mut self, place: usize, dependency: &'a Dependency, fallback: Option<&str>) -> PlanPart {
        let at = format!("/composition/requires/{place}");
        let name = dependency.name.as_str();
        if name.is_empty() || RESERVED.contains(&name) {
            self.fault(
                format!("{at}/name"),
                "name",
                "expected the name of a module, not `input` or `output`",
            );
        } else if self.places.insert(name, place).is_some() {
            self.fault(format!("{at}/name"), "name", "expected a module that is not listed above");
        }
        if dependency.fallback.as_deref() == Some(name) {
            self.fault(
                format!("{at}/fallback"),
                "name",
                "expected another module than the one that it replaces",
            );
        }
        let range = VersionRange::parse(dependency.version.as_deref().unwrap_or_default());
        if range.is_none() {
            let message = "expected a version range such as `1.2.3`, `>=1.2.3`, `^1.2.3`, `~1.2.3` or `*`";
            self.fault(format!("{at}/version"), "range", message);
        }
        // The common fallback does not apply to itself.
        let fallback = dependency.fallback.as_deref().or(fallback).filter(|fallback| *fallback != name);
        PlanPart {
            name: name.to_owned(),
            range: range.unwrap_or_default(),
            optional: dependency.optional,
            fallback: fallback.map(str::to_owned),
            timeout: dependency.timeout_ms.map(Duration::from_millis),
            fed_by: Vec::new(),
            after: Vec::new(),
        }
    }

    fn steps(&mut self, flows: &[FlowEntry]) -> Vec<FlowStep> {
        flows.iter().enumerate().map(|(place, flow)| self.step(place, flow)).collect()
    }

    fn step(&mut self, place: usize, flow: &FlowEntry) -> FlowStep {
        let at = format!("/composition/dataflow/{place}");
        let from = self.names(&flow.from, &format!("{at}/from"), Self::source);
        let to = self.names(&flow.to, &format!("{at}/to"), Self::target);
        let mapping = flow.mapping.as_ref().and_then(|members| {
            let at = format!("{at}/mapping");
            let texts = members.iter().map(|(name, path)| (name.as_str(), path.as_str()));
            let slips = match Mapping::parse(texts) {
                Ok(mapping) => return Some(mapping),
                Err(slips) => slips,
            };
            for (name, slip) in slips {
                let text = members.get(name).map(String::as_str).unwrap_or_default();
                self.faults.push(CompositionFault::from_slip(pointer(&at, name), "path", text, slip));
            }
            None
        });
        let condition =
            flow.condition.as_ref().and_then(|text| self.condition(text, format!("{at}/condition")));
        if let OneOrMore::Many(names) = &flow.from
            && names.len() > 1
        {
            self.note_strangers(&at, names, mapping.as_ref(), condition.as_ref());
        }
        FlowStep { from, to, mapping, condition, aggregate: flow.aggregate.unwrap_or(Aggregate::Merge) }
    }

    /// With several sources, each is visible by name, so a path that begins with another name is always missing.
    fn note_strangers(
        &mut self,
        at: &str,
        names: &[String],
        mapping: Option<&Mapping>,
        condition: Option<&Condition>,
    ) {
        let known: HashSet<&str> = names.iter().map(|name| module_of(name)).collect();
        let is_stranger = |path: &Path| path.first_member().is_some_and(|first| !known.contains(first));
        let message = "this path begins with none of the sources, so it is always missing";
        for (name, path) in mapping.iter().flat_map(|mapping| mapping.paths()) {
            if is_stranger(path) {
                let place = pointer(&format!("{at}/mapping"), name);
                self.notes.push(CompositionFault::new(place, "path", message));
            }
        }
        for (path, span) in condition.iter().flat_map(|condition| condition.paths()) {
            if is_stranger(path) {
                let note = CompositionFault::new(format!("{at}/condition"), "condition", message);
                self.notes.push(CompositionFault { span: Some(span), ..note });
            }
        }
    }

    fn names<T>(
        &mut self,
        names: &OneOrMore,
        at: &str,
        read: fn(&mut Self, &str, String) -> Option<T>,
    ) -> Vec<T> {
        match names {
            OneOrMore::One(name) => read(self, name, at.to_owned()).into_iter().collect(),
            OneOrMore::Many(names) => {
                if names.is_empty() {
                    self.fault(at, "flow", "expected at least one name");
                }
                let each = |(place, name): (usize, &String)| read(self, name, format!("{at}/{place}"));
                names.iter().enumerate().filter_map(each).collect()
            }
        }
    }

    fn source(&mut self, name: &str, at: String) -> Option<FlowSource> {
        if name == "input" {
            return Some(FlowSource::Input);
        }
        let place = self.places.get(module_of(name)).copied();
        if place.is_none() {
            self.fault(at, "flow", "expected `input`, or `<module>.output` of a module in `requires`");
        }
        place.map(FlowSource::Part)
    }

    fn target(&mut self, name: &str, at: String) -> Option<FlowTarget> {
        if name == "output" {
            return Some(FlowTarget::Output);
        }
        let place = self.places.get(name).copied();
        if place.is_none() {
            self.fault(at, "flow", "expected `output`, or a module in `requires`");
        }
        place.map(FlowTarget::Part)
    }

    fn rules(&mut self, routes: &[Route]) -> Vec<RoutingRule> {
        routes.iter().enumerate().filter_map(|(place, route)| self.rule(place, route)).collect()
    }

    fn rule(&mut self, place: usize, route: &Route) -> Option<RoutingRule> {
        let at = format!("/composition/routing/{place}");
        if route.next.as_deref().is_some_and(|next| !self.places.contains_key(next)) {
            self.fault(format!("{at}/next"), "routing", "expected a module in `requires`, or `null`");
        }
        let condition = self.condition(&route.condition, format!("{at}/condition"))?;
        for (path, span) in condition.paths() {
            if path.first_member().is_some_and(|first| !self.places.contains_key(first)) {
                let message = "this path begins with no module in `requires`, so it is always missing";
                let note = CompositionFault::new(format!("{at}/condition"), "condition", message);
                self.notes.push(CompositionFault { span: Some(span), ..note });
            }
        }
        Some(RoutingRule { condition, next: route.next.clone() })
    }

    fn condition(&mut self, text: &str, at: String) -> Option<Condition> {
        let parsed =
            Condition::parse(text).map_err(|slip| CompositionFault::from_slip(at, "condition", text, slip));
        parsed.map_err(|fault| self.faults.push(fault)).ok()
    }

    fn pattern(&mut self, pattern: Pattern, parts: &[PlanPart], rules: &[RoutingRule]) {
        let is_conditional = pattern == Pattern::Conditional;
        if is_conditional && parts.is_empty() {
            let message = "expected at least one module: the first one runs, then the rules are evaluated";
            self.fault("/composition/requires", "routing", message);
        } else if is_conditional && rules.is_empty() && self.faults.is_empty() {
            let message = "without rules, only the first module runs";
            self.notes.push(CompositionFault::new("/composition/pattern", "routing", message));
        } else if !is_conditional && !rules.is_empty() {
            let message = "rules are evaluated only if `pattern` is `conditional`";
            self.notes.push(CompositionFault::new("/composition/routing", "routing", message));
        }
    }
}

/// `code-analyzer.output` and `code-analyzer` are the same source.
fn module_of(source: &str) -> &str {
    source.strip_suffix(".output").unwrap_or(source)
}

/// Records for each part the steps that feed it and the parts that must finish before it.
fn connect(parts: &mut [PlanPart], steps: &[FlowStep]) {
    let mut after: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); parts.len()];
    for (place, step) in steps.iter().enumerate() {
        let sources = step.from.iter().filter_map(|source| match source {
            FlowSource::Input => None,
            FlowSource::Part(part) => Some(*part),
        });
        let sources: Vec<usize> = sources.collect();
        for target in &step.to {
            let FlowTarget::Part(part) = target else { continue };
            if let (Some(part), Some(after)) = (parts.get_mut(*part), after.get_mut(*part)) {
                part.fed_by.push(place);
                after.extend(sources.iter().copied());
            }
        }
    }
    for (part, after) in parts.iter_mut().zip(after) {
        part.after = after.into_iter().collect();
    }
}

/// Topological order of the parts; ties follow the order of the data flow. Parts in a cycle are left out.
fn topological_order(parts: &[PlanPart]) -> Vec<usize> {
    let mut waiting: Vec<usize> = parts.iter().map(|part| part.after.len()).collect();
    let mut feeds: Vec<Vec<usize>> = vec![Vec::new(); parts.len()];
    for (place, part) in parts.iter().enumerate() {
        for before in &part.after {
            feeds.get_mut(*before).into_iter().for_each(|list| list.push(place));
        }
    }
    let turn = |place: usize| {
        let first_step = parts.get(place).and_then(|part| part.fed_by.first().copied());
        Reverse((first_step.unwrap_or(0), place))
    };
    let ready = waiting.iter().enumerate().filter(|(_, count)| **count == 0);
    let mut ready: BinaryHeap<_> = ready.map(|(place, _)| turn(place)).collect();
    let mut order = Vec::with_capacity(parts.len());
    while let Some(Reverse((_, place))) = ready.pop() {
        order.push(place);
        for next in feeds.get(place).into_iter().flatten() {
            if let Some(count) = waiting.get_mut(*next) {
                *count -= 1;
                if *count == 0 {
                    ready.push(turn(*next));
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests;
