//! Rules of `_validate` whose name contains a field: `"language": "python"` checks its value.
//! `"score_min": 3`, `"score_max"`, `"summary_contains"`, `"summary_matches"` and `"changes[0].risk_not"`
//! check a property of it.
//! A member that is really named `score_min` takes precedence. With `[*]`, a rule must hold for every item,
//! and for at least one. Refuses arguments that no value can be compared with.

use serde_json::Value;

use super::difference::Differences;
use super::expectation::{ExpectedPlace, PlaceCheck};
use super::pattern::ExpectedValue;
use super::place::View;
use super::rule_arguments::expression;
use super::value_rule::RuleTest;

/// A rule about a named member.
#[derive(Debug)]
pub(super) struct FieldRule {
    /// The name as written.
    written: String,
    /// The check that the member with the whole name has the given value.
    whole: PlaceCheck,
    /// The check of the field, if the name ends in a known suffix.
    about: Option<PlaceCheck>,
}

impl FieldRule {
    /// Parses a rule; `None` if it is not a field rule.
    pub(super) fn parse(name: &str, argument: &Value) -> Result<Option<Self>, String> {
        let at = format!("_validate.{name}");
        let about = test(name, argument, &at)?;
        let plain = matches!(argument, Value::Bool(_) | Value::Number(_) | Value::String(_));
        if name.is_empty() || (about.is_none() && !plain) {
            return Ok(None);
        }
        let named = |name: &str| ExpectedPlace::Named(name.to_owned());
        let whole = PlaceCheck {
            place: named(name),
            pattern: ExpectedValue::Scalar(argument.clone()),
            spelled: Some(at.clone()),
        };
        let about = about.map(|(field, test)| PlaceCheck::from_old_spelling(named(field), &at, test));
        Ok(Some(Self { written: name.to_owned(), whole, about }))
    }

    /// Returns the name as written.
    pub(super) fn source(&self) -> &str {
        &self.written
    }

    /// Returns the names that the rule may refer to, the likelier one first.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let checks = self.about.iter().chain([&self.whole]);
        checks.filter_map(|check| match &check.place {
            ExpectedPlace::Named(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Records where an answer breaks the rule.
    pub(super) fn compare(&self, view: View<'_>, found: &mut Differences) {
        let nothing = view.find_named(&self.written).iter().all(|place| place.value.is_none());
        match &self.about {
            Some(about) if nothing => about.compare(view, found),
            _ => self.whole.compare(view, found),
        }
    }
}

fn test<'a>(name: &'a str, argument: &Value, at: &str) -> Result<Option<(&'a str, RuleTest)>, String> {
    let number = || argument.as_f64().ok_or_else(|| format!("`{at}`: expected a number"));
    let (field, test) = match name.rsplit_once('_') {
        Some((field, "min")) => (field, RuleTest::Min(number()?)),
        Some((field, "max")) => (field, RuleTest::Max(number()?)),
        Some((field, "contains")) => (field, RuleTest::Occur(words(argument, at)?)),
        Some((field, "matches")) => (field, RuleTest::Regex(expression(argument, at)?)),
        Some((field, "not")) => (field, RuleTest::Not(Box::new(ExpectedValue::Scalar(argument.clone())))),
        _ => return Ok(None),
    };
    Ok((!field.is_empty()).then_some((field, test)))
}

/// Parses one text or several.
fn words(argument: &Value, at: &str) -> Result<Vec<String>, String> {
    let items = argument.as_array().map_or(std::slice::from_ref(argument), Vec::as_slice);
    let word = |item: &Value| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let words: Option<Vec<String>> = items.iter().map(word).collect();
    words
        .filter(|words| !words.is_empty())
        .ok_or_else(|| format!("`{at}`: expected a string, or a list of them"))
}
