//! The contract for programs in other languages, as one function from text to text. It runs the same code as the
//! runtime; this crate itself has no rules about envelopes, streams or inputs.
//!
//! A question has three parts, each on a separate line. The first is the operation. The second is the module in the
//! form of `GET /api/modules/{name}`, or nothing. The third is a JSON text, which may span several lines. The answer is
//! `{"result": …}`, or `{"error": "…"}` if the question is invalid.
//!
//! | Operation | JSON text | Result |
//! |---|---|---|
//! | `envelope` | an envelope | the list of violations, by the contract of the module if there is one |
//! | `stream` | the list of all chunks | the list of violations |
//! | `assemble` | a list of chunks | the assembled envelope |
//! | `input` | an input | `null`, or the envelope with which the runtime would refuse it |
//! | `data` | the data of an answer | the list of violations |
//! | `module` | – | `null` if the module is valid |
//!
//! ```
//! let answer = cognitive_wasm::answer("envelope\n\n{\"ok\": 1}");
//! assert!(answer.starts_with(r#"{"result":[{"path":"/ok","#), "{answer}");
//! ```
//!
//! Does no I/O, keeps no state
//! except the most recent modules, and never panics on any question.
//!
//! # Modules
//!
//! - `module_description`: builds a module from what a server says about it, and caches the most recent ones.
//! - `exports`: the interface for WebAssembly hosts, compiled for that target only.

#[cfg(target_arch = "wasm32")]
mod exports;

mod module_description;

use std::rc::Rc;

use cognitive_contract::context::{Sanitiser, prepare};
use cognitive_contract::stream::{Assembler, check_log};
use cognitive_contract::violation::Side;
use cognitive_contract::{Enforcement, ErrorCode, Failure, Module, Violation, envelope, json, numbers};
use serde_json::{Value, json};

/// Answers one question. The answer is always one JSON object.
#[must_use]
pub fn answer(question: &str) -> String {
    let answer = match answer_question(question) {
        Ok(result) => json!({ "result": result }),
        Err(error) => json!({ "error": error }),
    };
    answer.to_string()
}

fn answer_question(question: &str) -> Result<Value, String> {
    let (asked, rest) = question.split_once('\n').unwrap_or((question, ""));
    let (module, text) = rest.split_once('\n').unwrap_or((rest, ""));
    let module = if module.is_empty() { None } else { Some(module_description::module(module)?) };
    match (asked, module) {
        ("envelope", module) => Ok(violations(&envelope_violations(module.as_deref(), &parse_json(text)?))),
        ("stream", _) => Ok(violations(&check_log(&chunks(text)?))),
        ("assemble", module) => assemble(module.as_deref(), chunks(text)?),
        ("input", Some(module)) => Ok(refusal(&module, text)),
        ("data", Some(module)) => {
            let found = Violation::find(module.contract.data(), &parse_json(text)?, Side::Output);
            Ok(violations(&found))
        }
        ("module", Some(_)) => Ok(Value::Null),
        ("input" | "data" | "module", None) => Err(format!("`{asked}` needs a module")),
        _ => Err(format!("unknown question: `{}`", cognitive_contract::text::cut(asked, 40))),
    }
}

fn envelope_violations(module: Option<&Module>, value: &Value) -> Vec<Violation> {
    let Some(module) = module else { return envelope::check(value, envelope::Strictness::default()) };
    let mut found = module.envelope_violations(value, Enforcement::Full);
    if found.is_empty() {
        found = module.rule_violations(value);
    }
    found
}

fn assemble(module: Option<&Module>, chunks: Vec<Value>) -> Result<Value, String> {
    let mut assembler = match module {
        Some(module) => Assembler::with_strictness(module.strictness()),
        None => Assembler::new(),
    };
    for chunk in chunks {
        assembler.push(chunk);
    }
    serde_json::to_value(assembler.finish()).map_err(|error| error.to_string())
}

/// Returns the runtime's answer to an input that it refuses; `null` if it accepts the input.
fn refusal(module: &Rc<Module>, text: &str) -> Value {
    let judged = match (numbers::refusal(text), json::parse(text)) {
        (Some(inexact), _) => Err(inexact),
        (None, Ok(input)) => prepare(module, input, &Sanitiser::default(), Enforcement::Full).map(drop),
        (None, Err(error)) => {
            Err(Failure::new(ErrorCode::ParseError, format!("the input is not JSON: {}", error.message)))
        }
    };
    match judged {
        Ok(()) => Value::Null,
        Err(failure) => serde_json::to_value(failure.for_remote_caller().into_envelope()).unwrap_or_default(),
    }
}

fn chunks(text: &str) -> Result<Vec<Value>, String> {
    match parse_json(text)? {
        Value::Array(chunks) => Ok(chunks),
        _ => Err("chunks must be a list".to_owned()),
    }
}

fn parse_json(text: &str) -> Result<Value, String> {
    json::parse(text).map_err(|error| format!("the text is not JSON: {}", error.message))
}

fn violations(found: &[Violation]) -> Value {
    serde_json::to_value(found).unwrap_or_default()
}

#[cfg(test)]
mod tests;
