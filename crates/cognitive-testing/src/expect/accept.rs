//! Computes the new expectation for an unexpected answer, as written by `cogn test --accept`.
//!
//! Values that differ are replaced by those of the answer; the form of the expectation stays. Rules stay
//! unchanged: they express intent, so an answer that breaks one is not accepted. A failure replaces a success
//! only if the caller allows it.

use serde_json::{Map, Value, json};

use super::difference::Differences;
use super::expectation::{Expectation, ExpectationUse, is_whole, other_members};
use super::pattern::{ExpectedValue, OtherMembers, are_rules, is_note};
use super::place::{FoundPlace, View, item, member};

/// Selects whether a failing answer may become the expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptedAnswers {
    /// Only if a failure was expected before.
    Successes,
    /// Also if a success was expected, or nothing yet.
    Failures,
}

/// Returns the expectation that an answer satisfies; `expected` is the previous one, if any. The error
/// explains why this answer is not accepted.
pub(crate) fn accept(
    expected: Option<&Map<String, Value>>,
    answer: &Value,
    which: AcceptedAnswers,
) -> Result<Value, String> {
    let fails = answer.get("ok") != Some(&Value::Bool(true));
    let failure_expected = expected.is_some_and(expects_failure);
    if fails && !failure_expected && which == AcceptedAnswers::Successes {
        let text = |name: &str| answer.pointer(&format!("/error/{name}")).and_then(Value::as_str);
        let (code, message) = (text("code").unwrap_or_default(), text("message").unwrap_or_default());
        let before = if expected.is_some() {
            "instead of the expected success"
        } else {
            "and the case does not expect a failure"
        };
        return Err(format!("the run fails with {code} ({message}) {before}"));
    }
    match expected {
        Some(members) if fails == failure_expected => renew_expectation(members, answer),
        _ => Ok(fresh(expected, answer)),
    }
}

/// Returns whether an expectation requires the run to fail.
fn expects_failure(members: &Map<String, Value>) -> bool {
    members.get("ok") == Some(&Value::Bool(false)) || members.contains_key("error")
}

/// Creates a first expectation from the values that do not vary between runs with the same reply. Keeps the
/// notes of the previous one.
fn fresh(before: Option<&Map<String, Value>>, answer: &Value) -> Value {
    let notes = before.into_iter().flatten().filter(|(name, _)| is_note(name) || *name == "$schema");
    let mut members: Map<String, Value> = notes.map(|(name, value)| (name.clone(), value.clone())).collect();
    let copy = |path: &str| answer.pointer(path).cloned().unwrap_or_default();
    if answer.get("ok") == Some(&Value::Bool(true)) {
        members.insert("ok".to_owned(), json!(true));
        members.insert(
            "meta".to_owned(),
            json!({ "confidence": copy("/meta/confidence"), "risk": copy("/meta/risk") }),
        );
        members.insert("data".to_owned(), copy("/data"));
    } else {
        members.insert("ok".to_owned(), json!(false));
        members.insert("error".to_owned(), json!({ "code": copy("/error/code") }));
    }
    Value::Object(members)
}

/// Returns the expectation with the values of the answer.
fn renew_expectation(members: &Map<String, Value>, answer: &Value) -> Result<Value, String> {
    let whole = is_whole(members);
    let mut renewed = members.clone();
    for (name, written) in members {
        let one = Map::from_iter([(name.clone(), written.clone())]);
        // A member is parsed together with its siblings, because they decide where its name is looked up.
        let beside = ["ok", "data", "meta", "partial_data"];
        let context = members.iter().filter(|(other, _)| whole && beside.contains(&other.as_str()));
        let alone: Map<String, Value> =
            context.map(|(name, value)| (name.clone(), value.clone())).chain(one).collect();
        let Ok(expectation) = Expectation::parse(&Value::Object(alone), ExpectationUse::Golden) else {
            continue;
        };
        let Some(expected) = expectation.members.iter().find(|member| member.written == *name) else {
            continue;
        };
        let view = View { envelope: answer };
        let mut found = Differences::default();
        expected.compare(view, &mut found);
        if found.is_empty() {
            continue;
        }
        let [place]: [FoundPlace<'_>; 1] = expected.places(view).try_into().map_err(|_| {
            let first = found.into_vec().into_iter().next();
            first.map_or_else(String::new, |first| by_hand(&first.path, &first.rule))
        })?;
        let value = renew(written, place.value, other_members(name, whole), &place.at)?;
        renewed.insert(name.clone(), value.unwrap_or_else(|| json!({ "$absent": true })));
    }
    Ok(Value::Object(renewed))
}

