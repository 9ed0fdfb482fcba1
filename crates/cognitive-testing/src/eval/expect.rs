//! The expectation of a labelled case, one place at a time, so that each can be counted. The syntax is the
//! same for all tests (`docs/expectations.md`). Refuses empty expectations.

use serde_json::Value;

use super::report::{FieldOutcome, ListPosition};
use crate::expect::difference::Differences;
use crate::expect::expectation::{Expectation, ExpectationUse, ExpectedMember};
use crate::expect::place::View;
use crate::expect::value::value_text;

/// The complete expectation for one answer.
#[derive(Debug)]
pub struct LabelExpectation {
    expectation: Expectation,
    written: Value,
}

impl LabelExpectation {
    /// Parses an expectation; the error describes the fault.
    pub fn parse(expected: &Value) -> Result<Self, String> {
        let expectation = Expectation::parse(expected, ExpectationUse::Labelled)?;
        Ok(Self { expectation, written: expected.clone() })
    }

    /// Returns the expectation as written.
    #[must_use]
    pub fn source(&self) -> &Value {
        &self.written
    }

    /// Returns the checked places, as written.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.expectation.members.iter().map(|member| member.written.as_str())
    }

    /// Judges every checked place of an envelope that answers an input.
    #[must_use]
    pub fn judge(&self, input: &Value, envelope: &Value) -> Vec<FieldOutcome> {
        let view = View { envelope };
        self.expectation.members.iter().map(|member| outcome(member, view, input)).collect()
    }
}

fn outcome(member: &ExpectedMember, view: View<'_>, input: &Value) -> FieldOutcome {
    let mut found = Differences::default();
    member.compare(view, &mut found);
    let place = member.places(view).into_iter().next();
    let at = place.as_ref().map(|place| place.at.clone()).unwrap_or_default();
    let there = place.and_then(|place| place.value).map_or_else(|| "nothing".to_owned(), value_text);
    let broken = found.into_vec().into_iter().next();
    // A difference inside a value includes its path.
    let expected = |path: &str, words: String| if path == at { words } else { format!("{path}: {words}") };
    FieldOutcome {
        place: member.written.clone(),
        right: broken.is_none(),
        got: broken.as_ref().map_or(there, |broken| broken.got.clone()),
        expected: broken.map(|broken| expected(&broken.path, broken.expected)).unwrap_or_default(),
        order: order(member, input),
    }
}

