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
pub use query::Filter;
pub use row::{ChainLink, Row};
pub use stats::{Figures, ModuleFigures, Stats};
pub use verify::{Anchor, Breach, Head, Verification};
