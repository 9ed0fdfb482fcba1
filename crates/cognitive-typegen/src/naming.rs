//! Names for types and members: `text-classifier` becomes `TextClassifier`. No type name is used twice.

use std::collections::BTreeSet;

/// The type names that are already used.
#[derive(Debug, Default)]
pub(crate) struct TypeNames(BTreeSet<String>);

impl TypeNames {
    /// Returns the wanted name, with a number if another type already has it.
    pub(crate) fn claim(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        name
    }
}

/// Returns a name for a type: capitalised words with only letters and digits.
pub(crate) fn pascal_case(text: &str) -> String {
    let mut name = String::new();
    for word in text.split(|letter: char| !is_in_name(letter)).filter(|word| !word.is_empty()) {
        let mut letters = word.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        name.extend(letters);
    }
    if name.starts_with(|letter: char| !letter.is_alphabetic()) { format!("T{name}") } else { name }
}

/// Returns a name for a member in the style of Rust and Python; empty if no letter or digit is left.
pub(crate) fn snake_case(text: &str) -> String {
    let mut name = String::new();
    for letter in text.chars() {
        if letter.is_uppercase()
            && name.ends_with(|before: char| before.is_lowercase() || before.is_numeric())
        {
            name.push('_');
        }
        if is_in_name(letter) {
            name.extend(letter.to_lowercase());
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_end_matches('_');
    if name.starts_with(|letter: char| letter.is_numeric()) { format!("n{name}") } else { name.to_owned() }
}

/// Returns whether all three languages allow a character within a name. They allow neither digits of other scripts nor
/// fractions.
fn is_in_name(letter: char) -> bool {
    letter.is_alphabetic() || letter.is_ascii_digit()
}

/// Returns whether a name is valid in all three languages, except for keywords.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Returns a description with one line per paragraph, safe within a comment of the three languages. A module may be
/// untrusted, so its text must not end the comment. Python treats a lone carriage return as the end of a line.
pub(crate) fn comment_lines(description: &str) -> Vec<String> {
    let visible = |letter: char| if letter.is_control() && letter != '\n' { ' ' } else { letter };
    let safe: String = description.chars().map(visible).collect();
    let safe = safe.replace("*/", "* /").replace("\"\"\"", "'''").replace('\\', "\\\\");
    safe.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns the lines of a description, each with a prefix.
pub(crate) fn prefixed_lines(description: Option<&str>, prefix: &str) -> String {
    let mut text = String::new();
    for line in description.map(comment_lines).unwrap_or_default() {
        text.push_str(prefix);
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_with_capitals() {
        assert_eq!(pascal_case("text-classifier"), "TextClassifier");
        assert_eq!(pascal_case("already_sentToHim"), "AlreadySentToHim");
        assert_eq!(pascal_case("2fast"), "T2fast");
        assert_eq!(snake_case("confidenceScore"), "confidence_score");
        assert_eq!(snake_case("a-b c"), "a_b_c");
        assert_eq!(snake_case("???"), "");
    }

    #[test]
    fn no_text_of_a_module_ends_the_comment_that_it_is_in() {
        let hostile = "a\rimport os\u{85}b */ c \"\"\" d \\";
        assert_eq!(comment_lines(hostile), [r"a import os b * / c ''' d \\"]);
        assert_eq!(comment_lines("one\n\n two "), ["one", "two"]);
    }

    #[test]
    fn no_name_is_given_twice() {
        let mut names = TypeNames::default();
        assert_eq!(["A", "A", "A2", "A"].map(|name| names.claim(name)), ["A", "A2", "A22", "A3"]);
    }
}
