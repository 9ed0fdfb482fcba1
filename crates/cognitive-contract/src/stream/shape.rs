//! Recognises external chunks and checks each one alone. `check.rs` checks their order.
//! Repairs nothing. Accepts unknown members, because transports add their own.

use serde_json::{Map, Value};

use super::chunk::ChunkKind;
use super::terminal;
use crate::code::ErrorCode;
use crate::envelope::{self, Strictness};
use crate::meta::{self, RiskForm};
use crate::text::pointer;
use crate::violation::Violation;

type Members = Map<String, Value>;

/// Returns the kind of a chunk, derived from its members, or the reason why it is not a chunk.
///
/// A `chunk` member without `type` is recognised by `delta` or `data`. Does not check that the chunk is valid;
/// [`check_chunk`] does.
pub fn recognise(chunk: &Value) -> Result<ChunkKind, Violation> {
    let Value::Object(members) = chunk else { return Err(violation("", "type", "expected an object")) };
    let is = |name: &str, wanted: bool| members.get(name) == Some(&Value::Bool(wanted));
    if members.is_empty() {
        Ok(ChunkKind::Heartbeat)
    } else if is("ok", false) {
        Ok(ChunkKind::Error)
    } else if is("final", true) {
        Ok(ChunkKind::Final)
    } else if let Some(piece) = members.get("chunk") {
        recognise_piece(piece)
    } else if members.contains_key("progress") {
        Ok(ChunkKind::Progress)
    } else if is("streaming", true) || (is("ok", true) && members.contains_key("meta")) {
        Ok(ChunkKind::Meta)
    } else {
        Err(violation("", "kind", "expected a meta, delta, snapshot, progress, final, error or empty chunk"))
    }
}

fn recognise_piece(piece: &Value) -> Result<ChunkKind, Violation> {
    let Value::Object(members) = piece else {
        return Err(violation("/chunk", "type", "expected an object"));
    };
    match members.get("type").map(Value::as_str) {
        Some(Some("delta")) => Ok(ChunkKind::Delta),
        Some(Some("snapshot")) => Ok(ChunkKind::Snapshot),
        Some(_) => Err(violation("/chunk/type", "enum", "expected `delta` or `snapshot`")),
        None if members.contains_key("delta") => Ok(ChunkKind::Delta),
        None if members.contains_key("data") => Ok(ChunkKind::Snapshot),
        None => Err(violation("/chunk/type", "required", "required member `type` is missing")),
    }
}

/// Returns all violations of one chunk. An empty list means that the chunk is valid for its kind.
///
/// A terminal chunk is valid if its envelope is valid; `meta` may be missing in an error chunk.
#[must_use]
pub fn check_chunk(chunk: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    match (recognise(chunk), chunk) {
        (Err(violation), _) => found.push(violation),
        (Ok(kind), Value::Object(members)) => check_kind(kind, members, &mut found),
        (Ok(_), _) => {}
    }
    found
}

fn check_kind(kind: ChunkKind, members: &Members, found: &mut Vec<Violation>) {
    match kind {
        ChunkKind::Meta => check_meta(members, found),
        ChunkKind::Delta => check_delta(members, found),
        ChunkKind::Snapshot => check_snapshot(members, found),
        ChunkKind::Progress => check_progress(members, found),
        ChunkKind::Final => check_final(members, found),
        ChunkKind::Error => check_error(members, found),
        ChunkKind::Heartbeat => {}
    }
}

/// A rule for one member: its name, its presence, a predicate for its value, and the message for a wrong value.
type Rule = (&'static str, Presence, fn(&Value) -> bool, &'static str);

#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Required,
    Optional,
}
use Presence::{Optional, Required};

fn check_rules(members: &Members, parent: &str, rules: &[Rule], found: &mut Vec<Violation>) {
    for (name, presence, holds, message) in rules {
        match members.get(*name) {
            Some(value) if holds(value) => {}
            Some(_) => found.push(violation(&pointer(parent, name), "type", *message)),
            None if *presence == Optional => {}
            None => {
                let message = format!("required member `{name}` is missing");
                found.push(violation(&pointer(parent, name), "required", message));
            }
        }
    }
}

fn violation(path: &str, rule: &'static str, message: impl Into<String>) -> Violation {
    Violation::new(path, ErrorCode::SchemaValidationFailed, rule, message)
}

fn is_true(value: &Value) -> bool {
    *value == Value::Bool(true)
}

