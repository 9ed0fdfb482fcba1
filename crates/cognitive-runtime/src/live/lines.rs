//! What is known of the text outside of objects: whether there was any, the words of the last line, and whether a line
//! or a fence has just begun. Keeps a bounded piece of the text and interprets none of it.

use crate::stages::parse::introduces_example;

/// How much of a line is kept, in bytes; words that lead up to an object are looked for no further back.
const KEPT: usize = 400;
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text outside of objects.
#[derive(Debug)]
pub(super) struct Lines {
    /// The present line.
    line: String,
    /// The last line before it that had something on it.
    last: String,
    /// Nothing but blanks so far.
    untouched: bool,
    /// Nothing but blanks, thinking and the mark of a fence.
    clean: bool,
    fence: FenceLine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FenceLine {
    /// Not within a fence, or not at its start.
    Elsewhere,
    /// On the line that opens a fence, behind the word for the language or still in it.
    Opening { word: bool },
    /// Nothing but blanks since that line.
    Fresh,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self {
            line: String::new(),
            last: String::new(),
            untouched: true,
            clean: true,
            fence: FenceLine::Elsewhere,
        }
    }

    /// Whether nothing but blanks came so far.
    pub(super) fn untouched(&self) -> bool {
        self.untouched
    }

    /// Whether nothing came that could be more than packaging.
    pub(super) fn clean(&self) -> bool {
        self.clean
    }

    /// Whether the present line is blank so far.
    pub(super) fn line_is_blank(&self) -> bool {
        let opens_fence = matches!(self.fence, FenceLine::Opening { .. });
        !opens_fence && self.line.trim_matches([' ', '\t']).is_empty()
    }

    /// Whether only blanks stand between a fence and this place.
    pub(super) fn fence_is_fresh(&self) -> bool {
        self.fence == FenceLine::Fresh
    }

    /// Whether the words before this place say that an example follows.
    pub(super) fn introduce_example(&self) -> bool {
        let line = if self.line.trim().is_empty() { &self.last } else { &self.line };
        !line.is_empty() && introduces_example(line)
    }

    /// Text that is none of the marks.
    pub(super) fn push(&mut self, text: &str) {
        let mut rest = text;
        while let Some((line, after)) = rest.split_once('\n') {
            self.add(line);
            self.end_line();
            rest = after;
        }
        self.add(rest);
    }

    fn add(&mut self, text: &str) {
        let is_blank = |c: char| c.is_whitespace() || c == BYTE_ORDER_MARK;
        let mut text = text;
        if let FenceLine::Opening { word: true } = self.fence {
            let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '.');
            let end = text.find(|c: char| !belongs(c));
            if end.is_some() {
                self.fence = FenceLine::Opening { word: false };
            }
            text = text.get(end.unwrap_or(text.len())..).unwrap_or_default();
        }
        if !text.chars().all(is_blank) {
            self.untouched = false;
            self.clean = false;
            if self.fence == FenceLine::Fresh {
                self.fence = FenceLine::Elsewhere;
            }
        }
        self.line.push_str(text);
        if self.line.len() > 2 * KEPT {
            let from = self.line.ceil_char_boundary(self.line.len() - KEPT);
            self.line.drain(..from);
        }
    }

    fn end_line(&mut self) {
        if !self.line.trim().is_empty() {
            std::mem::swap(&mut self.line, &mut self.last);
        }
        self.line.clear();
        if matches!(self.fence, FenceLine::Opening { .. }) {
            self.fence = FenceLine::Fresh;
        }
    }

    /// A fence opens. The words before it lead up to what is in it.
    pub(super) fn open_fence(&mut self) {
        self.untouched = false;
        self.end_line();
        self.fence = FenceLine::Opening { word: true };
    }

    /// Something stood here that is not told, such as an object.
    pub(super) fn touch(&mut self) {
        self.untouched = false;
        self.clean = false;
        self.fence = FenceLine::Elsewhere;
        // So that the line does not count as blank.
        self.line.push('\u{fffc}');
    }

    /// Thinking begins; it does not count as text, but the line is not blank any more.
    pub(super) fn think(&mut self) {
        self.untouched = false;
        self.line.push('\u{fffc}');
    }

    /// Words before this place lead up to nothing any more.
    pub(super) fn forget_words(&mut self) {
        self.last.clear();
        self.line.clear();
        self.line.push('\u{fffc}');
    }

    /// Everything so far was thinking.
    pub(super) fn restart(&mut self) {
        *self = Self { untouched: false, ..Self::new() };
        self.line.push('\u{fffc}');
    }
}
