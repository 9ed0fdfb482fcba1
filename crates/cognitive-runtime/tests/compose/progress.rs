//! The visibility of a composition, live and afterwards: progress in a stream, events, the tree of a trace.

use cognitive_contract::stream::{assemble, check_log};
use serde_json::{Value, json};

use crate::flow;
use crate::world::{Reply, World, says};

// The answers of the parts reach the reader of a stream whole, and so does a failure.
#[test]
fn a_composition_can_be_streamed() {
    for fails in [false, true] {
        let mut world = World::new();
        let composition =
            json!({ "requires": [{ "name": "one" }], "dataflow": [flow("one.output", "output")] });
        let manifest = json!({ "composition": composition, "response": { "mode": "streaming" } });
        world.module("main", manifest, "").module("one", json!({}), "");
        world.reply("one", if fails { Reply::Refuse("E2004") } else { says("one") });
        let chunks = world.stream("main");
        assert!(check_log(&chunks).is_empty(), "{chunks:?}");
        let envelope = serde_json::to_value(assemble(chunks)).unwrap();
        let (ok, code) = (&envelope["ok"], &envelope["error"]["code"]);
        assert_eq!(
            (ok, code),
            (&json!(!fails), &if fails { json!("E2004") } else { Value::Null }),
            "{envelope}"
        );
    }
}

fn nested() -> World {
    let mut world = World::new();
    let outer = json!({ "requires": [{ "name": "one" }, { "name": "inner" }],
        "dataflow": [flow("input", "one"), flow("one.output", "inner"), flow("inner.output", "output")] });
    world.module("main", json!({ "composition": outer, "response": { "mode": "streaming" } }), "");
    world.module("one", json!({}), "").reply("one", says("one"));
    world.module("inner", json!({}), "@call:leaf").reply("inner", says("inner"));
    world.module("leaf", json!({}), "").reply("leaf", says("leaf"));
    world
}

#[test]
fn every_part_is_heard_of_also_parts_of_parts() {
    let (parts, _) = nested().watch("main", &[]);
    let states: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.starts_with(' ')).collect();
    assert_eq!(
        states,
        [
            "one started 0/2",
            "one finished 1/2",
            "inner started 1/2",
            "inner/leaf started 1/2",
            "inner/leaf finished 1/2",
            "inner finished 2/2",
        ]
    );
    // A listener for signs of life gets one for every call.
    assert!(parts.iter().any(|part| part.starts_with(" speaks")), "{parts:?}");
}

// The percentages never go back, and every chunk is legal in a stream.
#[test]
fn a_stream_says_which_part_has_started_and_finished() {
    let chunks = nested().stream("main");
    assert!(check_log(&chunks).is_empty(), "{chunks:?}");
    let progress: Vec<&Value> =
        chunks.iter().map(|chunk| &chunk["progress"]).filter(|value| value.is_object()).collect();
    let said: Vec<(u64, &str)> = progress
        .iter()
        .map(|each| (each["percent"].as_u64().unwrap(), each["message"].as_str().unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            (10, "one started"),
            (45, "one finished"),
            (45, "inner started"),
            (45, "inner/leaf started"),
            (45, "inner/leaf finished"),
            (80, "inner finished"),
        ]
    );
    assert!(progress.iter().all(|each| each["stage"] == "part"), "{progress:?}");
}

#[test]
fn a_trace_is_the_tree_of_what_ran_with_time_and_tokens() {
    let (_, trace) = nested().watch("main", &[]);
    let (one, inner) = (&trace["parts"][0], &trace["parts"][1]);
    assert_eq!((&trace["module"], &trace["usage"]["total_tokens"]), (&json!("main"), &json!(36)));
    assert_eq!((&one["module"], &one["usage"]["total_tokens"]), (&json!("one"), &json!(12)));
    assert_eq!((&inner["parts"][0]["module"], &inner["usage"]["total_tokens"]), (&json!("leaf"), &json!(24)));
    assert_eq!(
        (&one["version"], &one["confidence"], &one["risk"]),
        (&json!("1.2.3"), &json!(0.9), &json!("low"))
    );
    let time = |node: &Value| node["latency_ms"].as_f64().unwrap();
    assert!(time(&trace) >= time(inner) && time(inner) >= time(&inner["parts"][0]), "{trace}");
    assert!(inner["started_ms"].as_f64() >= one["started_ms"].as_f64(), "{trace}");
}

#[test]
fn a_trace_also_names_what_was_skipped_replaced_and_cancelled() {
    let mut world = World::new();
    let dataflow = json!([{ "from": "input", "to": "never", "condition": "$.go == true" }, flow("input", "gone"),
                          flow("input", "slow"), flow("input", "bad"), flow("gone.output", "output")]);
    let requires = json!([{ "name": "never" }, { "name": "gone", "fallback": "other" }, { "name": "slow" },
                          { "name": "bad" }]);
    let composition = json!({ "pattern": "parallel", "requires": requires, "dataflow": dataflow });
    world.module("main", json!({ "composition": composition }), "");
    for name in ["never", "gone", "other", "slow", "bad"] {
        world.module(name, json!({}), "");
    }
    world.reply("gone", Reply::Refuse("E2003")).reply("other", says("other"));
    world.reply("slow", Reply::Gate(Box::new(says("slow"))));
    world.reply("bad", Reply::Gate(Box::new(Reply::Refuse("E2004"))));
    let (parts, trace) = world.watch("main", &["bad"]);
    let nodes: Vec<String> = trace["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| {
            format!("{} {} {} {}", node["module"], node["outcome"], node["code"], node["stands_in_for"])
        })
        .collect();
    assert_eq!(
        nodes.join("\n").replace('"', ""),
        "never skipped null null\ngone failed E2003 null\nother finished null gone\nbad failed E2004 null\nslow cancelled null null"
    );
    assert!(parts.iter().any(|part| part.starts_with("slow cancelled")), "{parts:?}");
    assert_eq!(trace["parts"][0]["because"], "`$.go == true` does not hold");
    let overview = serde_json::to_value(world.overview("main").unwrap()).unwrap();
    assert_eq!(overview["steps"][0]["condition"], "$.go == true");
    let drawn = world.overview("main").unwrap().mermaid();
    assert!(drawn.contains("input -->|\"$.go == true\"| n") && drawn.contains("--> output"), "{drawn}");
}
