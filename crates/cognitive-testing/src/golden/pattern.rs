//! What one value has to be: exactly this, at least this, or whatever a schema says.
//! `{"$validate": schema}` may stand for any value; `$example` and `$comment` explain and are never compared.
//! Read as a whole before anything is compared, so that a broken expectation is found also where its value is missing.

use cognitive_contract::code::canonical;
use serde_json::{Map, Value};

use crate::expect::difference::Differences;
use crate::expect::place::{item, member};
use crate::expect::schema_check::{RULE, SchemaCheck};
use crate::expect::value::same;

/// Members that explain an expectation and take no part in it.
pub(super) const NOTES: [&str; 2] = ["$example", "$comment"];

/// Whether an object may have members that were not mentioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OtherMembers {
    /// It may: what is mentioned is a part of it.
    Allowed,
    /// It may not: what is mentioned is all of it.
    Refused,
}

/// What one value has to be.
#[derive(Debug)]
pub(super) enum GoldenPattern {
    /// An object with these members.
    Object(Vec<(String, GoldenPattern)>, OtherMembers),
    /// A list of exactly these items.
    List(Vec<GoldenPattern>),
    /// This value.
    Scalar(Value),
    /// This error code, in any spelling.
    Code(String),
    /// Whatever the schema says.
    Shape(Box<SchemaCheck>),
}

impl GoldenPattern {
    /// Reads a pattern; `at` is where it stands, for the message.
    pub(super) fn parse(expected: &Value, others: OtherMembers, at: &str) -> Result<Self, String> {
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
        if let Some(shape) = embedded_shape(members, at)? {
            return Ok(shape);
        }
        let compared = members.iter().filter(|(name, _)| !is_note(name));
        let parsed: Vec<_> = compared
            .map(|(name, value)| Ok((name.clone(), Self::parse(value, others, &member(at, name))?)))
            .collect::<Result<_, String>>()?;
        if parsed.is_empty() && !members.is_empty() {
            return Err(format!("`{at}`: it explains and expects nothing"));
        }
        Ok(Self::Object(parsed, others))
    }

    /// Reads what is expected of `error`. Its members are a part of the error, and spellings of a code are one code.
    pub(super) fn parse_error(expected: &Value, others: OtherMembers) -> Result<Self, String> {
        let Value::Object(members) = expected else {
            return Err(r#"`error`: expected an object such as `{"code": "E2004"}`"#.to_owned());
        };
        let parsed = match embedded_shape(members, "error")? {
            Some(shape) => return Ok(shape),
            None => members.iter().filter(|(name, _)| !is_note(name)),
        };
        let parse = |(name, value): (&String, &Value)| {
            let pattern = match (name.as_str(), value) {
                ("code", Value::String(code)) => Self::Code(code.clone()),
                _ => Self::parse(value, others, &member("error", name))?,
            };
            Ok((name.clone(), pattern))
        };
        parsed
            .map(parse)
            .collect::<Result<_, String>>()
            .map(|members| Self::Object(members, OtherMembers::Allowed))
    }

    /// Says where a value differs; `None` is a value that is not there.
    pub(super) fn compare(&self, actual: Option<&Value>, at: &str, found: &mut Differences) {
        match (self, actual) {
            (Self::Shape(shape), actual) => shape.compare(actual, at, found),
            (_, None) => found.worded(at, "equals", self.words(), "nothing"),
            (Self::Object(members, others), Some(Value::Object(actual))) => {
                compare_members(members, *others, actual, at, found);
            }
            (Self::List(patterns), Some(Value::Array(items))) => compare_items(patterns, items, at, found),
            (Self::Object(..) | Self::List(_), Some(actual)) => {
                found.broken(at, "equals", self.words(), Some(actual));
            }
            (Self::Scalar(expected), Some(actual)) => {
                if !same(expected, actual) {
                    found.unequal(at, expected, actual);
                }
            }
            (Self::Code(expected), Some(actual)) => {
                if actual.as_str().map(canonical) != Some(canonical(expected)) {
                    found.unequal(at, &Value::from(expected.as_str()), actual);
                }
            }
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Object(..) => "an object".to_owned(),
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Scalar(value) => crate::expect::value::shown(value),
            Self::Code(code) => Value::from(code.as_str()).to_string(),
            Self::Shape(_) => "a value that fits the schema".to_owned(),
        }
    }
}

/// Whether a member only explains.
pub(super) fn is_note(name: &str) -> bool {
    NOTES.contains(&name)
}

/// The schema of an object that is a `$validate`; `None` if it is an ordinary object.
fn embedded_shape(members: &Map<String, Value>, at: &str) -> Result<Option<GoldenPattern>, String> {
    let Some(schema) = members.get(RULE) else { return Ok(None) };
    if let Some(other) = members.keys().find(|name| *name != RULE && !is_note(name)) {
        return Err(format!("`{at}`: beside `{RULE}` nothing else is compared, but there is: `{other}`"));
    }
    let shape = SchemaCheck::compile(schema, &member(at, RULE))?;
    Ok(Some(GoldenPattern::Shape(Box::new(shape))))
}

fn compare_members(
    members: &[(String, GoldenPattern)],
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
            found.broken(&member(at, name), "equals", "nothing", Some(value));
        }
    }
}

/// Items are compared one by one also if there are too many or too few: the first that differs says most.
fn compare_items(patterns: &[GoldenPattern], items: &[Value], at: &str, found: &mut Differences) {
    if patterns.len() != items.len() {
        found.worded(
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
        GoldenPattern::parse(&expected, others, "v").unwrap().compare(Some(&actual), "v", &mut found);
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
    fn a_schema_may_stand_for_any_value() {
        let expected =
            json!({ "a": { "$validate": { "type": "number" }, "$example": 3, "$comment": "c" }, "b": "x" });
        assert!(differences(expected.clone(), OtherMembers::Refused, json!({ "a": 5, "b": "x" })).is_empty());
        let wrong = differences(expected, OtherMembers::Refused, json!({ "a": "5", "b": "x" }));
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].starts_with("v.a: "), "{wrong:?}");
    }

    #[test]
    fn a_pattern_that_checks_nothing_or_hides_something_is_refused() {
        for (expected, words) in [
            (json!({ "a": { "$example": 1 } }), "`v.a`: it explains and expects nothing"),
            (json!({ "$validate": {}, "b": 1 }), "but there is: `b`"),
            (json!([{ "$validate": { "typ": "x" } }]), "`v[0].$validate.typ`"),
        ] {
            let error = GoldenPattern::parse(&expected, OtherMembers::Refused, "v").unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn an_error_is_known_by_any_spelling_of_its_code() {
        let check = |expected: Value| {
            let mut found = Differences::default();
            let actual = json!({ "code": "E1000", "message": "m", "recoverable": false });
            GoldenPattern::parse_error(&expected, OtherMembers::Refused).unwrap().compare(
                Some(&actual),
                "error",
                &mut found,
            );
            found.into_vec().into_iter().map(|each| each.path).collect::<Vec<_>>()
        };
        assert!(check(json!({ "code": "PARSE_ERROR" })).is_empty());
        assert!(check(json!({ "code": "E1000", "message": "m" })).is_empty());
        assert_eq!(check(json!({ "code": "E1001", "message": "x" })), ["error.code", "error.message"]);
        assert_eq!(check(json!({ "code": { "$validate": { "const": "TIMEOUT" } } })), ["error.code"]);
        assert!(GoldenPattern::parse_error(&json!("E1000"), OtherMembers::Refused).is_err());
    }
}
