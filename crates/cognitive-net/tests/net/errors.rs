//! Recorded errors: each becomes the expected error after the expected number of attempts, and reveals no secret.

use cognitive_contract::ports::ProviderError;
use cognitive_net::Kind;

use crate::support::{Act, KEY, Reply, play, recorded, run};

/// Returns the error and the number of attempts.
fn fails(kind: Kind, recordings: &[&str]) -> (ProviderError, usize) {
    let script: Vec<Act> = recordings.iter().map(|name| recorded(name).act()).collect();
    let (outcome, server) = run(play(kind, script));
    assert_eq!(outcome.heard.attempts.len(), server.seen().len());
    (outcome.error().clone(), outcome.heard.attempts.len())
}

// PIPE-010: a wrong key, model, account or address is a configuration error; it is reported once, without a retry.
#[test]
fn pipe_010_what_is_misconfigured() {
    for (kind, name, text) in [
        (Kind::OpenAi, "openai/error-401", "openai answered 401: Incorrect API key provided: [redacted]"),
        (Kind::OpenAi, "openai/error-404-model", "openai answered 404: The model `gpt-9` does not exist"),
        (Kind::OpenAi, "openai/error-429-quota", "openai answered 429: You exceeded your current quota"),
        (Kind::Anthropic, "anthropic/error-401", "anthropic answered 401: invalid x-api-key"),
        (Kind::Anthropic, "anthropic/error-404-model", "anthropic answered 404: model: claude-nine"),
        (Kind::Anthropic, "anthropic/error-credit", "anthropic answered 400: Your credit balance is too low"),
        (Kind::Gemini, "gemini/error-key", "gemini answered 400: API key not valid."),
        (Kind::Gemini, "gemini/error-404-model", "gemini answered 404: models/gemini-9 is not found"),
        (Kind::Ollama, "ollama/error-404-model", "ollama answered 404: model 'llama9' not found"),
        (Kind::MiniMax, "compatible/minimax-error", "minimax reported: login fail"),
    ] {
        let (error, tries) = fails(kind, &[name]);
        let ProviderError::Misconfigured(why) = &error else { panic!("{name}: {error:?}") };
        assert!(why.starts_with(text), "{name}: {why}");
        assert_eq!(tries, 1, "{name}");
    }
}

// PIPE-010, S-02: a prompt that is too long, in the words of each service; a service that fails gets three attempts. A truncated
// stream looks like a complete one, unless the closing mark is required; with text it is not tried again. A request refused
// permanently is not repeated unchanged.
#[test]
fn pipe_010_recorded_failures_have_their_kind_and_number_of_attempts() {
    for (expected, attempts, names) in [
        (
            "ContextOverflow",
            1,
            "openai/error-context anthropic/error-context anthropic/error-413 gemini/error-context",
        ),
        ("ContextOverflow", 1, "ollama/error-context vllm/vllm-context llama.cpp/llama-cpp-context"),
        ("ContextOverflow", 1, "lm-studio/lm-studio-error"),
        ("Unavailable", 3, "openai/error-500 openai/error-503 anthropic/error-529 anthropic/error-in-stream"),
        ("Unavailable", 3, "gemini/error-503 ollama/error-500 openrouter/openrouter-error"),
        ("Interrupted", 1, "openai/truncated openai/error-in-stream anthropic/truncated gemini/truncated"),
        ("Interrupted", 1, "gemini/other ollama/truncated ollama/error-in-stream"),
        ("Rejected", 1, "anthropic/error-limit"),
    ] {
        for name in names.split(' ') {
            let (service, file) = name.split_once('/').unwrap();
            let has_folder = ["openai", "anthropic", "gemini", "ollama"].contains(&service);
            let recording = format!("{}/{file}", if has_folder { service } else { "compatible" });
            let kind = Kind::parse(service).unwrap();
            let (error, tries) = fails(kind, &[recording.as_str(); 3][..attempts]);
            assert!(format!("{error:?}").starts_with(expected), "{name}: {error:?}");
            assert_eq!(tries, attempts, "{name}");
        }
    }
}

#[test]
fn what_nobody_can_place_is_a_refusal_of_the_request() {
    let act = Reply::new("418 I'm a teapot", "content-type: application/json", "{}").act();
    let (outcome, _) = run(play(Kind::OpenAi, vec![act]));
    assert_eq!(outcome.error(), &ProviderError::Rejected("openai answered 418".to_owned()));
}

// ERR-015: no error text contains a key, even if the service repeats it.
#[test]
fn err_015_a_service_that_shouts_the_key_is_not_repeated() {
    let shout = format!(
        r#"{{"error":{{"message":"bad key {KEY} in Authorization: Bearer {KEY} at https://h/?key={KEY}"}}}}"#
    );
    for (status, kind) in [("401 No", Kind::OpenAi), ("403 No", Kind::Gemini), ("400 No", Kind::Anthropic)] {
        let act = Reply::new(status, "content-type: application/json", &shout).act();
        let (outcome, _) = run(play(kind, vec![act]));
        let said = format!("{} {:?} {:?}", outcome.error(), outcome.error(), outcome.heard.attempts);
        assert!(!said.contains(KEY), "{said}");
        assert!(said.contains("[redacted]"));
    }
}
