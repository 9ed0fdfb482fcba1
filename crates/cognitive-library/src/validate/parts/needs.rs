//! Checks the data that flows to a part against its input, and to the answer against the module's own data: unknown
//! members, missing required members, and types that never fit.

use cognitive_contract::compose::plan::{FlowSource, FlowStep, FlowTarget};
use cognitive_contract::manifest::{Aggregate, Pattern};
use cognitive_schema::{ContractPlace, MemberDescription};

use super::flow::FlowCheck;
use super::follow::PathEnd;
use super::view::ContractView;
use crate::finding::{Finding, FindingLocation, Severity, quote};
use crate::validate::nearest_name::{did_you_mean, list_text};

/// Every module accepts free text.
pub(super) const FREE_TEXT: &str = "query";
/// The runtime adds a rationale to every answer of a composition, from those of its parts.
const RATIONALE: &str = "rationale";

/// The receiver of a value: a part, or the answer.
struct Receiver<'a> {
    /// The name in messages.
    shown: String,
    place: ContractPlace<'a>,
    rule: &'static str,
}

/// The supply of a required member, from worst to best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Supply {
    Never,
    NotDescribed,
    Given,
}

impl<'a> FlowCheck<'a, '_> {
    /// Checks one member of a mapping, whose path ends at `end`.
    pub(super) fn check_mapping(&mut self, step: &FlowStep, name: &str, end: Option<PathEnd<'a>>, at: &str) {
        for target in &step.to {
            let Some(receiver) = self.receiver(*target) else { continue };
            if name == FREE_TEXT || name.starts_with(['_', '$']) {
                continue;
            }
            let (severity, message) = match (receiver.place.member(name), &end) {
                (MemberDescription::Described(place), Some(end))
                    if end.types.and(place.types()).is_empty() =>
                {
                    let (is, wanted) = (end.types.words(), place.types().words());
                    let message =
                        format!("{} of {} is {wanted}, but this is {is}", quote(name), receiver.shown);
                    (Severity::Error, message)
                }
                (MemberDescription::Described(_) | MemberDescription::Open, _) => continue,
                (MemberDescription::Never, _) => {
                    let known = list_text(&receiver.place.names());
                    (Severity::Error, format!("{} has no {}, only {known}", receiver.shown, quote(name)))
                }
                (MemberDescription::Undescribed, _) => {
                    let known = list_text(&receiver.place.names());
                    let message =
                        format!("{} does not describe {}, only {known}", receiver.shown, quote(name));
                    (Severity::Warning, message)
                }
            };
            let at = FindingLocation::Key(at.into());
            let finding = Finding::error(self.manifest_file, at, receiver.rule, message);
            let hint = did_you_mean(name, receiver.place.names());
            self.found.push(Finding { severity, hint, ..finding });
        }
    }

    /// Checks that parts and the answer receive their required members.
    pub(super) fn needs(&mut self) {
        for (place, part) in self.plan.parts.iter().enumerate() {
            let runs = self.plan.order.contains(&place) || self.plan.pattern == Pattern::Conditional;
            if runs || !part.fed_by.is_empty() {
                self.check_supply(FlowTarget::Part(place), &part.fed_by);
            }
        }
        let leads_out =
            |(place, step): (usize, &FlowStep)| step.to.contains(&FlowTarget::Output).then_some(place);
        let to_output: Vec<usize> = self.plan.steps.iter().enumerate().filter_map(leads_out).collect();
        if !to_output.is_empty() {
            self.check_supply(FlowTarget::Output, &to_output);
        }
    }

    fn check_supply(&mut self, target: FlowTarget, steps: &[usize]) {
        let Some(receiver) = self.receiver(target) else { return };
        let given: Vec<&FlowStep> = steps.iter().filter_map(|step| self.plan.steps.get(*step)).collect();
        let has_text = |step: &&FlowStep| {
            step.mapping.as_ref().is_some_and(|mapping| mapping.paths().any(|(name, _)| name == FREE_TEXT))
        };
        if given.iter().any(has_text) {
            return;
        }
        for name in receiver.place.required_members() {
            if target == FlowTarget::Output && name == RATIONALE {
                continue;
            }
            let by_steps = given.iter().map(|step| self.supply(step, name)).max();
            let supply = by_steps.unwrap_or_else(|| find_supply(self.own.input(), name));
            let severity = match supply {
                Supply::Given => continue,
                Supply::NotDescribed => Severity::Warning,
                Supply::Never => Severity::Error,
            };
            let by = if given.is_empty() { "the input does not describe it" } else { "no step provides it" };
            let message = format!("{} requires {}, but {by}", receiver.shown, quote(name));
            let at = self.supply_place(target, steps);
            let finding = Finding::error(self.manifest_file, at, receiver.rule, message);
            let hint = format!("Add {} to `mapping`", quote(&format!("{name}: $.…")));
            self.found.push(Finding { severity, hint: Some(hint), ..finding });
        }
    }

    /// Returns the location that defines the input of a target.
    fn supply_place(&self, target: FlowTarget, steps: &[usize]) -> FindingLocation {
        match (steps.first(), target) {
            (Some(step), _) if self.plan.steps.get(*step).is_some_and(|step| step.mapping.is_some()) => {
                FindingLocation::Key(format!("/composition/dataflow/{step}/mapping").into())
            }
            (Some(step), _) => FindingLocation::Value(format!("/composition/dataflow/{step}/to")),
            (None, FlowTarget::Part(place)) => {
                FindingLocation::Value(format!("/composition/requires/{place}/name"))
            }
            (None, FlowTarget::Output) => FindingLocation::Value("/composition".to_owned()),
        }
    }

    /// Returns how well a step supplies a member.
    fn supply(&self, step: &FlowStep, name: &str) -> Supply {
        if let Some(mapping) = &step.mapping {
            return if mapping.paths().any(|(member, _)| member == name) {
                Supply::Given
            } else {
                Supply::Never
            };
        }
        let source = |source: &FlowSource| match source {
            FlowSource::Input => find_supply(self.own.input(), name),
            FlowSource::Part(place) => {
                let view = self.parts.get(*place).and_then(Option::as_ref);
                view.map_or(Supply::Given, |view| find_supply(view.data(), name))
            }
        };
        match step.aggregate {
            Aggregate::Merge | Aggregate::First => {
                step.from.iter().map(source).max().unwrap_or(Supply::Given)
            }
            Aggregate::Array if name == "results" => Supply::Given,
            Aggregate::Array => Supply::Never,
            Aggregate::Custom => Supply::Given,
        }
    }

    fn receiver(&self, target: FlowTarget) -> Option<Receiver<'a>> {
        match target {
            FlowTarget::Part(place) => {
                let name = self.plan.parts.get(place)?.name.as_str();
                let view: &ContractView = self.parts.get(place)?.as_ref()?;
                Some(Receiver { shown: quote(name), place: view.input()?, rule: "composition/input" })
            }
            FlowTarget::Output => {
                let shown = "`data` of this module".to_owned();
                Some(Receiver { shown, place: self.own.data()?, rule: "composition/output" })
            }
        }
    }
}

pub(super) fn find_supply(place: Option<ContractPlace<'_>>, name: &str) -> Supply {
    match place.map(|place| place.member(name)) {
        None | Some(MemberDescription::Described(_) | MemberDescription::Open) => Supply::Given,
        Some(MemberDescription::Undescribed) => Supply::NotDescribed,
        Some(MemberDescription::Never) => Supply::Never,
    }
}
