//! The books: one row per record, kept ([`keep`]), read back ([`row`], [`query`]) and summed up ([`stats`]).
//! Nothing is ever changed in a row, and only the oldest are removed.

mod keep;
mod query;
mod row;
mod stats;

pub use query::Filter;
pub use row::Row;
pub use stats::{Figures, ModuleFigures, Stats};
