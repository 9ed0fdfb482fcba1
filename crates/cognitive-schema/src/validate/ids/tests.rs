//! References by `$id` per Draft-07, in modules: in one section, across sections and files, and hostile ones.

use serde_json::{Value, json};

use super::*;
use crate::validate::{Contract, Layout, SCHEMA_FILE, Section};

/// Returns whether each value satisfies a standalone schema.
fn verdicts<const N: usize>(schema: &Value, values: [Value; N]) -> [bool; N] {
    let section = Section::standalone(schema).unwrap_or_else(|problems| panic!("{problems:?}"));
    let alone = values.each_ref().map(|value| section.accepts(value));
    // The same as a section of a module, where the file starts above the schema.
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), json!({ "input": {}, "data": schema }))]);
    let contract =
        Contract::compile(&files, &Layout::default()).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(values.each_ref().map(|value| contract.data().accepts(value)), alone, "{schema}");
    alone
}

// SCH-003: `"$ref": "#num"`.
#[test]
fn sch_003_a_plain_name_is_a_target() {
    let named = json!({ "properties": { "n": { "$ref": "#num" } }, "$defs": { "x": { "$id": "#num", "type": "number" } } });
    assert_eq!(verdicts(&named, [json!({ "n": 1 }), json!({ "n": "1" })]), [true, false]);
    let coded = json!({ "$ref": "#a%25b", "$defs": { "a/b": { "$id": "#a%25b", "type": "number" } } });
    assert_eq!(verdicts(&coded, [json!(1), json!("1")]), [true, false]);
}

// SCH-003: absolute identifiers, relative ones below them, and names below those.
#[test]
fn sch_003_identifiers_are_resolved_against_the_nearest_one_above() {
    let embedded = json!({
        "$id": "https://example.com/orders/order.json",
        "properties": {
            "by_address": { "$ref": "https://example.com/orders/line.json" },
            "by_path": { "$ref": "/orders/line.json" },
            "relative": { "$ref": "line.json" },
            "pointer": { "$ref": "line.json#/properties/count" },
            "name": { "$ref": "line.json#count" },
        },
        "$defs": { "deep": { "not": { "$id": "line.json", "type": "object", "required": ["count"], "properties": {
            "count": { "$id": "#count", "type": "integer" },
            "other": { "$ref": "#/properties/count" },
            "whole": { "$ref": "order.json" },
        } } } },
    });
    for name in ["by_address", "by_path", "relative"] {
        let line = |value: Value| json!({ name: value });
        let values =
            [json!({ "count": 1 }), json!({}), json!({ "count": "1" }), json!({ "count": 1, "other": "1" })];
        assert_eq!(verdicts(&embedded, values.map(line)), [true, false, false, false], "{name}");
    }
    for name in ["pointer", "name"] {
        assert_eq!(verdicts(&embedded, [json!({ name: 1 }), json!({ name: "1" })]), [true, false], "{name}");
    }
    let nested = json!({ "relative": { "count": 1, "whole": { "name": "1" } } });
    assert_eq!(verdicts(&embedded, [nested]), [false], "back to the outer one");
}

#[test]
fn sch_003_urns_and_file_addresses_are_identifiers_like_others() {
    let urn = "urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let schema = json!({
        "$id": urn, "type": "object",
        "properties": {
            "pointer": { "$ref": format!("{urn}#/$defs/n") },
            "name": { "$ref": format!("{urn}#n") },
            "whole": { "$ref": urn },
        },
        "$defs": { "n": { "$id": "#n", "type": "integer" } },
    });
    let good = json!({ "pointer": 1, "name": 1, "whole": {} });
    let bad = [json!({ "pointer": "" }), json!({ "name": "" }), json!({ "whole": 1 })];
    assert_eq!(verdicts(&schema, [good]), [true]);
    assert_eq!(verdicts(&schema, bad), [false; 3]);
    let query = json!({ "$id": "urn:example:a?=q=1", "allOf": [{ "$ref": "#/$defs/n" }], "$defs": { "n": { "type": "null" } } });
    assert_eq!(verdicts(&query, [json!(null), json!(1)]), [true, false]);
    let file = json!({ "$id": "file:///c:/x/y.json", "allOf": [{ "$ref": "#/$defs/n" }], "$defs": { "n": { "type": "null" } } });
    assert_eq!(verdicts(&file, [json!(null), json!(1)]), [true, false]);
}

