//! Reads one object or list as it arrives, in pieces of any size, and never looks back: each byte is seen once.
//! Forgives what `stages/parse/reader.rs` forgives, or nothing where parsing is strict, and stops where that stops.
//! Keeps no value: what it reads goes out as steps.

use super::step::{Bracket, Heed, Lead, Step};
use super::text::{Text, TextEvent, quote_of};
use crate::stages::parse::{DEEPEST, other_blank};

/// The longest number that is read on; a longer one is left to the whole parser.
const LONGEST_NUMBER: usize = 1_024;
/// The longest of `true`, `false`, `null`, `True`, `False` and `None`.
const LONGEST_LITERAL: usize = 5;

/// The text cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// How far reading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More is needed.
    More,
    /// The value is complete.
    Done,
    /// The byte behind what was read cannot stand there.
    Broken,
}

/// What may come next, between two tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// A name or the end of the object.
    Name {
        comma: bool,
    },
    Colon,
    Value,
    /// An item or the end of the list.
    Item {
        comma: bool,
    },
    /// A comma or the end of the object or list.
    Comma,
    Nothing,
}

/// The token that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    None,
    Name,
    Text,
    BareName,
    Number,
    Literal,
    Slash,
    Hash,
    LineComment,
    BlockComment { star: bool },
}

/// The state of reading.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each remembers one thing that was seen")]
pub(super) struct Reader {
    strict: bool,
    lead: Lead,
    open: Vec<Bracket>,
    awaits: Awaits,
    token: Token,
    /// The name, number or literal that is being read, then the name whose value is awaited.
    word: String,
    text: Text,
    /// Whether this is meant to be JSON: a first name and its colon were there.
    begun: bool,
    /// Whether a line ended since the last value.
    broke_line: bool,
    /// Whether a comment was skipped.
    commented: bool,
    /// Bytes since the colon; a URL in prose follows it at once.
    since_colon: usize,
}

impl Reader {
    /// A reader that has seen the bracket with which a value opens.
    pub(super) fn new(bracket: Bracket, strict: bool, lead: Lead) -> Self {
        let mut reader = Self {
            strict,
            lead,
            open: Vec::new(),
            awaits: Awaits::Nothing,
            token: Token::None,
            word: String::new(),
            text: Text::default(),
            begun: false,
            broke_line: false,
            commented: false,
            since_colon: 0,
        };
        reader.enter(bracket);
        reader
    }

    /// Whether this is meant to be JSON.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Whether a comment was skipped.
    pub(super) fn commented(&self) -> bool {
        self.commented
    }

    /// Whether reading stands within a string.
    pub(super) fn in_text(&self) -> bool {
        matches!(self.token, Token::Text | Token::Name)
    }

    /// Reads on; gives the bytes that were taken. `at` is the offset of `piece` in the reply.
    pub(super) fn push(&mut self, piece: &str, at: usize, heed: &mut impl Heed) -> (usize, Progress) {
        let mut here = 0;
        while let Some(rest) = piece.get(here..).filter(|rest| !rest.is_empty()) {
            match self.token(rest, at + here, heed) {
                Ok(taken) => {
                    here += taken;
                    self.since_colon += taken;
                }
                Err(Broken) => return (here, Progress::Broken),
            }
            if self.awaits == Awaits::Nothing {
                return (here, Progress::Done);
            }
        }
        (here, Progress::More)
    }

