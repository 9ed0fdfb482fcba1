//! The parts of this crate that depend on the operating system: mapped files and large pages. `unix.rs` and `fallback.rs`
//! have the same functions; no code outside this folder checks the system.

#[cfg(not(unix))]
mod fallback;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use fallback::{UnmappedFile as MappedFile, map, prefer_large_pages};
#[cfg(unix)]
pub(crate) use unix::*;
