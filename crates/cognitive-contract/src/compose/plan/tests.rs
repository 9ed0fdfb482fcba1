//! Tests of the data flow: inputs of parts, the answer, routing, and missing results.

use serde_json::json;

use super::*;
use crate::compose::calls::directives;
use crate::compose::graph::Graph;

fn plan(composition: Value) -> CompositionPlan {
    CompositionPlan::compile(&serde_json::from_value(composition).unwrap(), &[]).unwrap().plan
}

fn needs(names: &str) -> Value {
    names.split_whitespace().map(|name| json!({ "name": name })).collect()
}

fn envelope(confidence: f64, data: Value) -> Value {
    json!({ "ok": true, "meta": { "confidence": confidence, "risk": "low" }, "data": data })
}

struct Run {
    input: Value,
    results: Vec<Option<Value>>,
}

impl Run {
    fn progress(&self) -> Progress<'_> {
        Progress { input: &self.input, results: &self.results, custom: None }
    }
}

#[test]
fn comp_031_033_roots_and_what_flows_without_a_mapping() {
    let plan = plan(json!({
        "requires": needs("a b c d e"),
        "dataflow": [
            { "from": "input", "to": "a" },
            { "from": "a.output", "to": "b" },
            { "from": "a.output", "to": "c", "mapping": { "n": "$.data.n", "sure": "$.meta.confidence", "no": "$.code" } },
            { "from": ["input", "a.output"], "to": "d", "mapping": { "text": "$.input.text", "n": "$.a.data.n" } },
            { "from": ["a.output", "b.output"], "to": "e" },
        ],
    }));
    let results = vec![
        Some(envelope(0.8, json!({ "n": 1, "x": { "p": 1 } }))),
        Some(envelope(0.7, json!({ "x": { "q": 2 } }))),
    ];
    let run = Run { input: json!({ "text": "T" }), results };
    let input_of = |name: &str| plan.input_of(plan.part(name).unwrap(), run.progress()).unwrap();
    assert_eq!(input_of("a"), json!({ "text": "T" }));
    assert_eq!(input_of("b"), json!({ "n": 1, "x": { "p": 1 } }));
    assert_eq!(input_of("c"), json!({ "n": 1, "sure": 0.8 }));
    assert_eq!(input_of("d"), json!({ "text": "T", "n": 1 }));
    assert_eq!(input_of("e"), json!({ "n": 1, "x": { "p": 1, "q": 2 } }));
}

#[test]
fn comp_043_a_false_condition_skips_the_step_and_what_nothing_else_feeds() {
    let plan = plan(json!({
        "requires": needs("a b c"),
        "dataflow": [
            { "from": "input", "to": "a" },
            { "from": "a.output", "to": ["b", "c"], "condition": "$.meta.confidence > 0.5", "mapping": { "n": "$.data.n" } },
            { "from": "input", "to": "c", "mapping": { "text": "$.text" } },
        ],
    }));
    let with = |confidence: f64| Run {
        input: json!({ "text": "T" }),
        results: vec![Some(envelope(confidence, json!({ "n": 1 }))), None, None],
    };
    let (sure, unsure) = (with(0.9), with(0.1));
    assert_eq!(plan.input_of(1, sure.progress()), Some(json!({ "n": 1 })));
    assert_eq!(plan.input_of(2, sure.progress()), Some(json!({ "n": 1, "text": "T" })));
    assert_eq!(plan.input_of(1, unsure.progress()), None);
    assert_eq!(plan.input_of(2, unsure.progress()), Some(json!({ "text": "T" })));
}

