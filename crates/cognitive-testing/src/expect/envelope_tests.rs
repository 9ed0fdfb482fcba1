//! Tests every kind of expectation about an envelope, once where it holds and once where it fails.

use serde_json::{Map, Value, json};

use super::expectation::{Expectation, ExpectationUse};

fn success() -> Value {
    json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "e", "model": "m" },
        "data": {
            "rationale": "because it is so",
            "summary": "A tram \"runs\"\nhere.",
            "issues": [{ "type": "bug", "line": 3 }],
            "dot.ted": 1,
        },
    })
}

fn failure() -> Value {
    json!({
        "ok": false,
        "meta": { "confidence": 0.0, "risk": { "custom": "odd", "reason": "r" }, "explain": "e" },
        "error": { "code": "E2004", "message": "nothing to do", "recoverable": false },
        "partial_data": { "summary": "half" },
    })
}

/// Returns the places that differ, each with its rule.
fn wrong(expected: Value, envelope: &Value) -> Vec<String> {
    let found = Expectation::parse(&expected, ExpectationUse::Golden).unwrap().differences(envelope);
    found.into_iter().map(|each| format!("{} {}", each.path, each.rule)).collect()
}

#[test]
fn test_002_names_are_looked_up_where_they_belong() {
    let right = json!({ "ok": true, "confidence": 0.9, "risk": "low", "explain": "e", "dot.ted": 1.0,
                        "issues": [{ "type": "bug", "line": 3 }] });
    assert!(wrong(right, &success()).is_empty());
    let off = json!({ "ok": false, "confidence": 0.8, "risk": "high", "explain": "x", "summary": 1,
                      "issues": [{ "type": "bug" }], "absent": null, "error": { "code": "E2004" } });
    assert_eq!(
        wrong(off, &success()),
        [
            "ok equals",
            "meta.confidence equals",
            "meta.risk equals",
            "meta.explain equals",
            "data.summary equals",
            "data.issues[0].line equals",
            "data.absent equals",
            "error equals"
        ]
    );
}

#[test]
fn test_002_a_failure_is_compared_with_what_it_kept() {
    let right = json!({ "ok": false, "summary": "half", "error": { "code": "NO_ACTION_POSSIBLE" } });
    assert!(wrong(right, &failure()).is_empty());
    let off = json!({ "summary": "whole", "error": { "code": "E2005", "message": "m", "absent": 1 } });
    assert_eq!(
        wrong(off, &failure()),
        ["partial_data.summary equals", "error.code equals", "error.message equals", "error.absent equals"]
    );
}

#[test]
fn a_whole_envelope_is_a_part_of_the_answer() {
    let right =
        json!({ "ok": true, "meta": { "confidence": 0.9 }, "data": { "issues": [{ "type": "bug" }] } });
    assert!(wrong(right, &success()).is_empty());
    let off = json!({ "ok": true, "data": { "issues": [{ "type": "x" }], "_private": 1 }, "usage": {} });
    assert_eq!(
        wrong(off, &success()),
        ["data.issues[0].type equals", "data._private equals", "usage equals"]
    );
    let kept = json!({ "ok": false, "error": { "code": "E2004" }, "partial_data": { "summary": "half" } });
    assert!(wrong(kept, &failure()).is_empty());
}

#[test]
fn test_003_every_rule_of_validate_can_hold_and_can_fail() {
    for (name, holds, fails, path) in [
        ("required", json!(["summary", "dot.ted", "issues.0.line"]), json!(["summary", "no"]), "data.no"),
        ("confidence_min", json!(0.9), json!(0.91), "meta.confidence"),
        ("confidence_max", json!(0.9), json!(0.89), "meta.confidence"),
        ("rationale_min_length", json!(16), json!(17), "data.rationale"),
        ("contains", json!(["tram", "\"runs\"\n", "issues", "\"line\":3"]), json!(["train"]), "data"),
        ("not_contains", json!(["train"]), json!(["train", "issues"]), "data"),
        ("risk", json!("low"), json!("high"), "meta.risk"),
        ("risk", json!(["none", "low"]), json!(["medium", "high"]), "meta.risk"),
        ("risk_max", json!("low"), json!("none"), "meta.risk"),
        ("required", json!(["confidence", "risk", "explain", "meta.model"]), json!(["error"]), "error"),
        ("required", json!(["issues[*].type", "ok"]), json!(["issues[*].risk"]), "data.issues[0].risk"),
        ("dot.ted", json!(1), json!(2), "data.dot.ted"),
        ("ok", json!(true), json!(false), "ok"),
        ("confidence", json!(0.9), json!(0.8), "meta.confidence"),
        ("issues[0].line", json!(3.0), json!("3"), "data.issues[0].line"),
        ("issues[*].type", json!("bug"), json!("style"), "data.issues[0].type"),
        ("issues[0].line_min", json!(3), json!(4), "data.issues[0].line"),
        ("issues[*].line_max", json!(3), json!(2), "data.issues[0].line"),
        ("rationale_contains", json!("it is"), json!(["it is", "not"]), "data.rationale"),
        ("summary_matches", json!("^A tram"), json!("^tram"), "data.summary"),
        ("issues[0].type_not", json!("style"), json!("bug"), "data.issues[0].type"),
    ] {
        let validate = |argument: Value| {
            let mut rules = Map::new();
            rules.insert(name.to_owned(), argument);
            json!({ "_validate": rules })
        };
        assert!(wrong(validate(holds), &success()).is_empty(), "{name}");
        let path = path.replace("data.dot.ted", "data[\"dot.ted\"]");
        assert_eq!(wrong(validate(fails), &success()), [format!("{path} _validate.{name}")]);
    }
}

