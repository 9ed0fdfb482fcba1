//! Tests how cases run: replayed, live, recorded, and with missing files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cognitive_contract::ports::{
    CallSink, DecodeMode, Finish, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};
use cognitive_runtime::Replay;

use super::*;

const MANIFEST: &str = "name: tiny\nversion: 1.0.0\nresponsibility: Answer a question\n";
const SCHEMA: &str = r#"{
    "input": { "type": "object", "required": ["q"] },
    "data": { "type": "object", "required": ["rationale"], "properties": {
        "rationale": { "type": "string" }, "word": { "enum": ["a", "b"] } } },
    "error": { "type": "object" }
}"#;
const REPLY: &str =
    r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"r","word":"a"}}"#;

fn files(tests: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    let module = [("module.yaml", MANIFEST), ("prompt.md", "Answer."), ("schema.json", SCHEMA)];
    module.iter().chain(tests).map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

fn subject(tests: &[(&str, &str)]) -> TestedFolder {
    TestedFolder { name: "tiny".to_owned(), folder: Folder::memory("tiny", files(tests)) }
}

fn on_disk(dir: &Path, tests: &[(&str, &str)]) -> TestedFolder {
    for (path, bytes) in files(tests) {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    TestedFolder { name: "tiny".to_owned(), folder: Folder::Disk(dir.to_owned()) }
}

fn statuses(report: &GoldenReport) -> Vec<(&str, &str)> {
    report
        .modules
        .iter()
        .flat_map(|module| &module.cases)
        .map(|case| (case.name.as_str(), case.status.word()))
        .collect()
}

/// A host that asks this provider alone.
fn live(provider: Arc<dyn Provider>) -> LiveHost {
    let host = Host::new(Arc::new(Library::default()), provider);
    LiveHost { host, options: RunOptions::default(), is_chosen: false }
}

fn run_with(subject: TestedFolder, source: ReplySource, provider: impl Provider + 'static) -> GoldenReport {
    let options = GoldenOptions { source, ..GoldenOptions::default() };
    finish(run(&[subject], &options, Some(live(Arc::new(provider))))).unwrap().unwrap()
}

const ASK: (&str, &str) = ("tests/ask.input.json", r#"{"q": 1}"#);
const EXPECT_A: (&str, &str) = ("tests/ask.expected.json", r#"{"word": "a"}"#);

#[test]
fn test_007_recorded_replies_need_no_model() {
    let report = run_recorded(
        &[subject(&[
            ASK,
            EXPECT_A,
            ("tests/ask.reply.txt", REPLY),
            ("tests/off.input.json", r#"{"q": 1}"#),
            ("tests/off.expected.json", r#"{"word": "b"}"#),
            ("tests/off.reply.txt", REPLY),
            ("tests/silent.input.json", r#"{"q": 1}"#),
            ("tests/silent.expected.json", r#"{"ok": false}"#),
            ("tests/refused.input.json", "{}"),
            ("tests/refused.expected.json", r#"{"error": {"code": "E1001"}}"#),
            ("tests/half.input.json", "{}"),
        ])],
        &GoldenOptions { coverage: true, ..GoldenOptions::default() },
    )
    .unwrap();
    assert_eq!(
        statuses(&report),
        [
            ("ask", "passed"),
            ("half", "broken"),
            ("off", "failed"),
            ("refused", "passed"),
            ("silent", "not_recorded"),
        ],
        "an input that is refused needs no reply, and a silence is no failure of the model"
    );
    assert!(!report.holds());
    let coverage = report.modules[0].coverage.clone().unwrap();
    assert_eq!((coverage.percent(), coverage.missing()), (80, vec!["word = \"b\"".to_owned()]));
    assert_eq!(report.to_value()["modules"][0]["cases"][2]["differences"][0]["path"], "data.word");
}

#[test]
fn fmt_002_a_module_without_tests_is_skipped_and_no_failure() {
    let report = run_recorded(&[subject(&[])], &GoldenOptions::default()).unwrap();
    assert!(report.holds() && report.tally().skipped == 1);
    assert_eq!(report.to_value()["modules"][0]["status"], "no_tests");
}

#[test]
fn a_module_that_cannot_be_loaded_is_a_failure() {
    let folder = Folder::memory("broken", BTreeMap::from([("module.yaml".to_owned(), b"tier: x".to_vec())]));
    let subject = TestedFolder { name: "broken".to_owned(), folder };
    let report = run_recorded(&[subject], &GoldenOptions::default()).unwrap();
    assert!(
        matches!(&report.modules[0].trouble, Some(ModuleTrouble::Unusable { message, .. }) if message.contains("tier"))
    );
    assert_eq!(report.tally().failed, 1);
}

#[test]
fn a_live_run_asks_the_model_and_keeps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let report = run_with(on_disk(dir.path(), &[ASK, EXPECT_A]), ReplySource::Live, Replay::text(REPLY));
    assert!(report.holds(), "{report:?}");
    assert!(!dir.path().join("tests/ask.reply.txt").exists());
    let none = GoldenOptions { source: ReplySource::Live, ..GoldenOptions::default() };
    let failure = finish(run(&[], &none, None)).unwrap().unwrap_err();
    assert_eq!(failure.message(), "no provider is configured");
}

#[test]
fn a_recorded_reply_can_be_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let subject = on_disk(dir.path(), &[ASK, EXPECT_A, ("tests/ask.reply.txt", "old")]);
    let pieces = vec![REPLY[..20].to_owned(), REPLY[20..].to_owned()];
    let report = run_with(subject.clone(), ReplySource::Record, Replay::pieces(pieces, None));
    assert!(report.holds() && report.modules[0].cases[0].recorded, "{report:?}");
    assert_eq!(fs::read_to_string(dir.path().join("tests/ask.reply.txt")).unwrap(), REPLY);
    assert_eq!(fs::read_dir(dir.path().join("tests")).unwrap().count(), 3, "no draft is left behind");
    assert!(run_recorded(&[subject], &GoldenOptions::default()).unwrap().holds());
}

#[test]
fn only_whole_replies_of_modules_on_disk_are_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let disk = on_disk(dir.path(), &[ASK, EXPECT_A]);
    let broke_off = Replay::pieces(vec!["{".to_owned()], Some(ProviderError::Timeout));
    for (subject, provider, words) in [
        (disk.clone(), Box::new(broke_off) as Box<dyn Provider>, "did not finish"),
        (disk, Box::new(CutOff), "did not finish"),
        (subject(&[ASK, EXPECT_A]), Box::new(Replay::text(REPLY)), "built into the program"),
    ] {
        let options = GoldenOptions { source: ReplySource::Record, ..GoldenOptions::default() };
        let report = finish(run(&[subject], &options, Some(live(Arc::from(provider))))).unwrap().unwrap();
        let status = &report.modules[0].cases[0].status;
        assert!(matches!(status, GoldenStatus::Broken(why) if why.contains(words)), "{status:?}");
        assert!(!dir.path().join("tests/ask.reply.txt").exists());
    }
}

struct CutOff;

impl Provider for CutOff {
    fn name(&self) -> &'static str {
        "cut"
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            sink.piece(REPLY);
            let mut end = ModelEnd::complete("m", DecodeMode::Prompt);
            end.finish = Finish::CutOff;
            Ok(end)
        })
    }
}

#[test]
fn a_module_for_agents_only_can_be_tested() {
    let mut files = files(&[ASK, EXPECT_A, ("tests/ask.reply.txt", REPLY)]);
    let manifest = format!("{MANIFEST}invocation:\n  user_invocable: false\n");
    files.insert("module.yaml".to_owned(), manifest.into_bytes());
    let subject = TestedFolder { name: "tiny".to_owned(), folder: Folder::memory("tiny", files) };
    assert!(run_recorded(&[subject], &GoldenOptions::default()).unwrap().holds());
}

#[test]
fn a_run_may_move_between_threads() {
    fn is_send<T: Send>(_: T) {}
    is_send(run(&[], &GoldenOptions::default(), None));
}

fn accepting(subject: &TestedFolder, which: AcceptedAnswers) -> GoldenReport {
    let options = GoldenOptions { accept: Some(which), ..GoldenOptions::default() };
    run_recorded(std::slice::from_ref(subject), &options).unwrap()
}

#[test]
fn an_accepted_answer_is_what_is_expected_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = ("tests/ask.expected.json", "{\n  \"word\": \"b\"\n}\n");
    let reply = ("tests/ask.reply.txt", REPLY);
    let new = [("tests/new.input.json", r#"{"q": 2}"#), ("tests/new.reply.txt", REPLY)];
    let subject = on_disk(dir.path(), &[ASK, wrong, reply, new[0], new[1]]);
    let before = run_recorded(std::slice::from_ref(&subject), &GoldenOptions::default()).unwrap();
    assert_eq!(statuses(&before), [("ask", "failed"), ("new", "broken")]);
    let report = accepting(&subject, AcceptedAnswers::Successes);
    assert_eq!(statuses(&report), [("ask", "accepted"), ("new", "accepted")]);
    let text = || fs::read_to_string(dir.path().join("tests/ask.expected.json")).unwrap();
    assert_eq!(text(), wrong.1, "nothing is written before it was shown");
    assert_eq!(write_accepted(std::slice::from_ref(&subject), &report), Ok(2));
    assert_eq!(text(), "{\n  \"word\": \"a\"\n}\n");
    let after = run_recorded(&[subject], &GoldenOptions::default()).unwrap();
    assert_eq!(statuses(&after), [("ask", "passed"), ("new", "passed")]);
}

#[test]
fn a_failing_run_is_not_accepted_unless_that_is_said() {
    let broken = [ASK, EXPECT_A, ("tests/ask.reply.txt", "no JSON at all")];
    let report = accepting(&subject(&broken), AcceptedAnswers::Successes);
    let case = &report.modules[0].cases[0];
    assert_eq!(case.status.word(), "failed");
    assert!(case.not_accepted.as_ref().unwrap().starts_with("the run fails with E"), "{case:?}");
    assert_eq!(statuses(&accepting(&subject(&broken), AcceptedAnswers::Failures)), [("ask", "accepted")]);
}

// D-24: an envelope as v2.2 §7.3 prints it is a usable expectation. Its own facts are those of another run.
#[test]
fn d_24_a_printed_envelope_is_a_usable_expectation() {
    let printed = r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e","trace_id":"abc",
        "model":"gpt-4o","latency_ms":1200,"usage":{"input_tokens":1}},"data":{"rationale":"r","word":"a"}}"#;
    let run = |expected: &str, reply: &str| {
        let subject = subject(&[ASK, ("tests/ask.expected.json", expected), ("tests/ask.reply.txt", reply)]);
        run_recorded(&[subject], &GoldenOptions::default()).unwrap().modules[0].cases[0].clone()
    };
    assert_eq!(run(printed, REPLY).status.word(), "passed");
    // The answer itself still counts, and so does what a rule or a path names.
    let sure = printed.replace("0.9", "0.8");
    let named = printed.replace("\"gpt-4o\"", r#"{"$in":["gpt-4o"]}"#);
    for expected in [sure.as_str(), named.as_str(), r#"{"meta.model":"gpt-4o"}"#] {
        assert_eq!(run(expected, REPLY).status.word(), "failed", "{expected}");
    }
    let repaired = REPLY.replace("\"e\"", &format!("\"{}\"", "e".repeat(300)));
    let case = run(r#"{"word":"a"}"#, &repaired);
    assert_eq!(
        (case.status.word(), case.unmentioned),
        ("passed", vec!["DEPRECATED".to_owned(), "REPAIRED".to_owned()])
    );
    let told =
        run(r#"{"word":"a","meta":{"warnings":[{"code":"DEPRECATED"},{"code":"REPAIRED"}]}}"#, &repaired);
    assert_eq!((told.status.word(), told.unmentioned.len()), ("passed", 0));
    assert_eq!(run(r#"{"word":"a"}"#, REPLY).unmentioned, ["DEPRECATED"], "a module without a tier");
}
