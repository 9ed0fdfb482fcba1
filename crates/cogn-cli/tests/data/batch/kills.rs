//! A batch that is killed repeatedly: at the end every row has one line, and no line is torn.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::held_service::HeldService;
use super::{cogn, done, lines};

/// The recorded reply of a bundled module, which answers every row.
const REPLY: &str = include_str!("../../../../../modules/text-classifier/tests/free-topic.reply.txt");

const ARGS: [&str; 8] = [
    "batch",
    "text-classifier",
    "rows.jsonl",
    "-o",
    "out.jsonl",
    // A row that is held ends with its process, and not by a time limit.
    "--timeout",
    "86400",
    "--concurrency",
];

fn stage(rows: usize) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let text =
        |number: usize| format!("{}\n", json!({ "text": format!("The train was late again: {number}") }));
    std::fs::write(home.path().join("rows.jsonl"), (0..rows).map(text).collect::<String>()).unwrap();
    home
}

/// The batch with a service that can hold it.
fn batch(home: &Path, service: &HeldService, concurrency: &str) -> Command {
    let mut command = cogn(home, &ARGS);
    command.arg(concurrency).args(["--provider", "openai", "--model", "stub", "--base-url", &service.url]);
    command.env("OPENAI_API_KEY", "k").stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn a_batch_that_is_killed_again_and_again_answers_every_row_once() {
    const ROWS: usize = 3000;
    let (home, service) = (stage(ROWS), HeldService::start(REPLY));
    for rows in [1, 400, 401, 1100, 1800, 2500] {
        service.allow(rows);
        let mut child = batch(home.path(), &service, "4").spawn().unwrap();
        // The next rows wait for the service, so the process lives, and may still be writing those that were answered.
        service.until_held(4);
        child.kill().unwrap();
        child.wait().unwrap();
        service.until_held(0);
    }
    service.allow(usize::MAX);
    let mut last = batch(home.path(), &service, "4");
    last.arg("--json");
    let (code, out, err) = done(last);
    assert_eq!(code, 0, "{out}{err}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&summary["answered"], &summary["ok"], &summary["resumed"]),
        (&json!(ROWS), &json!(ROWS), &json!(true))
    );
    let mut rows: Vec<u64> =
        lines(&home.path().join("out.jsonl")).iter().map(|line| line["row"].as_u64().unwrap()).collect();
    rows.sort_unstable();
    assert_eq!(rows, (0..ROWS as u64).collect::<Vec<_>>());
    assert!(!home.path().join("out.jsonl.cogn-batch").exists());
}

#[test]
fn two_processes_never_write_one_output_and_a_finished_one_is_not_overwritten() {
    let (home, service) = (stage(20), HeldService::start(REPLY));
    service.allow(1);
    let mut child = batch(home.path(), &service, "2").spawn().unwrap();
    service.until_held(2);
    let (code, _, err) = done(batch(home.path(), &service, "2"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("another process"), "{err}");
    service.allow(usize::MAX);
    std::fs::write(home.path().join("rows.jsonl"), "{\"text\": \"one\"}\n").unwrap();
    let with = |more: &'static str| {
        let mut command = batch(home.path(), &service, "2");
        command.arg(more);
        done(command)
    };
    let (code, _, err) = with("--json");
    assert!(code == 1 && err.contains("another file of rows") && err.contains("--restart"), "{err}");
    assert_eq!(with("--restart").0, 0);
    let (code, _, err) = with("--json");
    assert!(code == 1 && err.contains("the output already exists"), "{err}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_lets_rows_come_to_their_end_and_says_how_to_go_on() {
    let (home, service) = (stage(30), HeldService::start(REPLY));
    service.allow(1);
    let mut command = batch(home.path(), &service, "2");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    service.until_held(2);
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    // The rows under way are answered only after the signal was heard.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("stopping: rows in flight finish")));
    service.allow(usize::MAX);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("The same command resumes with"), "{said}");
    assert!(home.path().join("out.jsonl.cogn-batch").exists());
}

#[test]
fn a_look_before_says_how_many_rows_and_asks_nobody() {
    let home = stage(30);
    let mut command = cogn(home.path(), &["batch", "text-classifier", "rows.jsonl", "-n", "--json"]);
    command.args(["--provider", "openai", "--model", "gpt-4.1-mini"]);
    let (code, out, err) = done(command);
    assert_eq!(code, 0, "{err}");
    let look: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&look["rows"], &look["duplicates"], &look["refused"]), (&json!(30), &json!(0), &json!(0)));
    assert!(look["at_most"].as_f64() > look["input_cost"].as_f64(), "{look}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "nothing is written");
}
