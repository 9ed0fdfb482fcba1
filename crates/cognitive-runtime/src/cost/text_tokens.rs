//! The most tokens that a text can have; never less than the real number. For the vocabulary `o200k`, which OpenAI
//! publishes: one for each of the commonest words, for clusters of marks that are one token, for three digits, and for a
//! run of spaces. Every other byte counts as one. In a vocabulary that is not published, the commonest words count as one
//! token for four letters, together with the space before them, and every other byte as one.
//!
//! The vocabulary cuts a text into words, digits, marks and white space before it looks for tokens, so each can be
//! judged separately. A word takes the space before it, or one mark; the list has only words for which this was
//! tested with every mark. Bytes are counted if a neighbour could change how the text is cut (an apostrophe, a letter
//! that is not ASCII).

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use cognitive_ports::prices::BilledVocabulary;

/// Words that are one token after a space. First those that are also one without it, and one more with a mark; then
/// those that are two.
const WORDS: &str = include_str!("words_o200k.txt");
/// Clusters of two to four marks that are one token; then those that are one together with the space before them.
const MARKS: &str = include_str!("marks_o200k.txt");
/// The letters of a common word that are one token in every vocabulary of a model.
const LETTERS: u64 = 4;
/// The longest run of spaces that is one token.
const MAX_SPACES: usize = 32;

/// Returns the most tokens that a text can have.
#[must_use]
pub fn most_tokens(text: &str, vocabulary: BilledVocabulary) -> u64 {
    let is_published = vocabulary == BilledVocabulary::O200k;
    Pieces { bytes: text.as_bytes(), lists: lists(), is_published }.tokens()
}

struct Lists {
    words: HashMap<&'static [u8], u64>,
    marks: HashSet<&'static [u8]>,
    spaced_marks: HashSet<&'static [u8]>,
}

fn lists() -> &'static Lists {
    static LISTS: OnceLock<Lists> = OnceLock::new();
    LISTS.get_or_init(|| {
        let (one, two) = WORDS.split_once("\n\n").unwrap_or_default();
        let each = |text: &'static str| text.split_ascii_whitespace().map(str::as_bytes);
        let words = each(one).map(|word| (word, 1)).chain(each(two).map(|word| (word, 2)));
        let (marks, spaced) = MARKS.split_once("\n\n").unwrap_or_default();
        Lists { words: words.collect(), marks: each(marks).collect(), spaced_marks: each(spaced).collect() }
    })
}

/// The class of a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Letter,
    Digit,
    Mark,
    Space,
    Other,
}

impl Sort {
    fn from_byte(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Self::Letter,
            b'0'..=b'9' => Self::Digit,
            b' ' => Self::Space,
            b'!'..=b'~' => Self::Mark,
            _ => Self::Other,
        }
    }
}

struct Pieces<'t> {
    bytes: &'t [u8],
    lists: &'static Lists,
    is_published: bool,
}

impl Pieces<'_> {
    fn tokens(&self) -> u64 {
        let (mut start, mut sum) = (0, 0_u64);
        while let Some(first) = self.bytes.get(start) {
            let sort = Sort::from_byte(*first);
            let rest = self.bytes.get(start..).unwrap_or_default();
            let length = rest.iter().take_while(|byte| Sort::from_byte(**byte) == sort).count();
            sum = sum.saturating_add(self.run(sort, start, start + length));
            start += length;
        }
        sum
    }

    /// The most tokens of a run of bytes of one class.
    fn run(&self, sort: Sort, start: usize, end: usize) -> u64 {
        let run = self.bytes.get(start..end).unwrap_or_default();
        let (before, after) = (self.byte_before(start), self.bytes.get(end).copied());
        let bytes = run.len() as u64;
        let is_alone = [before, after].into_iter().flatten().all(|byte| byte.is_ascii());
        match sort {
            Sort::Letter if is_alone && after != Some(b'\'') && !self.is_contracted(start) => {
                match self.lists.words.get(run) {
                    Some(_) if !self.is_published => {
                        bytes.div_ceil(LETTERS) - u64::from(before == Some(b' '))
                    }
                    // The space was counted, and is a part of the word.
                    Some(_) if before == Some(b' ') => 0,
                    Some(tokens) => *tokens,
                    None => bytes,
                }
            }
            _ if !self.is_published => bytes,
            Sort::Digit if is_alone => bytes.div_ceil(3),
            Sort::Space if run.len() <= MAX_SPACES + 1 => bytes.min(2),
            Sort::Mark
                if is_alone && !matches!(after, Some(b'\n' | b'\r')) && !self.is_contracted(start + 1) =>
            {
                if before == Some(b' ') {
                    // The same applies to marks.
                    if self.lists.spaced_marks.contains(run) { 0 } else { bytes }
                } else if self.lists.marks.contains(run) {
                    1
                } else {
                    bytes
                }
            }
            _ => bytes,
        }
    }

    fn byte_before(&self, place: usize) -> Option<u8> {
        place.checked_sub(1).and_then(|place| self.bytes.get(place)).copied()
    }

    /// Returns whether an apostrophe before this place belongs to the word before it, as in `it's`.
    fn is_contracted(&self, place: usize) -> bool {
        let letter = place.checked_sub(2).and_then(|place| self.bytes.get(place));
        self.byte_before(place) == Some(b'\'')
            && letter.is_some_and(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> u64 {
        most_tokens(text, BilledVocabulary::O200k)
    }

    // Each bound was compared with the published vocabulary.
    #[test]
    fn common_words_marks_digits_and_spaces_count_once() {
        assert_eq!(known("the answer is right"), 4);
        assert_eq!(known("{\"type\":\"string\"}"), 5, "marks, word, marks, word, marks");
        assert_eq!(known("2026"), 2);
        assert_eq!(known("a        b"), 3);
        assert_eq!(known(" {}"), 1);
    }

    #[test]
    fn common_words_of_an_unpublished_vocabulary_count_by_four_letters() {
        let unknown = |text: &str| most_tokens(text, BilledVocabulary::Unknown);
        assert_eq!(unknown("the answer"), 1 + 2);
        assert_eq!(unknown("the xqzv 2026"), 1 + 5 + 5);
        assert_eq!(unknown("{\"type\":\"string\"}"), 2 + 1 + 3 + 2 + 2);
        assert_eq!(unknown("größe it's 中"), 7 + 5 + 4);
    }

    #[test]
    fn what_is_not_known_to_be_one_token_counts_its_bytes() {
        assert_eq!(known("xqzv"), 4);
        assert_eq!(known("größe"), 7);
        assert_eq!(known("it's"), 4);
        assert_eq!(known("theé"), 5, "the word goes on");
        assert_eq!(known("中"), 3);
        assert_eq!(known(""), 0);
        assert_eq!(known("\",\n"), 3, "line breaks belong to marks");
    }

    #[test]
    fn no_text_counts_more_than_its_bytes() {
        let mut random = numbers();
        for _ in 0..2_000 {
            let text: String =
                (0..random() % 60).map(|_| char::from(u8::try_from(random() % 127).unwrap())).collect();
            for vocabulary in [BilledVocabulary::O200k, BilledVocabulary::Unknown] {
                assert!(most_tokens(&text, vocabulary) <= text.len() as u64, "{text:?}");
            }
        }
    }

    /// A generator of pseudo-random numbers.
    fn numbers() -> impl FnMut() -> u64 {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 11
        }
    }
}
