//! What a labelled case expects: for each place of the envelope a value, or rules that all have to hold.
//!
//! - A value: exactly this. Spellings of an error code are one code.
//! - `{"$in": [a, b]}`: one of these.
//! - `{"$text": "a"}`: this text, whatever the case of its letters and the white space in it.
//! - `{"$set": [a, b]}`: a list of these items in any order.
//! - `{"$contains": ["a", ["b", "c"]]}`: a text, or a list with texts, in which `a` occurs, and `b` or `c`, whatever the
//!   case of the letters.
//! - `{"$absent": true}`: nothing is there.
//! - `{"$validate": schema}`: whatever the JSON Schema says, as in golden tests.
//!
//! Places are written as in golden tests: `sentiment`, `ranked.0.task`, `/data/ranked/0/task`, `error.code`.
//! Refuses rules it does not know and expectations that expect nothing.

use cognitive_contract::code::canonical;
use serde_json::{Map, Value, json};

use super::report::{FieldOutcome, ListPosition};
use crate::expect::difference::Differences;
use crate::expect::place::{FoundPlace, View, member};
use crate::expect::schema_check::{RULE, SchemaCheck};
use crate::expect::value::{is_one_of, same, same_set, shown, texts_in};

/// Everything that one answer should be.
#[derive(Debug)]
pub struct LabelExpectation {
    fields: Vec<(String, Vec<LabelRule>)>,
}

#[derive(Debug)]
enum LabelRule {
    Is(Value),
    In(Vec<Value>),
    Text(String),
    Set(Vec<Value>),
    /// Of each group one occurs.
    Contains(Vec<Vec<String>>),
    Absent,
    Validate(Box<SchemaCheck>, Value),
}

impl LabelExpectation {
    /// Reads an expectation; the error says what is wrong with it.
    pub fn parse(expected: &Value) -> Result<Self, String> {
        let Value::Object(members) = expected else { return Err("expected an object".to_owned()) };
        let fields = members.iter().map(|(place, value)| {
            let rules = rules(value).map_err(|why| format!("`{place}`: {why}"))?;
            Ok((place.clone(), rules))
        });
        let fields = fields.collect::<Result<Vec<_>, String>>()?;
        if fields.is_empty() { Err("it expects nothing".to_owned()) } else { Ok(Self { fields }) }
    }

    /// The places that are looked at, as they are written.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(place, _)| place.as_str())
    }

    /// Where an expected value stands in a list of the input, for values that are one of a list.
    fn order(rules: &[LabelRule], input: &Value) -> Option<ListPosition> {
        let [LabelRule::Is(expected @ Value::String(_))] = rules else { return None };
        let mut lists = input.as_object()?.values().filter_map(Value::as_array);
        let at = |list: &Vec<Value>| Some((list.iter().position(|item| item == expected)?, list.len()));
        match lists.find_map(at)? {
            (0, _) => Some(ListPosition::First),
            (at, length) if at + 1 == length => Some(ListPosition::Last),
            _ => Some(ListPosition::Middle),
        }
    }

    /// Looks at every place of an envelope that answers an input.
    #[must_use]
    pub fn judge(&self, input: &Value, envelope: &Value) -> Vec<FieldOutcome> {
        let view = View { envelope };
        let judge = |(place, rules): &(String, Vec<LabelRule>)| {
            let found = view.find(place);
            let broken = rules.iter().find(|rule| !rule.holds(view, place, &found));
            FieldOutcome {
                place: place.clone(),
                expected: broken.map(LabelRule::words).unwrap_or_default(),
                got: found.value.map_or_else(|| "nothing".to_owned(), shown),
                right: broken.is_none(),
                order: Self::order(rules, input),
            }
        };
        self.fields.iter().map(judge).collect()
    }
}

/// An object of rules, or a value.
fn rules(value: &Value) -> Result<Vec<LabelRule>, String> {
    match value {
        Value::Object(members) if members.keys().any(|name| name.starts_with('$')) => rules_of(members),
        other => Ok(vec![LabelRule::Is(other.clone())]),
    }
}

