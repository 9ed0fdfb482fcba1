//! Compilation of `schema.json` into a contract. Quotes the requirement ids that each case shows.

use serde_json::{Value, json};

use super::*;

fn files(schema: Value) -> SchemaFiles {
    SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)])
}

fn compile(schema: Value) -> Result<Contract, Vec<SchemaProblem>> {
    Contract::compile(&files(schema), &Layout::default())
}

fn with_data(data: Value) -> Contract {
    compile(json!({ "input": {}, "data": data })).unwrap()
}

fn report(section: &Section, value: &Value) -> Vec<String> {
    let found = section.violations(value);
    found.iter().map(|each| format!("{} {}: {}", each.path, each.rule, each.message)).collect()
}

#[test]
fn sch_001_002_four_sections_judge_four_things() {
    let contract = compile(json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "input": { "required": ["code"] }, "data": { "required": ["rationale"] },
        "meta": { "required": ["team"] }, "error": { "required": ["code"] }, "$defs": {},
    }))
    .unwrap();
    assert!(!contract.input().accepts(&json!({})));
    assert!(!contract.data().accepts(&json!({})));
    assert!(!contract.meta().unwrap().accepts(&json!({})));
    assert!(!contract.error().unwrap().accepts(&json!({})));
}

#[test]
fn sch_003_015_labels_and_identifiers_choose_nothing() {
    for label in [
        "https://cognitive-modules.dev/schema/v2.2.json",
        "https://json-schema.org/draft/3000-01/schema",
        "junk",
    ] {
        let contract = compile(json!({
            "$schema": label, "$id": "https://cognitive-modules.dev/modules/x/schema.json",
            "input": { "$schema": label },
            // `dependentRequired` is a later keyword and has no meaning under Draft-07.
            "data": { "dependentRequired": { "a": ["b"] }, "properties": { "a": { "$ref": "#/$defs/A" } } },
            "$defs": { "A": { "type": "string" } },
        }))
        .unwrap();
        assert!(contract.data().accepts(&json!({ "a": "x" })));
        assert!(!contract.data().accepts(&json!({ "a": 1 })));
    }
}

#[test]
fn sch_004_root_definitions_are_reached_from_every_section() {
    let contract = compile(json!({
        "input": { "properties": { "images": { "items": { "$ref": "#/$defs/Media" } } } },
        "data": { "properties": { "media": { "$ref": "#/$defs/Media" } } },
        "$defs": { "Media": { "type": "object", "required": ["type"] } },
    }))
    .unwrap();
    assert_eq!(
        report(contract.input(), &json!({ "images": [{}] })),
        ["/images/0/type required: required member `type` is missing"]
    );
    assert_eq!(report(contract.data(), &json!({ "media": 3 })), ["/media type: expected object"]);
}

#[test]
fn sch_005_output_stands_in_for_data_and_the_alias_chooses() {
    let only_output = compile(json!({ "input": {}, "output": { "required": ["a"] } })).unwrap();
    assert!(!only_output.data().accepts(&json!({})));
    let both = json!({ "input": {}, "output": { "required": ["a"] }, "data": { "required": ["b"] } });
    assert!(compile(both.clone()).unwrap().data().accepts(&json!({ "b": 1 })));
    let layout = Layout { prefer_output: true, ..Layout::default() };
    assert!(Contract::compile(&files(both), &layout).unwrap().data().accepts(&json!({ "a": 1 })));
}

#[test]
fn man_009_io_chooses_where_a_section_lives() {
    let schema = json!({ "input": {}, "payload": { "required": ["a"] }, "data": {} });
    let layout = Layout { data: Some(SectionRef::parse("./schema.json#/payload")), ..Layout::default() };
    let contract = Contract::compile(&files(schema), &layout).unwrap();
    assert!(!contract.data().accepts(&json!({})));
}

#[test]
fn man_009_io_that_points_to_nothing_is_said_for_every_section() {
    for name in ["input", "data", "meta", "error"] {
        let nowhere = Some(SectionRef::parse("./schema.json#/nowhere"));
        let mut layout = Layout::default();
        match name {
            "input" => layout.input = nowhere,
            "data" => layout.data = nowhere,
            "meta" => layout.meta = nowhere,
            _ => layout.error = nowhere,
        }
        let problems = Contract::compile(&files(json!({ "input": {}, "data": {} })), &layout).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].message, format!("`io.{name}` points to nothing: `schema.json#/nowhere`"));
    }
}

