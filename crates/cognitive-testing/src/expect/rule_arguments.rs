//! Parses one rule and its argument: `{"$in": ["a", "b"]}`. The argument is checked here, before anything is
//! compared.
//! Refuses unknown rules, invalid arguments, and empty rules.

use regex::Regex;
use serde_json::Value;

use super::pattern::{ExpectedValue, OtherMembers};
use super::place::member;
use super::schema_check::SchemaCheck;
use super::value_rule::{JsonType, RULE_NAMES, RuleTest, ValueRule, fold_text};

impl ValueRule {
    /// Returns whether a rule with this name exists.
    pub(super) fn is_name(name: &str) -> bool {
        RULE_NAMES.contains(&name)
    }

    /// Parses a rule. `parent` is its place, for the error message; `others` applies to patterns inside it.
    pub(super) fn parse(
        name: &str,
        argument: &Value,
        others: OtherMembers,
        parent: &str,
    ) -> Result<Self, String> {
        let at = member(parent, name);
        let wrong = |expected: &str| format!("`{at}`: expected {expected}");
        let inner = |others| ExpectedValue::parse(argument, others, &at).map(Box::new);
        let number = || argument.as_f64().ok_or_else(|| wrong("a number"));
        let length = || {
            let length = argument.as_u64().and_then(|length| usize::try_from(length).ok());
            length.ok_or_else(|| wrong("a whole number"))
        };
        let list = || argument.as_array().cloned().ok_or_else(|| wrong("a list of values"));
        let yes = |test| if argument == &Value::Bool(true) { Ok(test) } else { Err(wrong("true")) };
        let test = match name {
            "$exact" => RuleTest::Exact(argument.clone()),
            "$part" if !argument.is_object() => return Err(wrong("an object")),
            "$part" => RuleTest::Part(inner(OtherMembers::Allowed)?),
            "$in" if list()?.is_empty() => return Err(wrong("a list of values")),
            "$in" => RuleTest::In(list()?),
            "$not" => RuleTest::Not(inner(others)?),
            "$present" => yes(RuleTest::Present)?,
            "$absent" => yes(RuleTest::Absent)?,
            "$absent_or_null" => yes(RuleTest::AbsentOrNull)?,
            "$type" => {
                let words = "one of: string, number, boolean, array, object, null";
                RuleTest::Type(JsonType::parse(argument).ok_or_else(|| wrong(words))?)
            }
            "$validate" => RuleTest::Validate(Box::new(SchemaCheck::compile(argument, &at)?)),
            "$min" => RuleTest::Min(number()?),
            "$max" => RuleTest::Max(number()?),
            "$range" => range(argument).ok_or_else(|| wrong("two numbers, the smaller one first"))?,
            "$text" => RuleTest::Text(fold_text(argument.as_str().ok_or_else(|| wrong("a text"))?)),
            "$regex" => RuleTest::Regex(expression(argument, &at)?),
            "$contains" => RuleTest::Contains(
                groups(argument).ok_or_else(|| wrong("a list of texts, or of lists of texts"))?,
            ),
            "$lacks" => RuleTest::Lacks(texts(argument, &at)?.iter().map(|text| fold_text(text)).collect()),
            "$len" => RuleTest::Len(length()?),
            "$minlen" => RuleTest::MinLen(length()?),
            "$maxlen" => RuleTest::MaxLen(length()?),
            "$set" => RuleTest::Set(list()?),
            "$subset_of" => RuleTest::SubsetOf(list()?),
            "$superset_of" => RuleTest::SupersetOf(list()?),
            "$some" => RuleTest::Some(inner(OtherMembers::Allowed)?),
            "$every" => RuleTest::Every(inner(OtherMembers::Allowed)?),
            "$none" => RuleTest::NoneOf(vec![*inner(OtherMembers::Allowed)?]),
            "$json_contains" => RuleTest::JsonContains(texts(argument, &at)?),
            "$json_lacks" => RuleTest::JsonLacks(texts(argument, &at)?),
            "$code" => RuleTest::Code(texts(argument, &at)?),
            _ => return Err(unknown_rule(name, parent)),
        };
        Ok(Self { name: name.to_owned(), test })
    }
}

/// The error message for an unknown rule.
pub(super) fn unknown_rule(name: &str, parent: &str) -> String {
    let names = RULE_NAMES.join(", ");
    format!("`{parent}`: unknown rule: `{name}`; there are {names}. `$exact` expects a member of this name")
}

/// Parses a list of non-empty texts.
pub(super) fn texts(argument: &Value, at: &str) -> Result<Vec<String>, String> {
    let Value::Array(items) = argument else { return Err(format!("`{at}`: expected a list of texts")) };
    if items.is_empty() {
        return Err(format!("`{at}`: the rule is empty"));
    }
    let text = |item: &Value| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let texts = items.iter().map(text).collect::<Option<Vec<_>>>();
    texts.ok_or_else(|| format!("`{at}`: expected texts that are not empty"))
}

/// Parses a regular expression.
pub(super) fn expression(argument: &Value, at: &str) -> Result<Regex, String> {
    let text = argument.as_str().ok_or_else(|| format!("`{at}`: expected a regular expression"))?;
    Regex::new(text).map_err(|_| format!("`{at}`: not a regular expression: `{text}`"))
}

fn range(argument: &Value) -> Option<RuleTest> {
    let [from, to] = argument.as_array()?.as_slice() else { return None };
    let (from, to) = (from.as_f64()?, to.as_f64()?);
    (from <= to).then_some(RuleTest::Range(from, to))
}

fn groups(argument: &Value) -> Option<Vec<Vec<String>>> {
    let text = |value: &Value| value.as_str().map(fold_text).filter(|text| !text.is_empty());
    let group = |value: &Value| match value {
        Value::Array(texts) if !texts.is_empty() => texts.iter().map(text).collect::<Option<Vec<_>>>(),
        other => text(other).map(|text| vec![text]),
    };
    let groups = argument.as_array().filter(|items| !items.is_empty())?;
    groups.iter().map(group).collect()
}
