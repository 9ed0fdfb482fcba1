//! Rules of `_validate` that name a field themselves: `"language": "python"` for its value, and `"score_min": 3`,
//! `"score_max"`, `"summary_contains"`, `"summary_matches"`, `"changes[0].risk_not"` for something about it.
//! A member that is really called `score_min` is meant by its whole name. With `[*]` a rule holds for every item, and for
//! at least one. Refuses arguments that no value could be compared with.

use cognitive_contract::code::canonical;
use regex::Regex;
use serde_json::Value;

use super::rule::has;
use crate::expect::difference::Differences;
use crate::expect::place::{FoundPlace, View};
use crate::expect::value::{same, shown};

/// A rule about the member of a name.
#[derive(Debug)]
pub(super) struct FieldRule {
    /// The rule as it was written.
    written: String,
    /// What was written after it.
    value: Value,
    /// The field and what holds for it, where the name ends in a known word.
    about: Option<(String, FieldTest)>,
}

#[derive(Debug)]
enum FieldTest {
    Min(f64),
    Max(f64),
    Contains(Vec<String>),
    Matches(Regex),
    Not(Value),
}

impl FieldRule {
    /// Reads a rule; `None` if it can be none of these.
    pub(super) fn parse(name: &str, argument: &Value) -> Result<Option<Self>, String> {
        let about = test(name, argument)?;
        let plain = matches!(argument, Value::Bool(_) | Value::Number(_) | Value::String(_));
        if name.is_empty() || (about.is_none() && !plain) {
            return Ok(None);
        }
        Ok(Some(Self { written: name.to_owned(), value: argument.clone(), about }))
    }

    /// Says where an answer breaks the rule.
    pub(super) fn compare(&self, view: View<'_>, found: &mut Differences) {
        let whole = view.named(&self.written);
        let about = self.about.as_ref().filter(|_| whole.iter().all(|place| place.value.is_none()));
        let places = about.map_or(whole, |(field, _)| view.named(field));
        for place in places {
            let broken = match about {
                None => (!equals(&place, &self.value)).then(|| shown(&self.value)),
                Some((_, test)) => test.broken(&place),
            };
            if let Some(expected) = broken {
                found.broken(&place.at, &format!("_validate.{}", self.written), expected, place.value);
            }
        }
    }
}

fn test(name: &str, argument: &Value) -> Result<Option<(String, FieldTest)>, String> {
    let at = format!("_validate.{name}");
    let number = || argument.as_f64().ok_or_else(|| format!("`{at}`: expected a number"));
    let (field, test) = match name.rsplit_once('_') {
        Some((field, "min")) => (field, FieldTest::Min(number()?)),
        Some((field, "max")) => (field, FieldTest::Max(number()?)),
        Some((field, "contains")) => (field, FieldTest::Contains(words(argument, &at)?)),
        Some((field, "matches")) => (field, FieldTest::Matches(expression(argument, &at)?)),
        Some((field, "not")) => (field, FieldTest::Not(argument.clone())),
        _ => return Ok(None),
    };
    Ok((!field.is_empty()).then(|| (field.to_owned(), test)))
}

fn words(argument: &Value, at: &str) -> Result<Vec<String>, String> {
    let items = argument.as_array().map_or(std::slice::from_ref(argument), Vec::as_slice);
    let word = |item: &Value| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let words: Option<Vec<String>> = items.iter().map(word).collect();
    words
        .filter(|words| !words.is_empty())
        .ok_or_else(|| format!("`{at}`: expected a text, or a list of them"))
}

fn expression(argument: &Value, at: &str) -> Result<Regex, String> {
    let text = argument.as_str().ok_or_else(|| format!("`{at}`: expected a regular expression"))?;
    Regex::new(text).map_err(|_| format!("`{at}`: not a regular expression: `{text}`"))
}

/// Spellings of an error code are one code.
fn equals(place: &FoundPlace<'_>, expected: &Value) -> bool {
    let code = place.at == "error.code";
    place.value.is_some_and(|value| match (value.as_str(), expected.as_str()) {
        (Some(got), Some(expected)) if code => canonical(got) == canonical(expected),
        _ => same(value, expected),
    })
}

impl FieldTest {
    /// What should have been there, if it is not. Where nothing is, nothing holds.
    fn broken(&self, place: &FoundPlace<'_>) -> Option<String> {
        let number = place.value.and_then(Value::as_f64);
        let (holds, expected) = match self {
            Self::Min(least) => (number.is_some_and(|number| number >= *least), format!("at least {least}")),
            Self::Max(most) => (number.is_some_and(|number| number <= *most), format!("at most {most}")),
            Self::Contains(words) => {
                (words.iter().all(|word| has(place, word)), format!("a text with {}", words.join(", ")))
            }
            Self::Matches(expression) => {
                let text = place.value.and_then(Value::as_str);
                (text.is_some_and(|text| expression.is_match(text)), format!("a text like `{expression}`"))
            }
            Self::Not(value) => {
                (place.value.is_some() && !equals(place, value), format!("anything but {}", shown(value)))
            }
        };
        (!holds).then_some(expected)
    }
}
