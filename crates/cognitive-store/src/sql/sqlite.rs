//! An open file: one connection, used by one thread at a time, shared with other processes.
//! Contains no SQL about records and context; the rules do.

use std::ops::ControlFlow;
use std::path::{self, Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use cognitive_contract::lock::Lock;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, TransactionBehavior, params_from_iter};

use super::{SqlAccess, SqlDialect, SqlRow, SqlSession, SqlValue};
use crate::error::Problem;
use crate::gate::ConnectionGate;
use crate::place;
use crate::schema::{self, MigrationRefusal};

/// A database file on this machine.
#[derive(Debug)]
pub(crate) struct SqliteFile {
    /// Absolute, because it may be reopened after a change of the working directory; `None` in memory.
    path: Option<PathBuf>,
    patience: Duration,
    gate: ConnectionGate,
    // Locked only after the gate, so this lock is never contended.
    open: Lock<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    connection: Connection,
    /// The identity of the open file, which may differ from the file now at the path.
    identity: Option<(u64, u64)>,
}

impl SqliteFile {
    /// Opens the file, and creates it if it is missing.
    pub(crate) fn open(path: &Path, patience: Duration) -> Result<Self, Problem> {
        let path = path::absolute(path)?;
        let open = create(&path, patience)?;
        Ok(Self::from_open_file(Some(path), open, patience))
    }

    /// Opens the file if it exists.
    pub(crate) fn open_existing(path: &Path, patience: Duration) -> Result<Option<Self>, Problem> {
        let Some(file) = place::look(path)? else { return Ok(None) };
        let open = connect(&file, patience)?;
        Ok(Some(Self::from_open_file(Some(path::absolute(path)?), open, patience)))
    }

    /// Creates a database in memory.
    pub(crate) fn in_memory(patience: Duration) -> Result<Self, Problem> {
        let connection = Connection::open_in_memory()
            .map_err(MigrationRefusal::Sqlite)
            .and_then(|connection| set_up(connection, patience))
            .map_err(|stale| problem(stale, patience))?;
        Ok(Self::from_open_file(None, OpenFile { connection, identity: None }, patience))
    }

    /// Creates a database from an existing connection.
    #[cfg(test)]
    pub(crate) fn from_connection(connection: Connection) -> Result<Self, Problem> {
        let connection =
            set_up(connection, Duration::ZERO).map_err(|stale| problem(stale, Duration::ZERO))?;
        Ok(Self::from_open_file(None, OpenFile { connection, identity: None }, Duration::ZERO))
    }

    fn from_open_file(path: Option<PathBuf>, open: OpenFile, patience: Duration) -> Self {
        Self { path, patience, gate: ConnectionGate::default(), open: Lock::new(open) }
    }

    /// Returns the path; `None` in memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Runs exclusive work on the connection. The waits for other threads and for other processes share one time
    /// budget. Otherwise the last caller in the queue would wait for the sum of all.
    pub(crate) fn with<T>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut Connection) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let started = Instant::now();
        let _turn = self.gate.enter(patience).ok_or(Problem::Busy(patience))?;
        let mut open = self.open.lock();
        self.keep_usable(&mut open)?;
        let left = patience.saturating_sub(started.elapsed());
        open.connection.busy_timeout(left).map_err(|error| Problem::from_sqlite(&error, patience))?;
        work(&mut open.connection)
    }

    /// Runs work in a session.
    pub(crate) fn work<T>(
        &self,
        access: SqlAccess,
        patience: Duration,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let said = |error: rusqlite::Error| Problem::from_sqlite(&error, patience);
        let behavior = match access {
            SqlAccess::Look => {
                return self.with(patience, |connection| work(&mut SqliteSession { connection, patience }));
            }
            SqlAccess::Moment => TransactionBehavior::Deferred,
            // Immediate: data read in the transaction must not change before its end.
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

    /// Reopens an unusable file. A server may outlive its file: after a delete or move, records would go to the old
    /// file. A transaction that can be neither ended nor undone would block all later ones.
    fn keep_usable(&self, open: &mut OpenFile) -> Result<(), Problem> {
        let Some(path) = &self.path else { return Ok(()) };
        if open.connection.is_autocommit() && open.identity == place::identity(path) {
            return Ok(());
        }
        *open = create(path, self.patience)?;
        Ok(())
    }
}

/// A session on the connection.
struct SqliteSession<'a> {
    connection: &'a Connection,
    patience: Duration,
}

