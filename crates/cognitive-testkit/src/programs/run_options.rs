//! The options of a run as cases of a table, for the tests of every surface. A case is judged by the requests of the model
//! service or by the envelope.

#![expect(clippy::must_use_candidate, reason = "in a test, the result is what is checked")]

use serde_json::{Value, json};

use super::{Act, FakeModel, FakeReply, FakeRequest, Home, Then};

/// An option, its values, and how to see that it was honoured.
#[derive(Clone)]
pub struct OptionCase {
    /// Its name in files and requests.
    pub name: &'static str,
    /// The flag of the command line, with its value.
    pub flag: &'static [&'static str],
    /// The value in files and in requests.
    pub value: Value,
    /// The reaction of the service to the request of this number, from 0.
    says: fn(usize) -> FakeReply,
    is_honoured: fn(&[FakeRequest], &Value) -> bool,
}

/// An envelope that keeps the contract of the module.
fn answer() -> Value {
    json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
        "data": { "rationale": "r", "word": "w" },
    })
}

fn good(_: usize) -> FakeReply {
    FakeReply::Text(answer().to_string())
}

/// A broken answer to the first request, and a good one to the next.
fn broken_then_good(number: usize) -> FakeReply {
    if number == 0 { FakeReply::Text(json!({ "ok": true, "data": {} }).to_string()) } else { good(number) }
}

/// An answer that is valid but for a comma before the last brace.
fn trailing_comma(_: usize) -> FakeReply {
    FakeReply::Text(answer().to_string().trim_end_matches('}').to_owned() + "},}")
}

fn silent(_: usize) -> FakeReply {
    FakeReply::Silence
}

/// Falls silent after a value that breaks the contract: only an early stop ends this call.
fn stalled_answer(_: usize) -> FakeReply {
    let begun = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"rationale": 5, "w"#;
    let chunk =
        json!({ "id": "r-1", "model": "fake-1", "choices": [{ "index": 0, "delta": { "content": begun } }] });
    FakeReply::Raw(Act::stream(format!("data: {chunk}\n\n")).then(Then::Silence))
}

fn body_has(requests: &[FakeRequest], name: &str, value: i64) -> bool {
    requests.first().is_some_and(|request| request.body.get(name) == Some(&json!(value)))
}

fn code(envelope: &Value) -> &str {
    envelope.pointer("/error/code").and_then(Value::as_str).unwrap_or_default()
}

fn is_ok(envelope: &Value) -> bool {
    envelope.get("ok") == Some(&Value::Bool(true))
}

impl OptionCase {
    /// Every option of a run.
    pub fn all() -> Vec<Self> {
        vec![
            Self {
                name: "reask",
                flag: &["--reask", "1"],
                value: json!(1),
                says: broken_then_good,
                is_honoured: |requests, envelope| requests.len() == 2 && is_ok(envelope),
            },
            Self {
                name: "receipt",
                flag: &["--receipt"],
                value: json!(true),
                says: good,
                is_honoured: |_, envelope| envelope.pointer("/meta/provenance").is_some_and(Value::is_object),
            },
            Self {
                name: "seed",
                flag: &["--seed", "7"],
                value: json!(7),
                says: good,
                is_honoured: |requests, _| body_has(requests, "seed", 7),
            },
            Self {
                name: "max_output_tokens",
                flag: &["--max-output-tokens", "500"],
                value: json!(500),
                says: good,
                is_honoured: |requests, _| {
                    body_has(requests, "max_completion_tokens", 500) || body_has(requests, "max_tokens", 500)
                },
            },
            Self {
                name: "strict_parse",
                flag: &["--strict-parse"],
                value: json!(true),
                says: trailing_comma,
                is_honoured: |_, envelope| code(envelope) == "E1000",
            },
            Self {
                name: "max_calls",
                flag: &["--max-calls", "0"],
                value: json!(0),
                says: good,
                is_honoured: |requests, envelope| requests.is_empty() && code(envelope) == "E4100",
            },
            Self {
                name: "max_cost",
                flag: &["--max-cost", "0.00000001"],
                value: json!(0.000_000_01),
                says: good,
                is_honoured: |requests, envelope| requests.is_empty() && code(envelope) == "E4101",
            },
            Self {
                name: "thinking",
                flag: &["--thinking", "2048"],
                value: json!(2048),
                says: good,
                is_honoured: |requests, _| {
                    requests.first().is_some_and(|request| {
                        request.body.get("reasoning_effort").is_some_and(Value::is_string)
                            || request.body.get("chat_template_kwargs").is_some_and(Value::is_object)
                    })
                },
            },
            Self {
                name: "early_stop",
                flag: &["--early-stop"],
                value: json!(true),
                says: stalled_answer,
                is_honoured: |_, envelope| {
                    envelope.pointer("/error/details/stopped_at").is_some_and(Value::is_u64)
                },
            },
            Self {
                name: "no_cache",
                flag: &["--no-cache"],
                value: json!(true),
                says: good,
                // The second run of the cell asks again.
                is_honoured: |requests, envelope| requests.len() == 2 && is_ok(envelope),
            },
            Self {
                name: "timeout",
                flag: &["--timeout", "1"],
                value: json!(1),
                says: silent,
                is_honoured: |_, envelope| matches!(code(envelope), "E2002" | "E2011"),
            },
        ]
    }

    /// The case of one option.
    ///
    /// # Panics
    /// If there is no such option.
    #[expect(clippy::panic, reason = "in a test, a panic is the report")]
    pub fn from_name(name: &str) -> Self {
        Self::all().into_iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no option {name}"))
    }

    /// The service that shows if the option was honoured.
    pub fn service(&self) -> FakeModel {
        let says = self.says;
        FakeModel::start(move |number, _| says(number))
    }

    /// The runs of a cell. An answer is in the cache only after a run.
    pub fn runs(&self) -> usize {
        if self.name == "no_cache" { 2 } else { 1 }
    }

    /// Returns whether the option was honoured, by the requests of the service and the last envelope.
    pub fn is_honoured(&self, requests: &[FakeRequest], envelope: &Value) -> bool {
        (self.is_honoured)(requests, envelope)
    }

    /// Returns whether a run ends without this option.
    pub fn ends_by_itself(&self) -> bool {
        !["timeout", "early_stop"].contains(&self.name)
    }

    /// The contract of the modules.
    fn schema() -> Value {
        json!({
            "input": { "type": "object" },
            "data": {
                "type": "object",
                "required": ["rationale", "word"],
                "properties": { "rationale": { "type": "string" }, "word": { "type": "string" } },
            },
        })
    }

    /// Writes the module `words`, and `chain`, which is made of it alone. `words` keeps its answers if the case is about the cache.
    pub fn write_modules(&self, home: &Home) {
        let keeps =
            json!([{ "type": "analysis_cache", "ttl": 3600, "key_pattern": "${module}:${input_hash}" }]);
        let context = if self.name == "no_cache" { json!({ "emits": keeps }) } else { json!({}) };
        let words = json!({ "name": "words", "version": "1.0.0", "responsibility": "Find words", "context": context });
        home.module("words", &words.to_string(), "Find.", &Self::schema());
        let steps = json!([
            { "from": "input", "to": "words" },
            { "from": "words.output", "to": "output", "mapping": { "rationale": "$.data.rationale", "word": "$.data.word" } },
        ]);
        let chain = json!({
            "name": "chain", "version": "1.0.0", "responsibility": "Pass words on",
            "composition": { "pattern": "sequential", "requires": [{ "name": "words" }], "dataflow": steps },
        });
        home.module("chain", &chain.to_string(), "Pass on.", &Self::schema());
    }
}
