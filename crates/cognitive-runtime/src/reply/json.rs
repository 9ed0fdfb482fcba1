//! The grammar of one object or list, as it arrives. Forgives small errors that have exactly one reading, and reports
//! the offset of each (D-01), or forgives nothing in strict mode. No backtracking; strictly valid JSON needs no
//! liberty.
//! Never closes an open value and never guesses one: `NaN`, unquoted values, `.5`, `+1`, `[1,,2]` are refused. So is
//! a missing comma between items of a list, which Python would read as a joined string. Stores no value: it reports
//! events.

use super::event::{Bracket, BreakCause, JsonEvent, JsonListener, Lead};
use super::liberty::LibertyRule;
use super::string::{StringReader, opening_quote};
use super::token::forgive;
use super::word;

/// Deeper nesting is an attack or an accident, not an answer.
pub(super) const MAX_DEPTH: usize = 100;

/// The reply as far as it has arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyInput<'t> {
    pub(super) text: &'t str,
    /// The end of the text without trailing blanks: more may follow them, or they do not count. A byte after it never
    /// breaks a value.
    pub(super) solid: usize,
    /// Set if no text follows. Then the text has no trailing blanks.
    pub(super) ended: bool,
}

/// The progress of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// More text is needed.
    More,
    /// The value is complete.
    Done,
    /// The value is broken.
    Broken(BreakCause),
}

/// A fault that ends the reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonFault {
    pub(super) cause: BreakCause,
    pub(super) at: usize,
    /// The offset of the byte that showed it.
    pub(super) seen: usize,
}

impl JsonFault {
    pub(super) fn syntax(at: usize) -> Self {
        Self { cause: BreakCause::Syntax, at, seen: at }
    }
}

/// The result of reading some of the text.
pub(super) type ReadResult = Result<(), JsonFault>;

/// The expected next token. `comma` is the offset of the comma before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Awaits {
    /// A name or the end of the object.
    Name {
        comma: Option<usize>,
    },
    Colon,
    /// A value after the colon at this offset.
    Value {
        colon: usize,
    },
    /// An item or the end of the list.
    Item {
        comma: Option<usize>,
    },
    /// A comma or the end of the object or list.
    Comma,
    #[default]
    Nothing,
}

/// The token that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum JsonToken {
    #[default]
    None,
    Name,
    Text,
    BareName,
    Number,
    Literal,
    Slash,
    Hash,
    LineComment,
    BlockComment {
        star: bool,
    },
}

/// The state of reading. Its tokens are read in `token.rs`.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent observations")]
pub(super) struct JsonReader {
    pub(super) strict: bool,
    lead: Lead,
    /// The offset at which the value opens.
    pub(super) open: usize,
    /// The offset up to which the text was read.
    pub(super) at: usize,
    /// The offset at which the last token starts.
    pub(super) token_start: usize,
    /// Set if this is meant to be JSON; see [`BrokenValue::begun`](super::event::BrokenValue::begun).
    pub(super) begun: bool,
    /// See [`BrokenValue::enveloped`](super::event::BrokenValue::enveloped).
    pub(super) enveloped: bool,
    /// The offset at which to continue if this was not meant to be JSON. Comments before it were skipped.
    pub(super) resume: usize,
    /// The open objects and lists.
    pub(super) brackets: Vec<Bracket>,
    pub(super) awaits: Awaits,
    pub(super) token: JsonToken,
    /// The name of the current member, and its offset.
    pub(super) name: String,
    name_start: usize,
    name_is_bare: bool,
    pub(super) string: StringReader,
    /// The first line break or tab in the current string.
    pub(super) raw_break: Option<usize>,
    /// The offset after the last value.
    pub(super) value_end: usize,
}

impl JsonReader {
    /// Starts with the value whose bracket is at an offset.
    pub(super) fn start(&mut self, open: usize, bracket: Bracket, strict: bool, lead: Lead) {
        let brackets = std::mem::take(&mut self.brackets);
        let name = std::mem::take(&mut self.name);
        *self = Self { strict, lead, open, resume: open + 1, brackets, name, ..Self::default() };
        self.brackets.clear();
        self.enter(bracket, open);
    }

    /// Returns whether the outermost value is a list.
    pub(super) fn is_list(&self) -> bool {
        self.brackets.first() == Some(&Bracket::List)
    }

