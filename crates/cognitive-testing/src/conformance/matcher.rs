//! What an expectation means: every member listed must match, more may be there; one-member objects whose name starts
//! with `$` are matchers. Read as a whole before anything is compared, so that a misspelled matcher is found also where
//! the value it stands for is missing.
//! Refuses matchers it does not know, arguments that make no sense, and expectations that expect nothing.

use serde_json::{Map, Value};

use super::rule::Matcher;
use crate::expect::value::{json_text, same, shown_spaced as shown};

/// What the result of an operation must satisfy.
#[derive(Debug)]
pub(super) struct VectorExpectation {
    members: Vec<(String, VectorPattern)>,
    /// Texts that must not occur in the returned `context`.
    not_contains: Vec<String>,
    /// Patterns that no returned chunk may match.
    none_match: Vec<VectorPattern>,
}

/// What one value must be.
#[derive(Debug)]
pub(super) enum VectorPattern {
    /// An object with at least these members.
    Object(Vec<(String, VectorPattern)>),
    /// A list of exactly these items.
    List(Vec<VectorPattern>),
    /// This value.
    Scalar(Value),
    /// Nothing.
    Absent,
    /// Nothing, or null.
    AbsentOrNull,
    /// Whatever the matcher says.
    Rule(Matcher),
}

impl VectorExpectation {
    /// Reads an expectation whose generators were expanded.
    pub(super) fn parse(expect: &Value) -> Result<Self, String> {
        let Value::Object(expect) = expect else { return Err("expected an object".to_owned()) };
        if expect.is_empty() {
            return Err("it expects nothing".to_owned());
        }
        let mut expectation = Self { members: Vec::new(), not_contains: Vec::new(), none_match: Vec::new() };
        for (name, value) in expect {
            let path = format!("$.{name}");
            match name.as_str() {
                "not_contains" => expectation.not_contains = texts(value, &path)?,
                "none_match" => {
                    let patterns = items(value, &path)?.iter().map(|item| VectorPattern::parse(item, &path));
                    expectation.none_match = patterns.collect::<Result<_, _>>()?;
                }
                _ => expectation.members.push((name.clone(), VectorPattern::parse(value, &path)?)),
            }
        }
        Ok(expectation)
    }

    /// Everything in which a result differs from the expectation. An empty list means that it holds.
    pub(super) fn problems(&self, result: &Value) -> Vec<String> {
        let mut found = Vec::new();
        for (name, pattern) in &self.members {
            pattern.compare(result.get(name), &format!("$.{name}"), &mut found);
        }
        self.check_context(result.get("context"), &mut found);
        self.check_chunks(result.get("chunks"), &mut found);
        found
    }

    /// A context that is not there contains nothing, and proves nothing.
    fn check_context(&self, context: Option<&Value>, found: &mut Vec<String>) {
        if self.not_contains.is_empty() {
            return;
        }
        let Some(context) = context else {
            found.push("$.context: missing".to_owned());
            return;
        };
        let text = json_text(context);
        let present = self.not_contains.iter().filter(|each| text.contains(each.as_str()));
        found.extend(present.map(|each| format!("$.context: contains `{each}`")));
    }

    fn check_chunks(&self, chunks: Option<&Value>, found: &mut Vec<String>) {
        if self.none_match.is_empty() {
            return;
        }
        let Some(Value::Array(chunks)) = chunks else {
            found.push("$.chunks: expected a list".to_owned());
            return;
        };
        for (index, chunk) in chunks.iter().enumerate() {
            if self.none_match.iter().any(|pattern| pattern.matches(chunk)) {
                found.push(format!("$.chunks[{index}]: should not be there: {}", shown(chunk)));
            }
        }
    }
}

impl VectorPattern {
    /// Reads a pattern; `path` is where it stands, for the message.
    pub(super) fn parse(expected: &Value, path: &str) -> Result<Self, String> {
        match expected {
            Value::Object(members) => match matcher(members) {
                Some((name, argument)) => Self::parse_matcher(name, argument, path),
                None => members
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), Self::parse(value, &format!("{path}.{name}"))?)))
                    .collect::<Result<_, _>>()
                    .map(Self::Object),
            },
            Value::Array(items) => {
                let parsed = items.iter().enumerate();
                let parsed = parsed.map(|(index, item)| Self::parse(item, &format!("{path}[{index}]")));
                parsed.collect::<Result<_, _>>().map(Self::List)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Ok(Self::Scalar(expected.clone()))
            }
        }
    }

    fn parse_matcher(name: &str, argument: &Value, path: &str) -> Result<Self, String> {
        match (name, argument) {
            ("$absent", Value::Bool(true)) => Ok(Self::Absent),
            ("$absent_or_null", Value::Bool(true)) => Ok(Self::AbsentOrNull),
            ("$absent" | "$absent_or_null", _) => Err(format!("{path}: `{name}` takes `true`")),
            _ => Matcher::parse(name, argument, path).map(Self::Rule),
        }
    }

    /// Whether a value matches.
    pub(super) fn matches(&self, actual: &Value) -> bool {
        let mut found = Vec::new();
        self.compare(Some(actual), "", &mut found);
        found.is_empty()
    }

    /// Says where a value differs; `None` is a member that is not there.
    fn compare(&self, actual: Option<&Value>, path: &str, found: &mut Vec<String>) {
        match (self, actual) {
            (Self::Absent | Self::AbsentOrNull, None) | (Self::AbsentOrNull, Some(Value::Null)) => {}
            (Self::Absent, Some(actual)) => {
                found.push(format!("{path}: should be absent, is {}", shown(actual)));
            }
            (Self::AbsentOrNull, Some(actual)) => {
                found.push(format!("{path}: should be absent or null, is {}", shown(actual)));
            }
            (_, None) => found.push(format!("{path}: missing")),
            (Self::Rule(rule), Some(actual)) => {
                if !rule.holds(actual) {
                    found.push(format!("{path}: {rule} does not hold for {}", shown(actual)));
                }
            }
            (Self::Object(members), Some(Value::Object(actual))) => {
                for (name, pattern) in members {
                    pattern.compare(actual.get(name), &format!("{path}.{name}"), found);
                }
            }
            (Self::Object(_), Some(actual)) => {
                found.push(format!("{path}: expected an object, got {}", shown(actual)));
            }
            (Self::List(patterns), Some(actual)) => compare_list(patterns, actual, path, found),
            (Self::Scalar(expected), Some(actual)) => {
                if !same(expected, actual) {
                    found.push(format!("{path}: expected {}, got {}", shown(expected), shown(actual)));
                }
            }
        }
    }
}

