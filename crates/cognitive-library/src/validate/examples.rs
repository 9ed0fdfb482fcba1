//! Golden tests and examples: the files must exist, be JSON, and match their schemas (VAL-002).
//!
//! Published modules name their examples `input.json` and `output.json`, with a name before or after the word for
//! several (`health-product-input.json`). They store whole answers as `$example` of golden tests. An output is a
//! payload or a whole envelope. Other JSON files in `examples/` must be JSON. Worked examples, `NAME.answer.json`, are
//! checked when the module is loaded.
//!
//! Reads at most a thousand files of each kind and 16 MiB in total, and reports if that was not all.

use std::collections::HashSet;

use cognitive_contract::violation::Side;
use cognitive_contract::{Enforcement, ErrorCode, Module, Violation, wrap_v21};
use serde_json::Value;

use super::golden_tests::{self, ExpectationReader};
use super::parts::ContractView;
use crate::finding::{Finding, FindingLocation, Findings, Sources, quote};
use crate::folder::{Budget, Folder, JSON_LIMIT, ReadError, TOTAL_LIMIT, safe_relative};
use crate::json;

/// The highest number of entries or files that are checked. Each is parsed and validated, and an author waits for it.
const MAX_TESTS: usize = 1_000;
/// The endings of the two files of a test.
const INPUT: &str = ".input.json";
const EXPECTED: &str = ".expected.json";

/// The state of the check: the location of the tests and the findings.
pub(super) struct Examples<'a> {
    folder: &'a Folder,
    module: &'a Module,
    manifest_file: &'static str,
    sources: &'a mut Sources,
    found: &'a mut Findings,
    budget: Budget,
}

impl<'a> Examples<'a> {
    pub(super) fn new(
        folder: &'a Folder,
        module: &'a Module,
        manifest_file: &'static str,
        sources: &'a mut Sources,
        found: &'a mut Findings,
    ) -> Self {
        Self { folder, module, manifest_file, sources, found, budget: Budget::new(JSON_LIMIT, TOTAL_LIMIT) }
    }

    /// Runs all checks. `declared` is the `tests` value of the manifest as written. `language` has the reader of
    /// expectations and the contract they refer to.
    pub(super) fn check(
        mut self,
        declared: Option<&Value>,
        language: Option<(&dyn ExpectationReader, ContractView)>,
    ) {
        self.check_declared(declared);
        let in_tests = self.folder.names_in("tests");
        let in_examples = self.folder.names_in("examples");
        let (module, tests) = (self.module, &self.module.manifest.tests);

        let expected = tests.iter().map(|test| test.expected.clone());
        let found_by_name = |kind: ExampleKind| files_of_kind("tests", &in_tests, kind);
        // The inputs that a test expects to be refused.
        let mut refused = HashSet::new();
        for file in self.files(expected.chain(found_by_name(ExampleKind::Expected))) {
            self.file(&file, |value| {
                let mut found = example_in(module, &file, value);
                let allows_refusal = match &language {
                    Some((reader, view)) => {
                        let read = reader.read(value);
                        let allows_refusal = read.allows_refusal;
                        found.extend(golden_tests::findings(read, view, &file));
                        allows_refusal
                    }
                    // Without a reader, any expected failure may be the refusal.
                    None => allows_failure(value),
                };
                if allows_refusal {
                    let declared = tests.iter().filter(|test| test.expected == file);
                    refused.extend(declared.map(|test| test.input.clone()));
                    refused.extend(file.strip_suffix(EXPECTED).map(|case| format!("{case}{INPUT}")));
                }
                found
            });
        }
        let inputs = tests.iter().map(|test| test.input.clone()).chain(found_by_name(ExampleKind::Input));
        for file in self.files(inputs.chain(files_of_kind("examples", &in_examples, ExampleKind::Input))) {
            self.file(&file, |value| {
                let violations = if refused.contains(&file) { Vec::new() } else { input(module, value) };
                example_mismatches(&file, "tests/input", "the input schema", violations)
            });
        }
        for file in self.files(files_of_kind("examples", &in_examples, ExampleKind::Output).into_iter()) {
            self.file(&file, |value| {
                example_mismatches(&file, "tests/output", "the output schema", output(module, value))
            });
        }
        for file in self.files(files_of_kind("examples", &in_examples, ExampleKind::Other).into_iter()) {
            self.file(&file, |_| Vec::new());
        }
    }

