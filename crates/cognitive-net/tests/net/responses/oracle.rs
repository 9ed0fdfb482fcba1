//! The types of OpenAI's own Python client as an oracle: our requests are of its types, its events and items are read as
//! it reads them, and its lists of codes and models are known here.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use cognitive_contract::ports::{Finish, ModelCall};
use cognitive_net::{Kind, batch_service, provider};
use cognitive_ports::batch_service::PostedRequest;
use cognitive_ports::openai_api::OpenAiApi;
use cognitive_testkit::{Lack, python_with, skip};
use serde_json::{Value, json};

use super::answers::{MISTAKEN, PASSING, REFUSED};
use super::recordings::RECORDINGS;
use super::{at, media, play, reply, responses, with_round, with_tools};
use crate::support::{Act, Outcome, Reply, Server, TEXT, ask, call, config, run};

/// Runs a command of the oracle; `None`, after `skip`, if no Python has the client.
fn oracle(command: &str, input: &str) -> Option<Vec<Value>> {
    let Some(python) = python_with("import openai.types.responses") else {
        skip(Lack::VendorClients);
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net/responses/oracle.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(command)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // The oracle answers while it reads.
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{command}");
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// A change of a call.
type Change = Box<dyn FnOnce(&mut ModelCall)>;

/// Returns the requests of calls of every kind.
fn requests() -> Vec<Value> {
    let mut found = Vec::new();
    let mut note =
        |name: &str, kind: &str, body: Value| found.push(json!({ "name": name, "type": kind, "body": body }));
    let changes: [(&str, Change); 7] = [
        ("plain", Box::new(|_| {})),
        ("json", Box::new(|call| call.schema = None)),
        ("media", Box::new(media)),
        ("thinking", Box::new(|call| call.thinking = Some(9_000))),
        ("no thinking", Box::new(|call| call.thinking = Some(0))),
        ("tools", Box::new(with_tools)),
        ("no limit", Box::new(|call| call.max_output_tokens = None)),
    ];
    for (name, change) in changes {
        let (outcome, server) = run(play(vec![reply("stream")], change));
        outcome.ok();
        note(name, "streaming", server.seen()[0].json());
    }
    for (name, answer_now, script) in [
        ("round", false, vec![reply("tools"), reply("stream")]),
        ("last round", true, vec![reply("tools"), reply("stream")]),
        ("round without encryption", false, vec![reply("error-encrypted"), reply("tools"), reply("stream")]),
    ] {
        for (number, body) in dialogue(script, answer_now).into_iter().enumerate() {
            note(&format!("{name} {number}"), "streaming", body);
        }
    }
    for refusal in ["error-temperature", "error-schema", "error-format"] {
        let (outcome, server) = run(play(vec![reply(refusal), reply("stream")], |_| {}));
        outcome.ok();
        note(refusal, "streaming", server.seen()[1].json());
    }
    let (outcome, server) = run(play(vec![reply("error-stream"), reply("whole")], |_| {}));
    outcome.ok();
    note("whole", "whole", server.seen()[1].json());
    let (batch, line) = posted();
    note("batch", "batch", batch);
    note("line of a batch", "whole", line);
    found
}

/// Returns the requests of a dialogue with tools.
fn dialogue(script: Vec<Act>, answer_now: bool) -> Vec<Value> {
    run(async {
        let server = Server::start(script).await;
        let provider = at(&server);
        let mut call = call(provider.target());
        with_tools(&mut call);
        let end = ask(provider.as_ref(), &call).await.ok().clone();
        with_round(&mut call, end);
        call.answer_now = answer_now;
        ask(provider.as_ref(), &call).await.ok();
        server.seen().iter().map(crate::support::Request::json).collect()
    })
}

/// Posts a batch and returns its creation, and the body of its only line.
fn posted() -> (Value, Value) {
    run(async {
        let id = |id: &str| {
            Reply::new("200 OK", "content-type: application/json", &json!({ "id": id }).to_string())
        };
        let server = Server::start(vec![id("file-1").act(), id("batch_1").act()]).await;
        let service = batch_service(&responses(&server.url)).unwrap();
        let mut call = call(service.single().target());
        call.thinking = Some(500);
        let draft = service.draft(&call).unwrap();
        let request = PostedRequest { id: "r-1".to_owned(), body: draft.body.clone() };
        assert_eq!(service.post("mine", &[request]).await.unwrap(), "batch_1");
        let seen = server.seen();
        let line = seen[0].body.lines().find(|line| line.starts_with("{\"custom_id\"")).unwrap();
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["method"], &line["url"]), (&json!("POST"), &json!("/v1/responses")));
        let paths: Vec<&str> = seen.iter().map(|request| request.line.as_str()).collect();
        assert_eq!(paths, ["POST /v1/files HTTP/1.1", "POST /v1/batches HTTP/1.1"]);
        (seen[1].json(), line["body"].clone())
    })
}

