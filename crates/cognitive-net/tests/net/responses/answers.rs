//! Answers as streams and as documents, however the bytes are split, and all the ways in which one ends.

use bytes::Bytes;
use cognitive_contract::media::{MediaPart, MediaType};
use cognitive_contract::ports::{FailureKind, Finish, ProviderError, Usage};
use serde_json::{Value, json};

use super::{play, reply, with_tools};
use crate::support::{Outcome, Reply, TEXT, recorded, run};

/// The codes of failed responses that are refusals.
pub(super) const REFUSED: [&str; 3] =
    ["bio_policy", "misalignment_policy_violation", "image_content_policy_violation"];
/// The codes of failed responses that are mistakes in the request.
pub(super) const MISTAKEN: [&str; 15] = [
    "invalid_prompt",
    "data_residency_mismatch",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "invalid_image_mode",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
    "image_file_not_found",
];
/// The codes of failed responses that may pass.
pub(super) const PASSING: [&str; 3] = ["server_error", "rate_limit_exceeded", "vector_store_timeout"];

fn hear(name: &str) -> Outcome {
    run(play(vec![reply(name); 3], |_| {})).0
}

#[test]
fn a_stream_and_a_document_are_the_same_answer() {
    for name in ["stream", "whole", "commentary"] {
        for cut in [1, 7, usize::MAX] {
            let act = recorded(&format!("responses/{name}")).cut(cut).act();
            let (outcome, _) = run(play(vec![act], |_| {}));
            let end = outcome.ok();
            assert_eq!(outcome.heard.text, TEXT, "{name} in pieces of {cut}");
            assert_eq!((&end.finish, end.model.as_str()), (&Finish::Complete, "gpt-5.6-luna-2026-07-09"));
            assert_eq!(end.usage, Some(Usage::new(211, 17)), "{name}");
        }
    }
}

#[test]
fn counts_of_thoughts_and_of_the_cache_are_read() {
    let usage = json!({ "input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
        "input_tokens_details": { "cached_tokens": 60, "cache_write_tokens": 30 },
        "output_tokens_details": { "reasoning_tokens": 15 } });
    let body =
        json!({ "object": "response", "model": "m", "status": "completed", "output": [], "usage": usage });
    let outcome = hear_body("application/json", &body.to_string());
    assert_eq!(outcome.ok().usage, Some(Usage::new(100, 20).with_thoughts(15).with_cache(60, 30)));
}

fn hear_body(content_type: &str, body: &str) -> Outcome {
    let reply = Reply::new("200 OK", &format!("content-type: {content_type}"), body);
    run(play(vec![reply.act(); 3], |_| {})).0
}

/// Replays an answer to a call with an image.
fn see_body(body: &str) -> Outcome {
    let reply = Reply::new("200 OK", "content-type: application/json", body);
    let image = MediaPart::new(0, MediaType::Png, Bytes::from_static(b"aW1n"));
    run(play(vec![reply.act(); 3], |call| call.media = vec![image])).0
}

// PIPE-010, S-09: an answer that was cut off, filtered or refused is none of the others.
#[test]
fn pipe_010_an_answer_that_is_not_complete_says_why() {
    let cut = r#"{"ok": true, "word": "na"#;
    let refused = |why: &str| Finish::Refused(why.to_owned());
    let flagged = "Invalid prompt: your prompt was flagged as potentially violating our usage policy.";
    for (name, text, finish, tokens) in [
        ("length", cut, Finish::CutOff, Some(17)),
        ("length-whole", cut, Finish::CutOff, Some(17)),
        ("filtered", cut, refused("the content filter stopped the answer"), Some(17)),
        ("refusal", "", refused("I cannot help with that."), Some(17)),
        ("failed-prompt", "", refused(flagged), Some(17)),
    ] {
        let outcome = hear(name);
        let end = outcome.ok();
        assert_eq!((outcome.heard.text.as_str(), &end.finish), (text, &finish), "{name}");
        assert_eq!(end.usage.map(|usage| usage.output_tokens), tokens, "{name}");
        assert_eq!(outcome.heard.attempts.len(), 1, "{name}");
    }
}

// PIPE-010, D-16: what failed, how often it is tried, and that counted tokens are known.
#[test]
fn d_16_failures_have_their_kind_and_number_of_attempts() {
    use FailureKind::{BadRequest, Network, Outage, Quota};
    for (name, kind, tries, counted) in [
        ("failed", Outage, 3, true),
        ("failed-image", BadRequest, 1, true),
        ("error-quota", Quota, 1, false),
        ("error-in-stream", Outage, 1, false),
        ("truncated", Network, 1, false),
        ("truncated-before-text", Network, 3, false),
        ("error-404", BadRequest, 1, false),
    ] {
        let outcome = hear(name);
        outcome.error();
        let attempt = outcome.heard.attempts.last().unwrap();
        let failed = attempt.failed.as_ref().unwrap();
        assert_eq!((failed.kind, outcome.heard.attempts.len()), (kind, tries), "{name}: {failed:?}");
        assert_eq!(attempt.usage.is_some(), counted, "{name}");
    }
}