impl SqliteSession<'_> {
    fn problem_of(&self, error: &rusqlite::Error) -> Problem {
        Problem::from_sqlite(error, self.patience)
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
        done.map(|count| count as u64).map_err(|error| self.problem_of(&error))
    }

    fn execute_later(&mut self, sql: &str, values: &[SqlValue]) -> Result<(), Problem> {
        self.execute(sql, values).map(drop)
    }

    fn insert(&mut self, table: &str, columns: &str, rows: Vec<Vec<SqlValue>>) -> Result<(), Problem> {
        let Some(width) = rows.first().map(Vec::len) else { return Ok(()) };
        let marks = vec!["?"; width].join(", ");
        let sql = format!("INSERT INTO {table} ({columns}) VALUES ({marks})");
        // One statement for each row costs no more than one for all: nothing is sent, and it is parsed once.
        let mut statement = self.connection.prepare_cached(&sql).map_err(|error| self.problem_of(&error))?;
        for row in &rows {
            statement.execute(params_from_iter(row)).map_err(|error| self.problem_of(&error))?;
        }
        Ok(())
    }

    fn for_each(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        take: &mut dyn FnMut(&SqlRow) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem> {
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.problem_of(&error))?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values)).map_err(|error| self.problem_of(&error))?;
        while let Some(row) = rows.next().map_err(|error| self.problem_of(&error))? {
            let read =
                (0..columns).map(|column| row.get_ref(column).map_err(|error| self.problem_of(&error)));
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

/// The sync mode of ordinary writes: they wait for the operating system, not for the disk.
const USUAL_SYNC: &str = "NORMAL";

/// Opens a writable connection, and creates the file if it is missing.
fn create(path: &Path, patience: Duration) -> Result<OpenFile, Problem> {
    let file = place::prepare(path)?;
    let open = connect(&file, patience)?;
    // `SQLite` opens a write-protected file without an error.
    if open.connection.is_readonly("main").map_err(|error| Problem::from_sqlite(&error, patience))? {
        return Err(Problem::ReadOnly);
    }
    place::narrow(&file)?;
    Ok(open)
}

/// Opens a connection to an existing file.
fn connect(file: &Path, patience: Duration) -> Result<OpenFile, Problem> {
    // No URI, so that a path is only a path. No mutex, because the gate already serialises access.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    // Read before the file is opened: a file replaced in between is noticed at the next call.
    let identity = place::identity(file);
    Connection::open_with_flags(file, flags)
        .map_err(MigrationRefusal::Sqlite)
        .and_then(|connection| set_up(connection, patience))
        .map(|connection| OpenFile { connection, identity })
        .map_err(|stale| problem(stale, patience))
}

fn set_up(mut connection: Connection, patience: Duration) -> Result<Connection, MigrationRefusal> {
    // A writer of the file must not be able to make this program run functions from its schema.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // A change of the journal mode ignores the busy timeout, so this loop waits instead.
    let started = Instant::now();
    loop {
        let left = patience.saturating_sub(started.elapsed());
        connection.busy_timeout(left)?;
        match adopt(&mut connection) {
            Err(MigrationRefusal::Sqlite(error)) if !left.is_zero() && is_busy(&error) => {
                thread::sleep(PAUSE.min(left));
            }
            other => return other.map(|()| connection),
        }
    }
}

/// The pause between two attempts at a locked file. Without it, the wait would keep a processor busy.
const PAUSE: Duration = Duration::from_millis(2);

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(Problem::from_sqlite(error, Duration::ZERO), Problem::Busy(_))
}

/// Initialises a new file and migrates an old one.
fn adopt(connection: &mut Connection) -> Result<(), MigrationRefusal> {
    // Checked before the first write: files of other programs stay unchanged.
    let version = schema::inspect(connection)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", USUAL_SYNC)?;
    if connection.is_readonly("main")? {
        // An old write-protected file can still be read, because steps only add.
        if version > 0 {
            if version < schema::CHAINED {
                connection.execute_batch(schema::AS_IF_NEW)?;
            }
            if version < schema::REVIEWED {
                connection.execute_batch(schema::AS_IF_REVIEWED)?;
            }
            if schema::WITHOUT_PATTERN.contains(&version) {
                connection.execute_batch(schema::AS_IF_PATTERNED)?;
            }
            if version < schema::WITHOUT_PATTERN.start {
                connection.execute_batch(schema::AS_IF_CONTEXT)?;
            }
            if version < schema::BUDGETED {
                connection.execute_batch(schema::AS_IF_SPENDING)?;
            }
            if version < schema::PROTECTED {
                connection.execute_batch(schema::AS_IF_PROTECTED)?;
            }
            return Ok(());
        }
    } else {
        // If the file system has no shared memory, `SQLite` keeps its old journal, which is slower and just as safe.
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    }
    schema::migrate_up(connection, version)
}

fn problem(stale: MigrationRefusal, patience: Duration) -> Problem {
    match stale {
        MigrationRefusal::Refused(problem) => problem,
        MigrationRefusal::Sqlite(error) => Problem::from_sqlite(&error, patience),
    }
}
