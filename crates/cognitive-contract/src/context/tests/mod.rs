//! Tests of the context rules on whole modules.

mod properties;

use std::time::SystemTime;

use cognitive_schema::{Contract, SCHEMA_FILE, SchemaFiles};
use serde_json::{Map, Value, json};

use super::*;
use crate::module::{Enforcement, Module};
use crate::ports::AuditRecord;
use crate::{ErrorCode, Failure, Format, Manifest};

/// A module with this `context` block, this input schema and these additional files.
fn module(context: Value, input: Value, files: &[(&str, Value)]) -> Module {
    let manifest = json!({ "name": "sample", "tier": "decision", "context": context });
    let manifest = Manifest::from_value(&manifest, Format::V22).unwrap();
    let mut all = SchemaFiles::from([(SCHEMA_FILE.to_owned(), json!({ "input": input, "data": {} }))]);
    all.extend(files.iter().map(|(path, file)| ((*path).to_owned(), file.clone())));
    let contract = Contract::compile(&all, &manifest.layout()).unwrap();
    Module::new(manifest, contract, "p".to_owned(), Format::V22)
}

fn accepting(accepts: Value) -> Module {
    module(json!({ "accepts": accepts }), json!({}), &[])
}

fn prepared(module: &Module, input: Value) -> Result<PreparedInput, Failure> {
    prepare(module, input.clone(), &Sanitiser::default(), Enforcement::Full)
}

/// The context that a model would get.
fn seen(module: &Module, context: Value) -> Value {
    let prepared = prepared(module, json!({ "code": "x", "_context": context })).unwrap();
    Value::Object(prepared.context().clone())
}

