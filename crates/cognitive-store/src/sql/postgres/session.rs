//! Runs statements on one connection. They run on the driver's thread, and the caller waits for them up to a time
//! limit. Statements whose result does not matter are sent together with the next one, so that a transaction takes few
//! round trips. Statements are unnamed on the server, so that a connection pooler can be used.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt;
use futures_util::future::{join, join_all};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, RowStream};

use super::super::{SqlDialect, SqlRow, SqlSession, SqlValue};
use crate::error::Problem;

/// The number of rows fetched at once. All rows of a large table would not fit into the memory.
const ROWS: usize = 256;

/// The most statements that are sent together.
const PIPELINE: usize = 16;

/// A connection during one piece of work.
pub(super) struct PgSession<'a> {
    client: Arc<Client>,
    driver: &'a Handle,
    /// The time limit for statements that are sent together.
    limit: Duration,
    /// The statements to send before the next one.
    later: Vec<LaterStatement>,
}

/// A statement whose result does not matter.
enum LaterStatement {
    /// Several statements without parameters.
    Plain(String),
    Typed(String, Vec<TypedParameter>),
}

/// A parameter with the type that it has on the server.
type TypedParameter = (Box<dyn ToSql + Sync + Send>, Type);

impl<'a> PgSession<'a> {
    /// Starts a piece of work. `begin` is sent with its first statement.
    pub(super) fn begin(client: Arc<Client>, driver: &'a Handle, limit: Duration, begin: &str) -> Self {
        Self { client, driver, limit, later: vec![LaterStatement::Plain(begin.to_owned())] }
    }

    /// Returns the connection; statements that were not sent are dropped.
    pub(super) fn into_client(self) -> Arc<Client> {
        self.client
    }

    /// Executes several statements without parameters.
    pub(super) fn batch(&mut self, sql: &str) -> Result<(), Problem> {
        self.later.push(LaterStatement::Plain(sql.to_owned()));
        self.send_later()
    }

    /// Executes statements without parameters, and drops those that were not sent.
    pub(super) fn abandon(&mut self, sql: &str) -> Result<(), Problem> {
        self.later.clear();
        self.batch(sql)
    }

    fn add(&mut self, statement: LaterStatement) -> Result<(), Problem> {
        self.later.push(statement);
        if self.later.len() < PIPELINE { Ok(()) } else { self.send_later() }
    }

    /// Sends the statements that wait, and waits for their ends.
    fn send_later(&mut self) -> Result<(), Problem> {
        let (client, later, limit) = (Arc::clone(&self.client), std::mem::take(&mut self.later), self.limit);
        wait(self.driver, limit, async move { send_all(&client, later).await })?
            .map_err(|error| problem_of(&error, limit))
    }
}

/// Sends statements at once, in their order. The first error is the cause of those after it.
async fn send_all(client: &Client, statements: Vec<LaterStatement>) -> Result<(), tokio_postgres::Error> {
    // Each of them is sent when it is polled for the first time, and `join_all` polls a few in their order.
    let sent = join_all(statements.iter().map(|statement| async move {
        match statement {
            LaterStatement::Plain(sql) => client.batch_execute(sql).await,
            LaterStatement::Typed(sql, values) => {
                let values: Vec<(&(dyn ToSql + Sync), Type)> = values
                    .iter()
                    .map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone()))
                    .collect();
                client.execute_typed(sql, &values).await.map(drop)
            }
        }
    }));
    sent.await.into_iter().collect()
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
pub(super) fn problem_of(error: &tokio_postgres::Error, limit: Duration) -> Problem {
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

fn typed_parameters(values: &[SqlValue]) -> Vec<TypedParameter> {
    let type_of = |value: &SqlValue| match value {
        // The server infers the type from the context.
        SqlValue::Null => Type::UNKNOWN,
        SqlValue::Integer(_) => Type::INT8,
        SqlValue::Real(_) => Type::FLOAT8,
        SqlValue::Text(_) => Type::TEXT,
        SqlValue::Blob(_) => Type::BYTEA,
    };
    values.iter().map(|value| (Box::new(value.clone()) as Box<_>, type_of(value))).collect()
}

/// A column of new rows, as an array parameter. `None` if it has only NULL, which needs no parameter.
fn array(values: Vec<SqlValue>) -> Result<Option<TypedParameter>, Problem> {
    fn array_of<T: ToSql + Sync + Send + 'static>(
        values: Vec<SqlValue>,
        take: impl Fn(SqlValue) -> Option<T>,
        kind: Type,
    ) -> Result<Option<TypedParameter>, Problem> {
        let values = values.into_iter().map(|value| match value {
            SqlValue::Null => Ok(None),
            value => take(value).map(Some).ok_or_else(|| {
                Problem::Failed(
                    "internal error of the store: a column has values of several types".to_owned(),
                )
            }),
        });
        let values: Vec<Option<T>> = values.collect::<Result<_, _>>()?;
        Ok(Some((Box::new(values), kind)))
    }
    match values.iter().find(|value| !matches!(value, SqlValue::Null)) {
        None | Some(SqlValue::Null) => Ok(None),
        Some(SqlValue::Integer(_)) => array_of(
            values,
            |value| if let SqlValue::Integer(number) = value { Some(number) } else { None },
            Type::INT8_ARRAY,
        ),
        Some(SqlValue::Real(_)) => array_of(
            values,
            |value| if let SqlValue::Real(number) = value { Some(number) } else { None },
            Type::FLOAT8_ARRAY,
        ),
        Some(SqlValue::Text(_)) => array_of(
            values,
            |value| if let SqlValue::Text(text) = value { Some(text) } else { None },
            Type::TEXT_ARRAY,
        ),
        Some(SqlValue::Blob(_)) => array_of(
            values,
            |value| if let SqlValue::Blob(bytes) = value { Some(bytes) } else { None },
            Type::BYTEA_ARRAY,
        ),
    }
}

