//! Single rules: each test lowers one member and checks the result and its losses.

use super::*;

#[test]
fn d_05_lengths_are_dropped_where_the_service_refuses_them() {
    let x = json!({ "type": "string", "minLength": 1, "maxLength": 9, "description": "d" });
    let (said, losses) = lowered_member(x.clone(), SchemaTarget::Anthropic);
    assert_eq!(said, json!({ "type": "string", "description": "d" }));
    assert_eq!(losses, ["minLength dropped", "maxLength dropped"]);
    let (said, losses) = lowered_member(x.clone(), SchemaTarget::Ollama);
    assert_eq!(said, json!({ "type": "string", "description": "d", "minLength": 1, "maxLength": 9 }));
    assert!(losses.is_empty());
    assert_eq!(
        lowered_member(x, SchemaTarget::Grammar).0,
        json!({ "type": "string", "minLength": 1, "maxLength": 9 })
    );
}

#[test]
fn d_05_llama_cpp_refuses_long_repetitions_and_counts_one_rule_per_string() {
    let (said, losses) = lowered_member(json!({ "type": "string", "maxLength": 5000 }), SchemaTarget::Ollama);
    assert_eq!((said, losses), (json!({ "type": "string" }), vec!["maxLength dropped".to_owned()]));
    let (said, losses) =
        lowered_member(json!({ "type": "string", "pattern": "^a+$", "maxLength": 5 }), SchemaTarget::Ollama);
    assert_eq!(
        (said, losses),
        (json!({ "type": "string", "pattern": "^a+$" }), vec!["maxLength dropped".to_owned()])
    );
    let (said, _) = lowered_member(
        json!({ "type": "array", "items": { "type": "string" }, "maxItems": 900 }),
        SchemaTarget::Ollama,
    );
    assert_eq!(said, json!({ "type": "array", "items": { "type": "string" } }));
}

#[test]
fn d_05_ranges_stay_where_they_are_understood() {
    let x = json!({ "type": "number", "minimum": 0, "exclusiveMaximum": 1.5 });
    assert_eq!(lowered_member(x.clone(), SchemaTarget::OpenAi), (x.clone(), Vec::new()));
    let (said, losses) = lowered_member(x.clone(), SchemaTarget::Anthropic);
    assert_eq!((said, losses.len()), (json!({ "type": "number" }), 2));
    let (said, losses) = lowered_member(x.clone(), SchemaTarget::Gemini);
    assert_eq!(said, json!({ "type": "number", "minimum": 0, "maximum": 1.5 }));
    assert_eq!(losses, ["exclusiveMaximum weakened: the bound itself is allowed, as `maximum`"]);
    let (said, losses) = lowered_member(x, SchemaTarget::Ollama);
    assert_eq!((said, losses.len()), (json!({ "type": "number" }), 2));
}

#[test]
fn d_05_bounds_of_integers_are_said_inclusively() {
    let x = json!({ "type": "integer", "exclusiveMinimum": 0, "maximum": 9.5 });
    let expected = json!({ "type": "integer", "minimum": 1, "maximum": 9 });
    for target in [SchemaTarget::OpenAi, SchemaTarget::Gemini, SchemaTarget::Ollama, SchemaTarget::Grammar] {
        assert_eq!(lowered_member(x.clone(), target), (expected.clone(), Vec::new()), "{target:?}");
    }
}

#[test]
fn d_05_a_list_needs_at_least_as_many_items_as_can_be_said() {
    let x = json!({ "type": "array", "items": { "type": "string" }, "minItems": 4, "maxItems": 4 });
    let (said, losses) = lowered_member(x.clone(), SchemaTarget::Anthropic);
    assert_eq!(said, json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }));
    assert_eq!(losses, ["minItems weakened: 1 instead of 4", "maxItems dropped"]);
    assert_eq!(lowered_member(x.clone(), SchemaTarget::OpenAi), (x, Vec::new()));
}

#[test]
fn d_05_formats_and_patterns_go_where_they_are_unknown() {
    let x = json!({ "type": "string", "format": "uri" });
    assert_eq!(lowered_member(x.clone(), SchemaTarget::Anthropic), (x.clone(), Vec::new()));
    assert_eq!(
        lowered_member(x, SchemaTarget::OpenAi),
        (json!({ "type": "string" }), vec!["format dropped".to_owned()])
    );
    let x = json!({ "type": "string", "pattern": "(?=a)" });
    for target in SchemaTarget::ALL {
        assert!(lowered_member(x.clone(), target).1.contains(&"pattern dropped".to_owned()), "{target:?}");
    }
}

