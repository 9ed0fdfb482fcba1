//! Splits the body of an answer into frames of JSON text: server-sent events, JSON lines, or one document. The
//! content type determines the format; if it is not conclusive, the first byte does.
//! Refuses HTML pages: they are never an answer of a model.

use std::borrow::Cow;

use crate::sse::{Lines, Sse, TooLong};

/// The format in which the service was asked to send its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Server-sent events.
    Events,
    /// JSON lines.
    Lines,
}

/// The reason why a body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The body is an HTML page.
    Page,
    /// The body is compressed, although no compression was requested.
    Packed,
    /// One event is larger than allowed.
    TooLong,
}

impl From<TooLong> for Unreadable {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}

/// A decoder for one body.
#[derive(Debug)]
pub(crate) enum Frames {
    /// Server-sent events.
    Events(Sse),
    /// JSON lines.
    Lines(Lines),
    /// One document: the service ignored the request to stream.
    Whole(Vec<u8>),
    /// Only white space so far.
    Undecided(Shape, usize),
}

impl Frames {
    /// Creates a decoder for a body with this content type. Events may have at most `longest` bytes.
    pub(crate) fn new(content_type: &str, asked: Shape, longest: usize) -> Result<Self, Unreadable> {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        let is = |name: &str| kind.eq_ignore_ascii_case(name);
        Ok(if is("text/event-stream") {
            // Some proxies label a single document as an event stream. No event starts with `{` or `[`, so the first
            // byte decides.
            Self::Undecided(Shape::Events, longest)
        } else if is("application/x-ndjson") || is("application/jsonl") {
            Self::Lines(Lines::new(longest))
        } else if is("application/json") && asked == Shape::Lines {
            Self::Whole(Vec::new())
        } else if kind.to_ascii_lowercase().contains("html") {
            return Err(Unreadable::Page);
        } else {
            Self::Undecided(asked, longest)
        })
    }

    /// Returns the next complete frame. The bytes it has read are removed from `bytes`.
    pub(crate) fn next<'b>(&mut self, bytes: &mut &'b [u8]) -> Result<Option<Cow<'b, str>>, Unreadable> {
        match self {
            Self::Events(decoder) => Ok(decoder.next(bytes)?),
            Self::Lines(decoder) => Ok(decoder.next(bytes)?),
            Self::Whole(document) => {
                document.extend_from_slice(std::mem::take(bytes));
                Ok(None)
            }
            Self::Undecided(asked, longest) => {
                // Leading blanks mean nothing in any format, so they are dropped before the format is known.
                let blank = bytes.iter().take_while(|byte| is_blank(**byte)).count();
                *bytes = bytes.get(blank..).unwrap_or_default();
                let Some(first) = bytes.first().copied() else { return Ok(None) };
                *self = decide(first, *asked, *longest)?;
                self.next(bytes)
            }
        }
    }

    /// Returns whether the whole body is one document, whose end is the end of the answer.
    pub(crate) fn is_document(&self) -> bool {
        matches!(self, Self::Whole(_))
    }

    /// Ends the body and returns a frame that is complete only now.
    pub(crate) fn last(&mut self) -> Option<String> {
        match self {
            Self::Events(_) | Self::Undecided(..) => None,
            Self::Lines(decoder) => decoder.last(),
            Self::Whole(document) => Some(String::from_utf8_lossy(document).into_owned()),
        }
    }
}

/// Returns whether a byte is white space or part of a byte-order mark.
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF)
}

fn decide(first: u8, asked: Shape, longest: usize) -> Result<Frames, Unreadable> {
    match (first, asked) {
        (b'<', _) => Err(Unreadable::Page),
        // The first byte of gzip; no text starts with it.
        (0x1F, _) => Err(Unreadable::Packed),
        (b'{' | b'[', Shape::Events) => Ok(Frames::Whole(Vec::new())),
        (_, Shape::Events) => Ok(Frames::Events(Sse::new(longest))),
        (_, Shape::Lines) => Ok(Frames::Lines(Lines::new(longest))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content_type: &str, asked: Shape, pieces: &[&str]) -> Result<Vec<String>, Unreadable> {
        let mut decoder = Frames::new(content_type, asked, 1 << 20)?;
        let mut frames = Vec::new();
        for piece in pieces {
            let mut bytes = piece.as_bytes();
            while let Some(frame) = decoder.next(&mut bytes)? {
                frames.push(frame.into_owned());
            }
        }
        frames.extend(decoder.last());
        Ok(frames)
    }

    #[test]
    fn the_content_type_decides_or_else_the_first_byte() {
        let sse = "data: {}\n\n";
        for (content_type, asked, pieces, expected) in [
            ("text/event-stream; charset=utf-8", Shape::Events, vec![sse], vec!["{}"]),
            ("Text/Event-Stream", Shape::Lines, vec![sse], vec!["{}"]),
            ("text/event-stream", Shape::Events, vec![" {\"a\":", "1}\n"], vec!["{\"a\":1}\n"]),
            ("text/event-stream", Shape::Events, vec!["\u{feff}data: {}\n\n"], vec!["{}"]),
            ("text/event-stream", Shape::Lines, vec!["[{}]"], vec!["[{}]"]),
            ("text/event-stream", Shape::Events, vec![": hello\n\n", sse], vec!["{}"]),
            ("application/json", Shape::Events, vec!["{\"a\":", "\n1}"], vec!["{\"a\":\n1}"]),
            ("application/json", Shape::Events, vec![sse], vec!["{}"]),
            ("", Shape::Events, vec![" \n", "\n", sse], vec!["{}"]),
            ("", Shape::Events, vec!["[{}]"], vec!["[{}]"]),
            ("application/x-ndjson", Shape::Lines, vec!["{}\n{", "}\n"], vec!["{}", "{}"]),
            ("text/plain", Shape::Lines, vec!["{}\n{}"], vec!["{}", "{}"]),
            ("application/json", Shape::Lines, vec!["{\n", "}"], vec!["{\n}"]),
            ("", Shape::Events, vec![""], vec![]),
        ] {
            assert_eq!(read(content_type, asked, &pieces).unwrap(), expected, "{content_type} {pieces:?}");
        }
    }

    #[test]
    fn what_is_packed_is_no_answer() {
        assert_eq!(read("text/event-stream", Shape::Events, &["\u{1f}\u{8b}"]), Err(Unreadable::Packed));
        assert_eq!(read("", Shape::Lines, &["\u{1f}\u{8b}"]), Err(Unreadable::Packed));
    }

    #[test]
    fn pages_are_no_answers() {
        assert_eq!(read("text/html", Shape::Events, &["{}"]), Err(Unreadable::Page));
        assert_eq!(read("text/event-stream", Shape::Events, &["<html>"]), Err(Unreadable::Page));
        assert_eq!(read("", Shape::Events, &["\n  <!doctype html>"]), Err(Unreadable::Page));
        assert_eq!(read("application/json", Shape::Events, &["<html>"]), Err(Unreadable::Page));
    }
}
