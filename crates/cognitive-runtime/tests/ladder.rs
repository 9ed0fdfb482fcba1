//! The model fallback chain: the models that are asked, the conditions, the answer, and the events that readers
//! receive.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::sync::{Arc, Mutex};

use cognitive_contract::ports::{Destination, Event, EventSink, NullSink, Provider, ProviderError};
use cognitive_contract::{Confidence, Risk};
use cognitive_runtime::{ClimbRules, Host, Ladder, ModuleSettings, RunRequest, run, stream};
use cognitive_testkit::{FakeProvider, FolderModule, MemoryAuditLog, NamedModules, module_folder, poll_now};
use serde_json::{Value, json};

/// A model that always gives the same answer.
fn rung(name: &'static str, says: impl ToString) -> FakeProvider {
    named(name, FakeProvider::with_reply(says))
}

/// A model that is never available.
fn gone(name: &'static str) -> FakeProvider {
    named(name, FakeProvider::new(|_, _| Err(ProviderError::Unavailable("nobody is there".to_owned()))))
}

fn named(name: &'static str, provider: FakeProvider) -> FakeProvider {
    let destination = Some(Destination { model: Some("m".to_owned()), address: None });
    provider.with(|rung| (rung.name, rung.destination) = (name, destination))
}

fn answer(label: &str, confidence: f64, risk: &str) -> Value {
    json!({ "ok": true, "meta": { "confidence": confidence, "risk": risk, "explain": "e" },
            "data": { "rationale": "r", "label": label } })
}

fn schema() -> Value {
    json!({ "input": { "type": "object" }, "data": { "type": "object", "required": ["rationale", "label"],
            "properties": { "rationale": { "type": "string" }, "label": { "enum": ["a", "b", "c"] } } } })
}

fn host(rungs: &[Arc<FakeProvider>], rules: ClimbRules) -> Host {
    let manifest = json!({ "name": "sample", "tier": "decision" });
    let modules = FolderModule::new(module_folder(&manifest, &schema(), "Judge."));
    let mut rungs = rungs.iter().map(|rung| Arc::clone(rung) as Arc<dyn Provider>);
    let mut host = Host::new(Arc::new(modules), rungs.next().unwrap());
    host.models.ladder = Some(Arc::new(Ladder { rungs: rungs.collect(), rules }));
    host
}

fn asked(host: &Host) -> Value {
    let mut request = RunRequest::new("sample", json!({}));
    request.options = request.options.with_receipt(true);
    serde_json::to_value(poll_now(run(host, request, &mut NullSink))).unwrap()
}

fn calls(rungs: &[Arc<FakeProvider>]) -> Vec<usize> {
    rungs.iter().map(|rung| rung.calls().len()).collect()
}

#[test]
fn a_good_answer_is_the_first_ones_and_nobody_else_is_asked() {
    let rungs =
        [rung("small", answer("a", 0.9, "low")), rung("large", answer("b", 0.9, "low"))].map(Arc::new);
    let envelope = asked(&host(&rungs, ClimbRules::default()));
    assert_eq!((&envelope["data"]["label"], &envelope["meta"]["model"]), (&json!("a"), &json!("small/m")));
    assert_eq!(calls(&rungs), [1, 0]);
    assert_eq!(envelope["meta"]["provenance"].get("left"), None);
}

