//! Checks the steps and rules of a composition against the contracts of its parts: every name in a path, every value in
//! a condition, and, with `needs`, every member that a part receives.

use std::ops::Range;

use cognitive_contract::compose::plan::{FlowSource, FlowStep};
use cognitive_contract::compose::{CompositionPlan, Condition, Mapping, Path, PathStep};
use cognitive_contract::manifest::{CompositionFile, Pattern};
use cognitive_contract::text::pointer;
use cognitive_schema::ContractPlace;

use super::follow::{PathEnd, UndescribedPath, follow, span_of};
use super::view::ContractView;
use crate::finding::{Finding, FindingLocation, Findings, Severity, quote};
use crate::validate::nearest_name::{did_you_mean, list_text};

/// The state of the check. Missing parts have no contract, and nothing is reported about them here.
pub(super) struct FlowCheck<'a, 'f> {
    pub(super) plan: &'a CompositionPlan,
    pub(super) file: &'a CompositionFile,
    pub(super) own: &'a ContractView,
    pub(super) parts: &'a [Option<ContractView>],
    pub(super) manifest_file: &'static str,
    pub(super) found: &'f mut Findings,
}

/// The meaning of `$` in an expression.
pub(super) enum RootContract<'a> {
    /// One source: the input, or the envelope of a part. `None` if its contract is unknown.
    One(Option<ContractPlace<'a>>),
    /// Several sources, by name.
    Named(Vec<(&'a str, Option<ContractPlace<'a>>)>),
}

impl<'a> RootContract<'a> {
    /// Follows a path from here. A source without a contract allows every path.
    fn follow(&self, path: &Path) -> Result<Option<PathEnd<'a>>, UndescribedPath<'a>> {
        match (self, path.steps().split_first()) {
            (Self::One(Some(place)), _) => follow(path.steps(), place),
            (Self::Named(sources), Some((first, rest))) => {
                // Compiling the composition has reported an unknown source.
                let source = sources.iter().find(|(name, _)| first.name() == Some(*name));
                let Some((_, Some(place))) = source else { return Ok(None) };
                follow(rest, place).map_err(|astray| UndescribedPath { step: astray.step + 1, ..astray })
            }
            (Self::One(None) | Self::Named(_), _) => Ok(None),
        }
    }
}

/// An expression in the manifest.
#[derive(Clone, Copy)]
struct WrittenPath<'a> {
    path: &'a Path,
    /// The text that contains it, and the offset of the path in it.
    text: &'a str,
    from: usize,
}

