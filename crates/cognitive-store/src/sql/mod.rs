//! The interface between rules and databases: values, rows and statements. The rules of audit, context, reviews and
//! spending are written once, against [`SqlSession`]; `sqlite` and `postgres` only execute statements and return
//! rows. Statements use the common subset of both: parameters are `?1`, `"user"` is quoted, sums are cast, and tables
//! have no booleans. [`SqlDialect`] covers the differences.

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod sqlite;

use std::ops::ControlFlow;

use crate::error::Problem;

/// A value in a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SqlValue {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl SqlValue {
    /// Returns the bytes of a text or a blob; 0 for other values.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::Null | Self::Integer(_) | Self::Real(_) => 0,
        }
    }
}

/// The differences between the databases, as SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SqlDialect {
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
}

impl SqlDialect {
    /// Returns the expression for the cost of a run, from its receipt.
    pub(crate) fn cost(self) -> &'static str {
        match self {
            // Must match the expression in the index.
            Self::Sqlite => "CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.usage.cost') END",
            #[cfg(feature = "postgres")]
            Self::Postgres => "receipt_cost(receipt)",
        }
    }

    /// The path of the runs above a run, as its receipt says; nothing for one that a surface asked for.
    pub(crate) fn parent_span(self) -> &'static str {
        match self {
            // As the index has it.
            Self::Sqlite => "CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.parent_span') END",
            #[cfg(feature = "postgres")]
            Self::Postgres => "receipt_parent(receipt)",
        }
    }
}

impl SqlDialect {
    /// Returns the statements to run before rows are copied.
    pub(crate) fn before_copy(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &[],
            // The copy is verified in the same transaction, which reads everything in one statement.
            #[cfg(feature = "postgres")]
            Self::Postgres => &["SET LOCAL statement_timeout = '10min'"],
        }
    }

    /// Returns the statements to run after rows were copied with their ids.
    pub(crate) fn after_copy(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &[],
            #[cfg(feature = "postgres")]
            Self::Postgres => &[
                "SELECT setval(pg_get_serial_sequence('reviews', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM reviews), false)",
                "SELECT setval(pg_get_serial_sequence('decisions', 'seq'), (SELECT coalesce(max(seq), 0) + 1 FROM decisions), false)",
            ],
        }
    }
}

/// The areas that only one transaction may change at a time. Each has a separate lock if the database supports it.
/// Locks are always taken in this order, to avoid deadlocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockedArea {
    Context = 1,
    Spending = 2,
    Reviews = 3,
    Audit = 4,
}