/// Updates a written value from the answer; `None` if the answer has no value there.
fn renew(
    written: &Value,
    actual: Option<&Value>,
    others: OtherMembers,
    at: &str,
) -> Result<Option<Value>, String> {
    let Some(value) = actual else { return without_rules(written, at).map(|()| None) };
    match (written, value) {
        (Value::Object(members), _) if are_rules(members) => {
            let mut found = Differences::default();
            ExpectedValue::parse(written, others, at)?.compare(Some(value), at, &mut found);
            match found.into_vec().into_iter().next() {
                None => Ok(Some(written.clone())),
                Some(broken) => Err(by_hand(&broken.path, &broken.rule)),
            }
        }
        (Value::Object(members), Value::Object(actual)) => {
            renew_members(members, actual, others, at).map(|members| Some(Value::Object(members)))
        }
        (Value::Array(items), Value::Array(actual)) if items.len() == actual.len() => {
            let renewed = items.iter().zip(actual).enumerate().map(|(index, (written, value))| {
                renew(written, Some(value), others, &item(at, index)).map(Option::unwrap_or_default)
            });
            renewed.collect::<Result<Vec<_>, _>>().map(|items| Some(Value::Array(items)))
        }
        _ => without_rules(written, at).map(|()| Some(value.clone())),
    }
}

fn renew_members(
    members: &Map<String, Value>,
    actual: &Map<String, Value>,
    others: OtherMembers,
    at: &str,
) -> Result<Map<String, Value>, String> {
    let mut renewed = Map::new();
    for (name, written) in members {
        if is_note(name) {
            renewed.insert(name.clone(), written.clone());
            continue;
        }
        match renew(written, actual.get(name), others, &member(at, name))? {
            Some(value) => renewed.insert(name.clone(), value),
            // If other members are refused, an unmentioned member is already expected to be absent.
            None if others == OtherMembers::Refused => None,
            None => renewed.insert(name.clone(), json!({ "$absent": true })),
        };
    }
    if others == OtherMembers::Refused {
        let more = actual.iter().filter(|(name, _)| !members.contains_key(*name));
        renewed.extend(more.map(|(name, value)| (name.clone(), value.clone())));
    }
    Ok(renewed)
}

/// Allows replacing a whole value only if that drops no rule.
fn without_rules(written: &Value, at: &str) -> Result<(), String> {
    match written {
        Value::Object(members) if are_rules(members) => {
            Err(by_hand(at, members.keys().map(String::as_str).next().unwrap_or_default()))
        }
        Value::Object(members) => {
            members.iter().try_for_each(|(name, value)| without_rules(value, &member(at, name)))
        }
        Value::Array(items) => items.iter().try_for_each(|value| without_rules(value, at)),
        _ => Ok(()),
    }
}