fn compare_list(patterns: &[VectorPattern], actual: &Value, path: &str, found: &mut Vec<String>) {
    match actual {
        Value::Array(items) if items.len() == patterns.len() => {
            for (index, (pattern, item)) in patterns.iter().zip(items).enumerate() {
                pattern.compare(Some(item), &format!("{path}[{index}]"), found);
            }
        }
        _ => found.push(format!("{path}: expected a list of {}, got {}", patterns.len(), shown(actual))),
    }
}

/// The name and argument of a matcher, if the object is one.
fn matcher(members: &Map<String, Value>) -> Option<(&str, &Value)> {
    let (name, argument) = members.iter().next()?;
    (members.len() == 1 && name.starts_with('$')).then_some((name.as_str(), argument))
}

/// The items of a list that something in an expectation needs.
pub(super) fn items<'a>(value: &'a Value, path: &str) -> Result<&'a [Value], String> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("{path}: expected a list"))
}

/// The same, where every item is a text.
pub(super) fn texts(value: &Value, path: &str) -> Result<Vec<String>, String> {
    let text = |item: &Value| item.as_str().map(str::to_owned);
    let texts = items(value, path)?.iter().map(text).collect::<Option<Vec<_>>>();
    texts.ok_or_else(|| format!("{path}: expected a list of texts"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(expect: Value, result: Value) -> Vec<String> {
        VectorExpectation::parse(&expect).unwrap().problems(&result)
    }

    #[test]
    fn objects_may_have_more_and_lists_may_not() {
        let result = json!({ "a": { "b": 1, "c": 2 }, "l": [1, 2] });
        assert!(problems(json!({ "a": { "b": 1.0 }, "l": [1, 2] }), result.clone()).is_empty());
        assert_eq!(
            problems(json!({ "a": { "b": 2, "x": null }, "l": [1] }), result.clone()),
            ["$.a.b: expected 2, got 1", "$.a.x: missing", "$.l: expected a list of 1, got [1, 2]"]
        );
        assert_eq!(
            problems(json!({ "a": [1], "l": [1, 3] }), result),
            [r#"$.a: expected a list of 1, got {"b": 1, "c": 2}"#, "$.l[1]: expected 3, got 2",]
        );
    }

    #[test]
    fn absence_can_be_asked_for() {
        let result = json!({ "a": 1, "n": null });
        assert!(problems(json!({ "b": { "$absent": true } }), result.clone()).is_empty());
        assert!(problems(json!({ "n": { "$absent_or_null": true } }), result.clone()).is_empty());
        let both = json!({ "a": { "$absent": true }, "n": { "$absent": true } });
        assert_eq!(problems(both, result).len(), 2, "null is there");
    }

    #[test]
    fn the_special_members_look_at_context_and_chunks() {
        let secret = json!({ "not_contains": ["sk-1"] });
        assert!(problems(secret.clone(), json!({ "context": { "a": "b" } })).is_empty());
        assert_eq!(problems(secret.clone(), json!({ "context": ["x sk-1 y"] })).len(), 1);
        assert_eq!(problems(secret, json!({})).len(), 1, "no context proves nothing");
        let silent = json!({ "none_match": [{ "final": true }] });
        assert!(problems(silent.clone(), json!({ "chunks": [{ "final": false }] })).is_empty());
        let chunks = json!({ "chunks": [{}, { "final": true }] });
        assert_eq!(
            problems(silent.clone(), chunks),
            [r#"$.chunks[1]: should not be there: {"final": true}"#]
        );
        assert_eq!(problems(silent, json!({})).len(), 1, "no chunks prove nothing");
    }

    #[test]
    fn an_expectation_that_cannot_be_read_is_refused_wherever_it_is_wrong() {
        for (expect, path) in [
            (json!({ "a": { "b": { "$like": 1 } } }), "$.a.b"),
            (json!({ "a": [1, { "$absent": 1 }] }), "$.a[1]"),
            (json!({ "none_match": [{ "$some": { "$like": 1 } }] }), "$.none_match"),
            (json!({ "not_contains": "x" }), "$.not_contains"),
        ] {
            let error = VectorExpectation::parse(&expect).unwrap_err();
            assert!(error.starts_with(path), "{error}");
        }
        assert!(VectorExpectation::parse(&json!({})).is_err());
        assert!(VectorExpectation::parse(&json!([])).is_err());
    }

    #[test]
    fn two_dollar_members_are_an_object() {
        let expect = json!({ "a": { "$ref": "x", "$id": "y" } });
        assert!(problems(expect, json!({ "a": { "$id": "y", "$ref": "x" } })).is_empty());
    }
}