fn is_name(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// Returns whether a value is a valid `seq`: 1, 2, 3 and so on.
fn is_position(value: &Value) -> bool {
    value.as_u64().is_some_and(|seq| seq >= 1)
}

fn check_meta(members: &Members, found: &mut Vec<Violation>) {
    let rules: [Rule; 6] = [
        ("ok", Required, is_true, "expected `true`"),
        ("streaming", Required, is_true, "expected `true`"),
        ("session_id", Required, is_name, "expected a string that is not empty"),
        ("meta", Required, Value::is_object, "expected an object"),
        ("resumed", Optional, Value::is_boolean, "expected `true` or `false`"),
        ("resume_from_seq", Optional, is_position, "expected a whole number, 1 or more"),
    ];
    check_rules(members, "", &rules, found);
    if let Some(Value::Object(meta)) = members.get("meta") {
        // Only here may confidence be null: the answer does not exist yet.
        let unsure = meta.get("confidence") == Some(&Value::Null);
        let judged = meta::check(meta, RiskForm::Words).into_iter();
        found.extend(
            judged
                .filter(|each| !(unsure && each.path == "/confidence"))
                .map(|each| each.with_prefix("/meta")),
        );
    }
}

fn check_delta(members: &Members, found: &mut Vec<Violation>) {
    let Some(Value::Object(piece)) = members.get("chunk") else { return };
    let rules: [Rule; 4] = [
        ("seq", Required, is_position, "expected a whole number, 1 or more"),
        ("field", Optional, Value::is_string, "expected a string"),
        ("delta", Required, Value::is_string, "expected a string"),
        ("checkpoint", Optional, Value::is_object, "expected an object"),
    ];
    check_rules(piece, "/chunk", &rules, found);
    if let Some(Value::Object(checkpoint)) = piece.get("checkpoint") {
        let rules: [Rule; 2] = [
            ("offset", Required, Value::is_u64, "expected a whole number, 0 or more"),
            ("hash", Required, Value::is_string, "expected a string"),
        ];
        check_rules(checkpoint, "/chunk/checkpoint", &rules, found);
    }
}

fn check_snapshot(members: &Members, found: &mut Vec<Violation>) {
    let Some(Value::Object(piece)) = members.get("chunk") else { return };
    let rules: [Rule; 2] = [
        ("seq", Required, is_position, "expected a whole number, 1 or more"),
        ("data", Required, Value::is_object, "expected an object"),
    ];
    check_rules(piece, "/chunk", &rules, found);
}

fn check_progress(members: &Members, found: &mut Vec<Violation>) {
    let Some(Value::Object(progress)) = members.get("progress") else {
        found.push(violation("/progress", "type", "expected an object"));
        return;
    };
    let is_percent: fn(&Value) -> bool =
        |value| value.as_f64().is_some_and(|percent| (0.0..=100.0).contains(&percent));
    let rules: [Rule; 3] = [
        ("percent", Required, is_percent, "expected a number from 0 to 100"),
        ("stage", Optional, Value::is_string, "expected a string"),
        ("message", Optional, Value::is_string, "expected a string"),
    ];
    check_rules(progress, "/progress", &rules, found);
}

fn check_final(members: &Members, found: &mut Vec<Violation>) {
    // The specification gives a final chunk no `ok`; some producers send it, and it can only be true.
    check_rules(members, "", &[("ok", Optional, is_true, "expected `true`")], found);
    let envelope = Value::Object(terminal::success(members.clone()));
    found.extend(envelope::check(&envelope, Strictness::default()));
}

fn check_error(members: &Members, found: &mut Vec<Violation>) {
    // `terminal::failure` sets `streaming` in the envelope below, so the chunk's own value is checked here.
    check_rules(members, "", &[("streaming", Optional, is_true, "expected `true`")], found);
    let envelope = Value::Object(terminal::failure(members.clone()));
    found.extend(envelope::check(&envelope, Strictness::default()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(chunk: &Value) -> Vec<String> {
        check_chunk(chunk).iter().map(|each| format!("{} {}", each.path, each.rule)).collect()
    }

    fn meta() -> Value {
        json!({ "confidence": 0.9, "risk": "low", "explain": "e" })
    }

    #[test]
    fn stream_table_18_1_kinds_are_known_by_their_members() {
        for (chunk, kind) in [
            (json!({}), ChunkKind::Heartbeat),
            (json!({ "ok": true, "streaming": true }), ChunkKind::Meta),
            (json!({ "ok": true, "meta": {} }), ChunkKind::Meta),
            (json!({ "chunk": { "type": "delta" } }), ChunkKind::Delta),
            (json!({ "chunk": { "delta": "x" } }), ChunkKind::Delta),
            (json!({ "chunk": { "type": "snapshot" } }), ChunkKind::Snapshot),
            (json!({ "chunk": { "data": {} } }), ChunkKind::Snapshot),
            (json!({ "progress": 1 }), ChunkKind::Progress),
            (json!({ "final": true, "ok": true }), ChunkKind::Final),
            (json!({ "ok": false, "final": true }), ChunkKind::Error),
        ] {
            assert_eq!(recognise(&chunk).unwrap(), kind, "{chunk}");
        }
        for (chunk, path) in [
            (json!(7), ""),
            (json!({ "ok": true }), ""),
            (json!({ "final": "yes" }), ""),
            (json!({ "chunk": [] }), "/chunk"),
            (json!({ "chunk": { "type": "patch", "delta": "x" } }), "/chunk/type"),
            (json!({ "chunk": { "seq": 1 } }), "/chunk/type"),
        ] {
            assert_eq!(recognise(&chunk).unwrap_err().path, path, "{chunk}");
        }
    }

    #[test]
    fn stream_001_002_a_meta_chunk_opens_a_named_session() {
        let mut chunk = json!({ "ok": true, "streaming": true, "session_id": "s", "meta": meta() });
        assert!(rules(&chunk).is_empty());
        chunk["session_id"] = json!("");
        chunk["meta"]["risk"] = json!("huge");
        assert_eq!(rules(&chunk), ["/session_id type", "/meta/risk enum"]);
        assert_eq!(
            rules(&json!({ "ok": true, "meta": meta() })),
            ["/streaming required", "/session_id required"]
        );
    }

    #[test]
    fn meta_012_confidence_may_be_null_before_the_end_and_only_there() {
        let mut chunk = json!({ "ok": true, "streaming": true, "session_id": "s", "meta": meta() });
        chunk["meta"]["confidence"] = Value::Null;
        assert!(rules(&chunk).is_empty());
        chunk["meta"]["confidence"] = json!("high");
        assert_eq!(rules(&chunk), ["/meta/confidence type"]);
        let mut last = json!({ "final": true, "meta": meta(), "data": { "rationale": "r" } });
        last["meta"]["confidence"] = Value::Null;
        assert_eq!(rules(&last), ["/meta/confidence type"]);
    }

    #[test]
    fn stream_003_007_008_pieces_need_a_number_and_their_payload() {
        assert!(rules(&json!({ "chunk": { "seq": 1, "delta": "x" } })).is_empty());
        assert_eq!(
            rules(&json!({ "chunk": { "type": "delta" } })),
            ["/chunk/seq required", "/chunk/delta required"]
        );
        assert_eq!(rules(&json!({ "chunk": { "seq": 0, "delta": 1, "field": 2 } })).len(), 3);
        assert_eq!(
            rules(&json!({ "chunk": { "seq": "1", "data": [] } })),
            ["/chunk/seq type", "/chunk/data type"]
        );
        let marked = json!({ "chunk": { "seq": 1, "delta": "x", "checkpoint": { "offset": -1 } } });
        assert_eq!(rules(&marked), ["/chunk/checkpoint/offset type", "/chunk/checkpoint/hash required"]);
    }

    #[test]
    fn stream_010_percent_is_a_number_from_0_to_100() {
        for percent in [json!(0), json!(45.5), json!(100)] {
            assert!(rules(&json!({ "progress": { "percent": percent } })).is_empty());
        }
        for percent in [json!(-1), json!(100.1), json!("45"), Value::Null] {
            assert_eq!(rules(&json!({ "progress": { "percent": percent } })), ["/progress/percent type"]);
        }
        assert_eq!(
            rules(&json!({ "progress": { "stage": 1 } })),
            ["/progress/percent required", "/progress/stage type"]
        );
        assert_eq!(rules(&json!({ "progress": 45 })), ["/progress type"]);
    }

    #[test]
    fn stream_011_a_final_chunk_is_a_valid_success() {
        let good =
            json!({ "final": true, "meta": meta(), "data": { "rationale": "r" }, "id": "added by a socket" });
        assert!(rules(&good).is_empty());
        assert_eq!(rules(&json!({ "final": true })), ["/data required", "/meta required"]);
        assert_eq!(
            rules(&json!({ "final": true, "meta": meta(), "data": {} })),
            ["/data/rationale required"]
        );
        let mut torn = good;
        torn["ok"] = json!(1);
        torn["error"] = json!({});
        assert_eq!(rules(&torn), ["/ok type", "/error closed"]);
    }

    #[test]
    fn stream_013_an_error_chunk_needs_an_error_and_may_lack_the_rest() {
        assert!(rules(&json!({ "ok": false, "error": { "code": "E2002", "message": "m" } })).is_empty());
        assert_eq!(rules(&json!({ "ok": false, "session_id": 1 })), ["/error required", "/session_id type"]);
        assert_eq!(
            rules(&json!({ "ok": false, "streaming": false, "error": { "code": "E2002" }, "meta": [] })),
            ["/streaming type", "/error/message required", "/meta type"]
        );
    }

    #[test]
    fn stream_025_usage_counts_whole_tokens_that_add_up() {
        let with = |usage: Value| json!({ "final": true, "meta": meta(), "data": { "rationale": "r" }, "usage": usage });
        assert!(rules(&with(json!({ "input_tokens": 1, "output_tokens": 2, "total_tokens": 3 }))).is_empty());
        assert!(rules(&with(json!({ "total_tokens": 3 }))).is_empty());
        let off = json!({ "input_tokens": 1, "output_tokens": 2, "total_tokens": 4 });
        assert_eq!(rules(&with(off)), ["/usage/total_tokens sum"]);
        assert_eq!(rules(&with(json!({ "input_tokens": -1 }))), ["/usage/input_tokens type"]);
    }
}
