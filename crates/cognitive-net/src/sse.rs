//! Server-sent events and JSON lines, decoded as the bytes arrive: linear, with a limit on the size of an event, and the
//! same for every way in which the bytes were cut into pieces.
//! Keeps only the data of an event: every service repeats the event's name inside it.

/// An event that is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Cuts bytes into lines that end in LF, CR or CRLF.
#[derive(Debug, Default)]
struct LineCutter {
    line: Vec<u8>,
    after_cr: bool,
    /// A byte-order mark is looked for once, at the very beginning.
    begun: bool,
}

impl LineCutter {
    /// Takes bytes up to the end of the present line; `true` if that end is there, and the line now stands in `line`.
    fn take(&mut self, bytes: &mut &[u8]) -> bool {
        if self.after_cr {
            *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        self.line.extend_from_slice(line);
        self.after_cr = rest.first() == Some(&b'\r');
        *bytes = rest.get(1..).unwrap_or_default();
        if end.is_some() {
            self.strip_mark();
        }
        end.is_some()
    }

    fn strip_mark(&mut self) {
        if !self.begun && self.line.starts_with(b"\xEF\xBB\xBF") {
            self.line.drain(..3);
        }
        self.begun = true;
    }
}

/// A decoder of `text/event-stream`. An event without its closing blank line is dropped, as the standard says: a stream
/// that was cut must not look whole.
#[derive(Debug)]
pub(crate) struct Sse {
    lines: LineCutter,
    data: Vec<u8>,
    has_data: bool,
    longest: usize,
}

impl Sse {
    /// A decoder that takes events up to so many bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self { lines: LineCutter::default(), data: Vec::new(), has_data: false, longest }
    }

    /// Takes the next bytes and adds the data of each event that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], events: &mut Vec<String>) -> Result<(), TooLong> {
        while !bytes.is_empty() {
            let whole = self.lines.take(&mut bytes);
            if self.lines.line.len().saturating_add(self.data.len()) > self.longest {
                return Err(TooLong);
            }
            if whole {
                self.line_is_over(events);
            }
        }
        Ok(())
    }

    fn line_is_over(&mut self, events: &mut Vec<String>) {
        if self.lines.line.is_empty() {
            if self.has_data {
                events.push(String::from_utf8_lossy(&self.data).into_owned());
            }
            self.data.clear();
            self.has_data = false;
        } else if let Some(value) = data_of(&self.lines.line) {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
            self.has_data = true;
        }
        self.lines.line.clear();
    }
}

/// The value of a line `data: value`; `None` for comments and every other field.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"data")?;
    match rest.split_first() {
        None => Some(rest),
        Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        Some(_) => None,
    }
}

/// A decoder of JSON lines. Blank lines are skipped.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: LineCutter,
    longest: usize,
}

impl Lines {
    /// A decoder that takes lines up to so many bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self { lines: LineCutter::default(), longest }
    }

    /// Takes the next bytes and adds each line that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], events: &mut Vec<String>) -> Result<(), TooLong> {
        while !bytes.is_empty() {
            let whole = self.lines.take(&mut bytes);
            if self.lines.line.len() > self.longest {
                return Err(TooLong);
            }
            if whole {
                self.line_is_over(events);
            }
        }
        Ok(())
    }

    /// The bytes are over: what is left is a line too, even without its end. Whether it is whole, its JSON tells.
    pub(crate) fn finish(&mut self, events: &mut Vec<String>) {
        self.lines.strip_mark();
        self.line_is_over(events);
    }

    fn line_is_over(&mut self, events: &mut Vec<String>) {
        let line = String::from_utf8_lossy(&self.lines.line);
        if !line.trim().is_empty() {
            events.push(line.into_owned());
        }
        self.lines.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    fn sse(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = Sse::new(1_000);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut events).unwrap();
        }
        events
    }

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = Lines::new(1_000);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut events).unwrap();
        }
        decoder.finish(&mut events);
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
        let mut events = Vec::new();
        assert_eq!(Sse::new(10).push(b"data: 123456789", &mut events), Err(TooLong));
        assert_eq!(Sse::new(20).push(b"data: 1234567890\ndata: 1234567890\n", &mut events), Err(TooLong));
        assert_eq!(Lines::new(10).push(b"12345678901", &mut events), Err(TooLong));
        assert_eq!(events, Vec::<String>::new());
    }

    // Quadratic decoders need seconds for this.
    #[test]
    fn a_large_event_in_small_pieces_takes_no_time() {
        let mut decoder = Sse::new(8_000_000);
        let mut events = Vec::new();
        let started = Instant::now();
        for _ in 0..4_000 {
            decoder.push(&[b'x'; 1_000], &mut events).unwrap();
        }
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
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
