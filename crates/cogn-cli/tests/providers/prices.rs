//! What runs cost, through the program: prices from the configuration, the ceiling of a plan, and limits that a run does not begin above.
//! The service counts its requests, so that what was refused was not sent.

use serde_json::Value;

use crate::stub::{Act, Stub, good, streamed};
use crate::{Output, Run};

/// A dollar for a thousand tokens: an answer of the stub has 18.
const PRICES: &str =
    "prices:\n  as_of: 2026-11-17\n  models:\n    openai/stub*: {input: 1000, output: 1000}\n";

fn answers(count: usize) -> Stub {
    Stub::start((0..count).map(|_| Act::stream(streamed(&good()))).collect())
}

/// The most that a run of the summarizer with this service can cost.
fn ceiling(run: &Run, service: &Stub) -> f64 {
    let words =
        ["compose", "plan", "summarizer", "--cost", "--json", "--model", "stub", "--input-bytes", "200"];
    let output = run.cogn(&[&words[..], &["--base-url", &service.url()]].concat());
    let plan: Value = serde_json::from_str(&output.out).unwrap();
    plan["at_most"]["cost"].as_f64().unwrap()
}

fn code(output: &Output) -> &Value {
    &output.envelope["error"]["code"]
}

#[test]
fn a_run_costs_what_the_table_says_and_does_not_begin_above_its_limit() {
    let (run, service) = (Run::new(None), answers(2));
    run.configure(PRICES);
    let output = run.summarizer(&service.url(), &[]);
    assert_eq!(output.envelope["meta"]["usage"]["cost"], 0.018, "{}", output.all);
    let refused = run.summarizer(&service.url(), &["--max-cost", "0.02"]);
    assert_eq!(code(&refused), "E4101", "{}", refused.all);
    assert_eq!(service.asked().len(), 1, "what was refused was not sent");
    let most = ceiling(&run, &service);
    assert!(most > 0.018, "{most}");
    let allowed = run.summarizer(&service.url(), &["--max-cost", &most.to_string()]);
    assert_eq!(allowed.envelope["ok"], true, "{}", allowed.all);
    assert!(run.cogn(&["prices", "stub"]).out.contains("openai/stub*"));
}

#[test]
fn a_budget_of_the_day_is_shared_by_all_processes() {
    let (run, service) = (Run::new(None), answers(3));
    run.configure(PRICES);
    // The ceiling of this very input: two runs of 0.018 have room beside it only once.
    let refused = run.summarizer(&service.url(), &["--max-cost", "0"]);
    let budget = refused.envelope["error"]["details"]["ceiling"].as_f64().unwrap() + 0.02;
    run.configure(&format!("{PRICES}budget: {{per_day: {budget}}}\n"));
    for _ in 0..2 {
        let output = run.summarizer(&service.url(), &[]);
        assert_eq!(output.envelope["ok"], true, "{}", output.all);
    }
    let refused = run.summarizer(&service.url(), &[]);
    assert_eq!(code(&refused), "E4101", "{}", refused.all);
    assert_eq!(service.asked().len(), 2);
}
