//! Lists the cases of modules, judges answers against them, and stores answers as new cases: a golden test, a
//! worked example, or a labelled case. Never replaces an existing case, and writes only where the module editor
//! allows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cognitive_contract::recorded_reply::dialect_place;
use cognitive_contract::text::{cut, is_plain_name};
use cognitive_contract::{ErrorCode, Failure, RecordedReply};
use cognitive_library::folder::{Folder, JSON_LIMIT};
use cognitive_library::formats;
use cognitive_ports::module_editor::{
    BeforeChange, CaseBook, CaseKind, CaseVerdict, ChangedFiles, KeptCase, ModuleCase, ModuleEditor, NewCase,
    WrongPlace,
};
use cognitive_ports::review::expectation_of;
use cognitive_setup::module_editor::FolderEditor;
use serde_json::{Value, json};

use crate::eval::{self, FieldOutcome};
use crate::expect::Difference;
use crate::golden::{self, GoldenCase, first_expectation};

/// The folder with the labelled cases of a module.
const CASES: &str = "cases";
/// The name of the set of golden tests.
const TESTS: &str = "tests";
const NEW_CASES: &str = "cases/kept.jsonl";
/// The most cases that are listed. The list is one response of the server.
const MAX_SHOWN: usize = 2_000;

/// The cases in the folders of a module editor.
pub struct FolderCases {
    module_editor: Arc<FolderEditor>,
}

impl FolderCases {
    /// A case book over the modules of a module editor.
    #[must_use]
    pub fn new(module_editor: Arc<FolderEditor>) -> Self {
        Self { module_editor }
    }
}

impl CaseBook for FolderCases {
    fn cases(&self, module: &str) -> Result<Vec<ModuleCase>, Failure> {
        let folder = self.module_editor.folder(module)?;
        let read = |path: &str| {
            let text = folder.read(path, JSON_LIMIT).ok()?;
            cognitive_contract::json::parse(&text).ok()
        };
        let tests = golden::cases(&folder).into_iter().filter_map(|case| {
            let (input, expect) = (read(&case.input)?, read(&case.expected));
            Some(ModuleCase { id: case.name, set: TESTS.to_owned(), input, expect })
        });
        Ok(tests.chain(labelled_cases(&folder)).take(MAX_SHOWN).collect())
    }

    fn judge(
        &self,
        module: &str,
        set: &str,
        id: &str,
        envelopes: &[Value],
    ) -> Result<Vec<CaseVerdict>, Failure> {
        let folder = self.module_editor.folder(module)?;
        let unknown = || {
            let message = format!("no such case of the module: `{}` of `{}`", cut(id, 128), cut(set, 128));
            Failure::new(ErrorCode::InvalidReference, message)
                .suggest("`GET /v1/modules/{module}/cases` lists the cases")
        };
        if set == TESTS {
            let case = golden::cases(&folder).into_iter().find(|case| case.name == id).ok_or_else(unknown)?;
            let of = |envelope: &Value| case.differences(&folder, envelope).map(from_differences);
            return envelopes.iter().map(of).collect::<Result<_, _>>().map_err(unjudged_failure);
        }
        let files = folder.names_in(CASES);
        let file = files.iter().find(|name| name.as_str() == set).ok_or_else(unknown)?;
        let text = folder.read(&format!("{CASES}/{file}"), JSON_LIMIT).map_err(|_| unknown())?;
        let cases = eval::parse(&text).map_err(unjudged_failure)?;
        let case = cases.iter().find(|case| case.id == id).ok_or_else(unknown)?;
        Ok(envelopes.iter().map(|envelope| from_outcomes(case.expect.judge(&case.input, envelope))).collect())
    }

