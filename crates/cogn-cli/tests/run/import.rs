//! `cogn import` as users run it: every imported prompt passes `cogn validate` and `cogn test`, bundled modules have
//! the same digest after a round trip through their skills, and a refused import leaves no files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cognitive_library::{Folder, bundled_modules, files_of, load};
use serde_json::Value;

use crate::home;

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
    let home = home();
    for (form, path, name) in [
        ("skill", "skill/with-references", "with-references"),
        ("prompty", "prompty/v1-chat.prompty", "answer-a-customer"),
        ("dotprompt", "dotprompt/picoschema.prompt", "picoschema"),
        ("baml", "baml/resume.baml", "extract-resume"),
        ("tensorzero", "tensorzero/two-schemas", "grade"),
    ] {
        let named = home.cogn(&["import", form, &input(path), "--json"]);
        assert!(named.code == Some(0), "{}", named.err);
        let said = named.json;
        assert_eq!((&said["ok"], &said["name"], &said["form"]), (&true.into(), &name.into(), &form.into()));
        assert_eq!(said["path"], format!("cognitive/modules/{name}"));
        assert!(said["losses"].as_array().unwrap().iter().all(|loss| {
            ["kind", "what", "where", "why"]
                .iter()
                .all(|key| loss[key].as_str().is_some_and(|text| !text.is_empty()))
        }));
        for command in said["next"].as_array().unwrap() {
            let words: Vec<&str> = command.as_str().unwrap().split(' ').skip(1).collect();
            let next = home.cogn(&words);
            assert!(next.code == Some(0), "{command}: {}{}", next.out, next.err);
        }
        // Without the form argument, into another folder.
        let guessed = home.cogn(&["import", &input(path), "-o", "elsewhere"]);
        assert!(guessed.code == Some(0), "{}", guessed.err);
        assert!(guessed.err.starts_with(&format!("imported elsewhere/{name} ({form})\n")), "{}", guessed.err);
        let here = everything(&home.path("cognitive/modules").join(name));
        let there = everything(&home.path("elsewhere").join(name));
        assert_eq!(here.into_values().collect::<Vec<_>>(), there.into_values().collect::<Vec<_>>());
    }
}

#[test]
fn every_bundled_module_comes_back_from_its_skill_byte_for_byte() {
    let home = home();
    for name in bundled_modules::names() {
        assert!(home.cogn(&["export", "skill", name]).code == Some(0));
        let back = home.cogn(&["import", "skill", &format!("skills/{name}"), "-o", "back", "--json"]);
        assert!(back.code == Some(0), "{}", back.err);
        assert_eq!((&back.json["restored"], &back.json["losses"]), (&true.into(), &Value::Array(Vec::new())));
        let original = bundled_modules::find(name).unwrap();
        let copy = Folder::Disk(home.path("back").join(name));
        assert_eq!(files_of(&copy).unwrap(), files_of(&original).unwrap(), "{name}");
        assert_eq!(load(&copy).unwrap().digest, load(&original).unwrap().digest, "{name}");
    }
    assert_eq!(fs::read_dir(home.path("back")).unwrap().count(), bundled_modules::names().count());
    // A module that changed after the export does not match its digest.
    let prompt = home.path("skills/text-classifier/assets/text-classifier/prompt.md");
    fs::write(&prompt, "Do something else.").unwrap();
    let changed = home.cogn(&["import", "skills/text-classifier", "-o", "again"]).expect_exit(1);
    assert!(changed.err.contains("was changed after the export"), "{}", changed.err);
    assert!(!home.path("again").exists());
}

#[test]
fn a_dry_run_shows_everything_and_writes_nothing() {
    let home = home();
    let path = input("baml/resume.baml");
    let shown = home.cogn(&["import", &path, "--dry-run"]);
    let text = &shown.out;
    for part in [
        "extract-resume/module.yaml",
        "extract-resume/prompt.md",
        "tests/one-page.reply.txt",
        "Extract from this content",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(shown.err.contains("lost     the client `openai/gpt-4o` (resume.baml): "), "{}", shown.err);
    let said = home.cogn(&["import", &path, "-n", "--json"]).json;
    assert_eq!(said["dry_run"], true);
    assert!(said["contents"]["prompt.md"].as_str().unwrap().contains("$ENVELOPE"));
    assert_eq!(fs::read_dir(home.folder()).unwrap().count(), 0);
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let home = home();
    let long = "a".repeat(4_000);
    let cases: [(&[&str], &str); 9] = [
        (&["skill", &input("skill/with-scripts")], "a procedure for an agent"),
        (&["prompty", &input("prompty/v2-tools.prompty")], "call tools in a loop"),
        (&["dotprompt", &input("dotprompt/history.prompt")], "continues a conversation"),
        (&["baml", &input("baml/dynamic.baml")], "is dynamic"),
        (&["tensorzero", &input("tensorzero/several-functions")], "has several functions"),
        (&[&input("prompty/only-name.prompty"), "--name", "../x"], "found: `../x`"),
        (&[&input("prompty/only-name.prompty"), "--name", "con"], "for a device on some systems: `con`"),
        (&[&input("prompty/only-name.prompty"), "--name", &long], "the name is too long"),
        (&["nothing.prompt"], "cannot read `nothing.prompt`"),
    ];
    for (args, reason) in cases {
        let refused = home.cogn(&[&["import"], args].concat()).expect_exit(1);
        assert!(refused.err.starts_with("error: ") && refused.err.contains(reason), "{}", refused.err);
        let said = home.cogn(&[&["import", "--json"], args].concat());
        assert_eq!((said.code, &said.json["ok"]), (Some(1), &false.into()));
        assert!(said.json["message"].as_str().unwrap().contains(reason) && said.json["hint"].is_string());
        assert_eq!(fs::read_dir(home.folder()).unwrap().count(), 0, "{args:?}");
    }
}

#[test]
fn what_is_there_is_never_replaced() {
    let home = home();
    let path = input("prompty/only-name.prompty");
    assert!(home.cogn(&["import", &path]).code == Some(0));
    fs::write(home.path("cognitive/modules/hello/prompt.md"), "mine").unwrap();
    let before = everything(home.folder());
    let again = home.cogn(&["import", &path]).expect_exit(1);
    assert!(again.err.contains("the path already exists: `cognitive/modules/hello`"), "{}", again.err);
    assert_eq!(everything(home.folder()), before);
}
