//! Finds the end of a broken object, so that no part of it is taken for the answer. Understands as little as
//! possible: strings in `"` and brackets. If that is not enough, the rest of the text belongs to the broken object,
//! and the reply is refused rather than misread.

use super::event::{Bracket, BrokenValue};
use super::fence;
use super::json::JsonReader;

/// A broken value that is being skipped.
#[derive(Debug, Clone)]
pub(super) struct SkipState {
    pub(super) broken: BrokenValue,
    /// The offset at which the search for a thinking tag continues.
    pub(super) tags_from: usize,
    /// The offset at which to continue.
    at: usize,
    /// The number of open braces.
    braces: usize,
    /// The number of open square brackets. In an object only braces count: `{"a": [1, 2}` is complete, though its
    /// list is not.
    square: Option<usize>,
    in_string: bool,
    escaped: bool,
    /// The mark of the fence around it, which ends it as well.
    around: Option<(u8, usize)>,
    /// The start of the current line, if it may close the fence.
    line_start: Option<usize>,
}

impl SkipState {
    /// Starts with the token that broke the value.
    pub(super) fn new(reader: &JsonReader, broken: BrokenValue, around: Option<(u8, usize)>) -> Self {
        let count = |kind: Bracket| reader.brackets.iter().filter(|bracket| **bracket == kind).count();
        Self {
            broken,
            tags_from: broken.open,
            at: reader.token_start,
            braces: count(Bracket::Object),
            square: reader.is_list().then(|| count(Bracket::List)),
            in_string: false,
            escaped: false,
            around,
            line_start: None,
        }
    }

    /// Returns the offset after the broken value, once it is known.
    pub(super) fn end(&mut self, text: &str) -> Option<usize> {
        let rest = text.as_bytes().get(self.at..).unwrap_or_default();
        for byte in rest.iter().copied() {
            let at = self.at;
            if byte == b'\n' {
                if let Some(start) = self.closing_line(text, at) {
                    return Some(start);
                }
                self.line_start = self.around.map(|_| at + 1);
            }
            self.at += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                _ if self.is_closed_by(byte) => return Some(self.at),
                _ => {}
            }
        }
        None
    }

    /// Returns the offset of the line that ends here, if it closes the fence around the value.
    pub(super) fn closing_line(&self, text: &str, end: usize) -> Option<usize> {
        let start = self.line_start?;
        let line = text.get(start..end)?;
        self.around.filter(|mark| fence::closes(line, *mark)).map(|_| start)
    }

    fn is_closed_by(&mut self, byte: u8) -> bool {
        match (byte, &mut self.square) {
            (b'{', _) => self.braces += 1,
            (b'}', _) => self.braces = self.braces.saturating_sub(1),
            (b'[', Some(square)) => *square += 1,
            (b']', Some(square)) => *square = square.saturating_sub(1),
            _ => return false,
        }
        self.braces == 0 && self.square.unwrap_or(0) == 0
    }
}
