//! `cogn serve` as a process that is stopped, that keeps context between requests and restarts, and that sends traces.

use std::io::BufRead;

use cognitive_testkit::{Act, FakeModel, Home, TestServer, Then, good_answer, piece, stream_reply};
use serde_json::{Value, json};

use crate::{batches_of, collector, home};

const MANIFEST: &str = "name: talk\nversion: 1.0.0\nresponsibility: Talk\ntier: decision\nexcludes: []\nresponse:\n  mode: both\ncontext:\n  accepts:\n    - type: session_state\n  emits:\n    - type: session_state\n      ttl: 3600\n";

/// A home with one module.
fn with_module() -> Home {
    let home = home();
    home.simple_module("talk", &json!({}));
    home.write("cognitive/modules/talk/module.yaml", MANIFEST);
    // A stream whose model waits ends by the signal, and not by a time limit.
    home.user_config("timeout_seconds: 86400\n");
    home
}

fn start(home: &Home, service: &FakeModel, more: &[&str]) -> TestServer {
    let url = service.url();
    let usual =
        ["--rate", "0", "--streams", "0", "--provider", "openai", "--base-url", &url, "--model", "stub"];
    TestServer::start(home, &[&usual, more].concat(), &[])
}

/// Returns the chunks in the rest of a response in lines.
fn chunks(stream: impl BufRead) -> Vec<Value> {
    let lines = stream.lines().map(Result::unwrap).filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
}

// STREAM-004: a signal during a hundred streams; each gets exactly one terminal chunk, and the process exits cleanly.
#[test]
fn stream_004_a_signal_gives_each_of_a_hundred_streams_its_last_chunk() {
    let begun = piece(r#"{"ok": true, "data": {"rationale": "It is"#, None);
    let service = FakeModel::script(vec![Act::stream(begun).then(Then::Silence)]);
    let home = with_module();
    let server = start(&home, &service, &["--drain", "0"]);
    let lines = [("accept", "application/x-ndjson")];
    let ask = |_| server.open("POST /api/run/talk", &lines, r#"{"text": "a"}"#);
    let mut streams: Vec<_> = (0..100).map(ask).collect();
    for stream in &mut streams {
        let mut line = String::new();
        while !line.contains("It is") {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "a stream ended before it was told to");
        }
    }
    assert_eq!(service.requests().len(), 100, "each has a model call of its own");
    server.terminate();
    for stream in streams {
        let rest = chunks(stream);
        let ends: Vec<&Value> = rest
            .iter()
            .filter(|chunk| chunk.get("error").is_some() || chunk.get("final").is_some())
            .collect();
        assert_eq!(ends.len(), 1, "{rest:?}");
        assert_eq!(ends[0]["error"]["code"], "E2010");
        assert_eq!(rest.last(), Some(ends[0]));
        assert_eq!(ends[0]["partial_data"]["rationale"], "It is");
    }
    assert_eq!(server.wait_for_end(), (Some(0), "stopped\n".to_owned()));
}

/// Returns an answer that emits a state.
fn answer() -> Vec<Act> {
    let mut answer = good_answer(&json!({ "rationale": "r" }));
    answer["_emitted_context"] = json!({ "session_state": { "note": "remember-the-milk" } });
    vec![Act::stream(stream_reply(&answer))]
}

// D-04, S-23: the context of a conversation survives the process, and belongs to its key.
#[test]
fn s_23_a_server_remembers_a_conversation_of_a_key_after_a_restart() {
    let (service, home) = (FakeModel::script(answer()), with_module());
    let (anna, bob) = ("anna-0123456789abcdef", "bob-0123456789abcdef");
    home.write("keys", format!("anna {anna}\nbob {bob}\n"));
    let turn = |server: &TestServer, key: &str| {
        let body = json!({ "input": { "text": "a" }, "_options": { "session": "shopping" } });
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str())];
        let (status, answer) = server.ask("POST /api/run/talk", &headers, body.to_string());
        assert_eq!(status, 200, "{answer}");
        service.raw_requests().last().unwrap().contains("remember-the-milk")
    };
    let server = start(&home, &service, &["--keys", "keys"]);
    assert!(!turn(&server, anna));
    assert!(turn(&server, anna));
    server.terminate();
    assert_eq!(server.wait_for_end().0, Some(0));
    let server = start(&home, &service, &["--keys", "keys"]);
    assert!(!turn(&server, bob), "another key has a conversation of its own");
    assert!(turn(&server, anna));
    let kept = home.cogn(&["context", "list", "--user", "anna", "--session", "shopping"]);
    assert!(kept.out.contains("session_state"), "the operator can look");
}