#[test]
fn d_05_extensible_enums_become_a_choice() {
    let x = json!({ "oneOf": [{ "type": "string", "enum": ["a", "b"] }, {
        "type": "object", "required": ["custom"], "additionalProperties": false,
        "properties": { "custom": {}, "reason": { "type": "string" } },
    }] });
    for target in SchemaTarget::ALL {
        let (said, losses) = lowered_member(x.clone(), target);
        assert_eq!(said["anyOf"][0], json!({ "type": "string", "enum": ["a", "b"] }), "{target:?}");
        assert_eq!(said["anyOf"][1]["required"], json!(["custom", "reason"]), "{target:?}");
        assert!(!losses.iter().any(|loss| loss.starts_with("oneOf")), "{losses:?}");
    }
    let custom = &lowered_member(x, SchemaTarget::Ollama).0["anyOf"][1]["properties"]["custom"];
    assert_eq!(custom, &json!({ "type": "string", "minLength": 1, "maxLength": 32 }));
}

#[test]
fn d_05_strict_enums_have_no_custom_form() {
    let pattern = json!({ "oneOf": [{ "type": "string", "enum": ["a", "b"] }, {
        "type": "object", "required": ["custom", "reason"], "properties": { "custom": {}, "reason": {} },
    }] });
    let schema = json!({ "input": {}, "data": { "type": "object", "properties": { "x": pattern }, "required": ["x"] } });
    let module = module(json!({ "enums": { "strategy": "strict" } }), schema);
    let data = data_of(&lower(&module, SchemaTarget::OpenAi));
    assert_eq!(data["properties"]["x"], json!({ "type": "string", "enum": ["a", "b"] }));
}

#[test]
fn d_05_exactly_one_becomes_at_least_one() {
    let x = json!({ "oneOf": [{ "type": "integer", "minimum": 5 }, { "type": "integer", "maximum": 9 }] });
    let (said, losses) = lowered_member(x, SchemaTarget::OpenAi);
    assert_eq!(
        said,
        json!({ "anyOf": [{ "type": "integer", "minimum": 5 }, { "type": "integer", "maximum": 9 }] })
    );
    assert_eq!(losses, ["oneOf weakened: at least one branch instead of exactly one"]);
}

#[test]
fn d_05_listed_values_get_the_type_that_goes_with_them() {
    let (said, losses) = lowered_member(json!({ "enum": ["a", 1, null] }), SchemaTarget::Gemini);
    assert_eq!(
        said,
        json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "integer", "enum": [1] }, { "type": "null" }] })
    );
    assert!(losses.is_empty());
    assert_eq!(
        lowered_member(json!({ "const": "a" }), SchemaTarget::OpenAi).0,
        json!({ "type": "string", "const": "a" })
    );
    let (said, losses) = lowered_member(json!({ "const": true }), SchemaTarget::Gemini);
    assert_eq!((said, losses), (json!({ "type": "boolean" }), vec!["const dropped".to_owned()]));
    assert_eq!(
        lowered_member(json!({ "enum": [{ "a": 1 }] }), SchemaTarget::Anthropic).1.first().unwrap(),
        "enum dropped"
    );
    assert_eq!(
        lowered_member(json!({ "enum": [{ "a": 1 }] }), SchemaTarget::Ollama).0,
        json!({ "type": "object", "const": { "a": 1 } })
    );
}

#[test]
fn d_05_type_lists_are_split_where_a_type_has_rules() {
    assert_eq!(
        lowered_member(json!({ "type": ["string", "null"] }), SchemaTarget::Gemini).0,
        json!({ "type": ["string", "null"] })
    );
    let x = json!({ "type": ["array", "integer"], "items": { "type": "string" }, "minimum": 3 });
    let expected = json!({ "anyOf": [{ "type": "array", "items": { "type": "string" } }, { "type": "integer", "minimum": 3 }] });
    assert_eq!(lowered_member(x, SchemaTarget::OpenAi).0, expected);
}

