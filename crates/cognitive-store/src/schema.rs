//! The tables, as a list of migration steps. A file's `user_version` says which steps it has run.
//! A released step is never changed; changes become new steps. Refuses files of other programs and of newer versions
//! of this program, because writing to them could damage them.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::Problem;

/// `cogn` in ASCII, so that tools such as `file` can identify the database.
const APPLICATION_ID: i64 = 0x636f_676e;

/// Step n brings a file from version n to n + 1.
const STEPS: [&str; 8] = [
    // `position` is where a record begins in the stream of all records ever kept, in bytes, and ids have no gaps. So the
    // first and the last row tell how many records there are and how much they hold, without counting.
    "CREATE TABLE audit (
        id INTEGER PRIMARY KEY,
        position INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        ts TEXT NOT NULL,
        event TEXT NOT NULL,
        trace_id TEXT NOT NULL,
        module TEXT NOT NULL,
        version TEXT NOT NULL,
        ok INTEGER NOT NULL CHECK (ok IN (0, 1)),
        code TEXT,
        model TEXT NOT NULL,
        confidence REAL NOT NULL,
        risk TEXT NOT NULL,
        latency_ms REAL NOT NULL,
        input_tokens INTEGER,
        output_tokens INTEGER,
        receipt TEXT NOT NULL,
        payload TEXT
    ) STRICT;
    CREATE INDEX audit_trace_id ON audit (trace_id);",
    // A newer entry has a higher id. Values come last, so that index lookups do not read them. An unnamed user is the
    // empty text, because two NULLs are not equal.
    "CREATE TABLE context (
        id INTEGER PRIMARY KEY,
        bytes INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        user TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        session TEXT,
        input_hash TEXT,
        module TEXT NOT NULL,
        ttl INTEGER NOT NULL,
        created TEXT NOT NULL,
        ends TEXT,
        value TEXT NOT NULL,
        UNIQUE (tenant, user, kind, key)
    ) STRICT;
    CREATE INDEX context_ends ON context (ends) WHERE ends IS NOT NULL;
    CREATE INDEX context_bytes ON context (id, bytes);
    CREATE INDEX context_session ON context (tenant, user, kind, session);",
    // The owner, the run, and the position in a hash chain. Rows without a chain are older than this step. There is
    // one chain for each owner and kind of record, so that retention always drops the start of a chain and leaves no
    // gaps. `position` is no longer used, because limits now apply per owner.
    "ALTER TABLE audit ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN key TEXT;
    ALTER TABLE audit ADD COLUMN user TEXT;
    ALTER TABLE audit ADD COLUMN tenant TEXT;
    ALTER TABLE audit ADD COLUMN payload_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE audit ADD COLUMN payload_sha256 BLOB;
    ALTER TABLE audit ADD COLUMN chain INTEGER;
    ALTER TABLE audit ADD COLUMN seq INTEGER;
    ALTER TABLE audit ADD COLUMN dropped INTEGER;
    ALTER TABLE audit ADD COLUMN before BLOB;
    ALTER TABLE audit ADD COLUMN hash BLOB;
    CREATE UNIQUE INDEX audit_chain ON audit (chain, seq) WHERE chain IS NOT NULL;
    CREATE INDEX audit_payload ON audit (chain, seq) WHERE payload IS NOT NULL;
    CREATE INDEX audit_run ON audit (run_id, event);
    CREATE TABLE audit_chains (
        id INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        kind TEXT NOT NULL,
        seq INTEGER NOT NULL,
        hash BLOB NOT NULL,
        bytes INTEGER NOT NULL,
        payload_bytes INTEGER NOT NULL,
        dropped INTEGER NOT NULL,
        dropped_hash BLOB NOT NULL,
        dropped_payloads INTEGER NOT NULL,
        dropped_since TEXT,
        dropped_at TEXT,
        UNIQUE (owner, kind)
    ) STRICT;
    CREATE TABLE audit_began (before_id INTEGER NOT NULL) STRICT;
    INSERT INTO audit_began SELECT coalesce(max(id), 0) FROM audit;",
    // The amounts that runs hold of a day's budget, in picodollars. A settled run has no `until`.
    "CREATE TABLE spending (
        id TEXT PRIMARY KEY,
        day INTEGER NOT NULL,
        key TEXT NOT NULL,
        reserved INTEGER NOT NULL,
        sent INTEGER NOT NULL,
        until TEXT
    ) STRICT;
    CREATE INDEX spending_day ON spending (day, key);",
    // Runs for human review. Input and envelope come last, so that lists do not read them. They are removed when too
    // many entries are decided, and `bytes` is then 0. Decisions hold all data for calibration, and stay. The last
    // index covers the queries on runs, so that they read neither receipts nor payloads.
    "CREATE TABLE reviews (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at TEXT NOT NULL,
        run_id TEXT NOT NULL,
        trace_id TEXT NOT NULL,
        key TEXT,
        user TEXT,
        tenant TEXT,
        module TEXT NOT NULL,
        version TEXT NOT NULL,
        model TEXT NOT NULL,
        ok INTEGER NOT NULL CHECK (ok IN (0, 1)),
        code TEXT,
        risk TEXT NOT NULL,
        confidence REAL NOT NULL,
        calibrated REAL,
        explain TEXT NOT NULL,
        rule TEXT NOT NULL,
        is_open INTEGER NOT NULL CHECK (is_open IN (0, 1)),
        bytes INTEGER NOT NULL,
        input TEXT,
        envelope TEXT
    ) STRICT;
    CREATE INDEX reviews_state ON reviews (is_open, id, module, bytes);
    CREATE TABLE decisions (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        review INTEGER NOT NULL UNIQUE REFERENCES reviews (id),
        module TEXT NOT NULL,
        model TEXT NOT NULL,
        ok INTEGER NOT NULL CHECK (ok IN (0, 1)),
        confidence REAL NOT NULL,
        verdict TEXT NOT NULL CHECK (verdict IN ('approve', 'reject', 'correct')),
        reason TEXT NOT NULL,
        by TEXT,
        at TEXT NOT NULL,
        data TEXT
    ) STRICT;
    CREATE INDEX decisions_module ON decisions (module, seq, model, ok, confidence, verdict);
    CREATE INDEX audit_overview ON audit (event, run_id, ts, module, model, ok, code, risk, confidence, latency_ms,
        input_tokens, output_tokens, key, user, tenant,
        (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.usage.cost') END));",
    // The composition that a run is a part of, so that sums over runs count its tokens once without reading receipts.
    "DROP INDEX audit_overview;
    CREATE INDEX audit_overview ON audit (event, run_id, ts, module, model, ok, code, risk, confidence, latency_ms,
        input_tokens, output_tokens, key, user, tenant,
        (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.usage.cost') END), trace_id,
        (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.parent_span') END));",
    // The key pattern of the module that emitted an entry. Older entries have none.
    "ALTER TABLE context ADD COLUMN pattern TEXT;",
    // The chains of changes to the tables beside the audit. A change has the hash of the new state of its row, and the
    // number of rows after it.
    "CREATE TABLE row_chains (
        name TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        hash BLOB NOT NULL,
        dropped INTEGER NOT NULL,
        dropped_hash BLOB NOT NULL,
        live INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE row_changes (
        name TEXT NOT NULL,
        seq INTEGER NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('n', 'r', 'd', 'c', 'p')),
        key TEXT NOT NULL,
        part INTEGER NOT NULL,
        state BLOB,
        ends TEXT,
        is_final INTEGER NOT NULL CHECK (is_final IN (0, 1)),
        live INTEGER NOT NULL,
        dropped INTEGER NOT NULL,
        before BLOB NOT NULL,
        hash BLOB NOT NULL,
        PRIMARY KEY (name, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX row_changes_key ON row_changes (name, key, seq);",
];

/// Makes an old read-only file look like a new one, for this connection only: views of the old table with the missing
/// columns.
pub(crate) const AS_IF_NEW: &str = "CREATE TEMP VIEW audit AS SELECT *, '' AS run_id, NULL AS key, NULL AS user,
        NULL AS tenant, 0 AS payload_bytes, NULL AS payload_sha256, NULL AS chain, NULL AS seq, NULL AS dropped,
        NULL AS before, NULL AS hash FROM main.audit;
    CREATE TEMP TABLE audit_chains (id, owner, kind, seq, hash, bytes, payload_bytes, dropped, dropped_hash,
        dropped_payloads, dropped_since, dropped_at);
    CREATE TEMP VIEW audit_began AS SELECT coalesce(max(id), 0) AS before_id FROM main.audit;";
/// The first version that does not need [`AS_IF_NEW`].
pub(crate) const CHAINED: i64 = 3;
/// Adds empty review tables to an old read-only file, for this connection only.
pub(crate) const AS_IF_REVIEWED: &str = "CREATE TEMP TABLE reviews (id, at, run_id, trace_id, key, user, tenant, module,
        version, model, ok, code, risk, confidence, calibrated, explain, rule, is_open, bytes, input, envelope);
    CREATE TEMP TABLE decisions (seq, review, module, model, ok, confidence, verdict, reason, by, at, data);";
/// The first version that does not need [`AS_IF_REVIEWED`].
pub(crate) const REVIEWED: i64 = 5;

/// Adds the missing column to the context of an old read-only file, for this connection only.
pub(crate) const AS_IF_PATTERNED: &str =
    "CREATE TEMP VIEW context AS SELECT *, NULL AS pattern FROM main.context;";
/// The versions that have context and need [`AS_IF_PATTERNED`].
pub(crate) const WITHOUT_PATTERN: std::ops::Range<i64> = 2..7;

/// Adds an empty table of context to an old read-only file, for this connection only.
pub(crate) const AS_IF_CONTEXT: &str = "CREATE TEMP TABLE context (id);";
/// Adds an empty table of spending to an old read-only file, for this connection only.
pub(crate) const AS_IF_SPENDING: &str = "CREATE TEMP TABLE spending (id);";
/// The first version that does not need [`AS_IF_SPENDING`].
pub(crate) const BUDGETED: i64 = 4;
/// Adds empty chains to an old read-only file, for this connection only.
pub(crate) const AS_IF_PROTECTED: &str = "CREATE TEMP TABLE row_chains (name, seq, hash, dropped, dropped_hash, live);
    CREATE TEMP TABLE row_changes (name, seq, kind, key, part, state, ends, is_final, live, dropped, before, hash);";
/// The first version that does not need [`AS_IF_PROTECTED`].
pub(crate) const PROTECTED: i64 = 8;

/// The newest version that this program knows.
#[expect(clippy::cast_possible_wrap, reason = "there are never 2^63 steps")]
pub(crate) const KNOWN: i64 = STEPS.len() as i64;

/// The reason why a file cannot be migrated.
#[derive(Debug)]
pub(crate) enum MigrationRefusal {
    Refused(Problem),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for MigrationRefusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Runs the migration steps that a file of this version has not run.
pub(crate) fn migrate_up(connection: &mut Connection, version: i64) -> Result<(), MigrationRefusal> {
    if version == KNOWN {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated the file during the wait for the lock.
    let version = inspect(&transaction)?;
    let seen = usize::try_from(version).unwrap_or(usize::MAX);
    for step in STEPS.iter().skip(seen) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", KNOWN)?;
    Ok(transaction.commit()?)
}

/// Returns the version of a store or of an empty file. Changes nothing.
pub(crate) fn inspect(connection: &Connection) -> Result<i64, MigrationRefusal> {
    // One statement is one snapshot: another process may be creating the tables.
    let (version, owner, empty): (i64, i64, bool) = connection.query_row(
        "SELECT user_version, application_id, NOT EXISTS (SELECT 1 FROM sqlite_schema)
         FROM pragma_user_version, pragma_application_id",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let ours = owner == APPLICATION_ID || (owner == 0 && version == 0 && empty);
    match version {
        _ if !ours => Err(MigrationRefusal::Refused(Problem::Foreign)),
        0..=KNOWN => Ok(version),
        found => Err(MigrationRefusal::Refused(Problem::Newer { found, known: KNOWN })),
    }
}