    fn keep(&self, module: &str, case: &NewCase, before: BeforeChange<'_>) -> Result<KeptCase, Failure> {
        let name = case.name.trim();
        if !is_plain_name(name) {
            let message = "a case name has letters, digits, `-` and `_`, at most 128 characters";
            return Err(
                Failure::new(ErrorCode::InvalidInput, message).suggest("Choose a name such as `two-refunds`")
            );
        }
        if !case.input.is_object() {
            return Err(Failure::new(ErrorCode::InvalidInput, "the input of a case must be an object"));
        }
        let folder = self.module_editor.folder(module)?;
        let shown = self.module_editor.files(module)?;
        let files = match case.kind {
            CaseKind::Golden => golden_files(&folder, name, case)?,
            CaseKind::Example => example_files(name, case)?,
            CaseKind::Labelled => labelled_file(&folder, name, case)?,
        };
        let is_there = |path: &String| shown.files.iter().any(|file| file.path == *path);
        if case.kind != CaseKind::Labelled && files.keys().any(is_there) {
            return Err(case_exists(name));
        }
        let saved = self.module_editor.save(module, &shown.hash, &files, before)?;
        let recorded = case.kind == CaseKind::Golden && case.replies.is_some();
        let paths = files.into_keys().collect();
        Ok(KeptCase { paths, hash: saved.hash, findings: saved.findings, recorded })
    }
}

fn labelled_cases(folder: &Folder) -> Vec<ModuleCase> {
    let names = folder.names_in(CASES).into_iter().filter(|name| name.strip_suffix(".jsonl").is_some());
    let of_file = |name: String| {
        let text = folder.read(&format!("{CASES}/{name}"), JSON_LIMIT).unwrap_or_default();
        // A file with an invalid line is not a set of cases; `cogn eval` reports the line.
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

fn unjudged_failure(why: String) -> Failure {
    Failure::new(ErrorCode::InvalidReference, format!("the case is invalid: {}", cut(&why, 300)))
        .suggest("Correct its expectation; `cogn validate` shows the place")
}

fn from_differences(differences: Vec<Difference>) -> CaseVerdict {
    let wrong = differences.into_iter().map(|each| WrongPlace {
        place: each.path,
        expected: each.expected,
        got: each.got,
    });
    let wrong: Vec<WrongPlace> = wrong.collect();
    CaseVerdict { right: wrong.is_empty(), wrong }
}

fn from_outcomes(outcomes: Vec<FieldOutcome>) -> CaseVerdict {
    let wrong = outcomes.into_iter().filter(|outcome| !outcome.right).map(|outcome| WrongPlace {
        place: outcome.place,
        expected: outcome.expected,
        got: outcome.got,
    });
    let wrong: Vec<WrongPlace> = wrong.collect();
    CaseVerdict { right: wrong.is_empty(), wrong }
}

fn case_exists(name: &str) -> Failure {
    Failure::new(ErrorCode::InvalidReference, format!("the case already exists: `{name}`"))
        .with_detail("kind", json!("conflict"))
        .suggest("Choose another name")
}

fn unusable(why: String) -> Failure {
    Failure::new(ErrorCode::InvalidInput, why).suggest("Send an envelope as returned by a run")
}

fn pretty(value: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default())
}

/// The files of a golden test: input, expectation, and the replies to the module and its parts. Without
/// recorded replies, the reply is rebuilt from the envelope.
fn golden_files(folder: &Folder, name: &str, case: &NewCase) -> Result<ChangedFiles, Failure> {
    let expected = first_expectation(&case.envelope).map_err(unusable)?;
    let manifest = formats::read_manifest(folder).map(|(_, manifest)| manifest).unwrap_or_default();
    let own = manifest.get("name").and_then(Value::as_str).map_or_else(|| folder.name(), str::to_owned);
    let replies = match &case.replies {
        Some(replies) => replies.clone(),
        // An envelope is what was made of a reply: no null in it replaces a missing member.
        None => BTreeMap::from([(own.clone(), RecordedReply::from(pretty(&model_text(&case.envelope)?)))]),
    };
    let test = GoldenCase::by_name(name);
    let mut files = ChangedFiles::new();
    for (module, reply) in replies {
        let path = test.reply_of(&module, &own);
        if let Some((place, dialect)) = dialect_place(&path).zip(reply.dialect_file()) {
            files.insert(place, Some(dialect));
        }
        files.insert(path, Some(reply.text));
    }
    files.insert(test.input, Some(pretty(&case.input)));
    files.insert(test.expected, Some(expected));
    Ok(files)
}

fn example_files(name: &str, case: &NewCase) -> Result<ChangedFiles, Failure> {
    if case.envelope.get("ok") != Some(&Value::Bool(true)) {
        return Err(unusable("a worked example must be a success".to_owned()));
    }
    Ok(ChangedFiles::from([
        (format!("examples/{name}.input.json"), Some(pretty(&case.input))),
        (format!("examples/{name}.answer.json"), Some(pretty(&model_text(&case.envelope)?))),
    ]))
}

/// The envelope as a model would write it, without the members that the runtime adds.
fn model_text(envelope: &Value) -> Result<Value, Failure> {
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
        _ => Err(unusable("an envelope must have `data` or `error`".to_owned())),
    }
}

