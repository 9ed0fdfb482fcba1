//! Tests the findings of `validate`. Each case names the requirement ids that it shows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

mod hostile;
mod published;

fn good() -> (Value, Value, &'static str) {
    let manifest = json!({
        "name": "m", "version": "1.0.0", "responsibility": "r", "tier": "decision", "excludes": ["x"],
        "overflow": { "enabled": true }, "enums": { "strategy": "extensible" },
    });
    let schema = json!({
        "meta": {
            "required": ["confidence", "risk", "explain"],
            "properties": { "explain": { "type": "string", "maxLength": 280 } },
        },
        "input": { "type": "object", "required": ["q"] },
        "data": { "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
        "$defs": { "extensions": {} },
    });
    (manifest, schema, "Answer in the envelope.")
}

/// The files of a module.
fn module(manifest: &Value, schema: &str, prompt: &str) -> BTreeMap<String, Vec<u8>> {
    let files = [
        ("module.yaml", manifest.to_string()),
        ("schema.json", schema.to_owned()),
        ("prompt.md", prompt.to_owned()),
    ];
    files.map(|(path, text)| (path.to_owned(), text.into_bytes())).into()
}

fn check(manifest: &Value, schema: &Value, prompt: &str, extra: &[(&str, &str)], mode: Mode) -> Vec<String> {
    let mut files = module(manifest, &schema.to_string(), prompt);
    files.extend(extra.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())));
    rules(&Folder::memory("m", files), mode)
}

fn rules(folder: &Folder, mode: Mode) -> Vec<String> {
    let report = validate(folder, mode);
    report.findings.iter().map(|each| format!("{:?} {}", each.severity, each.rule)).collect()
}

/// Changes the valid module and returns the findings.
fn after(mode: Mode, change: impl FnOnce(&mut Value, &mut Value)) -> Vec<String> {
    let (mut manifest, mut schema, prompt) = good();
    change(&mut manifest, &mut schema);
    check(&manifest, &schema, prompt, &[], mode)
}

fn remove(value: &mut Value, key: &str) {
    value.as_object_mut().unwrap().shift_remove(key);
}

#[test]
fn val_001_002_a_good_module_has_no_findings_in_either_mode() {
    assert_eq!(after(Mode::Standard, |_, _| {}), [""; 0]);
    assert_eq!(after(Mode::Strict, |_, _| {}), [""; 0]);
}

#[test]
fn fmt_001_each_missing_file_is_named() {
    let (manifest, schema, prompt) = good();
    for gone in ["module.yaml", "schema.json", "prompt.md"] {
        let mut files = module(&manifest, &schema.to_string(), prompt);
        files.remove(gone);
        let report = validate(&Folder::memory("m", files), Mode::Standard);
        assert!(
            report.findings.iter().any(|each| each.file == gone && each.rule == "files/missing"),
            "{gone}"
        );
    }
}

#[test]
fn val_002_identity_is_required() {
    for key in ["name", "version", "responsibility"] {
        assert_eq!(
            after(Mode::Standard, |manifest, _| remove(manifest, key)),
            ["Error manifest/required"],
            "{key}"
        );
    }
    assert_eq!(after(Mode::Standard, |_, schema| remove(schema, "input")), ["Error schema/contract"]);
}

