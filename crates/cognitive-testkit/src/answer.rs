//! The envelope that a model answers with.

use serde_json::{Value, json};

/// A successful envelope with these data, as a model writes it.
#[must_use]
pub fn good_answer(data: &Value) -> Value {
    json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": data })
}
