//! The MCP conformance suite, with the requirements of both revisions. Every scenario runs against `cogn serve` with
//! the modules of `project.rs`; failed ones run again with the fixture handler in front of the same server. Failures in
//! both must be listed in `expected_failures.json` with a reason, and every listed check must fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cognitive_testkit::{Lack, skip};
use serde_json::Value;
use tempfile::TempDir;

use crate::fixture_server::FixtureServing;
use crate::project;
use crate::stage::{fixture_path, mcp_suite};

/// The result of each check of each scenario.
type Verdicts = BTreeMap<String, BTreeMap<String, bool>>;

/// Runs the requirements of a revision against a server.
fn verdicts(node: &Path, packages: &Path, revision: &str, url: &str) -> Verdicts {
    let results = TempDir::new().unwrap();
    let mut suite = cognitive_testkit::command(node);
    suite.arg(packages.join("conformance/dist/index.js")).args([
        "server",
        "--url",
        url,
        "--requirements",
        revision,
    ]);
    suite.arg("--output-dir").arg(results.path()).env("NO_PROXY", "127.0.0.1").current_dir(results.path());
    let said = suite.output().unwrap();
    let mut all = Verdicts::new();
    for entry in fs::read_dir(results.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().strip_prefix("server-").unwrap().to_owned();
        // The name ends with a timestamp, such as `-2026-11-17T15-14-23-511Z`.
        let scenario = name.get(..name.len() - "-2026-11-17T15-14-23-511Z".len()).unwrap().to_owned();
        let checks: Value = serde_json::from_slice(&fs::read(path.join("checks.json")).unwrap()).unwrap();
        let checks = checks.as_array().unwrap();
        let of_scenario = all.entry(scenario).or_default();
        for check in checks {
            let passed = match check["status"].as_str().unwrap() {
                "SUCCESS" => true,
                // A warning is a missing recommended behaviour.
                "FAILURE" | "WARNING" => false,
                _ => continue,
            };
            let id = check["id"].as_str().unwrap().to_owned();
            *of_scenario.entry(id).or_insert(true) &= passed;
        }
    }
    let ran = required(packages, revision);
    let missing: Vec<&String> = ran.iter().filter(|name| !all.contains_key(*name)).collect();
    assert!(missing.is_empty(), "{missing:?} did not run: {}", String::from_utf8_lossy(&said.stderr));
    all
}

/// Returns the scenarios that a revision requires of servers.
fn required(packages: &Path, revision: &str) -> BTreeSet<String> {
    let file = packages.join("conformance/requirements").join(format!("{revision}.yaml"));
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().skip_while(|line| *line != "server:").skip(1);
    lines.map_while(|line| line.strip_prefix("  - ")).map(str::to_owned).collect()
}

/// Returns the expected failures of this server, as `scenario` or `scenario:check`, with the reasons.
fn expected(revision: &str, place: &str) -> BTreeMap<String, String> {
    let all: Value =
        serde_json::from_slice(&fs::read(fixture_path("expected_failures.json")).unwrap()).unwrap();
    let mut reasons = BTreeMap::new();
    for (reason, names) in all[revision][place].as_object().unwrap() {
        for name in names.as_array().unwrap() {
            let twice = reasons.insert(name.as_str().unwrap().to_owned(), reason.clone());
            assert!(twice.is_none(), "{name} has two reasons");
        }
    }
    reasons
}

/// Returns the failed checks, after checking that they are exactly the expected ones.
fn failures(verdicts: &Verdicts, expected: &BTreeMap<String, String>, place: &str) -> BTreeSet<String> {
    let mut stale: BTreeSet<&String> = expected.keys().collect();
    let (mut failed, mut unexpected) = (BTreeSet::new(), Vec::new());
    for (scenario, checks) in verdicts {
        for check in checks.iter().filter(|(_, passed)| !**passed).map(|(check, _)| check) {
            let whole = format!("{scenario}:{check}");
            let names = [scenario, &whole];
            stale.retain(|name| !names.contains(name));
            if !names.iter().any(|name| expected.contains_key(*name)) {
                unexpected.push(whole.clone());
            }
            failed.insert(whole);
        }
    }
    assert!(unexpected.is_empty(), "{place}: failed and is not expected to: {unexpected:#?}");
    assert!(stale.is_empty(), "{place}: is expected to fail and passes: {stale:#?}");
    failed
}

/// Counts the scenarios and checks, and those without a failure. A scenario without checks does not count.
fn figures(verdicts: &Verdicts, of: impl Fn(&String) -> bool) -> String {
    let chosen = || verdicts.iter().filter(|(scenario, checks)| of(scenario) && !checks.is_empty());
    let whole = chosen().filter(|(_, checks)| checks.values().all(|passed| *passed)).count();
    let checks = || chosen().flat_map(|(_, checks)| checks.values());
    let passed = checks().filter(|passed| **passed).count();
    format!("{whole} of {} scenarios, {passed} of {} checks", chosen().count(), checks().count())
}

/// Judges a revision, and returns the pass rates. `None` if the suite is not installed.
fn conforms(revision: &str, least_required: usize) -> Option<String> {
    let (node, packages) = mcp_suite()?;
    let required = required(&packages, revision);
    assert!(required.len() >= least_required, "only {} scenarios are required", required.len());
    let stage = project::stage();
    let real = verdicts(&node, &packages, revision, &stage.serve("all").url);
    let failed = failures(&real, &expected(revision, "cogn serve"), "cogn serve");
    let fixture = FixtureServing::start();
    let mut rest = verdicts(&node, &packages, revision, &fixture.url);
    rest.retain(|scenario, _| failed.iter().any(|each| each.split_once(':').unwrap().0 == scenario));
    // A check that passes on the real server need not pass again.
    for (scenario, checks) in &mut rest {
        let passes = |check: &String| real[scenario].get(check).copied().unwrap_or(false);
        checks.retain(|check, passed| *passed || !passes(check));
    }
    let left = failures(&rest, &expected(revision, "fixture handler"), "fixture handler");
    let is_required = |scenario: &String| required.contains(scenario);
    let is_more = |scenario: &String| !is_required(scenario);
    Some(format!(
        "{revision}\nrequired, at cogn serve: {}\nthe rest of them, with the fixture handler: {}\n\
         not required, at cogn serve: {}\nthe rest of them, with the fixture handler: {}\nfailed in both places: {left:#?}",
        figures(&real, is_required),
        figures(&rest, is_required),
        figures(&real, is_more),
        figures(&rest, is_more),
    ))
}

// API-007
#[test]
fn api_007_the_suite_of_2026_07_28_passes_but_for_what_is_named() {
    let Some(figures) = conforms("2026-07-28", 37) else { return skip(Lack::McpSuite) };
    println!("{figures}");
}

// API-007
#[test]
fn api_007_the_suite_of_2025_11_25_passes_but_for_what_is_named() {
    let Some(figures) = conforms("2025-11-25", 30) else { return skip(Lack::McpSuite) };
    println!("{figures}");
}
