//! Decides which regular expressions a target accepts. Compiles none: it looks only at the characters. If in doubt, it
//! rejects the expression, since one unknown expression makes a target refuse the whole schema.

/// The kind of expressions that a target supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patterns {
    /// None.
    None,
    /// Features of every automaton: no look-around, no back-reference, no word boundary, no huge repetition.
    Simple,
    /// Expressions that llama.cpp converts to a grammar: anchored at both ends, no special groups, no classes such as
    /// `\d`.
    Gbnf,
}

/// A repetition beyond this makes automata too large.
const MAX_REPETITIONS: u32 = 1_000;

impl Patterns {
    pub(super) fn accept(self, pattern: &str) -> bool {
        match self {
            Self::None => false,
            Self::Simple => {
                escapes_are(pattern, is_simple_escape) && groups_are(pattern, &[':']) && is_small(pattern)
            }
            Self::Gbnf => {
                let inner = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
                inner.is_some_and(|inner| {
                    escapes_are(inner, is_gbnf_escape) && groups_are(inner, &[]) && is_small(inner)
                })
            }
        }
    }
}

/// Returns whether every `\x` satisfies `allowed`. Its second argument is true inside a character class.
fn escapes_are(pattern: &str, allowed: impl Fn(char, bool) -> bool) -> bool {
    let mut in_class = false;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped) if allowed(escaped, in_class) => {}
                _ => return false,
            },
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
    }
    true
}

fn is_simple_escape(escaped: char, _in_class: bool) -> bool {
    "dDwWsSnrt".contains(escaped) || escaped.is_ascii_punctuation()
}

fn is_gbnf_escape(escaped: char, in_class: bool) -> bool {
    if in_class { "[]\\".contains(escaped) } else { "^$.[]()|{}*+?".contains(escaped) }
}

/// Returns whether every `(?` is followed by one of `allowed`.
fn groups_are(pattern: &str, allowed: &[char]) -> bool {
    pattern.split("(?").skip(1).all(|rest| rest.starts_with(allowed))
}

fn is_small(pattern: &str) -> bool {
    let counts = pattern.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(counts, _)| counts);
    counts.flat_map(|counts| counts.split(',')).all(|count| {
        let is_number = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
        !is_number || count.parse::<u32>().is_ok_and(|count| count <= MAX_REPETITIONS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_05_simple_patterns_pass_and_others_do_not() {
        for pattern in [r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$", r"\S", r"^(?:a|b)\.\d+$", "", "a{x}"] {
            assert!(Patterns::Simple.accept(pattern), "{pattern}");
        }
        for pattern in [r"(?=a)", r"(?<!a)b", r"(a)\1", r"\bword\b", r"\p{L}", "a{2000}", "(?i)a", "\\"] {
            assert!(!Patterns::Simple.accept(pattern), "{pattern}");
        }
        assert!(!Patterns::None.accept("a"));
    }

    #[test]
    fn d_05_llama_cpp_wants_anchors_and_plain_classes() {
        for pattern in [r"^(image|audio|video)/[a-z0-9.+-]+$", r"^a\.b$", r"^[\[\]]$"] {
            assert!(Patterns::Gbnf.accept(pattern), "{pattern}");
        }
        for pattern in [r"\S", r"^\d+$", r"^(?:a)$", r"^[\d]$", r"^a\$", "^a{5000}$", "a$"] {
            assert!(!Patterns::Gbnf.accept(pattern), "{pattern}");
        }
    }
}
