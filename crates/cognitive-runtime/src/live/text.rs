//! Decodes a string as it arrives: quotes of any kind, escapes and surrogate pairs split anywhere.
//! Converts nothing that JSON could not mean: an unknown escape or half a pair ends the reading.

use super::json::Broken;

/// What a string is written in. It ends with a quote of the kind that it began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Quote {
    #[default]
    Double,
    Single,
    CurlyDouble,
    CurlySingle,
}

/// The quote with which a text starts, and its length.
pub(super) fn quote_of(text: &str, strict: bool) -> Option<(Quote, usize)> {
    let quote = match text.chars().next()? {
        '"' => Quote::Double,
        '\'' if !strict => Quote::Single,
        '“' | '”' | '„' | '‟' if !strict => Quote::CurlyDouble,
        '‘' | '’' | '‚' | '‛' if !strict => Quote::CurlySingle,
        _ => return None,
    };
    let length = if matches!(quote, Quote::Double | Quote::Single) { 1 } else { '“'.len_utf8() };
    Some((quote, length))
}

/// What a push found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextEvent {
    /// The bytes taken stand for themselves.
    Run,
    /// An escape is complete.
    Letter(char),
    /// An escape is not complete yet.
    Nothing,
    /// The closing quote.
    End,
}

/// The state within a string.
#[derive(Debug, Default)]
pub(super) struct Text {
    quote: Quote,
    strict: bool,
    is_value: bool,
    escape: Escape,
    /// Whether a name was read in quotes since the last value.
    name_seen: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Escape {
    #[default]
    None,
    /// Behind a backslash.
    Slash,
    /// Behind `\u`, with the first half of a pair if there was one.
    Hex { left: u8, value: u16, high: Option<u16> },
    /// Behind the first half of a pair.
    Pair { high: u16, slash: bool },
}

impl Text {
    /// Begins a string behind its opening quote.
    pub(super) fn start(&mut self, quote: Quote, strict: bool, is_value: bool) {
        *self = Self { quote, strict, is_value, escape: Escape::None, name_seen: !is_value };
    }

    /// Whether the last string was a name.
    pub(super) fn was_name(&self) -> bool {
        self.name_seen
    }

    /// Reads on, up to the next thing that can be said.
    pub(super) fn push(&mut self, rest: &str) -> Result<(usize, TextEvent), Broken> {
        let Some(byte) = rest.bytes().next() else { return Ok((0, TextEvent::Nothing)) };
        if self.escape != Escape::None {
            return self.escaped(byte).map(|event| (1, event));
        }
        let run = self.plain(rest);
        if run > 0 {
            return Ok((run, TextEvent::Run));
        }
        match byte {
            b'\\' => {
                self.escape = Escape::Slash;
                Ok((1, TextEvent::Nothing))
            }
            b'\n' | b'\r' | b'\t' if self.is_value && !self.strict => Ok((1, TextEvent::Run)),
            byte if byte < b' ' => Err(Broken),
            _ => Ok((quote_of(rest, self.strict).map_or(1, |(_, length)| length), TextEvent::End)),
        }
    }

    /// Bytes that stand for themselves.
    fn plain(&self, rest: &str) -> usize {
        let found = match self.quote {
            Quote::Double => rest.bytes().position(|byte| byte < b' ' || byte == b'\\' || byte == b'"'),
            Quote::Single => rest.bytes().position(|byte| byte < b' ' || byte == b'\\' || byte == b'\''),
            Quote::CurlyDouble => rest.find(|c: char| c < ' ' || matches!(c, '\\' | '“' | '”' | '„' | '‟')),
            Quote::CurlySingle => rest.find(|c: char| c < ' ' || matches!(c, '\\' | '‘' | '’' | '‚' | '‛')),
        };
        found.unwrap_or(rest.len())
    }

    fn escaped(&mut self, byte: u8) -> Result<TextEvent, Broken> {
        match self.escape {
            Escape::None => Ok(TextEvent::Nothing),
            Escape::Slash if byte == b'u' => {
                self.escape = Escape::Hex { left: 4, value: 0, high: None };
                Ok(TextEvent::Nothing)
            }
            Escape::Slash => {
                self.escape = Escape::None;
                self.letter(byte).map(TextEvent::Letter)
            }
            Escape::Hex { left, value, high } => self.hex(byte, left, value, high),
            Escape::Pair { high, slash } => {
                if byte != if slash { b'u' } else { b'\\' } {
                    return Err(Broken);
                }
                self.escape = if slash {
                    Escape::Hex { left: 4, value: 0, high: Some(high) }
                } else {
                    Escape::Pair { high, slash: true }
                };
                Ok(TextEvent::Nothing)
            }
        }
    }

    fn letter(&self, byte: u8) -> Result<char, Broken> {
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'\'' if !self.strict => '\'',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            _ => return Err(Broken),
        })
    }

    fn hex(&mut self, byte: u8, left: u8, value: u16, high: Option<u16>) -> Result<TextEvent, Broken> {
        let digit =
            char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok()).ok_or(Broken)?;
        let value = (value << 4) | digit;
        if left > 1 {
            self.escape = Escape::Hex { left: left - 1, value, high };
            return Ok(TextEvent::Nothing);
        }
        let decoded = char::decode_utf16(high.into_iter().chain([value])).next();
        match (decoded, high) {
            (Some(Ok(letter)), _) => {
                self.escape = Escape::None;
                Ok(TextEvent::Letter(letter))
            }
            (_, None) if (0xD800..0xDC00).contains(&value) => {
                self.escape = Escape::Pair { high: value, slash: false };
                Ok(TextEvent::Nothing)
            }
            _ => Err(Broken),
        }
    }
}
