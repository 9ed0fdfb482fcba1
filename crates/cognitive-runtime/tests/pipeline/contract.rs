//! Rules of the contract that meet another feature: a module's own failure, repair prompts, insights, and the module's
//! own `meta` schema.

#![expect(clippy::indexing_slicing, reason = "in a test, a panic is the report")]

use std::sync::Arc;

use cognitive_contract::Enforcement;
use cognitive_contract::ports::NullSink;
use cognitive_runtime::{Host, Replay, RunRequest, run};
use cognitive_testkit::{ScriptedProvider, poll_now};
use serde_json::{Value, json};

use crate::{answer, folder, good};

fn own_failure() -> Value {
    json!({
        "ok": false, "meta": { "confidence": 0.62, "risk": "medium", "explain": "The types are unknown." },
        "error": { "code": "BEHAVIOR_CHANGE_REQUIRED", "message": "The types are unknown." },
        "partial_data": { "simplified_code": "…" },
    })
}

// D-20
#[test]
fn d_20_a_forbidden_partial_result_leaves_the_rest_of_an_own_failure() {
    for tier in ["exec", "decision", "exploration"] {
        let silent = json!({ "tier": tier, "failure": { "partial_allowed": false } });
        let value = answer(silent, &own_failure().to_string());
        assert_eq!(value["error"], own_failure()["error"], "{value}");
        let meta = ["confidence", "risk", "explain"].map(|member| &value["meta"][member]);
        assert_eq!(meta, [&json!(0.62), &json!("medium"), &json!("The types are unknown.")]);
        assert!(value.get("partial_data").is_none(), "{value}");
        assert!(value["meta"].get("warnings").is_none(), "{value}");
        let open = answer(json!({ "tier": tier }), &own_failure().to_string());
        assert_eq!(open["partial_data"]["simplified_code"], "…");
    }
}

/// The number of calls with one repair prompt allowed, and the final envelope. The second reply is good.
fn reasked(manifest: &Value, schema: &Value, first: &Value) -> (usize, Value) {
    let provider = Arc::new(ScriptedProvider::new([first.clone(), good()]));
    let mut request = RunRequest::new("sample", json!({ "q": "?" }));
    request.options.settings.reask = Some(1);
    let host = Host::new(Arc::new(folder(manifest, schema)), provider.clone());
    let envelope = poll_now(run(&host, request, &mut NullSink));
    (provider.calls().len(), serde_json::to_value(&envelope).unwrap())
}

// D-23
#[test]
fn d_23_an_answer_that_breaks_a_rule_of_form_is_asked_again() {
    let mut blank = good();
    blank["data"]["rationale"] = json!(" ");
    let mut many = good();
    many["data"]["extensions"] = json!({ "insights": [{ "text": "t", "suggested_mapping": "m" }] });
    let mut custom = good();
    custom["data"]["team"] = json!({ "custom": "other", "reason": "r" });
    let mut image = good();
    image["data"]["image"] =
        json!({ "type": "url", "media_type": "image/png", "url": "https://example.com/a.png" });
    let team = json!({ "oneOf": [
        { "type": "string", "enum": ["a"] },
        { "type": "object", "required": ["custom", "reason"],
          "properties": { "custom": { "type": "string" }, "reason": { "type": "string" } } },
    ] });
    let mut schema = super::schema();
    schema["data"]["properties"]["team"] = team;
    let strict = json!({ "tier": "decision", "overflow": { "enabled": false }, "enums": { "strategy": "strict" },
        "modalities": { "output": ["text"] } });
    for (reply, code) in [(&blank, "E3003"), (&many, "E3004"), (&custom, "E3005"), (&image, "E3006")] {
        let alone = answer_with(&strict, &schema, reply);
        assert_eq!(alone["error"]["code"], code, "{alone}");
        let (calls, value) = reasked(&strict, &schema, reply);
        assert_eq!((calls, &value["ok"]), (2, &json!(true)), "{code}: {value}");
    }
}

fn answer_with(manifest: &Value, schema: &Value, reply: &Value) -> Value {
    enforced(Enforcement::Full, manifest, schema, reply)
}

fn enforced(enforcement: Enforcement, manifest: &Value, schema: &Value, reply: &Value) -> Value {
    let host = Host::new(Arc::new(folder(manifest, schema)), Arc::new(Replay::text(reply.to_string())));
    let mut request = RunRequest::new("sample", json!({ "q": "?" }));
    request.options.settings.enforcement = Some(enforcement);
    serde_json::to_value(poll_now(run(&host, request, &mut NullSink))).unwrap()
}

