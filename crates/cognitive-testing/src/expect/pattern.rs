//! The expectation for one value: exactly this value, at least these members, or a set of rules.
//!
//! An object whose members are rules (`{"$in": ["a", "b"]}`) may replace any value, at any depth; all of its
//! rules must hold. `$example` and `$comment` explain and are never compared. The whole expectation is parsed
//! before anything is compared, so that an invalid one is found even if its value is missing.

use cognitive_contract::code::canonical;
use serde_json::{Map, Value};

use super::difference::Differences;
use super::place::{item, member};
use super::value::{deep_equal, value_text};
use super::value_rule::ValueRule;

/// Members that explain an expectation and are not compared.
const NOTES: [&str; 2] = ["$example", "$comment"];

/// Selects whether an object may have unmentioned members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherMembers {
    /// The object may have further members.
    Allowed,
    /// The object may only have the mentioned members.
    Refused,
}

/// The expectation for one value.
#[derive(Debug)]
pub(crate) enum ExpectedValue {
    /// An object with these members.
    Object(Vec<(String, ExpectedValue)>, OtherMembers),
    /// A list of exactly these items.
    List(Vec<ExpectedValue>),
    /// This value. At `error.code`, all spellings of a code are equal.
    Scalar(Value),
    /// All of these rules.
    Rules(Vec<ValueRule>),
}

impl ExpectedValue {
    /// Parses a pattern; `at` is its place, for the error message.
    pub(crate) fn parse(expected: &Value, others: OtherMembers, at: &str) -> Result<Self, String> {
        match expected {
            Value::Object(members) => Self::parse_object(members, others, at),
            Value::Array(items) => {
                let parsed = items.iter().enumerate();
                let parsed = parsed.map(|(index, each)| Self::parse(each, others, &item(at, index)));
                parsed.collect::<Result<_, _>>().map(Self::List)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Ok(Self::Scalar(expected.clone()))
            }
        }
    }

    fn parse_object(members: &Map<String, Value>, others: OtherMembers, at: &str) -> Result<Self, String> {
        let compared: Vec<(&String, &Value)> = members.iter().filter(|(name, _)| !is_note(name)).collect();
        if compared.is_empty() && !members.is_empty() {
            return Err(format!("`{at}`: it has a description but no expectation"));
        }
        if are_rules(members) {
            let rules = compared.into_iter().map(|(name, value)| ValueRule::parse(name, value, others, at));
            return rules.collect::<Result<_, _>>().map(Self::Rules);
        }
        let parsed = compared.into_iter().map(|(name, value)| {
            let inner = Self::parse(value, others, &member(at, name))?;
            Ok((name.clone(), inner))
        });
        parsed.collect::<Result<_, String>>().map(|parsed| Self::Object(parsed, others))
    }

    /// Drops the members of an object with these names that are plain values. A rule is written on purpose, and stays.
    pub(super) fn without_plain(self, names: &[&str]) -> Self {
        match self {
            Self::Object(mut members, others) => {
                members.retain(|(name, value)| !names.contains(&name.as_str()) || value.has_rules());
                Self::Object(members, others)
            }
            other => other,
        }
    }

    fn has_rules(&self) -> bool {
        match self {
            Self::Rules(_) => true,
            Self::Object(members, _) => members.iter().any(|(_, value)| value.has_rules()),
            Self::List(items) => items.iter().any(Self::has_rules),
            Self::Scalar(_) => false,
        }
    }

    /// A pattern of one rule.
    pub(super) fn rule(rule: ValueRule) -> Self {
        Self::Rules(vec![rule])
    }

    /// Returns whether a value matches.
    pub(crate) fn matches(&self, actual: &Value) -> bool {
        let mut found = Differences::default();
        self.compare(Some(actual), "$", &mut found);
        found.is_empty()
    }

