//! The matchers: `{"$range": [0, 1]}` and its like, each with its argument checked when it is read.
//! Knows nothing of paths inside a result; `matcher.rs` says where a rule was broken.

use std::fmt;

use regex::Regex;
use serde_json::Value;

use super::matcher::{VectorPattern, items, texts};
use crate::expect::value::{is_one_of, json_text, same, same_items, shown_spaced as shown};

/// A matcher with its argument.
#[derive(Debug)]
pub(super) struct Matcher {
    test: MatcherTest,
    /// As it stands in the file, for messages.
    written: String,
}

#[derive(Debug)]
enum MatcherTest {
    Exact(Value),
    In(Vec<Value>),
    Range(f64, f64),
    Type(JsonType),
    Regex(Regex),
    MaxLen(usize),
    Len(usize),
    Set(Vec<Value>),
    SubsetOf(Vec<Value>),
    SupersetOf(Vec<Value>),
    Some(Box<VectorPattern>),
    JsonContains(Vec<String>),
    JsonLacks(Vec<String>),
    Code(Vec<String>),
}

#[derive(Debug, Clone, Copy)]
enum JsonType {
    String,
    Number,
    Boolean,
    Array,
    Object,
}

impl Matcher {
    /// Reads a matcher; `path` is where it stands, for the message.
    pub(super) fn parse(name: &str, argument: &Value, path: &str) -> Result<Self, String> {
        let refused = |expected: &str| format!("{path}: `{name}` takes {expected}");
        let list = || items(argument, path).map(<[Value]>::to_vec);
        let length = || {
            let length = argument.as_u64().and_then(|length| usize::try_from(length).ok());
            length.ok_or_else(|| refused("a whole number"))
        };
        let test = match name {
            "$exact" => MatcherTest::Exact(argument.clone()),
            "$in" => MatcherTest::In(list()?),
            "$range" => range(argument).ok_or_else(|| refused("two numbers"))?,
            "$type" => {
                MatcherTest::Type(JsonType::parse(argument).ok_or_else(|| refused("the name of a type"))?)
            }
            "$regex" => MatcherTest::Regex(pattern(argument).map_err(|why| refused(&why))?),
            "$maxlen" => MatcherTest::MaxLen(length()?),
            "$len" => MatcherTest::Len(length()?),
            "$set" => MatcherTest::Set(list()?),
            "$subset_of" => MatcherTest::SubsetOf(list()?),
            "$superset_of" => MatcherTest::SupersetOf(list()?),
            "$some" => MatcherTest::Some(Box::new(VectorPattern::parse(argument, path)?)),
            "$json_contains" => MatcherTest::JsonContains(texts(argument, path)?),
            "$json_lacks" => MatcherTest::JsonLacks(texts(argument, path)?),
            "$code" => MatcherTest::Code(texts(argument, path)?),
            _ => return Err(format!("{path}: unknown matcher: `{name}`")),
        };
        Ok(Self { test, written: format!("{name} {}", shown(argument)) })
    }

