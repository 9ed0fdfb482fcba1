//! Tools on the wire of every service: declarations, parsed calls, and the turn with its results in the next request.

use std::sync::Arc;

use cognitive_contract::ports::{Finish, ModelCall, ModelEnd, Usage};
use cognitive_contract::tools::{ToolCall, ToolReply, ToolRound, ToolSpec};
use cognitive_net::Kind;
use serde_json::{Value, json};

use crate::support::{Reply, Server, TEXT, ask, at, call, recorded, run};

const OTHERS: [(Kind, &str); 4] = [
    (Kind::OpenAi, "openai"),
    (Kind::Anthropic, "anthropic"),
    (Kind::Gemini, "gemini"),
    (Kind::Ollama, "ollama"),
];

fn parameters() -> Value {
    json!({ "type": "object", "properties": { "path": { "type": "string", "default": null } } })
}

/// Returns the default call with two tools.
fn with_tools(kind: Kind, server: &Server) -> ModelCall {
    let mut call = call(at(kind, server).target());
    call.tools = vec![
        Arc::new(ToolSpec::new("current_time", "Tells the time.", parameters())),
        Arc::new(ToolSpec::new("json_query", "Finds values.", parameters())),
    ];
    call
}

/// Runs one call and returns the request, the text and the end.
fn first_turn(kind: Kind, recording: &str, cut: usize) -> (Value, String, ModelEnd) {
    run(async {
        let server = Server::start(vec![recorded(recording).cut(cut).act()]).await;
        let outcome = ask(at(kind, &server).as_ref(), &with_tools(kind, &server)).await;
        (server.seen()[0].json(), outcome.heard.text.clone(), outcome.ok().clone())
    })
}

