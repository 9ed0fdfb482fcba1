//! The golden tests of the bundled modules: each saved reply runs through the whole pipeline and is compared with its
//! expectation. Also the reverse: deliberately wrong expectations must be detected at the right path.

use std::collections::BTreeMap;

use cognitive_contract::Envelope;
use cognitive_library::{Folder, Library};
use cognitive_testing::golden::{self, GoldenOptions, GoldenReport, GoldenStatus, TestedFolder};
use cognitive_testkit::{Home, TestServer};
use serde_json::{Value, json};

use crate::home;

/// Returns the bundled modules, without anything that is installed on this machine.
fn bundled() -> Vec<TestedFolder> {
    let found = Library::default().list().into_iter();
    found.map(|found| TestedFolder { name: found.name, folder: found.folder }).collect()
}

fn run(subjects: &[TestedFolder]) -> GoldenReport {
    golden::run_recorded(subjects, &GoldenOptions { coverage: true, ..GoldenOptions::default() }).unwrap()
}

// GEN-002: v2.2 modules run unchanged and answer with a plain v2.2 envelope. TEST-007: without a network.
#[test]
fn gen_002_every_saved_reply_gives_what_is_expected() {
    // It is polled once: a reply that waited for anything, be it a timer, would be an error here.
    let report = run(&bundled());
    assert_eq!(report.modules.len(), 14);
    assert!(report.tally().passed >= 46, "every module has golden tests: {:?}", report.tally());
    for module in &report.modules {
        assert!(module.cases.len() >= 3, "{}", module.name);
        for case in &module.cases {
            assert_eq!(
                case.status,
                GoldenStatus::Passed,
                "{} {}: {:#?}",
                module.name,
                case.name,
                case.envelope
            );
            assert!(Envelope::from_value(case.envelope.clone().unwrap()).is_ok(), "{}", case.name);
        }
        let coverage = module.coverage.as_ref().unwrap();
        assert!((30..=100).contains(&coverage.percent()), "{}: {coverage:#?}", module.name);
    }
    assert!(report.holds());
}

/// Runs a case of a bundled module with a replaced expectation.
fn with_expectation(module: &str, case: &str, expected: &Value) -> golden::GoldenResult {
    let folder = Library::default().find(module).unwrap().folder;
    let Folder::Memory { files, .. } = &folder else { panic!("bundled modules are in memory") };
    let wanted = |path: &str| !path.starts_with("tests/") || path.starts_with(&format!("tests/{case}."));
    let mut files: BTreeMap<String, Vec<u8>> = files
        .iter()
        .filter(|(path, _)| wanted(path))
        .map(|(path, bytes)| (path.clone(), bytes.clone()))
        .collect();
    files.insert(format!("tests/{case}.expected.json"), expected.to_string().into_bytes());
    let manifest = String::from_utf8(files["module.yaml"].clone()).unwrap();
    let manifest: String = manifest
        .lines()
        .filter(|line| !line.contains("->"))
        .fold(String::new(), |text, line| text + line + "\n");
    files.insert("module.yaml".to_owned(), manifest.replace("\ntests:\n", "\n").into_bytes());
    let subject = TestedFolder { name: module.to_owned(), folder: Folder::memory(module, files) };
    let report = run(&[subject]);
    assert_eq!(report.modules[0].cases.len(), 1, "{:?}", report.modules[0].trouble);
    report.modules[0].cases[0].clone()
}

