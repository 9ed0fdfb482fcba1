//! `cogn train` as a process: the learning effect of labelled cases on a small model, and the refusals.

#![cfg(feature = "local")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

/// An arbitrary rule that the model cannot know in advance: animals go left, vehicles right.
const LEFT: [&str; 30] = [
    "horse", "cow", "sheep", "goat", "dog", "cat", "lion", "tiger", "bear", "wolf", "fox", "rabbit", "mouse",
    "eagle", "swan", "duck", "goose", "hen", "pig", "donkey", "camel", "zebra", "elephant", "monkey",
    "snake", "frog", "whale", "shark", "salmon", "bee",
];
const RIGHT: [&str; 30] = [
    "car",
    "truck",
    "bus",
    "tram",
    "train",
    "bicycle",
    "motorcycle",
    "scooter",
    "van",
    "taxi",
    "ambulance",
    "tractor",
    "plane",
    "helicopter",
    "ship",
    "boat",
    "ferry",
    "canoe",
    "yacht",
    "submarine",
    "rocket",
    "wagon",
    "lorry",
    "jeep",
    "limousine",
    "tanker",
    "glider",
    "sled",
    "cable car",
    "fire engine",
];
/// Items that were not among the cases.
const UNSEEN: [(&str, &str); 8] = [
    ("deer", "left"),
    ("parrot", "left"),
    ("squirrel", "left"),
    ("trout", "left"),
    ("minibus", "right"),
    ("locomotive", "right"),
    ("speedboat", "right"),
    ("airliner", "right"),
];

fn text(thing: &str, number: usize) -> String {
    match number % 3 {
        0 => format!("They brought a {thing} this morning."),
        1 => format!("Where shall the {thing} go?"),
        _ => format!("A {thing} is standing in the yard."),
    }
}

fn module(folder: &Path) {
    let place = folder.join("rooms");
    fs::create_dir(&place).unwrap();
    let write = |name: &str, text: &str| fs::write(place.join(name), text).unwrap();
    write(
        "module.yaml",
        "name: rooms\nversion: 1.0.0\ntier: decision\nresponsibility: Say where a thing goes.\n",
    );
    write("prompt.md", "Say into which `room` the thing in the text goes.\n");
    let schema = json!({
        "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
        "data": {
            "type": "object", "required": ["rationale", "room"], "additionalProperties": false,
            "properties": {
                "rationale": { "type": "string", "maxLength": 80, "x-say": "It goes to the {room}." },
                "room": {
                    "enum": ["left", "right"],
                    "x-decide": { "about": "text", "by": [{ "ask": "What is this about?", "say": "This is about a" }] },
                },
            },
        },
    });
    write("schema.json", &schema.to_string());
    let case = |(number, (thing, room)): (usize, (&str, &str))| {
        json!({ "input": { "text": text(thing, number) }, "expect": { "room": room } }).to_string()
    };
    let left = LEFT.iter().map(|thing| (*thing, "left"));
    let all = left.zip(RIGHT.iter().map(|thing| (*thing, "right"))).flat_map(|(one, other)| [one, other]);
    let cases: Vec<String> = all.enumerate().map(case).collect();
    fs::write(folder.join("cases.jsonl"), cases.join("\n")).unwrap();
    let unseen = UNSEEN.iter().enumerate().map(|(number, (thing, room))| case((number, (*thing, *room))));
    fs::write(folder.join("unseen.jsonl"), unseen.collect::<Vec<_>>().join("\n")).unwrap();
}

fn cogn(folder: &Path, words: &[&str], weights: Option<&Path>) -> Output {
    let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
    command.current_dir(folder).env_clear().env("HOME", folder).env("COGN_OFFLINE", "1").args(words);
    command.envs(weights.map(|weights| ("COGN_MODEL", weights)));
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn right(folder: &Path, weights: &Path) -> u64 {
    let words = ["eval", "./rooms", "--cases", "unseen.jsonl", "--provider", "embedded", "--json"];
    let output = cogn(folder, &words, Some(weights));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["valid"]["right"], 8, "{report}");
    report["accuracy"]["right"].as_u64().unwrap()
}

#[test]
fn a_small_model_learns_what_it_could_not_know() {
    let Some(weights) = cognitive_testkit::weights() else { return };
    let folder = TempDir::new().unwrap();
    module(folder.path());
    let before = right(folder.path(), &weights);
    let train = ["train", "./rooms", "--cases", "cases.jsonl", "--provider", "embedded", "--json"];
    let output = cogn(folder.path(), &train, Some(&weights));
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["learned"]["room"]["cases"], 60, "{report}");
    assert!(report["learned"]["room"]["right_unseen"].as_u64() > Some(50), "{report}");
    let after = right(folder.path(), &weights);
    assert!(after >= 7 && after > before + 1, "it cannot know where things go: {before}, then {after}");
    // Training again gives the same result, and the module stays valid.
    let file = folder.path().join(report["file"].as_str().unwrap());
    let first = fs::read(&file).unwrap();
    assert!(cogn(folder.path(), &train, Some(&weights)).status.success());
    assert_eq!(fs::read(&file).unwrap(), first);
    assert!(cogn(folder.path(), &["validate", "./rooms"], None).status.success());
    // Too few cases leave the earlier result unchanged.
    let few = cogn(folder.path(), &[&train[..], &["--limit", "30"]].concat(), Some(&weights));
    assert_eq!(few.status.code(), Some(1), "{}", said(&few));
    assert!(
        said(&few).contains("nothing could be learned: `room`: 30 cases are fewer than 40"),
        "{}",
        said(&few)
    );
    assert_eq!(fs::read(&file).unwrap(), first);
    // The result is not lost if its file cannot be written.
    let nowhere = [&train[..], &["--output", "cases.jsonl/below.json"]].concat();
    let output = cogn(folder.path(), &nowhere, Some(&weights));
    let kept = said(&output);
    assert_eq!(output.status.code(), Some(1), "{kept}");
    let kept = kept.split_once("what was learned is saved in `").unwrap().1;
    let kept = Path::new(kept.split_once('`').unwrap().0);
    assert_eq!(fs::read(kept).unwrap(), first);
    fs::remove_file(kept).unwrap();
}

#[test]
fn what_cannot_be_trained_is_refused_before_anything_is_read() {
    let folder = TempDir::new().unwrap();
    module(folder.path());
    let refused = |words: &[&str], code: i32, why: &str| {
        let output = cogn(folder.path(), words, None);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(why), "{words:?}: {}", said(&output));
    };
    refused(&["train", "./rooms", "--cases", "nowhere.jsonl"], 2, "nowhere.jsonl");
    refused(&["train", "./rooms", "--cases", "cases.jsonl", "--half", "x"], 2, "belongs to the half `x`");
    refused(&["train", "text-classifier", "--cases", "cases.jsonl"], 1, "Name a file with `--output`");
    refused(
        &["train", "./rooms", "--cases", "cases.jsonl", "--provider", "ollama", "--model", "m"],
        1,
        "only a model that runs in this process can be trained",
    );
    fs::write(folder.path().join("odd.jsonl"), r#"{"input": {"texts": 1}, "expect": {"room": "left"}}"#)
        .unwrap();
    refused(&["train", "./rooms", "--cases", "odd.jsonl"], 1, "the input of case `1` cannot be used");
    assert!(!folder.path().join("rooms/trained").exists());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path(), folder.path().join("rooms/trained")).unwrap();
        refused(&["train", "./rooms", "--cases", "cases.jsonl"], 1, "is a link");
    }
}
