//! Judges the names of types, functions and files.
//!
//! A name is *bare* if it is one word and says nothing about the thing: a past participle (`-ed`, or an irregular one),
//! an adverb, a pronoun, a preposition or a conjunction. The reader expects a verb (`open`), a noun (`cached_answers`) or
//! a predicate (`is_open`). A participle beside another word is no bare name: `allowed_origins`. Words that the standard
//! library gives to functions are none either: `and`, `or`, `not`, `with`, `from`, `all`, `any`, `next`, `now`.

/// Nouns of this repository that look like bare words. CONTRIBUTING.md gives the reason for each.
pub(super) const ALLOWED: [&str; 4] = ["feed", "need", "seed", "thought"];

/// Past participles without the ending "ed". Words that are verbs in the present tense too, such as `read`, are missing.
const PARTICIPLES: [&str; 97] = [
    "been",
    "begun",
    "bent",
    "bitten",
    "blown",
    "born",
    "bought",
    "bound",
    "broke",
    "broken",
    "brought",
    "built",
    "came",
    "caught",
    "chosen",
    "come",
    "dealt",
    "done",
    "drawn",
    "driven",
    "eaten",
    "fallen",
    "fed",
    "felt",
    "forbidden",
    "forgiven",
    "forgotten",
    "found",
    "frozen",
    "gave",
    "given",
    "gone",
    "got",
    "gotten",
    "grown",
    "heard",
    "held",
    "hidden",
    "kept",
    "knew",
    "known",
    "laid",
    "led",
    "left",
    "lent",
    "lost",
    "made",
    "meant",
    "met",
    "misspelt",
    "paid",
    "proven",
    "ran",
    "rebuilt",
    "ridden",
    "risen",
    "rung",
    "said",
    "sat",
    "seen",
    "sent",
    "shaken",
    "shown",
    "shrunk",
    "slept",
    "sold",
    "sought",
    "spelt",
    "spent",
    "spoken",
    "spread",
    "stolen",
    "stood",
    "struck",
    "stuck",
    "sunk",
    "swept",
    "sworn",
    "taken",
    "taught",
    "thought",
    "threw",
    "thrown",
    "told",
    "took",
    "torn",
    "understood",
    "unheard",
    "unkept",
    "unknown",
    "unmade",
    "unread",
    "unseen",
    "unsent",
    "unwritten",
    "won",
    "written",
];

/// Adverbs, pronouns, prepositions, conjunctions, and adjectives that only point at a state.
const POINTERS: [&str; 90] = [
    "about",
    "above",
    "absent",
    "across",
    "after",
    "again",
    "against",
    "alone",
    "along",
    "also",
    "among",
    "anew",
    "anyone",
    "anything",
    "apart",
    "around",
    "aside",
    "astray",
    "away",
    "because",
    "before",
    "behind",
    "below",
    "beneath",
    "beside",
    "best",
    "between",
    "beyond",
    "both",
    "busy",
    "but",
    "current",
    "during",
    "each",
    "either",
    "else",
    "elsewhere",
    "enough",
    "ever",
    "everything",
    "extra",
    "few",
    "fewer",
    "here",
    "inside",
    "instead",
    "itself",
    "least",
    "less",
    "literally",
    "more",
    "most",
    "neither",
    "never",
    "nobody",
    "nothing",
    "nowhere",
    "old",
    "one",
    "only",
    "other",
    "others",
    "out",
    "outside",
    "over",
    "own",
    "past",
    "patiently",
    "ready",
    "rest",
    "rests",
    "same",
    "several",
    "slowly",
    "some",
    "somebody",
    "something",
    "somewhere",
    "stale",
    "still",
    "such",
    "through",
    "together",
    "under",
    "until",
    "which",
    "whole",
    "whose",
    "why",
    "within",
];

/// Words that may name a function, as they do in the standard library, but no type.
const VERBS: [&str; 5] = ["cut", "next", "now", "read", "set"];

/// Furniture and places of work. A type is named after its role instead, such as `ReviewQueue` or `HelperPool`.
const FURNITURE: [&str; 9] =
    ["Crew", "Desk", "Door", "Office", "Purse", "Shelf", "Workbench", "Workroom", "Workshop"];

/// Returns whether the name of a function or a file is bare, such as `told`.
pub(super) fn is_bare(name: &str) -> bool {
    let is_regular = name.len() > 3 && name.ends_with("ed");
    let is_listed = PARTICIPLES.contains(&name) || POINTERS.contains(&name);
    (is_regular || is_listed) && !name.contains('_') && !ALLOWED.contains(&name)
}

/// Returns whether the name of a type is bare, such as `Told`.
pub(super) fn is_bare_type(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(|each| each.is_ascii_lowercase() || each.is_ascii_digit());
    let word = name.to_ascii_lowercase();
    is_one_word && (is_bare(&word) || VERBS.contains(&word.as_str()))
}

