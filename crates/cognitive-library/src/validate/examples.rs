//! Golden tests and examples: they must be there, be JSON, and fit the schemas they are examples of.

use cognitive_contract::schema::Side;
use cognitive_contract::{Format, Module};
use serde_json::Value;

use super::Subject;
use crate::finding::{At, Finding, Sources};
use crate::folder::{JSON_LIMIT, ReadError, safe_relative};
use crate::json;

pub(super) fn check(subject: &Subject<'_>, module: &Module, sources: &mut Sources) -> Vec<Finding> {
    let mut found = Vec::new();
    declared_tests(subject, &mut found);
    for file in expected_files(subject, module) {
        let _only_syntax = read_json(subject, &file, sources, &mut found);
    }
    for file in input_files(subject, module) {
        if let Some(input) = read_json(subject, &file, sources, &mut found) {
            for violation in module.contract.input().violations(&input, Side::Input) {
                let message = format!("does not fit the input schema: {}", violation.message);
                found.push(Finding::error(&file, At::Value(violation.path), "tests/input", message));
            }
        }
    }
    if subject.format <= Format::V1 {
        output_examples(subject, module, sources, &mut found);
    }
    found
}

fn declared_tests(subject: &Subject<'_>, found: &mut Vec<Finding>) {
    let Some(Value::Array(entries)) = subject.written.get("tests") else { return };
    for (index, entry) in entries.iter().enumerate() {
        let Some(entry) = entry.as_str() else { continue };
        let place = At::Value(format!("/tests/{index}"));
        let fault =
            |message: String| Finding::error(subject.manifest_file, place.clone(), "tests/entry", message);
        let Some((input, expected)) = entry.split_once("->") else {
            let hint = "Write `tests/case.input.json -> tests/case.expected.json`";
            found.push(fault("a test entry has an arrow `->` between two paths".to_owned()).hint(hint));
            continue;
        };
        for path in [input.trim(), expected.trim()] {
            // A path that leads out of the module has been reported by loading.
            match subject.folder.read(path, JSON_LIMIT) {
                Err(ReadError::Missing) => {
                    let message = format!("no such file: `{path}`");
                    let place = place.clone();
                    found.push(Finding::warning(subject.manifest_file, place, "tests/missing", message));
                }
                Err(ReadError::Refused(reason)) if safe_relative(path).is_some() => {
                    found.push(fault(format!("`{path}` {reason}")));
                }
                _ => {}
            }
        }
    }
}

/// Expectations that tests declare or that lie in `tests/` by name.
fn expected_files(subject: &Subject<'_>, module: &Module) -> Vec<String> {
    let declared = module.manifest.tests.iter().map(|test| test.expected.clone());
    let in_tests = subject.folder.names_in("tests").into_iter();
    let in_tests =
        in_tests.filter(|name| name.ends_with(".expected.json")).map(|name| format!("tests/{name}"));
    sorted(declared.chain(in_tests))
}

fn sorted(files: impl Iterator<Item = String>) -> Vec<String> {
    let mut files: Vec<String> = files.filter(|file| safe_relative(file).is_some()).collect();
    files.sort();
    files.dedup();
    files
}

/// Inputs that tests declare or that lie in `tests/` by name; v1 kept its inputs in `examples/`.
fn input_files(subject: &Subject<'_>, module: &Module) -> Vec<String> {
    let declared = module.manifest.tests.iter().map(|test| test.input.clone());
    let in_tests = subject.folder.names_in("tests").into_iter();
    let in_tests = in_tests.filter(|name| name.ends_with(".input.json")).map(|name| format!("tests/{name}"));
    let in_examples = subject.folder.names_in("examples").into_iter();
    let in_examples =
        in_examples.filter(|name| is_input_example(name)).map(|name| format!("examples/{name}"));
    sorted(declared.chain(in_tests).chain(in_examples))
}

fn is_input_example(name: &str) -> bool {
    name == "input.json" || name.ends_with(".input.json")
}

fn output_examples(subject: &Subject<'_>, module: &Module, sources: &mut Sources, found: &mut Vec<Finding>) {
    let names = subject.folder.names_in("examples");
    for name in names.iter().filter(|name| *name == "output.json" || name.ends_with(".output.json")) {
        let file = format!("examples/{name}");
        if let Some(output) = read_json(subject, &file, sources, found) {
            for violation in module.contract.data().violations(&output, Side::Output) {
                let message = format!("does not fit the output schema: {}", violation.message);
                found.push(Finding::error(&file, At::Value(violation.path), "tests/output", message));
            }
        }
    }
}

fn read_json(
    subject: &Subject<'_>,
    file: &str,
    sources: &mut Sources,
    found: &mut Vec<Finding>,
) -> Option<Value> {
    let text = match subject.folder.read(file, JSON_LIMIT) {
        Ok(text) => text,
        // A declared file that is missing was reported with its entry.
        Err(ReadError::Missing) => return None,
        Err(ReadError::Refused(reason)) => {
            found.push(Finding::error(file, At::File, "tests/file", format!("`{file}` {reason}")));
            return None;
        }
    };
    sources.insert(file, text.clone());
    match json::parse(&text) {
        Ok(value) => Some(value),
        Err(error) => {
            let message = format!("not JSON: {}", error.message);
            found.push(Finding::error(file, At::Offset(error.offset), "tests/syntax", message));
            None
        }
    }
}
