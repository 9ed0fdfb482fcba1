//! Rules that the embedded model's grammar replaces by stricter ones, and rules that it drops.

use super::*;
use crate::validate::accepts;

/// The grammar's form of `x`, and the keywords that it cannot keep.
fn narrowed(x: Value) -> (Value, Vec<String>) {
    let lowered = lower(&with_member(x), SchemaTarget::Grammar);
    check(&lowered);
    let gaps = lowered.gaps().map(|gap| format!("{} {}", gap.path, gap.keyword)).collect();
    (data_of(&lowered).pointer("/properties/x").cloned().unwrap_or(Value::Null), gaps)
}

/// Asserts that the narrowed schema and the contract accept `good`, and that the narrowed schema refuses `bad`.
#[track_caller]
fn keeps(x: Value, good: &[Value], bad: &[Value]) {
    let (said, gaps) = narrowed(x.clone());
    assert!(gaps.is_empty(), "{x}: {gaps:?}");
    for value in good {
        assert!(accepts(&x, value), "{x} should accept {value}");
        assert!(accepts(&said, value), "{x} became {said} and refuses {value}");
    }
    for value in bad {
        assert!(!accepts(&said, value), "{x} became {said} and accepts {value}");
    }
}

#[test]
fn d_05_not_is_said_in_other_keywords() {
    keeps(
        json!({ "type": "string", "maxLength": 9, "not": { "const": "" } }),
        &[json!("a")],
        &[json!(""), json!(1)],
    );
    keeps(json!({ "enum": ["a", "b"], "not": { "enum": ["b"] } }), &[json!("a")], &[json!("b")]);
    keeps(
        json!({ "not": { "type": ["string", "null"] } }),
        &[json!(1), json!([])],
        &[json!(""), json!(null)],
    );
    keeps(
        json!({ "type": "integer", "minimum": 0, "maximum": 9, "not": { "enum": [3, 4] } }),
        &[json!(2), json!(5)],
        &[json!(3), json!(4), json!(10)],
    );
    keeps(
        json!({ "type": "object", "properties": { "a": { "const": 1 }, "b": { "const": 1 } },
            "not": { "required": ["a", "b"] } }),
        &[json!({ "a": 1 }), json!({ "b": 1 }), json!({})],
        &[json!({ "a": 1, "b": 1 })],
    );
    keeps(
        json!({ "type": ["boolean", "null"], "not": { "enum": [true, null] } }),
        &[json!(false)],
        &[json!(true), json!(null)],
    );
    let x = json!({ "type": "string", "not": { "pattern": "a" } });
    assert_eq!(narrowed(x).1, ["/properties/data/properties/x not"]);
}

#[test]
fn d_05_conditions_become_choices() {
    let kinds = json!({ "kind": { "enum": ["a", "b"] }, "body": { "const": 1 } });
    let is_a = json!({ "properties": { "kind": { "const": "a" } }, "required": ["kind"] });
    keeps(
        json!({ "type": "object", "properties": kinds, "required": ["kind"], "if": is_a,
            "then": { "required": ["body"] }, "else": { "properties": { "body": false } } }),
        &[json!({ "kind": "a", "body": 1 }), json!({ "kind": "b" })],
        &[json!({ "kind": "a" }), json!({ "kind": "b", "body": 1 })],
    );
    keeps(
        json!({ "type": "object", "properties": kinds, "dependencies": { "kind": ["body"] } }),
        &[json!({}), json!({ "body": 1 }), json!({ "kind": "a", "body": 1 })],
        &[json!({ "kind": "a" })],
    );
    // A condition without an opposite: `then` always applies.
    let x = json!({ "type": "string", "if": { "pattern": "^x" }, "then": { "maxLength": 5 } });
    assert_eq!(narrowed(x), (json!({ "type": "string", "maxLength": 5 }), Vec::new()));
}