/// Returns the position of an expected value in a list of the input, if the input has a list that contains
/// it.
fn order(member: &ExpectedMember, input: &Value) -> Option<ListPosition> {
    let expected = member.plain_text()?;
    let mut lists = input.as_object()?.values().filter_map(Value::as_array);
    let at = |list: &Vec<Value>| Some((list.iter().position(|item| item == expected)?, list.len()));
    match lists.find_map(at)? {
        (0, _) => Some(ListPosition::First),
        (at, length) if at + 1 == length => Some(ListPosition::Last),
        _ => Some(ListPosition::Middle),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn right(expected: Value, data: Value) -> bool {
        let envelope = json!({ "ok": true, "meta": {}, "data": data });
        let outcomes = LabelExpectation::parse(&expected).unwrap().judge(&Value::Null, &envelope);
        outcomes.iter().all(|outcome| outcome.right)
    }

    #[test]
    fn each_rule_tells_right_from_wrong() {
        for (expected, good, bad) in [
            (json!("a"), json!("a"), json!("A")),
            (json!(1), json!(1.0), json!("1")),
            (json!([1, 2]), json!([1, 2]), json!([2, 1])),
            (json!({ "$in": ["a", "b"] }), json!("b"), json!("c")),
            (json!({ "$text": "New  York" }), json!(" new york"), json!("newyork")),
            (json!({ "$set": ["a", "b"] }), json!(["b", "a"]), json!(["a"])),
            (json!({ "$set": ["a"] }), json!(["a", "a"]), json!(["a", "b"])),
            (json!({ "$set": [] }), json!([]), json!("")),
            (json!({ "$contains": ["May", ["two", "2"]] }), json!("In may: 2."), json!("In May.")),
            (json!({ "$contains": ["x"] }), json!([{ "a": "X" }]), json!([{ "x": "a" }])),
            (json!({ "$validate": { "maxLength": 2 } }), json!("ab"), json!("abc")),
            (json!({ "a": { "$in": [1, 2] } }), json!({ "a": 2 }), json!({ "a": 2, "b": 1 })),
            (json!({ "$in": ["a", "ab"], "$validate": { "maxLength": 1 } }), json!("a"), json!("ab")),
        ] {
            assert!(right(json!({ "x": expected }), json!({ "x": good })), "{expected} {good}");
            assert!(!right(json!({ "x": expected }), json!({ "x": bad })), "{expected} {bad}");
            assert!(!right(json!({ "x": expected }), json!({})), "{expected}");
        }
    }

    #[test]
    fn places_are_those_of_golden_tests_and_codes_have_many_spellings() {
        let failure = json!({ "ok": false, "error": { "code": "INSUFFICIENT_CONTEXT" } });
        let expected = json!({ "ok": false, "error.code": "E2007" });
        let outcomes = LabelExpectation::parse(&expected).unwrap().judge(&Value::Null, &failure);
        assert!(outcomes.iter().all(|outcome| outcome.right), "{outcomes:?}");
        assert!(right(json!({ "ranked.0.task": "a" }), json!({ "ranked": [{ "task": "a" }] })));
        assert!(right(json!({ "/data/ranked/0/task": "a" }), json!({ "ranked": [{ "task": "a" }] })));
    }

    #[test]
    fn a_name_is_that_of_the_payload_before_that_of_meta() {
        let judge = |data: Value| {
            let envelope = json!({ "ok": true, "meta": { "risk": "low" }, "data": data });
            let expected = LabelExpectation::parse(&json!({ "risk": "low" })).unwrap();
            expected.judge(&Value::Null, &envelope)[0].right
        };
        assert!(judge(json!({})));
        assert!(!judge(json!({ "risk": "high" })));
    }

    #[test]
    fn rules_of_golden_tests_are_read_too() {
        let data = json!({ "x": "a long text", "list": [{ "n": 1 }, { "n": 2 }] });
        assert!(right(
            json!({ "_validate": { "x_contains": "long" }, "list[*].n": { "$min": 1 } }),
            data.clone()
        ));
        assert!(!right(json!({ "_contains": { "x": ["short"] } }), data.clone()));
        assert!(!right(json!({ "list[*].n": 1 }), data), "every item counts");
    }

    #[test]
    fn nothing_can_be_expected_too() {
        let absent = json!({ "x": { "$absent": true } });
        assert!(right(absent.clone(), json!({})));
        assert!(!right(absent, json!({ "x": "y" })));
    }

    #[test]
    fn where_the_right_value_stands_in_the_list_of_the_input_is_noted() {
        let input = json!({ "text": "t", "labels": ["a", "b", "c"] });
        let order = |expected: Value| {
            let expected = LabelExpectation::parse(&json!({ "label": expected })).unwrap();
            expected.judge(&input, &Value::Null)[0].order
        };
        assert_eq!(order(json!("a")), Some(ListPosition::First));
        assert_eq!(order(json!("b")), Some(ListPosition::Middle));
        assert_eq!(order(json!("c")), Some(ListPosition::Last));
        assert_eq!((order(json!("d")), order(json!({ "$in": ["a"] }))), (None, None));
    }

    #[test]
    fn what_is_wrong_says_what_was_expected() {
        let expected = json!({ "x": { "$contains": [["two", "2"], "may"] }, "y": "b" });
        let envelope = json!({ "ok": true, "data": { "y": "b" } });
        let outcomes = LabelExpectation::parse(&expected).unwrap().judge(&Value::Null, &envelope);
        assert_eq!(
            (outcomes[0].expected.as_str(), outcomes[0].got.as_str()),
            ("a text with two or 2, may", "nothing")
        );
        assert_eq!((outcomes[1].right, outcomes[1].got.as_str()), (true, "\"b\""));
    }

    #[test]
    fn expectations_that_make_no_sense_are_refused() {
        for (expected, why) in [
            (json!([]), "an expectation must be an object"),
            (json!({}), "the expectation is empty"),
            (json!({ "x": { "$in": [] } }), "`x.$in`: expected a list of values"),
            (json!({ "x": { "$absent": false } }), "`x.$absent`: expected true"),
            (json!({ "x": { "$one": 1 } }), "`x`: unknown rule: `$one`"),
            (json!({ "x": { "$text": 1 } }), "`x.$text`: expected a text"),
            (json!({ "x": { "$set": "a" } }), "`x.$set`: expected a list"),
            (json!({ "x": { "$contains": [""] } }), "`x.$contains`: expected a list of texts"),
            (json!({ "x": { "$validate": { "type": "txt" } } }), "`x.$validate`: "),
            (json!({ "x": { "$in": ["a"], "y": 1 } }), "`x`: unknown rule: `y`"),
        ] {
            let error = LabelExpectation::parse(&expected).unwrap_err();
            assert!(error.starts_with(why), "{expected}: {error}");
        }
    }
}
