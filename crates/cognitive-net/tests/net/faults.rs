//! Network faults: each becomes the expected error, in bounded time and with a bounded number of attempts.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::ports::ProviderError;
use cognitive_contract::tools::ToolSpec;
use cognitive_net::{Kind, provider};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::support::{
    Act, KEY, NoPause, Outcome, Reply, Server, TEXT, Then, ask, call, config, play, recorded, run,
    run_without_waiting,
};

/// Runs a script against OpenAI and returns the waits between attempts, in milliseconds.
fn waits(script: Vec<Act>) -> (Outcome, Vec<u128>) {
    run(async {
        let server = Server::start(script).await;
        let pause = Arc::new(NoPause::default());
        let provider = provider(config(Kind::OpenAi, &server.url).with_pause(pause.clone())).unwrap();
        let outcome = ask(provider.as_ref(), &call(provider.target())).await;
        (outcome, pause.waits())
    })
}

/// Plays a script with little time, of which nothing passes while there is anything to do.
fn hurried(script: Vec<Act>) -> Outcome {
    run_without_waiting(async {
        let server = Server::start(script).await;
        let provider = provider(config(Kind::OpenAi, &server.url)).unwrap();
        let mut call = call(provider.target());
        call.timeout = Duration::from_millis(250);
        let started = Instant::now();
        let outcome = ask(provider.as_ref(), &call).await;
        assert_eq!(started.elapsed().as_millis(), 250);
        outcome
    })
}

/// Returns the final counts of a call, however it ended.
fn last_count(kind: Kind, act: Act) -> Option<(u64, u64)> {
    let (outcome, _) = run(play(kind, vec![act]));
    let failed = outcome.heard.attempts.last().filter(|attempt| !attempt.counted_midway);
    let failed = failed.and_then(|attempt| attempt.usage);
    let counted = outcome.end.as_ref().map_or(failed, |end| end.usage);
    counted.map(|usage| (usage.input_tokens, usage.output_tokens))
}

fn events(events: &[String]) -> Reply {
    let body = events.iter().fold(String::new(), |body, event| body + "data: " + event + "\n\n");
    Reply::new("200 OK", "content-type: text/event-stream", &body)
}