#[test]
fn d_05_branches_that_overlap_are_told_apart() {
    let range =
        json!({ "oneOf": [{ "type": "integer", "minimum": 5 }, { "type": "integer", "maximum": 9 }] });
    keeps(range, &[json!(4), json!(10)], &[json!(5), json!(9)]);
    let members = json!({ "a": { "const": 1 }, "b": { "const": 1 } });
    keeps(
        json!({ "type": "object", "properties": members, "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        &[json!({ "a": 1 }), json!({ "b": 1 })],
        &[json!({}), json!({ "a": 1, "b": 1 })],
    );
    let x = json!({ "oneOf": [{ "type": "string", "pattern": "a" }, { "type": "string", "maxLength": 4 }] });
    keeps(x, &[json!("aaaaa")], &[json!("aaaa"), json!("bbbbb")]);
    let x = json!({ "oneOf": [{ "pattern": "a" }, { "pattern": "b" }] });
    assert_eq!(narrowed(x).1, ["/properties/data/properties/x oneOf"]);
}

#[test]
fn d_05_members_are_counted_as_far_as_a_grammar_can() {
    let members = json!({ "a": { "const": 1 }, "b": { "const": 1 }, "c": { "const": 1 } });
    let object =
        |keyword: &str, count: u64| json!({ "type": "object", "properties": members, keyword: count });
    keeps(object("minProperties", 1), &[json!({ "b": 1 })], &[json!({})]);
    keeps(object("minProperties", 2), &[json!({ "a": 1, "b": 1 })], &[json!({ "c": 1 })]);
    keeps(object("maxProperties", 1), &[json!({}), json!({ "c": 1 })], &[json!({ "a": 1, "b": 1 })]);
    let (said, _) = narrowed(object("maxProperties", 2));
    assert_eq!(said["properties"].as_object().unwrap().len(), 2);
    keeps(
        json!({ "type": "object", "additionalProperties": { "type": "boolean" }, "minProperties": 1 }),
        &[json!({ "any": true })],
        &[json!({})],
    );
    let x = json!({ "type": "object", "additionalProperties": { "type": "boolean" }, "minProperties": 2 });
    assert_eq!(narrowed(x).1, ["/properties/data/properties/x minProperties"]);
}

#[test]
fn d_05_names_keep_their_rules() {
    keeps(
        json!({ "type": "object", "additionalProperties": { "const": 1 }, "propertyNames": { "enum": ["a", "b"] } }),
        &[json!({}), json!({ "b": 1 })],
        &[json!({ "c": 1 })],
    );
    keeps(
        json!({ "type": "object", "additionalProperties": { "const": 1 }, "propertyNames": { "pattern": "^[a-d]+$" } }),
        &[json!({ "abc": 1 })],
        &[json!({ "x": 1 })],
    );
    keeps(
        json!({ "type": "object", "properties": { "ab": { "type": "integer" } }, "required": ["ab"],
            "patternProperties": { "^a": { "minimum": 5, "maximum": 9 } } }),
        &[json!({ "ab": 7 })],
        &[json!({ "ab": 4 })],
    );
}

#[test]
fn d_05_lists_keep_places_and_differ() {
    keeps(
        json!({ "type": "array", "items": [{ "const": 1 }, { "const": 2 }], "additionalItems": false, "minItems": 1 }),
        &[json!([1]), json!([1, 2])],
        &[json!([]), json!([2]), json!([1, 2, 3])],
    );
    keeps(
        json!({ "type": "array", "items": { "enum": ["a", "b", "c"] }, "uniqueItems": true, "minItems": 1 }),
        &[json!(["b"]), json!(["a", "c"])],
        &[json!([]), json!(["a", "a"])],
    );
    keeps(
        json!({ "type": "array", "items": { "enum": [1, 2, 3] }, "contains": { "const": 2 } }),
        &[json!([2]), json!([2, 3])],
        &[json!([]), json!([1])],
    );
    let x = json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true });
    assert_eq!(narrowed(x).1, ["/properties/data/properties/x uniqueItems"]);
}

#[test]
fn d_05_a_loss_says_what_it_means_for_an_answer() {
    let effects = |x: Value, target: SchemaTarget| -> Vec<Effect> {
        let lowered = lower(&with_member(x), target);
        let here = lowered.losses.iter().filter(|loss| loss.path == "/properties/data/properties/x");
        here.map(|loss| loss.effect).collect()
    };
    let x = json!({ "type": "string", "maxLength": 9, "format": "color" });
    assert_eq!(effects(x.clone(), SchemaTarget::Grammar), [Effect::Annotation]);
    assert_eq!(effects(x, SchemaTarget::OpenAi), [Effect::Annotation, Effect::Validity]);
    assert_eq!(effects(json!({ "type": "string" }), SchemaTarget::Grammar), [Effect::Tightened]);
    let x = json!({ "type": "string", "maxLength": 9, "pattern": "^(?!x)" });
    assert_eq!(effects(x, SchemaTarget::Grammar), [Effect::Validity]);
}

/// A format that contradicts other rules is dropped, since it validates no answer.
#[test]
fn d_05_a_format_never_makes_an_answer_impossible() {
    let x = json!({ "type": "string", "format": "uuid", "maxLength": 9 });
    assert_eq!(narrowed(x), (json!({ "type": "string", "maxLength": 9 }), Vec::new()));
    let x = json!({ "type": "string", "format": "date", "maxLength": 99 });
    assert_eq!(narrowed(x.clone()).0, x);
}
