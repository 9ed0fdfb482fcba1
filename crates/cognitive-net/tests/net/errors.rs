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

// PIPE-010: a prompt that is too long, in the words of each service.
#[test]
fn pipe_010_prompts_that_do_not_fit() {
    for (kind, name) in [
        (Kind::OpenAi, "openai/error-context"),
        (Kind::Anthropic, "anthropic/error-context"),
        (Kind::Anthropic, "anthropic/error-413"),
        (Kind::Gemini, "gemini/error-context"),
        (Kind::Ollama, "ollama/error-context"),
        (Kind::Vllm, "compatible/vllm-context"),
        (Kind::LlamaCpp, "compatible/llama-cpp-context"),
        (Kind::LmStudio, "compatible/lm-studio-error"),
    ] {
        let (error, tries) = fails(kind, &[name]);
        assert!(matches!(error, ProviderError::ContextOverflow(_)), "{name}: {error:?}");
        assert_eq!(tries, 1, "{name}");
    }
}

// PIPE-010: a failing service gets three attempts.
#[test]
fn pipe_010_services_that_are_broken() {
    for (kind, name) in [
        (Kind::OpenAi, "openai/error-500"),
        (Kind::OpenAi, "openai/error-503"),
        (Kind::Anthropic, "anthropic/error-529"),
        (Kind::Anthropic, "anthropic/error-in-stream"),
        (Kind::Gemini, "gemini/error-503"),
        (Kind::Ollama, "ollama/error-500"),
        (Kind::OpenRouter, "compatible/openrouter-error"),
    ] {
        let (error, tries) = fails(kind, &[name, name, name]);
        assert!(matches!(error, ProviderError::Unavailable(_)), "{name}: {error:?}");
        assert_eq!(tries, 3, "{name}");
    }
}

// A truncated stream looks like a complete one, unless the closing mark is required.
#[test]
fn answers_that_break_off() {
    for (kind, name) in [
        (Kind::OpenAi, "openai/truncated"),
        (Kind::OpenAi, "openai/error-in-stream"),
        (Kind::Anthropic, "anthropic/truncated"),
        (Kind::Gemini, "gemini/truncated"),
        (Kind::Gemini, "gemini/other"),
        (Kind::Ollama, "ollama/truncated"),
        (Kind::Ollama, "ollama/error-in-stream"),
    ] {
        let (error, tries) = fails(kind, &[name]);
        assert!(matches!(error, ProviderError::Interrupted(_)), "{name}: {error:?}");
        assert_eq!(tries, 1, "{name}: there was text, so it is not tried again");
    }
}

// S-02: a request refused permanently is not repeated unchanged.
#[test]
fn a_request_that_cannot_work_is_made_once() {
    let (error, tries) = fails(Kind::Anthropic, &["anthropic/error-limit"]);
    assert!(matches!(error, ProviderError::Rejected(_)), "{error:?}");
    assert_eq!(tries, 1);
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
