//! Finds the golden tests of a module folder: declared in `tests:` of the manifest, or found in `tests/` by
//! file name.
//! Skips nothing silently: an incomplete case or an unreadable entry becomes a case that fails.

use std::collections::{BTreeMap, BTreeSet};

use cognitive_contract::recorded_reply::{REPLY_END, dialect_place, parse_dialect_file};
use cognitive_contract::{RecordedReply, json};
use cognitive_library::folder::{Folder, JSON_LIMIT, ReadError};
use cognitive_library::formats;
use cognitive_library::json::index;
use serde_json::Value;

use crate::expect::Difference;
use crate::expect::expectation::{Expectation, ExpectationUse};

/// The folder in which tests are found by file name.
const TESTS: &str = "tests";
const INPUT: &str = ".input.json";
const EXPECTED: &str = ".expected.json";
const REPLY: &str = REPLY_END;

/// One golden test: the paths of its files, relative to the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoldenCase {
    /// The display name: the common prefix of its files.
    pub name: String,
    /// The input file.
    pub input: String,
    /// The file with the expectation.
    pub expected: String,
    /// The file with the recorded reply of the model.
    pub reply: String,
    /// The recorded replies to modules that the tested module is composed of, by module name.
    pub part_replies: BTreeMap<String, String>,
    /// The reason why the case cannot be run at all.
    fault: Option<String>,
}

/// The parsed expectation of a case.
#[derive(Debug)]
pub(super) struct ExpectedFile {
    /// The text of the file.
    pub(super) text: String,
    pub(super) value: Value,
    pub(super) expectation: Expectation,
}

/// The parsed files of a case. A case without an expectation can only be accepted.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) input: Value,
    pub(super) expected: Option<ExpectedFile>,
    /// Recorded replies by module.
    pub(super) replies: BTreeMap<String, RecordedReply>,
}

impl GoldenCase {
    fn from_entry(entry: &str) -> Self {
        let Some((input, expected)) = entry.split_once("->") else {
            let fault = "an entry of `tests` has an arrow `->` between two paths";
            return Self { fault: Some(fault.to_owned()), ..Self::from_files(entry.trim(), "", "") };
        };
        let (input, expected) = (input.trim(), expected.trim());
        let stem = input.strip_suffix(INPUT).or_else(|| input.strip_suffix(".json")).unwrap_or(input);
        Self::from_files(stem, input, expected)
    }

    /// The case whose files in `tests/` start with this name.
    pub(crate) fn by_name(stem: &str) -> Self {
        let stem = format!("{TESTS}/{stem}");
        Self::from_files(&stem, &format!("{stem}{INPUT}"), &format!("{stem}{EXPECTED}"))
    }

    /// The reply belongs to its input, so both files share the stem.
    fn from_files(stem: &str, input: &str, expected: &str) -> Self {
        Self {
            name: stem.strip_prefix("tests/").unwrap_or(stem).to_owned(),
            input: input.to_owned(),
            expected: expected.to_owned(),
            reply: format!("{stem}{REPLY}"),
            part_replies: BTreeMap::new(),
            fault: None,
        }
    }

    /// All files of the case, those that a recording or an acceptance would write included.
    #[must_use]
    pub fn files(self) -> Vec<String> {
        let mut files = vec![self.input, self.expected, self.reply];
        files.extend(self.part_replies.into_values());
        files
    }

    /// Returns the path for the reply of a module. The path for the module's own reply has no module name.
    pub(crate) fn reply_of(&self, module: &str, own: &str) -> String {
        if module == own {
            return self.reply.clone();
        }
        let stem = self.reply.strip_suffix(REPLY).unwrap_or(&self.reply);
        format!("{stem}.{module}{REPLY}")
    }

    /// Reads the files; `own` is the name of the module. The error describes the first file that cannot be
    /// used.
    pub(super) fn read(&self, folder: &Folder, own: &str) -> Result<Script, String> {
        let (input, replies) = self.read_recording(folder, own)?;
        let expected = match folder.read(&self.expected, JSON_LIMIT) {
            Err(ReadError::Missing) => None,
            _ => Some(self.read_expected(folder)?),
        };
        Ok(Script { input, expected, replies })
    }

