//! The functions that differ between operating systems. `unix.rs` and `fallback.rs` have the same functions; no code
//! outside this folder checks the system.

#[cfg(not(unix))]
mod fallback;
#[cfg(all(unix, feature = "local"))]
mod memory;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use fallback::*;
#[cfg(unix)]
pub(crate) use unix::*;
