//! Names of new modules: a check, a suggestion for an invalid name, and forms for headings and YAML. Does not repeat
//! the rule: the schema of the manifest decides.

use serde_json::json;

use cognitive_contract::manifest::violations;

use super::InitError;

/// The longest name that the manifest allows.
const MAX_LENGTH: usize = 64;

/// Refuses a name that the manifest would refuse.
pub fn check(name: &str) -> Result<(), InitError> {
    if is_valid(name) {
        return Ok(());
    }
    Err(InitError::Name { name: name.to_owned(), suggestion: suggestion(name) })
}

fn is_valid(name: &str) -> bool {
    violations(&json!({ "name": name })).is_empty()
}

/// Returns the nearest valid name: `My Module` and `myModule` become `my-module`.
#[must_use]
pub fn suggestion(name: &str) -> Option<String> {
    let mut slug = String::new();
    let mut after_small = false;
    for each in name.chars() {
        let starts_word = each.is_ascii_uppercase() && after_small;
        if (starts_word || !each.is_ascii_alphanumeric()) && !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if each.is_ascii_alphanumeric() {
            slug.push(each.to_ascii_lowercase());
        }
        after_small = each.is_ascii_lowercase() || each.is_ascii_digit();
    }
    if slug.starts_with(|first: char| first.is_ascii_digit()) {
        slug.insert_str(0, "module-");
    }
    slug.truncate(MAX_LENGTH);
    let slug = slug.trim_end_matches('-').to_owned();
    is_valid(&slug).then_some(slug)
}

/// The name as a heading: `my-module` becomes `My Module`.
pub(super) fn title(name: &str) -> String {
    let words = name.split('-').filter(|word| !word.is_empty()).map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The name as a YAML scalar. Quotes words that some YAML parsers read as a boolean or null.
pub(super) fn yaml(name: &str) -> String {
    match name {
        "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" => format!("\"{name}\""),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_names_come_with_a_good_one() {
        for (given, expected) in [
            ("My Module", Some("my-module")),
            ("myModule", Some("my-module")),
            ("HTTPServer2Go", Some("httpserver2-go")),
            ("snake_case__name", Some("snake-case-name")),
            ("  ./code/review!  ", Some("code-review")),
            ("3d-printer", Some("module-3d-printer")),
            ("-a-", Some("a")),
            ("café", Some("caf")),
            ("", None),
            ("猫", None),
            ("---", None),
        ] {
            assert!(!is_valid(given), "{given}");
            assert_eq!(suggestion(given).as_deref(), expected, "{given}");
        }
        let long = suggestion(&format!("{}-{}", "a".repeat(63), "b".repeat(9)));
        assert_eq!(long, Some("a".repeat(63)));
    }

    #[test]
    fn the_whole_message_and_hint() {
        let error = check("My Module").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a module name has lower-case letters, digits and hyphens, starts with a letter and has at most 64 characters, found: `My Module`"
        );
        assert_eq!(error.hint(), "Use `my-module`");
        assert_eq!(check("").unwrap_err().hint(), "Use a name such as `my-module`");
    }

    #[test]
    fn names_are_shown_as_titles() {
        assert_eq!(title("my-2nd-module"), "My 2nd Module");
        assert_eq!(title("a--b-"), "A B");
    }
}
