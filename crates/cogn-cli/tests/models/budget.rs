//! The maximum number of model calls of a run. A run that certainly needs more makes no call, and a counter stops the
//! others, whatever makes the calls: parts, retries, repair questions, tools, rounds.

use serde_json::{Value, json};

use crate::{Act, FakeModel, Home, ProcessOutput, answering, good, home, summarizer};
use cognitive_testkit::piece;

/// Returns a composition of these modules, with its own prompt at the end.
fn made_of(parts: &[Value]) -> Value {
    json!({ "composition": { "pattern": "parallel", "max_depth": 16, "timeout_ms": 600_000, "requires": parts } })
}

fn part(name: impl Into<String>) -> Value {
    json!({ "name": name.into() })
}

/// Writes fifteen levels of two modules, each of which needs both of the next level: 31 modules, 65,535 calls.
fn diamonds(run: &Home) {
    let level = |level: usize| [part(format!("dia{level}-a")), part(format!("dia{level}-b"))];
    run.simple_module("dia", &made_of(&level(1)));
    for at in 1..=15 {
        let below = if at == 15 { json!({}) } else { made_of(&level(at + 1)) };
        run.simple_module(&format!("dia{at}-a"), &below);
        run.simple_module(&format!("dia{at}-b"), &below);
    }
}

fn ask(run: &Home, service: &FakeModel, name: &str, more: &[&str]) -> ProcessOutput {
    crate::ask(run, name, &service.url(), &[&["--set", "text=x"], more].concat())
}

fn error(output: &ProcessOutput) -> (&str, &Value) {
    let error = &output.json["error"];
    (error["code"].as_str().unwrap_or_default(), &error["details"])
}

#[test]
fn a_fan_out_that_is_certain_asks_no_model() {
    let (run, service) = (home(), answering(&good()));
    diamonds(&run);
    let output = ask(&run, &service, "dia", &["--timeout", "600"]);
    let (code, details) = error(&output);
    assert_eq!(code, "E4100", "{}", output.all());
    assert_eq!((&details["calls"], &details["max_calls"]), (&json!(65_535), &json!(64)));
    assert!(service.raw_requests().is_empty());
    let plan = run.cogn(&["compose", "plan", "dia", "--json"]);
    assert_eq!(plan.json["calls"], 65_535, "{}", plan.all());
}

#[test]
fn what_hangs_on_conditions_is_counted_while_it_runs() {
    let (run, service) = (home(), answering(&good()));
    let names: Vec<String> = (0..12).map(|number| format!("p{number}")).collect();
    let condition = "$.text == 'x'";
    let steps: Vec<Value> =
        names.iter().map(|name| json!({ "from": "input", "to": name, "condition": condition })).collect();
    // Optional parts cannot run either: no calls are left.
    let parts: Vec<Value> = names.iter().map(|name| json!({ "name": name, "optional": true })).collect();
    let mut whole = made_of(&parts);
    whole["composition"]["pattern"] = json!("sequential");
    whole["composition"]["dataflow"] = json!(steps);
    run.simple_module("whole", &whole);
    for name in &names {
        run.simple_module(name, &json!({}));
    }
    let output = ask(&run, &service, "whole", &["--max-calls", "5"]);
    let (code, details) = error(&output);
    assert_eq!((code, &details["module"]), ("E4100", &json!("p5")), "{}", output.all());
    assert_eq!(service.raw_requests().len(), 5);
    let enough = ask(&run, &service, "whole", &["--max-calls", "13"]);
    assert_eq!(enough.json["ok"], true, "{}", enough.all());
}

#[test]
fn repeated_requests_and_questions_count() {
    let busy = Act::reply(503, "retry-after: 0\r\ncontent-type: application/json\r\n", "{}");
    let service = FakeModel::script(vec![busy]);
    let output = summarizer(&home(), &service.url(), &["--max-calls", "2"]);
    assert_eq!((error(&output).0, service.raw_requests().len()), ("E4100", 2), "{}", output.all());

    let service = answering(&json!({ "ok": true }));
    let output = summarizer(&home(), &service.url(), &["--reask", "9", "--max-calls", "3"]);
    assert_eq!((error(&output).0, service.raw_requests().len()), ("E4100", 3), "{}", output.all());
}

#[test]
fn turns_of_tools_count() {
    let call = json!({ "index": 0, "id": "call_1", "type": "function",
                       "function": { "name": "current_time", "arguments": "{}" } });
    let choice = json!({ "index": 0, "delta": { "tool_calls": [call] }, "finish_reason": null });
    let event = format!("data: {}\n\n", json!({ "model": "stub-1", "choices": [choice] }));
    let service =
        FakeModel::script(vec![Act::stream(event + &piece("", Some("tool_calls")) + "data: [DONE]\n\n")]);
    let run = home();
    run.simple_module("clock", &json!({ "tools": { "allowed": ["current_time"] }, "max_calls": 4 }));
    let output = ask(&run, &service, "clock", &[]);
    let (code, details) = error(&output);
    assert_eq!((code, &details["module"]), ("E4100", &json!("clock")), "{}", output.all());
    assert_eq!(service.raw_requests().len(), 4);
}

#[test]
fn a_module_can_lower_the_limit_and_not_raise_it() {
    let service = answering(&json!({ "ok": true }));
    for (own, allowed, made) in [(2, "9", 2), (1_000, "3", 3)] {
        let run = home();
        run.simple_module("m", &json!({ "max_calls": own }));
        let before = service.raw_requests().len();
        let output = ask(&run, &service, "m", &["--reask", "50", "--max-calls", allowed]);
        assert_eq!(
            (error(&output).0, service.raw_requests().len() - before),
            ("E4100", made),
            "{}",
            output.all()
        );
    }
}

#[test]
fn the_configuration_sets_the_limit_and_rounds_share_it() {
    let service = answering(&good());
    let run = home();
    run.user_config("max_calls: 3\n");
    run.simple_module("m", &json!({}));
    let output =
        ask(&run, &service, "m", &["--until", "$.data.rationale == 'never'", "--max-iterations", "9"]);
    assert_eq!((error(&output).0, service.raw_requests().len()), ("E4100", 3), "{}", output.all());
    assert_eq!(output.json["meta"]["iteration"]["rounds"], 4);
}
