//! The rules of this repository, as tests: file headers, honest maps, the direction of dependencies, fresh pages.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::{page, root, tests_index};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_file_says_in_its_first_line_what_it_is_for() {
    for file in tests_index::rust_files(&root()) {
        let text = fs::read_to_string(&file).unwrap();
        let first = text.lines().find(|line| !line.starts_with("#!")).unwrap_or_default();
        assert!(first.starts_with("//! "), "{} starts without a word on what it is for", file.display());
    }
}

#[test]
fn no_file_grows_beyond_what_one_can_read() {
    for file in tests_index::rust_files(&root()) {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines; split it", file.display());
    }
}

/// Paths between backticks that look like paths of this repository.
fn paths_in(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let tops = ["crates/", "conformance/", "modules/", "docs/", "fuzz/", "xtask/"];
    quoted
        .filter(|word| tops.iter().any(|top| word.starts_with(top)) && !word.contains([' ', '*', '{']))
        .collect()
}

#[test]
fn maps_name_only_what_exists() {
    for page in ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"] {
        let text = read(page);
        let paths = paths_in(&text);
        for path in &paths {
            assert!(root().join(path).exists(), "{page} names {path}, which does not exist");
        }
        if page == "ARCHITECTURE.md" {
            assert!(paths.len() > 30, "the map names {} paths; has the check gone blind?", paths.len());
        }
    }
}

/// What each crate may depend on within the workspace. Nothing else is allowed.
const ARROWS: [(&str, &[&str]); 9] = [
    ("cognitive-contract", &[]),
    ("cognitive-http", &["cognitive-contract", "cognitive-runtime"]),
    ("cognitive-library", &["cognitive-contract"]),
    ("cognitive-local", &["cognitive-contract"]),
    ("cognitive-media", &["cognitive-contract"]),
    ("cognitive-net", &["cognitive-contract"]),
    ("cognitive-runtime", &["cognitive-contract", "cognitive-library"]),
    ("cognitive-store", &["cognitive-contract"]),
    (
        "cogn",
        &[
            "cognitive-contract",
            "cognitive-http",
            "cognitive-library",
            "cognitive-local",
            "cognitive-media",
            "cognitive-net",
            "cognitive-runtime",
            "cognitive-store",
        ],
    ),
];

/// Crates that would open a door in a crate that has none.
const DOORS: [(&str, &[&str]); 2] = [
    ("cognitive-contract", &["tokio", "reqwest", "tempfile", "rustix", "clap", "anstream"]),
    ("cognitive-runtime", &["tokio", "reqwest", "tempfile", "rustix", "clap", "anstream"]),
];

fn dependencies(name: &str) -> Vec<String> {
    let manifest = read(&format!("crates/{name}/Cargo.toml"));
    let section =
        manifest.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or_default();
    let names = section.lines().skip(1).filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty() && !name.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn dependencies_point_in_one_direction() {
    let crates: BTreeMap<&str, &[&str]> = ARROWS.into();
    let on_disk = fs::read_dir(root().join("crates")).unwrap().count();
    assert_eq!(on_disk, crates.len(), "a new crate needs its line in ARROWS");
    for (name, allowed) in ARROWS {
        let found = dependencies(name);
        assert!(!found.is_empty(), "{name}: the manifest was not understood");
        for dependency in found.iter().filter(|each| crates.contains_key(each.as_str())) {
            assert!(allowed.contains(&dependency.as_str()), "{name} may not depend on {dependency}");
        }
    }
    for (name, doors) in DOORS {
        for dependency in dependencies(name) {
            assert!(
                !doors.contains(&dependency.as_str()),
                "{name} has no door, so it may not depend on {dependency}"
            );
        }
    }
}

#[test]
fn every_must_and_should_is_shown_by_a_test() {
    let gaps = page::gaps(&root()).unwrap();
    assert!(gaps.is_empty(), "no test shows: {}", gaps.join(", "));
}

#[test]
fn the_page_of_requirements_is_fresh() {
    let page = page::render(&root()).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(page::PATH), page).unwrap();
        return;
    }
    let stored = fs::read_to_string(root().join(page::PATH)).unwrap_or_default();
    let stale = stored.lines().zip(page.lines()).find(|(old, new)| old != new);
    assert!(
        stored == page,
        "{} is stale; run `cargo xtask generate`. First difference: {stale:#?}",
        page::PATH
    );
}

// GEN-001: the words are those of RFC 2119, plus the two that say where a rule comes from instead.
#[test]
fn gen_001_requirement_words_are_the_known_ones() {
    for requirement in page::requirements(&root()).unwrap() {
        let known = ["MUST", "MUST NOT", "SHOULD", "MAY", "implied", "ruling"];
        assert!(known.contains(&requirement.strength.as_str()), "{}", requirement.id);
        assert!((1..=4).contains(&requirement.level), "{}", requirement.id);
    }
}

// GEN-009: the claim in the README is the highest level whose vectors all pass, and GEN-003: the vectors of a release
// stay, so that a later release is measured by them too.
#[test]
fn gen_009_003_the_claimed_level_is_the_one_that_passes() {
    let cases = cogn::conformance::load(&root().join("conformance")).unwrap();
    let passes = |level: u8| cogn::conformance::run(&cases, Some(level)).holds();
    let claimed = (1..=4).take_while(|level| passes(*level)).last().unwrap_or(0);
    let claim = format!("conformance level {claimed}");
    assert!(read("README.md").to_lowercase().contains(&claim), "README.md should claim: {claim}");
}

#[test]
fn nothing_names_a_machine() {
    let words = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
    for part in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", ".ci/run", "Cargo.toml"] {
        assert!(!words.iter().any(|word| read(part).contains(word)), "{part}");
    }
    for file in tests_index::rust_files(Path::new(&root())) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!words.iter().any(|word| text.contains(word)), "{}", file.display());
    }
}