/// The access mode of a piece of work.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "a file has one lock for all writers"))]
pub(crate) enum SqlAccess {
    /// Reads, and may remove expired data.
    Look,
    /// Reads one snapshot, however long it takes.
    Moment,
    /// An atomic change with exclusive access to these areas.
    Change(&'static [LockedArea]),
    /// An atomic change like `Change` that is on disk at the commit, even after a power failure.
    Keep(&'static [LockedArea]),
}

/// Executes statements on a database, within one piece of work.
pub(crate) trait SqlSession {
    fn dialect(&self) -> SqlDialect;

    /// Returns whether the database is read-only.
    fn is_read_only(&self) -> bool;

    /// Executes a statement and returns the number of affected rows.
    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, Problem>;

    /// Executes a statement whose result does not matter. A server gets it together with the next statement or with the
    /// end of the transaction, which then also reports its error.
    fn execute_later(&mut self, sql: &str, values: &[SqlValue]) -> Result<(), Problem>;

    /// Inserts rows into a table. `columns` is a list for SQL. A server gets them like a later statement.
    fn insert(&mut self, table: &str, columns: &str, rows: Vec<Vec<SqlValue>>) -> Result<(), Problem>;

    /// Passes the rows to `take` one by one, until it breaks.
    fn for_each(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        take: &mut dyn FnMut(&SqlRow) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem>;
}

/// Returns all rows, converted.
pub(crate) fn all<T>(
    session: &mut dyn SqlSession,
    sql: &str,
    values: &[SqlValue],
    read: impl Fn(&SqlRow) -> Result<T, Problem>,
) -> Result<Vec<T>, Problem> {
    let mut rows = Vec::new();
    session.for_each(sql, values, &mut |row| {
        rows.push(read(row)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// Returns the first row, converted, if there is one.
pub(crate) fn first<T>(
    session: &mut dyn SqlSession,
    sql: &str,
    values: &[SqlValue],
    read: impl Fn(&SqlRow) -> Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    let mut found = None;
    session.for_each(sql, values, &mut |row| {
        found = Some(read(row)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Returns the number in the first row.
pub(crate) fn number(session: &mut dyn SqlSession, sql: &str, values: &[SqlValue]) -> Result<i64, Problem> {
    first(session, sql, values, |row| row.integer(0))?.ok_or_else(|| missing(0))
}

/// A row, indexed by column.
#[derive(Debug)]
pub(crate) struct SqlRow(pub(crate) Vec<SqlValue>);

impl SqlRow {
    pub(crate) fn value(&self, column: usize) -> &SqlValue {
        self.0.get(column).unwrap_or(&SqlValue::Null)
    }

    pub(crate) fn maybe_text(&self, column: usize) -> Result<Option<String>, Problem> {
        match self.value(column) {
            SqlValue::Null => Ok(None),
            SqlValue::Text(text) => Ok(Some(text.clone())),
            _ => Err(missing(column)),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<String, Problem> {
        self.str(column).map(str::to_owned)
    }

    pub(crate) fn str(&self, column: usize) -> Result<&str, Problem> {
        match self.value(column) {
            SqlValue::Text(text) => Ok(text),
            _ => Err(missing(column)),
        }
    }

    pub(crate) fn maybe_integer(&self, column: usize) -> Result<Option<i64>, Problem> {
        match self.value(column) {
            SqlValue::Null => Ok(None),
            SqlValue::Integer(number) => Ok(Some(*number)),
            _ => Err(missing(column)),
        }
    }

    pub(crate) fn integer(&self, column: usize) -> Result<i64, Problem> {
        self.maybe_integer(column)?.ok_or_else(|| missing(column))
    }

    pub(crate) fn is_true(&self, column: usize) -> Result<bool, Problem> {
        Ok(self.integer(column)? != 0)
    }

    /// Reads an optional unsigned number. Databases store signed integers only.
    pub(crate) fn count(&self, column: usize) -> Result<Option<u64>, Problem> {
        Ok(self.maybe_integer(column)?.and_then(|number| u64::try_from(number).ok()))
    }

    pub(crate) fn maybe_real(&self, column: usize) -> Result<Option<f64>, Problem> {
        match self.value(column) {
            SqlValue::Null => Ok(None),
            SqlValue::Real(number) => Ok(Some(*number)),
            #[expect(clippy::cast_precision_loss, reason = "whole amounts have no fraction")]
            SqlValue::Integer(number) => Ok(Some(*number as f64)),
            _ => Err(missing(column)),
        }
    }

    pub(crate) fn real(&self, column: usize) -> Result<f64, Problem> {
        self.maybe_real(column)?.ok_or_else(|| missing(column))
    }

    pub(crate) fn maybe_blob(&self, column: usize) -> Result<Option<Vec<u8>>, Problem> {
        match self.value(column) {
            SqlValue::Null => Ok(None),
            SqlValue::Blob(bytes) => Ok(Some(bytes.clone())),
            _ => Err(missing(column)),
        }
    }

    pub(crate) fn blob(&self, column: usize) -> Result<Vec<u8>, Problem> {
        self.maybe_blob(column)?.ok_or_else(|| missing(column))
    }
}

/// Returns the error for a column with an unexpected value: the tables were edited manually or are damaged.
fn missing(column: usize) -> Problem {
    Problem::Damaged(format!("column {column} of a row has an unexpected type"))
}

/// Converts to a signed integer, because databases have no unsigned ones.
pub(crate) fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for SqlValue {
    fn from(answer: bool) -> Self {
        Self::Integer(i64::from(answer))
    }
}

impl From<f64> for SqlValue {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for SqlValue {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for SqlValue {
    fn from(bytes: &[u8]) -> Self {
        Self::Blob(bytes.to_vec())
    }
}

impl<T: Into<Self>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Builds the parameter values of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$($crate::sql::SqlValue::from($value)),*] };
}
pub(crate) use values;
