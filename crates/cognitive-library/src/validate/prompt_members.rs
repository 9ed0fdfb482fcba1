//! Members of the answer that the prompt asks for and the schema lacks: in its JSON examples, in the list below `data`,
//! and as `data.member`. Considers only unambiguous references to the answer; does not interpret sentences.

use std::ops::Range;

use cognitive_schema::{ContractPlace, MemberDescription};
use serde_json::Value;

use super::CheckedModule;
use super::composition::PROMPT_FILE;
use super::nearest_name::did_you_mean;
use super::schema::{data_names, section_place};
use crate::finding::{Finding, FindingLocation, Findings, Severity, quote};
use crate::json::{self, JsonPathStep, pointer_of};

const RULE: &str = "prompt/field";
/// Members that every answer may have, whatever its schema declares.
const COMMON: [&str; 2] = ["rationale", "extensions"];
/// Members of the envelope. Sentences about `data` often continue with them.
const BESIDE_DATA: [&str; 3] = ["meta", "ok", "error"];
/// The depth limit for examples. Deeper members say nothing about the form of an answer.
const MAX_DEPTH: usize = 16;

pub(super) fn check(subject: &CheckedModule<'_>, found: &mut Findings) {
    let Some(data) = section_place(subject, &data_names(subject)) else { return };
    let demand = Demand { subject, data };
    examples(subject.prompt, &demand, found);
    for (span, way) in listed_members(subject.prompt).into_iter().chain(named_members(subject.prompt)) {
        demand.way(span, way, found);
    }
}

struct Demand<'a, 's> {
    subject: &'a CheckedModule<'s>,
    data: ContractPlace<'a>,
}

impl Demand<'_, '_> {
    /// Checks a path such as `issues.risk`, relative to `data`.
    fn way(&self, span: Range<usize>, way: &str, found: &mut Findings) {
        let mut place = self.data.clone();
        for (depth, name) in way.split('.').enumerate() {
            if depth == 0 && COMMON.contains(&name) {
                return;
            }
            // A list is followed by the members of its entries: `issues.risk`.
            let list = match place.items() {
                MemberDescription::Described(items) => Some(items),
                _ => None,
            };
            let below = match (place.member(name), list) {
                (MemberDescription::Never, Some(items)) => items.member(name),
                (below, _) => below,
            };
            match below {
                MemberDescription::Described(next) => place = next,
                MemberDescription::Open => return,
                below @ (MemberDescription::Undescribed | MemberDescription::Never) => {
                    let never = matches!(below, MemberDescription::Never);
                    return self.say(span, name, never, &place, found);
                }
            }
        }
    }

    fn say(
        &self,
        span: Range<usize>,
        name: &str,
        never: bool,
        place: &ContractPlace<'_>,
        found: &mut Findings,
    ) {
        let verb = if never { "allow" } else { "describe" };
        let message = format!("the prompt asks for {}, which the schema does not {verb}", quote(name));
        // An answer that follows the prompt is refused, so strict mode reports an error.
        let severity = if never && self.subject.strict() { Severity::Error } else { Severity::Warning };
        let finding = Finding::warning(PROMPT_FILE, FindingLocation::Span(span), RULE, message);
        let hint = did_you_mean(name, place.names()).unwrap_or_else(|| {
            format!("Add {} to the data section of the schema, or remove it from the prompt", quote(name))
        });
        found.push(Finding { severity, ..finding }.hint(hint));
    }
}

/// Walks all members of an example, as deep as the schema describes them.
fn members_of<'v>(
    value: &'v Value,
    place: &ContractPlace<'_>,
    path: &mut Vec<JsonPathStep<'v>>,
    tell: &mut impl FnMut(&[JsonPathStep<'v>], &str, bool, &ContractPlace<'_>),
) {
    if path.len() > MAX_DEPTH {
        return;
    }
    for (name, member) in value.as_object().into_iter().flatten().filter(|(name, _)| is_name(name)) {
        if path.len() == 1 && COMMON.contains(&name.as_str()) {
            continue;
        }
        path.push(JsonPathStep::Member(name.into()));
        match place.member(name) {
            MemberDescription::Described(next) => members_of(member, &next, path, tell),
            MemberDescription::Open => {}
            MemberDescription::Undescribed => tell(path, name, false, place),
            MemberDescription::Never => tell(path, name, true, place),
        }
        path.pop();
    }
    let MemberDescription::Described(items) = place.items() else { return };
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        path.push(JsonPathStep::Item(at));
        members_of(item, &items, path, tell);
        path.pop();
    }
}

/// Checks the successful answers that the prompt shows as JSON.
fn examples(prompt: &str, demand: &Demand<'_, '_>, found: &mut Findings) {
    for (start, block) in json_blocks(prompt) {
        let Ok(example) = json::parse_file(block) else { continue };
        let Some(data) = example.get("data").filter(|_| example.get("ok") == Some(&Value::Bool(true))) else {
            continue;
        };
        let index = json::index(block);
        let mut path = vec![JsonPathStep::Member("data".into())];
        members_of(data, &demand.data, &mut path, &mut |path, name, never, place| {
            let Some(span) = index.name(block, &pointer_of(path)) else { return };
            demand.say(span.start + start..span.end + start, name, never, place, found);
        });
    }
}

