//! The requests to each service: the URL, the key in its header, and the schema in its place.

use cognitive_contract::ports::Example;
use cognitive_net::Kind;
use serde_json::{Value, json};

use crate::support::{KEY, Request, ask, at, call, play, recorded, run, schema, written};
use crate::support::{Server, config};

/// Returns the request that a call sends.
fn request(kind: Kind, recording: &str) -> Request {
    let (outcome, server) = run(play(kind, vec![recorded(recording).act()]));
    outcome.ok();
    server.seen().remove(0)
}

// D-05: the lowered schema, where each service expects it.
#[test]
fn each_service_is_asked_in_its_format() {
    for (kind, service, path, key) in [
        (Kind::OpenAi, "openai", "/v1/chat/completions", "authorization: bearer "),
        (Kind::Anthropic, "anthropic", "/v1/messages", "x-api-key: "),
        (
            Kind::Gemini,
            "gemini",
            "/v1beta/models/gemini-flash-latest:streamGenerateContent?alt=sse",
            "x-goog-api-key: ",
        ),
        (Kind::Ollama, "ollama", "/api/chat", ""),
    ] {
        let name = format!("{service}/stream");
        let request = request(kind, &name);
        assert_eq!(request.line, format!("POST {path} HTTP/1.1"));
        assert!(key.is_empty() || request.headers.contains(&format!("{key}{KEY}")), "{service}");
        assert!(request.headers.contains("content-type: application/json"), "{service}");
        assert!(request.headers.contains("user-agent: cogn/"), "{service}");
        assert_eq!(request.headers.contains("anthropic-version: 2023-06-01"), service == "anthropic");
        assert_eq!(request.json(), written(&name), "{service}");
    }
}

#[test]
fn compatible_services_are_asked_in_their_dialect() {
    let asked = |kind| request(kind, "compatible/groq-stream").json();
    let has = |body: &Value, name: &str| body.get(name).cloned();
    let mistral = asked(Kind::Mistral);
    assert_eq!(has(&mistral, "random_seed"), Some(json!(7)));
    assert_eq!((has(&mistral, "seed"), has(&mistral, "stream_options")), (None, None));
    assert_eq!(has(&mistral, "max_tokens"), Some(json!(900)));
    let minimax = asked(Kind::MiniMax);
    assert_eq!(has(&minimax, "response_format"), None);
    assert_eq!(has(&minimax, "reasoning_split"), Some(json!(true)));
    let deepseek = asked(Kind::DeepSeek);
    assert_eq!(has(&deepseek, "response_format"), Some(json!({ "type": "json_object" })));
    let vllm = asked(Kind::Vllm);
    assert_eq!(vllm.pointer("/response_format/json_schema/schema"), Some(&schema()));
}

// PIPE-009: without a schema, JSON mode is used if it exists.
#[test]
fn pipe_009_json_mode_is_used_without_a_schema() {
    let body = |kind, recording| {
        run(async move {
            let server = Server::start(vec![recorded(recording).act()]).await;
            let mut call = call(None);
            (call.seed, call.max_output_tokens) = (None, None);
            ask(at(kind, &server).as_ref(), &call).await.ok();
            server.seen()[0].json()
        })
    };
    let openai = body(Kind::OpenAi, "openai/stream");
    assert_eq!(openai["response_format"], json!({ "type": "json_object" }));
    assert!(openai.get("seed").is_none() && openai.get("max_completion_tokens").is_none());
    let gemini = body(Kind::Gemini, "gemini/stream");
    let expected = json!({ "temperature": 0.2, "responseMimeType": "application/json" });
    assert_eq!(gemini["generationConfig"], expected);
    assert_eq!(body(Kind::Ollama, "ollama/stream")["format"], "json");
    let anthropic = body(Kind::Anthropic, "anthropic/stream");
    assert_eq!((anthropic.get("output_config"), &anthropic["max_tokens"]), (None, &json!(16_384)));
}

// ERR-015: the key is sent in one header and nowhere else.
#[test]
fn err_015_no_key_in_an_address_or_a_body() {
    for (kind, recording) in [
        (Kind::OpenAi, "openai/stream"),
        (Kind::Anthropic, "anthropic/stream"),
        (Kind::Gemini, "gemini/stream"),
        (Kind::Ollama, "ollama/stream"),
    ] {
        let request = request(kind, recording);
        assert!(!request.line.contains(KEY) && !request.body.contains(KEY), "{kind}");
        assert_eq!(request.headers.matches(KEY).count(), 1, "{kind}");
    }
}

#[test]
fn a_server_of_ones_own_needs_no_key() {
    run(async {
        let server = Server::start(vec![recorded("ollama/stream").act()]).await;
        let config = config(Kind::Ollama, &server.url).with_key(None);
        ask(cognitive_net::provider(config).unwrap().as_ref(), &call(None)).await.ok();
        assert!(!server.seen()[0].headers.contains("authorization"));
    });
}

/// Returns the conversation sent with two examples.
fn conversation(kind: Kind, recording: &str, place: &str) -> Value {
    run(async move {
        let server = Server::start(vec![recorded(recording).act()]).await;
        let mut call = call(None);
        let example = |input: &str, answer: &str| Example { input: input.into(), answer: answer.into() };
        call.examples = vec![example("let y = 2;", r#"{"ok":true}"#), example("?", r#"{"ok":false}"#)];
        ask(at(kind, &server).as_ref(), &call).await.ok();
        server.seen()[0].json()[place].clone()
    })
}

#[test]
fn examples_are_turns_of_the_conversation_for_every_service() {
    let turn = |role: &str, text: &str| json!({ "role": role, "content": text });
    let turns = [
        turn("user", "let y = 2;"),
        turn("assistant", r#"{"ok":true}"#),
        turn("user", "?"),
        turn("assistant", r#"{"ok":false}"#),
        turn("user", "let x = 1;"),
    ];
    let mut with_system = vec![turn("system", "Judge the code. Answer in JSON.")];
    with_system.extend(turns.clone());
    let services = [
        (Kind::OpenAi, "openai/stream"),
        (Kind::Groq, "compatible/groq-stream"),
        (Kind::Ollama, "ollama/stream"),
    ];
    for (kind, recording) in services {
        assert_eq!(conversation(kind, recording, "messages"), json!(with_system), "{kind}");
    }
    assert_eq!(conversation(Kind::Anthropic, "anthropic/stream", "messages"), json!(turns));
    let part = |turn: &Value| {
        let role = if turn["role"] == "assistant" { "model" } else { "user" };
        json!({ "role": role, "parts": [{ "text": turn["content"] }] })
    };
    let parts: Vec<Value> = turns.iter().map(part).collect();
    assert_eq!(conversation(Kind::Gemini, "gemini/stream", "contents"), json!(parts));
}