    /// Reads the input and the recorded replies by module, but not the expectation.
    pub(super) fn read_recording(
        &self,
        folder: &Folder,
        own: &str,
    ) -> Result<(Value, BTreeMap<String, RecordedReply>), String> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let (input, _) = read_json(folder, &self.input)?;
        let parts = self.part_replies.iter().map(|(module, path)| (module.as_str(), path));
        let mut replies = BTreeMap::new();
        for (module, path) in parts.chain([(own, &self.reply)]) {
            if let Some(reply) = read_reply(folder, path)? {
                replies.insert(module.to_owned(), reply);
            }
        }
        Ok((input, replies))
    }

    /// Compares an envelope with the expectation. The error explains why it cannot be judged.
    pub(crate) fn differences(&self, folder: &Folder, envelope: &Value) -> Result<Vec<Difference>, String> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        Ok(self.read_expected(folder)?.expectation.differences(envelope))
    }

    fn read_expected(&self, folder: &Folder) -> Result<ExpectedFile, String> {
        let (value, text) = read_json(folder, &self.expected)?;
        let expectation = Expectation::parse(&value, ExpectationUse::Golden)
            .map_err(|why| format!("invalid `{}`: {why}", self.expected))?;
        Ok(ExpectedFile { text, value, expectation })
    }
}