#[test]
fn enum_001_003_the_pattern_is_recognised_through_references() {
    let schema = json!({
        "input": {}, "data": { "properties": { "k": { "oneOf": [{ "$ref": "#/$defs/kinds" }, { "$ref": "#/$defs/own" }] } } },
        "$defs": {
            "kinds": { "type": "string", "enum": ["a"] },
            "own": { "type": "object", "properties": { "custom": { "type": "string" } } },
        },
    });
    let compiled = |strict_enums| {
        Contract::compile(&files(schema.clone()), &Layout { strict_enums, ..Layout::default() }).unwrap()
    };
    let open = compiled(false);
    assert!(open.data().accepts(&json!({ "k": { "custom": "c", "reason": "r" } })));
    assert!(!open.data().accepts(&json!({ "k": { "custom": "", "reason": "r" } })));
    assert!(!open.data().accepts(&json!({ "k": { "custom": "c" } })));
    let strict = compiled(true);
    assert_eq!(strict.refused_custom_values(&json!({ "k": { "custom": "c", "reason": "r" } })).len(), 1);
}

#[test]
fn enum_001_the_pattern_is_found_beside_an_unrelated_one_of() {
    let custom =
        json!({ "type": "object", "required": ["custom"], "properties": { "custom": { "type": "string" } } });
    let data = json!({ "properties": { "kind": { "oneOf": [{}], "anyOf": [{ "type": "string", "enum": ["a"] }, custom] } } });
    let layout = Layout { strict_enums: true, ..Layout::default() };
    let contract = Contract::compile(&files(json!({ "input": {}, "data": data })), &layout).unwrap();
    let value = json!({ "kind": { "custom": "c", "reason": "r" } });
    assert!(contract.data().accepts(&value));
    assert_eq!(contract.refused_custom_values(&value).len(), 1);
}

#[test]
fn sch_008_meta_and_error_may_be_missing_but_not_input_or_data() {
    let contract = compile(json!({ "input": {}, "output": {} })).unwrap();
    assert!(contract.meta().is_none() && contract.error().is_none());
    let problems = compile(json!({ "meta": {} })).unwrap_err();
    assert_eq!(problems.len(), 2);
    assert_eq!(problems[1].message, "section `data` or `output` is missing");
}

#[test]
fn sch_010_another_file_of_the_module_can_be_referenced() {
    let mut files = files(json!({ "input": { "$ref": "types.json#/code" }, "data": {} }));
    let problems = Contract::compile(&files, &Layout::default()).unwrap_err();
    assert_eq!(problems[0].message, "`$ref` names a file that is not in the module: `types.json`");
    files.insert(
        "types.json".to_owned(),
        json!({ "code": { "$ref": "#/deep" }, "deep": { "type": "string" } }),
    );
    let contract = Contract::compile(&files, &Layout::default()).unwrap();
    assert!(contract.input().accepts(&json!("x")));
    assert!(!contract.input().accepts(&json!(1)));
}

#[test]
fn sch_010_nothing_is_ever_fetched() {
    let problems =
        compile(json!({ "input": { "$ref": "https://example.com/a.json" }, "data": {} })).unwrap_err();
    assert_eq!(problems[0].pointer, "/input/$ref");
    assert!(problems[0].message.contains("never fetched"));
}

#[test]
fn sch_011_format_and_encoding_are_annotations() {
    let contract = with_data(json!({ "properties": {
        "a": { "format": "uri" }, "b": { "contentEncoding": "base64" }, "c": { "contentMediaType": "application/json" },
    } }));
    assert!(contract.data().accepts(&json!({ "a": "not a uri", "b": "!!", "c": "{" })));
}

#[test]
fn sch_012_a_section_that_is_no_schema_is_named() {
    let problems =
        compile(json!({ "input": {}, "data": { "properties": { "a": { "type": "strng" } } } })).unwrap_err();
    assert_eq!(problems[0].pointer, "/data/properties/a/type");
    assert!(compile(json!([])).is_err());
    assert!(compile(json!({ "input": {}, "data": { "pattern": "(" } })).is_err());
}

