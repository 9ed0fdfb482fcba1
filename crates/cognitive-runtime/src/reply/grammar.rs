//! The grammar of a reply: finds the objects in raw text while it arrives, and reports their positions. Skips
//! thinking, and objects within an object that was read. Judges nothing: `choose.rs` does.
//!
//! Three rules prevent misreading. An object is read from its first brace, so fences, tags and braces inside its
//! strings are text. A broken object is skipped whole: no part of it can become the answer. A closing tag inside a
//! broken value voids everything before it.
//!
//! The grammar receives the text so far and may go back in it: a brace may turn out to be prose, or thinking may
//! never end. Text is read again at most once, so the cost is linear in the text, for chunks of any size.

mod broken_object;
mod thinking;

use super::event::{Bracket, BrokenValue, Ignore, JsonListener, Lead, ReplyFinding};
use super::fence::{self, FenceLine, OpenFence};
use super::json::{JsonReader, ReadProgress, ReplyInput};
use super::skip::SkipState;
use super::tags;

/// The mark that some programs put before a text.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns whether a character around the reply is ignored.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == BYTE_ORDER_MARK
}

/// The state of reading a reply.
#[derive(Debug)]
pub(super) struct ReplyGrammar {
    strict: bool,
    /// The offset at which the reply starts, after blanks.
    start: Option<usize>,
    /// The offset up to which the text was read.
    at: usize,
    state: GrammarState,
    json: JsonReader,
    /// The end of the last object, thinking or broken value.
    behind: usize,
    fence: Option<OpenFence>,
    /// True while the text has only blanks, thinking and the mark of a fence.
    clean: bool,
    /// Set if no closing tag follows any more, so that the search for one can stop.
    no_more_closing: bool,
    /// A broken value that a tag showed to be thinking. From then on every closing tag voids the text before it. The
    /// search for the next tag continues at this offset.
    thought: Option<(BrokenValue, usize)>,
}

#[derive(Debug)]
enum GrammarState {
    /// Outside of objects.
    Prose,
    /// Within the marks of a fence that may start here.
    Mark { from: usize },
    /// In the word after an opening fence, such as `json`.
    Language,
    /// After a `[` that may open a list.
    Bracket { from: usize },
    /// Within an object or a list.
    Json,
    /// Within thinking, with the offset after its last closing tag.
    Thinking { from: usize, depth: usize, last_close: Option<usize> },
    /// Within a broken value.
    Skipping(Box<SkipState>),
}

impl ReplyGrammar {
    /// A grammar for one reply. `strict` takes no liberties, as tier `exec`.
    pub(super) fn new(strict: bool) -> Self {
        Self {
            strict,
            start: None,
            at: 0,
            state: GrammarState::Prose,
            json: JsonReader::default(),
            behind: 0,
            fence: None,
            clean: true,
            no_more_closing: false,
            thought: None,
        }
    }

    /// Continues to read the text so far.
    pub(super) fn read(&mut self, input: ReplyInput<'_>, listener: &mut impl JsonListener) {
        loop {
            let Some((_, from)) = self.thought else {
                self.run(input, listener);
                if self.thought.is_none() {
                    return;
                }
                continue;
            };
            let outcome = tags::next_close(input.text, from);
            self.thought = self.thought.map(|(broken, _)| (broken, outcome.unwrap_or_else(|later| later)));
            let Ok(close) = outcome else { return self.run(input, listener) };
            let text = input.text.get(..close).unwrap_or_default();
            self.run(ReplyInput { text, solid: close, ended: false }, listener);
            self.void(close, listener);
        }
    }

    /// Returns whether the grammar waits for more than blanks, in a text that had this length when it was read.
    #[inline]
    pub(super) fn waits_at(&self, length: usize) -> bool {
        matches!(self.state, GrammarState::Json) && self.at < length
    }

    /// Ends the reply: decides everything that only the end can decide. The text has no trailing blanks.
    pub(super) fn finish(&mut self, text: &str, listener: &mut impl JsonListener) {
        let input = ReplyInput { text, solid: text.len(), ended: true };
        self.at = self.at.min(text.len());
        self.json.at = self.json.at.min(text.len());
        loop {
            self.read(input, listener);
            if !self.end(text, listener) {
                return;
            }
        }
    }

    fn run(&mut self, input: ReplyInput<'_>, listener: &mut impl JsonListener) {
        if self.start.is_none() {
            let rest = input.text.get(self.at..).unwrap_or_default();
            let found = rest.find(|c| !is_blank(c));
            self.at += found.unwrap_or(rest.len());
            self.behind = self.at;
            self.start = found.map(|_| self.at);
        }
        let had_thought = self.thought.is_some();
        let in_word = |grammar: &Self| matches!(grammar.state, GrammarState::Json) && input.ended;
        while (self.at < input.text.len() || in_word(self)) && had_thought == self.thought.is_some() {
            if !self.step(input, listener) {
                return;
            }
        }
    }

