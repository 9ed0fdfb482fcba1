//! Records and places for the tests of this crate.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use cognitive_contract::Envelope;
use cognitive_contract::context::{ContextEntry, Key, Ttl};
use cognitive_contract::ports::AuditRecord;
use cognitive_store::{Store, StoreOptions};
use cognitive_testkit::TestPostgres;
use serde_json::json;
use tempfile::TempDir;

/// The location of a store for one test, on one of the backends.
pub struct Home {
    _dir: TempDir,
    /// A path or an address; `None` in memory.
    path: Option<PathBuf>,
    /// The single store in memory.
    memory: OnceLock<Arc<Store>>,
}

impl Home {
    fn at(dir: TempDir, path: Option<PathBuf>) -> Self {
        Self { _dir: dir, path, memory: OnceLock::new() }
    }

    /// Creates a store in memory. Opening it again returns the same store.
    pub fn in_memory() -> Self {
        Self::at(tempfile::tempdir().unwrap(), None)
    }

    /// Creates a file.
    pub fn on_sqlite() -> Self {
        let (dir, path) = place();
        Self::at(dir, Some(path))
    }

    /// Creates a database on the server shared by all tests of this process; `None` without a server.
    pub fn on_postgres() -> Option<Self> {
        let address = server()?.database();
        Some(Self::at(tempfile::tempdir().unwrap(), Some(address.into())))
    }

    /// Returns the path for other processes; panics in memory.
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap()
    }

    pub fn open(&self) -> Arc<Store> {
        self.open_with(StoreOptions::default())
    }

    /// Opens a store with these options. In memory, the first call sets the options.
    pub fn open_with(&self, options: StoreOptions) -> Arc<Store> {
        match &self.path {
            Some(path) => Arc::new(Store::open_with(path, options).unwrap()),
            None => Arc::clone(self.memory.get_or_init(|| Arc::new(Store::in_memory_with(options).unwrap()))),
        }
    }
}

/// Returns the server shared by all tests of this process. It ends with the process.
pub fn server() -> Option<&'static TestPostgres> {
    static SERVER: OnceLock<Option<TestPostgres>> = OnceLock::new();
    let server = SERVER.get_or_init(TestPostgres::start).as_ref();
    if server.is_none() {
        cognitive_testkit::skip(cognitive_testkit::Lack::Postgres);
    }
    server
}

/// Defines tests of one store that run on every backend: in memory, in a file, on a server.
macro_rules! on_every_backend {
    ($(#[test] fn $name:ident($home:ident: &Home) $body:block)*) => {$(
        fn $name($home: &Home) $body

        mod $name {
            #[test]
            fn in_memory() {
                super::$name(&crate::common::Home::in_memory());
            }

            #[test]
            fn on_sqlite() {
                super::$name(&crate::common::Home::on_sqlite());
            }

            #[test]
            fn on_postgres() {
                if let Some(home) = crate::common::Home::on_postgres() {
                    super::$name(&home);
                }
            }
        }
    )*};
}
pub(crate) use on_every_backend;

/// Defines tests with several processes, or with a store reopened with other options: in a file and on a server.
macro_rules! where_others_find_it {
    ($(#[test] fn $name:ident($home:ident: &Home) $body:block)*) => {$(
        fn $name($home: &Home) $body

        mod $name {
            #[test]
            fn on_sqlite() {
                super::$name(&crate::common::Home::on_sqlite());
            }

            #[test]
            fn on_postgres() {
                if let Some(home) = crate::common::Home::on_postgres() {
                    super::$name(&home);
                }
            }
        }
    )*};
}
pub(crate) use where_others_find_it;

/// Creates a folder that is removed after the test, and returns the path of a store to be created in it.
pub fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cognitive.db");
    (dir, path)
}

/// Returns 2026-01-02 03:04:05 UTC plus some seconds.
pub fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045 + seconds)
}

/// Creates the record of a successful run.
pub fn good(trace_id: &str, module: &str) -> AuditRecord {
    let answer = json!({
        "ok": true,
        "meta": { "confidence": 0.75, "risk": "low", "explain": "Done" },
        "data": { "rationale": "It was easy." }
    });
    AuditRecord::new(at(0), trace_id, module, &Envelope::from_value(answer).unwrap())
}

/// Creates the record of a failed run.
pub fn bad(trace_id: &str, module: &str, code: &str) -> AuditRecord {
    let answer = json!({
        "ok": false,
        "meta": { "confidence": 0.0, "risk": "high", "explain": "Failed" },
        "error": { "code": code, "message": "no" }
    });
    AuditRecord::new(at(0), trace_id, module, &Envelope::from_value(answer).unwrap())
}

/// Returns the path of `-wal` or `-shm`.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// Creates a `session_state` that was emitted at second 0.
pub fn state(key: &str, number: usize, ttl: i64) -> ContextEntry {
    ContextEntry::new("session_state", Key::plain(key), json!(number), Ttl::parse(ttl).unwrap(), at(0))
}

/// A file of the first version with one record: without owners, chains and context.
pub const FIRST_VERSION: &str = include_str!("first_version.sql");
