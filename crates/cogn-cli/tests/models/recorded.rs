//! A recording is read as the live reply was, with the schema that the service received (D-18): `cogn test --record`
//! and then `cogn test`, `cogn run --reply` and `cogn batch --reply`.

use std::fs;

use cognitive_testkit::{Act, FakeModel, Home, ProcessOutput, stream_reply};
use serde_json::{Value, json};

use crate::{answering, ask, home};

/// Writes a module below the project's folder of modules; every section of its contract has optional members.
fn module(run: &Home, name: &str, prompt: &str) {
    let text = json!({ "type": "string" });
    let item =
        json!({ "type": "object", "required": ["name"], "properties": { "name": text, "hint": text } });
    let schema = json!({
        "input": { "type": "object" },
        "data": {
            "type": "object", "required": ["rationale", "items"],
            "properties": { "rationale": text, "note": text, "items": { "type": "array", "items": item } },
        },
        "meta": {
            "type": "object", "required": ["confidence", "risk", "explain"],
            "properties": { "confidence": { "type": "number" }, "risk": text, "explain": text, "team": text },
        },
        "error": {
            "type": "object", "required": ["code", "message"],
            "properties": { "code": text, "message": text, "field": text },
        },
    });
    run.simple_module(name, &json!({}));
    let folder = format!("cognitive/modules/{name}");
    run.write(&format!("{folder}/schema.json"), schema.to_string())
        .write(&format!("{folder}/prompt.md"), prompt);
    run.write(&format!("{folder}/tests/one.input.json"), r#"{"t": "x"}"#);
}

/// A success as a model writes it that has to name every member.
fn success() -> Value {
    json!({
        "ok": true, "error": null,
        "data": { "rationale": "r", "note": null, "items": [{ "name": "a", "hint": null }] },
        "meta": { "confidence": 0.9, "risk": "low", "explain": "e", "team": null },
    })
}

/// A failure of such a model.
fn failure() -> Value {
    json!({
        "ok": false, "data": null,
        "error": { "code": "OUT_OF_SCOPE", "message": "m", "field": null },
        "meta": { "confidence": 0.9, "risk": "low", "explain": "e", "team": null },
    })
}

/// The data of the success as its contract means it.
fn meant() -> Value {
    json!({ "rationale": "r", "items": [{ "name": "a" }] })
}

fn record(run: &Home, module: &str, service: &FakeModel) -> ProcessOutput {
    record_as(run, module, service, "stub")
}

fn record_as(run: &Home, module: &str, service: &FakeModel, model: &str) -> ProcessOutput {
    let url = service.url();
    let model = ["--provider", "openai", "--base-url", &url, "--model", model];
    run.cogn(&[&["test", module, "--record", "--accept", "--accept-failures"], &model[..]].concat())
}

fn read(run: &Home, path: &str) -> String {
    fs::read_to_string(run.folder().join("cognitive/modules").join(path)).unwrap_or_default()
}

#[test]
fn what_was_recorded_from_a_bound_model_passes_without_it_d_18() {
    // The second model is asked through the Responses API.
    let models = [("stub", "/v1/chat/completions"), ("gpt-5.6-luna", "/v1/responses")];
    for (answer, (model, path)) in
        [success(), failure()].into_iter().zip(models).chain([(success(), models[1])])
    {
        let run = home();
        module(&run, "part", "Answer.");
        module(&run, "whole", "Look: @call:part($INPUT)[optional]");
        let service = FakeModel::with_answer(&answer);
        for name in ["part", "whole"] {
            record_as(&run, name, &service, model).expect_exit(0);
            assert!(service.requests().iter().all(|request| request.path == path));
            let said = read(&run, &format!("{name}/tests/one.expected.json"));
            assert!(!said.contains("null") && !said.contains("REPAIRED"), "{said}");
            let replayed = run.cogn(&["test", name]).expect_exit(0);
            assert!(replayed.all().contains("1 passed"), "{}", replayed.all());
        }
        assert_eq!(read(&run, "part/tests/one.reply.txt"), answer.to_string(), "the raw text");
        for beside in ["part/tests/one", "whole/tests/one", "whole/tests/one.part"] {
            let dialect = read(&run, &format!("{beside}.reply.json"));
            assert_eq!(dialect, "{\"reply_dialect\":\"openai\"}\n", "{beside}");
        }
        assert_eq!(run.cogn(&["validate", "part", "whole"]).exit(), 0);
    }
}

#[test]
fn a_recording_of_a_model_without_a_schema_keeps_no_dialect_of_before_d_18() {
    let run = home();
    module(&run, "m", "Answer.");
    let bound = answering(&success());
    assert_eq!(record(&run, "m", &bound).exit(), 0);
    assert!(!read(&run, "m/tests/one.reply.json").is_empty());
    let mut plain = success();
    plain.as_object_mut().unwrap().shift_remove("error");
    plain["data"] = meant();
    plain["meta"].as_object_mut().unwrap().shift_remove("team");
    let refusal = Act::error(400, "x", "'response_format' of type 'json_schema' is not supported");
    let unbound = FakeModel::script(vec![refusal, Act::stream(stream_reply(&plain))]);
    record(&run, "m", &unbound).expect_exit(0);
    assert_eq!(read(&run, "m/tests/one.reply.json"), "");
    assert_eq!(run.cogn(&["test", "m"]).exit(), 0);
}

#[test]
fn a_saved_reply_is_read_in_the_dialect_beside_it_or_the_one_that_is_named_d_18() {
    let run = home();
    module(&run, "m", "Answer.");
    let service = answering(&success());
    assert_eq!(record(&run, "m", &service).exit(), 0);
    let beside = "cognitive/modules/m/tests/one.reply.txt";
    fs::copy(run.folder().join(beside), run.folder().join("bare.txt")).unwrap();
    let with = |file: &str, more: &[&str]| {
        let output = run.cogn(&[&["run", "m", "--input", "{}", "--reply", file, "--receipt"], more].concat());
        let repairs = output.json["meta"]["provenance"]["repairs"].clone();
        (output.json["data"].clone(), output.json["error"]["code"].clone(), repairs)
    };
    let good = (meant(), Value::Null, json!([]));
    assert_eq!(with(beside, &[]), good);
    assert_eq!(with("bare.txt", &["--reply-dialect", "openai"]), good);
    assert_eq!(with("bare.txt", &["--reply-dialect", "anthropic"]), good);
    assert_eq!(with("bare.txt", &[]).1, "E3001", "the text of a provider that was sent no schema");
    assert_eq!(with(beside, &["--reply-dialect", "none"]).1, "E3001", "what was typed comes first");
    run.write("rows.jsonl", "{\"t\": \"x\"}\n{\"t\": \"y\"}\n");
    let batch = run.cogn(&["batch", "m", "rows.jsonl", "-o", "out.jsonl", "--reply", beside]);
    let rows = fs::read_to_string(run.folder().join("out.jsonl")).unwrap();
    assert_eq!(rows.matches(r#""ok":true"#).count(), 2, "{rows} {}", batch.all());
}

#[test]
fn a_dialect_that_there_is_not_is_refused_with_the_list_d_18() {
    let run = home();
    module(&run, "m", "Answer.");
    run.write("a.reply.txt", success().to_string());
    let list = "use one of `openai`, `anthropic`, `gemini`, `ollama`, `grammar`, `none`";
    let rows = ["batch", "m", "rows.jsonl", "-o", "out.jsonl"];
    for command in [&["run", "m", "--input", "{}"][..], &rows] {
        let typed = run
            .cogn(&[command, &["--reply", "a.reply.txt", "--reply-dialect", "gpt"]].concat())
            .expect_exit(2);
        assert!(
            typed.all().contains("unknown schema dialect: `gpt`") && typed.all().contains(list),
            "{}",
            typed.all()
        );
        let alone = run.cogn(&[command, &["--reply-dialect", "openai"]].concat());
        assert!(alone.exit() == 2 && alone.all().contains("--reply <FILE>"), "{}", alone.all());
    }
    run.write("a.reply.json", r#"{"reply_dialect": "gpt"}"#);
    let beside = run.cogn(&["run", "m", "--input", "{}", "--reply", "a.reply.txt"]);
    let message = beside.json["error"]["message"].as_str().unwrap();
    assert!(message.contains("a.reply.json") && message.contains(list), "{message}");
    let tests = run.folder().join("cognitive/modules/m/tests");
    fs::write(tests.join("one.expected.json"), r#"{"ok": true}"#).unwrap();
    for name in ["a.reply.txt", "a.reply.json"] {
        fs::copy(run.folder().join(name), tests.join(name.replace('a', "one"))).unwrap();
    }
    let tested = run.cogn(&["test", "m"]);
    assert!(tested.exit() == 1 && tested.all().contains(list), "{}", tested.all());
}

/// The answer as a service of Anthropic streams it.
fn anthropic(answer: &Value) -> Act {
    let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
    let message = json!({ "id": "m", "type": "message", "role": "assistant", "model": "stub-1", "content": [], "usage": usage });
    let events = [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": answer.to_string() } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 9 } }),
        json!({ "type": "message_stop" }),
    ];
    let lines = events.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    Act::stream(lines.concat())
}

/// The same as Gemini streams it.
fn gemini(answer: &Value) -> Act {
    let content = json!({ "role": "model", "parts": [{ "text": answer.to_string() }] });
    let counts = json!({ "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 });
    let event =
        json!({ "candidates": [{ "content": content, "finishReason": "STOP" }], "usageMetadata": counts });
    Act::stream(format!("data: {event}\n\n"))
}

#[test]
fn the_null_of_the_other_outcome_is_no_repair_where_the_schema_demands_it_d_18() {
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    let good = json!({ "ok": true, "data": { "rationale": "r", "items": [] }, "error": null, "meta": meta });
    let bad = json!({ "ok": false, "data": null, "error": { "code": "OUT_OF_SCOPE", "message": "m" }, "meta": meta });
    for answer in [good, bad] {
        for (provider, act) in [
            ("openai", Act::stream(stream_reply(&answer))),
            ("anthropic", anthropic(&answer)),
            ("gemini", gemini(&answer)),
        ] {
            let (run, service) = (home(), FakeModel::script(vec![act]));
            module(&run, "m", "Answer.");
            let more = ["--input", "{}", "--provider", provider, "--receipt"];
            let output = ask(&run, "m", &service.url(), &more);
            let meta = &output.json["meta"];
            assert_eq!(output.json["ok"], answer["ok"], "{provider}: {}", output.all());
            assert_eq!(meta["provenance"]["decode"], "native_schema", "{provider}: {}", output.all());
            assert_eq!(meta["provenance"]["repairs"], json!([]), "{provider}: {}", output.all());
            assert!(meta.get("warnings").is_none(), "{provider}: {}", output.all());
        }
    }
}
