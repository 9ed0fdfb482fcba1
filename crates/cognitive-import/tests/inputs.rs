//! Test files of every form with their expected results: a module with its prompt, contract and losses, or a refusal
//! with its reason. Every imported module must pass `cogn validate` and `cogn test`.
//!
//! The inputs are `tests/inputs/FORM/…`, written for these tests; the expected results are
//! `tests/expected/FORM/NAME.json`. `UPDATE_IMPORTS=1` regenerates the expected results; review the diff before you
//! commit it.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::fs;
use std::path::{Path, PathBuf};

use cognitive_import::{ImportForm, ImportOptions, ImportedModule, LossKind, import};
use cognitive_library::{Folder, Library, Mode, ValidationSurroundings, validate_with};
use cognitive_testing::GoldenExpectations;
use cognitive_testing::golden::{self, GoldenOptions, TestedFolder};
use serde_json::{Value, json};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

struct ImportCase {
    name: String,
    path: PathBuf,
    options: ImportOptions,
}

/// Inputs that are imported again with an option.
fn with_options() -> Vec<(ImportForm, &'static str, &'static str, ImportOptions)> {
    let function = |name: &str| ImportOptions { function: Some(name.to_owned()), ..ImportOptions::default() };
    let named = |name: &str| ImportOptions { name: Some(name.to_owned()), ..ImportOptions::default() };
    let bare = ImportOptions { without_scripts: true, ..ImportOptions::default() };
    vec![
        (ImportForm::Baml, "two-functions.baml", "second", function("Second")),
        (ImportForm::Baml, "two-functions.baml", "third", function("Third")),
        (ImportForm::TensorZero, "several-functions", "b", function("b")),
        (ImportForm::Prompty, "path-name.prompty", "renamed", named("renamed")),
        (ImportForm::Prompty, "only-name.prompty", "path", named("../x")),
        (ImportForm::Prompty, "only-name.prompty", "function", function("f")),
        (ImportForm::Skill, "with-scripts", "without", bare.clone()),
        (ImportForm::Skill, "runs-commands", "without", bare),
    ]
}

fn cases(form: ImportForm) -> Vec<ImportCase> {
    let folder = tests().join("inputs").join(form.word());
    let ending = match form {
        ImportForm::Skill | ImportForm::TensorZero => None,
        ImportForm::Prompty => Some("prompty"),
        ImportForm::Dotprompt => Some("prompt"),
        ImportForm::Baml => Some("baml"),
    };
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| match ending {
        None => path.is_dir(),
        Some(ending) => path.extension().is_some_and(|found| found == ending),
    });
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    let more = with_options();
    let mut cases: Vec<ImportCase> = Vec::new();
    for path in paths {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        for (_, _, suffix, options) in more.iter().filter(|(of, input, ..)| *of == form && *input == file) {
            let name = format!("{}+{suffix}", name(&path));
            cases.push(ImportCase { name, path: path.clone(), options: options.clone() });
        }
        cases.push(ImportCase { name: name(&path), path, options: ImportOptions::default() });
    }
    cases
}

fn text(module: &ImportedModule, file: &str) -> String {
    String::from_utf8(module.files.get(file).unwrap().clone()).unwrap()
}

/// The result of a case, in the format of the expected file.
fn outcome(result: &Result<ImportedModule, cognitive_contract::Failure>) -> Value {
    let module = match result {
        Ok(module) => module,
        Err(failure) => return json!({ "refused": failure.message(), "hint": failure.suggestion() }),
    };
    let schema: Value = serde_json::from_str(&text(module, "schema.json")).unwrap();
    let losses: Vec<Value> =
        module.losses.iter().map(|loss| json!([loss.kind.word(), loss.what, loss.place])).collect();
    let tests: Vec<Value> = module
        .files
        .iter()
        .filter(|(path, _)| path.ends_with(".input.json"))
        .map(|(path, bytes)| json!([path, serde_json::from_slice::<Value>(bytes).unwrap()]))
        .collect();
    json!({
        "name": module.name,
        "manifest": text(module, "module.yaml").lines().collect::<Vec<_>>(),
        "prompt": text(module, "prompt.md").lines().collect::<Vec<_>>(),
        "input": schema.get("input"),
        "data": schema.get("data"),
        "$defs": schema.get("$defs").and_then(Value::as_object).map(|all| all.keys().collect::<Vec<_>>()),
        "tests": tests,
        "losses": losses,
    })
}

