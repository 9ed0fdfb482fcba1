//! Whole runs with a saved reply: the envelope for the caller, and the conditions for a model call.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

#[path = "pipeline/calls.rs"]
mod calls;
#[path = "pipeline/contract.rs"]
mod contract;
#[path = "pipeline/intents.rs"]
mod intents;

use std::collections::BTreeMap;
use std::sync::Arc;

use cognitive_contract::policy::Caller;
use cognitive_contract::ports::{NullSink, Provider, ProviderError};
use cognitive_contract::{Enforcement, Envelope};
use cognitive_library::Folder;
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{Host, Replay, RunRequest, chunks, run, run_by_contract, stream};
use cognitive_testkit::{FakeProvider, FolderModule, ScriptedProvider, module_folder, poll_now};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

fn folder(manifest: &Value, schema: &Value) -> FolderModule {
    FolderModule::new(module_folder(manifest, schema, "Answer the question."))
}

fn schema() -> Value {
    json!({
        "input": { "type": "object", "required": ["q"] },
        "data": {
            "type": "object", "required": ["rationale", "answer"],
            "properties": { "rationale": { "type": "string" }, "answer": { "type": "string" } },
        },
    })
}

fn good() -> Value {
    json!({
        "ok": true, "meta": { "confidence": 0.95, "risk": "low", "explain": "e" },
        "data": { "rationale": "r", "answer": "42" },
    })
}

fn go(manifest: &Value, provider: Arc<dyn Provider>, request: RunRequest) -> Value {
    let host = Host::new(Arc::new(folder(manifest, &schema())), provider);
    let envelope = poll_now(run(&host, request, &mut NullSink));
    let value = serde_json::to_value(&envelope).unwrap();
    assert!(Envelope::from_value(value.clone()).is_ok(), "every exit is a valid envelope: {value}");
    value
}

fn answer(manifest: Value, reply: &str) -> Value {
    go(&manifest, Arc::new(Replay::text(reply)), RunRequest::new("sample", json!({ "q": "?" })))
}

#[test]
fn gen_002_pipe_006_a_valid_answer_passes_untouched() {
    let value = answer(json!({ "tier": "decision" }), &good().to_string());
    assert_eq!(value["data"], good()["data"]);
    assert_eq!(value["meta"]["explain"], "e");
    assert!(value["meta"].get("warnings").is_none());
}

#[test]
fn the_runtime_has_the_last_word_on_its_own_members() {
    let mut reply = good();
    reply["meta"]["latency_ms"] = json!("fast");
    reply["meta"]["model"] = json!("dreamt");
    // A well-formed value stays until the module's own schema has judged it.
    for schema in
        [json!({}), json!({ "required": ["model"], "properties": { "model": { "const": "dreamt" } } })]
    {
        let manifest = json!({ "tier": "decision" });
        let mut whole = self::schema();
        whole["meta"] = schema;
        let host = Host::new(Arc::new(folder(&manifest, &whole)), Arc::new(Replay::text(reply.to_string())));
        let request = RunRequest::new("sample", json!({ "q": "?" }));
        let value = serde_json::to_value(poll_now(run(&host, request, &mut NullSink))).unwrap();
        assert_eq!((&value["ok"], &value["meta"]["model"]), (&json!(true), &json!("replay/saved-reply")));
        assert!(value["meta"]["latency_ms"].is_number(), "{value}");
    }
}

// SCH-003: a default of the input schema reaches the model, and the hash is that of the input as it was sent.
#[test]
fn sch_003_a_default_of_the_input_reaches_the_model() {
    let ear = Arc::new(ScriptedProvider::default());
    let mut schema = schema();
    schema["input"]["properties"] = json!({ "language": { "type": "string", "default": "Danish" } });
    let host = Host::new(Arc::new(folder(&json!({ "tier": "decision" }), &schema)), ear.clone());
    for (input, read) in [
        (json!({ "q": "why?" }), "\"language\":\"Danish\""),
        (json!({ "q": "why?", "language": "Irish" }), "\"language\":\"Irish\""),
    ] {
        let mut request = RunRequest::new("sample", input.clone());
        request.options.settings.receipt = Some(true);
        let value = serde_json::to_value(poll_now(run(&host, request, &mut NullSink))).unwrap();
        let call = ear.calls().pop().unwrap();
        assert!(call.input.contains(read), "{}", call.input);
        let hash = &value["meta"]["provenance"]["sha256"]["input"];
        assert_eq!(hash, &json!(cognitive_runtime::receipt::canonical_sha256(&input)));
    }
}

