//! Finds the tests of each requirement. Reads test names (`env_002_008_…`, `compat_003_to_007_…`) and ids in the text
//! of a test or in the comment above it (`ENV-002`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Maps a requirement id to the names of its tests, each as `crate::file::test`.
pub(crate) type Index = BTreeMap<String, Vec<String>>;

/// Reads every Rust file below `crates/` and `xtask/`.
pub(crate) fn read(root: &Path) -> Index {
    let mut index = Index::new();
    // These files contain ids as test data, which are no evidence.
    let is_data =
        |file: &Path| ["src/tests_index.rs", "src/decisions.rs"].iter().any(|name| file.ends_with(name));
    for file in rust_files(root).into_iter().filter(|file| !is_data(file)) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let place = place(root, &file);
        for (name, body) in tests(&text) {
            for id in ids_of_name(name).into_iter().chain(ids_in(body)) {
                let shown = index.entry(id).or_default();
                let full = format!("{place}::{name}");
                if !shown.contains(&full) {
                    shown.push(full);
                }
            }
        }
    }
    index
}

/// All Rust files of the repository, sorted.
pub(crate) fn rust_files(root: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    for part in ["crates", "xtask", "fuzz/fuzz_targets"] {
        walk(&root.join(part), &mut files);
    }
    files.sort();
    files
}

/// `crates/cognitive-contract/src/meta.rs` → `contract::meta`.
fn place(root: &Path, file: &Path) -> String {
    let path = file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/");
    let path = path.trim_start_matches("crates/").trim_start_matches("cognitive-").trim_end_matches(".rs");
    let parts = path.split('/').filter(|part| !matches!(*part, "src" | "mod" | "lib"));
    parts.collect::<Vec<_>>().join("::")
}

/// The attributes that mark a test.
const ATTRIBUTES: [&str; 3] = ["#[test]", "#[tokio::test]", "#[tokio::test("];

/// The name and the text of each test. The text extends from the comment above it to the next test.
fn tests(text: &str) -> Vec<(&str, &str)> {
    let mut starts: Vec<usize> =
        ATTRIBUTES.iter().flat_map(|attribute| text.match_indices(attribute)).map(|(at, _)| at).collect();
    starts.sort_unstable();
    let mut found = Vec::new();
    for (position, start) in starts.iter().enumerate() {
        // A test ends at the comment above the next one.
        let end = starts.get(position + 1).map_or(text.len(), |next| comment_above(text, *next));
        let Some(body) = text.get(comment_above(text, *start)..end) else { continue };
        let name = text.get(*start..end).and_then(|rest| rest.split_once("fn ")).map(|(_, rest)| rest);
        let name = name.and_then(|rest| rest.split(['(', '<']).next());
        let is_name = |name: &&str| {
            !name.is_empty() && name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_')
        };
        found.extend(name.filter(is_name).map(|name| (name, body)));
    }
    found
}

/// Returns the start of the comment lines directly above a position.
fn comment_above(text: &str, at: usize) -> usize {
    let mut start = at;
    for line in text.get(..at).unwrap_or_default().trim_end_matches(' ').lines().rev() {
        if !line.trim_start().starts_with("//") {
            break;
        }
        start = start.saturating_sub(line.len() + 1);
    }
    start
}

/// The ids in a test name.
fn ids_of_name(name: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut group = "";
    let mut from = None;
    let mut words = name.split('_').peekable();
    while let Some(word) = words.next() {
        if group == "ext" {
            ids.push(format!("EXT-{}", word.to_uppercase()));
        }
        let digits = digits_after(group);
        let number = (word.len() == digits).then(|| word.parse::<u32>().ok()).flatten();
        match number {
            Some(last) if !group.is_empty() => {
                let first = from.take().unwrap_or(last);
                ids.extend((first..=last).map(|each| format!("{}-{each:0digits$}", group.to_uppercase())));
                if words.peek() == Some(&"to") {
                    words.next();
                    from = Some(last + 1);
                }
            }
            _ => group = word,
        }
    }
    ids
}

/// The ids in a text: requirements such as `ENV-002`, rulings such as `S-04`, extensions such as `EXT-REC`.
fn ids_in(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let words = text.split(|letter: char| !is_part(letter));
    words.filter(|word| is_id(word)).map(str::to_owned).collect()
}

/// The number of digits of an id. Rulings have fewer than requirements.
fn digits_after(group: &str) -> usize {
    if matches!(group, "d" | "D" | "s" | "S") { 2 } else { 3 }
}

fn is_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(group, number)| {
        !group.is_empty()
            && group.chars().all(|letter| letter.is_ascii_uppercase())
            && (group == "EXT" && number.chars().all(|letter| letter.is_ascii_uppercase())
                || is_number(group, number))
    })
}

fn is_number(group: &str, number: &str) -> bool {
    number.len() == digits_after(group) && number.chars().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_quote_single_ids_lists_and_ranges() {
        assert_eq!(ids_of_name("env_002_008_a_success"), ["ENV-002", "ENV-008"]);
        assert_eq!(
            ids_of_name("compat_003_to_005_and_tier_001_x"),
            ["COMPAT-003", "COMPAT-004", "COMPAT-005", "TIER-001"]
        );
        assert_eq!(ids_of_name("s_04_d_05_pauses_for_10_s"), ["S-04", "D-05"]);
        assert!(
            ids_of_name("takes_100_percent").contains(&"TAKES-100".to_owned()),
            "filtered by the list of requirements"
        );
        assert_eq!(ids_of_name("stream_021_ext_neg_who")[1], "EXT-NEG");
        assert_eq!(ids_in("// see VAL-016, S-04 and C-48, EXT-REC"), ["VAL-016", "S-04", "EXT-REC"]);
    }

    #[test]
    fn a_comment_above_a_test_belongs_to_it() {
        for attribute in ["#[test]", "#[tokio::test]", "#[tokio::test(start_paused = true)]"] {
            let text = format!(
                "fn a() {{}}\n\n// GEN-001\n#[test]\nfn b() {{ 1 }}\n\n// GEN-002\n{attribute}\nfn c() {{}}\n"
            );
            let found = tests(&text);
            assert_eq!(found.len(), 2, "{attribute}");
            assert!(found[0].1.starts_with("// GEN-001") && !found[0].1.contains("GEN-002"), "{found:?}");
            assert!(found[1].0 == "c" && found[1].1.starts_with("// GEN-002"), "{found:?}");
        }
    }
}