// The codes of failed responses: none that will be the same next time is tried again.
#[test]
fn d_16_codes_of_failed_responses() {
    let body = |code: &str| {
        let error = json!({ "code": code, "message": "No." });
        json!({ "object": "response", "status": "failed", "error": error, "output": [] }).to_string()
    };
    for code in REFUSED {
        let outcome = hear_body("application/json", &body(code));
        assert_eq!(outcome.ok().finish, Finish::Refused("No.".to_owned()), "{code}");
    }
    for code in MISTAKEN {
        let outcome = see_body(&body(code));
        assert!(matches!(outcome.error(), ProviderError::Rejected(_)), "{code}: {:?}", outcome.error());
        assert_eq!(outcome.heard.attempts.len(), 1, "{code}");
    }
    for code in PASSING {
        let outcome = hear_body("application/json", &body(code));
        assert_eq!((outcome.end.is_err(), outcome.heard.attempts.len()), (true, 3), "{code}");
    }
}

#[test]
fn a_response_that_is_not_done_is_no_answer() {
    for status in ["queued", "in_progress"] {
        let body = json!({ "object": "response", "status": status, "output": [], "error": null });
        let outcome = hear_body("application/json", &body.to_string());
        assert!(outcome.error().to_string().ends_with("JSON that is not a model's answer"), "{status}");
    }
}

/// A stream of these events.
fn events(events: &[Value]) -> String {
    let frames: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    frames.concat()
}

fn message(text: &str) -> Value {
    json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
}

// Gateways leave out pieces, items or the end of a stream, and number items wrongly.
#[test]
fn what_the_pieces_did_not_say_is_taken_from_the_whole() {
    let delta = |index: u64, text: &str| json!({ "type": "response.output_text.delta", "output_index": index, "delta": text });
    let item = |index: u64, item: Value| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
    let completed = |output: Value| json!({ "type": "response.completed", "response": { "status": "completed", "output": output } });
    for frames in [
        vec![completed(json!([message("{\"a\"::1}")]))],
        vec![item(0, message("{\"a\"::1}")), completed(json!([]))],
        vec![delta(0, "{\"a\"::1}"), completed(json!([message("{\"a\"::1}")]))],
        vec![
            delta(3, "{\"a\"::1}"),
            item(0, message("{\"a\"::1}")),
            completed(json!([message("{\"a\"::1}")])),
        ],
        vec![delta(0, "{\"a\":"), completed(json!([message("{\"a\"::1}")]))],
        vec![delta(0, "{\"a\"::1}"), completed(json!([message("something else")]))],
        vec![
            delta(0, "{\"a\":"),
            item(0, message("{\"a\":")),
            delta(1, ":1}"),
            item(1, message(":1}")),
            completed(json!([message("{\"a\":"), message(":1}")])),
        ],
        vec![
            item(0, message("{\"a\":")),
            item(1, message(":1}")),
            completed(json!([message("{\"a\":"), message(":1}")])),
        ],
        // An event without a response is an end, too.
        vec![delta(0, "{\"a\"::1}"), json!({ "type": "response.completed" })],
    ] {
        let outcome = hear_body("text/event-stream", &events(&frames));
        assert_eq!(
            (outcome.heard.text.as_str(), &outcome.ok().finish),
            ("{\"a\"::1}", &Finish::Complete),
            "{frames:?}"
        );
    }
}

#[test]
fn a_model_that_only_comments_has_answered() {
    let mut comment = message("{\"a\":1}");
    comment["phase"] = json!("commentary");
    let added = json!({ "type": "response.output_item.added", "output_index": 0,
        "item": { "type": "message", "phase": "commentary", "content": [] } });
    let delta = json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "{\"a\":1}" });
    let completed =
        json!({ "type": "response.completed", "response": { "status": "completed", "output": [comment] } });
    let outcome = hear_body("text/event-stream", &events(&[added, delta, completed]));
    assert_eq!(outcome.heard.text, "{\"a\":1}");
}

// A model that reasons is not dead: it is waited for until the deadline, not for a minute.
#[test]
fn a_model_that_reasons_may_be_silent_for_minutes() {
    use std::time::Duration;

    use crate::support::{Act, Then, ask, call, run_without_waiting};

    let added =
        json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "reasoning" } });
    let begun = |event: &Value| {
        Reply::new("200 OK", "content-type: text/event-stream", &events(std::slice::from_ref(event)))
            .then(Then::Stall)
            .act()
    };
    let waited = |act: Act| {
        run_without_waiting(async move {
            let server = crate::support::Server::start(vec![act]).await;
            let provider = super::at(&server);
            let mut call = call(provider.target());
            call.timeout = Duration::from_mins(10);
            let started = tokio::time::Instant::now();
            let outcome = ask(provider.as_ref(), &call).await;
            assert_eq!(outcome.error(), &ProviderError::Timeout);
            started.elapsed().as_secs() / 60
        })
    };
    assert_eq!(waited(begun(&added)), 10);
    // Text has begun, and nothing follows.
    assert_eq!(waited(begun(&json!({ "type": "response.output_text.delta", "delta": "{" }))), 1);
}

