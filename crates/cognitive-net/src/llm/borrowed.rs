//! A request body that borrows what is large: the instructions, the turns and the schema, which every call of a module
//! sends again. `segments` makes text of it in one pass. Knows no service and reads nothing.

use bytes::Bytes;
use serde_json::{Number, Value};

/// A value of a body.
#[derive(Debug, Clone)]
pub(crate) enum Node<'a> {
    /// A text of the call.
    Text(&'a str),
    /// A value that is there already.
    Borrowed(&'a Value),
    /// JSON that is text already.
    Json(&'a str),
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Anything else that was made for this body. In a box, because it is large and rare, and most nodes are neither.
    Value(Box<Value>),
    /// A medium: what stands before its base64 in the same text, and the base64, which is written without a copy.
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
        Self::Value(Box::new(value))
    }
}

impl From<bool> for Node<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for Node<'_> {
    fn from(value: u64) -> Self {
        Self::Number(value.into())
    }
}

impl From<f64> for Node<'_> {
    /// What is not a number is null, as everywhere in JSON.
    fn from(value: f64) -> Self {
        Number::from_f64(value).map_or(Self::Json("null"), Self::Number)
    }
}