/// Turns rows into columns.
fn columns_of(rows: Vec<Vec<SqlValue>>) -> Vec<Vec<SqlValue>> {
    let width = rows.first().map_or(0, Vec::len);
    let mut columns: Vec<Vec<SqlValue>> = (0..width).map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    columns
}

/// The rows not yet fetched.
type Coming = Pin<Box<RowStream>>;

async fn next_rows(mut coming: Coming) -> Result<(Vec<Row>, Option<Coming>), tokio_postgres::Error> {
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
        let (client, sql, values, limit) =
            (Arc::clone(&self.client), places(sql), typed_parameters(values), self.limit);
        let later = std::mem::take(&mut self.later);
        let work = async move {
            let values: Vec<(&(dyn ToSql + Sync), Type)> =
                values.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect();
            // In this order, so that the statements before it are sent before it.
            let (before, done) = join(send_all(&client, later), client.execute_typed(&sql, &values)).await;
            before.and(done)
        };
        wait(self.driver, limit, work)?.map_err(|error| problem_of(&error, limit))
    }

    fn execute_later(&mut self, sql: &str, values: &[SqlValue]) -> Result<(), Problem> {
        self.add(LaterStatement::Typed(places(sql), typed_parameters(values)))
    }

    /// One statement for all rows, with an array for each column: its text and its parameters are as many for one row
    /// as for hundreds.
    fn insert(&mut self, table: &str, columns: &str, rows: Vec<Vec<SqlValue>>) -> Result<(), Problem> {
        let (mut parameters, mut chosen, mut named) = (Vec::new(), Vec::new(), Vec::new());
        for (number, column) in columns_of(rows).into_iter().enumerate() {
            match array(column)? {
                Some(parameter) => {
                    chosen.push(format!("c{number}"));
                    named.push(format!("c{number}"));
                    parameters.push(parameter);
                }
                None => chosen.push("NULL".to_owned()),
            }
        }
        if parameters.is_empty() {
            return Ok(());
        }
        let marks = (1..=parameters.len()).map(|place| format!("${place}")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "INSERT INTO {table} ({columns}) SELECT {} FROM unnest({marks}) AS rows ({})",
            chosen.join(", "),
            named.join(", ")
        );
        self.add(LaterStatement::Typed(sql, parameters))
    }

    fn for_each(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        take: &mut dyn FnMut(&SqlRow) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem> {
        let (client, sql, values, limit) =
            (Arc::clone(&self.client), places(sql), typed_parameters(values), self.limit);
        let later = std::mem::take(&mut self.later);
        let begin = async move {
            let values = values.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone()));
            let asked = async { next_rows(Box::pin(client.query_typed_raw(&sql, values).await?)).await };
            let (before, rows) = join(send_all(&client, later), asked).await;
            before.and(rows)
        };
        let mut next = wait(self.driver, limit, begin)?;
        loop {
            let (rows, coming) = next.map_err(|error| problem_of(&error, limit))?;
            for row in &rows {
                if take(&read(row)?)?.is_break() {
                    return Ok(());
                }
            }
            let Some(coming) = coming else { return Ok(()) };
            next = wait(self.driver, limit, next_rows(coming))?;
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