    fn token(&mut self, rest: &str, at: usize, heed: &mut impl Heed) -> Result<usize, Broken> {
        let byte = rest.as_bytes().first().copied().unwrap_or_default();
        match self.token {
            Token::None => self.between(rest, byte, at, heed),
            Token::Text | Token::Name => self.string(rest, at, heed),
            Token::Number => self.number(rest, at, heed),
            Token::Literal => self.literal(rest, at, heed),
            Token::BareName => Ok(self.bare_name(rest)),
            Token::Slash => {
                self.token = match byte {
                    b'/' => Token::LineComment,
                    b'*' => Token::BlockComment { star: false },
                    _ => return Err(Broken),
                };
                self.commented = true;
                Ok(1)
            }
            Token::Hash if matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'#') => {
                self.token = Token::LineComment;
                self.commented = true;
                Ok(0)
            }
            Token::Hash => Err(Broken),
            Token::LineComment => {
                let end = rest.bytes().position(|byte| matches!(byte, b'\n' | b'\r'));
                if end.is_some() {
                    self.token = Token::None;
                }
                Ok(end.unwrap_or(rest.len()))
            }
            Token::BlockComment { star } => Ok(self.block_comment(rest, star)),
        }
    }

    fn block_comment(&mut self, rest: &str, mut star: bool) -> usize {
        for (index, byte) in rest.bytes().enumerate() {
            if star && byte == b'/' {
                self.token = Token::None;
                return index + 1;
            }
            self.broke_line |= byte == b'\n';
            star = byte == b'*';
        }
        self.token = Token::BlockComment { star };
        rest.len()
    }

    fn between(&mut self, rest: &str, byte: u8, at: usize, heed: &mut impl Heed) -> Result<usize, Broken> {
        match byte {
            b' ' | b'\t' | b'\r' => Ok(1),
            b'\n' => {
                self.broke_line = true;
                Ok(1)
            }
            // `{https://…}` is how a URL looks in prose.
            b'/' if !self.strict && (self.begun || self.awaits != Awaits::Value || self.since_colon > 1) => {
                self.token = Token::Slash;
                Ok(1)
            }
            b'#' if !self.strict => {
                self.token = Token::Hash;
                Ok(1)
            }
            byte if !byte.is_ascii() && !self.strict => match other_blank(rest) {
                Some(blank) => Ok(blank.len_utf8()),
                None => self.expected(rest, byte, at, heed),
            },
            _ => self.expected(rest, byte, at, heed),
        }
    }

    fn expected(&mut self, rest: &str, byte: u8, at: usize, heed: &mut impl Heed) -> Result<usize, Broken> {
        let lenient = !self.strict;
        match (self.awaits, byte) {
            (Awaits::Name { comma }, b'}') if lenient || !comma => Ok(self.close(at, heed)),
            (Awaits::Item { comma }, b']') if lenient || !comma => Ok(self.close(at, heed)),
            (Awaits::Comma, b'}') if self.open.last() == Some(&Bracket::Object) => Ok(self.close(at, heed)),
            (Awaits::Comma, b']') if self.open.last() == Some(&Bracket::List) => Ok(self.close(at, heed)),
            (Awaits::Comma, b',') => {
                self.awaits = match self.open.last() {
                    Some(Bracket::Object) => Awaits::Name { comma: true },
                    _ => Awaits::Item { comma: true },
                };
                Ok(1)
            }
            // Two members without a comma have one reading where the next one starts on a line of its own.
            (Awaits::Comma, b'"')
                if lenient && self.broke_line && self.open.last() == Some(&Bracket::Object) =>
            {
                self.name(rest)
            }
            (Awaits::Name { .. }, _) => self.name(rest),
            (Awaits::Colon, b':') => {
                self.colon(at + 1, heed);
                Ok(1)
            }
            (Awaits::Value | Awaits::Item { .. }, _) => self.value(rest, byte, at, heed),
            _ => Err(Broken),
        }
    }

    fn name(&mut self, rest: &str) -> Result<usize, Broken> {
        self.word.clear();
        self.awaits = Awaits::Colon;
        if let Some((quote, length)) = quote_of(rest, self.strict) {
            self.token = Token::Name;
            self.text.start(quote, self.strict, false);
            return Ok(length);
        }
        let starts_bare = rest.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
        if self.strict || !starts_bare {
            return Err(Broken);
        }
        self.token = Token::BareName;
        Ok(0)
    }

    fn bare_name(&mut self, rest: &str) -> usize {
        let belongs = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
        let end = rest.find(|c: char| !belongs(c));
        let length = end.unwrap_or(rest.len());
        self.word.push_str(rest.get(..length).unwrap_or_default());
        if end.is_some() {
            self.token = Token::None;
        }
        length
    }

    fn colon(&mut self, at: usize, heed: &mut impl Heed) {
        self.awaits = Awaits::Value;
        // A bare first name counts only with a value behind it.
        if self.begun || self.text.was_name() {
            self.begin(at, heed);
            heed.step(Step::Name(&self.word), at);
        }
        self.since_colon = 0;
    }

    /// Tells the beginning, once it is sure that there is one.
    fn begin(&mut self, at: usize, heed: &mut impl Heed) {
        if !self.begun {
            self.begun = true;
            heed.step(Step::Begin(self.lead), at);
            for bracket in &self.open {
                heed.step(Step::Open(*bracket), at);
            }
        }
    }

    fn value(&mut self, rest: &str, byte: u8, at: usize, heed: &mut impl Heed) -> Result<usize, Broken> {
        let quote = quote_of(rest, self.strict);
        let in_object = self.awaits == Awaits::Value;
        if in_object && !self.begun {
            let starts =
                matches!(byte, b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'T' | b'F' | b'N');
            if !starts && quote.is_none() {
                return Err(Broken);
            }
            self.begin(at, heed);
            heed.step(Step::Name(&self.word), at);
        }
        self.awaits = Awaits::Comma;
        self.broke_line = false;
        self.word.clear();
        match (byte, quote) {
            (b'{', _) => self.open_below(Bracket::Object, at + 1, heed),
            (b'[', _) => self.open_below(Bracket::List, at + 1, heed),
            (b'-' | b'0'..=b'9', _) => {
                self.token = Token::Number;
                self.tell(Step::NumberStart, at + 1, heed);
                Ok(0)
            }
            (byte, _) if byte.is_ascii_alphabetic() => {
                self.token = Token::Literal;
                Ok(0)
            }
            (_, Some((quote, length))) => {
                self.token = Token::Text;
                self.text.start(quote, self.strict, true);
                self.tell(Step::TextStart, at + length, heed);
                Ok(length)
            }
            _ => Err(Broken),
        }
    }

    /// A step, unless it belongs to a list that may still turn out to be prose.
    fn tell(&self, step: Step<'_>, at: usize, heed: &mut impl Heed) {
        if self.begun {
            heed.step(step, at);
        }
    }

    fn open_below(&mut self, bracket: Bracket, at: usize, heed: &mut impl Heed) -> Result<usize, Broken> {
        self.enter(bracket);
        if self.open.len() > DEEPEST {
            return Err(Broken);
        }
        self.tell(Step::Open(bracket), at, heed);
        Ok(1)
    }

    fn enter(&mut self, bracket: Bracket) {
        self.open.push(bracket);
        self.awaits = match bracket {
            Bracket::Object => Awaits::Name { comma: false },
            Bracket::List => Awaits::Item { comma: false },
        };
    }

    fn close(&mut self, at: usize, heed: &mut impl Heed) -> usize {
        self.open.pop();
        self.broke_line = false;
        self.awaits = if self.open.is_empty() { Awaits::Nothing } else { Awaits::Comma };
        self.tell(Step::Close, at + 1, heed);
        1
    }

    fn string(&mut self, rest: &str, at: usize, heed: &mut impl Heed) -> Result<usize, Broken> {
        let is_value = self.token == Token::Text;
        let (taken, event) = self.text.push(rest)?;
        let mut letter = [0; 4];
        let piece = match event {
            TextEvent::Run => rest.get(..taken).unwrap_or_default(),
            TextEvent::Letter(decoded) => decoded.encode_utf8(&mut letter),
            TextEvent::Nothing => return Ok(taken),
            TextEvent::End => {
                self.token = Token::None;
                if is_value {
                    self.tell(Step::TextEnd, at + taken, heed);
                }
                return Ok(taken);
            }
        };
        if is_value {
            self.tell(Step::Text(piece), at + taken, heed);
        } else {
            self.word.push_str(piece);
        }
        Ok(taken)
    }

    fn number(&mut self, rest: &str, at: usize, heed: &mut impl Heed) -> Result<usize, Broken> {
        let belongs = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = self.gather(rest, belongs);
        if self.token == Token::None {
            // The same test as for a whole text: digits where they must be, and not beyond what a float can hold.
            self.word.parse::<serde_json::Number>().map_err(|_| Broken)?;
            self.tell(Step::Number(&self.word), at + length, heed);
        }
        if self.word.len() > LONGEST_NUMBER { Err(Broken) } else { Ok(length) }
    }

    fn literal(&mut self, rest: &str, at: usize, heed: &mut impl Heed) -> Result<usize, Broken> {
        let length = self.gather(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if self.token == Token::None {
            let step = match self.word.as_str() {
                "true" => Step::Bool(true),
                "false" => Step::Bool(false),
                "null" => Step::Null,
                "True" if !self.strict => Step::Bool(true),
                "False" if !self.strict => Step::Bool(false),
                "None" if !self.strict => Step::Null,
                _ => return Err(Broken),
            };
            self.tell(step, at + length, heed);
        }
        if self.word.len() > LONGEST_LITERAL { Err(Broken) } else { Ok(length) }
    }

    /// Adds what belongs to the present word; the word ends where something does not.
    fn gather(&mut self, rest: &str, belongs: impl Fn(u8) -> bool) -> usize {
        let end = rest.bytes().position(|byte| !belongs(byte));
        let length = end.unwrap_or(rest.len());
        self.word.push_str(rest.get(..length).unwrap_or_default());
        if end.is_some() {
            self.token = Token::None;
        }
        length
    }
}
