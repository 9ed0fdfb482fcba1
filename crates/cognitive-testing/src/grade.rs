//! Grades a module by the published certification (TEST-005). Bronze: the module is valid, runs and is
//! documented. Silver: it also has tests and examples. Gold and platinum are awarded by people, never here.
//! Runs a module with recorded replies only. Adds no checks to those of `validate` and `test`.

use cognitive_contract::Envelope;
use cognitive_library::folder::{Folder, JSON_LIMIT};
use cognitive_library::validate::has_examples;
use cognitive_library::{Library, Mode, formats, load, validate};
use cognitive_runtime::receipt::canonical_sha256;
use serde_json::{Map, Value, json};

use crate::golden::{self, GoldenOptions, ModuleReport, TestedFolder};

/// Silver requires this many golden tests, and this coverage of the contract in percent.
const TESTS: usize = 3;
const COVERAGE: usize = 60;

/// The result of grading a module.
#[derive(Debug)]
pub struct Grade {
    /// `bronze` or `silver`; `None` for neither.
    pub level: Option<&'static str>,
    /// The requirements of the next level that the module does not meet.
    pub missing: Vec<String>,
    /// The machine-readable report, with a hash over all its other members.
    pub report: Value,
}

/// Grades a module; `now` is the timestamp of the report.
#[must_use]
pub fn grade(name: &str, folder: &Folder, library: &Library, now: &str) -> Grade {
    let tests = tests(name, folder, library);
    let coverage = tests.as_ref().and_then(|report| report.coverage.as_ref()).map(golden::Coverage::percent);
    let cases = tests.as_ref().map(|report| report.cases.as_slice()).unwrap_or_default();
    let passed = cases.iter().filter(|case| case.has_passed()).count();
    let succeeds = |case: &golden::GoldenResult| {
        case.has_passed()
            && case.envelope.as_ref().is_some_and(|envelope| envelope.get("ok") == Some(&Value::Bool(true)))
    };
    let valid = |case: &golden::GoldenResult| {
        case.envelope.as_ref().is_some_and(|envelope| Envelope::from_value(envelope.clone()).is_ok())
    };
    let checks = [
        GradeQuestion::bronze(
            "schema_valid",
            validate(folder, Mode::Strict).valid(),
            "`cogn validate --v22` finds errors",
        ),
        GradeQuestion::bronze(
            "runs_successfully",
            cases.iter().any(succeeds),
            "no golden test ends in a success",
        ),
        GradeQuestion::bronze(
            "envelope_valid",
            !cases.is_empty() && cases.iter().all(valid),
            "not every golden test ends in an envelope",
        ),
        GradeQuestion::bronze("documented", is_documented(folder), "`README.md` and `MODULE.md` are missing"),
        GradeQuestion::silver(
            "tested",
            passed >= TESTS && passed == cases.len(),
            "fewer than three golden tests, or one that fails",
        ),
        GradeQuestion::silver(
            "covered",
            coverage.is_some_and(|percent| percent >= COVERAGE),
            "the tests exercise less than 60 %",
        ),
        GradeQuestion::silver("examples", has_examples(folder), "no example of an input and an output"),
    ];
    let level = match (GradeQuestion::all(&checks, Medal::Bronze), GradeQuestion::all(&checks, Medal::Silver))
    {
        (true, true) => Some("silver"),
        (true, false) => Some("bronze"),
        (false, _) => None,
    };
    let next = if level.is_none() { Medal::Bronze } else { Medal::Silver };
    let lacking = checks.iter().filter(|check| check.level == next && !check.holds);
    Grade {
        level,
        missing: lacking.map(|check| check.lack.to_owned()).collect(),
        report: report(name, folder, level, &checks, coverage, now),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Medal {
    Bronze,
    Silver,
}

/// One check, the level that requires it, and the message if it fails.
struct GradeQuestion {
    name: &'static str,
    level: Medal,
    holds: bool,
    lack: &'static str,
}

impl GradeQuestion {
    fn bronze(name: &'static str, holds: bool, lack: &'static str) -> Self {
        Self { name, level: Medal::Bronze, holds, lack }
    }

    fn silver(name: &'static str, holds: bool, lack: &'static str) -> Self {
        Self { name, level: Medal::Silver, holds, lack }
    }

    fn all(checks: &[Self], level: Medal) -> bool {
        checks.iter().filter(|check| check.level == level).all(|check| check.holds)
    }
}

/// Runs the golden tests with their recorded replies; `None` if they cannot be run at all.
fn tests(name: &str, folder: &Folder, library: &Library) -> Option<ModuleReport> {
    let options = GoldenOptions { coverage: true, library: library.clone(), ..GoldenOptions::default() };
    let subject = TestedFolder { name: name.to_owned(), folder: folder.clone() };
    golden::run_recorded(&[subject], &options).ok()?.modules.into_iter().next()
}

fn is_documented(folder: &Folder) -> bool {
    let says_something = |name: &str| folder.read(name, JSON_LIMIT).is_ok_and(|text| !text.trim().is_empty());
    says_something("README.md") || says_something("MODULE.md")
}

/// The published report. The hash covers every other member, including the digest of the module's files.
fn report(
    name: &str,
    folder: &Folder,
    level: Option<&str>,
    checks: &[GradeQuestion],
    coverage: Option<usize>,
    now: &str,
) -> Value {
    let module = load(folder).ok();
    let written = formats::read_manifest(folder).map(|(_, manifest)| manifest).unwrap_or_default();
    let checks: Map<String, Value> =
        checks.iter().map(|check| (check.name.to_owned(), Value::Bool(check.holds))).collect();
    let mut report = json!({
        "module": name,
        "version": written.get("version").cloned().unwrap_or_default(),
        "timestamp": now,
        "level": level,
        "checks": checks,
        "coverage_percent": coverage,
        "module_digest": module.map(|module| format!("sha256:{}", module.digest.module)),
    });
    let hash = canonical_sha256(&report);
    if let Value::Object(members) = &mut report {
        members.insert("verification_hash".to_owned(), json!(format!("sha256:{hash}")));
    }
    report
}