// S-35: the same calls, and the turn that is sent back, in a stream and in a document.
#[test]
fn calls_and_the_turn_are_read_in_both_forms() {
    let mut turns = Vec::new();
    for name in ["tools", "tools-whole"] {
        for cut in [1, 7, usize::MAX] {
            let act = recorded(&format!("responses/{name}")).cut(cut).act();
            let (outcome, _) = run(play(vec![act], with_tools));
            let end = outcome.ok();
            let calls: Vec<(&str, &str)> =
                end.tool_calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
            assert_eq!(calls, [("call_a1", "current_time"), ("call_b2", "json_query")], "{name} {cut}");
            let value: Value = serde_json::from_str(&end.tool_calls[1].arguments).unwrap();
            assert_eq!(value, json!({ "path": "/größe", "value": { "größe": null } }));
            assert_eq!((outcome.heard.text.as_str(), &end.finish), ("Let me look.", &Finish::Complete));
            turns.push(end.turn.clone());
        }
    }
    assert!(turns.windows(2).all(|pair| pair[0] == pair[1]));
    let types: Vec<&str> =
        turns[0].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["reasoning", "message", "function_call", "function_call"]);
    assert_eq!(
        turns[0][0],
        json!({ "id": "rs_1", "type": "reasoning", "encrypted_content": "gAAAAAB-7", "summary": [] }),
        "the complete content, and no member without a value"
    );
}

// What the service has neither stored nor encrypted cannot be sent back; its calls can.
#[test]
fn reasoning_without_content_does_not_go_back() {
    let turn = |reasoning: Value| {
        let call =
            json!({ "type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}" });
        let body = json!({ "object": "response", "status": "completed", "output": [reasoning, call] });
        let reply = Reply::new("200 OK", "content-type: application/json", &body.to_string());
        run(play(vec![reply.act()], with_tools)).0.ok().turn.clone()
    };
    for empty in [
        json!({ "type": "reasoning", "id": "rs_1", "summary": [] }),
        json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": null, "content": [] }),
    ] {
        assert_eq!(turn(empty).as_array().unwrap().len(), 1);
    }
    let open = json!({ "type": "reasoning", "id": "rs_1", "summary": [],
        "content": [{ "type": "reasoning_text", "text": "Hm." }] });
    assert_eq!(turn(open.clone())[0], open, "as servers of open weights send it");
}

/// A turn with this many calls, the last one with this argument.
fn crowded(count: usize, last: &str) -> Outcome {
    let call = |index: usize| {
        let arguments = if index + 1 == count { json!({ "a": last }) } else { json!({}) };
        let item = |arguments: &str| json!({ "type": "function_call", "call_id": format!("id-{index}"), "name": "f", "arguments": arguments });
        let arguments = arguments.to_string();
        [
            json!({ "type": "response.output_item.added", "output_index": index, "item": item("") }),
            json!({ "type": "response.function_call_arguments.delta", "output_index": index, "delta": arguments }),
            json!({ "type": "response.output_item.done", "output_index": index, "item": item(&arguments) }),
        ]
    };
    let mut frames: Vec<Value> = (0..count).flat_map(call).collect();
    let items = frames.iter().filter(|frame| frame["type"] == "response.output_item.done");
    let output: Vec<Value> = items.map(|frame| frame["item"].clone()).collect();
    frames.push(
        json!({ "type": "response.completed", "response": { "status": "completed", "output": output } }),
    );
    let reply = Reply::new("200 OK", "content-type: text/event-stream", &events(&frames));
    run(play(vec![reply.act()], with_tools)).0
}

#[test]
fn a_turn_with_thousands_of_calls_or_a_long_one_stays_small() {
    let outcome = crowded(2_000, "");
    let end = outcome.ok();
    assert_eq!((end.tool_calls.len(), end.more_calls), (17, 1_983));
    assert_eq!(end.turn.as_array().unwrap().len(), 17);
    let outcome = crowded(2, &"x".repeat(2 << 20));
    let end = outcome.ok();
    let too_long: Vec<bool> = end.tool_calls.iter().map(|call| call.too_long).collect();
    assert_eq!((too_long, end.turn.as_array().unwrap().len()), (vec![false, true], 2));
    assert!(end.turn.to_string().len() < 1_000);
}
