//! Parses the older spellings `_validate` and `_contains`, which have separate rule names, into the common
//! rules.
//! Refuses unknown rules, invalid arguments, and empty rules.

use cognitive_contract::Risk;
use serde_json::{Map, Value};

use super::expectation::{ExpectedPlace, MemberCheck, PlaceCheck};
use super::field_rule::FieldRule;
use super::rule_arguments::texts;
use super::value_rule::RuleTest;

/// The rule names of `_validate`.
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

/// Parses the rules of `_validate`.
pub(super) fn parse_validate(argument: &Value) -> Result<Vec<MemberCheck>, String> {
    let rules = object(argument, "_validate")?.iter().filter(|(name, _)| *name != "$comment");
    let rules = rules.map(|(name, value)| parse(name, value)).collect::<Result<Vec<_>, _>>()?;
    Ok(rules.into_iter().flatten().collect())
}

/// Parses the paths of `_contains`.
pub(super) fn parse_contains(argument: &Value) -> Result<Vec<MemberCheck>, String> {
    let paths = object(argument, "_contains")?;
    let parse = |(name, words): (&String, &Value)| {
        let words = texts(words, &format!("_contains.{name}"))?;
        Ok(MemberCheck::Somewhere { name: name.clone(), words })
    };
    paths.iter().map(parse).collect()
}

fn parse(name: &str, argument: &Value) -> Result<Vec<MemberCheck>, String> {
    let at = format!("_validate.{name}");
    let check = |place: ExpectedPlace, test| vec![PlaceCheck::from_old_spelling(place, &at, test).into()];
    let meta = |name: &str| ExpectedPlace::Path(format!("meta.{name}"));
    Ok(match name {
        "required" => {
            let names = texts(argument, &at)?.into_iter();
            let place = |name| {
                PlaceCheck::from_old_spelling(ExpectedPlace::Named(name), &at, RuleTest::Present).into()
            };
            names.map(place).collect()
        }
        "confidence_min" => check(meta("confidence"), RuleTest::Min(confidence(argument, &at)?)),
        "confidence_max" => check(meta("confidence"), RuleTest::Max(confidence(argument, &at)?)),
        "rationale_min_length" => {
            let length = argument.as_u64().ok_or_else(|| format!("`{at}`: expected a whole number"))?;
            check(ExpectedPlace::InPayload("rationale".to_owned()), RuleTest::TextsLength(length))
        }
        "contains" => check(ExpectedPlace::Payload, RuleTest::Occur(texts(argument, &at)?)),
        "not_contains" => check(ExpectedPlace::Payload, RuleTest::OccurNot(texts(argument, &at)?)),
        "risk" => check(meta("risk"), RuleTest::In(risks(argument, &at)?)),
        "risk_max" => {
            let most = argument.as_str().and_then(Risk::parse).ok_or_else(|| not_a_risk(&at))?;
            check(meta("risk"), RuleTest::RiskAtMost(most))
        }
        _ => {
            let rule = FieldRule::parse(name, argument)?.ok_or_else(|| {
                format!("`{at}`: unknown rule; there are: {}; or a field and its value", NAMES.join(", "))
            })?;
            vec![MemberCheck::Field(rule)]
        }
    })
}

fn object<'a>(argument: &'a Value, at: &str) -> Result<&'a Map<String, Value>, String> {
    match argument {
        Value::Object(members) if !members.is_empty() => Ok(members),
        Value::Object(_) => Err(format!("`{at}`: the rule is empty")),
        _ => Err(format!("`{at}`: expected an object")),
    }
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
