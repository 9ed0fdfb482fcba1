//! Tests of a module's parts and of the input it accepts.

use cognitive_schema::{SCHEMA_FILE, SchemaFiles};
use serde_json::json;

use super::*;

fn module(manifest: Value, schema: Value) -> Module {
    let manifest = Manifest::from_value(&manifest, Format::V22).unwrap();
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
    let contract = Contract::compile(&files, &manifest.layout()).unwrap();
    Module::new(manifest, contract, "prompt".to_owned(), Format::V22)
}

fn simple(manifest: Value) -> Module {
    module(
        manifest,
        json!({
            "input": { "type": "object", "required": ["code"] },
            "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
            "error": { "properties": { "code": { "enum": ["UNSUPPORTED_LANGUAGE", "PARSE_ERROR"] } } },
        }),
    )
}

fn success(data: Value) -> Value {
    json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": data })
}

#[test]
fn sch_002_err_006_input_failures_list_every_violation() {
    let module = simple(json!({ "name": "m" }));
    let failure = module.refuse_input(&Violation::find(module.contract.input(), &json!({}), Side::Input));
    let envelope = serde_json::to_value(failure.into_envelope()).unwrap();
    assert_eq!(envelope["error"]["code"], "E1001");
    assert_eq!(envelope["error"]["details"]["violations"][0]["path"], "/code");
    assert!(!module.contract.input().accepts(&json!([])));
    assert!(module.contract.input().accepts(&json!({ "code": 1 })));
}

// D-05: the manifest's rules reach the schema that a provider gets.
#[test]
fn d_05_the_rules_of_the_envelope_come_from_the_manifest() {
    let by_default = simple(json!({}));
    let rules = by_default.envelope_rules();
    assert!(rules.partial_allowed && rules.error_schema_enforced && rules.insights.mapping_required);
    assert!(!rules.strict_enums && !rules.rationale_object && rules.emits.is_empty());
    assert_eq!((rules.unknown_tag, rules.insights.most, rules.explain_limit), ("custom", 5, 280));
    assert!(rules.not_asked.contains(&"trace_id") && rules.not_asked.contains(&"confidence_aggregation"));

    let mut written = simple(json!({
        "enums": { "strategy": "strict", "unknown_tag": "other" },
        "overflow": { "enabled": false, "max_items": 9, "require_suggested_mapping": false },
        "failure": { "partial_allowed": false, "must_return_error_schema": false },
        "context": { "emits": [{ "type": "notes" }] },
    }));
    written.format = Format::V1;
    let rules = written.envelope_rules();
    assert!(!rules.partial_allowed && !rules.error_schema_enforced && !rules.insights.mapping_required);
    assert!(rules.strict_enums && rules.rationale_object);
    assert_eq!((rules.unknown_tag, rules.insights.most), ("other", 0));
    assert_eq!((rules.emits[0].kind, rules.emits[0].schema), ("notes", None));
    let schema = written.provider_schema(SchemaTarget::Grammar);
    assert!(Arc::ptr_eq(&schema, &written.provider_schema(SchemaTarget::Grammar)), "it is written once");
}

#[test]
fn data_005_006_schema_and_envelope_speak_once_per_place() {
    let found = simple(json!({})).envelope_violations(&success(json!({ "rationale": 5 })), Enforcement::Full);
    assert_eq!(found.len(), 1);
    assert_eq!(output_code(&found), ErrorCode::SchemaValidationFailed);
}

#[test]
fn sch_006_a_blank_rationale_under_a_lax_schema_is_e3003() {
    let found =
        simple(json!({})).envelope_violations(&success(json!({ "rationale": " " })), Enforcement::Full);
    assert_eq!(output_code(&found), ErrorCode::MissingRationale);
}

#[test]
fn over_005_the_smaller_of_two_limits_counts_and_the_code_is_e3004() {
    let module = module(
        json!({ "overflow": { "max_items": 10 } }),
        json!({ "input": {}, "data": { "properties": { "extensions": { "properties": { "insights": { "maxItems": 1 } } } } } }),
    );
    let insight = json!({ "text": "t", "suggested_mapping": "m" });
    let reply = success(json!({ "rationale": "r", "extensions": { "insights": [insight, insight] } }));
    assert_eq!(output_code(&module.envelope_violations(&reply, Enforcement::Full)), ErrorCode::OverflowLimit);
}

