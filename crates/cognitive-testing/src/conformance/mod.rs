//! Runs conformance vectors against this runtime: our own files, and the official ones of the specification.
//!
//! A vector names an operation, its arguments, and the expectation for the result. The stages of one case:
//! [`load`] reads it, `expand` fills in generated values, `ops` calls the product, `crate::expect` compares,
//! [`VectorReport`] counts. An operation only calls the product, so no rule of the contract is duplicated
//! here.
//!
//! A case that was not judged never passes: an operation that is not built yet is reported as such. An
//! unknown operation, an unknown matcher or an empty expectation is a failure. Needs no network and no key.

mod case;
mod expand;
mod load;
mod media_files;
mod official;
mod ops;
mod report;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use case::{Strength, Vector};
pub use load::{VectorLoadError, load};
pub use report::{VectorReport, VectorResult, VectorStatus};

use crate::expect::Difference;
use crate::expect::expectation::{Expectation, ExpectationUse};
use ops::VectorStop;

/// Runs every case up to a level; `None` selects all.
#[must_use]
pub fn run(cases: &[Vector], level: Option<u8>) -> VectorReport {
    let asked = |case: &&Vector| level.is_none_or(|level| case.level <= level);
    VectorReport { results: cases.iter().filter(asked).map(run_case).collect() }
}

/// Runs one case. A panic in the product fails this case and does not affect the others.
#[must_use]
pub fn run_case(case: &Vector) -> VectorResult {
    let status = catch_unwind(AssertUnwindSafe(|| judge(case)))
        .unwrap_or_else(|_| VectorStatus::Failed(vec!["the operation panicked".to_owned()]));
    VectorResult {
        id: case.id.clone(),
        group: case.group.clone(),
        level: case.level,
        op: case.op.clone(),
        status,
    }
}

fn judge(case: &Vector) -> VectorStatus {
    match problems(case) {
        Ok(problems) if problems.is_empty() => VectorStatus::Passed,
        Ok(problems) => VectorStatus::Failed(problems),
        Err(VectorStop::NotBuilt(why)) => VectorStatus::NotBuilt(why),
        Err(VectorStop::Broken(why)) => VectorStatus::Failed(vec![why]),
    }
}

/// Lists the differences between the result and the expectation. The expectation is parsed first, so that an
/// operation that is not built never hides a broken one.
fn problems(case: &Vector) -> Result<Vec<String>, VectorStop> {
    let expectation = Expectation::parse(&expand::expand(&case.expect)?, ExpectationUse::Vector)
        .map_err(|why| VectorStop::Broken(format!("the expectation cannot be read: {why}")))?;
    let result = ops::perform(&case.op, &case.given)?;
    let differences = expectation.differences(&result).into_iter();
    let words = |each: Difference| format!("{}: expected {}, got {}", each.path, each.expected, each.got);
    Ok(differences.map(words).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(op: &str, given: Value, expect: Value) -> VectorStatus {
        let case = Vector {
            group: "g".to_owned(),
            id: "g-001".to_owned(),
            title: String::new(),
            requirements: Vec::new(),
            level: 1,
            strength: Strength::Must,
            op: op.to_owned(),
            given,
            expect,
        };
        run_case(&case).status
    }

    #[test]
    fn a_case_passes_or_fails() {
        let code = json!({ "code": "PARSE_ERROR" });
        assert_eq!(status("normalize_code", code.clone(), json!({ "code": "E1000" })), VectorStatus::Passed);
        let failed = status("normalize_code", code, json!({ "code": "E1001" }));
        assert_eq!(failed, VectorStatus::Failed(vec![r#"$.code: expected "E1001", got "E1000""#.to_owned()]));
    }

    #[test]
    fn what_cannot_be_judged_fails() {
        for (op, given, expect) in [
            ("no_such_op", json!({}), json!({ "valid": true })),
            ("normalize_code", json!({}), json!({ "code": "E1000" })),
            ("normalize_code", json!({ "code": "E1000" }), json!({ "code": { "$like": "E1000" } })),
            ("normalize_code", json!({ "code": "E1000" }), json!({})),
            ("route", json!({}), json!({ "matched": { "$like": true } })),
        ] {
            let status = status(op, given, expect);
            assert!(matches!(&status, VectorStatus::Failed(why) if why.len() == 1), "{op}: {status:?}");
        }
    }

    #[test]
    fn levels_choose_the_cases() {
        let case = |level| Vector {
            group: "g".to_owned(),
            id: format!("g-{level}"),
            title: String::new(),
            requirements: Vec::new(),
            level,
            strength: Strength::Must,
            op: "normalize_code".to_owned(),
            given: json!({ "code": "E1000" }),
            expect: json!({ "code": "E1000" }),
        };
        let cases = [case(1), case(2), case(4)];
        assert_eq!(run(&cases, Some(2)).results.len(), 2);
        assert_eq!(run(&cases, None).results.len(), 3);
    }
}
