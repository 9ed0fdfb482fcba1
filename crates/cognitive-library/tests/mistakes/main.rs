//! Tables of authors' mistakes: the changes to a valid module and the expected findings, each with its file, line and
//! column and with words of its message and hint. No other finding is allowed, so that no mistake is hidden. The valid
//! modules, the bundled ones and those of the documents have no finding at all.
//!
//! A table is a text file. `# MODULE` names the valid module of the following mistakes, a folder in `modules`. A mistake is
//! `? NAME`, then its changes and findings. A change is `@ FILE`, `- OLD TEXT` and `+ NEW TEXT`, where `\n`, `\t` and `\s`
//! are a line break, a tab and a space. Without old text it replaces the whole file, and without new text it deletes the
//! old. A finding is `= SEVERITY RULE LOCATION ~ WORDS ~ WORDS`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

mod documents;

use std::collections::BTreeMap;
use std::path::Path;

use cognitive_library::{
    Finding, Folder, Library, Mode, Severity, ValidationReport, ValidationSurroundings, validate_with,
};
use cognitive_testing::GoldenExpectations;

const TABLES: [&str; 4] = [
    include_str!("manifest.txt"),
    include_str!("contract.txt"),
    include_str!("expected.txt"),
    include_str!("composition.txt"),
];

#[derive(Default)]
struct Mistake {
    /// The valid module.
    module: String,
    what: String,
    /// File, old text and new text.
    edits: Vec<[String; 3]>,
    /// Severity, rule and location of every finding, with words of its message and hint after ` ~ `.
    finds: Vec<String>,
}

fn mistakes(table: &str) -> Vec<Mistake> {
    let (mut module, mut mistakes) = (String::new(), Vec::<Mistake>::new());
    for line in table.lines().filter(|line| !line.is_empty()) {
        let (sign, text) = line.split_at(2);
        let text = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\s", " ");
        match (sign, mistakes.last_mut()) {
            ("# ", _) => module = text,
            ("? ", _) => mistakes.push(Mistake { module: module.clone(), what: text, ..Mistake::default() }),
            ("@ ", Some(mistake)) => mistake.edits.push([text, String::new(), String::new()]),
            ("- ", Some(mistake)) => mistake.edits.last_mut().unwrap()[1] = text,
            ("+ ", Some(mistake)) => mistake.edits.last_mut().unwrap()[2] = text,
            ("= ", Some(mistake)) => mistake.finds.push(text),
            _ => panic!("no line of a table: {line}"),
        }
    }
    mistakes
}

/// The files of a valid module.
fn module(name: &str) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes/modules").join(name);
    let (mut files, mut open) = (BTreeMap::new(), vec![folder.clone()]);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let name = path.strip_prefix(&folder).unwrap().to_str().unwrap().replace('\\', "/");
            files.insert(name, std::fs::read_to_string(path).unwrap());
        }
    }
    files
}

/// A project with the installed modules `ticket` and `answer`.
pub(crate) struct Project {
    _folder: tempfile::TempDir,
    pub(crate) library: Library,
}

impl Project {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["ticket", "answer"] {
            for (path, text) in module(name) {
                let path = folder.path().join("cognitive/modules").join(name).join(path);
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

fn changed(mistake: &Mistake) -> BTreeMap<String, String> {
    let mut files = module(&mistake.module);
    for [file, from, to] in &mistake.edits {
        let text = files.entry(file.clone()).or_default();
        assert!(text.contains(from), "{}: `{from}` is not in {file}", mistake.what);
        *text = if from.is_empty() { to.clone() } else { text.replacen(from, to, 1) };
    }
    files
}

/// Compares the whole table before it reports differences.
fn check(table: &str) {
    let (project, mistakes) = (Project::new(), mistakes(table));
    let mut wrong = Vec::new();
    for mistake in &mistakes {
        let report = project.validate(&mistake.module, &changed(mistake));
        let found: Vec<(String, String)> = report.findings.iter().map(|each| told(each, &report)).collect();
        let is_as_expected = |((place, words), wanted): (&(String, String), &String)| {
            let mut pieces = wanted.split(" ~ ");
            let is_there = pieces.next() == Some(place) && wanted.contains(" ~ ");
            is_there && pieces.all(|piece| words.contains(piece))
        };
        let is_same = found.len() == mistake.finds.len();
        if !(is_same && found.iter().zip(&mistake.finds).all(is_as_expected)) {
            wrong.push(format!("{}\n  expected {:#?}\n  found {found:#?}", mistake.what, mistake.finds));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), mistakes.len(), wrong.join("\n"));
}

#[test]
fn the_good_modules_have_no_finding() {
    let project = Project::new();
    for name in ["ticket", "answer", "desk", "guess", "caller"] {
        let report = project.validate(name, &module(name));
        let found: Vec<_> = report.findings.iter().map(|each| told(each, &report)).collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn val_002_mistakes_in_the_manifest() {
    check(TABLES[0]);
}

#[test]
fn val_002_mistakes_in_schema_prompt_and_tests() {
    check(TABLES[1]);
    check(TABLES[2]);
}

#[test]
fn comp_042_mistakes_in_compositions() {
    check(TABLES[3]);
}

#[test]
fn there_are_at_least_sixty_mistakes_and_each_has_a_name_of_its_own() {
    let names: Vec<String> = TABLES.into_iter().flat_map(mistakes).map(|mistake| mistake.what).collect();
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
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