#[test]
fn every_request_is_of_the_types_of_the_client() {
    let mut requests = requests();
    // The oracle finds members that are unknown, missing and of a wrong type.
    let mut wrong = requests[0].clone();
    wrong["body"]["seed"] = json!(7);
    wrong["body"]["store"] = json!("no");
    wrong["body"]["text"]["format"].as_object_mut().unwrap().shift_remove("name");
    let checked = requests.len();
    requests.push(wrong);
    let lines: Vec<String> = requests.iter().map(|request| format!("{request}\n")).collect();
    let lines = lines.concat();
    let Some(faults) = oracle("requests", &lines) else { return };
    assert_eq!(faults.len(), 3, "{faults:#?}");
    assert!(checked >= 18, "{checked}");
}

#[test]
fn recordings_are_read_as_the_client_reads_them() {
    let Some(read) = oracle("expectations", RECORDINGS) else { return };
    for (number, (line, read)) in RECORDINGS.lines().zip(&read).enumerate() {
        let recording: Value = serde_json::from_str(line).unwrap();
        assert_eq!(recording["expect"], *read, "line {}", number + 1);
    }
    assert_eq!(read.len(), RECORDINGS.lines().count());
}

/// A stream of these events.
fn stream(events: &[Value]) -> Act {
    let frames: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let body = frames.concat();
    Reply::new("200 OK", "content-type: text/event-stream", &body).act()
}

fn document(body: &Value) -> Act {
    Reply::new("200 OK", "content-type: application/json", &body.to_string()).act()
}

fn hear(act: Act) -> Outcome {
    run(play(vec![act; 3], with_tools)).0
}

/// The events that are part of an answer; the tests of answers and recordings cover them. All others, also those of
/// later versions of the client, must not disturb one.
const MEANINGFUL: [&str; 11] = [
    "error",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.output_item.added",
    "response.output_item.done",
    "response.function_call_arguments.delta",
    "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta",
];

#[test]
fn every_event_type_of_the_client_is_read() {
    let Some(cases) = oracle("events", "") else { return };
    let mut types = std::collections::BTreeSet::new();
    for case in &cases {
        let kind = case["type"].as_str().unwrap();
        types.insert(kind);
        let delta = json!({ "type": "response.output_text.delta", "output_index": 9, "delta": TEXT });
        let completed = json!({ "type": "response.completed", "response": case["whole"] });
        let outcome = hear(stream(&[case["event"].clone(), delta, completed]));
        if matches!(kind, "response.completed" | "response.incomplete") {
            // Its own response ends the stream.
            let is_cut = outcome.ok().finish == Finish::CutOff;
            assert_eq!(
                (is_cut, outcome.heard.text.contains(TEXT)),
                (kind.ends_with("incomplete"), false),
                "{case}"
            );
            continue;
        }
        let (text, finish) = match kind {
            "error" | "response.failed" => {
                outcome.error();
                continue;
            }
            "response.output_text.delta" => (format!("x{TEXT}"), Finish::Complete),
            "response.refusal.delta" => (TEXT.to_owned(), Finish::Refused("x".to_owned())),
            _ => (TEXT.to_owned(), Finish::Complete),
        };
        assert_eq!((&outcome.heard.text, &outcome.ok().finish), (&text, &finish), "{case}");
    }
    assert!(types.len() >= 59, "{}", types.len());
    for kind in MEANINGFUL {
        assert!(types.contains(kind), "{kind}");
    }
}