// The last spans are sent before the process ends.
#[test]
fn spans_are_sent_before_a_server_ends() {
    let (service, home, collector) = (FakeModel::script(answer()), with_module(), collector());
    let (url, otlp) = (service.url(), format!("http://{}", collector.address));
    let words =
        ["--rate", "0", "--provider", "mistral", "--base-url", &url, "--model", "stub", "--otlp", &otlp];
    let server = TestServer::start(&home, &words, &[("MISTRAL_API_KEY", "none-that-counts")]);
    assert_eq!(server.ask("POST /api/run/talk", &[], r#"{"text": "a"}"#).0, 200);
    server.terminate();
    assert_eq!(server.wait_for_end().0, Some(0));
    let batches: Vec<String> = batches_of(&collector).iter().map(Value::to_string).collect();
    let has_model = |batch: &String| {
        batch.contains(r#""gen_ai.provider.name""#) && batch.contains(r#""stringValue":"mistral_ai""#)
    };
    assert!(batches.iter().any(has_model), "{batches:?}");
    let wrong = home.cogn(&["serve", "--port", "0", "--provider", "ollama", "--otlp", "nonsense"]);
    assert_ne!(wrong.exit(), 0);
    assert!(wrong.err.contains("collector"));
}

// A service has no terminal, so SIGHUP means to read the keys again. Faulty keys change nothing.
#[cfg(unix)]
#[test]
fn a_service_reads_its_keys_again_at_sighup() {
    let (service, home) = (FakeModel::script(answer()), with_module());
    let (anna, bob) = ("anna-0123456789abcdef", "bob-0123456789abcdef");
    home.write("keys", format!("anna {anna}\n"));
    let url = service.url();
    let args = ["serve", "--port", "0", "--keys", "keys", "--provider", "openai", "--base-url", &url];
    let inner = home.command(&args, &[]);
    // In a session of its own, so that it has no terminal even if these tests have one.
    let mut command = cognitive_testkit::command("setsid");
    command.arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(inner.get_current_dir().unwrap());
    let server = TestServer::spawn(&mut command);
    let status = |server: &TestServer, key: &str| {
        let bearer = format!("Bearer {key}");
        server.ask("GET /v1/session", &[("authorization", &bearer)], "").0
    };
    assert_eq!((status(&server, anna), status(&server, bob)), (200, 401));
    let hang_up = |server: &TestServer| {
        let pid = server.id().to_string();
        assert!(cognitive_testkit::command("kill").args(["-HUP", &pid]).status().unwrap().success());
    };
    home.write("keys", format!("bob {bob}\n"));
    hang_up(&server);
    server.wait_for("reloaded the keys: 1");
    assert_eq!((status(&server, anna), status(&server, bob)), (401, 200));
    for (faulty, said) in [("bob short\n", "the key `bob` is too short"), ("", "needs at least one")] {
        home.write("keys", faulty);
        hang_up(&server);
        server.wait_for(said);
        assert_eq!(status(&server, bob), 200, "{faulty:?}");
    }
    let bearer = format!("Bearer {bob}");
    assert_eq!(server.ask("GET /v1/reviews", &[("authorization", &bearer)], "").0, 403);
    server.wait_for("/v1/reviews");
    server.terminate();
    let before = server.said.clone();
    let (code, after) = server.wait_for_end();
    assert_eq!(code, Some(0));
    // Standard error is a pipe, so a program reads it: each line is JSON with a time and a level.
    let lines: Vec<Value> =
        before.lines().chain(after.lines()).map(|line| serde_json::from_str(line).expect(line)).collect();
    for line in &lines {
        assert!(line["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
        assert!(["info", "warning", "error"].contains(&line["level"].as_str().unwrap()), "{line}");
    }
    let message = |line: &&Value| {
        line["message"].as_str().unwrap_or_default().starts_with("the keys were not reloaded")
    };
    assert_eq!(lines.iter().find(message).unwrap()["level"], "warning");
    let refused = lines.iter().find(|line| line["path"] == "/v1/reviews").unwrap();
    assert_eq!((&refused["status"], &refused["client"]), (&json!(403), &json!("bob")));
}
