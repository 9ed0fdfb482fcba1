//! Cuts text into the pieces within which a vocabulary merges: words with the blank before them, runs of other
//! characters, runs of white space. It only cuts: nothing is lost, and bytes that are not UTF-8 count as other
//! characters.

use super::letters::is_letter;

/// The rule by which a vocabulary cuts text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SplitRule {
    /// The rule of GPT-2.
    Gpt2,
    /// Every digit separately, and the text between digits as GPT-2 does.
    DigitsApart,
    /// Every digit separately; a word includes one character before it, and other characters the line ends after them.
    Qwen2,
    /// Like `Qwen2`, with up to three digits together.
    Llama3,
}

impl SplitRule {
    /// Returns whether a piece that is itself a token skips the merges.
    pub(super) fn takes_whole_tokens(self) -> bool {
        self == Self::Llama3
    }

    /// Returns the number of characters in the first piece, at least one. `rest` is not empty.
    fn piece(self, rest: &[Sign]) -> usize {
        match self {
            Self::Gpt2 | Self::DigitsApart => gpt2_piece(rest),
            Self::Qwen2 => line_piece(rest, 1),
            Self::Llama3 => line_piece(rest, 3),
        }
    }
}

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Letter,
    Number,
    Space,
    Other,
}

/// A character or a stray byte: its class and its end.
#[derive(Debug, Clone, Copy)]
struct Sign {
    class: CharClass,
    /// The character, or NUL for a stray byte.
    c: char,
    end: usize,
}

impl Sign {
    fn ends_line(&self) -> bool {
        matches!(self.c, '\r' | '\n')
    }
}

/// Calls `piece` with every piece of the bytes, in order.
pub(super) fn cut<'a>(bytes: &'a [u8], how: SplitRule, mut piece: impl FnMut(&'a [u8])) {
    let signs = signs(bytes);
    let mut start = 0;
    let mut emit = |last: &Sign| {
        piece(bytes.get(start..last.end).unwrap_or_default());
        start = last.end;
    };
    // The text between two digits is cut as if it were the whole text, because the vocabulary was trained that way.
    let apart = |sign: &Sign| how == SplitRule::DigitsApart && sign.class == CharClass::Number;
    for stretch in signs.chunk_by(|one, next| !apart(one) && !apart(next)) {
        let mut rest = stretch;
        while !rest.is_empty() {
            let (taken, left) = rest.split_at(how.piece(rest).min(rest.len()));
            taken.last().into_iter().for_each(&mut emit);
            rest = left;
        }
    }
}

fn signs(bytes: &[u8]) -> Vec<Sign> {
    let mut signs = Vec::with_capacity(bytes.len());
    let mut end = 0;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            end += c.len_utf8();
            signs.push(Sign { class: class_of(c), c, end });
        }
        for _ in chunk.invalid() {
            end += 1;
            signs.push(Sign { class: CharClass::Other, c: '\0', end });
        }
    }
    signs
}

fn class_of(c: char) -> CharClass {
    match c {
        'a'..='z' | 'A'..='Z' => CharClass::Letter,
        '0'..='9' => CharClass::Number,
        c if c.is_whitespace() => CharClass::Space,
        c if c.is_numeric() => CharClass::Number,
        c if is_letter(c) => CharClass::Letter,
        _ => CharClass::Other,
    }
}

/// Returns the number of characters in the first piece, at least one. `rest` is not empty.
fn gpt2_piece(rest: &[Sign]) -> usize {
    if let Some(length) = contraction(rest) {
        return length;
    }
    let blank = usize::from(rest.first().is_some_and(|sign| sign.c == ' '));
    if let Some(class) = rest.get(blank).map(|sign| sign.class).filter(|class| *class != CharClass::Space) {
        return blank + run(rest, blank, class);
    }
    let spaces = run(rest, 0, CharClass::Space);
    // The last blank before a word belongs to the word.
    if spaces > 1 && spaces < rest.len() { spaces - 1 } else { spaces.max(1) }
}

