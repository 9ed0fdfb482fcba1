//! Reads the events of a stream, and whole responses. A response repeats everything that its events said, so only what
//! they did not say is taken from it: some gateways leave events out.

use cognitive_contract::ports::Finish;
use serde_json::Value;

use crate::complaint::Complaint;
use crate::llm::frame_value::FrameValue;
use crate::llm::openai::read_usage;
use crate::llm::{Reading, count, text_of};

/// Reads an event, or a whole response.
pub(super) fn read(
    frame: &FrameValue<'_>,
    reading: &mut Reading,
    text: &mut dyn FnMut(&str),
) -> Result<(), Complaint> {
    let event = text_of(frame, "/type").unwrap_or_default();
    let index = count(frame, "output_index");
    let delta = text_of(frame, "/delta").unwrap_or_default();
    let response = frame.get("response").filter(|response| response.is_object());
    match event {
        "response.output_text.delta" => {
            if reading.commentary == Some(index) {
                think(reading, delta);
            } else {
                reading.sum.push_str(delta);
                text(delta);
            }
        }
        "response.refusal.delta" => reading.refusal.push_str(delta),
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => think(reading, delta),
        "response.function_call_arguments.delta" => reading.calls().append_arguments(index, delta),
        "response.output_item.added" => begin(frame.get("item").unwrap_or(&FrameValue::Null), index, reading),
        "response.output_item.done" => {
            reading.reasons = false;
            end(frame.get("item").unwrap_or(&FrameValue::Null), index, reading, text);
        }
        "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
            let response = response.unwrap_or(&FrameValue::Null);
            // Some gateways complete every response, and only its status says how it ended.
            let told = event.strip_prefix("response.").unwrap_or_default();
            let status = text_of(response, "/status").filter(|_| told == "completed").unwrap_or(told);
            read_response(response, status, reading, text)?;
            reading.closed = true;
        }
        // An answer that is not a stream has no events.
        "" if frame.get("output").is_some_and(|output| matches!(output, FrameValue::List(_))) => {
            read_response(frame, text_of(frame, "/status").unwrap_or_default(), reading, text)?;
        }
        // Other events repeat the items, are about tools of the service, or are from a later version of the API.
        _ => reading.name_model(response.and_then(|response| response.get("model"))),
    }
    Ok(())
}

/// Counts text that is not part of the answer.
fn think(reading: &mut Reading, thought: &str) {
    reading.thinks |= !thought.is_empty();
    reading.thought = reading.thought.saturating_add(thought.len());
}

/// Reads an item that is empty so far.
fn begin(item: &FrameValue<'_>, index: u64, reading: &mut Reading) {
    let kind = text_of(item, "/type").unwrap_or_default();
    // A model may be silent for minutes while it reasons.
    reading.reasons = kind == "reasoning";
    reading.thinks |= reading.reasons;
    match kind {
        "message" => reading.commentary = is_commentary(item).then_some(index),
        "function_call" => call(item, index, reading),
        _ => {}
    }
}

/// Reads a complete item.
fn end(item: &FrameValue<'_>, index: u64, reading: &mut Reading, text: &mut dyn FnMut(&str)) {
    match text_of(item, "/type").unwrap_or_default() {
        "message" if !is_commentary(item) => say(&text_in(item), reading, text),
        "function_call" => call(item, index, reading),
        _ => {}
    }
    keep(item, reading);
}

/// Reads a call whose arguments may be missing, or may have arrived.
fn call(item: &FrameValue<'_>, index: u64, reading: &mut Reading) {
    let word = |path: &str| text_of(item, path).unwrap_or_default();
    reading.calls().settle(index, word("/call_id"), word("/name"), word("/arguments"));
}

