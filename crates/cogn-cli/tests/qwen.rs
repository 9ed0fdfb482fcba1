//! A larger model in the embedded engine, through the program: a bundled module with the path of the model file, and a
//! module whose answer must be generated. Skipped if the file is missing.

#![cfg(feature = "local")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is the report")]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Returns the envelope of a run with the model in this file.
fn run(folder: &Path, model: &Path, words: &[&str]) -> Value {
    let output = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
        .current_dir(folder)
        .env_clear()
        .env("XDG_CACHE_HOME", folder)
        .env("XDG_CONFIG_HOME", folder)
        .env("HOME", folder)
        .env("COGN_OFFLINE", "1")
        .args(words)
        .args(["--provider", "embedded", "--model"])
        .arg(model)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a_bundled_module_answers_with_a_larger_model() {
    let Some(model) = cognitive_testkit::qwen() else { return };
    let folder = TempDir::new().unwrap();
    let text = "text=The delivery came two weeks late and the box was broken.";
    let answer = run(folder.path(), &model, &["run", "text-classifier", "--set", text]);
    assert_eq!((&answer["ok"], &answer["data"]["sentiment"]), (&json!(true), &json!("negative")), "{answer}");
    assert_eq!(answer["meta"]["model"], "embedded/0.5b");
}

// D-05: no part of this answer can be selected or copied; every word is generated under the contract.
#[test]
fn an_answer_that_has_to_be_written_keeps_the_contract() {
    let Some(model) = cognitive_testkit::qwen() else { return };
    let folder = TempDir::new().unwrap();
    let module = folder.path().join("ticket-triage");
    fs::create_dir(&module).unwrap();
    let write = |name: &str, text: &str| fs::write(module.join(name), text).unwrap();
    write("module.yaml", "name: ticket-triage\nversion: 1.0.0\ntier: exploration\n");
    write(
        "prompt.md",
        "You sort support tickets. Choose the `team`: `billing` for money, `technical` for faults.\n",
    );
    let schema = json!({
        "input": { "type": "object", "required": ["ticket"], "properties": { "ticket": { "type": "string" } } },
        "data": {
            "type": "object",
            "required": ["rationale", "team", "urgent"],
            "additionalProperties": false,
            "properties": {
                "rationale": { "type": "string", "maxLength": 200 },
                "team": { "enum": ["billing", "technical"] },
                "urgent": { "type": "boolean" },
            },
        },
    });
    write("schema.json", &schema.to_string());
    let words = ["run", "./ticket-triage", "--set", "ticket=I was charged twice this month.", "--receipt"];
    let answer = run(folder.path(), &model, &words);
    assert_eq!((&answer["ok"], &answer["data"]["team"]), (&json!(true), &json!("billing")), "{answer}");
    assert!(answer["data"]["rationale"].as_str().is_some_and(|text| text.contains(' ')), "{answer}");
    assert!(answer["data"]["urgent"].is_boolean(), "{answer}");
}
