//! Compositions from the shell: the parts of a module or the reason why it cannot run, repetition, and traces. Also
//! that parts run concurrently and end together, on a clock and connections under the control of the test.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use cognitive_contract::ports::{
    CallSink, DecodeMode, ModelCall, ModelEnd, NullSink, PortFuture, Provider, ProviderError,
};
use cognitive_library::{Library, ModuleCache};
use cognitive_runtime::{Host, RunRequest, run};
use serde_json::{Value, json};

fn plan(home: &Path, args: &[&str]) -> (i32, String, String) {
    let output = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
        .args(["compose", "plan"])
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn write(home: &Path, name: &str, requires: &str) {
    let folder = home.join(name);
    fs::create_dir(&folder).unwrap();
    let manifest = format!(
        "name: {name}\nversion: 1.0.0\ntier: decision\nresponsibility: Join.\ncomposition:\n  requires: {requires}\n"
    );
    fs::write(folder.join("module.yaml"), manifest).unwrap();
    fs::write(folder.join("schema.json"), r#"{"input":{"type":"object"},"data":{"type":"object"}}"#).unwrap();
    fs::write(folder.join("prompt.md"), "Join them.\n").unwrap();
}

#[test]
fn a_plan_shows_versions_that_were_found_in_three_forms() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        "joined",
        "[{name: summarizer}, {name: text-classifier, version: ^99.0.0, optional: true}]",
    );
    let (code, out, _) = plan(home.path(), &["./joined", "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["module"], &json["pattern"]), (0, &"joined".into(), &"sequential".into()));
    let needs = &json["modules"][0]["needs"];
    assert!(needs[0]["version"].is_string() && needs[1]["version"].is_null(), "{needs}");
    let (code, out, _) = plan(home.path(), &["./joined", "--mermaid"]);
    assert!(code == 0 && out.starts_with("graph TD\n") && out.contains("n0 --> n1"), "{out}");
    let (code, out, _) = plan(home.path(), &["./joined"]);
    assert!(code == 0 && out.contains("summarizer") && out.contains("not there"), "{out}");
}

#[test]
fn comp_070_011_a_plan_that_cannot_run_says_so() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "lost", "[{name: no-such-module}]");
    write(home.path(), "ring", "[{name: ring}]");
    for (module, told) in [("./lost", "`no-such-module`"), ("./ring", "ring → ring")] {
        let (exit, out, err) = plan(home.path(), &[module]);
        assert!(exit != 0 && out.is_empty() && err.contains(told), "{module}: {out}{err}");
    }
}

/// Runs any command.
fn cogn(home: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
    command.args(args).current_dir(home).env_clear().env("HOME", home);
    let output = command.env("OPENAI_API_KEY", "sk-test").env("COGN_OFFLINE", "1").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

// COMP-005, COMP-042: a syntax error is found while the arguments are parsed, and shown at its position.
#[test]
fn comp_005_a_repetition_from_the_shell_is_bounded_told_and_traced() {
    let home = tempfile::tempdir().unwrap();
    let reply = json!({ "ok": true, "meta": { "confidence": 0.6, "risk": "low", "explain": "e" },
                        "data": { "rationale": "r", "summary": "Short." } });
    fs::write(home.path().join("reply.json"), reply.to_string()).unwrap();
    let run = |more: &[&str]| {
        let usual = ["run", "summarizer", "--set", "text=A long text.", "--reply", "reply.json"];
        cogn(home.path(), &[&usual, more].concat())
    };
    let (code, out, err) = run(&["--until", "$.meta.confidence >> 0.9"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    let lines: Vec<&str> = err.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(
        lines.get(1).unwrap().find('^').unwrap(),
        lines.first().unwrap().find(">> 0.9").unwrap() + 1,
        "{err}"
    );
    assert_eq!(run(&["--max-iterations", "2"]).0, 2, "a count alone says nothing");
    assert_eq!(run(&["--until", "true", "--max-iterations", "101"]).0, 2);
    let (code, out, _) = run(&["--until", "$.meta.confidence > 0.5"]);
    let envelope: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &envelope["meta"]["iteration"]), (0, &json!({ "rounds": 1, "done": true })));
    let more =
        ["--until", "$.meta.confidence > 0.9", "--max-iterations", "2", "--feed", "text=$.data.summary"];
    let (code, out, err) = run(&[&more[..], &["--trace=json"]].concat());
    let envelope: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &envelope["meta"]["iteration"]["rounds"]), (0, &json!(2)), "{out}");
    let trace: Value = serde_json::from_str(err.trim()).unwrap();
    assert_eq!(trace["parts"].as_array().unwrap().len(), 2, "{err}");
    let (_, _, err) = run(&["--trace"]);
    assert!(err.starts_with("MODULE") && err.contains("summarizer") && err.contains("0.60"), "{err}");
}

/// A model on a simulated clock: every answer takes 300 ms of it.
struct Slow;

impl Provider for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            sink.piece(
                r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"r"}}"#,
            );
            Ok(ModelEnd::complete("m", DecodeMode::Prompt))
        })
    }
}

/// Writes a module that is composed of three others next to it.
fn three(home: &Path, pattern: &str) {
    for name in ["one", "two", "three"] {
        write(home, name, "[]");
    }
    write(home, "all", "[{name: one}, {name: two}, {name: three}]");
    let path = home.join("all/module.yaml");
    let flow = "  dataflow: [{from: [one.output, two.output, three.output], to: output, aggregate: array}]\n";
    let manifest = fs::read_to_string(&path).unwrap() + &format!("  pattern: {pattern}\n{flow}");
    fs::write(path, manifest).unwrap();
}

