//! Tests every rule, once where it holds and once where it fails, and the expectations of vectors.

use serde_json::{Value, json};

use super::difference::Differences;
use super::expectation::{Expectation, ExpectationUse};
use super::pattern::{ExpectedValue, OtherMembers};
use super::value_rule::RULE_NAMES;

fn rule(name: &str, argument: &Value) -> Result<ExpectedValue, String> {
    ExpectedValue::parse(&json!({ name: argument }), OtherMembers::Allowed, "v")
}

/// Examples of every rule: name, argument, good value, bad value.
fn table() -> Vec<(&'static str, Value, Value, Value)> {
    vec![
        ("$exact", json!({ "a": 1 }), json!({ "a": 1.0 }), json!({ "a": 1, "b": 2 })),
        ("$exact", json!({ "$in": [1] }), json!({ "$in": [1] }), json!(1)),
        ("$part", json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), json!({ "a": 2 })),
        ("$in", json!(["a", 1]), json!(1), json!(true)),
        ("$not", json!("a"), json!("b"), json!("a")),
        ("$not", json!({ "$contains": ["x"] }), json!("abc"), json!("axc")),
        ("$present", json!(true), json!(false), Value::Null),
        ("$absent", json!(true), Value::Null, json!(1)),
        ("$absent_or_null", json!(true), Value::Null, json!(1)),
        ("$range", json!([0, 1]), json!(1), json!(1.01)),
        ("$range", json!([0, 1]), json!(0.5), json!(true)),
        ("$min", json!(2), json!(2), json!(1.9)),
        ("$max", json!(2), json!(2), json!("2")),
        ("$type", json!("number"), json!(1.5), json!(true)),
        ("$type", json!("string"), json!("x"), json!(1)),
        ("$type", json!("boolean"), json!(false), json!(0)),
        ("$type", json!("array"), json!([]), json!({})),
        ("$type", json!("object"), json!({}), json!([])),
        ("$type", json!("null"), Value::Null, json!(0)),
        ("$validate", json!({ "maxLength": 1 }), json!("a"), json!("ab")),
        ("$text", json!("New  York"), json!(" new york"), json!("newyork")),
        ("$regex", json!("(?i)in.ut"), json!("the INPUT"), json!("output")),
        ("$contains", json!(["May", ["two", "2"]]), json!("In may: 2."), json!("In May.")),
        ("$lacks", json!(["secret"]), json!(["open"]), json!({ "x": ["A Secret"] })),
        ("$maxlen", json!(2), json!("😀😀"), json!("abc")),
        ("$maxlen", json!(1), json!([1]), json!({})),
        ("$minlen", json!(2), json!("ab"), json!([1])),
        ("$len", json!(2), json!([1, 2]), json!("abc")),
        ("$set", json!(["a", "b"]), json!(["b", "a", "b"]), json!(["a", "a"])),
        ("$subset_of", json!(["a", "b"]), json!(["b"]), json!(["b", "c"])),
        ("$superset_of", json!(["a"]), json!(["b", "a"]), json!(["b"])),
        ("$some", json!({ "c": "E1" }), json!([{}, { "c": "E1", "x": 1 }]), json!([{ "c": "E2" }])),
        ("$every", json!({ "$min": 1 }), json!([1, 2]), json!([1, 0])),
        ("$every", json!({ "n": 1 }), json!([{ "n": 1, "m": 2 }]), json!([])),
        ("$none", json!({ "final": true }), json!([{ "final": false }]), json!([{ "final": true }])),
        ("$json_contains", json!(["\"a\": 1", "b"]), json!({ "a": 1, "b": 2 }), json!({ "a": 2, "b": 2 })),
        ("$json_lacks", json!(["secret"]), json!(["open"]), json!({ "x": ["a secret"] })),
        ("$code", json!(["E1000", "E2003"]), json!("PARSE_ERROR"), json!("E1001")),
    ]
}