    /// Reads some of the text, or changes the state; returns false if more text is needed.
    fn step(&mut self, input: ReplyInput<'_>, listener: &mut impl JsonListener) -> bool {
        let text = input.text;
        match &mut self.state {
            GrammarState::Json => return self.json(input, listener),
            GrammarState::Prose => return self.prose(input, listener),
            GrammarState::Mark { from } => {
                let from = *from;
                let mark = text.as_bytes().get(from).copied().unwrap_or_default();
                let rest = text.as_bytes().get(self.at..).unwrap_or_default();
                let more = rest.iter().take_while(|byte| **byte == mark).count();
                self.at += more;
                if more < rest.len() {
                    self.mark(text, from, listener);
                }
            }
            GrammarState::Language => {
                let rest = text.get(self.at..).unwrap_or_default();
                let length = fence::language(rest);
                self.at += length;
                if let Some(fence) = &mut self.fence {
                    fence.body = self.at;
                }
                if length < rest.len() {
                    self.state = GrammarState::Prose;
                }
            }
            GrammarState::Bracket { from } => {
                let from = *from;
                self.bracket(text, from, listener);
            }
            GrammarState::Thinking { .. } => return self.think(text, listener),
            GrammarState::Skipping(_) => return self.skip(text, listener),
        }
        true
    }

    fn prose(&mut self, input: ReplyInput<'_>, listener: &mut impl JsonListener) -> bool {
        // Trailing blanks may turn out not to count.
        let Some(rest) = input.text.get(self.at..input.solid).filter(|rest| !rest.is_empty()) else {
            return false;
        };
        let is_special = |byte: u8| matches!(byte, b'{' | b'[' | b'<' | b'`' | b'~');
        let run = rest.bytes().position(is_special).unwrap_or(rest.len());
        if run > 0 {
            self.pass(rest.get(..run).unwrap_or_default(), listener);
            return true;
        }
        match rest.as_bytes().first() {
            Some(b'{') if self.may_begin() => self.begin(Bracket::Object, self.at, listener),
            Some(b'[') if !self.strict => {
                self.state = GrammarState::Bracket { from: self.at };
                self.at += 1;
            }
            Some(b'<') => return self.tag(input, listener),
            Some(b'`' | b'~') => self.state = GrammarState::Mark { from: self.at },
            _ => self.pass(rest.get(..1).unwrap_or_default(), listener),
        }
        true
    }

    /// Moves over plain text.
    fn pass(&mut self, run: &str, listener: &mut impl JsonListener) {
        if let Some(first) = run.bytes().position(|byte| !byte.is_ascii_whitespace()) {
            listener.finding(ReplyFinding::Prose(self.at + first));
            self.clean = self.clean && run.chars().all(is_blank);
        }
        if let Some(fence) = &mut self.fence {
            fence.line = fence.line.after_text(run);
        }
        self.at += run.len();
    }

    /// Marks that the text from here is more than packaging.
    fn touch(&mut self) {
        self.clean = false;
        if let Some(fence) = &mut self.fence {
            fence.line = FenceLine::Past;
        }
    }

    /// Returns whether an object may start here: anywhere, or in strict mode only at the start of the text or of a
    /// fence.
    fn may_begin(&self) -> bool {
        !self.strict
            || match self.fence {
                Some(fence) => fence.line == FenceLine::Fresh,
                None => self.start == Some(self.at),
            }
    }

    fn begin(&mut self, bracket: Bracket, open: usize, listener: &mut impl JsonListener) {
        self.json.start(open, bracket, self.strict, Lead { clean: self.clean });
        self.at = self.json.at;
        self.state = GrammarState::Json;
        if bracket == Bracket::Object {
            listener.finding(ReplyFinding::Start);
        }
    }

    /// Lists are read so that their items are not mistaken for answers, but not every bracket in prose opens one.
    fn bracket(&mut self, text: &str, from: usize, listener: &mut impl JsonListener) {
        let rest = text.get(self.at..).unwrap_or_default();
        let inside = rest.trim_start();
        self.at += rest.len() - inside.len();
        let Some(next) = inside.bytes().next() else { return };
        if matches!(next, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9') {
            self.begin(Bracket::List, from, listener);
        } else {
            self.return_to_prose(from, listener);
        }
    }

