//! Stage 4: find the one JSON object in the model's text. (E1000, E2003, E2004, E3001)
//! Exec takes no liberties: the whole text, or the content of a fence, exactly as RFC 8259 wants it. Other tiers also
//! look behind thinking tags and prose. Never completes what was cut off, never merges two objects.

use cognitive_contract::code::Blame;
use cognitive_contract::manifest::Tier;
use cognitive_contract::ports::Finish;
use cognitive_contract::{ErrorCode, Failure, Module, Warning, text};
use serde_json::{Map, Value, json};

use super::call::Reply;

/// Nesting beyond this is no answer but an attack or an accident.
const DEEPEST: usize = 100;
/// How much of an unreadable text goes into `partial_data`.
const RAW_LIMIT: usize = 2_000;
/// Openings that lead nowhere before the search gives up; keeps broken text linear.
const MOST_FALSE_STARTS: usize = 16;

/// The object that the model wrote, as it wrote it. Only [`extract`] makes one.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The object.
    pub object: Map<String, Value>,
    /// The liberties that were taken.
    pub liberties: Vec<Liberty>,
}

/// Something forgiven in the model's syntax.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Liberty {
    /// Byte offset in the reply.
    pub at: usize,
    /// What was forgiven.
    pub what: String,
}

impl Liberty {
    /// The liberty as a notice for `meta.warnings`.
    #[must_use]
    pub fn warning(&self) -> Warning {
        Warning::new("REPAIRED", self.what.clone())
    }
}

/// Finds the object.
pub fn extract(module: &Module, reply: &Reply, strict_parse: bool) -> Result<Draft, Failure> {
    if let Finish::Refused(reason) = &reply.end.finish {
        return Err(Failure::new(ErrorCode::NoActionPossible, reason.clone()));
    }
    let strict = strict_parse || module.manifest.tier == Tier::Exec;
    let text = reply.text.trim_start_matches('\u{feff}').trim();
    let mut liberties = Vec::new();
    match find(text, strict, &mut liberties) {
        Some(Value::Object(object)) => Ok(Draft { object, liberties }),
        Some(_) => Err(not_an_object(module, text)),
        None => Err(unreadable(module, reply, text)),
    }
}

fn find(text: &str, strict: bool, liberties: &mut Vec<Liberty>) -> Option<Value> {
    if let Some(whole) = parse(text) {
        return Some(whole);
    }
    if strict {
        return fences(text).first().and_then(|fence| parse(fence));
    }
    let visible = without_thinking(text);
    let fenced = fences(visible).into_iter().filter_map(parse).filter(Value::is_object).collect();
    let (found, how) = match best(fenced) {
        Some(found) => (found, "the answer was taken out of a code fence"),
        None => (best(objects(visible))?, "the answer was taken out of the text around it"),
    };
    liberties.push(Liberty { at: 0, what: how.to_owned() });
    Some(found)
}

/// Strict JSON of bearable depth.
fn parse(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    (depth(&value) <= DEEPEST).then_some(value)
}

/// How deep a value is nested. The parser itself stops at 128, so this cannot run away.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Of several objects the last envelope: models show an example first and the answer last. Without any envelope the
/// one with the most to say.
fn best(mut found: Vec<Value>) -> Option<Value> {
    let envelope = found.iter().rposition(|value| {
        value.get("ok").is_some_and(Value::is_boolean)
            && (value.get("data").is_some() || value.get("error").is_some())
    });
    let chosen = envelope.or_else(|| {
        let size = |value: &Value| value.to_string().len();
        found.iter().enumerate().max_by_key(|(_, value)| size(value)).map(|(index, _)| index)
    })?;
    Some(found.swap_remove(chosen))
}

fn without_thinking(text: &str) -> &str {
    text.rfind("</think>").and_then(|at| text.get(at + "</think>".len()..)).unwrap_or(text)
}

/// The contents of fenced code blocks. A fence opens and closes at the start of a line, so that three backticks inside
/// a JSON string are not mistaken for one.
fn fences(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut start = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            match start.take() {
                None => start = Some(at + line.len()),
                Some(start) => blocks.extend(text.get(start..at)),
            }
        }
        at += line.len();
    }
    blocks
}

