//! `cogn eval` as a process, against a stub service: counts, files, exit codes.

use cognitive_testkit::{FakeModel, Home, good_answer};
use serde_json::{Value, json};

use crate::home;

/// A service that answers every request with `positive`.
fn service() -> FakeModel {
    FakeModel::with_answer(&good_answer(&json!({ "rationale": "r", "sentiment": "positive", "label": "x" })))
}

fn cogn(home: &Home, address: &str, args: &[&str]) -> (i32, String, String) {
    let usual = ["eval", "text-classifier", "--provider", "openai", "--base-url", address];
    home.run(&[&usual, args].concat(), &[("OPENAI_API_KEY", "k")], "").parts()
}

const CASES: &str = r#"{"id": "good", "input": {"text": "Lovely"}, "expect": {"sentiment": "positive"}}
{"id": "bad", "input": {"text": "Awful"}, "expect": {"sentiment": "negative"}}
"#;

#[test]
fn counts_are_printed_for_people_and_machines_and_cases_are_kept() {
    let home = home();
    home.write("c.jsonl", CASES);
    let service = service();
    let (code, out, err) = cogn(&home, &service.url(), &["--cases", "c.jsonl", "--json", "--out", "o.jsonl"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["accuracy"], json!({ "right": 1, "of": 2, "share": 0.5 }));
    assert_eq!(report["valid"]["right"], 2);
    assert_eq!((&report["input_tokens"], &report["models"]), (&json!(22), &json!(["openai/stub-1"])));
    assert_eq!(report["wrong"][0]["id"], "bad");
    let kept = home.read("o.jsonl");
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((kept.len(), &kept[1]["envelope"]["data"]["sentiment"]), (2, &json!("positive")));

    let (code, out, _) = cogn(&home, &service.url(), &["--cases", "c.jsonl", "--concurrency", "2"]);
    assert_eq!(code, 0);
    assert!(
        out.contains("accuracy") && out.contains("sentiment: expected \"negative\", got \"positive\""),
        "{out}"
    );
    // The examples of the module are conversation turns before the input.
    let asked = service.requests();
    assert_eq!(asked.len(), 4);
    let roles: Vec<&str> = asked[0].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| turn["role"].as_str().unwrap())
        .collect();
    assert!(
        roles.starts_with(&["system", "user", "assistant"]) && roles.ends_with(&["assistant", "user"]),
        "{roles:?}"
    );
}

#[test]
fn too_few_right_answers_are_an_error_only_on_request() {
    let home = home();
    home.write("c.jsonl", CASES);
    let service = service();
    assert_eq!(cogn(&home, &service.url(), &["--cases", "c.jsonl", "--min-accuracy", "0.6"]).0, 1);
    assert_eq!(
        cogn(&home, &service.url(), &["--cases", "c.jsonl", "--limit", "1", "--min-accuracy", "1"]).0,
        0
    );
    assert_eq!(service.requests().len(), 3);
}

