//! Finds the end of an object that is broken, so that no part of it is taken for the answer.
//! Understands as little as possible: strings in `"` and brackets. Where that is not enough, the rest of the text
//! belongs to the broken object, and the reply is refused rather than misread.

use super::fence;
use super::reader::{Stop, Why};

/// The offset behind a broken object or list, or the end of the text. A fence that stands around it ends it as well.
pub(super) fn end_of_broken(text: &str, stop: &Stop, around: Option<(u8, usize)>) -> usize {
    if stop.why == Why::End {
        return text.len();
    }
    let mut open = Brackets::of(text, stop);
    let mut in_string = false;
    let mut escaped = false;
    let rest = text.as_bytes().get(stop.token..).unwrap_or_default();
    for (at, byte) in (stop.token..).zip(rest.iter().copied()) {
        match byte {
            b'\n' if around.is_some_and(|mark| line_closes(text, at + 1, mark)) => return at + 1,
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            _ if open.closed_by(byte) => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// What is still open. In an object only braces count: `{"a": [1, 2}` is over, though its list is not.
struct Brackets {
    braces: usize,
    square: Option<usize>,
}

impl Brackets {
    fn of(text: &str, stop: &Stop) -> Self {
        let is_list = text.as_bytes().get(stop.open) == Some(&b'[');
        Self { braces: stop.braces, square: is_list.then_some(stop.brackets) }
    }

    fn closed_by(&mut self, byte: u8) -> bool {
        match (byte, &mut self.square) {
            (b'{', _) => self.braces += 1,
            (b'}', _) => self.braces = self.braces.saturating_sub(1),
            (b'[', Some(square)) => *square += 1,
            (b']', Some(square)) => *square = square.saturating_sub(1),
            _ => return false,
        }
        self.braces == 0 && self.square.unwrap_or(0) == 0
    }
}

fn line_closes(text: &str, start: usize, mark: (u8, usize)) -> bool {
    let rest = text.get(start..).unwrap_or_default();
    fence::closes(rest.split('\n').next().unwrap_or_default(), mark)
}

#[cfg(test)]
mod tests {
    use super::super::reader;
    use super::*;

    /// What is left behind the broken thing at the start of `text`.
    fn left(text: &str, around: Option<(u8, usize)>) -> &str {
        let stop = reader::read(text, 0).unwrap_err();
        text.get(end_of_broken(text, &stop, around)..).unwrap()
    }

    #[test]
    fn braces_in_strings_do_not_count_and_lists_do_not_matter() {
        assert_eq!(left(r#"{"a": NaN, "b": "}\"}", "c": {"d": 1}} x"#, None), " x");
        assert_eq!(left(r#"{"a": [1, 2} x"#, None), " x");
        assert_eq!(left(r#"{"a": {"b": 1} oops, "c": {"d": 1}} x"#, None), " x");
        assert_eq!(left(r#"{"a": {"b": {}} "c": {"d": 1}} x"#, None), " x");
        assert_eq!(left(r#"[{"a": NaN}, {"b": 1}] x"#, None), " x");
        assert_eq!(left(r#"{"a": "\d}", "b": 1} x"#, None), " x", "the broken string is skipped as a string");
    }

    #[test]
    fn what_never_closes_reaches_to_the_end_or_to_the_fence() {
        assert_eq!(left(r#"{"a": {"b": ... } x {"c": 1}"#, None), "");
        let deep = format!("{}1{} x", "{\"a\":".repeat(150), "}".repeat(150));
        assert_eq!(left(&deep, None), " x");
        assert_eq!(left("{\"a\": {\"b\": ...\n```\nx", Some((b'`', 3))), "```\nx");
    }
}
