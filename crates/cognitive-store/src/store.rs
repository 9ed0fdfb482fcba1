//! The opened store: its location, its options, and the access modes for rules. Hides whether a file or a server is
//! behind it. Contains no SQL; that is in `audit`, `context`, `review` and `spending`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cognitive_contract::context::Caps;

use crate::audit::DropTally;
use crate::error::{Problem, StoreError};
#[cfg(feature = "postgres")]
use crate::sql::postgres::PgServer;
use crate::sql::sqlite::SqliteFile;
use crate::sql::{LockedArea, SqlAccess, SqlSession};

/// The options of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreOptions {
    /// The longest time that a call may wait for other threads and processes in total.
    pub patience: Duration,
    /// The limits of the audit.
    pub retention: Retention,
    /// The limits of context.
    pub caps: Caps,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { patience: Duration::from_secs(5), retention: Retention::default(), caps: Caps::default() }
    }
}

/// The limits of the audit for each owner: a tenant, a key, or local use. A write drops the oldest records of its
/// owner and, except for expired records, never those of others. The total size is therefore bounded by the number of
/// owners.
///
/// Log files would be rotated at 5 × 10 MiB. A table needs no rotation, so the same 50 MiB are one limit. A second
/// limit counts records, which bounds query times. The file itself is somewhat larger and does not shrink: freed
/// pages are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The most records of runs and calls. Detail records are limited to a quarter of it.
    pub records: u64,
    /// The most bytes of text in records of runs and calls. Detail records are limited to a quarter of it. Payloads are
    /// not counted here. The newest record stays, whatever its size.
    pub bytes: u64,
    /// The most bytes of payloads. The oldest payloads are dropped and their records stay. The newest payload stays.
    pub payload_bytes: u64,
    /// The age at which a record expires; `None` for no age limit.
    pub age: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { records: 100_000, bytes: 50 << 20, payload_bytes: 50 << 20, age: None }
    }
}

/// The database. Cheap to open and safe to share between threads.
#[derive(Debug)]
pub struct Store {
    /// The location in a form that may be shown.
    place: PathBuf,
    options: StoreOptions,
    /// The drops since the store was opened.
    pub(crate) drops: DropTally,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    File(SqliteFile),
    #[cfg(feature = "postgres")]
    Server(Box<PgServer>),
}

const MEMORY: &str = ":memory:";

