//! Incremental decoders for server-sent events and JSON lines. They run in linear time, limit the size of an event,
//! and do not depend on how the bytes are split.
//! Returns only the data of an event: every service repeats the event's name inside it.

use std::borrow::Cow;

/// An event that is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Splits bytes into lines that end in LF, CR or CRLF. A line that arrives in one piece is not copied.
#[derive(Debug, Default)]
struct LineCutter {
    /// The start of a line whose end has not arrived.
    begun: Vec<u8>,
    after_cr: bool,
    /// Set after the first line, because only that line can start with a byte-order mark.
    past_mark: bool,
}

impl LineCutter {
    /// Returns the next complete line; otherwise the bytes are buffered.
    fn next<'b>(&mut self, bytes: &mut &'b [u8]) -> Option<Cow<'b, [u8]>> {
        if self.after_cr && !bytes.is_empty() {
            *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            self.after_cr = false;
        }
        let Some(end) = memchr::memchr2(b'\r', b'\n', bytes) else {
            self.begun.extend_from_slice(std::mem::take(bytes));
            return None;
        };
        let (line, rest) = bytes.split_at(end);
        self.after_cr = rest.first() == Some(&b'\r');
        *bytes = rest.get(1..).unwrap_or_default();
        Some(self.complete_line(line))
    }

    /// Completes a line.
    fn complete_line<'b>(&mut self, end: &'b [u8]) -> Cow<'b, [u8]> {
        let line = if self.begun.is_empty() {
            Cow::Borrowed(end)
        } else {
            self.begun.extend_from_slice(end);
            Cow::Owned(std::mem::take(&mut self.begun))
        };
        if std::mem::replace(&mut self.past_mark, true) || !line.starts_with(MARK) {
            return line;
        }
        match line {
            Cow::Borrowed(line) => Cow::Borrowed(line.get(MARK.len()..).unwrap_or_default()),
            Cow::Owned(mut line) => {
                line.drain(..MARK.len());
                Cow::Owned(line)
            }
        }
    }

    /// Returns the number of buffered bytes.
    fn buffered_length(&self) -> usize {
        self.begun.len()
    }
}

/// A byte-order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// A decoder for `text/event-stream`. An event without its closing blank line is dropped, as the standard requires,
/// so that a truncated stream does not look complete.
#[derive(Debug)]
pub(crate) struct Sse {
    lines: LineCutter,
    data: Vec<u8>,
    has_data: bool,
    longest: usize,
}

impl Sse {
    /// Creates a decoder for events of at most `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self { lines: LineCutter::default(), data: Vec::new(), has_data: false, longest }
    }

    /// Returns the data of the next complete event. The bytes it has read are removed from `bytes`.
    pub(crate) fn next<'b>(&mut self, bytes: &mut &'b [u8]) -> Result<Option<Cow<'b, str>>, TooLong> {
        while !bytes.is_empty() {
            let line = self.lines.next(bytes);
            let length = line.as_ref().map_or_else(|| self.lines.buffered_length(), |line| line.len());
            if length.saturating_add(self.data.len()) > self.longest {
                return Err(TooLong);
            }
            let Some(line) = line else { break };
            if line.is_empty() {
                if let Some(data) = self.event() {
                    return Ok(Some(text(Cow::Owned(data))));
                }
            } else if let Some(value) = data_of(&line) {
                // Nearly all events are one line that arrived in one piece, and need no copy.
                let alone = !self.has_data && !self.lines.after_cr;
                if let (Cow::Borrowed(line), true, Some(rest)) = (&line, alone, bytes.strip_prefix(b"\n")) {
                    *bytes = rest;
                    return Ok(data_of(line).map(|value| text(Cow::Borrowed(value))));
                }
                self.add(value);
            }
        }
        Ok(None)
    }

    fn add(&mut self, value: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
    }

    /// Returns the data collected for an event, if any.
    fn event(&mut self) -> Option<Vec<u8>> {
        let data = std::mem::take(&mut self.data);
        std::mem::take(&mut self.has_data).then_some(data)
    }
}

/// Converts bytes to text; invalid UTF-8 becomes U+FFFD.
fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => {
            std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
        }
        Cow::Owned(bytes) => Cow::Owned(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
    }
}

/// Returns the value of a line `data: value`; `None` for comments and all other fields.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"data")?;
    match rest.split_first() {
        None => Some(rest),
        Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        Some(_) => None,
    }
}

/// A decoder for JSON lines. Blank lines are skipped.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: LineCutter,
    longest: usize,
}

