//! The file, opened: one connection, used by one thread at a time, shared with other processes.
//! Holds no SQL about records and context; rules do.

use std::ops::ControlFlow;
use std::path::{self, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, TransactionBehavior, params_from_iter};

use super::{SqlAccess, SqlDialect, SqlRow, SqlSession, SqlValue};
use crate::error::Problem;
use crate::gate::ConnectionGate;
use crate::place;
use crate::schema::{self, Stale};

/// A database of this machine.
#[derive(Debug)]
pub(crate) struct SqliteFile {
    /// Absolute, since it may have to be opened again when the process has gone elsewhere; `None` in memory.
    path: Option<PathBuf>,
    patience: Duration,
    gate: ConnectionGate,
    // Locked only by whoever has passed the gate, so nobody ever waits for this one.
    open: Mutex<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    connection: Connection,
    /// The file behind the connection, which need not be the one at the path any more.
    identity: Option<(u64, u64)>,
}

impl SqliteFile {
    /// Opens the file, and creates it if need be.
    pub(crate) fn open(path: &Path, patience: Duration) -> Result<Self, Problem> {
        let path = path::absolute(path)?;
        let open = create(&path, patience)?;
        Ok(Self::around(Some(path), open, patience))
    }

    /// Opens the file if there is one.
    pub(crate) fn open_existing(path: &Path, patience: Duration) -> Result<Option<Self>, Problem> {
        let Some(file) = place::look(path)? else { return Ok(None) };
        let open = connect(&file, patience)?;
        Ok(Some(Self::around(Some(path::absolute(path)?), open, patience)))
    }

    /// A database that is gone with the process.
    pub(crate) fn in_memory(patience: Duration) -> Result<Self, Problem> {
        let connection = Connection::open_in_memory()
            .map_err(Stale::Sqlite)
            .and_then(|connection| set_up(connection, patience))
            .map_err(|stale| problem(stale, patience))?;
        Ok(Self::around(None, OpenFile { connection, identity: None }, patience))
    }

    /// A database behind a connection that somebody else made.
    #[cfg(test)]
    pub(crate) fn of_connection(connection: Connection) -> Result<Self, Problem> {
        let connection =
            set_up(connection, Duration::ZERO).map_err(|stale| problem(stale, Duration::ZERO))?;
        Ok(Self::around(None, OpenFile { connection, identity: None }, Duration::ZERO))
    }

    fn around(path: Option<PathBuf>, open: OpenFile, patience: Duration) -> Self {
        Self { path, patience, gate: ConnectionGate::default(), open: Mutex::new(open) }
    }

    /// Where it is; `None` in memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Does some work on the connection, alone. Waiting for other threads and for other processes comes out of one
    /// budget, so the last in a queue does not wait for the sum of all.
    pub(crate) fn with<T>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut Connection) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let started = Instant::now();
        let _turn = self.gate.enter(patience).ok_or(Problem::Busy(patience))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.keep_usable(&mut open)?;
        let left = patience.saturating_sub(started.elapsed());
        open.connection.busy_timeout(left).map_err(|error| Problem::of(&error, patience))?;
        work(&mut open.connection)
    }

    /// Does some work in the words of rules.
    pub(crate) fn work<T>(
        &self,
        access: SqlAccess,
        patience: Duration,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let said = |error: rusqlite::Error| Problem::of(&error, patience);
        let behavior = match access {
            SqlAccess::Look => {
                return self.with(patience, |connection| work(&mut SqliteSession { connection, patience }));
            }
            SqlAccess::Moment => TransactionBehavior::Deferred,
            // Immediate: what is read there has to be so until the end.
            SqlAccess::Change(_) | SqlAccess::Keep(_) => TransactionBehavior::Immediate,
        };
        let is_synced = matches!(access, SqlAccess::Keep(_));
        self.with(patience, |connection| {
            if is_synced {
                connection.pragma_update(None, "synchronous", "FULL").map_err(said)?;
            }
            let done = (|| {
                let transaction = connection.transaction_with_behavior(behavior).map_err(said)?;
                let result = work(&mut SqliteSession { connection: &transaction, patience })?;
                transaction.commit().map_err(said)?;
                Ok(result)
            })();
            if is_synced {
                connection.pragma_update(None, "synchronous", USUAL_SYNC).map_err(said)?;
            }
            done
        })
    }

    /// A server outlives its file: someone deletes or moves it, and records would go where nobody looks. Also, a
    /// transaction that could neither be ended nor undone would block every later one. Both are cured by a fresh start.
    fn keep_usable(&self, open: &mut OpenFile) -> Result<(), Problem> {
        let Some(path) = &self.path else { return Ok(()) };
        if open.connection.is_autocommit() && open.identity == place::identity(path) {
            return Ok(());
        }
        *open = create(path, self.patience)?;
        Ok(())
    }
}

