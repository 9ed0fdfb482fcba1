//! Model fallback by configuration: real requests to two local services.

use serde_json::{Value, json};

use super::support::{Place, answer, answering_service};

/// A project with a module and this configuration.
fn place(config: &str) -> Place {
    let place = Place::new();
    place.finder("finder", "");
    place.write("cognitive.yaml", config);
    place
}

/// Runs the module with one answer from `llama.cpp` and another one from OpenAI.
fn run(place: &Place, small: &str, large: &str, more: &[&str]) -> (Value, String) {
    let args = ["run", "finder", "--set", "text=x", "--receipt"];
    let mut command = place.command(&args.iter().chain(more).copied().collect::<Vec<_>>());
    command.env("COGN_TRUST_PROJECT", "1");
    command
        .env("LLAMACPP_BASE_URL", answering_service(small))
        .env("OPENAI_BASE_URL", answering_service(large));
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}")), said)
}

const TWO: &str = "providers: [llamacpp/small, openai/large]\n";

#[test]
fn a_broken_answer_of_one_model_is_answered_by_the_next() {
    let (envelope, _) = run(&place(TWO), "I think it is a.", &answer().to_string(), &[]);
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(envelope["meta"]["provenance"]["left"][0]["because"], "E1000");
    assert!(envelope["meta"]["model"].as_str().unwrap().starts_with("openai/"), "{envelope}");
    let (envelope, _) = run(&place(TWO), &answer().to_string(), "never asked", &[]);
    assert!(!envelope["meta"]["model"].as_str().unwrap().starts_with("openai/"), "{envelope}");
}

#[test]
fn the_rules_of_the_configuration_decide_what_is_good_enough() {
    let unsure = json!({ "ok": true, "meta": { "confidence": 0.3, "risk": "low", "explain": "Perhaps" },
        "data": { "rationale": "It may be.", "word": "b" } });
    let place = place(&format!("{TWO}climb: {{below_confidence: 0.5}}\n"));
    let (envelope, _) = run(&place, &unsure.to_string(), &answer().to_string(), &[]);
    assert_eq!(envelope["data"]["word"], "a", "{envelope}");
    place.write("cognitive.yaml", format!("{TWO}climb: {{below_confidence: 5}}\n"));
    let (envelope, _) = run(&place, &unsure.to_string(), &answer().to_string(), &[]);
    assert!(
        envelope["error"]["message"].as_str().unwrap().contains("`climb.below_confidence`"),
        "{envelope}"
    );
}

#[test]
fn a_model_that_is_typed_is_asked_alone() {
    let (envelope, _) =
        run(&place(TWO), "prose", &answer().to_string(), &["--provider", "llamacpp", "--model", "small"]);
    assert_eq!((&envelope["ok"], &envelope["error"]["code"]), (&json!(false), &json!("E1000")));
}

#[test]
fn a_model_without_a_key_is_left_out_and_said() {
    let (envelope, said) =
        run(&place("providers: [anthropic, openai/large]\n"), "", &answer().to_string(), &[]);
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert!(said.contains("is skipped: provider `anthropic` has no key"), "{said}");
}

// A missing rung would change the measurement, so it is reported.
#[test]
fn a_model_that_is_left_out_is_said_where_a_ladder_is_measured() {
    let place = place("providers: [anthropic, openai/large]\n");
    place.write("cases.jsonl", r#"{"input": {"text": "x"}, "expect": {"word": "a"}}"#);
    let mut command = place.command(&["eval", "finder", "--cases", "cases.jsonl"]);
    command.env("COGN_TRUST_PROJECT", "1").env("OPENAI_BASE_URL", answering_service(&answer().to_string()));
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("is skipped: provider `anthropic` has no key"), "{said}");
}

#[test]
fn a_module_that_stays_here_asks_nobody_elsewhere() {
    let config = "provider: openai\nmodules: {finder: {local_only: true}}\n";
    let place = place(config);
    let output =
        place.command(&["run", "finder", "--set", "text=x"]).env("COGN_TRUST_PROJECT", "1").output().unwrap();
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["error"]["code"], "E4007", "{envelope}");
    // A service on this machine is allowed.
    let (envelope, _) = run(&place, "", &answer().to_string(), &[]);
    assert_eq!(envelope["ok"], true, "{envelope}");
}

// An untrusted project sends nothing to models that its user did not choose.
#[test]
fn providers_of_a_project_count_only_where_it_is_trusted() {
    let place = place(TWO);
    let output =
        place.command(&["run", "finder", "--set", "text=x"]).env_remove("OPENAI_API_KEY").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("providers"), "{said}");
}
