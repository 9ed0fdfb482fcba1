//! The tokens of the grammar as they arrive: strings, bare names, numbers, literals and comments, split anywhere.
//! Their order is checked in `json.rs`. Accepts nothing that JSON could not mean: `0x1F` or a word ends the reading.

use super::event::{BreakCause, JsonEvent, JsonListener};
use super::json::{Awaits, JsonFault, JsonReader, JsonToken, ReadResult, ReplyInput};
use super::liberty::LibertyRule;
use super::string::{QuoteKind, StringPart};
use super::word;

/// Reports a liberty with the description of its rule.
pub(super) fn forgive(rule: LibertyRule, at: usize, listener: &mut impl JsonListener) {
    listener.liberty(rule, at, rule.words());
}

/// Returns the offset after the end of a block comment, if it has arrived; `star` is set if a `*` came before.
fn block_end(rest: &[u8], star: bool) -> Option<usize> {
    if star && rest.first() == Some(&b'/') {
        return Some(1);
    }
    rest.windows(2).position(|pair| pair == b"*/").map(|at| at + 2)
}

impl JsonReader {
    /// Reads some of the current token, or the text between two tokens.
    pub(super) fn token(&mut self, input: ReplyInput<'_>, listener: &mut impl JsonListener) -> ReadResult {
        let rest = input.text.get(self.at..).unwrap_or_default();
        let byte = rest.as_bytes().first().copied();
        match self.token {
            JsonToken::None => self.read_between(input.text, rest, listener)?,
            JsonToken::Text | JsonToken::Name => self.string(rest, listener)?,
            JsonToken::Number => self.number(input, listener)?,
            JsonToken::Literal => self.literal(input, listener)?,
            JsonToken::BareName => self.bare_name(rest),
            JsonToken::Slash => self.slash(byte, listener)?,
            JsonToken::Hash => self.hash(byte, input, listener)?,
            JsonToken::LineComment => {
                let end = rest.bytes().position(|byte| matches!(byte, b'\n' | b'\r'));
                self.comment(rest, end, JsonToken::LineComment);
            }
            JsonToken::BlockComment { star } => {
                let end = block_end(rest.as_bytes(), star);
                self.comment(rest, end, JsonToken::BlockComment { star: rest.ends_with('*') });
            }
        }
        Ok(())
    }

    /// Handles the byte after a slash. URLs in prose look like `{https://…}`.
    fn slash(&mut self, byte: Option<u8>, listener: &mut impl JsonListener) -> ReadResult {
        let start = self.at - 1;
        let is_url =
            self.awaits_bare_value() && self.awaits == Awaits::Value { colon: start.wrapping_sub(1) };
        self.token = match byte {
            Some(b'/') if !is_url => JsonToken::LineComment,
            Some(b'*') => JsonToken::BlockComment { star: false },
            _ => return Err(self.unexpected_mark(start)),
        };
        forgive(LibertyRule::Comment, start, listener);
        self.at += 1;
        Ok(())
    }

    /// Handles the byte after a hash. `#urgent` may be a value without quotes, `# urgent` cannot.
    fn hash(
        &mut self,
        byte: Option<u8>,
        input: ReplyInput<'_>,
        listener: &mut impl JsonListener,
    ) -> ReadResult {
        let start = self.at - 1;
        let is_comment = matches!(byte, Some(b' ' | b'\t' | b'\r' | b'\n' | b'#'));
        if !is_comment || self.at >= input.solid {
            return Err(self.unexpected_mark(start));
        }
        self.token = JsonToken::LineComment;
        forgive(LibertyRule::Comment, start, listener);
        Ok(())
    }

    /// The fault of a mark that opens no comment; the byte after it showed that.
    fn unexpected_mark(&mut self, start: usize) -> JsonFault {
        if !self.awaits_bare_value() {
            self.token_start = start;
        }
        JsonFault { cause: BreakCause::Syntax, at: start, seen: start + 1 }
    }

    /// Skips a comment up to its end, or as far as it has arrived.
    fn comment(&mut self, rest: &str, end: Option<usize>, token: JsonToken) {
        self.at += end.unwrap_or(rest.len());
        self.token = if end.is_some() { JsonToken::None } else { token };
        if end.is_some() && !self.begun {
            self.resume = self.at;
        }
    }