/// The connection in the words of rules.
struct SqliteSession<'a> {
    connection: &'a Connection,
    patience: Duration,
}

impl SqliteSession<'_> {
    fn said(&self, error: &rusqlite::Error) -> Problem {
        Problem::of(error, self.patience)
    }
}

impl SqlSession for SqliteSession<'_> {
    fn dialect(&self) -> SqlDialect {
        SqlDialect::Sqlite
    }

    fn is_read_only(&self) -> bool {
        self.connection.is_readonly("main").unwrap_or(true)
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, Problem> {
        let done = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params_from_iter(values)));
        done.map(|count| count as u64).map_err(|error| self.said(&error))
    }

    fn each(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        take: &mut dyn FnMut(&SqlRow) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem> {
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.said(&error))?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values)).map_err(|error| self.said(&error))?;
        while let Some(row) = rows.next().map_err(|error| self.said(&error))? {
            let read = (0..columns).map(|column| row.get_ref(column).map_err(|error| self.said(&error)));
            let row = read.map(|value| value.and_then(value_of)).collect::<Result<_, _>>().map(SqlRow)?;
            if take(&row)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn value_of(value: ValueRef<'_>) -> Result<SqlValue, Problem> {
    Ok(match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).map_err(|error| Problem::Damaged(error.to_string()))?;
            SqlValue::Text(text.to_owned())
        }
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
    })
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// How much is waited for with every write: until the system has it.
const USUAL_SYNC: &str = "NORMAL";

/// A connection that can write, to a file that is created if it is missing.
fn create(path: &Path, patience: Duration) -> Result<OpenFile, Problem> {
    let file = place::prepare(path)?;
    let open = connect(&file, patience)?;
    // SQLite opens a write-protected file without a word.
    if open.connection.is_readonly("main").map_err(|error| Problem::of(&error, patience))? {
        return Err(Problem::ReadOnly);
    }
    place::narrow(&file)?;
    Ok(open)
}

/// A connection to a file that exists.
fn connect(file: &Path, patience: Duration) -> Result<OpenFile, Problem> {
    // No URI: a path is a path. No mutex: the gate is ours.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    // Before it is opened: a file that is exchanged in between is noticed with the next call.
    let identity = place::identity(file);
    Connection::open_with_flags(file, flags)
        .map_err(Stale::Sqlite)
        .and_then(|connection| set_up(connection, patience))
        .map(|connection| OpenFile { connection, identity })
        .map_err(|stale| problem(stale, patience))
}

fn set_up(mut connection: Connection, patience: Duration) -> Result<Connection, Stale> {
    // Whoever can write the file must not be able to make this program run functions from its schema.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Changing the journal does not wait for others who do the same, whatever the timeout says. So we do.
    let started = Instant::now();
    loop {
        let left = patience.saturating_sub(started.elapsed());
        connection.busy_timeout(left)?;
        match adopt(&mut connection) {
            Err(Stale::Sqlite(error)) if !left.is_zero() && is_busy(&error) => thread::sleep(PAUSE.min(left)),
            other => return other.map(|()| connection),
        }
    }
}

const PAUSE: Duration = Duration::from_millis(2);

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(Problem::of(error, Duration::ZERO), Problem::Busy(_))
}

/// Makes a file ours if it is new, and brings it up to date if it is old.
fn adopt(connection: &mut Connection) -> Result<(), Stale> {
    // Before anything is written: a file that is not ours stays as it is.
    let version = schema::inspect(connection)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", USUAL_SYNC)?;
    if connection.is_readonly("main")? {
        // An old file that is write-protected can still be read: steps only ever add.
        if version > 0 {
            if version < schema::CHAINED {
                connection.execute_batch(schema::AS_IF_NEW)?;
            }
            if version < schema::REVIEWED {
                connection.execute_batch(schema::AS_IF_REVIEWED)?;
            }
            return Ok(());
        }
    } else {
        // Where the file system cannot share memory SQLite stays with its old journal, which is slower and just as safe.
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    }
    schema::bring_up(connection, version)
}

fn problem(stale: Stale, patience: Duration) -> Problem {
    match stale {
        Stale::Refused(problem) => problem,
        Stale::Sqlite(error) => Problem::of(&error, patience),
    }
}
