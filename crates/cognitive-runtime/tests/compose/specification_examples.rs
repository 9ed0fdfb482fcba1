//! The printed examples of the specification, run end to end: the compositions, the calls of a prompt, and the two
//! conversations of the context protocol. The manifests contain the printed values as JSON.

use serde_json::{Value, json};

use crate::world::{Reply, World, says, says_with};

fn of_version(world: &mut World, name: &str, version: &str) {
    world.module(name, json!({ "version": version }), "");
}

// COMP-002, COMP-031, C-72: the pipeline of the examples. One of its steps maps a member that an envelope does not
// have.
fn pipeline() -> World {
    let mut world = World::new();
    let dataflow = json!([
        { "from": "input", "to": "code-analyzer", "mapping": { "code": "$.code", "language": "$.language" } },
        { "from": "code-analyzer.output", "to": "security-scanner", "mapping": { "parsed": "$.data.ast" } },
        { "from": "code-analyzer.output", "to": "style-checker", "mapping": { "code": "$.code" },
          "condition": "$.meta.confidence > 0.5" },
        { "from": ["code-analyzer.output", "security-scanner.output", "style-checker.output"], "to": "output",
          "aggregate": "merge" },
    ]);
    let requires = json!([
        { "name": "code-analyzer", "version": ">=2.0.0" }, { "name": "security-scanner", "version": ">=1.0.0" },
        { "name": "style-checker", "version": ">=1.0.0", "optional": true },
    ]);
    let composition = json!({ "pattern": "sequential", "requires": requires, "dataflow": dataflow });
    world.module("code-review-pipeline", json!({ "version": "2.2.0", "composition": composition }), "");
    of_version(&mut world, "code-analyzer", "2.1.0");
    of_version(&mut world, "security-scanner", "1.0.0");
    world.reply("security-scanner", says_with(0.8, "medium", json!({ "holes": 1, "rationale": "scan" })));
    world
}

fn analysis(confidence: f64) -> Reply {
    says_with(confidence, "low", json!({ "ast": { "kind": "def" }, "rationale": "read" }))
}

