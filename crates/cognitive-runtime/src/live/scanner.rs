//! Finds the answer in a reply while it arrives: the same objects as `stages/parse/outline.rs` finds in the whole text,
//! in the same tiers, but without knowing what follows. Each byte is looked at once, whatever was seen before.
//!
//! What cannot be known in time is passed over in silence: behind something broken, and in thinking that has not
//! closed, no step is told. Which of several objects is the answer is decided by the final chunk.

use super::json::{Progress, Reader};
use super::lines::Lines;
use super::step::{Bracket, Deaf, Heed, Lead, Step};
use super::tag::Tags;
use crate::stages::parse::{SHORTEST_FENCE, Tag};

/// How much may stand between a brace and the colon that makes JSON of it. What is longer is not read live.
const LONGEST_OPENING: usize = 128;

/// Reads a reply in pieces.
#[derive(Debug)]
pub struct Scanner {
    strict: bool,
    at: usize,
    place: Place,
    /// Text since a brace that may still be prose.
    opening: String,
    fence: Option<(u8, usize)>,
    lines: Lines,
}

#[derive(Debug)]
enum Place {
    /// Outside of objects.
    Prose,
    /// Behind a `<` outside of objects.
    Tag(Tags),
    /// Within the marks of a fence.
    Mark {
        mark: u8,
        length: usize,
    },
    /// Behind a `[` of which nobody knows yet what it opens.
    Bracket,
    Object(Box<Reader>),
    /// A list outside of objects. It is no answer, and neither is anything in it.
    List(Box<Reader>),
    Thinking {
        depth: usize,
        tags: Tags,
    },
    /// Something broke, and only a closing tag can make a new beginning.
    Lost {
        hopeless: bool,
        tags: Tags,
    },
}

impl Scanner {
    /// A scanner for one reply. `strict` takes no liberties, as tier `exec`.
    #[must_use]
    pub fn new(strict: bool) -> Self {
        let lines = Lines::new();
        Self { strict, at: 0, place: Place::Prose, opening: String::new(), fence: None, lines }
    }

