//! The rows of a batch that are not yet in the table, so that one statement inserts them all.

use std::sync::LazyLock;

use super::entry::FACTS;
use crate::error::Problem;
use crate::sql::{SqlSession, SqlValue};

/// The rows to insert.
#[derive(Default)]
pub(super) struct NewRows(Vec<Vec<SqlValue>>);

/// The columns of a row, in the order of its values.
static COLUMNS: LazyLock<String> = LazyLock::new(|| {
    let place = "position, id, bytes, payload, payload_bytes, chain, seq, dropped, before, hash, ";
    place.to_owned() + &FACTS.join(", ")
});

impl NewRows {
    pub(super) fn push(&mut self, row: Vec<SqlValue>) {
        self.0.push(row);
    }

    /// Inserts the rows. Called at the end of a batch, and before a query that has to see them.
    pub(super) fn write(&mut self, session: &mut dyn SqlSession) -> Result<(), Problem> {
        if self.0.is_empty() {
            return Ok(());
        }
        session.insert("audit", &COLUMNS, std::mem::take(&mut self.0))
    }
}