/// The file of labelled cases with one more line appended.
fn labelled_file(folder: &Folder, name: &str, case: &NewCase) -> Result<ChangedFiles, Failure> {
    let data = case.envelope.get("data").unwrap_or(&Value::Null);
    let Some(expect) = expectation_of(data) else {
        return Err(unusable("`data` has nothing to expect besides `rationale`".to_owned()));
    };
    let mut text = folder.read(NEW_CASES, JSON_LIMIT).unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let is_taken = |line: &str| {
        serde_json::from_str::<Value>(line).is_ok_and(|line| line.get("id").is_some_and(|id| id == name))
    };
    if text.lines().any(is_taken) {
        return Err(case_exists(name));
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
    use cognitive_schema::SchemaTarget;

    use super::*;

    struct Place {
        dir: tempfile::TempDir,
        book: FolderCases,
    }

    /// A project with a copy of a bundled module, including its tests.
    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let modules = dir.path().join("cognitive/modules");
        let files = cognitive_library::files_of(
            &cognitive_library::bundled_modules::find("text-classifier").unwrap(),
        )
        .unwrap();
        cognitive_library::put_folder(&modules, "text-classifier", &files).unwrap();
        let module_editor =
            FolderEditor::new(Library::new(dir.path(), None, &[])).with_editable(&[modules]).unwrap();
        Place { book: FolderCases::new(Arc::new(module_editor)), dir }
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
            replies: None,
        }
    }

    #[test]
    fn a_kept_answer_is_a_test_that_passes_an_example_or_a_line_of_cases() {
        let Place { dir, book } = place();
        let before = book.cases("text-classifier").unwrap().len();
        for kind in [CaseKind::Golden, CaseKind::Example, CaseKind::Labelled] {
            let kept = book.keep("text-classifier", &answered(kind, "on-the-train"), &|| Ok(())).unwrap();
            let errors = kept.findings.iter().filter(|finding| finding.severity == "error");
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
    fn a_test_is_kept_with_what_the_model_wrote_and_passes() {
        let Place { dir, book } = place();
        let raw = "Here it is:\n```json\n{\"ok\": true, \"meta\": {\"confidence\": 0.9, \"risk\": \"low\", \"explain\": \"Praise.\"}, \
                   \"data\": {\"rationale\": \"Lovely is praise.\", \"sentiment\": \"positive\", \"label\": \"train\"}}\n```";
        let reply = RecordedReply::from(raw.to_owned());
        let replies = BTreeMap::from([("text-classifier".to_owned(), reply)]);
        let case = NewCase { replies: Some(replies), ..answered(CaseKind::Golden, "on-the-train") };
        let kept = book.keep("text-classifier", &case, &|| Ok(())).unwrap();
        assert!(kept.recorded && kept.paths.contains(&"tests/on-the-train.reply.txt".to_owned()), "{kept:?}");
        let folder = Folder::Disk(dir.path().join("cognitive/modules/text-classifier"));
        assert_eq!(folder.read("tests/on-the-train.reply.txt", JSON_LIMIT).unwrap(), raw);
        let subject = golden::TestedFolder { name: "text-classifier".to_owned(), folder };
        let report = golden::run_recorded(&[subject], &golden::GoldenOptions::default()).unwrap();
        let case = report.modules[0].cases.iter().find(|case| case.name == "on-the-train").unwrap();
        assert!(case.has_passed(), "{:?}", case.status);
        // Replies to parts of a composition have the part's name; a run without a model call has no reply.
        let parts = BTreeMap::from([("code-reviewer".to_owned(), RecordedReply::from("{}".to_owned()))]);
        let of_part = NewCase { replies: Some(parts), ..answered(CaseKind::Golden, "of-a-part") };
        let kept = book.keep("text-classifier", &of_part, &|| Ok(())).unwrap();
        assert!(kept.paths.contains(&"tests/of-a-part.code-reviewer.reply.txt".to_owned()), "{kept:?}");
        let none = NewCase { replies: Some(BTreeMap::new()), ..answered(CaseKind::Golden, "of-nobody") };
        assert_eq!(book.keep("text-classifier", &none, &|| Ok(())).unwrap().paths.len(), 2);
    }

    #[test]
    fn a_test_is_kept_with_the_dialect_of_its_reply_and_passes_d_18() {
        let Place { dir, book } = place();
        let mut answer = answered(CaseKind::Golden, "on-the-train");
        let mut raw = model_text(&answer.envelope).unwrap();
        raw["error"] = Value::Null;
        raw["data"]["extensions"] = Value::Null;
        let reply = RecordedReply::new(raw.to_string(), Some(SchemaTarget::OpenAi));
        answer.replies = Some(BTreeMap::from([("text-classifier".to_owned(), reply)]));
        let kept = book.keep("text-classifier", &answer, &|| Ok(())).unwrap();
        assert!(kept.paths.contains(&"tests/on-the-train.reply.json".to_owned()), "{kept:?}");
        let folder = Folder::Disk(dir.path().join("cognitive/modules/text-classifier"));
        let subject = golden::TestedFolder { name: "text-classifier".to_owned(), folder: folder.clone() };
        let report = golden::run_recorded(&[subject], &golden::GoldenOptions::default()).unwrap();
        let case = report.modules[0].cases.iter().find(|case| case.name == "on-the-train").unwrap();
        assert!(case.has_passed(), "{:?}", case.status);
        let warnings = &case.envelope.as_ref().unwrap()["meta"]["warnings"];
        assert!(warnings.is_null(), "{warnings}");
    }

    #[test]
    fn answers_are_judged_by_what_their_case_expects() {
        let Place { dir: _dir, book } = place();
        for kind in [CaseKind::Golden, CaseKind::Labelled] {
            book.keep("text-classifier", &answered(kind, "on-the-train"), &|| Ok(())).unwrap();
        }
        let right = answered(CaseKind::Golden, "").envelope;
        let mut wrong = right.clone();
        wrong["data"]["sentiment"] = json!("negative");
        for set in ["tests", "kept.jsonl"] {
            let envelopes = [right.clone(), wrong.clone(), json!({ "ok": false }), Value::Null];
            let verdicts = book.judge("text-classifier", set, "on-the-train", &envelopes).unwrap();
            assert_eq!(
                verdicts.iter().map(|each| each.right).collect::<Vec<_>>(),
                [true, false, false, false]
            );
            let place = &verdicts[1].wrong[0];
            assert!(place.place.contains("sentiment") && place.got.contains("negative"), "{set}: {place:?}");
            assert!(book.judge("text-classifier", set, "no-such-case", &envelopes).is_err());
        }
        for set in ["", "../cases/kept.jsonl", "none.jsonl"] {
            assert!(book.judge("text-classifier", set, "on-the-train", &[]).is_err(), "{set}");
        }
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