#[test]
fn a_bad_line_is_said_before_anybody_is_asked() {
    let home = home();
    home.write("c.jsonl", format!("{CASES}\n{{\"input\": {{}}}}\n"));
    let (code, out, err) = cogn(&home, "http://127.0.0.1:9/v1", &["--cases", "c.jsonl"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("line 4: `expect` is required"), "{err}");
}

/// One half of the cases selects prompts and constants, the other measures: each can run alone. The figures include the
/// position of the right label in its list, and the calibration of confidence.
#[test]
fn a_half_is_run_alone_and_the_place_of_the_right_label_is_told() {
    let home = home();
    let case = |half: &str, labels: Value| {
        let input = json!({ "text": format!("t {labels}"), "labels": labels });
        json!({ "half": half, "input": input, "expect": { "label": "x" } }).to_string()
    };
    let lines = [
        case("tuning", json!(["x", "y"])),
        case("held-out", json!(["x", "y"])),
        case("held-out", json!(["y", "x"])),
        case("held-out", json!(["y", "x"]))
            .replace("{\"label\":\"x\"}", "{\"label\":\"y\"}")
            .replace("t [", "u ["),
    ];
    home.write("cases.jsonl", lines.join("\n"));
    let service = service();
    let (code, out, _) =
        cogn(&home, &service.url(), &["--cases", "cases.jsonl", "--half", "held-out", "--json"]);
    assert_eq!((code, service.requests().len()), (0, 3));
    let report: Value = serde_json::from_str(&out).unwrap();
    let share = |at: &str| report.pointer(&format!("/positions/label/{at}/right")).cloned();
    assert_eq!((share("first"), share("last")), (Some(json!(1)), Some(json!(1))), "{report}");
    assert_eq!(report["positions"]["label"]["first"]["of"], 2);
    assert_eq!(report["auc"], 0.5, "always as sure, so no help");
    let error = report["calibration_error"].as_f64().unwrap();
    assert!((error - (0.9 - 2.0 / 3.0)).abs() < 1e-6, "{error}");
    let (code, _, err) = cogn(&home, "http://127.0.0.1:9/v1", &["--cases", "cases.jsonl", "--half", "other"]);
    assert!(code != 0 && err.contains("`other`"), "{err}");
}

/// The schema has a default; a caller who omits the member gets exactly that value. The receipt has the hash of the
/// sent input.
#[test]
fn a_default_of_the_input_schema_reaches_the_model() {
    let home = home();
    let service = service();
    let url = service.url();
    let run = |input: &str| {
        let usual = ["run", "entity-extractor", "--provider", "openai", "--base-url", &url, "--receipt"];
        let envelope =
            home.run(&[&usual[..], &["--input", input]].concat(), &[("OPENAI_API_KEY", "k")], "").json;
        let asked = service.requests().pop().unwrap().body;
        let last = asked["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        (last, envelope["meta"]["provenance"]["sha256"]["input"].clone())
    };
    let (turn, hash) = run(r#"{"text": "Ada went home."}"#);
    let expected = r#"{"text":"Ada went home.","want":["person","organisation","place","date"]}"#;
    assert_eq!(turn, expected);
    let (turn, other) = run(r#"{"text": "Ada went home.", "want": ["place"]}"#);
    assert_eq!(turn, r#"{"text":"Ada went home.","want":["place"]}"#);
    let (_, again) = run(r#"{"text": "Ada went home."}"#);
    assert_eq!(hash, again);
    assert_ne!(hash, other);
    let spelled_out = run(expected).1;
    assert_ne!(hash, spelled_out, "the hash is that of what the caller sent");
}

/// The embedded model refuses unsupported tasks before any call. Any file will do as weights: they are never opened.
#[test]
fn the_embedded_model_refuses_to_review_and_to_rank() {
    let home = home();
    home.write("weights.gguf", "none");
    let weights = home.path("weights.gguf").to_str().unwrap().to_owned();
    for (module, input) in [
        ("code-reviewer", "code=x = 1 / 0"),
        ("task-prioritizer", r#"tasks=["sleep", "eat"]"#),
        ("code-review-pipeline", "code=x = 1 / 0"),
        ("multi-reviewer", "text=A long day."),
        ("smart-processor", "text=A long day."),
        ("summarizer", "text=A long day."),
    ] {
        let args = ["run", module, "--set", input, "--provider", "embedded"];
        let envelope = home.run(&args, &[("COGN_MODEL", &weights)], "").json;
        let error = &envelope["error"];
        assert_eq!(error["code"], "E4001", "{module}: {envelope}");
        assert_eq!((&error["details"]["kind"], &error["recoverable"]), (&json!("unsuitable"), &json!(false)));
        assert_eq!(error["details"]["missing"], json!(["reasoning"]));
        assert!(error["suggestion"].as_str().unwrap().contains("OPENAI_API_KEY"), "{envelope}");
    }
}