// D-23: to ask for more confidence or less risk would invite a lie.
#[test]
fn d_23_a_doubtful_or_risky_answer_is_not_asked_again() {
    let exec = json!({ "tier": "exec" });
    for (member, said, code) in [("confidence", json!(0.3), "E2001"), ("risk", json!("high"), "E3006")] {
        let mut reply = good();
        reply["meta"][member] = said;
        let (calls, value) = reasked(&exec, &super::schema(), &reply);
        assert_eq!((calls, &value["error"]["code"]), (1, &json!(code)), "{value}");
    }
}

/// A module whose own `meta` schema allows only small risks.
fn narrow() -> Value {
    let mut schema = super::schema();
    schema["meta"] = json!({ "type": "object", "required": ["model"],
        "properties": { "risk": { "enum": ["none", "low"] } } });
    schema
}

fn risky() -> Value {
    let mut reply = good();
    reply["meta"]["model"] = json!("m");
    reply["data"]["changes"] = json!([{ "risk": "high" }]);
    reply
}

// RISK-007: the result keeps the module's own schema, also where the risk comes from its changes.
#[test]
fn risk_007_the_aggregated_risk_has_to_fit_the_own_meta_schema() {
    let decision = json!({ "tier": "decision" });
    let value = answer_with(&decision, &narrow(), &risky());
    assert_eq!(value["error"]["code"], "E3001", "{value}");
    assert_eq!(value["error"]["details"]["violations"][0]["path"], "/meta/risk");
    assert_eq!(value["partial_data"]["answer"], "42");
    // Another answer could only claim less risk.
    let (calls, _) = reasked(&decision, &narrow(), &risky());
    assert_eq!(calls, 1);
    let mut small = risky();
    small["data"]["changes"] = json!([{ "risk": "low" }]);
    assert_eq!(answer_with(&decision, &narrow(), &small)["ok"], true);
    let loose = enforced(Enforcement::EnvelopeOnly, &decision, &narrow(), &risky());
    assert_eq!(loose["meta"]["risk"], "high", "{loose}");
}

fn with_extensions(extensions: Value) -> Value {
    let mut reply = good();
    reply["data"]["extensions"] = extensions;
    reply
}

// D-29
#[test]
fn d_29_undeclared_members_beside_insights_are_refused_or_dropped() {
    let insight = json!({ "text": "t", "suggested_mapping": "m", "evidence": "e" });
    let mut wider = insight.clone();
    wider["severity"] = json!(3);
    let open = |tier: &str| json!({ "tier": tier, "overflow": { "enabled": true, "max_items": 5 } });
    for (extensions, path, left) in [
        (
            json!({ "insights": [insight, wider] }),
            "/data/extensions/insights/1/severity",
            json!({ "insights": [insight, insight] }),
        ),
        (
            json!({ "insights": [insight], "notes": [1] }),
            "/data/extensions/notes",
            json!({ "insights": [insight] }),
        ),
        (Value::Null, "/data/extensions", Value::Null),
    ] {
        let reply = with_extensions(extensions);
        let refused = answer_with(&open("exec"), &super::schema(), &reply);
        assert_eq!(refused["error"]["code"], "E3001", "{refused}");
        assert_eq!(refused["error"]["details"]["violations"][0]["path"], path);
        assert_eq!(refused["partial_data"], reply["data"], "the original");
        let dropped = answer_with(&open("decision"), &super::schema(), &reply);
        assert_eq!(dropped["ok"], true, "{dropped}");
        assert_eq!(dropped["data"].get("extensions").cloned().unwrap_or_default(), left);
        assert_eq!(dropped["data"].get("extensions").is_some(), !left.is_null());
        let warning = &dropped["meta"]["warnings"][0];
        assert_eq!(warning["code"], "REPAIRED", "{dropped}");
        assert!(warning["message"].to_string().contains(path), "{dropped}");
    }
    // What the schema declares is the module's own. (OVER-009)
    let mut schema = super::schema();
    schema["$defs"] = json!({ "extensions": { "type": ["object", "null"], "properties": {
        "notes": { "type": "array" },
        "insights": { "items": { "properties": { "severity": { "type": "integer" } } } },
    } } });
    schema["data"]["properties"]["extensions"] = json!({ "$ref": "#/$defs/extensions" });
    for extensions in [json!({ "insights": [wider], "notes": [1] }), Value::Null] {
        let value = answer_with(&open("exec"), &schema, &with_extensions(extensions.clone()));
        assert_eq!(value["data"]["extensions"], extensions, "{value}");
        assert!(value["meta"].get("warnings").is_none());
    }
}

