//! One case of a group file, as a Rust type. Reads no files; `load.rs` finds them.

use serde::Deserialize;
use serde_json::Value;

/// One case: an operation, its arguments, and the expectation for its result.
#[derive(Debug, Clone)]
pub struct Vector {
    /// The file it belongs to; for official vectors the folder.
    pub group: String,
    /// A stable id, unique in the directory.
    pub id: String,
    /// A short description.
    pub title: String,
    /// The requirements that it is derived from.
    pub requirements: Vec<String>,
    /// The lowest conformance level that must pass it, 1 to 4.
    pub level: u8,
    /// The strength of the requirement in the source.
    pub strength: Strength,
    /// The operation.
    pub op: String,
    /// Its arguments, as written.
    pub given: Value,
    /// The expectation for the result, as written.
    pub expect: Value,
}

/// The strength of the requirement in the source. Reports do not distinguish them: every case must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// Decides conformance.
    Must,
    /// Recommended.
    Should,
    /// Allowed.
    May,
}

#[derive(Deserialize)]
struct GroupFile {
    group: String,
    cases: Vec<CaseFile>,
}

#[derive(Deserialize)]
struct CaseFile {
    id: String,
    title: String,
    requirements: Vec<String>,
    level: u8,
    strength: Strength,
    op: String,
    given: Value,
    expect: Value,
}

/// Parses the cases of one of our own group files.
pub(super) fn group_vectors(document: Value) -> Result<Vec<Vector>, String> {
    let file: GroupFile = serde_json::from_value(document).map_err(|error| error.to_string())?;
    let group = file.group;
    file.cases
        .into_iter()
        .map(|case| {
            check_level(case.level).map_err(|reason| format!("case `{}`: {reason}", case.id))?;
            Ok(Vector {
                group: group.clone(),
                id: case.id,
                title: case.title,
                requirements: case.requirements,
                level: case.level,
                strength: case.strength,
                op: case.op,
                given: case.given,
                expect: case.expect,
            })
        })
        .collect()
}

/// Rejects a level outside 1 to 4, because no run would ever select its cases.
pub(super) fn check_level(level: u8) -> Result<(), String> {
    if (1..=4).contains(&level) {
        Ok(())
    } else {
        Err(format!("expected a level from 1 to 4, found {level}"))
    }
}
