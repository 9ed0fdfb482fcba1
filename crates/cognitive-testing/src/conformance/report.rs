//! The report of a conformance run: one result per case, and the counts by group and level.
//! Prints nothing. "Not built" is never counted as passed.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use crate::expect::CaseTally;

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorStatus {
    /// The result satisfies the expectation.
    Passed,
    /// The result does not satisfy the expectation, or could not be judged; with the reasons.
    Failed(Vec<String>),
    /// The runtime does not support this yet; with the missing part.
    NotBuilt(String),
}

impl VectorStatus {
    /// The word used in reports.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::NotBuilt(_) => "not_built",
        }
    }

    /// Lists the reasons of the outcome; empty if the case passed.
    #[must_use]
    pub fn problems(&self) -> Vec<&str> {
        match self {
            Self::Passed => Vec::new(),
            Self::Failed(problems) => problems.iter().map(String::as_str).collect(),
            Self::NotBuilt(why) => vec![why.as_str()],
        }
    }
}

/// One case and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorResult {
    /// The id of the case.
    pub id: String,
    /// Its group.
    pub group: String,
    /// Its level.
    pub level: u8,
    /// Its operation.
    pub op: String,
    /// The outcome.
    pub status: VectorStatus,
}

impl Serialize for VectorResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("CaseResult", 6)?;
        row.serialize_field("id", &self.id)?;
        row.serialize_field("group", &self.group)?;
        row.serialize_field("level", &self.level)?;
        row.serialize_field("op", &self.op)?;
        row.serialize_field("status", self.status.word())?;
        row.serialize_field("problems", &self.status.problems())?;
        row.end()
    }
}

fn count(tally: &mut CaseTally, status: &VectorStatus) {
    match status {
        VectorStatus::Passed => tally.passed += 1,
        VectorStatus::Failed(_) => tally.failed += 1,
        VectorStatus::NotBuilt(_) => tally.skipped += 1,
    }
}

/// The results of a run, in the order of the cases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VectorReport {
    /// One result per selected case.
    pub results: Vec<VectorResult>,
}

impl VectorReport {
    /// Returns whether every case passed. A report without cases proves nothing and does not hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        let tally = self.tally();
        tally.total() > 0 && tally.passed == tally.total()
    }

    /// The counts of all cases.
    #[must_use]
    pub fn tally(&self) -> CaseTally {
        let mut tally = CaseTally::default();
        for result in &self.results {
            count(&mut tally, &result.status);
        }
        tally
    }

    /// The counts by group and level. Contains only selected cases.
    #[must_use]
    pub fn by_group(&self) -> BTreeMap<&str, BTreeMap<u8, CaseTally>> {
        let mut groups: BTreeMap<&str, BTreeMap<u8, CaseTally>> = BTreeMap::new();
        for result in &self.results {
            let levels = groups.entry(&result.group).or_default();
            count(levels.entry(result.level).or_default(), &result.status);
        }
        groups
    }

    /// The cases that failed.
    pub fn failures(&self) -> impl Iterator<Item = &VectorResult> {
        self.results.iter().filter(|result| matches!(result.status, VectorStatus::Failed(_)))
    }

    /// The cases whose operation the runtime does not support yet.
    pub fn not_built(&self) -> impl Iterator<Item = &VectorResult> {
        self.results.iter().filter(|result| matches!(result.status, VectorStatus::NotBuilt(_)))
    }
}

impl Serialize for VectorReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tally = self.tally();
        let mut report = serializer.serialize_struct("Report", 5)?;
        report.serialize_field("total", &tally.total())?;
        report.serialize_field("passed", &tally.passed)?;
        report.serialize_field("failed", &tally.failed)?;
        report.serialize_field("not_built", &tally.skipped)?;
        report.serialize_field("cases", &self.results)?;
        report.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(id: &str, level: u8, status: VectorStatus) -> VectorResult {
        VectorResult { id: id.to_owned(), group: "g".to_owned(), level, op: "o".to_owned(), status }
    }

    #[test]
    fn not_built_is_neither_passed_nor_good() {
        let passed = VectorReport { results: vec![result("a", 1, VectorStatus::Passed)] };
        assert!(passed.holds());
        let mut mixed = passed;
        mixed.results.push(result("b", 2, VectorStatus::NotBuilt("why".to_owned())));
        assert!(!mixed.holds());
        assert_eq!(mixed.tally(), CaseTally { passed: 1, failed: 0, skipped: 1 });
        assert_eq!(mixed.by_group()["g"][&2], CaseTally { passed: 0, failed: 0, skipped: 1 });
        assert!(!VectorReport::default().holds(), "no cases prove nothing");
    }

    #[test]
    fn the_json_form_counts_and_lists() {
        let report =
            VectorReport { results: vec![result("a", 1, VectorStatus::Failed(vec!["p".to_owned()]))] };
        assert_eq!(
            serde_json::to_value(report).unwrap(),
            json!({
                "total": 1, "passed": 0, "failed": 1, "not_built": 0,
                "cases": [{
                    "id": "a", "group": "g", "level": 1, "op": "o", "status": "failed", "problems": ["p"],
                }],
            })
        );
    }
}
