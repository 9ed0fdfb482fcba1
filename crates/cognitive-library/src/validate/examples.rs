//! Golden tests and examples: they must be there, be JSON, and fit the schemas they are examples of.
//! Looks at no more than a thousand of each kind and 16 MiB in total, and says so where that was not all.

use cognitive_contract::schema::{Section, Side};
use cognitive_contract::{Format, Module};
use serde_json::Value;

use crate::finding::{At, Finding, Findings, Sources, quoted};
use crate::folder::{Budget, Folder, JSON_LIMIT, ReadError, TOTAL_LIMIT, safe_relative};
use crate::json;

/// More entries or files than these are not looked at.
const MOST_TESTS: usize = 1_000;

/// Where the tests are, and what is found there.
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

    /// `declared` is what the manifest says about tests, as written.
    pub(super) fn check(mut self, declared: Option<&Value>) {
        self.declared(declared);
        let in_tests = self.folder.names_in("tests");
        let in_examples = self.folder.names_in("examples");
        let (module, tests) = (self.module, &self.module.manifest.tests);

        let expected = tests.iter().map(|test| test.expected.clone());
        for file in self.files(expected.chain(below("tests", &in_tests, "expected"))) {
            self.file(&file, |_, _| Vec::new());
        }
        // v1 kept its inputs in `examples/`.
        let inputs = tests.iter().map(|test| test.input.clone()).chain(below("tests", &in_tests, "input"));
        for file in self.files(inputs.chain(below("examples", &in_examples, "input"))) {
            self.file(&file, |file, value| misfits(file, value, module.contract.input(), Side::Input));
        }
        if module.format <= Format::V1 {
            for file in self.files(below("examples", &in_examples, "output").into_iter()) {
                self.file(&file, |file, value| misfits(file, value, module.contract.data(), Side::Output));
            }
        }
    }

    fn declared(&mut self, declared: Option<&Value>) {
        let Some(Value::Array(entries)) = declared else { return };
        self.not_all("entries in `tests`", entries.len());
        for (index, entry) in entries.iter().take(MOST_TESTS).enumerate() {
            let Some(entry) = entry.as_str() else { continue };
            let place = At::Value(format!("/tests/{index}"));
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

    /// Looks at a file without reading it: that is done once, below, however many entries name it.
    fn declared_path(&mut self, path: &str, place: At) {
        match self.folder.check(path, JSON_LIMIT) {
            Err(ReadError::Missing) => {
                let message = format!("no such file: {}", quoted(path));
                self.found.push(Finding::warning(self.manifest_file, place, "tests/missing", message));
            }
            // A path that leads out of the module has been reported by loading.
            Err(ReadError::Refused(reason)) if safe_relative(path).is_some() => {
                let message = format!("{} {reason}", quoted(path));
                self.found.push(Finding::error(self.manifest_file, place, "tests/entry", message));
            }
            _ => {}
        }
    }

    /// Each file once, in order, and not too many.
    fn files(&mut self, files: impl Iterator<Item = String>) -> Vec<String> {
        let mut files: Vec<String> = files.filter(|file| safe_relative(file).is_some()).collect();
        files.sort();
        files.dedup();
        self.not_all("test files", files.len());
        files.truncate(MOST_TESTS);
        files
    }

    fn not_all(&mut self, what: &str, count: usize) {
        if count > MOST_TESTS {
            let message = format!("of {count} {what}, only the first {MOST_TESTS} are looked at");
            self.found.push(Finding::warning(self.manifest_file, At::File, "tests/many", message));
        }
    }

    /// Reads a file and judges it. Its text is only kept if there is something to show in it.
    fn file(&mut self, file: &str, judge: impl Fn(&str, &Value) -> Vec<Finding>) {
        let Some(text) = self.read(file) else { return };
        let found = match json::parse_file(&text) {
            Ok(value) => judge(file, &value),
            Err(error) => {
                vec![Finding::error(file, At::Offset(error.offset), "tests/syntax", error.message)]
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
            // A declared file that is missing was reported with its entry.
            Err(ReadError::Missing) => None,
            Err(ReadError::Refused(_)) if self.budget.is_spent() => {
                let total = TOTAL_LIMIT >> 20;
                let message =
                    format!("more than {total} MiB of test files: this one and later ones are not read");
                self.found.push(Finding::warning(file, At::File, "tests/size", message));
                None
            }
            Err(ReadError::Refused(reason)) => {
                let message = format!("{} {reason}", quoted(file));
                self.found.push(Finding::error(file, At::File, "tests/file", message));
                None
            }
        }
    }
}

/// The files of a folder that are of one kind by their name; `examples/` also has a nameless one of each.
fn below(folder: &str, names: &[String], kind: &str) -> Vec<String> {
    let (ending, nameless) = (format!(".{kind}.json"), format!("{kind}.json"));
    let of_kind = |name: &&String| name.ends_with(&ending) || (folder == "examples" && **name == nameless);
    names.iter().filter(of_kind).map(|name| format!("{folder}/{name}")).collect()
}

fn misfits(file: &str, value: &Value, section: &Section, side: Side) -> Vec<Finding> {
    let (name, rule) = match side {
        Side::Input => ("input", "tests/input"),
        Side::Output => ("output", "tests/output"),
    };
    let violations = section.violations(value, side).into_iter();
    violations
        .map(|violation| {
            let message = format!("does not fit the {name} schema: {}", violation.message);
            Finding::error(file, At::Value(violation.path), rule, message)
        })
        .collect()
}
