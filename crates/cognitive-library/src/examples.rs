//! Worked examples of a module: `examples/NAME.input.json` with `examples/NAME.answer.json`, a complete envelope. The
//! model reads them as turns of the conversation, so they are part of the module: an example that breaks the contract
//! prevents loading. Ignores other files in `examples/`: older formats store theirs there.

use std::collections::BTreeSet;

use cognitive_contract::Module;
use serde_json::Value;

use crate::finding::{Finding, FindingLocation, Sources, quote};
use crate::folder::{Budget, Folder, ReadError};
use crate::json;

/// The folder of the examples.
const FOLDER: &str = "examples";
const INPUT: &str = ".input.json";
const ANSWER: &str = ".answer.json";
/// A model reads all of them in every run; a larger number is a data set.
const MAX_COUNT: usize = 16;
/// The size limit of each file, and of all files together. The examples are a part of every prompt.
const LIMIT: u64 = 1 << 20;

/// An example as read from its files.
#[derive(Debug)]
pub(crate) struct ExampleFile {
    name: String,
    input: Value,
    answer: Value,
}

/// Reads the examples of a folder, sorted by name. Adds the texts to `sources` and the faults to `findings`.
pub(crate) fn read(folder: &Folder, sources: &mut Sources, findings: &mut Vec<Finding>) -> Vec<ExampleFile> {
    let names = folder.names_in(FOLDER);
    let names: BTreeSet<&str> = names.iter().filter(|name| !name.contains('/')).map(String::as_str).collect();
    // An input without an answer is not a worked example: older formats have such files.
    let stems: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(ANSWER)).collect();
    if stems.len() > MAX_COUNT {
        let message = format!("too many worked examples: {}, the limit is {MAX_COUNT}", stems.len());
        findings.push(Finding::error(FOLDER, FindingLocation::File, "examples/many", message));
        return Vec::new();
    }
    let mut files = ExampleFiles { folder, budget: Budget::new(LIMIT, LIMIT), sources, findings };
    let read = |stem: &str| {
        let input = files.json(&format!("{FOLDER}/{stem}{INPUT}"));
        let answer = files.json(&format!("{FOLDER}/{stem}{ANSWER}"));
        Some(ExampleFile { name: stem.to_owned(), input: input?, answer: answer? })
    };
    stems.into_iter().filter_map(read).collect()
}

struct ExampleFiles<'a> {
    folder: &'a Folder,
    budget: Budget,
    sources: &'a mut Sources,
    findings: &'a mut Vec<Finding>,
}

impl ExampleFiles<'_> {
    fn json(&mut self, file: &str) -> Option<Value> {
        let text = match self.folder.read_within(file, &mut self.budget) {
            Ok(text) => text,
            Err(ReadError::Missing) => {
                let finding = Finding::error(
                    file,
                    FindingLocation::File,
                    "examples/missing",
                    format!("{} is missing", quote(file)),
                );
                self.findings
                    .push(finding.hint("An example is two files: `NAME.input.json` and `NAME.answer.json`"));
                return None;
            }
            Err(ReadError::Refused(reason)) => {
                let message = format!("{} {reason}", quote(file));
                self.findings.push(Finding::error(
                    file,
                    FindingLocation::File,
                    "examples/unreadable",
                    message,
                ));
                return None;
            }
        };
        let value = json::parse_file(&text);
        self.sources.insert(file, text);
        value
            .map_err(|error| {
                let finding = Finding::error(
                    file,
                    FindingLocation::Offset(error.offset),
                    "examples/syntax",
                    error.message,
                );
                self.findings.push(finding);
            })
            .ok()
    }
}

