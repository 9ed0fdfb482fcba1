//! The parts of this crate that depend on the operating system: mapped files and large pages. `unix.rs` and `other.rs`
//! have the same functions; no code outside this folder checks the system.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::{UnmappedFile as MappedFile, map, prefer_large_pages};
#[cfg(unix)]
pub(crate) use unix::*;
