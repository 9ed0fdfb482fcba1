//! Reads a reply while it is being written, for listeners that need it live. Stores the text: the grammar may go back
//! in it, and a stopped call returns it.
//!
//! Reports only events that are likely to count: none after a broken value, until a closing tag marks all of it as
//! thinking. The answer among several objects is chosen when the reply is complete.

use super::event::{JsonEvent, JsonListener, ReplyFinding};
use super::grammar::{ReplyGrammar, is_blank};
use super::json::ReplyInput;

/// Reads a reply in pieces.
#[derive(Debug)]
pub struct ReplyScanner {
    grammar: ReplyGrammar,
    text: String,
    /// The end of the text without trailing blanks.
    solid: usize,
    /// The length of the text, and its solid end, when it was last read.
    read: (usize, usize),
    muted: bool,
}

impl ReplyScanner {
    /// A scanner for one reply. `strict` takes no liberties, as tier `exec`.
    #[must_use]
    pub fn new(strict: bool) -> Self {
        Self::with_capacity(strict, 0)
    }

    /// A scanner with capacity for a reply of `bytes`.
    pub(crate) fn with_capacity(strict: bool, bytes: usize) -> Self {
        let (grammar, text) = (ReplyGrammar::new(strict), String::with_capacity(bytes));
        Self { grammar, text, solid: 0, read: (0, 0), muted: false }
    }

    /// The text so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text so far; the scanner is unusable after it.
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Appends the next piece without reading it.
    #[inline]
    pub(crate) fn keep(&mut self, piece: &str) {
        // Fast path: most pieces end with an ASCII letter, so no character has to be decoded.
        let ends_solid = piece.as_bytes().last().is_some_and(u8::is_ascii_graphic);
        let solid = if ends_solid { piece.len() } else { piece.trim_end_matches(is_blank).len() };
        if solid > 0 {
            self.solid = self.text.len() + solid;
        }
        self.text.push_str(piece);
    }

    /// Reads the text that was appended since the last scan.
    pub(crate) fn scan(&mut self, listener: &mut impl JsonListener) {
        let (text, solid) = std::mem::replace(&mut self.read, (self.text.len(), self.solid));
        // If the grammar waits after blanks, more of them change nothing, so they are not scanned again.
        if text == self.text.len() || (solid == self.solid && self.grammar.waits_at(text)) {
            return;
        }
        let input = ReplyInput { text: &self.text, solid: self.solid, ended: false };
        self.grammar.read(input, &mut LiveListener { listener, muted: &mut self.muted });
    }

    /// Reads the next piece. It may end anywhere, also within an escape.
    pub fn push(&mut self, piece: &str, listener: &mut impl JsonListener) {
        self.keep(piece);
        self.scan(listener);
    }
}

/// Reports the same events as a scanner that gets the whole text, without a copy of it.
pub(crate) fn scan_text(text: &str, strict: bool, listener: &mut impl JsonListener) {
    let input = ReplyInput { text, solid: super::bounds(text).1, ended: false };
    ReplyGrammar::new(strict).read(input, &mut LiveListener { listener, muted: &mut false });
}

/// Forwards events that are likely to count.
struct LiveListener<'a, L> {
    listener: &'a mut L,
    muted: &'a mut bool,
}

impl<L: JsonListener> JsonListener for LiveListener<'_, L> {
    fn event(&mut self, event: JsonEvent<'_>, at: usize) {
        if matches!(event, JsonEvent::Void) {
            *self.muted = false;
        }
        if !*self.muted {
            self.listener.event(event, at);
        }
    }

    fn finding(&mut self, finding: ReplyFinding<'_>) {
        if let ReplyFinding::Broken(broken) = finding {
            *self.muted |= !broken.is_thought;
        }
    }
}
