//! Checks that `docs/decisions.md` explains every ruling that code, vectors and pages cite by id, such as `D-08`.
//! Requirements such as `ENV-001` are checked by `traceability.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::{root, tests_index};

/// The page with one table row per ruling.
const PATH: &str = "docs/decisions.md";

/// Returns whether a word is the id of a ruling: `C-44`, `S-29`, `D-08` or `EXT-REC`.
fn is_ruling(word: &str) -> bool {
    word.split_once('-').is_some_and(|(group, rest)| match group {
        "C" | "S" | "D" => rest.len() == 2 && rest.bytes().all(|each| each.is_ascii_digit()),
        "EXT" => !rest.is_empty() && rest.bytes().all(|each| each.is_ascii_uppercase()),
        _ => false,
    })
}

/// The ids of rulings in a text.
fn rulings_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|each: char| !each.is_ascii_alphanumeric() && each != '-');
    words.filter(|word| is_ruling(word))
}

/// The ids that the page explains, in its order.
fn explained(page: &str) -> Vec<&str> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let rows = rows.filter(|(id, text)| is_ruling(id) && text.trim_end_matches([' ', '|']).len() > 20);
    rows.map(|(id, _)| id).collect()
}

/// The files that cite rulings.
fn citing_files() -> Vec<PathBuf> {
    let folder = |name: &str, extension: &str| {
        let entries = fs::read_dir(root().join(name)).unwrap().map(|entry| entry.unwrap().path());
        let is_meant = |path: &PathBuf| path.extension().is_some_and(|end| end == extension);
        entries.filter(is_meant).collect::<Vec<_>>()
    };
    let crates = root().join("crates");
    let sources = tests_index::rust_files(&root()).into_iter().filter(|file| file.starts_with(&crates));
    let pages = folder("docs", "md").into_iter().filter(|page| *page != root().join(PATH));
    let others = folder("conformance", "json").into_iter().chain([root().join("ARCHITECTURE.md")]);
    sources.chain(pages).chain(others).collect()
}

#[test]
fn every_cited_ruling_is_explained() {
    let page = fs::read_to_string(root().join(PATH)).unwrap();
    let explained: BTreeSet<&str> = explained(&page).into_iter().collect();
    let mut cited = 0;
    let mut missing: BTreeMap<String, PathBuf> = BTreeMap::new();
    for file in citing_files() {
        let text = fs::read_to_string(&file).unwrap();
        for id in rulings_in(&text) {
            cited += 1;
            if !explained.contains(id) {
                missing.entry(id.to_owned()).or_insert_with(|| file.clone());
            }
        }
    }
    assert!(missing.is_empty(), "{PATH} does not explain these rulings: {missing:#?}");
    assert!(cited > 300, "only {cited} citations were found; has the check gone blind?");
}

#[test]
fn every_ruling_is_explained_once() {
    let page = fs::read_to_string(root().join(PATH)).unwrap();
    let ids = explained(&page);
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "{PATH} explains a ruling twice");
    assert!(ids.len() > 100, "only {} rulings were found; has the check gone blind?", ids.len());
}

#[test]
fn the_checks_find_ids() {
    let text = "// S-04/D-05, EXT-REC (C-44); not ENV-001, AVX-512, D-1, EXT-1 or UTF-8";
    assert_eq!(rulings_in(text).collect::<Vec<_>>(), ["S-04", "D-05", "EXT-REC", "C-44"]);
    let page = "| Id | Rule |\n|---|---|\n| D-08 | Every call is read to its end. |\n| D-09 | – |\n";
    assert_eq!(explained(page), ["D-08"]);
}
