//! The store, opened: where it is, how it behaves, and the ways in which rules do their work on it. Whether a file or a server
//! is behind it is nobody else's business. Holds no SQL; that is in `audit`, `context`, `review` and `spending`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cognitive_contract::context::Caps;

use crate::audit::DropTally;
use crate::error::{Problem, StoreError};
#[cfg(feature = "postgres")]
use crate::sql::postgres::PgServer;
use crate::sql::sqlite::SqliteFile;
use crate::sql::{LockedArea, SqlAccess, SqlSession};

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
    /// As people may read it.
    place: PathBuf,
    options: StoreOptions,
    /// What was dropped to keep within limits.
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
    /// Opens the store at `path` and creates it if need be, its folder included. Fails if it cannot be written, and if
    /// anything but a regular file stands there, also a symbolic link to one. An address of a server is connected to instead.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, StoreOptions::default())
    }

    /// Opens or creates a store that behaves as told.
    pub fn open_with(path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        if Self::is_server(path) {
            return Self::of_server(path, options);
        }
        let file =
            SqliteFile::open(path, options.patience).map_err(|problem| StoreError::new(path, problem))?;
        Ok(Self::around(place_of(&file), Backend::File(file), options))
    }

    /// Opens a store to ask it questions. Creates none: `None` if there is none. It may be write-protected.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        Self::open_existing_with(path, StoreOptions::default())
    }

    /// The same for a store that behaves as told.
    pub fn open_existing_with(path: &Path, options: StoreOptions) -> Result<Option<Self>, StoreError> {
        if Self::is_server(path) {
            return Self::of_server(path, options).map(Some);
        }
        let file = SqliteFile::open_existing(path, options.patience)
            .map_err(|problem| StoreError::new(path, problem))?;
        Ok(file.map(|file| Self::around(place_of(&file), Backend::File(file), options)))
    }

    /// A store that is gone with the process.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::in_memory_with(StoreOptions::default())
    }

    /// A store in memory that behaves as told.
    pub fn in_memory_with(options: StoreOptions) -> Result<Self, StoreError> {
        let file = SqliteFile::in_memory(options.patience)
            .map_err(|problem| StoreError::new(Path::new(MEMORY), problem))?;
        Ok(Self::around(place_of(&file), Backend::File(file), options))
    }

    /// Whether an address means a database server and not a file.
    #[must_use]
    pub fn is_server(place: &Path) -> bool {
        let text = place.to_str().unwrap_or_default();
        ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// A path or an address as people may see it: without a password.
    #[must_use]
    pub fn shown(place: &Path) -> PathBuf {
        if Self::is_server(place) {
            without_secrets(&place.to_string_lossy()).into()
        } else {
            place.to_owned()
        }
    }

    /// The store on a database server: `postgres://USER@HOST/DATABASE`. Creates its tables if need be, in a schema of their own.
    /// The password is used where the address has none.
    #[cfg(feature = "postgres")]
    pub fn connect(
        address: &Path,
        password: Option<&str>,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let server = PgServer::open(address, password, options.patience)
            .map_err(|problem| StoreError::new(&Self::shown(address), problem))?;
        Ok(Self::around(server.shown(), Backend::Server(Box::new(server)), options))
    }

    #[cfg(feature = "postgres")]
    fn of_server(place: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        Self::connect(place, None, options)
    }

    #[cfg(not(feature = "postgres"))]
    fn of_server(_: &Path, _: StoreOptions) -> Result<Self, StoreError> {
        let why = "this build knows no database servers".to_owned();
        Err(StoreError::new(Path::new("postgres://"), Problem::Inaccessible(why)))
    }

    fn around(place: PathBuf, backend: Backend, options: StoreOptions) -> Self {
        Self { place, options, drops: DropTally::default(), backend }
    }

    /// Another connection to the same file, for somebody who takes long; nothing in memory, and where there are several
    /// connections anyway.
    pub(crate) fn sibling(&self) -> Option<Self> {
        match &self.backend {
            Backend::File(file) => Self::open_existing_with(file.path()?, self.options).ok().flatten(),
            #[cfg(feature = "postgres")]
            Backend::Server(_) => None,
        }
    }

    /// Where it is, as people may read it.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// How much is kept.
    pub(crate) fn retention(&self) -> Retention {
        self.options.retention
    }

    /// How much context is kept.
    pub(crate) fn caps(&self) -> Caps {
        self.options.caps
    }

    /// Looks at something, and may remove what nobody misses.
    pub(crate) fn look<T>(
        &self,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, StoreError> {
        self.work(SqlAccess::Look, self.options.patience, work)
    }

    /// Looks at everything as it is at one moment. Others may go on writing.
    pub(crate) fn look_at_once<T>(
        &self,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, StoreError> {
        self.work(SqlAccess::Moment, self.options.patience, work)
    }

    /// Changes something: all of it or nothing, and nobody else changes these areas meanwhile.
    pub(crate) fn change<T>(
        &self,
        areas: &'static [LockedArea],
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, StoreError> {
        self.work(SqlAccess::Change(areas), self.options.patience, work)
    }

    /// The same for what has to be on the disk when it is done, also when the power goes.
    pub(crate) fn change_synced<T>(
        &self,
        areas: &'static [LockedArea],
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, StoreError> {
        self.work(SqlAccess::Keep(areas), self.options.patience, work)
    }

    /// Looks at what is not worth waiting for: nothing if somebody else is at it, or it does not work.
    pub(crate) fn glance<T>(
        &self,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Option<T> {
        self.work(SqlAccess::Look, Duration::ZERO, work).ok()
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

    /// The connection itself, for tests of what only a file can go through.
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
        file.with(patience, |connection| work(connection).map_err(|error| Problem::of(&error, patience)))
    }
}

/// An address as people and logs may see it: no password, and no query, which may have one.
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
        let file = SqliteFile::of_connection(protected).unwrap();
        let store = Store::around(PathBuf::new(), Backend::File(file), StoreOptions::default());
        assert_eq!(store.list(&Filter { runs: true, ..Filter::default() }).unwrap()[0].trace_id, "old");
        assert_eq!(store.verify(&[]).unwrap().before_chains, 1);
        assert!(store.heads().unwrap().is_empty() && store.dropped().unwrap().is_empty());
    }
}