    fn check_declared(&mut self, declared: Option<&Value>) {
        let Some(Value::Array(entries)) = declared else { return };
        self.not_all("entries in `tests`", entries.len());
        for (index, entry) in entries.iter().take(MAX_TESTS).enumerate() {
            let Some(entry) = entry.as_str() else { continue };
            let place = FindingLocation::Value(format!("/tests/{index}"));
            let Some((input, expected)) = entry.split_once("->") else {
                let message = "a test entry has an arrow `->` between two paths";
                let fault = Finding::error(self.manifest_file, place, "tests/entry", message);
                self.found.push(fault.hint("Write `tests/case.input.json -> tests/case.expected.json`"));
                continue;
            };
            for path in [input.trim(), expected.trim()] {
                self.declared_path(path, place.clone());
            }
        }
    }

    /// Checks a file without reading it. It is read once, below, even if several entries name it.
    fn declared_path(&mut self, path: &str, place: FindingLocation) {
        match self.folder.check(path, JSON_LIMIT) {
            Err(ReadError::Missing) => {
                let message = format!("no such file: {}", quote(path));
                self.found.push(Finding::warning(self.manifest_file, place, "tests/missing", message));
            }
            // Loading has reported a path that leads out of the module.
            Err(ReadError::Refused(reason)) if safe_relative(path).is_some() => {
                let message = format!("{} {reason}", quote(path));
                self.found.push(Finding::error(self.manifest_file, place, "tests/entry", message));
            }
            _ => {}
        }
    }

    /// Removes duplicates, sorts the files and limits their number.
    fn files(&mut self, files: impl Iterator<Item = String>) -> Vec<String> {
        let mut files: Vec<String> = files.filter(|file| safe_relative(file).is_some()).collect();
        files.sort();
        files.dedup();
        self.not_all("test files", files.len());
        files.truncate(MAX_TESTS);
        files
    }

    fn not_all(&mut self, what: &str, count: usize) {
        if count > MAX_TESTS {
            let message = format!("only the first {MAX_TESTS} of {count} {what} are checked");
            self.found.push(Finding::warning(
                self.manifest_file,
                FindingLocation::File,
                "tests/many",
                message,
            ));
        }
    }

    /// Reads a file and checks it. Stores its text only if there are findings to show in it.
    fn file(&mut self, file: &str, judge: impl FnOnce(&Value) -> Vec<Finding>) {
        let Some(text) = self.read(file) else { return };
        let found = match json::parse_file(&text) {
            Ok(value) => judge(&value),
            Err(error) => {
                vec![Finding::error(
                    file,
                    FindingLocation::Offset(error.offset),
                    "tests/syntax",
                    error.message,
                )]
            }
        };
        if !found.is_empty() {
            self.sources.insert(file, text);
            self.found.extend(found);
        }
    }

    fn read(&mut self, file: &str) -> Option<String> {
        if self.budget.is_spent() {
            return None;
        }
        match self.folder.read_within(file, &mut self.budget) {
            Ok(text) => Some(text),
            // A missing declared file was reported with its entry.
            Err(ReadError::Missing) => None,
            Err(ReadError::Refused(_)) if self.budget.is_spent() => {
                let total = TOTAL_LIMIT >> 20;
                let message =
                    format!("more than {total} MiB of test files: this one and later ones are not read");
                self.found.push(Finding::warning(file, FindingLocation::File, "tests/size", message));
                None
            }
            Err(ReadError::Refused(reason)) => {
                let message = format!("{} {reason}", quote(file));
                self.found.push(Finding::error(file, FindingLocation::File, "tests/file", message));
                None
            }
        }
    }
}

/// Returns whether an expectation may be about a failure.
fn allows_failure(expected: &Value) -> bool {
    let is_error = |name: &String| name.split('.').next() == Some("error");
    expected.get("ok") == Some(&Value::Bool(false))
        || expected.as_object().is_some_and(|members| members.keys().any(is_error))
}

/// Returns whether a module has golden tests, declared or found by their names.
pub(super) fn has_tests(folder: &Folder, manifest: &Value) -> bool {
    let declared = manifest.get("tests").and_then(Value::as_array).is_some_and(|tests| !tests.is_empty());
    declared || folder.names_in("tests").iter().any(|name| kind_of_test(name) == Some(ExampleKind::Expected))
}

