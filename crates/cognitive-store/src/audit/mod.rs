//! The audit: one row per record, written by [`keep`], read by [`row`] and [`query`], summarised by [`stats`] and
//! checked by [`verify`]. A row is never updated, except that its payload may be dropped. Only the oldest rows of an
//! owner are deleted.

mod chain;
mod drops;
mod entry;
mod keep;
mod new_rows;
mod parts;
mod query;
mod row;
mod stats;
mod verify;

pub(crate) use chain::feed;
pub(crate) use drops::DropTally;
pub use drops::OwnerDrops;
pub(crate) use entry::writable;
pub(crate) use keep::{NoteCost, NoteRecord};
pub(crate) use parts::{TracePlace, counted_by_ancestors};
pub use query::Filter;
pub(crate) use query::{SqlFilter, WHERE};
pub(crate) use row::COLUMNS;
pub use row::{ChainLink, Row};
pub use stats::{Figures, ModuleFigures, Stats};
pub(crate) use stats::{dollars, percentile};
pub use verify::{Anchor, Breach, Head, Verification};
pub(crate) use verify::{heads_of, verify_all};
