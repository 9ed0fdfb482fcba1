//! The file, opened: one connection, used by one thread at a time, shared with other processes.
//! Holds no SQL about records and context; that is in `audit` and `context`.

use std::path::{self, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cognitive_contract::context::Caps;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::audit::DropTally;
use crate::error::{Problem, StoreError};
use crate::gate::ConnectionGate;
use crate::place;
use crate::schema::{self, Stale};

/// How a store behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreOptions {
    /// How long a call may wait for other threads and processes, all in all.
    pub patience: Duration,
    /// How much is kept.
    pub retention: Retention,
    /// How much context is kept.
    pub caps: Caps,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { patience: Duration::from_secs(5), retention: Retention::default(), caps: Caps::default() }
    }
}

/// How much of the audit is kept of each owner: a tenant, a key, or whoever uses this machine. The oldest records of an
/// owner go first, with its next write; those of others are left alone. So all of it together is bounded by the number of
/// owners.
///
/// Log files would be rotated at 5 × 10 MiB. A table needs no rotation, so the same 50 MiB are one limit, and a second
/// one counts records, which bounds the time that a question takes. The file itself is somewhat larger, and does not
/// shrink: freed pages are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of runs records of runs and calls, and a quarter as many of what happened in runs.
    pub records: u64,
    /// Maximum number of runs bytes of text in records of runs and calls, and a quarter as many in the others. Payloads are not
    /// counted here. The newest record stays, whatever its size.
    pub bytes: u64,
    /// Maximum number of runs bytes of payloads. The oldest payloads go, and their records stay. The newest stays.
    pub payload_bytes: u64,
    /// How long a record is kept; for ever if nothing else makes it go.
    pub age: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { records: 100_000, bytes: 50 << 20, payload_bytes: 50 << 20, age: None }
    }
}

/// The database. Cheap to open, safe to share.
#[derive(Debug)]
pub struct Store {
    /// Absolute, since it may have to be opened again when the process has gone elsewhere; `None` in memory.
    path: Option<PathBuf>,
    options: StoreOptions,
    /// What was dropped to keep within limits.
    pub(crate) drops: DropTally,
    gate: ConnectionGate,
    // Locked only by whoever has passed the gate, so nobody ever waits for this one.
    open: Mutex<OpenStore>,
}

#[derive(Debug)]
struct OpenStore {
    connection: Connection,
    /// The file behind the connection, which need not be the one at the path any more.
    identity: Option<(u64, u64)>,
}

impl Store {
    /// Opens the store at `path` and creates it if need be, its folder included. Fails if it cannot be written, and if
    /// anything but a regular file stands there, also a symbolic link to one.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, StoreOptions::default())
    }

    /// Opens or creates a store that behaves as told.
    pub fn open_with(path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let fail = |problem| StoreError::new(path, problem);
        let path = absolute(path).map_err(fail)?;
        let open = create(&path, options.patience).map_err(fail)?;
        Ok(Self::around(Some(path), open, options))
    }

    /// Opens a store to ask it questions. Creates none: `None` if there is none. It may be write-protected.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        Self::open_existing_with(path, StoreOptions::default())
    }

    /// The same for a store that behaves as told.
    pub fn open_existing_with(path: &Path, options: StoreOptions) -> Result<Option<Self>, StoreError> {
        let fail = |problem| StoreError::new(path, problem);
        let Some(file) = place::look(path).map_err(fail)? else { return Ok(None) };
        let open = connect(&file, options.patience).map_err(fail)?;
        let path = absolute(path).map_err(fail)?;
        Ok(Some(Self::around(Some(path), open, options)))
    }

    /// A store that is gone with the process.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::in_memory_with(StoreOptions::default())
    }

    /// A store in memory that behaves as told.
    pub fn in_memory_with(options: StoreOptions) -> Result<Self, StoreError> {
        let open = Connection::open_in_memory()
            .map_err(Stale::Sqlite)
            .and_then(|connection| set_up(connection, options.patience))
            .map_err(|stale| StoreError::new(Path::new(MEMORY), problem(stale, options.patience)))?;
        Ok(Self::around(None, OpenStore { connection: open, identity: None }, options))
    }

    fn around(path: Option<PathBuf>, open: OpenStore, options: StoreOptions) -> Self {
        Self {
            path,
            options,
            drops: DropTally::default(),
            gate: ConnectionGate::default(),
            open: Mutex::new(open),
        }
    }

    /// Another connection to the same file, for somebody who takes long; nothing in memory.
    pub(crate) fn sibling(&self) -> Option<Self> {
        let path = self.path.as_deref()?;
        Self::open_existing_with(path, self.options).ok().flatten()
    }

    /// How much is kept.
    pub(crate) fn retention(&self) -> Retention {
        self.options.retention
    }

    /// How much context is kept.
    pub(crate) fn caps(&self) -> Caps {
        self.options.caps
    }

    /// Does some work on the connection, alone. Waiting for other threads and for other processes comes out of one
    /// budget, so the last in a queue does not wait for the sum of all.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let patience = self.options.patience;
        let started = Instant::now();
        let _turn = self.gate.enter(patience).ok_or_else(|| self.error(Problem::Busy(patience)))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.keep_usable(&mut open)?;
        let left = patience.saturating_sub(started.elapsed());
        let result = open.connection.busy_timeout(left).and_then(|()| work(&mut open.connection));
        result.map_err(|error| self.error(Problem::of(&error, patience)))
    }

    /// The same for what has to be on the disk when it is done, also when the power goes.
    pub(crate) fn with_synced<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.with(|connection| {
            connection.pragma_update(None, "synchronous", "FULL")?;
            let result = work(connection);
            connection.pragma_update(None, "synchronous", USUAL_SYNC)?;
            result
        })
    }

    /// The same for what is not worth waiting for: nothing if somebody else is at it, or it does not work.
    pub(crate) fn with_at_once<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Option<T> {
        let _turn = self.gate.enter(Duration::ZERO)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.keep_usable(&mut open).ok()?;
        open.connection.busy_timeout(Duration::ZERO).and_then(|()| work(&mut open.connection)).ok()
    }

    /// A server outlives its file: someone deletes or moves it, and records would go where nobody looks. Also, a
    /// transaction that could neither be ended nor undone would block every later one. Both are cured by a fresh start.
    fn keep_usable(&self, open: &mut OpenStore) -> Result<(), StoreError> {
        let Some(path) = &self.path else { return Ok(()) };
        if open.connection.is_autocommit() && open.identity == place::identity(path) {
            return Ok(());
        }
        *open = create(path, self.options.patience).map_err(|problem| self.error(problem))?;
        Ok(())
    }

    fn error(&self, problem: Problem) -> StoreError {
        StoreError::new(self.path.as_deref().unwrap_or(Path::new(MEMORY)), problem)
    }
}

