//! The rules of `_validate` and `_contains`: what holds of an answer whose words nobody can foresee.
//! Refuses rules it does not know, arguments that make no sense, and rules that ask for nothing.

use cognitive_contract::Risk;
use serde_json::{Map, Value};

use super::field_rule::FieldRule;
use crate::expect::difference::Differences;
use crate::expect::place::{FoundPlace, View};
use crate::expect::value::{is_one_of, shown, texts_in};

/// The rules, as they are spelled.
const NAMES: [&str; 8] = [
    "required",
    "confidence_min",
    "confidence_max",
    "rationale_min_length",
    "contains",
    "not_contains",
    "risk",
    "risk_max",
];

/// One rule with its argument.
#[derive(Debug)]
pub(super) enum GoldenRule {
    /// There are members of these names, where they belong.
    Required(Vec<String>),
    /// `meta.confidence` is at least this.
    ConfidenceMin(f64),
    /// `meta.confidence` is at most this.
    ConfidenceMax(f64),
    /// The rationale has at least so many characters.
    RationaleMinLength(u64),
    /// All of these occur somewhere in the payload.
    Contains(Vec<String>),
    /// None of these occurs anywhere in the payload.
    NotContains(Vec<String>),
    /// `meta.risk` is one of these.
    Risk(Vec<Value>),
    /// `meta.risk` is at most this.
    RiskMax(Risk),
    /// All of these occur in the texts at a place.
    ContainsAt(String, Vec<String>),
    /// Something holds for the member of a name.
    Field(FieldRule),
}

impl GoldenRule {
    /// Reads the rules of `_validate`.
    pub(super) fn parse_validate(argument: &Value) -> Result<Vec<Self>, String> {
        let rules = object(argument, "_validate")?;
        rules
            .iter()
            .filter(|(name, _)| *name != "$comment")
            .map(|(name, value)| Self::parse(name, value))
            .collect()
    }

    /// Reads the paths of `_contains`.
    pub(super) fn parse_contains(argument: &Value) -> Result<Vec<Self>, String> {
        let paths = object(argument, "_contains")?;
        let parse = |(path, words): (&String, &Value)| {
            let words = texts(words, &format!("_contains.{path}"))?;
            Ok(Self::ContainsAt(path.clone(), words))
        };
        paths.iter().map(parse).collect()
    }

    fn parse(name: &str, argument: &Value) -> Result<Self, String> {
        let at = format!("_validate.{name}");
        match name {
            "required" => texts(argument, &at).map(Self::Required),
            "confidence_min" => confidence(argument, &at).map(Self::ConfidenceMin),
            "confidence_max" => confidence(argument, &at).map(Self::ConfidenceMax),
            "rationale_min_length" => {
                let length = argument.as_u64().ok_or_else(|| format!("`{at}`: expected a whole number"))?;
                Ok(Self::RationaleMinLength(length))
            }
            "contains" => texts(argument, &at).map(Self::Contains),
            "not_contains" => texts(argument, &at).map(Self::NotContains),
            "risk" => risks(argument, &at).map(Self::Risk),
            "risk_max" => {
                let word = argument.as_str().and_then(Risk::parse);
                word.map(Self::RiskMax).ok_or_else(|| not_a_risk(&at))
            }
            _ => FieldRule::parse(name, argument)?.map(Self::Field).ok_or_else(|| {
                format!("`{at}`: no such rule; there are: {}; or a field and its value", NAMES.join(", "))
            }),
        }
    }

    /// Says where an answer breaks the rule.
    pub(super) fn compare(&self, view: View<'_>, found: &mut Differences) {
        match self {
            Self::Required(names) => required(names, view, found),
            Self::ConfidenceMin(least) => {
                let holds = |value: f64| value >= *least;
                confidence_holds(view, "confidence_min", &format!("at least {least}"), holds, found);
            }
            Self::ConfidenceMax(most) => {
                let holds = |value: f64| value <= *most;
                confidence_holds(view, "confidence_max", &format!("at most {most}"), holds, found);
            }
            Self::RationaleMinLength(least) => rationale(*least, view, found),
            Self::Contains(words) => contains(words, view, found),
            Self::NotContains(words) => not_contains(words, view, found),
            Self::Risk(allowed) => risk(allowed, view, found),
            Self::RiskMax(most) => risk_max(*most, view, found),
            Self::ContainsAt(path, words) => contains_at(path, words, view, found),
            Self::Field(rule) => rule.compare(view, found),
        }
    }
}

fn object<'a>(argument: &'a Value, at: &str) -> Result<&'a Map<String, Value>, String> {
    match argument {
        Value::Object(members) if !members.is_empty() => Ok(members),
        Value::Object(_) => Err(format!("`{at}`: it asks for nothing")),
        _ => Err(format!("`{at}`: expected an object")),
    }
}

fn texts(argument: &Value, at: &str) -> Result<Vec<String>, String> {
    let Value::Array(items) = argument else { return Err(format!("`{at}`: expected a list of texts")) };
    if items.is_empty() {
        return Err(format!("`{at}`: it asks for nothing"));
    }
    let text = |item: &Value| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let texts = items.iter().map(text).collect::<Option<Vec<_>>>();
    texts.ok_or_else(|| format!("`{at}`: expected texts that are not empty"))
}

