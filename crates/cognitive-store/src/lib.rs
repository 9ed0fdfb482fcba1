//! The database of the runtime: one `SQLite` file, or one PostgreSQL database that several servers share, that remembers what was run and how it went, and what modules handed
//! on for later runs, and what runs spent of a budget.
//!
//! [`Store::open`] gives a [`Store`], which keeps audit records ([`AuditLog`](cognitive_contract::ports::AuditLog))
//! and answers questions about them, and keeps context ([`ContextStore`](cognitive_contract::ports::ContextStore)),
//! each owner's apart, and the books of a budget ([`SpendingLedger`](cognitive_contract::spending::SpendingLedger)). Several threads and several processes may use one file at once: `SQLite` locks it,
//! and the write-ahead log lets readers read while someone writes.
//!
//! What holds, whatever happens:
//!
//! * The file, its log and its index are readable by their owner only, from the first moment they exist.
//! * A record that was acknowledged survives the death of the process. When the power goes, the newest records of the
//!   last moments may be missing, but the file is whole: `synchronous=NORMAL` buys tens of thousands of records a
//!   second for that.
//! * Nothing waits longer than [`StoreOptions::patience`]; a full disk, a lock, damage and missing rights are
//!   [`StoreError`]s that say so.
//! * The audit does not grow for ever, see [`Retention`]; nor does context, see [`StoreOptions::caps`].
//! * A record that was changed, taken away or put elsewhere is found by [`Store::verify`].
//!
//! Rules are written once, in words that both databases understand (`sql`); a file and a server only carry them out.
//! This crate owns the door to the database and no other. It prints nothing, reads no environment, asks no clock about
//! records and context: both bring their time. Network file systems are not supported, because their locks cannot be trusted.
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

mod acknowledgement;
mod archive;
mod audit;
mod background;
mod context;
mod copy;
mod error;
mod gate;
mod place;
mod platform;
mod review;
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
pub use review::{Desk, ReviewLimits};
pub use store::{Retention, Store, StoreOptions};
pub use time::{since, text as timestamp};
