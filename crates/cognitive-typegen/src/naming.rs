//! Names for types and members: `text-classifier` becomes `TextClassifier`, and no type name is given twice.

use std::collections::BTreeSet;

/// The names of types that are taken.
#[derive(Debug, Default)]
pub(crate) struct TypeNames(BTreeSet<String>);

impl TypeNames {
    /// A name like the wanted one that no other type has.
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

/// A name for a type: words begin with capitals, and nothing else than letters and digits is left.
pub(crate) fn pascal_case(text: &str) -> String {
    let mut name = String::new();
    for word in text.split(|letter: char| !is_in_name(letter)).filter(|word| !word.is_empty()) {
        let mut letters = word.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        name.extend(letters);
    }
    if name.starts_with(|letter: char| !letter.is_alphabetic()) { format!("T{name}") } else { name }
}

/// A name for a member in the style of Rust and Python; empty where nothing is left of it.
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

/// Whether all three languages take a letter within a name. Digits of other scripts and fractions are none to them.
fn is_in_name(letter: char) -> bool {
    letter.is_alphabetic() || letter.is_ascii_digit()
}

/// Whether a name can be written as it is in all three languages, keywords aside.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// A description on one line per paragraph, safe within a comment of the three languages: a module may be a stranger's, and
/// no text of it may end the comment that it is in. To Python a lone carriage return is the end of a line.
pub(crate) fn comment_lines(description: &str) -> Vec<String> {
    let visible = |letter: char| if letter.is_control() && letter != '\n' { ' ' } else { letter };
    let safe: String = description.chars().map(visible).collect();
    let safe = safe.replace("*/", "* /").replace("\"\"\"", "'''").replace('\\', "\\\\");
    safe.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The lines of a description, each behind a prefix.
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
