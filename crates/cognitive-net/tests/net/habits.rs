//! Undocumented behaviour of services, and answers that a proxy, a gateway or a later API version may send. They must
//! be parsed correctly or reported precisely, and never cause repeated paid calls.

use cognitive_contract::ports::{FailureKind, Finish, ProviderError, Usage};
use cognitive_net::Kind;
use serde_json::json;

use crate::support::{Act, KEY, Outcome, Reply, TEXT, play, recorded, run};

/// Replays a recording for every call.
fn hear(kind: Kind, name: &str) -> Outcome {
    let (outcome, server) = run(play(kind, vec![recorded(name).act(); 3]));
    assert_eq!(server.seen().len(), 1, "{name}: every further call would be paid for");
    outcome
}

/// Replays an answer written in the test.
fn hear_body(kind: Kind, content_type: &str, body: &str) -> Outcome {
    let reply = Reply::new("200 OK", &format!("content-type: {content_type}"), body);
    run(play(kind, vec![reply.act(); 3])).0
}

fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage::new(input_tokens, output_tokens)
}

/// Returns the failure kind of the last attempt.
fn last_kind(outcome: &Outcome) -> Option<FailureKind> {
    outcome.heard.attempts.last().unwrap().failed.as_ref().map(|failed| failed.kind)
}

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

#[test]
fn perplexity_sends_the_sum_beside_each_piece() {
    let outcome = hear(Kind::Compatible, "services/perplexity-stream");
    let envelope: serde_json::Value = serde_json::from_str(&outcome.heard.text).unwrap();
    assert_eq!(envelope["data"]["sentiment"], "neutral");
    assert_eq!((&outcome.ok().finish, outcome.ok().model.as_str()), (&Finish::Complete, "sonar"));
    let whole = json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": { "content": TEXT },
        "delta": { "role": "assistant", "content": "" } }] });
    let outcome = hear_body(Kind::Compatible, JSON, &whole.to_string());
    assert_eq!((outcome.heard.text.as_str(), &outcome.ok().finish), (TEXT, &Finish::Complete));
}

#[test]
fn mistral_sends_thoughts_and_text_as_a_list() {
    let outcome = hear(Kind::Mistral, "services/mistral-thinking-list");
    assert_eq!((outcome.heard.text.as_str(), outcome.ok().usage), ("4", Some(usage(28, 35))));
    let pieces = [
        json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm." }] }]),
        json!([{ "type": "text", "text": "{\"a\"" }, { "type": "reference", "reference_ids": [1] }]),
        json!({ "type": "text", "text": ": 1" }),
        json!("}"),
    ];
    let frame =
        |content| format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": content } }] }));
    let body = pieces.map(frame).concat() + "data: [DONE]\n\n";
    assert_eq!(hear_body(Kind::Mistral, EVENTS, &body).heard.text, "{\"a\": 1}");
}

#[test]
fn a_guard_of_gemini_refuses_and_is_not_asked_again() {
    let outcome = hear(Kind::Gemini, "services/gemini-model-armor");
    let why =
        "The response violated Responsible AI Safety settings (Hate Speech, Harassment, Dangerous) filters.";
    assert_eq!(outcome.ok().finish, Finish::Refused(why.to_owned()));
    assert_eq!(
        (outcome.ok().usage, outcome.ok().model.as_str()),
        (Some(usage(19, 33).with_thoughts(27)), "gemini-2.5-flash")
    );
}

// ERR-015: the caller gets the filter's message, but no key.
#[test]
fn err_015_a_guard_that_repeats_the_key_is_not_repeated() {
    let body = json!({ "candidates": [{ "finishReason": "SAFETY", "finishMessage": format!("no, {KEY}") }] });
    let outcome = hear_body(Kind::Gemini, JSON, &body.to_string());
    assert_eq!(outcome.ok().finish, Finish::Refused("no, [redacted]".to_owned()));
}

#[test]
fn calls_that_gemini_did_not_expect_are_calls_that_nobody_offered() {
    let outcome = hear(Kind::Gemini, "gemini/unexpected-call");
    let names: Vec<&str> = outcome.ok().tool_calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(
        (names, outcome.ok().usage),
        (vec!["default_api.find"], Some(usage(211, 17).with_thoughts(3)))
    );

    let outcome = hear(Kind::Gemini, "gemini/malformed-call");
    let why =
        "gemini reported: the model stopped: MALFORMED_FUNCTION_CALL: Malformed function call: print(find(";
    assert_eq!(outcome.error(), &ProviderError::Interrupted(why.to_owned()));
    let attempt = outcome.heard.attempts.first().unwrap();
    assert_eq!(
        (last_kind(&outcome), attempt.usage),
        (Some(FailureKind::Malformed), Some(usage(211, 17).with_thoughts(3)))
    );
    assert!(attempt.failed.as_ref().unwrap().passes, "the next answer may be a better one");
}

