//! Traceability, as tests: the list of requirements matches the specification, every entry has evidence or a reason,
//! the page is fresh, and published vectors do not change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use cognitive_testing::conformance::{self, Vector, VectorStatus};
use cognitive_testkit::{Lack, skip};
use sha2::{Digest as _, Sha256};

use crate::{page, root};

#[test]
fn every_requirement_has_a_test_or_says_why_not() {
    let gaps = page::gaps(&root()).unwrap();
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

// The number is repeated here, so that no entry can be lost where the specification is not available.
#[test]
fn no_requirement_is_left_out() {
    let requirements = page::requirements(&root()).unwrap();
    let ids: BTreeSet<&str> = requirements.iter().map(|each| each.id.as_str()).collect();
    assert_eq!(ids.len(), requirements.len(), "an id stands twice");
    let count = |decisions: bool| {
        requirements.iter().filter(|each| each.in_catalogue() && (each.group() == "D") == decisions).count()
    };
    assert_eq!((count(false), count(true)), (402, 33));
    for each in &requirements {
        let words = ["MUST", "MUST NOT", "SHOULD", "MAY", "implied", "ruling"];
        assert!(words.contains(&each.strength.as_str()), "{}", each.id);
        assert!(each.level.is_none_or(|level| (1..=4).contains(&level)), "{}", each.id);
    }
}

#[test]
fn the_list_is_that_of_the_specification() {
    let Ok(text) = fs::read_to_string(root().join("../shared/spec/REQUIREMENTS.md")) else {
        return skip(Lack::Shared);
    };
    // Each entry begins with its id in bold, followed by its strength or, for decisions, by its title.
    let entries = text.lines().filter_map(|line| line.strip_prefix("- **"));
    let ids = entries.filter_map(|entry| entry.split(['*', ' ']).next());
    let theirs: BTreeSet<&str> = ids.filter(|id| !id.starts_with("C-") && !id.starts_with("S-")).collect();
    let requirements = page::requirements(&root()).unwrap();
    let catalogue = requirements.iter().filter(|each| each.in_catalogue());
    let ours: BTreeSet<&str> = catalogue.map(|each| each.id.as_str()).collect();
    assert_eq!(ours.symmetric_difference(&theirs).collect::<Vec<_>>(), Vec::<&&str>::new());
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

/// The file with the published vectors: id → digest of input and expectation.
const PUBLISHED: &str = "xtask/published-vectors.json";

/// The digest of a vector's demand. Its title and sources may be reworded.
fn digest(case: &Vector) -> String {
    let demand = serde_json::json!([case.level, case.op, case.given, case.expect]).to_string();
    Sha256::digest(demand).iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

// GEN-003: the vectors of a release also apply to the next one. A published vector may change or be removed only if the
// changelog names it. `UPDATE_PUBLISHED=1` at a release records the vectors of that release.
#[test]
fn gen_003_published_vectors_still_stand_and_pass() {
    let cases = conformance::load(&root().join("conformance")).unwrap();
    let now: BTreeMap<&str, String> = cases.iter().map(|case| (case.id.as_str(), digest(case))).collect();
    if std::env::var_os("UPDATE_PUBLISHED").is_some() {
        fs::write(root().join(PUBLISHED), serde_json::to_string_pretty(&now).unwrap() + "\n").unwrap();
        return;
    }
    let published = fs::read_to_string(root().join(PUBLISHED)).unwrap();
    let published: BTreeMap<String, String> = serde_json::from_str(&published).unwrap();
    assert!(published.len() >= 445, "{} vectors were published", published.len());
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let report = conformance::run(&cases, None);
    for (id, digest) in &published {
        let told = changelog.contains(&format!("`{id}`"));
        assert!(
            told || now.get(id.as_str()) == Some(digest),
            "{id} changed, and CHANGELOG.md does not name it"
        );
        let result = report.results.iter().find(|result| result.id == *id);
        assert!(
            result.map_or(told, |result| result.status == VectorStatus::Passed),
            "{id} was published and does not pass"
        );
    }
}