/// Fenced blocks of JSON, each with the offset of its first line.
fn json_blocks(prompt: &str) -> Vec<(usize, &str)> {
    let mut blocks = Vec::new();
    let (mut at, mut open) = (0, None);
    for line in prompt.split_inclusive('\n') {
        let end = at + line.len();
        match (line.trim(), open) {
            ("```json" | "```JSON" | "```", None) => open = Some(end),
            (fence, Some(start)) if fence.starts_with("```") => {
                blocks.extend(prompt.get(start..at).map(|block| (start, block)));
                open = None;
            }
            // A block in another language: its closing fence must not open a block.
            (fence, None) if fence.starts_with("```") => open = Some(prompt.len()),
            _ => {}
        }
        at = end;
    }
    blocks
}

/// Items of the list directly below an item that begins with `data`, and names after "`data` with".
fn listed_members(prompt: &str) -> Vec<(Range<usize>, &str)> {
    let mut members = Vec::new();
    // The indentation of the item `data`, and of the items below it.
    let mut list: Option<(usize, Option<usize>)> = None;
    let mut at = 0;
    for line in prompt.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let indentation = line.len() - line.trim_start().len();
        let item = item_name(line).map(|(offset, name)| (start + offset..start + offset + name.len(), name));
        match (&mut list, item) {
            (_, Some((_, "data"))) => list = Some((indentation, None)),
            (Some((above, below)), Some((span, name))) if indentation > *above => {
                if *below.get_or_insert(indentation) == indentation && is_way(name) {
                    members.push((span, name));
                }
            }
            (Some((above, _)), _) if line.trim().is_empty() || indentation > *above => {}
            _ => list = None,
        }
        members.extend(with_members(line, start, prompt));
    }
    members
}

/// Returns the name in backticks that starts a list item, and its offset in the line.
fn item_name(line: &str) -> Option<(usize, &str)> {
    let inner = line.trim_start();
    let rest = ["- `", "* `", "+ `"].iter().find_map(|mark| inner.strip_prefix(mark))?;
    let name = rest.split('`').next()?;
    // "`a` or `b`" lists alternatives, so only the first name counts.
    Some((line.len() - rest.len(), name))
}

/// "`data` with `a`, `b` and `c`".
fn with_members<'p>(line: &str, start: usize, prompt: &'p str) -> Vec<(Range<usize>, &'p str)> {
    let mut members = Vec::new();
    let Some(found) = line.find("`data` with `") else { return members };
    let mut at = found + "`data` with ".len();
    while let Some(rest) = line.get(at..)
        && let Some(name) = rest.strip_prefix('`').and_then(|rest| rest.split_once('`')).map(|(name, _)| name)
        && is_way(name)
        && !BESIDE_DATA.contains(&name)
    {
        let span = start + at + 1..start + at + 1 + name.len();
        members.extend(prompt.get(span.clone()).map(|name| (span, name)));
        at += name.len() + 2;
        let behind = line.get(at..).unwrap_or_default();
        match [", and ", ", ", " and "].iter().find(|word| behind.starts_with(**word)) {
            Some(word) => at += word.len(),
            None => break,
        }
    }
    members
}

/// `data.member` in backticks. Skips lines about insights: they name members that do not exist yet.
fn named_members(prompt: &str) -> Vec<(Range<usize>, &str)> {
    let mut members = Vec::new();
    let mut at = 0;
    for line in prompt.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let lower = line.to_lowercase();
        if ["insight", "mapping", "suggest"].iter().any(|word| lower.contains(word)) {
            continue;
        }
        let mut offset = 0;
        for (place, piece) in line.split('`').enumerate() {
            if place % 2 == 1
                && let Some(way) = piece.strip_prefix("data.").filter(|way| is_way(way))
            {
                let from = start + offset + "data.".len();
                members.extend(prompt.get(from..from + way.len()).map(|way| (from..from + way.len(), way)));
            }
            offset += piece.len() + 1;
        }
    }
    members
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
}

fn is_way(way: &str) -> bool {
    !way.is_empty() && way.split('.').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: Vec<(Range<usize>, &str)>, prompt: &str) -> Vec<String> {
        for (span, name) in &found {
            assert_eq!(&prompt[span.clone()], *name);
        }
        found.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    #[test]
    fn members_are_those_directly_below_data() {
        let prompt = "- `meta`: `x`\n- `data`, with:\n  - `a`: one\n    - `deep`: no\n  - `b.c`: two\n\n  - `not a name`\n\
                      - `error`: none\n  - `code`\n\nAnd `data` with `d`, `e` and `f`, or `g`.\n\
                      `data` with `h`, and `meta` with `i`.\n";
        assert_eq!(names(listed_members(prompt), prompt), ["a", "b.c", "d", "e", "f", "h"]);
        assert_eq!(listed_members("- `a`\n- `b`\n"), []);
    }

    #[test]
    fn named_members_are_between_back_quotes() {
        let prompt = "Fill `data.a.b` and data.c; `data.x y` is none.\nAn insight may suggest `data.new`.\n";
        assert_eq!(names(named_members(prompt), prompt), ["a.b"]);
    }

    #[test]
    fn blocks_of_other_languages_are_left_alone() {
        let prompt = "```python\nx\n```\n```json\n{\"ok\": 1}\n```\ntext\n```\n[2]\n```\n```json\nopen";
        let blocks: Vec<&str> = json_blocks(prompt).into_iter().map(|(_, block)| block).collect();
        assert_eq!(blocks, ["{\"ok\": 1}\n", "[2]\n"]);
    }
}