#[test]
fn sch_014_a_module_without_media_definitions_compiles() {
    assert!(compile(json!({ "input": { "type": "object" }, "data": {} })).is_ok());
}

#[test]
fn all_findings_come_at_once_with_pointer_rule_and_expectation() {
    let contract = with_data(json!({
        "required": ["a"], "additionalProperties": false,
        "properties": { "a": {}, "size": { "enum": ["s", "m"] }, "n": { "type": "integer", "maximum": 3 } },
    }));
    let mut found = report(contract.data(), &json!({ "size": "x", "n": 7, "extra/member": 1 }));
    found.sort();
    assert_eq!(
        found,
        [
            "/a required: required member `a` is missing",
            "/extra~1member additionalProperties: no member `extra/member` is expected here",
            "/n maximum: expected at most 3",
            "/size enum: expected one of `s`, `m`",
        ]
    );
}

#[test]
fn of_several_forms_the_nearest_one_explains_the_failure() {
    let contract = with_data(json!({ "properties": { "media": { "oneOf": [
        { "properties": { "type": { "const": "url" }, "url": { "type": "string" } }, "required": ["type", "url"] },
        { "properties": { "type": { "const": "file" }, "path": { "type": "string" } }, "required": ["type", "path"] },
    ] } } }));
    assert_eq!(
        report(contract.data(), &json!({ "media": { "type": "file" } })),
        ["/media/path required: required member `path` is missing"]
    );
}

fn extensible(strict_enums: bool, tag: &str) -> Contract {
    let data = json!({ "properties": { "kind": { "oneOf": [
        { "type": "string", "enum": ["a", "b"] },
        { "type": "object", "required": [tag], "properties": { (tag): { "type": "string" } } },
    ] } } });
    let layout = Layout { strict_enums, unknown_tag: tag.to_owned(), ..Layout::default() };
    Contract::compile(&files(json!({ "input": {}, "data": data })), &layout).unwrap()
}

#[test]
fn enum_002_003_the_custom_form_is_bounded_even_where_the_schema_is_lax() {
    let contract = extensible(false, "custom");
    let accepts = |kind: Value| contract.data().accepts(&json!({ "kind": kind }));
    assert!(accepts(json!("a")));
    assert!(accepts(json!({ "custom": "c", "reason": "r" })));
    assert!(!accepts(json!({ "custom": "", "reason": "r" })));
    assert!(!accepts(json!({ "custom": "x".repeat(33), "reason": "r" })));
    assert!(!accepts(json!({ "custom": "c" })));
}

#[test]
fn enum_001_strict_refuses_what_the_schema_would_admit() {
    let contract = extensible(true, "custom");
    let custom = json!({ "kind": { "custom": "c", "reason": "r" } });
    assert!(contract.data().accepts(&custom));
    assert_eq!(contract.refused_custom_values(&custom).len(), 1);
    assert!(contract.refused_custom_values(&json!({ "kind": "a" })).is_empty());
    assert!(extensible(false, "custom").refused_custom_values(&custom).is_empty());
}

#[test]
fn enum_004_008_a_plain_enum_is_closed_and_a_bare_string_is_never_custom() {
    let contract = with_data(json!({ "properties": { "scope": { "enum": ["local"] } } }));
    assert!(!contract.data().accepts(&json!({ "scope": { "custom": "x", "reason": "r" } })));
    assert!(!extensible(false, "custom").data().accepts(&json!({ "kind": "c" })));
}

#[test]
fn enum_006_the_tag_can_be_renamed() {
    let contract = extensible(false, "other");
    assert!(contract.data().accepts(&json!({ "kind": { "other": "c", "reason": "r" } })));
}

#[test]
fn a_slow_pattern_ends_in_a_finding() {
    let contract = with_data(json!({ "properties": { "a": { "pattern": "^(a+)+(?=b)$" } } }));
    let value = json!({ "a": "a".repeat(200) });
    assert_eq!(report(contract.data(), &value).len(), 1);
}
