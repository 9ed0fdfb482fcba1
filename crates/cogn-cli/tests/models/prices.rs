//! The cost of runs in the program: configured prices, the ceiling of a plan, and limits that prevent a run. The
//! service counts its requests, which proves that refused runs were not sent.

use cognitive_net::Kind;
use cognitive_testkit::{Act, FakeModel, Home, ProcessOutput, stream_reply};
use serde_json::{Value, json};

use crate::{KEY, ask, good, home, summarizer};

/// One dollar per thousand tokens: an answer of the stub has 18.
const PRICES: &str =
    "prices:\n  as_of: 2026-11-17\n  models:\n    openai/stub*: {input: 1000, output: 1000}\n";

fn answers(count: usize) -> FakeModel {
    FakeModel::script((0..count).map(|_| Act::stream(stream_reply(&good()))).collect())
}

/// Returns the cost ceiling of a run of the summarizer with this service.
fn ceiling(run: &Home, service: &FakeModel) -> f64 {
    let words =
        ["compose", "plan", "summarizer", "--cost", "--json", "--model", "stub", "--input-bytes", "200"];
    let output = run.cogn(&[&words[..], &["--base-url", &service.url()]].concat());
    output.json["at_most"]["cost"].as_f64().unwrap()
}

fn code(output: &ProcessOutput) -> &Value {
    &output.json["error"]["code"]
}

#[test]
fn a_run_costs_what_the_table_says_and_does_not_begin_above_its_limit() {
    let (run, service) = (home(), answers(2));
    run.user_config(PRICES);
    let output = summarizer(&run, &service.url(), &[]);
    assert_eq!(output.json["meta"]["usage"]["cost"], 0.018, "{}", output.all());
    let refused = summarizer(&run, &service.url(), &["--max-cost", "0.02"]);
    assert_eq!(code(&refused), "E4101", "{}", refused.all());
    assert_eq!(service.raw_requests().len(), 1, "what was refused was not sent");
    let most = ceiling(&run, &service);
    assert!(most > 0.018, "{most}");
    let allowed = summarizer(&run, &service.url(), &["--max-cost", &most.to_string()]);
    assert_eq!(allowed.json["ok"], true, "{}", allowed.all());
    assert!(run.cogn(&["prices", "stub"]).out.contains("openai/stub*"));
}

#[test]
fn a_budget_of_the_day_is_shared_by_all_processes() {
    let (run, service) = (home(), answers(3));
    run.user_config(PRICES);
    // The ceiling of this input plus one run of 0.018, so that only the third run is refused.
    let refused = summarizer(&run, &service.url(), &["--max-cost", "0"]);
    let budget = refused.json["error"]["details"]["ceiling"].as_f64().unwrap() + 0.02;
    run.user_config(&format!("{PRICES}budget: {{per_day: {budget}}}\n"));
    for _ in 0..2 {
        let output = summarizer(&run, &service.url(), &[]);
        assert_eq!(output.json["ok"], true, "{}", output.all());
    }
    let refused = summarizer(&run, &service.url(), &[]);
    assert_eq!(code(&refused), "E4101", "{}", refused.all());
    assert_eq!(service.raw_requests().len(), 2);
}

/// A composition whose answer is that of one part.
fn composition(run: &Home) {
    let flow = json!([
        { "from": "input", "to": "summarizer", "mapping": { "text": "$.text" } },
        { "from": "summarizer.output", "to": "output", "mapping": { "summary": "$.data.summary" } },
    ]);
    let needs = json!({ "pattern": "sequential", "requires": [{ "name": "summarizer" }], "dataflow": flow });
    run.simple_module("./digest", &json!({ "composition": needs }));
    let text = json!({ "type": "string" });
    let schema = json!({
        "input": { "type": "object", "properties": { "text": text } },
        "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": text, "summary": text } },
    });
    run.write("digest/schema.json", schema.to_string());
}

// The records of a composition and of its part both have the tokens of the one call.
#[test]
fn the_audit_counts_a_composition_once() {
    let (run, service) = (home(), answers(2));
    run.user_config(PRICES);
    composition(&run);
    let whole = ask(&run, "./digest", &service.url(), &["--set", "text=x"]);
    let usage = &whole.json["meta"]["usage"];
    assert_eq!((&usage["cost"], &usage["total_tokens"]), (&json!(0.018), &json!(18)), "{}", whole.all());
    let stats = run.json(&["audit", "stats", "--json"]);
    let total = &stats["total"];
    assert_eq!((&total["runs"], &total["parts"]), (&json!(1), &json!(1)), "{stats}");
    for member in ["cost", "input_tokens", "output_tokens"] {
        assert_eq!(total[member], usage[member], "{member}");
    }
    let shown = run.cogn(&["audit", "stats"]).all();
    assert!(shown.contains("the rows above also count its 1 part"), "{shown}");
    let part = run.json(&["audit", "stats", "--module", "summarizer", "--json"]);
    assert_eq!((&part["total"]["runs"], &part["total"]["cost"]), (&json!(1), &json!(0.018)));
    let whole_runs = run.cogn(&["audit", "export"]).lines().into_iter();
    let costs: Vec<f64> = whole_runs
        .filter(|record| record["event"] == "run" && record["parent_span"].is_null())
        .map(|record| record["usage"]["cost"].as_f64().unwrap())
        .collect();
    assert_eq!(costs, [0.018]);
}

#[test]
fn every_default_model_has_a_price() {
    let run = home();
    for kind in Kind::all().filter(|kind| kind.default_model().is_some()) {
        let key = kind.key_variable().map(|variable| (variable, KEY));
        let plan = ["compose", "plan", "summarizer", "--cost", "--json", "--provider", kind.name()];
        let output = run.run(&plan, key.as_slice(), "");
        let cost = &output.json["at_most"]["cost"];
        assert!(cost.is_number(), "{kind}: {}", output.all());
        // A server on this machine is free.
        assert_eq!(cost.as_f64().unwrap() > 0.0, kind.needs_key(), "{kind}: {}", output.all());
    }
}

#[test]
fn a_family_with_a_dearer_long_context_is_priced_with_it() {
    let run = home();
    let ceiling = |model: &str, bytes: &str| {
        let plan =
            ["compose", "plan", "summarizer", "--cost", "--json", "--provider", "openai", "--model", model];
        let output = run.cogn(&[&plan[..], &["--input-bytes", bytes]].concat());
        output.json["at_most"]["cost"].as_f64().unwrap()
    };
    for model in ["gpt-5.4", "gpt-5.5", "gpt-5.6-terra", "gpt-6-sol", "gpt-6.1-terra"] {
        let (below, above) = (ceiling(model, "200000"), ceiling(model, "400000"));
        assert!(above > below * 2.0, "{model}: {below}, {above}");
    }
}