/// All cases of a module, by name.
#[must_use]
pub fn cases(folder: &Folder) -> Vec<GoldenCase> {
    let mut cases: Vec<GoldenCase> =
        declared_cases(folder).iter().map(|entry| GoldenCase::from_entry(entry)).collect();
    let names: Vec<String> =
        folder.names_in(TESTS).iter().filter(|name| !name.contains('/')).map(ToString::to_string).collect();
    let used: BTreeSet<String> =
        cases.iter().flat_map(|case| [&case.input, &case.expected, &case.reply]).cloned().collect();
    let mut stems = BTreeSet::new();
    let mut of_parts = Vec::new();
    for name in &names {
        if let Some((case, module)) =
            split_part(name).filter(|(case, _)| names.contains(&format!("{case}{INPUT}")))
        {
            of_parts.push((format!("{TESTS}/{case}{REPLY}"), module.to_owned(), format!("{TESTS}/{name}")));
            continue;
        }
        let stem = [INPUT, EXPECTED, REPLY].iter().find_map(|ending| name.strip_suffix(ending));
        // A file that a declared case uses is not a separate case.
        stems.extend(stem.filter(|_| !used.contains(&format!("{TESTS}/{name}"))).map(str::to_owned));
    }
    cases.extend(stems.iter().map(|stem| GoldenCase::by_name(stem)));
    for (reply, module, path) in of_parts {
        for case in cases.iter_mut().filter(|case| case.reply == reply) {
            case.part_replies.insert(module.clone(), path.clone());
        }
    }
    rename_duplicates(&mut cases);
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// Splits `case.module.reply.txt`: the reply to a part of the tested module. Module names contain no dot.
fn split_part(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(REPLY)?.rsplit_once('.')
}

/// The entries of `tests` as written, including malformed ones.
fn declared_cases(folder: &Folder) -> Vec<String> {
    let manifest = formats::read_manifest(folder).map(|(_, manifest)| manifest).unwrap_or_default();
    let entries = manifest.get("tests").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut seen = BTreeSet::new();
    let texts = entries.iter().filter_map(Value::as_str).map(str::to_owned);
    texts.filter(|entry| seen.insert(entry.clone())).collect()
}

/// Gives two expectations for the same input different names, because they are two cases.
fn rename_duplicates(cases: &mut [GoldenCase]) {
    let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    for case in cases {
        if names.iter().filter(|name| **name == case.name).count() > 1 {
            case.name = format!("{} -> {}", case.name, case.expected);
        }
    }
}

/// A reply with the dialect beside it; `None` if none is recorded. One without a dialect is of a provider that was sent no
/// schema.
fn read_reply(folder: &Folder, path: &str) -> Result<Option<RecordedReply>, String> {
    let text = match folder.read(path, JSON_LIMIT) {
        Ok(text) => text,
        Err(ReadError::Missing) => return Ok(None),
        Err(error) => return Err(unreadable(path, error)),
    };
    let mut reply = RecordedReply::from(text);
    if let Some(place) = dialect_place(path) {
        reply.dialect = match folder.read(&place, JSON_LIMIT) {
            Ok(text) => parse_dialect_file(&text).map_err(|why| format!("`{place}` {why}"))?,
            Err(ReadError::Missing) => None,
            Err(error) => return Err(unreadable(&place, error)),
        };
    }
    Ok(Some(reply))
}

/// Returns the message for a case without an expectation.
pub(super) fn no_expectation(case: &GoldenCase) -> String {
    unreadable(&case.expected, ReadError::Missing)
}

fn unreadable(path: &str, error: ReadError) -> String {
    if let ReadError::Refused(why) = error {
        format!("`{path}` {why}")
    } else {
        format!("no such file: `{path}`")
    }
}

/// Parses a JSON file. Duplicate keys are an error: only the last of them would be used.
fn read_json(folder: &Folder, path: &str) -> Result<(Value, String), String> {
    let text = folder.read(path, JSON_LIMIT).map_err(|error| unreadable(path, error))?;
    let value = json::parse(&text).map_err(|error| {
        let line = text.get(..error.offset).unwrap_or_default().matches('\n').count() + 1;
        format!("`{path}` is not JSON, line {line}: {}", error.message)
    })?;
    match index(&text).repeated.first() {
        Some(twice) => Err(format!("`{path}` has a duplicate member: `{twice}`")),
        None => Ok((value, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> Folder {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        Folder::memory("m", files.collect::<BTreeMap<_, _>>())
    }

    fn names(folder: &Folder) -> Vec<String> {
        cases(folder).into_iter().map(|case| case.name).collect()
    }

    #[test]
    fn test_001_cases_are_declared_or_found_by_name() {
        let folder = folder(&[
            (
                "module.yaml",
                "tests:\n  - tests/a.input.json -> tests/a.expected.json\n  - in/b.json -> in/b.out.json\n",
            ),
            ("tests/a.input.json", "{}"),
            ("tests/a.expected.json", "{}"),
            ("tests/c.input.json", "{}"),
            ("tests/c.expected.json", "{}"),
            ("tests/c.reply.txt", ""),
            ("tests/readme.md", ""),
        ]);
        let found = cases(&folder);
        let files =
            found.iter().map(|case| (case.name.as_str(), case.expected.as_str(), case.reply.as_str()));
        let files: Vec<_> = files.collect();
        assert_eq!(
            files,
            [
                ("a", "tests/a.expected.json", "tests/a.reply.txt"),
                ("c", "tests/c.expected.json", "tests/c.reply.txt"),
                ("in/b", "in/b.out.json", "in/b.reply.txt"),
            ]
        );
    }

    // COMP-002: a composition asks several modules, so a case of it has several replies.
    #[test]
    fn replies_of_parts_belong_to_their_case() {
        let folder = folder(&[
            ("tests/a.input.json", "{}"),
            ("tests/a.expected.json", r#"{"ok": true}"#),
            ("tests/a.reply.txt", "own"),
            ("tests/a.part-one.reply.txt", "one"),
            ("tests/b.c.input.json", "{}"),
            ("tests/b.c.expected.json", r#"{"ok": true}"#),
            ("tests/b.c.reply.txt", "dotted"),
        ]);
        assert_eq!(names(&folder), ["a", "b.c"]);
        let case = cases(&folder).remove(0);
        let replies = case.read(&folder, "m").unwrap().replies;
        let replies: Vec<(&str, &str)> = replies.iter().map(|(name, text)| (&**name, &*text.text)).collect();
        assert_eq!(replies, [("m", "own"), ("part-one", "one")]);
        assert_eq!(case.reply_of("part-one", "m"), "tests/a.part-one.reply.txt");
        assert_eq!(case.reply_of("m", "m"), "tests/a.reply.txt");
    }

    #[test]
    fn one_input_may_have_two_expectations() {
        let folder = folder(&[
            ("module.yaml", "tests: [tests/a.input.json -> x.json, tests/a.input.json -> y.json]\n"),
            ("tests/a.input.json", "{}"),
            ("tests/a.reply.txt", ""),
        ]);
        assert_eq!(names(&folder), ["a -> x.json", "a -> y.json"]);
    }

    #[test]
    fn half_a_case_is_a_case_with_an_error() {
        let folder = folder(&[
            ("module.yaml", "tests: [no arrow here]\n"),
            ("tests/a.input.json", "{}"),
            ("tests/b.expected.json", r#"{"ok": true}"#),
            ("tests/c.reply.txt", "{}"),
        ]);
        let found = cases(&folder);
        let half = found.iter().find(|case| case.name == "a").unwrap();
        assert!(half.read(&folder, "m").unwrap().expected.is_none(), "it can be accepted");
        let errors: Vec<String> = found.iter().filter_map(|case| case.read(&folder, "m").err()).collect();
        assert_eq!(
            errors,
            [
                "no such file: `tests/b.input.json`",
                "no such file: `tests/c.input.json`",
                "an entry of `tests` has an arrow `->` between two paths",
            ]
        );
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let check = |input: &str, expected: &str| {
            let folder = folder(&[("tests/a.input.json", input), ("tests/a.expected.json", expected)]);
            cases(&folder)[0].read(&folder, "m").err().unwrap_or_default()
        };
        assert_eq!(check("{\n1", "{}"), "`tests/a.input.json` is not JSON, line 2: key must be a string");
        assert_eq!(check("{}", "{}"), "invalid `tests/a.expected.json`: the expectation is empty");
        assert_eq!(
            check("{}", r#"{"a": 1, "ok": true, "a": 2}"#),
            "`tests/a.expected.json` has a duplicate member: `/a`"
        );
        assert_eq!(check("{}", r#"{"ok": true}"#), "");
    }
}
