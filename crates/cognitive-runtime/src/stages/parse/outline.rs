//! Goes once through a reply that is not JSON as a whole and lists the objects in it, with where each stands. Leaves
//! out thinking, and objects within an object that was read. Judges nothing: `choose.rs` does.
//!
//! Three rules keep it from being fooled. An object is read from its first brace, so fences, tags and braces inside
//! its strings are text. What was meant to be an object and is broken is skipped whole: no part of it can become the
//! answer. And a closing tag inside something broken voids all that came before it.
//!
//! Linear: what was read is never read again, and what turns out to be prose ends within its first name.

use serde_json::{Map, Value};

use super::fence::SHORTEST;
use super::reader::{self, Read, Stop, Why};
use super::thinking::{self, Span, Tag};
use super::{skip, strict};

/// What is in a reply.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// The objects, in the order of the text.
    pub(crate) found: Vec<Candidate>,
    /// What the only one of them says. Of several, none is kept.
    pub(crate) only: Option<Read>,
    /// The last thing that was meant to be an object and is none; one that looks like an envelope before others.
    pub(crate) broken: Option<Broken>,
    /// Whether there is JSON that is not an object, in a fence or with objects in it.
    pub(crate) other: bool,
    /// Where thinking was left out.
    pub(crate) thinking: Option<usize>,
    /// Whether the text ends within thinking.
    pub(crate) still_thinking: bool,
    /// Where the first text stands that is none of all this.
    pub(crate) prose: Option<usize>,
}

impl Outline {
    fn note(&mut self, broken: Broken) {
        let weighs = broken.enveloped || (broken.begun && broken.why == Why::End);
        if weighs || !self.broken.is_some_and(|known| known.enveloped) {
            self.broken = Some(broken);
        }
    }
}

/// An object that could be the answer: where it stands, and what has to be known of it to choose.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) at: usize,
    pub(crate) end: usize,
    /// Where the fence opens in which it stands.
    pub(crate) fence: Option<usize>,
    /// Whether JSON goes on right behind it, so that a bracket closed it too early.
    pub(crate) closed_early: bool,
    /// Whether it looks like an envelope: `ok` is true or false, and something stands beside it.
    pub(crate) is_envelope: bool,
    /// Whether every number in it is one that can be held.
    pub(crate) is_readable: bool,
}

fn is_envelope(object: &Map<String, Value>) -> bool {
    let has = |name: &str| object.contains_key(name);
    object.get("ok").is_some_and(Value::is_boolean) && (has("data") || has("error") || has("meta"))
}

/// Something that was meant to be an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Broken {
    /// Where it opens.
    pub(crate) open: usize,
    /// Where it went wrong.
    pub(crate) at: usize,
    pub(crate) why: Why,
    /// See [`Stop::begun`]; only at the end of the text this can be false.
    pub(crate) begun: bool,
    /// See [`Stop::enveloped`].
    pub(crate) enveloped: bool,
    /// Whether a tag in it says that it was thinking, and thus no candidate.
    pub(crate) is_thought: bool,
}

/// Lists what is in `text` from `start` on.
pub(crate) fn outline(text: &str, start: usize) -> Outline {
    let mut scan = Scan::new(text, start);
    while let Some(byte) = text.as_bytes().get(scan.at).copied() {
        match byte {
            b'{' | b'[' => scan.value(byte),
            b'<' => scan.tag(),
            b'`' | b'~' => scan.mark(byte),
            _ => scan.prose(byte),
        }
    }
    scan.outline
}

struct Scan<'a> {
    text: &'a str,
    start: usize,
    at: usize,
    /// The end of the last object, thought or broken thing.
    behind: usize,
    fence: Option<Fence>,
    /// No closing tag follows any more, so there is no use in looking for one.
    no_more_closing: bool,
    outline: Outline,
}

