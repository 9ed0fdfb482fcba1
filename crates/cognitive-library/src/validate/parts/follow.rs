//! Follows a path through the contracts, step by step, up to the first missing name. A contract that leaves something
//! open ends the search: a name that may exist is never reported.

use std::collections::BTreeSet;
use std::ops::Range;

use cognitive_contract::compose::PathStep;
use cognitive_schema::{ContractPlace, JsonTypes, MemberDescription};

/// The end of a path that the contracts describe.
pub(in crate::validate) struct PathEnd<'a> {
    /// The contract there; `None` for a computed value.
    pub(in crate::validate) place: Option<ContractPlace<'a>>,
    /// The possible types of the value.
    pub(in crate::validate) types: JsonTypes,
}

/// A path to something that the contracts do not describe.
pub(in crate::validate) struct UndescribedPath<'a> {
    /// The index of the wrong step.
    pub(in crate::validate) step: usize,
    /// True if no valid value has the name, false if it is only undescribed.
    pub(in crate::validate) never: bool,
    /// The names that are described instead.
    pub(in crate::validate) known: BTreeSet<&'a str>,
}

/// Follows a path. Returns `None` if a contract leaves the end open.
pub(in crate::validate) fn follow<'a>(
    steps: &[PathStep],
    start: &ContractPlace<'a>,
) -> Result<Option<PathEnd<'a>>, UndescribedPath<'a>> {
    let mut place = start.clone();
    let mut many = false;
    for (at, step) in steps.iter().enumerate() {
        if *step == PathStep::Length && !place.types().and(JsonTypes::COUNTED).is_empty() {
            let types = if many { JsonTypes::ARRAY } else { JsonTypes::NUMBER };
            return Ok(Some(PathEnd { place: None, types }));
        }
        let below = match step.name() {
            Some(name) => place.member(name),
            None => place.items(),
        };
        many |= *step == PathStep::All;
        let never = matches!(below, MemberDescription::Never);
        place = match below {
            MemberDescription::Described(next) => next,
            MemberDescription::Open => return Ok(None),
            MemberDescription::Undescribed | MemberDescription::Never => {
                return Err(UndescribedPath { step: at, never, known: place.names() });
            }
        };
    }
    let types = if many { JsonTypes::ARRAY } else { place.types() };
    Ok(Some(PathEnd { place: Some(place), types }))
}

/// Returns the range of a step's name in the text of a path, and the end of the path before it.
pub(super) fn span_of(text: &str, steps: &[PathStep], wanted: usize) -> Option<(Range<usize>, usize)> {
    let mut at = text.find('$')? + 1;
    for (place, step) in steps.iter().enumerate() {
        let start = match step {
            PathStep::Member(_) | PathStep::Length => {
                let name = step.name().unwrap_or_default();
                let start = at + text.get(at..)?.find(name)?;
                if place == wanted {
                    return Some((start..start + name.len(), at));
                }
                start + name.len()
            }
            PathStep::Index(_) | PathStep::All => {
                let open = at + text.get(at..)?.find('[')?;
                let close = open + text.get(open..)?.find(']')? + 1;
                if place == wanted {
                    return Some((open..close, at));
                }
                close
            }
        };
        // A quote and a bracket follow a name in brackets.
        let closing =
            text.get(start..)?.chars().take_while(|letter| matches!(letter, '\'' | '"' | ']' | ' '));
        at = start
            + if text.get(start..)?.starts_with(['\'', '"']) { closing.map(char::len_utf8).sum() } else { 0 };
    }
    None
}

#[cfg(test)]
mod tests {
    use cognitive_contract::compose::Path;

    use super::*;

    #[test]
    fn names_are_found_in_every_form_of_a_path() {
        for (text, step, name, before) in [
            ("$.triage.data.kategory", 2, "kategory", "$.triage.data"),
            ("exists($.a.a.b)", 1, "a", "exists($.a"),
            ("$['it s'][\"x\"].y", 2, "y", "$['it s'][\"x\"]"),
            ("$['it s'][\"x\"].y", 1, "x", "$['it s']"),
            ("$.list[0].n", 1, "[0]", "$.list"),
            ("$.list[*].n.length", 3, "length", "$.list[*].n"),
        ] {
            let inner = text.trim_start_matches("exists(").trim_end_matches(')');
            let path = Path::parse(inner).unwrap();
            let (span, end) = span_of(text, path.steps(), step).unwrap();
            assert_eq!((&text[span], &text[..end]), (name, before), "{text}");
        }
    }
}
