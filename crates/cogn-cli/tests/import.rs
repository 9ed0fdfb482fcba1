//! `cogn import` as users run it: every imported prompt passes `cogn validate` and `cogn test`, bundled modules have
//! the same digest after a round trip through their skills, and a refused import leaves no files.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use cognitive_library::{Folder, bundled, files_of, load};
use serde_json::Value;

fn cogn(folder: &Path, args: &[&str]) -> Output {
    let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
    command.args(args).current_dir(folder).env_clear().env("HOME", folder).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn input(path: &str) -> String {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cognitive-import/tests/inputs");
    inputs.join(path).canonicalize().unwrap().display().to_string()
}

/// Returns all files below a folder, with their contents.
fn everything(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn one_file_of_each_form_becomes_a_module_that_passes() {
    let folder = tempfile::tempdir().unwrap();
    for (form, path, name) in [
        ("skill", "skill/with-references", "with-references"),
        ("prompty", "prompty/v1-chat.prompty", "answer-a-customer"),
        ("dotprompt", "dotprompt/picoschema.prompt", "picoschema"),
        ("baml", "baml/resume.baml", "extract-resume"),
        ("tensorzero", "tensorzero/two-schemas", "grade"),
    ] {
        let named = cogn(folder.path(), &["import", form, &input(path), "--json"]);
        assert!(named.status.success(), "{}", errors(&named));
        let said = json(&named);
        assert_eq!((&said["ok"], &said["name"], &said["form"]), (&true.into(), &name.into(), &form.into()));
        assert_eq!(said["path"], format!("cognitive/modules/{name}"));
        assert!(said["losses"].as_array().unwrap().iter().all(|loss| {
            ["kind", "what", "where", "why"]
                .iter()
                .all(|key| loss[key].as_str().is_some_and(|text| !text.is_empty()))
        }));
        for command in said["next"].as_array().unwrap() {
            let words: Vec<&str> = command.as_str().unwrap().split(' ').skip(1).collect();
            let next = cogn(folder.path(), &words);
            assert!(
                next.status.success(),
                "{command}: {}{}",
                String::from_utf8_lossy(&next.stdout),
                errors(&next)
            );
        }
        // Without the form argument, into another folder.
        let guessed = cogn(folder.path(), &["import", &input(path), "-o", "elsewhere"]);
        assert!(guessed.status.success(), "{}", errors(&guessed));
        assert!(
            errors(&guessed).starts_with(&format!("imported elsewhere/{name} ({form})\n")),
            "{}",
            errors(&guessed)
        );
        let here = everything(&folder.path().join("cognitive/modules").join(name));
        let there = everything(&folder.path().join("elsewhere").join(name));
        assert_eq!(here.into_values().collect::<Vec<_>>(), there.into_values().collect::<Vec<_>>());
    }
}

#[test]
fn every_bundled_module_comes_back_from_its_skill_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    for name in bundled::names() {
        assert!(cogn(folder.path(), &["export", "skill", name]).status.success());
        let back =
            cogn(folder.path(), &["import", "skill", &format!("skills/{name}"), "-o", "back", "--json"]);
        assert!(back.status.success(), "{}", errors(&back));
        assert_eq!(
            (&json(&back)["restored"], &json(&back)["losses"]),
            (&true.into(), &Value::Array(Vec::new()))
        );
        let original = bundled::find(name).unwrap();
        let copy = Folder::Disk(folder.path().join("back").join(name));
        assert_eq!(files_of(&copy).unwrap(), files_of(&original).unwrap(), "{name}");
        assert_eq!(load(&copy).unwrap().digest, load(&original).unwrap().digest, "{name}");
    }
    assert_eq!(fs::read_dir(folder.path().join("back")).unwrap().count(), bundled::names().count());
    // A module that changed after the export does not match its digest.
    let prompt = folder.path().join("skills/text-classifier/assets/text-classifier/prompt.md");
    fs::write(&prompt, "Do something else.").unwrap();
    let changed = cogn(folder.path(), &["import", "skills/text-classifier", "-o", "again"]);
    assert_eq!(changed.status.code(), Some(1));
    assert!(errors(&changed).contains("was changed after the export"), "{}", errors(&changed));
    assert!(!folder.path().join("again").exists());
}

#[test]
fn a_dry_run_shows_everything_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = input("baml/resume.baml");
    let shown = cogn(folder.path(), &["import", &path, "--dry-run"]);
    let text = String::from_utf8(shown.stdout.clone()).unwrap();
    for part in [
        "extract-resume/module.yaml",
        "extract-resume/prompt.md",
        "tests/one-page.reply.txt",
        "Extract from this content",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(
        errors(&shown).contains("lost     the client `openai/gpt-4o` (resume.baml): "),
        "{}",
        errors(&shown)
    );
    let said = json(&cogn(folder.path(), &["import", &path, "-n", "--json"]));
    assert_eq!(said["dry_run"], true);
    assert!(said["contents"]["prompt.md"].as_str().unwrap().contains("$ENVELOPE"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let long = "a".repeat(4_000);
    let cases: [(&[&str], &str); 9] = [
        (&["skill", &input("skill/with-scripts")], "a procedure for an agent"),
        (&["prompty", &input("prompty/v2-tools.prompty")], "call tools in a loop"),
        (&["dotprompt", &input("dotprompt/history.prompt")], "continues a conversation"),
        (&["baml", &input("baml/dynamic.baml")], "is dynamic"),
        (&["tensorzero", &input("tensorzero/several-functions")], "has several functions"),
        (&[&input("prompty/only-name.prompty"), "--name", "../x"], "found: `../x`"),
        (&[&input("prompty/only-name.prompty"), "--name", "con"], "for a device: `con`"),
        (&[&input("prompty/only-name.prompty"), "--name", &long], "the name is too long"),
        (&["nothing.prompt"], "cannot read `nothing.prompt`"),
    ];
    for (args, reason) in cases {
        let refused = cogn(folder.path(), &[&["import"], args].concat());
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        assert!(
            errors(&refused).starts_with("error: ") && errors(&refused).contains(reason),
            "{}",
            errors(&refused)
        );
        let said = cogn(folder.path(), &[&["import", "--json"], args].concat());
        assert_eq!((said.status.code(), &json(&said)["ok"]), (Some(1), &false.into()));
        assert!(json(&said)["message"].as_str().unwrap().contains(reason) && json(&said)["hint"].is_string());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{args:?}");
    }
}

#[test]
fn what_is_there_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = input("prompty/only-name.prompty");
    assert!(cogn(folder.path(), &["import", &path]).status.success());
    fs::write(folder.path().join("cognitive/modules/hello/prompt.md"), "mine").unwrap();
    let before = everything(folder.path());
    let again = cogn(folder.path(), &["import", &path]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        errors(&again).contains("something exists already at: `cognitive/modules/hello`"),
        "{}",
        errors(&again)
    );
    assert_eq!(everything(folder.path()), before);
}
