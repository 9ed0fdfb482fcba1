//! The cases of modules for those who look at them, and answers that become one: a golden test, a worked example, or a labelled
//! case. Replaces no case that is there, and writes only where the workshop lets it.

use std::sync::Arc;

use cogn::workshop::FolderWorkshop;
use cognitive_contract::review::expectation_of;
use cognitive_contract::text::is_plain_name;
use cognitive_contract::workshop::{
    BeforeChange, CaseBook, CaseKind, ChangedFiles, KeptCase, ModuleCase, ModuleWorkshop, NewCase,
};
use cognitive_contract::{ErrorCode, Failure};
use cognitive_library::folder::{Folder, JSON_LIMIT};
use serde_json::{Value, json};

use crate::eval;
use crate::golden::{self, first_expectation};

/// Where labelled cases of a module are, and the file that new ones go to.
const CASES: &str = "cases";
const NEW_CASES: &str = "cases/kept.jsonl";
/// More cases than these are not shown.
const MAX_SHOWN: usize = 2_000;

/// The cases in the folders of a workshop.
pub struct FolderCases {
    workshop: Arc<FolderWorkshop>,
}

impl FolderCases {
    /// Those of the modules of a workshop.
    #[must_use]
    pub fn new(workshop: Arc<FolderWorkshop>) -> Self {
        Self { workshop }
    }
}

impl CaseBook for FolderCases {
    fn cases(&self, module: &str) -> Result<Vec<ModuleCase>, Failure> {
        let folder = self.workshop.folder(module)?;
        let read = |path: &str| {
            let text = folder.read(path, JSON_LIMIT).ok()?;
            cognitive_contract::json::parse(&text).ok()
        };
        let tests = golden::cases(&folder).into_iter().filter_map(|case| {
            let (input, expect) = (read(&case.input)?, read(&case.expected));
            Some(ModuleCase { id: case.name, set: "tests".to_owned(), input, expect })
        });
        Ok(tests.chain(labelled(&folder)).take(MAX_SHOWN).collect())
    }

    fn keep(&self, module: &str, case: &NewCase, before: BeforeChange<'_>) -> Result<KeptCase, Failure> {
        let name = case.name.trim();
        if !is_plain_name(name) {
            let message = "a case is called by letters, digits, `-` and `_`, at most 128 of them";
            return Err(
                Failure::new(ErrorCode::InvalidInput, message).suggest("Choose a name such as `two-refunds`")
            );
        }
        if !case.input.is_object() {
            return Err(Failure::new(ErrorCode::InvalidInput, "the input of a case is an object"));
        }
        let folder = self.workshop.folder(module)?;
        let shown = self.workshop.files(module)?;
        let files = match case.kind {
            CaseKind::Golden => golden_files(name, case)?,
            CaseKind::Example => example_files(name, case)?,
            CaseKind::Labelled => labelled_file(&folder, name, case)?,
        };
        let is_there = |path: &String| shown.files.iter().any(|file| file.path == *path);
        if case.kind != CaseKind::Labelled && files.keys().any(is_there) {
            return Err(taken(name));
        }
        let saved = self.workshop.save(module, &shown.hash, &files, before)?;
        Ok(KeptCase { paths: files.into_keys().collect(), hash: saved.hash, findings: saved.findings })
    }
}

fn labelled(folder: &Folder) -> Vec<ModuleCase> {
    let names = folder.names_in(CASES).into_iter().filter(|name| name.strip_suffix(".jsonl").is_some());
    let of_file = |name: String| {
        let text = folder.read(&format!("{CASES}/{name}"), JSON_LIMIT).unwrap_or_default();
        // A file with a line that cannot be used is no set of cases; `cogn eval` says which line.
        let cases = eval::parse(&text).unwrap_or_default();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        cases.into_iter().zip(lines).map(move |(case, line)| ModuleCase {
            id: case.id,
            set: name.clone(),
            input: case.input,
            expect: line.get("expect").cloned(),
        })
    };
    names.flat_map(of_file).collect()
}

fn taken(name: &str) -> Failure {
    Failure::new(ErrorCode::InvalidReference, format!("there is a case of this name: `{name}`"))
        .with_detail("kind", json!("conflict"))
        .suggest("Choose another name")
}

fn unusable(why: String) -> Failure {
    Failure::new(ErrorCode::InvalidInput, why).suggest("Keep an envelope as a run has answered it")
}

fn pretty(value: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default())
}

/// The three files of a golden test. Where nobody recorded what the model wrote, the envelope stands for it.
fn golden_files(name: &str, case: &NewCase) -> Result<ChangedFiles, Failure> {
    let expected = first_expectation(&case.envelope).map_err(unusable)?;
    let reply = match &case.reply {
        Some(reply) => reply.clone(),
        None => pretty(&said(&case.envelope)?),
    };
    Ok(ChangedFiles::from([
        (format!("tests/{name}.input.json"), Some(pretty(&case.input))),
        (format!("tests/{name}.expected.json"), Some(expected)),
        (format!("tests/{name}.reply.txt"), Some(reply)),
    ]))
}

fn example_files(name: &str, case: &NewCase) -> Result<ChangedFiles, Failure> {
    if case.envelope.get("ok") != Some(&Value::Bool(true)) {
        return Err(unusable("a worked example is an answer that succeeded".to_owned()));
    }
    Ok(ChangedFiles::from([
        (format!("examples/{name}.input.json"), Some(pretty(&case.input))),
        (format!("examples/{name}.answer.json"), Some(pretty(&said(&case.envelope)?))),
    ]))
}