// D-29: after a refusal for another reason, the partial result is the model's own.
#[test]
fn d_29_a_dropped_member_is_back_in_the_partial_result() {
    let mut reply = with_extensions(json!({ "insights": [], "notes": 1 }));
    reply["data"]["answer"] = json!(42);
    let value = answer(json!({ "tier": "decision" }), &reply.to_string());
    assert_eq!(value["error"]["code"], "E3001");
    assert_eq!(value["partial_data"], reply["data"]);
}

// D-29, v2.2 §5.2: a failure has a code and a message that people can read.
#[test]
fn d_29_a_failure_without_words_is_refused() {
    for member in ["code", "message"] {
        let mut reply = own_failure();
        reply["error"][member] = json!(" ");
        let value = answer(json!({ "tier": "decision" }), &reply.to_string());
        assert_eq!(value["error"]["code"], "E3001", "{value}");
        let path = &value["error"]["details"]["violations"][0]["path"];
        assert_eq!(path, &json!(format!("/error/{member}")));
    }
}

// CTX-021: a value that cannot be context costs a notice, and not the answer.
#[test]
fn ctx_021_emitted_context_that_is_no_object_is_dropped() {
    for tier in ["exec", "decision"] {
        let mut reply = good();
        reply["_emitted_context"] = json!("x");
        let value = answer(json!({ "tier": tier }), &reply.to_string());
        assert_eq!(value["ok"], true, "{value}");
        assert!(value.get("_emitted_context").is_none());
        assert_eq!(value["meta"]["warnings"][0]["code"], "CONTEXT", "{value}");
    }
}

// DATA-005: the common envelope admits each of these answers; only the module's own schema refuses them.
#[test]
fn data_005_the_schema_of_the_module_judges_its_data() {
    let manifest = json!({ "tier": "decision" });
    let mut schema = super::schema();
    schema["data"]["properties"]["answer"] = json!({ "type": "string", "maxLength": 3 });
    schema["data"]["properties"]["count"] = json!({ "type": "integer", "minimum": 0 });
    let open = json!({ "input": {}, "data": { "type": "object", "required": ["rationale"] } });
    for (member, value) in [("answer", json!("four")), ("count", json!(-1)), ("count", json!("3"))] {
        let mut reply = good();
        reply["data"][member] = value;
        let refused = answer_with(&manifest, &schema, &reply);
        assert_eq!(refused["error"]["code"], "E3001", "{refused}");
        let place = format!("/data/{member}");
        assert!(refused["error"].to_string().contains(&place), "{place}: {refused}");
        assert_eq!(answer_with(&manifest, &open, &reply)["data"], reply["data"]);
    }
    let mut short = good();
    short["data"].as_object_mut().unwrap().shift_remove("answer");
    assert_eq!(answer_with(&manifest, &schema, &short)["error"]["code"], "E3001");
}

// ENV-002: a real error beside data is a contradiction, and a null one is dropped.
#[test]
fn env_002_a_success_has_neither_error_nor_partial_data() {
    let manifest = json!({ "tier": "decision" });
    let own = json!({ "code": "X", "message": "m" });
    for (member, value) in [("error", own), ("partial_data", json!({})), ("partial_data", json!({ "a": 1 }))]
    {
        let mut reply = good();
        reply[member] = value;
        let refused = answer_with(&manifest, &super::schema(), &reply);
        assert_eq!(refused["error"]["code"], "E3001", "{member}: {refused}");
    }
    for member in ["error", "partial_data"] {
        let mut reply = good();
        reply[member] = Value::Null;
        let value = answer_with(&manifest, &super::schema(), &reply);
        assert_eq!((&value["ok"], value.get(member)), (&json!(true), None), "{value}");
    }
}