const MEMORY: &str = ":memory:";
/// How much is waited for with every write: until the system has it.
const USUAL_SYNC: &str = "NORMAL";

fn absolute(path: &Path) -> Result<PathBuf, Problem> {
    Ok(path::absolute(path)?)
}

/// A connection that can write, to a file that is created if it is missing.
fn create(path: &Path, patience: Duration) -> Result<OpenStore, Problem> {
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
fn connect(file: &Path, patience: Duration) -> Result<OpenStore, Problem> {
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
        .map(|connection| OpenStore { connection, identity })
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

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use cognitive_contract::Envelope;
    use cognitive_contract::ports::{AuditLog, AuditRecord};
    use serde_json::json;

    use super::*;
    use crate::Filter;

    fn record(trace_id: &str) -> AuditRecord {
        let answer = json!({
            "ok": true,
            "meta": { "confidence": 0.9, "risk": "low", "explain": "Done" },
            "data": { "rationale": "r" }
        });
        let envelope = Envelope::from_value(answer).unwrap();
        let mut record = AuditRecord::new(SystemTime::UNIX_EPOCH, trace_id, "m", &envelope);
        record.payload = Some(json!("x".repeat(3_000)));
        record
    }

    fn pragma(store: &Store, name: &str, value: i64) {
        store.with(|connection| connection.pragma_update_and_check(None, name, value, |_| Ok(()))).unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error_and_what_is_kept_stays_readable() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let empty: i64 = store
            .with(|connection| connection.pragma_query_value(None, "page_count", |row| row.get(0)))
            .unwrap();
        pragma(&store, "max_page_count", empty + 14);
        let kept = (0..100).take_while(|_| store.record(&record("t")).is_ok()).count();
        assert!((5..22).contains(&kept), "{kept}");
        for _ in 0..3 {
            let error = store.record(&record("t")).unwrap_err();
            assert!(error.ends_with("store.db`: the disk is full"), "{error}");
            assert_eq!(store.list(&Filter::default()).unwrap().len(), kept);
        }
        pragma(&store, "max_page_count", 1_000);
        store.record(&record("t")).unwrap();
        assert_eq!(store.list(&Filter::default()).unwrap().len(), kept + 1);
    }

    #[test]
    fn a_connection_that_may_not_write_says_so() {
        let store = Store::in_memory().unwrap();
        store.with(|connection| connection.pragma_update(None, "query_only", true)).unwrap();
        assert_eq!(store.record(&record("t")), Err("store `:memory:`: it cannot be written".to_owned()));
        assert!(store.list(&Filter::default()).unwrap().is_empty());
    }

    #[test]
    fn a_transaction_that_was_left_open_does_not_block_later_ones() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        store.with(|connection| connection.execute_batch("BEGIN IMMEDIATE")).unwrap();
        store.record(&record("t")).unwrap();
        assert_eq!(store.list(&Filter::default()).unwrap().len(), 1);
    }

    #[test]
    fn a_panic_during_work_does_not_block_later_calls() {
        let store = Store::in_memory().unwrap();
        let fall = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            store.with::<()>(|_| panic!("on purpose")).unwrap();
        }));
        assert!(fall.is_err());
        store.record(&record("t")).unwrap();
    }

    #[test]
    fn a_store_can_be_shared() {
        fn shared<T: Send + Sync>() {}
        shared::<Store>();
    }

    #[test]
    fn an_old_file_that_cannot_be_written_is_read_as_if_it_were_new() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.db");
        let old = include_str!("../tests/store/first_version.sql");
        Connection::open(&path).unwrap().execute_batch(old).unwrap();
        let protected = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let open = OpenStore { connection: set_up(protected, Duration::ZERO).unwrap(), identity: None };
        let store = Store::around(None, open, StoreOptions::default());
        assert_eq!(store.list(&Filter { runs: true, ..Filter::default() }).unwrap()[0].trace_id, "old");
        assert_eq!(store.verify(&[]).unwrap().before_chains, 1);
        assert!(store.heads().unwrap().is_empty() && store.dropped().unwrap().is_empty());
    }
}
