//! Prompt caching, checked on the bytes of requests. Covers the place of the cache mark, identical bytes before it in
//! every call of a module, and the cache counts in the usage.

use cognitive_contract::ports::{Example, ModelCall, Usage};
use cognitive_net::Kind;
use serde_json::{Value, json};

use crate::support::{Outcome, Reply, Server, ask, at, call, recorded, run};

/// Creates a call of a module whose prompt is long enough to be cached.
fn stable(provider: &dyn cognitive_contract::ports::Provider, examples: usize, input: &str) -> ModelCall {
    let mut call = call(provider.target());
    call.instructions = "Judge the code and say why. ".repeat(40).into();
    let example =
        |place: usize| Example { input: format!("let x = {place};"), answer: format!("{{\"n\":{place}}}") };
    call.examples = (0..examples).map(example).collect();
    input.clone_into(&mut call.input);
    call.has_stable_prefix = true;
    call
}

/// Sends two calls with different inputs and returns both request bodies.
fn bodies(kind: Kind, recording: &str, examples: usize) -> [String; 2] {
    run(async {
        let server = Server::start(vec![recorded(recording).act(); 2]).await;
        let provider = at(kind, &server);
        for input in ["let first = 1;", "fn second() {}"] {
            ask(provider.as_ref(), &stable(provider.as_ref(), examples, input)).await.ok();
        }
        let seen = server.seen();
        [seen[0].body.clone(), seen[1].body.clone()]
    })
}

/// Returns the common prefix of two texts.
fn shared<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    &one[..same]
}

const MARK: &str = r#""cache_control":{"type":"ephemeral"}"#;

#[test]
fn anthropic_is_told_where_the_instructions_end_and_all_before_it_is_the_same_bytes() {
    let [one, other] = bodies(Kind::Anthropic, "anthropic/stream", 0);
    assert_eq!(one.matches(MARK).count(), 1, "{one}");
    assert!(shared(&one, &other).contains(MARK), "the mark is within what does not change");
    let body: Value = serde_json::from_str(&one).unwrap();
    let text = "Judge the code and say why. ".repeat(40);
    let marked = json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }]);
    assert_eq!(body["system"], marked);
    assert_eq!(body["messages"], json!([{ "role": "user", "content": "let first = 1;" }]));
}

#[test]
fn with_examples_the_mark_stands_behind_the_last_of_them() {
    let [one, other] = bodies(Kind::Anthropic, "anthropic/stream", 3);
    assert_eq!(one.matches(MARK).count(), 1, "{one}");
    assert!(shared(&one, &other).contains(MARK));
    let body: Value = serde_json::from_str(&one).unwrap();
    assert!(body["system"].is_string());
    let last = json!([{ "type": "text", "text": "{\"n\":2}", "cache_control": { "type": "ephemeral" } }]);
    assert_eq!(body["messages"][5], json!({ "role": "assistant", "content": last }));
    assert_eq!(body["messages"][3]["content"], "{\"n\":1}");
}

#[test]
fn a_prefix_that_changes_or_is_too_short_to_be_kept_has_no_mark() {
    let sent = |change: fn(&mut ModelCall)| {
        run(async {
            let server = Server::start(vec![recorded("anthropic/stream").act()]).await;
            let provider = at(Kind::Anthropic, &server);
            let mut call = stable(provider.as_ref(), 1, "x");
            change(&mut call);
            ask(provider.as_ref(), &call).await.ok();
            server.seen()[0].body.clone()
        })
    };
    assert!(sent(|_| {}).contains(MARK));
    assert!(!sent(|call| call.has_stable_prefix = false).contains("cache_control"));
    assert!(!sent(|call| call.instructions = "Short.".to_owned().into()).contains("cache_control"));
}