/// Returns whether one of the words in a name is furniture, such as `Desk`.
pub(super) fn is_furniture(name: &str) -> bool {
    let starts = name.match_indices(|each: char| each.is_ascii_uppercase()).map(|(at, _)| at);
    starts.filter_map(|at| name.get(at..)).any(|rest| {
        let end = rest.get(1..).and_then(|rest| rest.find(|each: char| each.is_ascii_uppercase()));
        FURNITURE.contains(&end.and_then(|end| rest.get(..=end)).unwrap_or(rest))
    })
}

/// The types and aliases that a line of code defines.
pub(super) fn types(code: &str) -> impl Iterator<Item = &str> {
    let defined =
        ["struct", "enum", "trait", "type"].into_iter().flat_map(|keyword| names_behind(code, keyword));
    defined.filter(|name| name.starts_with(|each: char| each.is_ascii_uppercase()))
}

/// The functions that a line of code defines.
pub(super) fn functions(code: &str) -> impl Iterator<Item = &str> {
    names_behind(code, "fn")
}

/// The names behind a keyword.
fn names_behind<'c>(code: &'c str, keyword: &'static str) -> impl Iterator<Item = &'c str> {
    let is_name = |each: char| each.is_alphanumeric() || each == '_';
    code.match_indices(keyword).filter_map(move |(at, _)| {
        let is_part = code.get(..at)?.ends_with(is_name);
        let name = code.get(at + keyword.len()..)?.strip_prefix(' ')?.trim_start();
        let end = name.find(|each| !is_name(each)).unwrap_or(name.len());
        name.get(..end).filter(|name| !is_part && !name.is_empty())
    })
}

/// The name of a module by its path: the file, or the folder of `mod.rs`.
pub(super) fn module(path: &str) -> &str {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{measure, read, shipped_files};
    use super::*;

    /// The most names in [`ALLOWED`]. Never raise it.
    const MOST_ALLOWED: usize = 10;

    #[test]
    fn bare_names_are_single_words() {
        let bare = ["told", "opened", "astray", "below", "whose", "written", "unread", "wanted"];
        assert!(bare.into_iter().all(is_bare));
        let verbs = ["open", "read", "and", "or", "with", "from", "all", "next", "now", "embedding", "id"];
        assert!(!verbs.into_iter().any(is_bare));
        let compounds = ["is_told", "allowed_origins", "mark_sent", "below_path", "feed", "thought"];
        assert!(!compounds.into_iter().any(is_bare));
    }

    #[test]
    fn types_are_judged_by_their_words() {
        assert!(
            ["Told", "Quantised", "Kept", "Astray", "Whose", "Next", "Set"].into_iter().all(is_bare_type)
        );
        let others = ["Feed", "Bed", "ToldText", "SharedCache", "Reader", "Thought"];
        assert!(!others.into_iter().any(is_bare_type));
        assert!(["Desk", "ReviewDesk", "DeskState", "McpDoorOpen"].into_iter().all(is_furniture));
        assert!(!["Desktop", "ClaudeDesktop", "Officer", "HelperPool"].into_iter().any(is_furniture));
    }

    #[test]
    fn definitions_are_found_by_their_keywords() {
        let code =
            "pub struct A; enum B<C> { D } impl E {} pub(crate) trait F; type G = fn(H); typed I; mytype J";
        assert_eq!(types(code).collect::<BTreeSet<_>>(), BTreeSet::from(["A", "B", "F", "G"]));
        let code = "pub async fn kept(a: fn(u8)) -> impl Fn() { fn told<T>() {} defn other }";
        assert_eq!(functions(code).collect::<Vec<_>>(), ["kept", "told"]);
        assert_eq!(["a/src/b/told.rs", "a/src/told/mod.rs"].map(module), ["told"; 2]);
    }

    /// Every exception is used, has its reason in CONTRIBUTING.md, and there are few.
    #[test]
    fn exceptions_are_few_and_have_reasons() {
        assert!(ALLOWED.len() <= MOST_ALLOWED, "{} exceptions, {MOST_ALLOWED} are the limit", ALLOWED.len());
        let root = crate::root();
        let report = measure(&root).unwrap();
        assert!(report.functions > 8_000, "only {} functions; has the check gone blind?", report.functions);
        let mut used: BTreeSet<String> = report.types.iter().map(|name| name.to_ascii_lowercase()).collect();
        for (path, text) in shipped_files(&root).unwrap() {
            used.insert(module(&path).to_owned());
            used.extend(text.lines().flat_map(functions).map(str::to_owned));
        }
        let page = read(&root.join("CONTRIBUTING.md")).unwrap();
        let section = page.split("\n## ").find(|section| section.starts_with("Names")).unwrap();
        for name in ALLOWED {
            assert!(used.contains(name), "nothing is named `{name}`: remove the exception");
            assert!(section.contains(&format!("`{name}`")), "CONTRIBUTING.md gives no reason for `{name}`");
        }
    }
}