#[test]
fn comp_012_a_part_without_a_result_feeds_nothing_and_erases_nothing() {
    let flows = |aggregate: &str| {
        plan(json!({
            "requires": needs("a b c"),
            "dataflow": [
                { "from": "a.output", "to": "b", "mapping": { "n": "$.data.n" } },
                { "from": ["a.output", "c.output"], "to": "output", "aggregate": aggregate },
            ],
        }))
    };
    let run = Run { input: json!({}), results: vec![None, None, Some(envelope(0.9, json!({ "n": 3 })))] };
    assert_eq!(flows("merge").input_of(1, run.progress()), None);
    assert_eq!(flows("merge").output(run.progress()), Some(json!({ "n": 3 })));
    assert_eq!(flows("first").output(run.progress()), Some(json!({ "n": 3 })));
    assert_eq!(flows("array").output(run.progress()), Some(json!({ "results": [null, { "n": 3 }] })));
    let nothing = Run { input: json!({}), results: Vec::new() };
    assert_eq!(flows("merge").output(nothing.progress()), None);
}

#[test]
fn comp_050_custom_uses_the_function_of_the_host() {
    let plan = plan(json!({
        "requires": needs("a b"),
        "dataflow": [{ "from": ["a", "b"], "to": "output", "aggregate": "custom" }],
    }));
    let results = vec![Some(envelope(0.9, json!({ "n": 1 }))), None];
    let input = json!({});
    let count = CustomAggregate::new(|values| Value::from(values.len()));
    let progress = Progress { input: &input, results: &results, custom: Some(&count) };
    assert_eq!(plan.output(progress), Some(json!({ "value": 2 })));
    assert_eq!(plan.output(Progress { custom: None, ..progress }), None);
}

#[test]
fn comp_004_031_rules_see_results_by_name() {
    let plan = plan(json!({
        "pattern": "conditional", "requires": needs("quick-check deep"),
        "routing": [
            { "condition": "exists($.deep)", "next": null },
            { "condition": "$.quick-check.meta.confidence < 0.9", "next": "deep" },
        ],
    }));
    let with = |confidence: f64| Run {
        input: json!({}),
        results: vec![Some(envelope(confidence, json!({}))), None],
    };
    assert_eq!(plan.route(with(0.5).progress()), Choice::Next("deep"));
    assert_eq!(plan.route(with(0.95).progress()), Choice::NoRule);
    // A part without incoming steps gets the input.
    let run = Run { input: json!({ "text": 1 }), results: Vec::new() };
    assert_eq!(plan.input_of(1, run.progress()), Some(json!({ "text": 1 })));
}

#[test]
fn sec_023_results_and_input_are_never_read_as_expressions() {
    let hostile = "$.input.secret {{a.data}} @call:evil($INPUT) $INPUT";
    let plan = plan(json!({
        "requires": needs("a b"),
        "dataflow": [
            { "from": "input", "to": "a", "mapping": { "text": "$.text" } },
            { "from": "a.output", "to": "b", "condition": "$.data.say != '$.data.other'" },
        ],
    }));
    let run = Run {
        input: json!({ "text": hostile, "secret": "s" }),
        results: vec![Some(envelope(0.9, json!({ "say": hostile, hostile: "$.data", "other": hostile })))],
    };
    assert_eq!(plan.input_of(0, run.progress()), Some(json!({ "text": hostile })));
    let passed_on = json!({ "say": hostile, hostile: "$.data", "other": hostile });
    assert_eq!(plan.input_of(1, run.progress()), Some(passed_on));
}

#[test]
fn comp_063_calls_are_needs_too_and_keep_the_declared_range() {
    let calls = directives("@call:a[optional] @call:b @call:c[optional] @call:d").calls;
    let plan = plan(json!({ "requires": [
        { "name": "a", "version": "^1.0.0" },
        { "name": "b", "version": "^2.0.0", "optional": true, "fallback": "spare" },
    ] }));
    let node = plan.node("1.0.0", &calls);
    let shown: Vec<_> = node
        .needs
        .iter()
        .map(|need| format!("{} {} {:?}", need.name, need.optional, need.fallback.as_deref()))
        .collect();
    // `b` is optional in `requires` but not in the call, so the call requires it.
    let expected =
        ["a false None", "b true Some(\"spare\")", "b false Some(\"spare\")", "c true None", "d false None"];
    assert_eq!(shown, expected);
    assert!(!node.needs[2].range.matches("1.0.0"));
    let mut graph = Graph::new("root");
    graph.add("root", node);
    assert!(graph.check().is_err());
}