// TEST-003: a rule about a missing field never holds, whatever it requires.
#[test]
fn test_003_a_rule_about_nothing_does_not_hold() {
    for (name, argument) in [
        ("confdence", json!(0.9)),
        ("absent_min", json!(0)),
        ("absent_max", json!(9)),
        ("absent_contains", json!("a")),
        ("absent_matches", json!(".*")),
        ("absent_not", json!("a")),
        ("issues[9].type_not", json!("a")),
        ("absent[*].type_not", json!("a")),
    ] {
        let rules: Map<String, Value> = [(name.to_owned(), argument)].into_iter().collect();
        assert_eq!(wrong(json!({ "_validate": rules }), &success()).len(), 1, "{name}");
    }
}

// A member with the same name as a rule takes precedence over the rule.
#[test]
fn a_member_may_be_called_like_a_rule() {
    let envelope = json!({ "ok": true, "meta": {}, "data": { "score_min": 3, "score": 9 } });
    assert!(wrong(json!({ "_validate": { "score_min": 3 } }), &envelope).is_empty());
    assert_eq!(
        wrong(json!({ "_validate": { "score_min": 4 } }), &envelope),
        ["data.score_min _validate.score_min"]
    );
}

#[test]
fn an_error_code_is_one_code_in_every_spelling() {
    let right = json!({ "_validate": { "required": ["error"], "error.code": "NO_ACTION_POSSIBLE" } });
    assert!(wrong(right, &failure()).is_empty());
    let off = json!({ "_validate": { "error.code": "INVALID_INPUT", "error.code_not": "E2004" } });
    assert_eq!(
        wrong(off, &failure()),
        ["error.code _validate.error.code", "error.code _validate.error.code_not"]
    );
}

#[test]
fn test_003_rules_about_a_failure() {
    assert!(
        wrong(json!({ "_validate": { "risk_max": "medium", "contains": ["half"] } }), &failure()).is_empty()
    );
    let off = json!({ "_validate": { "risk_max": "low", "rationale_min_length": 1 } });
    assert_eq!(
        wrong(off, &failure()),
        ["meta.risk _validate.risk_max", "partial_data.rationale _validate.rationale_min_length"]
    );
    let bare = json!({ "ok": false, "meta": {}, "error": {} });
    let silent = json!({ "_validate": { "not_contains": ["x"], "contains": ["y"], "confidence_min": 0 } });
    assert_eq!(
        wrong(silent, &bare),
        [
            "data _validate.not_contains",
            "data _validate.contains",
            "meta.confidence _validate.confidence_min"
        ],
        "what is not there proves nothing"
    );
}

#[test]
fn a_rationale_of_old_modules_may_be_an_object() {
    let old = json!({ "ok": true, "meta": {}, "data": { "rationale": { "why": "four", "how": ["five!"] } } });
    assert!(wrong(json!({ "_validate": { "rationale_min_length": 9 } }), &old).is_empty());
    assert_eq!(wrong(json!({ "_validate": { "rationale_min_length": 10 } }), &old).len(), 1);
}