/// Like [`gpt2_piece`], with two differences. A word includes one character before it that is neither a digit nor a
/// line end. Other characters include the line ends after them.
fn line_piece(rest: &[Sign], digits: usize) -> usize {
    if let Some(length) = contraction_of_any_case(rest) {
        return length;
    }
    let class = |at: usize| rest.get(at).map(|sign| sign.class);
    let line_ends = |from: usize| rest.iter().skip(from).take_while(|sign| sign.ends_line()).count();
    let leads = rest.first().is_some_and(|sign| !sign.ends_line() && sign.class != CharClass::Number);
    match class(0) {
        Some(CharClass::Letter) => return run(rest, 0, CharClass::Letter),
        Some(CharClass::Number) => return run(rest, 0, CharClass::Number).min(digits),
        _ if leads && class(1) == Some(CharClass::Letter) => return 1 + run(rest, 1, CharClass::Letter),
        _ => {}
    }
    let blank = usize::from(rest.first().is_some_and(|sign| sign.c == ' '));
    if class(blank) == Some(CharClass::Other) {
        let signs = blank + run(rest, blank, CharClass::Other);
        return signs + line_ends(signs);
    }
    let spaces = run(rest, 0, CharClass::Space);
    if let Some(last) = rest.iter().take(spaces).rposition(Sign::ends_line) {
        return last + 1;
    }
    // The last blank before a word belongs to the word.
    if spaces > 1 && spaces < rest.len() { spaces - 1 } else { spaces.max(1) }
}

/// Returns the number of consecutive characters of one class from a position on.
fn run(rest: &[Sign], from: usize, class: CharClass) -> usize {
    rest.iter().skip(from).take_while(|sign| sign.class == class).count()
}

/// Returns the length of `'s`, `'t`, `'m`, `'d`, `'re`, `'ve` or `'ll` at the front.
fn contraction(rest: &[Sign]) -> Option<usize> {
    contraction_of(|at| rest.get(at).map(|sign| sign.c))
}

/// Like [`contraction`], in letters of any case.
fn contraction_of_any_case(rest: &[Sign]) -> Option<usize> {
    contraction_of(|at| rest.get(at).map(|sign| sign.c.to_ascii_lowercase()))
}

fn contraction_of(sign: impl Fn(usize) -> Option<char>) -> Option<usize> {
    if sign(0) != Some('\'') {
        return None;
    }
    match (sign(1)?, sign(2)) {
        ('s' | 't' | 'm' | 'd', _) => Some(2),
        ('r' | 'v', Some('e')) | ('l', Some('l')) => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{SplitRule, cut};
    use proptest::prelude::*;

    fn pieces(text: &str, how: SplitRule) -> Vec<&str> {
        let mut pieces = Vec::new();
        cut(text.as_bytes(), how, |piece| pieces.push(str::from_utf8(piece).unwrap()));
        pieces
    }

    #[test]
    fn words_take_the_blank_before_them_and_contractions_stand_alone() {
        assert_eq!(
            pieces("I'll say it's  fine!?\n\n ok", SplitRule::Gpt2),
            ["I", "'ll", " say", " it", "'s", " ", " fine", "!?", "\n\n", " ok"]
        );
        assert_eq!(pieces("x12 34", SplitRule::Gpt2), ["x", "12", " 34"]);
        assert_eq!(pieces("end   ", SplitRule::Gpt2), ["end", "   "]);
        assert_eq!(pieces("'S 'x", SplitRule::Gpt2), ["'", "S", " '", "x"]);
    }

    #[test]
    fn digits_stand_apart_and_end_the_stretch_before_them() {
        assert_eq!(pieces("x12 34", SplitRule::DigitsApart), ["x", "1", "2", " ", "3", "4"]);
        assert_eq!(pieces("a  1²", SplitRule::DigitsApart), ["a", "  ", "1", "²"]);
    }

    #[test]
    fn words_take_a_sign_before_them_and_line_ends_stay_with_signs() {
        let cases: [(&str, &[&str]); 8] = [
            ("(word) it'S 'LL", &["(word", ")", " it", "'S", " '", "LL"]),
            ("a = 12345;\n\n  b", &["a", " =", " ", "1", "2", "3", "4", "5", ";\n\n", " ", " b"]),
            ("end.  \n\t\n x\n", &["end", ".", "  \n\t\n", " x", "\n"]),
            ("  7", &[" ", " ", "7"]),
            ("\tx \u{301}y", &["\tx", " \u{301}", "y"]),
            ("   ", &["   "]),
            ("\n\nx", &["\n\n", "x"]),
            (" \u{a0}x", &[" ", "\u{a0}x"]),
        ];
        for (text, expected) in cases {
            assert_eq!(pieces(text, SplitRule::Qwen2), expected, "{text:?}");
        }
        assert_eq!(pieces("x 1234567²", SplitRule::Llama3), ["x", " ", "123", "456", "7²"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_whatever_the_bytes(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            how in prop::sample::select(vec![SplitRule::Gpt2, SplitRule::DigitsApart, SplitRule::Qwen2, SplitRule::Llama3]),
        ) {
            let mut joined = Vec::new();
            cut(&bytes, how, |piece| {
                assert!(!piece.is_empty());
                joined.extend_from_slice(piece);
            });
            prop_assert_eq!(joined, bytes);
        }
    }
}
