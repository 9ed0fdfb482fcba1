//! Tests the migration of `schema.json` and the files that it names.

use super::*;

/// Migrates a v2.1 module with this contract.
fn contract(schema: Value) -> Value {
    schema_of(&migrated(&with_contract(schema)).0)
}

fn with_contract(schema: Value) -> Files {
    let mut old = v21("name: a\nversion: 1.0.0\nresponsibility: r\n");
    old.insert("schema.json".to_owned(), schema.to_string());
    old
}

fn whats(schema: Value) -> Vec<String> {
    let (_, plan) = migrated(&with_contract(schema));
    plan.changes.into_iter().filter(|change| change.file == "schema.json").map(|change| change.what).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn mig_002_003_sections_are_added_and_renamed_in_place() {
    let new = schema_of(&migrated(&v1(FRONT)).0);
    assert_eq!(keys(&new), ["$schema", "meta", "input", "data", "error", "$defs"]);
    assert_eq!(new["meta"]["type"], "object");
    assert_eq!(new["meta"]["required"], json!(["confidence", "risk", "explain"]));
    assert_eq!(new["meta"]["properties"]["explain"]["maxLength"], 280);
    assert_eq!(new["data"]["required"], json!(["result", "confidence", "rationale"]));
    assert_eq!(new["data"]["properties"]["rationale"]["type"], "string");
    assert_eq!(new["data"]["properties"]["rationale"]["minLength"], 1);
    assert_eq!(new["data"]["properties"]["extensions"], json!({ "$ref": "#/$defs/extensions" }));
    let insights = &new["$defs"]["extensions"]["properties"]["insights"];
    assert_eq!(insights["maxItems"], 5);
    assert_eq!(insights["items"]["required"], json!(["text", "suggested_mapping"]));
}

#[test]
fn mig_003_what_is_there_stays() {
    let data = json!({
        "type": "object", "required": ["rationale"], "additionalProperties": false,
        "properties": { "rationale": { "type": ["string", "null"], "maxLength": 9 }, "extensions": { "type": "array" } },
    });
    let meta = json!({
        "required": ["explain", "risk", "confidence", "own"],
        "properties": { "confidence": { "type": "number" }, "risk": {}, "explain": { "maxLength": 100 }, "own": {} },
    });
    let old = json!({
        "meta": meta, "input": {}, "data": data, "output": { "$ref": "#/data" },
        "error": { "type": "object" }, "$defs": { "extensions": { "type": "array" } },
    });
    assert_eq!(contract(old.clone()), old);
    assert_eq!(whats(old), [""; 0]);
}

#[test]
fn val_011_013_an_incomplete_meta_section_is_completed() {
    let old = json!({
        "input": {}, "output": {},
        "meta": { "required": ["risk"], "properties": { "explain": { "type": "string", "maxLength": 500 }, "x": {} } },
    });
    let new = contract(old.clone());
    assert_eq!(new["meta"]["required"], json!(["risk", "confidence", "explain"]));
    assert_eq!(new["meta"]["properties"]["explain"], json!({ "type": "string", "maxLength": 280 }));
    assert!(new["meta"]["properties"]["x"].is_object());
    let said = whats(old);
    assert!(said.iter().any(|what| what.contains("instead of 500")), "{said:?}");
    for meta in
        [json!(true), json!({}), json!({ "properties": { "explain": true } }), json!({ "$ref": "#/$defs/m" })]
    {
        let new =
            contract(json!({ "input": {}, "output": {}, "meta": meta, "$defs": { "m": { "title": "m" } } }));
        assert_eq!(new["meta"]["properties"]["explain"]["maxLength"], 280);
    }
    let referred = json!({ "allOf": [{ "$ref": "#/$defs/e" }], "maxLength": 280 });
    let meta = json!({ "properties": { "explain": { "$ref": "#/$defs/e" } } });
    let new =
        contract(json!({ "input": {}, "output": {}, "meta": meta, "$defs": { "e": { "type": "string" } } }));
    assert_eq!(new["meta"]["properties"]["explain"], referred);
}

#[test]
fn mig_002_references_follow_the_renamed_section() {
    let new = contract(json!({
        "input": { "properties": { "last": { "$ref": "#/output/properties/items" } } },
        "output": { "properties": { "items": { "items": { "$ref": "#/output" } } } },
    }));
    assert_eq!(new["input"]["properties"]["last"]["$ref"], "#/data/properties/items");
    assert_eq!(new["data"]["properties"]["items"]["items"]["$ref"], "#/data");
}

#[test]
fn references_in_other_files_follow_and_those_files_are_written_too() {
    let mut old = with_contract(json!({
        "input": { "$ref": "types/a.json#/in" },
        "output": { "properties": { "a": { "type": "string" } } },
    }));
    old.insert(
        "types/a.json".to_owned(),
        r#"{"in": {"$ref": "../schema.json#/output/properties/a"}}"#.to_owned(),
    );
    let (new, plan) = migrated(&old);
    assert!(new["types/a.json"].contains("../schema.json#/data/properties/a"));
    assert!(
        plan.changes.iter().any(|change| change.file == "types/a.json" && change.kind == FileChange::Updated)
    );
}

#[test]
fn a_data_section_that_is_a_reference_becomes_a_copy_unless_it_is_complete() {
    let report = json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": false });
    let new = contract(json!({ "input": {}, "output": { "$ref": "#/$defs/r" }, "$defs": { "r": report } }));
    assert_eq!(keys(&new["data"]["properties"]), ["a", "rationale", "extensions"]);
    assert_eq!(new["$defs"]["r"], report, "others may refer to it");

    let complete = json!({ "required": ["rationale"], "properties": { "rationale": { "type": "string" } } });
    let old = json!({ "input": {}, "data": { "$ref": "#/$defs/r" }, "$defs": { "r": complete } });
    assert_eq!(contract(old)["data"], json!({ "$ref": "#/$defs/r" }));
    // Strict validation follows one reference only, so a longer chain is resolved.
    let chain = json!({ "input": {}, "data": { "$ref": "#/$defs/q" }, "$defs": { "q": { "$ref": "#/$defs/r" }, "r": complete } });
    assert!(contract(chain)["data"]["properties"]["rationale"].is_object());
}

#[test]
fn a_data_section_in_another_file_is_completed_there() {
    let mut old = with_contract(json!({ "input": {}, "output": { "$ref": "types/b.json" } }));
    old.insert("types/b.json".to_owned(), r#"{"properties": {"b": {}}}"#.to_owned());
    let (new, plan) = migrated(&old);
    assert_eq!(schema_of(&new)["data"]["allOf"], json!([{ "$ref": "types/b.json" }]));
    assert!(!plan.files.contains_key("types/b.json"));

    let manifest = "name: a\nversion: 1.0.0\nresponsibility: r\nio: {data: types/b.json}\n";
    old.insert("module.yaml".to_owned(), manifest.to_owned());
    old.insert("schema.json".to_owned(), json!({ "input": {}, "output": { "title": "unused" } }).to_string());
    // Strict validation looks for `data` in `schema.json` only, so this test checks the section itself.
    let plan = super::super::plan(&folder(&old)).unwrap();
    let data = cognitive_contract::json::parse(&plan.files["types/b.json"]).unwrap();
    assert_eq!(data["required"], json!(["rationale"]));
    assert_eq!(data["properties"]["extensions"], json!({ "$ref": "../schema.json#/$defs/extensions" }));
    assert!(
        cognitive_contract::json::parse(&plan.files["schema.json"]).unwrap()["output"].is_object(),
        "not the data section"
    );
}

#[test]
fn val_014_open_data_sections_are_closed_to_answers_without_rationale() {
    for output in [
        json!(true),
        json!({}),
        json!({ "properties": { "rationale": true } }),
        json!({ "properties": { "rationale": { "title": "t" } } }),
    ] {
        let new = contract(json!({ "input": {}, "output": output }));
        assert_eq!(new["data"]["properties"]["rationale"]["type"], "string", "{output}");
        assert_eq!(new["data"]["required"], json!(["rationale"]), "{output}");
    }
}

#[test]
fn what_only_the_author_can_decide_is_reported() {
    for (output, place) in [
        (json!({ "type": "array" }), "/output/type"),
        (json!(false), "/output"),
        (json!({ "properties": { "rationale": { "type": "object" } } }), "/output/properties/rationale/type"),
        (json!({ "properties": { "rationale": false } }), "/output/properties/rationale"),
    ] {
        let found = refused(&with_contract(json!({ "input": {}, "output": output })));
        assert_eq!(found[0].at, FindingLocation::Value(place.to_owned()), "{output}");
        assert!(found[0].rule.starts_with("migrate/"), "{output}");
    }
}

#[test]
fn a_definition_of_that_name_about_something_else_is_not_used() {
    let old = json!({ "input": {}, "output": {}, "$defs": { "extensions": { "type": "array" } } });
    let new = contract(old);
    assert_eq!(new["$defs"]["extensions"], json!({ "type": "array" }));
    assert_eq!(new["data"]["properties"]["extensions"]["properties"]["insights"]["maxItems"], 5);
}

#[test]
fn a_section_that_alias_or_io_choose_is_the_one_that_is_completed() {
    let schema = json!({ "input": {}, "data": { "title": "d" }, "output": { "title": "o" }, "other": { "title": "x" } });
    for (extra, section) in [
        ("", "/data"),
        ("compat: {schema_output_alias: output}\n", "/output"),
        ("io: {data: '#/other'}\n", "/other"),
        ("io: {output: '#/output'}\n", "/output"),
    ] {
        let mut old = with_contract(schema.clone());
        old.insert("module.yaml".to_owned(), format!("name: a\nversion: 1.0.0\nresponsibility: r\n{extra}"));
        let new = schema_of(&migrated(&old).0);
        for name in ["/data", "/output", "/other"] {
            let completed = new.pointer(name).unwrap().get("required").is_some();
            assert_eq!(completed, name == section, "{extra} {name}");
        }
    }
}

#[test]
fn the_look_of_the_file_stays_and_repeated_members_are_mentioned() {
    let mut old = v21("name: a\nversion: 1.0.0\nresponsibility: r\n");
    old.insert(
        "schema.json".to_owned(),
        "{\r\n\t\"input\": {},\r\n\t\"input\": {\"z\": 1.0},\r\n\t\"output\": {}\r\n}".to_owned(),
    );
    let (new, plan) = migrated(&old);
    assert!(new["schema.json"].contains("\r\n\t\"input\": {\r\n\t\t\"z\": 1.0\r\n\t},\r\n"));
    assert!(plan.changes.iter().any(|change| change.what.starts_with("`/input` was written twice")));
}