#[derive(Clone, Copy)]
struct Fence {
    at: usize,
    mark: (u8, usize),
    body: usize,
    /// Whether an object was found or broken in it.
    used: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, start: usize) -> Self {
        let outline = Outline::default();
        Self { text, start, at: start, behind: start, fence: None, no_more_closing: false, outline }
    }

    fn prose(&mut self, byte: u8) {
        if !byte.is_ascii_whitespace() {
            self.outline.prose.get_or_insert(self.at);
        }
        self.at += 1;
    }

    fn value(&mut self, byte: u8) {
        // Lists are read so that their items are not mistaken for answers, but not every bracket in prose opens one.
        if byte == b'[' && !self.opens_list() {
            return self.prose(byte);
        }
        match reader::read(self.text, self.at) {
            Ok(read) => self.take(read),
            Err(stop) if stop.begun || (byte == b'{' && stop.why == Why::End) => self.give_up(&stop),
            Err(stop) => {
                self.outline.prose.get_or_insert(self.at);
                // No object was begun in the list, so there is none to lose.
                self.at = if byte == b'[' { stop.token.max(self.at + 1) } else { stop.resume };
            }
        }
    }

    fn opens_list(&self) -> bool {
        let rest = self.text.get(self.at + 1..).unwrap_or_default().trim_start();
        rest.starts_with(|c: char| matches!(c, '{' | '[' | '"' | '-') || c.is_ascii_digit())
    }

    fn take(&mut self, read: Read) {
        let (end, begun) = (read.end, read.begun);
        let Value::Object(object) = &read.value else {
            // `[1]` in prose is a footnote; with objects in it, it is an answer of the wrong type.
            self.outline.other |= begun;
            self.outline.prose.get_or_insert(self.at);
            return if begun { self.leave(end) } else { self.at = end };
        };
        let is_envelope = is_envelope(object);
        if is_envelope || !self.follows_name() {
            let fence = self.fence.map(|fence| fence.at);
            let closed_early = self.goes_on(end);
            let is_readable = !read.rounded.iter().any(|number| number.overflows);
            let is_first = self.outline.found.is_empty();
            self.outline.only = is_first.then_some(read);
            self.outline.found.push(Candidate {
                at: self.at,
                end,
                fence,
                closed_early,
                is_envelope,
                is_readable,
            });
        } else {
            // `"data": {…}` without the brace that belongs before it: the rest of something broken.
            let at = self.at;
            self.outline.note(Broken {
                open: at,
                at,
                why: Why::Syntax,
                begun: true,
                enveloped: false,
                is_thought: false,
            });
            self.outline.prose.get_or_insert(at);
        }
        self.leave(end);
    }

    /// Whether a sign that only JSON puts behind a value is the next that stands at an offset.
    fn goes_on(&self, end: usize) -> bool {
        let rest = self.text.as_bytes().get(end..).unwrap_or_default();
        let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        next.is_some_and(|byte| matches!(byte, b',' | b':' | b'}' | b']' | b'"'))
    }

    fn follows_name(&self) -> bool {
        let before = self.text.get(self.behind..self.at).unwrap_or_default().trim_end();
        before.strip_suffix(':').is_some_and(|name| name.trim_end().ends_with('"'))
    }

    fn give_up(&mut self, stop: &Stop) {
        let end = skip::end_of_broken(self.text, stop, self.fence.map(|fence| fence.mark));
        let Stop { why, at, begun, enveloped, .. } = *stop;
        let thinking_ends = self.closing_tag_within(end);
        let is_thought = thinking_ends.is_some();
        let broken = Broken { open: self.at, at, why, begun, enveloped, is_thought };
        self.outline.prose.get_or_insert(self.at);
        match thinking_ends {
            Some(behind) => self.forget(behind),
            None => self.leave(end),
        }
        self.outline.note(broken);
    }

    /// Whether what is broken has a closing tag in it; then the offset behind the last one in the whole text. A reply
    /// that starts with a brace did not start with thinking, so there a tag is part of some string.
    fn closing_tag_within(&self, end: usize) -> Option<usize> {
        if self.at == self.start {
            return None;
        }
        let broken = self.text.get(..end).unwrap_or(self.text);
        thinking::last_close(broken, self.at).and_then(|_| thinking::last_close(self.text, self.at))
    }

    fn leave(&mut self, end: usize) {
        self.at = end;
        self.behind = end;
        if let Some(fence) = &mut self.fence {
            fence.used = true;
        }
    }

    /// All up to an offset was thinking.
    fn forget(&mut self, behind: usize) {
        let start = self.start;
        let no_more_closing = self.no_more_closing;
        *self = Self { at: behind, behind, no_more_closing, ..Self::new(self.text, start) };
        self.outline.thinking = Some(start);
    }

    fn tag(&mut self) {
        match thinking::tag(self.text, self.at) {
            None => self.prose(b'<'),
            Some((Tag::Close, end)) => self.forget(end),
            Some((Tag::Open, _)) => self.think(),
        }
    }

    fn think(&mut self) {
        let span = if self.no_more_closing { Span::Unclosed } else { thinking::span(self.text, self.at) };
        match span {
            Span::Closed(end) => {
                self.outline.thinking.get_or_insert(self.at);
                self.at = end;
                self.behind = end;
            }
            // A model that never came to its answer. In the middle of a line the tag is only talked about.
            Span::Unclosed if self.starts_line() => {
                self.outline.thinking.get_or_insert(self.at);
                self.outline.still_thinking = true;
                self.at = self.text.len();
            }
            Span::Unclosed => {
                self.no_more_closing = true;
                self.prose(b'<');
            }
        }
    }

    fn starts_line(&self) -> bool {
        let before = self.text.get(self.start..self.at).unwrap_or_default();
        let before = before.trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with(['\n', '\r'])
    }

    fn mark(&mut self, mark: u8) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| **byte == mark).count();
        // Outside of objects three backticks are a fence wherever they stand. `~~~` also underlines and decorates.
        if length < SHORTEST || (mark == b'~' && !self.starts_line()) {
            self.outline.prose.get_or_insert(self.at);
            self.at += length;
            return;
        }
        let behind = self.at + length;
        match self.fence {
            None => {
                let body = behind + language(rest.get(length..).unwrap_or_default());
                self.fence = Some(Fence { at: self.at, mark: (mark, length), body, used: false });
                self.at = body;
            }
            Some(fence) => {
                if fence.mark.0 == mark && fence.mark.1 <= length {
                    self.close_fence(fence);
                }
                self.at = behind;
            }
        }
    }

    fn close_fence(&mut self, fence: Fence) {
        self.fence = None;
        let body = self.text.get(fence.body..self.at).unwrap_or_default();
        self.outline.other |= !fence.used && strict::parse(body).is_ok();
    }
}

/// Bytes of the word behind an opening fence, such as `json`.
fn language(rest: &[u8]) -> usize {
    let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'-' | b'.');
    rest.iter().take_while(is_word).count()
}