#[test]
fn d_05_keywords_that_no_target_knows_are_noted_once() {
    let x = json!({
        "type": "array", "items": { "type": "string" }, "maxItems": 3, "uniqueItems": true, "contains": { "const": "a" },
        "not": { "maxItems": 0 }, "if": { "minItems": 2 }, "then": { "maxItems": 2 },
    });
    for target in [SchemaTarget::OpenAi, SchemaTarget::Gemini, SchemaTarget::Ollama] {
        let (said, losses) = lowered_member(x.clone(), target);
        assert_eq!(said, json!({ "type": "array", "items": { "type": "string" }, "maxItems": 3 }));
        assert_eq!(
            losses,
            ["uniqueItems dropped", "contains dropped", "not dropped", "if dropped", "then dropped"]
        );
    }
    assert_eq!(
        lowered_member(json!({ "type": "boolean", "uniqueItems": false, "then": {} }), SchemaTarget::OpenAi)
            .1
            .len(),
        0
    );
}

#[test]
fn d_05_all_of_is_joined() {
    let x =
        json!({ "description": "d", "allOf": [{ "type": "string", "pattern": "^a" }, { "pattern": "b$" }] });
    let (said, losses) = lowered_member(x, SchemaTarget::OpenAi);
    assert_eq!(said, json!({ "type": "string", "description": "d", "pattern": "^a" }));
    assert_eq!(losses, ["pattern dropped"]);
}

#[test]
fn d_05_anything_is_said_as_types() {
    for x in [json!(true), json!({}), json!({ "description": "d" })] {
        let all = json!(["object", "array", "string", "number", "boolean", "null"]);
        assert_eq!(lowered_member(x.clone(), SchemaTarget::Ollama).0["type"], all);
        let (said, losses) = lowered_member(x, SchemaTarget::OpenAi);
        assert_eq!(said["type"], json!(["string", "number", "boolean", "null"]));
        assert_eq!(losses, ["type tightened: a plain value; a list or an object would need a schema"]);
    }
}

#[test]
fn d_05_a_missing_type_is_read_from_the_keywords() {
    let (said, losses) = lowered_member(json!({ "items": { "type": "string" } }), SchemaTarget::Gemini);
    assert_eq!(said, json!({ "type": "array", "items": { "type": "string" } }));
    assert_eq!(losses, ["type tightened: `array`, because the other keywords are about that"]);
}

#[test]
fn d_05_tuples_become_lists() {
    let x = json!({ "type": "array", "items": [{ "type": "string" }, { "type": "integer" }], "additionalItems": false });
    let (said, losses) = lowered_member(x, SchemaTarget::OpenAi);
    assert_eq!(said, json!({ "type": "array", "items": { "type": ["string", "integer"] }, "maxItems": 2 }));
    assert_eq!(losses, ["items weakened: which schema holds at which place of the list"]);
}

#[test]
fn d_05_references_to_other_files_are_open_and_noted() {
    let data = json!({ "type": "object", "properties": { "x": { "$ref": "types.json#/a" } } });
    let files = SchemaFiles::from([
        (SCHEMA_FILE.to_owned(), json!({ "input": {}, "data": data })),
        ("types.json".to_owned(), json!({ "a": { "type": "string" } })),
    ]);
    let lowered = lower(&compile(rules(&json!({})), &files).unwrap(), SchemaTarget::Ollama);
    let loss = lowered.losses.iter().find(|loss| loss.keyword == "$ref").unwrap();
    assert_eq!(loss.path, "/properties/data/properties/x");
    assert_eq!(data_of(&lowered)["properties"]["x"]["type"].as_array().unwrap().len(), 6);
}

#[test]
fn d_05_too_many_listed_values_are_left_to_validation() {
    let many: Vec<String> = (0..1_001).map(|index| format!("v{index}")).collect();
    let (said, losses) = lowered_member(json!({ "type": "string", "enum": many }), SchemaTarget::OpenAi);
    assert_eq!((said, losses), (json!({ "type": "string" }), vec!["enum dropped".to_owned()]));
    let long: Vec<String> = (0..300).map(|index| format!("{index:060}")).collect();
    assert_eq!(lowered_member(json!({ "enum": long }), SchemaTarget::OpenAi).1, ["enum dropped"]);
    assert!(lowered_member(json!({ "enum": long }), SchemaTarget::Anthropic).1.is_empty());
}
