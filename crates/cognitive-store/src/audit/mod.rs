//! The audit: one row per record, kept ([`keep`]), read back ([`row`], [`query`]), summed up ([`stats`]) and proven to be
//! whole ([`verify`]). Nothing is ever changed in a row but that its payload may go, and only the oldest of an owner are
//! removed.

mod chain;
mod drops;
mod entry;
mod keep;
mod query;
mod row;
mod stats;
mod verify;

pub(crate) use drops::DropTally;
pub use drops::OwnerDrops;
pub(crate) use entry::writable;
pub(crate) use keep::{NoteCost, NoteRecord};
pub use query::Filter;
pub(crate) use query::{SqlFilter, WHERE};
pub(crate) use row::COLUMNS;
pub use row::{ChainLink, Row};
pub use stats::{Figures, ModuleFigures, Stats};
pub(crate) use stats::{dollars, percentile};
pub use verify::{Anchor, Breach, Head, Verification};
