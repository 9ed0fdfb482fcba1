//! Reads a reply while it is being written, for those who cannot wait for its end. Keeps the text, because the grammar may go
//! back in it and because a call that is stopped hands it over.
//!
//! Tells only what is likely to count: no event behind something broken, until a closing tag says that all of it was
//! thinking. Which of several objects is the answer is decided when the reply is complete.

use super::event::{JsonEvent, JsonListener, ReplyFinding};
use super::grammar::{ReplyGrammar, is_blank};
use super::json::ReplyInput;

/// Reads a reply in pieces.
#[derive(Debug)]
pub struct ReplyScanner {
    grammar: ReplyGrammar,
    text: String,
    /// The end of the text without the blanks at its end.
    solid: usize,
    /// How much of the text, and of the part that is solid, was read.
    read: (usize, usize),
    muted: bool,
}

impl ReplyScanner {
    /// A scanner for one reply. `strict` takes no liberties, as tier `exec`.
    #[must_use]
    pub fn new(strict: bool) -> Self {
        Self::with_capacity(strict, 0)
    }

    /// The same, with room for a reply of so many bytes.
    pub(crate) fn with_capacity(strict: bool, bytes: usize) -> Self {
        let (grammar, text) = (ReplyGrammar::new(strict), String::with_capacity(bytes));
        Self { grammar, text, solid: 0, read: (0, 0), muted: false }
    }

    /// The text so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Hands over the text so far; the scanner is of no use any more.
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Takes the next piece, and reads it later.
    #[inline]
    pub(crate) fn keep(&mut self, piece: &str) {
        // Most pieces end with a letter, and no character has to be decoded to see that.
        let ends_solid = piece.as_bytes().last().is_some_and(u8::is_ascii_graphic);
        let solid = if ends_solid { piece.len() } else { piece.trim_end_matches(is_blank).len() };
        if solid > 0 {
            self.solid = self.text.len() + solid;
        }
        self.text.push_str(piece);
    }

    /// Reads what was kept and not read yet.
    pub(crate) fn scan(&mut self, listener: &mut impl JsonListener) {
        let (text, solid) = std::mem::replace(&mut self.read, (self.text.len(), self.solid));
        // Where the grammar waits behind blanks, more of them change nothing, however many there are.
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

/// Tells of a text what a scanner tells of it that gets all of it, and keeps no copy.
pub(crate) fn scan_text(text: &str, strict: bool, listener: &mut impl JsonListener) {
    let input = ReplyInput { text, solid: super::bounds(text).1, ended: false };
    ReplyGrammar::new(strict).read(input, &mut LiveListener { listener, muted: &mut false });
}

/// Passes on what is likely to count.
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