#[test]
fn a_document_without_a_reason_to_finish_is_over() {
    let outcome = hear(Kind::Compatible, "services/snowflake-empty-finish");
    let text = r#"{"city": "Mexico City", "country": "Mexico"}"#;
    assert_eq!((outcome.heard.text.as_str(), &outcome.ok().finish), (text, &Finish::Complete));
    assert_eq!((outcome.ok().usage, outcome.ok().tool_calls.len()), (Some(usage(89, 14)), 0));
}

#[test]
fn tools_that_anthropic_calls_itself_are_no_calls_of_ours() {
    let outcome = hear(Kind::Anthropic, "services/anthropic-server-tool-stream");
    assert_eq!(outcome.heard.text, "A clear daytime sky is blue.");
    assert_eq!((outcome.ok().tool_calls.len(), outcome.ok().usage), (0, Some(usage(12_229, 86))));
}

#[test]
fn a_turn_that_anthropic_paused_is_no_answer() {
    let body = r#"{"type":"message","model":"m","content":[{"type":"text","text":"{\"a\":1"}],"stop_reason":"pause_turn",
        "usage":{"input_tokens":3,"output_tokens":2}}"#;
    let outcome = hear_body(Kind::Anthropic, JSON, body);
    assert!(matches!(outcome.error(), ProviderError::Interrupted(_)), "{:?}", outcome.error());
    assert_eq!((outcome.heard.attempts.len(), outcome.heard.attempts[0].usage), (1, Some(usage(3, 2))));
}

#[test]
fn only_the_first_candidate_counts() {
    let openai = |index: u64, text: &str, finish: Option<&str>| {
        let choice = json!({ "index": index, "delta": { "content": text }, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    };
    let body = openai(0, "{\"a\"", None) + &openai(1, "no", None) + &openai(1, "", Some("length"));
    let body = body + &openai(0, ": 1}", Some("stop")) + "data: [DONE]\n\n";
    let outcome = hear_body(Kind::OpenAi, EVENTS, &body);
    assert_eq!((outcome.heard.text.as_str(), &outcome.ok().finish), ("{\"a\": 1}", &Finish::Complete));
    let candidate = |index: u64, text: &str| json!({ "index": index, "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" });
    let body = json!({ "candidates": [candidate(1, "no"), candidate(0, "yes")] }).to_string();
    assert_eq!(hear_body(Kind::Gemini, JSON, &body).heard.text, "yes");
}

// D-16: the reason is known, in the words of the service.
#[test]
fn a_model_that_deepseek_does_not_know() {
    let outcome = hear(Kind::DeepSeek, "services/deepseek-400-model");
    assert!(matches!(outcome.error(), ProviderError::Misconfigured(_)), "{:?}", outcome.error());
    let failed = outcome.heard.attempts[0].failed.clone().unwrap();
    assert_eq!((failed.kind, failed.passes), (FailureKind::ModelNotFound, false));
    let said = failed.said.unwrap();
    assert!(said.starts_with("The supported API model names are") && said.contains("deepseek-v9"), "{said}");
}

#[test]
fn a_limit_of_tokens_that_is_told_as_an_error_is_a_limit_of_tokens() {
    let outcome = hear(Kind::OpenRouter, "services/openrouter-token-limit");
    assert_eq!(
        (&outcome.ok().finish, outcome.ok().usage),
        (&Finish::CutOff, Some(usage(43, 10).with_thoughts(10)))
    );
    let body = json!({ "error": { "message": "max completion tokens reached before generating a valid document",
        "type": "invalid_request_error", "code": "json_validate_failed" } });
    let reply = Reply::new("400 Bad Request", "content-type: application/json", &body.to_string());
    let (outcome, _) = run(play(Kind::Groq, vec![reply.act()]));
    assert_eq!(outcome.ok().finish, Finish::CutOff);
}

#[test]
fn what_the_service_counted_before_it_broke_off_is_known() {
    for (kind, name, counted, midway) in [
        (Kind::Gemini, "gemini/truncated", 211, true),
        (Kind::Gemini, "gemini/other", 211, false),
        (Kind::Anthropic, "anthropic/truncated", 211, true),
    ] {
        let outcome = hear(kind, name);
        outcome.error();
        let attempt = &outcome.heard.attempts[0];
        assert_eq!(attempt.usage.map(|usage| usage.input_tokens), Some(counted), "{name}");
        assert_eq!(attempt.counted_midway, midway, "{name}");
        assert!(attempt.model.is_some(), "{name}");
    }
}

#[test]
fn one_event_may_be_as_long_as_an_answer() {
    let long = "x".repeat(5 << 20);
    let choice = json!({ "index": 0, "delta": { "content": long }, "finish_reason": "stop" });
    let body = format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [choice] }));
    assert_eq!(hear_body(Kind::OpenAi, EVENTS, &body).heard.text.len(), 5 << 20);
}