/// Every outermost `{…}` that is valid JSON.
fn objects(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut false_starts = 0;
    let mut at = 0;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find('{')).map(|offset| at + offset) {
        let candidate = text.get(open..).and_then(balanced);
        match candidate.and_then(|candidate| Some((parse(candidate)?, candidate.len()))) {
            Some((value, length)) => {
                found.push(value);
                at = open + length;
            }
            None => {
                false_starts += 1;
                if false_starts > MOST_FALSE_STARTS {
                    break;
                }
                at = open + 1;
            }
        }
    }
    found
}

/// The text up to the brace that closes the first one; strings are skipped.
fn balanced(text: &str) -> Option<&str> {
    let mut open = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => open += 1,
            b'}' if !in_string => {
                open -= 1;
                if open == 0 {
                    return text.get(..=at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Text that is no object, as `partial_data`.
pub(super) fn raw(text: &str) -> Map<String, Value> {
    let mut partial = Map::new();
    partial.insert("raw".to_owned(), Value::from(text::cut(text, RAW_LIMIT)));
    partial
}

fn partial(module: &Module, text: &str) -> Option<Map<String, Value>> {
    (module.manifest.failure.partial_allowed && !text.is_empty()).then(|| raw(text))
}

fn not_an_object(module: &Module, text: &str) -> Failure {
    Failure::new(ErrorCode::SchemaValidationFailed, "the model answered with JSON that is not an object")
        .with_partial(partial(module, text))
}

fn unreadable(module: &Module, reply: &Reply, text: &str) -> Failure {
    let (code, reason, message) = if reply.end.finish == Finish::CutOff {
        (ErrorCode::TokenLimit, "cut_off", "the model's answer was cut off by the token limit")
    } else if text.is_empty() {
        (ErrorCode::ParseError, "empty", "the model answered with nothing")
    } else {
        (ErrorCode::ParseError, "not_json", "the model's answer is not JSON")
    };
    Failure::new(code, message)
        .blaming(Blame::Model)
        .with_detail("source", json!("model"))
        .with_detail("reason", json!(reason))
        .with_partial(partial(module, text))
        .suggest("Run it again, or use a provider with native structured output")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lenient(text: &str) -> Option<Value> {
        find(text, false, &mut Vec::new())
    }

    #[test]
    fn pipe_004_the_whole_text_or_a_fence() {
        assert_eq!(lenient("{\"a\":1}"), Some(json!({ "a": 1 })));
        assert_eq!(find("x\n```json\n{\"a\":1}\n```\n", true, &mut Vec::new()), Some(json!({ "a": 1 })));
        assert_eq!(find("Sure: {\"a\":1}", true, &mut Vec::new()), None);
    }

    #[test]
    fn gen_007_nan_and_truncation_are_no_json() {
        for text in ["{\"a\": NaN}", "{\"a\": [1, 2", "{\"a\": 1,}", "", "no json"] {
            assert_eq!(lenient(text), None, "{text}");
        }
    }

    #[test]
    fn an_example_before_the_answer_and_thinking_do_not_fool_it() {
        let text = "<think>{\"ok\": true, \"data\": {\"n\": 0}}</think>For example {\"ok\": true, \"data\": {\"n\": 1}} but here:\n{\"ok\": true, \"data\": {\"n\": 2}} Done {.}";
        assert_eq!(lenient(text).unwrap()["data"]["n"], 2);
    }

    #[test]
    fn a_fence_inside_a_string_is_text() {
        let text = "{\"ok\": true, \"data\": {\"code\": \"```json\\n{}\\n```\"}}";
        assert_eq!(lenient(&format!("Here: {text}")).unwrap()["data"]["code"], "```json\n{}\n```");
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(110), "]".repeat(110));
        assert_eq!(lenient(&deep), None);
    }

    #[test]
    fn many_openings_end_soon() {
        assert_eq!(lenient(&"{".repeat(400_000)), None);
    }

    #[test]
    fn every_liberty_is_a_warning() {
        let mut warnings = Vec::new();
        find("Sure: {\"a\":1}", false, &mut warnings);
        assert_eq!(warnings.len(), 1);
    }
}
