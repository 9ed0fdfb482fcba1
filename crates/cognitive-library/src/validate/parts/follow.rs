//! Where a path leads by the contracts alone, step by step, and the first name that is not there.
//! A contract that leaves something open ends the search: what may be there is never reported.

use std::collections::BTreeSet;
use std::ops::Range;

use cognitive_contract::compose::PathStep;
use cognitive_schema::{Below, ContractPlace, JsonTypes};

/// The end of a path that the contracts describe.
pub(in crate::validate) struct PathEnd<'a> {
    /// What is described there; `None` for what is calculated.
    pub(in crate::validate) place: Option<ContractPlace<'a>>,
    /// The types that the value can have.
    pub(in crate::validate) types: JsonTypes,
}

/// A path that leads to something that is not described.
pub(in crate::validate) struct Astray<'a> {
    /// The step that goes wrong.
    pub(in crate::validate) step: usize,
    /// Whether no valid value has it, or it is only not described.
    pub(in crate::validate) never: bool,
    /// What is described in its place.
    pub(in crate::validate) known: BTreeSet<&'a str>,
}

/// Follows a path. `None` if a contract leaves open what is there.
pub(in crate::validate) fn follow<'a>(
    steps: &[PathStep],
    start: &ContractPlace<'a>,
) -> Result<Option<PathEnd<'a>>, Astray<'a>> {
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
        let never = matches!(below, Below::Never);
        place = match below {
            Below::Described(next) => next,
            Below::Open => return Ok(None),
            Below::Undescribed | Below::Never => {
                return Err(Astray { step: at, never, known: place.names() });
            }
        };
    }
    let types = if many { JsonTypes::ARRAY } else { place.types() };
    Ok(Some(PathEnd { place: Some(place), types }))
}

/// Where the name of a step stands in the text of a path, and where the path before it ends.
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
        // Behind a name in brackets come a quote and a bracket.
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
