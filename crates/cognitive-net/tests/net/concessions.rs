//! Services without some features: the request is repeated with fewer features, once, and the result is remembered.

use cognitive_contract::ports::{DecodeMode, ProviderError};
use cognitive_net::Kind;
use serde_json::Value;

use crate::support::{Act, Outcome, Request, Server, ask, at, call, recorded, run};

/// Calls twice and returns the outcomes and all requests.
fn ask_twice(kind: Kind, recordings: &[&str]) -> (Vec<Outcome>, Vec<Request>) {
    let script: Vec<Act> = recordings.iter().map(|name| recorded(name).act()).collect();
    run(async {
        let server = Server::start(script).await;
        let provider = at(kind, &server);
        let call = call(provider.target());
        let outcomes = vec![ask(provider.as_ref(), &call).await, ask(provider.as_ref(), &call).await];
        (outcomes, server.seen())
    })
}

fn formats(requests: &[Request]) -> Vec<Option<String>> {
    let kind = |body: Value| body.pointer("/response_format/type").and_then(Value::as_str).map(str::to_owned);
    requests.iter().map(|request| kind(request.json())).collect()
}

#[test]
fn a_service_without_schemas_gets_json_mode_and_then_nothing() {
    let refusal = "openai/error-format";
    let (outcomes, requests) =
        ask_twice(Kind::OpenAi, &[refusal, "compatible/deepseek-format", "openai/stream", "openai/stream"]);
    let expected = [Some("json_schema".to_owned()), Some("json_object".to_owned()), None, None];
    assert_eq!(formats(&requests), expected);
    assert_eq!(outcomes[0].statuses(), [Some(400), Some(400), Some(200)]);
    let decodes: Vec<DecodeMode> = outcomes[0].heard.attempts.iter().map(|attempt| attempt.decode).collect();
    assert_eq!(decodes, [DecodeMode::NativeSchema, DecodeMode::JsonMode, DecodeMode::Prompt]);
    assert_eq!(outcomes[0].ok().decode, DecodeMode::Prompt);
    assert_eq!(outcomes[1].statuses(), [Some(200)], "remembered");
}

#[test]
fn a_model_without_temperature_gets_none() {
    for (kind, refusal, answer) in [
        (Kind::OpenAi, "openai/error-temperature", "openai/stream"),
        (Kind::Anthropic, "anthropic/error-temperature", "anthropic/stream"),
    ] {
        let (outcomes, requests) = ask_twice(kind, &[refusal, answer, answer]);
        let sent: Vec<bool> =
            requests.iter().map(|request| request.json().get("temperature").is_some()).collect();
        assert_eq!(sent, [true, false, false], "{kind}");
        assert_eq!(outcomes[1].ok().decode, DecodeMode::NativeSchema, "{kind}: the schema stays");
    }
}

#[test]
fn a_service_that_knows_no_seed_gets_none() {
    let answer = "compatible/groq-stream";
    let (outcomes, requests) = ask_twice(Kind::Compatible, &["compatible/mistral-422", answer, answer]);
    let seeds: Vec<bool> = requests.iter().map(|request| request.json().get("seed").is_some()).collect();
    assert_eq!(seeds, [true, false, false]);
    outcomes[1].ok();
}

#[test]
fn schemas_that_are_too_much() {
    for (kind, refusal, answer, decode) in [
        (Kind::OpenAi, "openai/error-schema", "openai/stream", DecodeMode::JsonMode),
        (Kind::Anthropic, "anthropic/error-grammar", "anthropic/stream", DecodeMode::Prompt),
        (Kind::Anthropic, "anthropic/error-format", "anthropic/stream", DecodeMode::Prompt),
        (Kind::Gemini, "gemini/error-schema", "gemini/stream", DecodeMode::JsonMode),
        (Kind::Gemini, "gemini/error-format", "gemini/stream", DecodeMode::JsonMode),
        (Kind::Ollama, "ollama/error-grammar", "ollama/stream", DecodeMode::JsonMode),
    ] {
        let (outcomes, requests) = ask_twice(kind, &[refusal, answer, answer]);
        assert_eq!(outcomes[0].ok().decode, decode, "{refusal}");
        assert_eq!(requests.len(), 3, "{refusal}: remembered");
    }
}

// LM Studio as a `Compatible` service: no JSON mode, but schemas.
#[test]
fn a_service_without_json_mode_keeps_its_schemas() {
    let answer = || recorded("compatible/groq-stream").act();
    let script = vec![recorded("compatible/lm-studio-format").act(), answer(), answer()];
    let decodes = run(async {
        let server = Server::start(script).await;
        let provider = at(Kind::Compatible, &server);
        let plain = ask(provider.as_ref(), &call(None)).await.ok().decode;
        [plain, ask(provider.as_ref(), &call(provider.target())).await.ok().decode]
    });
    assert_eq!(decodes, [DecodeMode::Prompt, DecodeMode::NativeSchema]);
}

#[test]
fn a_service_that_refuses_everything_is_not_asked_for_ever() {
    let refusal = "openai/error-format";
    let (outcomes, requests) = ask_twice(Kind::OpenAi, &[refusal; 6]);
    assert!(matches!(outcomes[0].error(), ProviderError::Rejected(_)));
    assert_eq!(outcomes[0].heard.attempts.len(), 3);
    // Terms that never worked are not remembered: the next call starts over.
    assert_eq!(formats(&requests)[3].as_deref(), Some("json_schema"));
}
