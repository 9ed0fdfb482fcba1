//! `docs/conformance.md`: each requirement with the tests that cover it, or the reason for having none. Counts a vector
//! only if it passes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cognitive_testing::conformance::{self, VectorStatus};
use serde::Deserialize;

use crate::tests_index;

/// The path of the page.
pub(crate) const PATH: &str = "docs/conformance.md";

/// The groups of ids in the order of the page, with their titles.
const GROUPS: [(&str, &str); 30] = [
    ("GEN", "General and versioning"),
    ("FMT", "Formats, files, discovery"),
    ("MAN", "The manifest, `module.yaml`"),
    ("SCH", "The contract, `schema.json`"),
    ("ENV", "The envelope"),
    ("META", "Meta"),
    ("DATA", "Data"),
    ("RISK", "Risk"),
    ("OVER", "Overflow and insights"),
    ("ENUM", "Extensible enums"),
    ("TIER", "Tiers"),
    ("PIPE", "The pipeline"),
    ("REPAIR", "The repair pass"),
    ("ERR", "Errors"),
    ("COMPAT", "Compatibility with v2.1 and older"),
    ("MIG", "Migration"),
    ("PROMPT", "The prompt"),
    ("STREAM", "Streams"),
    ("MEDIA", "Media"),
    ("CAP", "Capabilities"),
    ("SEC", "Security"),
    ("CTX", "Context"),
    ("COMP", "Composition"),
    ("POL", "Policies, tools, invocation"),
    ("VAL", "Validation of modules"),
    ("CLI", "The command line"),
    ("API", "Interfaces for programs"),
    ("REG", "Registry and packages"),
    ("TEST", "Tests and certification"),
    ("D", "Decisions of this project"),
];

/// Groups outside the catalogue: gaps of the specification, and extensions for the next draft.
const FURTHER: [(&str, &str); 2] =
    [("S", "Places where the specification is silent"), ("EXT", "Extensions after v2.5.0")];

/// A rule of the specification.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirement {
    pub(crate) id: String,
    pub(crate) strength: String,
    /// The lowest conformance level that requires it, if any.
    pub(crate) level: Option<u8>,
    pub(crate) rule: String,
    /// The reason why no test covers it. Must be removed when a test exists.
    pub(crate) no_test: Option<String>,
    /// The part that is not implemented, although tests cover the rest.
    pub(crate) not_built: Option<String>,
}

impl Requirement {
    /// `MEDIA` of `MEDIA-003`.
    pub(crate) fn group(&self) -> &str {
        self.id.split('-').next().unwrap_or_default()
    }

    /// Returns whether it is in the specification's catalogue, and not an addition to it.
    pub(crate) fn in_catalogue(&self) -> bool {
        GROUPS.iter().any(|(group, _)| *group == self.group())
    }
}

/// The evidence for a requirement.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    tests: Vec<String>,
    vectors: Vec<String>,
}

/// The requirements, in the order of the page.
pub(crate) fn requirements(root: &Path) -> Result<Vec<Requirement>, String> {
    let text = fs::read_to_string(root.join("xtask/requirements.json")).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Returns the evidence by requirement id.
pub(crate) fn evidence(root: &Path) -> Result<BTreeMap<String, Evidence>, String> {
    let mut evidence: BTreeMap<String, Evidence> = BTreeMap::new();
    for (id, tests) in tests_index::read(root) {
        evidence.entry(id).or_default().tests = tests;
    }
    let cases = conformance::load(&root.join("conformance")).map_err(|error| error.to_string())?;
    let report = conformance::run(&cases, None);
    for (case, result) in cases.iter().zip(&report.results) {
        if result.status == VectorStatus::Passed {
            for id in &case.requirements {
                evidence.entry(id.clone()).or_default().vectors.push(case.id.clone());
            }
        }
    }
    Ok(evidence)
}

/// Requirements with neither evidence nor a reason, and reasons that a test has made obsolete.
pub(crate) fn gaps(root: &Path) -> Result<Vec<String>, String> {
    let evidence = evidence(root)?;
    let gap = |each: Requirement| match (each.no_test, evidence.contains_key(&each.id)) {
        (None, false) => Some(format!("{} has neither a test nor a reason", each.id)),
        (Some(_), true) => Some(format!("{} has a test, so `no_test` has to go", each.id)),
        _ => None,
    };
    Ok(requirements(root)?.into_iter().filter_map(gap).collect())
}

/// Renders the page.
pub(crate) fn render(root: &Path) -> Result<String, String> {
    let evidence = evidence(root)?;
    let requirements = requirements(root)?;
    let mut page = opening(&requirements);
    for (group, title) in GROUPS.into_iter().chain(FURTHER) {
        let _ = write!(
            page,
            "\n## {title} ({group})\n\n| Id | Strength | Level | Rule | Shown by |\n|---|---|---|---|---|\n"
        );
        for requirement in requirements.iter().filter(|each| each.group() == group) {
            let Requirement { id, strength, level, rule, .. } = requirement;
            let rule = rule.replace('|', "\\|");
            let level = level.map_or_else(|| "–".to_owned(), |level| level.to_string());
            let shown = evidence_text(requirement, evidence.get(id));
            let _ = writeln!(page, "| {id} | {strength} | {level} | {rule} | {shown} |");
        }
    }
    Ok(page)
}

fn opening(requirements: &[Requirement]) -> String {
    let decision = |each: &&Requirement| each.group() == "D";
    let decisions = requirements.iter().filter(decision).count();
    let catalogue = requirements.iter().filter(|each| each.in_catalogue()).count() - decisions;
    let without = requirements.iter().filter(|each| each.no_test.is_some()).count();
    let partly = requirements.iter().filter(|each| each.not_built.is_some()).count();
    format!(
        "# Conformance\n\n\
         Generated by `cargo xtask generate`; the tests fail while it is stale.\n\n\
         Every requirement of the specification, {catalogue} in all, and the {decisions} decisions of this project, with \
         what shows that each holds: tests (`crate::file::test`) and conformance vectors (in `conformance/`). {without} \
         have none, with the reason; of {partly} a part is not built, which is said too. Requirements that a source only \
         implies, or that are our own ruling, are listed like the others.\n"
    )
}

fn evidence_text(requirement: &Requirement, evidence: Option<&Evidence>) -> String {
    let none = Evidence::default();
    let Evidence { tests, vectors } = evidence.unwrap_or(&none);
    let tests = tests.iter().map(|test| format!("`{test}`"));
    let vectors = (!vectors.is_empty()).then(|| format!("vectors {}", vectors.join(", ")));
    let no_test = requirement.no_test.as_ref().map(|why| format!("*no test*: {why}"));
    let not_built = requirement.not_built.as_ref().map(|what| format!("*not built*: {what}"));
    let all: Vec<String> = tests.chain(vectors).chain(no_test).chain(not_built).collect();
    if all.is_empty() { "–".to_owned() } else { all.join("<br>") }
}
