//! The answers of a contract about locations: described, open, undescribed, never.

use serde_json::json;

use super::*;

fn files(schema: Value) -> SchemaFiles {
    let types = json!({ "$defs": { "note": { "properties": { "text": { "type": "string" } } } } });
    SchemaFiles::from([("schema.json".to_owned(), schema), ("types.json".to_owned(), types)])
}

/// Follows a path through members and items (`*`), and returns the answer as one word.
fn way(schema: Value, way: &str) -> &'static str {
    let files = files(json!({ "data": schema }));
    let section = SectionRef::parse("#/data");
    let mut place = ContractPlace::from_section(&files, &section).unwrap();
    for step in way.split('.') {
        place = match if step == "*" { place.items() } else { place.member(step) } {
            MemberDescription::Described(next) => next,
            MemberDescription::Open => return "open",
            MemberDescription::Undescribed => return "undescribed",
            MemberDescription::Never => return "never",
        };
    }
    "described"
}

#[test]
fn described_open_undescribed_and_never() {
    let closed = json!({ "type": "object", "additionalProperties": false, "properties": {
        "a": { "type": "string" }, "list": { "type": "array", "items": { "properties": { "x": {} } } } } });
    for (at, expected) in [
        ("a", "described"),
        ("b", "never"),
        ("a.b", "never"),
        ("list.*.x", "described"),
        ("list.*.y", "undescribed"),
        ("list.x", "never"),
        ("a.*", "never"),
    ] {
        assert_eq!(way(closed.clone(), at), expected, "{at}");
    }
    assert_eq!(way(json!({}), "a"), "open");
    assert_eq!(way(json!({ "type": "object" }), "a.b"), "open");
    assert_eq!(way(json!(true), "a"), "open");
    assert_eq!(way(json!(false), "a"), "never");
    assert_eq!(way(json!({ "properties": { "a": {} } }), "b"), "undescribed");
    assert_eq!(way(json!({ "properties": { "a": {} }, "additionalProperties": true }), "b"), "open");
    assert_eq!(way(json!({ "properties": { "a": {} }, "patternProperties": { "^x": {} } }), "b"), "open");
    assert_eq!(way(json!({ "additionalProperties": { "type": "string" } }), "b"), "described");
    assert_eq!(way(json!({ "enum": ["x"] }), "b"), "never");
    assert_eq!(way(json!({ "enum": [{ "b": 1 }] }), "b"), "open");
}

#[test]
fn references_choices_and_conditions_are_followed() {
    let note = json!({ "$ref": "types.json#/$defs/note" });
    assert_eq!(way(note.clone(), "text"), "described");
    assert_eq!(way(note.clone(), "txt"), "undescribed");
    assert_eq!(way(json!({ "$ref": "#/nowhere" }), "txt"), "open");
    let either = json!({ "oneOf": [note, { "type": "string" }] });
    assert_eq!((way(either.clone(), "text"), way(either, "txt")), ("described", "undescribed"));
    // Branches that only require a member leave its description to the whole schema.
    let required =
        json!({ "properties": { "a": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    assert_eq!((way(required.clone(), "a"), way(required, "b")), ("described", "undescribed"));
    let both = json!({ "allOf": [{ "properties": { "a": {} } }, { "properties": { "b": {} } }] });
    assert_eq!(
        (way(both.clone(), "a"), way(both.clone(), "b"), way(both, "c")),
        ("described", "described", "undescribed")
    );
    let when = json!({ "properties": { "k": {} }, "if": {}, "then": { "properties": { "t": {} } } });
    assert_eq!((way(when.clone(), "t"), way(when, "u")), ("described", "undescribed"));
    // A branch without rules may hold anything there.
    let loose = json!({ "anyOf": [{ "properties": { "a": { "type": "string" } } }, {}] });
    assert_eq!(way(loose, "a.b"), "open");
}

#[test]
fn endless_schemas_say_nothing() {
    let endless = json!({ "$ref": "#/data" });
    assert_eq!(way(endless, "a"), "open");
    let branch = json!({ "$ref": "#/data" });
    let many = json!({ "anyOf": [branch, branch, branch], "properties": { "a": {} } });
    assert_eq!(way(many, "b"), "open");
}

#[test]
fn types_values_and_names() {
    let files = files(json!({ "data": {
        "required": ["a", "d"], "allOf": [{ "required": ["b"] }],
        "properties": {
            "a": { "oneOf": [{ "enum": ["x", "y"] }, { "type": "object" }] },
            "b": { "type": ["integer", "null"] }, "d": { "default": 1 }, "l": { "type": "array" },
        } } }));
    let place = ContractPlace::from_section(&files, &SectionRef::parse("#/data")).unwrap();
    assert_eq!(place.required_members(), ["a", "b"]);
    assert_eq!(place.names().into_iter().collect::<Vec<_>>(), ["a", "b", "d", "l"]);
    let member = |name| match place.member(name) {
        MemberDescription::Described(place) => place,
        other => panic!("{other:?}"),
    };
    assert_eq!(member("a").types().words(), "object or string");
    assert_eq!(member("b").types().words(), "number or null");
    assert!(member("a").may_be(&json!("x")) && member("a").may_be(&json!({})));
    assert!(!member("a").may_be(&json!("z")) && !member("b").may_be(&json!("1")));
    assert!(member("b").types().and(JsonTypes::ARRAY).is_empty());
    assert!(member("d").types() == JsonTypes::ALL);
}