    /// Starts a string with its opening quote.
    pub(super) fn begin_string(
        &mut self,
        token: JsonToken,
        quote: (QuoteKind, usize),
        listener: &mut impl JsonListener,
    ) {
        let (kind, length) = quote;
        if kind != QuoteKind::Double {
            forgive(LibertyRule::Quotes, self.at, listener);
        }
        self.token = token;
        self.raw_break = None;
        self.string.start(kind, self.strict, token == JsonToken::Text);
        self.at += length;
    }

    fn bare_name(&mut self, rest: &str) {
        let length = word::bare_name_length(rest);
        self.name.push_str(rest.get(..length).unwrap_or_default());
        self.at += length;
        if length < rest.len() {
            self.token = JsonToken::None;
        }
    }

    fn string(&mut self, rest: &str, listener: &mut impl JsonListener) -> ReadResult {
        let start = self.at;
        let (taken, part) = self.string.next(rest).map_err(|fault| JsonFault {
            cause: BreakCause::Syntax,
            at: start + usize::from(fault.behind),
            seen: start,
        })?;
        self.at += taken;
        let mut letter_bytes = [0; 4];
        let piece = match part {
            StringPart::Run => rest.get(..taken).unwrap_or_default(),
            StringPart::RawBreak => {
                self.raw_break.get_or_insert(start);
                rest.get(..taken).unwrap_or_default()
            }
            StringPart::Letter { letter, needless } => {
                if needless {
                    listener.liberty(LibertyRule::Quotes, start - 1, "`\\'` was read as an apostrophe");
                }
                letter.encode_utf8(&mut letter_bytes)
            }
            StringPart::Nothing => return Ok(()),
            StringPart::End => {
                self.end_string(listener);
                return Ok(());
            }
        };
        if self.token == JsonToken::Text {
            self.tell(JsonEvent::Text(piece), self.at, listener);
        } else {
            self.name.push_str(piece);
        }
        Ok(())
    }

    fn end_string(&mut self, listener: &mut impl JsonListener) {
        if std::mem::take(&mut self.token) == JsonToken::Text {
            self.value_end = self.at;
            self.tell(JsonEvent::TextEnd, self.at, listener);
        }
        if let Some(at) = self.raw_break {
            forgive(LibertyRule::RawBreak, at, listener);
        }
    }

    fn number(&mut self, input: ReplyInput<'_>, listener: &mut impl JsonListener) -> ReadResult {
        if !self.gather(input, word::is_in_number) {
            return Ok(());
        }
        let written = input.text.get(self.token_start..self.at).unwrap_or_default();
        let length = word::number_length(written).map_err(|length| {
            let at = self.token_start + length;
            let cause = if at >= input.text.len() { BreakCause::End } else { BreakCause::Syntax };
            JsonFault { cause, at, seen: self.at }
        })?;
        if length < written.len() {
            // `01` or `1-2`: after a number only a comma or a bracket may follow. Its value is not reported.
            self.token_start += length;
            return Err(JsonFault::syntax(self.token_start));
        }
        self.end_word(length);
        self.tell(JsonEvent::Number(written), self.at, listener);
        Ok(())
    }

    fn literal(&mut self, input: ReplyInput<'_>, listener: &mut impl JsonListener) -> ReadResult {
        if !self.gather(input, word::is_in_literal) {
            return Ok(());
        }
        let written = input.text.get(self.token_start..self.at).unwrap_or_default();
        let Some((event, python)) = word::literal(written).filter(|(_, python)| !python || !self.strict)
        else {
            let at_end = self.at >= input.text.len();
            let (cause, at) =
                if at_end { (BreakCause::End, self.at) } else { (BreakCause::Syntax, self.token_start) };
            return Err(JsonFault { cause, at, seen: self.at });
        };
        if python {
            forgive(LibertyRule::PythonLiteral, self.token_start, listener);
        }
        self.end_word(written.len());
        self.tell(event, self.at, listener);
        Ok(())
    }

    /// Moves over the bytes of the current word; returns whether the word is complete.
    fn gather(&mut self, input: ReplyInput<'_>, belongs: impl Fn(u8) -> bool) -> bool {
        let rest = input.text.as_bytes().get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|byte| !belongs(*byte));
        self.at += end.unwrap_or(rest.len());
        end.is_some() || input.ended
    }

    #[inline]
    fn end_word(&mut self, length: usize) {
        self.token = JsonToken::None;
        self.at = self.token_start + length;
        self.value_end = self.at;
    }
}