    /// Continues to read, up to the end of the text.
    pub(super) fn read(&mut self, input: ReplyInput<'_>, listener: &mut impl JsonListener) -> ReadProgress {
        while self.at < input.text.len() || (input.ended && self.may_end_token()) {
            if let Err(fault) = self.token(input, listener) {
                // Trailing blanks may turn out not to count.
                if fault.seen >= input.solid && !input.ended {
                    return ReadProgress::More;
                }
                self.at = fault.at;
                return ReadProgress::Broken(fault.cause);
            }
            if self.awaits == Awaits::Nothing {
                return ReadProgress::Done;
            }
        }
        if !input.ended {
            return ReadProgress::More;
        }
        self.end(input.text.len());
        ReadProgress::Broken(BreakCause::End)
    }

    /// Returns whether the end of the text ends the current token.
    #[inline]
    fn may_end_token(&self) -> bool {
        matches!(self.token, JsonToken::Number | JsonToken::Literal | JsonToken::Slash | JsonToken::Hash)
    }

    /// Handles a text that ends within the value.
    fn end(&mut self, at: usize) {
        self.at = at;
        // A name that is open at the end of the text is truncated JSON, not a brace in prose.
        self.begun |= self.token == JsonToken::Name;
        let in_token =
            matches!(self.token, JsonToken::Name | JsonToken::Text | JsonToken::BlockComment { .. });
        if !in_token && !self.awaits_bare_value() {
            self.token_start = at;
        }
    }

