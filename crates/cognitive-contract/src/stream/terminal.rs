//! Converts a terminal chunk to its envelope. The checker and the assembler share this code, so the assembler delivers
//! everything that the checker accepts. Does not validate; `envelope::check` does.

use serde_json::{Map, Value, json};

use crate::meta::EXPLAIN_LIMIT;
use crate::risk_level::Risk;
use crate::text;
use crate::wrap_v21::NO_EXPLANATION;

/// The chunk members that belong to the envelope, for both outcomes. Members that contradict the outcome are included,
/// so that the check reports them. All others belong to the transport and are dropped.
const TAKEN: [&str; 7] = ["meta", "data", "error", "partial_data", "usage", "_emitted_context", "session_id"];

/// Converts a final chunk to an unchecked success. Adds the missing `ok`. Drops `streaming` and `session_id`, because
/// the stream is over.
pub(super) fn success(mut chunk: Map<String, Value>) -> Map<String, Value> {
    chunk.shift_remove("session_id");
    take_members(true, chunk)
}

/// Converts an error chunk to an unchecked failure. Other producers send error chunks without `meta`, but an envelope
/// requires it; then cautious values are used.
pub(super) fn failure(mut chunk: Map<String, Value>) -> Map<String, Value> {
    if !chunk.contains_key("meta") {
        let message = chunk.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
        let explain = message.map_or(NO_EXPLANATION, |message| text::cut(message, EXPLAIN_LIMIT));
        let meta = json!({ "confidence": 0.0, "risk": Risk::High.word(), "explain": explain });
        chunk.insert("meta".to_owned(), meta);
    }
    let mut members = take_members(false, chunk);
    members.insert("streaming".to_owned(), Value::Bool(true));
    members
}

fn take_members(ok: bool, mut chunk: Map<String, Value>) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("ok".to_owned(), Value::Bool(ok));
    for name in TAKEN {
        if let Some(value) = chunk.get_mut(name) {
            members.insert(name.to_owned(), value.take());
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn stream_012_a_final_chunk_loses_what_is_only_about_the_stream() {
        let chunk = json!({ "final": true, "ok": true, "id": "ws-1", "session_id": "s", "meta": {}, "data": {}, "usage": {} });
        assert_eq!(
            Value::Object(success(members(&chunk))),
            json!({ "ok": true, "meta": {}, "data": {}, "usage": {} })
        );
    }

    #[test]
    fn stream_013_missing_meta_is_filled_from_the_message() {
        let chunk = json!({ "ok": false, "error": { "code": "E2010", "message": "😀".repeat(300) } });
        let meta = &failure(members(&chunk))["meta"];
        assert_eq!(*meta, json!({ "confidence": 0.0, "risk": "high", "explain": "😀".repeat(280) }));
        let silent = &failure(members(&json!({ "ok": false, "error": 5 })))["meta"];
        assert_eq!(silent["explain"], NO_EXPLANATION);
    }

    #[test]
    fn stream_013_a_meta_that_is_there_is_kept() {
        let chunk = json!({ "ok": false, "meta": { "confidence": 0.3 }, "error": {} });
        assert_eq!(failure(members(&chunk))["meta"], json!({ "confidence": 0.3 }));
    }
}