fn by_hand(at: &str, rule: &str) -> String {
    format!("the rule `{rule}` at `{at}` does not hold; rules are changed only by hand")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn success() -> Value {
        json!({
            "ok": true, "meta": { "confidence": 0.8, "risk": "low", "explain": "e", "trace_id": "t" },
            "data": { "label": "b", "list": [{ "n": 1, "m": 2 }] },
        })
    }

    fn failure() -> Value {
        json!({ "ok": false, "meta": { "confidence": 0 }, "error": { "code": "E3001", "message": "m" } })
    }

    fn accepted(expected: Value, answer: &Value) -> Result<Value, String> {
        let new = accept(expected.as_object(), answer, AcceptedAnswers::Successes)?;
        let holds = Expectation::parse(&new, ExpectationUse::Golden)?.differences(answer);
        assert!(holds.is_empty(), "{new} {holds:?}");
        Ok(new)
    }

    #[test]
    fn a_first_expectation_has_what_does_not_vary() {
        let new = accept(None, &success(), AcceptedAnswers::Successes).unwrap();
        let meta = json!({ "confidence": 0.8, "risk": "low" });
        assert_eq!(new, json!({ "ok": true, "meta": meta, "data": success()["data"] }));
        let failed = accept(None, &failure(), AcceptedAnswers::Failures).unwrap();
        assert_eq!(failed, json!({ "ok": false, "error": { "code": "E3001" } }));
    }

    #[test]
    fn values_change_and_forms_and_rules_stay() {
        for (expected, new) in [
            (json!({ "label": "a" }), json!({ "label": "b" })),
            (
                json!({ "$comment": "c", "label": "a", "confidence": 0.9 }),
                json!({ "$comment": "c", "label": "b", "confidence": 0.8 }),
            ),
            (json!({ "data.list[0].n": 7 }), json!({ "data.list[0].n": 1 })),
            (json!({ "list": [{ "n": 7 }] }), json!({ "list": [{ "n": 1, "m": 2 }] })),
            (
                json!({ "ok": true, "data": { "list": [{ "n": 7 }], "gone": 1 } }),
                json!({ "ok": true, "data": { "list": [{ "n": 1 }], "gone": { "$absent": true } } }),
            ),
            (
                json!({ "list": [], "label": { "$in": ["b"] } }),
                json!({ "list": [{ "n": 1, "m": 2 }], "label": { "$in": ["b"] } }),
            ),
            (json!({ "gone": 1 }), json!({ "gone": { "$absent": true } })),
            (
                json!({ "label": "a", "_validate": { "confidence_min": 0.5 } }),
                json!({ "label": "b", "_validate": { "confidence_min": 0.5 } }),
            ),
        ] {
            assert_eq!(accepted(expected, &success()), Ok(new));
        }
    }

    #[test]
    fn a_rule_that_does_not_hold_is_not_accepted_away() {
        for expected in [
            json!({ "label": { "$in": ["a"] } }),
            json!({ "list": [{ "n": { "$min": 5 }, "m": 2 }] }),
            json!({ "list": [{ "n": { "$min": 5 } }, 1] }),
            json!({ "_validate": { "confidence_min": 0.9 } }),
            json!({ "$validate": { "data.label": { "const": "a" } } }),
            json!({ "gone": { "$min": 1 } }),
        ] {
            let why = accepted(expected.clone(), &success()).unwrap_err();
            assert!(why.ends_with("rules are changed only by hand"), "{expected}: {why}");
        }
    }

    #[test]
    fn a_failure_is_accepted_only_where_the_caller_says_so() {
        let expected = json!({ "$comment": "c", "label": "a" });
        let why = accepted(expected.clone(), &failure()).unwrap_err();
        assert_eq!(why, "the run fails with E3001 (m) instead of the expected success");
        assert!(accept(None, &failure(), AcceptedAnswers::Successes).is_err());
        let new = accept(expected.as_object(), &failure(), AcceptedAnswers::Failures).unwrap();
        assert_eq!(new, json!({ "$comment": "c", "ok": false, "error": { "code": "E3001" } }));
        let other = json!({ "ok": false, "error": { "code": "E2004" } });
        assert_eq!(accepted(other, &failure()), Ok(json!({ "ok": false, "error": { "code": "E3001" } })));
        let flipped = accepted(json!({ "ok": false, "error": { "code": "E2004" } }), &success()).unwrap();
        assert_eq!(flipped["ok"], json!(true));
    }
}