#[test]
fn comp_002_the_printed_pipeline_runs_in_order_and_merges() {
    let mut world = pipeline();
    of_version(&mut world, "style-checker", "1.4.0");
    world.reply("code-analyzer", analysis(0.9));
    world.reply("style-checker", says_with(0.95, "none", json!({ "style": "ok", "rationale": "style" })));
    let envelope =
        world.run("code-review-pipeline", json!({ "code": "def f(): pass", "language": "python" }));
    assert_eq!(world.called(), ["code-analyzer", "security-scanner", "style-checker"]);
    assert_eq!(world.inputs("code-analyzer"), [r#"{"code":"def f(): pass","language":"python"}"#]);
    assert_eq!(world.inputs("security-scanner"), [r#"{"parsed":{"kind":"def"}}"#]);
    assert_eq!(world.inputs("style-checker"), ["{}"], "an envelope has no `code`");
    let merged = json!({ "ast": { "kind": "def" }, "rationale": "style", "holes": 1, "style": "ok" });
    assert_eq!(envelope["data"], merged, "{envelope}");
    assert_eq!((&envelope["meta"]["confidence"], &envelope["meta"]["risk"]), (&json!(0.8), &json!("medium")));
}

// COMP-012, COMP-043: without the optional part, and with a condition that is false.
#[test]
fn comp_012_the_printed_pipeline_can_do_without_its_optional_part() {
    let mut world = pipeline();
    world.reply("code-analyzer", analysis(0.9));
    let envelope = world.run("code-review-pipeline", json!({ "code": "x" }));
    assert_eq!((&envelope["ok"], &envelope["data"]["holes"]), (&json!(true), &json!(1)));
    assert!(envelope["meta"]["warnings"].to_string().contains("`style-checker`"), "{envelope}");
    let mut world = pipeline();
    of_version(&mut world, "style-checker", "1.4.0");
    world.reply("code-analyzer", analysis(0.5));
    assert_eq!(world.run("code-review-pipeline", json!({ "code": "x" }))["ok"], true);
    assert_eq!(world.called(), ["code-analyzer", "security-scanner"]);
}

// COMP-021: the installed analyzer is too old.
#[test]
fn comp_021_the_printed_pipeline_asks_for_versions() {
    let mut world = pipeline();
    of_version(&mut world, "code-analyzer", "1.9.9");
    let envelope = world.run("code-review-pipeline", json!({ "code": "x" }));
    assert_eq!((&envelope["error"]["code"], world.called().len()), (&json!("E4006"), 0));
}

// COMP-003, COMP-051
#[test]
fn comp_003_the_printed_reviewers_look_at_the_same_code_and_report_in_order() {
    let names = ["security-review", "performance-review", "maintainability-review"];
    let outputs = names.map(|name| format!("{name}.output"));
    let dataflow = json!([{ "from": "input", "to": names, "mapping": { "code": "$.code" } },
                          { "from": outputs, "to": "output", "aggregate": "array" }]);
    let requires = names.map(|name| json!({ "name": name }));
    let composition = json!({ "pattern": "parallel", "requires": requires, "dataflow": dataflow });
    let mut world = World::new();
    world.module(
        "multi-reviewer",
        json!({ "version": "1.0.0", "tier": "exploration", "composition": composition }),
        "",
    );
    for name in names {
        world.module(name, json!({}), "").reply(name, says(name));
    }
    let envelope = world.run("multi-reviewer", json!({ "code": "x", "other": 1 }));
    for name in names {
        assert_eq!(world.inputs(name), [r#"{"code":"x"}"#]);
    }
    let results = json!(names.map(|name| json!({ "rationale": name })));
    assert_eq!(envelope["data"]["results"], results, "{envelope}");
}

// COMP-004
#[test]
fn comp_004_the_printed_rules_choose_by_confidence() {
    let routing = json!([
        { "condition": "$.quick-check.meta.confidence > 0.9", "next": null },
        { "condition": "$.quick-check.meta.confidence > 0.5", "next": "deep-analysis" },
        { "condition": "$.quick-check.meta.confidence <= 0.5", "next": "exploration-mode" },
    ]);
    let names = ["quick-check", "deep-analysis", "exploration-mode"];
    for (confidence, last) in [(0.95, 0), (0.9, 1), (0.51, 1), (0.5, 2), (0.0, 2)] {
        let mut world = World::new();
        let requires = names.map(|name| json!({ "name": name }));
        let composition = json!({ "pattern": "conditional", "requires": requires, "routing": routing });
        world.module("smart-processor", json!({ "version": "1.0.0", "composition": composition }), "");
        for name in names {
            world.module(name, json!({}), "").reply(name, says(name));
        }
        world.reply("quick-check", says_with(confidence, "low", json!({ "rationale": "quick-check" })));
        let envelope = world.run("smart-processor", json!({ "text": "x" }));
        assert_eq!(envelope["data"]["rationale"], names[last], "{confidence}: {envelope}");
        assert_eq!(world.called().len(), if last == 0 { 1 } else { 2 });
    }
}

// COMP-060, COMP-064, PROMPT-009: the steps and references of the section on call directives.
#[test]
fn comp_060_the_printed_calls_are_made_and_their_results_injected() {
    let prompt = "# Work\n\n1. What is the structure?\n   @call:code-analyzer($INPUT)\n\n\
                  2. Where can it be attacked?\n   @call:security-scanner($.data.parsed_ast)\n\n\
                  - Risk: {{code-analyzer.meta.risk}}\n- Sure by: {{code-analyzer.meta.confidence}}\n\
                  {{code-analyzer.data.summary}}\n";
    let mut world = World::new();
    world.module("main", json!({}), prompt).module("code-analyzer", json!({}), "");
    world.module("security-scanner", json!({}), "").reply("security-scanner", says("scan"));
    let data = json!({ "parsed_ast": { "n": 1 }, "summary": "One function.", "rationale": "r" });
    world.reply("code-analyzer", says_with(0.87, "medium", data)).reply("main", says("main"));
    let envelope = world.run("main", json!({ "code": "x" }));
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(world.called(), ["code-analyzer", "security-scanner", "main"]);
    assert_eq!(world.inputs("security-scanner"), [r#"{"n":1}"#]);
    let said = world.instructions("main");
    assert!(said.contains("- Risk: medium\n- Sure by: 0.87\nOne function.\n"), "{said}");
    assert!(said.contains("structure?\n   [Result from @call:code-analyzer]:\n{"), "{said}");
}

fn issues(found: &Value) -> Value {
    json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
            "data": { "issues": found, "rationale": "As seen." } })
}

// CTX-006, CTX-020, CTX-012: the review of two turns, with the requests and the response of the context protocol.
#[test]
fn ctx_006_020_the_printed_review_goes_over_two_requests() {
    let mut world = World::new();
    let context = json!({
        "accepts": [{ "type": "conversation_history", "max_turns": 5, "required": false },
                    { "type": "session_state", "required": false }],
        "emits": [{ "type": "session_state", "ttl": 3600 }],
    });
    world.module("interactive-reviewer", json!({ "version": "1.0.0", "context": context }), "");
    let state = json!({ "session_state": { "files_reviewed": ["login.py"], "issues_found": 2 } });
    let mut first = issues(&json!(["SQL injection", "No rate limiting"]));
    first["_emitted_context"] = state.clone();
    world
        .reply("interactive-reviewer", Reply::Turns(vec![Reply::Say(first), Reply::Say(issues(&json!([])))]));
    let one = world.run("interactive-reviewer", json!({ "code": "def login(u, p): ...", "_context": {} }));
    assert_eq!((&one["_emitted_context"], &one["data"]["issues"][1]), (&state, &json!("No rate limiting")));
    let history = json!([{ "role": "user", "content": "Review login function" },
                         { "role": "assistant", "content": "Found SQL injection..." }]);
    let handed_on = json!({ "conversation_history": history, "session_state": state["session_state"] });
    let two = world.run(
        "interactive-reviewer",
        json!({ "code": "# Fix the SQL injection", "_context": handed_on.clone() }),
    );
    assert_eq!((&two["ok"], &two["_emitted_context"]), (&json!(true), &Value::Null));
    let asked = world.inputs("interactive-reviewer");
    assert!(!asked[0].contains("Context") && asked[1].contains(&handed_on.to_string()), "{asked:?}");
}

// CTX-003, CTX-014: the explanation that requires a profile, and sees one field of it.
#[test]
fn ctx_003_014_the_printed_explainer_needs_a_level_and_sees_nothing_else() {
    let accepts = json!([{ "type": "user_profile", "fields": ["expertise_level"], "required": true }]);
    for level in ["beginner", "expert"] {
        let mut world = World::new();
        let manifest =
            json!({ "version": "1.0.0", "tier": "exploration", "context": { "accepts": accepts } });
        world.module("adaptive-explainer", manifest, "").reply("adaptive-explainer", says(level));
        let code = "async function fetchData() { ... }";
        assert_eq!(world.run("adaptive-explainer", json!({ "code": code }))["error"]["code"], "E1001");
        let profile = json!({ "expertise_level": level, "locale": "en-US" });
        let input = json!({ "code": code, "_context": { "user_profile": profile } });
        assert_eq!(world.run("adaptive-explainer", input)["data"]["rationale"], level);
        let asked = world.inputs("adaptive-explainer");
        assert!(asked.len() == 1 && asked[0].contains(level) && !asked[0].contains("en-US"), "{asked:?}");
    }
}
