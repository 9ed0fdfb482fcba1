//! Removes the key from answers. Some gateways echo the key in their text for debugging, and every reader of the
//! answer would see it. Searches only for the key itself, also across pieces. Text that cannot be the start of the
//! key passes immediately and without a copy.

use memchr::{memchr_iter, memmem};

use crate::redact::{GONE, MIN_ANSWER_LENGTH};
use crate::secret::Secret;

/// A filter between a service and the consumer of its text.
#[derive(Default)]
pub(crate) struct Echo<'a> {
    key: Option<&'a str>,
    /// Withheld text that may be the start of the key.
    held: String,
}

impl<'a> Echo<'a> {
    pub(crate) fn new(key: Option<&'a Secret>) -> Self {
        let key = key.map(Secret::reveal).filter(|key| key.len() >= MIN_ANSWER_LENGTH);
        Self { key, held: String::new() }
    }

    /// Forwards a piece without the key, and withholds an end that may be the start of the key.
    pub(crate) fn pass(&mut self, text: &str, mut on: impl FnMut(&str)) {
        let Some(key) = self.key else { return on(text) };
        if self.held.is_empty() && !holds(text, key) && partial_key_length(text, key) == 0 {
            return on(text);
        }
        self.held.push_str(text);
        let whole = redact_key(&std::mem::take(&mut self.held), key);
        let (sure, open) = whole.split_at(whole.len() - partial_key_length(&whole, key));
        open.clone_into(&mut self.held);
        if !sure.is_empty() {
            on(sure);
        }
    }

    /// Forwards the withheld text at the end, because it did not become the key.
    pub(crate) fn end(&mut self, mut on: impl FnMut(&str)) {
        let rest = std::mem::take(&mut self.held);
        if !rest.is_empty() {
            on(&rest);
        }
    }
}

fn holds(text: &str, key: &str) -> bool {
    // Most pieces are shorter than any key, and setting up a search would cost more than the search itself.
    text.len() >= key.len() && memmem::find(text.as_bytes(), key.as_bytes()).is_some()
}

fn redact_key(text: &str, key: &str) -> String {
    text.replace(key, GONE)
}

/// Returns how many bytes at the end of a text are the start of the key.
fn partial_key_length(text: &str, key: &str) -> usize {
    let (text, key) = (text.as_bytes(), key.as_bytes());
    let from = text.len().saturating_sub(key.len().saturating_sub(1));
    let tail = text.get(from..).unwrap_or_default();
    let first = key.first().copied().unwrap_or_default();
    let starts =
        memchr_iter(first, tail).find(|start| key.starts_with(tail.get(*start..).unwrap_or_default()));
    starts.map_or(0, |start| tail.len() - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-test-very-secret-0123";

    fn passed(pieces: &[&str]) -> Vec<String> {
        let key = Secret::new(KEY);
        let (mut echo, mut out) = (Echo::new(key.as_ref()), Vec::new());
        for piece in pieces {
            echo.pass(piece, |text| out.push(text.to_owned()));
        }
        echo.end(|text| out.push(text.to_owned()));
        out
    }

    #[test]
    fn a_key_in_an_answer_is_taken_out_wherever_pieces_part_it() {
        let text = format!("é{KEY}, s sk- {KEY}{KEY} sk-test");
        let expected = "é[redacted], s sk- [redacted][redacted] sk-test";
        for first in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            for second in (first..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(passed(&pieces).concat(), expected, "{pieces:?}");
            }
        }
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(passed(&letters.iter().map(String::as_str).collect::<Vec<_>>()).concat(), expected);
    }

    #[test]
    fn what_cannot_be_the_key_passes_at_once() {
        assert_eq!(passed(&["a", "b s", " c"]), ["a", "b ", "s c"]);
        let mut echo = Echo::new(None);
        echo.pass("ollama", |text| assert_eq!(text, "ollama"));
        let short = Secret::new("ollama");
        let mut echo = Echo::new(short.as_ref());
        echo.pass("ollama", |text| assert_eq!(text, "ollama"));
    }
}
