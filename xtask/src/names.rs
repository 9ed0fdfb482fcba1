//! One word, one meaning: types do not share names, and the glossary of ARCHITECTURE.md names existing types. Skips
//! test code and examples. The few remaining shared names are counted, and the count may only fall.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::{root, tests_index};

/// The number of types that share their name with another type. Lower it when the number falls; never raise it.
const SHARED_NAMES: usize = 14;

/// The names of types with the files that define them.
fn types() -> BTreeMap<String, Vec<String>> {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in tests_index::rust_files(&root()) {
        let path = file.strip_prefix(root()).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
        if !path.starts_with("crates/") || !path.contains("/src/") || is_test {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        // Unit tests are at the end of a file.
        let shipped = text.split("#[cfg(test)]\nmod ").next().unwrap();
        for name in shipped.lines().filter_map(defined) {
            types.entry(name.to_owned()).or_default().push(path.clone());
        }
    }
    types
}

/// Returns the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let name = ["struct ", "enum ", "trait "].iter().find_map(|keyword| line.strip_prefix(keyword))?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
    name.get(..end).filter(|name| name.starts_with(|letter: char| letter.is_ascii_uppercase()))
}

#[test]
fn types_do_not_share_their_names() {
    let types = types();
    assert!(types.len() > 500, "only {} types were found; has the check gone blind?", types.len());
    let shared: Vec<_> = types.iter().filter(|(_, files)| files.len() > 1).collect();
    let count: usize = shared.iter().map(|(_, files)| files.len()).sum();
    let list: Vec<String> =
        shared.iter().map(|(name, files)| format!("{name}: {}", files.join(", "))).collect();
    assert!(
        count <= SHARED_NAMES,
        "{count} types share a name, {SHARED_NAMES} are allowed; rename the new one:\n{}",
        list.join("\n")
    );
    assert!(count + 5 > SHARED_NAMES, "only {count} types share a name: lower SHARED_NAMES to {count}");
}

/// The rows of the glossary: a word, its meaning, and its type or file.
fn glossary() -> Vec<[String; 3]> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with("Glossary")).unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Word"));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned());
        [(); 3].map(|()| cells.next().unwrap_or_default())
    })
    .collect()
}

#[test]
fn the_glossary_is_true() {
    let rows = glossary();
    assert!(rows.len() >= 40, "the glossary has {} words", rows.len());
    let words: BTreeSet<&str> = rows.iter().map(|[word, ..]| word.as_str()).collect();
    assert_eq!(words.len(), rows.len(), "a word has two meanings");
    let types = types();
    for [word, meaning, names] in &rows {
        assert!(!meaning.is_empty() && !names.is_empty(), "{word} is not explained");
        for name in names.split('`').skip(1).step_by(2).filter(|name| !name.contains(['/', '.'])) {
            let files = types.get(name).map_or(0, Vec::len);
            assert_eq!(files, 1, "the glossary says that {word} is `{name}`, which {files} files define");
        }
    }
}