#[test]
fn services_that_keep_prefixes_by_themselves_get_the_same_bytes_up_to_the_input() {
    for (kind, recording) in [(Kind::OpenAi, "openai/stream"), (Kind::Gemini, "gemini/stream")] {
        let [one, other] = bodies(kind, recording, 2);
        let shared = shared(&one, &other);
        assert!(shared.contains("Judge the code") && shared.contains(r#"{\"n\":1}"#), "{kind}: {shared}");
        assert!(!one.contains("cache_control"), "{kind}");
    }
}

#[test]
fn a_service_that_does_not_know_the_mark_is_asked_without_it_and_it_is_remembered() {
    let words = "messages.1.content.0.cache_control: Extra inputs are not permitted";
    let body = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": words } })
        .to_string();
    let refusal = Reply::new("400 Bad Request", "content-type: application/json", &body);
    let marks = run(async {
        let answer = || recorded("anthropic/stream").act();
        let server = Server::start(vec![refusal.act(), answer(), answer()]).await;
        let provider = at(Kind::Anthropic, &server);
        for input in ["a", "b"] {
            ask(provider.as_ref(), &stable(provider.as_ref(), 0, input)).await.ok();
        }
        server.seen().iter().map(|request| request.body.contains(MARK)).collect::<Vec<_>>()
    });
    assert_eq!(marks, [true, false, false]);
}

fn usage(kind: Kind, recording: Reply) -> Usage {
    let outcome: Outcome = run(async {
        let server = Server::start(vec![recording.act()]).await;
        let provider = at(kind, &server);
        ask(provider.as_ref(), &call(provider.target())).await
    });
    outcome.ok().usage.unwrap()
}

#[test]
fn what_came_from_the_cache_and_went_into_it_is_a_part_of_what_was_read() {
    let body = |usage: Value| {
        json!({ "type": "message", "model": "m", "content": [{ "type": "text", "text": "{}" }],
                "stop_reason": "end_turn", "usage": usage })
        .to_string()
    };
    let whole = |body: &str| Reply::new("200 OK", "content-type: application/json", body);
    let counts = json!({ "input_tokens": 12, "cache_creation_input_tokens": 700, "cache_read_input_tokens": 2000,
                         "output_tokens": 5 });
    assert_eq!(usage(Kind::Anthropic, whole(&body(counts))), Usage::new(2712, 5).with_cache(2000, 700));
    let body = json!({ "model": "m", "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": "{}" } }],
        "usage": { "prompt_tokens": 1400, "completion_tokens": 3, "prompt_tokens_details": { "cached_tokens": 1024 } } });
    assert_eq!(usage(Kind::OpenAi, whole(&body.to_string())), Usage::new(1400, 3).with_cache(1024, 0));
    let body = json!({ "modelVersion": "m",
        "candidates": [{ "index": 0, "finishReason": "STOP", "content": { "parts": [{ "text": "{}" }] } }],
        "usageMetadata": { "promptTokenCount": 3000, "candidatesTokenCount": 2, "cachedContentTokenCount": 2048 } });
    assert_eq!(usage(Kind::Gemini, whole(&body.to_string())), Usage::new(3000, 2).with_cache(2048, 0));
}

// The caller bounds its cost with the limit, so the request is not repeated without it.
#[test]
fn a_limit_that_has_to_be_kept_is_never_left_out() {
    let refusal = || {
        let body = json!({ "error": { "message": "Unknown parameter: max_completion_tokens" } }).to_string();
        Reply::new("400 Bad Request", "content-type: application/json", &body).act()
    };
    let asked = |keeps_limit: bool| {
        run(async {
            let server = Server::start(vec![refusal(), recorded("openai/stream").act()]).await;
            let provider = at(Kind::OpenAi, &server);
            let mut call = call(provider.target());
            call.keeps_limit = keeps_limit;
            let outcome = ask(provider.as_ref(), &call).await;
            let limits: Vec<bool> =
                server.seen().iter().map(|seen| seen.json().get("max_completion_tokens").is_some()).collect();
            (limits, outcome.heard.text.is_empty())
        })
    };
    assert_eq!(asked(false), (vec![true, false], false));
    assert_eq!(asked(true), (vec![true], true));
}
