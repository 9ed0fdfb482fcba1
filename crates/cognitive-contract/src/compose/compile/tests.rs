//! Tests of compilation: the specification's examples, every fault with its place, and the order of the parts.

use serde_json::{Value, json};

use super::*;
use crate::compose::calls::directives;
use crate::format::Format;
use crate::manifest::Manifest;

fn file(composition: Value) -> CompositionFile {
    serde_json::from_value(composition).unwrap()
}

fn compiled(composition: Value) -> CompiledComposition {
    CompositionPlan::compile(&file(composition), &[]).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

fn faults(composition: Value) -> Vec<String> {
    let found = CompositionPlan::compile(&file(composition), &[]).unwrap_err();
    found
        .into_iter()
        .map(|fault| format!("{} {}", fault.path.replace("/composition", ""), fault.rule))
        .collect()
}

/// A dependency for each name.
fn needs(names: &str) -> Value {
    names.split_whitespace().map(|name| json!({ "name": name })).collect()
}

fn order(plan: &CompositionPlan) -> String {
    plan.order.iter().map(|place| plan.parts[*place].name.as_str()).collect::<Vec<_>>().join(" ")
}

// COMP-001, COMP-010, COMP-034: the three compositions in the specification.
#[test]
fn comp_001_the_printed_pipeline() {
    let CompiledComposition { plan, notes } = compiled(json!({
        "pattern": "sequential",
        "requires": [
            { "name": "code-analyzer", "version": ">=2.0.0" },
            { "name": "security-scanner", "version": ">=1.0.0" },
            { "name": "style-checker", "version": ">=1.0.0", "optional": true },
        ],
        "dataflow": [
            { "from": "input", "to": "code-analyzer", "mapping": { "code": "$.code", "language": "$.language" } },
            { "from": "code-analyzer.output", "to": "security-scanner", "mapping": { "parsed": "$.data.ast" } },
            { "from": "code-analyzer.output", "to": "style-checker", "mapping": { "code": "$.code" },
              "condition": "$.meta.confidence > 0.5" },
            { "from": ["code-analyzer.output", "security-scanner.output", "style-checker.output"],
              "to": "output", "aggregate": "merge" },
        ],
    }));
    assert_eq!(notes, []);
    assert_eq!(order(&plan), "code-analyzer security-scanner style-checker");
    assert_eq!((plan.answer, plan.timeout), (AnswerSource::Flow, Duration::from_mins(1)));
    assert_eq!(plan.parts[1].after, [0]);
    assert!(plan.parts[2].optional && !plan.parts[1].optional);
    assert!(plan.parts[0].range.matches("2.1.0") && !plan.parts[0].range.matches("1.9.0"));
}

#[test]
fn comp_003_the_printed_parallel_reviewers_wait_for_nobody() {
    let reviews = ["security-review", "performance-review", "maintainability-review"];
    let outputs: Vec<String> = reviews.iter().map(|name| format!("{name}.output")).collect();
    let CompiledComposition { plan, notes } = compiled(json!({
        "pattern": "parallel",
        "requires": needs(&reviews.join(" ")),
        "dataflow": [
            { "from": "input", "to": reviews, "mapping": { "code": "$.code" } },
            { "from": outputs, "to": "output", "aggregate": "array" },
        ],
    }));
    assert_eq!(notes, []);
    assert_eq!(order(&plan), reviews.join(" "));
    assert!(plan.parts.iter().all(|part| part.after.is_empty() && part.fed_by == [0]));
}

#[test]
fn comp_004_the_printed_routing_runs_the_first_part_only() {
    let CompiledComposition { plan, notes } = compiled(json!({
        "pattern": "conditional",
        "requires": needs("quick-check deep-analysis exploration-mode"),
        "routing": [
            { "condition": "$.quick-check.meta.confidence > 0.9", "next": null },
            { "condition": "$.quick-check.meta.confidence > 0.5", "next": "deep-analysis" },
            { "condition": "$.quick-check.meta.confidence <= 0.5", "next": "exploration-mode" },
        ],
    }));
    assert_eq!(notes, []);
    assert_eq!(
        (order(&plan).as_str(), plan.answer, plan.rules.len()),
        ("quick-check", AnswerSource::Chosen, 3)
    );
}

#[test]
fn comp_010_011_dependencies_with_every_member() {
    let CompiledComposition { plan, .. } = compiled(json!({
        "requires": [
            { "name": "a", "fallback": "spare", "timeout_ms": 1_500 },
            { "name": "b" },
            { "name": "stand-in" },
        ],
        "fallback": "stand-in", "timeout_ms": 10, "max_depth": 3,
    }));
    let fallbacks: Vec<_> = plan.parts.iter().map(|part| part.fallback.as_deref()).collect();
    assert_eq!(fallbacks, [Some("spare"), Some("stand-in"), None]);
    assert_eq!(plan.parts[0].timeout, Some(Duration::from_millis(1_500)));
    assert_eq!((plan.timeout, plan.max_depth), (Duration::from_millis(10), Some(3)));
    assert_eq!((order(&plan).as_str(), plan.answer), ("a b stand-in", AnswerSource::Prompt));
}

#[test]
fn comp_042_every_fault_is_told_with_its_place() {
    let found = faults(json!({
        "requires": [
            { "name": "a", "version": "newest" },
            { "name": "a" },
            { "name": "output" },
            { "name": "b", "fallback": "b" },
        ],
        "dataflow": [
            { "from": "nowhere.output", "to": "nobody" },
            { "from": "output", "to": "input" },
            { "from": [], "to": ["a", "ghost"] },
            { "from": "input", "to": "a", "mapping": { "x/y": "data.x", "ok": "$.x" }, "condition": "$.a = 1" },
        ],
        "routing": [{ "condition": "&&", "next": "ghost" }],
    }));
    let expected = [
        "/requires/0/version range",
        "/requires/1/name name",
        "/requires/2/name name",
        "/requires/3/fallback name",
        "/dataflow/0/from flow",
        "/dataflow/0/to flow",
        "/dataflow/1/from flow",
        "/dataflow/1/to flow",
        "/dataflow/2/from flow",
        "/dataflow/2/to/1 flow",
        "/dataflow/3/mapping/x~1y path",
        "/dataflow/3/condition condition",
        "/routing/0/next routing",
        "/routing/0/condition condition",
    ];
    assert_eq!(found, expected);
}

#[test]
fn comp_042_a_fault_within_an_expression_names_the_character() {
    let composition = json!({
        "requires": needs("a"),
        "dataflow": [{ "from": "input", "to": "a", "condition": "$.größe = 1" }],
    });
    let [fault] =
        <[CompositionFault; 1]>::try_from(CompositionPlan::compile(&file(composition), &[]).unwrap_err())
            .unwrap();
    assert_eq!(fault.message, "expected `==` (at character 9)");
    assert_eq!(fault.span, Some(10..11));
}

#[test]
fn comp_042_a_wrong_condition_makes_the_manifest_invalid() {
    let manifest = |condition: &str| {
        let composition = json!({
            "pattern": "conditional", "requires": needs("a"), "max_depth": 5.0,
            "routing": [{ "condition": condition, "next": null }],
        });
        Manifest::from_value(&json!({ "name": "m", "composition": composition }), Format::V22)
    };
    assert!(manifest("$.a.meta.confidence > 0.9").is_ok());
    let violations = manifest("$.a.meta.confidence >").unwrap_err();
    assert_eq!(violations[0].path, "/composition/routing/0/condition");
    assert!(violations[0].message.ends_with("(at character 22)"), "{}", violations[0].message);
}

#[test]
fn steps_in_a_circle_are_refused() {
    let flow = |from: &str, to: &str| json!({ "from": format!("{from}.output"), "to": to });
    let circle = |flows: Value| faults(json!({ "requires": needs("a b c"), "dataflow": flows }));
    assert_eq!(circle(json!([flow("a", "b"), flow("b", "c"), flow("c", "a")])), ["/dataflow flow"]);
    assert_eq!(circle(json!([flow("a", "a")])), ["/dataflow flow"]);
}

#[test]
fn comp_002_parts_run_in_the_order_of_the_flow_whatever_the_lists_say() {
    let CompiledComposition { plan, .. } = compiled(json!({
        "requires": needs("last middle first apart"),
        "dataflow": [
            { "from": "middle", "to": "last" },
            { "from": "first.output", "to": ["middle", "last"] },
            { "from": "input", "to": "first" },
        ],
    }));
    assert_eq!(order(&plan), "apart first middle last");
    assert_eq!(plan.parts[0].after, [1, 2]);
    assert_eq!(plan.parts[0].fed_by, [0, 1]);
}

#[test]
fn comp_063_what_the_prompt_calls_does_not_run_by_itself_as_well() {
    let calls = directives("@call:scanner($INPUT) @call:fed @call:elsewhere").calls;
    let composition = json!({
        "requires": needs("scanner fed other"),
        "dataflow": [{ "from": "input", "to": "fed" }],
    });
    let plan = CompositionPlan::compile(&file(composition), &calls).unwrap().plan;
    assert_eq!(order(&plan), "fed other");
}

#[test]
fn what_can_run_but_is_odd_is_noted() {
    let noted = |composition: Value| -> Vec<String> {
        compiled(composition).notes.into_iter().map(|note| note.path.replace("/composition", "")).collect()
    };
    let requires = needs("a b");
    assert_eq!(noted(json!({ "pattern": "conditional", "requires": requires })), ["/pattern"]);
    let routing = json!([{ "condition": "$.meta.confidence > 0.5", "next": null }]);
    let stray = json!({ "pattern": "conditional", "requires": requires, "routing": routing });
    assert_eq!(noted(stray), ["/routing/0/condition"]);
    let sequential = json!({ "requires": requires, "routing": [{ "condition": "true" }] });
    assert_eq!(noted(sequential), ["/routing"]);
    let dataflow = json!([{
        "from": ["a.output", "input"], "to": "output",
        "mapping": { "x": "$.data", "y": "$.a.data", "z": "$.input.text" }, "condition": "exists($.meta)",
    }]);
    let sources = json!({ "requires": requires, "dataflow": dataflow });
    assert_eq!(noted(sources), ["/dataflow/0/mapping/x", "/dataflow/0/condition"]);
}

#[test]
fn comp_050_a_function_of_the_host_is_asked_for_by_place() {
    let with = |aggregate: &str| {
        let step = json!({ "from": "a", "to": "output", "aggregate": aggregate });
        compiled(json!({ "requires": needs("a"), "dataflow": [step] })).plan.custom_at()
    };
    assert_eq!(with("custom").as_deref(), Some("/composition/dataflow/0/aggregate"));
    assert_eq!(with("merge"), None);
}

#[test]
fn a_conditional_composition_needs_a_part() {
    assert_eq!(faults(json!({ "pattern": "conditional" })), ["/requires routing"]);
}

#[test]
fn a_short_manifest_cannot_ask_for_billions_of_connections() {
    let many: Vec<&str> = vec!["a"; 20_000];
    let step = json!({ "from": many, "to": many });
    assert_eq!(faults(json!({ "requires": needs("a"), "dataflow": [step] })), ["/dataflow flow"]);
}

#[test]
fn faults_of_a_hostile_manifest_are_bounded() {
    let flows: Vec<Value> = (0..5_000).map(|_| json!({ "from": "x", "to": "y" })).collect();
    assert_eq!(faults(json!({ "dataflow": flows })).len(), MAX_VIOLATIONS);
}