// The count at the beginning of an answer has almost none of its output, so it must not become the cost of the answer.
#[test]
fn an_answer_that_breaks_off_has_no_count() {
    let anthropic = |ending: &[&str]| {
        let start = r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":90,"output_tokens":1}}}"#;
        let piece = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a "}}"#;
        let pieces = vec![piece.to_owned(); 400];
        events(&[vec![start.to_owned()], pieces, ending.iter().map(ToString::to_string).collect()].concat())
    };
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":400}}"#;
    let uncounted = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let midway = r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":7}}"#;
    let closed = r#"{"type":"message_stop"}"#;
    for then in [Then::End, Then::Reset] {
        assert_eq!(last_count(Kind::Anthropic, anthropic(&[]).then(then).act()), None);
        assert_eq!(last_count(Kind::Anthropic, anthropic(&[midway]).then(then).act()), None);
    }
    assert_eq!(last_count(Kind::Anthropic, anthropic(&[uncounted, closed]).act()), None);
    assert_eq!(last_count(Kind::Anthropic, anthropic(&[stop, closed]).act()), Some((90, 400)));
    let gemini = |ending: &str| {
        let part = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}ENDING}],"usageMetadata":{"promptTokenCount":90,"candidatesTokenCount":7}}"#;
        last_count(Kind::Gemini, events(&[part.replace("ENDING", ending)]).act())
    };
    assert_eq!(gemini(""), None);
    assert_eq!(gemini(r#","finishReason":"STOP""#), Some((90, 7)));
    assert_eq!(gemini(r#","finishReason":"OTHER""#), Some((90, 7)), "the service has ended it");
}

// A count that cannot be read would otherwise be zero, and the call free.
#[test]
fn a_count_that_cannot_be_read_is_no_count() {
    let openai =
        r#"{"model":"m","choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":USAGE}"#;
    let anthropic = r#"{"type":"message","model":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":USAGE}"#;
    let gemini = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":USAGE}"#;
    for (kind, answer, names) in [
        (Kind::OpenAi, openai, ["prompt_tokens", "completion_tokens"]),
        (Kind::Anthropic, anthropic, ["input_tokens", "output_tokens"]),
        (Kind::Gemini, gemini, ["promptTokenCount", "candidatesTokenCount"]),
    ] {
        let counted = |usage: &str| {
            let body = answer.replace("USAGE", usage);
            last_count(kind, Reply::new("200 OK", "content-type: application/json", &body).act())
        };
        let usage = |read: &str, written: &str| {
            let [input, output] = names;
            counted(&format!(r#"{{"{input}":{read},"{output}":{written}}}"#))
        };
        assert_eq!(usage("90", "7"), Some((90, 7)), "{kind:?}");
        for odd in ["null", "\"7\"", "7.5", "-7", "99999999999999999999", "{}", "[]", "true"] {
            assert_eq!((usage("90", odd), usage(odd, "7")), (None, None), "{kind:?} {odd}");
        }
        for nothing in ["null", "{}", "[]", "7"] {
            assert_eq!(counted(nothing), None, "{kind:?} {nothing}");
        }
        assert_eq!(counted(&format!(r#"{{"{}":90}}"#, names[0])), None, "{kind:?}");
    }
    let ollama = |counts: &str| {
        let body = format!(r#"{{"model":"m","message":{{"content":"a"}},"done":true{counts}}}"#);
        last_count(Kind::Ollama, Reply::new("200 OK", "content-type: application/json", &body).act())
    };
    assert_eq!(ollama(r#","eval_count":7"#), Some((0, 7)), "the prompt was cached");
    assert_eq!(ollama(r#","eval_count":7,"prompt_eval_count":"9""#), None);
    assert_eq!(ollama(r#","eval_count":-7"#), None);
}

// A gateway can repeat the key anywhere, and every member of an answer is shown to clients, in records or in metrics.
#[test]
fn a_key_in_any_member_of_an_answer_is_redacted() {
    let hidden = |outcome: &Outcome| {
        let told = format!("{:?} {:?} {:?}", outcome.end, outcome.heard.text, outcome.heard.attempts);
        assert!(!told.to_lowercase().contains("k3y-0f-ours"), "{told}");
        assert!(told.contains("[redacted]"), "{told}");
    };
    for key in [KEY.to_owned(), KEY.to_uppercase()] {
        let openai = r#"{"model":"m-KEY","choices":[{"message":{"content":"a","tool_calls":[{"id":"KEY","function":{"name":"KEY","arguments":"{\"KEY\":\"KEY\"}"}}]},"finish_reason":"stop"}]}"#;
        let anthropic = r#"{"type":"message","model":"m-KEY","content":[{"type":"tool_use","id":"KEY","name":"KEY","input":{"a":"KEY"}}],"stop_reason":"tool_use"}"#;
        let gemini = r#"{"modelVersion":"m-KEY","candidates":[{"content":{"parts":[{"functionCall":{"id":"KEY","name":"KEY","args":{"a":"KEY"}},"thoughtSignature":"KEY"}]},"finishReason":"STOP"}]}"#;
        let ollama = r#"{"model":"m-KEY","message":{"content":"","tool_calls":[{"function":{"name":"KEY","arguments":{"a":"KEY"}}}]},"done":true}"#;
        for (kind, answer) in [
            (Kind::OpenAi, openai),
            (Kind::Anthropic, anthropic),
            (Kind::Gemini, gemini),
            (Kind::Ollama, ollama),
        ] {
            let reply = Reply::new("200 OK", "content-type: application/json", &answer.replace("KEY", &key));
            let outcome = run(async {
                let server = Server::start(vec![reply.act()]).await;
                let provider = provider(config(kind, &server.url)).unwrap();
                let mut call = call(provider.target());
                call.tools = vec![Arc::new(ToolSpec::new("look_up", "", json!({ "type": "object" })))];
                ask(provider.as_ref(), &call).await
            });
            hidden(&outcome);
            assert_eq!(outcome.ok().tool_calls.len(), 1, "{kind:?}");
        }
    }
    let cut = events(&[r#"{"model":"m-KEY","choices":[{"delta":{"content":"a"}}]}"#.replace("KEY", KEY)]);
    hidden(&run(play(Kind::OpenAi, vec![cut.act()])).0);
}

fn good() -> Act {
    recorded("openai/stream").act()
}

fn unavailable(outcome: &Outcome) -> &str {
    match outcome.error() {
        ProviderError::Unavailable(why) => why,
        other => panic!("{other:?}"),
    }
}

fn interrupted(outcome: &Outcome) -> &str {
    match outcome.error() {
        ProviderError::Interrupted(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn connection_refused() {
    let outcome = run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let provider = provider(config(Kind::OpenAi, &url)).unwrap();
        ask(provider.as_ref(), &call(None)).await
    });
    assert!(unavailable(&outcome).starts_with("openai cannot be reached: "), "{}", unavailable(&outcome));
    assert_eq!(outcome.statuses(), [None, None, None]);
}

#[test]
fn reset_before_the_head() {
    let (outcome, waits) = waits(vec![Act::Reset, Act::Reset, Act::Reset]);
    assert!(unavailable(&outcome).starts_with("openai gave no answer"));
    assert_eq!(outcome.statuses(), [None, None, None]);
    assert_eq!(waits, [500, 1_000]);
}

// PIPE-009: one failure, then success.
#[test]
fn pipe_009_a_transient_failure_is_tried_again() {
    for first in [Act::Reset, recorded("openai/error-500").act(), recorded("openai/error-503").act()] {
        let (outcome, waits) = waits(vec![first, good()]);
        outcome.ok();
        assert_eq!(outcome.heard.text, TEXT);
        assert_eq!(outcome.heard.attempts.len(), 2);
        assert_eq!(waits, [500]);
    }
}

#[test]
fn reset_in_the_middle_of_the_text() {
    let (outcome, waits) = waits(vec![recorded("openai/truncated").then(Then::Reset).act(), good()]);
    assert!(interrupted(&outcome).starts_with("openai: the connection was lost"));
    assert_eq!(outcome.heard.text, r#"{"ok": true, "word": "naïve "#);
    assert_eq!((outcome.statuses(), waits), (vec![Some(200)], vec![]));
}

#[test]
fn reset_before_the_first_text() {
    let cut = recorded("openai/truncated-before-text");
    for then in [Then::Reset, Then::End] {
        let (outcome, _) = waits(vec![cut.clone().then(then).act(), good()]);
        outcome.ok();
        assert_eq!(outcome.heard.attempts.len(), 2);
    }
    let (outcome, _) = waits(vec![cut.clone().act(), cut.clone().act(), cut.act()]);
    assert_eq!(interrupted(&outcome), "openai: it ended without its final event");
    assert_eq!(outcome.heard.attempts.len(), 3);
}

#[test]
fn a_reset_after_the_closing_mark_is_no_fault() {
    let (outcome, _) = waits(vec![recorded("openai/stream").then(Then::Reset).act()]);
    outcome.ok();
    assert_eq!(outcome.heard.text, TEXT);
}

#[test]
fn nothing_comes() {
    let silent = recorded("openai/truncated-before-text").then(Then::Stall).act();
    let halfway = recorded("openai/truncated").then(Then::Stall).act();
    for (act, status) in [(Act::Stall, None), (silent, Some(200)), (halfway, Some(200))] {
        let outcome = hurried(vec![act]);
        assert_eq!(outcome.error(), &ProviderError::Timeout);
        assert_eq!(outcome.statuses(), [status], "every try is reported, also the last");
    }
}

/// Runs one act with a timeout of `allowed` seconds, and returns after how many seconds the call failed.
fn seconds_until_given_up(act: Act, allowed: u64) -> u64 {
    run_without_waiting(async {
        let server = Server::start(vec![act]).await;
        let provider = provider(config(Kind::DeepSeek, &server.url)).unwrap();
        let mut call = call(None);
        call.timeout = Duration::from_secs(allowed);
        let started = Instant::now();
        let outcome = ask(provider.as_ref(), &call).await;
        assert_eq!(outcome.error(), &ProviderError::Timeout);
        assert_eq!(outcome.heard.attempts.len(), 1, "a model that is too slow is not asked again");
        started.elapsed().as_secs()
    })
}

// S-04: 30 s to the first token, 60 s of silence. Thinking counts as a start, a greeting does not.
#[test]
fn s_04_a_model_that_does_not_begin_is_given_up_before_one_that_pauses() {
    let greeting = || recorded("openai/truncated-before-text").then(Then::Stall).act();
    let halfway = || recorded("openai/truncated").then(Then::Stall).act();
    let thought = || {
        let body = "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm.\"}}]}\n\n";
        Reply::new("200 OK", "content-type: text/event-stream", body).then(Then::Stall).act()
    };
    for (act, allowed, seconds) in [
        (Act::Stall, 60, 30),
        (greeting(), 60, 30),
        (greeting(), 20, 20),
        (greeting(), 200, 100),
        (thought(), 200, 60),
        (halfway(), 200, 60),
    ] {
        assert_eq!(seconds_until_given_up(act, allowed), seconds);
    }
}

#[test]
fn a_finished_answer_does_not_wait_for_the_connection() {
    run_without_waiting(async {
        let server = Server::start(vec![recorded("openai/stream").then(Then::Stall).act()]).await;
        let provider = provider(config(Kind::OpenAi, &server.url)).unwrap();
        let started = Instant::now();
        ask(provider.as_ref(), &call(None)).await.ok();
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
        assert!(server.client_left().await);
    });
}

#[test]
fn too_many_requests() {
    let limited = || Reply::new("429 Too Many Requests", "content-type: application/json", "{}");
    let (outcome, times) = waits(vec![limited().act(), limited().act(), limited().act()]);
    assert_eq!(outcome.error(), &ProviderError::RateLimited { retry_after: None });
    assert_eq!((outcome.statuses(), times), (vec![Some(429); 3], vec![500, 1_000]));

    let asks = |seconds: u64| limited().header(&format!("retry-after: {seconds}")).act();
    let (outcome, times) = waits(vec![asks(3), recorded("openai/error-429-limit").act(), good()]);
    outcome.ok();
    assert_eq!(times, [3_000, 1_200], "what the service asks for");

    let (outcome, times) = waits(vec![asks(31)]);
    let told = ProviderError::RateLimited { retry_after: Some(Duration::from_secs(31)) };
    assert_eq!((outcome.error(), times), (&told, vec![]), "too long to wait for");

    let (outcome, times) = waits(vec![asks(6)]);
    let told = ProviderError::RateLimited { retry_after: Some(Duration::from_secs(6)) };
    assert_eq!((outcome.error(), times), (&told, vec![]), "no time left for an answer after it");
}

#[test]
fn each_service_says_in_its_way_how_long_to_wait() {
    for (kind, name, seconds) in
        [(Kind::Anthropic, "anthropic/error-429", 11), (Kind::Gemini, "gemini/error-429", 9)]
    {
        let (outcome, _) = run(play(kind, vec![recorded(name).act()]));
        let told = ProviderError::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
        assert_eq!(outcome.error(), &told, "{name}");
    }
}

#[test]
fn always_broken() {
    let (outcome, waits) = waits(vec![recorded("openai/error-503").act(); 3]);
    assert_eq!(unavailable(&outcome), "openai answered 503");
    assert_eq!((outcome.statuses(), waits), (vec![Some(503); 3], vec![500, 1_000]));
}

#[test]
fn no_tls_where_tls_is_expected() {
    let outcome = run(async {
        let server = Server::start(vec![Act::Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")]).await;
        let url = server.url.replace("http://", "https://");
        let provider = provider(config(Kind::OpenAi, &url)).unwrap();
        ask(provider.as_ref(), &call(None)).await
    });
    assert!(unavailable(&outcome).starts_with("openai cannot be reached safely: "));
    assert_eq!(outcome.heard.attempts.len(), 1, "it will not get safer");
}

#[test]
fn pages_and_gibberish_are_no_answers() {
    for (name, text) in [
        ("openai/page", "openai answered with a web page; check the address"),
        ("openai/not-json", "openai answered with something that is not JSON; check the address"),
    ] {
        let (outcome, _) = waits(vec![recorded(name).act()]);
        assert_eq!(unavailable(&outcome), text);
        assert_eq!(outcome.heard.attempts.len(), 1);
    }
}

// A body without content ends too, with a separate message.
#[test]
fn an_endless_body_is_cut() {
    let endless = |body: &str| {
        let reply = Reply::new("200 OK", "content-type: text/event-stream", body);
        run(async {
            let server = Server::start(vec![reply.then(Then::Repeat).act()]).await;
            let provider = provider(config(Kind::OpenAi, &server.url)).unwrap();
            let mut call = call(provider.target());
            // The byte limit must end it, even on a busy machine.
            call.timeout = Duration::from_mins(10);
            ask(provider.as_ref(), &call).await
        })
    };
    let comments = endless(&format!(": {}\n\n", "x".repeat(60_000)));
    let nothing = "openai: it contains almost no text: 32 MiB for 0 bytes of answer";
    assert_eq!(interrupted(&comments), nothing);
    let empty = r#"data: {"model":"m","choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}"#;
    let empty = endless(&format!("{empty}\n\n").repeat(1_000));
    assert_eq!(interrupted(&empty), nothing);
    let event = endless(&format!("data: {}", "x".repeat(60_000)));
    assert_eq!(interrupted(&event), "openai: an event that is too large");
    let text = endless(&r#"{"choices":[{"delta":{"content":"TEXT"}}]}"#.replace("TEXT", &"x".repeat(60_000)));
    assert_eq!(interrupted(&text), "openai: it is longer than 16 MiB", "a document");
    for said in ["content", "reasoning_content"] {
        let delta = r#"{"choices":[{"delta":{"SAID":"TEXT"}}]}"#.replace("SAID", said);
        let text = endless(&format!("data: {}\n\n", delta.replace("TEXT", &"x".repeat(60_000))));
        assert_eq!(interrupted(&text), "openai: it is longer than 16 MiB", "{said}");
    }
    assert_eq!((comments.heard.attempts.len(), event.heard.attempts.len()), (1, 1));
}

#[test]
fn an_endless_error_says_what_it_said() {
    let body = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(60_000));
    let reply = Reply::new("404 Not Found", "content-type: application/json", &body);
    let (outcome, _) = waits(vec![reply.then(Then::Repeat).act()]);
    assert!(matches!(outcome.error(), ProviderError::Misconfigured(_)), "{:?}", outcome.error());
}

// ERR-015: a key never follows a redirect to another origin.
#[test]
fn err_015_redirects_elsewhere_are_not_followed() {
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        run(async {
            let other = Server::start(vec![good()]).await;
            let location = format!("location: {}/v1/chat/completions?token={KEY}", other.url);
            let here = Server::start(vec![Reply::new(status, &location, "").act()]).await;
            let provider = provider(config(Kind::OpenAi, &here.url)).unwrap();
            let outcome = ask(provider.as_ref(), &call(None)).await;
            assert!(matches!(outcome.error(), ProviderError::Misconfigured(_)), "{status}");
            assert_eq!(other.connections(), 0, "{status}");
        });
    }
}

#[test]
fn redirects_within_the_same_place_are_followed() {
    run(async {
        let moved = Reply::new("308 Permanent Redirect", "location: /v2/chat/completions", "").act();
        let server = Server::start(vec![moved, good()]).await;
        let provider = provider(config(Kind::OpenAi, &server.url)).unwrap();
        ask(provider.as_ref(), &call(None)).await.ok();
        let lines: Vec<String> = server.seen().iter().map(|request| request.line.clone()).collect();
        assert_eq!(lines, ["POST /v1/chat/completions HTTP/1.1", "POST /v2/chat/completions HTTP/1.1"]);
        assert_eq!(server.seen()[0].body, server.seen()[1].body);
    });
}