fn rules_of(members: &Map<String, Value>) -> Result<Vec<LabelRule>, String> {
    let rule = |(name, argument): (&String, &Value)| match (name.as_str(), argument) {
        ("$in", Value::Array(values)) if !values.is_empty() => Ok(LabelRule::In(values.clone())),
        ("$in", _) => Err("`$in`: expected a list of values".to_owned()),
        ("$text", Value::String(text)) => Ok(LabelRule::Text(folded(text))),
        ("$text", _) => Err("`$text`: expected a text".to_owned()),
        ("$set", Value::Array(values)) => Ok(LabelRule::Set(values.clone())),
        ("$set", _) => Err("`$set`: expected a list".to_owned()),
        ("$contains", argument) => groups(argument).map(LabelRule::Contains),
        ("$absent", Value::Bool(true)) => Ok(LabelRule::Absent),
        ("$absent", _) => Err("`$absent`: expected true".to_owned()),
        ("$validate", schema) => {
            // The compiler of schemas has its say before anything runs.
            let check = SchemaCheck::compile(schema, &member(RULE, "data"))?;
            Ok(LabelRule::Validate(Box::new(check), schema.clone()))
        }
        _ => Err(format!(
            "`{name}`: no such rule; there are `$in`, `$text`, `$set`, `$contains`, `$absent` and `$validate`"
        )),
    };
    members.iter().map(rule).collect()
}

fn groups(argument: &Value) -> Result<Vec<Vec<String>>, String> {
    let wrong = || "`$contains`: expected a list of texts, or of lists of texts".to_owned();
    let text = |value: &Value| value.as_str().map(folded).filter(|text| !text.is_empty());
    let group = |value: &Value| match value {
        Value::Array(texts) if !texts.is_empty() => texts.iter().map(text).collect::<Option<Vec<_>>>(),
        other => text(other).map(|text| vec![text]),
    };
    let groups = argument.as_array().filter(|items| !items.is_empty()).ok_or_else(wrong)?;
    groups.iter().map(group).collect::<Option<Vec<_>>>().ok_or_else(wrong)
}

/// A text as it is compared where letters and white space do not matter.
fn folded(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

impl LabelRule {
    /// `place` is the place as written; of several that it leads to, the first was found.
    fn holds(&self, view: View<'_>, place: &str, found: &FoundPlace<'_>) -> bool {
        let Some(value) = found.value else { return matches!(self, Self::Absent) };
        match self {
            Self::Absent => false,
            Self::Is(Value::String(code)) if found.at == "error.code" => {
                value.as_str().is_some_and(|got| canonical(got) == canonical(code))
            }
            Self::Is(expected) => same(expected, value),
            Self::In(values) => is_one_of(values, value),
            Self::Text(text) => value.as_str().is_some_and(|got| folded(got) == *text),
            Self::Set(expected) => value.as_array().is_some_and(|got| same_set(expected, got)),
            Self::Contains(groups) => {
                let text = folded(&texts_in(value).join(" "));
                groups.iter().all(|group| group.iter().any(|word| text.contains(word.as_str())))
            }
            Self::Validate(check, _) => {
                let mut differences = Differences::default();
                for each in view.find_all(place) {
                    check.compare(each.value, &each.at, &mut differences);
                }
                differences.into_vec().is_empty()
            }
        }
    }

    fn words(&self) -> String {
        let list = |values: &[Value]| values.iter().map(shown).collect::<Vec<_>>().join(", ");
        match self {
            Self::Is(value) => shown(value),
            Self::In(values) => format!("one of {}", list(values)),
            Self::Text(text) => format!("the text {}", shown(&json!(text))),
            Self::Set(values) if values.is_empty() => "an empty list".to_owned(),
            Self::Set(values) => format!("in any order {}", list(values)),
            Self::Contains(groups) => {
                let words = groups.iter().map(|group| group.join(" or ")).collect::<Vec<_>>();
                format!("a text with {}", words.join(", "))
            }
            Self::Absent => "nothing".to_owned(),
            Self::Validate(_, schema) => format!("what fits {}", shown(schema)),
        }
    }
}

#[cfg(test)]
mod tests {
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
            (json!([]), "expected an object"),
            (json!({}), "it expects nothing"),
            (json!({ "x": { "$in": [] } }), "`x`: `$in`: expected a list of values"),
            (json!({ "x": { "$absent": false } }), "`x`: `$absent`: expected true"),
            (json!({ "x": { "$one": 1 } }), "`x`: `$one`: no such rule"),
            (json!({ "x": { "$text": 1 } }), "`x`: `$text`: expected a text"),
            (json!({ "x": { "$set": "a" } }), "`x`: `$set`: expected a list"),
            (json!({ "x": { "$contains": [""] } }), "`x`: `$contains`: expected a list of texts"),
            (json!({ "x": { "$validate": { "type": "txt" } } }), "`x`: "),
            (json!({ "x": { "$in": ["a"], "y": 1 } }), "`x`: `y`: no such rule"),
        ] {
            let error = LabelExpectation::parse(&expected).unwrap_err();
            assert!(error.starts_with(why), "{expected}: {error}");
        }
    }
}