/// Returns whether a module has at least one example input and one example output, in any published form.
#[must_use]
pub fn has_examples(folder: &Folder) -> bool {
    let names = folder.names_in("examples");
    let has = |kinds: &[ExampleKind]| {
        names.iter().any(|name| kind_of_example(name).is_some_and(|kind| kinds.contains(&kind)))
    };
    has(&[ExampleKind::Input]) && has(&[ExampleKind::Output, ExampleKind::Worked])
}

/// The kind of an example file, from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExampleKind {
    Input,
    Output,
    /// The expectation of a golden test.
    Expected,
    /// A worked example, which loading has checked.
    Worked,
    /// Any other JSON file.
    Other,
}

/// The files of a folder that have one kind.
fn files_of_kind(folder: &str, names: &[String], kind: ExampleKind) -> Vec<String> {
    let by_name = if folder == "tests" { kind_of_test } else { kind_of_example };
    names.iter().filter(|name| by_name(name) == Some(kind)).map(|name| format!("{folder}/{name}")).collect()
}

/// The kind of a file in `tests`: only `CASE.input.json` and `CASE.expected.json` count.
fn kind_of_test(name: &str) -> Option<ExampleKind> {
    let kinds = [(INPUT, ExampleKind::Input), (EXPECTED, ExampleKind::Expected)];
    kinds.into_iter().find_map(|(ending, kind)| name.ends_with(ending).then_some(kind))
}

/// The kind of a file in `examples`, from the first or last word of its name; `None` if it is not JSON.
fn kind_of_example(name: &str) -> Option<ExampleKind> {
    let stem = name.rsplit('/').next().unwrap_or(name).strip_suffix(".json")?;
    if stem.ends_with(".answer") && !name.contains('/') {
        return Some(ExampleKind::Worked);
    }
    let words: Vec<&str> = stem.split(['.', '-', '_']).collect();
    let is_at_an_end = |word: &str| words.first() == Some(&word) || words.last() == Some(&word);
    Some(match (is_at_an_end("input"), is_at_an_end("output")) {
        (true, false) => ExampleKind::Input,
        (false, true) => ExampleKind::Output,
        _ => ExampleKind::Other,
    })
}

fn example_mismatches(
    file: &str,
    rule: &'static str,
    what: &str,
    violations: Vec<Violation>,
) -> Vec<Finding> {
    let misfit = |violation: Violation| {
        let message = format!("does not match {what}: {}", violation.message);
        Finding::error(file, FindingLocation::Value(violation.path), rule, message)
    };
    violations.into_iter().map(misfit).collect()
}

/// The contract violations of an input. Free text matches no schema by design (PROMPT-006).
fn input(module: &Module, value: &Value) -> Vec<Violation> {
    let is_text = |(name, value): (&String, &Value)| {
        matches!(name.as_str(), "query" | "$ARGUMENTS") && value.is_string()
    };
    let free = value.as_object().is_some_and(|members| !members.is_empty() && members.iter().all(is_text));
    if free { Vec::new() } else { Violation::find(module.contract.input(), value, Side::Input) }
}

/// The contract violations of an output: a whole envelope if it has `ok`, otherwise a payload.
fn output(module: &Module, value: &Value) -> Vec<Violation> {
    let Some(members) = value.as_object().filter(|members| members.get("ok").is_some_and(Value::is_boolean))
    else {
        if !value.is_object() {
            let message = "a payload is an object";
            return vec![Violation::new("", ErrorCode::SchemaValidationFailed, "type", message)];
        }
        let mut found = Violation::find(module.contract.data(), value, Side::Output);
        let refused = module.contract.refused_custom_values(value).into_iter();
        found.extend(refused.map(|each| Violation::from_schema(each, Side::Output)));
        return found;
    };
    let wraps = module.manifest.compat.wraps();
    let envelope = if wraps { Value::Object(wrap_v21::wrap(members.clone())) } else { value.clone() };
    module.accept(envelope, Enforcement::Full).err().map(|(_, found)| found).unwrap_or_default()
}

/// Checks the whole answer that a golden test shows as its example. An example without `ok` may be a part of an answer.
fn example_in(module: &Module, file: &str, expected: &Value) -> Vec<Finding> {
    let example = expected.get("$example").filter(|example| example.get("ok").is_some_and(Value::is_boolean));
    let found = example.map(|example| output(module, example)).unwrap_or_default();
    let found = found.into_iter().map(|violation| violation.with_prefix("/$example")).collect();
    example_mismatches(file, "tests/example", "the output schema", found)
}