// SCH-001: each section of the file judges its own part of a run.
#[test]
fn sch_001_every_section_of_the_schema_is_judged_in_a_run() {
    let manifest = json!({ "tier": "decision" });
    let mut schema = super::schema();
    schema["input"] = json!({ "type": "object", "properties": { "q": { "$ref": "#/$defs/short" } } });
    schema["meta"] = json!({ "type": "object", "properties": { "confidence": { "maximum": 0.96 } } });
    schema["error"] = json!({ "type": "object", "properties": { "code": { "enum": ["TOO_SHORT"] } } });
    schema["$defs"] = json!({ "short": { "type": "string", "maxLength": 1 } });
    assert_eq!(answer_with(&manifest, &schema, &good())["ok"], true);
    let mut failed = own_failure();
    failed["error"]["code"] = json!("TOO_SHORT");
    assert_eq!(answer_with(&manifest, &schema, &failed)["error"]["code"], "TOO_SHORT");
    let mut data = good();
    data["data"]["answer"] = json!(7);
    let mut meta = good();
    meta["meta"]["confidence"] = json!(0.97);
    for (reply, place) in [(data, "/data/answer"), (meta, "/meta/confidence"), (own_failure(), "/error/code")]
    {
        let refused = answer_with(&manifest, &schema, &reply);
        assert_eq!(refused["error"]["code"], "E3001", "{refused}");
        assert!(refused["error"].to_string().contains(place), "{place}: {refused}");
    }
    let host = Host::new(Arc::new(folder(&manifest, &schema)), Arc::new(Replay::text(good().to_string())));
    let long = poll_now(run(&host, RunRequest::new("sample", json!({ "q": "long" })), &mut NullSink));
    assert_eq!(long.error().unwrap().code(), "E1001");
}

// ENUM-006: only under its tag is an object a value of its own, which strict modules refuse.
#[test]
fn enum_006_a_strict_module_recognises_the_renamed_tag() {
    let mut schema = super::schema();
    schema["data"]["properties"]["team"] = json!({ "oneOf": [
        { "type": "string", "enum": ["a"] },
        { "type": "object", "required": ["other", "reason"],
          "properties": { "other": { "type": "string", "maxLength": 32 }, "reason": { "type": "string" } } },
    ] });
    let mut reply = good();
    reply["data"]["team"] = json!({ "other": "sales", "reason": "r" });
    let judged = |enums: Value| answer_with(&json!({ "tier": "decision", "enums": enums }), &schema, &reply);
    let strict = judged(json!({ "strategy": "strict", "unknown_tag": "other" }));
    assert_eq!(strict["error"]["code"], "E3005", "{strict}");
    assert_eq!(judged(json!({ "strategy": "extensible", "unknown_tag": "other" }))["ok"], true);
    assert_eq!(
        judged(json!({ "strategy": "strict" }))["ok"],
        true,
        "without the tag it is an ordinary object"
    );
}

// REPAIR-004, REPAIR-005: a warning says whether white space or the spelling of a declared value was changed.
#[test]
fn repair_004_005_a_warning_tells_white_space_from_spelling() {
    let mut schema = super::schema();
    schema["data"]["properties"]["kind"] = json!({ "enum": ["low", "high"] });
    for (written, expected) in [
        (" low\n", "white space around `/data/kind` was removed"),
        ("LOW", "`/data/kind` was written in its declared spelling"),
        (" Low", "`/data/kind` was written in its declared spelling"),
    ] {
        let mut reply = good();
        reply["data"]["kind"] = json!(written);
        let value = answer_with(&json!({ "tier": "decision" }), &schema, &reply);
        assert_eq!(value["data"]["kind"], "low", "{value}");
        assert_eq!(value["meta"]["warnings"][0]["message"], expected, "{value}");
    }
}

// The receipt has enough to undo a repair, and nothing besides.
#[test]
fn a_repair_in_the_receipt_has_the_value_before_and_after() {
    let mut reply = good();
    reply["meta"]["explain"] = json!("x".repeat(281));
    reply["note"] = json!([1]);
    let mut request = RunRequest::new("sample", json!({ "q": "?" }));
    request.options.settings.receipt = Some(true);
    let provider = Arc::new(Replay::text(reply.to_string()));
    let value = super::go(&json!({ "tier": "decision" }), provider, request);
    let expected = json!([
        { "path": "/note", "rule": "dropped", "before": [1] },
        { "path": "/meta/explain", "rule": "truncated", "before": "x".repeat(281), "after": "x".repeat(280) },
    ]);
    assert_eq!(value["meta"]["provenance"]["repairs"], expected, "{value}");
}

// REPAIR-014: the list of warnings ends, and counts what it leaves out.
#[test]
fn repair_014_warnings_beyond_a_hundred_are_counted() {
    let mut reply = good();
    for number in 0..120 {
        reply[format!("own_{number}")] = json!(number);
    }
    for member in ["risk", "explain"] {
        reply["meta"].as_object_mut().unwrap().shift_remove(member);
    }
    let value = answer(json!({ "tier": "decision" }), &reply.to_string());
    assert_eq!(value["ok"], true, "{value}");
    let warnings = value["meta"]["warnings"].as_array().unwrap();
    assert_eq!((warnings.len(), &warnings[100]["message"]), (101, &json!("and 2 more")), "{value}");
}
