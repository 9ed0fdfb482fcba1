//! Recorded answers: text, finish reason, model and token count must not depend on how the bytes are split.

use cognitive_contract::ports::{DecodeMode, Finish, Usage};
use cognitive_net::Kind;

use crate::support::{TEXT, play, recorded, run};

/// Replays a recording in pieces of one byte, in pieces of seven, and in one piece.
fn check(kind: Kind, name: &str, model: &str) {
    for cut in [1, 7, usize::MAX] {
        let (outcome, _) = run(play(kind, vec![recorded(name).cut(cut).act()]));
        let end = outcome.ok();
        assert_eq!(outcome.heard.text, TEXT, "{name} in pieces of {cut}");
        assert_eq!((&end.finish, end.model.as_str()), (&Finish::Complete, model), "{name}");
        // The recordings of Gemini report three thinking tokens.
        let thoughts = if kind == Kind::Gemini { 3 } else { 0 };
        // The recordings of Anthropic report 31 cached tokens.
        let cached = if kind == Kind::Anthropic { 31 } else { 0 };
        let usage = Usage::new(211, 17).with_thoughts(thoughts).with_cache(cached, 0);
        assert_eq!(end.usage, Some(usage), "{name}");
        assert_eq!(outcome.statuses(), [Some(200)], "{name}");
        assert_eq!(outcome.heard.attempts[0].outcome, "ok");
    }
}

#[test]
fn streams_and_whole_answers_of_each_service() {
    for (kind, service, model) in [
        (Kind::OpenAi, "openai", "gpt-5.4-mini-2026-03-17"),
        (Kind::Anthropic, "anthropic", "claude-sonnet-5"),
        (Kind::Gemini, "gemini", "gemini-3.5-flash"),
        (Kind::Ollama, "ollama", "llama3.2"),
    ] {
        check(kind, &format!("{service}/stream"), model);
        check(kind, &format!("{service}/whole"), model);
    }
    check(Kind::DeepSeek, "compatible/deepseek-stream", "deepseek-flash");
    check(Kind::Groq, "compatible/groq-stream", "m-1");
}

// PIPE-010: an answer cut off by the token limit differs from a complete one.
#[test]
fn pipe_010_answers_cut_off_by_the_limit() {
    for (kind, name, text) in [
        (Kind::OpenAi, "openai/length", r#"{"ok": true, "word": "na"#),
        (Kind::Anthropic, "anthropic/max-tokens", r#"{"ok": true, "word": "na"#),
        (Kind::Gemini, "gemini/max-tokens", r#"{"ok": true, "word": "na"#),
        (Kind::Ollama, "ollama/length", r#"{"ok": true, "word": "na"#),
    ] {
        let (outcome, _) = run(play(kind, vec![recorded(name).act()]));
        assert_eq!((outcome.heard.text.as_str(), &outcome.ok().finish), (text, &Finish::CutOff), "{name}");
    }
}

// S-09: an answer that the service flags as a refusal is returned as one, with its text.
#[test]
fn refusals_with_their_reasons() {
    for (kind, name, why) in [
        (Kind::OpenAi, "openai/refusal", "I cannot help with that."),
        (Kind::OpenAi, "openai/filtered", "the content filter stopped the answer"),
        (
            Kind::OpenAi,
            "openai/error-guard",
            "The response was filtered due to the prompt triggering the content management policy.",
        ),
        (
            Kind::Anthropic,
            "anthropic/refusal",
            "This request was declined because it could enable cyber harm.",
        ),
        (Kind::Gemini, "gemini/safety", "the answer was stopped: SAFETY"),
        (Kind::Gemini, "gemini/blocked-prompt", "the prompt was blocked: PROHIBITED_CONTENT"),
    ] {
        let (outcome, _) = run(play(kind, vec![recorded(name).act()]));
        assert_eq!(outcome.ok().finish, Finish::Refused(why.to_owned()), "{name}");
        assert_eq!(outcome.heard.attempts.len(), 1);
    }
}

#[test]
fn a_reason_to_finish_is_a_closing_mark_too() {
    let (outcome, _) = run(play(Kind::OpenAi, vec![recorded("openai/no-done").act()]));
    assert_eq!((outcome.heard.text.as_str(), &outcome.ok().finish), (TEXT, &Finish::Complete));
    assert_eq!(outcome.ok().usage, None);
}

#[test]
fn the_binding_is_reported() {
    let cases = [
        (Kind::OpenAi, "openai/stream", DecodeMode::NativeSchema),
        (Kind::DeepSeek, "compatible/deepseek-stream", DecodeMode::JsonMode),
        (Kind::MiniMax, "compatible/groq-stream", DecodeMode::Prompt),
    ];
    for (kind, name, decode) in cases {
        let (outcome, _) = run(play(kind, vec![recorded(name).act()]));
        assert_eq!((outcome.ok().decode, outcome.heard.attempts[0].decode), (decode, decode), "{kind}");
    }
}