fn confidence(argument: &Value, at: &str) -> Result<f64, String> {
    let number = argument.as_f64().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| format!("`{at}`: expected a number from 0 to 1"))
}

fn risks(argument: &Value, at: &str) -> Result<Vec<Value>, String> {
    let allowed = match argument {
        Value::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    let known =
        |value: &Value| value.is_object() || value.as_str().is_some_and(|word| Risk::parse(word).is_some());
    if allowed.is_empty() || !allowed.iter().all(known) { Err(not_a_risk(at)) } else { Ok(allowed) }
}

fn not_a_risk(at: &str) -> String {
    format!("`{at}`: expected one of: {}", Risk::WORDS.join(", "))
}

fn required(names: &[String], view: View<'_>, found: &mut Differences) {
    let missing = names.iter().flat_map(|name| view.named(name)).filter(|place| place.value.is_none());
    for place in missing {
        found.broken(&place.at, "_validate.required", "a member of this name", None);
    }
}

fn confidence_holds(
    view: View<'_>,
    rule: &str,
    expected: &str,
    holds: impl Fn(f64) -> bool,
    found: &mut Differences,
) {
    let place = view.find("meta.confidence");
    if !place.value.and_then(Value::as_f64).is_some_and(holds) {
        found.broken(&place.at, &format!("_validate.{rule}"), expected, place.value);
    }
}

fn rationale(least: u64, view: View<'_>, found: &mut Differences) {
    let place = view.find_in_payload("rationale");
    let length =
        place.value.map(|value| texts_in(value).iter().map(|piece| piece.chars().count()).sum::<usize>());
    if length.is_none_or(|length| (length as u64) < least) {
        let got = length.map_or_else(|| "nothing".to_owned(), |length| format!("{length} characters"));
        let expected = format!("at least {least} characters");
        found.worded(&place.at, "_validate.rationale_min_length", expected, got);
    }
}

fn contains(words: &[String], view: View<'_>, found: &mut Differences) {
    let payload = view.payload();
    for word in words.iter().filter(|word| !occurs(word, &payload)) {
        let got = if payload.value.is_some() { "no such text" } else { "nothing" };
        found.worded(&payload.at, "_validate.contains", shown(&Value::from(word.as_str())), got);
    }
}

/// A payload that is not there contains nothing, and proves nothing.
fn not_contains(words: &[String], view: View<'_>, found: &mut Differences) {
    const RULE: &str = "_validate.not_contains";
    let payload = view.payload();
    if payload.value.is_none() {
        found.worded(&payload.at, RULE, "a payload to search", "nothing");
    }
    for word in words.iter().filter(|word| occurs(word, &payload)) {
        let word = shown(&Value::from(word.as_str()));
        found.worded(&payload.at, RULE, format!("no {word}"), word);
    }
}

/// Whether a text occurs in a name or value of the payload, as it is or as JSON writes it.
fn occurs(word: &str, payload: &FoundPlace<'_>) -> bool {
    payload.value.is_some_and(|value| {
        value.to_string().contains(word) || texts_in(value).iter().any(|piece| piece.contains(word))
    })
}

fn risk(allowed: &[Value], view: View<'_>, found: &mut Differences) {
    let place = view.find("meta.risk");
    if !place.value.is_some_and(|risk| is_one_of(allowed, risk)) {
        let words: Vec<String> = allowed.iter().map(shown).collect();
        found.broken(&place.at, "_validate.risk", words.join(" or "), place.value);
    }
}

/// A custom risk counts as medium, as it does everywhere.
fn risk_max(most: Risk, view: View<'_>, found: &mut Differences) {
    let place = view.find("meta.risk");
    let level = match place.value {
        Some(Value::String(word)) => Risk::parse(word),
        Some(Value::Object(_)) => Some(Risk::Medium),
        _ => None,
    };
    if level.is_none_or(|level| level > most) {
        found.broken(&place.at, "_validate.risk_max", format!("at most {most}"), place.value);
    }
}

/// Of several places, one is enough for each word.
fn contains_at(path: &str, words: &[String], view: View<'_>, found: &mut Differences) {
    let places = view.named(path);
    for word in words.iter().filter(|word| !places.iter().any(|place| has(place, word))) {
        let expected = format!("a text with {}", shown(&Value::from(word.as_str())));
        match places.as_slice() {
            [place] => found.broken(&place.at, "_contains", expected, place.value),
            _ => {
                let texts: Vec<Value> = places.iter().filter_map(|place| place.value.cloned()).collect();
                found.broken(path, "_contains", expected, Some(&Value::Array(texts)));
            }
        }
    }
}

/// Whether a text occurs at a place.
pub(super) fn has(place: &FoundPlace<'_>, word: &str) -> bool {
    match place.value {
        Some(Value::String(text)) => text.contains(word),
        Some(_) => occurs(word, place),
        None => false,
    }
}