#[test]
fn a_run_climbs_when_the_answer_fails_and_when_the_provider_does() {
    let rungs = [
        gone("gone"),
        rung("prose", "I would say a."),
        rung("wrong", answer("z", 0.9, "low")),
        rung("large", answer("c", 0.9, "low")),
        rung("larger", answer("b", 0.9, "low")),
    ]
    .map(Arc::new);
    let envelope = asked(&host(&rungs, ClimbRules::default()));
    assert_eq!((&envelope["data"]["label"], &envelope["meta"]["model"]), (&json!("c"), &json!("large/m")));
    assert_eq!(calls(&rungs), [1, 1, 1, 1, 0]);
    let left = envelope["meta"]["provenance"]["left"].as_array().unwrap();
    let because: Vec<&str> = left.iter().map(|rung| rung["because"].as_str().unwrap()).collect();
    assert_eq!(because, ["E4001", "E1000", "E3001"]);
    let models: Vec<&str> = left.iter().map(|rung| rung["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["gone/m", "prose/m", "wrong/m"]);
    let warning = &envelope["meta"]["warnings"][0];
    let expected = "`gone/m` did not answer (E4001), so the next model was asked";
    assert_eq!((&warning["code"], &warning["message"]), (&json!("PROVIDER_DOWN"), &json!(expected)));
    assert_eq!(envelope["meta"]["warnings"].as_array().unwrap().len(), 1, "a bad answer is no outage");
}

#[test]
fn confidence_and_risk_are_reasons_where_the_rules_say_so() {
    let rungs = || {
        [
            rung("unsure", answer("a", 0.4, "low")),
            rung("risky", answer("b", 0.9, "high")),
            rung("large", answer("c", 0.8, "low")),
        ]
        .map(Arc::new)
    };
    let silent = rungs();
    assert_eq!(asked(&host(&silent, ClimbRules::default()))["data"]["label"], "a");
    let strict = rungs();
    let rules = ClimbRules::default().with_confidence(Confidence::new(0.7).unwrap()).with_risk(Risk::Medium);
    let envelope = asked(&host(&strict, rules));
    assert_eq!((&envelope["data"]["label"], calls(&strict)), (&json!("c"), vec![1, 1, 1]));
    let left = &envelope["meta"]["provenance"]["left"];
    assert_eq!(left[0]["because"], "confidence 0.4 is below 0.7");
    assert_eq!(left[1]["because"], "risk `high` is above `medium`");
}

#[test]
fn an_answer_that_two_models_give_need_not_be_sure() {
    let other_words = json!({ "ok": true, "meta": { "confidence": 0.5, "risk": "low", "explain": "f" },
        "data": { "label": "a", "rationale": "another reason" } });
    let rungs = |second: Value| {
        [
            rung("small", answer("a", 0.75, "low")),
            rung("middle", second),
            rung("large", answer("c", 0.9, "low")),
        ]
        .map(Arc::new)
    };
    let sure = |least| Confidence::new(least).unwrap();
    let rules = ClimbRules::default().with_confidence(sure(0.9));
    let agreeing = rungs(other_words.clone());
    let envelope = asked(&host(&agreeing, rules.with_agreement(sure(0.7))));
    assert_eq!((&envelope["data"]["label"], calls(&agreeing)), (&json!("a"), vec![1, 1, 0]));
    assert_eq!(
        (&envelope["meta"]["model"], &envelope["meta"]["confidence"]),
        (&json!("middle/m"), &json!(0.5))
    );
    let provenance = &envelope["meta"]["provenance"];
    assert_eq!(
        (&provenance["agreed_with"], &provenance["left"][0]["model"]),
        (&json!("small/m"), &json!("small/m"))
    );
    // Neither of them is sure enough for the rule, or the rule is not set.
    for rules in [rules.with_agreement(sure(0.8)), rules] {
        let unsure = rungs(other_words.clone());
        let envelope = asked(&host(&unsure, rules));
        assert_eq!((&envelope["data"]["label"], calls(&unsure)), (&json!("c"), vec![1, 1, 1]));
        assert_eq!(envelope["meta"]["provenance"].get("agreed_with"), None);
    }
    let differing = rungs(answer("b", 0.75, "low"));
    assert_eq!(asked(&host(&differing, rules.with_agreement(sure(0.7))))["data"]["label"], "c");
    // Answers with only a rationale decide nothing.
    let reasons = |words: &str, confidence: f64| {
        json!({ "ok": true, "meta": { "confidence": confidence, "risk": "low", "explain": "e" },
                "data": { "rationale": words } })
    };
    let prose = [
        rung("small", reasons("one", 0.8)),
        rung("middle", reasons("two", 0.8)),
        rung("large", reasons("three", 0.9)),
    ]
    .map(Arc::new);
    let mut free = host(&prose, rules.with_agreement(sure(0.7)));
    let schema = json!({ "input": { "type": "object" },
        "data": { "type": "object", "properties": { "rationale": { "type": "string" } } } });
    let manifest = json!({ "name": "sample", "tier": "decision" });
    free.modules = Arc::new(FolderModule::new(module_folder(&manifest, &schema, "Judge.")));
    assert_eq!(asked(&free)["data"]["rationale"], "three");
    // Agreement does not make an answer less risky.
    let risky = rungs(answer("a", 0.75, "high"));
    let rules = rules.with_agreement(sure(0.7)).with_risk(Risk::Medium);
    assert_eq!(asked(&host(&risky, rules))["data"]["label"], "c");
    // An answer that was rejected for its risk does not count as agreement either.
    let left_for_risk = [
        rung("small", answer("a", 0.95, "high")),
        rung("middle", answer("a", 0.2, "low")),
        rung("large", answer("c", 0.9, "low")),
    ]
    .map(Arc::new);
    assert_eq!(asked(&host(&left_for_risk, rules))["data"]["label"], "c");
    // The same model twice is no second opinion.
    let same = [
        rung("small", answer("a", 0.75, "low")),
        rung("small", answer("a", 0.75, "low")),
        rung("large", answer("c", 0.9, "low")),
    ]
    .map(Arc::new);
    assert_eq!(asked(&host(&same, rules))["data"]["label"], "c");
}

// The last model is the least likely to be available; the answer of a lower one is better than nothing.
#[test]
fn a_valid_answer_below_is_handed_over_when_the_last_rung_fails() {
    let rungs = [rung("unsure", answer("a", 0.4, "low")), gone("gone")].map(Arc::new);
    let rules = ClimbRules::default().with_confidence(Confidence::new(0.7).unwrap());
    let envelope = asked(&host(&rungs, rules));
    assert_eq!((&envelope["data"]["label"], &envelope["meta"]["model"]), (&json!("a"), &json!("unsure/m")));
    let warnings = envelope["meta"]["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["code"] == "CLIMB_FAILED"), "{warnings:?}");
    assert_eq!(envelope["meta"]["provenance"]["left"][1]["because"], "E4001");
    let all_gone = [gone("one"), gone("other")].map(Arc::new);
    let envelope = asked(&host(&all_gone, rules));
    assert_eq!((&envelope["ok"], &envelope["error"]["code"]), (&json!(false), &json!("E4001")));
    assert_eq!(envelope["error"]["details"]["provider"], "other");
    assert_eq!(envelope["meta"]["warnings"][0]["code"], "PROVIDER_DOWN");
    assert_eq!(envelope["meta"].get("model"), None, "no model answered");

    // A model that never answered is named as itself, and its receipt has nothing of the answer before it.
    let rungs = [rung("prose", "I would say a."), gone("down"), gone("out")].map(Arc::new);
    let envelope = asked(&host(&rungs, rules));
    let receipt = &envelope["meta"]["provenance"];
    assert_eq!(
        (&receipt["left"][0]["model"], &receipt["left"][1]["model"]),
        (&json!("prose/m"), &json!("down/m"))
    );
    assert_eq!((receipt.get("model"), &receipt["sha256"]["reply"]), (None, &json!("")), "{receipt}");
    assert_eq!(envelope["meta"].get("model"), None, "{envelope}");
}

#[test]
fn what_the_caller_did_wrong_is_not_tried_elsewhere() {
    let rungs =
        [rung("small", answer("a", 0.9, "low")), rung("large", answer("b", 0.9, "low"))].map(Arc::new);
    let host = host(&rungs, ClimbRules::default());
    let envelope = poll_now(run(&host, RunRequest::new("sample", json!([])), &mut NullSink));
    assert!(!envelope.ok());
    assert_eq!(calls(&rungs), [0, 0]);
}

#[test]
fn a_model_that_lacks_what_the_module_needs_is_no_rung() {
    let small = rung("small", answer("a", 0.9, "low")).with(|small| small.lacks = &["weighing"]);
    let rungs = [small, rung("large", answer("b", 0.9, "low"))].map(Arc::new);
    let mut host = host(&rungs, ClimbRules::default());
    let manifest = json!({ "name": "sample", "tier": "decision",
        "runtime_requirements": { "required_capabilities": ["weighing"] } });
    host.modules = Arc::new(FolderModule::new(module_folder(&manifest, &schema(), "Judge.")));
    assert_eq!(asked(&host)["meta"]["model"], "large/m");
    assert_eq!(calls(&rungs), [0, 1]);
}

#[test]
fn a_module_that_may_only_ask_here_is_asked_nowhere_else() {
    let here = rung("here", answer("z", 0.9, "low")).with(|here| here.stays_here = true);
    let rungs = [rung("far", answer("a", 0.9, "low")), here].map(Arc::new);
    let mut ladder = host(&rungs, ClimbRules::default());
    ladder.configure("sample", ModuleSettings { local_only: true, ..ModuleSettings::default() });
    assert_eq!(asked(&ladder)["error"]["code"], "E3001", "also where the one that is here fails");
    assert_eq!(calls(&rungs), [0, 1]);
    let rungs = [rung("far", answer("a", 0.9, "low"))].map(Arc::new);
    let mut alone = host(&rungs, ClimbRules::default());
    alone.configure("sample", ModuleSettings { local_only: true, ..ModuleSettings::default() });
    assert_eq!(asked(&alone)["error"]["code"], "E4007");
    assert_eq!(calls(&rungs), [0]);
}

// COMP-090: a restriction of a module also applies to its parts.
#[test]
fn the_parts_of_a_module_that_may_only_ask_here_stay_here_too() {
    let flow = json!([{ "from": "input", "to": "part" }, { "from": "part.output", "to": "output" }]);
    let composition = json!({ "requires": [{ "name": "part" }], "dataflow": flow });
    let modules = NamedModules::default()
        .with("part", json!({ "tier": "decision" }), &schema(), "Judge.")
        .with("whole", json!({ "tier": "decision", "composition": composition }), &schema(), "Judge.");
    let far = Arc::new(rung("far", answer("a", 0.9, "low")));
    let mut host = Host::new(Arc::new(modules), Arc::clone(&far) as Arc<dyn Provider>);
    let ask = |host: &Host| {
        serde_json::to_value(poll_now(run(host, RunRequest::new("whole", json!({})), &mut NullSink))).unwrap()
    };
    assert_eq!(ask(&host)["ok"], true);
    host.configure("whole", ModuleSettings { local_only: true, ..ModuleSettings::default() });
    assert_eq!(ask(&host)["error"]["code"], "E4007");
    assert_eq!(far.calls().len(), 1, "only before it was forbidden");
}

/// The text that a surface receives.
#[derive(Default)]
struct Heard(String);

impl EventSink for Heard {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Text(text) = event {
            self.0.push_str(text);
        }
    }
}

#[test]
fn nobody_hears_of_an_answer_that_is_not_handed_over() {
    let rungs =
        [rung("wrong", answer("z", 0.9, "low")), rung("large", answer("c", 0.9, "low"))].map(Arc::new);
    let host = host(&rungs, ClimbRules::default());
    let mut heard = Heard::default();
    poll_now(run(&host, RunRequest::new("sample", json!({})), &mut heard));
    assert!(heard.0.contains("\"c\"") && !heard.0.contains("\"z\""), "{}", heard.0);

    let chunks = Mutex::new(Vec::new());
    let send = |chunk: cognitive_contract::stream::Chunk| {
        chunks.lock().unwrap().push(serde_json::to_value(chunk).unwrap());
    };
    poll_now(stream(&host, RunRequest::new("sample", json!({})), send));
    let chunks = chunks.into_inner().unwrap();
    let text = serde_json::to_string(&chunks).unwrap();
    assert!(!text.contains("\"z\""), "{text}");
    let last = chunks.last().unwrap();
    assert_eq!(
        last["final"]["data"]["label"].as_str().or(last["data"]["label"].as_str()),
        Some("c"),
        "{last}"
    );
}

#[test]
fn every_request_is_in_the_audit_with_its_own_model() {
    let rungs = [gone("gone"), rung("large", answer("c", 0.9, "low"))].map(Arc::new);
    let mut host = host(&rungs, ClimbRules::default());
    let log = Arc::new(MemoryAuditLog::default());
    host.audit = Some(Arc::clone(&log) as Arc<_>);
    asked(&host);
    let records = log.records();
    let models: Vec<&str> =
        records.iter().filter(|record| record.event == "call").map(|record| record.model.as_str()).collect();
    assert_eq!(models, ["gone/m", "large/m"]);
    let run = records.iter().find(|record| record.event == "run").unwrap();
    assert_eq!(run.model, "large/m");
}