#[test]
fn test_002_003_a_wrong_expectation_is_noticed_at_its_place() {
    let review = ("code-reviewer", "sql-injection");
    let refusal = ("code-reviewer", "not-code");
    for ((module, case), expected, path) in [
        (review, json!({ "ok": false }), "ok"),
        (review, json!({ "verdict": "approve" }), "data.verdict"),
        (review, json!({ "issues": [] }), "data.issues"),
        (review, json!({ "confidence": 0.123 }), "meta.confidence"),
        (review, json!({ "risk": "none" }), "meta.risk"),
        (review, json!({ "explain": "other" }), "meta.explain"),
        (review, json!({ "error": { "code": "E1004" } }), "error"),
        (review, json!({ "no_such_member": 1 }), "data.no_such_member"),
        (review, json!({ "ok": true, "data": { "issues": [{ "type": "testing" }] } }), "data.issues"),
        (review, json!({ "ok": true, "meta": { "risk": "none" } }), "meta.risk"),
        (
            review,
            json!({ "_contains": { "issues.0.description": ["buffer overflow"] } }),
            "data.issues[0].description",
        ),
        (review, json!({ "_contains": { "issues.99.description": ["SQL"] } }), "data.issues[99].description"),
        (review, json!({ "_validate": { "required": ["performance"] } }), "data.performance"),
        (review, json!({ "_validate": { "confidence_min": 1 } }), "meta.confidence"),
        (review, json!({ "_validate": { "confidence_max": 0 } }), "meta.confidence"),
        (review, json!({ "_validate": { "rationale_min_length": 100_000 } }), "data.rationale"),
        (review, json!({ "_validate": { "contains": ["zebra"] } }), "data"),
        (review, json!({ "_validate": { "not_contains": ["SQL"] } }), "data"),
        (review, json!({ "_validate": { "risk_max": "none" } }), "meta.risk"),
        (review, json!({ "$validate": { "data.verdict": { "const": "approve" } } }), "data.verdict"),
        (review, json!({ "summary": { "$validate": { "maxLength": 1 } } }), "data.summary"),
        (refusal, json!({ "ok": true }), "ok"),
        (refusal, json!({ "error": { "code": "E1001" } }), "error.code"),
        (refusal, json!({ "error": { "code": "E1004", "message": "other" } }), "error.message"),
        (refusal, json!({ "verdict": "approve" }), "data.verdict"),
    ] {
        let result = with_expectation(module, case, &expected);
        let GoldenStatus::Failed(differences) = &result.status else { panic!("{expected}: {result:#?}") };
        assert_eq!(differences[0].path, path, "{expected}: {differences:?}");
    }
}

#[test]
fn the_same_expectations_set_right_are_met() {
    for (case, expected) in [
        ("sql-injection", json!({ "ok": true, "data": { "verdict": "request_changes" }, "meta": {} })),
        (
            "sql-injection",
            json!({ "$validate": { "data": { "required": ["issues"] }, "ok": { "const": true } } }),
        ),
        ("sql-injection", json!({ "_validate": { "risk": ["medium", "high"], "risk_max": "high" } })),
        ("not-code", json!({ "ok": false, "error": { "code": "UNSUPPORTED_LANGUAGE" } })),
        ("not-code", json!({ "$validate": { "error.code": { "enum": ["UNSUPPORTED_VALUE"] } } })),
    ] {
        let result = with_expectation("code-reviewer", case, &expected);
        assert_eq!(result.status, GoldenStatus::Passed, "{expected}");
    }
}

// A misspelled rule refers to a missing field, so it never passes.
#[test]
fn test_003_a_misspelled_rule_fails_its_case() {
    let expected = json!({ "ok": true, "_validate": { "confidence_least": 0.5 } });
    let result = with_expectation("code-reviewer", "sql-injection", &expected);
    assert!(matches!(&result.status, GoldenStatus::Failed(_)), "{result:?}");
}

#[test]
fn an_expectation_that_cannot_fail_breaks_its_case() {
    for expected in [
        json!({}),
        json!({ "$example": { "ok": true } }),
        json!({ "ok": true, "_validate": { "requires": ["issues"] } }),
        json!({ "ok": true, "$validate": { "data": { "required": ["issues"], "confidence_min": 0.5 } } }),
    ] {
        let result = with_expectation("code-reviewer", "sql-injection", &expected);
        assert!(
            matches!(&result.status, GoldenStatus::Broken(why) if why.contains("expected.json")),
            "{result:?}"
        );
    }
}