    /// Whether the value satisfies the matcher.
    pub(super) fn holds(&self, actual: &Value) -> bool {
        let items = actual.as_array();
        match &self.test {
            MatcherTest::Exact(value) => same(value, actual),
            MatcherTest::In(values) => is_one_of(values, actual),
            MatcherTest::Range(from, to) => {
                actual.as_f64().is_some_and(|number| (*from..=*to).contains(&number))
            }
            MatcherTest::Type(kind) => kind.is_of(actual),
            MatcherTest::Regex(regex) => actual.as_str().is_some_and(|text| regex.is_match(text)),
            MatcherTest::MaxLen(most) => length(actual).is_some_and(|length| length <= *most),
            MatcherTest::Len(exact) => length(actual).is_some_and(|length| length == *exact),
            MatcherTest::Set(wanted) => items.is_some_and(|items| same_items(wanted, items)),
            MatcherTest::SubsetOf(allowed) => {
                items.is_some_and(|items| items.iter().all(|each| is_one_of(allowed, each)))
            }
            MatcherTest::SupersetOf(wanted) => {
                items.is_some_and(|items| wanted.iter().all(|each| is_one_of(items, each)))
            }
            MatcherTest::Some(pattern) => {
                items.is_some_and(|items| items.iter().any(|each| pattern.matches(each)))
            }
            MatcherTest::JsonContains(words) => words.iter().all(|word| json_text(actual).contains(word)),
            MatcherTest::JsonLacks(words) => !words.iter().any(|word| json_text(actual).contains(word)),
            MatcherTest::Code(codes) => {
                actual.as_str().is_some_and(|code| codes.iter().any(|each| each == number_of(code)))
            }
        }
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl JsonType {
    fn parse(word: &Value) -> Option<Self> {
        match word.as_str()? {
            "string" => Some(Self::String),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Boolean),
            "array" => Some(Self::Array),
            "object" => Some(Self::Object),
            _ => None,
        }
    }

    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

fn range(argument: &Value) -> Option<MatcherTest> {
    let [from, to] = argument.as_array()?.as_slice() else { return None };
    Some(MatcherTest::Range(from.as_f64()?, to.as_f64()?))
}

fn pattern(argument: &Value) -> Result<Regex, String> {
    let text = argument.as_str().ok_or_else(|| "a regular expression".to_owned())?;
    Regex::new(text).map_err(|error| format!("a regular expression: {error}"))
}

/// Code points of a text, items of a list; other values have no length.
fn length(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The number that an older name of a code stands for. The format fixes this list; taking the product's own would let
/// it vouch for itself.
fn number_of(code: &str) -> &str {
    match code {
        "PARSE_ERROR" => "E1000",
        "INVALID_INPUT" => "E1001",
        "UNSUPPORTED_LANGUAGE" => "E1004",
        "NO_SIMPLIFICATION_POSSIBLE" => "E2004",
        "BEHAVIOR_CHANGE_REQUIRED" => "E2005",
        "SCHEMA_VALIDATION_FAILED" | "OUTPUT_SCHEMA_VIOLATION" => "E3001",
        "INTERNAL_ERROR" => "E4000",
        "MODULE_NOT_FOUND" => "E4006",
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(name: &str, argument: Value, actual: Value) -> bool {
        Matcher::parse(name, &argument, "$").unwrap().holds(&actual)
    }

    #[test]
    fn every_matcher_says_yes_and_no() {
        for (name, argument, good, bad) in [
            ("$exact", json!({ "a": 1 }), json!({ "a": 1.0 }), json!({ "a": 1, "b": 2 })),
            ("$in", json!(["a", 1]), json!(1), json!(true)),
            ("$range", json!([0, 1]), json!(1), json!(1.01)),
            ("$range", json!([0, 1]), json!(0.5), json!(true)),
            ("$type", json!("number"), json!(1.5), json!(true)),
            ("$type", json!("string"), json!("x"), json!(1)),
            ("$type", json!("boolean"), json!(false), json!(0)),
            ("$type", json!("array"), json!([]), json!({})),
            ("$type", json!("object"), json!({}), json!(null)),
            ("$regex", json!("(?i)in.ut"), json!("the INPUT"), json!("output")),
            ("$maxlen", json!(2), json!("😀😀"), json!("abc")),
            ("$maxlen", json!(1), json!([1]), json!({})),
            ("$len", json!(2), json!([1, 2]), json!("abc")),
            ("$set", json!(["a", "b"]), json!(["b", "a"]), json!(["a", "a"])),
            ("$subset_of", json!(["a", "b"]), json!(["b"]), json!(["b", "c"])),
            ("$superset_of", json!(["a"]), json!(["b", "a"]), json!(["b"])),
            (
                "$some",
                json!({ "code": "E1" }),
                json!([{}, { "code": "E1", "x": 1 }]),
                json!([{ "code": "E2" }]),
            ),
            (
                "$json_contains",
                json!(["\"a\": 1", "b"]),
                json!({ "a": 1, "b": 2 }),
                json!({ "a": 2, "b": 2 }),
            ),
            ("$json_lacks", json!(["secret"]), json!(["open"]), json!({ "x": ["a secret"] })),
            ("$code", json!(["E1000", "E2003"]), json!("PARSE_ERROR"), json!("E1001")),
        ] {
            assert!(holds(name, argument.clone(), good.clone()), "{name} {argument} of {good}");
            assert!(!holds(name, argument.clone(), bad.clone()), "{name} {argument} of {bad}");
        }
    }

    #[test]
    fn arguments_that_make_no_sense_are_refused() {
        for (name, argument) in [
            ("$like", json!(1)),
            ("$in", json!("a")),
            ("$range", json!([1])),
            ("$range", json!(["a", "b"])),
            ("$type", json!("integer")),
            ("$regex", json!("(")),
            ("$regex", json!(1)),
            ("$len", json!(-1)),
            ("$maxlen", json!("2")),
            ("$some", json!({ "$like": 1 })),
            ("$json_contains", json!([1])),
            ("$code", json!("E1000")),
        ] {
            assert!(Matcher::parse(name, &argument, "$").is_err(), "{name} {argument}");
        }
    }
}
