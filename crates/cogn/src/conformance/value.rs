//! JSON values as vectors compare and show them: numbers by value, texts exact, booleans only equal booleans.

use std::io;

use cognitive_contract::text;
use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Serializer, Value};

pub(super) use cognitive_contract::equal::same;

/// How much of a value a message shows.
const SHOWN: usize = 100;

/// The JSON text that `$json_contains` and its like search: on one line, a space after every comma and colon.
pub(super) fn json_text(value: &Value) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced));
    match written {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        Err(_) => value.to_string(),
    }
}

/// The start of a value, for a message.
pub(super) fn shown(value: &Value) -> String {
    let whole = json_text(value);
    if text::fits(&whole, SHOWN) { whole } else { format!("{}…", text::cut(&whole, SHOWN)) }
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_have_spaces_and_messages_are_short() {
        assert_eq!(json_text(&json!({ "a": [1, "é"], "b": {} })), r#"{"a": [1, "é"], "b": {}}"#);
        assert_eq!(shown(&json!("x".repeat(500))).chars().count(), SHOWN + 1);
    }
}
