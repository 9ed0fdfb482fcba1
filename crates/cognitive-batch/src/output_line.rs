//! The line of a row: `{"row", "id"?, "input_hash", "duplicate_of"?, "input"?, "envelope"}`, in this order. What reads it back
//! relies on that `row` comes first.

use cognitive_contract::Envelope;
use cognitive_contract::ports::Usage;
use serde::Serialize;
use serde_json::Value;

/// A line, to be written.
#[derive(Debug, Serialize)]
pub(crate) struct OutputLine<'a, E> {
    /// The number of the row, from 0 on.
    pub(crate) row: u64,
    /// What names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<&'a Value>,
    /// The hash of its input.
    pub(crate) input_hash: &'a str,
    /// The row whose answer this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duplicate_of: Option<u64>,
    /// Its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<&'a Value>,
    /// Its answer.
    pub(crate) envelope: E,
}

impl<E: Serialize> OutputLine<'_, E> {
    /// The line, with its end.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(1024);
        // Only a map whose keys are no texts cannot be written, and there is none.
        if serde_json::to_writer(&mut line, self).is_err() {
            line.clear();
        }
        line.push(b'\n');
        line
    }
}

/// Takes the envelope out of a line.
pub(crate) fn envelope_of(line: &[u8]) -> Option<Value> {
    match serde_json::from_slice(line).ok()? {
        Value::Object(mut members) => members.shift_remove("envelope"),
        _ => None,
    }
}

/// Tokens and money of an envelope.
pub(crate) fn spent(envelope: &Envelope) -> Usage {
    envelope.meta().extra.get("usage").map(Usage::from_value).unwrap_or_default()
}
