//! A serialised request body: JSON text, with the base64 of each media item as a separate segment. A media item can
//! have a hundred megabytes, so it is neither copied nor serialised again, even on retries.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use serde::Serialize;

use crate::llm::borrowed_body::Node;

/// The initial buffer size. Most bodies are shorter; a longer one grows the buffer.
const DEFAULT_LENGTH: usize = 4 * 1024;

/// A body in segments, or the rest of it.
#[derive(Debug, Clone)]
pub(crate) enum Segments {
    /// One segment: a body without media.
    One(Bytes),
    /// Several segments.
    Many(VecDeque<Bytes>),
}

/// An empty body.
impl Default for Segments {
    fn default() -> Self {
        Self::One(Bytes::new())
    }
}

impl Segments {
    /// Serialises a body. All text between media items becomes one segment.
    pub(crate) fn from_body(body: &Node<'_>) -> Self {
        let mut writer = Writer { done: VecDeque::new(), text: Vec::with_capacity(DEFAULT_LENGTH) };
        writer.write(body);
        if writer.done.is_empty() {
            return Self::One(writer.text.into());
        }
        writer.cut();
        Self::Many(writer.done)
    }

    /// Wraps a body that is already serialised.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self::One(bytes.into())
    }

    /// Returns the whole body as text, for display.
    pub(crate) fn into_text(self) -> Option<String> {
        let bytes = match self {
            Self::One(text) => text.to_vec(),
            Self::Many(left) => left.into_iter().flatten().collect(),
        };
        String::from_utf8(bytes).ok()
    }

    /// Returns the whole body as text.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.clone().into_text().unwrap()
    }
}

struct Writer {
    done: VecDeque<Bytes>,
    text: Vec<u8>,
}

impl Writer {
    fn write(&mut self, node: &Node<'_>) {
        match node {
            Node::List(items) => {
                self.text.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    self.comma(index);
                    self.write(item);
                }
                self.text.push(b']');
            }
            Node::Object(members) => {
                self.text.push(b'{');
                for (index, (name, value)) in members.iter().enumerate() {
                    self.comma(index);
                    // Member names are constants without characters to escape.
                    self.text.push(b'"');
                    self.text.extend_from_slice(name.as_bytes());
                    self.text.extend_from_slice(b"\":");
                    self.write(value);
                }
                self.text.push(b'}');
            }
            Node::Base64 { before, data } => {
                self.text.push(b'"');
                // A constant prefix without characters to escape.
                self.text.extend_from_slice(before.as_bytes());
                self.cut();
                self.done.push_back(Bytes::clone(data));
                self.text.push(b'"');
            }
            Node::Text(text) => self.leaf(text),
            Node::Borrowed(value) => self.leaf(value),
            Node::Bool(value) => self.leaf(value),
            Node::Number(value) => self.leaf(value),
            Node::Value(value) => self.leaf(value),
            Node::Json(text) => self.text.extend_from_slice(text.as_bytes()),
        }
    }

    fn leaf(&mut self, value: impl Serialize) {
        // Writing to a vector cannot fail.
        let _ = serde_json::to_writer(&mut self.text, &value);
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.text.push(b',');
        }
    }

    fn cut(&mut self) {
        self.done.push_back(Bytes::from(std::mem::take(&mut self.text)));
    }
}

/// A body with a known length, so that it is sent with `Content-Length`.
impl http_body::Body for Segments {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut *self {
            Self::One(text) => Some(std::mem::take(text)).filter(|text| !text.is_empty()),
            Self::Many(left) => left.pop_front(),
        };
        Poll::Ready(next.map(|segment| Ok(Frame::data(segment))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::One(text) => text.is_empty(),
            Self::Many(left) => left.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::One(text) => text.len() as u64,
            Self::Many(left) => left.iter().map(|segment| segment.len() as u64).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body;
    use serde_json::json;

    use super::*;

    #[test]
    fn media_stand_between_the_pieces_and_are_not_copied() {
        let (schema, image) =
            (json!({ "type": "object", "enum": [null, "\""] }), Bytes::from_static(b"aW1n"));
        let url = Node::Base64 { before: "data:image/png;base64,".to_owned(), data: &image };
        let list = Node::List(vec![Node::from("a \"b\"\n"), url, Node::from(0.5), Node::List(Vec::new())]);
        let ready = schema.to_string();
        let body = Node::object([
            ("list", list),
            ("schema", Node::from(&schema)),
            ("same", Node::Json(&ready)),
            ("stream", true.into()),
        ]);
        let segments = Segments::from_body(&body);
        let Segments::Many(pieces) = &segments else { panic!("{segments:?}") };
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[1].as_ptr(), image.as_ptr());
        let text = segments.text();
        assert_eq!(segments.size_hint().exact(), Some(text.len() as u64));
        let expected = json!({
            "list": ["a \"b\"\n", "data:image/png;base64,aW1n", 0.5, []],
            "schema": schema,
            "same": schema,
            "stream": true,
        });
        assert_eq!(text, expected.to_string());
    }
}
