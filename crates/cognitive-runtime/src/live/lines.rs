//! What is known of the text outside of objects: whether there was any, and whether a line or a fence has just begun.
//! Keeps nothing of the text and interprets none of it.

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text outside of objects.
#[derive(Debug)]
pub(super) struct Lines {
    /// Nothing but blanks on the present line.
    blank: bool,
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
        Self { blank: true, untouched: true, clean: true, fence: FenceLine::Elsewhere }
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
        !opens_fence && self.blank
    }

    /// Whether only blanks stand between a fence and this place.
    pub(super) fn fence_is_fresh(&self) -> bool {
        self.fence == FenceLine::Fresh
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
        self.blank &= text.chars().all(|c| matches!(c, ' ' | '\t'));
    }

    fn end_line(&mut self) {
        self.blank = true;
        if matches!(self.fence, FenceLine::Opening { .. }) {
            self.fence = FenceLine::Fresh;
        }
    }

    /// A fence opens.
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
        self.blank = false;
    }

    /// Thinking begins; it does not count as text, but the line is not blank any more.
    pub(super) fn think(&mut self) {
        self.untouched = false;
        self.blank = false;
    }

    /// Everything so far was thinking.
    pub(super) fn restart(&mut self) {
        *self = Self { untouched: false, blank: false, ..Self::new() };
    }
}
