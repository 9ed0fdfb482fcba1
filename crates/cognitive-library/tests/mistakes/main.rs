//! A table of authors' mistakes: the change to a valid module and the expected finding, with its file, line and column
//! and with words of its message and hint. No other finding is allowed, so that no mistake is hidden. The valid
//! modules, the bundled ones and those of the documents have no finding at all.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

mod base;
mod composition;
mod contract;
mod documents;
mod expected;
mod manifest;

use std::collections::BTreeMap;

use cognitive_library::{
    Finding, Folder, Library, Mode, Severity, ValidationReport, ValidationSurroundings, validate_with,
};
use cognitive_testing::GoldenExpectations;

/// One mistake.
pub(crate) struct Mistake {
    /// A description of the mistake.
    pub(crate) what: &'static str,
    /// File, old text and new text. An empty old text means the whole file.
    pub(crate) edits: &'static [(&'static str, &'static str, &'static str)],
    /// Severity, rule and location of every finding, with words of its message and hint after ` ~ `.
    pub(crate) finds: &'static [&'static str],
}

/// A project with the installed modules `ticket` and `answer`.
pub(crate) struct Project {
    _folder: tempfile::TempDir,
    pub(crate) library: Library,
}

impl Project {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, files) in [("ticket", base::ticket()), ("answer", base::answer())] {
            let place = folder.path().join("cognitive/modules").join(name);
            for (path, text) in files {
                let path = place.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
        }
        let library = Library::new(folder.path(), None, &[]);
        Self { _folder: folder, library }
    }

    pub(crate) fn validate(&self, name: &str, files: &BTreeMap<String, String>) -> ValidationReport {
        let bytes = files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect();
        validate_with(around(&self.library), &Folder::memory(name, bytes), Mode::Strict)
    }
}

/// The context that `cogn validate` uses.
pub(crate) fn around(library: &Library) -> ValidationSurroundings<'_> {
    ValidationSurroundings { library: Some(library), expectations: Some(&GoldenExpectations) }
}

/// Severity, rule and location of a finding, and its message and hint.
fn told(finding: &Finding, report: &ValidationReport) -> (String, String) {
    let severity = if finding.severity == Severity::Error { "error" } else { "warning" };
    let place = report.sources.locate(finding);
    let place = place.map_or(String::new(), |place| format!(":{}:{}", place.line, place.column));
    let hint = finding.hint.as_deref().unwrap_or_default();
    (format!("{severity} {} {}{place}", finding.rule, finding.file), format!("{} | {hint}", finding.message))
}

fn changed(files: BTreeMap<String, String>, mistake: &Mistake) -> BTreeMap<String, String> {
    let mut files = files;
    for (file, from, to) in mistake.edits {
        match (*from, files.get_mut(*file)) {
            ("", _) => {
                files.insert((*file).to_owned(), (*to).to_owned());
            }
            (from, Some(text)) => {
                assert!(text.contains(from), "{}: `{from}` is not in {file}", mistake.what);
                *text = text.replacen(from, to, 1);
            }
            (_, None) => panic!("{}: no file {file}", mistake.what),
        }
    }
    files
}

/// Compares the whole table before it reports differences.
fn check(name: &str, good: &BTreeMap<String, String>, table: &[Mistake]) {
    let project = Project::new();
    let mut wrong = Vec::new();
    for mistake in table {
        let report = project.validate(name, &changed(good.clone(), mistake));
        let found: Vec<(String, String)> = report.findings.iter().map(|each| told(each, &report)).collect();
        let expected: Vec<(&str, Vec<&str>)> = mistake
            .finds
            .iter()
            .map(|line| {
                let mut pieces = line.split(" ~ ");
                (pieces.next().unwrap_or_default(), pieces.collect())
            })
            .collect();
        let same = found.len() == expected.len()
            && found.iter().zip(&expected).all(|((place, words), (wanted, pieces))| {
                place == wanted && !pieces.is_empty() && pieces.iter().all(|piece| words.contains(piece))
            });
        if !same {
            wrong.push(format!("{}\n  expected {:#?}\n  found {found:#?}", mistake.what, mistake.finds));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

#[test]
fn the_good_modules_have_no_finding() {
    let project = Project::new();
    for (name, files) in [
        ("ticket", base::ticket()),
        ("answer", base::answer()),
        ("desk", base::desk()),
        ("guess", base::guess()),
        ("caller", base::caller()),
    ] {
        let report = project.validate(name, &files);
        let found: Vec<_> = report.findings.iter().map(|each| told(each, &report)).collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn val_002_mistakes_in_the_manifest() {
    check("ticket", &base::ticket(), manifest::YAML);
    check("ticket", &base::ticket(), manifest::KEYS);
}

#[test]
fn val_002_mistakes_in_schema_prompt_and_tests() {
    check("ticket", &base::ticket(), contract::SCHEMA);
    check("ticket", &base::ticket(), contract::PROMPT);
    check("ticket", &base::ticket(), contract::TESTS);
    check("ticket", &base::ticket(), expected::EXPECTED);
}

#[test]
fn comp_042_mistakes_in_compositions() {
    check("desk", &base::desk(), composition::FLOW);
    check("guess", &base::guess(), composition::RULES);
    check("desk", &base::desk(), composition::CALLS);
    check("caller", &base::caller(), composition::ARGUMENTS);
}

#[test]
fn there_are_at_least_sixty_mistakes_and_each_has_a_name_of_its_own() {
    let tables = [
        manifest::YAML,
        manifest::KEYS,
        contract::SCHEMA,
        contract::PROMPT,
        contract::TESTS,
        composition::FLOW,
        composition::RULES,
        composition::CALLS,
        composition::ARGUMENTS,
        expected::EXPECTED,
    ];
    let names: Vec<&str> = tables.into_iter().flatten().map(|mistake| mistake.what).collect();
    let distinct: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), distinct.len());
    assert!(names.len() >= 60, "{}", names.len());
}

/// The same for every bundled module with its parts.
#[test]
fn every_bundled_module_is_clean_together_with_its_parts() {
    let library = Library::default();
    for found in library.list() {
        for mode in [Mode::Standard, Mode::Strict] {
            let report = validate_with(around(&library), &found.folder, mode);
            let found: Vec<_> = report.findings.iter().map(|each| told(each, &report)).collect();
            assert!(found.is_empty(), "{}: {found:#?}", report.name);
        }
    }
}
