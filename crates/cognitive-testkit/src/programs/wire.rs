//! The formats of chat completions and of the Responses API.

use serde_json::{Value, json};

/// An event with a piece of an answer.
#[must_use]
pub fn piece(text: &str, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "model": "stub-1", "choices": [choice] }))
}

/// An answer as a stream of two pieces, with its tokens.
#[must_use]
pub fn stream_reply(answer: &Value) -> String {
    let letters: Vec<char> = answer.to_string().chars().collect();
    let (first, second) = letters.split_at(letters.len() / 2);
    let [first, second] = [first, second].map(|half| piece(&half.iter().collect::<String>(), None));
    let usage = json!({ "model": "stub-1", "choices": [], "usage": usage() });
    format!("{first}{second}{}data: {usage}\n\ndata: [DONE]\n\n", piece("", Some("stop")))
}

/// A whole answer.
pub(super) fn completion(text: &str) -> Value {
    let message = json!({ "role": "assistant", "content": text });
    json!({
        "id": "r-1",
        "model": "stub-1",
        "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
        "usage": usage(),
    })
}

/// The same as a stream with one piece.
pub(super) fn events(text: &str) -> String {
    let end = json!({ "model": "stub-1", "choices": [], "usage": usage() });
    piece(text, None) + &piece("", Some("stop")) + &format!("data: {end}\n\ndata: [DONE]\n\n")
}

/// A whole answer of the Responses API.
pub(super) fn response(text: &str) -> Value {
    let part = json!({ "type": "output_text", "text": text, "annotations": [] });
    let message = json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [part] });
    json!({
        "id": "resp_1",
        "object": "response",
        "model": "stub-1",
        "status": "completed",
        "output": [message],
        "usage": { "input_tokens": 11, "output_tokens": 7, "total_tokens": 18 },
    })
}

/// The same as a stream with one piece.
pub(super) fn response_events(text: &str) -> String {
    let delta = json!({ "type": "response.output_text.delta", "output_index": 0, "delta": text });
    let completed = json!({ "type": "response.completed", "response": response(text) });
    format!("data: {delta}\n\ndata: {completed}\n\n")
}

fn usage() -> Value {
    json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 })
}
