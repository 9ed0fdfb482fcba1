//! Values that are pieces of the input: selects the tokens that continue such a piece, and those that end it. A small
//! model that is instructed to copy invents endings and years; this constraint prevents that. Knows nothing of schemas
//! and grammars, and always leaves at least one token.

use serde_json::Value;
use toktrie::SimpleVob;

use crate::json_cursor::{JsonCursor, NextText};
use crate::model::Vocabulary;
use crate::sample::mass;

/// The texts of one input that values may be copied from.
#[derive(Debug)]
pub(crate) struct Copies {
    input: Value,
    sources: Vec<(String, CopySource)>,
}

impl Copies {
    /// Creates the copies from the `input` as sent. An input that is not JSON is one text.
    pub(crate) fn new(input: &str) -> Self {
        let input = serde_json::from_str(input).unwrap_or_else(|_| Value::from(input));
        Self { input, sources: Vec::new() }
    }

    /// Returns the text from here to the next member that the input requests, or to the end of the object. `known` are
    /// the members in order, each with the list in the input that has to name it. Members for which `is_left_out`
    /// returns true are skipped. Returns `None` if the input requests no members.
    pub(crate) fn next_name(
        &self,
        known: &[(&str, &str)],
        is_left_out: impl Fn(&str) -> bool,
        here: &JsonCursor,
    ) -> Option<String> {
        let is_listed = |name: &str, list: &str| {
            let listed = self.input.get(list).and_then(Value::as_array);
            listed.is_some_and(|listed| listed.iter().any(|item| item.as_str() == Some(name)))
        };
        let wanted = known.iter().filter(|(name, list)| is_listed(name, list)).map(|(name, _)| *name);
        let mut wanted: Vec<&str> = wanted.collect();
        if wanted.is_empty() {
            return None;
        }
        wanted.retain(|name| !is_left_out(name));
        let last = here.path().last()??;
        let (comma, next) = match here.now() {
            NextText::Member if last.is_empty() => match wanted.first() {
                Some(first) => ("", first),
                None => return Some("}".to_owned()),
            },
            NextText::Member => return None,
            _ => {
                let at = wanted.iter().position(|name| name.as_bytes() == last)?;
                match wanted.get(at + 1) {
                    Some(next) => (",", next),
                    None => return Some("}".to_owned()),
                }
            }
        };
        Some(format!("{comma}{}:", Value::from(*next)))
    }

    /// Returns the texts of a member of the input; of the whole input if there is no such member.
    pub(crate) fn texts(&mut self, member: &str) -> Option<&CopySource> {
        let at = match self.sources.iter().position(|(name, _)| name == member) {
            Some(at) => at,
            None => {
                let value = self.input.get(member).unwrap_or(&self.input);
                self.sources.push((member.to_owned(), CopySource::new(value)));
                self.sources.len() - 1
            }
        };
        self.sources.get(at).map(|(_, source)| source)
    }
}

/// Texts in the form of JSON strings, with the places where a piece may start and end.
#[derive(Debug, Default)]
pub(crate) struct CopySource {
    bytes: Vec<u8>,
    begins: Vec<bool>,
    ends: Vec<bool>,
}

impl CopySource {
    fn new(value: &Value) -> Self {
        let mut source = Self::default();
        source.gather(value);
        source
    }