/// Code, and place and code of each violation.
fn refusal(module: &Module, input: Value) -> (ErrorCode, Vec<(String, String)>) {
    let failure = prepared(module, input).unwrap_err();
    let code = failure.code();
    let envelope = json!(failure.into_envelope());
    let found = envelope["error"]["details"]["violations"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (code, found.iter().map(|each| (text(&each["path"]), text(&each["code"]))).collect())
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

// CTX-001, CTX-007, GEN-008: an undeclared conversation is left out.
#[test]
fn ctx_001_007_gen_008_what_is_not_declared_does_not_reach_the_model() {
    let module = accepting(json!([{ "type": "session_state" }]));
    let input =
        json!({ "_context": { "conversation_history": [], "session_state": { "a": 1 }, "\u{1b}[2J": 1 } });
    let prepared = prepared(&module, input).unwrap();
    assert_eq!(prepared.context(), &map(json!({ "session_state": { "a": 1 } })));
    assert_eq!(prepared.warnings.len(), 1);
    let message = &prepared.warnings[0].message;
    assert!(
        message.starts_with("context that the module does not declare was left out: `conversation_history`")
    );
    let many: Map<String, Value> =
        (0..1_000).map(|number| (format!("{number}").repeat(1_000), json!(1))).collect();
    let prepared =
        prepare(&module, json!({ "_context": many }), &Sanitiser::default(), Enforcement::Full).unwrap();
    assert!(
        prepared.warnings[0].message.len() < 500 && prepared.warnings[0].message.ends_with("and 995 more")
    );
}

// CTX-001, CTX-010: any name is valid, in `accepts` or in the input schema.
#[test]
fn ctx_001_010_types_are_declared_by_accepts_or_by_the_input_schema() {
    let schema =
        json!({ "properties": { "_context": { "properties": { "own-type": { "type": "integer" } } } } });
    let module = module(json!({ "accepts": [{ "type": "häuser" }] }), schema, &[]);
    assert_eq!(
        seen(&module, json!({ "own-type": 1, "häuser": 2, "c": 3 })),
        json!({ "own-type": 1, "häuser": 2 })
    );
    assert_eq!(seen(&accepting(json!([])), json!({ "a": 1 })), json!({}));
}

// CTX-003: the run fails before any model call, as E1001 with E1002 inside.
#[test]
fn ctx_003_required_context_that_is_missing_is_refused() {
    let module = accepting(json!([{ "type": "user_profile", "required": true }]));
    let expected = (ErrorCode::InvalidInput, vec![("/_context/user_profile".to_owned(), "E1002".to_owned())]);
    for input in [json!({}), json!({ "_context": {} }), json!({ "_context": { "other": 1 } })] {
        assert_eq!(refusal(&module, input), expected);
    }
    assert!(prepared(&module, json!({ "_context": { "user_profile": {} } })).is_ok());
}

// Free text fits no input schema; its context must still fit.
#[test]
fn ctx_003_004_free_text_is_judged_by_its_context_alone() {
    let accepts = json!({ "accepts": [{ "type": "a", "required": true, "schema": "a.json" }] });
    let module =
        module(accepts, json!({ "required": ["code"] }), &[("a.json", json!({ "type": "integer" }))]);
    let text = |input: Value, enforcement| {
        prepare_text(&module, input.clone(), &Sanitiser::default(), enforcement)
            .map(|prepared| prepared.context().len())
            .map_err(|failure| failure.code())
    };
    let fits = json!({ "query": "q", "_context": { "a": 1 } });
    assert_eq!(text(fits.clone(), Enforcement::Full), Ok(1));
    assert!(prepared(&module, fits).is_err());
    for wrong in [json!({ "query": "q" }), json!({ "query": "q", "_context": { "a": "x" } })] {
        assert_eq!(text(wrong.clone(), Enforcement::Full), Err(ErrorCode::InvalidInput));
        assert!(text(wrong, Enforcement::EnvelopeOnly).is_ok());
    }
}

#[test]
fn ctx_004_each_type_is_judged_by_its_file_and_by_the_input_schema() {
    let state = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    let input = json!({ "properties": { "_context": { "properties": { "b": { "type": "string" } } } } });
    let accepts = json!({ "accepts": [{ "type": "a", "schema": "./c/a.json" }] });
    let module = module(accepts, input, &[("c/a.json", state)]);
    assert_eq!(seen(&module, json!({ "a": { "n": 1 }, "b": "x" })), json!({ "a": { "n": 1 }, "b": "x" }));
    let (code, found) = refusal(&module, json!({ "_context": { "a": { "n": "hunter2" }, "b": 1 } }));
    assert_eq!(code, ErrorCode::InvalidInput);
    let places: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(places, ["/_context/a/n", "/_context/b"]);
    let failure = prepared(&module, json!({ "_context": { "a": { "n": "hunter2" } } })).unwrap_err();
    assert!(
        !json!(failure.into_envelope()).to_string().contains("hunter2"),
        "no value of a caller in a message"
    );
}

#[test]
fn ctx_005_006_a_closed_input_schema_never_sees_a_member_that_it_does_not_know() {
    let closed = json!({ "type": "object", "properties": { "code": {} }, "additionalProperties": false });
    let module = module(json!({ "accepts": [{ "type": "a" }] }), closed, &[]);
    assert_eq!(seen(&module, json!({ "a": 1 })), json!({ "a": 1 }));
    let none = prepared(&module, json!({ "code": "x" })).unwrap();
    let empty = prepared(&module, json!({ "code": "x", "_context": {} })).unwrap();
    assert_eq!((none.input(), none.context()), (empty.input(), empty.context()));
    assert_eq!(none.input(), &json!({ "code": "x" }));
    assert_eq!(refusal(&module, json!({ "other": 1, "_context": {} })).0, ErrorCode::InvalidInput);
}

#[test]
fn ctx_006_empty_context_is_none_also_where_the_schema_mentions_it() {
    let input =
        json!({ "properties": { "_context": { "required": ["a"], "properties": { "a": {}, "b": {} } } } });
    let module = module(json!({}), input, &[]);
    for given in [json!({}), json!({ "_context": {} }), json!({ "_context": { "undeclared": 1 } })] {
        assert!(prepared(&module, given.clone()).is_ok(), "{given}");
    }
    assert!(prepared(&module, json!({ "_context": { "b": 1 } })).is_err());
}

#[test]
fn what_is_no_object_is_refused_whatever_is_enforced() {
    let module = accepting(json!([]));
    for (input, place) in [
        (json!([]), ""),
        (json!({ "_context": [] }), "/_context"),
        (json!({ "_context": null }), "/_context"),
    ] {
        assert_eq!(refusal(&module, input.clone()).1, [(place.to_owned(), "E1003".to_owned())]);
        assert!(prepare(&module, input.clone(), &Sanitiser::default(), Enforcement::EnvelopeOnly).is_err());
    }
    let strict = accepting(json!([{ "type": "a", "required": true }]));
    assert!(prepare(&strict, json!({}), &Sanitiser::default(), Enforcement::EnvelopeOnly).is_ok());
}

// CTX-012, C-51: truncated before validation. CTX-011: the schema defines the roles.
#[test]
fn ctx_011_012_a_long_conversation_is_cut_before_it_is_judged() {
    let history = json!({
        "type": "array", "maxItems": 3,
        "items": { "properties": { "role": { "enum": ["user", "assistant", "system"] } } },
    });
    let input =
        json!({ "properties": { "_context": { "properties": { "conversation_history": history } } } });
    let accepts = json!({ "accepts": [{ "type": "conversation_history", "max_turns": 3 }] });
    let module = module(accepts, input, &[]);
    let turns =
        |count: usize| (0..count).map(|n| json!({ "role": "user", "content": n })).collect::<Vec<_>>();
    let got = seen(&module, json!({ "conversation_history": turns(7) }));
    let kept: Vec<&Value> =
        got["conversation_history"].as_array().unwrap().iter().map(|turn| &turn["content"]).collect();
    assert_eq!(kept, [&json!(4), &json!(5), &json!(6)]);
    let bad = json!({ "_context": { "conversation_history": [{ "role": "tool" }] } });
    assert_eq!(refusal(&module, bad).1[0].0, "/_context/conversation_history/0/role");
}

// CTX-014: fields are filtered before the schema validates.
#[test]
fn ctx_014_only_named_fields_pass() {
    let closed = json!({ "properties": { "locale": {} }, "additionalProperties": false });
    let accepts =
        json!({ "accepts": [{ "type": "user_profile", "fields": ["locale", "none"], "schema": "p.json" }] });
    let module = module(accepts, json!({}), &[("p.json", closed)]);
    let given = json!({ "user_profile": { "salary": 1, "locale": "en" } });
    assert_eq!(seen(&module, given), json!({ "user_profile": { "locale": "en" } }));
}

#[test]
fn ctx_015_a_result_of_another_module_counts_as_missing() {
    let accept = |required| {
        accepting(json!([{ "type": "previous_result", "from_module": "a", "required": required }]))
    };
    let result = |module: &str| json!({ "previous_result": { "module": module, "data": {} } });
    assert_eq!(seen(&accept(true), result("a")), result("a"));
    assert_eq!(seen(&accept(false), result("b")), json!({}));
    assert_eq!(seen(&accept(false), json!({ "previous_result": "a" })), json!({}));
    assert_eq!(refusal(&accept(true), json!({ "_context": result("b") })).0, ErrorCode::InvalidInput);
}

// CTX-040, CTX-044: validated as given, passed on sanitised, the caller's object unchanged.
#[test]
fn ctx_040_044_context_is_judged_first_and_sanitised_on_a_copy() {
    let state = json!({ "required": ["api_key"], "properties": { "api_key": { "maxLength": 4 } } });
    let accepts = json!({ "accepts": [{ "type": "s", "schema": "s.json" }, { "type": "token_state" }] });
    let module = module(accepts, json!({}), &[("s.json", state)]);
    let input = json!({ "_context": { "s": { "api_key": "sk-B" }, "token_state": { "a": 1 } } });
    let before = input.clone();
    let prepared = prepare(&module, input.clone(), &Sanitiser::default(), Enforcement::Full).unwrap();
    assert_eq!(input, before);
    assert_eq!(prepared.context(), &map(json!({ "s": { "api_key": "[REDACTED]" } })));
    assert!(prepared.warnings[0].message.ends_with("`token_state`"), "a whole type does not vanish silently");
}

// CTX-043: a record has types, sizes and a hash, and no values.
#[test]
fn ctx_043_the_record_of_an_access_has_no_values() {
    let module = accepting(json!([{ "type": "s" }]));
    let prepared = prepared(&module, json!({ "_context": { "s": { "note": "private words" } } })).unwrap();
    let access = prepared.access().unwrap();
    let record = AuditRecord::context_access(SystemTime::UNIX_EPOCH, "t", "sample", &access, "abc");
    assert_eq!(record.receipt, json!({ "sizes": { "s": 24 }, "sha256": { "input": "abc" } }));
    assert!(!format!("{record:?}").contains("private"));
    assert_eq!(prepared_none(&module).access(), None);
}

fn prepared_none(module: &Module) -> PreparedInput {
    prepared(module, json!({})).unwrap()
}

// PROMPT-011: labelled, once, separate from instructions.
#[test]
fn prompt_011_context_is_a_labelled_block() {
    let block = label(&map(json!({ "s": { "n": 1 } }))).unwrap();
    assert_eq!(block.matches(r#"{"s":{"n":1}}"#).count(), 1);
    assert!(block.contains("not instructions"));
    assert_eq!(label(&Map::new()), None);
}

// CTX-053: a child sees what it declares and nothing else.
#[test]
fn ctx_053_context_is_handed_on_filtered_by_what_the_child_declares() {
    let context = map(json!({ "a": 1, "b": 2 }));
    assert_eq!(visible_to(&accepting(json!([{ "type": "b" }])), &context), map(json!({ "b": 2 })));
    assert!(visible_to(&accepting(json!([])), &context).is_empty());
}

fn origin(session_id: Option<&str>) -> Origin<'_> {
    let variables = Variables { module: "sample", input_hash: &|| "h".to_owned(), user_id: None, session_id };
    Origin { variables, now: SystemTime::UNIX_EPOCH }
}

fn emitting(emits: Value, files: &[(&str, Value)]) -> Module {
    module(json!({ "emits": emits }), json!({}), files)
}

// CTX-020, CTX-021: undeclared and invalid types are dropped with a notice, the rest is kept.
#[test]
fn ctx_020_021_only_declared_and_valid_context_is_emitted() {
    let state = json!({ "properties": { "n": { "type": "integer" } } });
    let emits =
        json!([{ "type": "a", "schema": "s.json" }, { "type": "b", "schema": "s.json" }, { "type": "c" }]);
    let module = emitting(emits, &[("s.json", state)]);
    let given = json!({ "a": { "n": 1 }, "b": { "n": "hunter2" }, "c": true, "secret_notes": 1 });
    let emission = check_emission(&module, Some(&given), &origin(Some("s")));
    assert_eq!(emission.visible, map(json!({ "a": { "n": 1 }, "c": true })));
    let messages: Vec<&str> = emission.warnings.iter().map(|each| each.message.as_str()).collect();
    assert!(messages[0].starts_with("emitted context `b` was dropped: `/n`"), "{messages:?}");
    assert!(messages[1].ends_with("does not declare was dropped: `secret_notes`"), "{messages:?}");
    assert!(!messages.concat().contains("hunter2"));
    let odd = check_emission(&module, Some(&json!([])), &origin(None));
    assert_eq!((odd.visible.len(), odd.warnings.len()), (0, 1));
    assert_eq!(check_emission(&module, None, &origin(None)), Emission::default());
}

// CTX-022, CTX-032, S-20: an entry with a ttl of 0 (the default) or without a key is never stored.
#[test]
fn ctx_022_032_what_is_stored_has_a_life_and_a_key() {
    let emits = json!([
        { "type": "passing" }, { "type": "state", "ttl": 3600 }, { "type": "cache", "ttl": -1, "key_pattern": "${module}:${input_hash}" },
        { "type": "own", "ttl": 5, "key_pattern": "${user_id}" },
    ]);
    let module = emitting(emits, &[]);
    let given = json!({ "passing": 1, "state": 2, "cache": 3, "own": 4 });
    let keys = |session| {
        let emission = check_emission(&module, Some(&given), &origin(session));
        assert_eq!(emission.visible, map(given.clone()));
        let keys: Vec<String> = emission.entries.iter().map(|entry| entry.key.text.clone()).collect();
        (keys, emission.warnings.iter().map(|each| each.message.clone()).collect::<Vec<_>>())
    };
    let (with_session, notices) = keys(Some("s"));
    assert_eq!(with_session, ["sample:s:state", "sample:h"]);
    assert!(notices[0].ends_with("`own`"), "{notices:?}");
    let (without, notices) = keys(None);
    assert_eq!(without, ["sample:h"]);
    assert!(notices[0].ends_with("`state`, `own`"), "{notices:?}");
}
