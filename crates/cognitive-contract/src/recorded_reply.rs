//! A model's reply as recordings keep it: the raw text, and the dialect of the schema that the provider was sent. (D-18)
//! The text is a file `….reply.txt`, the dialect a file `….reply.json` beside it. Opens no file itself.

use cognitive_schema::SchemaTarget;
use serde_json::{Value, json};

use crate::text::cut;

/// The member of the file beside a recording that names the dialect.
pub const DIALECT_KEY: &str = "reply_dialect";
/// The word for a provider that was sent no schema.
pub const NO_DIALECT: &str = "none";
/// The end of the name of a file with a reply.
pub const REPLY_END: &str = ".reply.txt";
/// The end of the name of the file with its dialect.
pub const DIALECT_END: &str = ".reply.json";

/// The longest part of a wrong name that a message repeats. The name comes from a file and may be of any length.
const MAX_QUOTED_CHARS: usize = 80;

/// A reply that can be read again exactly as it was read when it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedReply {
    /// The text of the model, whole and unchanged.
    pub text: String,
    /// The dialect of the schema that the provider was sent; `None` if it was sent none. It says which nulls of the text
    /// the schema demanded.
    pub dialect: Option<SchemaTarget>,
}

impl RecordedReply {
    /// A reply of a provider that was sent a schema in this dialect, if in any.
    #[must_use]
    pub fn new(text: impl Into<String>, dialect: Option<SchemaTarget>) -> Self {
        Self { text: text.into(), dialect }
    }

    /// The text of the file with the dialect; `None` if the provider was sent no schema, because then there is no file.
    #[must_use]
    pub fn dialect_file(&self) -> Option<String> {
        let dialect = self.dialect?;
        Some(format!("{}\n", json!({ DIALECT_KEY: dialect.word() })))
    }
}

impl From<String> for RecordedReply {
    /// A text that nothing else is known of: its provider was sent no schema.
    fn from(text: String) -> Self {
        Self { text, dialect: None }
    }
}

/// The place of the file with the dialect, for the place of a reply; `None` if that is not named like a recording.
#[must_use]
pub fn dialect_place(reply: &str) -> Option<String> {
    reply.strip_suffix(REPLY_END).map(|stem| format!("{stem}{DIALECT_END}"))
}

/// Reads the text of such a file. The error is a sentence without the place.
pub fn parse_dialect_file(text: &str) -> Result<Option<SchemaTarget>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    let members = value.as_object().ok_or("is not an object")?;
    if let Some(name) = members.keys().find(|name| *name != DIALECT_KEY) {
        return Err(format!("has an unknown member: `{}`", cut(name, MAX_QUOTED_CHARS)));
    }
    let name = members.get(DIALECT_KEY).and_then(Value::as_str);
    let name = name.ok_or_else(|| format!("`{DIALECT_KEY}` is missing or not a string"))?;
    dialect(name).map_err(|why| format!("cannot be used: {why}"))
}

/// The names of all dialects, and the one for no schema.
pub fn dialect_names() -> impl Iterator<Item = &'static str> {
    SchemaTarget::ALL.into_iter().map(SchemaTarget::word).chain([NO_DIALECT])
}

/// The dialect of a name, `None` for a provider that was sent no schema. The error lists the names there are.
pub fn dialect(name: &str) -> Result<Option<SchemaTarget>, String> {
    if name == NO_DIALECT {
        return Ok(None);
    }
    SchemaTarget::from_word(name).map(Some).ok_or_else(|| {
        let known: Vec<String> = dialect_names().map(|known| format!("`{known}`")).collect();
        format!("unknown schema dialect: `{}`; use one of {}", cut(name, MAX_QUOTED_CHARS), known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_file_is_read_as_it_was_written_in_every_dialect_d_18() {
        for target in SchemaTarget::ALL {
            let reply = RecordedReply::new("{}", Some(target));
            assert_eq!(parse_dialect_file(&reply.dialect_file().unwrap()), Ok(Some(target)));
            assert_eq!(dialect(target.word()), Ok(Some(target)));
        }
        assert_eq!(RecordedReply::from("{}".to_owned()).dialect_file(), None);
        assert_eq!(parse_dialect_file(r#"{"reply_dialect": "none"}"#), Ok(None));
        assert_eq!(dialect("embedded"), Ok(Some(SchemaTarget::Grammar)));
        assert_eq!(dialect_place("tests/a.part.reply.txt").as_deref(), Some("tests/a.part.reply.json"));
        assert_eq!(dialect_place("answer.json"), None);
    }

    #[test]
    fn what_names_no_dialect_is_refused_with_the_list_d_18() {
        let known = "use one of `openai`, `anthropic`, `gemini`, `ollama`, `grammar`, `none`";
        assert_eq!(dialect("gpt").unwrap_err(), format!("unknown schema dialect: `gpt`; {known}"));
        for (text, why) in [
            ("{", "is not JSON"),
            ("[]", "is not an object"),
            ("{}", "`reply_dialect` is missing or not a string"),
            (r#"{"reply_dialect": 1}"#, "`reply_dialect` is missing or not a string"),
            (r#"{"reply_dialect": "openai", "x": 1}"#, "unknown member: `x`"),
            (r#"{"reply_dialect": "OpenAI"}"#, "unknown schema dialect: `OpenAI`"),
        ] {
            let said = parse_dialect_file(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
