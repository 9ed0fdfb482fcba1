//! Maps the members of a row to the input and the id of a run. A text cell becomes JSON if the contract
//! accepts that, else a string; an empty cell becomes no member.

use cognitive_contract::text::{cut, hex};
use cognitive_contract::{ErrorCode, Failure, Module, numbers};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::receipt::canonical_sha256;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::batch_folder::unreadable_rows;
use crate::journal::ShortHash;
use crate::row_source::{RawRow, RowFile};

/// The mapping from a row to an input.
#[derive(Debug, Clone, Default)]
pub struct RowMapping {
    /// The member with the row's id. It goes into the output and not into the input.
    pub id: Option<String>,
    /// Pairs of input member and column, for each column that is used. If empty, all columns are used under
    /// their names.
    pub members: Vec<(String, String)>,
    /// Members with the same value in all rows.
    pub fixed: Map<String, Value>,
}

/// A row that is ready to run.
#[derive(Debug, Clone)]
pub(crate) struct ReadyRow {
    /// The row number, starting at 0.
    pub(crate) row: u64,
    /// The id of the row.
    pub(crate) id: Option<Value>,
    /// The hash of its input, as in receipts.
    pub(crate) hash: String,
    pub(crate) short_hash: ShortHash,
    /// The input, or the reason why there is none.
    pub(crate) input: Result<RunInput, Failure>,
}

impl RowMapping {
    /// Refuses a mapping to a column that the file does not have: every row would lack the same member.
    pub(crate) fn check(&self, rows: &RowFile) -> Result<(), Failure> {
        let mapped = self.members.iter().map(|(member, column)| (column, format!("--map {member}={column}")));
        let named: Vec<(&String, String)> =
            mapped.chain(self.id.iter().map(|id| (id, format!("--id {id}")))).collect();
        let wanted: Vec<&str> = named.iter().map(|(column, _)| column.as_str()).collect();
        let missing = rows.missing_column(&wanted).map_err(|error| unreadable_rows(&rows.path, &error))?;
        let Some((missing, columns)) = missing else { return Ok(()) };
        let option = named.iter().find(|(column, _)| *column == missing).map_or("", |(_, option)| option);
        let message = format!("no row of `{}` has the column of `{option}`", rows.path.display());
        let columns: Vec<String> = columns.iter().map(|name| format!("`{}`", cut(name, 80))).collect();
        Err(unusable(message).suggest(format!("The columns are {}", columns.join(", "))))
    }

    /// The identity of the mapping, to detect changes.
    pub(crate) fn fingerprint(&self) -> Value {
        json!({ "id": self.id, "members": self.members, "fixed": self.fixed })
    }

    /// Prepares a row for its run.
    pub(crate) fn prepare(&self, row: u64, raw: RawRow, module: &Module) -> ReadyRow {
        let (id, input) = match raw {
            RawRow::Unreadable(why) => (None, Err(unusable(why))),
            RawRow::Line(line) => match String::from_utf8(line) {
                Err(_) => (None, Err(unusable("the row is not UTF-8".to_owned()))),
                Ok(text) => self.line_input(text),
            },
            #[cfg(feature = "parquet")]
            RawRow::Members(members) => self.members_input(members),
            RawRow::Cells(names, cells) => {
                let cells = names.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
                self.members_input(
                    cells.map(|(name, cell)| (name.clone(), self.cell(name, cell, module))).collect(),
                )
            }
        };
        let hash = match &input {
            Ok(RunInput::Json(value)) => canonical_sha256(value),
            Ok(RunInput::Raw(text)) => plain_hash(text),
            Ok(_) => plain_hash(""),
            Err(failure) => plain_hash(failure.message()),
        };
        let short_hash = short(&hash);
        ReadyRow { row, id, hash, short_hash, input }
    }

    fn line_input(&self, text: String) -> (Option<Value>, Result<RunInput, Failure>) {
        // The run reports invalid JSON, like every other fault of an input.
        match serde_json::from_str(&text) {
            Ok(Value::Object(members)) if numbers::refusal(&text).is_none() => self.members_input(members),
            Ok(value) if self.is_plain() && numbers::refusal(&text).is_none() => {
                (None, Ok(RunInput::Json(value)))
            }
            _ => (None, Ok(RunInput::Raw(text))),
        }
    }

    fn is_plain(&self) -> bool {
        self.id.is_none() && self.members.is_empty() && self.fixed.is_empty()
    }

    fn members_input(&self, mut members: Map<String, Value>) -> (Option<Value>, Result<RunInput, Failure>) {
        let id = self.id.as_ref().and_then(|id| members.get(id).cloned());
        let mut input = if self.members.is_empty() {
            if let Some(id) = &self.id {
                members.shift_remove(id);
            }
            members
        } else {
            let named = self.members.iter();
            named
                .filter_map(|(member, column)| Some((member.clone(), members.get(column)?.clone())))
                .collect()
        };
        input.extend(self.fixed.clone());
        (id, Ok(RunInput::Json(Value::Object(input))))
    }

    /// Converts a cell to the value of its member.
    fn cell(&self, column: &str, text: String, module: &Module) -> Value {
        if self.id.as_deref() == Some(column) && self.members.iter().all(|(_, other)| other != column) {
            return Value::String(text);
        }
        let member =
            self.members.iter().find(|(_, other)| other == column).map_or(column, |(member, _)| member);
        let Ok(parsed) = serde_json::from_str::<Value>(&text) else { return Value::String(text) };
        if numbers::refusal(&text).is_some() {
            return Value::String(text);
        }
        let as_text = Value::String(text);
        if !takes(module, member, &parsed) && takes(module, member, &as_text) { as_text } else { parsed }
    }
}

/// Returns whether the contract accepts a value for this member, ignoring missing members.
fn takes(module: &Module, member: &str, value: &Value) -> bool {
    let alone = Map::from_iter([(member.to_owned(), value.clone())]);
    let at = cognitive_contract::text::pointer("", member);
    let below = format!("{at}/");
    let violations = module.contract.input().violations(&Value::Object(alone));
    !violations.iter().any(|violation| violation.path == at || violation.path.starts_with(&below))
}

fn unusable(why: String) -> Failure {
    Failure::new(ErrorCode::InvalidInput, why)
}

fn plain_hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Returns the first half of a hash.
fn short(hash: &str) -> ShortHash {
    let mut short = ShortHash::default();
    for (at, byte) in short.iter_mut().enumerate() {
        let digits = hash.get(2 * at..2 * at + 2).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    short
}