/// Runs the checks of `cogn validate` and `cogn test`.
fn passes(module: &ImportedModule) -> Result<(), String> {
    let folder = Folder::memory(&module.name, module.files.clone());
    let library = Library::default();
    let around = ValidationSurroundings { library: Some(&library), expectations: Some(&GoldenExpectations) };
    let report = validate_with(around, &folder, Mode::Standard);
    if !report.valid() {
        return Err(report.findings.iter().map(cognitive_library::Finding::summary).collect());
    }
    let subject = TestedFolder { name: module.name.clone(), folder };
    let report = golden::run_recorded(&[subject], &GoldenOptions::default()).unwrap();
    let tally = report.tally();
    let count = module.files.keys().filter(|path| path.ends_with(".input.json")).count();
    if report.holds() && tally.passed == count && count > 0 {
        Ok(())
    } else {
        Err(format!("{:#?}", report.to_value()))
    }
}

#[test]
fn every_input_becomes_what_is_expected() {
    let updates = std::env::var_os("UPDATE_IMPORTS").is_some();
    let mut wrong = Vec::new();
    println!("{:<12}{:>8}{:>10}{:>9}{:>8}", "form", "inputs", "imported", "refused", "losses");
    for form in ImportForm::ALL {
        let (mut imported, mut refused, mut losses) = (0, 0, 0);
        let cases = cases(form);
        for case in &cases {
            let result = import(&case.path, form, &case.options);
            match &result {
                Ok(module) => {
                    imported += 1;
                    losses += module.losses.len();
                    if let Err(why) = passes(module) {
                        wrong.push(format!("{} {}: {why}", form.word(), case.name));
                    }
                }
                Err(_) => refused += 1,
            }
            let found = serde_json::to_string_pretty(&outcome(&result)).unwrap() + "\n";
            let file = tests().join("expected").join(form.word()).join(format!("{}.json", case.name));
            if updates {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, &found).unwrap();
            } else if fs::read_to_string(&file).ok().as_deref() != Some(found.as_str()) {
                wrong.push(format!("{} {} became:\n{found}", form.word(), case.name));
            }
        }
        println!("{:<12}{:>8}{imported:>10}{refused:>9}{losses:>8}", form.word(), cases.len());
        assert!(cases.len() >= 20, "{} has only {} inputs", form.word(), cases.len());
        assert!(imported >= 10 && refused >= 5, "{}: {imported} imported, {refused} refused", form.word());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Types are found across all files of a folder.
#[test]
fn a_folder_of_baml_is_read_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("types.baml"), "class Mood { glad bool }\n").unwrap();
    let function = "function Judge(text: string) -> Mood {\n  client C\n  prompt #\"{{ text }}\"#\n}\n";
    fs::write(folder.path().join("judge.baml"), function).unwrap();
    fs::write(folder.path().join("notes.txt"), "not read").unwrap();
    let form = ImportForm::guess(folder.path()).unwrap();
    let module = import(folder.path(), form, &ImportOptions::default()).unwrap();
    assert_eq!(module.name, "judge");
    passes(&module).unwrap();
    let alone = import(&folder.path().join("judge.baml"), form, &ImportOptions::default()).unwrap_err();
    assert_eq!(alone.message(), "unknown type in `judge.baml`: `Mood`");
    assert_eq!(alone.suggestion(), Some("Import the folder with all its files"));
}

/// Nothing is dropped or generated silently: every difference is in the list.
#[test]
fn what_is_made_up_says_so() {
    for form in ImportForm::ALL {
        for case in cases(form) {
            let Ok(module) = import(&case.path, form, &case.options) else { continue };
            for (path, bytes) in module.files.iter().filter(|(path, _)| path.ends_with(".reply.txt")) {
                let reply = String::from_utf8(bytes.clone()).unwrap();
                assert!(reply.contains("Made up by cogn import"), "{path}");
            }
            let said = |loss: &cognitive_import::ImportLoss| {
                loss.kind == LossKind::MadeUp && loss.what == "the reply of the golden test"
            };
            assert!(module.losses.iter().any(said), "{} {}", form.word(), case.name);
            let page = text(&module, "README.md");
            for loss in &module.losses {
                assert!(page.contains(&loss.what) && page.contains(&loss.why), "{}", loss.what);
                assert!(!loss.place.is_empty() && !loss.why.is_empty(), "{loss:?}");
            }
        }
    }
}
