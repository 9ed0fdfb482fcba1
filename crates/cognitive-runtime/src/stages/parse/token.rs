//! The tokens of the forgiving reader: white space and comments, strings in any quotes, numbers, literals, bare names.
//! Converts nothing that JSON could not mean: an unknown escape, half a surrogate pair or `0x1F` ends the reading.

use cognitive_contract::numbers::{MOST, Rounded};
use serde_json::Value;

use super::liberty::LibertyRule;
use super::reader::{Reader, Why};

/// What a string is written in. A string ends with a quote of the kind that it began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    /// `"`
    Double,
    /// `'`
    Single,
    /// `“ ” „ ‟`, in whatever order; languages differ.
    CurlyDouble,
    /// `‘ ’ ‚ ‛`, in whatever order.
    CurlySingle,
}

/// The first byte of all curly quotes.
const CURLY_START: u8 = 0xE2;

/// Where a string stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It names a member. It may not run over lines: a name that does has lost its closing quote.
    Name,
    /// It is a value.
    Value,
}

impl Quote {
    fn len(self) -> usize {
        match self {
            Self::Double | Self::Single => 1,
            Self::CurlyDouble | Self::CurlySingle => 3,
        }
    }
}

impl Reader<'_> {
    /// Skips what JSON calls white space, and what only people do: a no-break space between two tokens has one reading.
    fn white_space(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(byte) if !byte.is_ascii() => {
                    let Some(blank) = other_blank(self.text.get(self.at..).unwrap_or_default()) else {
                        return;
                    };
                    self.liberty(
                        self.at,
                        LibertyRule::OtherBlank,
                        "a space that JSON does not know was skipped",
                    );
                    self.at += blank.len_utf8();
                }
                _ => return,
            }
        }
    }

    /// Skips white space and comments.
    pub(super) fn trivia(&mut self) -> Result<(), Why> {
        loop {
            self.white_space();
            let Some(length) = comment_length(self.rest()) else { return Ok(()) };
            self.liberty(self.at, LibertyRule::Comment, "a comment was skipped");
            match length {
                Ok(length) => self.at += length,
                Err(endless) => {
                    self.at = self.text.len();
                    return Err(endless);
                }
            }
            if !self.begun {
                self.resume = self.at;
            }
        }
    }

    fn rest(&self) -> &[u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn slice(&self, from: usize) -> &str {
        self.text.get(from..self.at).unwrap_or_default()
    }

    /// The quote at the present place.
    pub(super) fn quote(&self) -> Option<Quote> {
        match self.rest() {
            [b'"', ..] => Some(Quote::Double),
            [b'\'', ..] => Some(Quote::Single),
            [CURLY_START, 0x80, 0x98..=0x9B, ..] => Some(Quote::CurlySingle),
            [CURLY_START, 0x80, 0x9C..=0x9F, ..] => Some(Quote::CurlyDouble),
            _ => None,
        }
    }

    /// A name without quotes: a letter, `_` or `$`, then also digits and hyphens.
    pub(super) fn bare_name(&mut self) -> Option<String> {
        let rest = self.text.get(self.at..)?;
        if !rest.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$') {
            return None;
        }
        let belongs = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
        let length = rest.find(|c: char| !belongs(c)).unwrap_or(rest.len());
        let from = self.at;
        self.liberty(from, LibertyRule::BareName, "a name was read without quotes");
        self.at += length;
        Some(self.slice(from).to_owned())
    }

    /// A name in quotes of any kind.
    pub(super) fn quoted_name(&mut self) -> Result<String, Why> {
        let start = self.at;
        let outcome = self.string(Place::Name);
        // A name that is open at the end of the text is JSON that was cut off, not a brace in prose.
        self.begun |= outcome == Err(Why::End) && self.at > start;
        outcome
    }

    /// A string in quotes of any kind.
    pub(super) fn string(&mut self, place: Place) -> Result<String, Why> {
        self.token = self.at;
        let Some(quote) = self.quote() else { return Err(self.wrong()) };
        if quote != Quote::Double {
            self.liberty(self.at, LibertyRule::Quotes, "other quotes were read as double quotes");
        }
        self.at += quote.len();
        let mut text = String::new();
        let mut raw_break = None;
        loop {
            let from = self.at;
            self.plain(quote);
            text.push_str(self.slice(from));
            match self.peek() {
                None => return Err(Why::End),
                Some(b'\\') => self.escape(quote, &mut text)?,
                Some(byte @ (b'\n' | b'\r' | b'\t')) if place == Place::Value => {
                    raw_break.get_or_insert(self.at);
                    text.push(char::from(byte));
                    self.at += 1;
                }
                Some(_) if self.quote() == Some(quote) => break,
                Some(_) => return Err(Why::Syntax),
            }
        }
        self.at += quote.len();
        if let Some(at) = raw_break {
            self.liberty(at, LibertyRule::RawBreak, "a line break or tab inside a string was kept as it is");
        }
        Ok(text)
    }

    /// Moves over characters that stand for themselves, to the end of the text at most.
    fn plain(&mut self, quote: Quote) {
        let stop = match quote {
            Quote::Double => b'"',
            Quote::Single => b'\'',
            Quote::CurlyDouble | Quote::CurlySingle => CURLY_START,
        };
        let is_special = |byte: &u8| *byte < b' ' || *byte == b'\\' || *byte == stop;
        loop {
            let rest = self.rest();
            self.at += rest.iter().position(is_special).unwrap_or(rest.len());
            if self.peek() != Some(CURLY_START) || self.quote() == Some(quote) {
                return;
            }
            // Another character that starts with the same byte. Its other bytes are never special.
            self.at += 1;
        }
    }

    fn escape(&mut self, quote: Quote, text: &mut String) -> Result<(), Why> {
        let at = self.at;
        self.at += 1;
        let Some(byte) = self.peek() else { return Err(Why::End) };
        let character = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'\'' => {
                if quote != Quote::Single {
                    self.liberty(at, LibertyRule::Quotes, "`\\'` was read as an apostrophe");
                }
                '\''
            }
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                text.push(self.code_point()?);
                return Ok(());
            }
            // `\d` may be a lost backslash or a needless one: two readings.
            _ => return Err(Why::Syntax),
        };
        text.push(character);
        self.at += 1;
        Ok(())
    }

    /// The character behind `\u`, with both halves if it has two.
    fn code_point(&mut self) -> Result<char, Why> {
        let first = self.hex()?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        for expected in [b'\\', b'u'] {
            if self.peek() != Some(expected) {
                return Err(self.wrong());
            }
            self.at += 1;
        }
        let second = self.hex()?;
        let pair = char::decode_utf16([first, second].map(|half| u16::try_from(half).unwrap_or(0))).next();
        match pair {
            // `decode_utf16` also takes a whole character first; the first half alone is never one.
            Some(Ok(character)) => Ok(character),
            _ => Err(Why::Syntax),
        }
    }

    fn hex(&mut self) -> Result<u32, Why> {
        let mut number = 0;
        for _ in 0..4 {
            let Some(byte) = self.peek() else { return Err(Why::End) };
            let Some(digit) = char::from(byte).to_digit(16) else { return Err(Why::Syntax) };
            number = number * 16 + digit;
            self.at += 1;
        }
        Ok(number)
    }

    /// A number exactly as RFC 8259 writes it. What is too large for 64 bits becomes a float, as `serde_json` has it;
    /// what is too large for that stays the text that it is. Both are noted.
    pub(super) fn number(&mut self) -> Result<Value, Why> {
        let from = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let written = self.slice(from);
        let rounded = Rounded::of("", written);
        let value = match &rounded {
            Some(Rounded { overflows: true, .. }) => Value::String(written.to_owned()),
            _ => Value::Number(written.parse().map_err(|_| Why::Syntax)?),
        };
        self.note_rounded(rounded);
        Ok(value)
    }

    /// As many as are shown are kept, and one that nothing can hold in any case, since it decides.
    fn note_rounded(&mut self, rounded: Option<Rounded>) {
        let Some(number) = rounded else { return };
        let decides = number.overflows && !self.rounded.iter().any(|known| known.overflows);
        if self.rounded.len() < MOST || decides {
            self.rounded.push(number);
        }
    }

    fn digits(&mut self) -> Result<(), Why> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == from { Err(self.wrong()) } else { Ok(()) }
    }

    /// `true`, `false`, `null`, and what Python calls them. Not `NaN`, not `undefined`, not a word.
    pub(super) fn literal(&mut self) -> Result<Value, Why> {
        let from = self.at;
        let length =
            self.rest().iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        self.at += length;
        let (value, python) = match self.slice(from) {
            "true" => (Value::Bool(true), false),
            "false" => (Value::Bool(false), false),
            "null" => (Value::Null, false),
            "True" => (Value::Bool(true), true),
            "False" => (Value::Bool(false), true),
            "None" => (Value::Null, true),
            _ if self.at >= self.text.len() => return Err(Why::End),
            _ => {
                self.at = from;
                return Err(Why::Syntax);
            }
        };
        if python {
            self.liberty(from, LibertyRule::PythonLiteral, "`True`, `False` or `None` was read as in Python");
        }
        Ok(value)
    }
}

/// The white space beyond that of JSON with which a text starts.
pub(crate) fn other_blank(text: &str) -> Option<char> {
    text.chars().next().filter(|c| !c.is_ascii() && c.is_whitespace())
}

/// Bytes of the comment with which a text starts, if it does; the error is one that never ends. Outside of
/// strings `//` and `/*` can mean nothing else. `#urgent` may be a value that lost its quotes, `# urgent` is none.
fn comment_length(text: &[u8]) -> Option<Result<usize, Why>> {
    match text {
        [b'/', b'*', rest @ ..] => {
            let end = rest.windows(2).position(|pair| pair == b"*/");
            Some(end.map(|at| at + 4).ok_or(Why::End))
        }
        [b'/', b'/', ..] | [b'#', b' ' | b'\t' | b'\r' | b'\n' | b'#', ..] => {
            let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
            Some(Ok(text.iter().position(is_end).unwrap_or(text.len())))
        }
        _ => None,
    }
}