/// Items of tools that are never offered, whose types differ in answers and in requests.
const OTHERS: [&str; 5] = [
    "additional_tools",
    "shell_call_output",
    "custom_tool_call_output",
    "image_generation_call",
    "code_interpreter_call",
];

// Items of tools that the service runs itself are no part of an answer. They go back with the turn.
#[test]
fn every_item_type_of_the_client_is_read_and_sent_back() {
    let Some(cases) = oracle("items", "") else { return };
    let mut requests = String::new();
    for case in &cases {
        let kind = case["type"].as_str().unwrap();
        let calls = usize::from(kind == "function_call");
        let text =
            if kind == "message" && case["item"]["content"] != json!([]) && case["item"]["phase"].is_null() {
                format!("x{TEXT}")
            } else {
                TEXT.to_owned()
            };
        let done = |index: u64, item: &Value| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
        let completed = json!({ "type": "response.completed", "response": case["whole"] });
        let whole = &case["whole"]["output"];
        for act in
            [document(&case["whole"]), stream(&[done(0, &case["item"]), done(1, &whole[1]), completed])]
        {
            let outcome = hear(act);
            assert_eq!((&outcome.heard.text, outcome.ok().tool_calls.len()), (&text, calls), "{case}");
        }
        // The item comes back with a call, which is answered.
        let call_item = json!({ "type": "function_call", "call_id": "call_a1", "name": "current_time", "arguments": "{}" });
        let mut turn = case["whole"].clone();
        turn["output"] = json!([case["item"], call_item]);
        let bodies = dialogue(vec![document(&turn), reply("stream")], false);
        if !OTHERS.contains(&kind) {
            requests += &json!({ "name": case["item"], "type": "streaming", "body": bodies[1] }).to_string();
            requests.push('\n');
        }
    }
    assert!(cases.len() >= 56, "{}", cases.len());
    let faults = oracle("requests", &requests).unwrap();
    assert_eq!(faults, Vec::<Value>::new(), "{faults:#?}");
}

#[test]
fn every_code_reason_and_model_of_the_client_is_known() {
    let Some(words) = oracle("words", "") else { return };
    let list = |name: &str| -> Vec<String> { serde_json::from_value(words[0][name].clone()).unwrap() };
    for code in list("codes") {
        let known = REFUSED.iter().chain(&MISTAKEN).chain(&PASSING);
        assert!(known.into_iter().any(|known| *known == code), "{code}");
    }
    for reason in list("reasons") {
        let body = json!({ "object": "response", "status": "incomplete", "output": [],
            "incomplete_details": { "reason": reason } });
        assert_ne!(hear(document(&body)).ok().finish, Finish::Complete, "{reason}");
    }
    let needs = |model: &str| {
        let provider = provider(config(Kind::OpenAi, "http://127.0.0.1:9").with_model(model)).unwrap();
        provider.destination().unwrap().address.unwrap().ends_with(OpenAiApi::Responses.path())
    };
    for model in list("alone") {
        assert!(needs(&model), "{model} is served by this API alone");
    }
    let newer = |model: &str| {
        ["gpt-5.5", "gpt-5.6", "gpt-6"].iter().any(|start| model.starts_with(start))
            || model.contains("-pro")
            || model.contains("codex")
    };
    for model in list("chat") {
        assert_eq!(needs(&model), newer(&model), "{model}");
    }
}
