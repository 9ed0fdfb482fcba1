//! The decisions that the contract requests, read from the keyword `x-decide` and the input. Judges nothing.
//!
//! `{"about": "text", "by": [{"ask": "…", "say": "…"}, {"say": "…"}, {"given": "… {} …"}]}`: `about` names the member
//! of the input that is judged, and each entry of `by` is one way to judge it. The candidates are the listed values.
//! With `x-copy-from`, they are the entries of that list in the input, or the pieces of the text itself. Without a list
//! in the input, the value is the piece that best describes the text, found by the way in `else`. `"alone": true` says
//! that a piece can be the value of one member only. `"ask"` is the question for a model that understands questions,
//! with `{options}` for the candidates; `"told"` is the instruction before all questions.
//!
//! `"order": "priority"` at a member of the items of a list: the list contains every entry of the input's list once.
//! Entries are ordered by the level that the model gives each, which is written to the member of this name. `"with"`
//! names members of the input that are relevant.

use serde_json::Value;

/// The keyword of decided values.
const DECIDE: &str = "x-decide";
/// See `shape`.
const COPY: &str = "x-copy-from";
/// See `shape`.
const NAMES: &str = "x-name-from";
/// The member that holds free text if the contract names no other.
const FREE_TEXT: &str = "query";
/// The longest piece if the schema sets no limit.
const MAX_LENGTH: usize = 200;
/// The placeholder for the candidates in a question.
const OPTIONS: &str = "{options}";

/// One value to decide.
#[derive(Debug, PartialEq)]
pub(super) struct DecisionQuestion<'a> {
    /// The names of the members that lead to the value from `data`.
    pub path: Vec<&'a str>,
    /// The text that is judged.
    pub text: &'a str,
    /// The ways to judge it.
    pub ways: Vec<WeighingWay<'a>>,
    /// The question for a model that understands questions.
    pub ask: Option<AskedQuestion<'a>>,
    pub kind: DecisionKind,
    /// The value of the keyword it was read from.
    pub wish: &'a Value,
    /// True if the candidates are the same for every input.
    pub is_fixed: bool,
}

impl DecisionQuestion<'_> {
    /// Returns a number for the wording of the question and its fixed candidates (FNV-1a), to recognise a known one.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut text = self.wish.to_string();
        if let DecisionKind::Choice(candidates) = &self.kind
            && self.is_fixed
        {
            text.extend(candidates.iter().map(String::as_str));
        }
        text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// A question in natural language.
#[derive(Debug, PartialEq)]
pub(super) struct AskedQuestion<'a> {
    ask: &'a str,
    /// Other relevant texts, with their names.
    with: Vec<(&'a str, &'a str)>,
    /// The name of the text that is judged.
    about: &'a str,
}

impl AskedQuestion<'_> {
    /// Returns the question about a text, with these candidates.
    pub(super) fn with_text<'o>(&self, text: &str, options: impl Iterator<Item = &'o String>) -> String {
        let named = |name: &str, text: &str| {
            let mut letters = name.chars();
            let first = letters.next().map(char::to_uppercase).into_iter().flatten().collect::<String>();
            format!("{first}{}: {text}\n", letters.as_str())
        };
        let with: String = self.with.iter().map(|(name, text)| named(name, text)).collect();
        let ask = if self.ask.contains(OPTIONS) {
            let options: Vec<&str> = options.map(String::as_str).collect();
            self.ask.replace(OPTIONS, &options.join(", "))
        } else {
            self.ask.to_owned()
        };
        format!("{with}{}\n{ask}", named(self.about, text))
    }

    /// Returns whether the order of the candidates could influence the answer.
    pub(super) fn lists_options(&self) -> bool {
        self.ask.contains(OPTIONS)
    }
}

