//! A larger model in the embedded engine, through the program: a bundled module with the path of the model file, and a
//! module whose answer must be generated. Skipped if the file is missing.

use std::path::Path;

use cognitive_testkit::Home;
use serde_json::{Value, json};

use crate::home;

/// Returns the envelope of a run with the model in this file.
fn run(home: &Home, model: &Path, words: &[&str]) -> Value {
    let folder = home.folder().to_str().unwrap();
    let words = [words, &["--provider", "embedded", "--model", model.to_str().unwrap()]].concat();
    home.run(&words, &[("XDG_CACHE_HOME", folder), ("XDG_CONFIG_HOME", folder)], "").envelope()
}

#[test]
fn a_bundled_module_answers_with_a_larger_model() {
    let Some(model) = cognitive_testkit::qwen() else { return };
    let home = home();
    let text = "text=The delivery came two weeks late and the box was broken.";
    let answer = run(&home, &model, &["run", "text-classifier", "--set", text]);
    assert_eq!((&answer["ok"], &answer["data"]["sentiment"]), (&json!(true), &json!("negative")), "{answer}");
    assert_eq!(answer["meta"]["model"], "embedded/0.5b");
}

// D-05: no part of this answer can be selected or copied; every word is generated under the contract.
#[test]
fn an_answer_that_has_to_be_written_keeps_the_contract() {
    let Some(model) = cognitive_testkit::qwen() else { return };
    let home = home();
    let manifest = "name: ticket-triage\nversion: 1.0.0\ntier: exploration\n";
    let prompt =
        "You sort support tickets. Choose the `team`: `billing` for money, `technical` for faults.\n";
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
    home.module("./ticket-triage", manifest, prompt, &schema);
    let words = ["run", "./ticket-triage", "--set", "ticket=I was charged twice this month.", "--receipt"];
    let answer = run(&home, &model, &words);
    assert_eq!((&answer["ok"], &answer["data"]["team"]), (&json!(true), &json!("billing")), "{answer}");
    assert!(answer["data"]["rationale"].as_str().is_some_and(|text| text.contains(' ')), "{answer}");
    assert!(answer["data"]["urgent"].is_boolean(), "{answer}");
}
