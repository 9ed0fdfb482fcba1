//! One case of a group file, typed. Knows no files; `load.rs` finds them.

use serde::Deserialize;
use serde_json::Value;

/// One case: an operation, what it is given, and what its result must satisfy.
#[derive(Debug, Clone)]
pub struct Vector {
    /// The file it belongs to; for official vectors the folder.
    pub group: String,
    /// A stable id, unique in the directory.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The requirements that it is derived from.
    pub requirements: Vec<String>,
    /// The lowest conformance level that must pass it, 1 to 4.
    pub level: u8,
    /// How strongly the source asks for it.
    pub strength: Strength,
    /// The operation.
    pub op: String,
    /// Its arguments, as written.
    pub given: Value,
    /// What the result must satisfy, as written.
    pub expect: Value,
}

/// How strongly the source of a case asks for it. A report does not tell them apart: every case is to pass.
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

/// The cases of a group file of ours.
pub(super) fn of_group(document: Value) -> Result<Vec<Vector>, String> {
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

/// A level that does not exist would never be asked for.
pub(super) fn check_level(level: u8) -> Result<(), String> {
    if (1..=4).contains(&level) {
        Ok(())
    } else {
        Err(format!("expected a level from 1 to 4, found {level}"))
    }
}
