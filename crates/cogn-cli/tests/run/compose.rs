//! Compositions from the shell: the parts of a module or the reason why it cannot run, repetition, and traces. Also
//! that parts run concurrently and end together, on a clock and connections under the control of the test.

use std::fs;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use cognitive_contract::ports::{
    CallSink, DecodeMode, ModelCall, ModelEnd, NullSink, PortFuture, Provider, ProviderError,
};
use cognitive_library::{Library, ModuleCache};
use cognitive_runtime::{Host, RunRequest, run};
use cognitive_testkit::{FakeModel, FakeReply, Home};
use serde_json::{Value, json};

use crate::home;

fn plan(home: &Home, args: &[&str]) -> (i32, String, String) {
    home.cogn(&[&["compose", "plan"], args].concat()).parts()
}

fn write(home: &Home, folder: &str, requires: &str) {
    let name = folder.rsplit('/').next().unwrap();
    let manifest = format!(
        "name: {name}\nversion: 1.0.0\ntier: decision\nresponsibility: Join.\ncomposition:\n  requires: {requires}\n"
    );
    let schema = json!({ "input": { "type": "object" }, "data": { "type": "object" } });
    home.module(folder, &manifest, "Join them.\n", &schema);
}

#[test]
fn a_plan_shows_versions_that_were_found_in_three_forms() {
    let home = home();
    write(
        &home,
        "./joined",
        "[{name: summarizer}, {name: text-classifier, version: ^99.0.0, optional: true}]",
    );
    let (code, out, _) = plan(&home, &["./joined", "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["module"], &json["pattern"]), (0, &"joined".into(), &"sequential".into()));
    let needs = &json["modules"][0]["needs"];
    assert!(needs[0]["version"].is_string() && needs[1]["version"].is_null(), "{needs}");
    let (code, out, _) = plan(&home, &["./joined", "--mermaid"]);
    assert!(code == 0 && out.starts_with("graph TD\n") && out.contains("n0 --> n1"), "{out}");
    let (code, out, _) = plan(&home, &["./joined"]);
    assert!(code == 0 && out.contains("summarizer") && out.contains("missing"), "{out}");
}

#[test]
fn comp_070_011_a_plan_that_cannot_run_says_so() {
    let home = home();
    write(&home, "./lost", "[{name: no-such-module}]");
    write(&home, "./ring", "[{name: ring}]");
    for (module, told) in [("./lost", "`no-such-module`"), ("./ring", "ring → ring")] {
        let (exit, out, err) = plan(&home, &[module]);
        assert!(exit != 0 && out.is_empty() && err.contains(told), "{module}: {out}{err}");
    }
}

/// Runs any command.
fn cogn(home: &Home, args: &[&str]) -> (i32, String, String) {
    home.run(args, &[("OPENAI_API_KEY", "sk-test")], "").parts()
}

// COMP-005, COMP-042: a syntax error is found while the arguments are parsed, and shown at its position.
#[test]
fn comp_005_a_repetition_from_the_shell_is_bounded_told_and_traced() {
    let home = home();
    let reply = json!({ "ok": true, "meta": { "confidence": 0.6, "risk": "low", "explain": "e" },
                        "data": { "rationale": "r", "summary": "Short." } });
    home.write("reply.json", reply.to_string());
    let run = |more: &[&str]| {
        let usual = ["run", "summarizer", "--set", "text=A long text.", "--reply", "reply.json"];
        cogn(&home, &[&usual, more].concat())
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
fn three(pattern: &str) -> Home {
    let home = home();
    for name in ["one", "two", "three"] {
        write(&home, name, "[]");
        home.write(&format!("cognitive/modules/{name}/prompt.md"), format!("I am {name}.\n"));
    }
    write(&home, "all", "[{name: one}, {name: two}, {name: three}]");
    let flow = "  dataflow: [{from: [one.output, two.output, three.output], to: output, aggregate: array}]\n";
    let file = "cognitive/modules/all/module.yaml";
    home.write(file, home.read(file) + &format!("  pattern: {pattern}\n{flow}"));
    home
}

// COMP-003: three parts of 300 ms each take as long as one of them, on the simulated clock.
#[test]
fn comp_003_three_parts_of_300_ms_are_done_in_less_than_500() {
    for (pattern, least, most) in [("parallel", 300, 499), ("sequential", 900, 1_000)] {
        let home = three(pattern);
        let library = Library::new(home.folder(), None, &[]);
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

/// A service that fails one module once the two others wait for it, and never answers those.
fn service() -> FakeModel {
    let all_wait = Barrier::new(3);
    FakeModel::start(move |_, request| {
        all_wait.wait();
        if request.text.contains("I am three.") { FakeReply::Status(401) } else { FakeReply::Silence }
    })
}

// S-26: the first failure of a required part cancels the others and closes their connections.
#[test]
fn s_26_the_first_failure_closes_the_connections_of_the_others() {
    let (home, service) = (three("parallel"), service());
    let url = service.url();
    let model = ["--provider", "openai", "--base-url", &url, "--model", "m", "--trace"];
    let (code, out, err) = cogn(&home, &[&["run", "all", "--input", "{}"], &model[..]].concat());
    let envelope: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &envelope["error"]["details"]["module"]), (1, &json!("three")), "{out}{err}");
    let left = service.wait_for_left(2);
    let has_left = |name: &str| left.iter().any(|request| request.text.contains(&format!("I am {name}.")));
    assert!(left.len() == 2 && has_left("one") && has_left("two"), "{left:?}");
    assert_eq!(err.matches("cancelled").count(), 2, "{err}");
}

#[test]
fn bundled_compositions_pass_their_golden_tests_from_the_shell() {
    let home = home();
    let (code, out, err) =
        cogn(&home, &["test", "code-review-pipeline", "multi-reviewer", "smart-processor"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("10 passed"), "{out}");
}

// COMP-013: the project's module first, then the user's, then the declared fallback; otherwise nothing runs.
#[test]
fn comp_013_parts_are_found_in_the_project_first_then_at_home_then_by_their_fallback() {
    let home = home();
    let at = |place: &str, version: &str| {
        write(&home, &format!("{place}/part"), "[]");
        let file = format!("{place}/part/module.yaml");
        home.write(&file, home.read(&file).replace("version: 1.0.0", &format!("version: {version}")));
    };
    let needs = || {
        let (code, out, _) = plan(&home, &["./whole", "--json"]);
        let json: Value = serde_json::from_str(&out).unwrap_or_default();
        (code, json["modules"][0]["needs"][0]["version"].clone())
    };
    write(&home, "./whole", "[{name: part, fallback: summarizer}]");
    at("cognitive/modules", "3.0.0");
    at(".cognitive/modules", "2.0.0");
    assert_eq!(needs(), (0, json!("3.0.0")));
    fs::remove_dir_all(home.path("cognitive/modules/part")).unwrap();
    assert_eq!(needs(), (0, json!("2.0.0")));
    fs::remove_dir_all(home.path(".cognitive/modules/part")).unwrap();
    assert_eq!(needs(), (0, Value::Null), "the fallback stands in");
    fs::remove_dir_all(home.path("whole")).unwrap();
    write(&home, "./whole", "[{name: part}]");
    assert_eq!(needs().0, 1);
}
