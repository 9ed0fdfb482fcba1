//! A request body that borrows its large parts: the instructions, the turns and the schema, which every call of a
//! module sends again. `segments` serialises it in one pass. Knows no service and parses nothing.

use bytes::Bytes;
use serde_json::{Number, Value};

/// A value in a request body.
#[derive(Debug, Clone)]
pub(crate) enum Node<'a> {
    /// A text from the call.
    Text(&'a str),
    /// A borrowed JSON value.
    Borrowed(&'a Value),
    /// Text that already is JSON.
    Json(&'a str),
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Any other value built for this body. Boxed, because it is large and rare.
    Value(Box<Value>),
    /// A media item: the text before its base64 in the same string, and the base64, which is written without a copy.
    Base64 { before: String, data: &'a Bytes },
    /// A list.
    List(Vec<Node<'a>>),
    /// An object. Its members keep their order, and each name occurs once.
    Object(Vec<(&'static str, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// Creates an object.
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
    /// Serialises non-finite numbers as null, because JSON cannot represent them.
    fn from(value: f64) -> Self {
        Number::from_f64(value).map_or(Self::Json("null"), Self::Number)
    }
}
