//! Rows through batch endpoints: posted once, awaited by another process, parsed like single calls, and billed at half
//! the price.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::post_stub::{StubState, serve};
use super::{cogn, done, lines};

/// Name, key, model, and the price of a single call with 100 input tokens and 20 output tokens.
const SERVICES: [(&str, &str, &str, f64); 4] = [
    ("openai", "OPENAI_API_KEY", "gpt-4.1-mini", 0.000_072),
    // Through the Responses API.
    ("openai", "OPENAI_API_KEY", "gpt-5.6-luna", 0.000_044),
    ("anthropic", "ANTHROPIC_API_KEY", "claude-sonnet-5", 0.000_4),
    ("gemini", "GEMINI_API_KEY", "gemini-2.5-flash", 0.000_08),
];

fn stage() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let texts = ["Lovely", "Awful", "this one fails", "this one expires", "Lovely", "Fine"];
    let rows: Vec<String> = texts.iter().map(|text| json!({ "text": text }).to_string()).collect();
    std::fs::write(home.path().join("rows.jsonl"), rows.join("\n")).unwrap();
    home
}

fn command(home: &Path, place: &str, (service, key, model, _): (&str, &str, &str, f64)) -> Command {
    let base = if service == "openai" { format!("{place}/v1") } else { place.to_owned() };
    let mut command = cogn(home, &["batch", "text-classifier", "rows.jsonl", "-o", "out.jsonl", "--json"]);
    command.args(["--provider", service, "--model", model, "--base-url", &base]);
    command.args(["--provider-batch", "--poll", "0s"]).env(key, "k3y-of-ours");
    command
}

fn judged(home: &Path, state: &StubState, single: f64, summary: &str) {
    let summary: Value = serde_json::from_str(summary).unwrap();
    assert_eq!((&summary["stopped"], &summary["answered"]), (&json!("finished"), &json!(6)), "{summary}");
    assert_eq!(
        (&summary["ok"], &summary["failed"], &summary["duplicates"]),
        (&json!(5), &json!(1), &json!(1))
    );
    let mut lines = lines(&home.join("out.jsonl"));
    lines.sort_by_key(|line| line["row"].as_u64());
    let rows: Vec<u64> = lines.iter().map(|line| line["row"].as_u64().unwrap()).collect();
    assert_eq!(rows, [0, 1, 2, 3, 4, 5]);
    assert_eq!(lines[2]["envelope"]["error"]["details"]["kind"], "bad_request", "{}", lines[2]);
    assert_eq!(lines[3]["envelope"]["data"]["label"], "x", "what expired is posted again: {}", lines[3]);
    assert_eq!(lines[4]["duplicate_of"], 0);
    let cost = lines[0]["envelope"]["meta"]["usage"]["cost"].as_f64().unwrap();
    assert!((cost - single / 2.0).abs() < 1e-9, "{cost} is not half of {single}");
    assert_eq!(state.posts.lock().unwrap().len(), 2, "one post, and one for what expired");
}

#[test]
fn a_post_is_sent_once_and_waited_for_over_the_end_of_processes() {
    for service in SERVICES {
        let (home, (state, place)) = (stage(), serve());
        for polls in [1, 3] {
            let before = state.polls();
            let mut command = command(home.path(), &place, service);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            state.until_polled(before + polls);
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(state.posts.lock().unwrap().len(), 1, "{}", service.0);
        state.lets_go.store(true, Ordering::SeqCst);
        let (code, out, err) = done(command(home.path(), &place, service));
        assert_eq!(code, 0, "{}: {out}{err}", service.0);
        judged(home.path(), &state, service.3, &out);
    }
}

#[test]
fn a_post_whose_answer_was_lost_is_found_and_not_sent_again() {
    for service in SERVICES {
        let (home, (state, place)) = (stage(), serve());
        state.is_mute_once.store(true, Ordering::SeqCst);
        state.lets_go.store(true, Ordering::SeqCst);
        let (code, out, err) = done(command(home.path(), &place, service));
        assert_eq!(code, 0, "{}: {out}{err}", service.0);
        judged(home.path(), &state, service.3, &out);
    }
}

#[test]
fn a_service_without_a_batch_endpoint_says_so() {
    let home = stage();
    let (code, _, err) = done(command(home.path(), "http://127.0.0.1:9", ("ollama", "X", "m", 0.0)));
    assert_eq!(code, 1);
    assert!(err.contains("batch endpoint"), "{err}");
}
