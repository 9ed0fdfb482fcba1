//! The origin of a member that a part of a composition refuses: the caller, another part, or the author. (D-21)
//! Reads the data flow again after a failure; nothing is recorded while a composition runs.

use serde_json::Value;

use super::path::{Path, PathStep};
use super::plan::{CompositionPlan, FlowSource, FlowStep, Progress};
use crate::manifest::Aggregate;
use crate::text::pointer;

/// The members of an envelope. A mapping that reads another one can never find a value.
const ENVELOPE: [&str; 5] = ["ok", "meta", "data", "error", "partial_data"];

/// The party that a member of a part's input comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberOrigin<'a> {
    /// The caller of the composition, at this pointer into its input.
    Caller(String),
    /// The answer of the part with this name.
    Part(&'a str),
    /// A mapping or a constant of the module's author.
    Author,
}

impl CompositionPlan {
    /// Returns the origin of the member at a JSON pointer into the input of a part. For an absent member, it is the source
    /// that should have had it; for an empty pointer, a part if any part gave something.
    #[must_use]
    pub fn origin(&self, part: usize, at: &str, progress: Progress<'_>) -> MemberOrigin<'_> {
        let fed_by = self.parts.get(part).map(|part| part.fed_by.as_slice()).unwrap_or_default();
        if fed_by.is_empty() {
            return MemberOrigin::Caller(at.to_owned());
        }
        let steps = fed_by.iter().filter_map(|place| self.steps.get(*place));
        let taken: Vec<(&FlowStep, Value)> =
            steps.filter_map(|step| Some((step, self.take(step, progress)?))).collect();
        if at.is_empty() {
            let sources = || taken.iter().flat_map(|(step, _)| &step.from);
            let part = sources().rev().find(|source| matches!(source, FlowSource::Part(_)));
            return part
                .or_else(|| sources().next())
                .map_or(MemberOrigin::Author, |source| self.source_origin(*source, at));
        }
        // Later steps win. If none has the member, the last one should have had it.
        let holds = |(_, value): &&(&FlowStep, Value)| value.pointer(at).is_some();
        let step = taken.iter().rev().find(holds).or_else(|| taken.last());
        step.map_or(MemberOrigin::Author, |(step, _)| self.origin_in(step, at, progress))
    }

    fn origin_in(&self, step: &FlowStep, at: &str, progress: Progress<'_>) -> MemberOrigin<'_> {
        if let Some(mapping) = &step.mapping {
            let path = mapping.paths().find_map(|(name, path)| Some((path, member_pointer(at, name)?)));
            return path.map_or(MemberOrigin::Author, |(path, rest)| self.mapped_origin(step, path, rest));
        }
        let data = |source: &&FlowSource| match source {
            FlowSource::Input => Some(progress.input),
            FlowSource::Part(part) => progress.results.get(*part)?.as_ref()?.get("data"),
        };
        match (step.aggregate, step.from.as_slice()) {
            (Aggregate::Custom, _) => MemberOrigin::Author,
            (Aggregate::Array, sources) => {
                let item =
                    at.strip_prefix("/results/").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
                let source = item.and_then(|(index, _)| sources.get(index.parse::<usize>().ok()?));
                let rest = item
                    .map_or("", |(index, _)| at.get("/results/".len() + index.len()..).unwrap_or_default());
                source.map_or(MemberOrigin::Author, |source| self.source_origin(*source, rest))
            }
            (Aggregate::First, sources) => sources
                .iter()
                .find(|source| data(source).is_some())
                .map_or(MemberOrigin::Author, |source| self.source_origin(*source, at)),
            (Aggregate::Merge, sources) => {
                let mut present = sources.iter().rev().filter(|source| data(source).is_some());
                let holder = present
                    .clone()
                    .find(|source| data(source).is_some_and(|data| data.pointer(at).is_some()));
                holder
                    .or_else(|| present.next())
                    .map_or(MemberOrigin::Author, |source| self.source_origin(*source, at))
            }
        }
    }

    /// The origin of a mapped value, of which `rest` is a member.
    fn mapped_origin(&self, step: &FlowStep, path: &Path, rest: &str) -> MemberOrigin<'_> {
        let steps = path.steps();
        let (source, steps) = match (step.from.as_slice(), steps.split_first()) {
            ([only], _) => (*only, steps),
            (sources, Some((first, inner))) => {
                let named = sources.iter().find(|source| first.name() == Some(self.name_of(**source)));
                let Some(source) = named else { return MemberOrigin::Author };
                (*source, inner)
            }
            (_, None) => return MemberOrigin::Author,
        };
        match source {
            FlowSource::Input => MemberOrigin::Caller(format!("{}{rest}", pointer_of(steps))),
            FlowSource::Part(_) => {
                let is_member =
                    steps.first().is_none_or(|step| step.name().is_some_and(|name| ENVELOPE.contains(&name)));
                if is_member { self.source_origin(source, rest) } else { MemberOrigin::Author }
            }
        }
    }

    fn source_origin(&self, source: FlowSource, at: &str) -> MemberOrigin<'_> {
        match source {
            FlowSource::Input => MemberOrigin::Caller(at.to_owned()),
            FlowSource::Part(_) => MemberOrigin::Part(self.name_of(source)),
        }
    }

    fn name_of(&self, source: FlowSource) -> &str {
        match source {
            FlowSource::Input => "input",
            FlowSource::Part(place) => self.parts.get(place).map_or("", |part| part.name.as_str()),
        }
    }
}

/// The pointer below a member of this name; `None` if the pointer leads elsewhere.
fn member_pointer<'p>(at: &'p str, name: &str) -> Option<&'p str> {
    let rest = at.strip_prefix(pointer("", name).as_str())?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

impl Path {
    /// Returns the pointer of a member of the value at the path. It ends at the first step that selects several values.
    #[must_use]
    pub fn member_pointer(&self, rest: &str) -> String {
        format!("{}{rest}", pointer_of(self.steps()))
    }
}

/// The pointer of a path, up to its first step that is not a member or an item.
fn pointer_of(steps: &[PathStep]) -> String {
    let mut at = String::new();
    for step in steps {
        match step {
            PathStep::Member(name) => at = pointer(&at, name),
            PathStep::Index(index) => at = pointer(&at, &index.to_string()),
            PathStep::Length | PathStep::All => break,
        }
    }
    at
}