#[test]
fn the_report_for_build_servers_is_well_formed() {
    let mut subjects = bundled();
    let wild = Folder::memory(
        "wild \u{1b}<&\">",
        BTreeMap::from([("module.yaml".to_owned(), b"tier: \"]]>\"".to_vec())]),
    );
    subjects.push(TestedFolder { name: wild.name(), folder: wild });
    let xml = golden::to_junit(&run(&subjects));
    assert_eq!(xml.matches("<testcase ").count(), 47);
    check_balanced(&xml);
}

/// Checks that all tags are balanced, and that no unescaped quote or bracket breaks the document.
fn check_balanced(xml: &str) {
    let mut open = Vec::new();
    let body = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    for tag in body.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap();
        assert!(!text.contains('>'), "{text}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap().to_owned()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(xml.chars().all(|each| !each.is_control() || each == '\n'));
}

#[test]
fn test_005_coverage_of_a_tiny_module_is_exact() {
    let schema = json!({
        "input": {},
        "data": {
            "properties": {
                "rationale": { "type": "string" },
                "verdict": { "enum": ["yes", "no"] },
                "notes": { "items": { "$ref": "#/$defs/note" } },
            },
        },
        "$defs": { "note": { "properties": { "text": {}, "kind": { "oneOf": [{ "const": "a" }, { "const": "b" }] } } } },
    });
    let reply = json!({
        "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
        "data": { "rationale": "r", "verdict": "yes", "notes": [{ "text": "t" }, { "kind": "b" }] },
    });
    let files = [
        ("module.yaml", "name: tiny\n".to_owned()),
        ("prompt.md", "p".to_owned()),
        ("schema.json", schema.to_string()),
        ("tests/a.input.json", "{}".to_owned()),
        ("tests/a.expected.json", r#"{"verdict": "yes"}"#.to_owned()),
        ("tests/a.reply.txt", reply.to_string()),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.into_bytes()));
    let subject = TestedFolder { name: "tiny".to_owned(), folder: Folder::memory("tiny", files.into()) };
    let report = run(&[subject]);
    assert!(report.holds(), "{report:#?}");
    assert_eq!(
        report.to_value()["modules"][0]["coverage"],
        json!({
            "percent": 70,
            "fields": { "total": 5, "exercised": 5, "missing": [] },
            "values": { "total": 4, "exercised": 2, "missing": ["verdict = \"no\"", "notes[].kind = \"a\""] },
            "failure": false,
        })
    );
}

/// Runs the program in a folder, isolated from this machine.
fn cogn(home: &Home, arguments: &[&str], ci: &str) -> (Option<i32>, String) {
    let output = home.run(arguments, &[("CI", ci)], "");
    (output.code, output.all())
}

// The contract of `--accept` in `docs/expectations.md`: it prints, then writes, and never writes in CI.
#[test]
fn an_answer_is_accepted_after_its_difference_was_shown() {
    let home = home();
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer a question.\n";
    let schema = json!({ "input": {}, "data": { "properties": { "word": { "enum": ["a", "b"] } } } });
    home.module("./m", manifest, "Answer.", &schema);
    let meta = r#""meta":{"confidence":0.9,"risk":"low","explain":"e"}"#;
    for name in ["known", "new"] {
        home.write(&format!("m/tests/{name}.input.json"), "{}");
        home.write(
            &format!("m/tests/{name}.reply.txt"),
            format!(r#"{{"ok":true,{meta},"data":{{"rationale":"r","word":"a"}}}}"#),
        );
    }
    let before = "{\n  \"word\": \"b\",\n  \"confidence\": { \"$min\": 0.5 }\n}\n";
    home.write("m/tests/known.expected.json", before);
    let expected = || home.read("m/tests/known.expected.json");

    let (code, text) = cogn(&home, &["test", "./m", "--accept"], "true");
    assert_eq!((code, expected().as_str()), (Some(2), before), "{text}");
    assert!(text.contains("`CI` is set"), "{text}");

    let (code, text) = cogn(&home, &["test", "./m", "--accept"], "false");
    assert_eq!(code, Some(0), "{text}");
    for line in ["-   \"word\": \"b\",", "+   \"word\": \"a\",", "    \"confidence\": { \"$min\": 0.5 }"] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(expected(), before.replace("\"b\"", "\"a\""));
    let (code, text) = cogn(&home, &["test", "./m"], "");
    assert_eq!((code, text.contains("2 passed, 0 failed")), (Some(0), true), "{text}");

    home.write("m/tests/known.reply.txt", "no JSON");
    let (code, text) = cogn(&home, &["test", "./m", "--accept"], "");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("not accepted: the run fails with E"), "{text}");
    assert!(text.contains("--accept-failures"), "{text}");
}

#[test]
fn a_golden_test_of_a_refusal_is_valid_everywhere() {
    let run = home();
    let text = json!({ "type": "string" });
    let schema = json!({
        "input": { "type": "object", "required": ["text"], "properties": { "text": text } },
        "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": text } },
    });
    let manifest = json!({
        "name": "words", "version": "1.0.0", "responsibility": "Count words", "tier": "decision", "excludes": ["guessing"],
        "overflow": { "enabled": false },
    });
    run.module("words", &manifest.to_string(), "Count.", &schema);
    let expect = |expected: Value| {
        run.write("cognitive/modules/words/tests/refused.expected.json", expected.to_string());
        let valid = run.cogn(&["validate", "words"]).exit() == 0;
        let tested = run.cogn(&["test", "words"]).exit() == 0;
        (valid, tested)
    };
    run.write("cognitive/modules/words/tests/refused.input.json", "{}");
    for refusal in [
        json!({ "ok": false, "error": { "code": "E1001" } }),
        json!({ "error.code": { "$in": ["E1000", "E1001"] } }),
    ] {
        assert_eq!(expect(refusal.clone()), (true, true), "{refusal}");
    }
    let doctor = run.json(&["doctor", "--json"]);
    assert_eq!(doctor["broken_modules"], json!([]), "{doctor}");
    let server = TestServer::start(&run, &["--provider", "ollama"], &[]);
    let shown = server.get("/v1/modules/words/files");
    assert_eq!(shown["findings"], json!([]), "{shown}");
    // Another failure, or a success, is not what this input gets.
    for other in [json!({ "ok": false, "error": { "code": "E2007" } }), json!({ "ok": true })] {
        assert_eq!(expect(other.clone()), (false, false), "{other}");
    }
}

