//! "Did you mean": the known name nearest to the written one, if one is near enough.

use std::collections::BTreeSet;

use crate::find::distance;
use crate::finding::quote;

/// The highest number of names listed in one message. A longer list would not be read.
const MAX_LISTED: usize = 8;

/// Returns the nearest known name: one in another case, or with few different letters for its length.
pub(super) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = written.to_lowercase();
    let apart = |name: &str| {
        let name = name.to_lowercase();
        // Two swapped letters count as one mistake.
        if is_swapped(&name, &lower) { 1 } else { distance(&name, &lower) }
    };
    let limit = |name: &str| written.chars().count().max(name.chars().count()) / 3;
    let near = known.into_iter().map(|name| (apart(name), name));
    near.filter(|(apart, name)| *apart <= limit(name)).min().map(|(_, name)| name)
}

/// Returns whether two texts differ only in two adjacent, swapped letters.
fn is_swapped(one: &str, other: &str) -> bool {
    let differ = |(at, (a, b)): (usize, (char, char))| (a != b).then_some((at, a, b));
    let differences: Vec<_> = one.chars().zip(other.chars()).enumerate().filter_map(differ).collect();
    one.chars().count() == other.chars().count()
        && matches!(differences.as_slice(), [(at, a, b), (next, c, d)] if *next == at + 1 && a == d && b == c)
}

/// Returns a hint for an unknown name: the nearest known one, if one exists.
pub(super) fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(written, known).map(|name| format!("Did you mean {}?", quote(name)))
}

/// The first names of a list, formatted for messages.
pub(super) fn list_text(names: &BTreeSet<&str>) -> String {
    let shown: Vec<String> = names.iter().take(MAX_LISTED).map(|name| quote(name)).collect();
    let more = names.len().saturating_sub(shown.len());
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_found_and_what_is_far_is_not() {
        let known = ["category", "excludes", "urgent", "tier", "id"];
        for (written, expected) in [
            ("kategory", Some("category")),
            ("Category", Some("category")),
            ("exclude", Some("excludes")),
            ("teir", Some("tier")),
            ("tir", Some("tier")),
            ("language", None),
            ("ok", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), expected, "{written}");
        }
        assert_eq!(did_you_mean("urgnet", known).as_deref(), Some("Did you mean `urgent`?"));
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..12).map(|number| format!("n{number:02}")).collect();
        let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        assert!(list_text(&names).ends_with("`n07` and 4 more"));
    }
}