// S-05
#[test]
fn meta_007_each_run_has_its_own_trace_id_unless_given_one() {
    let id = || answer(json!({ "tier": "decision" }), &good().to_string())["meta"]["trace_id"].clone();
    assert_ne!(id(), id());
    let mut request = RunRequest::new("sample", json!({ "q": 1 }));
    request.options.trace_id = Some("mine".to_owned());
    let value = go(&json!({ "tier": "decision" }), Arc::new(Replay::text(good().to_string())), request);
    assert_eq!(value["meta"]["trace_id"], "mine");
}

#[test]
fn pipe_002_invalid_input_asks_no_model() {
    let provider = Arc::new(Replay::text(good().to_string()));
    let value = go(&json!({ "tier": "decision" }), provider.clone(), RunRequest::new("sample", json!({})));
    assert_eq!(value["error"]["code"], "E1001");
    assert_eq!(provider.calls(), 0);
}

#[test]
fn prompt_006_free_text_skips_the_input_schema_and_cli_011_so_can_the_caller() {
    let mut request = RunRequest::new("sample", Value::Null);
    request.input = RunInput::Text("what?".to_owned());
    let text = go(&json!({ "tier": "decision" }), Arc::new(Replay::text(good().to_string())), request);
    assert_eq!(text["ok"], true);
    let mut request = RunRequest::new("sample", json!({}));
    request.options.settings.enforcement = Some(Enforcement::EnvelopeOnly);
    let bare = json!({ "ok": true, "meta": { "confidence": 1, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } });
    let loose = go(&json!({ "tier": "decision" }), Arc::new(Replay::text(bare.to_string())), request.clone());
    assert_eq!(loose["ok"], true);
    let empty = go(&json!({ "tier": "decision" }), Arc::new(Replay::text("{\"ok\":true}")), request);
    assert_eq!(empty["error"]["code"], "E3001", "the envelope contract always holds");
}

#[test]
fn pol_020_who_may_run_it_is_asked_before_anything_else() {
    let mut request = RunRequest::new("sample", json!({}));
    request.options.caller = Caller::Agent;
    let manifest = json!({ "tier": "decision", "invocation": { "agent_invocable": false } });
    let value = go(&manifest, Arc::new(Replay::text("")), request);
    assert_eq!(value["error"]["code"], "E4007");
}

// S-06
#[test]
fn repair_001_014_what_was_repaired_is_said_and_what_was_not_is_kept() {
    let mut reply = good();
    reply["meta"]["explain"] = json!("x".repeat(300));
    let value = answer(json!({ "tier": "decision" }), &reply.to_string());
    assert_eq!(value["meta"]["warnings"][0]["code"], "REPAIRED");
    reply["data"]["answer"] = json!(42);
    let value = answer(json!({ "tier": "decision" }), &reply.to_string());
    assert_eq!(value["error"]["code"], "E3001");
    assert_eq!(value["partial_data"]["answer"], 42, "the model's own data, unrepaired");
    assert_eq!(value["error"]["details"]["violations"][0]["path"], "/data/answer");
}

#[test]
fn tier_002_err_014_the_gate_keeps_the_data_as_partial() {
    let mut reply = good();
    reply["meta"]["confidence"] = json!(0.5);
    let value = answer(json!({ "tier": "exec" }), &reply.to_string());
    assert_eq!(
        (value["error"]["code"].as_str(), value["meta"]["confidence"].as_f64()),
        (Some("E2001"), Some(0.5))
    );
    assert_eq!(value["partial_data"]["answer"], "42");
    let silent = json!({ "tier": "exec", "failure": { "partial_allowed": false } });
    assert!(answer(silent, &reply.to_string()).get("partial_data").is_none());
}