// An `$id` next to a reference changes no base, and data or unknown keywords define no names.
#[test]
fn sch_003_only_schemas_have_names() {
    let beside = json!({
        "$id": "https://example.com/base/",
        "allOf": [{ "$id": "https://example.com/", "$ref": "n.json" }],
        "$defs": {
            "far": { "$id": "https://example.com/n.json", "type": "string" },
            "near": { "$id": "n.json", "type": "number" },
        },
    });
    assert_eq!(verdicts(&beside, [json!(1), json!("1")]), [true, false]);
    let data = json!({
        "$ref": "https://example.com/n",
        "$defs": {
            "listed": { "enum": [{ "$id": "https://example.com/n", "type": "null" }] },
            "unknown": { "not": { "x-other": { "$id": "https://example.com/n", "type": "null" } } },
            "n": { "$id": "https://example.com/n", "type": "number" },
        },
    });
    assert_eq!(verdicts(&data, [json!(1), json!(null)]), [true, false]);
    let branch = json!({ "$ref": "https://example.com/if", "if": { "$id": "https://example.com/if", "type": "integer" } });
    assert_eq!(verdicts(&branch, [json!(1), json!("")]), [true, false]);
}

fn compiled(files: &[(&str, Value)]) -> Result<Contract, Vec<String>> {
    let files = files.iter().map(|(file, schema)| ((*file).to_owned(), schema.clone())).collect();
    Contract::compile(&files, &Layout::default()).map_err(|problems| {
        problems.into_iter().map(|each| format!("{} {}", each.pointer, each.message)).collect()
    })
}

#[test]
fn sch_003_sections_and_files_share_their_names() {
    let schema = json!({
        "$id": "https://cognitive-modules.dev/modules/m/schema.json",
        "input": { "$ref": "types/a.json#n" },
        "data": { "properties": { "a": { "$ref": "https://cognitive-modules.dev/modules/m/schema.json#/$defs/n" },
                                  "b": { "$ref": "https://types.example/a" } } },
        "$defs": { "n": { "$id": "#here", "type": "integer" } },
    });
    let types = json!({ "$id": "https://types.example/a", "type": "string",
                        "$defs": { "n": { "$id": "#n", "$comment": "c" }, "back": { "$ref": "../schema.json#here" } } });
    let contract = compiled(&[("schema.json", schema), ("types/a.json", types)]).unwrap();
    assert!(contract.data().accepts(&json!({ "a": 1, "b": "x" })));
    assert!(!contract.data().accepts(&json!({ "a": "1" })) && !contract.data().accepts(&json!({ "b": 1 })));
    assert_eq!(contract.root()["data"]["properties"]["a"]["$ref"], "#/$defs/n", "later readers see pointers");
}

// An `$id` that is only a label has no effect.
#[test]
fn sch_003_labels_stay_labels() {
    let label = "https://example.com/copied.json";
    let schema = json!({
        "$id": label,
        "input": { "$id": label, "$ref": "#/$defs/n" },
        "data": { "$id": label, "properties": { "n": { "$ref": "#/$defs/n" } } },
        "$defs": { "n": { "type": "integer" } },
    });
    let contract = compiled(&[("schema.json", schema)]).unwrap();
    assert!(contract.data().accepts(&json!({ "n": 1 })) && !contract.data().accepts(&json!({ "n": "1" })));
    let ambiguous =
        json!({ "input": { "$id": label }, "data": { "$id": label }, "$defs": { "x": { "$ref": label } } });
    let found = compiled(&[("schema.json", ambiguous)]).unwrap_err();
    assert_eq!(found, [format!("/$defs/x/$ref `$ref` is never fetched: `{label}`")]);
}

// Nothing is fetched, and a name hides no cycle.
#[test]
fn sch_003_hostile_names_are_refused_like_hostile_pointers() {
    let data = |data: Value| {
        compiled(&[("schema.json", json!({ "input": {}, "data": data }))]).map(|_| ()).unwrap_err()
    };
    let found = data(json!({ "$ref": "#nobody" }));
    assert_eq!(found, ["/data/$ref `$ref` names an `$id` that is not in the module: `#nobody`"]);
    let found = data(json!({ "$id": "https://example.com/a", "allOf": [{ "$ref": "b" }] }));
    assert!(found[0].contains("names a file that is not in the module"), "{found:?}");
    let circle = json!({ "$ref": "#a", "$defs": { "a": { "allOf": [{ "$ref": "urn:x:b" }], "$id": "#a" }, "b": { "$id": "urn:x:b", "$ref": "#a" } } });
    assert!(compiled(&[("schema.json", json!({ "input": {}, "data": circle }))]).is_err());
    let own = json!({ "$id": "urn:x:a", "allOf": [{ "$ref": "urn:x:a" }] });
    assert!(compiled(&[("schema.json", json!({ "input": {}, "data": own }))]).is_err());
    let many: Vec<Value> = (0..5_000).map(|number| json!({ "$id": format!("urn:x:{number}") })).collect();
    let long =
        json!({ "$id": format!("https://example.com/{}/", "a".repeat(900)), "allOf": [{ "anyOf": many }] });
    // Too many branches for the validator; the refusal must come quickly.
    assert!(compiled(&[("schema.json", json!({ "input": {}, "data": long }))]).is_err());
    let mut deep = json!({ "type": "null" });
    for _ in 0..100 {
        deep = json!({ "$id": "a-long-relative-name/", "not": deep });
    }
    let _ = compiled(&[("schema.json", json!({ "input": {}, "data": deep }))]);
}
