//! No writable store, and exhausted system resources: reported visibly, and every run still returns an envelope.

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use serde_json::Value;

use super::fixture::{Act, Home, Server, Service};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

// A server that cannot record does not start, unless recording is disabled.
#[test]
fn a_server_without_a_place_for_its_records_does_not_start() {
    let home = Home::new("");
    let service = Service::start(|_| Act::Answer);
    let args =
        ["serve", "--port", "0", "--provider", "openai", "--base-url", &service.url, "--model", "stub"];
    // Reads only the first line: a server that starts by mistake would never end.
    let mut child = home.command(&args).env_remove("HOME").stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut first).unwrap();
    let _ = child.kill();
    child.wait().unwrap();
    assert!(first.contains("runs cannot be recorded"), "{first}");
    let homeless = home.command(&args).env_remove("HOME").output().unwrap();
    let said = text(&homeless.stderr);
    assert_eq!(homeless.status.code(), Some(1), "{said}");
    assert!(
        said.contains("neither `HOME` nor `COGNITIVE_DB` is set") && said.contains("--no-audit"),
        "{said}"
    );
    let unwritable = home.command(&args).env("COGNITIVE_DB", "/dev/null/x.db").output().unwrap();
    assert_eq!(unwritable.status.code(), Some(1));
    assert!(text(&unwritable.stderr).contains("runs cannot be recorded"), "{}", text(&unwritable.stderr));
    let server = Server::begin(home.command(&args).arg("--no-audit").env_remove("HOME"));
    assert!(server.answer("", &serde_json::json!({ "text": "<a>" })).starts_with("HTTP/1.1 200"));
    server.stop();
}

// A run continues and warns once, and `audit list` reports the real reason.
#[test]
fn a_run_without_a_place_for_its_record_says_so() {
    let home = Home::new("");
    let service = Service::start(|_| Act::Answer);
    let args = ["run", "talk", "--set", "text=<a>", "--provider", "openai", "--model", "stub"];
    let run = home.command(&args).args(["--base-url", &service.url]).env_remove("HOME").output().unwrap();
    assert!(run.status.success());
    let said = text(&run.stderr);
    assert_eq!(said.matches("the run is not recorded").count(), 1, "{said}");
    assert!(said.contains("neither `HOME` nor `COGNITIVE_DB` is set"), "{said}");
    let listed = home.command(&["audit", "list"]).env_remove("HOME").output().unwrap();
    let said = text(&listed.stderr);
    assert!(
        said.contains("neither `HOME` nor `COGNITIVE_DB` is set") && !said.contains("disabled"),
        "{said}"
    );
    let off = Home::new("audit: {enabled: false}\n");
    let said = text(&off.cogn(&["audit", "list"]).stderr);
    assert!(said.contains("the audit log is disabled"), "{said}");
}

// If every call must be recorded, a call that cannot be recorded is not made.
#[test]
fn a_call_that_has_to_be_recorded_and_cannot_be_is_not_made() {
    let home = Home::new("audit: {required: true}\n");
    let service = Service::start(|_| Act::Answer);
    let args = ["run", "talk", "--set", "text=<a>", "--provider", "openai", "--model", "stub"];
    let run = home
        .command(&args)
        .args(["--base-url", &service.url])
        .env("COGNITIVE_DB", "/dev/null/x.db")
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1));
    let envelope: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(envelope["error"]["message"].as_str().unwrap().contains("cannot be recorded"), "{envelope}");
    assert!(service.asked().is_empty());
}

/// Runs a module with a saved reply under a limit of the shell.
fn limited(home: &Home, limit: &str) -> Output {
    let reply =
        r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"r"}}"#;
    std::fs::write(home.path().join("reply.json"), reply).unwrap();
    let script = format!("{limit}; exec \"$@\"");
    cognitive_testkit::command("sh")
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_cogn"), "run", "talk", "--set", "text=a"])
        .args(["--reply", "reply.json"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap()
}

// Whatever the system refuses, a run returns one envelope.
#[test]
fn limits_of_the_system_end_no_run_without_an_envelope() {
    for files in 4..24 {
        let home = Home::new("");
        let output = limited(&home, &format!("ulimit -n {files}"));
        let envelope: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{files} files: {error}: {}", text(&output.stderr)));
        assert!(envelope["ok"].is_boolean(), "{files}: {envelope}");
        assert!(matches!(output.status.code(), Some(0 | 1)), "{files}: {:?}", output.status);
    }
    for blocks in [0, 1, 8, 64] {
        let home = Home::new("");
        let output = limited(&home, &format!("ulimit -f {blocks}"));
        let envelope: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{blocks} blocks: {error}: {}", text(&output.stderr)));
        assert_eq!(envelope["ok"], true, "{blocks}: {envelope}");
        if blocks == 0 {
            let said = envelope["meta"]["warnings"].to_string();
            assert!(said.contains("the run is not recorded"), "{said}");
        }
    }
}