    fn gather(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text, false),
            // Each text of a list is a single piece.
            Value::Array(items) => items.iter().for_each(|item| match item {
                Value::String(text) => self.add(text, true),
                other => self.gather(other),
            }),
            Value::Object(members) => members.values().for_each(|member| self.gather(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add(&mut self, text: &str, whole: bool) {
        let mut before = None;
        for letter in text.chars().map(Some).chain([None]) {
            let between_words = !(before.is_some_and(is_word) && letter.is_some_and(is_word));
            let begins =
                if whole { before.is_none() } else { between_words && letter.is_some_and(may_begin) };
            let is_after_text = before.is_some_and(|before: char| !before.is_whitespace());
            let ends = if whole { letter.is_none() } else { between_words && is_after_text };
            // A JSON string cannot contain a raw line break, so no piece spans two texts.
            let written = letter.map_or_else(|| b"\n".to_vec(), escape);
            for (index, byte) in written.into_iter().enumerate() {
                self.bytes.push(byte);
                self.begins.push(begins && index == 0);
                self.ends.push(ends && index == 0);
            }
            before = letter;
        }
    }

    /// Returns the positions after `written`, one for each piece that starts with it.
    fn ways(&self, written: &[u8]) -> Vec<usize> {
        let begins = self.begins.iter().enumerate().filter(|(_, begins)| **begins).map(|(at, _)| at);
        let fits = |at: &usize| self.bytes.get(*at..).is_some_and(|rest| rest.starts_with(written));
        begins.filter(fits).map(|at| at + written.len()).collect()
    }

    /// Returns whether `bytes` continue the piece from here, or end it with a quote.
    fn continues_with(&self, from: usize, bytes: &[u8], mut is_empty: bool) -> bool {
        for (at, byte) in (from..).zip(bytes) {
            match self.bytes.get(at) {
                Some(here) if here == byte => is_empty = false,
                _ => return *byte == b'"' && !is_empty && self.ends.get(at).is_some_and(|ends| *ends),
            }
        }
        true
    }

    /// Returns the tokens that continue a piece, and those that end it. `written` is the value so far including pending
    /// bytes; `pending` is the required prefix of each token. Returns `None` if there are none: then the value is not a
    /// copy.
    pub(crate) fn parts(
        &self,
        mask: &SimpleVob,
        written: &[u8],
        pending: &[u8],
        vocabulary: &dyn Vocabulary,
    ) -> Option<CopyTokens> {
        let ways = self.ways(written);
        let (mut on, mut end) = (SimpleVob::alloc(mask.len()), SimpleVob::alloc(mask.len()));
        // The first byte rules out most tokens.
        let mut firsts: Vec<u8> = ways.iter().filter_map(|at| self.bytes.get(*at).copied()).collect();
        firsts.push(b'"');
        firsts.sort_unstable();
        firsts.dedup();
        for token in mask.iter() {
            let bytes = vocabulary.bytes(token);
            let fits = match bytes.strip_prefix(pending) {
                Some([]) | None => true,
                Some(rest @ [first, ..]) => {
                    firsts.binary_search(first).is_ok()
                        && ways.iter().any(|at| self.continues_with(*at, rest, written.is_empty()))
                }
            };
            let is_end = bytes.get(pending.len()) == Some(&b'"') && !written.ends_with(b"\\");
            match (fits, is_end) {
                (true, true) => end.allow_token(token),
                (true, false) => on.allow_token(token),
                _ => {}
            }
        }
        (!on.is_zero() || !end.is_zero()).then_some(CopyTokens { on, end })
    }
}

/// The tokens that may come next in a copy.
#[derive(Debug)]
pub(crate) struct CopyTokens {
    on: SimpleVob,
    end: SimpleVob,
}

impl CopyTokens {
    /// Returns the tokens that continue, or the probability of the end if that is higher. The end is spread over many
    /// tokens, with and without text after the quote, so they count together.
    pub(crate) fn likelier(self, logits: &[f32]) -> Result<SimpleVob, f32> {
        let (on, end) = (mass(logits, &self.on), mass(logits, &self.end));
        if end > on || self.on.is_zero() { Err(end / (on + end)) } else { Ok(self.on) }
    }
}

/// Returns whether a character belongs to words. Scripts without spaces have no words: there, a piece is any run of
/// letters.
fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() && letter < '\u{2E80}'
}

fn may_begin(letter: char) -> bool {
    letter.is_alphanumeric() || "$#@+-(/".contains(letter) || !(letter.is_ascii() || letter.is_whitespace())
}

/// Returns a character as written in a JSON string.
fn escape(letter: char) -> Vec<u8> {
    let quoted = Value::from(letter.to_string()).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;

    fn at(text: &str) -> JsonCursor {
        let mut place = JsonCursor::default();
        place.advance(text.as_bytes());
        place
    }

    /// Returns those of the given words that may come next after `written`.
    fn next<'a>(input: &str, member: &str, written: &str, words: &[&'a str]) -> Vec<&'a str> {
        let mut toy = Toy::default();
        let first = toy.words.len();
        toy.words.extend(words.iter().map(|word| word.as_bytes().to_vec()));
        let mut mask = SimpleVob::alloc(toy.words.len());
        (first..toy.words.len()).for_each(|token| mask.allow_token(u32::try_from(token).unwrap()));
        let mut copies = Copies::new(input);
        let source = copies.texts(member).unwrap();
        let Some(parts) = source.parts(&mask, written.as_bytes(), b"", &toy) else { return Vec::new() };
        let allowed = |token: usize| parts.on.get(token) || parts.end.get(token);
        words.iter().enumerate().filter(|(at, _)| allowed(first + at)).map(|(_, word)| *word).collect()
    }

    const INPUT: &str = r#"{"text": "Ann \"A\" Lee left\nOslo in 1998.", "want": ["first name", "name"]}"#;

    #[test]
    fn a_piece_begins_and_ends_between_words() {
        let words = ["Ann", "An", "nn", " Ann", "Lee", "199", "Bob", "\"", "\\n"];
        assert_eq!(next(INPUT, "text", "", &words), ["Ann", "An", "Lee", "199"]);
        assert_eq!(next(INPUT, "text", "An", &["n", "\"", "a"]), ["n"]);
        assert_eq!(next(INPUT, "text", "1998", &["\"", "\",", ".", ".\"", "9"]), ["\"", "\",", ".", ".\""]);
    }

    #[test]
    fn what_json_escapes_is_copied_as_it_is_written() {
        let words = [" \\\"A", " \"A", "\"", " \\\"A\\\" Lee\","];
        assert_eq!(next(INPUT, "text", "Ann", &words), [" \\\"A", "\"", " \\\"A\\\" Lee\","]);
        assert_eq!(next(INPUT, "text", "left", &["\\n", "\\nOslo", "\n"]), ["\\n", "\\nOslo"]);
    }

    #[test]
    fn of_a_list_only_whole_texts_are_copied() {
        assert_eq!(next(INPUT, "want", "", &["first", "name", "nam"]), ["first", "name", "nam"]);
        assert_eq!(next(INPUT, "want", "first", &["\"", " name"]), [" name"]);
    }

    #[test]
    fn without_the_member_the_whole_input_counts_and_without_a_text_nothing_is_held_back() {
        assert_eq!(next(r#"{"query": "Oslo"}"#, "text", "", &["Oslo", "Rome"]), ["Oslo"]);
        assert_eq!(next("Oslo is cold", "text", "", &["Oslo", "Rome"]), ["Oslo"]);
        assert_eq!(next("你好世界", "text", "", &["世", "好世", "界\"", "x"]), ["世", "好世", "界\""]);
        assert!(next(r#"{"text": " "}"#, "text", "", &["a"]).is_empty());
    }

    #[test]
    fn wanted_names_follow_each_other_in_the_order_of_the_contract() {
        let copies = Copies::new(r#"{"want": ["c", "a", "z"], "text": ""}"#);
        let known = [("a", "want"), ("b", "want"), ("c", "want"), ("d", "text")];
        let next = |text: &str| copies.next_name(&known, |_| false, &at(text));
        assert_eq!(next("{").as_deref(), Some(r#""a":"#));
        assert_eq!(next(r#"{"a":"x""#).as_deref(), Some(r#","c":"#));
        assert_eq!(next(r#"{"a":"x","c":"y""#).as_deref(), Some("}"));
        assert_eq!(next(r#"{"other":"x""#), None);
        assert_eq!(Copies::new("{}").next_name(&known, |_| false, &at("{")), None);
    }

    #[test]
    fn the_end_counts_as_a_whole() {
        let set = |tokens: &[u32]| {
            let mut set = SimpleVob::alloc(4);
            for token in tokens {
                set.allow_token(*token);
            }
            set
        };
        let parts = || CopyTokens { on: set(&[0]), end: set(&[1, 2]) };
        assert!(parts().likelier(&[1.0, 0.5, 0.5, 9.0]).is_err_and(|share| share > 0.5));
        assert!(parts().likelier(&[3.0, 0.5, 0.5, 9.0]).is_ok());
    }
}