// D-24: an envelope as the specification prints it is an expectation; its own facts are those of another run.
#[test]
fn d_24_a_printed_envelope_is_a_golden_test() {
    let run = home();
    run.simple_module("words", &json!({}));
    let test = |name: &str, text: String| {
        run.write(&format!("cognitive/modules/words/tests/ask.{name}"), text);
    };
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    let answer = json!({ "ok": true, "meta": meta, "data": { "rationale": "r" } });
    let mut printed = answer.clone();
    for (name, value) in [
        ("trace_id", json!("abc-123")),
        ("model", json!("gpt-4o")),
        ("latency_ms", json!(1200)),
        ("usage", json!({ "input_tokens": 7 })),
    ] {
        printed["meta"][name] = value;
    }
    let mut repaired = answer.clone();
    repaired["note"] = json!(1);
    test("input.json", "{}".to_owned());
    test("expected.json", printed.to_string());
    for (reply, says) in [(&answer, false), (&repaired, true)] {
        test("reply.txt", reply.to_string());
        let output = run.cogn(&["test", "words"]).expect_exit(0);
        let line = "warnings that the expectation does not mention: REPAIRED";
        assert_eq!(output.all().contains(line), says, "{}", output.all());
    }
    let mut named = printed.clone();
    named["meta"]["model"] = json!({ "$in": ["gpt-4o"] });
    test("expected.json", named.to_string());
    let output = run.cogn(&["test", "words"]).expect_exit(1);
    assert!(output.all().contains("meta.model"), "{}", output.all());
}