/// What a model says of an envelope: without what the runtime adds to it.
fn said(envelope: &Value) -> Result<Value, Failure> {
    let member = |path: &str| envelope.pointer(path).cloned();
    let (Some(confidence), Some(risk), Some(explain)) =
        (member("/meta/confidence"), member("/meta/risk"), member("/meta/explain"))
    else {
        return Err(unusable("the envelope has no `meta` with confidence, risk and explain".to_owned()));
    };
    let meta = json!({ "confidence": confidence, "risk": risk, "explain": explain });
    match (member("/data"), member("/error")) {
        (Some(data), None) => Ok(json!({ "ok": true, "meta": meta, "data": data })),
        (None, Some(error)) => Ok(json!({ "ok": false, "meta": meta, "error": error })),
        _ => Err(unusable("an envelope has `data` or `error`".to_owned())),
    }
}

/// The file of labelled cases with one more line.
fn labelled_file(folder: &Folder, name: &str, case: &NewCase) -> Result<ChangedFiles, Failure> {
    let data = case.envelope.get("data").unwrap_or(&Value::Null);
    let Some(expect) = expectation_of(data) else {
        return Err(unusable(
            "there is nothing in `data` besides `rationale` that could be expected".to_owned(),
        ));
    };
    let mut text = folder.read(NEW_CASES, JSON_LIMIT).unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let is_taken = |line: &str| {
        serde_json::from_str::<Value>(line).is_ok_and(|line| line.get("id").is_some_and(|id| id == name))
    };
    if text.lines().any(is_taken) {
        return Err(taken(name));
    }
    let line = json!({ "id": name, "input": case.input, "expect": expect }).to_string();
    text.push_str(&line);
    text.push('\n');
    Ok(ChangedFiles::from([(NEW_CASES.to_owned(), Some(text))]))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cognitive_library::Library;

    use super::*;

    struct Place {
        dir: tempfile::TempDir,
        book: FolderCases,
    }

    /// A project with a copy of a bundled module, whose own tests it brings along.
    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let modules = dir.path().join("cognitive/modules");
        let files =
            cognitive_library::files_of(&cognitive_library::bundled::find("text-classifier").unwrap())
                .unwrap();
        cognitive_library::put_folder(&modules, "text-classifier", &files).unwrap();
        let workshop = FolderWorkshop::new(Library::new(dir.path(), None, &[])).editing(&[modules]).unwrap();
        Place { book: FolderCases::new(Arc::new(workshop)), dir }
    }

    fn answered(kind: CaseKind, name: &str) -> NewCase {
        NewCase {
            kind,
            name: name.to_owned(),
            input: json!({ "text": "What a lovely day on the train." }),
            envelope: json!({
                "ok": true,
                "meta": { "confidence": 0.9, "risk": "low", "explain": "Praise.", "trace_id": "t", "latency_ms": 3 },
                "data": { "rationale": "Lovely is praise.", "sentiment": "positive", "label": "train" },
            }),
            reply: None,
        }
    }

    #[test]
    fn a_kept_answer_is_a_test_that_passes_an_example_or_a_line_of_cases() {
        let Place { dir, book } = place();
        let before = book.cases("text-classifier").unwrap().len();
        for kind in [CaseKind::Golden, CaseKind::Example, CaseKind::Labelled] {
            let kept = book.keep("text-classifier", &answered(kind, "on-the-train"), &|| Ok(())).unwrap();
            let errors = kept.findings.iter().filter(|finding| finding["severity"] == "error");
            assert_eq!(errors.count(), 0, "{:?}", kept.findings);
        }
        let cases = book.cases("text-classifier").unwrap();
        assert_eq!(cases.len(), before + 2);
        let labelled = cases.iter().find(|case| case.set == "kept.jsonl").unwrap();
        assert_eq!(labelled.expect.as_ref().unwrap()["sentiment"], "positive");
        let folder = Folder::Disk(dir.path().join("cognitive/modules/text-classifier"));
        let reply = folder.read("tests/on-the-train.reply.txt", JSON_LIMIT).unwrap();
        assert!(reply.contains("Praise.") && !reply.contains("trace_id"), "{reply}");
        let loaded = cognitive_library::load(&folder).unwrap();
        assert!(loaded.examples.iter().any(|example| example.name == "on-the-train"));
    }

    #[test]
    fn no_case_replaces_another_and_no_name_leads_elsewhere() {
        let Place { dir: _dir, book } = place();
        for kind in [CaseKind::Golden, CaseKind::Example, CaseKind::Labelled] {
            let case = answered(kind, "twice");
            book.keep("text-classifier", &case, &|| Ok(())).unwrap();
            let refused = book.keep("text-classifier", &case, &|| Ok(())).unwrap_err();
            assert!(refused.message().contains("`twice`"), "{}", refused.message());
        }
        for name in ["", "../x", "a/b", "a b", ".."] {
            assert!(
                book.keep("text-classifier", &answered(CaseKind::Golden, name), &|| Ok(())).is_err(),
                "{name}"
            );
        }
        let broken = NewCase { envelope: json!({ "ok": true }), ..answered(CaseKind::Golden, "x") };
        assert!(book.keep("text-classifier", &broken, &|| Ok(())).is_err());
        assert!(
            book.keep("summarizer", &answered(CaseKind::Golden, "x"), &|| Ok(())).is_err(),
            "not editable"
        );
    }

    #[test]
    fn what_cannot_be_recorded_is_not_written() {
        let Place { dir, book } = place();
        let refuse = || Err(Failure::new(ErrorCode::InternalError, "not recorded"));
        assert!(book.keep("text-classifier", &answered(CaseKind::Golden, "x"), &refuse).is_err());
        assert!(
            fs::metadata(dir.path().join("cognitive/modules/text-classifier/tests/x.input.json")).is_err()
        );
    }
}