    /// Treats the text at an offset as prose.
    fn return_to_prose(&mut self, from: usize, listener: &mut impl JsonListener) {
        self.state = GrammarState::Prose;
        self.at = from;
        // A bracket or a `<`: both are one byte that is not blank, so either text works.
        self.pass("<", listener);
    }

    fn json(&mut self, input: ReplyInput<'_>, listener: &mut impl JsonListener) -> bool {
        // An object in a list is not an answer.
        let progress = if self.json.is_list() {
            self.json.read(input, &mut Ignore)
        } else {
            self.json.read(input, listener)
        };
        self.at = self.json.at;
        match progress {
            ReadProgress::More => return false,
            ReadProgress::Done => self.take(input.text, listener),
            ReadProgress::Broken(cause) => self.handle_break(cause, listener),
        }
        true
    }

    fn take(&mut self, text: &str, listener: &mut impl JsonListener) {
        let (open, end, begun) = (self.json.open, self.at, self.json.begun);
        if self.json.is_list() {
            listener.finding(ReplyFinding::List { open, begun });
            self.state = GrammarState::Prose;
            self.touch();
            if begun {
                self.leave(end);
            }
            return;
        }
        let fence = self.fence.map(|fence| fence.at);
        let follows_name = follows_name(text.get(self.behind..open).unwrap_or_default());
        listener.finding(ReplyFinding::Object { open, end, fence, follows_name });
        self.leave(end);
    }

    /// Ends an object, or a broken one, at this offset.
    fn leave(&mut self, end: usize) {
        self.state = GrammarState::Prose;
        self.at = end;
        self.behind = end;
        self.touch();
        if let Some(fence) = &mut self.fence {
            fence.used = true;
        }
    }

    fn starts_line(&self, text: &str, at: usize) -> bool {
        let before = text.get(self.start.unwrap_or_default()..at).unwrap_or_default();
        let before = before.trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with(['\n', '\r'])
    }

    /// Handles complete marks from an offset on. Outside of objects three backticks are a fence anywhere in a line,
    /// unless parsing is strict. `~~~` also underlines and decorates, so it must start a line.
    fn mark(&mut self, text: &str, from: usize, listener: &mut impl JsonListener) {
        let (end, length) = (self.at, self.at - from);
        let mark = text.as_bytes().get(from).copied().unwrap_or_default();
        let needs_line = self.strict || mark == b'~';
        self.state = GrammarState::Prose;
        if length < fence::MIN_MARKS || (needs_line && !self.starts_line(text, from)) {
            self.at = from;
            return self.pass(text.get(from..end).unwrap_or_default(), listener);
        }
        let Some(open) = self.fence else {
            self.fence = Some(OpenFence::new(from, (mark, length)));
            self.state = GrammarState::Language;
            return;
        };
        if open.mark.0 == mark && open.mark.1 <= length {
            self.fence = None;
            if !open.used {
                let body = text.get(open.body..from).unwrap_or_default();
                listener.finding(ReplyFinding::UnusedFence(body));
            }
        }
        self.touch();
    }

    /// Handles the end of the text in the current state; returns whether there is more to read, further back.
    fn end(&mut self, text: &str, listener: &mut impl JsonListener) -> bool {
        match &mut self.state {
            GrammarState::Prose | GrammarState::Language | GrammarState::Json => return false,
            GrammarState::Mark { from } => {
                let from = *from;
                self.mark(text, from, listener);
                return false;
            }
            GrammarState::Bracket { from } => {
                let from = *from;
                self.return_to_prose(from, listener);
            }
            GrammarState::Thinking { from, last_close, .. } => match (*from, *last_close) {
                // If tags do not pair up, the last closing one ends the thinking: a model that writes about its tags
                // while thinking opens more than it closes.
                (from, Some(end)) => {
                    self.no_more_closing = true;
                    self.end_thinking(from, end, listener);
                }
                (from, None) => self.handle_unclosed(text, from, listener),
            },
            GrammarState::Skipping(_) => {
                return self.skip(text, listener) || self.skip_to_end(text, listener);
            }
        }
        true
    }

    /// Ends a broken value at the end of the text, or at the end of the fence around it.
    fn skip_to_end(&mut self, text: &str, listener: &mut impl JsonListener) -> bool {
        if let GrammarState::Skipping(skip) = &self.state {
            let end = skip.closing_line(text, text.len()).unwrap_or(text.len());
            self.lose(skip.broken, end, listener);
        }
        true
    }
}

/// Returns whether a text ends with a name and its colon. Then the next value belongs to a broken object, as in
/// `"data": {…}` without the brace before it.
fn follows_name(before: &str) -> bool {
    let name = before.trim_end().strip_suffix(':');
    name.is_some_and(|name| name.trim_end().ends_with('"'))
}
