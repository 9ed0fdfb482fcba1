//! The page of `cogn serve` in a real browser: every page is driven like a user would, with mouse, keyboard and
//! accessibility checks. A test is skipped if its tools are not installed. The scenarios are the `.mjs` files of this
//! folder; their results are checked here.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod bundle;
mod modules;
mod stage;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use modules::CHANGED_PROMPT;
use stage::Stage;

#[test]
fn modules_run_from_the_page() {
    let Some(stage) = Stage::open() else { return };
    stage.drive("run.mjs", json!({}));
    // Both cancelled runs ended their model call.
    stage.model.until_left(2);
}

#[test]
fn the_embedded_model_answers_in_the_page() {
    let Some(weights) = cognitive_testkit::weights() else { return };
    let Some(stage) = Stage::embedded(&weights) else { return };
    let seen = stage.drive("embedded.mjs", json!({}));
    assert!(seen["model"].as_str().is_some_and(|model| model.starts_with("embedded/")), "{seen}");
}

#[test]
fn authors_compare_keep_edit_and_replay() {
    let Some(stage) = Stage::open() else { return };
    stage.drive("desk.mjs", json!({}));
    let folder = stage.home.path().join("cognitive/modules/words");
    assert_eq!(fs::read_to_string(folder.join("prompt.md")).unwrap(), "Find all the words.");
    // The saved case is a golden test that passes without a model.
    assert!(folder.join("tests/two-words.input.json").is_file());
    let reply = fs::read_to_string(folder.join("tests/two-words.reply.txt")).unwrap();
    let said = modules::known().into_iter().find(|known| known.prompt == CHANGED_PROMPT).unwrap().reply;
    assert_eq!(reply, said, "letter by letter");
    let tested = stage.cogn(&["test", "words"]);
    assert!(tested.contains("1 passed, 0 failed"), "{tested}");
    // The audit has drafts under a separate version, and also the changes.
    let trail = stage.cogn(&["audit", "export", "--jsonl"]);
    let records: Vec<Value> = trail.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let drafted =
        |record: &&Value| record["version"].as_str().is_some_and(|version| version.contains("+draft."));
    assert!(records.iter().filter(drafted).count() >= 4, "{trail}");
    // The runs of drafts are marked, and those of callers are not.
    let is_tried = |record: &&Value| record["receipt"]["experiment"] == true;
    let drafts = records.iter().filter(drafted).filter(|record| record["event"] == "run");
    assert!(drafts.clone().count() >= 2 && drafts.clone().all(|record| is_tried(&record)), "{trail}");
    let runs = records.iter().filter(|record| record["event"] == "run" && record["module"] == "trip");
    assert!(runs.clone().count() >= 60 && !runs.clone().any(|record| is_tried(&record)), "{trail}");
    let edits = records.iter().filter(|record| record["event"] == "edit").count();
    assert_eq!(edits, 5, "a test was kept, a module created, a file saved, and one was broken and mended");
    let older = records.iter().filter(|record| record["event"] == "run" && record["version"] == "0.9.0");
    assert_eq!(older.count(), 2, "compared once and replayed once");
    assert!(!trail.contains(CHANGED_PROMPT), "a draft is no payload");
}

#[test]
fn ten_answers_are_reviewed_by_keyboard() {
    let Some(stage) = Stage::open() else { return };
    stage.drive("review.mjs", json!({}));
    let exported = stage.cogn(&["review", "export"]);
    assert_eq!(exported.lines().count(), 10, "{exported}");
    assert!(exported.contains("the wrong word") && exported.contains("right 2"), "{exported}");
}

#[test]
fn nothing_but_the_login_is_read_without_a_key() {
    let keys =
        json!({ "runner": "runner-key-0123456789abcdef", "reviewer": "reviewer-key-0123456789abcdef" });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.txt");
    let line = |name: &str, roles: &str| format!("{name} {} {roles}\n", keys[name].as_str().unwrap());
    fs::write(&file, line("runner", "run") + &line("reviewer", "run,review")).unwrap();
    // A key file that others can read would cause a warning before any other output.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let Some(stage) = Stage::start(&["--keys", file.to_str().unwrap()]) else { return };
    let assets: Vec<String> =
        bundle::committed().into_keys().filter(|path| path.starts_with("assets/")).collect();
    assert!(!assets.is_empty());
    let assets: Vec<String> = assets.iter().map(|path| format!("/{path}")).collect();
    stage.drive("access.mjs", json!({ "keys": keys, "assets": assets }));
}

#[test]
fn what_others_wrote_is_text_and_nothing_else() {
    let Some(stage) = Stage::open() else { return };
    stage.drive("hostile.mjs", json!({}));
}

#[test]
fn every_page_is_for_everybody() {
    let Some(stage) = Stage::open() else { return };
    // `COGN_STUDIO_PICTURES=FOLDER` saves a screenshot of each page for review.
    let pictures = std::env::var("COGN_STUDIO_PICTURES").ok();
    stage.drive("looks.mjs", json!({ "pictures": pictures }));
}