    pub(super) fn read_between(
        &mut self,
        text: &str,
        rest: &str,
        listener: &mut impl JsonListener,
    ) -> ReadResult {
        let byte = rest.as_bytes().first().copied().unwrap_or_default();
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'/' if !self.strict => self.token = JsonToken::Slash,
            b'#' if !self.strict => self.token = JsonToken::Hash,
            byte if !byte.is_ascii() && !self.strict => {
                let Some(blank) = word::unicode_blank(rest) else {
                    return self.read_expected(text, rest, byte, listener);
                };
                forgive(LibertyRule::OtherBlank, self.at, listener);
                self.at += blank.len_utf8();
                return Ok(());
            }
            _ => return self.read_expected(text, rest, byte, listener),
        }
        self.at += 1;
        Ok(())
    }

    /// Returns whether the next value decides if a bare first name is JSON: sets in prose look like `{x: …}`.
    #[inline]
    pub(super) fn awaits_bare_value(&self) -> bool {
        !self.begun && matches!(self.awaits, Awaits::Value { .. })
    }

    fn read_expected(
        &mut self,
        text: &str,
        rest: &str,
        byte: u8,
        listener: &mut impl JsonListener,
    ) -> ReadResult {
        let is_comma = byte == b',' && self.awaits == Awaits::Comma;
        if !is_comma && !self.awaits_bare_value() {
            self.token_start = self.at;
        }
        match (self.awaits, byte) {
            (Awaits::Name { comma }, b'}') | (Awaits::Item { comma }, b']')
                if comma.is_none() || !self.strict =>
            {
                // It can only be a trailing comma: `{,}` fails earlier, since a comma must follow a value.
                if let Some(comma) = comma {
                    forgive(LibertyRule::TrailingComma, comma, listener);
                }
                self.close(listener);
            }
            (Awaits::Name { .. }, _) => self.name(rest, listener)?,
            (Awaits::Comma, _) => self.read_after_value(text, rest, byte, listener)?,
            (Awaits::Colon, b':') => self.colon(listener),
            (Awaits::Value { .. }, _) if !self.begun => {
                if !word::starts_value(byte) && opening_quote(rest, self.strict).is_none() {
                    return Err(JsonFault::syntax(self.at));
                }
                self.begin(self.at, listener);
                self.value(rest, byte, listener)?;
            }
            (Awaits::Value { .. } | Awaits::Item { .. }, _) => self.value(rest, byte, listener)?,
            _ => return Err(JsonFault::syntax(self.at)),
        }
        Ok(())
    }

    fn read_after_value(
        &mut self,
        text: &str,
        rest: &str,
        byte: u8,
        listener: &mut impl JsonListener,
    ) -> ReadResult {
        let comma = Some(self.at);
        let in_object = self.brackets.last() == Some(&Bracket::Object);
        match byte {
            b',' => {
                self.awaits = if in_object { Awaits::Name { comma } } else { Awaits::Item { comma } };
                self.at += 1;
            }
            b'}' if in_object => self.close(listener),
            b']' if !in_object => self.close(listener),
            // Two members without a comma have one reading only if the next one starts on a new line with a name in
            // `"`. The colon after it is checked when the name was read.
            b'"' if in_object && !self.strict && self.breaks_line(text) => {
                forgive(LibertyRule::MissingComma, self.value_end, listener);
                self.name(rest, listener)?;
            }
            _ => return Err(JsonFault::syntax(self.at)),
        }
        Ok(())
    }

    fn breaks_line(&self, text: &str) -> bool {
        text.as_bytes().get(self.value_end..self.at).is_some_and(|gap| gap.contains(&b'\n'))
    }

    fn name(&mut self, rest: &str, listener: &mut impl JsonListener) -> ReadResult {
        let quote = opening_quote(rest, self.strict);
        self.name_is_bare = quote.is_none();
        if self.name_is_bare && (self.strict || !word::starts_bare_name(rest)) {
            return Err(JsonFault::syntax(self.at));
        }
        self.name.clear();
        self.name_start = self.at;
        self.awaits = Awaits::Colon;
        if let Some(quote) = quote {
            self.begin_string(JsonToken::Name, quote, listener);
        } else {
            forgive(LibertyRule::BareName, self.at, listener);
            self.token = JsonToken::BareName;
        }
        Ok(())
    }

    fn colon(&mut self, listener: &mut impl JsonListener) {
        self.awaits = Awaits::Value { colon: self.at };
        self.at += 1;
        // A bare first name counts only if a value follows.
        if self.begun || !self.name_is_bare {
            self.begin(self.at, listener);
        }
    }

    /// Reports the name. Before the first name, reports the start of the value, which is now certain.
    fn begin(&mut self, at: usize, listener: &mut impl JsonListener) {
        if !self.begun {
            self.begun = true;
            listener.event(JsonEvent::Begin(self.lead), at);
            for bracket in &self.brackets {
                listener.event(JsonEvent::Open(*bracket), at);
            }
        }
        let outermost = self.brackets.len() == 1;
        self.enveloped |= outermost && matches!(self.name.as_str(), "ok" | "meta");
        listener.event(JsonEvent::Name { name: &self.name, start: self.name_start }, at);
    }

    fn value(&mut self, rest: &str, byte: u8, listener: &mut impl JsonListener) -> ReadResult {
        self.token_start = self.at;
        match byte {
            b'{' => return self.open_below(Bracket::Object, listener),
            b'[' => return self.open_below(Bracket::List, listener),
            b'-' | b'0'..=b'9' => {
                self.token = JsonToken::Number;
                self.tell(JsonEvent::NumberStart, self.at + 1, listener);
            }
            byte if byte.is_ascii_alphabetic() => self.token = JsonToken::Literal,
            _ => {
                let quote = opening_quote(rest, self.strict);
                let quote = quote.ok_or_else(|| JsonFault::syntax(self.at))?;
                self.begin_string(JsonToken::Text, quote, listener);
                self.tell(JsonEvent::TextStart, self.at, listener);
            }
        }
        self.awaits = Awaits::Comma;
        Ok(())
    }

    /// Reports an event, unless it belongs to a list that may still turn out to be prose.
    pub(super) fn tell(&self, event: JsonEvent<'_>, at: usize, listener: &mut impl JsonListener) {
        if self.begun {
            listener.event(event, at);
        }
    }

    fn open_below(&mut self, bracket: Bracket, listener: &mut impl JsonListener) -> ReadResult {
        self.enter(bracket, self.at);
        if self.brackets.len() > MAX_DEPTH {
            return Err(JsonFault { cause: BreakCause::TooDeep, at: self.at, seen: self.open });
        }
        self.tell(JsonEvent::Open(bracket), self.at, listener);
        Ok(())
    }

    #[inline]
    fn enter(&mut self, bracket: Bracket, open: usize) {
        self.at = open + 1;
        self.token_start = self.at;
        self.brackets.push(bracket);
        self.awaits = match bracket {
            Bracket::Object => Awaits::Name { comma: None },
            Bracket::List => Awaits::Item { comma: None },
        };
    }

    fn close(&mut self, listener: &mut impl JsonListener) {
        self.at += 1;
        self.value_end = self.at;
        self.awaits = Awaits::Comma;
        // The outermost bracket stays, so that the kind of the value remains known.
        if self.brackets.len() > 1 {
            self.brackets.pop();
        } else {
            self.awaits = Awaits::Nothing;
        }
        self.tell(JsonEvent::Close, self.at, listener);
    }
}