impl Lines {
    /// Creates a decoder for lines of at most `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self { lines: LineCutter::default(), longest }
    }

    /// Returns the next complete line. The bytes it has read are removed from `bytes`.
    pub(crate) fn next<'b>(&mut self, bytes: &mut &'b [u8]) -> Result<Option<Cow<'b, str>>, TooLong> {
        while !bytes.is_empty() {
            let line = self.lines.next(bytes);
            if line.as_ref().map_or_else(|| self.lines.buffered_length(), |line| line.len()) > self.longest {
                return Err(TooLong);
            }
            let line = line.map(text).filter(|line| !line.trim().is_empty());
            if line.is_some() {
                return Ok(line);
            }
        }
        Ok(None)
    }

    /// Ends the input and returns the last line, even without a line end. The JSON parser shows whether it is
    /// complete.
    pub(crate) fn last(&mut self) -> Option<String> {
        let line = text(self.lines.complete_line(b"")).into_owned();
        (!line.trim().is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use cognitive_testkit::PATIENCE;
    use proptest::prelude::*;

    use super::*;

    fn sse(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = Sse::new(1_000);
        let mut events = Vec::new();
        for mut piece in pieces.iter().copied() {
            events.extend(std::iter::from_fn(|| decoder.next(&mut piece).unwrap()).map(Cow::into_owned));
        }
        events
    }

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = Lines::new(1_000);
        let mut events = Vec::new();
        for mut piece in pieces.iter().copied() {
            events.extend(std::iter::from_fn(|| decoder.next(&mut piece).unwrap()).map(Cow::into_owned));
        }
        events.extend(decoder.last());
        events
    }

    #[test]
    fn events_as_the_standard_has_them() {
        for (text, expected) in [
            ("data: a\n\n", vec!["a"]),
            ("data:a\r\rdata: b\r\n\r\n", vec!["a", "b"]),
            ("data: a\ndata:  b\ndata\n\n", vec!["a\n b\n"]),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", vec!["a"]),
            (": keep-alive\n\nevent: x\nid: 1\nretry: 5\n\n", vec![]),
            ("event: message\ndata: {}\n\n", vec!["{}"]),
            ("database: a\n\ndata\n\n", vec![""]),
            ("data: whole\n\ndata: cut", vec!["whole"]),
            ("data: whole\n\ndata: cut\n", vec!["whole"]),
        ] {
            assert_eq!(sse(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    #[test]
    fn an_event_that_comes_whole_is_not_copied() {
        let (mut decoder, mut bytes) = (Sse::new(1_000), &b"data: a\n\ndata: b\n\ndata: c"[..]);
        for expected in ["a", "b"] {
            assert!(matches!(decoder.next(&mut bytes), Ok(Some(Cow::Borrowed(data))) if data == expected));
        }
        assert_eq!(decoder.next(&mut bytes), Ok(None));
        assert_eq!(decoder.next(&mut &b"\n\n"[..]), Ok(Some(Cow::Owned("c".to_owned()))));
    }

    #[test]
    fn a_character_may_be_cut_in_two() {
        let text = "data: né👍\n\n".as_bytes();
        for cut in 0..text.len() {
            assert_eq!(sse(&[&text[..cut], &text[cut..]]), ["né👍"], "{cut}");
        }
    }

    #[test]
    fn lines_with_and_without_a_last_end() {
        assert_eq!(lines(&[b"{\"a\":1}\r\n\n  \n{\"b\":2}"]), ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(lines(&["\u{feff}{}".as_bytes()]), ["{}"]);
        assert_eq!(lines(&[b""]), Vec::<String>::new());
    }

    #[test]
    fn an_endless_event_is_refused() {
        assert_eq!(Sse::new(10).next(&mut &b"data: 123456789"[..]), Err(TooLong));
        assert_eq!(Sse::new(10).next(&mut &b"data: 123456789\n\n"[..]), Err(TooLong));
        assert_eq!(Sse::new(20).next(&mut &b"data: 1234567890\ndata: 1234567890\n"[..]), Err(TooLong));
        assert_eq!(Lines::new(10).next(&mut &b"12345678901"[..]), Err(TooLong));
        assert_eq!(Lines::new(10).next(&mut &b"12345678901\n"[..]), Err(TooLong));
    }

    // A quadratic decoder would look at 512 GB here, which takes it many minutes; a linear one looks at 32 MB.
    #[test]
    fn a_large_event_in_small_pieces_takes_no_time() {
        let mut decoder = Sse::new(64_000_000);
        let started = Instant::now();
        for _ in 0..32_000 {
            decoder.next(&mut &[b'x'; 1_000][..]).unwrap();
        }
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    }

    /// Bytes that often form events, and often almost do.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let parts = prop::sample::select(vec![
            "data",
            ":",
            " ",
            "\n",
            "\r",
            "\r\n",
            "a",
            "é",
            "{}",
            "\u{feff}",
            "event: x",
            "data: [DONE]\n\n",
        ]);
        prop::collection::vec(parts, 0..40).prop_map(|parts| parts.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_events(text in bytes(), cuts in prop::collection::vec(0usize..400, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            prop_assert_eq!(sse(&pieces), sse(&[&text]));
            prop_assert_eq!(lines(&pieces), lines(&[&text]));
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            sse(&[&bytes]);
            lines(&[&bytes]);
        }
    }
}