    /// Reads the next piece. It may end anywhere, also within an escape.
    pub fn push(&mut self, piece: &str, heed: &mut impl Heed) {
        let mut rest = piece;
        while !rest.is_empty() {
            let taken = self.some(rest, heed);
            self.at += taken;
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// Takes some of a text; where it takes nothing, the place has changed.
    fn some(&mut self, rest: &str, heed: &mut impl Heed) -> usize {
        match &mut self.place {
            Place::Object(_) => self.object(rest, heed),
            Place::List(_) => self.list(rest),
            Place::Prose => self.prose(rest),
            Place::Tag(tags) => {
                let (taken, found) = tags.one(rest);
                if let Some(found) = found {
                    self.tag(found, heed);
                }
                taken
            }
            Place::Mark { mark, length } => {
                let (mark, so_far) = (*mark, *length);
                let more = rest.bytes().take_while(|byte| *byte == mark).count();
                *length += more;
                if more < rest.len() {
                    self.mark(mark, so_far + more);
                }
                more
            }
            Place::Bracket => self.bracket(rest),
            Place::Thinking { depth, tags } => {
                let (taken, found) = tags.next(rest);
                match found {
                    Some(Tag::Open) => *depth += 1,
                    Some(Tag::Close) => *depth -= 1,
                    None => {}
                }
                if *depth == 0 {
                    self.place = Place::Prose;
                }
                taken
            }
            Place::Lost { hopeless: true, .. } => rest.len(),
            Place::Lost { tags, .. } => {
                let (taken, found) = tags.next(rest);
                if found == Some(Tag::Close) {
                    self.void(taken, heed);
                }
                taken
            }
        }
    }

    fn prose(&mut self, rest: &str) -> usize {
        let is_special = |c: char| matches!(c, '{' | '[' | '<' | '`' | '~');
        let run = rest.find(is_special).unwrap_or(rest.len());
        if run > 0 {
            self.lines.push(rest.get(..run).unwrap_or_default());
            return run;
        }
        match rest.bytes().next() {
            Some(b'{') if self.may_begin() && may_follow_brace(rest) => self.begin(Bracket::Object),
            Some(b'[') if !self.strict => self.place = Place::Bracket,
            Some(b'<') => {
                self.place = Place::Tag(Tags::default());
                return 0;
            }
            Some(mark @ (b'`' | b'~')) => {
                self.place = Place::Mark { mark, length: 0 };
                return 0;
            }
            _ => self.lines.push(rest.get(..1).unwrap_or_default()),
        }
        1
    }

    /// Whether an object may begin here: anywhere, or strictly at the start of the text or of a fence.
    fn may_begin(&self) -> bool {
        !self.strict
            || if self.fence.is_some() { self.lines.fence_is_fresh() } else { self.lines.untouched() }
    }

    fn begin(&mut self, bracket: Bracket) {
        let lead = Lead { clean: self.lines.clean() };
        let reader = Box::new(Reader::new(bracket, self.strict, lead));
        self.opening.clear();
        self.place = match bracket {
            Bracket::Object => Place::Object(reader),
            Bracket::List => Place::List(reader),
        };
    }

    fn object(&mut self, rest: &str, heed: &mut impl Heed) -> usize {
        let Place::Object(reader) = &mut self.place else { return 0 };
        let had_begun = reader.begun();
        let (taken, progress) = reader.push(rest, self.at, heed);
        let (begun, commented) = (reader.begun(), reader.commented());
        if !had_begun {
            self.opening.push_str(rest.get(..taken).unwrap_or_default());
        }
        match progress {
            Progress::Done => self.leave(),
            Progress::Broken if begun || commented => self.lose(),
            Progress::Broken => return self.reread(taken, heed),
            Progress::More if !begun && self.opening.len() > LONGEST_OPENING => self.lose(),
            Progress::More => {}
        }
        taken
    }

    /// A brace in prose: what came behind it is read once more, as prose.
    fn reread(&mut self, taken: usize, heed: &mut impl Heed) -> usize {
        if self.strict || self.opening.len() > LONGEST_OPENING {
            self.lose();
            return taken;
        }
        let opening = std::mem::take(&mut self.opening);
        self.place = Place::Prose;
        self.lines.push("{");
        let end = self.at + taken;
        self.at = end - opening.len();
        self.push(&opening, heed);
        // `some` adds what was taken of this piece.
        self.at = end - taken;
        taken
    }

    fn leave(&mut self) {
        self.place = Place::Prose;
        self.lines.touch();
    }

    fn lose(&mut self) {
        // A reply that starts with a brace did not start with thinking.
        self.place = Place::Lost { hopeless: self.lines.untouched(), tags: Tags::default() };
    }

    fn bracket(&mut self, rest: &str) -> usize {
        let blanks = rest.len() - rest.trim_start().len();
        let Some(next) = rest.get(blanks..).and_then(|rest| rest.chars().next()) else { return rest.len() };
        if matches!(next, '{' | '[' | '"' | '-') || next.is_ascii_digit() {
            self.begin(Bracket::List);
        } else {
            self.place = Place::Prose;
            self.lines.push("[");
        }
        blanks
    }

    fn list(&mut self, rest: &str) -> usize {
        let Place::List(reader) = &mut self.place else { return 0 };
        let (taken, progress) = reader.push(rest, self.at, &mut Deaf);
        let serious = reader.begun() || reader.in_text();
        match progress {
            Progress::More => {}
            Progress::Done => self.leave(),
            Progress::Broken if serious => self.lose(),
            Progress::Broken => {
                self.place = Place::Prose;
                self.lines.touch();
            }
        }
        taken
    }

    fn tag(&mut self, found: Result<Tag, String>, heed: &mut impl Heed) {
        self.place = Place::Prose;
        match found {
            Ok(Tag::Open) => {
                self.place = Place::Thinking { depth: 1, tags: Tags::default() };
                self.lines.think();
            }
            Ok(Tag::Close) => self.void(0, heed),
            Err(text) => self.lines.push(&text),
        }
    }

    /// All up to here was thinking.
    fn void(&mut self, taken: usize, heed: &mut impl Heed) {
        self.place = Place::Prose;
        self.fence = None;
        self.lines.restart();
        heed.step(Step::Void, self.at + taken);
    }

    fn mark(&mut self, mark: u8, length: usize) {
        self.place = Place::Prose;
        let starts_line = self.lines.line_is_blank();
        let needs_line = self.strict || mark == b'~';
        if length < SHORTEST_FENCE || (needs_line && !starts_line) {
            self.lines.push(if mark == b'~' { "~" } else { "`" });
            return;
        }
        match self.fence {
            None => {
                self.fence = Some((mark, length));
                self.lines.open_fence();
            }
            Some((open, least)) => {
                if open == mark && least <= length {
                    self.fence = None;
                }
                self.lines.touch();
            }
        }
    }
}

/// Whether what follows a brace could make an object of it, as far as it is there.
fn may_follow_brace(rest: &str) -> bool {
    let next = rest.chars().nth(1);
    next.is_none_or(|c| {
        c.is_alphanumeric()
            || c.is_whitespace()
            || !c.is_ascii()
            || matches!(c, '"' | '\'' | '}' | '_' | '$' | '/' | '#')
    })
}