#[test]
fn enum_001_a_custom_value_under_strict_enums_is_e3005() {
    let pattern = json!({ "oneOf": [{ "type": "string", "enum": ["a"] }, {
        "type": "object", "required": ["custom", "reason"], "properties": { "custom": {}, "reason": {} },
    }] });
    let module = module(
        json!({ "tier": "exec" }),
        json!({ "input": {}, "data": { "properties": { "kind": pattern } } }),
    );
    let reply = success(json!({ "rationale": "r", "kind": { "custom": "c", "reason": "r" } }));
    assert!(module.envelope_violations(&reply, Enforcement::Full).is_empty());
    let found = module.rule_violations(&reply);
    assert_eq!((output_code(&found), found[0].path.as_str()), (ErrorCode::InvalidEnum, "/data/kind"));
}

#[test]
fn pipe_008_spellings_of_one_code_are_equal_and_others_are_not() {
    let module = simple(json!({}));
    let failure = |code: &str| {
        json!({ "ok": false, "meta": { "confidence": 0, "risk": "high", "explain": "e" },
                "error": { "code": code, "message": "m" } })
    };
    assert!(module.envelope_violations(&failure("E1004"), Enforcement::Full).is_empty());
    assert!(module.envelope_violations(&failure("E1000"), Enforcement::Full).is_empty());
    assert_eq!(module.envelope_violations(&failure("FOO"), Enforcement::Full).len(), 1);
    assert!(
        simple(json!({ "failure": { "must_return_error_schema": false } }))
            .envelope_violations(&failure("FOO"), Enforcement::Full)
            .is_empty()
    );
}

#[test]
fn sch_009_tier_007_the_schema_is_enforced_in_every_tier() {
    for tier in ["exec", "decision", "exploration"] {
        let found =
            simple(json!({ "tier": tier })).envelope_violations(&success(json!({})), Enforcement::Full);
        assert_eq!(found.len(), 1, "{tier}");
    }
}

#[test]
fn env_005_partial_data_is_the_models_own_and_can_be_forbidden() {
    let original = json!({ "ok": true, "data": { "a": 1 } });
    let original = || original.as_object().unwrap().clone();
    assert_eq!(simple(json!({})).partial_data(original()).unwrap()["a"], 1);
    assert!(simple(json!({ "failure": { "partial_allowed": false } })).partial_data(original()).is_none());
}

#[test]
fn val_012_whole_words_explain_the_envelope() {
    assert!(explains_envelope("Answer in the Envelope."));
    assert!(explains_envelope("`meta` first, then `data`; `ok` is true"));
    assert!(!explains_envelope("Extract the metadata of the book, look at the data, explained."));
}

#[test]
fn a_composition_is_compiled_once_and_shared_by_copies() {
    let composition = json!({ "requires": [{ "name": "a" }] });
    let module = module(json!({ "composition": composition }), json!({ "input": {}, "data": {} }));
    let compiled: *const Composition = module.composition().unwrap().unwrap();
    assert!(std::ptr::eq(compiled, module.composition().unwrap().unwrap()));
    assert!(std::ptr::eq(compiled, module.in_tier(Tier::Exec).composition().unwrap().unwrap()));
    assert!(!module.is_standalone());
    let alone = simple(json!({}));
    assert!(alone.is_standalone() && alone.composition().unwrap().is_none());
}

#[test]
fn an_old_format_is_a_warning() {
    let manifest = Manifest::from_value(&json!({}), Format::V1).unwrap();
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), json!({ "input": {}, "output": {} }))]);
    let contract = Contract::compile(&files, &manifest.layout()).unwrap();
    let module = Module::new(manifest, contract, String::new(), Format::V1);
    assert_eq!(module.warnings[0].code, "DEPRECATED");
}
