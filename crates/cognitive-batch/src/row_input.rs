//! Which members of a row go into a run, under which names, and what names the row. A cell of text is JSON where the contract
//! takes that, else a text; one without a letter is no member.

use cognitive_contract::text::hex;
use cognitive_contract::{ErrorCode, Failure, Module, numbers};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::receipt::canonical_sha256;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::journal::ShortHash;
use crate::row_source::RawRow;

/// What becomes of the members of a row.
#[derive(Debug, Clone, Default)]
pub struct RowMapping {
    /// The member that names the row. It goes into the output, and not into the run.
    pub id: Option<String>,
    /// Member of the input and column of the row, for each that goes in. Without any, all go in as they are.
    pub members: Vec<(String, String)>,
    /// Members that are the same in all rows.
    pub fixed: Map<String, Value>,
}

/// A row that is ready to run.
#[derive(Debug, Clone)]
pub(crate) struct ReadyRow {
    /// Its number, from 0 on.
    pub(crate) row: u64,
    /// What names it.
    pub(crate) id: Option<Value>,
    /// The hash of its input, as receipts have it.
    pub(crate) hash: String,
    pub(crate) short_hash: ShortHash,
    /// What goes in, or why nothing can.
    pub(crate) input: Result<RunInput, Failure>,
}

impl RowMapping {
    /// What tells one mapping from another.
    pub(crate) fn fingerprint(&self) -> Value {
        json!({ "id": self.id, "members": self.members, "fixed": self.fixed })
    }

    /// Makes a row ready.
    pub(crate) fn ready(&self, row: u64, raw: RawRow, module: &Module) -> ReadyRow {
        let (id, input) = match raw {
            RawRow::Unreadable(why) => (None, Err(unusable(why))),
            RawRow::Line(line) => match String::from_utf8(line) {
                Err(_) => (None, Err(unusable("the row is not UTF-8".to_owned()))),
                Ok(text) => self.of_line(text),
            },
            #[cfg(feature = "parquet")]
            RawRow::Members(members) => self.of_members(members),
            RawRow::Cells(names, cells) => {
                let cells = names.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
                self.of_members(
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

    fn of_line(&self, text: String) -> (Option<Value>, Result<RunInput, Failure>) {
        // What is no JSON is told by the run, like everything else that is wrong with an input.
        match serde_json::from_str(&text) {
            Ok(Value::Object(members)) if numbers::refusal(&text).is_none() => self.of_members(members),
            Ok(value) if self.is_plain() && numbers::refusal(&text).is_none() => {
                (None, Ok(RunInput::Json(value)))
            }
            _ => (None, Ok(RunInput::Raw(text))),
        }
    }

    fn is_plain(&self) -> bool {
        self.id.is_none() && self.members.is_empty() && self.fixed.is_empty()
    }

    fn of_members(&self, mut members: Map<String, Value>) -> (Option<Value>, Result<RunInput, Failure>) {
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

    /// What a cell is for the member that it becomes.
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

/// Whether the contract has nothing against a value of this member, whatever else is missing.
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

/// The first half of a hash.
fn short(hash: &str) -> ShortHash {
    let mut short = ShortHash::default();
    for (at, byte) in short.iter_mut().enumerate() {
        let digits = hash.get(2 * at..2 * at + 2).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    short
}