/// Returns the request after a turn with calls, where one tool succeeded and the other failed.
fn second_request(kind: Kind, service: &str, answer_now: bool) -> Value {
    run(async {
        let script = ["tools", "stream"].map(|name| recorded(&format!("{service}/{name}")).act());
        let server = Server::start(script.to_vec()).await;
        let provider = at(kind, &server);
        let mut call = with_tools(kind, &server);
        let end = ask(provider.as_ref(), &call).await.ok().clone();
        let replies = [(r#"{"time":null}"#, true), (r#"{"error":"no"}"#, false)];
        let replies = replies.map(|(content, ok)| ToolReply::new(content, ok));
        call.rounds = vec![ToolRound::new(end.turn, end.tool_calls.into_iter().zip(replies).collect())];
        call.answer_now = answer_now;
        let outcome = ask(provider.as_ref(), &call).await;
        assert_eq!((outcome.heard.text.as_str(), outcome.ok().tool_calls.len()), (TEXT, 0));
        server.seen()[1].json()
    })
}

fn wanted(ids: [&str; 2]) -> Vec<(String, String, Value)> {
    let query = json!({ "path": "/größe", "value": { "größe": null } });
    let call = |id: &str, name: &str, arguments| (id.to_owned(), name.to_owned(), arguments);
    vec![call(ids[0], "current_time", json!({})), call(ids[1], "json_query", query)]
}

fn asked_for(calls: &[ToolCall]) -> Vec<(String, String, Value)> {
    let value = |text: &str| if text.is_empty() { json!({}) } else { serde_json::from_str(text).unwrap() };
    calls.iter().map(|call| (call.id.clone(), call.name.clone(), value(&call.arguments))).collect()
}

// S-35: the same calls, however the bytes are split, in a stream and in one document.
#[test]
fn calls_are_read_in_every_wire_format() {
    for (kind, recording, ids) in [
        (Kind::OpenAi, "openai/tools", ["call_a1", "call_b2"]),
        (Kind::OpenAi, "openai/tools-whole", ["call_a1", "call_b2"]),
        (Kind::Anthropic, "anthropic/tools", ["toolu_a1", "toolu_b2"]),
        (Kind::Gemini, "gemini/tools", ["fc-1", ""]),
        (Kind::Ollama, "ollama/tools", ["", ""]),
    ] {
        for cut in [1, 7, usize::MAX] {
            let (_, text, end) = first_turn(kind, recording, cut);
            assert_eq!(asked_for(&end.tool_calls), wanted(ids), "{recording} in pieces of {cut}");
            assert_eq!((text.as_str(), &end.finish), ("Let me look.", &Finish::Complete), "{recording}");
            let thoughts = if kind == Kind::Gemini { 3 } else { 0 };
            let cached = if kind == Kind::Anthropic { 31 } else { 0 };
            let usage = Usage::new(211, 17).with_thoughts(thoughts).with_cache(cached, 0);
            assert_eq!(end.usage, Some(usage), "{recording}");
            assert!(!end.without_tools, "{recording}");
        }
    }
}

#[test]
fn tools_are_offered_in_the_words_of_the_service() {
    let body = |kind, service: &str| first_turn(kind, &format!("{service}/tools"), usize::MAX).0;
    let function = |name: &str, description: &str| {
        json!({ "type": "function",
                "function": { "name": name, "description": description, "parameters": parameters() } })
    };
    let functions =
        json!([function("current_time", "Tells the time."), function("json_query", "Finds values.")]);
    let openai = body(Kind::OpenAi, "openai");
    assert_eq!((&openai["tools"], openai.get("tool_choice")), (&functions, None));
    assert_eq!(openai["response_format"]["type"], "json_schema", "both go together here");
    let ollama = body(Kind::Ollama, "ollama");
    assert_eq!(ollama["tools"], functions);
    assert_eq!(ollama.get("format"), None, "its grammar would let no call through");
    let anthropic = body(Kind::Anthropic, "anthropic");
    let tool =
        json!({ "name": "current_time", "description": "Tells the time.", "input_schema": parameters() });
    assert_eq!(anthropic["tools"][0], tool);
    assert_eq!(anthropic["output_config"]["format"]["type"], "json_schema");
    let gemini = body(Kind::Gemini, "gemini");
    let tool = json!({ "name": "current_time", "description": "Tells the time.", "parametersJsonSchema": parameters() });
    assert_eq!(gemini["tools"][0]["functionDeclarations"][0], tool);
}

// POL-004: a call without tools sends no members about tools.
#[test]
fn pol_004_without_tools_no_request_speaks_of_them() {
    for (kind, service) in OTHERS {
        run(async {
            let server = Server::start(vec![recorded(&format!("{service}/stream")).act()]).await;
            let provider = at(kind, &server);
            ask(provider.as_ref(), &call(provider.target())).await.ok();
            assert!(!server.seen()[0].body.contains("tool"), "{kind}");
        });
    }
}

#[test]
fn openai_is_sent_its_turn_and_the_results() {
    let body = second_request(Kind::OpenAi, "openai", false);
    let function = |name: &str, arguments: &str| json!({ "name": name, "arguments": arguments });
    let query = r#"{"path": "/größe", "value": {"größe": null}}"#;
    let turn = json!({
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            { "id": "call_a1", "type": "function", "function": function("current_time", "{}") },
            { "id": "call_b2", "type": "function", "function": function("json_query", query) },
        ],
    });
    let told = |id: &str, content: &str| json!({ "role": "tool", "tool_call_id": id, "content": content });
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(
        messages[2..],
        [turn, told("call_a1", r#"{"time":null}"#), told("call_b2", r#"{"error":"no"}"#)]
    );
    assert!(body["tools"].is_array());
    let last = second_request(Kind::OpenAi, "openai", true);
    assert_eq!((last.get("tools"), last["messages"].as_array().unwrap().len()), (None, 5));
}

// The turn includes its thoughts and their signature, because the service requires them.
#[test]
fn anthropic_is_sent_its_turn_and_the_results() {
    let body = second_request(Kind::Anthropic, "anthropic", true);
    let turn = json!({ "role": "assistant", "content": [
        { "type": "thinking", "thinking": "The time is needed.", "signature": "EqQB==" },
        { "type": "text", "text": "Let me look." },
        { "type": "tool_use", "id": "toolu_a1", "name": "current_time", "input": {} },
        { "type": "tool_use", "id": "toolu_b2", "name": "json_query",
          "input": { "path": "/größe", "value": { "größe": null } } },
    ] });
    let told = json!({ "role": "user", "content": [
        { "type": "tool_result", "tool_use_id": "toolu_a1", "content": r#"{"time":null}"# },
        { "type": "tool_result", "tool_use_id": "toolu_b2", "content": r#"{"error":"no"}"#, "is_error": true },
    ] });
    assert_eq!(body["messages"].as_array().unwrap()[1..], [turn, told]);
    assert_eq!(body["tool_choice"], json!({ "type": "none" }));
    assert!(body["tools"].is_array(), "a conversation with calls needs its tools to the end");
    assert_eq!(second_request(Kind::Anthropic, "anthropic", false).get("tool_choice"), None);
}

#[test]
fn gemini_is_sent_its_turn_and_the_results() {
    let body = second_request(Kind::Gemini, "gemini", false);
    let turn = json!({ "role": "model", "parts": [
        { "text": "Let me look." },
        { "functionCall": { "id": "fc-1", "name": "current_time", "args": {} }, "thoughtSignature": "CsYB==" },
        { "functionCall": { "name": "json_query", "args": { "path": "/größe", "value": { "größe": null } } } },
    ] });
    let told = json!({ "role": "user", "parts": [
        { "functionResponse": { "id": "fc-1", "name": "current_time", "response": { "result": { "time": null } } } },
        { "functionResponse": { "name": "json_query", "response": { "error": "no" } } },
    ] });
    assert_eq!(body["contents"].as_array().unwrap()[1..], [turn, told]);
    assert_eq!(second_request(Kind::Gemini, "gemini", true).get("tools"), None);
}

#[test]
fn ollama_is_sent_its_turn_and_the_results_and_bound_again_at_the_end() {
    let body = second_request(Kind::Ollama, "ollama", true);
    let turn = json!({ "role": "assistant", "content": "Let me look.", "tool_calls": [
        { "function": { "name": "current_time", "arguments": {} } },
        { "function": { "name": "json_query", "arguments": { "path": "/größe", "value": { "größe": null } } } },
    ] });
    let told = |name: &str, content: &str| json!({ "role": "tool", "tool_name": name, "content": content });
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(
        messages[2..],
        [turn, told("current_time", r#"{"time":null}"#), told("json_query", r#"{"error":"no"}"#)]
    );
    assert_eq!((body.get("tools"), body["format"].is_object()), (None, true));
}

// DeepSeek answers 400 to a turn with calls whose thoughts are missing.
#[test]
fn thoughts_go_back_where_a_service_sent_them_beside_calls() {
    let (_, text, end) = first_turn(Kind::DeepSeek, "compatible/deepseek-tools", usize::MAX);
    assert_eq!((text.as_str(), &end.turn["reasoning_content"]), ("", &json!("The time is needed.")));
    let (_, _, end) = first_turn(Kind::OpenAi, "openai/tools", usize::MAX);
    assert_eq!(end.turn.get("reasoning_content"), None);
}

// POL-004: a call of a tool that was not offered is still reported, so that the caller can refuse it.
#[test]
fn pol_004_a_call_that_was_not_offered_is_reported() {
    for (kind, service) in OTHERS {
        let end = run(async {
            let server = Server::start(vec![recorded(&format!("{service}/tools")).act()]).await;
            let provider = at(kind, &server);
            ask(provider.as_ref(), &call(provider.target())).await.ok().clone()
        });
        assert_eq!((end.tool_calls.len(), &end.turn), (2, &Value::Null), "{kind}");
    }
}

/// Returns a turn with this many calls, the last one with this argument, in the format of a service.
fn crowded(kind: Kind, count: usize, last: &str) -> (&'static str, String) {
    let arguments = |index: usize| if index + 1 == count { json!({ "a": last }) } else { json!({}) };
    let event = |value: Value| format!("data: {value}\n\n");
    let call = |index: usize| match kind {
        Kind::Anthropic => {
            let block = json!({ "type": "tool_use", "id": format!("id-{index}"), "name": "f", "input": {} });
            let more = json!({ "type": "input_json_delta", "partial_json": arguments(index).to_string() });
            let begin = json!({ "type": "content_block_start", "index": index, "content_block": block });
            event(begin) + &event(json!({ "type": "content_block_delta", "index": index, "delta": more }))
        }
        Kind::Gemini => {
            let call = json!({ "functionCall": { "name": "f", "args": arguments(index) } });
            event(json!({ "candidates": [{ "content": { "parts": [call] } }] }))
        }
        Kind::Ollama => {
            let call = json!({ "function": { "name": "f", "arguments": arguments(index) } });
            format!("{}\n", json!({ "message": { "content": "", "tool_calls": [call] }, "done": false }))
        }
        _ => {
            let function = json!({ "name": "f", "arguments": arguments(index).to_string() });
            let call = json!({ "index": index, "id": format!("id-{index}"), "function": function });
            event(json!({ "choices": [{ "delta": { "tool_calls": [call] } }] }))
        }
    };
    let calls: String = (0..count).map(call).collect();
    let events = "content-type: text/event-stream";
    match kind {
        Kind::Anthropic => {
            let stop = json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } });
            (events, calls + &event(stop) + &event(json!({ "type": "message_stop" })))
        }
        Kind::Gemini => (events, calls + &event(json!({ "candidates": [{ "finishReason": "STOP" }] }))),
        Kind::Ollama => {
            let done = json!({ "message": { "content": "" }, "done": true });
            ("content-type: application/x-ndjson", format!("{calls}{done}\n"))
        }
        _ => {
            let done = json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] });
            (events, calls + &event(done) + "data: [DONE]\n\n")
        }
    }
}

fn crowded_turn(kind: Kind, count: usize, last: &str) -> ModelEnd {
    run(async {
        let (headers, body) = crowded(kind, count, last);
        let server = Server::start(vec![Reply::new("200 OK", headers, &body).act()]).await;
        ask(at(kind, &server).as_ref(), &with_tools(kind, &server)).await.ok().clone()
    })
}

/// Returns how often a word occurs in a turn.
fn mentions(turn: &Value, word: &str) -> usize {
    turn.to_string().matches(word).count()
}

// The turn contains only the answered calls, because services refuse a call without a result.
#[test]
fn a_turn_with_thousands_of_calls_goes_back_with_the_first() {
    for (kind, _) in OTHERS {
        let end = crowded_turn(kind, 5_000, "");
        assert_eq!((end.tool_calls.len(), end.more_calls), (17, 4_983), "{kind}");
        assert_eq!(mentions(&end.turn, r#""name":"f""#), 17, "{kind}: {}", end.turn);
    }
}

#[test]
fn a_call_that_is_too_long_goes_back_without_its_arguments() {
    for (kind, _) in OTHERS {
        let end = crowded_turn(kind, 2, &"x".repeat(2 << 20));
        let too_long: Vec<bool> = end.tool_calls.iter().map(|call| call.too_long).collect();
        assert_eq!((too_long, end.more_calls), (vec![false, true], 0), "{kind}");
        assert_eq!(mentions(&end.turn, r#""name":"f""#), 2, "{kind}");
        assert!(end.turn.to_string().len() < 1_000, "{kind}");
    }
}

#[test]
fn a_model_without_tools_is_asked_without_them_and_bound_to_its_schema() {
    run(async {
        let script = ["ollama/error-tools", "ollama/stream"].map(|name| recorded(name).act());
        let server = Server::start(script.to_vec()).await;
        let outcome = ask(at(Kind::Ollama, &server).as_ref(), &with_tools(Kind::Ollama, &server)).await;
        assert!(outcome.ok().without_tools);
        let seen: Vec<Value> = server.seen().iter().map(crate::support::Request::json).collect();
        assert!(seen[0]["tools"].is_array() && seen[1].get("tools").is_none());
        assert!(seen[1]["format"].is_object());
    });
}

// Older Gemini models support either tools or a format. The tools stay, and calls without tools keep their schema.
#[test]
fn a_service_that_cannot_have_both_gives_up_the_format_only_beside_tools() {
    run(async {
        let names =
            ["gemini/error-tools", "gemini/error-tools", "gemini/tools", "gemini/tools", "gemini/stream"];
        let server = Server::start(names.map(|name| recorded(name).act()).to_vec()).await;
        let provider = at(Kind::Gemini, &server);
        let with_tools = with_tools(Kind::Gemini, &server);
        for call in [&with_tools, &with_tools, &call(provider.target())] {
            ask(provider.as_ref(), call).await.ok();
        }
        let mime: Vec<bool> = server
            .seen()
            .iter()
            .map(|request| request.json()["generationConfig"].get("responseMimeType").is_some())
            .collect();
        assert_eq!(mime, [true, true, false, false, true], "remembered, and only beside tools");
    });
}