    /// Records where a value differs; `None` is a missing value.
    pub(crate) fn compare(&self, actual: Option<&Value>, at: &str, found: &mut Differences) {
        match (self, actual) {
            (Self::Rules(rules), actual) => rules.iter().for_each(|rule| rule.compare(actual, at, found)),
            (_, None) => found.add_described(at, "equals", self.words(), "nothing"),
            (Self::Object(members, others), Some(Value::Object(actual))) => {
                compare_members(members, *others, actual, at, found);
            }
            (Self::List(patterns), Some(Value::Array(items))) => compare_items(patterns, items, at, found),
            (Self::Object(..) | Self::List(_), Some(actual)) => {
                found.add_broken(at, "equals", self.words(), Some(actual));
            }
            (Self::Scalar(expected), Some(actual)) => {
                if !same_scalar(expected, actual, at) {
                    found.unequal(at, expected, actual);
                }
            }
        }
    }

    /// Describes the expectation in words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Object(members, _) if members.is_empty() => "an object".to_owned(),
            Self::Object(members, _) => {
                let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                format!("an object with {}", names.join(", "))
            }
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Scalar(value) => value_text(value),
            Self::Rules(rules) => rules.iter().map(ValueRule::words).collect::<Vec<_>>().join(", and "),
        }
    }
}

/// Returns whether a member only explains.
pub(crate) fn is_note(name: &str) -> bool {
    NOTES.contains(&name)
}

/// Returns whether an object is a set of rules: one of its members is a rule, or its only member starts with
/// `$`. Other objects with `$` in their names, such as `{"$ref": "a", "$id": "b"}`, are values.
pub(crate) fn are_rules(members: &Map<String, Value>) -> bool {
    let mut compared = members.keys().filter(|name| !is_note(name));
    compared.clone().any(|name| ValueRule::is_name(name))
        || (compared.clone().count() == 1 && compared.all(|name| name.starts_with('$')))
}

/// Compares two scalars; all spellings of an error code are equal.
fn same_scalar(expected: &Value, actual: &Value, at: &str) -> bool {
    match (expected.as_str(), actual.as_str()) {
        (Some(expected), Some(actual)) if at == "error.code" => canonical(actual) == canonical(expected),
        _ => deep_equal(expected, actual),
    }
}

fn compare_members(
    members: &[(String, ExpectedValue)],
    others: OtherMembers,
    actual: &Map<String, Value>,
    at: &str,
    found: &mut Differences,
) {
    for (name, pattern) in members {
        pattern.compare(actual.get(name), &member(at, name), found);
    }
    if others == OtherMembers::Refused {
        let more = actual.iter().filter(|(name, _)| !members.iter().any(|(known, _)| known == *name));
        for (name, value) in more {
            found.add_broken(&member(at, name), "equals", "nothing", Some(value));
        }
    }
}