#[test]
fn every_rule_says_yes_and_no_and_nothing_holds_where_nothing_is() {
    let table = table();
    for (name, argument, good, bad) in &table {
        let pattern = rule(name, argument).unwrap();
        let matches = |value: &Value| {
            // `null` means a missing value in rules about absence.
            let mut found = Differences::default();
            let absence = value.is_null() && ["$absent", "$present"].contains(name);
            pattern.compare((!absence).then_some(value), "v", &mut found);
            found.into_vec().is_empty()
        };
        assert!(matches(good), "{name} {argument} of {good}");
        assert!(!matches(bad), "{name} {argument} of {bad}");
        let mut found = Differences::default();
        pattern.compare(None, "v", &mut found);
        assert_eq!(found.is_empty(), name.starts_with("$absent"), "{name}");
    }
    let without: Vec<_> = RULE_NAMES.iter().filter(|name| !table.iter().any(|row| row.0 == **name)).collect();
    assert!(without.is_empty(), "no test for {without:?}");
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for (name, argument) in [
        ("$like", json!(1)),
        ("$in", json!("a")),
        ("$in", json!([])),
        ("$part", json!([1])),
        ("$absent", json!(false)),
        ("$range", json!([1])),
        ("$range", json!([2, 1])),
        ("$range", json!(["a", "b"])),
        ("$min", json!("1")),
        ("$type", json!("integer")),
        ("$regex", json!("(")),
        ("$regex", json!(1)),
        ("$len", json!(-1)),
        ("$maxlen", json!("2")),
        ("$lacks", json!([])),
        ("$contains", json!([[]])),
        ("$some", json!({ "$like": 1 })),
        ("$json_contains", json!([1])),
        ("$code", json!("E1000")),
    ] {
        let error = rule(name, &argument).unwrap_err();
        assert!(error.starts_with("`v"), "{name} {argument}: {error}");
    }
}

// The reference names every rule, and no other.
#[test]
fn the_reference_page_lists_every_rule() {
    let page = include_str!("../../../../docs/expectations.md");
    let page = page.split("\n## ").find(|section| section.starts_with("Rules")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `{\"$")?.split('"').next());
    let listed: Vec<String> = rows.map(|name| format!("${name}")).collect();
    assert_eq!(listed, RULE_NAMES);
}

fn problems(expect: Value, result: Value) -> Vec<String> {
    let expectation = Expectation::parse(&expect, ExpectationUse::Vector).unwrap();
    let words = expectation.differences(&result).into_iter();
    words.map(|each| format!("{}: {} / {}", each.path, each.expected, each.got)).collect()
}

#[test]
fn members_of_a_result_may_be_more_and_items_may_not() {
    let result = json!({ "a": { "b": 1, "c": 2 }, "l": [1, 2] });
    assert!(problems(json!({ "a": { "b": 1.0 }, "l": [1, 2] }), result.clone()).is_empty());
    assert_eq!(
        problems(json!({ "a": { "b": 2, "x": null }, "l": [1] }), result.clone()),
        ["$.a.b: 2 / 1", "$.a.x: null / nothing", "$.l: a list of 1 / a list of 2"]
    );
    let error = json!({ "envelope": { "error": { "code": "PARSE_ERROR" } } });
    assert_eq!(problems(error, json!({ "envelope": { "error": { "code": "E1000" } } })).len(), 1);
}

#[test]
fn the_special_members_look_at_context_and_chunks() {
    let secret = json!({ "not_contains": ["sk-1"] });
    assert!(problems(secret.clone(), json!({ "context": { "a": "b" } })).is_empty());
    assert_eq!(problems(secret.clone(), json!({ "context": ["x sk-1 y"] })).len(), 1);
    assert_eq!(problems(secret, json!({})).len(), 1, "no context proves nothing");
    let silent = json!({ "none_match": [{ "final": true }] });
    assert!(problems(silent.clone(), json!({ "chunks": [{ "final": false }] })).is_empty());
    assert_eq!(
        problems(silent.clone(), json!({ "chunks": [{}, { "final": true }] })),
        [r#"$.chunks[1]: a list without an object with final / {"final":true}"#]
    );
    assert_eq!(problems(silent, json!({})).len(), 1, "no chunks prove nothing");
}

#[test]
fn an_expectation_that_cannot_be_read_is_refused_wherever_it_is_wrong() {
    for (expect, path) in [
        (json!({ "a": { "b": { "$like": 1 } } }), "`$.a.b`"),
        (json!({ "a": [1, { "$absent": 1 }] }), "`$.a[1].$absent`"),
        (json!({ "none_match": [{ "$some": { "$like": 1 } }] }), "`$.none_match.$some`"),
        (json!({ "not_contains": "x" }), "`$.not_contains.$json_lacks`"),
    ] {
        let error = Expectation::parse(&expect, ExpectationUse::Vector).unwrap_err();
        assert!(error.starts_with(path), "{error}");
    }
    assert!(Expectation::parse(&json!({}), ExpectationUse::Vector).is_err());
    assert!(Expectation::parse(&json!([]), ExpectationUse::Vector).is_err());
}
