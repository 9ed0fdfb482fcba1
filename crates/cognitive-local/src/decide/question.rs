//! What the contract wants decided: read from the keyword `x-decide` and the input. Judges nothing.
//!
//! `{"about": "text", "by": [{"ask": "…", "say": "…"}, {"say": "…"}, {"given": "… {} …"}]}`: `about` names the member of
//! the input that is judged, and each entry of `by` is one way to judge it. The candidates are the listed values; with
//! `x-copy-from` the entries of that list in the input, or the pieces of the text itself. Where there is no list, the piece
//! that says best what the text is about stands in, by the way in `else`. `"alone": true` says that a piece can be only
//! one of several things.

use serde_json::Value;

/// The keyword of values that are decided.
const DECIDE: &str = "x-decide";
/// See `shape`.
const COPY: &str = "x-copy-from";
/// See `shape`.
const NAMES: &str = "x-name-from";
/// Free text stands in this member when nobody named one.
const FREE_TEXT: &str = "query";
/// The longest piece where the schema sets no limit.
const MAX_LENGTH: usize = 200;

/// One value to decide.
#[derive(Debug, PartialEq)]
pub(super) struct DecisionQuestion<'a> {
    /// The names of the members that lead to it from `data`.
    pub path: Vec<&'a str>,
    /// The text that is judged.
    pub text: &'a str,
    /// The ways to judge it.
    pub ways: Vec<WeighingWay<'a>>,
    pub kind: DecisionKind,
}

/// A way to weigh a candidate.
#[derive(Debug, PartialEq)]
pub(super) enum WeighingWay<'a> {
    /// How likely the candidate is as an answer to a question about the text.
    Ask { ask: &'a str, say: &'a str },
    /// How likely it is as the end of a sentence after the text.
    Say(&'a str),
    /// How likely the text is after a sentence with the candidate in it, at `{}`.
    Given(&'a str),
}

#[derive(Debug, PartialEq)]
pub(super) enum DecisionKind {
    /// One of these, in the order of their letters.
    Choice(Vec<String>),
    /// A piece of the text, of so many characters at most, or nothing; `alone` if no other value is the same piece.
    Piece { most: usize, alone: bool },
    /// The piece of the text that says best what it is about.
    Topic { most: usize },
}

/// Whether a lowered contract has any question.
pub(super) fn any(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key(DECIDE) || members.values().any(any),
        Value::Array(items) => items.iter().any(any),
        _ => false,
    }
}

/// All questions of a lowered contract about an input, in the order of the document.
pub(super) fn all<'a>(schema: &'a Value, input: &'a Value) -> Vec<DecisionQuestion<'a>> {
    let mut found = Vec::new();
    let outcomes = schema.get("anyOf").and_then(Value::as_array);
    let outcomes = outcomes.map_or_else(|| std::slice::from_ref(schema), Vec::as_slice);
    if let Some(data) = outcomes.iter().find_map(|outcome| outcome.get("properties")?.get("data")) {
        gather(data, input, &mut Vec::new(), &mut found);
    }
    found
}

fn gather<'a>(
    node: &'a Value,
    input: &'a Value,
    path: &mut Vec<&'a str>,
    found: &mut Vec<DecisionQuestion<'a>>,
) {
    found.extend(question(node, input, path));
    for (name, member) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if is_wanted(name, member, input) {
            path.push(name);
            gather(member, input, path, found);
            path.pop();
        }
    }
}

/// Whether the input asks for a member that has to be asked for.
fn is_wanted(name: &str, member: &Value, input: &Value) -> bool {
    let listed =
        member.get(NAMES).and_then(Value::as_str).map(|list| input.get(list).and_then(Value::as_array));
    listed.is_none_or(|list| list.is_some_and(|list| list.iter().any(|item| item.as_str() == Some(name))))
}

fn question<'a>(node: &'a Value, input: &'a Value, path: &[&'a str]) -> Option<DecisionQuestion<'a>> {
    let wish = node.get(DECIDE)?;
    let about = wish.get("about")?.as_str()?;
    let text = [about, FREE_TEXT].iter().find_map(|name| input.get(name)?.as_str())?;
    let kind = kind(node, input, about)?;
    let ways = match (&kind, wish.get("else")) {
        (DecisionKind::Topic { .. }, Some(other)) => vec![way(other)?],
        _ => wish.get("by")?.as_array()?.iter().map(way).collect::<Option<Vec<_>>>()?,
    };
    (!ways.is_empty() && !text.trim().is_empty()).then(|| DecisionQuestion {
        path: path.to_vec(),
        text,
        ways,
        kind,
    })
}

fn way(wish: &Value) -> Option<WeighingWay<'_>> {
    let text = |name: &str| wish.get(name).and_then(Value::as_str);
    match (text("ask"), text("say"), text("given")) {
        (Some(ask), Some(say), None) => Some(WeighingWay::Ask { ask, say }),
        (None, Some(say), None) => Some(WeighingWay::Say(say)),
        (None, None, Some(given)) if given.contains("{}") => Some(WeighingWay::Given(given)),
        _ => None,
    }
}

fn kind(node: &Value, input: &Value, about: &str) -> Option<DecisionKind> {
    let texts = |list: &Value| -> Option<Vec<String>> {
        list.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let most = node.get("maxLength").and_then(Value::as_u64).and_then(|most| most.try_into().ok());
    let most = most.unwrap_or(MAX_LENGTH);
    let mut candidates = match (node.get("enum"), node.get(COPY).and_then(Value::as_str)) {
        (Some(listed), _) => texts(listed)?,
        (None, Some(member)) if member == about => {
            let alone = node.pointer("/x-decide/alone").and_then(Value::as_bool).unwrap_or(false);
            return Some(DecisionKind::Piece { most, alone });
        }
        (None, Some(member)) => match input.get(member) {
            Some(listed) => texts(listed)?,
            None => return Some(DecisionKind::Topic { most }),
        },
        (None, None) => return None,
    };
    candidates.sort_unstable();
    candidates.dedup();
    (!candidates.is_empty()).then_some(DecisionKind::Choice(candidates))
}