#[test]
fn val_003_excludes_are_a_warning_in_v2_and_an_error_in_v1() {
    assert_eq!(
        after(Mode::Standard, |manifest, _| manifest["excludes"] = json!([])),
        ["Warning manifest/excludes"]
    );
    let v1 = |front: &str| {
        let files = BTreeMap::from([
            ("MODULE.md".to_owned(), format!("---\n{front}---\nDo it.\n").into_bytes()),
            ("schema.json".to_owned(), br#"{"input": {}, "output": {}}"#.to_vec()),
        ]);
        Folder::memory("a", files)
    };
    let front = "name: a\nversion: 1.0.0\nresponsibility: r\n";
    assert_eq!(rules(&v1(front), Mode::Standard), ["Error manifest/excludes", "Warning format/old"]);
    assert_eq!(rules(&v1(&format!("{front}excludes: [x]\n")), Mode::Standard), ["Warning format/old"]);
    // VAL-016
    assert_eq!(rules(&v1(&format!("{front}excludes: [x]\n")), Mode::Strict), ["Error format/old"]);
}

#[test]
fn val_004_010_tier_is_a_hint_or_an_error() {
    assert_eq!(after(Mode::Standard, |manifest, _| remove(manifest, "tier")), ["Warning manifest/tier"]);
    assert_eq!(after(Mode::Strict, |manifest, _| remove(manifest, "tier")), ["Error manifest/tier"]);
    for block in ["overflow", "enums"] {
        assert_eq!(after(Mode::Strict, |manifest, _| remove(manifest, block)), ["Error manifest/block"]);
        assert_eq!(after(Mode::Standard, |manifest, _| remove(manifest, block)), [""; 0]);
    }
}

#[test]
fn val_011_013_the_meta_section_is_complete_and_bounded() {
    assert_eq!(after(Mode::Strict, |_, schema| remove(schema, "meta")), ["Error schema/meta"]);
    assert_eq!(
        after(Mode::Strict, |_, schema| schema["meta"]["required"] = json!(["risk"])),
        ["Error schema/meta"; 2]
    );
    let explain = |limit: Value| {
        after(Mode::Strict, |_, schema| schema["meta"]["properties"]["explain"]["maxLength"] = limit)
    };
    assert_eq!(explain(json!(500)), ["Error schema/explain"]);
    assert_eq!(explain(json!(100)), [""; 0]);
    assert_eq!(
        after(Mode::Strict, |_, schema| schema["meta"]["properties"]["explain"] = json!({})),
        ["Error schema/explain"]
    );
}

#[test]
fn val_003_015_advice_about_a_fresh_module_is_one_line_and_names_no_old_format() {
    let fresh = |change: fn(&mut Value)| {
        let (mut manifest, mut schema, _) = good();
        for key in ["tier", "overflow", "enums", "excludes"] {
            remove(&mut manifest, key);
        }
        remove(&mut schema, "$defs");
        change(&mut manifest);
        let folder = Folder::memory("m", module(&manifest, &schema.to_string(), "Do it."));
        validate(&folder, Mode::Standard)
    };
    let rules =
        |report: &ValidationReport| -> Vec<&str> { report.findings.iter().map(|each| each.rule).collect() };
    let report = fresh(|_| {});
    assert_eq!(rules(&report), ["manifest/excludes", "manifest/tier"]);
    assert!(report.findings.iter().all(|each| !each.message.contains("deprecated")), "{:?}", report.findings);
    let advice = &report.findings[0].message;
    assert!(advice.contains("`excludes`") && advice.contains("`$defs.extensions`"), "{advice}");

    // A misspelt key comes first, and what it causes is not reported beside it.
    let report = fresh(|manifest| manifest["teir"] = json!("exec"));
    assert_eq!(rules(&report), ["manifest/unknown-key", "manifest/excludes"]);
    assert_eq!(report.findings[0].hint.as_deref(), Some("Did you mean `tier`?"));
    // The name of a section before v2.2 means an old module.
    let (mut manifest, mut schema, prompt) = good();
    for key in ["tier", "overflow", "enums"] {
        remove(&mut manifest, key);
    }
    let data = schema.as_object_mut().unwrap().shift_remove("data").unwrap();
    schema["output"] = data;
    let old = check(&manifest, &schema, prompt, &[], Mode::Standard);
    assert_eq!(old, ["Warning format/old", "Warning manifest/tier"]);
}

#[test]
fn lists_of_untyped_objects_are_reported_where_media_are_declared() {
    let with = |modalities: Value, items: Value| {
        after(Mode::Standard, |manifest, schema| {
            manifest["modalities"] = modalities;
            schema["input"]["properties"] = json!({ "q": {}, "shots": { "type": "array", "items": items } });
        })
    };
    let image = || json!({ "input": ["text", "image"] });
    assert_eq!(with(image(), json!({ "type": "object" })), ["Warning schema/media"]);
    assert_eq!(with(json!({ "input": ["text"] }), json!({ "type": "object" })), [""; 0]);
    let described =
        json!({ "type": "object", "required": ["type"], "properties": { "type": { "const": "url" } } });
    for items in [described, json!({ "type": "string" })] {
        assert_eq!(with(image(), items.clone()), [""; 0], "{items}");
    }
}

#[test]
fn val_012_prompt_008_the_prompt_explains_the_envelope() {
    let (manifest, schema, _) = good();
    assert_eq!(check(&manifest, &schema, "Do it.", &[], Mode::Strict), ["Error prompt/envelope"]);
    assert_eq!(check(&manifest, &schema, "Meta, then DATA, and explain.", &[], Mode::Strict), [""; 0]);
    assert_eq!(check(&manifest, &schema, "Do it.", &[], Mode::Standard), [""; 0]);
}

#[test]
fn val_014_015_rationale_and_extensions() {
    assert_eq!(
        after(Mode::Strict, |_, schema| schema["data"] = json!({ "properties": { "rationale": {} } })),
        ["Error schema/rationale"]
    );
    let inside = json!({ "allOf": [{ "$ref": "#/$defs/base" }], "properties": { "answer": {} }, "required": ["answer"] });
    let base = json!({ "required": ["rationale"], "properties": { "rationale": { "type": "string" } } });
    let inherited = after(Mode::Strict, |_, schema| {
        (schema["data"], schema["$defs"]["base"]) = (inside.clone(), base.clone());
    });
    assert_eq!(inherited, [""; 0], "`allOf` declares it as well");
    assert_eq!(after(Mode::Strict, |_, schema| remove(schema, "$defs")), ["Error schema/extensions"]);
    assert_eq!(after(Mode::Standard, |_, schema| remove(schema, "$defs")), ["Warning schema/extensions"]);
}

#[test]
fn val_017_018_man_007_wrong_values_are_named_all_at_once() {
    let found = after(Mode::Standard, |manifest, _| {
        manifest["tier"] = json!("fast");
        manifest["overflow"]["max_items"] = json!(21);
    });
    assert_eq!(found, ["Error manifest/closed-list", "Error manifest/value"]);
}

// CTX-032: a pattern that no run can fill stores nothing.
#[test]
fn ctx_032_a_key_pattern_with_an_unknown_variable_is_an_error() {
    let emits = |pattern: &str| {
        after(Mode::Standard, |manifest, _| {
            manifest["context"] = json!({ "emits": [{ "type": "session_state", "key_pattern": pattern }] });
        })
    };
    for pattern in ["${foo}", "${module}:${user}", "${module", ""] {
        assert_eq!(emits(pattern), ["Error manifest/key-pattern"], "{pattern}");
    }
    for pattern in ["${module}:${input_hash}:${user_id}:${session_id}", "fixed", "$x"] {
        assert_eq!(emits(pattern), [""; 0], "{pattern}");
    }
}

#[test]
fn man_006_011_sch_013_keys_and_codes_that_mean_nothing_are_warnings() {
    let found = after(Mode::Standard, |manifest, schema| {
        manifest["exclude"] = json!(["y"]);
        manifest["error_codes"] = json!({ "E1001": "mine?", "E5001": "ok" });
        schema["error"] = json!({ "properties": { "code": { "enum": ["E1001"] } } });
    });
    assert_eq!(
        found,
        ["Warning manifest/unknown-key", "Warning manifest/error-codes", "Warning schema/error-codes"]
    );
    let (mut manifest, schema, prompt) = good();
    manifest["exclude"] = json!(["y"]);
    let files = module(&manifest, &schema.to_string(), prompt);
    let report = validate(&Folder::memory("m", files), Mode::Standard);
    assert_eq!(report.findings[0].hint.as_deref(), Some("Did you mean `excludes`?"));
}

#[test]
fn risk_004_custom_function_is_said_to_do_nothing() {
    let found =
        after(Mode::Standard, |manifest, _| manifest["meta"] = json!({ "risk_rule": "custom_function" }));
    assert_eq!(found, ["Warning manifest/risk-rule"]);
}

#[test]
fn pol_003_006_a_tool_that_can_never_be_offered_is_a_warning() {
    let found = |tools: Value, policies: Value| {
        after(Mode::Standard, |manifest, _| {
            (manifest["tools"], manifest["policies"]) = (tools, policies);
        })
    };
    let shell = json!({ "allowed": ["shell"] });
    assert_eq!(found(shell.clone(), json!({})), ["Warning manifest/tools"]);
    assert_eq!(found(json!({ "allowed": ["a"], "denied": ["a"] }), json!({})), ["Warning manifest/tools"]);
    assert_eq!(
        found(json!({ "allowed": ["a"] }), json!({ "tools_allowed": false })),
        ["Warning manifest/tools"]
    );
    assert_eq!(found(shell, json!({ "code_execution": "allow", "side_effects": "allow" })), [""; 0]);
    assert_eq!(found(json!({ "allowed": ["current_time"] }), json!({})), [""; 0]);
}

#[test]
fn fmt_011_a_folder_of_another_name_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let (manifest, schema, prompt) = good();
    let folder = dir.path().join("other");
    std::fs::create_dir(&folder).unwrap();
    for (name, text) in [
        ("module.yaml", manifest.to_string()),
        ("schema.json", schema.to_string()),
        ("prompt.md", prompt.into()),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    assert_eq!(rules(&Folder::Disk(folder), Mode::Standard), ["Warning manifest/name"]);
}

#[test]
fn val_002_fmt_002_tests_are_optional_but_must_fit() {
    let (mut manifest, schema, prompt) = good();
    manifest["tests"] =
        json!(["tests/a.input.json -> tests/a.expected.json", "no arrow", "tests/x -> tests/y"]);
    let files = [
        ("tests/a.input.json", "{\"p\": 1}"),
        ("tests/a.expected.json", "not json"),
        ("tests/b.input.json", "{"),
    ];
    assert_eq!(
        check(&manifest, &schema, prompt, &files, Mode::Standard),
        [
            "Error tests/entry",
            "Error tests/syntax",
            "Error tests/input",
            "Error tests/syntax",
            "Warning tests/missing",
            "Warning tests/missing"
        ]
    );
    manifest["tests"] = json!(["../x -> tests/a.expected.json"]);
    assert_eq!(check(&manifest, &schema, prompt, &[], Mode::Standard), ["Error manifest/path"]);
}

#[test]
fn sec_022_context_schemas_stay_inside() {
    let found = after(Mode::Standard, |manifest, _| {
        manifest["context"] = json!({ "accepts": [{ "type": "a", "schema": "../../secret.json" }, { "type": "b", "schema": "no.json" }] });
        manifest["io"] = json!({ "input": "../../x.json#/a" });
    });
    assert_eq!(found, ["Error manifest/io", "Error files/missing", "Error manifest/path"]);
}

#[test]
fn traps_of_draft_07_are_warnings() {
    let (manifest, mut schema, prompt) = good();
    schema["data"]["properties"]["x"] =
        json!({ "$ref": "#/$defs/extensions", "maxItems": 3, "description": "fine" });
    assert_eq!(check(&manifest, &schema, prompt, &[], Mode::Standard), ["Warning schema/beside-ref"]);
    let text = schema.to_string().replacen("{\"meta\"", "{\"input\": {}, \"meta\"", 1);
    let files = module(&manifest, &text, prompt);
    let found = rules(&Folder::memory("m", files), Mode::Standard);
    assert!(found.contains(&"Warning schema/repeated".to_owned()), "{found:?}");
}

#[test]
fn tier_007_high_strictness_wants_every_member_required() {
    let found = after(Mode::Strict, |manifest, schema| {
        manifest["schema_strictness"] = json!("high");
        schema["data"]["properties"]["extra"] = json!({});
    });
    assert_eq!(found, ["Warning schema/optional"]);
}

#[test]
fn every_bundled_module_is_clean_under_strict_validation() {
    for name in crate::bundled_modules::names() {
        let report = validate(&crate::bundled_modules::find(name).unwrap(), Mode::Strict);
        let found: Vec<String> = report.findings.iter().map(Finding::summary).collect();
        assert_eq!(found, [""; 0], "{name}");
    }
}

#[test]
fn man_009_sections_in_other_files_are_looked_at_there() {
    let (mut manifest, mut schema, prompt) = good();
    manifest["io"] = json!({ "meta": "./control.json#/m" });
    let mut meta = schema["meta"].clone();
    remove(&mut schema, "meta");
    let with = |meta: &Value| json!({ "m": meta }).to_string();
    assert_eq!(check(&manifest, &schema, prompt, &[("control.json", &with(&meta))], Mode::Strict), [""; 0]);
    meta["required"] = json!(["risk", "explain"]);
    let found = check(&manifest, &schema, prompt, &[("control.json", &with(&meta))], Mode::Strict);
    assert_eq!(found, ["Error schema/meta"]);
}

// D-25: a keyword that the dialect in force lacks is a warning, and an error in strict mode.
#[test]
fn val_002_keywords_of_another_dialect_are_found() {
    const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
    let with = |schema: &mut Value, keyword: &str, value: Value| schema["data"][keyword] = value;
    for (keyword, value) in
        [("dependentRequired", json!({ "a": ["b"] })), ("unevaluatedProperties", json!(false))]
    {
        let (mode, found) = (Mode::Standard, ["Warning schema/dialect"]);
        assert_eq!(after(mode, |_, schema| with(schema, keyword, value.clone())), found, "{keyword}");
        let (mode, found) = (Mode::Strict, ["Error schema/dialect"]);
        assert_eq!(after(mode, |_, schema| with(schema, keyword, value.clone())), found, "{keyword}");
        let declared = after(Mode::Strict, |_, schema| {
            schema["$schema"] = json!(DIALECT);
            with(schema, keyword, value.clone());
        });
        assert_eq!(declared, [""; 0], "{keyword}");
    }
    let harmless = after(Mode::Strict, |_, schema| {
        with(schema, "$anchor", json!("a"));
        with(schema, "x-own", json!({ "prefixItems": [] }));
    });
    assert_eq!(harmless, [""; 0]);
    // 2020-12 honours rules next to `$ref`, and writes lists of schemas as `prefixItems`.
    let beside = after(Mode::Strict, |_, schema| {
        schema["$schema"] = json!(DIALECT);
        schema["data"]["properties"]["x"] = json!({ "$ref": "#/$defs/extensions", "maxProperties": 2 });
    });
    assert_eq!(beside, [""; 0]);
    let list = after(Mode::Standard, |_, schema| {
        schema["$schema"] = json!(DIALECT);
        with(schema, "items", json!([{}]));
    });
    assert_eq!(list, ["Error schema/contract"]);
}