#[test]
fn test_003_contains_looks_at_one_place() {
    let right =
        json!({ "_contains": { "summary": ["tram", "here"], "meta.explain": ["e"], "issues": ["bug"] } });
    assert!(wrong(right, &success()).is_empty());
    let off = json!({ "_contains": { "summary": ["tram", "bus", "car"], "issues.1.type": ["bug"] } });
    assert_eq!(
        wrong(off, &success()),
        ["data.summary _contains", "data.summary _contains", "data.issues[1].type _contains"]
    );
    let many =
        json!({ "ok": true, "meta": {}, "data": { "issues": [{ "type": "bug" }, { "type": "style" }] } });
    assert!(wrong(json!({ "_contains": { "issues[*].type": ["style", "bug"] } }), &many).is_empty());
    let off = json!({ "_contains": { "issues[*].type": ["style", "security"], "none[*].type": ["x"] } });
    assert_eq!(wrong(off, &many), ["issues[*].type _contains", "data.none[*].type _contains"]);
    assert!(wrong(json!({ "_contains": { "error.message": ["nothing"] } }), &failure()).is_empty());
}

#[test]
fn schemas_judge_places() {
    let right = json!({
        "$comment": "c", "$schema": "s",
        "$validate": {
            "ok": { "const": true },
            "data": { "type": "object", "required": ["summary"] },
            "issues.0.line": { "minimum": 3 },
            "issues[*].line": { "type": "integer" },
        },
        "$example": { "ok": true },
    });
    assert!(wrong(right, &success()).is_empty());
    let off = json!({
        "$validate": { "data.issues": { "items": { "required": ["risk"] } }, "data.absent": {} },
        "summary": { "$validate": { "maxLength": 3 } },
    });
    assert_eq!(
        wrong(off, &success()),
        ["data.issues[0].risk $validate", "data.absent $validate", "data.summary $validate"]
    );
    let code =
        json!({ "$validate": { "error": { "properties": { "code": { "const": "NO_ACTION_POSSIBLE" } } } } });
    assert!(wrong(code, &failure()).is_empty());
}

#[test]
fn an_expectation_that_cannot_be_read_or_cannot_fail_is_refused() {
    for (expected, words) in [
        (json!({}), "the expectation is empty"),
        (json!({ "$comment": "c", "$example": { "ok": true } }), "the expectation is empty"),
        (json!([]), "an expectation must be an object"),
        (json!({ "ok": "yes" }), "`ok`: expected `true` or `false`"),
        (json!({ "error": "E2004" }), "`error`: expected an object"),
        (json!({ "_valdate": { "required": ["a"] } }), "`_valdate`: unknown rule"),
        (json!({ "$validat": {} }), "`$validat`: unknown rule"),
        (json!({ "_validate": {} }), "`_validate`: the rule is empty"),
        (json!({ "_validate": [] }), "`_validate`: expected an object"),
        (
            json!({ "_validate": { "requires": ["a"] } }),
            "`_validate.requires`: unknown rule; there are: required,",
        ),
        (json!({ "_validate": { "score_min": "3" } }), "`_validate.score_min`: expected a number"),
        (json!({ "_validate": { "a_contains": [] } }), "expected a string, or a list of them"),
        (json!({ "_validate": { "a_matches": "(" } }), "not a regular expression: `(`"),
        (json!({ "_validate": { "required": [] } }), "`_validate.required`: the rule is empty"),
        (json!({ "_validate": { "required": "a" } }), "expected a list of texts"),
        (json!({ "_validate": { "contains": [""] } }), "expected texts that are not empty"),
        (json!({ "_validate": { "not_contains": [1] } }), "expected texts that are not empty"),
        (json!({ "_validate": { "confidence_min": 90 } }), "expected a number from 0 to 1"),
        (json!({ "_validate": { "confidence_max": "1" } }), "expected a number from 0 to 1"),
        (json!({ "_validate": { "rationale_min_length": -1 } }), "expected a whole number"),
        (json!({ "_validate": { "risk": "severe" } }), "expected one of: none, low, medium, high"),
        (json!({ "_validate": { "risk": [] } }), "expected one of"),
        (json!({ "_validate": { "risk_max": ["low"] } }), "expected one of"),
        (json!({ "_contains": {} }), "`_contains`: the rule is empty"),
        (json!({ "_contains": { "summary": [] } }), "`_contains.summary`: the rule is empty"),
        (json!({ "$validate": {} }), "`$validate`: the rule is empty"),
        (json!({ "$validate": { " ": {} } }), "expected a path"),
        (json!({ "$validate": { "data": { "confidence_min": 0.8 } } }), "`$validate.data.confidence_min`"),
        (
            json!({ "summary": { "$validate": { "type": "txt" } } }),
            "`summary.$validate`: not a Draft-07 schema",
        ),
    ] {
        let error = Expectation::parse(&expected, ExpectationUse::Golden).unwrap_err();
        assert!(error.contains(words), "{expected}: {error}");
    }
}
