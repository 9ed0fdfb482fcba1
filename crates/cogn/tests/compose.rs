//! `cogn compose plan` as a process: what a module is made of, or why it could not run. No model is asked.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn plan(home: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_cogn"))
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