#[test]
fn compat_013_a_promised_confidence_is_not_made_up() {
    let files = BTreeMap::from([
        (
            "MODULE.md".to_owned(),
            b"---\nname: a\nversion: 1.0.0\nconstraints: {require_confidence: true}\n---\nDo.\n".to_vec(),
        ),
        ("schema.json".to_owned(), br#"{"input": {}, "output": {}}"#.to_vec()),
    ]);
    let ask = |reply: &str| {
        let host = Host::new(
            Arc::new(FolderModule::new(Folder::memory("a", files.clone()))),
            Arc::new(Replay::text(reply)),
        );
        serde_json::to_value(poll_now(run(&host, RunRequest::new("a", json!({})), &mut NullSink))).unwrap()
    };
    assert_eq!(ask(r#"{"rationale": "r"}"#)["error"]["code"], "E3001");
    let value = ask(r#"{"rationale": {"decisions": []}, "confidence": 0.7}"#);
    assert_eq!(value["ok"], true, "FMT-007: a v1 rationale may be an object: {value}");
    let warnings: Vec<&str> =
        value["meta"]["warnings"].as_array().unwrap().iter().filter_map(|w| w["code"].as_str()).collect();
    assert_eq!(warnings, ["DEPRECATED", "DEPRECATED"]);
}

// COMPAT-013: a promised rationale says something, as text or as an object.
#[test]
fn compat_013_a_promised_rationale_is_not_empty() {
    let files = BTreeMap::from([
        (
            "MODULE.md".to_owned(),
            b"---\nname: a\nversion: 1.0.0\nconstraints: {require_rationale: true}\n---\nDo.\n".to_vec(),
        ),
        ("schema.json".to_owned(), br#"{"input": {}, "output": {}}"#.to_vec()),
    ]);
    for (rationale, is_kept) in [
        (json!("r"), true),
        (json!({ "decisions": [] }), true),
        (json!(" "), false),
        (json!({}), false),
        (json!(5), false),
        (Value::Null, false),
    ] {
        let reply = json!({ "rationale": rationale, "confidence": 0.7 }).to_string();
        let host = Host::new(
            Arc::new(FolderModule::new(Folder::memory("a", files.clone()))),
            Arc::new(Replay::text(reply)),
        );
        let value =
            serde_json::to_value(poll_now(run(&host, RunRequest::new("a", json!({})), &mut NullSink)))
                .unwrap();
        assert_eq!(value["ok"], is_kept, "{value}");
        let promise = "the module promises a rationale";
        let is_told = value["error"]["details"].to_string().contains(promise);
        assert_eq!(is_told, !is_kept, "{value}");
    }
}

#[test]
fn prompt_007_012_man_013_compat_015_the_model_is_told_the_rules() {
    let ear = Arc::new(ScriptedProvider::default());
    let manifest = json!({ "tier": "exec", "excludes": ["guessing dates"], "constraints": { "no_inventing_data": true } });
    go(&manifest, ear.clone(), RunRequest::new("sample", json!({ "q": "why?" })));
    let call = ear.calls().pop().unwrap();
    for words in ["guessing dates", "inventing data", "using the network", "\"ok\": true", "\"ok\": false"] {
        assert!(call.instructions.contains(words), "{words}");
    }
    assert!(call.input.contains("why?") && !call.instructions.contains("why?"));
    assert!(call.temperature.abs() < f64::EPSILON, "TIER-005: exec is asked deterministically");
}

#[test]
fn gen_008_nothing_of_one_run_reaches_the_next() {
    let memory = Arc::new(ScriptedProvider::default());
    let host = Host::new(Arc::new(folder(&json!({ "tier": "exec" }), &schema())), memory.clone());
    for q in ["first secret", "second"] {
        poll_now(run(&host, RunRequest::new("sample", json!({ "q": q })), &mut NullSink));
    }
    let calls = memory.calls();
    let prompts: Vec<String> =
        calls.iter().map(|call| format!("{}{}", call.instructions, call.input)).collect();
    assert!(prompts[0].contains("first secret") && !prompts[1].contains("first secret"));
}

#[test]
fn pipe_011_err_015_a_panic_becomes_an_envelope_without_its_text() {
    let bomb = FakeProvider::new(|_, _| panic!("sk-secret"));
    std::panic::set_hook(Box::new(|_| {}));
    let value = go(&json!({ "tier": "exec" }), Arc::new(bomb), RunRequest::new("sample", json!({ "q": 1 })));
    let _ = std::panic::take_hook();
    assert_eq!(value["error"]["code"], "E4000");
    assert!(!value.to_string().contains("sk-secret"));
}

#[test]
fn pipe_010_provider_failures_have_their_codes() {
    for (error, code, kind, recoverable) in [
        (ProviderError::Unavailable("refused".into()), "E4001", "outage", true),
        (ProviderError::Misconfigured("no such key".into()), "E4001", "auth", false),
        (ProviderError::Rejected("what is that".into()), "E4001", "bad_request", false),
        (ProviderError::RateLimited { retry_after: None }, "E4002", "rate_limit", true),
        (ProviderError::Timeout, "E2002", "timeout", true),
        (ProviderError::Interrupted("reset".into()), "E2010", "network", true),
        (ProviderError::ContextOverflow("too long".into()), "E4003", "too_long", false),
        (ProviderError::Unsupported("`pattern` at `/properties/data`".into()), "E4001", "unsuitable", false),
        (ProviderError::Unexpected("token sk-123".into()), "E4000", "", false),
    ] {
        let provider = Arc::new(Replay::pieces(vec!["{\"ok\"".into()], Some(error)));
        let value =
            go(&json!({ "tier": "decision" }), provider, RunRequest::new("sample", json!({ "q": 1 })));
        assert_eq!(value["error"]["code"], code);
        // D-16: only an internal fault has no provider to name.
        let details = &value["error"]["details"];
        let named =
            if kind.is_empty() { (&Value::Null, &Value::Null) } else { (&json!("replay"), &json!(kind)) };
        assert_eq!((&details["provider"], &details["kind"]), named, "{code}");
        assert_eq!(value["error"]["recoverable"], recoverable, "{code} {kind}");
        assert_eq!(value["partial_data"]["raw"], "{\"ok\"");
        assert!(!value.to_string().contains("sk-123"));
    }
}

// CAP-013: a caller that accepts only a stream gets E4010, and no model is asked.
#[test]
fn cap_013_whoever_requires_a_stream_gets_no_whole_answer() {
    for (mode, streams) in [("both", true), ("sync", false)] {
        let manifest = json!({ "tier": "decision", "response": { "mode": mode } });
        let mut request = RunRequest::new("sample", json!({ "q": "?" }));
        request.options.require_streaming = true;
        let value = go(&manifest, Arc::new(Replay::text(good().to_string())), request.clone());
        assert_eq!(value["error"]["code"], "E4010", "one envelope is no stream");
        let host = Host::new(
            Arc::new(folder(&manifest, &schema())),
            Arc::new(Replay::text(good().to_string())) as Arc<dyn Provider>,
        );
        let delivery = poll_now(stream(&host, request, |_| {}));
        assert_eq!(delivery.envelope().ok(), streams, "{mode}");
    }
}

// MAN-015: `throw` is an error for a program, with the whole envelope in it; by default a failure is an answer.
#[test]
fn man_015_a_module_that_throws_fails_with_an_error_that_carries_the_envelope() {
    let outcome = |contract: &str, reply: &Value| {
        let manifest = json!({ "tier": "decision", "failure": { "contract": contract } });
        let host = Host::new(
            Arc::new(folder(&manifest, &schema())),
            Arc::new(Replay::text(reply.to_string())) as Arc<dyn Provider>,
        );
        let request = RunRequest::new("sample", json!({ "q": "?" }));
        poll_now(run_by_contract(&host, request, &mut NullSink))
    };
    let broken = json!({ "ok": true, "meta": good()["meta"], "data": { "rationale": "r" } });
    let answer = outcome("error_union", &broken).unwrap();
    assert_eq!(answer.error().unwrap().code(), "E3001");
    let thrown = outcome("throw", &broken).unwrap_err();
    assert!(thrown.to_string().starts_with("E3001: "), "{thrown}");
    let value = serde_json::to_value(thrown.envelope()).unwrap();
    assert_eq!(value["partial_data"], json!({ "rationale": "r" }));
    assert!(Envelope::from_value(value).is_ok(), "a whole envelope");
    let of_model =
        json!({ "ok": false, "meta": good()["meta"], "error": { "code": "X1", "message": "No." } });
    assert_eq!(outcome("throw", &of_model).unwrap_err().into_envelope().error().unwrap().code(), "X1");
    assert!(outcome("throw", &good()).unwrap().ok());
}

// STREAM-024: a program pulls one chunk after the other; they form a legal log that matches the envelope.
#[test]
fn stream_024_the_chunks_of_a_run_can_be_pulled() {
    for (mode, least) in [("streaming", 3), ("sync", 1)] {
        let manifest = json!({ "tier": "decision", "response": { "mode": mode } });
        let host = Host::new(
            Arc::new(folder(&manifest, &schema())),
            Arc::new(Replay::text(good().to_string())) as Arc<dyn Provider>,
        );
        let pulled = chunks(&host, RunRequest::new("sample", json!({ "q": "?" })));
        let session = pulled.session_id().clone();
        let all: Vec<Value> = poll_now(pulled.map(|chunk| serde_json::to_value(&chunk).unwrap()).collect());
        assert!(all.len() >= least, "{mode}: {all:?}");
        assert_eq!(all.first().and_then(|first| first.get("session_id")?.as_str()), Some(session.as_str()));
        let last = all.last().unwrap();
        assert_eq!((&last["final"], &last["data"]), (&json!(true), &good()["data"]), "{mode}");
    }
    let host = Host::new(
        Arc::new(folder(&json!({ "tier": "decision", "response": { "mode": "both" } }), &schema())),
        Arc::new(Replay::text("no JSON")) as Arc<dyn Provider>,
    );
    let last = poll_now(chunks(&host, RunRequest::new("sample", json!({ "q": "?" }))).collect::<Vec<_>>());
    assert_eq!(serde_json::to_value(last.last().unwrap()).unwrap()["error"]["code"], "E1000");
}