impl Store {
    /// Opens the store at `path`, and creates it and its folder if they are missing. Connects if `path` is a server
    /// address. Fails if the store is read-only, or if the path is not a regular file; symbolic links are refused
    /// too.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, StoreOptions::default())
    }

    /// Opens or creates a store with these options.
    pub fn open_with(path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        if Self::is_server(path) {
            return Self::open_server(path, options);
        }
        let file =
            SqliteFile::open(path, options.patience).map_err(|problem| StoreError::new(path, problem))?;
        Ok(Self::from_backend(place_of(&file), Backend::File(file), options))
    }

    /// Opens an existing store for queries; `None` if there is none. The store may be write-protected.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        Self::open_existing_with(path, StoreOptions::default())
    }

    /// Opens an existing store with these options.
    pub fn open_existing_with(path: &Path, options: StoreOptions) -> Result<Option<Self>, StoreError> {
        if Self::is_server(path) {
            return Self::open_server(path, options).map(Some);
        }
        let file = SqliteFile::open_existing(path, options.patience)
            .map_err(|problem| StoreError::new(path, problem))?;
        Ok(file.map(|file| Self::from_backend(place_of(&file), Backend::File(file), options)))
    }

    /// Creates a store in memory.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::in_memory_with(StoreOptions::default())
    }

    /// Creates a store in memory with these options.
    pub fn in_memory_with(options: StoreOptions) -> Result<Self, StoreError> {
        let file = SqliteFile::in_memory(options.patience)
            .map_err(|problem| StoreError::new(Path::new(MEMORY), problem))?;
        Ok(Self::from_backend(place_of(&file), Backend::File(file), options))
    }

    /// Returns whether an address is a database server and not a file.
    #[must_use]
    pub fn is_server(place: &Path) -> bool {
        let text = place.to_str().unwrap_or_default();
        ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Returns a path or an address in a form that may be shown: without a password.
    #[must_use]
    pub fn display_path(place: &Path) -> PathBuf {
        if Self::is_server(place) {
            without_secrets(&place.to_string_lossy()).into()
        } else {
            place.to_owned()
        }
    }

    /// Connects to the store on a database server: `postgres://USER@HOST/DATABASE`. Creates its tables in a separate
    /// schema if they are missing. The password is used if the address has none.
    #[cfg(feature = "postgres")]
    pub fn connect(
        address: &Path,
        password: Option<&str>,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let server = PgServer::open(address, password, options.patience)
            .map_err(|problem| StoreError::new(&Self::display_path(address), problem))?;
        Ok(Self::from_backend(server.display_address(), Backend::Server(Box::new(server)), options))
    }

    #[cfg(feature = "postgres")]
    fn open_server(place: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        Self::connect(place, None, options)
    }

    #[cfg(not(feature = "postgres"))]
    fn open_server(_: &Path, _: StoreOptions) -> Result<Self, StoreError> {
        let why = "this build does not support database servers".to_owned();
        Err(StoreError::new(Path::new("postgres://"), Problem::Inaccessible(why)))
    }

    fn from_backend(place: PathBuf, backend: Backend, options: StoreOptions) -> Self {
        Self { place, options, drops: DropTally::default(), backend }
    }

    /// Opens another connection to the same file, for slow reads. `None` in memory, and for servers, which have
    /// several connections anyway.
    pub(crate) fn sibling(&self) -> Option<Self> {
        match &self.backend {
            Backend::File(file) => Self::open_existing_with(file.path()?, self.options).ok().flatten(),
            #[cfg(feature = "postgres")]
            Backend::Server(_) => None,
        }
    }

    /// Returns whether the store is a database on a server, which several connections can use at once.
    pub(crate) fn is_on_server(&self) -> bool {
        match &self.backend {
            Backend::File(_) => false,
            #[cfg(feature = "postgres")]
            Backend::Server(_) => true,
        }
    }

    /// Returns the limits of the audit.
    pub(crate) fn retention(&self) -> Retention {
        self.options.retention
    }

    /// Returns the limits of context.
    pub(crate) fn caps(&self) -> Caps {
        self.options.caps
    }

    /// Reads data, and may remove expired data.
    pub(crate) fn look<T>(
        &self,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, StoreError> {
        self.work(SqlAccess::Look, self.options.patience, work)
    }

    /// Reads one snapshot of everything. Writers are not blocked.
    pub(crate) fn look_at_once<T>(
        &self,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, StoreError> {
        self.work(SqlAccess::Moment, self.options.patience, work)
    }

    /// Makes an atomic change with exclusive access to these areas.
    pub(crate) fn change<T>(
        &self,
        areas: &'static [LockedArea],
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, StoreError> {
        self.work(SqlAccess::Change(areas), self.options.patience, work)
    }

    /// Makes an atomic change that is on disk at the commit, even after a power failure.
    pub(crate) fn change_synced<T>(
        &self,
        areas: &'static [LockedArea],
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, StoreError> {
        self.work(SqlAccess::Keep(areas), self.options.patience, work)
    }

    /// Reads data without waiting; `None` if the store is busy or fails.
    pub(crate) fn glance<T>(
        &self,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Option<T> {
        self.work(SqlAccess::Look, Duration::ZERO, work).ok()
    }

    /// Begins and ends a transaction for a change, without waiting for others.
    pub(crate) fn try_writing(&self) -> Result<(), StoreError> {
        self.work(SqlAccess::Change(&[]), Duration::ZERO, |_| Ok(()))
    }

    fn work<T>(
        &self,
        access: SqlAccess,
        patience: Duration,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, StoreError> {
        let done = match &self.backend {
            Backend::File(file) => file.work(access, patience, work),
            #[cfg(feature = "postgres")]
            Backend::Server(server) => server.work(access, patience, work),
        };
        done.map_err(|problem| StoreError::new(&self.place, problem))
    }

    /// Runs work on the connection, for tests of file-specific behaviour.
    #[cfg(test)]
    pub(crate) fn with_file<T>(
        &self,
        work: impl FnOnce(&mut rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Problem> {
        let patience = self.options.patience;
        #[cfg_attr(
            not(feature = "postgres"),
            expect(clippy::infallible_destructuring_match, reason = "one of two")
        )]
        let file = match &self.backend {
            Backend::File(file) => file,
            #[cfg(feature = "postgres")]
            Backend::Server(_) => return Err(Problem::NotAFile("a server")),
        };
        file.with(patience, |connection| {
            work(connection).map_err(|error| Problem::from_sqlite(&error, patience))
        })
    }
}

/// Returns an address in a form that may be shown and logged: without a password, and without the query, which may
/// contain one.
pub(crate) fn without_secrets(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("postgres", text));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let shown = match authority.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => authority.to_owned(),
    };
    format!("{scheme}://{shown}/{path}")
}

fn place_of(file: &SqliteFile) -> PathBuf {
    file.path().unwrap_or(Path::new(MEMORY)).to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use cognitive_contract::Envelope;
    use cognitive_contract::ports::{AuditLog, AuditRecord};
    use serde_json::json;

    use rusqlite::{Connection, OpenFlags};

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
        store
            .with_file(|connection| connection.pragma_update_and_check(None, name, value, |_| Ok(())))
            .unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error_and_what_is_kept_stays_readable() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let empty: i64 = store
            .with_file(|connection| connection.pragma_query_value(None, "page_count", |row| row.get(0)))
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

    // `NORMAL`: the log is synced at each checkpoint. Decisions of people are synced one by one, with `FULL`.
    #[test]
    fn the_sync_mode_of_a_file_is_the_published_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let mode = || -> i64 {
            store
                .with_file(|connection| connection.pragma_query_value(None, "synchronous", |row| row.get(0)))
                .unwrap()
        };
        store.record(&record("t")).unwrap();
        assert_eq!(mode(), 1);
        store.change_synced(&[], |_| Ok(())).unwrap();
        assert_eq!(mode(), 1);
    }

    #[test]
    fn a_connection_that_may_not_write_says_so() {
        let store = Store::in_memory().unwrap();
        store.with_file(|connection| connection.pragma_update(None, "query_only", true)).unwrap();
        assert_eq!(store.record(&record("t")), Err("store `:memory:`: it cannot be written".to_owned()));
        assert!(store.list(&Filter::default()).unwrap().is_empty());
    }

    #[test]
    fn a_transaction_that_was_left_open_does_not_block_later_ones() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        store.with_file(|connection| connection.execute_batch("BEGIN IMMEDIATE")).unwrap();
        store.record(&record("t")).unwrap();
        assert_eq!(store.list(&Filter::default()).unwrap().len(), 1);
    }

    #[test]
    fn a_panic_during_work_does_not_block_later_calls() {
        let store = Store::in_memory().unwrap();
        let fall = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            store.look::<()>(|_| panic!("on purpose")).unwrap();
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
        let file = SqliteFile::from_connection(protected).unwrap();
        let store = Store::from_backend(PathBuf::new(), Backend::File(file), StoreOptions::default());
        assert_eq!(store.list(&Filter { runs: true, ..Filter::default() }).unwrap()[0].trace_id, "old");
        assert_eq!(store.verify(&[]).unwrap().before_chains, 1);
        assert!(store.heads().unwrap().is_empty() && store.dropped_records().unwrap().is_empty());
    }
}
