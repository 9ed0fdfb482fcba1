//! A batch that is killed again and again: every row has one line at the end, and no line is torn.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{cogn, done, lines};

/// The recorded reply of a bundled module, which answers every row.
const REPLY: &str = include_str!("../../../../modules/text-classifier/tests/free-topic.reply.txt");

const ARGS: [&str; 8] =
    ["batch", "text-classifier", "rows.jsonl", "-o", "out.jsonl", "--reply", "reply.txt", "--concurrency"];

fn stage(rows: usize) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let text =
        |number: usize| format!("{}\n", json!({ "text": format!("The train was late again: {number}") }));
    std::fs::write(home.path().join("rows.jsonl"), (0..rows).map(text).collect::<String>()).unwrap();
    std::fs::write(home.path().join("reply.txt"), REPLY).unwrap();
    home
}

/// Waits until so many rows are answered, or until the process has ended.
fn until_answered(home: &Path, child: &mut Child, rows: u64) {
    let journal = home.join("out.jsonl.cogn-batch").join("journal");
    let begun = Instant::now();
    while std::fs::metadata(&journal).map_or(0, |file| file.len()) / 64 < rows {
        assert!(begun.elapsed() < Duration::from_mins(1), "the batch does not go on");
        if child.try_wait().unwrap().is_some() {
            return;
        }
        // Whoever spins takes the processor away from the one that is waited for.
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_batch_that_is_killed_again_and_again_answers_every_row_once() {
    const ROWS: usize = 3000;
    let home = stage(ROWS);
    let mut kills = 0;
    for rows in [1, 400, 401, 1100, 1800, 2500] {
        let mut command = cogn(home.path(), &ARGS);
        let mut child = command.arg("4").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until_answered(home.path(), &mut child, rows);
        kills += u32::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
    }
    assert!(kills >= 3, "only {kills} processes could be killed");
    let mut last = cogn(home.path(), &ARGS);
    last.args(["4", "--json"]);
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
    let home = stage(20_000);
    let mut command = cogn(home.path(), &ARGS);
    let mut child = command.arg("2").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until_answered(home.path(), &mut child, 1);
    let mut second = cogn(home.path(), &ARGS);
    second.arg("2");
    let (code, _, err) = done(second);
    let _ = child.kill();
    child.wait().unwrap();
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("another process"), "{err}");
    std::fs::write(home.path().join("rows.jsonl"), "{\"text\": \"one\"}\n").unwrap();
    let with = |more: &'static str| {
        let mut command = cogn(home.path(), &ARGS);
        command.args(["2", more]);
        done(command)
    };
    let (code, _, err) = with("--json");
    assert!(code == 1 && err.contains("another file of rows") && err.contains("--restart"), "{err}");
    assert_eq!(with("--restart").0, 0);
    let (code, _, err) = with("--json");
    assert!(code == 1 && err.contains("there already"), "{err}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_lets_rows_come_to_their_end_and_says_how_to_go_on() {
    let home = stage(30_000);
    let mut command = cogn(home.path(), &ARGS);
    let mut child = command.arg("2").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_answered(home.path(), &mut child, 1);
    let interrupted = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("The same command goes on with"), "{said}");
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
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 2, "nothing is written");
}
