//! The party that is blamed when a part of a composition refuses its input. (D-21)

use serde_json::{Value, json};

use crate::flow;
use crate::world::{Reply, World, says, says_with};

/// A contract whose input needs a text `x`.
fn needs_text() -> Value {
    json!({
        "input": { "type": "object", "required": ["x"], "properties": { "x": { "type": "string" } } },
        "data": { "type": "object", "required": ["rationale"] },
    })
}

/// A composition of `a` and `b`, with these steps to `b`, whose input needs a text `x`.
fn world(steps: Value) -> World {
    let mut world = World::new();
    let mut dataflow = vec![flow("input", "a"), flow("b.output", "output")];
    dataflow.extend(steps.as_array().unwrap().iter().cloned());
    let requires = json!([{ "name": "a" }, { "name": "b" }]);
    world.module("main", json!({ "composition": { "requires": requires, "dataflow": dataflow } }), "");
    world.module("a", json!({}), "").module_with("b", json!({}), "", &needs_text());
    world.reply("a", says_with(0.9, "low", json!({ "x": 5, "rationale": "a" }))).reply("b", says("b"));
    world
}

fn blamed(envelope: &Value) -> (&str, &str, &Value, &Value) {
    let error = &envelope["error"];
    let explain = envelope["meta"]["explain"].as_str().unwrap();
    let opening = explain.split_once(':').map_or(explain, |(opening, _)| opening);
    (
        error["code"].as_str().unwrap_or_default(),
        opening,
        &error["details"]["from_part"],
        &error["details"]["pointer"],
    )
}

#[test]
fn d_21_an_answer_that_the_next_part_refuses_is_the_models_fault() {
    for (steps, pointer) in [
        (json!([{ "from": "a.output", "to": "b", "mapping": { "x": "$.data.x" } }]), "/x"),
        (json!([flow("a.output", "b")]), "/x"),
        (json!([{ "from": ["input", "a.output"], "to": "b" }]), "/x"),
        (json!([{ "from": ["input", "a"], "to": "b", "mapping": { "x": "$.a.data.x" } }]), "/x"),
        (json!([flow("input", "b"), flow("a.output", "b")]), "/x"),
    ] {
        let envelope = world(steps.clone()).run("main", json!({ "x": "text" }));
        let expected = ("E3006", "Model answer rejected", &json!("a"), &json!(pointer));
        assert_eq!(blamed(&envelope), expected, "{steps}: {envelope}");
        assert_eq!(envelope["error"]["details"]["to_part"], "b");
        assert!(envelope["partial_data"].get("a").is_some(), "COMP-081: {envelope}");
    }
}

#[test]
fn d_21_an_input_that_the_caller_sent_is_the_callers_fault() {
    for steps in [
        json!([flow("input", "b")]),
        json!([flow("a.output", "b"), flow("input", "b")]),
        json!([{ "from": "input", "to": "b", "mapping": { "x": "$.y.z" } }]),
    ] {
        let envelope = world(steps.clone()).run("main", json!({ "x": 7, "y": { "z": 7 } }));
        assert_eq!(blamed(&envelope).0, "E1001", "{steps}: {envelope}");
        assert_eq!(blamed(&envelope).1, "Input validation failed");
        // The place is in what the caller sent, and not in what the mapping made of it.
        let place = &envelope["error"]["details"]["violations"][0]["path"];
        assert_eq!(place, if steps.to_string().contains("$.y.z") { "/y/z" } else { "/x" });
    }
}

#[test]
fn d_21_a_mapping_that_does_not_fit_is_the_authors_fault() {
    for steps in [
        json!([{ "from": "a.output", "to": "b", "mapping": { "y": "$.data.x" } }]),
        // An envelope has no such member.
        json!([{ "from": "a.output", "to": "b", "mapping": { "x": "$.x" } }]),
        json!([{ "from": ["input", "a.output"], "to": "b", "aggregate": "array" }]),
    ] {
        let envelope = world(steps.clone()).run("main", json!({ "x": "text" }));
        let error = &envelope["error"];
        assert_eq!(
            (&error["code"], &error["details"]["kind"]),
            (&json!("E4000"), &json!("module")),
            "{envelope}"
        );
        assert!(envelope["meta"]["explain"].as_str().unwrap().starts_with("Module"), "{envelope}");
    }
}

#[test]
fn d_21_calls_blame_the_origin_of_their_argument() {
    for (call, code) in [
        ("@call:b($INPUT)", "E1001"),
        ("@call:a($INPUT) @call:b($.data)", "E3006"),
        ("@call:a($INPUT) @call:b($.q)", "E1001"),
    ] {
        let mut world = World::new();
        world.module("main", json!({}), call).reply("main", says("main"));
        world.module("a", json!({}), "").module_with("b", json!({}), "", &needs_text());
        world.reply("a", says_with(0.9, "low", json!({ "x": 5, "rationale": "a" }))).reply("b", says("b"));
        let envelope = world.run("main", json!({ "x": 7, "q": { "x": 1 } }));
        assert_eq!(envelope["error"]["code"], code, "{call}: {envelope}");
    }
}

// A text has no members. If the model of the part refuses it, the origin of the whole input decides.
#[test]
fn d_21_a_part_whose_model_refuses_its_input_blames_the_origin_of_that_input() {
    for (steps, code) in [(json!([flow("input", "b")]), "E1001"), (json!([flow("a.output", "b")]), "E3006")] {
        let mut world = world(steps);
        world.module("b", json!({}), "");
        world.reply("b", Reply::Refuse("INVALID_INPUT"));
        let envelope = world.run("main", json!({ "x": "text" }));
        assert_eq!(blamed(&envelope).0, code, "{envelope}");
    }
    let mut world = World::new();
    world.module("main", json!({}), "@call:b(some text)").reply("main", says("main"));
    world.module("b", json!({}), "").reply("b", Reply::Refuse("INVALID_INPUT"));
    assert_eq!(blamed(&world.run("main", json!({}))).0, "E4000");
}

// A part of a part: what the outer caller sent stays the caller's, and what a model wrote stays the model's.
#[test]
fn d_21_blame_passes_through_every_level() {
    for (steps, code) in [(json!([flow("input", "b")]), "E1001"), (json!([flow("a.output", "b")]), "E3006")] {
        let mut world = world(steps);
        let inner = json!({ "requires": [{ "name": "leaf" }], "dataflow": [flow("input", "leaf"), flow("leaf.output", "output")] });
        world.module("b", json!({ "composition": inner }), "");
        world.module_with("leaf", json!({}), "", &needs_text()).reply("leaf", says("leaf"));
        assert_eq!(blamed(&world.run("main", json!({ "x": 7 }))).0, code);
    }
}
