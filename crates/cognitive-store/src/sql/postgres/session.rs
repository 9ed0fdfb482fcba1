//! Runs statements on one connection. Each statement runs on the driver's thread, and the caller waits for it up to a
//! time limit. Statements are unnamed on the server, so that a connection pooler can be used.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, RowStream};

use super::super::{SqlDialect, SqlRow, SqlSession, SqlValue};
use crate::error::Problem;

/// The number of rows fetched at once. All rows of a large table would not fit into the memory.
const ROWS: usize = 256;

/// A connection during one piece of work.
pub(super) struct PgSession<'a> {
    pub(super) client: Arc<Client>,
    pub(super) driver: &'a Handle,
    /// The time limit for one statement.
    pub(super) limit: Duration,
}

impl PgSession<'_> {
    /// Executes several statements without parameters.
    pub(super) fn batch(&self, sql: &str) -> Result<(), Problem> {
        let (client, sql) = (Arc::clone(&self.client), sql.to_owned());
        let limit = self.limit;
        wait(self.driver, limit, async move { client.batch_execute(&sql).await })?
            .map_err(|error| said(&error, limit))
    }
}

/// Runs work on the driver and blocks this thread until it is done. On a multi-threaded runtime, the other tasks of
/// this thread are moved to another one.
pub(super) fn wait<T: Send + 'static>(
    driver: &Handle,
    limit: Duration,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Problem> {
    let (sender, receiver) = sync_channel(1);
    driver.spawn(async move {
        let _ = sender.send(tokio::time::timeout(limit, work).await);
    });
    let blocked = || receiver.recv();
    let is_shared =
        Handle::try_current().is_ok_and(|current| current.runtime_flavor() == RuntimeFlavor::MultiThread);
    let done = if is_shared { tokio::task::block_in_place(blocked) } else { blocked() };
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(_)) => Err(Problem::Silent(limit)),
        Err(_) => Err(Problem::Failed("internal error of the database driver".to_owned())),
    }
}

/// Classifies a server error.
pub(super) fn said(error: &tokio_postgres::Error, limit: Duration) -> Problem {
    let Some(report) = error.as_db_error() else {
        let mut why = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            why = format!("{why}: {inner}");
            cause = inner.source();
        }
        return Problem::Unreachable(why);
    };
    let message = report.message().to_owned();
    match report.code().code() {
        // Cancelled by a timeout or by an operator.
        "57014" | "55P03" => Problem::Busy(limit),
        "53100" => Problem::Full,
        "25006" => Problem::ReadOnly,
        code if code.starts_with("28") || code == "42501" || code == "3D000" => {
            Problem::Inaccessible(message)
        }
        // Shutting down, starting up, too many connections.
        code if code.starts_with("57P") || code.starts_with("53") || code.starts_with("08") => {
            Problem::Unreachable(message)
        }
        _ => Problem::Failed(message),
    }
}

/// Converts `?1` to the server's syntax.
fn places(sql: &str) -> String {
    sql.replace('?', "$")
}

type TypedValue = (SqlValue, Type);

fn typed(values: &[SqlValue]) -> Vec<TypedValue> {
    let type_of = |value: &SqlValue| match value {
        // The server infers the type from the context.
        SqlValue::Null => Type::UNKNOWN,
        SqlValue::Integer(_) => Type::INT8,
        SqlValue::Real(_) => Type::FLOAT8,
        SqlValue::Text(_) => Type::TEXT,
        SqlValue::Blob(_) => Type::BYTEA,
    };
    values.iter().map(|value| (value.clone(), type_of(value))).collect()
}

/// The rows not yet fetched.
type Coming = Pin<Box<RowStream>>;

async fn some(mut coming: Coming) -> Result<(Vec<Row>, Option<Coming>), tokio_postgres::Error> {
    let mut rows = Vec::new();
    while let Some(row) = coming.next().await {
        rows.push(row?);
        if rows.len() == ROWS {
            return Ok((rows, Some(coming)));
        }
    }
    Ok((rows, None))
}

impl SqlSession for PgSession<'_> {
    fn dialect(&self) -> SqlDialect {
        SqlDialect::Postgres
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, Problem> {
        let (client, sql, values, limit) = (Arc::clone(&self.client), places(sql), typed(values), self.limit);
        let work = async move {
            let values: Vec<(&(dyn ToSql + Sync), Type)> =
                values.iter().map(|(value, kind)| (value as &(dyn ToSql + Sync), kind.clone())).collect();
            client.execute_typed(&sql, &values).await
        };
        wait(self.driver, limit, work)?.map_err(|error| said(&error, limit))
    }

    fn each(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        take: &mut dyn FnMut(&SqlRow) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem> {
        let (client, sql, values, limit) = (Arc::clone(&self.client), places(sql), typed(values), self.limit);
        let begin = async move { some(Box::pin(client.query_typed_raw(&sql, values).await?)).await };
        let mut next = wait(self.driver, limit, begin)?;
        loop {
            let (rows, coming) = next.map_err(|error| said(&error, limit))?;
            for row in &rows {
                if take(&read(row)?)?.is_break() {
                    return Ok(());
                }
            }
            let Some(coming) = coming else { return Ok(()) };
            next = wait(self.driver, limit, some(coming))?;
        }
    }
}

/// Converts a row. Tables have no booleans, but query results do.
fn read(row: &Row) -> Result<SqlRow, Problem> {
    fn from<'a, T: tokio_postgres::types::FromSql<'a>>(
        row: &'a Row,
        at: usize,
        make: impl Fn(T) -> SqlValue,
    ) -> Result<SqlValue, tokio_postgres::Error> {
        Ok(row.try_get::<_, Option<T>>(at)?.map_or(SqlValue::Null, make))
    }
    let column = |at: usize| match row.columns().get(at).map(|column| column.type_().clone()) {
        Some(Type::INT8) => from(row, at, SqlValue::Integer),
        Some(Type::INT4) => from(row, at, |number: i32| SqlValue::Integer(number.into())),
        Some(Type::BOOL) => from(row, at, |answer: bool| SqlValue::Integer(answer.into())),
        Some(Type::FLOAT8) => from(row, at, SqlValue::Real),
        Some(Type::BYTEA) => from(row, at, SqlValue::Blob),
        _ => from(row, at, SqlValue::Text),
    };
    let values = (0..row.len()).map(column).collect::<Result<_, _>>();
    values.map(SqlRow).map_err(|error| Problem::Damaged(error.to_string()))
}

impl ToSql for SqlValue {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) => number.to_sql(kind, out),
            Self::Real(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Blob(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