/// A way to weigh a candidate.
#[derive(Debug, PartialEq)]
pub(super) enum WeighingWay<'a> {
    /// The likelihood of the candidate as an answer to a question about the text.
    Ask { ask: &'a str, say: &'a str },
    /// The likelihood of the candidate as the end of a sentence after the text.
    Say(&'a str),
    /// The likelihood of the text after a sentence with the candidate at `{}`.
    Given(&'a str),
}

#[derive(Debug, PartialEq)]
pub(super) enum DecisionKind {
    /// One of these, in alphabetical order.
    Choice(Vec<String>),
    /// A piece of the text with at most `most` characters, or nothing; `alone` if no other value is the same piece.
    Piece { most: usize, alone: bool },
    /// The piece of the text that describes the whole text best.
    Topic { most: usize },
    /// An order of these entries, each as the member `entry` of an item; the member `level` is one of `levels`, highest
    /// first.
    Order { entries: Vec<String>, entry: String, level: String, levels: Vec<String> },
}

impl DecisionKind {
    /// Returns whether it is a piece that no other value may be.
    pub(super) fn is_alone(&self) -> bool {
        matches!(self, Self::Piece { alone: true, .. })
    }
}

/// Returns whether a lowered contract has any question.
pub(super) fn any(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key(DECIDE) || members.values().any(any),
        Value::Array(items) => items.iter().any(any),
        _ => false,
    }
}

/// Returns the instruction before all questions of a lowered contract, independent of the input.
pub(super) fn instruction(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(members) => {
            let own = members.get(DECIDE).and_then(|wish| wish.get("told")?.as_str());
            own.or_else(|| members.values().find_map(instruction))
        }
        Value::Array(items) => items.iter().find_map(instruction),
        _ => None,
    }
}

/// Returns all questions of a lowered contract about an input, in document order.
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
    let items = node.get("items").and_then(|items| items.get("properties")).and_then(Value::as_object);
    found.extend(items.into_iter().flatten().filter_map(|(name, member)| {
        let members = items?;
        order(name, member, members, input, path)
    }));
}

/// Returns the question about the order of a list, if this member of its items has one.
fn order<'a>(
    name: &'a str,
    member: &'a Value,
    members: &'a serde_json::Map<String, Value>,
    input: &'a Value,
    path: &[&'a str],
) -> Option<DecisionQuestion<'a>> {
    let wish = member.get(DECIDE)?;
    let level = wish.get("order")?.as_str()?;
    let mut entries = texts(input.get(wish.get("about")?.as_str()?)?)?;
    entries.sort_unstable();
    let levels = texts(members.get(level)?.get("enum")?)?;
    let ask = read_question(wish, input, name)?;
    let is_whole = !entries.is_empty() && levels.len() > 1;
    let kind = DecisionKind::Order { entries, entry: name.to_owned(), level: level.to_owned(), levels };
    is_whole.then(|| DecisionQuestion {
        path: path.to_vec(),
        text: "",
        ways: Vec::new(),
        ask: Some(ask),
        kind,
        wish,
        is_fixed: false,
    })
}

fn read_question<'a>(wish: &'a Value, input: &'a Value, about: &'a str) -> Option<AskedQuestion<'a>> {
    let names = wish.get("with").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let beside = names.filter_map(|name| Some((name, input.get(name)?.as_str()?))).collect();
    Some(AskedQuestion { ask: wish.get("ask")?.as_str()?, with: beside, about })
}

fn texts(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// Returns whether the input requests a member, for members that must be requested.
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
        _ => match wish.get("by") {
            Some(by) => by.as_array()?.iter().map(way).collect::<Option<Vec<_>>>()?,
            None => Vec::new(),
        },
    };
    let ask = read_question(wish, input, about);
    let has_a_way = ask.is_some() || !ways.is_empty();
    (has_a_way && !text.trim().is_empty()).then(|| DecisionQuestion {
        path: path.to_vec(),
        text,
        ways,
        ask,
        kind,
        wish,
        is_fixed: node.get("enum").is_some(),
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