/// Stores an item for the next request.
fn keep(item: &FrameValue<'_>, reading: &mut Reading) {
    let FrameValue::Object(members) = item else { return };
    if !reading.keeps_parts {
        return;
    }
    // The service sends members that it does not take: the origin of an item, and in its own items those without a
    // value. Items of other tools need theirs.
    let is_own = matches!(text_of(item, "/type"), Some("message" | "reasoning" | "function_call"));
    let set = members
        .iter()
        .filter(|(name, value)| name != "created_by" && !(is_own && *value == FrameValue::Null));
    reading.keep_part(Value::Object(
        set.map(|(name, value)| (name.clone().into_owned(), value.to_value())).collect(),
    ));
}

/// Reads a whole response.
fn read_response(
    response: &FrameValue<'_>,
    status: &str,
    reading: &mut Reading,
    text: &mut dyn FnMut(&str),
) -> Result<(), Complaint> {
    reading.name_model(response.get("model"));
    if let Some(counts) = response.get("usage").filter(|usage| usage.is_object()) {
        reading.usage = read_usage(counts).ok().flatten();
    }
    let items = response.get("output").map_or(&[][..], FrameValue::as_list);
    let messages = || items.iter().filter(|item| text_of(item, "/type") == Some("message"));
    if reading.refusal.is_empty() {
        messages().for_each(|item| reading.refusal.push_str(&refusal_in(item)));
    }
    let answer: String = messages().filter(|item| !is_commentary(item)).map(|item| text_in(item)).collect();
    say(&answer, reading, text);
    if reading.calls.is_empty() {
        for (index, item) in items.iter().enumerate() {
            if text_of(item, "/type") == Some("function_call") {
                call(item, index as u64, reading);
            }
        }
    }
    if reading.parts.is_empty() {
        for item in items {
            keep(item, reading);
        }
    }
    // A model that only comments has nothing else to say.
    if reading.sum.is_empty() && reading.calls.is_empty() {
        let comments: String = messages().map(|item| text_in(item)).collect();
        say(&comments, reading, text);
    }
    match status {
        "incomplete" => reading.record_stop(Some(cut(response))),
        "completed" => reading.record_stop(Some(Finish::Complete)),
        "failed" | "cancelled" => return Err(failure(response, status)),
        // The service would answer later, which was not asked for.
        "queued" | "in_progress" => {}
        _ => reading.record_stop(None),
    }
    Ok(())
}

/// Hands on the part of a text that has not arrived in pieces.
fn say(whole: &str, reading: &mut Reading, text: &mut dyn FnMut(&str)) {
    let rest = whole.strip_prefix(reading.sum.as_str()).unwrap_or_default();
    if !rest.is_empty() {
        text(rest);
        reading.sum.push_str(rest);
    }
}

/// Returns whether a message is about the work and not the answer.
fn is_commentary(item: &FrameValue<'_>) -> bool {
    text_of(item, "/phase") == Some("commentary")
}

fn text_in(item: &FrameValue<'_>) -> String {
    content(item, "output_text", "/text")
}

fn refusal_in(item: &FrameValue<'_>) -> String {
    content(item, "refusal", "/refusal")
}

/// Returns the text of the parts of one type.
fn content(item: &FrameValue<'_>, kind: &str, path: &str) -> String {
    let parts = item.get("content").into_iter().flat_map(FrameValue::as_list);
    let parts = parts.filter(|part| text_of(part, "/type") == Some(kind));
    parts.filter_map(|part| text_of(part, path)).collect()
}

/// Returns the reason for a response that is not complete.
fn cut(response: &FrameValue<'_>) -> Finish {
    match text_of(response, "/incomplete_details/reason") {
        Some("content_filter") => Finish::Refused("the content filter stopped the answer".to_owned()),
        _ => Finish::CutOff,
    }
}

/// Returns the error of a response that failed.
fn failure(response: &FrameValue<'_>, status: &str) -> Complaint {
    Complaint::from_frame(response).unwrap_or_else(|| {
        let text = format!("the model stopped: {status}");
        Complaint { words: text.clone(), text, status: Some(503), ..Complaint::default() }
    })
}
