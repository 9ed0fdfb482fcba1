//! Previews of prompts: what `cogn prompt` and Studio show is what the service then gets, for each part of a composition.

use cognitive_testkit::{FakeModel, Home, TestServer};
use serde_json::{Value, json};

use crate::{answering, good, home};

/// A composition of `first` and `second`. Its answer comes from its parts, or else from its own prompt.
fn composed(run: &Home, from_parts: bool) {
    let mut flow = vec![
        json!({ "from": "input", "to": "first" }),
        json!({ "from": "first.output", "to": "second", "mapping": { "text": "$.data.rationale" } }),
    ];
    if from_parts {
        flow.push(json!({ "from": "second.output", "to": "output" }));
    }
    let needs = json!({ "requires": [{ "name": "first" }, { "name": "second" }], "dataflow": flow });
    run.simple_module("first", &json!({}));
    run.simple_module("second", &json!({}));
    run.simple_module("whole", &json!({ "composition": needs, "policies": { "network": "deny" } }));
    run.write("cognitive/modules/first/prompt.md", "Look at $ARGUMENTS.");
    run.write("cognitive/modules/whole/prompt.md", "The prompt of the whole.");
}

/// The messages of each request to the service.
fn sent(service: &FakeModel) -> Vec<Value> {
    service.requests().into_iter().map(|request| request.body["messages"].clone()).collect()
}

fn modules(calls: &Value) -> Vec<&str> {
    calls.as_array().unwrap().iter().map(|call| call["module"].as_str().unwrap()).collect()
}

#[test]
fn the_prompt_of_a_composition_is_shown_part_by_part_as_it_is_sent() {
    let (run, service) = (home(), answering(&good()));
    composed(&run, true);
    let shown = run.json(&["prompt", "whole", "--set", "query=a bridge", "--json"]);
    let calls = &shown["calls"];
    assert_eq!(modules(calls), ["whole/first", "whole/second"], "{shown}");
    assert_eq!(calls[1], json!({ "module": "whole/second", "waits_for": ["first"] }));

    let place = ["--base-url", &service.url(), "--model", "stub"];
    let usual = ["run", "whole", "--set", "query=a bridge"];
    let output = run.cogn(&[&usual[..], &place[..]].concat()).expect_exit(0);
    let sent = sent(&service);
    assert_eq!(sent.len(), 2, "{}", output.all());
    assert_eq!(
        [&sent[0][0]["content"], &sent[0][1]["content"]],
        [&calls[0]["instructions"], &calls[0]["input"]]
    );

    let text = run.cogn(&["prompt", "whole", "--set", "query=a bridge"]).expect_exit(0);
    text.assert_stdout(&["Look at a bridge."]);
    text.err_has(&["whole/first", "whole/second: the prompt depends on the answer of first"]);
    assert!(!text.all().contains("The prompt of the whole."), "{}", text.all());
}

#[test]
fn a_prompt_with_the_answers_of_parts_is_not_made_up() {
    let run = home();
    composed(&run, false);
    let shown = run.json(&["prompt", "whole", "--set", "query=a bridge", "--json"]);
    assert_eq!(modules(&shown["calls"]), ["whole/first", "whole/second", "whole"], "{shown}");
    assert_eq!(shown["calls"][2]["waits_for"], json!(["first", "second"]));
}

#[test]
fn studio_shows_the_requests_of_a_composition_as_they_are_sent() {
    let (run, service) = (home(), answering(&good()));
    composed(&run, true);
    let server = TestServer::start(&run, &["--base-url", &service.url(), "--model", "stub"], &[]);
    let shown = server.post("/v1/modules/whole/preview", &json!({ "query": "a bridge" }));
    let calls = &shown["calls"];
    assert_eq!(modules(calls), ["whole/first", "whole/second"], "{shown}");
    assert_eq!(calls[1], json!({ "module": "whole/second", "waits_for": ["first"] }));
    let answer = server.post("/api/run/whole", &json!({ "query": "a bridge" }));
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(calls[0]["request"]["body"], service.requests()[0].body, "{shown}");
    assert!(calls[0]["curl"].as_str().unwrap().contains("a bridge"), "{shown}");
}
