//! The output line of a row: `{"row", "id"?, "input_hash", "duplicate_of"?, "input"?, "envelope"}`, in this
//! order. Readers rely on `row` being first.

use cognitive_contract::Envelope;
use cognitive_contract::ports::Usage;
use serde::Serialize;
use serde_json::Value;

/// An output line to be serialized.
#[derive(Debug, Serialize)]
pub(crate) struct OutputLine<'a, E> {
    /// The row number, starting at 0.
    pub(crate) row: u64,
    /// The id of the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<&'a Value>,
    /// The hash of its input.
    pub(crate) input_hash: &'a str,
    /// The row whose answer was copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duplicate_of: Option<u64>,
    /// Its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<&'a Value>,
    /// Its answer.
    pub(crate) envelope: E,
}

impl<E: Serialize> OutputLine<'_, E> {
    /// Serializes the line, including its line end.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(1024);
        // Serialization only fails for maps with non-string keys, and there are none.
        if serde_json::to_writer(&mut line, self).is_err() {
            line.clear();
        }
        line.push(b'\n');
        line
    }
}

/// Extracts the envelope from a line.
pub(crate) fn envelope_of(line: &[u8]) -> Option<Value> {
    match serde_json::from_slice(line).ok()? {
        Value::Object(mut members) => members.shift_remove("envelope"),
        _ => None,
    }
}

/// Returns the tokens and the cost of an envelope.
pub(crate) fn spent_usage(envelope: &Envelope) -> Usage {
    envelope.meta().extra.get("usage").map(Usage::from_value).unwrap_or_default()
}
