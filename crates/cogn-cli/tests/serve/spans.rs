//! `cogn run --otlp` with a local collector: the sent spans, and that an unreachable or hanging collector does not
//! matter.

use std::net::TcpListener;

use cognitive_testkit::{FakeModel, Home, SilentAddress, good_answer};
use serde_json::{Value, json};

use crate::{batches_of, collector, home};

/// Creates a home with `whole`, which is composed of `one` and `two`, and with a saved reply for each of them.
fn with_modules() -> Home {
    let home = home();
    let flow = json!([{ "from": ["one.output", "two.output"], "to": "output", "aggregate": "array" }]);
    let parts = json!({ "requires": [{ "name": "one" }, { "name": "two" }], "dataflow": flow });
    let both = json!({ "mode": "both" });
    home.simple_module("one", &json!({ "response": both }));
    home.simple_module("two", &json!({ "response": both }));
    home.simple_module("whole", &json!({ "response": both, "composition": parts }));
    for name in ["one", "two", "whole"] {
        let folder = format!("cognitive/modules/{name}");
        home.write(
            &format!("{folder}/schema.json"),
            r#"{"input":{"type":"object"},"data":{"type":"object"}}"#,
        );
        home.write(&format!("{folder}/prompt.md"), "The secret prompt.\n");
    }
    let reply = json!({ "ok": true, "meta": { "confidence": 0.6, "risk": "low", "explain": "a secret" },
                        "data": { "rationale": "a secret reason" } });
    home.write("reply.json", reply.to_string());
    home
}

/// Runs a module with the saved reply and returns exit code, stdout and stderr.
fn run(home: &Home, module: &str, more: &[&str]) -> (i32, String, String) {
    let usual = ["run", module, "--input", r#"{"text": "a secret text"}"#, "--reply", "reply.json"];
    home.cogn(&[&usual, more].concat()).parts()
}

/// The spans that a collector took from a program that has ended: a slow run sends several batches.
fn spans_of(collector: &FakeModel) -> Vec<Value> {
    assert!(
        collector.raw_requests().iter().all(|text| !text.contains("secret")),
        "{:?}",
        collector.raw_requests()
    );
    let spans = |batch: Value| {
        batch.pointer("/resourceSpans/0/scopeSpans/0/spans").unwrap().as_array().unwrap().clone()
    };
    batches_of(collector).into_iter().flat_map(spans).collect()
}

/// Returns the spans as `parent > name`, sorted.
fn edges(spans: &[Value]) -> Vec<String> {
    let parent = |span: &Value| {
        let above = spans.iter().find(|above| above["spanId"] == span["parentSpanId"]);
        above.map_or_else(String::new, |above| format!("{} > ", above["name"].as_str().unwrap()))
    };
    let mut edges: Vec<String> =
        spans.iter().map(|span| parent(span) + span["name"].as_str().unwrap()).collect();
    edges.sort();
    edges
}

const TREE: [&str; 5] = [
    "run one > chat saved-reply",
    "run two > chat saved-reply",
    "run whole",
    "run whole > run one",
    "run whole > run two",
];

#[test]
fn a_composition_from_the_shell_is_a_tree_in_a_collector() {
    let (home, collector) = (with_modules(), collector());
    let address = format!("http://{}", collector.address);
    let (code, out, err) = run(&home, "whole", &["--otlp", &address]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let envelope: Value = serde_json::from_str(&out).unwrap();
    let trace = envelope["meta"]["trace_id"].as_str().unwrap().replace('-', "");
    let spans = spans_of(&collector);
    assert_eq!(edges(&spans), TREE);
    assert!(spans.iter().all(|span| span["traceId"] == trace.as_str()), "{trace}: {spans:?}");
    let whole = spans.iter().find(|span| span["name"] == "run whole").unwrap();
    assert!(whole.get("parentSpanId").is_none(), "{whole}");
}

#[test]
fn streams_and_repetitions_are_drawn_too() {
    let (home, collector) = (with_modules(), collector());
    let address = format!("http://{}", collector.address);
    let (code, out, err) = run(&home, "whole", &["--stream", "--otlp", &address]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(edges(&spans_of(&collector)), TREE);
    collector.forget();
    let twice = ["--until", "$.meta.confidence > 0.9", "--max-iterations", "2", "--otlp", &address];
    assert_eq!(run(&home, "one", &twice).0, 0);
    let call = "run one > chat saved-reply";
    let round = "repeat one > run one";
    assert_eq!(edges(&spans_of(&collector)), ["repeat one", round, round, call, call]);
}

// An unreachable collector, and one that never answers: the run prints the same, and one line reports the loss.
#[test]
fn a_collector_that_is_away_or_asleep_changes_nothing_but_a_warning() {
    let home = with_modules();
    let asleep = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = SilentAddress::take();
    let gone = silent.address();
    for address in [gone, asleep.local_addr().unwrap()] {
        let (code, out, err) = run(&home, "whole", &["--otlp", &format!("http://{address}")]);
        let envelope: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &envelope["ok"]), (0, &json!(true)), "{out}");
        assert_eq!(envelope["meta"].get("warnings"), None, "{out}");
        assert_eq!(err, "warning: 5 spans were lost: the collector did not accept them\n");
    }
    let (code, out, err) = run(&home, "no-such-module", &["--otlp", &format!("http://{gone}")]);
    assert_eq!(
        (code, err.as_str()),
        (1, "warning: 1 span was lost: the collector did not accept it\n"),
        "{out}"
    );
}

#[test]
fn what_is_no_address_is_refused_before_anything_runs() {
    let home = with_modules();
    let (code, out, err) = run(&home, "whole", &["--otlp", "secret-nonsense"]);
    let envelope: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &envelope["error"]["code"]), (1, &json!("E1001")), "{out}{err}");
    assert!(out.contains("collector") && !out.contains("secret"), "{out}");
    assert_eq!(envelope["meta"].get("trace_id"), None, "nothing ran: {out}");
}

#[test]
fn a_provider_has_its_name_of_the_semantic_conventions() {
    let text = good_answer(&json!({ "rationale": "r", "summary": "Short." }));
    for (provider, expected) in [
        ("openai", "openai"),
        ("mistral", "mistral_ai"),
        ("moonshot", "moonshot_ai"),
        ("groq", "groq"),
        ("openrouter", "openrouter"),
    ] {
        let (home, collector, service) = (home(), collector(), FakeModel::with_answer(&text));
        let key = format!("{}_API_KEY", provider.to_uppercase());
        let place = ["--base-url", &service.url(), "--provider", provider, "--model", "stub"];
        let usual =
            ["run", "summarizer", "--set", "text=a", "--otlp", &format!("http://{}", collector.address)];
        let output = home.run(&[&usual[..], &place[..]].concat(), &[(key.as_str(), "k")], "");
        assert_eq!(output.exit(), 0, "{}", output.all());
        let spans = Value::from(spans_of(&collector)).to_string();
        let attribute = json!({ "key": "gen_ai.provider.name", "value": { "stringValue": expected } });
        assert!(spans.contains(&attribute.to_string()), "{spans}");
    }
}
