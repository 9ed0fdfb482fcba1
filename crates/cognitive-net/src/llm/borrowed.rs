//! A request body that borrows what is large: the instructions, the turns and the schema, which every call of a module
//! sends again. It becomes text in one pass. Knows no service and reads nothing.

use bytes::Bytes;
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// Most bodies are not longer; one that is grows.
const USUAL_LENGTH: usize = 4 * 1024;

/// A value of a body.
#[derive(Debug, Clone)]
pub(crate) enum Node<'a> {
    /// A text of the call.
    Text(&'a str),
    /// A schema, or another value that is there already.
    Borrowed(&'a Value),
    /// Anything small, or made for this body.
    Value(Value),
    /// A medium: what stands before its base64 in the same text, and the base64. `segments` writes it without a copy.
    Base64 { before: String, data: &'a Bytes },
    /// A list.
    List(Vec<Node<'a>>),
    /// An object, whose members keep their order. Each name is there once.
    Object(Vec<(&'static str, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// An object.
    pub(crate) fn object<const COUNT: usize>(members: [(&'static str, Node<'a>); COUNT]) -> Self {
        Self::Object(members.into())
    }

    /// The same as text.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(USUAL_LENGTH);
        // Names are texts, and a vector takes whatever is written.
        let _ = serde_json::to_writer(&mut text, self);
        text
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Borrowed(value) => value.serialize(serializer),
            Self::Value(value) => value.serialize(serializer),
            Self::Base64 { before, data } => {
                serializer.collect_str(&format_args!("{before}{}", String::from_utf8_lossy(data)))
            }
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

impl<'a> From<&'a str> for Node<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Node<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a Value> for Node<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Borrowed(value)
    }
}

impl From<Value> for Node<'_> {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl From<bool> for Node<'_> {
    fn from(value: bool) -> Self {
        Self::Value(value.into())
    }
}

impl From<u64> for Node<'_> {
    fn from(value: u64) -> Self {
        Self::Value(value.into())
    }
}

impl From<f64> for Node<'_> {
    fn from(value: f64) -> Self {
        Self::Value(value.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_is_the_text_of_the_same_value() {
        let schema = json!({ "type": "object", "enum": [null] });
        let list = Node::List(vec![Node::from(1), Node::from("a \"b\"\n")]);
        let format = Node::object([("schema", Node::from(&schema)), ("strict", true.into())]);
        let body = Node::object([("list", list), ("format", format), ("temperature", 0.2.into())]);
        let expected = json!({
            "list": [1, "a \"b\"\n"],
            "format": { "schema": schema, "strict": true },
            "temperature": 0.2,
        });
        assert_eq!(body.text(), expected.to_string().into_bytes());
    }
}