#[test]
fn what_was_not_asked_for_is_told_after_one_call() {
    let packed: &[u8] = &[0x1F, 0x8B, 8, 0, 0, 0, 0, 0];
    let reply = |headers: &str| Reply::new("200 OK", headers, "").bytes(packed);
    for (reply, why) in [
        (reply("content-type: text/event-stream\ncontent-encoding: gzip"), "a compressed body"),
        (reply("content-type: application/json\ncontent-encoding: br"), "a compressed body"),
        (reply("content-type: text/event-stream"), "a compressed body"),
        (reply("content-type: application/json").bytes(b"<html>"), "a web page"),
        (reply("content-type: text/event-stream").bytes(b"<html>"), "a web page"),
        (
            reply("content-type: application/json").bytes(b"{\"choices\":[]}"),
            "JSON that is not a model's answer",
        ),
        (
            reply("content-type: application/json").bytes(b"{\"pong\":true}"),
            "JSON that is not a model's answer",
        ),
    ] {
        let (outcome, server) = run(play(Kind::OpenAi, vec![Act::Reply(reply.clone()); 3]));
        let error = outcome.error().to_string();
        assert!(error.starts_with(&format!("provider unavailable: openai answered with {why}")), "{error}");
        assert_eq!((server.seen().len(), last_kind(&outcome)), (1, Some(FailureKind::Malformed)), "{why}");
        assert!(server.seen()[0].headers.contains("accept-encoding: identity"));
    }
}

#[test]
fn what_proxies_gateways_and_later_versions_send() {
    let cases: Vec<&str> = include_str!("odd.txt").split("\n> ").skip(1).collect();
    assert_eq!(cases.len(), 13);
    for case in cases {
        let (head, body) = case.split_once('\n').unwrap();
        let mut words = head.splitn(3, ' ');
        let (kind, content_type) = (Kind::parse(words.next().unwrap()).unwrap(), words.next().unwrap());
        let finish = words.next().map_or(Finish::Complete, |why| Finish::Refused(why.to_owned()));
        let lines: Vec<&str> = body.lines().filter(|line| !line.starts_with('#')).collect();
        let outcome = hear_body(kind, content_type, &(lines.join("\n\n") + "\n\n"));
        assert_eq!((outcome.heard.text.as_str(), &outcome.ok().finish), ("{\"a\":1}", &finish), "{case}");
        assert_eq!(outcome.ok().tool_calls.len(), 0, "{case}");
    }
}

/// Errors that arrive with a good status, in many shapes.
#[test]
fn d_16_errors_within_an_answer_have_a_kind() {
    use FailureKind::{Auth, BadRequest, ModelNotFound, Outage, Quota, RateLimit};
    for (kind, body, expected, tries) in [
        (Kind::OpenAi, r#"{"error":{"message":"slow down","code":429}}"#, RateLimit, 3),
        (Kind::OpenAi, r#"{"error":{"message":"Invalid API key","code":401}}"#, Auth, 1),
        (Kind::OpenAi, r#"{"error":"boom"}"#, Outage, 3),
        (Kind::OpenAi, r#"{"code":"429","message":"slow down"}"#, RateLimit, 3),
        (Kind::OpenAi, r#"{"code":401,"msg":"who are you"}"#, Auth, 1),
        (
            Kind::OpenAi,
            r#"{"object":"error","message":"no such model: unknown model","code":404}"#,
            ModelNotFound,
            1,
        ),
        (
            Kind::MiniMax,
            r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#,
            Quota,
            1,
        ),
        (
            Kind::Gemini,
            r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#,
            BadRequest,
            1,
        ),
        (
            Kind::Anthropic,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Outage,
            3,
        ),
        (Kind::Ollama, r#"{"error":"model requires more system memory"}"#, Outage, 3),
    ] {
        let outcome = hear_body(kind, JSON, body);
        outcome.error();
        assert_eq!((last_kind(&outcome), outcome.heard.attempts.len()), (Some(expected), tries), "{body}");
        let failed = outcome.heard.attempts[0].failed.clone().unwrap();
        assert_eq!(failed.passes, tries > 1, "{body}");
        assert!(failed.said.is_some(), "{body}");
    }
}
