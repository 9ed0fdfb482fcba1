//! The functions that depend on the operating system. `unix.rs` and `fallback.rs` have the same ones; code outside this
//! folder does not check the system.

#[cfg(not(unix))]
mod fallback;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use fallback::*;
#[cfg(unix)]
pub(crate) use unix::*;
