//! The execution of parts: in order, concurrently, by rules; with fallbacks, skipped, or refused.

use cognitive_contract::ErrorCode;
use serde_json::{Value, json};

use crate::flow;
use crate::world::{Reply, World, says, says_with};

fn three(pattern: &str) -> Value {
    json!({ "pattern": pattern, "requires": [{ "name": "one" }, { "name": "two" }, { "name": "three" }],
        "dataflow": [{ "from": ["one.output", "two.output", "three.output"], "to": "output", "aggregate": "array" }] })
}

#[test]
fn comp_002_033_sequential_parts_run_in_the_order_of_the_data() {
    let mut world = World::new();
    let dataflow = json!([
        { "from": "two.output", "to": "one", "mapping": { "n": "$.data.n", "sure": "$.meta.confidence", "none": "$.x" } },
        { "from": "one.output", "to": "output" }, flow("input", "two"),
    ]);
    let requires = json!([{ "name": "one" }, { "name": "two" }]);
    world.module("main", json!({ "composition": { "requires": requires, "dataflow": dataflow } }), "");
    world.module("one", json!({}), "").module("two", json!({}), "");
    world.reply("two", says_with(0.9, "low", json!({ "n": 7, "rationale": "two" })));
    world.reply("one", says_with(0.7, "medium", json!({ "done": true, "rationale": "one" })));
    let envelope = world.run("main", json!({ "q": 1 }));
    assert_eq!(world.called(), ["two", "one"]);
    assert_eq!(world.inputs("two"), [r#"{"q":1}"#]);
    assert_eq!(world.inputs("one"), [r#"{"n":7,"sure":0.9}"#]);
    assert_eq!(envelope["data"], json!({ "done": true, "rationale": "one" }), "{envelope}");
    // COMP-051: the lowest confidence, the highest risk.
    assert_eq!((&envelope["meta"]["confidence"], &envelope["meta"]["risk"]), (&json!(0.7), &json!("medium")));
}

// COMP-003, S-26: all three have started before any ends; results are in declaration order.
#[test]
fn comp_003_051_parallel_parts_run_at_the_same_time() {
    let mut world = World::new();
    world.module("main", json!({ "composition": three("parallel") }), "");
    for name in ["one", "two", "three"] {
        world.module(name, json!({}), "").reply(name, Reply::Gate(Box::new(says(name))));
    }
    let (called, envelope) = world.run_then_open("main", &["three", "two", "one"]);
    assert_eq!(called, ["one", "two", "three"], "before any gate is opened");
    let results: Vec<&Value> =
        envelope["data"]["results"].as_array().unwrap().iter().map(|each| &each["rationale"]).collect();
    assert_eq!(results, ["one", "two", "three"]);
    assert_eq!(
        envelope["meta"]["usage"],
        json!({ "input_tokens": 30, "output_tokens": 6, "total_tokens": 36 })
    );
    assert_eq!(envelope["data"]["rationale"], "one: one\n\ntwo: two\n\nthree: three");
}

#[test]
fn at_most_four_run_at_once() {
    let mut world = World::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let requires: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    let dataflow = json!([{ "from": names, "to": "output", "aggregate": "array" }]);
    world.module(
        "main",
        json!({ "composition": { "pattern": "parallel", "requires": requires, "dataflow": dataflow } }),
        "",
    );
    for name in names {
        world.module(name, json!({}), "").reply(name, Reply::Gate(Box::new(says(name))));
    }
    let (called, envelope) = world.run_then_open("main", &names);
    assert_eq!(called, ["a", "b", "c", "d"]);
    assert_eq!(envelope["data"]["results"].as_array().unwrap().len(), 6);
}

#[test]
fn comp_081_the_first_failure_ends_the_others() {
    let mut world = World::new();
    world.module("main", json!({ "composition": three("parallel") }), "");
    for name in ["one", "two", "three"] {
        world.module(name, json!({}), "");
    }
    world.reply("one", says("one")).reply("two", Reply::Gate(Box::new(says("two"))));
    world.reply("three", Reply::Gate(Box::new(Reply::Refuse("E2003"))));
    let (called, envelope) = world.run_then_open("main", &["three"]);
    assert_eq!(called, ["one", "two", "three"]);
    assert_eq!(world.dropped(), ["two"], "the call that nobody waits for is ended");
    assert_eq!((&envelope["ok"], &envelope["error"]["code"]), (&json!(false), &json!("E2003")));
    assert_eq!(
        envelope["partial_data"],
        json!({ "one": { "rationale": "one" }, "two": null, "three": null })
    );
    assert_eq!(envelope["error"]["details"]["module"], "three");
}

// D-16: a caller that routes on a failure needs its kind, also through a composition.
#[test]
fn d_16_comp_081_a_composition_says_what_kind_of_failure_its_part_had() {
    let mut world = World::new();
    world.module("main", json!({ "composition": three("sequential") }), "");
    for name in ["one", "two", "three"] {
        world.module(name, json!({}), "");
    }
    world.reply("one", says("one")).reply("two", Reply::Late);
    let alone = world.run("two", json!({}));
    let whole = world.run("main", json!({}));
    assert_eq!(alone["error"]["details"]["kind"], "timeout");
    assert_eq!(whole["error"]["details"]["kind"], "timeout");
    assert_eq!(whole["error"]["details"]["module"], "two");
    assert_eq!(whole["error"]["recoverable"], alone["error"]["recoverable"]);
}

#[test]
fn comp_004_conditional_rules_choose_what_runs_next() {
    for (confidence, called, said, warned) in [
        (0.95, vec!["quick"], "quick", false),
        (0.6, vec!["quick", "deep"], "deep", false),
        (0.55, vec!["quick"], "quick", true),
    ] {
        let mut world = World::new();
        let composition = json!({ "pattern": "conditional", "requires": [{ "name": "quick" }, { "name": "deep" }],
            "routing": [{ "condition": "$.quick.meta.confidence > 0.9", "next": null },
                        { "condition": "$.quick.meta.confidence >= 0.6", "next": "deep" }] });
        world.module("main", json!({ "composition": composition }), "");
        world.module("quick", json!({}), "").module("deep", json!({}), "");
        world
            .reply("quick", says_with(confidence, "low", json!({ "rationale": "quick" })))
            .reply("deep", says("deep"));
        let envelope = world.run("main", json!({}));
        assert_eq!(world.called(), called);
        assert_eq!(envelope["data"]["rationale"], said, "{envelope}");
        assert_eq!(envelope["meta"]["warnings"].to_string().contains("no rule"), warned);
    }
}

#[test]
fn comp_070_071_063_what_cannot_run_asks_no_model() {
    let needs = |names: &[&str]| {
        let requires: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        json!({ "composition": { "requires": requires } })
    };
    let mut world = World::new();
    world.module("a", needs(&["b"]), "").module("b", json!({}), "@call:c").module("c", needs(&["a"]), "");
    world.module("self", json!({}), "@call:self($INPUT)").module("lost", needs(&["good", "nowhere"]), "");
    world.module("good", json!({}), "").module("caller", json!({}), "@call:good @call:nowhere");
    world.module("top", json!({ "composition": { "max_depth": 1, "requires": [{ "name": "mid" }] } }), "");
    world.module("mid", needs(&["good"]), "");
    let custom = json!([{ "from": ["good", "input"], "to": "output", "aggregate": "custom" }]);
    world.module(
        "custom",
        json!({ "composition": { "requires": [{ "name": "good" }], "dataflow": custom } }),
        "",
    );
    for (name, code, text) in [
        ("a", "E4004", "a → b → c → a"),
        ("self", "E4004", "self → self"),
        ("lost", "E4006", "`nowhere`"),
        ("caller", "E4006", "`nowhere`"),
        ("top", "E4005", "top → mid → good"),
        ("custom", "E4000", "/composition/dataflow/0/aggregate"),
    ] {
        let envelope = world.run(name, json!({}));
        assert_eq!(envelope["error"]["code"], code, "{envelope}");
        assert!(envelope["error"]["message"].as_str().unwrap().contains(text), "{envelope}");
    }
    assert_eq!(world.called(), Vec::<String>::new());
}

#[test]
fn comp_011_012_021_fallbacks_and_what_can_be_done_without() {
    let run = |part: Value, replies: &[(&str, Reply)]| {
        let mut world = World::new();
        let dataflow = json!([{ "from": ["part.output", "base.output"], "to": "output" }]);
        let composition = json!({ "requires": [part, { "name": "base" }], "dataflow": dataflow });
        world.module("main", json!({ "composition": composition }), "");
        world.module("part", json!({}), "").module("other", json!({}), "").module("base", json!({}), "");
        world.reply("base", says_with(0.9, "low", json!({ "base": 1, "rationale": "base" })));
        for (name, reply) in replies {
            world.reply(name, reply.clone());
        }
        let envelope = world.run("main", json!({}));
        (world.called(), envelope)
    };
    let (fails, other) = (Reply::Refuse("E2004"), ("other", says("other")));
    let (called, envelope) =
        run(json!({ "name": "part", "fallback": "other" }), &[("part", fails.clone()), other.clone()]);
    assert_eq!(
        (called, &envelope["ok"]),
        (vec!["part".to_owned(), "other".to_owned(), "base".to_owned()], &json!(true))
    );
    // COMP-021: the installed version is 1.2.3.
    let (called, _) = run(json!({ "name": "part", "version": "^2.0.0", "fallback": "other" }), &[other]);
    assert_eq!(called, ["other", "base"]);
    let (called, envelope) = run(json!({ "name": "part", "version": "^2.0.0" }), &[]);
    assert_eq!((called.len(), &envelope["error"]["code"]), (0, &json!("E4006")));
    for part in [json!({ "name": "part", "optional": true }), json!({ "name": "nowhere", "optional": true })]
    {
        let mut world = World::new();
        let dataflow = json!([{ "from": [part["name"], "base"], "to": "output" }]);
        world.module(
            "main",
            json!({ "composition": { "requires": [part, { "name": "base" }], "dataflow": dataflow } }),
            "",
        );
        world.module("part", json!({}), "").module("base", json!({}), "");
        world.reply("part", fails.clone()).reply("base", says("base"));
        let envelope = world.run("main", json!({}));
        assert_eq!(
            (&envelope["ok"], &envelope["data"]["rationale"]),
            (&json!(true), &json!("base")),
            "{envelope}"
        );
        assert!(envelope["meta"]["warnings"].to_string().contains("COMPOSITION"), "{envelope}");
    }
    let (called, envelope) = run(json!({ "name": "part" }), &[("part", fails)]);
    assert_eq!((called, &envelope["error"]["code"]), (vec!["part".to_owned()], &json!("E2004")));
}

#[test]
fn comp_043_a_part_whose_condition_does_not_hold_is_skipped() {
    let mut world = World::new();
    let dataflow = json!([{ "from": "input", "to": "one", "condition": "$.go == true" }, flow("input", "two"),
        { "from": ["one", "two"], "to": "output", "aggregate": "first" }]);
    world.module("main", json!({ "composition": { "requires": [{ "name": "one" }, { "name": "two" }], "dataflow": dataflow } }), "");
    world.module("one", json!({}), "").module("two", json!({}), "").reply("two", says("two"));
    let envelope = world.run("main", json!({ "go": "true" }));
    assert_eq!((world.called(), &envelope["data"]["rationale"]), (vec!["two".to_owned()], &json!("two")));
}

#[test]
fn comp_080_each_child_gets_the_smallest_time_that_remains() {
    let mut world = World::new();
    let requires = json!([{ "name": "one", "timeout_ms": 50 }, { "name": "two" }, { "name": "three", "timeout_ms": 90_000 }]);
    let dataflow = json!([{ "from": ["one", "two", "three"], "to": "output" }]);
    let composition = json!({ "timeout_ms": 50_000, "requires": requires, "dataflow": dataflow });
    world.module("main", json!({ "composition": composition }), "");
    for name in ["one", "two", "three"] {
        world.module(name, json!({}), "").reply(name, says(name));
    }
    world.reply("three", Reply::Late);
    let envelope = world.run("main", json!({}));
    let times = world.times();
    let remaining = 10_001..=50_000;
    assert!(times[0] == 50 && remaining.contains(&times[1]) && remaining.contains(&times[2]), "{times:?}");
    assert_eq!(envelope["error"]["code"], "E2002");
    assert_eq!(envelope["partial_data"]["three"], Value::Null);
    assert_eq!(envelope["partial_data"]["two"]["rationale"], "two");
}

// COMP-071: compositions may be as deep as their root allows, and never overflow the stack.
#[test]
fn comp_071_a_deep_composition_neither_fails_early_nor_breaks() {
    for (levels, code) in [(16, Value::Null), (17, json!("E4005")), (3_000, json!("E4005"))] {
        let mut world = World::new();
        for level in 0..levels {
            let composition = json!({ "max_depth": 100_000, "requires": [{ "name": format!("m{}", level + 1) }],
                "dataflow": [flow(&format!("m{}", level + 1), "output")] });
            world.module(&format!("m{level}"), json!({ "composition": composition }), "");
        }
        let last = format!("m{levels}");
        world.module(&last, json!({}), "").reply(&last, says("bottom"));
        let envelope = world.run("m0", json!({}));
        assert_eq!(envelope["error"]["code"], code, "{levels}: {envelope}");
        assert_eq!(world.called().len(), usize::from(code.is_null()));
    }
}

#[test]
fn an_overview_names_every_module_and_what_would_run() {
    let mut world = World::new();
    let requires = json!([{ "name": "one", "version": "^1.0.0", "fallback": "two" }, { "name": "old", "version": "^2.0.0", "optional": true }]);
    world.module(
        "main",
        json!({ "composition": { "pattern": "parallel", "requires": requires } }),
        "@call:three",
    );
    for name in ["one", "two", "three", "old"] {
        world.module(name, json!({}), "");
    }
    let overview = serde_json::to_value(world.overview("main").unwrap()).unwrap();
    assert_eq!(
        (&overview["pattern"], &overview["answer"], &overview["depth"]),
        (&json!("parallel"), &json!("prompt"), &json!(1))
    );
    assert_eq!(overview["runs"], json!(["one", "old"]));
    let needs = overview["modules"][0]["needs"].as_array().unwrap();
    assert_eq!(needs[0], json!({ "name": "one", "version": "1.2.3", "optional": false, "fallback": "two" }));
    assert_eq!(needs[1], json!({ "name": "old", "version": null, "optional": true, "fallback": null }));
    assert_eq!(needs[2]["name"], "three");
    let mermaid = world.overview("main").unwrap().mermaid();
    assert!(
        mermaid.contains("n0[\"main 1.2.3\"]")
            && mermaid.contains("n0 --> n1")
            && mermaid.contains("-. fallback .->"),
        "{mermaid}"
    );
    assert!(world.overview("one").unwrap().runs.is_empty());
    world.module("loop", json!({}), "@call:loop");
    assert_eq!(world.overview("loop").unwrap_err().code(), ErrorCode::CircularDependency);
}

// COMP-080: also if the model exceeds its timeout. The gate is never opened.
#[test]
fn comp_080_a_child_that_does_not_end_is_ended() {
    let mut world = World::new();
    let requires = json!([{ "name": "one", "timeout_ms": 1 }]);
    let dataflow = json!([flow("one.output", "output")]);
    world.module("main", json!({ "composition": { "requires": requires, "dataflow": dataflow } }), "");
    world.module("one", json!({}), "").reply("one", Reply::Gate(Box::new(says("one"))));
    let envelope = world.wait_for("main");
    assert_eq!((&envelope["error"]["code"], world.dropped()), (&json!("E2002"), vec!["one".to_owned()]));
    assert_eq!(world.records().len(), 2, "the books have both");
}