// COMP-003: three parts of 300 ms each take as long as one of them, on the simulated clock.
#[test]
fn comp_003_three_parts_of_300_ms_are_done_in_less_than_500() {
    for (pattern, least, most) in [("parallel", 300, 499), ("sequential", 900, 1_000)] {
        let home = tempfile::tempdir().unwrap();
        let modules = home.path().join("cognitive/modules");
        fs::create_dir_all(&modules).unwrap();
        three(&modules, pattern);
        let library = Library::new(home.path(), None, &[]);
        let host = Host::new(Arc::new(ModuleCache::new(library)), Arc::new(Slow));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (ok, took) = runtime.block_on(async {
            let started = tokio::time::Instant::now();
            let envelope = run(&host, RunRequest::new("all", json!({})), &mut NullSink).await;
            (envelope.ok(), started.elapsed().as_millis())
        });
        assert!(ok && (least..=most).contains(&took), "{pattern}: {took} ms");
    }
}

/// A service that fails one module once the two others wait for it, and never answers those. Reports each connection
/// that the client closes.
fn service() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (closed, reports) = mpsc::channel();
    let all_wait = Arc::new(Barrier::new(3));
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let (mut tcp, closed, all_wait) = (tcp.unwrap(), closed.clone(), Arc::clone(&all_wait));
            std::thread::spawn(move || {
                let (mut asked, mut piece) = (String::new(), [0; 4_096]);
                let name = loop {
                    let read = tcp.read(&mut piece).unwrap();
                    asked.push_str(&String::from_utf8_lossy(piece.get(..read).unwrap()));
                    let named = ["one", "two", "three"]
                        .into_iter()
                        .find(|name| asked.contains(&format!("I am {name}.")));
                    if let Some(name) = named {
                        break name;
                    }
                };
                all_wait.wait();
                if name == "three" {
                    let _ =
                        tcp.write_all(b"HTTP/1.1 401 X\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
                    return;
                }
                // Reads the rest of the request until the client disconnects.
                while tcp.read(&mut piece).is_ok_and(|read| read > 0) {}
                closed.send(name.to_owned()).unwrap();
            });
        }
    });
    (url, reports)
}

// S-26: the first failure of a required part cancels the others and closes their connections.
#[test]
fn s_26_the_first_failure_closes_the_connections_of_the_others() {
    let home = tempfile::tempdir().unwrap();
    let modules = home.path().join("cognitive/modules");
    fs::create_dir_all(&modules).unwrap();
    three(&modules, "parallel");
    for name in ["one", "two", "three"] {
        fs::write(modules.join(name).join("prompt.md"), format!("I am {name}.\n")).unwrap();
    }
    let (url, closed) = service();
    let (code, out, err) = cogn(
        home.path(),
        &[
            "run",
            "all",
            "--input",
            "{}",
            "--provider",
            "openai",
            "--base-url",
            &url,
            "--model",
            "m",
            "--trace",
        ],
    );
    let envelope: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &envelope["error"]["details"]["module"]), (1, &json!("three")), "{out}{err}");
    let mut left = [closed.recv().unwrap(), closed.recv().unwrap()];
    left.sort();
    assert_eq!(left, ["one", "two"]);
    assert_eq!(err.matches("cancelled").count(), 2, "{err}");
}

#[test]
fn bundled_compositions_pass_their_golden_tests_from_the_shell() {
    let home = tempfile::tempdir().unwrap();
    let (code, out, err) =
        cogn(home.path(), &["test", "code-review-pipeline", "multi-reviewer", "smart-processor"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("10 passed"), "{out}");
}

// COMP-013: the project's module first, then the user's, then the declared fallback; otherwise nothing runs.
#[test]
fn comp_013_parts_are_found_in_the_project_first_then_at_home_then_by_their_fallback() {
    let home = tempfile::tempdir().unwrap();
    let at = |place: &str, version: &str| {
        let folder = home.path().join(place);
        fs::create_dir_all(&folder).unwrap();
        write(&folder, "part", "[]");
        let path = folder.join("part/module.yaml");
        let manifest =
            fs::read_to_string(&path).unwrap().replace("version: 1.0.0", &format!("version: {version}"));
        fs::write(path, manifest).unwrap();
    };
    let needs = || {
        let (code, out, _) = plan(home.path(), &["./whole", "--json"]);
        let json: Value = serde_json::from_str(&out).unwrap_or_default();
        (code, json["modules"][0]["needs"][0]["version"].clone())
    };
    write(home.path(), "whole", "[{name: part, fallback: summarizer}]");
    at("cognitive/modules", "3.0.0");
    at(".cognitive/modules", "2.0.0");
    assert_eq!(needs(), (0, json!("3.0.0")));
    fs::remove_dir_all(home.path().join("cognitive/modules/part")).unwrap();
    assert_eq!(needs(), (0, json!("2.0.0")));
    fs::remove_dir_all(home.path().join(".cognitive/modules/part")).unwrap();
    assert_eq!(needs(), (0, Value::Null), "the fallback stands in");
    fs::remove_dir_all(home.path().join("whole")).unwrap();
    write(home.path(), "whole", "[{name: part}]");
    assert_eq!(needs().0, 1);
}
