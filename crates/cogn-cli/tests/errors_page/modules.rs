//! Errors of callers and of module authors: no model is called.

use serde_json::{Value, json};

use crate::support::Place;

/// Returns the error of the last envelope that a process printed.
pub(crate) fn error(place: &Place, args: &[&str]) -> Value {
    let output = place.run(args);
    let last = output.out.lines().last().unwrap_or_default();
    let envelope: Value =
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {} {}", output.out, output.err));
    envelope["error"].clone()
}

/// Returns a schema without constraints.
pub(crate) fn plain() -> Value {
    json!({
        "input": { "type": "object" },
        "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
    })
}

/// Writes a module of the project; `more` are lines of its manifest.
pub(crate) fn module(place: &Place, name: &str, more: &str, schema: &Value) {
    let manifest =
        format!("name: {name}\nversion: 1.0.0\nresponsibility: Find a word\nexcludes: [prose]\n{more}\n");
    let schema = schema.to_string();
    place.module(
        name,
        &[
            ("module.yaml", &manifest),
            ("prompt.md", "Answer with an envelope: `ok`, `meta`, `data`.\n"),
            ("schema.json", &schema),
        ],
    );
}

/// Runs a module with this manifest, and returns the error.
fn run_of(name: &str, more: &str, args: &[&str]) -> Value {
    let place = Place::new();
    module(&place, name, more, &plain());
    error(&place, &[&["run", name, "--provider", "openai"], args].concat())
}

/// Writes a chain of modules, each of which requires the next.
fn chain(place: &Place, names: &[&str]) {
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
    error(&Place::new(), &["run", "code-reviewer", "--provider", "openai", "--input", input])
}

pub(crate) fn long_input(_: &Value) -> Value {
    let text = format!("text={}", "word ".repeat(200));
    run_of("words", "runtime_requirements: {max_input_tokens: 100}", &["--set", &text])
}

pub(crate) fn broken_module(_: &Value) -> Value {
    run_of("words", "tier: fast", &["--set", "text=x"])
}

pub(crate) fn circle(_: &Value) -> Value {
    let place = Place::new();
    chain(&place, &["planner", "reviewer", "planner"]);
    error(&place, &["run", "planner", "--provider", "openai", "--set", "text=x"])
}

pub(crate) fn too_deep(_: &Value) -> Value {
    let place = Place::new();
    chain(&place, &["a", "b", "c", "d", "e", "f", "tokenizer"]);
    module(&place, "tokenizer", "", &plain());
    error(&place, &["run", "a", "--provider", "openai", "--set", "text=x"])
}

pub(crate) fn misspelt(_: &Value) -> Value {
    error(&Place::new(), &["run", "code-reviwer", "--provider", "openai", "--set", "code=x"])
}

pub(crate) fn not_for_users(_: &Value) -> Value {
    run_of("internal-ranker", "invocation: {user_invocable: false}", &["--set", "text=x"])
}

pub(crate) fn no_stream(_: &Value) -> Value {
    run_of("words", "response: {mode: sync}", &["--set", "text=x", "--stream", "--require-streaming"])
}

pub(crate) fn too_many_calls(_: &Value) -> Value {
    let place = Place::new();
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
    let place = Place::new();
    module(&place, "words", "", &plain());
    error(&place, &["run", "words", "--provider", "openai", "--set", "text=x", "--max-cost", "0.0001"])
}