impl<'a> FlowCheck<'a, '_> {
    pub(super) fn check(mut self) {
        for (place, step) in self.plan.steps.iter().enumerate() {
            let root = self.root(step);
            let at = format!("/composition/dataflow/{place}");
            let written = self.file.dataflow.as_deref().and_then(|flow| flow.get(place));
            if let (Some(condition), Some(text)) =
                (&step.condition, written.and_then(|one| one.condition.as_ref()))
            {
                self.condition(condition, text, &root, &format!("{at}/condition"));
            }
            for (name, path) in step.mapping.iter().flat_map(Mapping::paths) {
                let text = written.and_then(|one| one.mapping.as_ref()?.get(name));
                let Some(text) = text else { continue };
                let at = pointer(&format!("{at}/mapping"), name);
                let end = self.path(WrittenPath { path, text, from: 0 }, &root, &at);
                self.check_mapping(step, name, end, &at);
            }
        }
        self.rules();
        self.needs();
    }

    /// The sources that a step can read.
    pub(super) fn root(&self, step: &FlowStep) -> RootContract<'a> {
        let contract = |source: &FlowSource| match source {
            FlowSource::Input => ("input", self.own.input()),
            FlowSource::Part(place) => {
                let name = self.plan.parts.get(*place).map_or("", |part| part.name.as_str());
                (name, self.parts.get(*place).and_then(Option::as_ref).and_then(ContractView::envelope))
            }
        };
        match step.from.as_slice() {
            [only] => RootContract::One(contract(only).1),
            several => RootContract::Named(several.iter().map(contract).collect()),
        }
    }

    /// Checks the rules. They see only the first part, because no other has run when they are evaluated.
    fn rules(&mut self) {
        let Some(first) = self.plan.parts.first().filter(|_| self.plan.pattern == Pattern::Conditional)
        else {
            return;
        };
        let envelope = self.parts.first().and_then(Option::as_ref).and_then(ContractView::envelope);
        let root = RootContract::Named(vec![(first.name.as_str(), envelope)]);
        for (place, rule) in self.file.routing.as_deref().unwrap_or_default().iter().enumerate() {
            let Ok(condition) = Condition::parse(&rule.condition) else { continue };
            let at = format!("/composition/routing/{place}/condition");
            for (path, span) in condition.paths() {
                let other =
                    path.first_member().filter(|name| *name != first.name && self.plan.part(name).is_some());
                let Some(other) = other else { continue };
                let message = format!(
                    "{} has not run when the rules are evaluated, so this is always missing: only {} has run",
                    quote(other),
                    quote(&first.name)
                );
                let at = FindingLocation::in_text_value(&at, &rule.condition, span);
                self.found.push(Finding::error(self.manifest_file, at, "composition/path", message));
            }
            self.condition(&condition, &rule.condition, &root, &at);
        }
    }

    fn condition(&mut self, condition: &Condition, text: &str, root: &RootContract<'a>, at: &str) {
        for (path, span) in condition.paths() {
            self.path(WrittenPath { path, text, from: span.start }, root, at);
        }
        for (path, value, span) in condition.equalities() {
            let Ok(Some(PathEnd { place: Some(place), .. })) = root.follow(path) else { continue };
            // A missing value is null, so every comparison with null is valid.
            if value.is_null() || path.steps().contains(&PathStep::All) || place.may_be(value) {
                continue;
            }
            let message = format!(
                "this is never {}: the contract does not allow that value",
                quote(&value.to_string())
            );
            let known: Vec<&str> =
                place.listed_values().into_iter().filter_map(|value| value.as_str()).collect();
            let at = FindingLocation::in_text_value(at, text, span);
            let finding = Finding::error(self.manifest_file, at, "composition/value", message);
            let near = value.as_str().and_then(|value| did_you_mean(value, known.iter().copied()));
            let list = || {
                (!known.is_empty())
                    .then(|| format!("It is one of {}", list_text(&known.into_iter().collect())))
            };
            self.found.push(Finding { hint: near.or_else(list), ..finding });
        }
    }

    /// Checks one path; returns its end, if known.
    fn path(&mut self, written: WrittenPath<'_>, root: &RootContract<'a>, at: &str) -> Option<PathEnd<'a>> {
        let astray = match root.follow(written.path) {
            Ok(end) => return end,
            Err(astray) => astray,
        };
        let (severity, message) = unknown_path_message(written, &astray);
        let range = wrong_part(written, astray.step);
        let at = FindingLocation::in_text_value(at, written.text, range);
        let finding = Finding::error(self.manifest_file, at, "composition/path", message);
        let name = written.path.steps().get(astray.step).and_then(PathStep::name).unwrap_or_default();
        let hint = did_you_mean(name, astray.known.iter().copied());
        self.found.push(Finding { severity, hint, ..finding });
        None
    }
}

/// Returns the position of the wrong step in the text.
fn wrong_part(written: WrittenPath<'_>, step: usize) -> Range<usize> {
    let text = written.text.get(written.from..).unwrap_or_default();
    let span = span_of(text, written.path.steps(), step);
    span.map_or(0..written.text.len(), |(span, _)| span.start + written.from..span.end + written.from)
}

fn unknown_path_message(written: WrittenPath<'_>, astray: &UndescribedPath<'_>) -> (Severity, String) {
    let text = written.text.get(written.from..).unwrap_or_default();
    let (wrong, before) = match span_of(text, written.path.steps(), astray.step) {
        Some((span, end)) => {
            let start = text.find('$').unwrap_or(0);
            (text.get(span).unwrap_or_default(), text.get(start..end).unwrap_or_default())
        }
        None => (text, ""),
    };
    unknown_name_message(wrong, before, astray)
}

/// The severity and message for an unknown name.
pub(in crate::validate) fn unknown_name_message(
    wrong: &str,
    before: &str,
    astray: &UndescribedPath<'_>,
) -> (Severity, String) {
    let (wrong, before, known) = (quote(wrong), quote(before), list_text(&astray.known));
    match (astray.never, astray.known.is_empty()) {
        (true, true) => {
            (Severity::Error, format!("{wrong} never exists: {before} has no such members or entries"))
        }
        (true, false) => (Severity::Error, format!("{wrong} never exists: {before} has only {known}")),
        (false, _) => (Severity::Warning, format!("{wrong} is not described: {before} describes {known}")),
    }
}