/// Adds the examples to a module. Returns every violation of its contract.
pub(crate) fn add(module: &mut Module, examples: Vec<ExampleFile>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ExampleFile { name, input, answer } in examples {
        let file = format!("{FOLDER}/{name}{INPUT}");
        for violation in module.contract.input().violations(&input) {
            let message = format!("does not match the input schema: {}", violation.message);
            findings.push(Finding::error(
                &file,
                FindingLocation::Value(violation.path),
                "examples/input",
                message,
            ));
        }
        let file = format!("{FOLDER}/{name}{ANSWER}");
        for violation in module.add_example(&name, input, answer).err().into_iter().flatten() {
            let message = format!("is not an answer of this module: {}", violation.message);
            findings.push(Finding::error(
                &file,
                FindingLocation::Value(violation.path),
                "examples/answer",
                message,
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::finding::Severity;
    use crate::{Mode, load, validate};

    const ANSWERED: &str = r#"{"meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "ok": true, "data": {"word": "a", "rationale": "r"}}"#;
    const SCHEMA: &str = r#"{
        "input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
        "data": {"type": "object", "required": ["rationale", "word"],
                 "properties": {"rationale": {"type": "string"}, "word": {"enum": ["a", "b"]}}}
    }"#;

    fn folder(files: &[(&str, &str)]) -> Folder {
        let module = [
            ("module.yaml", "name: m\nversion: 1.0.0\ntier: decision\nresponsibility: r\n"),
            ("prompt.md", "p"),
            ("schema.json", SCHEMA),
        ];
        let files =
            module.iter().chain(files).map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        Folder::memory("m", files.collect::<BTreeMap<_, _>>())
    }

    /// The errors as `rule file pointer`. Loading and validating must report the same ones.
    fn wrong(files: &[(&str, &str)]) -> Vec<String> {
        let folder = folder(files);
        let report = validate(&folder, Mode::Standard);
        let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let words = |finding: &Finding| {
            let place = if let FindingLocation::Value(pointer) = &finding.at { pointer.as_str() } else { "" };
            format!("{} {} {place}", finding.rule, finding.file).trim_end().to_owned()
        };
        let said: Vec<String> = errors.map(words).collect();
        let loaded = match load(&folder) {
            Ok(_) => Vec::new(),
            Err(crate::ModuleLoadError::Invalid { findings, .. }) => findings.iter().map(words).collect(),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(said, loaded);
        said
    }

    #[test]
    fn examples_are_pairs_in_the_order_of_their_names() {
        let answer_b = ANSWERED.replace("\"a\"", "\"b\"");
        let files = [
            ("examples/2.input.json", r#"{"text": "two"}"#),
            ("examples/2.answer.json", answer_b.as_str()),
            ("examples/1.input.json", r#"{"text": "one"}"#),
            ("examples/1.answer.json", ANSWERED),
        ];
        let module = load(&folder(&files)).unwrap();
        let names: Vec<&str> = module.examples.iter().map(|example| example.name.as_str()).collect();
        assert_eq!(names, ["1", "2"]);
        let answer = module.examples[0].answer.to_string();
        assert!(answer.starts_with(r#"{"ok":true,"data":{"rationale":"r","word":"a"},"meta":"#), "{answer}");
        assert_ne!(module.digest.module, load(&folder(&files[..2])).unwrap().digest.module);
    }

    // FMT-006, FMT-008: older formats store other kinds of files in `examples/`.
    #[test]
    fn fmt_006_other_files_in_the_folder_are_left_alone() {
        let files = [
            ("examples/input.json", r#"{"text": "t"}"#),
            ("examples/output.json", "{}"),
            ("examples/a.input.json", r#"{"text": "t"}"#),
            ("examples/a.output.json", r#"{"word": "a"}"#),
            ("examples/notes.md", "x"),
            ("examples/deep/b.answer.json", "no JSON"),
        ];
        let module = load(&folder(&files)).unwrap();
        assert!(module.examples.is_empty());
        assert_eq!(module.digest.module, load(&folder(&[])).unwrap().digest.module);
    }

    #[test]
    fn val_002_a_broken_example_is_an_error_with_its_place() {
        let input = ("examples/a.input.json", r#"{"text": "t"}"#);
        let answer = ("examples/a.answer.json", ANSWERED);
        assert_eq!(wrong(&[answer]), ["examples/missing examples/a.input.json"]);
        assert_eq!(
            wrong(&[input, ("examples/a.answer.json", "{")]),
            ["examples/syntax examples/a.answer.json"]
        );
        assert_eq!(
            wrong(&[("examples/a.input.json", r#"{"text": 1}"#), answer]),
            ["examples/input examples/a.input.json /text"]
        );
        let other_word = ANSWERED.replace("\"a\"", "\"c\"");
        assert_eq!(
            wrong(&[input, ("examples/a.answer.json", &other_word)]),
            ["examples/answer examples/a.answer.json /data/word"]
        );
        let bare = r#"{"rationale": "r", "word": "a"}"#;
        assert!(wrong(&[input, ("examples/a.answer.json", bare)])[0].starts_with("examples/answer "));
        let failure = r#"{"ok": false, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "error": {"code": "E2007", "message": "m"}}"#;
        assert_eq!(wrong(&[input, ("examples/a.answer.json", failure)]), Vec::<String>::new());
    }

    #[test]
    fn there_is_a_limit_to_their_number_and_size() {
        let names: Vec<String> =
            (0..=MAX_COUNT).map(|number| format!("examples/{number}.answer.json")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), ANSWERED)).collect();
        assert_eq!(wrong(&files), ["examples/many examples"]);
        let large = format!(r#"{{"text": "{}"}}"#, "x".repeat(1 << 20));
        let files = [("examples/a.input.json", large.as_str()), ("examples/a.answer.json", ANSWERED)];
        assert_eq!(wrong(&files), ["examples/unreadable examples/a.input.json"]);
    }
}