/// Compares items one by one even if their number differs, because the first difference is the most useful
/// one.
fn compare_items(patterns: &[ExpectedValue], items: &[Value], at: &str, found: &mut Differences) {
    if patterns.len() != items.len() {
        found.add_described(
            at,
            "equals",
            format!("a list of {}", patterns.len()),
            format!("a list of {}", items.len()),
        );
    }
    for (index, (pattern, each)) in patterns.iter().zip(items).enumerate() {
        pattern.compare(Some(each), &item(at, index), found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differences(expected: Value, others: OtherMembers, actual: Value) -> Vec<String> {
        let mut found = Differences::default();
        ExpectedValue::parse(&expected, others, "v").unwrap().compare(Some(&actual), "v", &mut found);
        found
            .into_vec()
            .iter()
            .map(|each| format!("{}: {} / {}", each.path, each.expected, each.got))
            .collect()
    }

    #[test]
    fn exact_means_no_more_and_no_less() {
        let actual = json!({ "a": { "b": 1, "c": 2 }, "l": [1, 2] });
        assert!(differences(actual.clone(), OtherMembers::Refused, actual.clone()).is_empty());
        let wrong = json!({ "a": { "b": 1.0 }, "l": [1, 3], "x": null });
        assert_eq!(
            differences(wrong, OtherMembers::Refused, actual.clone()),
            ["v.a.c: nothing / 2", "v.l[1]: 3 / 2", "v.x: null / nothing"]
        );
        assert_eq!(
            differences(json!({ "a": [], "l": [1] }), OtherMembers::Refused, actual),
            [r#"v.a: a list of 0 / {"b":1,"c":2}"#, "v.l: a list of 1 / a list of 2"]
        );
    }

    #[test]
    fn a_part_may_leave_members_out_and_items_not() {
        let actual = json!({ "a": { "b": 1, "c": 2 }, "l": [{ "x": 1, "y": 2 }] });
        assert!(
            differences(json!({ "a": { "b": 1 }, "l": [{ "x": 1 }] }), OtherMembers::Allowed, actual.clone())
                .is_empty()
        );
        assert_eq!(
            differences(json!({ "a": { "b": 2, "n": 1 }, "l": [] }), OtherMembers::Allowed, actual),
            ["v.a.b: 2 / 1", "v.a.n: 1 / nothing", "v.l: a list of 0 / a list of 1"]
        );
    }

    #[test]
    fn rules_may_stand_for_any_value_at_any_depth() {
        let expected = json!({
            "a": { "$validate": { "type": "number" }, "$max": 9, "$example": 3, "$comment": "c" },
            "b": [{ "c": { "$in": ["x", "y"] } }],
        });
        let good = json!({ "a": 5, "b": [{ "c": "y" }] });
        assert!(differences(expected.clone(), OtherMembers::Refused, good).is_empty());
        let wrong = differences(expected, OtherMembers::Refused, json!({ "a": 12, "b": [{ "c": "z" }] }));
        assert_eq!(wrong, ["v.a: at most 9 / 12", "v.b[0].c: one of \"x\", \"y\" / \"z\""]);
    }

    #[test]
    fn a_closed_object_is_opened_by_part_and_an_open_one_closed_by_exact() {
        let actual = json!({ "a": { "b": 1, "c": 2 } });
        let part = json!({ "a": { "$part": { "b": { "$min": 1 } } } });
        assert!(differences(part, OtherMembers::Refused, actual.clone()).is_empty());
        let exact = json!({ "a": { "$exact": { "b": 1 } } });
        assert_eq!(differences(exact, OtherMembers::Allowed, actual).len(), 1);
    }

    #[test]
    fn dollar_members_that_are_no_rules_are_an_object() {
        let expected = json!({ "a": { "$ref": "x", "$id": "y" } });
        let good = json!({ "a": { "$id": "y", "$ref": "x" } });
        assert!(differences(expected, OtherMembers::Refused, good).is_empty());
    }

    #[test]
    fn a_pattern_that_checks_nothing_or_hides_something_is_refused() {
        for (expected, words) in [
            (json!({ "a": { "$example": 1 } }), "`v.a`: it has a description but no expectation"),
            (json!({ "$validate": {}, "b": 1 }), "`v`: unknown rule: `b`"),
            (json!({ "a": { "$like": 1 } }), "`v.a`: unknown rule: `$like`; there are $exact, "),
            (json!([{ "$validate": { "typ": "x" } }]), "`v[0].$validate.typ`"),
        ] {
            let error = ExpectedValue::parse(&expected, OtherMembers::Refused, "v").unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn an_error_is_known_by_any_spelling_of_its_code() {
        let check = |expected: Value| {
            let mut found = Differences::default();
            let actual = json!({ "code": "E1000", "message": "m", "recoverable": false });
            let pattern = ExpectedValue::parse(&expected, OtherMembers::Allowed, "error").unwrap();
            pattern.compare(Some(&actual), "error", &mut found);
            found.into_vec().into_iter().map(|each| each.path).collect::<Vec<_>>()
        };
        assert!(check(json!({ "code": "PARSE_ERROR" })).is_empty());
        assert!(check(json!({ "code": "E1000", "message": "m" })).is_empty());
        assert_eq!(check(json!({ "code": "E1001", "message": "x" })), ["error.code", "error.message"]);
        assert_eq!(check(json!({ "code": { "$validate": { "const": "TIMEOUT" } } })), ["error.code"]);
    }
}
