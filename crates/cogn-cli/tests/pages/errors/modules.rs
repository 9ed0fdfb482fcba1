//! Errors of callers and of module authors: no model is called.

use cognitive_testkit::Home;
use serde_json::{Value, json};

use crate::home;

/// Returns the error of the last envelope that a process printed.
pub(crate) fn error(place: &Home, args: &[&str]) -> Value {
    place.json(args)["error"].clone()
}

/// Returns a schema without constraints.
pub(crate) fn plain() -> Value {
    json!({
        "input": { "type": "object" },
        "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
    })
}

/// Writes a module of the project; `more` are lines of its manifest.
pub(crate) fn module(place: &Home, name: &str, more: &str, schema: &Value) {
    let manifest =
        format!("name: {name}\nversion: 1.0.0\nresponsibility: Find a word\nexcludes: [prose]\n{more}\n");
    place.module(name, &manifest, "Answer with an envelope: `ok`, `meta`, `data`.\n", schema);
}

/// Runs a module with this manifest, and returns the error.
fn run_of(name: &str, more: &str, args: &[&str]) -> Value {
    let place = home();
    module(&place, name, more, &plain());
    error(&place, &[&["run", name, "--provider", "openai"], args].concat())
}

/// Writes a chain of modules, each of which requires the next.
fn chain(place: &Home, names: &[&str]) {
    for pair in names.windows(2) {
        let more = format!("composition: {{pattern: sequential, requires: [{{name: {}}}]}}", pair[1]);
        module(place, pair[0], &more, &plain());
    }
}

pub(crate) fn broken_input(_: &Value) -> Value {
    run_of("words", "tier: decision", &["--input", "{\"code\": "])
}

pub(crate) fn missing_field(_: &Value) -> Value {
    let input = r#"{"language": "python"}"#;
    error(&home(), &["run", "code-reviewer", "--provider", "openai", "--input", input])
}

pub(crate) fn long_input(_: &Value) -> Value {
    let text = format!("text={}", "word ".repeat(200));
    run_of("words", "runtime_requirements: {max_input_tokens: 100}", &["--set", &text])
}

pub(crate) fn broken_module(_: &Value) -> Value {
    run_of("words", "tier: fast", &["--set", "text=x"])
}

pub(crate) fn circle(_: &Value) -> Value {
    let place = home();
    chain(&place, &["planner", "reviewer", "planner"]);
    error(&place, &["run", "planner", "--provider", "openai", "--set", "text=x"])
}

pub(crate) fn too_deep(_: &Value) -> Value {
    let place = home();
    chain(&place, &["a", "b", "c", "d", "e", "f", "tokenizer"]);
    module(&place, "tokenizer", "", &plain());
    error(&place, &["run", "a", "--provider", "openai", "--set", "text=x"])
}

pub(crate) fn misspelt(_: &Value) -> Value {
    error(&home(), &["run", "code-reviwer", "--provider", "openai", "--set", "code=x"])
}

pub(crate) fn not_for_users(_: &Value) -> Value {
    run_of("internal-ranker", "invocation: {user_invocable: false}", &["--set", "text=x"])
}

pub(crate) fn no_stream(_: &Value) -> Value {
    run_of("words", "response: {mode: sync}", &["--set", "text=x", "--stream", "--require-streaming"])
}

pub(crate) fn too_many_calls(_: &Value) -> Value {
    let place = home();
    let parts = ["security-scanner", "style-checker", "naming"];
    for part in parts {
        module(&place, part, "", &plain());
    }
    let requires = parts.map(|part| format!("{{name: {part}}}")).join(", ");
    let more = format!("composition: {{pattern: parallel, requires: [{requires}]}}");
    module(&place, "pipeline", &more, &plain());
    error(&place, &["run", "pipeline", "--provider", "openai", "--set", "text=x", "--max-calls", "2"])
}

pub(crate) fn too_dear(_: &Value) -> Value {
    let place = home();
    module(&place, "words", "", &plain());
    error(&place, &["run", "words", "--provider", "openai", "--set", "text=x", "--max-cost", "0.0001"])
}
