//! Decodes a string as it arrives: quotes of any kind, escapes and surrogate pairs split anywhere. Accepts nothing
//! that JSON could not mean: an unknown escape or half a pair ends the reading.

/// The quotes of a string. It ends with a quote of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum QuoteKind {
    /// `"`
    #[default]
    Double,
    /// `'`
    Single,
    /// `“ ” „ ‟`, in any order; languages differ.
    CurlyDouble,
    /// `‘ ’ ‚ ‛`, in any order.
    CurlySingle,
}

/// Returns the quote with which a text starts, and its length.
#[inline]
pub(super) fn opening_quote(text: &str, strict: bool) -> Option<(QuoteKind, usize)> {
    let quote = match text.as_bytes().first()? {
        b'"' => return Some((QuoteKind::Double, 1)),
        b'\'' if !strict => return Some((QuoteKind::Single, 1)),
        0xE2 if !strict => text.chars().next()?,
        _ => return None,
    };
    let kind = match quote {
        '“' | '”' | '„' | '‟' => QuoteKind::CurlyDouble,
        '‘' | '’' | '‚' | '‛' => QuoteKind::CurlySingle,
        _ => return None,
    };
    Some((kind, quote.len_utf8()))
}

/// The meaning of the next bytes of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringPart {
    /// Literal bytes.
    Run,
    /// An unescaped line break or tab, which JSON does not allow.
    RawBreak,
    /// A complete escape. An unneeded `\'` is a liberty.
    Letter { letter: char, needless: bool },
    /// An incomplete escape.
    Nothing,
    /// The closing quote.
    End,
}

/// A fault: the current byte is not allowed in a string. `behind` is set if the reported offset is after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StringFault {
    pub(super) behind: bool,
}

const AT_BYTE: StringFault = StringFault { behind: false };

/// The state within a string.
#[derive(Debug, Default)]
pub(super) struct StringReader {
    quote: QuoteKind,
    strict: bool,
    is_value: bool,
    escape: EscapeState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EscapeState {
    #[default]
    None,
    /// After a backslash.
    Slash,
    /// After `\u`, with the first half of a surrogate pair, if any.
    Hex { left: u8, value: u16, high: Option<u16> },
    /// After the first half of a surrogate pair.
    Pair { high: u16, slash: bool },
}

impl StringReader {
    /// Starts a string after its opening quote.
    #[inline]
    pub(super) fn start(&mut self, quote: QuoteKind, strict: bool, is_value: bool) {
        *self = Self { quote, strict, is_value, escape: EscapeState::None };
    }

    /// Reads the next part; returns the number of bytes taken. The state does not change on a fault.
    #[inline]
    pub(super) fn next(&mut self, rest: &str) -> Result<(usize, StringPart), StringFault> {
        let Some(byte) = rest.as_bytes().first().copied() else { return Ok((0, StringPart::Nothing)) };
        if self.escape != EscapeState::None {
            return self.read_escaped(byte).map(|part| (1, part));
        }
        let run = self.plain(rest);
        if run > 0 {
            return Ok((run, StringPart::Run));
        }
        match byte {
            b'\\' => {
                self.escape = EscapeState::Slash;
                Ok((1, StringPart::Nothing))
            }
            // A name that continues on the next line has lost its closing quote.
            b'\n' | b'\r' | b'\t' if self.is_value && !self.strict => Ok((1, StringPart::RawBreak)),
            byte if byte < b' ' => Err(AT_BYTE),
            _ => Ok((opening_quote(rest, self.strict).map_or(1, |(_, length)| length), StringPart::End)),
        }
    }

    /// Returns the number of literal bytes.
    #[inline]
    fn plain(&self, rest: &str) -> usize {
        let found = match self.quote {
            QuoteKind::Double => rest.bytes().position(|byte| byte < b' ' || byte == b'\\' || byte == b'"'),
            QuoteKind::Single => rest.bytes().position(|byte| byte < b' ' || byte == b'\\' || byte == b'\''),
            QuoteKind::CurlyDouble => {
                rest.find(|c: char| c < ' ' || matches!(c, '\\' | '“' | '”' | '„' | '‟'))
            }
            QuoteKind::CurlySingle => {
                rest.find(|c: char| c < ' ' || matches!(c, '\\' | '‘' | '’' | '‚' | '‛'))
            }
        };
        found.unwrap_or(rest.len())
    }

    fn read_escaped(&mut self, byte: u8) -> Result<StringPart, StringFault> {
        let (next, part) = match self.escape {
            EscapeState::Slash if byte == b'u' => {
                (EscapeState::Hex { left: 4, value: 0, high: None }, StringPart::Nothing)
            }
            EscapeState::None | EscapeState::Slash => (EscapeState::None, self.letter(byte)?),
            EscapeState::Hex { left, value, high } => hex(byte, left, value, high)?,
            EscapeState::Pair { high, slash: false } if byte == b'\\' => {
                (EscapeState::Pair { high, slash: true }, StringPart::Nothing)
            }
            EscapeState::Pair { high, slash: true } if byte == b'u' => {
                (EscapeState::Hex { left: 4, value: 0, high: Some(high) }, StringPart::Nothing)
            }
            EscapeState::Pair { .. } => return Err(AT_BYTE),
        };
        self.escape = next;
        Ok(part)
    }

    fn letter(&self, byte: u8) -> Result<StringPart, StringFault> {
        let letter = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'\'' if !self.strict => '\'',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            // `\d` may be a lost backslash or a needless one: two readings.
            _ => return Err(AT_BYTE),
        };
        Ok(StringPart::Letter { letter, needless: letter == '\'' && self.quote != QuoteKind::Single })
    }
}

/// Reads the next of the four digits after `\u`.
fn hex(byte: u8, left: u8, value: u16, high: Option<u16>) -> Result<(EscapeState, StringPart), StringFault> {
    let digit = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok()).ok_or(AT_BYTE)?;
    let value = (value << 4) | digit;
    if left > 1 {
        return Ok((EscapeState::Hex { left: left - 1, value, high }, StringPart::Nothing));
    }
    match (char::decode_utf16(high.into_iter().chain([value])).next(), high) {
        (Some(Ok(letter)), _) => Ok((EscapeState::None, StringPart::Letter { letter, needless: false })),
        (_, None) => Ok((EscapeState::Pair { high: value, slash: false }, StringPart::Nothing)),
        _ => Err(StringFault { behind: true }),
    }
}
