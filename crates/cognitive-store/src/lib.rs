//! The database of the runtime: one `SQLite` file, or one PostgreSQL database shared by several servers. It stores
//! run records, context that modules pass on to later runs, reviews, and the spending of budgets.
//!
//! [`Store::open`] returns a [`Store`]. It writes audit records ([`AuditLog`](cognitive_contract::ports::AuditLog))
//! and answers queries about them. It stores context per owner
//! ([`ContextStore`](cognitive_contract::ports::ContextStore)), and the spending of budgets
//! ([`SpendingLedger`](cognitive_ports::spending::SpendingLedger)). Several threads and processes may use one file
//! at once: `SQLite` locks it, and the write-ahead log allows reads during a write.
//!
//! Guarantees:
//!
//! * The file, its log and its index are readable by their owner only, from the moment they are created.
//! * An acknowledged record survives the death of the process. After a power failure, the newest records may be
//!   missing, but the file is intact. This is the price of `synchronous=NORMAL`, which allows tens of thousands of
//!   records a second.
//! * No call waits longer than [`StoreOptions::patience`]. A full disk, a lock, damage and missing rights are
//!   reported as [`StoreError`]s.
//! * The size of the audit is bounded, see [`Retention`]; so is context, see [`StoreOptions::caps`].
//! * [`Store::verify`] finds records that were changed, removed or moved, also in the tables beside the audit.
//!
//! The rules are written once, in SQL for both databases (`sql`); the backends only execute it. This crate opens the
//! database and no other resource. It prints nothing, reads no environment variables, and uses no clock for records
//! and context: the caller provides their time. Network file systems are not supported, because their locks are
//! unreliable.
//!
//! ```
//! use std::time::SystemTime;
//!
//! use cognitive_contract::Envelope;
//! use cognitive_contract::ports::{AuditLog, AuditRecord};
//! use cognitive_store::{Filter, Store};
//!
//! let answer = serde_json::json!({
//!     "ok": true,
//!     "meta": { "confidence": 0.9, "risk": "low", "explain": "Done" },
//!     "data": { "rationale": "It was easy." }
//! });
//! let envelope = Envelope::from_value(answer).unwrap();
//!
//! let store = Store::in_memory().unwrap();
//! store.record(&AuditRecord::new(SystemTime::now(), "trace-1", "greeter", &envelope)).unwrap();
//! let rows = store.list(&Filter { module: Some("greeter".to_owned()), ..Filter::default() }).unwrap();
//! assert_eq!(rows[0].trace_id, "trace-1");
//! ```
//!
//! # Modules
//!
//! - The database: `store` opens it, `place` checks its file, `schema` has the migrations, `copy` moves a whole store, `backup`
//!   writes a snapshot.
//!   `sql` is the interface of the rules to both backends, `sql::sqlite` and `sql::postgres`.
//! - The audit: `audit` writes, reads and verifies records (`audit::chain`, `audit::verify`); `background` writes them
//!   for servers; `archive` answers queries about past runs.
//! - `row_changes` records every change to the tables beside the audit, and verifies them.
//! - `context` stores context per owner, `review` the review queue and its decisions, `spending` the spending of
//!   budgets.
//! - `error`, `time`, `gate` (a semaphore with a timeout), `acknowledgement` (reports the outcome of a write) and
//!   `platform`.

mod acknowledgement;
mod archive;
mod audit;
mod background;
mod backup;
mod context;
mod copy;
mod error;
mod gate;
mod place;
mod platform;
mod review;
mod row_changes;
mod schema;
mod spending;
mod sql;
mod store;
mod time;

pub use archive::AuditArchive;
pub use audit::{
    Anchor, Breach, ChainLink, Figures, Filter, Head, ModuleFigures, OwnerDrops, Row, Stats, Verification,
};
pub use background::{Background, DROPPING};
pub use copy::{CopiedTable, StoreCopy};
pub use error::{Problem, StoreError};
pub use review::{ReviewLimits, StoredReviewQueue};
pub use store::{Retention, Store, StoreOptions};
pub use time::{since, text as timestamp};
